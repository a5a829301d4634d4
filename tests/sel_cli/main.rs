//! The `sel` program and the SEL experiments from outside: stops and damage of every kind, mistakes, and that what is
//! written agrees.

#[path = "../common/mod.rs"]
mod common;

mod ablations;
mod damaged;
mod full;
mod grids;
mod invert;
mod mistakes;
mod models;
mod not_finite;
mod parallel;
mod profile;
mod programs;
mod stopped;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::cli::files;
use polars::prelude::DataFrame;
use tempfile::TempDir;

/// The shared run: [`whole`].
const SMALL: &str = "--preset smoke --width 16 --depth 2 --heads 2 --sequence 16 --steps 300 --eval-every 60 \
                     --eval-batches 2 --checkpoint-every 20";
const LAST: &str = "checkpoints/step-00000300.safetensors";
const BEFORE: &str = "checkpoints/step-00000280.safetensors";

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Folder of the corpus, its tokens and the shared run.
fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sel_cli");
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).expect("a folder");
        fs::write(home.join("whales.txt"), prose(60_000, 1)).expect("a corpus");
        home
    })
}

fn corpus() -> PathBuf {
    home().join("whales.txt")
}

/// Words in an order that depends on `seed`, with characters of several bytes among them.
fn prose(bytes: usize, seed: u64) -> String {
    let lexicon = "the whale sea captain of and to in a harpoon — Ahab naïve Queequeg was said wind water deck 鯨";
    let lexicon: Vec<&str> = lexicon.split(' ').collect();
    let (mut state, mut text) = (seed, String::new());
    while text.len() < bytes {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        text += lexicon[(state >> 33) as usize % lexicon.len()];
        text.push(if state >> 60 == 0 { '\n' } else { ' ' });
    }
    text
}

/// A program that keeps its tokens in [`home`], and compiles quickly rather than well.
fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    command.env("SINEXP_DATA", home().join("data")).env("XLA_FLAGS", "--xla_backend_optimization_level=0");
    command
}

fn sel(arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_sel"));
    command.args(arguments);
    command
}

/// `sel train OPTIONS` on the corpus.
fn train(options: &str, out: &Path) -> Command {
    let mut command = sel(&["train", "--corpus"]);
    command.arg(corpus()).arg("--out").arg(out).args(words(options));
    command
}

/// Runs it, expects success and nothing but progress on stderr; what it printed.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("starts");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {errors}");
    only_progress(errors.lines());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Plain lines about how far it is, without a number that is not one.
fn only_progress<'a>(lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        let known = ["train ", "tokens ", "run ", "invert ", "fold "].iter().any(|word| line.starts_with(word));
        assert!(known && line.contains(" %)") && !line.contains("NaN") && !line.contains('\x1b'), "{line:?}");
    }
}

/// Runs it and expects exit code `code`, with one `error:` line after progress that has each of `parts`. The line.
fn fails(command: &mut Command, code: i32, parts: &[&str]) -> String {
    let output = command.output().expect("starts");
    failed(&format!("{command:?}"), &output, code, parts)
}

fn failed(what: &str, output: &Output, code: i32, parts: &[&str]) -> String {
    let errors = text(&output.stderr);
    let error = errors.lines().last().unwrap_or_default().to_owned();
    assert_eq!(output.status.code(), Some(code), "{what}: {errors}");
    assert!(error.starts_with("error: ") && error.len() < 600, "{what}: {errors}");
    only_progress(errors.lines().filter(|line| *line != error));
    for part in parts {
        assert!(error.contains(part), "{what}: `{error}` does not say `{part}`");
    }
    error
}

/// A run of [`SMALL`] that nobody stopped; not to be changed.
fn whole() -> &'static Path {
    static WHOLE: OnceLock<PathBuf> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let out = home().join("whole");
        let said = succeeds(&mut train(SMALL, &out));
        assert!(said.contains("width 16, depth 2, 2 heads") && said.contains("300 steps"), "{said}");
        assert!(said.contains("eval loss ") && said.ends_with(&format!("Written to {}\n", out.display())), "{said}");
        out
    })
}

/// A copy of the shared run as it was when the checkpoint before the last was its newest.
fn unfinished(at: &Path) -> PathBuf {
    let run = at.join("unfinished");
    copy(whole(), &run);
    fs::remove_file(run.join(LAST)).expect("removed");
    run
}

fn copy(from: &Path, to: &Path) {
    for (name, path) in files(from) {
        let target = to.join(name);
        fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        fs::copy(path, target).expect("copied");
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The metrics but for what depends on time.
fn metrics(run: &Path) -> DataFrame {
    common::cli::table(&run.join("metrics.parquet")).drop("tokens_per_second").expect("a column")
}

/// The same files; the same bytes in checkpoints and the same numbers in metrics.
fn assert_same_run(run: &Path, expected: &Path) {
    let names = |folder| files(folder).into_keys().collect::<Vec<_>>();
    assert_eq!(names(run), names(expected));
    for name in names(expected).iter().filter(|name| name.ends_with(".safetensors")) {
        assert!(bytes(&run.join(name)) == bytes(&expected.join(name)), "{name} differs");
    }
    assert!(metrics(run).equals_missing(&metrics(expected)), "{:?} {:?}", metrics(run), metrics(expected));
}
