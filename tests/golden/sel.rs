//! The SEL transform, its gradients and its start against JAX, for every mode, pattern and parameterisation.

use std::collections::BTreeMap;

use ndarray::ArrayD;
use serde_json::{Map, Value};
use sinexp::array::{Array, DType};
use sinexp::graph::{Shape, Tensor};
use sinexp::interop::safetensors;
use sinexp::nn::parameterization::{Leaf, Parameterization};
use sinexp::nn::sel::{Mode, Offset, Pattern, Residual, Scale, Sel, newton};
use sinexp::nn::siren::Params;
use sinexp::optim::Anneal;
use sinexp::random::Key;
use sinexp::transform::grad;

use crate::common::check::close;
use crate::common::evaluate;
use crate::{golden, golden_json, path, relative};

/// The stored choices of a case, `changed` over the file's default.
fn sel(changed: &Map<String, Value>) -> Sel {
    let metadata = safetensors::read(path("sel.safetensors")).expect("a golden file").metadata;
    let mut all: Map<String, Value> = serde_json::from_str(&metadata["default"]).expect("JSON");
    all.extend(changed.clone());
    let number = |name: &str| all[name].as_f64().expect("a number");
    let flag = |name: &str| all[name].as_bool().unwrap_or(number_is_one(&all[name]));
    let scale = |letter: &str| -> Option<Scale> {
        let pattern = match all[&format!("pat_{letter}")].as_str()? {
            "lora" => Pattern::Lora(all["scale_rank"].as_u64().expect("a rank") as usize),
            name => name.parse().expect("a pattern"),
        };
        let k: Vec<f64> = serde_json::from_value(all[&format!("k_{letter}")].clone()).expect("two numbers");
        Some(Scale { pattern, multiplier: Anneal { start: k[0], end: k[1] }, decay: matches!(letter, "e" | "l") })
    };
    let offset = |letter: &str| Some(Offset { scale: scale(letter)?, initial: number(&format!("{letter}0")) });
    let mode = match all["mode"].as_str().expect("a name") {
        // Theirs has no linear pathway.
        "sinh" => Mode::SinhOnly,
        name => name.parse().expect("a mode"),
    };
    let rank = all["delta_rank"].as_u64().expect("a rank") as usize;
    Sel {
        mode,
        beta: number("beta"),
        beta_as_mult: flag("beta_as_mult"),
        normalize_by_inner_mult: flag("normalize"),
        absorb_beta: flag("absorbed"),
        exp_scale: scale("e").expect("a pattern"),
        linear_scale: scale("l").expect("a pattern"),
        inner: scale("m").expect("a pattern"),
        shift: offset("s"),
        offset: offset("n"),
        residual: (rank > 0).then(|| Residual { rank, multiplier: number("k_delta") }),
        positive_at_zero: flag("sign0"),
    }
}

fn number_is_one(value: &Value) -> bool {
    value.as_u64() == Some(1)
}

/// One graph input per leaf.
pub fn inputs(leaves: &[Leaf], dtype: DType) -> Params {
    leaves.iter().map(|l| (l.name.clone(), Tensor::parameter(&l.name, Shape::new(dtype, &l.dims)))).collect()
}

/// Scalars are stored with shape `[1]`.
fn stored(file: &BTreeMap<String, Array>, name: &str, leaf: &Leaf, dtype: DType) -> Array {
    let value = file.get(name).unwrap_or_else(|| panic!("{name} is not stored"));
    assert_eq!(value.len(), leaf.dims.iter().product::<usize>(), "{name}");
    Array::from_bytes(value.dtype(), &leaf.dims, value.bytes()).expect("a value").cast(dtype)
}

/// Weight, its slope by w, and the gradient of sum(G weight) by every leaf.
#[test]
fn every_stored_case() {
    let file = golden("sel.safetensors");
    let cases = golden_json("sel_cases.json");
    let cases = cases.as_array().expect("a list");
    assert_eq!(cases.len(), 35);
    for (dtype, tolerance, grad_tolerance) in [(DType::F64, 1e-12, 1e-11), (DType::F32, 1e-6, 1e-5)] {
        // One program for all cases: it compiles faster than one for each.
        let (mut tensors, mut values, mut results, mut expected) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for case in cases {
            let tag = case["tag"].as_str().expect("a tag");
            let dims: Vec<usize> = serde_json::from_value(case["shape"].clone()).expect("dimensions");
            let sel = sel(case["non_default"].as_object().expect("choices"));
            let leaves = sel.leaves(&dims);
            let params = inputs(&leaves, dtype);
            let ours: Vec<Tensor> = leaves.iter().map(|l| params[&l.name].clone()).collect();
            let cotangent = file[&format!("{tag}.G")].cast(dtype);
            let weight = sel.effective(&dims, &params);
            assert_eq!((weight.dims(), weight.dtype()), (&dims[..], dtype), "{tag}");
            let slope = grad(&weight.sum_all(), &ours[..1]).expect("a slope");
            let by_leaf = grad(&(&weight * Tensor::constant(cotangent)).sum_all(), &ours).expect("gradients");
            results.extend([vec![weight], slope, by_leaf].concat());
            values.extend(leaves.iter().map(|l| stored(&file, &format!("{tag}.p.{}", l.name), l, dtype)));
            tensors.extend(ours);
            expected.extend([(tag, "out".to_owned(), tolerance), (tag, "dw".to_owned(), grad_tolerance)]);
            expected.extend(leaves.iter().map(|l| (tag, format!("grad.{}", l.name), grad_tolerance)));
            nothing_is_left_out(&file, tag, &leaves);
        }
        let got = evaluate(&tensors, &results, &values);
        for ((tag, what, tolerance), got) in expected.into_iter().zip(&got) {
            let mut want = file[&format!("{tag}.f64.{what}")].clone();
            if tag == "mode.sinh.sign0" && (what == "dw" || what == "grad.w") {
                want = smooth_at_zero(&file, tag, &what, want);
            }
            relative(&format!("{tag} {dtype} {what}"), got, &want, tolerance);
        }
    }
}

/// The stored sinh is sgn(w) sinh(|z|), whose slope at the first weight, 0, is 0 with sgn(0) = 0. Ours is sinh(z), with
/// slope e_w beta m there.
fn smooth_at_zero(file: &BTreeMap<String, Array>, tag: &str, what: &str, stored: Array) -> Array {
    let first = |name: &str| file[&format!("{tag}.{name}")].to_f64_vec()[0];
    let mut values = stored.to_f64_vec();
    assert_eq!((first("p.w"), values[0]), (0.0, 0.0));
    let slope: f64 = ["e.r", "e.c", "m.r", "m.c"].map(|leaf| first(&format!("p.{leaf}"))).iter().product();
    values[0] = 7.5 * slope * if what == "grad.w" { first("G") } else { 1.0 };
    Array::from_slice(stored.dims(), &values)
}

/// A stored leaf that ours does not have has no effect.
fn nothing_is_left_out(file: &BTreeMap<String, Array>, tag: &str, leaves: &[Leaf]) {
    let prefix = format!("{tag}.f64.grad.");
    for (name, gradient) in file.iter().filter_map(|(name, a)| Some((name.strip_prefix(&prefix)?, a))) {
        let ours = leaves.iter().any(|l| l.name == name);
        assert!(ours || gradient.to_f64_vec().iter().all(|g| *g == 0.0), "{tag}: there is no leaf {name}");
    }
}

fn host(values: &Array) -> ArrayD<f64> {
    values.cast(DType::F64).to_ndarray().expect("f64")
}

/// The leaves at the start, and the weight they make: under the congruent rule the target itself, for all eight ways
/// to parameterise; the stored trees for the five that are stored with the same start.
#[test]
fn starts() {
    let file = golden("sel.safetensors");
    let target = &file["init.target"];
    let mut compared = 0;
    for (mult, absorb, normalize) in (0..8).map(|i| (i & 1, i >> 1 & 1, i >> 2)) {
        let tag = format!("init.mult{mult}.abs{absorb}.norm{normalize}");
        let choices = serde_json::json!({
            "beta_as_mult": mult == 1, "absorbed": absorb == 1, "normalize": normalize == 1, "pat_n": "col"
        });
        let sel = sel(choices.as_object().expect("choices"));
        let dims = target.dims();
        let leaves = sel.leaves(dims);
        let start = sel.initial(&host(target), Key::new(1)).expect("a start");
        assert_eq!(start.keys().collect::<Vec<_>>(), sorted(&leaves), "{tag}");
        let value = |l: &Leaf| Array::from_ndarray(&start[&l.name]).cast(DType::F32);
        let values: Vec<Array> = leaves.iter().map(value).collect();
        let params = inputs(&leaves, DType::F32);
        let tensors: Vec<Tensor> = leaves.iter().map(|l| params[&l.name].clone()).collect();
        let congruent = sel.clone().with_mode(Mode::Congruent);
        let got = evaluate(&tensors, &[sel.effective(dims, &params), congruent.effective(dims, &params)], &values);
        relative(&format!("{tag} congruent"), &got[1], target, 1e-6);
        if !file.contains_key(&format!("{tag}.w")) {
            continue;
        }
        compared += 1;
        for (leaf, got) in leaves.iter().zip(&values) {
            let want = stored(&file, &format!("{tag}.{}", leaf.name), leaf, DType::F32);
            relative(&format!("{tag} {}", leaf.name), got, &want, 1e-6);
        }
        relative(&tag, &got[0], &file[&format!("{tag}.out")], 1e-6);
        relative(&tag, &got[1], &file[&format!("{tag}.out_congruent")], 1e-6);
    }
    assert_eq!(compared, 5);
}

fn sorted(leaves: &[Leaf]) -> Vec<&String> {
    let mut names: Vec<&String> = leaves.iter().map(|l| &l.name).collect();
    names.sort();
    names
}

/// The tenth Newton iteration.
#[test]
fn newton_iterations() {
    let file = golden("sel.safetensors");
    let mut compared = 0;
    for name in file.keys().filter_map(|name| name.strip_suffix(".target")) {
        let Some(rest) = name.strip_prefix("newton.b") else { continue };
        let beta: f64 = rest.split_once(".d").expect("beta and width").0.parse().expect("beta");
        let got = newton(&host(&file[&format!("{name}.target")]), beta).expect("solved");
        let iterations = file[&format!("{name}.iters")].to_f64_vec();
        let last = &iterations[iterations.len() - got.len()..];
        let scale = last.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let shrink = |values: &[f64]| values.iter().map(|x| x / scale).collect::<Vec<_>>();
        close(name, &shrink(got.as_slice().expect("row-major")), &shrink(last), 1e-13);
        compared += 1;
    }
    assert_eq!(compared, 5);
}
