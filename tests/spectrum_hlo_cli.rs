//! `spectrum --hlo` and `spectrum --weights` on files that JAX wrote: the singular values that JAX and NumPy find, and one clear
//! line for what cannot be differentiated. `python/fixtures/make_spectrum_hlo.py` writes tests/spectrum_hlo.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sinexp::interop::safetensors;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

fn spectrum(arguments: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spectrum"));
    command.args(arguments).arg("--out").arg(out);
    command.output().expect("spectrum starts")
}

/// Runs it and returns the singular values in the order of the file, and run.json's configuration.
fn values(arguments: &[&str]) -> (Vec<f64>, serde_json::Value) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let output = spectrum(&[arguments, &["--format", "csv"]].concat(), folder.path());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("spectra.csv")).expect("spectra");
    let number = |line: &str| line.rsplit(',').next().expect("value").parse::<f64>().expect("number");
    let record = std::fs::read(folder.path().join("run.json")).expect("record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    (text.lines().skip(1).map(number).collect(), record["config"].clone())
}

/// What JAX found.
fn golden(name: &str) -> Vec<f64> {
    let all = safetensors::read(file("spectrum_hlo/values.safetensors")).expect("values");
    all.tensors[name].to_f64_vec()
}

fn close(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let largest = want.iter().copied().fold(0.0, f64::max);
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= 1e-5 * largest, "{what}: value {i} is {g}, not {w}");
    }
}

#[test]
fn a_siren_of_jax_in_every_format() {
    let (x, params) = (file("spectrum_hlo/x.npz"), file("spectrum_hlo/flax.npz"));
    let want = golden("batched");
    for ending in ["hlo.txt", "hlo.pb", "mlir", "mlirbc", "jax_export"] {
        let program = file(&format!("spectrum_hlo/siren.{ending}"));
        // --wrt is found: the only argument that is not in --params.
        let (got, config) = values(&["--hlo", &program, "--input", &x, "--params", &params, "--batched"]);
        close(&got, &want, ending);
        assert_eq!((&config["rows"], &config["columns"], &config["samples"]), (&3.into(), &2.into(), &5.into()));
        assert_eq!((&config["wrt"], &config["mode"]), (&"x".into(), &"forward".into()), "{ending}");
    }
    // Without --batched one block-diagonal matrix, with the same values.
    let (mut got, config) = values(&["--hlo", &file("spectrum_hlo/siren.hlo.pb"), "--input", &x, "--params", &params]);
    assert_eq!((&config["rows"], &config["columns"]), (&15.into(), &10.into()));
    let mut sorted = want.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert!(got.windows(2).all(|w| w[0] >= w[1]));
    close(&got, &sorted, "one matrix");
    // By another argument: five samples of three results, each result's bias by one.
    let program = file("spectrum_hlo/siren.hlo.txt");
    let arguments = ["--hlo", &program, "--input", &x, "--params", &params, "--wrt", "params/Dense_4/bias"];
    let folder = tempfile::tempdir().expect("temporary folder");
    let bias = safetensors::Tensors {
        tensors: [("bias".to_owned(), sinexp::array::Array::from_slice(&[3], &[0.1f32, 0.2, 0.3]))].into(),
        metadata: Default::default(),
    };
    let path = folder.path().join("bias.safetensors");
    safetensors::write(&path, &bias).expect("written");
    let arguments = [&arguments[..2], &["--input", path.to_str().expect("UTF-8"), "--params", &x], &arguments[4..]];
    got = values(&arguments.concat()).0;
    close(&got, &[5f64.sqrt(); 3], "by the last bias");
}

#[test]
fn many_points_results_by_name_and_reverse_mode() {
    let (program, params) = (file("spectrum_hlo/recurrent.hlo.pb"), file("spectrum_hlo/recurrent.safetensors"));
    let input = file("spectrum_hlo/h.npz");
    for (result, name) in [("output.0", "state"), ("1", "energy")] {
        let arguments = ["--hlo", &program, "--input", &input, "--params", &params, "--output", result];
        let (got, config) = values(&arguments);
        close(&got, &golden(name), name);
        assert_eq!(config["points"], 3);
    }
    let (program, input) = (file("spectrum_hlo/loss.mlir"), file("spectrum_hlo/loss.npz"));
    let (got, config) = values(&["--hlo", &program, "--input", &input, "--wrt", "0"]);
    close(&got, &golden("loss"), "loss");
    assert_eq!((&config["mode"], &config["rows"], &config["columns"]), (&"reverse".into(), &1.into(), &16.into()));
    // An open loop has no reverse rule, and is pushed through.
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("loop.hlo.txt");
    std::fs::write(&path, LOOP).expect("written");
    let x = input_file(folder.path(), &[3], &[1.0, 2.0, 3.0]);
    let (got, config) = values(&["--hlo", path.to_str().expect("UTF-8"), "--input", &x]);
    close(&got, &[8.0 * 3f64.sqrt()], "doubled until beyond 30");
    assert_eq!(config["mode"], "forward");
}

#[test]
fn weights_of_equinox_and_flax() {
    let want = golden("hidden");
    let (got, config) = values(&["--weights", &file("spectrum_hlo/equinox.safetensors"), "--points", "4"]);
    close(&got, &want, "Equinox");
    assert_eq!(config["layout"], "(outputs, inputs)");
    let flax = file("spectrum_hlo/flax.npz");
    let omegas = ["--omega0", "5", "--omega-h", "1.5", "--points", "4"];
    let (got, config) = values(&[&["--weights", &flax], &omegas[..]].concat());
    close(&got, &want, "Flax");
    assert_eq!(
        (&config["layout"], &config["matrices"][0]),
        (&"(inputs, outputs)".into(), &"params/Dense_0/kernel".into())
    );
    let patterns = "params/Dense_{i}/kernel/params/Dense_{i}/bias";
    let (named, _) = values(&[&["--weights", &flax, "--names", patterns], &omegas[..]].concat());
    assert_eq!(named, got);
    refused(&[&["--weights", &flax, "--layout", "out-in"], &omegas[..]].concat(), &["Dense_0", "--layout"]);
}

/// Sum of x, doubled until it is beyond 30.
const LOOP: &str = "HloModule f
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
small { s = f32[] parameter(0) n = f32[] constant(30) ROOT p = pred[] compare(s, n), direction=LT }
double { s = f32[] parameter(0) ROOT t = f32[] add(s, s) }
ENTRY main {
  x = f32[3] parameter(0)
  zero = f32[] constant(0)
  sum = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  ROOT y = f32[] while(sum), condition=small, body=double
}
";

/// An input named x.
fn input_file(folder: &Path, dims: &[usize], numbers: &[f32]) -> String {
    let x = sinexp::array::Array::from_slice(dims, numbers);
    let path = folder.join("x.safetensors");
    let content = safetensors::Tensors { tensors: [("x".to_owned(), x)].into(), metadata: Default::default() };
    safetensors::write(&path, &content).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs it and expects one `error:` line that holds every one of `parts`, and exit code 2.
fn refused(arguments: &[&str], parts: &[&str]) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let output = spectrum(arguments, &folder.path().join("out"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    assert!(text.starts_with("error: "), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: `{text}` does not say `{part}`");
    }
    assert!(!folder.path().join("out/run.json").exists(), "{arguments:?} left a record behind");
}

/// A program of these instructions, as a file.
fn program(folder: &Path, instructions: &str) -> String {
    let path: PathBuf = folder.join("f.hlo.txt");
    std::fs::write(&path, format!("HloModule f\n\nENTRY main {{\n{instructions}\n}}\n")).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn what_has_no_spectrum_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = |instructions: &str| program(folder.path(), &format!("  x = f32[3] parameter(0)\n  {instructions}"));
    let x = input_file(folder.path(), &[3], &[1.0, 0.0, -1.0]);
    let check = |program: &str, more: &[&str], parts: &[&str]| {
        refused(&[&["--hlo", program, "--input", &x], more].concat(), parts);
    };
    let svd = file("hlo_import/svd.hlo.txt");
    check(&svd, &[], &["svd.hlo.txt", "custom-call", "lapack_sgesdd_ffi"]);
    check(&file("hlo_import/fft.hlo.txt"), &[], &["fft `fft", "no complex numbers"]);
    check(&root("ROOT y = s32[3] convert(x)"), &[], &["--output", "no floating-point result", "int32[3]"]);
    check(&root("ROOT y = s32[3] convert(x)"), &["--output", "0"], &["`output`", "int32[3]", "only floating-point"]);
    let sine = root("ROOT y = f32[3] sine(x)");
    check(&sine, &["--output", "z"], &["--output = z", "`output` float32[3]"]);
    check(&sine, &["--wrt", "1"], &["--wrt = 1", "`x` float32[3]"]);
    check(&root("ROOT y = f32[3] sqrt(x)"), &[], &["point 0", "Jacobian", "entry (1, 0) is NaN"]);
    let two = root("w = f32[2] parameter(1)\n  ROOT y = (f32[3], f32[2]) tuple(x, w)");
    check(&two, &["--output", "0"], &["`w`", "float32[2]", "--params"]);
    check(&two, &[], &["--output", "`output.0` float32[3], `output.1` float32[2]"]);
    let mixing = "zero = f32[] constant(0)\n  y = f32[3] reverse(x), dimensions={0}\n  ROOT z = f32[3] multiply(x, y)";
    check(&root(mixing), &["--batched"], &["--batched: sample", "depends on other samples"]);
    check(&root("ROOT y = f32[1] slice(x), slice={[0:1]}"), &["--batched"], &["axis 0 is not the 3 samples"]);
    for (dims, numbers, parts) in [
        (&[4][..], &[1.0f32; 4][..], &["`x`", "float32[4] given", "float32[3]"][..]),
        (&[2, 3, 1], &[1.0; 6], &["float32[2,3,1] given"]),
        (&[0, 3], &[], &["there is no point"]),
        (&[3], &[1.0, f32::NAN, 0.0], &["`x`: NaN at position 1"]),
        (&[2, 3], &[1.0, 1.0, 1.0, 1.0, f32::INFINITY, 1.0], &["`x`: inf in point 1"]),
    ] {
        input_file(folder.path(), dims, numbers);
        check(&sine, &[], parts);
    }
    refused(&["--hlo", &sine], &["--input"]);
    refused(&["--input", &x], &["--hlo"]);
    refused(&["--hlo", &sine, "--input", &x, "--depths", "4"], &["--depths"]);
    refused(&["--hlo", &sine, "--input", "none.npz"], &["none.npz"]);
    refused(&["--hlo", &sine, "--input", &sine], &["f.hlo.txt", ".safetensors or .npz"]);
    refused(&["--hlo", "none.hlo.txt", "--input", &x], &["none.hlo.txt"]);
}

/// JAX asks for a column-major result wherever a function ends in a transposition; numbers come out as they are meant.
#[test]
fn programs_that_end_in_a_transposition_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let x = input_file(folder.path(), &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let turned = "  x = f32[2,3]{1,0} parameter(0)\n  ROOT y = f32[3,2]{0,1} transpose(x), dimensions={1,0}";
    let program = program(folder.path(), turned);
    let out = folder.path().join("y.safetensors");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hlo"));
    let output = command.args(["run", &program, "--inputs", &x, "--out"]).arg(&out).output().expect("hlo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let y = &safetensors::read(&out).expect("result").tensors["output.0"];
    assert_eq!((y.dims(), y.to_f64_vec()), (&[3, 2][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    close(&values(&["--hlo", &program, "--input", &x]).0, &[1.0; 6], "a permutation");
}

/// Whatever XLA does with the rest of a program, one line comes.
#[test]
fn damaged_programs_end_in_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let x = input_file(folder.path(), &[5, 2], &[0.5; 10]);
    for ending in ["hlo.txt", "hlo.pb", "mlirbc", "jax_export"] {
        let whole = std::fs::read(file(&format!("spectrum_hlo/siren.{ending}"))).expect("program");
        let path = folder.path().join(format!("cut.{ending}"));
        for keep in [0, 1, whole.len() / 3, whole.len() - 20] {
            std::fs::write(&path, &whole[..keep]).expect("written");
            refused(&["--hlo", path.to_str().expect("UTF-8"), "--input", &x], &[]);
        }
    }
}
