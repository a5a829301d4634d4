//! Compositions of transforms against JAX on the same inputs, in f64 (python/checks/check_composed.py has the JAX side).

use std::collections::BTreeMap;

use sinexp::array::{Array, DType};
use sinexp::graph::*;
use sinexp::transform::{grad, hessian, jacobian, jvp, vmap};

use crate::common::check::close;
use crate::common::evaluate;
use crate::golden;

/// The stored inputs as graph inputs, and how to compare results with what is stored.
struct Inputs {
    file: BTreeMap<String, Array>,
    tensors: BTreeMap<String, Tensor>,
}

impl Inputs {
    fn read() -> Self {
        let file = golden("composed.safetensors");
        let input = |(name, a): (&String, &Array)| {
            let name = name.strip_prefix("in.")?;
            Some((name.to_string(), Tensor::parameter(name, Shape::new(a.dtype(), a.dims()))))
        };
        let tensors = file.iter().filter_map(input).collect();
        Inputs { file, tensors }
    }

    fn get(&self, name: &str) -> Tensor {
        self.tensors[name].clone()
    }

    fn check(&self, case: &str, results: hlograd::error::Result<Vec<Tensor>>) {
        let results = results.unwrap_or_else(|e| panic!("{case}: {e}"));
        let tensors: Vec<Tensor> = self.tensors.values().cloned().collect();
        let values: Vec<Array> = self.tensors.keys().map(|n| self.file[&format!("in.{n}")].clone()).collect();
        let stored = self.file.keys().filter(|k| k.strip_prefix(case).is_some_and(|k| k.starts_with('.'))).count();
        assert_eq!(stored, results.len(), "{case}: number of results");
        for (i, got) in evaluate(&tensors, &results, &values).iter().enumerate() {
            let want = &self.file[&format!("{case}.{i}")];
            assert_eq!(got.dims(), want.dims(), "{case}.{i}: shape");
            close(&format!("{case}.{i}"), &got.to_f64_vec(), &want.to_f64_vec(), 1e-11);
        }
    }
}

/// One example of a small network, a scalar.
fn unit(w: &Tensor, b: &Tensor, c: &Tensor, x: &Tensor) -> Tensor {
    c.matmul(&(w.matmul(x) + b).tanh()).sin()
}

#[test]
fn grad_of_vmap_and_vmap_of_grad() {
    let v = Inputs::read();
    let (w, b, c, x) = (v.get("w"), v.get("b"), v.get("c"), v.get("x"));
    let run = || {
        let y = vmap(&[x.clone()], &[Some(0)], |x| Ok(vec![unit(&w, &b, &c, &x[0])]))?;
        grad(&y[0].square().sum_all(), &[w.clone(), b.clone()])
    };
    v.check("grad_of_vmap", run());
    let run = || {
        let args = [w.clone(), x.clone()];
        vmap(&args, &[None, Some(0)], |a| grad(&unit(&a[0], &b, &c, &a[1]), &[a[0].clone(), a[1].clone()]))
    };
    v.check("vmap_of_grad", run());
    let run = || {
        let y = vmap(&[x.clone()], &[Some(0)], |x| Ok(vec![(w.matmul(&x[0]) + &b).tanh()]))?;
        Ok(vec![jacobian(&y[0], &w)?])
    };
    v.check("jacobian_of_vmap", run());
}

#[test]
fn second_and_third_derivatives() {
    let v = Inputs::read();
    let (w, b, c, x) = (v.get("w"), v.get("b"), v.get("c"), v.get("x"));
    let f = |x: &Tensor| unit(&w, &b, &c, x) * (x.square().sum_all() / -4.0).exp();
    let run = || {
        let first = x.index_in_dim(0, 0);
        let batch = vmap(&[x.clone()], &[Some(0)], |x| Ok(vec![hessian(&f(&x[0]), &x[0])?]))?;
        let t = Tensor::scalar(0.7f64);
        let mut g = f(&(&t * &first));
        for _ in 0..3 {
            g = grad(&g, &[t.clone()])?.swap_remove(0);
        }
        Ok(vec![hessian(&f(&first), &first)?, batch[0].clone(), g])
    };
    v.check("second_derivatives", run());
}

#[test]
fn a_recurrent_network() {
    let v = Inputs::read();
    let (u, w, h, x, e) = (v.get("u"), v.get("w"), v.get("h"), v.get("x"), v.get("e"));
    let loss = |h: &Tensor| {
        let (state, ys) = scan(&[h.clone()], &[x.clone()], None, false, |h, x| {
            let h = (u.matmul(&h[0]) + w.matmul(&x[0])).tanh();
            (vec![h.clone()], vec![h.integer_pow(3).sum_all()])
        });
        let weights = Tensor::iota(Shape::new(DType::F64, &[5]), 0) + 1.0;
        state[0].sum_all() + ys[0].matmul(&weights)
    };
    let run = || {
        let l = loss(&h);
        let mut results = grad(&l, &[u.clone(), w.clone(), h.clone(), x.clone()])?;
        results.push(hessian(&l, &h)?);
        results.extend(vmap(&[e.clone()], &[Some(0)], |h| grad(&loss(&h[0]), h))?);
        Ok(results)
    };
    v.check("recurrent", run());
}

#[test]
fn control_flow() {
    let v = Inputs::read();
    let x = v.get("x");
    let run = || {
        let slopes = vmap(&[x.clone()], &[Some(0)], |x| {
            let positive = x[0].sum_all().gt(&Tensor::scalar(0.0f64));
            let y = cond(&positive, |a| vec![a[0].sin().matmul(&a[0])], |a| vec![a[0].exp().sum_all()], x);
            grad(&y[0], x)
        })?;
        let tangents = vmap(&[x.clone()], &[Some(0)], |x| {
            let y = while_loop(
                x,
                |y| y[0].square().sum_all().gt(&Tensor::scalar(0.5f64)),
                |y| vec![&y[0] * 0.7 + 0.01 * x[0].sin()],
            );
            jvp(&y, x, &[x[0].cos()])
        })?;
        Ok([slopes, tangents].concat())
    };
    v.check("control_flow", run());
}

#[test]
fn attention() {
    let v = Inputs::read();
    let (e, u, tokens, targets) = (v.get("e"), v.get("u"), v.get("tokens"), v.get("targets"));
    let block = |h: &Tensor| {
        let n = h * (h.square().mean(&[1]).expand_dims(1) + 1e-6).rsqrt();
        let scores = n.matmul(&u).matmul(&n.t()) / 2.0;
        let index = Shape::new(DType::I32, &[5, 5]);
        let seen = Tensor::iota(index.clone(), 0).ge(&Tensor::iota(index, 1));
        let scores = seen.select(&scores, &scores.full_like(f64::NEG_INFINITY));
        h + scores.softmax(1).matmul(&n.matmul(&u.t()).gelu(false))
    };
    let run = || {
        let h = checkpoint(&[e.take(&tokens, 0)], |h| vec![block(&h[0])]).swap_remove(0);
        let logits = h.matmul(&e.t());
        let picked = logits.take_along_axis(&targets.expand_dims(1), 1).squeeze(1);
        let loss = (logits.logsumexp(1) - picked).mean_all();
        Ok([vec![loss.clone()], grad(&loss, &[e.clone(), u.clone()])?].concat())
    };
    v.check("attention", run());
}

#[test]
fn orders() {
    let v = Inputs::read();
    let x = v.get("x");
    let run = || {
        let total = (x.sort(0) * x.sin()).cumsum(0).square().sum_all();
        let top = x.t().take_along_axis(&x.argmax(0).expand_dims(1), 1).sum_all();
        let f = total + x.max(&[1]).integer_pow(3).sum_all() + top;
        Ok(vec![grad(&f, &[x.clone()])?.swap_remove(0), hessian(&f, &x)?])
    };
    v.check("orders", run());
}

/// The rules that are choices are JAX's.
#[test]
fn choices() {
    let v = Inputs::read();
    let vector = |values: [f64; 4]| Tensor::constant(Array::from_slice(&[4], &values));
    let slope = |at: [f64; 4], f: &dyn Fn(&Tensor) -> Tensor| {
        let x = vector(at);
        // Each entry's own derivative: the gradient of the sum of an elementwise function.
        Ok::<_, hlograd::error::Error>(grad(&f(&x).sum_all(), &[x])?.swap_remove(0))
    };
    let at = [-1.0, -0.0, 0.0, 2.0];
    let run = || {
        Ok(vec![
            slope(at, &|x| x.abs())?,
            slope(at, &|x| x.maximum(&x.zeros_like()))?,
            slope(at, &|x| x.relu())?,
            slope(at, &|x| {
                let positive = x.gt(&x.zeros_like());
                positive.select(&positive.select(x, &x.ones_like()).sqrt(), &x.zeros_like())
            })?,
            slope([1.0, 3.0, 3.0, 2.0], &|x| x.max(&[0]))?,
            slope([0.0, 1.0, 2.0, 3.0], &|x| x.pow(&x.full_like(2.0).stop_gradient()))?,
            slope([1.0, 2.0, 2.5, 3.0], &|y| y.zeros_like().pow(y))?,
            slope([-90.0, 0.0, 90.0, 800.0], &|x| x.logistic())?,
        ])
    };
    v.check("choices", run());
}
