//! What training made of a checkpoint's weights, against Xavier's initialisation (2607.09967, Section 3, Figures 1, 13
//! and 14): moments, percentiles, tails, growth, stable ranks, distances.
//!
//! ```
//! # use std::collections::BTreeMap;
//! # use sinexp::array::Array;
//! # use sinexp::interop::safetensors::{Tensors, write};
//! use sinexp::analysis::weights::{Role, RoleRules, Wanted, survey};
//! use sinexp::interop::safetensors::Shards;
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("model.safetensors");
//! # let tensor = |name: &str, dims: &[usize]| (name.to_owned(), Array::full(sinexp::array::DType::F32, dims, 0.5));
//! # let tensors = BTreeMap::from([tensor("layers.0.q_proj.weight", &[8, 16]), tensor("norm.weight", &[16])]);
//! # write(&path, &Tensors { tensors, metadata: BTreeMap::new() })?;
//! let shards = Shards::open(&[path])?; // one file or many, behind memory maps
//! let rules = RoleRules::new(&[], shards.tensors().iter().map(|t| (t.name.as_str(), t.dims.as_slice())))?;
//! let (percents, thresholds, curve, fine_percents) = (vec![50.0], vec![0.1], vec![0.1], vec![50.0]);
//! let wanted = Wanted { percents, thresholds, tail: 0.001, stable_rank: 1 << 20, curve, fine_percents, bins: 21 };
//! let found = survey(&shards, &rules, &wanted, |_, _| true, Role::is_linear, |_| ())?;
//! // All weights of the matrix are 0.5, where Xavier's law draws up to sqrt(6 / (16 + 8)) = 0.5; its rank is 1.
//! let all = found.all.unwrap().summary;
//! assert_eq!((all.tensors, all.count), (1, 8 * 16)); // not the norm's gain
//! assert!((all.growth_max() - 1.0).abs() < 1e-12 && (all.stable_rank.unwrap() - 1.0).abs() < 1e-6);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod central;
mod count;
mod distance;
mod order;
mod pool;
mod rank;
mod role;
mod survey;
mod xavier;

pub use central::Central;
pub use distance::{Distances, distances};
pub use order::Order;
pub use pool::{LEAST_TAIL, Summary, Wanted};
pub use rank::{largest, matrix};
pub use role::{Fans, Placed, Role, RoleRules, regex};
pub use survey::{Report, Survey, Whole, survey};
pub use xavier::Xavier;
