//! From a program or a graph.

use super::{Aval, DisabledCheck, Exported, Kind, Sharding, Tree};
use crate::error::{Error, Result};
use crate::graph::{Program, Shape, Tensor};
use crate::interop::program::without_attribute;
use crate::runtime::translate::{hlo_text_to_proto, proto_to_artifact};
use crate::transform;

/// What a file is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The device that JAX takes it for. With `any_platform` it calls it on any other as well.
    pub platform: String,
    /// Whether it may be called on every device: programs of this toolkit may, unless they make custom calls.
    pub any_platform: bool,
    /// How often the function can be differentiated in JAX: each order holds another program.
    pub orders: usize,
    /// See [`Exported::serialization_version`]. 2 works in all releases from 0.4.35 to 0.12.0.1; 12 is that of 0.12, which later
    /// ones may ask for.
    pub serialization_version: u16,
    /// Version of StableHLO that the module is written for.
    pub stablehlo_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            platform: "cpu".into(),
            any_platform: true,
            orders: 1,
            serialization_version: 2,
            stablehlo_version: "1.0.0".into(),
        }
    }
}

/// The calling convention that all releases know; 10 differs only for programs on several devices.
const CALLING_CONVENTION: u16 = 9;

/// `program` as a function of JAX whose arguments and results have these pytrees, leaf by leaf in the program's order.
/// `in_tree` is `((argument, ...), {})`: see [`Tree::arguments`]. Donations are left out.
///
/// `vjp`, where there is one, is the program that `jax.grad` goes through. It takes the inputs and then a cotangent of
/// each result of floats, and gives a cotangent of each input, `bool` zeros in the place of those that are not of floats.
///
/// **Errors** when the numbers of leaves do not agree, when `vjp` does not take and give what it should, and with XLA's
/// message when the program has operations that this version of StableHLO lacks.
pub fn export(
    program: &Program,
    vjp: Option<&Program>,
    in_tree: Tree,
    out_tree: Tree,
    options: &Options,
) -> Result<Exported> {
    let avals = |ports: &[(String, Shape)]| -> Vec<Aval> { ports.iter().map(|(_, shape)| Aval::of(shape)).collect() };
    let (in_avals, out_avals) = (avals(&program.inputs), avals(&program.outputs));
    let derivative = vjp.map(|vjp| {
        let (avals, results, kept) = derivative_signature(&in_avals, &out_avals);
        let trees = flat_trees(avals.len(), results.len());
        one(vjp, trees, (avals, results), kept, options)
    });
    let kept = (0..in_avals.len()).collect();
    let mut exported = one(program, (in_tree, out_tree), (in_avals, out_avals), kept, options)?;
    exported.vjp = derivative.transpose()?.map(Box::new);
    exported.check()?;
    Ok(exported)
}

/// The graph from `arguments`, whose leaves are parameters, to `results` as a function of JAX, with as many derivatives as
/// `options` say.
///
/// **Errors** as [`export`]; when an operation has no reverse rule (`orders` 0 needs none); when the results reach a
/// parameter that is not among the arguments. **Panics** when an argument is not a parameter or is given twice.
///
/// ```
/// use sinexp::{array::DType, graph::{Shape, Tensor}};
/// use sinexp::interop::jax_export::{Exported, Options, Tree, export_graph};
/// let w = Tensor::parameter("w", Shape::new(DType::F32, &[3]));
/// let x = Tensor::parameter("x", Shape::new(DType::F32, &[3]));
/// let params = Tree::dict([("w", Tree::Leaf(w.clone()))]);
/// let product = (&w * &x).sum_all();
/// // In JAX: jax.export.deserialize(file).call({"w": w}, x), and jax.grad of it.
/// let exported = export_graph("product", &[params, Tree::Leaf(x)], &Tree::Leaf(product), &Options::default())?;
/// let file = exported.to_bytes()?;
/// assert_eq!(Exported::read(&file)?.in_tree.argument_paths(), ["args[0]['w']", "args[1]"]);
/// # Ok::<(), sinexp::error::Error>(())
/// ```
#[track_caller]
pub fn export_graph(
    name: &str,
    arguments: &[Tree<Tensor>],
    results: &Tree<Tensor>,
    options: &Options,
) -> Result<Exported> {
    let leaf = |t: &&Tensor| (Aval::of(t.shape()), Some((*t).clone()));
    let inputs: Vec<Input> = arguments.iter().flat_map(Tree::leaves).collect::<Vec<_>>().iter().map(leaf).collect();
    let outputs: Vec<Output> = results.leaves().into_iter().map(|t| (Aval::of(t.shape()), t.clone())).collect();
    let in_tree = Tree::arguments(arguments.iter().map(Tree::structure).collect());
    let exported = graph(name, (in_tree, results.structure()), &inputs, &outputs, options.orders, options)?;
    exported.check()?;
    Ok(exported)
}

/// An argument; those of `float0` are not passed.
type Input = (Aval, Option<Tensor>);
type Output = (Aval, Tensor);

fn graph(
    name: &str,
    trees: (Tree, Tree),
    inputs: &[Input],
    outputs: &[Output],
    orders: usize,
    options: &Options,
) -> Result<Exported> {
    let parameters: Vec<Tensor> = inputs.iter().filter_map(|(_, t)| t.clone()).collect();
    let names = trees.1.paths("result");
    let named: Vec<(&str, Tensor)> =
        names.iter().zip(outputs).map(|(name, (_, t))| (name.as_str(), t.clone())).collect();
    let program = Program::new(name, &parameters, &named)?;
    let kept = inputs.iter().enumerate().filter(|(_, (_, t))| t.is_some()).map(|(i, _)| i).collect();
    let avals = (inputs.iter().map(|i| i.0.clone()).collect(), outputs.iter().map(|o| o.0.clone()).collect());
    let mut exported = one(&program, trees, avals, kept, options)?;
    if orders > 0 {
        let (inputs, outputs) = derivative(inputs, outputs)?;
        let trees = flat_trees(inputs.len(), outputs.len());
        let vjp = graph(&format!("{name}_vjp"), trees, &inputs, &outputs, orders - 1, options)?;
        exported.vjp = Some(Box::new(vjp));
    }
    Ok(exported)
}

/// Arguments and results of the vector-Jacobian product.
fn derivative(inputs: &[Input], outputs: &[Output]) -> Result<(Vec<Input>, Vec<Output>)> {
    let is_float = |aval: &Aval| aval.tangent().kind != Kind::FLOAT0;
    let mut all = inputs.to_vec();
    let (mut floats, mut cotangents) = (Vec::new(), Vec::new());
    for (i, (aval, y)) in outputs.iter().enumerate() {
        let cotangent = is_float(aval).then(|| Tensor::parameter(&format!("cotangent.{i}"), y.shape().clone()));
        if let Some(cotangent) = &cotangent {
            floats.push(y.clone());
            cotangents.push(cotangent.clone());
        }
        all.push((aval.tangent(), cotangent));
    }
    let wanted = inputs.iter().filter(|(aval, _)| is_float(aval));
    let wrt: Vec<Tensor> = wanted.filter_map(|(_, t)| t.clone()).collect();
    let mut found = transform::vjp(&floats, &cotangents, &wrt)?.into_iter().zip(&wrt);
    let mut results = Vec::new();
    for (aval, _) in inputs {
        let next = if is_float(aval) { found.next() } else { None };
        let value = match next {
            Some((Some(cotangent), _)) => cotangent,
            Some((None, t)) => t.zeros_like(),
            None => {
                let shape = aval.tangent().shape()?;
                Tensor::full(shape.dtype, &shape.dims, 0.0)
            }
        };
        results.push((aval.tangent(), value));
    }
    Ok((all, results))
}

/// Shapes of the vector-Jacobian product's arguments and results, and which of the arguments are passed.
fn derivative_signature(inputs: &[Aval], outputs: &[Aval]) -> (Vec<Aval>, Vec<Aval>, Vec<usize>) {
    let arguments: Vec<Aval> = inputs.iter().cloned().chain(outputs.iter().map(Aval::tangent)).collect();
    let kept = (0..arguments.len()).filter(|i| *i < inputs.len() || arguments[*i].kind != Kind::FLOAT0).collect();
    (arguments, inputs.iter().map(Aval::tangent).collect(), kept)
}

fn flat_trees(inputs: usize, outputs: usize) -> (Tree, Tree) {
    let leaves = |count| vec![Tree::Leaf(()); count];
    (Tree::arguments(leaves(inputs)), Tree::Tuple(leaves(outputs)))
}

/// One program, without its derivative.
fn one(
    program: &Program,
    (in_tree, out_tree): (Tree, Tree),
    (in_avals, out_avals): (Vec<Aval>, Vec<Aval>),
    kept: Vec<usize>,
    options: &Options,
) -> Result<Exported> {
    let fits = |what: &str, ports: &[(String, Shape)], avals: Vec<&Aval>| -> Result<()> {
        let shapes: Vec<Shape> = avals.into_iter().map(Aval::shape).collect::<Result<_>>()?;
        if ports.len() != shapes.len() || ports.iter().zip(&shapes).any(|((_, a), b)| a != b) {
            let found: Vec<String> = ports.iter().map(|(_, shape)| shape.to_string()).collect();
            let wanted: Vec<String> = shapes.iter().map(Shape::to_string).collect();
            let reason = format!("its {what} are {}, expected {}", found.join(", "), wanted.join(", "));
            return Err(Error::Call { program: program.name.clone(), reason });
        }
        Ok(())
    };
    fits("inputs", &program.inputs, kept.iter().map(|i| &in_avals[*i]).collect())?;
    fits("results", &program.outputs, out_avals.iter().collect())?;
    let proto = hlo_text_to_proto(&without_donation(program))?;
    let module = proto_to_artifact(&proto, &options.stablehlo_version)?;
    Ok(Exported {
        name: program.name.clone(),
        in_tree,
        in_shardings: vec![Sharding::Unspecified; in_avals.len()],
        in_avals,
        out_tree,
        out_shardings: vec![Sharding::Unspecified; out_avals.len()],
        out_avals,
        platforms: vec![options.platform.clone()],
        devices: 1,
        ordered_effects: Vec::new(),
        unordered_effects: Vec::new(),
        disabled_checks: if options.any_platform { vec![DisabledCheck::Platform] } else { Vec::new() },
        module,
        calling_convention: CALLING_CONVENTION,
        kept,
        uses_global_constants: false,
        vjp: None,
        serialization_version: options.serialization_version,
        jax_version: None,
    })
}

/// The HLO text without `input_output_alias={ ... }` in its first line: whoever calls the function may use its arguments again.
fn without_donation(program: &Program) -> String {
    match program.text.split_once('\n') {
        Some((header, body)) => format!("{}\n{body}", without_attribute(header, "input_output_alias")),
        None => program.text.clone(),
    }
}
