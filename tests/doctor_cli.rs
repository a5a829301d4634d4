//! `doctor` from outside: what it says, its exit codes, and that loading XLA prints nothing of its own.

use std::process::{Command, Output};

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_doctor")).args(arguments).output().expect("doctor starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_cpu_and_lapack_work_and_nothing_else_is_printed() {
    let output = doctor(&["--device", "cpu"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert_eq!(text(&output.stderr), "");
    for start in ["sinexp 0.", "crates: xla 0.", "XLA from /", "lapack: works", "cpu: works. 1 x cpu"] {
        assert!(out.lines().any(|l| l.starts_with(start)), "`{start}` is not in\n{out}");
    }
}

#[test]
fn standard_error_is_back_when_main_starts() {
    let output = doctor(&["--nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.starts_with("error: unexpected argument '--nonsense'") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_closed_standard_error_is_no_trouble() {
    let command = format!("exec {} --version 2>&-", env!("CARGO_BIN_EXE_doctor"));
    let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("doctor 0."));
}

#[test]
fn what_does_not_load_is_told_in_the_loaders_words() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let not_a_library = folder.path().join("plugin.so");
    std::fs::write(&not_a_library, "not a library, but longer than any ELF header is, so that the loader reads on")
        .expect("written");
    let not_a_library = format!("plugin:{}", not_a_library.display());
    let cases = [
        (not_a_library.as_str(), "invalid ELF header"),
        ("plugin:/nowhere/plugin.so", "No such file or directory"),
        ("plugin:libm.so.6", "No such file or directory"),
    ];
    for (device, reason) in cases {
        let output = doctor(&["--device", device, "--device", "cpu"]);
        let out = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{out}");
        let line = out.lines().find(|l| l.starts_with(&format!("{device}: FAILED"))).expect("a line for the device");
        assert!(line.contains(reason), "{line}");
        assert!(out.lines().any(|l| l.starts_with("cpu: works")), "the others are tried too:\n{out}");
        assert_eq!(text(&output.stderr), format!("error: does not work: {device}\n"));
    }
}

/// Neither silence nor minutes: libtpu alone would ask the cloud's metadata server for five.
#[test]
fn a_machine_without_the_device_says_so_at_once() {
    for device in ["cuda", "tpu"] {
        let start = std::time::Instant::now();
        let output = doctor(&["--device", device]);
        let out = text(&output.stdout);
        let works = format!("{device}: works");
        if out.lines().any(|l| l.starts_with(&works)) {
            continue;
        }
        assert!(start.elapsed().as_secs() < 60, "{device} took {:?}", start.elapsed());
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(1), format!("error: does not work: {device}\n"))
        );
        let said: Vec<&str> = out.lines().filter(|l| l.starts_with(&format!("{device}: FAILED: device"))).collect();
        assert!(said.len() == 1 && said[0].len() > 40, "{out}");
    }
}

#[test]
fn an_unknown_device_is_a_mistake_of_the_callers() {
    let output = doctor(&["--device", "gpu"]);
    assert_eq!(output.status.code(), Some(2));
    let err = text(&output.stderr);
    assert!(err.starts_with("error: device = gpu: expected cpu, cuda, tpu or plugin:"), "{err}");
}

#[test]
fn a_library_that_prints_while_it_is_loaded_is_heard_only_when_asked() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (source, library) = (folder.path().join("loud.cc"), folder.path().join("loud.so"));
    let code =
        "#include <unistd.h>\n[[gnu::constructor]] static void loud() { (void)!write(2, \"here I am\\n\", 10); }\n";
    std::fs::write(&source, code).expect("written");
    let status = Command::new("c++").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(status.expect("the compiler that setup asks for").success());
    let device = format!("plugin:{}", library.display());
    let quiet = text(&doctor(&["--device", &device]).stderr);
    assert_eq!(quiet, format!("error: does not work: {device}\n"));
    let verbose = text(&doctor(&["--device", &device, "-v"]).stderr);
    assert!(verbose.contains("here I am\n") && verbose.ends_with(&quiet), "{verbose}");
}
