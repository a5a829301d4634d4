//! Jacobians by `jvp` and `vmap` against JAX's and against the product formula; spectra of the paper's protocol.

use std::collections::BTreeMap;

use ndarray::{Array2, Axis, Ix2, Ix3};
use sinexp::analysis::jacobian::HiddenJacobian;
use sinexp::analysis::svd::batched_singular_values;
use sinexp::array::{Array, DType};
use sinexp::nn::siren::Siren;

use crate::common::cpu;
use crate::golden;

const INITS: [(&str, f64); 4] = [("uniform_mm", 1.0), ("cvp26_s0", 30.0), ("cvp26_s1", 30.0), ("sm20", 30.0)];

fn weights(file: &BTreeMap<String, Array>, init: &str, omega0: f64) -> BTreeMap<String, Array> {
    let prefix = format!("{init}.p.");
    let mut all: BTreeMap<String, Array> =
        file.iter().filter_map(|(n, a)| Some((n.strip_prefix(&prefix)?.to_string(), a.clone()))).collect();
    all.insert("omega0".into(), Array::scalar(omega0));
    all
}

/// J = prod_l diag(cos z_l) W_l, multiplied out by hand in f64.
fn product(w: &BTreeMap<String, Array>, x: f64, omega0: f64, depth: usize) -> Array2<f64> {
    let matrix = |name: String| w[&name].cast(DType::F64).to_ndarray::<f64>().expect("f64");
    let mut h = vec![x];
    let mut j = Array2::eye(w["b.0"].len());
    for l in 0..=depth {
        let (m, b) =
            (matrix(format!("W.{l}")).into_dimensionality::<Ix2>().expect("a matrix"), matrix(format!("b.{l}")));
        let omega = if l == 0 { omega0 } else { 1.0 };
        let z: Vec<f64> =
            (0..b.len()).map(|i| omega * (m.row(i).iter().zip(&h).map(|(w, h)| w * h).sum::<f64>() + b[[i]])).collect();
        h = z.iter().map(|z| z.sin()).collect();
        if l >= 2 {
            let scaled = Array2::from_shape_fn(m.raw_dim(), |(r, c)| z[r].cos() * m[[r, c]]);
            j = scaled.dot(&j);
        }
    }
    j
}

#[test]
fn small_networks_exactly() {
    let file = golden("spectrum.safetensors");
    let x = &file["x"];
    let jacobian = HiddenJacobian::new(cpu(), &Siren::new(1, 32, 4, 1), 3).expect("compiles");
    for (init, omega0) in INITS {
        let w = weights(&file, init, omega0);
        let j = jacobian.run(&w, x).expect("Jacobians");
        let want =
            file[&format!("{init}.J")].to_ndarray::<f64>().expect("f64").into_dimensionality::<Ix3>().expect("3-d");
        for (p, &point) in x.to_f64_vec().iter().enumerate() {
            let by_hand = product(&w, point, omega0, 4);
            for ((i, k), &v) in by_hand.indexed_iter() {
                assert!((j[[p, i, k]] - v).abs() < 1e-13, "{init}: J[{p}, {i}, {k}] = {} by hand {v}", j[[p, i, k]]);
                assert!((j[[p, i, k]] - want[[p, i, k]]).abs() < 1e-12, "{init}: against JAX");
            }
        }
        let sv = batched_singular_values(&j).expect("singular values");
        for (g, w) in sv.iter().zip(file[&format!("{init}.sv")].to_f64_vec()) {
            assert!((g - w).abs() < 1e-13 * sv[[0, 0]].max(1.0), "{init}: {g} for {w}");
        }
    }
}

/// The stored averages are over other draws than ours, so they are compared as averages of spectra are: the root mean
/// square over ranks, which concentrates, and the largest value, within 15 %.
#[test]
fn the_papers_protocol_agrees_with_jaxs_averages() {
    use sinexp::nn::cvp26::Cvp26;
    use sinexp::nn::siren_init::Initialization;
    use sinexp::random::Key;
    let file = golden("spectrum.safetensors");
    let (points, networks, depth) = (10, 5, 8);
    let jacobian = HiddenJacobian::new(cpu(), &Siren::new(1, 256, depth, 1), points).expect("compiles");
    for (stored, sigma_a) in [("cvp26_s0", 0.0), ("cvp26_s1", 1.0)] {
        let init =
            Initialization::Cvp26 { family: Cvp26::stable(sigma_a).expect("a member"), omega0: 30.0, omega_h: 1.0 };
        let siren = init.siren(1, 256, depth, 1);
        let mut mean = vec![0.0; 256];
        for key in Key::new(9).split(networks) {
            let keys = key.split(2);
            let x = keys[0].uniform::<f64>(&[points, 1], -std::f64::consts::PI, std::f64::consts::PI);
            let w = init.draw(&siren, keys[1]).expect("a network");
            let sv = batched_singular_values(&jacobian.run(&w, &Array::from_ndarray(&x)).expect("Jacobians"))
                .expect("values");
            for row in sv.axis_iter(Axis(0)) {
                row.iter().zip(&mut mean).for_each(|(v, m)| *m += v / (points * networks) as f64);
            }
        }
        let want = file[&format!("avg.{stored}.L{depth}")].to_f64_vec();
        let rms = |v: &[f64]| (v.iter().map(|x| x * x).sum::<f64>() / v.len() as f64).sqrt();
        let ratios = [rms(&mean) / rms(&want), mean[0] / want[0]];
        assert!(ratios.iter().all(|r| (r - 1.0).abs() < 0.15), "{stored}: {ratios:?}");
    }
}
