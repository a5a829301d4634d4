//! The SEL transform of one matrix (2607.09967, Section 4), in each of its modes.

use super::choices::{Resolved, network};
use super::function::{Argument, Function, dict, leaf};
use super::{Entry, Network, Size};
use crate::array::DType;
use crate::error::Result;
use crate::graph::{Program, Shape, Tensor};
use crate::nn::parameterization::Parameterization;
use crate::nn::sel::{Mode, Sel};
use crate::nn::siren::Params;

const SIZES: &[Size] = &[network("rows", 12), network("columns", 8)];
const RESIDUAL_SIZES: &[Size] = &[network("rows", 12), network("columns", 8), network("rank", 2)];

const fn entry(name: &'static str, about: &'static str, build: fn(&Resolved) -> Result<Function>) -> Entry {
    Entry {
        name,
        about,
        sizes: SIZES,
        numbers: &[("beta", 7.5)],
        dtypes: &[DType::F32, DType::F64],
        network: Network::None,
        orders: 1,
        build,
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    entry("sel_congruent", "the SEL weight sgn(w) E + L from its leaves (Eq. 8)", |r| of_mode(r, Mode::Congruent)),
    entry("sel_mismatch", "the SEL weight sgn(w) (E + L) from its leaves (Eq. 9)", |r| of_mode(r, Mode::Mismatch)),
    entry("sel_oppose", "the SEL weight sgn(w) E - L from its leaves (Eq. 16)", |r| of_mode(r, Mode::Oppose)),
    entry("sel_exp_only", "the SEL weight sgn(w) E from its leaves (Eq. 12)", |r| of_mode(r, Mode::ExpOnly)),
    entry("sel_damped", "the damped SEL weight from its leaf (Eq. 17)", |r| of_mode(r, Mode::Damped)),
    entry("sel_sinh", "the SEL weight e_w sinh(beta m w) + L from its leaves", |r| of_mode(r, Mode::Sinh)),
    entry("sel_sinh_only", "the SEL weight e_w sinh(beta m w) from its leaves", |r| of_mode(r, Mode::SinhOnly)),
    Entry {
        sizes: RESIDUAL_SIZES,
        ..entry("sel_offset_residual", "sel_mismatch with an offset n and a residual A B", |r| {
            weight(r, &Sel::new(r.number("beta")).with_offset_and_residual(r.size("rank")))
        })
    },
];

fn of_mode(r: &Resolved, mode: Mode) -> Result<Function> {
    weight(r, &Sel::new(r.number("beta")).with_mode(mode))
}

fn weight(r: &Resolved, sel: &Sel) -> Result<Function> {
    let dims = [r.size("rows"), r.size("columns")];
    r.check_size("matrix", &dims)?;
    r.check_size("residual", &[dims[0].max(dims[1]), r.size("rank")])?;
    sel.check()?;
    let leaves = sel.leaves(&dims);
    let inputs: Vec<Tensor> =
        leaves.iter().map(|l| Tensor::parameter(&l.name, Shape::new(r.dtype(), &l.dims))).collect();
    let params: Params = inputs.iter().map(|t| (t.name().to_owned(), t.clone())).collect();
    let program = Program::new(r.name(), &inputs, &[("weight", sel.effective(&dims, &params))])?;
    let arguments = vec![Argument::new("leaves", dict(inputs.iter().map(Tensor::name)))];
    Function::new(program, arguments, leaf("weight"))
}
