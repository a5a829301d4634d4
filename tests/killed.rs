//! SIGKILL at random moments of a run, of sweeps and of a fit: started again, each ends in the numbers of one that nobody
//! killed, bit for bit; no file is ever half-written, and nothing is left behind.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use common::cli::{check_whole, files, write_picture};
use sinexp::experiment::Outcome;
use sinexp::random::Key;
use sinexp::train::sweep::Store;

/// When to kill.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after the start.
    After(Duration),
    /// So long after a file is written whose name has this part.
    Written(&'static str, Duration),
}

/// A program with its options but for --out.
struct Case {
    program: &'static str,
    arguments: Vec<String>,
    kills: usize,
    seed: u64,
}

impl Case {
    fn start(&self, out: &Path) -> Running {
        let mut command = Command::new(self.program);
        command.args(&self.arguments).arg("--out").arg(out).stdout(Stdio::null()).stderr(Stdio::piped());
        Running { started: Instant::now(), clock: SystemTime::now(), child: command.spawn().expect("starts") }
    }

    /// Half of the moments are spread over `length`, half follow a file by up to 30 ms: a checkpoint, a temporary file, a
    /// result. Each with a number from 0 to 1.
    fn moments(&self, length: Duration) -> Vec<(f64, Moment)> {
        let random = Key::new(self.seed).uniform::<f64>(&[self.kills], 0.0, 1.0);
        let moment = |(i, u): (usize, &f64)| {
            let soon = Duration::from_secs_f64(0.03 * u);
            let moment = match i % 6 {
                1 => Moment::Written("checkpoint", soon),
                3 => Moment::Written(".partial", soon / 10),
                5 => Moment::Written(".parquet", soon),
                _ => Moment::After(length.mul_f64(*u)),
            };
            (*u, moment)
        };
        random.iter().enumerate().map(moment).collect()
    }

    /// Kills it until all moments have come, in as many folders as it takes, and compares each folder with `whole`'s.
    fn survives(&self) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let whole = folder.path().join("whole");
        let mut first = self.start(&whole);
        first.ends();
        let length = first.started.elapsed();
        let mut moments = self.moments(length);
        moments.reverse();
        let (mut rounds, mut resumed, mut leftovers, mut times) = (0, 0, 0, Vec::new());
        while !moments.is_empty() {
            rounds += 1;
            assert!(rounds <= 3 * self.kills, "it ends before it can be killed");
            let out = folder.path().join(rounds.to_string());
            let mut checked = BTreeMap::new();
            loop {
                let fresh = checked.is_empty();
                let mut running = self.start(&out);
                if let Some((u, moment)) = moments.last_mut() {
                    // What goes on where it was has less to do.
                    let moment_here = match moment {
                        Moment::After(time) if !fresh => Moment::After(*time / 2),
                        _ => *moment,
                    };
                    if let Some(time) = running.killed(&out, moment_here) {
                        moments.pop();
                        times.push(time.as_secs_f64());
                        let names = files(&out);
                        resumed += usize::from(names.keys().any(|n| n.contains("checkpoint")));
                        leftovers += usize::from(names.keys().any(|n| n.ends_with(".partial")));
                        check_new(&names, &mut checked);
                        continue;
                    }
                    // It was faster than the first. What was not written into a new folder will not be seen next time.
                    if fresh || matches!(moment, Moment::After(_)) {
                        *moment = Moment::After(running.started.elapsed().mul_f64(*u));
                    }
                }
                running.ends();
                break;
            }
            same(&whole, &out);
        }
        eprintln!(
            "{:?}: {} kills after {times:.1?} s of {:.1} s, {resumed} with a checkpoint, {leftovers} with a temporary \
             file, {rounds} folders",
            Path::new(self.program).file_name().unwrap_or_default(),
            times.len(),
            length.as_secs_f64()
        );
        assert!(times.len() == self.kills && resumed > 0, "no kill left a checkpoint to go on from");
    }
}

struct Running {
    child: std::process::Child,
    started: Instant,
    clock: SystemTime,
}

impl Running {
    /// Waits for its end, which must be a good one.
    fn ends(&mut self) {
        let status = self.child.wait().expect("ends");
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            std::io::Read::read_to_string(stderr, &mut text).expect("UTF-8");
        }
        assert!(status.success(), "{status}: {text}");
    }

    /// Kills it at `moment` and says when that was; None where it ended before.
    fn killed(&mut self, out: &Path, moment: Moment) -> Option<Duration> {
        let mut at = match moment {
            Moment::After(time) => Some(self.started + time),
            Moment::Written(..) => None,
        };
        loop {
            if self.child.try_wait().expect("a child").is_some() {
                return None;
            }
            if let (None, Moment::Written(part, soon)) = (at, moment) {
                let new = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).is_ok_and(|t| t >= self.clock);
                if files(out).iter().any(|(name, path)| name.contains(part) && new(path)) {
                    at = Some(Instant::now() + soon);
                }
            }
            if at.is_some_and(|at| Instant::now() >= at) {
                let time = self.started.elapsed();
                self.child.kill().expect("SIGKILL");
                // It may have ended a moment ago.
                return (!self.child.wait().expect("ends").success()).then_some(time);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// Every file but the temporary ones is whole; those that have not changed since were looked at before.
fn check_new(names: &BTreeMap<String, PathBuf>, checked: &mut BTreeMap<String, SystemTime>) {
    for (name, path) in names.iter().filter(|(name, _)| !name.ends_with(".partial")) {
        let changed = fs::metadata(path).and_then(|m| m.modified()).expect("a time");
        if checked.insert(name.clone(), changed) != Some(changed) {
            check_whole(path);
        }
    }
}

/// The same files with the same bytes, but for times in records and rows.
fn same(whole: &Path, out: &Path) {
    let (expected, found) = (files(whole), files(out));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, path) in &expected {
        let hash = name.strip_prefix("runs/").and_then(|n| n.strip_suffix(".parquet"));
        if let Some(hash) = hash {
            let outcome = |folder: &Path| {
                let row = Store::new(folder.join("runs")).get(hash).expect("whole").expect("there");
                // As text: NaN is equal to NaN.
                format!("{:?}", Outcome { seconds: 0.0, ..Outcome::from_row(&row).expect("complete") })
            };
            assert_eq!(outcome(out), outcome(whole), "{name}");
        } else if name != "run.json" {
            assert!(fs::read(&found[name]).expect("found") == fs::read(path).expect("whole"), "{name} differs");
        }
    }
}

/// Small pictures for each of `names`, as --image options.
fn images(folder: &Path, names: &[&str]) -> Vec<String> {
    let option = |(i, name): (usize, &&str)| {
        let path = folder.join(format!("{name}.png"));
        write_picture(&path, 40, i as u64);
        ["--image".to_owned(), format!("{name}={}", path.display())]
    };
    names.iter().enumerate().flat_map(option).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options =
        words("--preset smoke --methods uniform-mm --seeds 0 --hidden 2 --steps 2000 --checkpoint-every 0.05");
    let arguments = [options, images(folder.path(), &["camera"])].concat();
    Case { program: env!("CARGO_BIN_EXE_siren-table2"), arguments, kills: 10, seed: 1 }.survives();
}

/// `--batch` and a sweep of 4 pictures, each from 7 starts.
fn sweep(batch: &str, kills: usize, seed: u64) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options =
        words("--preset smoke --frequencies 2 --width 8 --hidden 2 --steps 200 --checkpoint-every 0.01 --batch");
    let images = images(folder.path(), &["brick", "camera", "gravel", "clock"]);
    let arguments = [options, vec![batch.to_owned()], images].concat();
    Case { program: env!("CARGO_BIN_EXE_siren-table3"), arguments, kills, seed }.survives();
}

#[test]
fn a_sweep_of_batches() {
    sweep("auto", 5, 2);
}

#[test]
fn a_sweep_one_by_one() {
    sweep("1", 5, 3);
}

#[test]
fn a_fit() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let picture = folder.path().join("picture.png");
    write_picture(&picture, 40, 7);
    let options = words("--train-size 24 --eval-size 40 --width 16 --hidden 2 --steps 3000 --checkpoint-every 0.05");
    let arguments = [vec![picture.display().to_string()], options].concat();
    Case { program: env!("CARGO_BIN_EXE_fit"), arguments, kills: 4, seed: 4 }.survives();
}

/// Of a batch of which some runs are done, the others train together, and go on together.
#[test]
fn a_part_of_a_batch() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options = words("--preset smoke --methods sm20 --seeds 0,1,2 --hidden 2 --steps 2000 --checkpoint-every 0.01");
    let arguments = [options, images(folder.path(), &["camera"])].concat();
    let case = Case { program: env!("CARGO_BIN_EXE_siren-table2"), arguments, kills: 1, seed: 5 };
    let out = folder.path().join("out");
    case.start(&out).ends();
    let table = fs::read(out.join("table.csv")).expect("a table");
    let before = files(&out);
    let results: Vec<&PathBuf> = before
        .iter()
        .filter(|(n, _)| n.starts_with("runs/") && n.ends_with(".parquet"))
        .map(|(_, path)| path)
        .collect();
    assert_eq!(results.len(), 3);
    for path in &results[1..] {
        fs::remove_file(path).expect("removed");
    }
    let killed = case.start(&out).killed(&out, Moment::Written("checkpoint", Duration::ZERO));
    assert!(killed.is_some(), "no checkpoint was written");
    // As if it had been killed when one of the two was written.
    let checkpoint = files(&out).into_iter().find(|(name, _)| name.contains("checkpoint")).expect("a checkpoint").1;
    let saved = fs::read(&checkpoint).expect("a checkpoint");
    case.start(&out).ends();
    fs::remove_file(results[2]).expect("removed");
    fs::write(&checkpoint, saved).expect("written");
    case.start(&out).ends();
    assert!(fs::read(out.join("table.csv")).expect("a table") == table, "other numbers");
    assert_eq!(files(&out).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    let batch = |path: &PathBuf| Outcome::from_row(&common::cli::table(path)).expect("complete").batch;
    assert_eq!(results.into_iter().map(batch).collect::<Vec<_>>(), [3, 2, 2]);
}
