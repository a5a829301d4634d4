//! One check for every operation: forward mode, reverse mode and `vmap` against central differences and loops, in f64.

use sinexp::array::{Array, DType};
use sinexp::graph::{Shape, Tensor};
use sinexp::transform::{jvp, vjp, vmap};

use super::evaluate;

/// A small deterministic stream of numbers, good enough to be non-uniform.
pub struct Stream(u64);

impl Stream {
    pub fn new(seed: u64) -> Self {
        Stream(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678))
    }

    /// Uniform on [lo, hi).
    pub fn uniform(&mut self, lo: f64, hi: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        lo + (hi - lo) * (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn array(&mut self, dims: &[usize], lo: f64, hi: f64) -> Array {
        let values: Vec<f64> = (0..dims.iter().product()).map(|_| self.uniform(lo, hi)).collect();
        Array::from_slice(dims, &values)
    }
}

type Traced<'a> = Box<dyn Fn(&[Tensor]) -> Vec<Tensor> + 'a>;

/// A function under test: its arguments' values, and which modes to check.
pub struct Case<'a> {
    name: &'a str,
    args: Vec<Array>,
    f: Traced<'a>,
    reverse: bool,
    tolerance: f64,
}

impl<'a> Case<'a> {
    pub fn new(name: &'a str, args: Vec<Array>, f: impl Fn(&[Tensor]) -> Vec<Tensor> + 'a) -> Self {
        Case { name, args, f: Box::new(f), reverse: true, tolerance: 2e-6 }
    }

    pub fn forward_only(mut self) -> Self {
        self.reverse = false;
        self
    }

    fn inputs(&self) -> Vec<Tensor> {
        let named = |(i, a): (usize, &Array)| Tensor::parameter(&format!("x{i}"), Shape::new(a.dtype(), a.dims()));
        self.args.iter().enumerate().map(named).collect()
    }

    fn run(&self, args: &[Array]) -> Vec<Array> {
        let inputs = self.inputs();
        evaluate(&inputs, &(self.f)(&inputs), args)
    }

    /// Directional derivative of the outputs along `v` by central differences.
    fn difference(&self, v: &[Array]) -> Vec<Vec<f64>> {
        let h = 1e-6;
        let moved = |sign: f64| {
            let args: Vec<Array> = self.args.iter().zip(v).map(|(a, v)| axpy(a, sign * h, v)).collect();
            self.run(&args)
        };
        let (plus, minus) = (moved(1.0), moved(-1.0));
        plus.iter()
            .zip(&minus)
            .map(|(p, m)| p.to_f64_vec().iter().zip(m.to_f64_vec()).map(|(p, m)| (p - m) / (2.0 * h)).collect())
            .collect()
    }

    pub fn check(&self) {
        self.derivatives();
        self.batches();
    }

    fn derivatives(&self) {
        let mut stream = Stream::new(7);
        let float: Vec<bool> = self.args.iter().map(|a| a.dtype() == DType::F64).collect();
        let v: Vec<Array> = self.args.iter().map(|a| stream.array(a.dims(), -1.0, 1.0)).collect();
        let expected = self.difference(&v);
        let inputs = self.inputs();
        let outputs = (self.f)(&inputs);
        let wrt: Vec<Tensor> = inputs.iter().zip(&float).filter(|(_, f)| **f).map(|(t, _)| t.clone()).collect();
        let v: Vec<Array> = v.into_iter().zip(&float).filter(|(_, f)| **f).map(|(v, _)| v).collect();

        let tangents: Vec<Tensor> = wrt.iter().map(|t| Tensor::parameter("v", t.shape().clone())).collect();
        let pushed = jvp(&outputs, &wrt, &tangents).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let got = evaluate(&[inputs.clone(), tangents].concat(), &pushed, &[self.args.clone(), v.clone()].concat());
        for (o, (got, want)) in got.iter().zip(&expected).enumerate() {
            close(&format!("{}: jvp of output {o}", self.name), &got.to_f64_vec(), want, self.tolerance);
        }
        if !self.reverse {
            return;
        }
        let cts: Vec<Array> = outputs.iter().map(|y| stream.array(y.dims(), -1.0, 1.0)).collect();
        let cotangents: Vec<Tensor> = outputs.iter().map(|t| Tensor::parameter("ct", t.shape().clone())).collect();
        let (ys, (ct_tensors, ct_values)): (Vec<Tensor>, (Vec<Tensor>, Vec<Array>)) =
            outputs.iter().cloned().zip(cotangents.into_iter().zip(cts)).filter(|(y, _)| y.dtype().is_float()).unzip();
        let pulled = vjp(&ys, &ct_tensors, &wrt).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let pulled: Vec<Tensor> =
            pulled.into_iter().zip(&wrt).map(|(p, w)| p.unwrap_or_else(|| w.zeros_like())).collect();
        let args = [self.args.clone(), ct_values.clone()].concat();
        let got = evaluate(&[inputs.clone(), ct_tensors.clone()].concat(), &pulled, &args);
        // <ct, J v> = <J^T ct, v>, for v along one argument at a time, so that no two errors cancel.
        for (i, w) in v.iter().enumerate() {
            let place = float.iter().enumerate().filter(|(_, f)| **f).nth(i).map(|(p, _)| p).expect("a float argument");
            let along: Vec<Array> = self
                .args
                .iter()
                .enumerate()
                .map(|(j, a)| if j == place { w.clone() } else { Array::full(DType::F64, a.dims(), 0.0) })
                .collect();
            let jv = self.difference(&along);
            let mut want = 0.0;
            let mut k = 0;
            for (y, jv) in outputs.iter().zip(&jv) {
                if y.dtype().is_float() {
                    want += dot(&ct_values[k].to_f64_vec(), jv);
                    k += 1;
                }
            }
            let have = dot(&got[i].to_f64_vec(), &w.to_f64_vec());
            close(&format!("{}: vjp by argument {place}", self.name), &[have], &[want], self.tolerance);
        }
    }

    /// `vmap` over every subset of the arguments, first and last axis, against one run per example.
    fn batches(&self) {
        const SIZE: usize = 3;
        let mut stream = Stream::new(11);
        let n = self.args.len();
        for mask in 1..1usize << n {
            let batches: Vec<Vec<Array>> = (0..n)
                .map(|i| {
                    let a = &self.args[i];
                    (0..SIZE)
                        .map(|k| match (mask >> i & 1, a.dtype()) {
                            (1, DType::F64) => axpy(a, 0.01, &stream.array(a.dims(), -1.0, 1.0)),
                            // Integers: rotated by one place per example.
                            (1, _) => {
                                let mut v = a.to_f64_vec();
                                let by = if v.is_empty() { 0 } else { k % v.len() };
                                v.rotate_left(by);
                                Array::from_slice(a.dims(), &v).cast(a.dtype())
                            }
                            _ => a.clone(),
                        })
                        .collect()
                })
                .collect();
            let (mut args, mut axes, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for (i, (a, batch)) in self.args.iter().zip(&batches).enumerate() {
                if mask >> i & 1 == 0 {
                    axes.push(None);
                    values.push(a.clone());
                    args.push(Tensor::parameter("x", Shape::new(a.dtype(), a.dims())));
                    continue;
                }
                // Odd arguments carry their batch last.
                let axis = if i % 2 == 1 { a.dims().len() } else { 0 };
                let mut dims = a.dims().to_vec();
                dims.insert(axis, SIZE);
                let stacked: Vec<f64> = if axis == 0 {
                    batch.iter().flat_map(Array::to_f64_vec).collect()
                } else {
                    let all: Vec<Vec<f64>> = batch.iter().map(Array::to_f64_vec).collect();
                    (0..a.len()).flat_map(|j| all.iter().map(move |v| v[j]).collect::<Vec<_>>()).collect()
                };
                axes.push(Some(axis));
                values.push(Array::from_slice(&dims, &stacked).cast(a.dtype()));
                args.push(Tensor::parameter("x", Shape::new(a.dtype(), &dims)));
            }
            let outputs = vmap(&args, &axes, |a| Ok((self.f)(a))).unwrap_or_else(|e| panic!("{}: {e}", self.name));
            let got = evaluate(&args, &outputs, &values);
            for k in 0..SIZE {
                let example: Vec<Array> = (0..n).map(|i| batches[i][k].clone()).collect();
                for (o, want) in self.run(&example).iter().enumerate() {
                    let got = got[o].to_f64_vec();
                    let each = want.len();
                    let what = format!("{}: vmap {mask:b}, example {k}, output {o}", self.name);
                    close(&what, &got[k * each..(k + 1) * each], &want.to_f64_vec(), 1e-11);
                }
            }
        }
    }
}

fn axpy(a: &Array, h: f64, v: &Array) -> Array {
    if a.dtype() != DType::F64 {
        return a.clone();
    }
    let values: Vec<f64> = a.to_f64_vec().iter().zip(v.to_f64_vec()).map(|(a, v)| a + h * v).collect();
    Array::from_slice(a.dims(), &values)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// **Panics** unless every entry agrees to `tolerance`, relative to the larger of 1 and the largest expected entry.
pub fn close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: number of entries");
    let scale = want.iter().fold(1.0f64, |m, w| if w.is_finite() { m.max(w.abs()) } else { m });
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * scale;
        assert!(same, "{what}: entry {i} is {g}, expected {w} (tolerance {tolerance:e} x {scale:e})");
    }
}
