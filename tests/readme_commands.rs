//! What README, book, notebooks and documentation say, held to what there is. Commands are taken as a newcomer would paste
//! them: each names programs, options and scripts that exist, and the quick ones run. What needs a file of the reader's
//! own, or hours, is only parsed (`--help` behind it). Options, files and links in the text exist too.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::Value;

/// Lines that hold one of these run; they take seconds.
const QUICK: [&str; 4] =
    ["hlo -- list", "hlo -- export siren_forward --to", "hlo -- show /tmp/", "siren-table2 -- --preset smoke"];

/// What people read, by its file: the Markdown files, the notebooks' texts, and the comments that `cargo doc` prints.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    folders.extend(
        ["crates", "docs/src", "hlo", "notebooks", "src", "experiments", "examples"].map(|name| root.join(name)),
    );
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

/// README, CONTRIBUTING and the book. The changelog also names what is gone.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_book = |path: &Path| path.starts_with(root.join("docs"));
    let named = |path: &Path| path == root.join("README.md") || path == root.join("CONTRIBUTING.md");
    documents().into_iter().filter(|(path, _)| of_book(path) || named(path)).collect()
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
        } else if line.contains("cargo run --example") {
            continue; // see tests/examples.rs
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
    // Of examples, which other tests run, it only says whether they are there.
    let root = env!("CARGO_MANIFEST_DIR");
    let cargo = format!(
        "#!/bin/sh\n[ \"$1\" = run ] || exit 9\nshift\n\
         if [ \"$3\" = --example ]; then ls '{root}'/crates/\"$2\"/examples/\"$4\".rs && echo Usage: && exit; fi\n\
         if [ \"$1\" = --example ]; then ls '{root}'/*/\"$2\".rs '{root}'/crates/*/examples/\"$2\".rs | grep . && echo Usage: && exit; fi\n\
         [ \"$1\" = --bin ] || exit 9\n\
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
    let script = Regex::new(r"\b(python|benches)/[\w/]+\.(py|sh)").expect("a pattern");
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
                let file = target.split('#').next().unwrap_or(target);
                let there = path.parent().expect("a folder").join(file).exists();
                assert!(there, "{} links to {target}, which is not there", path.display());
            }
        }
    }
    assert!(found > 10, "{found} links");
}

/// What stands between backticks in the text of a page, and the lines of its shell blocks.
fn code(page: &str) -> Vec<String> {
    let (mut found, mut language) = (Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(name), None) => language = Some(name),
            (Some(_), Some(_)) => language = None,
            (None, Some("sh")) => found.push(line.to_owned()),
            (None, Some(_)) => {}
            (None, None) => found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned)),
        }
    }
    found
}

/// Every option that a program of ours has, or `./setup`.
fn options() -> BTreeSet<String> {
    let option = Regex::new(r"--[a-z][a-z0-9-]+").expect("a pattern");
    let help = |path: &Path, arguments: &[&str]| {
        let done = Command::new(path).args(arguments).arg("--help").output().expect("starts");
        assert!(done.status.success(), "{} {arguments:?}", path.display());
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Path::new(env!("CARGO_BIN_EXE_hlo")).parent().expect("a folder");
    let mut texts = vec![help(&root.join("setup"), &[])];
    for name in programs() {
        let text = help(&built.join(&name), &[]);
        let commands =
            text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
        let commands = commands.lines().filter_map(|line| line.split_whitespace().next());
        texts.extend(commands.filter(|c| *c != "help").map(|command| help(&built.join(&name), &[command])));
        texts.push(text);
    }
    texts.iter().flat_map(|text| option.find_iter(text)).map(|found| found.as_str().to_owned()).collect()
}

/// Names of the package's programs, as cargo finds them.
fn programs() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let declared = Regex::new(r#"\[\[bin\]\]\s+name = "([\w-]+)""#).expect("a pattern");
    let found = fs::read_dir(root.join("src/bin")).expect("a folder").map(|e| e.expect("an entry").path());
    let found = found.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    declared.captures_iter(&manifest).map(|c| c[1].to_owned()).chain(found).collect()
}

#[test]
fn every_option_and_program_is_there() {
    // Of cargo and jupyter, which the pages call as well.
    const OTHERS: [&str; 11] = [
        "--bin",
        "--lib",
        "--test",
        "--tests",
        "--example",
        "--doc",
        "--open",
        "--locked",
        "--version",
        "--root",
        "--no-default-features",
    ];
    let option = Regex::new(r"(?:^|\s)(--[a-z][a-z0-9-]+)").expect("a pattern");
    let program = Regex::new(r"^(?:siren|sel)-(?:table|fig)\d$|^(?:siren|sel)-(?:audio|mup|curves|shapes|weights)$")
        .expect("a pattern");
    let (known, programs) = (options(), programs());
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in pages() {
        for code in code(&text) {
            for found in option.captures_iter(&code).map(|c| c[1].to_owned()) {
                count += 1;
                if !known.contains(&found) && !OTHERS.contains(&found.as_str()) {
                    wrong.push(format!("{}: `{code}`: no program has {found}", path.display()));
                }
            }
            if program.is_match(&code) && !programs.contains(&code) {
                wrong.push(format!("{}: there is no program {code}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 150, "{count} options");
}

/// Files and folders of the repository that the pages name in code are there.
#[test]
fn every_file_named_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = Regex::new(
        r"(?:^|\s)((?:src|tests|docs|examples|experiments|crates|python|benches|hlo|notebooks|figures|\.ci)/[\w./-]+)",
    )
    .expect("a pattern");
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, text) in pages() {
        for code in code(&text).iter().filter(|code| !code.contains("--out ")) {
            for name in file.captures_iter(code).filter_map(|c| c.get(1)) {
                let name = name.as_str().trim_end_matches(['.', '/']);
                count += 1;
                if !root.join(name).exists() {
                    wrong.push(format!("{}: there is no {name}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 40, "{count} files");
}
