//! Checkpoints from ordinary weights to SEL's and back (2607.09967, Sections 4.3 and 6), a row block at a time.
//!
//! [`invert`] stores the linear layers of any checkpoint as raw weights and scales; [`fold`] makes the ordinary weights
//! again. A layer `NAME` becomes the leaves `NAME.w`, `NAME.e.r`, `NAME.e.c`, ..., all f32; whatever else the checkpoint
//! holds is copied as it is. Each file carries a [`Conversion`], which says what it was made from and how.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use sinexp::convert::{Job, fold};
//! use sinexp::interop::safetensors::Shards;
//! use sinexp::runtime::Device;
//! let shards = Shards::open(&["raw.safetensors".into()])?;
//! let mut watch = |bytes: usize, tensor: &str| println!("{tensor}: {bytes} bytes");
//! let mut job = Job { progress: &mut watch, stop: &AtomicBool::new(false) };
//! fold(&shards, "back.safetensors".as_ref(), &Device::open("cpu")?, &mut job)?;
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod blocks;
mod encode;
mod files;
mod fold;
mod invert;
mod record;

pub use files::Job;
pub use fold::{FoldReport, fold};
pub use invert::{Request, invert};
pub use record::{Conversion, FORMAT, InvertReport, Layer, LayerReport};
