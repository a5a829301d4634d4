//! The Jacobian of a function, and what follows from it: here of the map from polar to Cartesian coordinates.
//!
//! Run it with `cargo run --example jacobian`.

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor, stack};
use sinexp::runtime::Device;
use sinexp::transform::jacobian;

fn main() -> Result<()> {
    // A function is an expression over its inputs. Nothing is computed yet: this builds a graph.
    let polar = Tensor::parameter("polar", Shape::new(DType::F64, &[2]));
    let (radius, angle) = (polar.slice(&[0], &[1], &[1]), polar.slice(&[1], &[2], &[1]));
    let cartesian = stack(&[&radius * angle.cos(), &radius * angle.sin()], 0).reshape(&[2]);

    // `jacobian` takes a graph to a graph, as `jax.jacfwd` does: rows are outputs, columns are inputs.
    let j = jacobian(&cartesian, &polar)?;
    assert_eq!(j.dims(), [2, 2]);

    // A program has named inputs and results. A device compiles it once; it can then be called often.
    let program = Program::new("jacobian", &[polar], &[("point", cartesian), ("J", j)])?;
    let compiled = Device::open("cpu")?.compile(&program)?;

    let results = compiled.call(&[&Array::from_slice(&[2], &[2.0f64, std::f64::consts::FRAC_PI_6])])?;
    let (point, j) = (results[0].to_f64_vec(), results[1].to_f64_vec());
    println!("point {:.4} {:.4}", point[0], point[1]);
    println!("J [{:.4} {:.4}; {:.4} {:.4}]", j[0], j[1], j[2], j[3]);
    // An area grows by the radius: the determinant is 2.
    println!("determinant {:.4}", j[0] * j[3] - j[1] * j[2]);
    Ok(())
}
