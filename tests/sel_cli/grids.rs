//! The SEL experiments on one small cell: stopped, gone on with, run again, and sharing their runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use super::common::cli::{check_whole, files, texts};
use super::stopped::signalled;
use super::{corpus, failed, fails, folder, program, words};

const SIZE: &str = "--preset smoke --widths 16 --depths 1 --seeds 0,1 --sequence 16 --steps 150 --eval-every 50 \
                    --checkpoint-every 10";

fn grid(path: &str, out: &Path, runs: &Path) -> Command {
    let mut command = program(path);
    command.args(words(SIZE)).arg("--corpus").arg(corpus()).arg("--out").arg(out).arg("--runs").arg(runs);
    command
}

/// Runs it to its end: stdout, and how many runs it trained.
fn ends(mut command: Command) -> (String, usize) {
    let output = command.output().expect("starts");
    let errors = super::text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {errors}");
    super::only_progress(errors.lines());
    let trained: std::collections::BTreeSet<&str> = errors.lines().filter_map(|l| l.split(',').next()).collect();
    (super::text(&output.stdout), trained.len())
}

fn times(folder: &Path) -> BTreeMap<String, SystemTime> {
    let time = |path| fs::metadata(path).and_then(|m| m.modified()).expect("a time");
    files(folder).into_iter().map(|(name, path)| (name, time(path))).collect()
}

#[test]
fn experiments_share_runs_and_go_on() {
    let folder = folder();
    let (out, runs) = (folder.path().join("table1"), folder.path().join("runs"));
    let table1 = || grid(env!("CARGO_BIN_EXE_sel-table1"), &out, &runs);
    let stopped = signalled(table1(), &runs, "-INT", 0);
    let parts = ["stopped after step ", "of run 1/6", "the same command goes on from there"];
    failed("sel-table1", &stopped, 130, &parts);
    assert!(!out.join("table.md").exists());

    let (said, trained) = ends(table1());
    assert_eq!(trained, 6, "{said}");
    assert!(said.contains("Table 1: best SEL variant against the baseline"), "{said}");
    for (name, path) in files(&out).iter().chain(&files(&runs)) {
        assert!(!name.ends_with(".partial"));
        check_whole(path);
    }
    let markdown = fs::read_to_string(out.join("table.md")).expect("a table");
    let header = markdown.lines().find(|line| line.starts_with('|')).expect("a header");
    for column in ["width", "depth", "β", "baseline", "best SEL", "SEL", "Δ", "± Δ", "speed-up", "reached", "paper Δ"]
    {
        assert!(header.contains(column), "`{column}` is not in {header}");
    }
    assert!(markdown.contains("whales.txt") && markdown.contains("2 seeds"), "{markdown}");
    assert!(!markdown.contains("OpenWebText"), "{markdown}");
    for name in ["table.csv", "table.parquet", "fig4.png", "fig4.svg", "run.json"] {
        assert!(out.join(name).is_file(), "{name}");
    }

    let before = times(&runs);
    let (again, trained) = ends(table1());
    assert_eq!((trained, &again), (0, &said));
    let (said, trained) = ends(grid(env!("CARGO_BIN_EXE_sel-table2"), &folder.path().join("table2"), &runs));
    assert_eq!(trained, 0, "{said}");
    assert_eq!(times(&runs), before, "nothing is trained again");
    let table2 = super::common::cli::table(&folder.path().join("table2/table.parquet"));
    assert_eq!(texts(&table2, "variant").len(), 3);

    // Two of its three kinds are there already.
    let (said, trained) = ends(grid(env!("CARGO_BIN_EXE_sel-fig5"), &folder.path().join("fig5"), &runs));
    assert_eq!(trained, 2, "{said}");
    for name in ["fig5.png", "fig5.svg", "table.md"] {
        assert!(folder.path().join("fig5").join(name).is_file(), "{name}");
    }
    let kept: BTreeMap<_, _> = times(&runs).into_iter().filter(|(name, _)| before.contains_key(name)).collect();
    assert_eq!(kept, before);
}

#[test]
fn mistakes_of_a_grid() {
    let folder = folder();
    let (out, runs) = (folder.path().join("out"), folder.path().join("runs"));
    let refused = |options: &str, parts: &[&str]| {
        let mut command = program(env!("CARGO_BIN_EXE_sel-table1"));
        command.args(words("--preset smoke --out")).arg(&out).arg("--runs").arg(&runs);
        command.arg("--corpus").arg(corpus()).args(words(options));
        fails(&mut command, 2, parts);
        assert!(!out.exists() && !runs.exists(), "{options}");
    };
    refused("--width 16", &["--width = 16", "--widths"]);
    refused("--seeds 1,1", &["--seeds", "twice"]);
    refused("--widths 0", &["--width = 0"]);
    refused("--beta 0", &["--beta = 0"]);
    refused("--heads 3", &["--heads = 3"]);
    refused("--shard 3/2", &["--shard", "3/2"]);
    refused("--sequence 4000", &["validation.bin", "shorter sequences"]);
}
