//! Update rules and schedules, written in graph operations.
//!
//! ```
//! use sinexp::array::DType;
//! use sinexp::graph::{Shape, Tensor};
//! use sinexp::optim::{Adam, AdamState, Decay, Schedule};
//! let schedule = Schedule { peak: 1e-3, warmup: 10, total: 110, decay: Decay::Linear };
//! assert_eq!((schedule.at(9), schedule.at(60)), (1e-3, 0.5e-3));
//! // One update as a graph, as in optax: the state goes in and comes out.
//! let [w, g, m, v] = ["w", "g", "m", "v"].map(|name| Tensor::parameter(name, Shape::new(DType::F32, &[3])));
//! let t = Tensor::parameter("t", Shape::new(DType::F32, &[]));
//! let (w, state) = Adam::default().update(&w, &g, &AdamState { m, v }, &(&t + 1.0), &schedule.tensor(&t));
//! assert_eq!((w.dims(), state.v.dims()), (&[3][..], &[3][..]));
//! ```

mod adam;
mod adamw;
mod schedule;

pub use adam::{Adam, AdamState};
pub use adamw::{AdamW, clip_coefficient, global_norm};
pub use schedule::{Anneal, Decay, Schedule};
