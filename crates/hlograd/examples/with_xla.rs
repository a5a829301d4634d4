//! A loss, its gradient, and the crate `xla` to run both: nothing else is needed.
//!
//! `cargo run --example with_xla`

use hlograd::array::DType;
use hlograd::graph::{Program, Shape, Tensor};
use hlograd::transform::value_and_grad;
use xla::{HloModuleProto, Literal, PjRtClient, XlaComputation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Least squares: loss(w) = mean((x w - y)^2), and d loss / d w.
    let x = Tensor::parameter("x", Shape::new(DType::F32, &[4, 2]));
    let y = Tensor::parameter("y", Shape::new(DType::F32, &[4]));
    let w = Tensor::parameter("w", Shape::new(DType::F32, &[2]));
    let residual = x.matmul(&w) - &y;
    let loss = residual.square().mean_all();
    let (loss, gradient) = value_and_grad(&loss, &[w.clone()])?;
    let outputs = [("loss", loss), ("gradient", gradient[0].clone())];
    let program = Program::new("least_squares", &[x, y, w], &outputs)?;
    println!("{}", program.text);

    // HLO text is what the crate `xla` compiles.
    let client = PjRtClient::cpu()?;
    let module = HloModuleProto::parse_and_return_unverified_module(program.text.as_bytes())?;
    let run = client.compile(&XlaComputation::from_proto(&module))?;

    // y = 2 a - b, found by a hundred steps of gradient descent.
    let x = Literal::vec1(&[1f32, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, -1.0]).reshape(&[4, 2])?;
    let y = Literal::vec1(&[2f32, -1.0, 1.0, 5.0]);
    let mut w = [0f32; 2];
    for _ in 0..100 {
        let results = &run.execute(&[x.clone(), y.clone(), Literal::vec1(&w)])?[0];
        let gradient = results[1].to_literal_sync()?.to_vec::<f32>()?;
        w = [w[0] - 0.2 * gradient[0], w[1] - 0.2 * gradient[1]];
    }
    println!("w = {w:?}");
    assert!((w[0] - 2.0).abs() < 1e-4 && (w[1] + 1.0).abs() < 1e-4);
    Ok(())
}
