//! The README's commands as a newcomer would paste them: each names programs and options that there are, and the quick ones
//! run. What needs a file of the reader's own, or hours, is only parsed (`--help` behind it).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Lines that hold one of these run; they take seconds.
const QUICK: [&str; 4] =
    ["hlo -- list", "hlo -- export siren_forward", "hlo -- show", "siren-table2 -- --preset smoke"];

/// Lines of the README's shell blocks and commands in its text that start a program of ours.
fn commands(readme: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut shell = false;
    for line in readme.lines() {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let folder = tempfile::tempdir().expect("a folder");
    stand_ins(folder.path());
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a PATH"));
    let all = commands(&readme);
    assert!(all.len() > 25, "{all:#?}");
    for quick in QUICK {
        assert!(all.iter().any(|line| line.contains(quick)), "the README has no `{quick}` any more");
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

/// Files that the README names are there.
#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let targets: Vec<&str> = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|t| t.trim_matches(['<', '>']))
        .collect();
    assert!(targets.len() > 10);
    for target in targets.iter().filter(|t| !t.contains("://") && !t.starts_with('#')) {
        assert!(root.join(target).exists(), "README.md links to {target}, which is not there");
    }
}
