//! A training loop of one's own: a line a x + b is fitted to points of 2 x + 1 by Adam.
//!
//! The step is one program. Its state stays on the device: each result takes over the memory of the argument that it
//! replaces (donation). Run it with `cargo run --example training_loop`.

use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::optim::{Adam, AdamState};
use sinexp::runtime::{Buffer, Device};
use sinexp::transform::value_and_grad;

fn main() -> Result<()> {
    let scalar = |name: &str| Tensor::parameter(name, Shape::new(DType::F32, &[]));
    let weights = ["a", "b"].map(scalar);
    let (first, second) = (["m.a", "m.b"].map(scalar), ["v.a", "v.b"].map(scalar));
    let t = scalar("t");
    let [x, y] = ["x", "y"].map(|name| Tensor::parameter(name, Shape::new(DType::F32, &[5])));

    // The loss, its gradient, and one update of each weight.
    let loss = (&weights[0] * &x + &weights[1] - &y).square().mean_all();
    let (loss, gradients) = value_and_grad(&loss, &weights)?;
    let (next, rate) = (&t + 1.0, Tensor::scalar(0.05f32));
    let mut results: [Vec<Tensor>; 3] = Default::default();
    for i in 0..2 {
        let state = AdamState { m: first[i].clone(), v: second[i].clone() };
        let (weight, state) = Adam::default().update(&weights[i], &gradients[i], &state, &next, &rate);
        results.iter_mut().zip([weight, state.m, state.v]).for_each(|(list, new)| list.push(new));
    }

    // Inputs: the state, then the data. Results: the new state in the same order, then the loss.
    let state: Vec<Tensor> = weights.iter().chain(&first).chain(&second).chain([&t]).cloned().collect();
    let new = results.concat().into_iter().chain([next, loss]);
    let outputs: Vec<(&str, Tensor)> =
        ["a", "b", "m.a", "m.b", "v.a", "v.b", "t", "loss"].into_iter().zip(new).collect();
    let donated: Vec<(usize, usize)> = (0..state.len()).map(|i| (i, i)).collect();
    let program = Program::with_donation("step", &[state, vec![x, y]].concat(), &outputs, &donated)?;

    let device = Device::open("cpu")?;
    let step = device.compile(&program)?;
    let data = [[-2.0f32, -1.0, 0.0, 1.0, 2.0], [-3.0, -1.0, 1.0, 3.0, 5.0]].map(|v| Array::from_slice(&[5], &v));
    let [x, y] = [device.put(&data[0])?, device.put(&data[1])?];
    let mut state = (0..7).map(|_| device.put(&Array::scalar(0f32))).collect::<Result<Vec<Buffer>>>()?;
    for i in 0..=400 {
        let mut results = step.run(&state.iter().chain([&x, &y]).collect::<Vec<_>>())?;
        let loss = results.pop().expect("the loss");
        if i % 100 == 0 {
            println!("step {i}: loss {:.6}", loss.to_host()?.to_vec::<f32>()?[0]);
        }
        state = results;
    }
    println!("a {:.3}, b {:.3}", state[0].to_host()?.to_vec::<f32>()?[0], state[1].to_host()?.to_vec::<f32>()?[0]);
    Ok(())
}
