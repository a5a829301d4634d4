//! What is shown of a checkpoint's weights: tables, and Figures 1, 13 and 14 of 2607.09967.
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use sinexp::array::{Array, DType};
//! # use sinexp::interop::safetensors::{Shards, Tensors, write};
//! use sinexp::analysis::weights::{Role, RoleRules, Wanted, survey};
//! use sinexp::report::weights::{claims, role_table};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("model.safetensors");
//! # let matrix = Array::full(DType::F32, &[8, 16], 1.5);
//! # let tensors = BTreeMap::from([("layers.0.q_proj.weight".to_owned(), matrix)]);
//! # write(&path, &Tensors { tensors, metadata: BTreeMap::new() })?;
//! # let shards = Shards::open(&[path])?;
//! let (percents, thresholds, curve, fine_percents) = (vec![50.0], vec![0.1, 1.0], vec![0.1], vec![50.0]);
//! let wanted = Wanted { percents, thresholds, tail: 0.001, stable_rank: 0, curve, fine_percents, bins: 21 };
//! let found = survey(&shards, &RoleRules::new(&[], [])?, &wanted, |_, _| true, Role::is_linear, |_| ())?;
//! let table = role_table("model.safetensors", &found, &wanted, 1)?; // with the share of |w| > 1
//! // One matrix of 1.5 throughout, where Xavier's law ends at sqrt(6 / (16 + 8)) = 0.5.
//! let growth = table.frame().column("max / Xavier").unwrap().f64().unwrap().get(0).unwrap();
//! assert!((growth - 3.0).abs() < 1e-12);
//! assert!(claims(&found.all.unwrap(), &found.tensors, (1, 1.0))?.to_markdown().contains("1.50 / 0.500 = 3.00 ×"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod figures;
mod tables;
#[cfg(test)]
mod tests;

pub use figures::{distance_figure, gap_figure, tail_figure};
pub use tables::{claims, histogram_table, role_table, singular_table, summary_table, tensor_table};
