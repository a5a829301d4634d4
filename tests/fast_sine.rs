//! The sine in graph operations against libm, on random arguments, near multiples of pi/2, and where it must give up.

mod common;

use common::evaluate;
use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor, cond, scan};
use sinexp::random::Key;
use sinexp::transform::fast_sine;

/// sin and cos of `x` by the transform.
fn fast(x: &Array) -> [Vec<f64>; 2] {
    let t = Tensor::parameter("x", Shape::new(x.dtype(), x.dims()));
    let results = fast_sine(&[t.sin(), t.cos()]);
    let got = evaluate(&[t], &results, std::slice::from_ref(x));
    [got[0].to_f64_vec(), got[1].to_f64_vec()]
}

/// Largest error over arguments uniform on [-bound, bound] and beside multiples of pi/2.
fn worst(dtype: DType, bound: f64) -> f64 {
    let mut values: Vec<f64> = Key::new(2).uniform::<f64>(&[200_000], -bound, bound).into_iter().collect();
    let quarter = std::f64::consts::FRAC_PI_2;
    let last = (bound / quarter) as i64;
    for k in (-last..=last).step_by((last / 2000).max(1) as usize) {
        let at = k as f64 * quarter;
        values.extend([at, at * (1.0 + 1e-7), at * (1.0 - 1e-7), at + 1e-12].into_iter().filter(|v| v.abs() <= bound));
    }
    let x = Array::from_slice(&[values.len()], &values).cast(dtype);
    let [sin, cos] = fast(&x);
    let exact = x.to_f64_vec();
    let error = |got: &[f64], f: fn(f64) -> f64| {
        got.iter()
            .zip(&exact)
            .fold(0.0f64, |m, (g, &x)| if g.is_nan() { f64::INFINITY } else { m.max((g - f(x)).abs()) })
    };
    error(&sin, f64::sin).max(error(&cos, f64::cos))
}

#[test]
fn accuracy() {
    for (dtype, bound, tolerance) in
        [(DType::F32, 100.0, 1.3e-7), (DType::F32, 1e4, 2e-7), (DType::F64, 100.0, 4e-16), (DType::F64, 1e4, 4e-16)]
    {
        let error = worst(dtype, bound);
        println!("{dtype}, |x| <= {bound}: {error:e}");
        assert!(error <= tolerance, "{dtype}, |x| <= {bound}: {error:e}");
    }
}

#[test]
fn far_out_it_stays_bounded_and_not_a_number_stays_so() {
    for dtype in [DType::F32, DType::F64] {
        let far: Vec<f64> = (0..60).flat_map(|k| [10f64.powi(k / 2) * 1.234, -(10f64.powi(k / 2)) * 3.21]).collect();
        for v in fast(&Array::from_slice(&[far.len()], &far).cast(dtype)).concat() {
            assert!(v.abs() <= 1.0001, "{dtype}: {v}");
        }
        let odd = Array::from_slice(&[3], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).cast(dtype);
        assert!(fast(&odd).concat().iter().all(|v| v.is_nan()), "{dtype}");
        let zero = fast(&Array::from_slice(&[2], &[0.0, -0.0]).cast(dtype));
        assert_eq!(zero, [vec![0.0, 0.0], vec![1.0, 1.0]]);
    }
}

/// Beside XLA's own sine on the same arguments, so that a change of either is seen.
#[test]
fn next_to_xla() {
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[100_000]));
    let values = Array::from_ndarray(&Key::new(5).uniform::<f32>(&[100_000], -100.0, 100.0));
    let outputs = [x.sin(), x.cos(), fast_sine(&[x.sin()])[0].clone(), fast_sine(&[x.cos()])[0].clone()];
    let got = evaluate(&[x], &outputs, &[values.clone()]);
    let exact = values.to_f64_vec();
    let error = |got: &Array, f: fn(f64) -> f64| {
        got.to_f64_vec().iter().zip(&exact).fold(0.0f64, |m, (g, &x)| m.max((g - f(x)).abs()))
    };
    let own = error(&got[0], f64::sin).max(error(&got[1], f64::cos));
    let fast = error(&got[2], f64::sin).max(error(&got[3], f64::cos));
    println!("largest error for |x| <= 100: XLA's own {own:e}, the transform {fast:e}");
    assert!(own > 0.0 && own < 1e-7 && fast < 4.0 * own, "{own:e}, {fast:e}");
}

/// Branches of a conditional have theirs replaced too.
#[test]
fn inside_a_conditional() {
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[]));
    let y = cond(&x.gt(&x.full_like(0.0)), |v| vec![v[0].sin()], |v| vec![v[0].cos()], &[x.clone()]);
    let results = fast_sine(&y);
    let program = Program::new("branches", &[x.clone()], &[("y", results[0].clone())]).expect("a program");
    assert!(
        program.text.contains(" conditional(")
            && !program.text.contains(" sine(")
            && !program.text.contains(" cosine(")
    );
    for (value, want) in [(2.5f32, 2.5f64.sin()), (-2.5, 2.5f64.cos())] {
        let got = evaluate(&[x.clone()], &results, &[Array::scalar(value)])[0].to_f64_vec()[0];
        assert!((got - want).abs() < 2e-7, "{got} and {want}");
    }
}

/// The transform goes into loops, and leaves no sine behind.
#[test]
fn inside_a_loop() {
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[5]));
    let (last, _) = scan(&[x.clone()], &[], Some(3), false, |c, _| (vec![c[0].sin() + c[0].cos()], vec![]));
    let results = fast_sine(&last);
    let program = Program::new("loop", &[x.clone()], &[("y", results[0].clone())]).expect("a program");
    assert!(!program.text.contains(" sine(") && !program.text.contains(" cosine("));
    let value = Array::from_slice(&[5], &[0.1f32, 1.0, -2.0, 30.0, -7.5]);
    let (a, b) = (evaluate(&[x.clone()], &last, &[value.clone()]), evaluate(&[x], &results, &[value]));
    for (a, b) in a[0].to_f64_vec().iter().zip(b[0].to_f64_vec()) {
        assert!((a - b).abs() < 1e-6, "{a} and {b}");
    }
}
