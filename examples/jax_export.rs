//! Writes functions of this toolkit as `.jax_export` files, for `python/check_jax_export.py` to call and differentiate.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use sinexp::array::DType;
use sinexp::cli::{self, say};
use sinexp::error::Result;
use sinexp::files::{ensure_writable_folder, write_bytes};
use sinexp::graph::{Shape, Tensor};
use sinexp::interop::jax_export::{Exported, Options, Tree, export, export_graph};
use sinexp::interop::program::Foreign;
use sinexp::nn::language_model::LanguageModel;
use sinexp::nn::parameterization::{Parameterization, Standard};
use sinexp::nn::sel::Sel;
use sinexp::nn::siren::{Params, Siren};
use sinexp::nn::transformer::Transformer;

/// Writes each function into FOLDER/NAME.jax_export.
#[derive(Parser, Debug)]
#[command(name = "jax_export")]
struct Arguments {
    /// Folder to write into; made if need be
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Number of the serialisation that the files name: 2 for all releases of JAX up to 0.12, 12 for later ones
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    serialization_version: u16,
}

fn main() -> ExitCode {
    cli::run(|arguments: Arguments| {
        ensure_writable_folder(&arguments.out)?;
        let options = Options { serialization_version: arguments.serialization_version, ..Options::default() };
        for exported in functions(&options)? {
            let bytes = exported.to_bytes()?;
            write_bytes(arguments.out.join(format!("{}.jax_export", exported.name)), &bytes)?;
            say(&format!("{}: {} bytes", exported.name, bytes.len()));
        }
        Ok(())
    })
}

fn functions(options: &Options) -> Result<Vec<Exported>> {
    let transformer = Transformer { heads: 4, ..Transformer::new(256, 64, 2) };
    let residual = Sel::new(7.5).with_offset_and_residual(4);
    Ok(vec![
        siren(options)?,
        sel("sel", &Sel::new(7.5), options)?,
        sel("sel_residual", &residual, options)?,
        pair(options)?,
        loss("loss", &LanguageModel::new(transformer.clone(), Standard), options)?,
        loss("loss_sel", &LanguageModel::new(transformer, residual), options)?,
        step(options)?,
    ])
}

fn parameter(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(dtype, dims))
}

/// f(params, x f32[8, 2]) -> f32[8, 1], width 16, two hidden layers; twice differentiable.
fn siren(options: &Options) -> Result<Exported> {
    let siren = Siren::new(2, 16, 2, 1);
    let params = siren.inputs(DType::F32);
    let x = parameter("x", DType::F32, &[8, 2]);
    let y = siren.apply(&params, &x);
    let options = Options { orders: 2, ..options.clone() };
    export_graph("siren", &[Tree::from(&params), Tree::Leaf(x)], &Tree::Leaf(y), &options)
}

/// f(leaves) -> the weight f32[12, 8].
fn sel(name: &str, sel: &Sel, options: &Options) -> Result<Exported> {
    let dims = [12, 8];
    let input =
        |leaf: &sinexp::nn::parameterization::Leaf| (leaf.name.clone(), parameter(&leaf.name, DType::F32, &leaf.dims));
    let leaves: Params = sel.leaves(&dims).iter().map(input).collect();
    export_graph(name, &[Tree::from(&leaves)], &Tree::Leaf(sel.effective(&dims, &leaves)), options)
}

/// f({"a": f32[3], "b": (f32[], bf16[3])}, n i32[]) -> {"count": n + 1, "y": (n a b0, sum of exp(a b1))}.
fn pair(options: &Options) -> Result<Exported> {
    let (a, n) = (parameter("a", DType::F32, &[3]), parameter("n", DType::I32, &[]));
    let (b0, b1) = (parameter("b0", DType::F32, &[]), parameter("b1", DType::BF16, &[3]));
    let params = Tree::dict([("b", Tree::tuple([b0.clone(), b1.clone()])), ("a", Tree::Leaf(a.clone()))]);
    let product = &(&n.convert(DType::F32) * &a) * &b0;
    let sum = (&a * &b1.convert(DType::F32)).exp().sum_all();
    let count = Tree::Leaf(&n + &n.ones_like());
    let results = Tree::dict([("y", Tree::tuple([product, sum])), ("count", count)]);
    export_graph("pair", &[params, Tree::Leaf(n)], &results, options)
}

/// f(params with blocks stacked, tokens i32[2, 9]) -> mean cross-entropy.
fn loss(name: &str, model: &LanguageModel, options: &Options) -> Result<Exported> {
    let input = |p: &sinexp::nn::language_model::Parameter| (p.name.clone(), parameter(&p.name, DType::F32, &p.dims));
    let params: Params = model.parameters().iter().map(input).collect();
    let tokens = parameter("tokens", DType::I32, &[2, 9]);
    let loss = model.transformer.loss(&model.effective(&params), &tokens, DType::F32);
    export_graph(name, &[Tree::from(&params), Tree::Leaf(tokens)], &Tree::Leaf(loss), options)
}

/// The training step of hlo/, which donates its state, with as many arguments as it has inputs.
fn step(options: &Options) -> Result<Exported> {
    let program = Foreign::open("hlo/regression_step.hlo.txt")?.program()?;
    let in_tree = Tree::arguments(vec![Tree::Leaf(()); program.inputs.len()]);
    let out_tree = Tree::Tuple(vec![Tree::Leaf(()); program.outputs.len()]);
    export(&program, None, in_tree, out_tree, options)
}
