//! An activation of one's own: the "snake" x + sin²(a x) / a, whose frequency a is learned with the weights.
//!
//! An activation is a function from tensor to tensor. All derivatives follow from the operations that it is made of.
//! Run it with `cargo run --example custom_activation`.

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::runtime::Device;
use sinexp::transform::{grad, hessian};

/// Shapes broadcast as in NumPy: `a` is a scalar here, and could be one number for each unit.
fn snake(x: &Tensor, a: &Tensor) -> Tensor {
    x + (a * x).sin().square() / a
}

fn main() -> Result<()> {
    let x = Tensor::parameter("x", Shape::new(DType::F64, &[]));
    let a = Tensor::parameter("a", Shape::new(DType::F64, &[]));
    let y = snake(&x, &a);

    // The slope by x is 1 + sin(2 a x), the curvature 2 a cos(2 a x); the slope by a trains the frequency.
    let slopes = grad(&y, &[x.clone(), a.clone()])?;
    let curvature = hessian(&y, &x)?;
    let outputs = [("y", y), ("dy/dx", slopes[0].clone()), ("dy/da", slopes[1].clone()), ("d2y/dx2", curvature)];
    let program = Program::new("snake", &[x, a], &outputs)?;

    let compiled = Device::open("cpu")?.compile(&program)?;
    let results = compiled.call(&[&Array::scalar(0.5f64), &Array::scalar(1.0f64)])?;
    for ((name, _), value) in outputs.iter().zip(results) {
        println!("{name} {:.6}", value.to_f64_vec()[0]);
    }
    Ok(())
}
