//! The transformer with each parameterisation against JAX: weights, logits, loss, gradients, optimiser groups.

use std::collections::BTreeMap;

use sinexp::array::{Array, DType};
use sinexp::graph::{Shape, Tensor};
use sinexp::nn::language_model::{LanguageModel, Weights};
use sinexp::nn::parameterization::Standard;
use sinexp::nn::sel::Sel;
use sinexp::nn::siren::Params;
use sinexp::nn::transformer::Transformer;
use sinexp::optim::Anneal;
use sinexp::transform::grad;

use crate::common::evaluate;
use crate::{golden, golden_json, relative};

pub const TAGS: [&str; 3] = ["baseline", "mismatch", "offset_lora"];

/// A stored model.
pub struct Golden {
    pub tag: &'static str,
    pub file: BTreeMap<String, Array>,
}

impl Golden {
    pub fn read(tag: &'static str) -> Self {
        // Scalars are stored with shape [1].
        let scalar = |a: Array| if a.dims() == [1] { reshaped(&a, &[]) } else { a };
        let file = golden(&format!("gpt_{tag}.safetensors")).into_iter().map(|(name, a)| (name, scalar(a))).collect();
        Golden { tag, file }
    }

    pub fn model(&self, looped: bool, remat: bool) -> LanguageModel {
        let transformer = Transformer { heads: 4, looped, remat, ..Transformer::new(256, 64, 2) };
        assert_eq!(transformer.hidden, 192);
        match self.tag {
            "baseline" => LanguageModel::new(transformer, Standard),
            "mismatch" => LanguageModel::new(transformer, Sel::new(7.5)),
            _ => LanguageModel::new(transformer, Sel::new(7.5).with_offset_and_residual(4)),
        }
    }

    /// The stored tensors below `prefix`, one per block.
    pub fn below(&self, prefix: &str) -> Weights {
        let prefix = format!("{prefix}.");
        self.file.iter().filter_map(|(name, a)| Some((name.strip_prefix(&prefix)?.to_owned(), a.clone()))).collect()
    }

    /// The parameters in our order, those of blocks stacked; all that are stored are used.
    pub fn parameters(&self, model: &LanguageModel, dtype: DType) -> Vec<Array> {
        let split = self.below("p");
        assert_eq!(split.keys().cloned().collect::<Vec<_>>(), self.groups().into_keys().collect::<Vec<_>>());
        let stack = |p: &sinexp::nn::language_model::Parameter| model.stack(&p.name, &p.dims, &split);
        model.parameters().iter().map(|p| stack(p).expect("stored").cast(dtype)).collect()
    }

    /// Multiplier and weight decay of every tensor of a file.
    pub fn groups(&self) -> BTreeMap<String, (Anneal, bool)> {
        let mut all = BTreeMap::new();
        for p in self.model(true, false).parameters() {
            match p.name.strip_prefix("blocks.") {
                Some(rest) => {
                    all.extend([0, 1].map(|i| (format!("blocks.{i}.{rest}"), (p.multiplier, p.decay))));
                }
                None => drop(all.insert(p.name, (p.multiplier, p.decay))),
            }
        }
        all
    }

    /// `i32[2, 33]`: the stored tokens and the last target of each sequence.
    pub fn tokens(&self) -> Array {
        let [tokens, targets] = ["tokens", "targets"].map(|name| self.file[name].to_vec::<i32>().expect("i32"));
        let mut all = Vec::new();
        for (tokens, targets) in tokens.chunks(32).zip(targets.chunks(32)) {
            assert_eq!(tokens[1..], targets[..31]);
            all.extend_from_slice(tokens);
            all.push(targets[31]);
        }
        Array::from_slice(&[2, 33], &all)
    }
}

/// Moments before the stored step, from the gradients.
pub fn moments(gradients: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let f32s = |f: fn(f64) -> f64| gradients.iter().map(|g| f64::from(f(*g) as f32)).collect();
    (f32s(|g| 0.5 * g), f32s(|g| 0.3 * g * g + 1e-8))
}

pub fn reshaped(a: &Array, dims: &[usize]) -> Array {
    Array::from_bytes(a.dtype(), dims, a.bytes()).expect("as many entries")
}

/// One input per parameter.
pub fn inputs(model: &LanguageModel, dtype: DType) -> (Vec<Tensor>, Params) {
    let input = |p: &sinexp::nn::language_model::Parameter| Tensor::parameter(&p.name, Shape::new(dtype, &p.dims));
    let tensors: Vec<Tensor> = model.parameters().iter().map(input).collect();
    let params = tensors.iter().map(|t| (t.name().to_owned(), t.clone())).collect();
    (tensors, params)
}

/// Logits, loss and every stored gradient of one form of the program, to these tolerances.
fn check(golden: &Golden, looped: bool, remat: bool, dtype: DType, out: f64, gradient: f64) {
    let model = golden.model(looped, remat);
    let what = format!("{} {dtype} looped {looped} remat {remat}", golden.tag);
    let (tensors, params) = inputs(&model, dtype);
    let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[2, 33]));
    let weights = model.effective(&params);
    let logits = model.transformer.logits(&weights, &tokens.slice_in_dim(1, 0, 32), dtype);
    let loss = model.transformer.loss(&weights, &tokens, dtype);
    let mut results = vec![logits, loss.clone()];
    results.extend(grad(&loss, &tensors).expect("gradients"));
    results.extend(["q.W", "q.b"].map(|name| weights[&format!("blocks.{name}")].clone()));
    let values = [golden.parameters(&model, dtype), vec![golden.tokens()]].concat();
    let mut got = evaluate(&[tensors.clone(), vec![tokens]].concat(), &results, &values);

    let effective = got.split_off(got.len() - 2);
    relative(&format!("{what} logits"), &got[0], &golden.file["logits.f64"], out);
    relative(&format!("{what} loss"), &got[1], &golden.file["loss.f64"], out);
    let stacked: Weights = tensors.iter().map(|t| t.name().to_owned()).zip(got.drain(2..)).collect();
    let split = model.split(&stacked).expect("two blocks");
    let stored = golden.below("grad");
    assert!(stored.len() >= split.len() - 2, "{what}: all but embedding and head, which are large");
    for (name, want) in &stored {
        assert_eq!(split[name].dims(), want.dims(), "{what} {name}");
        relative(&format!("{what} gradient of {name}"), &split[name], want, gradient);
    }
    for (name, both) in ["q.W", "q.b"].iter().zip(effective) {
        if let Some(want) = golden.file.get(&format!("eff.blocks.0.{name}")) {
            let first = both.bytes().len() / 2;
            let first = Array::from_bytes(dtype, want.dims(), &both.bytes()[..first]).expect("a block");
            relative(&format!("{what} effective {name}"), &first, want, 1e-6);
        }
    }
}

#[test]
fn in_f64() {
    for tag in TAGS {
        check(&Golden::read(tag), true, false, DType::F64, 1e-12, 1e-6);
    }
}

/// In every other form of the program too: blocks one after another instead of in a loop, and computed again in the
/// reverse pass instead of kept. `gpt_step` has the first form in f32.
#[test]
fn in_f32_and_other_forms() {
    for (tag, looped, remat, gradient) in
        [("baseline", false, false, 1e-5), ("mismatch", true, true, 1e-5), ("offset_lora", false, true, 5e-5)]
    {
        check(&Golden::read(tag), looped, remat, DType::F32, 2e-6, gradient);
    }
}

/// k(100) with T = 1000, and weight decay, of every tensor.
#[test]
fn groups() {
    let stored = golden_json("groups.json");
    for (tag, groups) in stored.as_object().expect("models") {
        let tag = TAGS.into_iter().find(|t| t == tag).expect("a model");
        let ours = Golden::read(tag).groups();
        let groups = groups.as_object().expect("tensors");
        assert_eq!(ours.keys().collect::<Vec<_>>(), sorted(groups.keys()), "{tag}");
        for (name, (multiplier, decay)) in ours {
            let want = &groups[&name];
            let k = multiplier.at(100.0, 1000);
            assert!((k / want[0].as_f64().expect("k") - 1.0).abs() < 1e-13, "{tag} {name}: {k}, expected {want}");
            assert_eq!(decay, want[1].as_bool().expect("a flag"), "{tag} {name}");
        }
    }
    assert_eq!(stored.as_object().map(|s| s.len()), Some(2));
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}
