//! One convention for rounding noise in tables of singular values: files of numbers have no value there, tables that people
//! read say below or above what it lies.

use polars::prelude::Column;

use super::table::{Table, significant};
use crate::analysis::spectrum::Summary;

/// The columns `smallest` and `condition`, empty where rounding noise decides them.
pub(super) fn columns(rows: &[Summary]) -> [Column; 2] {
    let column = |name: &str, of: fn(&Summary) -> Option<f64>| {
        Column::new(name.into(), rows.iter().map(of).collect::<Vec<Option<f64>>>())
    };
    [column("smallest", Summary::known_smallest), column("condition", Summary::known_condition)]
}

/// The table with `< 2e-13 (noise)` or `> 2e13 (noise)` in the empty cells of these columns.
pub(super) fn mark(mut table: Table, rows: &[Summary]) -> Table {
    let show = |sign: char, value: f64| format!("{sign} {} (noise)", significant(value, 1));
    for (i, row) in rows.iter().enumerate() {
        if row.known_smallest().is_none() {
            table = table.instead("smallest", i, show('<', row.noise));
        }
        if row.known_condition().is_none() {
            table = table.instead("condition", i, show('>', row.most_conditioned));
        }
    }
    table.digits("condition", 3).digits("smallest", 3)
}
