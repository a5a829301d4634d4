//! A thousand damaged program files of all five formats: each is refused in one line or still a program, soon. XLA ends
//! the process on some; the program `hlo` then says so.
//!
//! Starting a process for every file would take minutes: they are opened one after another in a child of this test, which
//! starts anew after a file that ended it. Those files, and some of the others, are then given to `hlo` itself.

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::check::Stream;
use common::cpu;
use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::interop::jax_export::{Options, Tree, export_graph};
use sinexp::interop::program::Foreign;
use sinexp::runtime::translate::{hlo_text_to_proto, proto_to_artifact, proto_to_stablehlo_text, stablehlo_version};

const MUTANTS: usize = 1000;
/// Longer than this is a hang. The slowest take seconds where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(60);
const FOLDER: &str = "SINEXP_DAMAGED_FOLDER";
const FIRST: &str = "SINEXP_DAMAGED_FIRST";

/// A matrix product, a sine, a sum, a cumulative sum, a gather, a sort and a constant: as text, bytes, and as JAX writes it.
fn originals() -> Vec<(&'static str, Vec<u8>)> {
    let w = Tensor::parameter("w", Shape::new(DType::F32, &[4, 3]));
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[2, 3]));
    let bias = Tensor::constant(Array::from_slice(&[4], &[0.5f32, -1.25, 3e-8, 7.0]));
    let h = (&x.matmul(&w.transpose(&[1, 0])) + &bias.broadcast_to(&[2, 4])).sin();
    let y = h.square().sum(&[1]);
    let results = [("y", y.clone()), ("h", h.clone())];
    let program = Program::new("original", &[w.clone(), x.clone()], &results).expect("a program");
    let proto = hlo_text_to_proto(&program.text).expect("a module");
    let stablehlo = proto_to_stablehlo_text(&proto).expect("StableHLO");
    let artifact = proto_to_artifact(&proto, &stablehlo_version().expect("a version")).expect("an artifact");
    let arguments = [Tree::dict([("w", Tree::Leaf(w))]), Tree::Leaf(x)];
    let exported = export_graph("original", &arguments, &Tree::tuple([y, h]), &Options::default());
    let exported = exported.and_then(|e| e.to_bytes()).expect("a file of jax.export");
    vec![
        ("hlo.txt", program.text.into_bytes()),
        ("pb", proto),
        ("mlir", stablehlo.into_bytes()),
        ("bc", artifact),
        ("jax_export", exported),
    ]
}

/// One to three of: a bit turned, bytes lost, doubled or zeroed, the end cut off, a number made huge.
fn damage(whole: &[u8], stream: &mut Stream) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let mut below = |n: usize| stream.uniform(0.0, n as f64) as usize;
    for _ in 0..1 + below(3) {
        let at = below(bytes.len().max(1));
        let end = (at + 1 + below(40)).min(bytes.len());
        match below(7) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << below(8),
            2 => bytes.truncate(at),
            3 if at < end => drop(bytes.drain(at..end)),
            4 if at < end => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 if at < end => bytes[at..end].fill(0),
            _ => {
                if let Some(digit) = bytes.iter().skip(at).position(u8::is_ascii_digit) {
                    let huge = ["99999", "4294967296", "9223372036854775807", "-1"][below(4)];
                    bytes.splice(at + digit..at + digit + 1, huge.bytes());
                }
            }
        }
    }
    bytes
}

fn mutants(folder: &Path) -> Vec<PathBuf> {
    let originals = originals();
    let mut stream = Stream::new(61);
    let write = |i: usize| {
        let (extension, whole) = &originals[i % originals.len()];
        let path = folder.join(format!("{i:04}.{extension}"));
        fs::write(&path, damage(whole, &mut stream)).expect("written");
        path
    };
    (0..MUTANTS).map(write).collect()
}

/// What the child does with one file: all that `hlo run` does.
fn open(path: &Path) -> sinexp::error::Result<()> {
    let foreign = Foreign::open(path)?.on("cpu")?;
    let program = foreign.program()?;
    let elements: usize = program.inputs.iter().map(|(_, s)| s.dims.iter().product::<usize>()).sum();
    let executable = cpu().compile(&program)?;
    if elements < 1 << 20 {
        let zeros: Vec<Array> = program.inputs.iter().map(|(_, s)| Array::full(s.dtype, &s.dims, 0.0)).collect();
        executable.call(&zeros.iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Not a test of its own: the child of the one below.
#[test]
#[ignore = "the child of a_thousand_damaged_programs"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let first: usize = std::env::var(FIRST).expect("a number").parse().expect("a number");
    let mut log = fs::OpenOptions::new().append(true).open(Path::new(&folder).join("log")).expect("the log");
    for path in files(Path::new(&folder)).into_iter().skip(first) {
        let outcome = match open(&path) {
            Ok(()) => "ok".to_owned(),
            Err(e) => format!("error {e}"),
        };
        // What is said on one line is one line.
        writeln!(log, "{}", outcome.replace('\n', "\\n")).expect("a line");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path());
    let digit = |p: &PathBuf| p.file_name().is_some_and(|n| n.as_encoded_bytes()[0].is_ascii_digit());
    let mut files: Vec<PathBuf> = entries.filter(digit).collect();
    files.sort();
    files
}

/// Starts the child at file `first` and waits for its end; whether it came to the end of the files. Panics where it hangs.
fn run_child(folder: &Path, first: usize) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .envs([(FOLDER, folder.as_os_str()), (FIRST, first.to_string().as_ref())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let mut seen = (lines(folder).len(), Instant::now());
    loop {
        if let Some(status) = child.try_wait().expect("a state") {
            return status.success();
        }
        let done = lines(folder).len();
        if done > seen.0 {
            seen = (done, Instant::now());
        }
        if seen.1.elapsed() > PATIENCE {
            child.kill().expect("killed");
            panic!("{} takes more than {PATIENCE:?}", files(folder)[done].display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lines(folder: &Path) -> Vec<String> {
    let log = fs::read_to_string(folder.join("log")).expect("the log");
    log.split_inclusive('\n').filter(|l| l.ends_with('\n')).map(|l| l.trim_end().to_owned()).collect()
}

#[test]
fn a_thousand_damaged_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let all = mutants(folder);
    fs::write(folder.join("log"), "").expect("a log");
    let mut aborted = Vec::new();
    while !run_child(folder, lines(folder).len()) {
        let at = lines(folder).len();
        assert!(at < all.len(), "the child failed after its last file");
        aborted.push(at);
        let mut log = fs::OpenOptions::new().append(true).open(folder.join("log")).expect("the log");
        writeln!(log, "aborted").expect("a line");
    }
    let outcomes = lines(folder);
    assert_eq!(outcomes.len(), all.len());
    let refused: Vec<usize> = (0..all.len()).filter(|i| outcomes[*i].starts_with("error ")).collect();
    for i in &refused {
        let message = &outcomes[*i];
        assert!(message.len() > 20 && message.len() < 4000, "{}: {message}", all[*i].display());
    }
    println!("{} refused, {} ended the child, of {}", refused.len(), aborted.len(), all.len());
    assert!(
        refused.len() > MUTANTS / 3 && refused.len() + aborted.len() < MUTANTS,
        "damage that neither shows nor not"
    );

    // The program itself: one line, no signal, nothing left behind.
    let chosen = aborted.iter().take(20).chain(refused.iter().step_by(refused.len() / 20)).copied();
    for i in chosen {
        let out = folder.join("out.safetensors");
        let hlo = Command::new(env!("CARGO_BIN_EXE_hlo")).arg("run").arg(&all[i]).arg("--out").arg(&out).output();
        let hlo = hlo.expect("hlo starts");
        let said = String::from_utf8_lossy(&hlo.stderr);
        let ours: Vec<&str> = said.lines().filter(|l| l.starts_with("error: ")).collect();
        assert!(matches!(hlo.status.code(), Some(1 | 2)), "{}: {:?}\n{said}", all[i].display(), hlo.status);
        assert!(ours.len() == 1 && ours[0].len() > 20, "{}:\n{said}", all[i].display());
        assert!(!out.exists(), "{}", all[i].display());
    }
}
