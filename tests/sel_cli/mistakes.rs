//! Options and files that cannot be used: one line that names them, exit code 2, and no folder is made.

use std::fs;

use super::{SMALL, fails, folder, sel, train};

#[test]
fn options() {
    let folder = folder();
    let out = folder.path().join("out");
    let check = |options: &str, parts: &[&str]| {
        // Of an option given twice the second is a mistake of its own.
        let first = options.split(' ').next().expect("an option");
        let small: Vec<String> = super::words(SMALL);
        let small: Vec<&str> = small.chunks(2).filter(|pair| pair[0] != first).flatten().map(String::as_str).collect();
        fails(&mut train(&format!("{} {options}", small.join(" ")), &out), 2, parts);
        assert!(!out.exists(), "{options}");
    };
    check("--mode mixed", &["--mode = mixed", "standard", "mismatch", "exp_only"]);
    check("--pattern-e diagonal", &["--pattern-e", "diagonal", "row_col_mult"]);
    check("--pattern-n row_col_mult", &["--pattern-n = row_col_mult", "use col or row"]);
    check("--tokenizer words", &["--tokenizer", "words", "bytes and gpt2"]);
    check("--decay sudden", &["--decay", "sudden", "linear"]);
    check("--beta 0", &["--beta = 0", "positive"]);
    check("--beta -7.5", &["--beta = -7.5", "positive"]);
    check("--beta nan", &["--beta = NaN"]);
    check("--heads 3", &["--heads = 3", "divisor of the width 16"]);
    check("--heads 0", &["--heads = 0", "at least 1"]);
    // Rotary positions take pairs.
    check("--heads 16", &["--heads = 16", "even quotient"]);
    for option in
        ["width", "depth", "sequence", "batch", "steps", "accumulation", "replicas", "eval-every", "eval-batches"]
    {
        check(&format!("--{option} 0"), &[&format!("--{option} = 0"), "at least 1"]);
    }
    check("--learning-rate -1", &["--learning-rate = -1", "positive"]);
    check("--learning-rate inf", &["--learning-rate = inf"]);
    check("--clip 0", &["--clip = 0", "positive"]);
    check("--weight-decay -1", &["--weight-decay = -1"]);
    check("--residual 0", &["--residual = 0", "positive rank"]);
    check("--k-m 1:0", &["--k-m", "1:0"]);
    check("--k-delta 0", &["--k-delta = 0"]);
    check("--n0 1", &["--pattern-n"]);
    check("--mode damped --pattern-s row", &["--pattern-s", "damped"]);
    check("--keep 0", &["--keep", "0"]);
    check("--device gpu0", &["device = gpu0", "cuda"]);
    check("--sequence 4000", &["validation.bin", "4000", "shorter sequences or a larger corpus"]);
    check("--wdith 8", &["--wdith", "--width"]);
    check("--preset tiny", &["--preset", "tiny", "smoke"]);
}

#[test]
fn corpora_and_places() {
    let folder = folder();
    let out = folder.path().join("out");
    let corpus = |name: &str, bytes: &[u8], parts: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let mut command = sel(&["train", "--preset", "smoke", "--corpus"]);
        command.arg(&path).arg("--out").arg(&out);
        fails(&mut command, 2, &[&[name], parts].concat());
        assert!(!out.exists(), "{name}");
    };
    corpus("empty.txt", b"", &["is empty"]);
    corpus("latin.txt", b"na\xefve", &["not UTF-8", "0xef", "offset 2", "iconv"]);
    corpus("short.txt", b"Call me Ishmael.", &["too small to train on", "16 bytes"]);
    corpus("lines.jsonl", b"{\"txt\": \"a\"}\n", &["line 1", "\"text\""]);
    let mut command = sel(&["train", "--corpus"]);
    command.arg(folder.path().join("none.txt")).arg("--out").arg(&out);
    fails(&mut command, 2, &["none.txt", "is not there", "--corpus"]);
    // A root user may write anywhere but into these.
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    fails(&mut train(SMALL, &file), 2, &["file: is a file", "--out"]);
    fails(&mut train(SMALL, &file.join("below")), 2, &["file/below", "--out"]);
    fails(&mut train(SMALL, "/proc/sel".as_ref()), 2, &["/proc/sel", "cannot be used as output folder", "--out"]);
}

#[test]
fn of_models() {
    let run = super::whole().display().to_string();
    let corpus = super::corpus().display().to_string();
    let refused = |arguments: &[&str], parts: &[&str]| fails(&mut sel(arguments), 2, parts);
    refused(&["generate", &run, "--temperature", "-1"], &["--temperature = -1"]);
    refused(&["generate", &run, "--top-k", "0"], &["--top-k"]);
    refused(&["generate", &run, "--prompt", ""], &["--prompt", "at least one token"]);
    refused(&["eval", &run, "--corpus", &corpus, "--batch", "0"], &["--batch = 0"]);
    refused(&["eval", &run, "--corpus", &corpus, "--tokenizer", "gpt2"], &["--tokenizer = gpt2", "trained with bytes"]);
    refused(&["fold", &run], &["--out"]);
    refused(&["fold", &run, "--out", "/proc/x/y"], &["/proc/x/y", "cannot be written"]);
    refused(&["brew"], &["brew"]);
}
