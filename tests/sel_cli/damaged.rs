//! Checkpoints that are not what was written: refused with the reason, and the one before is offered.

use std::fs;
use std::path::Path;

use sinexp::interop::safetensors;

use super::{BEFORE, LAST, assert_same_run, bytes, copy, fails, folder, sel, succeeds, train, whole};

#[test]
fn a_damaged_checkpoint_is_refused_and_the_one_before_works() {
    let folder = folder();
    let run = folder.path().join("run");
    copy(whole(), &run);
    let (last, before) = (run.join(LAST), run.join(BEFORE));
    let good = bytes(&last);
    let offer = format!("; go on from step 280 with --resume {}", before.display());

    let header = u64::from_le_bytes(good[..8].try_into().expect("8 bytes")) as usize;
    let cut = good[..good.len() - 1000].to_vec();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let rate = good.windows(5).position(|w| w == b"0.001").expect("the learning rate");
    assert!(rate < header);
    let text = b"ceci n'est pas un checkpoint".to_vec();
    let cases: [(Vec<u8>, &str); 6] = [
        (cut, "cut off"),
        (flipped(good.len() - 5), "is damaged: it does not have the checksum"),
        (flipped(8 + header + 64), "is damaged: it does not have the checksum"),
        (flipped(rate + 4), "is damaged: it does not have the checksum"),
        (text, ""),
        (Vec::new(), ""),
    ];
    for (bytes, reason) in &cases {
        fs::write(&last, bytes).expect("written");
        let parts = [LAST, reason, &offer];
        fails(&mut train("--resume", &run), 2, &parts);
        fails(sel(&["generate"]).arg(&run), 2, &[LAST, reason]);
    }
    // Another program's file, and what `sel fold` writes.
    for (format, reason) in [
        (None, "has no `format`: not a checkpoint"),
        (Some("sinexp language weights 1"), "is of format `sinexp language weights 1`"),
    ] {
        let mut content = safetensors::read(whole().join(LAST)).expect("whole");
        content.metadata.clear();
        content.metadata.extend(format.map(|f| ("format".to_owned(), f.to_owned())));
        safetensors::write(&last, &content).expect("written");
        fails(&mut train("--resume", &run), 2, &[LAST, reason, &offer]);
    }
    // A tensor of another shape, under a checksum that fits nothing.
    let mut content = safetensors::read(whole().join(LAST)).expect("whole");
    content.tensors.remove("blocks.0.q.b.w").expect("a bias");
    safetensors::write(&last, &content).expect("written");
    fails(&mut train("--resume", &run), 2, &[LAST, "damaged", &offer]);

    // The damaged one is in the way no longer.
    let words: Vec<&str> = offer.split(' ').collect();
    assert_eq!(words[words.len() - 2], "--resume");
    let mut command = sel(&["train", "--resume", words[words.len() - 1], "--corpus"]);
    let said = succeeds(command.arg(super::corpus()));
    assert!(said.contains("from step 280;"), "{said}");
    assert_same_run(&run, whole());
}

#[test]
fn metrics_must_reach_the_checkpoint() {
    let folder = folder();
    let run = super::unfinished(folder.path());
    let path = run.join("metrics.parquet");
    fs::write(&path, b"PAR1").expect("written");
    fails(&mut train("--resume", &run), 2, &["metrics.parquet"]);
    fs::remove_file(&path).expect("removed");
    fails(&mut train("--resume", &run), 2, &["metrics.parquet"]);
    let short = sinexp::train::language::Metrics::read(whole(), Some(200)).expect("whole");
    short.write(&run).expect("written");
    let parts = ["metrics.parquet", "ends at step 200, the checkpoint is of step 280"];
    fails(&mut train("--resume", &run), 2, &parts);
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = folder();
    let nothing = folder.path().join("nothing");
    let bad = folder.path().join("bad.safetensors");
    fs::write(&bad, b"no").expect("written");
    for command in ["eval", "generate", "fold"] {
        let refuse = |model: &Path, part: &str| {
            let mut command = sel(&[command]);
            command.arg(model);
            if command.get_args().any(|a| a == "fold") {
                command.arg("--out").arg(folder.path().join("folded.safetensors"));
            }
            let error = fails(&mut command, 2, &[part]);
            assert!(error.contains(&*model.display().to_string()), "{error}");
        };
        refuse(&nothing, "no such file");
        refuse(&bad, "");
        refuse(folder.path(), "holds no checkpoint");
    }
}
