//! The `fit` program from outside, with the files that people have: each works or gets one clear line, results agree
//! with what is printed, and nothing of an earlier fit is taken for this one's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use image::{DynamicImage, ImageFormat, RgbImage, RgbaImage};
use ndarray::{Array2, Array3};
use polars::prelude::{DataFrame, ParquetReader, SerReader};
use sinexp::data::audio::{Encoding, Sound, write_wav};
use sinexp::data::grid::coordinates;
use sinexp::data::image::{Alpha, Picture};
use sinexp::data::resize::{fit_within, resize};
use sinexp::interop::safetensors;
use sinexp::nn::siren::Siren;
use tempfile::TempDir;

const SMALL: [&str; 10] =
    ["--width", "16", "--hidden", "2", "--steps", "20", "--train-size", "16", "--eval-size", "24"];

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

fn command(file: &Path, out: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fit"));
    // Options given twice are a mistake, so the small ones give way.
    let small = SMALL.chunks(2).filter(|pair| !options.contains(&pair[0])).flatten();
    command.arg(file).arg("--out").arg(out).args(small).args(options);
    command
}

fn fit(file: &Path, out: &Path, options: &[&str]) -> Output {
    command(file, out, options).output().expect("fit starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, expects success, and gives what it printed.
fn fitted(file: &Path, out: &Path, options: &[&str]) -> String {
    let output = fit(file, out, options);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}: {errors}", file.display());
    assert!(errors.lines().all(|l| l.starts_with("fit ")), "only progress: {errors}");
    assert_eq!(names(out), results(if out.join("reconstruction.wav").exists() { "wav" } else { "png" }));
    text(&output.stdout)
}

/// Expects one `error:` line that holds every one of `parts`, exit code 2, nothing printed and no output folder.
fn refused(file: &Path, options: &[&str], parts: &[&str]) {
    let folder = folder();
    let out = folder.path().join("out");
    let output = fit(file, &out, options);
    let errors = text(&output.stderr);
    let asked = format!("{} {options:?}: {errors}", file.display());
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{asked}");
    assert!(errors.starts_with("error: ") && errors.len() < 320, "{asked}");
    for part in parts {
        assert!(errors.contains(part), "{asked} does not say `{part}`");
    }
    assert!(output.stdout.is_empty() && !out.exists(), "{asked}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut all: Vec<String> = entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

fn results(kind: &str) -> Vec<String> {
    let reconstruction = format!("reconstruction.{kind}");
    ["comparison.png", "comparison.svg", "losses.parquet", &reconstruction, "run.json", "weights.safetensors"]
        .map(str::to_owned)
        .to_vec()
}

fn color_at(x: u32, y: u32) -> [u8; 3] {
    let (x, y) = (f64::from(x), f64::from(y));
    [(x / 7.0).sin(), (y / 5.0).cos(), ((x + y) / 9.0).sin()].map(|v| (127.0 + 100.0 * v) as u8)
}

/// A picture of 40 x 30 pixels as a PNG.
fn picture(folder: &Path, name: &str, pixel: impl Fn(u32, u32) -> [u8; 3]) -> PathBuf {
    let path = folder.join(name);
    RgbImage::from_fn(40, 30, |x, y| image::Rgb(pixel(x, y))).save_with_format(&path, ImageFormat::Png).expect("saved");
    path
}

fn colors(folder: &Path) -> PathBuf {
    picture(folder, "colors.png", color_at)
}

/// Transparent on the left.
fn sticker(folder: &Path) -> PathBuf {
    let path = folder.join("sticker.png");
    let pixel = |x, y| {
        let [r, g, b] = color_at(x, y);
        image::Rgba([r, g, b, if x < 15 { 40 } else { 255 }])
    };
    RgbaImage::from_fn(40, 30, pixel).save(&path).expect("saved");
    path
}

/// 0.05 s of two decaying tones.
fn tones() -> Vec<f64> {
    (0..400).map(|i| f64::from(i) / 8000.0).map(|t| 0.3 * (1400.0 * t).sin() * (-9.0 * t).exp()).collect()
}

/// As a recorder writes it: stereo, 24 bits.
fn recording(folder: &Path) -> PathBuf {
    let path = folder.join("recording.wav");
    let spec =
        hound::WavSpec { channels: 2, sample_rate: 8000, bits_per_sample: 24, sample_format: hound::SampleFormat::Int };
    let mut writer = hound::WavWriter::create(&path, spec).expect("created");
    for v in tones() {
        for gain in [0.5, 1.0] {
            writer.write_sample((gain * v * 8_388_607.0) as i32).expect("written");
        }
    }
    writer.finalize().expect("complete");
    path
}

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
    assert_eq!(fitted(&file, &out, &[]), first);
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

/// A segment behind a JPEG's first marker that says: the stored left edge is the top.
fn turned(jpeg: &[u8]) -> Vec<u8> {
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0];
    let tiff = [b"MM\0\x2A\0\0\0\x08\0\x01".as_slice(), &entry, &[0; 4]].concat();
    let body = [b"Exif\0\0".as_slice(), &tiff].concat();
    [&jpeg[..2], &[0xFF, 0xE1], &(body.len() as u16 + 2).to_be_bytes(), &body, &jpeg[2..]].concat()
}

#[test]
fn pictures_that_people_have_work() {
    let folder = folder();
    let (at, out) = (|name: &str| folder.path().join(name), folder.path().join("out"));
    let size = |out: &Path| {
        let read = Picture::read(&out.join("reconstruction.png"), Alpha::Refuse).expect("a PNG");
        read.pixels.dim()
    };
    let works = |file: &Path, options: &[&str], about: &str, shape: (usize, usize, usize)| {
        let stdout = fitted(file, &out, options);
        assert!(stdout.contains(about), "`{stdout}` does not say `{about}`");
        assert_eq!(size(&out), shape, "{}", file.display());
    };
    let mut phone = std::io::Cursor::new(Vec::new());
    let photo = RgbImage::from_fn(1200, 900, |x, y| image::Rgb(color_at(x / 30, y / 30)));
    photo.write_to(&mut phone, ImageFormat::Jpeg).expect("encoded");
    fs::write(at("IMG_0001.JPG"), turned(phone.get_ref())).expect("written");
    let about =
        "JPEG, 8-bit RGB, 1200 x 900; turned by 90 degrees clockwise, as its EXIF orientation says: now 900 x 1200";
    works(&at("IMG_0001.JPG"), &[], about, (24, 18, 3));
    let deep = image::ImageBuffer::from_fn(40, 30, |x, y| image::Luma([(x * 1500 + y * 11) as u16]));
    DynamicImage::ImageLuma16(deep).save(at("scan.png")).expect("saved");
    works(&at("scan.png"), &[], "PNG, 16-bit gray, 40 x 30", (18, 24, 1));
    let print = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/cmyk.jpg");
    works(&print, &[], "CMYK turned into RGB without a colour profile", (6, 24, 3));
    works(&sticker(folder.path()), &["--background", "20,30,255"], "composited over", (18, 24, 3));
    // Gray, but stored in colour.
    let gray = picture(folder.path(), "gray.png", |x, y| [color_at(x, y)[0]; 3]);
    works(&gray, &[], "every pixel is gray: fitted as one channel", (18, 24, 1));
    works(&gray, &["--color", "lab", "--init", "sm20"], "PNG, 8-bit RGB", (18, 24, 3));
    for color in ["rgb", "lab"] {
        let parts = ["field `gray`", "channels 0 and 1 are the same", "choose --color gray or", "sm20"];
        refused(&gray, &["--color", color], &parts);
    }
    // Nothing to match in these.
    let constant = picture(folder.path(), "constant.png", |_, _| [90, 120, 30]);
    refused(&constant, &[], &["field `constant`", "channel 0 is constant", "sm20"]);
    works(&constant, &["--init", "sm20"], "PNG, 8-bit RGB", (18, 24, 3));
    RgbImage::from_pixel(1, 1, image::Rgb([9, 200, 30])).save(at("dot.png")).expect("saved");
    refused(&at("dot.png"), &["--train-size", "0"], &["field `dot`", "1 sample along dimension 0", "sm20"]);
    works(&at("dot.png"), &["--init", "sm20", "--train-size", "0", "--eval-size", "0"], "1 x 1", (1, 1, 3));
}

#[test]
fn files_that_cannot_be_fitted_get_one_line() {
    let folder = folder();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let whole = fs::read(recording(folder.path())).expect("a WAV");
    refused(&at("cut.wav", &whole[..whole.len() - 1200]), &[], &["cut.wav", "cut off: 200 of 400 samples"]);
    refused(&at("song.wav", b"ID3\x04\0\0\0\0\0\0TIT2"), &[], &["song.wav", "looks like MP3", "ffmpeg"]);
    refused(&at("song", b"ID3\x04\0\0\0\0\0\0TIT2"), &[], &["looks like MP3"]);
    refused(&at("memo.m4a", b"\0\0\0\x1CftypM4A \0\0\0\0"), &[], &["memo.m4a", "MP4", "ffmpeg"]);
    refused(&at("IMG.HEIC", b"\0\0\0\x18ftypheic\0\0\0\0"), &[], &["IMG.HEIC", "HEIC", "convert it to JPEG or PNG"]);
    refused(&at("a.gif", b"GIF89a\x01\0\x01\0\0\0\0;"), &[], &["a.gif", "is a GIF file; convert it to PNG"]);
    let png = fs::read(colors(folder.path())).expect("a PNG");
    refused(&at("cut.png", &png[..png.len() / 2]), &[], &["cut.png", "cut off"]);
    for name in ["empty.png", "empty.wav", "empty"] {
        refused(&at(name, b""), &[], &[name, "is empty"]);
    }
    for name in ["notes.txt", "notes.png", "notes"] {
        refused(&at(name, b"some notes\n"), &[], &[name, "neither a picture (PNG, JPEG) nor a sound (WAV)"]);
    }
    refused(&at("notes.wav", b"some notes\n"), &[], &["notes.wav", "is not a WAV file"]);
    refused(folder.path(), &[], &["is a folder; give a picture (PNG, JPEG) or a sound (WAV)"]);
    refused(&folder.path().join("none.png"), &[], &["none.png", "no such file"]);
    let silence = folder.path().join("silence.wav");
    write_wav(&silence, &[0.0; 50], 8000, Encoding::Int16).expect("written");
    refused(&silence, &[], &["silence.wav", "all 50 samples are zero"]);
    refused(&sticker(folder.path()), &[], &["sticker.png", "transparent in 450 of 1200 pixels", "--background white"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    let (file, sound) = (colors(folder.path()), recording(folder.path()));
    let check = |options: &[&str], parts: &[&str]| refused(&file, options, parts);
    check(&["--width", "1"], &["--width", "1"]);
    check(&["--hidden", "0"], &["--hidden", "0"]);
    check(&["--steps", "0"], &["--steps", "0"]);
    check(&["--steps", "nan"], &["--steps", "nan"]);
    check(&["--seed", "-1"], &["--seed"]);
    check(&["--init", "siren"], &["--init", "siren", "uniform-mm"]);
    check(&["--color", "cmyk"], &["--color", "cmyk", "lab"]);
    check(&["--background", "red"], &["--background", "R,G,B from 0 to 255"]);
    check(&["--background", "0,0,256"], &["--background", "0 to 255"]);
    for value in ["nan", "inf", "-1", "0", "1e39", "1e-60"] {
        check(&["--learning-rate", value], &["--learning-rate", "give a positive number"]);
    }
    for option in ["--omega0", "--omega-h", "--sigma"] {
        for value in ["nan", "-1"] {
            check(&[option, value], &[option, "give a positive number"]);
        }
    }
    check(&["--checkpoint-every", "nan"], &["--checkpoint-every = NaN", "0 or more seconds"]);
    check(&["--checkpoint-every", "-1"], &["--checkpoint-every = -1"]);
    check(&["--device", "gpu9"], &["gpu9", "cpu"]);
    check(&["--train-size", "1"], &["1 sample along dimension 0", "sm20"]);
    check(&["--widht", "3"], &["--widht", "--width"]);
    refused(&sound, &["--color", "rgb"], &["--color = rgb", "recording.wav is a sound"]);
    refused(&sound, &["--background", "0,51,255"], &["--background = 0,51,255", "recording.wav is a sound"]);
}

#[test]
fn places_that_cannot_be_written_are_refused() {
    let folder = folder();
    let (file, blocked) = (colors(folder.path()), folder.path().join("file"));
    fs::write(&blocked, "in the way").expect("written");
    let mut places = vec![blocked.clone(), blocked.join("below")];
    if cfg!(target_os = "linux") {
        places.push("/proc/fit".into()); // nobody can make a folder there
    }
    for out in places {
        let output = fit(&file, &out, &[]);
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains("--out") && output.stdout.is_empty(), "{errors}");
    }
    assert_eq!(fs::read(&blocked).expect("untouched"), b"in the way");
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
    let output = fit(&file, &out, &options);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let line = stdout.lines().find(|l| l.starts_with("going on from step ")).expect("says where it goes on");
    let step: usize = line.split(' ').nth(4).and_then(|n| n.parse().ok()).expect("a step");
    assert!(step > 0 && step < 1500 && step.is_multiple_of(16), "{line}");
    for name in ["weights.safetensors", "reconstruction.png", "losses.parquet"] {
        let read = |folder: &Path| fs::read(folder.join(name)).expect("file");
        assert!(read(&out) == read(&straight), "{name} differs from that of a run without a stop");
    }
    assert!(!checkpoint.exists());
}
