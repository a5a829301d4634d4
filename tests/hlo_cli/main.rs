//! The program `hlo` from outside.

mod export;

use std::path::Path;
use std::process::{Command, Output};

/// `hlo` with these arguments.
fn hlo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hlo")).args(arguments).output().expect("starts")
}

/// What it prints.
fn prints(arguments: &[&str]) -> String {
    let output = hlo(arguments);
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "hlo {}: {out}{error}", arguments.join(" "));
    out.into_owned()
}

/// The one line that it refuses with, exit code 2.
fn refuses(arguments: &[&str]) -> String {
    let output = hlo(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "hlo {}: {error}", arguments.join(" "));
    assert!(error.starts_with("error: ") && error.trim_end().lines().count() == 1, "{error}");
    error
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}
