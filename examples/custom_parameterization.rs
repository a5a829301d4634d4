//! A parameterisation of one's own: weights that are stored as their cube roots.
//!
//! A model is written in terms of its weights. A `Parameterization` says which tensors are trained in their place, and how
//! a weight is made of them: SEL is one, the ordinary weight another, and this one a third. With W = v³ a step of v
//! moves a large weight further than a small one. Run it with `cargo run --example custom_parameterization`.

use ndarray::{ArrayD, arr2};
use sinexp::array::{Array, DType};
use sinexp::error::Result;
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::nn::language_model::LanguageModel;
use sinexp::nn::parameterization::{Leaf, LeafValues, Parameterization};
use sinexp::nn::{siren::Params, transformer::Transformer};
use sinexp::random::Key;
use sinexp::runtime::Device;
use sinexp::transform::grad;

#[derive(Debug)]
struct Cubic;

impl Parameterization for Cubic {
    /// What is trained: one tensor `v` of the weight's own shape.
    fn leaves(&self, dims: &[usize]) -> Vec<Leaf> {
        vec![Leaf::new("v", dims)]
    }

    /// The weight made of it, in graph operations, so that it is differentiated with the model.
    fn weight(&self, _dims: &[usize], leaves: &Params) -> Tensor {
        let v = &leaves["v"];
        v * v.square()
    }

    /// Where `v` starts, so that the weight starts at `target`.
    fn initial(&self, target: &ArrayD<f64>, _key: Key) -> Result<LeafValues> {
        Ok([("v".to_owned(), target.mapv(f64::cbrt))].into())
    }
}

fn main() -> Result<()> {
    // The weight at its start, and how fast it moves with v: dW/dv = 3 v².
    let start = Cubic.initial(&arr2(&[[0.001, 0.125]]).into_dyn(), Key::new(0))?;
    let v = Tensor::parameter("v", Shape::new(DType::F64, &[1, 2]));
    let weight = Cubic.weight(&[1, 2], &[("v".to_owned(), v.clone())].into());
    let speed = grad(&weight.sum_all(), &[v.clone()])?.swap_remove(0);
    let program = Program::new("cubic", &[v], &[("weight", weight), ("speed", speed)])?;
    let results = Device::open("cpu")?.compile(&program)?.call(&[&Array::from_ndarray(&start["v"])])?;
    let (weight, speed) = (results[0].to_f64_vec(), results[1].to_f64_vec());
    println!("weights {:.3} {:.3} move at {:.2} {:.2}", weight[0], weight[1], speed[0], speed[1]);

    // A transformer of 2 blocks whose projections are stored so; `train::language` trains it as it does any other.
    let model = LanguageModel::new(Transformer::new(256, 64, 2), Cubic);
    let stored = model.parameters().into_iter().filter(|p| p.name.ends_with(".v")).count();
    println!("{stored} tensors of projections are stored as cube roots");
    Ok(())
}
