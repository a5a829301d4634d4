//! The survey against plain f64 arithmetic on sorted copies, over all element types, sizes and edge cases.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::array::{Array, DType};
use crate::interop::safetensors::{Tensors, write};
use crate::random::Key;

fn wanted() -> Wanted {
    Wanted {
        percents: vec![0.0, 0.1, 25.0, 50.0, 99.0, 99.99, 100.0],
        thresholds: vec![0.01, 0.1, 1.0],
        tail: 0.001,
        stable_rank: 0,
        curve: vec![0.02, 0.3],
        fine_percents: vec![10.0, 99.9],
        bins: 11,
    }
}

fn place(tensors: BTreeMap<String, Array>) -> (TempDir, Shards) {
    let folder = tempdir().expect("temporary folder");
    let path: PathBuf = folder.path().join("a.safetensors");
    write(&path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
    let shards = Shards::open(&[path]).expect("opens");
    (folder, shards)
}

fn run(shards: &Shards, wanted: &Wanted) -> Survey {
    let rules = RoleRules::new(&[], []).expect("rules");
    survey(shards, &rules, wanted, |_, _| true, Role::is_linear, |_| ()).expect("statistics")
}

/// Cubed normals times a scale: heavy tails.
fn weights(seed: u64, dims: &[usize], scale: f64, dtype: DType) -> Array {
    let z = Key::new(seed).normal::<f64>(dims).mapv(|z| scale * z * z * z);
    Array::from_ndarray(&z).cast(dtype)
}

fn check(name: &str, summary: &Summary, values: &[f64], wanted: &Wanted) {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut magnitudes: Vec<f64> = sorted.iter().map(|v| v.abs()).collect();
    magnitudes.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    assert_eq!(summary.count as usize, sorted.len(), "{name}");
    assert_eq!(summary.not_finite as usize, values.len() - sorted.len(), "{name}");
    assert_eq!(summary.zeros as usize, sorted.iter().filter(|v| **v == 0.0).count(), "{name}");
    assert_eq!(summary.range, (sorted[0], sorted[sorted.len() - 1]), "{name}");
    let mean = sorted.iter().sum::<f64>() / n;
    let moment = |p: i32| sorted.iter().map(|v| (v - mean).powi(p)).sum::<f64>() / n;
    let close = |got: f64, want: f64, what: &str| {
        assert!((got - want).abs() <= 1e-11 * want.abs() + 1e-300, "{what} of {name}: {got:e} for {want:e}");
    };
    assert!((summary.central.mean - mean).abs() < 1e-11 * moment(2).sqrt().max(1e-300), "mean of {name}");
    close(summary.central.std(), moment(2).sqrt(), "std");
    if moment(2) > 0.0 {
        close(summary.central.kurtosis() + 3.0, moment(4) / moment(2).powi(2), "kurtosis");
    }
    for (i, percent) in wanted.percents.iter().enumerate() {
        for (got, sorted) in [(summary.percentiles[i], &sorted), (summary.magnitudes[i], &magnitudes)] {
            let at = (n - 1.0) * (percent / 100.0);
            let (a, b) = (sorted[at as usize], sorted[(at as usize + 1).min(sorted.len() - 1)]);
            let t = at - at.floor();
            let want = if t >= 0.5 { b - (b - a) * (1.0 - t) } else { a + (b - a) * t };
            assert_eq!(got, want, "{percent} % of {name}");
        }
    }
    for (got, x) in summary.above.iter().zip(&wanted.thresholds) {
        assert_eq!(*got as usize, magnitudes.iter().filter(|m| *m > x).count(), "above {x} in {name}");
    }
    let k = summary.hill.0 as usize;
    if let Some(hill) = summary.hill.1 {
        let (limit, top) = (magnitudes[magnitudes.len() - k - 1], &magnitudes[magnitudes.len() - k..]);
        close(hill, k as f64 / top.iter().map(|v| (v / limit).ln()).sum::<f64>(), "Hill's index");
    }
}

#[test]
fn every_element_type_small_and_large_and_their_pools() {
    let mut tensors = BTreeMap::new();
    for (i, dtype) in [DType::F32, DType::F64, DType::F16, DType::BF16].into_iter().enumerate() {
        // Large: beyond what is sorted, and over several chunks.
        let large = if dtype == DType::F32 { [1100, 1200] } else { [300, 400] };
        for (size, dims) in [("small", [30, 70]), ("large", large)] {
            let name = format!("layers.{i}.{size}.q_proj.weight");
            tensors.insert(name, weights(i as u64, &dims, 0.05, dtype));
        }
    }
    tensors.insert("layers.0.k_proj.weight".into(), weights(9, &[300, 400], 2.0, DType::F32));
    tensors.insert("layers.0.norm.weight".into(), weights(8, &[70_000], 1e-3, DType::F32));
    let (_folder, shards) = place(tensors.clone());
    let wanted = wanted();
    let found = run(&shards, &wanted);
    let of = |names: &dyn Fn(&str) -> bool| -> Vec<f64> {
        tensors.iter().filter(|(n, _)| names(n)).flat_map(|(_, a)| a.to_f64_vec()).collect()
    };
    assert_eq!(found.tensors.len(), tensors.len());
    for report in &found.tensors {
        check(&report.name, &report.summary, &of(&|n| n == report.name), &wanted);
        assert_eq!(report.summary.hill.1.is_some(), report.summary.count > 100, "{}", report.name);
    }
    let names: Vec<String> = found.roles.iter().map(|r| r.0.to_string()).collect();
    assert_eq!(names, ["q", "k", "norm"]);
    for (role, summary) in &found.roles {
        let part = format!("{role}_proj");
        check(&part, summary, &of(&|n| n.contains(&part) || n.contains(&format!(".{role}."))), &wanted);
    }
    let all = found.all.expect("matrices");
    let values = of(&|n| n.contains("_proj"));
    check("all", &all.summary, &values, &wanted);
    assert_eq!(all.summary.tensors, 9);
    for (got, x) in all.curve.iter().zip(&wanted.curve) {
        assert_eq!(*got as usize, values.iter().filter(|v| v.abs() > *x).count());
    }
    assert_eq!(all.edges.len(), 12);
    for (i, height) in all.heights.iter().enumerate() {
        let inside = |v: &&f64| **v >= all.edges[i] && (**v < all.edges[i + 1] || i == 10 && **v == all.edges[11]);
        assert_eq!(*height as usize, values.iter().filter(inside).count(), "bin {i}");
    }
    // The bound of each matrix is its own.
    let bound = |n: usize, m: usize| (6.0 / (n + m) as f64).sqrt();
    let above: usize = tensors
        .iter()
        .filter(|(n, _)| n.contains("_proj"))
        .map(|(_, a)| a.to_f64_vec().iter().filter(|v| v.abs() > bound(a.dims()[0], a.dims()[1])).count())
        .sum();
    assert_eq!(all.summary.above_xavier as usize, above);
    assert_eq!(all.summary.xavier.max(), bound(30, 70));
    assert!((all.summary.growth_max() - all.summary.max_abs() / bound(30, 70)).abs() < 1e-12);
}

#[test]
fn zeros_equal_numbers_denormals_and_what_is_not_finite() {
    let large = |value: f32| vec![value; 70_000];
    let mut holes = weights(1, &[70_000], 1.0, DType::F32).to_vec::<f32>().expect("f32");
    for i in 0..70_000 {
        match i % 100 {
            0..60 => holes[i] = if i % 2 == 0 { 0.0 } else { -0.0 },
            60 => holes[i] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][i % 3],
            61 => holes[i] = 1e-41 * (i as f32 - 35_000.0),
            62 => holes[i] = 1e-45,
            _ => {}
        }
    }
    let wide: Vec<f64> = (0..70_000).map(|i| f64::from(i - 300).exp2() * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let cases: [(&str, Vec<f32>); 5] = [
        ("zeros", large(0.0)),
        ("ones", large(1.0)),
        ("one", vec![-0.25]),
        ("holes", holes.clone()),
        ("few holes", vec![f32::NAN, 1.0, -2.0, f32::INFINITY]),
    ];
    let mut tensors: BTreeMap<String, Array> =
        cases.iter().map(|(n, v)| ((*n).to_owned(), Array::from_slice(&[v.len()], v))).collect();
    tensors.insert("halves".into(), Array::from_slice(&[70_000], &holes).cast(DType::BF16));
    let wide: Vec<f64> = wide.into_iter().map(|v| if v.abs() > 1e60 { 1e60 } else { v }).collect();
    tensors.insert("wide".into(), Array::from_slice(&[70_000], &wide));
    tensors.insert("integers".into(), Array::from_slice(&[2], &[1i64, 2]));
    tensors.insert("nothing".into(), Array::from_slice::<f32>(&[0, 3], &[]));
    let (_folder, shards) = place(tensors.clone());
    let wanted = wanted();
    let found = run(&shards, &wanted);
    let mut skipped = found.skipped.clone();
    skipped.sort();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(skipped, [pair("integers", "I64, no real numbers"), pair("nothing", "empty")]);
    assert!(found.all.is_none(), "no matrices");
    for report in &found.tensors {
        check(&report.name, &report.summary, &tensors[&report.name].to_f64_vec(), &wanted);
    }
    let hill = |name: &str| found.tensors.iter().find(|r| r.name == name).expect("there").summary.hill;
    assert_eq!(hill("zeros"), (70, None));
    assert_eq!(hill("ones"), (70, None));
    assert_eq!(hill("one"), (0, None));
    assert!(hill("holes").1.is_some());
}

#[test]
fn stable_ranks_are_those_of_the_singular_values() {
    let (n, m) = (40, 25);
    let tensors = BTreeMap::from([
        ("layers.0.q_proj.weight".to_owned(), weights(3, &[n, m], 1.0, DType::F32)),
        ("layers.1.q_proj.weight".to_owned(), Array::full(DType::F32, &[n, m], 0.5)),
        ("layers.2.q_proj.weight".to_owned(), Array::full(DType::F32, &[n, m], 0.0)),
        ("layers.3.q_proj.weight".to_owned(), weights(4, &[50, 50], 1.0, DType::F32)),
    ]);
    let (_folder, shards) = place(tensors.clone());
    let found = run(&shards, &Wanted { stable_rank: 1000, ..wanted() });
    let rank = |i: usize| found.tensors[i].summary.stable_rank;
    let w = tensors["layers.0.q_proj.weight"].to_f64_vec();
    let w = ndarray::Array2::from_shape_vec((n, m), w).expect("a matrix");
    let values = crate::analysis::svd::singular_values(w.view()).expect("values");
    let want = values.iter().map(|s| s * s).sum::<f64>() / values[0].powi(2);
    assert!((rank(0).expect("a rank") - want).abs() < 1e-9 * want);
    assert!((rank(1).expect("a rank") - 1.0).abs() < 1e-6, "equal entries are of rank one");
    assert_eq!((rank(2), rank(3)), (None, None), "zero, and too large");
    let median = found.roles[0].1.stable_rank.expect("of two");
    assert!((median - 0.5 * (want + 1.0)).abs() < 1e-6);
}
