//! Table 2 of the SEL paper: the variants of the main comparison (Section 5.2), and others beside them.

use std::process::ExitCode;

use clap::Parser;
use sinexp::cli;
use sinexp::error::Error;
use sinexp::experiment::Preset;
use sinexp::experiment::sel::{Cells, GridArguments, Variant, tables};
use sinexp::runtime::tune_allocator;

/// The runs of `sel-table1`, variant by variant.
///
/// With --variants the table has other variants too: what the paper leaves to future work are sel-sinh and sel-combined
/// (Section 6, Table 6), and sel-damped is its Eq. 17. Their difference is to the baseline, which is always there.
#[derive(Parser, Debug)]
#[command(name = "sel-table2", version, allow_negative_numbers = true)]
struct Arguments {
    /// Variants, separated by commas, in the order of the table
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_enum, default_values = Variant::MAIN.map(Variant::id))]
    variants: Vec<Variant>,
    #[command(flatten)]
    grid: GridArguments,
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let given = &arguments.variants;
        if let Some((_, twice)) = given.iter().enumerate().find(|(i, v)| given[..*i].contains(v)) {
            return Err(Error::argument("--variants", twice.id(), "is given twice").into());
        }
        let variants = Variant::with_baseline(given);
        let cells = match arguments.grid.preset() {
            Preset::Smoke => Cells::product(&[32], &[1, 2], &[0, 1]),
            Preset::Cpu => Cells::product(&[64, 96, 128], &[2, 4], &[0, 1, 2]),
            Preset::Paper => Cells::product(&[1024, 2048, 3072], &[12, 24, 36], &[0]),
        };
        match arguments.grid.run("sel-table2", cells, &variants)? {
            Some(grid) => Ok(tables::variants(
                grid,
                "Table 2: variants on the main grid",
                "with offset and residual better at width 1024, without them often as good or better above",
            )?),
            None => Ok(()),
        }
    })
}
