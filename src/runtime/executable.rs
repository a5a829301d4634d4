//! Executables: compiled programs, called with buffers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Buffer, Device, xla_error};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::{Program, Shape};

/// A program compiled for one device.
pub struct Executable {
    inner: xla::PjRtLoadedExecutable,
    device: Device,
    name: String,
    inputs: Vec<(String, Arc<Shape>)>,
    outputs: Vec<(String, Arc<Shape>)>,
    donated: Vec<usize>,
}

impl Executable {
    pub(super) fn compile(device: &Device, program: &Program) -> Result<Self> {
        // Text that we printed ourselves: the parser may abort on foreign text.
        let module = xla::HloModuleProto::parse_and_return_unverified_module(program.text.as_bytes());
        let computation = xla::XlaComputation::from_proto(&module.map_err(xla_error)?);
        let inner = device.client().compile(&computation).map_err(xla_error)?;
        let signature = |side: &[(String, Shape)]| side.iter().map(|(n, s)| (n.clone(), Arc::new(s.clone()))).collect();
        Ok(Executable {
            inner,
            device: device.clone(),
            name: program.name.clone(),
            inputs: signature(&program.inputs),
            outputs: signature(&program.outputs),
            donated: program.aliases.iter().map(|&(_, input)| input).collect(),
        })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device it was compiled for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Argument names and shapes, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.inputs.iter().map(|(n, s)| (n.as_str(), &**s))
    }

    /// Result names and shapes, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.outputs.iter().map(|(n, s)| (n.as_str(), &**s))
    }

    /// Runs the program: one buffer per result.
    ///
    /// Donated arguments are used up: their memory holds the results now, and using them again is an error.
    /// **Errors** name the argument whose count, dtype, shape or device does not fit; nothing is used up then.
    pub fn run(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>> {
        self.check(arguments)?;
        let mut claimed = 0;
        let taken = self.donated.iter().find(|&&i| {
            let before = arguments[i].donated.swap(true, Ordering::AcqRel);
            claimed += usize::from(!before);
            before
        });
        // Claimed buffers are marked by now, so this finds one given both as donated and as plain argument too.
        let spent = taken.copied().or_else(|| {
            (0..arguments.len()).find(|i| !self.donated.contains(i) && arguments[*i].donated.load(Ordering::Acquire))
        });
        let release =
            || self.donated[..claimed].iter().for_each(|&i| arguments[i].donated.store(false, Ordering::Release));
        if let Some(i) = spent {
            release();
            return Err(self.argument_error(i, "its buffer was donated, to an earlier call or twice in this one"));
        }
        let buffers: Vec<&xla::PjRtBuffer> = arguments.iter().map(|b| &b.inner).collect();
        let mut results = self.inner.execute_b(&buffers).map_err(|e| {
            release();
            xla_error(e)
        })?;
        let results = results.pop().unwrap_or_default();
        if results.len() != self.outputs.len() {
            let reason = format!("returned {} results, its signature has {}", results.len(), self.outputs.len());
            return Err(Error::Call { program: self.name.clone(), reason });
        }
        let id = self.device.id();
        Ok(results.into_iter().zip(&self.outputs).map(|(r, (_, s))| Buffer::new(r, s.clone(), id)).collect())
    }

    /// Runs the program on host tensors and copies the results back.
    pub fn call(&self, arguments: &[&Array]) -> Result<Vec<Array>> {
        self.check_count(arguments.len())?;
        for (i, a) in arguments.iter().enumerate() {
            self.check_shape(i, a.dtype(), a.dims())?;
        }
        let buffers: Vec<Buffer> = arguments.iter().map(|a| self.device.put(a)).collect::<Result<_>>()?;
        self.run(&buffers.iter().collect::<Vec<_>>())?.iter().map(Buffer::to_host).collect()
    }

    fn check(&self, arguments: &[&Buffer]) -> Result<()> {
        self.check_count(arguments.len())?;
        for (i, (buffer, (_, want))) in arguments.iter().zip(&self.inputs).enumerate() {
            if !Arc::ptr_eq(&buffer.shape, want) {
                self.check_shape(i, buffer.shape.dtype, &buffer.shape.dims)?;
            }
            if buffer.device != self.device.id() {
                let on = self.device.name();
                return Err(self.argument_error(i, format!("lives on another device, the program runs on `{on}`")));
            }
        }
        Ok(())
    }

    fn check_count(&self, given: usize) -> Result<()> {
        if given == self.inputs.len() {
            return Ok(());
        }
        let reason = format!("{given} arguments given, it takes {}", self.inputs.len());
        Err(Error::Call { program: self.name.clone(), reason })
    }

    fn check_shape(&self, i: usize, dtype: crate::array::DType, dims: &[usize]) -> Result<()> {
        let want = &self.inputs[i].1;
        if want.dtype == dtype && want.dims == dims {
            return Ok(());
        }
        Err(self.argument_error(i, format!("is {}, expected {want}", Shape::new(dtype, dims))))
    }

    fn argument_error(&self, i: usize, what: impl std::fmt::Display) -> Error {
        let reason = format!("argument {i} `{}`: {what}", self.inputs[i].0);
        Error::Call { program: self.name.clone(), reason }
    }
}
