//! Tables 3, 4 and 5 with Figures 2, 7, 8 and 9: moment matching against a search for omega0 (2609.30633, Section 4.4).

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use polars::prelude::{Column, ParquetReader, SerReader};
use serde_json::json;

use super::arguments::{SirenArguments, Sizes};
use super::cameraman::{collect, picture};
use super::config::RunConfig;
use super::field::{Color, Field, PAPER_OMEGA0};
use super::outcome::{Outcome, training_seconds};
use super::runner::{Keep, Runner};
use crate::cli::say;
use crate::data::datasets;
use crate::error::{Error, Result};
use crate::experiment::output::conclude;
use crate::experiment::preset::Preset;
use crate::report::fitting::{BestPicture, best_figure};
use crate::report::siren::sweeps::{SweepPanel, omega_figure};
use crate::report::style::label;
use crate::report::{FigureFiles, Table, TableFormat};

/// One of the three tables.
pub struct OmegaSweep {
    /// `siren-table3` ...
    pub name: &'static str,
    /// `Table 3: ...`.
    pub title: &'static str,
    /// Row of Figure 2: `grayscale`, `RGB`, `CIELAB`.
    pub row: &'static str,
    /// Channels that are fitted.
    pub color: Color,
    /// The paper's pictures.
    pub images: [&'static str; 4],
    /// Stem of the pictures' figure.
    pub figure: &'static str,
    /// What the paper's text says of a picture.
    pub claim: fn(&str) -> &'static str,
}

/// The initialisations that have an omega0.
pub const BASELINES: [&str; 3] = ["sm20", "cvp26-s1", "cvp26-s0"];

/// 64 pi / sqrt 6 times 10^q for `count` values of q from -2 to 2 (Eq. 27 with 21).
pub fn frequencies(count: usize) -> Vec<f64> {
    let last = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|i| PAPER_OMEGA0 * 10f64.powf(-2.0 + 4.0 * i as f64 / last)).collect()
}

/// Options of the three tables.
#[derive(Args, Clone, Debug)]
pub struct OmegaArguments {
    #[command(flatten)]
    siren: SirenArguments,
    /// Values of omega0, evenly spaced on a logarithmic axis over four decades [default: the preset's]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(2..=1000))]
    frequencies: Option<u64>,
}

/// Sizes and number of frequencies of a preset, the same for the three tables.
fn sizes_of(preset: Preset) -> (Sizes, usize) {
    let paper = Sizes::picture();
    match preset {
        Preset::Smoke => (Sizes { train: 16, eval: 32, width: 16, hidden: 3, steps: 30, ..paper }, 3),
        Preset::Cpu => (Sizes { train: 48, eval: 192, width: 64, steps: 300, learning_rate: 1e-3, ..paper }, 11),
        Preset::Paper => (paper, 21),
    }
}

/// A picture's runs and their results.
struct Swept {
    field: Field,
    /// Of each baseline, in the order of `BASELINES`: one run per frequency.
    baselines: Vec<(Vec<RunConfig>, Vec<Outcome>)>,
    matched: (RunConfig, Outcome),
}

impl Swept {
    /// Position of the smallest evaluation error of a baseline.
    fn best(&self, baseline: usize) -> usize {
        let mse = |o: &Outcome| if o.eval_mse.is_finite() { o.eval_mse } else { f64::INFINITY };
        let outcomes = &self.baselines[baseline].1;
        (0..outcomes.len()).min_by(|a, b| mse(&outcomes[*a]).total_cmp(&mse(&outcomes[*b]))).unwrap_or(0)
    }

    fn best_mse(&self, baseline: usize) -> f64 {
        self.baselines[baseline].1[self.best(baseline)].eval_mse
    }

    fn best_omega0(&self, baseline: usize) -> f64 {
        self.baselines[baseline].0[self.best(baseline)].method.omega0.unwrap_or(f64::NAN)
    }

    /// uniform-phase's error over that of the best-tuned baseline.
    fn ratio(&self) -> f64 {
        let best = (0..self.baselines.len()).map(|b| self.best_mse(b)).fold(f64::INFINITY, f64::min);
        self.matched.1.eval_mse / best
    }
}

impl OmegaSweep {
    /// Trains what is not done, prints the table, writes it and the figures.
    ///
    /// **Errors** as the runner's.
    pub fn run(&self, OmegaArguments { siren: arguments, frequencies: given }: &OmegaArguments) -> Result<()> {
        let (preset, count) = sizes_of(arguments.preset);
        let count = given.map_or(count, |n| n as usize);
        let sizes = arguments.sizes(preset)?;
        let seed = arguments.one_seed(&sizes)?;
        if let Some(methods) = &arguments.methods {
            let reason = format!("this experiment always compares uniform-mm with {}", BASELINES.join(", "));
            return Err(Error::argument("--methods", methods.join(","), reason));
        }
        let mut fields = Vec::new();
        let mut skipped = Vec::new();
        for name in self.images {
            if name == "skin" && !arguments.image.iter().any(|(n, _)| n == name) {
                // It is in no package.
                say(&format!(
                    "{} is left out: {}",
                    name,
                    datasets::image(name, &[]).err().map(|e| e.to_string()).unwrap_or_default()
                ));
                skipped.push(name);
                continue;
            }
            fields.push(Field::named(name, self.color, (sizes.train, sizes.eval), &arguments.image)?);
        }
        let mut runner = arguments.runner(self.name, Keep { fit: true, weights: false })?;
        let mut record = arguments.record(self.name, &sizes, &fields.iter().collect::<Vec<_>>(), &runner);
        let platform = runner.platform();
        let frequencies = frequencies(count);
        let config = |field: &Field, init: &str, omega0: f64| {
            arguments.config(field, arguments.picture_method(init, omega0), &sizes, seed, &platform)
        };
        let baseline = |field: &Field, init: &str| frequencies.iter().map(|w| config(field, init, *w)).collect();
        let lists: Vec<Vec<RunConfig>> = fields
            .iter()
            .flat_map(|f| {
                let matched = vec![config(f, "uniform-mm", PAPER_OMEGA0)];
                std::iter::once(matched).chain(BASELINES.iter().map(|b| baseline(f, b))).collect::<Vec<_>>()
            })
            .collect();
        runner
            .run(self.name, &lists.concat(), |c| Ok(fields.iter().find(|f| f.id == c.field).unwrap_or(&fields[0])))?;
        let Some(outcomes) = collect(&runner, &lists)? else { return Ok(()) };
        record.set("training_seconds", json!(training_seconds(&outcomes)));
        let mut lists = lists.into_iter().zip(outcomes);
        let mut all = Vec::new();
        for field in fields {
            let Some((configs, outcomes)) = lists.next() else { break };
            let matched = (configs[0].clone(), outcomes[0].clone());
            let baselines = lists.by_ref().take(BASELINES.len()).collect();
            all.push(Swept { field, baselines, matched });
        }

        let left_out = if skipped.is_empty() { String::new() } else { format!(" Left out: {}.", skipped.join(", ")) };
        let note = format!(
            "Preset {}: N = {}, L = {}, {} steps, training on {} and testing on {} pixels along the larger side, \
             {count} frequencies, seed {seed}.{left_out}",
            arguments.preset.name(),
            sizes.width,
            sizes.hidden,
            sizes.steps,
            sizes.train,
            sizes.eval
        );
        let table = self.table(&all, &note)?;
        say(&table.to_string());
        say(&verdict(&all));
        let folder = arguments.folder(self.name);
        let formats = [TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown];
        let mut files = table.write_all(&folder, "table", &formats)?;
        let data = [TableFormat::Csv, TableFormat::Parquet];
        files.extend(self.curves(&all)?.write_all(&folder, "sweep", &data)?);
        files.extend(self.pictures(&all, &runner, &folder, &note)?);
        // Figure 2 has the rows of all three tables, as far as they are there.
        let mut rows = Vec::new();
        for name in TABLES {
            if name == self.name {
                rows.extend(panels(&folder)?);
            } else if arguments.out.is_none() {
                match panels(&arguments.folder(name)) {
                    Ok(panels) => rows.extend(panels),
                    Err(error) => say(&format!("left out of Figure 2: {error}")),
                }
            }
        }
        files.extend(omega_figure(&rows, 4, &note).write_with_curves(folder.join("fig2"))?);
        record.set("frequencies", json!(frequencies));
        record.set("left_out", json!(skipped));
        conclude(record, &files, &folder)
    }

    /// Best test error per picture and method, with its omega0.
    fn table(&self, all: &[Swept], note: &str) -> Result<Table> {
        let names: Vec<&str> = all.iter().map(|s| s.field.id.name.as_str()).collect();
        let mut columns = vec![Column::new("image".into(), &names)];
        let matched: Vec<f64> = all.iter().map(|s| s.matched.1.eval_mse).collect();
        columns.push(Column::new("uniform-phase MM".into(), matched));
        for (b, baseline) in BASELINES.iter().enumerate() {
            let label = label(baseline);
            let best: Vec<f64> = all.iter().map(|s| s.best_mse(b)).collect();
            let omega0: Vec<f64> = all.iter().map(|s| s.best_omega0(b)).collect();
            columns.push(Column::new(label.into(), best));
            columns.push(Column::new(format!("ω₀ {label}").into(), omega0));
        }
        columns.push(Column::new("MM / best".into(), all.iter().map(Swept::ratio).collect::<Vec<_>>()));
        columns.push(Column::new("paper".into(), names.iter().map(|n| (self.claim)(n)).collect::<Vec<_>>()));
        let title = format!("{}: best test MSE, and the omega0 it was found at\n{note}", self.title);
        let table = Table::new(title, columns)?.digits("MM / best", 3);
        Ok(BASELINES.iter().fold(table, |t, b| {
            let label = label(b);
            t.digits(&format!("ω₀ {label}"), 3)
        }))
    }

    /// Every run of the sweep.
    fn curves(&self, all: &[Swept]) -> Result<Table> {
        let mut rows: Vec<(&str, &str, Option<f64>, f64, f64)> = Vec::new();
        for swept in all {
            let name = swept.field.id.name.as_str();
            let of = |c: &RunConfig, o: &Outcome| (c.method.omega0, o.train_mse, o.eval_mse);
            let (omega0, train, eval) = of(&swept.matched.0, &swept.matched.1);
            rows.push((name, "uniform-mm", omega0, train, eval));
            for (baseline, (configs, outcomes)) in BASELINES.iter().zip(&swept.baselines) {
                rows.extend(configs.iter().zip(outcomes).map(|(c, o)| {
                    let (omega0, train, eval) = of(c, o);
                    (name, *baseline, omega0, train, eval)
                }));
            }
        }
        Table::new(
            format!("{}: every run", self.title),
            vec![
                Column::new("row".into(), vec![self.row; rows.len()]),
                Column::new("image".into(), rows.iter().map(|r| r.0).collect::<Vec<_>>()),
                Column::new("init".into(), rows.iter().map(|r| r.1).collect::<Vec<_>>()),
                Column::new("omega0".into(), rows.iter().map(|r| r.2).collect::<Vec<_>>()),
                Column::new("train_mse".into(), rows.iter().map(|r| r.3).collect::<Vec<_>>()),
                Column::new("test_mse".into(), rows.iter().map(|r| r.4).collect::<Vec<_>>()),
            ],
        )
    }

    fn pictures(&self, all: &[Swept], runner: &Runner, folder: &Path, note: &str) -> Result<Vec<PathBuf>> {
        let mut rows = Vec::new();
        for swept in all {
            let title = capitalised(&swept.field.id.name);
            let matched = picture(runner, &swept.matched.0, "eval.png")?;
            let mut methods = vec![("uniform-mm".to_owned(), matched, swept.matched.1.eval_mse, None)];
            for (b, (configs, outcomes)) in swept.baselines.iter().enumerate().rev() {
                let (config, outcome) = (&configs[swept.best(b)], &outcomes[swept.best(b)]);
                let shown = picture(runner, config, "eval.png")?;
                methods.push((BASELINES[b].to_owned(), shown, outcome.eval_mse, config.method.omega0));
            }
            let truth = swept.field.raster(&swept.field.eval().y, &swept.field.eval().shape)?;
            rows.push(BestPicture { image: title, truth, methods });
        }
        // As an SVG it would hold every pixel as a rectangle.
        Ok(vec![best_figure(&rows, note)?.write_png(folder.join(format!("{}.png", self.figure)))?])
    }
}

/// The three tables' folders, in the order of Figure 2's rows.
const TABLES: [&str; 3] = ["siren-table3", "siren-table4", "siren-table5"];

/// The panels of `sweep.parquet` in a table's folder; none where it is not there yet.
fn panels(folder: &Path) -> Result<Vec<SweepPanel>> {
    let path = folder.join("sweep.parquet");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let fail = |e: String| Error::file(&path, format!("is not a table of a sweep ({e}); run its program again"));
    let file = File::open(&path).map_err(|e| fail(e.to_string()))?;
    let frame = ParquetReader::new(file).finish().map_err(|e| fail(e.to_string()))?;
    let column = |name: &str| frame.column(name).map_err(|e| fail(e.to_string()));
    let texts = |name: &str| -> Result<Vec<String>> {
        let texts = column(name)?.str().map_err(|e| fail(e.to_string()))?.clone();
        Ok(texts.iter().map(|t| t.unwrap_or_default().to_owned()).collect())
    };
    let numbers = |name: &str| -> Result<Vec<Option<f64>>> {
        Ok(column(name)?.f64().map_err(|e| fail(e.to_string()))?.iter().collect())
    };
    let (row, image, init) = (texts("row")?, texts("image")?, texts("init")?);
    let (omega0, mse) = (numbers("omega0")?, numbers("test_mse")?);
    let mut all: Vec<SweepPanel> = Vec::new();
    for i in 0..frame.height() {
        let title = capitalised(&image[i]);
        if all.last().is_none_or(|p| p.title != title) {
            all.push(SweepPanel { title, row: row[i].clone(), curves: Vec::new(), matched: None });
        }
        let (Some(panel), mse) = (all.last_mut(), mse[i].unwrap_or(f64::NAN)) else { continue };
        match (omega0[i], panel.curves.iter_mut().find(|(name, _)| *name == init[i])) {
            (None, _) => panel.matched = Some(mse),
            (Some(omega0), Some((_, points))) => points.push((omega0, mse)),
            (Some(omega0), None) => panel.curves.push((init[i].clone(), vec![(omega0, mse)])),
        }
    }
    Ok(all)
}

/// How the paper's two claims fare: the order of the best omega0, and uniform-phase against the best-tuned baseline.
fn verdict(all: &[Swept]) -> String {
    let mean = |b: usize| all.iter().map(|s| s.best_omega0(b).log10()).sum::<f64>() / all.len().max(1) as f64;
    let order = (0..BASELINES.len()).map(|b| format!("{} {:.1}", BASELINES[b], 10f64.powf(mean(b))));
    let ordered = all.iter().filter(|s| s.best_omega0(0) <= s.best_omega0(1) && s.best_omega0(1) <= s.best_omega0(2));
    let within = all.iter().filter(|s| s.ratio() <= 1.0).count();
    format!(
        "Best omega0, geometric mean over pictures: {}. In the paper's order (SM20 <= sigma_a = 1 <= sigma_a = 0) on {} \
         of {} pictures.\nuniform-phase MM is at or below the best-tuned baseline on {within} of {} pictures.",
        order.collect::<Vec<_>>().join(", "),
        ordered.count(),
        all.len(),
        all.len()
    )
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_equation_27() {
        let all = frequencies(21);
        assert_eq!(all.len(), 21);
        assert!((all[10] / PAPER_OMEGA0 - 1.0).abs() < 1e-12 && (all[0] / PAPER_OMEGA0 - 0.01).abs() < 1e-12);
        assert!((all[1] / all[0] - 10f64.powf(0.2)).abs() < 1e-9 && (all[20] / PAPER_OMEGA0 - 100.0).abs() < 1e-9);
    }
}
