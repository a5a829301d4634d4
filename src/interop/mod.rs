//! Files that other programs read and write.
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::array::Array;
//! use sinexp::interop::{arrays, safetensors};
//! let path = std::env::temp_dir().join(format!("sinexp-doc-{}.safetensors", std::process::id()));
//! let tensors = BTreeMap::from([("params.Dense_0.kernel".to_owned(), Array::scalar(1f32))]);
//! safetensors::write(&path, &safetensors::Tensors { tensors, metadata: BTreeMap::new() })?;
//! assert_eq!(arrays::read(&path)?.tensors["params.Dense_0.kernel"], Array::scalar(1f32));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), sinexp::error::Error>(())
//! ```

pub mod arrays;
pub mod jax_export;
pub mod npz;
pub mod program;
pub mod safetensors;
