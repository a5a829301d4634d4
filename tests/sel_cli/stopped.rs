//! Ctrl-C and SIGTERM, going on, and folders that hold a run.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::common::cli::{files, numbers, table};
use super::{LAST, SMALL, assert_same_run, bytes, copy, fails, folder, prose, sel, succeeds, train, unfinished, whole};

/// Starts it and sends `signal` once there is a checkpoint later than step `after`.
pub fn signalled(mut command: Command, run: &Path, signal: &str, after: usize) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let started = Instant::now();
    while newest(run).is_none_or(|step| step <= after) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it could be stopped");
        assert!(started.elapsed() < Duration::from_secs(200), "no checkpoint is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    send(&child, signal);
    child.wait_with_output().expect("ends")
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// The newest checkpoint's step, anywhere below.
fn newest(run: &Path) -> Option<usize> {
    let step = |name: &String| name.split_once("/step-")?.1.strip_suffix(".safetensors")?.parse().ok();
    files(run).keys().filter_map(step).max()
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bytes() {
    let folder = folder();
    let run = folder.path().join("run");
    let corpus = super::corpus();
    let (out, corpus) = (run.display(), corpus.display());
    let go_on = format!("sel train --resume --out {out} --corpus {corpus} --checkpoint-every 20");

    let stopped = |command, signal, after| {
        let output = signalled(command, &run, signal, after);
        let error = super::failed(signal, &output, 130, &["stopped after step ", &format!("; go on with: {go_on}")]);
        let step: usize = error
            .split("after step ")
            .nth(1)
            .and_then(|t| t.split(';').next())
            .expect("a step")
            .parse()
            .expect("a number");
        assert!(step > after && step < 300, "{error}");
        assert_eq!(newest(&run), Some(step), "the checkpoint is that of the last step");
        assert_eq!(numbers(&table(&run.join("metrics.parquet")), "step").last(), Some(&(step as f64)));
        assert!(!files(&run).keys().any(|name| name.ends_with(".partial")));
        step
    };
    let step = stopped(train(SMALL, &run), "-INT", 0);
    // With the same options again, as when --resume is added to the last command.
    let step = stopped(train(&format!("{SMALL} --resume"), &run), "-TERM", step);
    // And with the words that were printed.
    let words: Vec<&str> = go_on.split(' ').skip(1).collect();
    let said = succeeds(&mut sel(&words));
    assert!(said.contains(&format!("300 steps, from step {step};")), "{said}");
    assert_same_run(&run, whole());
}

#[test]
fn folders_that_hold_a_run() {
    let folder = folder();
    let run = folder.path().join("run");
    copy(whole(), &run);
    let said = succeeds(&mut train("--resume", &run));
    assert!(said.contains("is complete: eval loss ") && said.contains("after 300 steps"), "{said}");
    fails(&mut train(SMALL, &run), 2, &[&run.display().to_string(), "holds a run already", "--resume", "--out"]);
    assert_same_run(&run, whole());
    assert!(bytes(&run.join("run.json")) == bytes(&whole().join("run.json")), "the record of the run is kept");

    let run = unfinished(folder.path());
    let other = folder.path().join("other.txt");
    std::fs::write(&other, prose(60_000, 2)).expect("a corpus");
    let mut command = sel(&["train", "--resume", "--out"]);
    command.arg(&run).arg("--corpus").arg(&other);
    fails(&mut command, 2, &["--corpus = other.txt", "another text", "whales.txt, sha256 "]);
    fails(&mut train("--resume --tokenizer gpt2", &run), 2, &["--tokenizer = gpt2", "begun with bytes"]);
    let longer = SMALL.replace("--steps 300", "--steps 600");
    let parts = ["step.anneal_steps = 600: the run was begun with 300", "another --out"];
    fails(&mut train(&format!("{longer} --resume"), &run), 2, &parts);
    fails(&mut train(&format!("{SMALL} --beta 3 --resume"), &run), 2, &["beta = 3", "begun with"]);
    fails(&mut train(&format!("{SMALL} --seed 4 --resume"), &run), 2, &["seed = 4", "begun with 0"]);

    let empty = folder.path().join("empty");
    fails(&mut train("--resume", &empty), 2, &["empty/checkpoints", "no checkpoint", "without --resume"]);
    assert!(!empty.exists());
    // A checkpoint of one run, going on in the folder of another.
    let mut command = train("--resume", folder.path().join("run").as_path());
    command.arg(whole().join(LAST));
    fails(&mut command, 2, &["holds a run already"]);
}
