//! Pytrees: how JAX nests the arguments and results of a function.

use crate::graph::Tensor;
use crate::nn::siren::Params;

/// A pytree with a `T` at each leaf; without one, only the structure.
///
/// Leaves are in JAX's order: children one after the other, those of a dict by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree<T = ()> {
    /// An array.
    Leaf(T),
    /// `None`, which has no leaf.
    None,
    /// A tuple.
    Tuple(Vec<Tree<T>>),
    /// A list.
    List(Vec<Tree<T>>),
    /// A dict with string keys, sorted: made by [`Tree::dict`].
    Dict(Vec<(String, Tree<T>)>),
    /// A registered class: its name and data as registered with `jax.export`, and its children.
    Custom(String, Vec<u8>, Vec<Tree<T>>),
}

impl<T> Tree<T> {
    /// A dict, its keys sorted as JAX sorts them. Of equal keys the last counts.
    pub fn dict<K: Into<String>>(entries: impl IntoIterator<Item = (K, Tree<T>)>) -> Self {
        let sorted: std::collections::BTreeMap<String, Tree<T>> =
            entries.into_iter().map(|(key, tree)| (key.into(), tree)).collect();
        Tree::Dict(sorted.into_iter().collect())
    }

    /// Positional arguments without keyword arguments, as `jax.export` has them: `((argument, ...), {})`.
    pub fn arguments(arguments: Vec<Tree<T>>) -> Self {
        Tree::Tuple(vec![Tree::Tuple(arguments), Tree::Dict(Vec::new())])
    }

    /// A tuple of leaves.
    pub fn tuple(leaves: impl IntoIterator<Item = T>) -> Self {
        Tree::Tuple(leaves.into_iter().map(Tree::Leaf).collect())
    }

    /// The leaves in JAX's order.
    pub fn leaves(&self) -> Vec<&T> {
        let mut all = Vec::new();
        self.visit(&mut String::new(), &mut |_, leaf| all.push(leaf));
        all
    }

    /// The structure alone.
    pub fn structure(&self) -> Tree {
        self.map(&mut |_| ())
    }

    /// The same with `f` of each leaf.
    pub fn map<U>(&self, f: &mut dyn FnMut(&T) -> U) -> Tree<U> {
        match self.try_map::<U, std::convert::Infallible>(&mut |leaf| Ok(f(leaf))) {
            Ok(tree) => tree,
            Err(never) => match never {},
        }
    }

    /// [`Tree::map`] by what may fail.
    pub fn try_map<U, E>(&self, f: &mut dyn FnMut(&T) -> Result<U, E>) -> Result<Tree<U>, E> {
        let mut many = |children: &[Tree<T>]| children.iter().map(|c| c.try_map(f)).collect::<Result<Vec<_>, E>>();
        Ok(match self {
            Tree::Leaf(leaf) => Tree::Leaf(f(leaf)?),
            Tree::None => Tree::None,
            Tree::Tuple(children) => Tree::Tuple(many(children)?),
            Tree::List(children) => Tree::List(many(children)?),
            Tree::Dict(entries) => {
                let entry = |(key, tree): &(String, Tree<T>)| Ok((key.clone(), tree.try_map(f)?));
                Tree::Dict(entries.iter().map(entry).collect::<Result<_, E>>()?)
            }
            Tree::Custom(name, data, children) => Tree::Custom(name.clone(), data.clone(), many(children)?),
        })
    }

    /// What leads to each leaf, in Python's words, below `root`: `result[0]['w']`.
    pub fn paths(&self, root: &str) -> Vec<String> {
        let mut all = Vec::new();
        self.visit(&mut root.to_owned(), &mut |path, _| all.push(path.to_owned()));
        all
    }

    /// [`Tree::paths`] of the arguments of a function, whose tree is `((argument, ...), {keyword: argument})`:
    /// `args[0]['w']`, `kwargs['x']`.
    pub fn argument_paths(&self) -> Vec<String> {
        match self {
            Tree::Tuple(pair) if pair.len() == 2 => [pair[0].paths("args"), pair[1].paths("kwargs")].concat(),
            other => other.paths("args"),
        }
    }

    /// Calls `f` with path and value of each leaf.
    fn visit<'a>(&'a self, path: &mut String, f: &mut dyn FnMut(&str, &'a T)) {
        let mut below = |part: &str, child: &'a Tree<T>, f: &mut dyn FnMut(&str, &'a T)| {
            let length = path.len();
            path.push_str(part);
            child.visit(path, f);
            path.truncate(length);
        };
        match self {
            Tree::Leaf(leaf) => f(path, leaf),
            Tree::None => {}
            Tree::Tuple(children) | Tree::List(children) | Tree::Custom(_, _, children) => {
                children.iter().enumerate().for_each(|(i, child)| below(&format!("[{i}]"), child, f));
            }
            Tree::Dict(entries) => entries.iter().for_each(|(key, child)| below(&format!("['{key}']"), child, f)),
        }
    }
}

/// A flat dict by our names, `{"W.0": ..., "b.0": ...}`: what `safetensors.numpy.load_file` gives, so that a file of
/// weights is an argument as it is.
impl From<&Params> for Tree<Tensor> {
    fn from(params: &Params) -> Self {
        Tree::dict(params.iter().map(|(name, tensor)| (name.as_str(), Tree::Leaf(tensor.clone()))))
    }
}

impl From<&Tensor> for Tree<Tensor> {
    fn from(tensor: &Tensor) -> Self {
        Tree::Leaf(tensor.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_in_jax_order() {
        let params = Tree::dict([
            ("w.10", Tree::Leaf(2)),
            ("b", Tree::List(vec![Tree::Leaf(0), Tree::None])),
            ("w", Tree::Leaf(1)),
        ]);
        let tree = Tree::arguments(vec![params, Tree::None, Tree::tuple([3, 4])]);
        assert_eq!(tree.leaves(), [&0, &1, &2, &3, &4]);
        let paths = ["args[0]['b'][0]", "args[0]['w']", "args[0]['w.10']", "args[2][0]", "args[2][1]"];
        assert_eq!(tree.argument_paths(), paths);
        assert_eq!(tree.structure().leaves().len(), 5);
        assert_eq!(Tree::Leaf(7).paths("result"), ["result"]);
        let custom = Tree::Tuple(vec![Tree::Custom("my.Class".into(), vec![1], vec![Tree::Leaf(1)])]);
        assert_eq!(custom.paths("r"), ["r[0][0]"]);
    }
}
