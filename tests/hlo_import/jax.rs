//! JAX's functions: forward, reverse and forward mode against JAX.

use std::collections::BTreeMap;

use sinexp::array::Array;
use sinexp::graph::{Imported, Shape, Tensor};
use sinexp::interop::safetensors;
use sinexp::transform::{jvp, vjp, vmap};

use super::common::{check::close, evaluate};
use super::{file, text};

const CASES: [&str; 29] = [
    "activations",
    "argmax_take",
    "attention",
    "bfloat16",
    "cond",
    "conv_gradient",
    "conv_grouped",
    "conv_nhwc",
    "cross_entropy",
    "cumlogsumexp",
    "cumulative",
    "dropout",
    "einsum",
    "fori_update",
    "layer_norm",
    "logic",
    "max_pool",
    "mlp_equinox",
    "mlp_trained",
    "rnn_scan",
    "scan_remat",
    "scan_reverse",
    "scatters",
    "siren_flax_style",
    "sort_argsort",
    "sort_special",
    "switch",
    "top_k",
    "while_newton",
];

/// The arrays of one case, by name.
struct Values(BTreeMap<String, Array>);

impl Values {
    fn of(case: &str) -> Values {
        let all = safetensors::read(file("values.safetensors")).expect("the values");
        let own = |(k, v): (String, Array)| k.strip_prefix(&format!("{case}/")).map(|k| (k.to_string(), v));
        Values(all.tensors.into_iter().filter_map(own).collect())
    }

    /// `kind.0`, `kind.1` ... with their numbers.
    fn list(&self, kind: &str) -> Vec<(usize, Array)> {
        let numbered =
            |(k, v): (&String, &Array)| Some((k.strip_prefix(&format!("{kind}."))?.parse().ok()?, v.clone()));
        let mut all: Vec<(usize, Array)> = self.0.iter().filter_map(numbered).collect();
        all.sort_by_key(|(i, _)| *i);
        all
    }
}

fn tolerance(case: &str) -> f64 {
    // One unit in the last place of bf16 is 4e-3; both sides round at different places.
    if case == "bfloat16" { 1e-2 } else { 1e-5 }
}

fn compare(case: &str, what: &str, got: &[Array], want: &[(usize, Array)]) {
    assert_eq!(got.len(), want.len(), "{case}: {what}");
    for (got, (i, want)) in got.iter().zip(want) {
        assert_eq!((got.dtype(), got.dims()), (want.dtype(), want.dims()), "{case}: {what} {i}");
        let what = format!("{case}: {what} {i}");
        let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
        // Relative to the largest entry.
        let scale = want.iter().fold(0.0f64, |m, w| if w.is_finite() { m.max(w.abs()) } else { m });
        let worst = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).filter(|e| e.is_finite()).fold(0.0, f64::max);
        println!("{what}: {:.1e}", if scale > 0.0 { worst / scale } else { worst });
        close(&what, &got, &want, tolerance(case) * if scale > 0.0 { scale.min(1.0) } else { 1.0 });
    }
}

fn inputs_like(values: &[(usize, Array)]) -> Vec<Tensor> {
    values.iter().map(|(i, a)| Tensor::parameter(&format!("given{i}"), Shape::new(a.dtype(), a.dims()))).collect()
}

fn arrays(values: &[(usize, Array)]) -> Vec<Array> {
    values.iter().map(|(_, a)| a.clone()).collect()
}

fn check(case: &str, text: &str) {
    let f = Imported::from_hlo_text(text).unwrap_or_else(|e| panic!("{case}: {e}"));
    let values = Values::of(case);
    let given = arrays(&values.list("in"));
    let outputs: Vec<Tensor> = f.outputs.iter().map(|(_, t)| t.clone()).collect();
    compare(case, "output", &evaluate(&f.inputs, &outputs, &given), &values.list("out"));

    let (tangents, pushed) = (values.list("tangent"), values.list("jvp"));
    if !tangents.is_empty() {
        let wrt: Vec<Tensor> = tangents.iter().map(|(i, _)| f.inputs[*i].clone()).collect();
        let floats: Vec<Tensor> = pushed.iter().map(|(i, _)| outputs[*i].clone()).collect();
        let directions = inputs_like(&tangents);
        let moved = jvp(&floats, &wrt, &directions).unwrap_or_else(|e| panic!("{case}: {e}"));
        let got = evaluate(&[&f.inputs[..], &directions].concat(), &moved, &[&given[..], &arrays(&tangents)].concat());
        compare(case, "jvp of output", &got, &pushed);
    }
    let (cotangents, pulled) = (values.list("cotangent"), values.list("vjp"));
    if !cotangents.is_empty() {
        let wrt: Vec<Tensor> = pulled.iter().map(|(i, _)| f.inputs[*i].clone()).collect();
        let floats: Vec<Tensor> = cotangents.iter().map(|(i, _)| outputs[*i].clone()).collect();
        let flowing = inputs_like(&cotangents);
        let gradients = vjp(&floats, &flowing, &wrt).unwrap_or_else(|e| panic!("{case}: {e}"));
        let filled: Vec<Tensor> =
            gradients.iter().zip(&wrt).map(|(g, x)| g.clone().unwrap_or(x.zeros_like())).collect();
        let got = evaluate(&[&f.inputs[..], &flowing].concat(), &filled, &[&given[..], &arrays(&cotangents)].concat());
        compare(case, "vjp by input", &got, &pulled);
    }
}

/// One test for each, so that a failure does not hide the others.
macro_rules! cases {
    ($($case:ident)*) => {
        $(#[test] fn $case() { check(stringify!($case), &text(concat!(stringify!($case), ".hlo.txt"))); })*

        #[test]
        fn all_cases_are_tested() {
            assert_eq!([$(stringify!($case)),*], CASES);
        }
    };
}

cases! {
    activations argmax_take attention bfloat16 cond conv_gradient conv_grouped conv_nhwc cross_entropy cumlogsumexp
    cumulative dropout einsum fori_update layer_norm logic max_pool mlp_equinox mlp_trained rnn_scan scan_remat
    scan_reverse scatters siren_flax_style sort_argsort sort_special switch top_k while_newton
}

/// What XLA's CPU compiler makes of some of them: fusions, bitcasts, tables of source places.
#[test]
fn texts_after_optimisation() {
    for entry in std::fs::read_dir(file("optimised")).expect("texts") {
        let path = entry.expect("a text").path();
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name").to_string();
        check(name.trim_end_matches(".hlo.txt"), &std::fs::read_to_string(&path).expect("a text"));
    }
}

/// `vmap` of an imported function is the function of each example.
#[test]
fn batches_of_an_imported_function() {
    let f = Imported::from_hlo_text(&text("rnn_scan.hlo.txt")).expect("a graph");
    let values = arrays(&Values::of("rnn_scan").list("in"));
    let many: Vec<Array> = [1.0f32, -0.5, 2.0]
        .iter()
        .map(|s| {
            Array::from_slice(&[4], &values[0].to_vec::<f32>().expect("f32").iter().map(|v| v * s).collect::<Vec<_>>())
        })
        .collect();
    let stacked =
        Array::from_slice(&[3, 4], &many.iter().flat_map(|a| a.to_vec::<f32>().expect("f32")).collect::<Vec<_>>());
    let batched = Tensor::parameter("h", Shape::new(stacked.dtype(), stacked.dims()));
    let rest = &f.inputs[1..];
    let y = vmap(&[batched.clone()], &[Some(0)], |h| {
        let pairs = [(f.inputs[0].clone(), h[0].clone())];
        Ok(sinexp::transform::substitute(&[f.outputs[1].1.clone()], &pairs))
    })
    .expect("a batch");
    let inputs = [&[batched], rest].concat();
    let got = evaluate(&inputs, &y, &[&[stacked], &values[1..]].concat())[0].to_f64_vec();
    for (k, h) in many.iter().enumerate() {
        let alone = evaluate(&f.inputs, &[f.outputs[1].1.clone()], &[&[h.clone()], &values[1..]].concat());
        let want = alone[0].to_f64_vec();
        close("vmap", &got[k * want.len()..(k + 1) * want.len()], &want, 1e-6);
    }
}

/// A lowered `lax.scan` is a scan again: the gradient's own text has two loops, not one for each row.
#[test]
fn scans_are_recognised() {
    let f = Imported::from_hlo_text(&text("rnn_scan.hlo.txt")).expect("a graph");
    let nodes = sinexp::graph::topological(&f.outputs.iter().map(|(_, t)| t.clone()).collect::<Vec<_>>());
    let scan = nodes.iter().find_map(|n| match &n.op {
        sinexp::graph::Op::Scan { consts, carry, length, body, .. } => {
            Some((*consts, *carry, *length, body.outputs.len()))
        }
        _ => None,
    });
    // Two weights, one state, seven steps; the state and one row come out.
    assert_eq!(scan, Some((2, 1, 7, 2)));
}
