//! A function of JAX's, read as HLO text, and the program of its derivative: no XLA and no Python.
//!
//! `cargo run --example import_and_differentiate`

use hlograd::graph::{Program, Tensor};
use hlograd::import::Imported;
use hlograd::transform::{grad, vmap};

/// What `jax.jit(lambda x: jnp.sum(jnp.tanh(x) ** 2)).lower(jnp.ones(3)).as_text("hlo")` prints, names shortened.
const TEXT: &str = "HloModule f

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x.1 = f32[3] parameter(0)
  tanh.2 = f32[3] tanh(x.1)
  mul.3 = f32[3] multiply(tanh.2, tanh.2)
  zero.4 = f32[] constant(0)
  ROOT sum.5 = f32[] reduce(mul.3, zero.4), dimensions={0}, to_apply=sum
}";

fn main() -> hlograd::error::Result<()> {
    let f = Imported::from_hlo_text(TEXT)?;
    let slope = grad(&f.outputs[0].1, &f.inputs)?;
    println!("{}", Program::new("slope", &f.inputs, &[("df", slope[0].clone())])?.text);

    // The same for a batch of sixteen: the function is applied to another argument, and vectorised.
    let batch = Tensor::parameter("batch", f.inputs[0].shape().with_dims(&[16, 3]));
    let slopes = vmap(&[batch.clone()], &[Some(0)], |x| {
        let y = hlograd::graph::substitute(&[f.outputs[0].1.clone()], &[(f.inputs[0].clone(), x[0].clone())]);
        grad(&y[0], x)
    })?;
    println!("{}", Program::new("slopes", &[batch], &[("df", slopes[0].clone())])?.text);
    Ok(())
}
