//! What is shown of a checkpoint's weights: tables, and Figures 1, 13 and 14 of 2607.09967.

mod figures;
mod tables;
#[cfg(test)]
mod tests;

pub use figures::{distance_figure, gap_figure, tail_figure};
pub use tables::{claims, histogram_table, role_table, singular_table, summary_table, tensor_table};
