//! Damaged texts: each is an error of one line or a graph, soon, without a panic.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use sinexp::graph::Imported;

use super::common::check::Stream;
use super::file;

/// Pieces that do harm where they land.
const PIECES: [&str; 24] = [
    "99999999999",
    "-1",
    "0",
    "{",
    "}",
    "(",
    ")",
    "f32[",
    "]",
    "pred[]",
    "s32[3]",
    "ROOT ",
    "=",
    ",",
    "\"",
    "/*",
    "->",
    "dimensions={9}",
    "nan",
    "parameter(0)",
    "to_apply=main",
    "\u{e9}",
    "x",
    "18446744073709551615",
];

fn damage(text: &str, stream: &mut Stream) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut place = |n: usize| stream.uniform(0.0, n as f64) as usize;
    for _ in 0..1 + place(3) / 2 {
        let at = place(bytes.len().max(1)).min(bytes.len());
        match place(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << place(8),
            1 => bytes.truncate(at),
            2 => {
                let end = (at + place(30)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let from = place(bytes.len().max(1)).min(bytes.len());
                let part = bytes[from..(from + place(60)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            4 | 5 => {
                let piece = PIECES[place(PIECES.len())].as_bytes().to_vec();
                let end = (at + place(6)).min(bytes.len());
                bytes.splice(at..end, piece);
            }
            // One number becomes another.
            _ => {
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    let with = ["0", "1", "7", "100", "4294967296", "9223372036854775807"][place(6)];
                    bytes.splice(at + digit..at + digit + 1, with.bytes());
                }
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_thousand_and_more_damaged_texts() {
    let mut texts = Vec::new();
    for folder in ["", "optimised"] {
        for entry in std::fs::read_dir(file(folder)).expect("the folder").flatten() {
            if entry.path().extension().is_some_and(|e| e == "txt") {
                texts.push(std::fs::read_to_string(entry.path()).expect("a text"));
            }
        }
    }
    texts.sort();
    assert!(texts.len() > 30);
    let mut stream = Stream::new(2024);
    let (mut read, mut refused) = (0, 0);
    for round in 0..1500 {
        let text = damage(&texts[round % texts.len()], &mut stream);
        let start = Instant::now();
        // What a graph reads as must also print.
        let outcome = catch_unwind(|| Imported::from_hlo_text(&text).and_then(|f| f.program()).map(|_| ()));
        let Ok(outcome) = outcome else { panic!("round {round}:\n{text}") };
        assert!(start.elapsed() < Duration::from_secs(20), "round {round} took {:?}:\n{text}", start.elapsed());
        match outcome {
            Ok(()) => read += 1,
            Err(e) => {
                refused += 1;
                let message = e.to_string();
                assert!(message.contains("line ") && !message.contains('\n') && message.len() < 2000, "{message}");
            }
        }
    }
    // Most damage shows; some only changes a number.
    assert!(read > 100 && refused > 700, "{read} read, {refused} refused");
}

/// A long chain neither overflows the stack nor takes longer than its length; nor does a large constant.
#[test]
fn large_texts() {
    let mut text = String::from("HloModule long\n\nENTRY main {\n  x.0 = f32[64,64]{1,0} parameter(0)\n");
    let mut n = 0;
    while text.len() < 1_000_000 {
        n += 1;
        let before = n - 1;
        text.push_str(&format!(
            "  x.{n} = f32[64,64]{{1,0}} multiply(x.{before}, x.0), metadata={{op_name=\"a/mul\"}}\n"
        ));
    }
    text.push_str("}\n");
    let constant: Vec<String> = (0..100_000).map(|i| format!("{}", f64::from(i) * 1.37e-3)).collect();
    let constant = format!(
        "HloModule c\nENTRY main {{ ROOT c = f32[{}]{{0}} constant({{{}}}) }}",
        constant.len(),
        constant.join(", ")
    );
    for text in [text, constant] {
        let start = Instant::now();
        let f = Imported::from_hlo_text(&text).unwrap_or_else(|e| panic!("{e}"));
        let read = start.elapsed();
        println!("{} bytes read in {read:?}", text.len());
        assert!(read < Duration::from_secs(20), "{read:?}");
        assert!(f.program().expect("a program").text.len() > text.len() / 3);
    }
}
