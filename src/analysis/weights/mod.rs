//! What training made of a checkpoint's weights, against Xavier's initialisation (2607.09967, Section 3, Figures 1, 13
//! and 14): moments, percentiles, tails, growth, stable ranks, distances.

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
pub use pool::{LEAST_TAIL, Summary};
pub use rank::{largest, matrix};
pub use role::{Fans, Placed, Role, RoleRules, regex};
pub use survey::{Report, Survey, Wanted, Whole, survey};
pub use xavier::Xavier;
