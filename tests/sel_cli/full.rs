//! A disk that is full when a checkpoint is saved: a limit on the size of files stands for it, as both end in a write
//! that fails.

use std::process::Command;

use super::{BEFORE, LAST, assert_same_run, bytes, failed, folder, home, succeeds, train, unfinished, whole};
use crate::common::cli::files;

#[test]
fn the_old_checkpoint_survives_a_full_disk() {
    let folder = folder();
    let run = unfinished(folder.path());
    let size = bytes(&run.join(BEFORE)).len();
    let metrics = bytes(&run.join("metrics.parquet")).len();
    assert!(size > 4 * metrics, "metrics of {metrics} bytes, checkpoint of {size}");
    // In units of 512 or 1024 bytes, as the shell has them: under the checkpoint, over everything else.
    let limit = size / 1024 - 1;
    let inner = train("--resume", &run);
    let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args());
    command.env("SINEXP_DATA", home().join("data")).env("XLA_FLAGS", "--xla_backend_optimization_level=0");
    let output = command.output().expect("starts");
    let parts = [LAST, "cannot be written", "the checkpoint of step 280 is still there"];
    failed("full", &output, 2, &parts);
    assert!(bytes(&run.join(BEFORE)) == bytes(&whole().join(BEFORE)), "the old checkpoint");
    let names = files(&run).into_keys().collect::<Vec<_>>();
    assert_eq!(names, [&BEFORE.replace("280", "260"), BEFORE, "metrics.parquet", "run.json"][1..], "{names:?}");
    succeeds(&mut train("--resume", &run));
    assert_same_run(&run, whole());
}
