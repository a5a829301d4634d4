//! Files of `jax.export`: functions that JAX writes, reads, calls and differentiates.
//!
//! A file is a flat buffer with the pytrees and shapes of arguments and results, a portable artifact of StableHLO, and in it
//! the same again for the function's vector-Jacobian product, by which `jax.grad` goes through a call.
//!
//! | file | does |
//! | --- | --- |
//! | `tree.rs` | pytrees |
//! | `aval.rs` | element types and shapes |
//! | `flat.rs`, `read.rs` | reads a file, of any release since the first with this format |
//! | `write.rs` | writes one |
//! | `export.rs` | makes one from a program or a graph |
//!
//! ```
//! use sinexp::array::DType;
//! use sinexp::graph::{Shape, Tensor};
//! use sinexp::interop::jax_export::{Exported, Options, Tree, export_graph};
//! use sinexp::nn::siren::Siren;
//! let siren = Siren::new(2, 8, 3, 1);
//! let params = siren.inputs(DType::F32);
//! let x = Tensor::parameter("x", Shape::new(DType::F32, &[4, 2]));
//! let arguments = [Tree::from(&params), Tree::from(&x)];
//! let exported = export_graph("siren", &arguments, &Tree::from(&siren.apply(&params, &x)), &Options::default())?;
//! // In JAX: jax.export.deserialize(file).call(load_file("siren.safetensors"), x), and jax.grad of it.
//! let read = Exported::read(&exported.to_bytes()?)?;
//! assert_eq!(read.in_tree.argument_paths()[0], "args[0]['W.0']");
//! assert_eq!(read.vjp.unwrap().out_avals, read.in_avals); // a cotangent of each argument
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod aval;
mod export;
mod flat;
mod read;
mod tree;
mod write;

pub use self::aval::{Aval, Dim, Kind};
pub use self::export::{Options, export, export_graph};
pub use self::tree::Tree;
use crate::error::{Error, Result};

/// Vector-Jacobian products within each other that are read or written: derivatives of that order.
const MOST_ORDERS: usize = 16;

/// How an argument or result is laid over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharding {
    /// Nothing is said: whole, on the device of the call.
    Unspecified,
    /// Whole on every device.
    Replicated,
    /// Over several devices, or in a form that is not known here.
    Split,
}

/// A function of `jax.export`: what is in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The function's name.
    pub name: String,
    /// The arguments: `((argument, ...), {keyword: argument})`.
    pub in_tree: Tree,
    /// Shape of each of its leaves.
    pub in_avals: Vec<Aval>,
    /// One for each that the module takes, or for each leaf, as the file has it.
    pub in_shardings: Vec<Sharding>,
    /// The results.
    pub out_tree: Tree,
    /// Shape of each of its leaves.
    pub out_avals: Vec<Aval>,
    /// One for each.
    pub out_shardings: Vec<Sharding>,
    /// Devices that the program is for: `cpu`, `cuda`, `rocm`, `tpu`. Where there are several, the module's first argument
    /// is the index of the one it runs on, `i32[]`.
    pub platforms: Vec<String>,
    /// How many devices a call takes.
    pub devices: u32,
    /// Names of effects that keep their order: the module has a token for each.
    pub ordered_effects: Vec<String>,
    /// Names of the other effects.
    pub unordered_effects: Vec<String>,
    /// What is not checked at a call.
    pub disabled_checks: Vec<DisabledCheck>,
    /// The program: a portable artifact of StableHLO with a public function `main`.
    pub module: Vec<u8>,
    /// JAX's number for the meaning of the module's arguments, 9 or 10.
    pub calling_convention: u16,
    /// Which arguments the module takes, ascending; the others do not matter to the result.
    pub kept: Vec<usize>,
    /// Whether the module has arguments for platform or symbolic dimensions.
    pub uses_global_constants: bool,
    /// The vector-Jacobian product: takes the arguments and then a cotangent of each result, gives one of each argument.
    pub vjp: Option<Box<Exported>>,
    /// JAX's number of the format. Readers up to 0.7.2 take 2 and 3 only; later ones do not look at it yet.
    pub serialization_version: u16,
    /// The release of JAX that wrote it, where it says so.
    pub jax_version: Option<String>,
}

/// A check that JAX leaves out at a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisabledCheck {
    /// That the device is one of `platforms`.
    Platform,
    /// That this custom call is one with a stable meaning.
    CustomCall(String),
    /// Another, by its number in the format.
    Other(u8),
}

impl Exported {
    /// Where this platform's index is, in files for several; none in those for one.
    ///
    /// **Errors** when the file is not for this platform.
    pub fn platform_index(&self, platform: &str) -> Result<Option<usize>> {
        let found = self.platforms.iter().position(|p| p == platform);
        let any = self.disabled_checks.contains(&DisabledCheck::Platform);
        match found {
            Some(index) => Ok((self.platforms.len() > 1).then_some(index)),
            None if any => Ok((self.platforms.len() > 1).then_some(0)),
            None => {
                let known = self.platforms.join(", ");
                let reason = format!("the file is for {known}: export it with platforms=[..., \"{platform}\"]");
                Err(Error::argument("platform", platform, reason))
            }
        }
    }

    /// What a program must not have to run here: refuses, by name, ordered effects, symbolic dimensions, several devices.
    ///
    /// **Errors** name it.
    pub fn check_runnable(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::numeric(format!("function `{}`", self.name), what));
        if let Some(effect) = self.ordered_effects.first() {
            return refuse(format!("has the ordered effect {effect} (a debug print or callback); export it without"));
        }
        if self.devices > 1 {
            return refuse(format!("was exported for {} devices; export it for one", self.devices));
        }
        let mut all = self.names().into_iter().zip(self.in_avals.iter().chain(&self.out_avals));
        let symbolic =
            all.find_map(|(name, aval)| aval.dims.iter().find(|d| matches!(d, Dim::Symbolic(_))).map(|d| (name, d)));
        if let Some((name, dim)) = symbolic {
            return refuse(format!("{name} has the symbolic dimension `{dim}`; export it with fixed shapes"));
        }
        let shardings = self.in_shardings.iter().chain(&self.out_shardings);
        if shardings.into_iter().any(|s| *s == Sharding::Split) {
            return refuse("is laid over several devices; export it for one".into());
        }
        Ok(())
    }

    /// Names of the arguments' leaves, then of the results': `args[0]['w']`, `kwargs['x']`, `result['loss']`.
    fn names(&self) -> Vec<String> {
        [self.in_tree.argument_paths(), self.out_tree.paths("result")].concat()
    }

    /// **Errors** when the parts do not agree with each other.
    fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::numeric(format!("jax.export function `{}`", self.name), what));
        let count = |what: &str, tree: &Tree, avals: &[Aval]| match (tree.leaves().len(), avals.len()) {
            (a, b) if a == b => Ok(()),
            (a, b) => fail(format!("its {what} have {a} leaves and {b} shapes")),
        };
        count("arguments", &self.in_tree, &self.in_avals)?;
        count("results", &self.out_tree, &self.out_avals)?;
        if !self.kept.is_sorted_by(|a, b| a < b) || self.kept.last().is_some_and(|last| *last >= self.in_avals.len()) {
            return fail(format!("it keeps arguments {:?} of {}", self.kept, self.in_avals.len()));
        }
        match &self.vjp {
            Some(vjp) => {
                vjp.check()?;
                let (inputs, results) = (self.in_avals.len(), self.out_avals.len());
                if vjp.in_avals.len() != inputs + results || vjp.out_avals.len() != inputs {
                    return fail(format!("its derivative takes {} arrays", vjp.in_avals.len()));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }
}
