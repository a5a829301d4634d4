//! Figures 2, 3, 10 and 11 of the SEL paper: the transform by itself, from the library's own functions.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use sinexp::analysis::sel_curves::{CurveSettings, TOLERANCE, curves};
use sinexp::cli::{self, DeviceArguments, RunRecord, say};
use sinexp::error::{Error, Result};
use sinexp::files::ensure_writable_folder;
use sinexp::nn::sel::Mode;
use sinexp::report::sel_curves::{curve_table, figures};
use sinexp::report::{FigureFiles, TableFormat};
use sinexp::runtime::tune_allocator;

/// Draws effective over raw weights: symexp, the effects of beta and n, and the modes.
#[derive(Parser, Debug)]
#[command(name = "sel-curves", version, allow_negative_numbers = true)]
struct Arguments {
    /// beta of the offsets' panel (Fig. 2) and of the modes (Fig. 3)
    #[arg(long, default_value_t = 7.5)]
    beta: f64,
    /// Curvatures of Fig. 2, separated by commas
    #[arg(long, value_name = "BETA,...", default_value = "7.5,12.5,20", value_delimiter = ',')]
    betas: Vec<f64>,
    /// Offsets of Fig. 2, separated by commas
    #[arg(long, value_name = "N,...", default_value = "-1,0,1", value_delimiter = ',', allow_hyphen_values = true)]
    offsets: Vec<f64>,
    /// Rows of Fig. 10
    #[arg(long, value_name = "BETA,...", default_value = "7.5,15", value_delimiter = ',')]
    grid_betas: Vec<f64>,
    /// Columns of Fig. 10
    #[arg(long, value_name = "N,...", default_value = "0,1", value_delimiter = ',', allow_hyphen_values = true)]
    grid_offsets: Vec<f64>,
    /// beta of SEL's pathway in Fig. 11
    #[arg(long, value_name = "BETA", default_value_t = 15.0)]
    steep: f64,
    /// Mode of Fig. 10
    #[arg(long, default_value = "mismatch")]
    mode: Mode,
    /// Modes of the extra figure [default: all]
    #[arg(long, value_name = "MODE,...", value_delimiter = ',')]
    modes: Option<Vec<Mode>>,
    /// Offset of the extra figure's second panel
    #[arg(long, value_name = "N", default_value_t = 0.5)]
    modes_offset: f64,
    /// Raw weights from -R to R, but for the standard symexp [default: to beta |w| = 2.5 for the largest beta of a panel]
    #[arg(long, value_name = "R")]
    range: Option<f64>,
    #[command(flatten)]
    device: DeviceArguments,
    /// Folder for figures and data; made if need be
    #[arg(long, value_name = "FOLDER", default_value = "runs/sel-curves")]
    out: PathBuf,
}

impl Arguments {
    fn settings(&self) -> Result<CurveSettings> {
        let positive = |option: &str, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::argument(option, value, "expected a positive number")),
        };
        let betas = [("--betas", &self.betas), ("--grid-betas", &self.grid_betas)];
        betas.iter().flat_map(|(o, list)| list.iter().map(|b| (*o, *b))).try_for_each(|(o, b)| positive(o, b))?;
        [("--beta", self.beta), ("--steep", self.steep)].into_iter().try_for_each(|(o, b)| positive(o, b))?;
        self.range.map_or(Ok(()), |range| positive("--range", range))?;
        let offsets = self.offsets.iter().chain(&self.grid_offsets).chain([&self.modes_offset]);
        if let Some(n) = offsets.into_iter().find(|n| !n.is_finite()) {
            return Err(Error::argument("--offsets", n, "expected a number"));
        }
        if self.grid_betas.len() * self.grid_offsets.len() > 16 {
            return Err(Error::argument("--grid-betas", self.grid_betas.len(), "Fig. 10 has room for 16 panels"));
        }
        Ok(CurveSettings {
            beta: self.beta,
            betas: self.betas.clone(),
            offsets: self.offsets.clone(),
            grid: (self.grid_betas.clone(), self.grid_offsets.clone()),
            steep: self.steep,
            mode: self.mode,
            modes: self.modes.clone().unwrap_or_else(|| Mode::ALL.to_vec()),
            modes_offset: self.modes_offset,
            range: self.range,
        })
    }
}

fn main() -> ExitCode {
    tune_allocator();
    cli::run(|arguments: Arguments| {
        let settings = arguments.settings()?;
        let device = arguments.device.open()?;
        let (curves, worst) = curves(&device, settings.requests())?;
        ensure_writable_folder(&arguments.out)?;
        let mut record = RunRecord::new("sel-curves", 0, &device.describe());
        let mut files = Vec::new();
        for (name, figure) in figures(&settings, &curves) {
            files.extend(figure.write(arguments.out.join(name))?);
        }
        let table = curve_table(&curves)?;
        files.extend(table.write_all(&arguments.out, "curves", &[TableFormat::Parquet])?);
        let modes: Vec<&str> = settings.modes.iter().map(|m| m.id()).collect();
        let config = json!({ "beta": settings.beta, "betas": settings.betas, "offsets": settings.offsets, "grid": settings.grid,
            "steep": settings.steep, "mode": settings.mode, "modes": modes, "modes_offset": settings.modes_offset,
            "range": settings.range, "largest_difference_of_the_two_forms": worst, "tolerance": TOLERANCE });
        record.set("config", config);
        record.set("files", json!(files));
        record.write(&arguments.out)?;
        let count = curves.len();
        say(&format!("{count} curves; the compiled transform and the one on numbers differ by at most {worst:.1e}"));
        say(&format!("Written to {}", arguments.out.display()));
        Ok(())
    })
}
