//! Learning rates, multipliers and AdamW against JAX and against their formulas.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use sinexp::array::{Array, DType};
use sinexp::graph::{Shape, Tensor};
use sinexp::optim::{AdamState, AdamW, Anneal, Decay, Schedule, clip_coefficient, global_norm};

use crate::common::check::close;
use crate::common::evaluate;
use crate::gpt::{Golden, TAGS, moments};
use crate::{golden, relative};

/// k(t) as a number and in a program.
#[test]
fn multipliers() {
    let file = golden("sel.safetensors");
    let steps = file["anneal.t"].to_f64_vec();
    for (name, k) in [("50_8", Anneal { start: 50.0, end: 8.0 }), ("0.01_0.5", Anneal { start: 0.01, end: 0.5 })] {
        let want = &file[&format!("anneal.{name}")];
        let numbers: Vec<f64> = steps.iter().map(|t| k.at(*t, 1000)).collect();
        relative(name, &Array::from_slice(want.dims(), &numbers), want, 1e-13);
        for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 1e-6)] {
            let t = Tensor::parameter("t", Shape::new(dtype, &[steps.len()]));
            let got = evaluate(&[t.clone()], &[k.tensor(&t, 1000)], &[file["anneal.t"].cast(dtype)]);
            relative(&format!("{name} {dtype}"), &got[0], want, tolerance);
        }
    }
    assert_eq!(Anneal::constant(0.25).at(3.0, 10), 0.25);
    assert_eq!("50:8".parse::<Anneal>().expect("valid"), Anneal { start: 50.0, end: 8.0 });
    assert_eq!("0.5".parse::<Anneal>().expect("valid"), Anneal::constant(0.5));
    for wrong in ["0:1", "-1", "1:nan", "1:inf", "a", "1:2:3", ""] {
        assert!(wrong.parse::<Anneal>().is_err(), "{wrong}");
    }
}

/// Warm-up t + 1 over its length, then the decay from the peak at its end to 0 at `total`; the tensor is the number.
#[test]
fn schedules() {
    let (peak, total) = (3e-4, 1000);
    for decay in [Decay::Constant, Decay::Linear, Decay::Cosine] {
        for warmup in [0, 1, 250] {
            let schedule = Schedule { peak, warmup, total, decay };
            let steps = [0, 1, 100, 248, 249, 250, 251, 625, 998, 999, 1000, 1500];
            let numbers: Vec<f64> = steps.iter().map(|&t| schedule.at(t)).collect();
            for (&t, &got) in steps.iter().zip(&numbers) {
                let part = t.saturating_sub(warmup).min(total - warmup) as f64 / (total - warmup) as f64;
                let want = match decay {
                    _ if t < warmup => peak * (t + 1) as f64 / warmup as f64,
                    Decay::Constant => peak,
                    Decay::Linear => peak * (1.0 - part),
                    Decay::Cosine => peak * (PI * part / 2.0).cos().powi(2),
                };
                assert!((got - want).abs() <= 1e-14 * peak, "{schedule:?} at {t}: {got}, expected {want}");
            }
            for (dtype, tolerance) in [(DType::F64, 1e-13), (DType::F32, 1e-6)] {
                let t = Tensor::parameter("t", Shape::new(dtype, &[steps.len()]));
                let values = Array::from_slice(&[steps.len()], &steps.map(|t| t as f64)).cast(dtype);
                let got = evaluate(&[t.clone()], &[schedule.tensor(&t)], &[values]);
                let want = Array::from_slice(&[steps.len()], &numbers);
                relative(&format!("{schedule:?} {dtype}"), &got[0], &want, tolerance);
            }
        }
    }
    let short = Schedule { peak, warmup: 10, total: 10, decay: Decay::Linear };
    assert_eq!((short.at(9), short.at(10), short.at(11)), (peak, peak, 0.0));
    assert!("cosin".parse::<Decay>().is_err());
}

/// Largest gradient norm 1: longer gradients are shortened to it, shorter ones stay.
#[test]
fn clipping() {
    let input = |name: &str, dims: &[usize]| Tensor::parameter(name, Shape::new(DType::F64, dims));
    let (a, b) = (input("a", &[2]), input("b", &[]));
    let norm = global_norm(&[a.clone(), b.clone()]);
    let results = [norm.clone(), clip_coefficient(&norm, 1.0)];
    for (values, norm, coefficient) in [([2.0, 3.0, 6.0], 7.0, 1.0 / (7.0 + 1e-6)), ([0.2, 0.3, 0.6], 0.7, 1.0)] {
        let values = [Array::from_slice(&[2], &values[..2]), Array::scalar(values[2])];
        let got = evaluate(&[a.clone(), b.clone()], &results, &values);
        close("norm", &got[0].to_f64_vec(), &[norm], 1e-15);
        close("coefficient", &got[1].to_f64_vec(), &[coefficient], 1e-15);
    }
}

/// One AdamW step in f64 from the stored gradients and the norm stored for all of them.
///
/// 2e-7: changes and gradients are stored as f32.
#[test]
fn adamw_steps() {
    for tag in TAGS.into_iter().filter(|tag| *tag != "baseline") {
        let golden = Golden::read(tag);
        let norm = golden.file["grad_norm"].to_f64_vec()[0];
        // Tensors of one group, one after another in one vector.
        let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (name, (k, decay)) in golden.groups() {
            if golden.file.contains_key(&format!("delta.{name}")) {
                groups.entry((k.start.to_bits(), k.end.to_bits(), decay)).or_default().push(name);
            }
        }
        assert_eq!(groups.values().map(Vec::len).sum::<usize>(), if tag == "mismatch" { 71 } else { 95 });
        for ((start, end, decay), names) in groups {
            let all = |prefix: &str| -> Vec<f64> {
                names.iter().flat_map(|name| golden.file[&format!("{prefix}.{name}")].to_f64_vec()).collect()
            };
            let (parameters, gradients, want) = (all("p"), all("grad"), all("delta"));
            let (first, second) = moments(&gradients);
            let dims = [parameters.len()];
            let [p, g, m, v] = ["p", "g", "m", "v"].map(|name| Tensor::parameter(name, Shape::new(DType::F64, &dims)));
            let gradient = &g * clip_coefficient(&Tensor::scalar(norm), 1.0);
            let k = Anneal { start: f64::from_bits(start), end: f64::from_bits(end) };
            let rate = Tensor::scalar(1e-3 * k.at(100.0, 1000));
            let state = AdamState { m: m.clone(), v: v.clone() };
            let (new, _) = AdamW::default().update(&p, &gradient, &state, &Tensor::scalar(10.0f64), &rate, decay);
            let values = [parameters, gradients, first, second].map(|values| Array::from_slice(&dims, &values));
            let delta = evaluate(&[p.clone(), g, m, v], &[new - &p], &values)[0].to_f64_vec();
            let mut at = 0;
            for name in names {
                let length = golden.file[&format!("delta.{name}")].len();
                let part = |values: &[f64]| Array::from_slice(&[length], &values[at..at + length]);
                relative(&format!("{tag} {name}"), &part(&delta), &part(&want), 2e-7);
                at += length;
            }
        }
    }
}
