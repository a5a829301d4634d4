//! Tables 1 and 2 with Figures 1 and 4: one picture, every initialisation, wide and narrow (2609.30633, Section 4.1, 4.3).

use polars::prelude::Column;
use serde_json::json;

use super::arguments::{SirenArguments, Sizes};
use super::config::RunConfig;
use super::field::{Color, Field, raster};
use super::outcome::{Outcome, training_seconds};
use super::runner::{Keep, Runner};
use crate::cli::say;
use crate::data::image::{Alpha, Picture};
use crate::error::Result;
use crate::experiment::output::conclude;
use crate::experiment::summary::Summary;
use crate::report::fitting::{FitColumn, fit_figure, loss_figure};
use crate::report::style::label;
use crate::report::{FigureFiles, Raster, Table, TableFormat};

/// What differs between the two experiments.
pub struct Cameraman {
    /// `siren-table1` ...
    pub name: &'static str,
    /// Stem of the figure's files.
    pub figure: &'static str,
    /// Title of the table.
    pub title: &'static str,
    /// What the paper's text says of a method (its table is not in our copy).
    pub claim: fn(&str) -> &'static str,
}

/// The initialisations of both tables.
const INITS: [&str; 8] = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "tanh-pe", "relu", "silu", "gelu"];

impl Cameraman {
    /// Trains what is not done, prints the table, writes it and the figures.
    ///
    /// **Errors** as the runner's; when runs of other shards are missing, it says so and draws nothing.
    pub fn run(&self, arguments: &SirenArguments, preset: Sizes) -> Result<()> {
        let sizes = arguments.sizes(preset)?;
        let field = Field::named("camera", Color::Gray, (sizes.train, sizes.eval), &arguments.image)?;
        let mut runner = arguments.runner(self.name, Keep { fit: true, weights: true })?;
        let mut record = arguments.record(self.name, &sizes, &[&field], &runner);
        let platform = runner.platform();
        let inits = arguments.methods(&INITS);
        let config =
            |init: &String, seed: u64| arguments.config(&field, arguments.paper_method(init), &sizes, seed, &platform);
        let configs: Vec<Vec<RunConfig>> =
            inits.iter().map(|init| sizes.seeds.iter().map(|seed| config(init, *seed)).collect()).collect();
        runner.run(self.name, &configs.concat(), |_| Ok(&field))?;
        let Some(outcomes) = collect(&runner, &configs)? else { return Ok(()) };
        record.set("training_seconds", json!(training_seconds(&outcomes)));

        let note = format!(
            "Preset {}: N = {}, L = {}, {} steps, {} × {} training pixels, {} × {} evaluation pixels, {}.",
            arguments.preset.name(),
            sizes.width,
            sizes.hidden,
            sizes.steps,
            field.train.shape[0],
            field.train.shape[1],
            field.eval().shape[0],
            field.eval().shape[1],
            sizes.seeds_in_words()
        );
        let table = self.table(&inits, &outcomes, &note)?;
        say(&table.to_string());
        let folder = arguments.folder(self.name);
        let mut files =
            table.write_all(&folder, "table", &[TableFormat::Csv, TableFormat::Parquet, TableFormat::Markdown])?;

        let shown = format!("{note} Shown: seed {}.", sizes.seeds[0]);
        let (truth_train, truth_eval) =
            (field.raster(&field.train.y, &field.train.shape)?, field.raster(&field.eval().y, &field.eval().shape)?);
        let mut columns = Vec::new();
        for (runs, outcomes) in configs.iter().zip(&outcomes) {
            columns.push(FitColumn {
                id: runs[0].method.init.clone(),
                train: picture(&runner, &runs[0], "train.png")?,
                eval: picture(&runner, &runs[0], "eval.png")?,
                snr_db: outcomes[0].snr_db,
            });
        }
        let (h, w) = (field.eval().shape[0], field.eval().shape[1]);
        // The photographer's head and the camera.
        let zoom = (h * 3 / 16, w * 3 / 8, h / 4, w / 4);
        let figure = fit_figure((&truth_train, &truth_eval), &columns, zoom, &shown)?;
        files.extend(figure.write(folder.join(self.figure))?);
        files.extend(loss_figure(&loss_curves(&configs, &outcomes), &shown).write_with_curves(folder.join("losses"))?);
        conclude(record, &files, &folder)
    }

    fn table(&self, inits: &[String], outcomes: &[Vec<Outcome>], note: &str) -> Result<Table> {
        let summaries = |value: fn(&Outcome) -> f64| -> Vec<Summary> {
            outcomes.iter().map(|o| Summary::of(&o.iter().map(value).collect::<Vec<_>>())).collect()
        };
        let (train, eval, snr) = (summaries(|o| o.train_mse), summaries(|o| o.eval_mse), summaries(|o| o.snr_db));
        let matched = inits.iter().position(|i| i == "uniform-mm").map(|i| snr[i].mean);
        let number = |name: &str, values: Vec<f64>| Column::new(name.into(), values);
        let error = |s: &[Summary]| s.iter().map(|s| s.error).collect::<Vec<f64>>();
        let mean = |s: &[Summary]| s.iter().map(|s| s.mean).collect::<Vec<f64>>();
        let gap = snr.iter().map(|s| s.mean - matched.unwrap_or(f64::NAN)).collect();
        let labels: Vec<&str> = inits.iter().map(|i| label(i)).collect();
        let claims: Vec<&str> = inits.iter().map(|i| (self.claim)(i)).collect();
        let stopped: Vec<i64> =
            outcomes.iter().map(|o| o.iter().filter(|o| o.stopped.is_some()).count() as i64).collect();
        let table = Table::new(
            format!("{}\n{note}", self.title),
            vec![
                Column::new("initialisation".into(), labels),
                number("train MSE", mean(&train)),
                number("± train", error(&train)),
                number("eval MSE", mean(&eval)),
                number("± eval", error(&eval)),
                number("SNR", mean(&snr)),
                number("± SNR", error(&snr)),
                number("spread", snr.iter().map(|s| s.deviation).collect()),
                number("SNR − MM", gap),
                Column::new("stopped".into(), stopped),
                Column::new("paper".into(), claims),
            ],
        )?;
        let table = table.unit("SNR", "dB").unit("± SNR", "dB").unit("spread", "dB").unit("SNR − MM", "dB");
        Ok(table.digits("± train", 2).digits("± eval", 2).digits("± SNR", 2).digits("spread", 2).digits("SNR − MM", 3))
    }
}

/// Training losses of each method's first seed: (step, loss).
pub(super) fn loss_curves(configs: &[Vec<RunConfig>], outcomes: &[Vec<Outcome>]) -> Vec<(String, Vec<(f64, f64)>)> {
    let curve = |(runs, outcomes): (&Vec<RunConfig>, &Vec<Outcome>)| {
        let points = outcomes[0].losses.iter().enumerate().map(|(i, l)| (i as f64 + 1.0, f64::from(*l)));
        (runs[0].method.init.clone(), points.collect())
    };
    configs.iter().zip(outcomes).map(curve).collect()
}

/// All outcomes, or None when some are missing, which is said.
pub(super) fn collect(runner: &Runner, configs: &[Vec<RunConfig>]) -> Result<Option<Vec<Vec<Outcome>>>> {
    let mut missing = 0;
    let mut all = Vec::new();
    for runs in configs {
        let found: Vec<Option<Outcome>> = runs.iter().map(|c| runner.outcome(c)).collect::<Result<_>>()?;
        missing += found.iter().filter(|o| o.is_none()).count();
        all.push(found.into_iter().flatten().collect());
    }
    if missing > 0 {
        say(&format!(
            "{missing} runs of other shards are not here yet: run those, then once more with --merge FOLDER for each"
        ));
        return Ok(None);
    }
    Ok(Some(all))
}

/// A kept picture of a run.
pub(super) fn picture(runner: &Runner, config: &RunConfig, suffix: &str) -> Result<Raster> {
    raster(Picture::read(&runner.kept(config, suffix)?, Alpha::Refuse)?.pixels.view())
}
