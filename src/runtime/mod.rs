//! Devices and what runs on them: the only module that names the crate `xla`.
//!
//! [`Device`] compiles a [`Program`](crate::graph::Program) to an [`Executable`], which maps [`Buffer`]s to buffers. All
//! three are `Send + Sync` and cheap to clone or share. [`DeviceGroup`] does the same on several devices at once, for data
//! parallel programs; [`memory_stats`] tells what a program needs before it runs. The crate's calls that abort, leak or accept wrong arguments in
//! silence are fenced off here: count, dtype, shape, device and donation are checked before it sees them.
//!
//! ```
//! use sinexp::array::{Array, DType};
//! use sinexp::graph::{Program, Shape, Tensor};
//! use sinexp::runtime::{Device, memory_stats};
//! let w = Tensor::parameter("w", Shape::new(DType::F32, &[4]));
//! let program = Program::with_donation("halve", &[w.clone()], &[("w", &w * 0.5)], &[(0, 0)])?;
//! assert_eq!(memory_stats(&program)?.donated, 16); // the result takes over the argument's memory
//! let device = Device::open("cpu")?;
//! let halve = device.compile(&program)?;
//! let first = device.put(&Array::full(DType::F32, &[4], 8.0))?;
//! let second = halve.run(&[&first])?.swap_remove(0); // stays on the device
//! assert!(first.is_donated() && halve.run(&[&first]).is_err()); // used up
//! assert_eq!(halve.run(&[&second])?[0].to_host()?.to_vec::<f32>()?, [2.0; 4]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

#![allow(unsafe_code)]

mod blas;
mod buffer;
mod device;
mod executable;
mod memory;
mod plugin;
mod quiet;
mod replicated;
mod signature;
pub mod translate;

pub use blas::with_single_threaded_blas;
pub use buffer::Buffer;
pub use device::{Device, DeviceOptions, set_verbose, tune_allocator, xla_folder, xla_packages};
pub use executable::Executable;
pub use memory::{MemoryStats, memory_stats};
pub use plugin::{PluginFile, find_plugins};
pub use replicated::{DeviceGroup, ReplicatedBuffer, ReplicatedExecutable};

use crate::array::DType;
use crate::error::Error;

/// The crate's name of an element type.
fn element_type(dtype: DType) -> xla::ElementType {
    match dtype {
        DType::Bool => xla::ElementType::Pred,
        DType::I8 => xla::ElementType::S8,
        DType::I16 => xla::ElementType::S16,
        DType::I32 => xla::ElementType::S32,
        DType::I64 => xla::ElementType::S64,
        DType::U8 => xla::ElementType::U8,
        DType::U16 => xla::ElementType::U16,
        DType::U32 => xla::ElementType::U32,
        DType::U64 => xla::ElementType::U64,
        DType::F16 => xla::ElementType::F16,
        DType::BF16 => xla::ElementType::Bf16,
        DType::F32 => xla::ElementType::F32,
        DType::F64 => xla::ElementType::F64,
    }
}

/// The crate's error as ours, without its C++ and Rust backtraces.
fn xla_error(error: xla::Error) -> Error {
    let text = match error {
        xla::Error::XlaError { msg, .. } => msg,
        other => other.to_string(),
    };
    // XLA's allocator says how much it lacked, not what to do.
    let full = text.contains("RESOURCE_EXHAUSTED") || text.contains("Out of memory");
    Error::Xla(if full { format!("{text} ({MORE_MEMORY})") } else { text })
}

const MORE_MEMORY: &str = "smaller batches need less, and so does --remat where there is one; on a GPU \
                           --memory-fraction 0.95 gives more";
