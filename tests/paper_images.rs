//! The bundled pictures through the whole way in (file, colour space, size, moments), against an independent program's
//! moments (tests/golden/paper_moments.safetensors, made with scikit-image 0.26.0) and against the digits that the paper
//! prints in Appendix E (2609.30633).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, ArrayD};
use sinexp::analysis::moments::{Moments, moments};
use sinexp::array::{Array, DType};
use sinexp::data::color::{lab_to_rgb, rgb_to_lab};
use sinexp::data::datasets::folder;
use sinexp::data::grid::{coordinates, spacing};
use sinexp::data::image::{Alpha, Picture};
use sinexp::data::resize::{fit_within, resize};
use sinexp::interop::safetensors;

/// Picture, file, colour space; then mu, Sigma and Omega row by row, as printed.
const PRINTED: [[&str; 6]; 10] = [
    ["brick", "brick.png", "gray", "0.437", "0.00672", "561 -4.2 -4.2 1870"],
    ["camera", "camera.png", "gray", "0.506", "0.0793", "87.0 10.9 10.9 115"],
    ["gravel", "gravel.png", "gray", "0.496", "0.0125", "1204 -48.6 -48.6 1120"],
    ["clock", "clock_motion.png", "gray", "0.574", "0.00664", "56.5 0.53 0.53 30.7"],
    [
        "hubble",
        "hubble_deep_field.png",
        "rgb",
        "0.073 0.078 0.075",
        "0.0068 0.0054 0.0056 0.0054 0.0047 0.0050 0.0056 0.0050 0.0054",
        "2323 -14.8 -14.8 3010",
    ],
    [
        "astronaut",
        "astronaut.png",
        "rgb",
        "0.555 0.415 0.378",
        "0.097 0.075 0.066 0.075 0.084 0.082 0.066 0.082 0.086",
        "551 -56.1 -56.1 804",
    ],
    [
        "coffee",
        "coffee.png",
        "rgb",
        "0.622 0.336 0.202",
        "0.057 0.046 0.032 0.046 0.052 0.042 0.032 0.042 0.038",
        "400 10.1 10.1 630",
    ],
    [
        "hubble",
        "hubble_deep_field.png",
        "lab",
        "6.47 -0.35 0.16",
        "64.4 12.3 -0.21 12.3 7.55 2.56 -0.21 2.56 5.50",
        "2328 -9.7 -9.7 3023",
    ],
    [
        "astronaut",
        "astronaut.png",
        "lab",
        "47.73 13.55 11.95",
        "843 -0.11 53.5 -0.11 302 235 53.5 235 317",
        "571 -54.0 -54.0 822",
    ],
    [
        "coffee",
        "coffee.png",
        "lab",
        "44.39 26.60 32.84",
        "495 -36.95 126.4 -36.95 189 145.3 126.4 145.3 203.3",
        "418 8.58 8.58 646",
    ],
];

fn picture(file: &str) -> Picture {
    let path = folder().join("images").join(file);
    assert!(path.is_file(), "{} is missing: run ./setup --data", path.display());
    Picture::read(&path, Alpha::Refuse).unwrap_or_else(|e| panic!("{e}"))
}

/// The picture's training field: its larger side 128 pixels, in the colour space asked for.
fn field(file: &str, space: &str) -> Array3<f64> {
    let picture = picture(file);
    let (h, w, channels) = picture.pixels.dim();
    assert_eq!(channels, if space == "gray" { 1 } else { 3 }, "{file}");
    let small = resize(picture.pixels.view(), fit_within(h, w, 128));
    if space == "lab" { rgb_to_lab(small.view()) } else { small }
}

fn measured(field: Array3<f64>) -> Moments {
    let (h, w, _) = field.dim();
    moments(field.into_dyn().view(), &spacing(&[h, w], -1.0, 1.0)).expect("moments")
}

fn parts(m: &Moments) -> [(&'static str, Vec<f64>); 3] {
    let all = |a: &Array2<f64>| a.iter().copied().collect::<Vec<f64>>();
    [("mu", m.mu.to_vec()), ("sigma", all(&m.sigma)), ("omega", all(&m.omega))]
}

fn golden(file: PathBuf) -> BTreeMap<String, Array> {
    safetensors::read(file).expect("a golden file").tensors
}

fn own(file: &str) -> BTreeMap<String, Array> {
    golden(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file))
}

/// The largest difference, relative to the largest entry.
fn difference(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(0f64, |m, w| m.max(w.abs()));
    got.iter().zip(want).fold(0f64, |m, (g, w)| m.max((g - w).abs())) / scale
}

#[test]
fn moments_as_an_independent_program_has_them() {
    let file = own("paper_moments.safetensors");
    for [name, picture, space, ..] in PRINTED {
        for (part, got) in parts(&measured(field(picture, space))) {
            let key = format!("{name}.{space}.{part}");
            let off = difference(&got, &file[&key].to_f64_vec());
            assert!(off <= 1e-12, "{key}: off by {off:e} of its largest entry");
        }
    }
}

/// Each number, rounded to as many digits as are printed, is the printed one.
#[test]
fn moments_as_printed_in_appendix_e() {
    for [name, picture, space, printed @ ..] in PRINTED {
        for ((part, got), printed) in parts(&measured(field(picture, space))).into_iter().zip(printed) {
            let printed: Vec<&str> = printed.split(' ').collect();
            assert_eq!(got.len(), printed.len(), "{part} of {name}");
            for (v, digits) in got.iter().zip(printed) {
                let places = digits.split_once('.').map_or(0, |(_, after)| after.len());
                let number = |text: &str| -> f64 { text.parse().expect("a number") };
                let rounded = number(&format!("{v:.places$}"));
                assert_eq!(rounded, number(digits), "{part} of {name} in {space}: {v}, printed {digits}");
            }
        }
    }
}

/// The crate reads users' JPEGs with a decoder of its own: a few levels of 255 from libjpeg-turbo's pixels at most.
#[test]
fn the_jpeg_decoder_is_close_to_libjpeg_turbo() {
    let (own, turbo) = (picture("hubble_deep_field.jpg").pixels, picture("hubble_deep_field.png").pixels);
    assert_eq!(own.dim(), turbo.dim());
    let off = own.iter().zip(&turbo).fold(0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(255.0 * off <= 3.0 + 1e-9, "off by {} of 255", 255.0 * off);
}

#[test]
fn training_fields_as_scikit_image_makes_them() {
    let compare = |file: &BTreeMap<String, Array>, name: &str, picture: &str, space: &str, tolerance: f64| {
        let want: ArrayD<f64> = file[name].cast(DType::F64).to_ndarray().expect("f64");
        let got = field(picture, space);
        assert_eq!(got.shape(), want.shape(), "{name}");
        let off = got.iter().zip(&want).fold(0f64, |m, (g, w)| m.max((g - w).abs()));
        assert!(off <= tolerance, "{name}: off by {off:e}");
    };
    let file = own("moments.safetensors");
    compare(&file, "clock.gray.train", "clock_motion.png", "gray", 1e-14);
    compare(&file, "coffee.rgb.train", "coffee.png", "rgb", 1e-14);
    compare(&file, "coffee.lab.train", "coffee.png", "lab", 1e-5); // stored in f32, values to 100
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden/moments.safetensors");
    if shared.is_file() {
        compare(&golden(shared), "camera.gray.train", "camera.png", "gray", 1e-14);
    }
}

#[test]
fn colours_come_back_from_cielab() {
    let rgb = field("coffee.png", "rgb");
    let back = lab_to_rgb(rgb_to_lab(rgb.view()).view());
    let off = rgb.iter().zip(&back).fold(0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(off <= 1e-12, "off by {off:e}");
}

#[test]
fn coordinates_as_an_independent_program_has_them() {
    let want = own("paper_moments.safetensors")["grid.4x3"].to_f64_vec();
    assert_eq!(coordinates(&[4, 3], -1.0, 1.0).into_iter().collect::<Vec<f64>>(), want);
}
