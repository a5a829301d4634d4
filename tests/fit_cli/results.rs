//! What a fit writes is what it prints and what its network gives, also after stops of every kind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ndarray::{Array2, Array3};
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use sinexp::data::audio::{Encoding, Sound, write_wav};
use sinexp::data::grid::coordinates;
use sinexp::data::image::{Alpha, Picture};
use sinexp::data::resize::{fit_within, resize};
use sinexp::interop::safetensors;
use sinexp::nn::siren::Siren;

use super::{colors, command, fit, fitted, folder, names, recording, results, sticker, text, tones};

fn losses(out: &Path) -> (Vec<i64>, Vec<f32>) {
    let frame: DataFrame =
        ParquetReader::new(File::open(out.join("losses.parquet")).expect("losses")).finish().expect("Parquet");
    let steps = frame.column("step").expect("steps").i64().expect("whole numbers").into_no_null_iter().collect();
    (steps, frame.column("loss").expect("losses").f32().expect("numbers").into_no_null_iter().collect())
}

fn record(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(out.join("run.json")).expect("record")).expect("JSON")
}

/// `MSE` and `SNR` behind `train` and `eval` of the line that says them.
fn printed(stdout: &str) -> [f64; 4] {
    let line = stdout.lines().find(|l| l.starts_with("train MSE ")).expect("a line of errors");
    let words = line.split([' ', ',', ';']).filter_map(|word| word.parse::<f64>().ok());
    words.collect::<Vec<_>>().try_into().expect("four numbers")
}

/// The network of sines in a weights file, in f64 and without the library's graph: (points, channels).
fn network(out: &Path, points: &Array2<f64>) -> Array2<f64> {
    let file = safetensors::read(out.join("weights.safetensors")).expect("weights");
    let siren = Siren::from_weights(&file.tensors).expect("a whole network");
    let values: BTreeMap<&str, Vec<f64>> = file.tensors.iter().map(|(n, t)| (n.as_str(), t.to_f64_vec())).collect();
    let mut h = points.clone();
    for l in 0..siren.hidden + 2 {
        let (rows, columns) = (if l > siren.hidden { siren.outputs } else { siren.width }, siren.fan_in(l));
        let w = Array2::from_shape_vec((rows, columns), values[format!("W.{l}").as_str()].clone()).expect("W fits");
        h = h.dot(&w.t());
        if let Some(b) = values.get(format!("b.{l}").as_str()) {
            h += &ndarray::Array1::from(b.clone());
        }
        if l <= siren.hidden {
            let omega = values[if l == 0 { "omega0" } else { "omega_h" }][0];
            h.mapv_inplace(|z| (omega * z).sin());
        }
    }
    h
}

fn mse(prediction: &Array2<f64>, truth: &Array3<f64>) -> f64 {
    assert_eq!(prediction.len(), truth.len());
    prediction.iter().zip(truth).map(|(p, y)| (p - y).powi(2)).sum::<f64>() / truth.len() as f64
}

fn snr(mse: f64, truth: &Array3<f64>) -> f64 {
    10.0 * (truth.var(0.0) / mse).log10()
}

#[test]
fn a_picture_s_files_agree_with_what_is_printed() {
    let folder = folder();
    let (file, out) = (colors(folder.path()), folder.path().join("new/deep"));
    let stdout = fitted(&file, &out, &["--seed", "3"]);
    assert!(stdout.contains("colors.png: PNG, 8-bit RGB, 40 x 30; training samples: 192"), "{stdout}");
    let source = Picture::read(&file, Alpha::Refuse).expect("the same file").pixels;
    let [train_mse, train_snr, eval_mse, eval_snr] = printed(&stdout);
    for (size, said_mse, said_snr) in [(16, train_mse, train_snr), (24, eval_mse, eval_snr)] {
        let to = fit_within(30, 40, size);
        let truth = resize(source.view(), to);
        let values = network(&out, &coordinates(&[to.0, to.1], -1.0, 1.0));
        let found = mse(&values, &truth);
        assert!((found - said_mse).abs() < 2e-4 * found, "{size}: {found} but printed {said_mse}");
        assert!((snr(found, &truth) - said_snr).abs() < 0.01, "{size}: printed {said_snr} dB");
        if size == 24 {
            let pixels = Picture::read(&out.join("reconstruction.png"), Alpha::Refuse).expect("a PNG").pixels;
            assert_eq!(pixels.dim(), (18, 24, 3));
            let off = |(p, v): (&f64, &f64)| (255.0 * p - 255.0 * v.clamp(0.0, 1.0)).abs();
            let worst = pixels.iter().zip(&values).map(off).fold(0.0, f64::max);
            assert!(worst < 0.501, "a pixel is {worst} levels from the network's value");
        }
    }
    let (steps, losses) = losses(&out);
    assert_eq!(steps, (1..=20).collect::<Vec<i64>>());
    assert!(losses.iter().all(|l| l.is_finite()) && losses[19] < losses[0], "{losses:?}");
    assert!(train_mse < f64::from(losses[19]), "the last step lowered the error once more");
    let record = record(&out);
    let (run, result) = (&record["config"]["run"], &record["result"]);
    assert_eq!((&run["width"], &run["seed"], &result["steps"]), (&16.into(), &3.into(), &20.into()));
    assert!((result["eval_mse"].as_f64().expect("a number") - eval_mse).abs() < 1e-4 * eval_mse);
    assert_eq!((&result["stopped_at_step"], &run["init"]), (&serde_json::Value::Null, &"uniform-mm".into()));
    let listed: Vec<&str> = record["files"].as_array().expect("files").iter().filter_map(|f| f.as_str()).collect();
    assert!(listed.len() == 5 && listed.iter().all(|f| out.join(f).is_file()), "{listed:?}");
    let figure = image::open(out.join("comparison.png")).expect("a PNG");
    // One column of a page, and no higher than a page.
    assert!(figure.width() == 975 && (1000..2700).contains(&figure.height()), "{} high", figure.height());
    assert!(fs::read_to_string(out.join("comparison.svg")).expect("SVG").contains("uniform-phase MM"));
}

#[test]
fn a_folder_is_used_again() {
    let folder = folder();
    let (file, out) = (colors(folder.path()), folder.path().join("out"));
    let content = |name: &str| fs::read(out.join(name)).expect("file");
    let first = fitted(&file, &out, &[]);
    let before = ["weights.safetensors", "reconstruction.png", "losses.parquet", "comparison.png"].map(content);
    // Once more: it is finished, and not even its record is written again.
    let told = content("run.json");
    let again = fitted(&file, &out, &[]);
    assert!(again.contains("is finished") && again.contains("--restart"), "{again}");
    assert_eq!(content("run.json"), told);
    // From the start, it comes to the same.
    assert_eq!(fitted(&file, &out, &["--restart"]), first);
    assert_ne!(content("run.json"), told);
    assert_eq!(["weights.safetensors", "reconstruction.png", "losses.parquet", "comparison.png"].map(content), before);
    // Another fit takes the place of all of it: `fitted` sees no PNG left.
    let stdout = fitted(&recording(folder.path()), &out, &["--steps", "5", "--init", "sm20"]);
    assert!(stdout.contains("WAV, 24-bit, 2 channels averaged, 8000 Hz, 0.0500 s; training samples: 400"), "{stdout}");
    assert_eq!(record(&out)["config"]["run"]["omega0"], 30.0);
    assert_eq!(losses(&out).0.len(), 5);
    // A refused call changes nothing, and a result is never written over what it is made from.
    let before = content("weights.safetensors");
    let output = fit(&out.join("reconstruction.wav"), &out, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("reconstruction.wav: is what is to be fitted"), "{}", text(&output.stderr));
    assert_eq!((names(&out), content("weights.safetensors")), (results("wav"), before));
}

#[test]
fn a_sound_s_files_agree_with_what_is_printed() {
    let folder = folder();
    let (file, out) = (recording(folder.path()), folder.path().join("out"));
    let stdout = fitted(&file, &out, &["--steps", "60", "--learning-rate", "0.003"]);
    let sound = Sound::read(&file).expect("the same file");
    let peak = sound.samples.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let truth = Array3::from_shape_vec((400, 1, 1), sound.normalized().expect("not silent")).expect("fits");
    let values = network(&out, &coordinates(&[400], -100.0, 100.0));
    let [train_mse, _, eval_mse, eval_snr] = printed(&stdout);
    let found = mse(&values, &truth);
    assert!((found - train_mse).abs() < 1e-3 * found && train_mse == eval_mse, "{found} but printed {train_mse}");
    assert!((snr(found, &truth) - eval_snr).abs() < 0.02 && eval_snr > 0.0, "{eval_snr} dB");
    let written = Sound::read(out.join("reconstruction.wav")).expect("a WAV");
    assert_eq!((written.samples.len(), written.rate), (400, 8000));
    let worst = written.samples.iter().zip(&values).map(|(s, v)| (s - peak * v).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-4, "a sample is {worst} from the network's, at the recording's loudness {peak}");
    // Floats beyond 1 are not cut off.
    let loud = folder.path().join("loud.wav");
    write_wav(&loud, &tones().iter().map(|v| 40.0 * v).collect::<Vec<_>>(), 8000, Encoding::Float32).expect("written");
    fitted(&loud, &out, &["--steps", "60", "--learning-rate", "0.003"]);
    let written = Sound::read(out.join("reconstruction.wav")).expect("a WAV");
    assert!(written.samples.iter().any(|v| v.abs() > 3.0), "loudest {:?}", written.samples);
}

#[test]
fn training_that_diverges_keeps_the_weights_before() {
    let folder = folder();
    let out = folder.path().join("out");
    for (file, options, step) in [
        (colors(folder.path()), vec!["--learning-rate", "1e30"], 2),
        (recording(folder.path()), vec!["--learning-rate", "1e38"], 2),
        (recording(folder.path()), vec!["--omega0", "1e38", "--init", "sm20"], 1),
    ] {
        let output = fit(&file, &out, &[options.clone(), vec!["--checkpoint-every", "0"]].concat());
        let errors = text(&output.stderr);
        let lines: Vec<&str> = errors.lines().filter(|l| !l.starts_with("fit ")).collect();
        assert_eq!((output.status.code(), lines.len()), (Some(2), 1), "{errors}");
        let parts = [format!("no longer finite at step {step};"), format!("smaller {}", options[0])];
        assert!(parts.iter().all(|p| lines[0].contains(p)), "{}", lines[0]);
        let weights = safetensors::read(out.join("weights.safetensors")).expect("weights").tensors;
        assert!(weights.values().all(|t| t.to_f64_vec().iter().all(|v| v.is_finite())), "a weight is not finite");
        let (steps, losses) = losses(&out);
        assert_eq!((steps.len(), losses[step - 1].is_nan()), (step, true), "{losses:?}");
        assert!(losses[..step - 1].iter().all(|l| l.is_finite()), "{losses:?}");
        let result = &record(&out)["result"];
        assert_eq!((&result["stopped_at_step"], &result["steps"]), (&step.into(), &(step - 1).into()));
        // No checkpoint bars the way to a smaller learning rate.
        assert_eq!(names(&out), results(if file.extension().is_some_and(|e| e == "wav") { "wav" } else { "png" }));
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let folder = folder();
    let (file, out, straight) = (sticker(folder.path()), folder.path().join("out"), folder.path().join("straight"));
    let options = ["--steps", "1500", "--background", "white"];
    fitted(&file, &straight, &options);
    let checkpoint = out.join("checkpoint.safetensors");
    let mut first = command(&file, &out, &options);
    first.args(["--checkpoint-every", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = first.spawn().expect("starts");
    let started = Instant::now();
    while !checkpoint.exists() {
        assert!(child.try_wait().expect("runs").is_none() && started.elapsed().as_secs() < 120, "no checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    let whole = fs::read(&checkpoint).expect("a checkpoint");
    let kept = || names(&out).into_iter().filter(|n| !n.ends_with(".partial")).collect::<Vec<_>>();
    assert_eq!(kept(), ["checkpoint.safetensors"]);
    let refused = |file: &Path, options: &[&str], part: &str| {
        let output = fit(file, &out, options);
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains("checkpoint.safetensors") && errors.contains(part), "{errors}");
        assert_eq!(kept(), ["checkpoint.safetensors"]);
    };
    // Of other options, another file, another background, and one that is damaged.
    let another = "is a checkpoint of another training; move it away";
    refused(&file, &["--steps", "1501", "--background", "white"], another);
    refused(&file, &["--steps", "1500", "--background", "black"], another);
    refused(&colors(folder.path()), &["--steps", "1500"], another);
    fs::write(&checkpoint, &whole[..whole.len() / 2]).expect("written");
    refused(&file, &options, "");
    fs::write(&checkpoint, &whole).expect("written");

    // Ctrl-C: a checkpoint of the step it was at, long before the next one is due.
    let mut child =
        command(&file, &out, &options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(said.any(|line| line.expect("text").starts_with("going on from step ")));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("ends");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    let stopped = errors.lines().last().and_then(|l| l.strip_prefix("error: stopped after step ")).expect("a reason");
    let (stopped, advice) = stopped.split_once("; ").expect("what to do");
    assert_eq!(advice, "the same command goes on from there");
    assert_eq!(kept(), ["checkpoint.safetensors"]);
    assert!(fs::read(&checkpoint).expect("a checkpoint") != whole, "it has gone on");

    let output = fit(&file, &out, &options);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let line = stdout.lines().find(|l| l.starts_with("going on from step ")).expect("says where it goes on");
    let step: usize = line.split(' ').nth(4).and_then(|n| n.parse().ok()).expect("a step");
    assert!(step > 0 && step < 1500 && step.is_multiple_of(16), "{line}");
    assert_eq!(step.to_string(), stopped);
    for name in ["weights.safetensors", "reconstruction.png", "losses.parquet"] {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("file");
        assert!(read(&out) == read(&straight), "{name} differs from that of a run without a stop");
    }
    assert!(!checkpoint.exists());
}
