//! The commands in the README, the notebooks and the documentation as a newcomer would paste them: each names programs,
//! options and scripts that there are, and the quick ones run. What needs a file of the reader's own, or hours, is only
//! parsed (`--help` behind it).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;

/// Lines that hold one of these run; they take seconds.
const QUICK: [&str; 4] =
    ["hlo -- list", "hlo -- export siren_forward --to", "hlo -- show", "siren-table2 -- --preset smoke"];

/// What people read, by its file: the Markdown files, the notebooks' texts, and the comments that `cargo doc` prints.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    folders.extend(["hlo", "notebooks", "src", "experiments"].map(|name| root.join(name)));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let read = || fs::read_to_string(&path).expect("a text");
            let text = match path.extension().and_then(|e| e.to_str()) {
                Some("md") => read(),
                Some("ipynb") => markdown_cells(&read()),
                Some("rs") => doc_comments(&read()),
                _ if path.is_dir() && folder != root => {
                    folders.push(path);
                    continue;
                }
                _ => continue,
            };
            found.push((path, text));
        }
    }
    found
}

fn markdown_cells(notebook: &str) -> String {
    let notebook: Value = serde_json::from_str(notebook).expect("JSON");
    let cells = notebook["cells"].as_array().expect("cells").iter().filter(|cell| cell["cell_type"] == "markdown");
    let lines = cells.flat_map(|cell| cell["source"].as_array().expect("lines").iter().chain([&Value::Null]));
    lines.map(|line| line.as_str().unwrap_or("\n")).collect()
}

fn doc_comments(source: &str) -> String {
    let comments = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))
    });
    comments.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

/// Lines of shell blocks and commands in the text that start a program of ours.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut shell = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            shell = language == "sh";
        } else if shell && line.contains("cargo run") {
            found.push(line.split("  #").next().unwrap_or(line).trim().to_owned());
        } else if !shell {
            let inline = line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("cargo run"));
            found.extend(inline.map(str::to_owned));
        }
    }
    found
}

/// A folder with a `setup` that starts what stands behind its options, and a `cargo` that starts what is built already.
fn stand_ins(folder: &Path) {
    let script = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    };
    script("setup", "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n");
    let built = Path::new(env!("CARGO_BIN_EXE_hlo")).parent().expect("a folder").display().to_string();
    let cargo = format!(
        "#!/bin/sh\n[ \"$1\" = run ] || exit 9\nshift\n[ \"$1\" = --release ] && shift\n[ \"$1\" = --bin ] || exit 9\n\
         name=$2\nshift 2\n[ \"$1\" = -- ] && shift\nexec '{built}'/\"$name\" \"$@\" $BEHIND\n"
    );
    script("cargo", &cargo);
}

#[test]
fn every_command_parses_and_the_quick_ones_run() {
    let folder = tempfile::tempdir().expect("a folder");
    stand_ins(folder.path());
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a PATH"));
    let all: Vec<String> = documents().iter().flat_map(|(_, text)| commands(text)).collect();
    assert!(all.len() > 25, "{all:#?}");
    for quick in QUICK {
        assert!(all.iter().any(|line| line.contains(quick)), "there is no `{quick}` any more");
    }
    for line in &all {
        let run = QUICK.iter().any(|quick| line.contains(quick));
        // In a folder of its own; ./setup is the stand-in there.
        let here = line.replace("/tmp/", "./").replace("./setup ", "setup ");
        let done = Command::new("sh")
            .args(["-c", &here])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("BEHIND", if run { "" } else { "--help" })
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{line}\n{said}");
        let help = String::from_utf8_lossy(&done.stdout).contains("Usage:");
        assert!(run || help, "{line}: no help");
    }
}

#[test]
fn every_script_is_there_and_setup_knows_its_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = Regex::new(r"\b(python|benches)/\w+\.(py|sh)").expect("a pattern");
    let options = Regex::new(r"\./setup((?: --[a-z]+)+)").expect("a pattern");
    let (mut scripts, mut calls) = (0, 0);
    for (path, text) in documents() {
        for name in script.find_iter(&text) {
            scripts += 1;
            assert!(root.join(name.as_str()).is_file(), "{} names {}", path.display(), name.as_str());
        }
        for call in options.captures_iter(&text) {
            calls += 1;
            let given = call[1].split_whitespace();
            let done = Command::new(root.join("setup")).args(given).arg("--help").output().expect("a shell");
            assert!(done.status.success(), "{}: ./setup{}", path.display(), &call[1]);
        }
    }
    assert!(scripts > 10 && calls > 10, "{scripts} scripts, {calls} calls of ./setup");
}

/// Files that the Markdown files and the notebooks link to are there.
#[test]
fn every_link_leads_somewhere() {
    let mut found = 0;
    for (path, text) in documents().iter().filter(|(path, _)| path.extension().is_some_and(|e| e != "rs")) {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.map(|t| t.trim_matches(['<', '>'])) {
            if !target.contains("://") && !target.starts_with('#') {
                found += 1;
                let there = path.parent().expect("a folder").join(target).exists();
                assert!(there, "{} links to {target}, which is not there", path.display());
            }
        }
    }
    assert!(found > 10, "{found} links");
}
