//! Which tokens the batches hold.

use std::path::PathBuf;

use super::super::{Corpus, prepare};
use super::*;

/// Tokens that tell where they are: a byte corpus in which each pair of bytes is a count.
fn dataset(folder: &Path, bytes: usize) -> Dataset {
    let path: PathBuf = folder.join(format!("{bytes}.txt"));
    let text: Vec<u8> =
        (0..bytes).map(|i| if i % 2 == 0 { 33 + (i / 160 % 90) } else { 33 + (i / 2 % 80) } as u8).collect();
    fs::write(&path, text).expect("file");
    prepare(&Corpus::open(path).expect("text"), Tokenizer::Bytes, folder.join("tokens"), &mut |_, _| {}).expect("made")
}

fn rows(batch: &Array) -> Vec<Vec<i32>> {
    batch.to_vec::<i32>().expect("i32").chunks(batch.dims()[1]).map(<[i32]>::to_vec).collect()
}

fn all(file: &TokenFile) -> Vec<i32> {
    let mut tokens = Vec::new();
    file.read(0, file.tokens() as usize, &mut tokens).expect("whole");
    tokens
}

#[test]
fn batches_come_from_the_key_and_the_step_alone() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let data = dataset(folder.path(), 100_000);
    let train = all(data.train());
    let key = Key::new(7);
    let batch = data.batch(key, 3, 5, 16).expect("a batch");
    assert_eq!(batch.dims(), [5, 17]);
    let starts = key.fold_in(3).bits64(&[5]);
    for (row, start) in rows(&batch).iter().zip(starts) {
        let start = (start % (train.len() as u64 - 16)) as usize;
        assert_eq!(row, &train[start..start + 17]);
    }
    assert_eq!(data.batch(key, 3, 5, 16).expect("again"), batch);
    let far = 3 + (1u64 << 32);
    for (key, step) in [(key, 4), (Key::new(8), 3), (key, far)] {
        assert_ne!(data.batch(key, step, 5, 16).expect("another"), batch, "step {step}");
    }
}

#[test]
fn every_token_is_drawn() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let data = dataset(folder.path(), 21_000);
    let tokens = data.train().tokens() as usize;
    // Two places to start: the first token and the last must both come.
    let train = all(data.train());
    let drawn: Vec<Vec<i32>> =
        (0..20).flat_map(|step| rows(&data.batch(Key::new(0), step, 1, tokens - 2).expect("fits"))).collect();
    let from = |start: usize| drawn.iter().filter(|row| **row == train[start..start + tokens - 1]).count();
    assert!(from(0) > 2 && from(1) > 2 && from(0) + from(1) == 20, "{} and {}", from(0), from(1));
    assert_eq!(data.batch(Key::new(0), 0, 2, tokens - 1).expect("all of it").dims(), [2, tokens]);
    let short = data.batch(Key::new(0), 0, 2, tokens).expect_err("one too many").to_string();
    let expected =
        format!("train.bin: has {tokens} tokens, but a sequence of {tokens} takes {}; use shorter", tokens + 1);
    assert!(short.contains(&expected), "{short}");
}

#[test]
fn validation_is_spread_evenly_and_fixed() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let data = dataset(folder.path(), 100_000);
    let validation = all(data.validation());
    let n = validation.len();
    let batches = data.validation_batches(4, 15, 3).expect("batches");
    assert_eq!(batches.len(), 3);
    let found: Vec<Vec<i32>> = batches.iter().flat_map(rows).collect();
    for (i, row) in found.iter().enumerate() {
        let start = i * (n - 16) / 11;
        assert_eq!(row, &validation[start..start + 16], "row {i} of 12");
    }
    assert_eq!(found[11].last(), validation.last());
    assert_eq!(data.validation_batches(4, 15, 3).expect("again"), batches);

    // As many as there are tokens to predict; one batch even where its rows overlap.
    let many = data.validation_batches(4, 15, usize::MAX).expect("all");
    assert_eq!(many.len(), (n - 1) / 15 / 4);
    let one = data.validation_batches(4, n - 1, 3).expect("one window");
    assert_eq!((one.len(), rows(&one[0])), (1, vec![validation.clone(); 4]));
    let short = data.validation_batches(4, n, 1).expect_err("one too many").to_string();
    assert!(short.contains(&format!("validation.bin: has {n} tokens, but a sequence of {n} takes")), "{short}");
}
