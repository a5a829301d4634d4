//! Moments of real fields against an independent computation.

use ndarray::ArrayD;
use sinexp::analysis::moments::moments;
use sinexp::array::DType;

use crate::golden;

#[test]
fn images_and_a_line() {
    let file = golden("moments.safetensors");
    let field = |name: &str| -> ArrayD<f64> { file[name].cast(DType::F64).to_ndarray().expect("f64") };
    let close = |name: &str, got: Vec<f64>, tolerance: f64| {
        let want = file[name].to_f64_vec();
        assert_eq!(got.len(), want.len(), "{name}");
        let scale = want.iter().fold(0f64, |m, w| m.max(w.abs()));
        for (g, w) in got.iter().zip(&want) {
            assert!((g - w).abs() <= tolerance * scale, "{name}: {g} for {w}");
        }
    };
    for (image, train, tolerance) in [
        ("clock.gray", "clock.gray.train", 1e-11),
        ("coffee.rgb", "coffee.rgb.train", 1e-11),
        // The training array in CIELAB is stored in f32.
        ("coffee.lab", "coffee.lab.train", 1e-6),
    ] {
        let field = field(train);
        let (h, w) = (field.shape()[0], field.shape()[1]);
        let m = moments(field.view(), &[2.0 / (h - 1) as f64, 2.0 / (w - 1) as f64]).expect("moments");
        close(&format!("{image}.mu"), m.mu.to_vec(), tolerance);
        close(&format!("{image}.sigma"), m.sigma.iter().copied().collect(), tolerance);
        close(&format!("{image}.omega"), m.omega.iter().copied().collect(), tolerance);
    }
    let line = field("audio1d.y").into_shape_with_order(vec![501, 1]).expect("one channel");
    let m = moments(line.view(), &[200.0 / 500.0]).expect("moments");
    close("audio1d.mu", m.mu.to_vec(), 1e-11);
    close("audio1d.sigma", m.sigma.iter().copied().collect(), 1e-11);
    close("audio1d.omega", m.omega.iter().copied().collect(), 1e-11);
}
