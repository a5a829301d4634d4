//! Update rules and schedules, written in graph operations.

mod adam;
mod adamw;
mod schedule;

pub use adam::{Adam, AdamState};
pub use adamw::{AdamW, clip_coefficient, global_norm};
pub use schedule::{Anneal, Decay, Schedule};
