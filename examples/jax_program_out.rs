//! A function of ours as a file that JAX calls and differentiates.
//!
//! Run it with `cargo run --example jax_program_out -- f.jax_export`, and then in Python:
//!
//! ```python
//! from jax import export, grad, numpy as jnp
//! f = export.deserialize(bytearray(open("f.jax_export", "rb").read())).call
//! f({"w": jnp.array([1.0, 2.0])}, jnp.array([3.0, 4.0]))             # sin(11)
//! grad(lambda p, x: f(p, x))({"w": jnp.array([1.0, 2.0])}, jnp.array([3.0, 4.0]))
//! ```

use std::path::PathBuf;

use sinexp::array::DType;
use sinexp::error::Result;
use sinexp::files::write_bytes;
use sinexp::graph::{Shape, Tensor};
use sinexp::interop::jax_export::{Exported, Options, Tree, export_graph};

fn main() -> Result<()> {
    // f(params, x) = sin(w . x).
    let w = Tensor::parameter("w", Shape::new(DType::F32, &[2]));
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[2]));
    let y = (&w * &x).sum_all().sin();

    // JAX passes arguments as pytrees: a dict of parameters, and an array.
    let params = Tree::dict([("w", Tree::Leaf(w))]);
    let options = Options { orders: 1, ..Options::default() }; // with its derivative, once
    let exported = export_graph("f", &[params, Tree::Leaf(x)], &Tree::Leaf(y), &options)?;

    let path = std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("f.jax_export"), PathBuf::from);
    write_bytes(&path, &exported.to_bytes()?)?;

    // What is in the file.
    let read = Exported::read(&std::fs::read(&path).expect("just written"))?;
    println!("{} takes {}", read.name, read.in_tree.argument_paths().join(" and "));
    println!("derivative {}", if read.vjp.is_some() { "inside" } else { "missing" });
    Ok(())
}
