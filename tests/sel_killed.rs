//! SIGKILL at random moments of `sel train`: gone on with each time, a run ends in the same bytes as one that nobody
//! killed; no file is ever half-written, and nothing is left behind.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::cli::{check_whole, files, table};
use sinexp::random::Key;

/// When to kill, from when its programs are compiled.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after.
    After(Duration),
    /// So long after there is a file that was not there before, with this in its name.
    New(&'static str, Duration),
}

const SIZE: &str = "--preset smoke --width 16 --depth 2 --heads 2 --sequence 16 --steps 300 --eval-every 30 \
                    --eval-batches 1 --checkpoint-every 5";

struct Case<'a> {
    home: &'a Path,
    options: &'a str,
    kills: usize,
    seed: u64,
}

impl Case<'_> {
    /// Starts it, or goes on with it, and waits until it has compiled.
    fn start(&self, run: &Path) -> (Child, Instant) {
        let resume = files(run).keys().any(|name| name.ends_with(".safetensors"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_sel"));
        command.env("SINEXP_DATA", self.home).env("XLA_FLAGS", "--xla_backend_optimization_level=0");
        command.args(["train", "--corpus"]).arg(self.home.join("text.txt")).arg("--out").arg(run);
        command.args(SIZE.split_whitespace()).args(self.options.split_whitespace());
        command.args(resume.then_some("--resume")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines().map_while(Result::ok);
        let ready = |line: &String| line.contains("compiled in") || line.contains("is complete");
        assert!(lines.into_iter().any(|line| ready(&line)), "it says neither");
        (child, Instant::now())
    }

    fn moments(&self, length: Duration) -> Vec<Moment> {
        let random = Key::new(self.seed).uniform::<f64>(&[self.kills], 0.0, 1.0);
        let moment = |(i, u): (usize, &f64)| match i % 4 {
            1 => Moment::New(".partial", Duration::from_secs_f64(0.002 * u)),
            3 => Moment::New("step-", Duration::from_secs_f64(0.01 * u)),
            // Several to a run.
            _ => Moment::After(length.mul_f64(0.4 * u)),
        };
        random.iter().enumerate().map(moment).collect()
    }

    fn survives(&self) {
        let whole = self.home.join("whole");
        let (mut child, compiled) = self.start(&whole);
        assert!(child.wait().expect("ends").success());
        let length = compiled.elapsed();
        let mut moments = self.moments(length);
        let (mut runs, mut resumed, mut leftovers) = (0, 0, 0);
        while !moments.is_empty() {
            runs += 1;
            assert!(runs <= self.kills, "it ends before it can be killed");
            let run = self.home.join(format!("run-{runs}"));
            loop {
                let (child, compiled) = self.start(&run);
                let killed = match moments.last() {
                    Some(moment) => killed(child, compiled, &run, *moment),
                    None => ended(child),
                };
                if !killed {
                    break;
                }
                moments.pop();
                let names = files(&run);
                resumed += usize::from(names.keys().any(|name| name.contains("step-")));
                leftovers += usize::from(names.keys().any(|name| name.ends_with(".partial")));
                names.iter().filter(|(name, _)| !name.ends_with(".partial")).for_each(|(_, path)| check_whole(path));
            }
            same(&run, &whole);
        }
        println!(
            "{} kills in {length:.1?} of training, {resumed} with a checkpoint, {leftovers} with a temporary file, \
             {runs} runs",
            self.kills
        );
        assert!(resumed * 2 > self.kills, "few kills left a checkpoint to go on from: {resumed}");
    }
}

/// Waits for a good end; false, as nothing was killed.
fn ended(mut child: Child) -> bool {
    assert!(child.wait().expect("ends").success());
    false
}

/// Kills it at `moment`; false where it had ended by then, which must be a good end.
fn killed(mut child: Child, compiled: Instant, run: &Path, moment: Moment) -> bool {
    let before = files(run);
    let mut at = match moment {
        Moment::After(time) => Some(compiled + time),
        Moment::New(..) => None,
    };
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{status}");
            return false;
        }
        if let (None, Moment::New(part, soon)) = (at, moment)
            && files(run).keys().any(|name| name.contains(part) && !before.contains_key(name))
        {
            at = Some(Instant::now() + soon);
        }
        if at.is_some_and(|at| Instant::now() >= at) {
            child.kill().expect("SIGKILL");
            return !child.wait().expect("ends").success();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The same files, checkpoints byte for byte, metrics but for the speed.
fn same(run: &Path, whole: &Path) {
    let (found, expected) = (files(run), files(whole));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, path) in expected.iter().filter(|(name, _)| name.ends_with(".safetensors")) {
        assert!(fs::read(&found[name]).expect("found") == fs::read(path).expect("whole"), "{name} differs");
    }
    let metrics = |run: &Path| table(&run.join("metrics.parquet")).drop("tokens_per_second").expect("a column");
    assert!(metrics(run).equals_missing(&metrics(whole)));
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("temporary folder");
    let text: String = (0..9000u64).map(|i| format!("{} ", i.wrapping_mul(2654435761) % 9973)).collect();
    fs::write(home.path().join("text.txt"), text).expect("written");
    home
}

#[test]
fn a_baseline() {
    let home = home();
    Case { home: home.path(), options: "--mode standard", kills: 12, seed: 1 }.survives();
}

/// With accumulation and several kinds of scales.
#[test]
fn a_sel_run() {
    let home = home();
    let options = "--pattern-e row --pattern-l col --pattern-m global --accumulation 2 --keep 3";
    Case { home: home.path(), options, kills: 8, seed: 2 }.survives();
}
