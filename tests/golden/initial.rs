//! The stored networks, which another program drew, follow our laws; ours have their names and shapes.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use ndarray_linalg::Inverse;
use sinexp::array::Array;
use sinexp::nn::cvp26::Cvp26;
use sinexp::nn::init::Law;
use sinexp::nn::siren_init::{Initialization, Moments};
use sinexp::random::Key;

use crate::golden;

/// Standard errors a mean square may be off: 5 would fail once in a million times.
const ERRORS: f64 = 5.0;

#[test]
fn stored_networks_follow_our_laws() {
    let file = golden("siren.safetensors");
    let (omega0, omega_h) = (64.0 * PI / 6f64.sqrt(), 1.0);
    let cvp26 = |family| Initialization::Cvp26 { family, omega0, omega_h };
    for (stored, outputs, init) in [
        ("uniform_mm_lab", 3, Initialization::UniformPhase(coffee_lab())),
        ("cvp26_s0", 1, cvp26(Cvp26::SIGMA_A_0)),
        ("cvp26_s1", 1, cvp26(Cvp26::SIGMA_A_1)),
        ("sm20", 1, Initialization::Sm20 { omega0, omega_h }),
        ("tanh_pe", 1, Initialization::TanhPe { sigma: 32.0 }),
        ("relu", 1, Initialization::Relu),
        ("silu", 1, Initialization::Silu),
        ("gelu", 1, Initialization::Gelu { approximate: true }),
    ] {
        let siren = init.siren(2, 16, 3, outputs);
        let prefix = format!("{stored}.p.");
        let mut theirs: BTreeMap<String, Array> =
            file.iter().filter_map(|(n, a)| Some((n.strip_prefix(&prefix)?.to_owned(), a.clone()))).collect();
        if let Some(pe) = file.get(&format!("{stored}.pe")) {
            theirs.insert("pe".into(), pe.clone());
        }
        let mut ours = init.draw(&siren, Key::new(0)).expect("a network");
        if let Some((omega0, omega_h)) = init.frequencies() {
            for (name, want) in [("omega0", omega0), ("omega_h", omega_h)] {
                assert_eq!(ours.remove(name).expect(name).to_f64_vec(), [f64::from(want as f32)]);
            }
            if let Some(omega) = file.get(&format!("{stored}.omega")) {
                assert_eq!(omega.to_f64_vec(), [omega0, omega_h], "{stored}");
            }
        }
        let shapes = |of: &BTreeMap<String, Array>| -> Vec<_> {
            of.iter().map(|(name, a)| (name.clone(), a.dtype(), a.dims().to_vec())).collect()
        };
        assert_eq!(shapes(&ours), shapes(&theirs), "{stored}");
        for (name, _, law) in init.laws(&siren) {
            follows(&format!("{stored} {name}"), &theirs[&name], &law);
        }
    }
}

/// Colour moments from the moments' own file.
fn coffee_lab() -> Moments {
    let file = golden("moments.safetensors");
    let values = |name: &str| file[&format!("coffee.lab.{name}")].to_f64_vec();
    let square = |name: &str, n| Array2::from_shape_vec((n, n), values(name)).expect("square");
    Moments { mu: Array1::from(values("mu")), sigma: square("sigma", 3), omega: square("omega", 2) }
}

fn follows(name: &str, tensor: &Array, law: &Law) {
    let values = tensor.to_f64_vec();
    let n = values.len() as f64;
    let near = |squares: f64, fourth: f64| {
        // Of a normalised entry z: mean z^2 = 1, variance of z^2 = mean z^4 - 1.
        let error = ((fourth - 1.0) / n).sqrt();
        assert!((squares / n - 1.0).abs() < ERRORS * error, "{name}: mean square {} of {law}", squares / n);
    };
    let whitened = |rows: Array2<f64>, covariance: &Array2<f64>| {
        let inverse = covariance.inv().expect("positive definite");
        near(rows.outer_iter().map(|r| r.dot(&inverse.dot(&r))).sum(), 3.0);
    };
    match law {
        Law::Zeros => assert!(values.iter().all(|v| *v == 0.0), "{name}"),
        Law::Constant(want) => {
            assert!(values.iter().zip(want).all(|(v, w)| (v - w).abs() <= 1e-6 * w.abs()), "{name}: {values:?}");
        }
        Law::Uniform { lo, hi } => {
            assert_eq!(*lo, -*hi, "{name}");
            // A bound is an f32 in the file.
            assert!(values.iter().all(|v| v.abs() <= hi * (1.0 + 1e-6)), "{name}: outside {law}");
            near(values.iter().map(|v| v * v * 3.0 / (hi * hi)).sum(), 9.0 / 5.0);
        }
        Law::Normal { std } => near(values.iter().map(|v| (v / std).powi(2)).sum(), 3.0),
        Law::GaussianRows(c) => {
            whitened(Array2::from_shape_vec((values.len() / c.nrows(), c.nrows()), values.clone()).expect("rows"), c);
        }
        Law::GaussianColumns(c) => {
            let columns = Array2::from_shape_vec((c.nrows(), values.len() / c.nrows()), values.clone());
            whitened(columns.expect("columns").reversed_axes(), c);
        }
    }
}
