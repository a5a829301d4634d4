//! Tables 5 and 6 and further variants in Table 2, on one small cell, against the metrics of their runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::common::cli::{check_whole, files, numbers, table, texts};
use super::{corpus, fails, folder, only_progress, program, words};

const SIZE: &str = "--preset smoke --widths 16 --depths 1 --seeds 0,1 --sequence 16 --steps 40 --eval-every 20";

fn experiment(path: &str, options: &str, out: &Path, runs: &Path) -> Command {
    let mut command = program(path);
    command.args(words(SIZE)).arg("--corpus").arg(corpus()).arg("--out").arg(out).arg("--runs").arg(runs);
    command.args(words(options));
    command
}

/// What it printed, and how many runs it trained.
fn ends(mut command: Command) -> (String, usize) {
    let output = command.output().expect("starts");
    let errors = super::text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {errors}");
    only_progress(errors.lines());
    let trained: std::collections::BTreeSet<&str> = errors.lines().filter_map(|l| l.split(',').next()).collect();
    (super::text(&output.stdout), trained.len())
}

/// Final losses by parameterisation and seed, straight from the runs' folders.
fn losses(runs: &Path) -> BTreeMap<(String, u64), f64> {
    let mut all = BTreeMap::new();
    for (name, path) in files(runs).iter().filter(|(name, _)| name.ends_with("run.json")) {
        let record: serde_json::Value = serde_json::from_slice(&fs::read(path).expect("a record")).expect("JSON");
        let config = &record["config"];
        let metrics = table(&runs.join(name.replace("run.json", "metrics.parquet")));
        let last = *numbers(&metrics, "eval_loss").last().expect("a row");
        all.insert((config["projection"].to_string(), config["seed"].as_u64().expect("a seed")), last);
    }
    all
}

#[test]
fn ablations_share_runs_and_agree_with_their_metrics() {
    let folder = folder();
    let runs = folder.path().join("runs");
    let out = |name: &str| folder.path().join(name);

    let table5 = || experiment(env!("CARGO_BIN_EXE_sel-table5"), "", &out("table5"), &runs);
    let (first, trained) = ends(table5());
    assert_eq!(trained, 4, "{first}");
    assert!(first.contains("Table 5: annealed and fixed multipliers") && first.contains("whales.txt"), "{first}");
    for name in ["table.csv", "table.parquet", "table.md", "fig6.png", "fig6.svg", "run.json"] {
        check_whole(&out("table5").join(name));
    }
    let five = table(&out("table5").join("table.parquet"));
    assert_eq!(texts(&five, "multipliers"), ["annealed", "fixed"]);
    assert_eq!(numbers(&five, "paper loss"), [2.894, 2.899]);
    let by_run = losses(&runs);
    let of = |annealed: bool, seed: u64| {
        let here = |(p, s): &&(String, u64)| *s == seed && p.contains("\"end\":8.0") == annealed;
        by_run[by_run.keys().find(here).expect("a run")]
    };
    let gaps = [of(true, 0) - of(false, 0), of(true, 1) - of(false, 1)];
    let (mean, error) = ((gaps[0] + gaps[1]) / 2.0, (gaps[0] - gaps[1]).abs() / 2.0);
    let (shown, spread) = (numbers(&five, "Δ to fixed"), numbers(&five, "± Δ"));
    assert!((shown[0] - mean).abs() < 1e-12 && (spread[0] - error).abs() < 1e-12, "{shown:?} {spread:?} {gaps:?}");
    assert_eq!((shown[1], spread[1]), (0.0, 0.0));
    assert!(mean != 0.0, "the multipliers change nothing");
    for column in ["e_w", "l_w", "m"] {
        let values = numbers(&five, column);
        assert!(values.iter().all(|v| *v > 0.2 && *v < 5.0 && *v != 1.0), "{column} {values:?}");
    }
    assert!(numbers(&five, "time").iter().all(|t| *t > 0.0 && *t < 10.0));

    // The default is there already; the three others and the baseline are not.
    let (said, trained) = ends(experiment(env!("CARGO_BIN_EXE_sel-table6"), "", &out("table6"), &runs));
    assert_eq!(trained, 8, "{said}");
    let six = table(&out("table6").join("table.parquet"));
    assert_eq!(texts(&six, "β"), ["", "fixed", "fixed", "absorbed in m", "absorbed in m"]);
    assert_eq!(texts(&six, "divided by m"), ["", "no", "yes", "no", "yes"]);
    let (losses, gaps) = (numbers(&six, "eval loss"), numbers(&six, "Δ to baseline"));
    for i in 0..5 {
        assert!((losses[i] - losses[0] - gaps[i]).abs() < 1e-12, "{losses:?} {gaps:?}");
        assert!(losses[..i].iter().all(|l| *l != losses[i]), "{losses:?}");
    }
    assert_eq!(numbers(&six, "Δ to fixed, no")[1], 0.0);

    let further = "--variants sel-combined,sel-sinh,sel-damped";
    let (said, trained) = ends(experiment(env!("CARGO_BIN_EXE_sel-table2"), further, &out("table2"), &runs));
    assert_eq!(trained, 4, "{said}");
    let two = table(&out("table2").join("table.parquet"));
    let expected = ["baseline", "SEL β absorbed, normalized", "SEL sinh", "SEL damped"];
    assert_eq!(texts(&two, "variant"), expected);
    assert_eq!(numbers(&two, "eval loss")[..2], [losses[0], losses[4]]);
    assert!(numbers(&two, "eval loss").iter().all(|l| l.is_finite()));

    let (again, trained) = ends(table5());
    assert_eq!((trained, again), (0, first));
}

#[test]
fn mistakes_in_variants() {
    let folder = folder();
    let (out, runs) = (folder.path().join("out"), folder.path().join("runs"));
    let refused = |options: &str, parts: &[&str]| {
        fails(&mut experiment(env!("CARGO_BIN_EXE_sel-table2"), options, &out, &runs), 2, parts);
        assert!(!out.exists() && !runs.exists(), "{options}");
    };
    refused("--variants mismatch", &["--variants", "mismatch", "sel-mismatch", "sel-damped"]);
    refused("--variants sel-sinh,sel-sinh", &["--variants = sel-sinh", "twice"]);
    refused("--variants ,", &["--variants"]);
}
