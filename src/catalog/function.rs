//! A program as a function of JAX: its inputs and results as pytrees.

use std::fmt;

use crate::error::{Error, Result};
use crate::graph::{Imported, Program, Shape, Tensor};
use crate::interop::jax_export::{Exported, Options, Tree, export, export_graph};
use crate::interop::program::Foreign;

/// A program with the pytrees of its arguments and results.
#[derive(Clone, Debug)]
pub struct Function {
    /// Inputs and results by name, state donated where there is some.
    pub program: Program,
    /// In order; the leaves of all together are the inputs, each once.
    pub arguments: Vec<Argument>,
    /// Its leaves are places among the program's results, each once.
    pub results: Tree<usize>,
}

/// An argument of a function.
#[derive(Clone, Debug)]
pub struct Argument<T = usize> {
    /// What it is called here: JAX passes it by its place.
    pub name: String,
    /// Its leaves are places among the program's inputs.
    pub tree: Tree<T>,
}

impl Argument<String> {
    /// Its leaves are names of inputs.
    pub(super) fn new(name: &str, tree: Tree<String>) -> Self {
        Argument { name: name.into(), tree }
    }
}

/// An input or result of this name.
pub(super) fn leaf(name: &str) -> Tree<String> {
    Tree::Leaf(name.to_owned())
}

/// A dict of inputs or results by their names.
pub(super) fn dict<'a>(names: impl IntoIterator<Item = &'a str>) -> Tree<String> {
    Tree::dict(names.into_iter().map(|name| (name, leaf(name))))
}

impl Function {
    /// A program and the pytrees by its names.
    ///
    /// **Errors** when the leaves are not its inputs and results, each once.
    pub(super) fn new(program: Program, arguments: Vec<Argument<String>>, results: Tree<String>) -> Result<Self> {
        let places = |ports: &[(String, Shape)], tree: &Tree<String>| {
            tree.try_map(&mut |name: &String| {
                let place = ports.iter().position(|(known, _)| known == name);
                place.ok_or_else(|| Error::tensor(name, format!("is not in program `{}`", program.name)))
            })
        };
        let one = |a: &Argument<String>| Ok(Argument { name: a.name.clone(), tree: places(&program.inputs, &a.tree)? });
        let arguments = arguments.iter().map(one).collect::<Result<_>>()?;
        let results = places(&program.outputs, &results)?;
        Function { program, arguments, results }.checked()
    }

    /// A program of others: the pytrees of a `jax.export` file; else of the names of inputs, where they are as JAX writes
    /// them (`params['w']`), and a tuple of the results.
    ///
    /// **Errors** as [`Foreign::program`].
    pub fn of_foreign(foreign: &Foreign) -> Result<Self> {
        let program = foreign.program()?;
        let flat = |count: usize| (0..count).map(Tree::Leaf);
        let exported = foreign.exported.as_deref();
        let arguments = exported.and_then(of_exported).unwrap_or_else(|| {
            let names: Vec<&str> = program.inputs.iter().map(|(name, _)| name.as_str()).collect();
            let each = || names.iter().zip(flat(names.len())).map(|(n, tree)| Argument { name: n.to_string(), tree });
            super::names::arguments(&names).unwrap_or_else(|| each().collect())
        });
        let results = match exported {
            Some(exported) => numbered(&exported.out_tree, &mut 0),
            None if program.outputs.len() == 1 => Tree::Leaf(0),
            None => Tree::Tuple(flat(program.outputs.len()).collect()),
        };
        Function { program, arguments, results }.checked()
    }

    /// **Errors** when the leaves are not the inputs and results, each once.
    fn checked(self) -> Result<Self> {
        let all = |mut places: Vec<usize>, count: usize, what: &str| {
            places.sort_unstable();
            if places.iter().copied().eq(0..count) {
                return Ok(());
            }
            Err(Error::Call { program: self.program.name.clone(), reason: format!("its pytrees are not its {what}") })
        };
        let leaves = self.arguments.iter().flat_map(|a| a.tree.leaves()).copied().collect();
        all(leaves, self.program.inputs.len(), "inputs")?;
        all(self.results.leaves().into_iter().copied().collect(), self.program.outputs.len(), "results")?;
        Ok(self)
    }

    /// As a function of `jax.export`, with as many derivatives as `options` say. Nothing is donated.
    ///
    /// **Errors** as [`export`], and where derivatives are asked for when the graph does not know all of the program
    /// or an operation has no reverse rule.
    pub fn exported(&self, options: &Options) -> Result<Exported> {
        let places: Vec<usize> = self.arguments.iter().flat_map(|a| a.tree.leaves()).copied().collect();
        let in_order = places.is_sorted() && self.results.leaves().is_sorted();
        if options.orders == 0 && in_order {
            let in_tree = Tree::arguments(self.arguments.iter().map(|a| a.tree.structure()).collect());
            return export(&self.program, None, in_tree, self.results.structure(), options);
        }
        let graph = Imported::from_hlo_text(&self.program.text)?;
        let missing = || Error::Call { program: self.program.name.clone(), reason: "lost an input or result".into() };
        let tensor = |tree: &Tree<usize>, all: &[Tensor]| {
            tree.try_map(&mut |i: &usize| all.get(*i).cloned().ok_or_else(missing))
        };
        let arguments = self.arguments.iter().map(|a| tensor(&a.tree, &graph.inputs)).collect::<Result<Vec<_>>>()?;
        let outputs: Vec<Tensor> = graph.outputs.into_iter().map(|(_, t)| t).collect();
        export_graph(&self.program.name, &arguments, &tensor(&self.results, &outputs)?, options)
    }

    /// Each input's place in the program, path in its pytree, and shape, in the order of the pytrees.
    pub fn inputs(&self) -> Vec<(usize, String, &Shape)> {
        let below = self.arguments.iter().map(|a| Tree::paths(&a.tree, &a.name).into_iter().zip(a.tree.leaves()));
        below.flatten().map(|(path, i)| (*i, path, &self.program.inputs[*i].1)).collect()
    }

    /// The same of the results.
    pub fn outputs(&self) -> Vec<(usize, String, &Shape)> {
        let below = self.results.paths("result").into_iter().zip(self.results.leaves());
        below.map(|(path, i)| (*i, path, &self.program.outputs[*i].1)).collect()
    }
}

/// `siren_forward(params {W.0, W.1, ... 8 more}, x float32[8,2]) -> y float32[8,1]`.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|a| match &a.tree {
                Tree::Leaf(i) => format!("{} {}", a.name, self.program.inputs[*i].1),
                tree => format!("{} {}", a.name, outline(tree, &|i| port(&self.program.inputs[i]))),
            })
            .collect();
        let results = match &self.results {
            Tree::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.result(part)).collect();
                format!("({})", parts.join(", "))
            }
            whole => self.result(whole),
        };
        write!(f, "{}({}) -> {results}", self.program.name, arguments.join(", "))
    }
}

impl Function {
    /// A result in a few words: where it is what an argument is, by the argument's name.
    fn result(&self, tree: &Tree<usize>) -> String {
        let named = |tree: &Tree<usize>, ports: &[(String, Shape)]| tree.map(&mut |i| ports[*i].0.clone());
        let same = |a: &&Argument| named(&a.tree, &self.program.inputs) == named(tree, &self.program.outputs);
        match self.arguments.iter().find(same).filter(|a| !matches!(a.tree, Tree::Leaf(_))) {
            Some(argument) => argument.name.clone(),
            None => outline(tree, &|i| port(&self.program.outputs[i])),
        }
    }
}

fn port((name, shape): &(String, Shape)) -> String {
    format!("{name} {shape}")
}

/// A pytree in a few words: long dicts by their first keys.
fn outline(tree: &Tree<usize>, port: &dyn Fn(usize) -> String) -> String {
    let many = |children: &[Tree<usize>]| children.iter().map(|c| outline(c, port)).collect::<Vec<_>>().join(", ");
    match tree {
        Tree::Leaf(i) => port(*i),
        Tree::None => "None".into(),
        Tree::Tuple(children) => format!("({})", many(children)),
        Tree::List(children) | Tree::Custom(_, _, children) => format!("[{}]", many(children)),
        Tree::Dict(entries) => {
            let keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
            match keys[..] {
                [first, second, _, _, _, _, ..] => format!("{{{first}, {second}, ... {} more}}", keys.len() - 2),
                _ => format!("{{{}}}", keys.join(", ")),
            }
        }
    }
}

/// The arguments of a `jax.export` file; None where it has keyword arguments, which a function here has not.
fn of_exported(exported: &Exported) -> Option<Vec<Argument>> {
    let Tree::Tuple(pair) = &exported.in_tree else { return None };
    let [Tree::Tuple(arguments), keywords] = &pair[..] else { return None };
    let mut next = 0;
    let one = |(i, tree)| Argument { name: format!("args[{i}]"), tree: numbered(tree, &mut next) };
    keywords.leaves().is_empty().then(|| arguments.iter().enumerate().map(one).collect())
}

/// The tree with its leaves numbered on from `next`.
fn numbered(tree: &Tree, next: &mut usize) -> Tree<usize> {
    tree.map(&mut |()| {
        *next += 1;
        *next - 1
    })
}
