//! What a compiled program takes and returns, and what every call of one checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::xla_error;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape};

/// What a call needs to know of a buffer.
pub(super) struct Tag {
    pub(super) shape: Arc<Shape>,
    /// Where it lives: the id of the opened device or group.
    pub(super) device: u64,
    donated: AtomicBool,
}

impl Tag {
    pub(super) fn new(shape: Arc<Shape>, device: u64) -> Self {
        Tag { shape, device, donated: AtomicBool::new(false) }
    }

    pub(super) fn of_array(array: &Array, device: u64) -> Self {
        Tag::new(Arc::new(Shape::new(array.dtype(), array.dims())), device)
    }

    pub(super) fn is_donated(&self) -> bool {
        self.donated.load(Ordering::Acquire)
    }

    /// Copies one buffer with this tag to the host.
    pub(super) fn to_host(&self, buffer: &xla::PjRtBuffer) -> Result<Array> {
        if self.is_donated() {
            return Err(Error::tensor("buffer", "was donated to a program and cannot be read any more"));
        }
        let literal = buffer.to_literal_sync().map_err(xla_error)?;
        let mut bytes = vec![0u8; self.shape.bytes()];
        if !bytes.is_empty() {
            literal.copy_untyped_to(&mut bytes).map_err(xla_error)?;
        }
        Ok(Array::from_bytes(self.shape.dtype, &self.shape.dims, bytes)?)
    }
}

impl std::fmt::Debug for Tag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.shape, if self.is_donated() { ", donated" } else { "" })
    }
}

/// An argument of a call.
pub(super) trait Argument {
    fn tag(&self) -> &Tag;
}

/// A program's computation for the compiler.
pub(super) fn computation(program: &Program) -> Result<xla::XlaComputation> {
    Ok(xla::XlaComputation::from_proto(&module(program)?))
}

/// A program as XLA's message. The text is what we printed ourselves: the parser may abort on foreign text.
pub(super) fn module(program: &Program) -> Result<xla::HloModuleProto> {
    xla::HloModuleProto::parse_and_return_unverified_module(program.text.as_bytes()).map_err(xla_error)
}

/// Names, shapes and donations of a program compiled for the device `id`, called `device`.
pub(super) struct Signature {
    name: String,
    inputs: Vec<(String, Arc<Shape>)>,
    outputs: Vec<(String, Arc<Shape>)>,
    donated: Vec<usize>,
    device: String,
    id: u64,
}

impl Signature {
    pub(super) fn new(program: &Program, device: &str, id: u64) -> Self {
        let shared = |side: &[(String, Shape)]| side.iter().map(|(n, s)| (n.clone(), Arc::new(s.clone()))).collect();
        Signature {
            name: program.name.clone(),
            inputs: shared(&program.inputs),
            outputs: shared(&program.outputs),
            donated: program.aliases.iter().map(|&(_, input)| input).collect(),
            device: device.to_owned(),
            id,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.inputs.iter().map(|(n, s)| (n.as_str(), &**s))
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.outputs.iter().map(|(n, s)| (n.as_str(), &**s))
    }

    /// Checks a call's arguments and marks those that it donates. Where it refuses, nothing is marked.
    pub(super) fn claim<A: Argument>(&self, arguments: &[&A]) -> Result<()> {
        self.check(arguments)?;
        let mut claimed = 0;
        let taken = self.donated.iter().find(|&&i| {
            let before = arguments[i].tag().donated.swap(true, Ordering::AcqRel);
            claimed += usize::from(!before);
            before
        });
        // Claimed buffers are marked by now, so this finds one given both as donated and as plain argument too.
        let spent = taken
            .copied()
            .or_else(|| (0..arguments.len()).find(|i| !self.donated.contains(i) && arguments[*i].tag().is_donated()));
        let Some(i) = spent else { return Ok(()) };
        self.unmark(arguments, claimed);
        Err(self.argument_error(i, "its buffer was donated, to an earlier call or twice in this one"))
    }

    /// Undoes [`Signature::claim`] for a call that XLA refused.
    pub(super) fn release<A: Argument>(&self, arguments: &[&A]) {
        self.unmark(arguments, self.donated.len());
    }

    fn unmark<A: Argument>(&self, arguments: &[&A], first: usize) {
        self.donated[..first].iter().for_each(|&i| arguments[i].tag().donated.store(false, Ordering::Release));
    }

    /// A tag for each result of a call, of which XLA returned `count`.
    pub(super) fn results(&self, count: usize) -> Result<impl Iterator<Item = Tag>> {
        if count != self.outputs.len() {
            return Err(self.error(format!("returned {count} results, its signature has {}", self.outputs.len())));
        }
        Ok(self.outputs.iter().map(|(_, shape)| Tag::new(shape.clone(), self.id)))
    }

    fn check<A: Argument>(&self, arguments: &[&A]) -> Result<()> {
        self.check_count(arguments.len())?;
        for (i, (argument, (_, want))) in arguments.iter().zip(&self.inputs).enumerate() {
            let tag = argument.tag();
            if !Arc::ptr_eq(&tag.shape, want) {
                self.check_shape(i, tag.shape.dtype, &tag.shape.dims)?;
            }
            if tag.device != self.id {
                let on = &self.device;
                return Err(self.argument_error(i, format!("lives on another device, the program runs on `{on}`")));
            }
        }
        Ok(())
    }

    pub(super) fn check_count(&self, given: usize) -> Result<()> {
        if given == self.inputs.len() {
            return Ok(());
        }
        Err(self.error(format!("{given} arguments given, it takes {}", self.inputs.len())))
    }

    pub(super) fn check_shape(&self, i: usize, dtype: DType, dims: &[usize]) -> Result<()> {
        let want = &self.inputs[i].1;
        if want.dtype == dtype && want.dims == dims {
            return Ok(());
        }
        Err(self.argument_error(i, format!("is {}, expected {want}", Shape::new(dtype, dims))))
    }

    fn argument_error(&self, i: usize, what: impl std::fmt::Display) -> Error {
        self.error(format!("argument {i} `{}`: {what}", self.inputs[i].0))
    }

    fn error(&self, reason: String) -> Error {
        Error::Call { program: self.name.clone(), reason }
    }
}
