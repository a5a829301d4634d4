//! The programs in hlo/, and the table of its README, are what the library prints today. `SINEXP_UPDATE=1 cargo test --test
//! hlo` writes them anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sinexp::catalog::{Choices, Entry, Function, entries, find};
use sinexp::graph::{Tensor, stack};

/// Larger programs are not stored.
const MOST_BYTES: usize = 250_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hlo")
}

fn build(entry: &Entry) -> Function {
    entry.build(&Choices::default()).unwrap_or_else(|e| panic!("{}: {e}", entry.name))
}

/// Writes the file where asked to; panics where it is another.
fn check(path: &Path, text: &str) {
    if std::env::var_os("SINEXP_UPDATE").is_some() {
        sinexp::files::write_bytes(path, text.as_bytes()).expect("hlo/ can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "{}: run SINEXP_UPDATE=1 cargo test --test hlo", path.display());
}

#[test]
fn the_stored_programs_are_what_is_printed() {
    let mut expected = BTreeSet::from(["README.md".to_owned()]);
    let (mut rows, mut large) = (Vec::new(), Vec::new());
    for entry in entries() {
        let function = build(&entry);
        assert_eq!(function.program.name, entry.name);
        if function.program.text.len() > MOST_BYTES {
            large.push(format!("`{}`", entry.name));
            continue;
        }
        let file = format!("{}.hlo.txt", entry.name);
        check(&folder().join(&file), &function.program.text);
        // A bar would end the cell.
        let (signature, about) = (function.to_string().replace('|', "\\|"), entry.about);
        let command = format!("hlo export {} --to hlo --out hlo/{file}", entry.name);
        rows.push(format!("| `{file}` | {about} | `{signature}` | `{command}` |"));
        expected.insert(file);
    }
    let readme = format!(
        "# Programs as HLO text\n\n\
         What `hlo list` lists at its default sizes, for people and other programs to read; {} only when asked for, as it \
         is long. The state of steps is donated: `input_output_alias` in the first \
         line. Dicts are passed leaf by leaf; `hlo export` prints the order.\n\n\
         `SINEXP_UPDATE=1 cargo test --test hlo` writes all of this anew, `cargo run --bin hlo -- export ...` one file. \
         `tests/hlo.rs` holds them to what is printed; `python/checks/check_hlo.py` and `python/checks/check_jax_export.py` run each in \
         JAX against JAX's own functions, with derivatives.\n\n\
         | file | what | signature | made by |\n| --- | --- | --- | --- |\n{}\n",
        large.join(", "),
        rows.join("\n")
    );
    check(&folder().join("README.md"), &readme);
    let found = std::fs::read_dir(folder()).expect("hlo/").flatten();
    let found: BTreeSet<String> = found.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, expected, "hlo/ holds what no entry is, or lacks one");
}

/// The same graph prints the same text, whatever was built before it in the process.
#[test]
fn printing_is_deterministic() {
    let step = || build(&find("regression_step").expect("known")).program.text;
    let first = step();
    let _ = stack(&[Tensor::scalar(1f32), Tensor::scalar(2f32)], 0);
    assert_eq!(first, step());
    assert!(first.starts_with("HloModule regression_step, input_output_alias={ {0}: (0, {}, may-alias)"));
}
