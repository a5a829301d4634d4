//! Text from a model: one token after another.

use super::folded::Folded;
use super::step::{activation_type, effective_signature, named, parameter_inputs};
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::random::Key;
use crate::runtime::{Buffer, Device, Executable};

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 takes the likeliest token.
    pub temperature: f64,
    /// Only the likeliest so many tokens are drawn from; None for all.
    pub top_k: Option<usize>,
}

/// A model ready to continue texts. Every token is a forward pass over the last `sequence` tokens.
pub struct Generator {
    program: Executable,
    weights: Vec<Buffer>,
    device: Device,
    sequence: usize,
}

impl Generator {
    /// Compiles the forward pass.
    pub fn new(device: &Device, model: &Folded) -> Result<Self> {
        let sequence = model.origin.sequence;
        let names = effective_signature(&model.origin.transformer);
        let inputs = parameter_inputs(&names, "");
        let tokens = Tensor::parameter("tokens", Shape::new(DType::I32, &[1, sequence]));
        let last = Tensor::parameter("last", Shape::new(DType::I32, &[]));
        let activations = activation_type(model.origin.bf16);
        let logits = model.origin.transformer.logits(&named(&names, &inputs), &tokens, activations);
        let logits = logits.squeeze(0).dynamic_index(&last);
        let program = Program::new("generate", &[inputs, vec![tokens, last]].concat(), &[("logits", logits)])?;
        let weights = names.iter().map(|(name, _)| device.put(&model.weights[name])).collect::<Result<_>>()?;
        Ok(Generator { program: device.compile(&program)?, weights, device: device.clone(), sequence })
    }

    /// `prompt` (at least one token) continued by `count` tokens; `each` sees every new one. Drawn from `key` alone.
    ///
    /// **Errors** when the logits are not finite.
    pub fn generate(
        &self,
        prompt: &[u32],
        count: usize,
        sampling: Sampling,
        key: Key,
        mut each: impl FnMut(u32),
    ) -> Result<Vec<u32>> {
        if prompt.is_empty() {
            return Err(Error::argument("--prompt", "``", "expected at least one token"));
        }
        let mut tokens = prompt.to_vec();
        for i in 0..count {
            let logits = self.next(&tokens)?;
            let next = choose(&logits, sampling, key.fold_in(i as u32));
            let next = next.ok_or_else(|| Error::numeric("generation", "the model's logits are not finite"))?;
            each(next);
            tokens.push(next);
        }
        Ok(tokens)
    }

    /// Logits of the token after `tokens`.
    fn next(&self, tokens: &[u32]) -> Result<Vec<f64>> {
        let seen = &tokens[tokens.len().saturating_sub(self.sequence)..];
        let mut padded = vec![0i32; self.sequence];
        padded.iter_mut().zip(seen).for_each(|(place, token)| *place = *token as i32);
        let tokens = self.device.put(&Array::from_slice(&[1, self.sequence], &padded))?;
        let last = self.device.put(&Array::scalar(seen.len() as i32 - 1))?;
        let arguments: Vec<&Buffer> = self.weights.iter().chain([&tokens, &last]).collect();
        Ok(self.program.run(&arguments)?[0].to_host()?.to_f64_vec())
    }
}

/// The token drawn, by the Gumbel-max rule; None where a logit is not finite.
fn choose(logits: &[f64], sampling: Sampling, key: Key) -> Option<u32> {
    if logits.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if sampling.temperature <= 0.0 {
        return order.first().map(|&i| i as u32);
    }
    order.truncate(sampling.top_k.unwrap_or(logits.len()).max(1));
    let uniform = key.uniform::<f64>(&[logits.len()], f64::MIN_POSITIVE, 1.0);
    let score = |i: &usize| logits[*i] / sampling.temperature - (-uniform[*i].ln()).ln();
    order.into_iter().max_by(|a, b| score(a).total_cmp(&score(b))).map(|i| i as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_softmax() {
        let logits = [0.0, 1.0, 2.0, -1.0];
        let sampling = Sampling { temperature: 2.0, top_k: Some(3) };
        let mut counts = [0f64; 4];
        let n = 4000;
        for i in 0..n {
            counts[choose(&logits, sampling, Key::new(5).fold_in(i)).expect("finite") as usize] += 1.0;
        }
        let weight = |x: f64| (x / 2.0).exp();
        let sum: f64 = logits[..3].iter().map(|x| weight(*x)).sum();
        for (count, x) in counts.iter().zip(logits).take(3) {
            let p = weight(x) / sum;
            let deviation = (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!((count / f64::from(n) - p).abs() < 4.0 * deviation, "{counts:?}");
        }
        assert_eq!(counts[3], 0.0);
        assert_eq!(choose(&logits, Sampling { temperature: 0.0, top_k: None }, Key::new(0)), Some(2));
        assert_eq!(choose(&[0.0, f64::NAN], sampling, Key::new(0)), None);
    }
}
