//! A program that JAX wrote, run and differentiated here: Newton's iteration for √(|x| + 1), a `lax.while_loop`.
//!
//! JAX wrote the file by `jax.jit(f).lower(x).compile()` as HLO text. It holds the function only; the derivative is made
//! here, from the imported graph. Run it with `cargo run --example jax_program_in`.

use std::path::Path;

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Imported, Program, Shape, Tensor};
use sinexp::interop::program::Foreign;
use sinexp::runtime::Device;
use sinexp::transform::jvp;

fn main() -> Result<()> {
    // Any of the five kinds of file is recognised: HLO, StableHLO and jax.export, as text or binary.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hlo_import/while_newton.hlo.txt");
    let foreign = Foreign::open(&path)?;
    println!(
        "{}: {} -> {}",
        foreign.signature.name, foreign.signature.inputs[0].shape, foreign.signature.outputs[0].shape
    );

    // It can be compiled as it is.
    let device = Device::open("cpu")?;
    let x = Array::from_slice(&[3], &[3.0f32, 8.0, 15.0]);
    let root = device.compile(&foreign.program()?)?.call(&[&x])?[0].to_f64_vec();
    println!("root {:.3} {:.3} {:.3}", root[0], root[1], root[2]);

    // As a graph it can be differentiated too: here along the direction t, through the loop.
    let f = Imported::from_hlo_text(&foreign.text)?;
    let t = Tensor::parameter("t", Shape::new(DType::F32, &[3]));
    let slope = jvp(&[f.outputs[0].1.clone()], &f.inputs, &[t.clone()])?.swap_remove(0);
    let program = Program::new("slope", &[f.inputs, vec![t]].concat(), &[("slope", slope)])?;
    let ones = Array::from_slice(&[3], &[1.0f32; 3]);
    let slope = device.compile(&program)?.call(&[&x, &ones])?[0].to_f64_vec(); // 1 / (2 sqrt(x + 1))
    println!("slope {:.3} {:.3} {:.3}", slope[0], slope[1], slope[2]);
    Ok(())
}
