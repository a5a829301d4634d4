//! The scales of single elements, from the values of a weight's leaves.

use super::scale::Placed;
use super::{Pattern, Point, Sel};
use crate::error::{Error, Result};
use crate::nn::parameterization::{LeafValues, Parameterization};

/// One weight on the host, element by element: its raw weights, and the [`Point`] of each.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    sel: &'a Sel,
    leaves: &'a LeafValues,
    initial: Point,
}

impl Sel {
    /// The weight of dimensions `dims` (`[d_out, d_in]`, or `[d_out]` for a bias) with these values of its leaves. The
    /// residual is not part of it.
    ///
    /// **Errors** name a leaf that is missing or has other dimensions.
    pub fn elements<'a>(&'a self, dims: &[usize], leaves: &'a LeafValues) -> Result<Elements<'a>> {
        for leaf in self.leaves(dims) {
            let value = leaves.get(&leaf.name).ok_or_else(|| Error::tensor(&leaf.name, "is missing"))?;
            if value.shape() != leaf.dims {
                let reason = format!("has shape {:?}, expected {:?}", value.shape(), leaf.dims);
                return Err(Error::tensor(&leaf.name, reason));
            }
        }
        Ok(Elements { sel: self, leaves, initial: self.initial_point() })
    }
}

impl Elements<'_> {
    /// The scales at row `i` and column `j` (any for a bias). Scales that the mode does not use are as at the start.
    ///
    /// **Panics** where the weight has no such element.
    pub fn point(&self, i: usize, j: usize) -> Point {
        let mut point = self.initial;
        for scale in self.sel.scales() {
            let value = scale.element(self.leaves, i, j);
            match scale.letter {
                "e" => point.e = value,
                "l" => point.l = value,
                "m" => point.m = value,
                "s" => point.s = value,
                _ => point.n = value,
            }
        }
        point
    }

    /// The raw weight there.
    ///
    /// **Panics** where the weight has no such element.
    pub fn raw(&self, i: usize, j: usize) -> f64 {
        let w = &self.leaves["w"];
        if w.ndim() == 1 { w[[i]] } else { w[[i, j]] }
    }
}

impl Placed<'_> {
    /// The scale at element (i, j): [`Placed::value`] on numbers.
    fn element(&self, leaves: &LeafValues, i: usize, j: usize) -> f64 {
        let part = |name: &str| &leaves[&format!("{}.{name}", self.letter)];
        let unlog = |x: f64| if self.log { x.exp() } else { x };
        let (one, row, col) = (|| part("g")[[]], || part("r")[[i]], || part("c")[[j]]);
        let vector = leaves["w"].ndim() == 1;
        match self.scale.pattern {
            Pattern::Global => unlog(one()),
            Pattern::Col if vector => unlog(one()),
            _ if vector => unlog(row()),
            Pattern::Row => unlog(row()),
            Pattern::Col => unlog(col()),
            Pattern::RowColMult => unlog(row()) * unlog(col()),
            Pattern::RowColAdd => unlog(row()) + unlog(col()),
            Pattern::Lora(rank) => {
                let (a, b) = (part("A"), part("B"));
                unlog(one() + (0..rank).map(|k| a[[i, k]] * b[[k, j]]).sum::<f64>())
            }
            Pattern::Full => unlog(part("f")[[i, j]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mode, Offset, Scale};
    use super::*;
    use crate::array::{Array, DType};
    use crate::graph::{Program, Shape, Tensor};
    use crate::optim::Anneal;
    use crate::random::Key;
    use crate::runtime::Device;

    const PATTERNS: [Pattern; 7] = [
        Pattern::Global,
        Pattern::Row,
        Pattern::Col,
        Pattern::RowColMult,
        Pattern::RowColAdd,
        Pattern::Lora(2),
        Pattern::Full,
    ];

    /// A transform with every scale in `pattern`.
    fn sel(mode: Mode, pattern: Pattern, absorb_beta: bool) -> Sel {
        let scale = Scale { pattern, multiplier: Anneal::ONE, decay: false };
        let offset = Some(Offset { scale, initial: 0.2 });
        let shift = offset.filter(|_| mode != Mode::Damped);
        let (exp_scale, linear_scale, inner) = (scale, scale, scale);
        let normalize_by_inner_mult = absorb_beta;
        let sel = Sel::new(5.0).with_mode(mode);
        Sel { exp_scale, linear_scale, inner, shift, offset, absorb_beta, normalize_by_inner_mult, ..sel }
    }

    /// Every pattern, off its start, against the compiled transform.
    #[test]
    fn elements_are_those_of_the_compiled_transform() {
        let device = Device::open("cpu").expect("cpu");
        let cases = PATTERNS.iter().flat_map(|p| [(Mode::Mismatch, *p, false), (Mode::Congruent, *p, true)]);
        let others = [Mode::Damped, Mode::Sinh, Mode::ExpOnly].map(|mode| (mode, Pattern::RowColAdd, false));
        for (k, (mode, pattern, absorb)) in cases.chain(others).enumerate() {
            let sel = sel(mode, pattern, absorb);
            for dims in [&[4, 3][..], &[5]] {
                let mut names = Vec::new();
                let mut values = LeafValues::new();
                let mut inputs = Vec::new();
                for (n, leaf) in sel.leaves(dims).into_iter().enumerate() {
                    let key = Key::new(k as u64).fold_in(n as u32);
                    let low = if leaf.name == "w" { -0.3 } else { 0.1 };
                    values.insert(leaf.name.clone(), key.uniform::<f64>(&leaf.dims, low, 0.4));
                    inputs.push(Tensor::parameter(&leaf.name, Shape::new(DType::F64, &leaf.dims)));
                    names.push(leaf.name);
                }
                let params = names.iter().cloned().zip(inputs.iter().cloned()).collect();
                let program = Program::new("w", &inputs, &[("w_eff", sel.effective(dims, &params))]).expect("traced");
                let arrays: Vec<Array> = names.iter().map(|name| Array::from_ndarray(&values[name])).collect();
                let compiled = device.compile(&program).expect("compiles");
                let weight = compiled.call(&arrays.iter().collect::<Vec<_>>()).expect("runs");
                let elements = sel.elements(dims, &values).expect("all leaves");
                let columns = if dims.len() == 2 { dims[1] } else { 1 };
                for (at, want) in weight[0].to_f64_vec().into_iter().enumerate() {
                    let (i, j) = (at / columns, at % columns);
                    let got = sel.value(&elements.point(i, j), elements.raw(i, j));
                    assert!((got - want).abs() < 1e-13, "{mode} {pattern} {dims:?} ({i}, {j}): {got} for {want}");
                }
            }
        }
    }

    #[test]
    fn leaves_that_do_not_fit_are_named() {
        let sel = Sel::new(7.5);
        let mut leaves = sel.initial(&ndarray::ArrayD::zeros(vec![3, 2]), Key::new(0)).expect("starts");
        let point = sel.elements(&[3, 2], &leaves).expect("fits").point(2, 1);
        assert!((point.e - 1.0 / 7.5).abs() < 1e-15 && (point.l - 1.0 / 7.5).abs() < 1e-15, "{point:?}");
        assert_eq!((point.m, point.s, point.n), (1.0, 0.0, 0.0));
        assert!(sel.elements(&[3, 4], &leaves).expect_err("other size").to_string().contains("`w`"));
        leaves.remove("l.c");
        assert!(sel.elements(&[3, 2], &leaves).expect_err("missing").to_string().contains("`l.c`"));
    }
}
