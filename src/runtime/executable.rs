//! Executables: compiled programs, called with buffers.

use super::signature::{Signature, computation};
use super::{Buffer, Device, xla_error};
use crate::array::Array;
use crate::error::Result;
use crate::graph::{Program, Shape};

/// A program compiled for one device.
pub struct Executable {
    inner: xla::PjRtLoadedExecutable,
    device: Device,
    signature: Signature,
}

impl Executable {
    pub(super) fn compile(device: &Device, program: &Program) -> Result<Self> {
        let inner = device.client().compile(&computation(program)?).map_err(xla_error)?;
        let signature = Signature::new(program, device.name(), device.id());
        Ok(Executable { inner, device: device.clone(), signature })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        self.signature.name()
    }

    /// The device it was compiled for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Argument names and shapes, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.signature.inputs()
    }

    /// Result names and shapes, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.signature.outputs()
    }

    /// Runs the program: one buffer per result.
    ///
    /// Donated arguments are used up: their memory holds the results now, and using them again is an error.
    /// **Errors** name the argument whose count, dtype, shape or device does not fit; nothing is used up then.
    pub fn run(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>> {
        self.signature.claim(arguments)?;
        let buffers: Vec<&xla::PjRtBuffer> = arguments.iter().map(|b| &b.inner).collect();
        let mut results = self.inner.execute_b(&buffers).map_err(|e| {
            self.signature.release(arguments);
            xla_error(e)
        })?;
        let results = results.pop().unwrap_or_default();
        let tags = self.signature.results(results.len())?;
        Ok(results.into_iter().zip(tags).map(|(inner, tag)| Buffer { inner, tag }).collect())
    }

    /// Runs the program on host tensors and copies the results back.
    pub fn call(&self, arguments: &[&Array]) -> Result<Vec<Array>> {
        self.signature.check_count(arguments.len())?;
        for (i, a) in arguments.iter().enumerate() {
            self.signature.check_shape(i, a.dtype(), a.dims())?;
        }
        let buffers: Vec<Buffer> = arguments.iter().map(|a| self.device.put(a)).collect::<Result<_>>()?;
        self.run(&buffers.iter().collect::<Vec<_>>())?.iter().map(Buffer::to_host).collect()
    }
}
