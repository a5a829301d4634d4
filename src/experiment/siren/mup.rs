//! Figure 6: whether the best learning rate transfers across widths under muP (2609.30633, Section 4.5).
//!
//! ```
//! use sinexp::experiment::{Preset, mup::Grids};
//! let grids = Grids::of(Preset::Paper);
//! assert_eq!(grids.widths, [8, 16, 32, 64, 128, 256, 512]);
//! // Learning rates 2^-18 to 2^2; a width, an initialisation and a scaling make one curve.
//! let rates: Vec<f64> = grids.exponents.iter().map(|k| 2f64.powi(*k)).collect();
//! assert_eq!((rates.len(), rates[0], rates[20]), (21, 2f64.powi(-18), 4.0));
//! assert_eq!((grids.sizes.train, grids.sizes.hidden, grids.sizes.steps), (128, 11, 3000));
//! ```

use polars::prelude::Column;
use serde_json::json;

use super::arguments::{SirenArguments, Sizes};
use super::cameraman::collect;
use super::config::RunConfig;
use super::field::{Color, Field, PAPER_OMEGA0};
use super::omega::{BASELINES, frequencies};
use super::outcome::{Outcome, training_seconds};
use super::runner::Keep;
use crate::cli::say;
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::experiment::preset::Preset;
use crate::report::siren::sweeps::{RatePanel, rate_figure};
use crate::report::style::label;
use crate::report::{FigureFiles, Table, TableFormat};

const NAME: &str = "siren-mup";

/// Width that the learning rate is relative to, N0; omega0 is chosen there.
const BASE_WIDTH: usize = 64;

/// How learning rates and the output layer depend on the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scaling {
    /// Hidden and output matrices at learning rate eta N0/N.
    MupLr,
    /// The same, and the initial output matrix times sqrt(N0/N).
    MupLrLl,
    /// eta for every parameter.
    Standard,
}

/// In the order of the figure's columns.
const SCALINGS: [Scaling; 3] = [Scaling::MupLr, Scaling::MupLrLl, Scaling::Standard];

impl Scaling {
    fn label(self) -> &'static str {
        match self {
            Scaling::MupLr => "μP (LR)",
            Scaling::MupLrLl => "μP (LR+LL)",
            Scaling::Standard => "standard",
        }
    }

    fn apply(self, config: RunConfig) -> RunConfig {
        let ratio = BASE_WIDTH as f64 / config.width as f64;
        let matrix_rate = if self == Scaling::Standard { 1.0 } else { ratio };
        let output_scale = if self == Scaling::MupLrLl { ratio.sqrt() } else { 1.0 };
        RunConfig { matrix_rate, output_scale, ..config }
    }
}

/// Grids of an experiment.
pub struct Grids {
    /// Sizes; the width is not used.
    pub sizes: Sizes,
    /// N.
    pub widths: Vec<usize>,
    /// Exponents of the learning rates 2^k.
    pub exponents: Vec<i32>,
    /// Number of omega0's at the base width.
    pub frequencies: usize,
}

impl Grids {
    /// Those of a preset.
    pub fn of(preset: Preset) -> Self {
        let paper = Sizes { eval: 128, width: 0, ..Sizes::picture() };
        match preset {
            Preset::Smoke => Grids {
                sizes: Sizes { train: 16, eval: 16, hidden: 3, steps: 30, ..paper },
                widths: vec![8, 16],
                exponents: (-12..=-4).step_by(4).collect(),
                frequencies: 3,
            },
            Preset::Cpu => Grids {
                sizes: Sizes { train: 32, eval: 32, steps: 300, ..paper },
                widths: vec![8, 16, 32, 64, 128],
                exponents: (-16..=2).step_by(2).collect(),
                frequencies: 11,
            },
            Preset::Paper => Grids {
                sizes: paper,
                widths: vec![8, 16, 32, 64, 128, 256, 512],
                exponents: (-18..=2).collect(),
                frequencies: 21,
            },
        }
    }
}

/// The runs of one curve.
struct Curve {
    init: String,
    scaling: Scaling,
    width: usize,
    configs: Vec<RunConfig>,
}

/// Chooses each baseline's omega0 at the base width, trains every width at every learning rate, prints the table of best
/// learning rates, writes it and the figure.
///
/// **Errors** as the runner's.
pub fn run(arguments: &SirenArguments, grids: Grids) -> Result<()> {
    let sizes = arguments.sizes(grids.sizes)?;
    let seed = arguments.one_seed(&sizes)?;
    let field = Field::named("camera", Color::Gray, (sizes.train, sizes.eval), &arguments.image)?;
    let mut runner = arguments.runner(NAME, Keep::default())?;
    let mut record = arguments.record(NAME, &sizes, &[&field], &runner);
    let platform = runner.platform();
    let config = |init: &str, omega0: f64, width: usize, rate: f64| RunConfig {
        eps: 0.0,
        width,
        learning_rate: rate,
        ..arguments.config(&field, arguments.picture_method(init, omega0), &sizes, seed, &platform)
    };
    let inits = arguments.methods(&["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20"]);

    // The frequency at which the mean of the pre-update losses is smallest, at N0 and the paper's learning rate.
    let candidates: Vec<Vec<RunConfig>> = BASELINES
        .iter()
        .filter(|b| inits.iter().any(|i| i == *b))
        .map(|b| {
            frequencies(grids.frequencies).iter().map(|w| config(b, *w, BASE_WIDTH, sizes.learning_rate)).collect()
        })
        .collect();
    let widths = grids.widths;
    let plans = |omega0: &dyn Fn(&str) -> f64| -> Vec<Curve> {
        let mut curves = Vec::new();
        for init in &inits {
            for scaling in SCALINGS {
                for width in &widths {
                    let rates = grids.exponents.iter().map(|k| 2f64.powi(*k));
                    let configs = rates.map(|r| scaling.apply(config(init, omega0(init), *width, r))).collect();
                    curves.push(Curve { init: init.clone(), scaling, width: *width, configs });
                }
            }
        }
        curves
    };
    let select = |outcomes: &[Vec<Outcome>]| -> Vec<(String, f64)> {
        let mut chosen = Vec::new();
        for (runs, outcomes) in candidates.iter().zip(outcomes) {
            let best = (0..runs.len()).min_by(|a, b| outcomes[*a].mean_loss().total_cmp(&outcomes[*b].mean_loss()));
            let method = &runs[best.unwrap_or(0)].method;
            chosen.push((method.init.clone(), method.omega0.unwrap_or(PAPER_OMEGA0)));
        }
        chosen
    };
    runner.run("siren-mup: omega0", &candidates.concat(), |_| Ok(&field))?;
    let Some(found) = collect(&runner, &candidates)? else { return Ok(()) };
    let chosen = select(&found);
    let omega0 = |init: &str| chosen.iter().find(|(i, _)| i == init).map_or(PAPER_OMEGA0, |(_, w)| *w);
    for (init, omega0) in &chosen {
        say(&format!("{init}: omega0 {omega0:.3} has the smallest mean loss at N = {BASE_WIDTH}"));
    }
    let curves = plans(&omega0);
    let lists: Vec<Vec<RunConfig>> = curves.iter().map(|c| c.configs.clone()).collect();
    runner.run(NAME, &lists.concat(), |_| Ok(&field))?;
    let Some(outcomes) = collect(&runner, &lists)? else { return Ok(()) };
    record.set("training_seconds", json!(training_seconds(&outcomes)));

    let note = format!(
        "Preset {}: L = {}, {} steps, {} × {} pixels, base width {BASE_WIDTH}, Adam eps 0, seed {seed}.",
        arguments.preset.name(),
        sizes.hidden,
        sizes.steps,
        field.train.shape[0],
        field.train.shape[1]
    );
    let table = table(&curves, &outcomes, &note)?;
    say(&table.to_string());
    let folder = arguments.folder(NAME);
    let formats = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown];
    let mut files = table.write_all(&folder, "table", &formats)?;
    files.extend(rate_figure(&panels(&curves, &outcomes), &note).write_with_curves(folder.join("fig6"))?);
    record.set("widths", json!(widths));
    record.set("learning_rates", json!(grids.exponents.iter().map(|k| 2f64.powi(*k)).collect::<Vec<_>>()));
    record.set("omega0", json!(chosen.into_iter().collect::<std::collections::BTreeMap<_, _>>()));
    conclude(record, &files, &folder)
}

/// The curves as the figure's panels, by the geometric mean of the losses.
fn panels(curves: &[Curve], outcomes: &[Vec<Outcome>]) -> Vec<RatePanel> {
    let mut panels: Vec<RatePanel> = Vec::new();
    for (curve, outcomes) in curves.iter().zip(outcomes) {
        let points =
            curve.configs.iter().map(|c| c.learning_rate).zip(outcomes.iter().map(Outcome::geometric_mean_loss));
        let entry = (curve.width, points.collect());
        match panels.iter_mut().find(|p| p.id == curve.init && p.scaling == curve.scaling.label()) {
            Some(panel) => panel.curves.push(entry),
            None => panels.push(RatePanel {
                id: curve.init.clone(),
                scaling: curve.scaling.label().to_owned(),
                curves: vec![entry],
            }),
        }
    }
    panels
}

/// Best learning rate and its loss per curve, by both means.
fn table(curves: &[Curve], outcomes: &[Vec<Outcome>], note: &str) -> Result<Table> {
    let best = |mean: fn(&Outcome) -> f64| -> (Vec<f64>, Vec<f64>) {
        let of = |(curve, outcomes): (&Curve, &Vec<Outcome>)| {
            let at = (0..outcomes.len()).min_by(|a, b| mean(&outcomes[*a]).total_cmp(&mean(&outcomes[*b])));
            at.map_or((f64::NAN, f64::NAN), |i| (curve.configs[i].learning_rate.log2(), mean(&outcomes[i])))
        };
        curves.iter().zip(outcomes).map(of).unzip()
    };
    let (rate, loss) = best(Outcome::mean_loss);
    let (geometric_rate, geometric_loss) = best(Outcome::geometric_mean_loss);
    let labels: Vec<&str> = curves.iter().map(|c| label(&c.init)).collect();
    let widths: Vec<i64> = curves.iter().map(|c| c.width as i64).collect();
    Table::new(
        format!("Figure 6: best learning rate by width, and the time average of the training MSE there\n{note}"),
        vec![
            Column::new("initialisation".into(), labels),
            Column::new("scaling".into(), curves.iter().map(|c| c.scaling.label()).collect::<Vec<_>>()),
            Column::new("N".into(), widths),
            Column::new("log2 rate".into(), rate),
            Column::new("mean loss".into(), loss),
            Column::new("log2 rate, geometric".into(), geometric_rate),
            Column::new("geometric mean loss".into(), geometric_loss),
        ],
    )
    .map(|t| t.digits("log2 rate", 3).digits("log2 rate, geometric", 3))
}
