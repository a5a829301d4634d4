//! Pytrees from the names that JAX gives to a program's inputs: `params['w']`, `state[0]['b']`.

use super::Argument;
use crate::interop::jax_export::Tree;

/// A step from a pytree to one of its children.
#[derive(Clone, Debug, PartialEq)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Leaves by the way to them, with the places of their inputs.
type Leaves<'a> = Vec<(Vec<Step<'a>>, usize)>;

/// The arguments that inputs of these names, in this order, are leaves of. None where the names do not say, or where
/// leaves would be in another order: JAX sorts dicts by key.
pub(super) fn arguments(names: &[&str]) -> Option<Vec<Argument>> {
    let mut all: Vec<(&str, Leaves)> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let (root, path) = name.find('[').map_or((*name, ""), |at| name.split_at(at));
        let path = steps(path)?;
        let last = all.len().wrapping_sub(1);
        match all.iter().position(|(known, _)| *known == root) {
            Some(at) if at == last && !path.is_empty() => all[at].1.push((path, place)),
            None if !root.is_empty() => all.push((root, vec![(path, place)])),
            _ => return None,
        }
    }
    let argument = |(name, leaves): (&str, Leaves)| Some(Argument { name: name.to_owned(), tree: tree(&leaves)? });
    let all: Vec<Argument> = all.into_iter().map(argument).collect::<Option<_>>()?;
    let places: Vec<usize> = all.iter().flat_map(|a| a.tree.leaves()).copied().collect();
    places.iter().copied().eq(0..names.len()).then_some(all)
}

/// `['w'][0]` as steps.
fn steps(mut path: &str) -> Option<Vec<Step<'_>>> {
    let mut all = Vec::new();
    while let Some(rest) = path.strip_prefix('[') {
        let (step, rest) = match rest.strip_prefix('\'') {
            Some(key) => {
                let (key, rest) = key.split_once("']")?;
                (Step::Key(key), rest)
            }
            None => {
                let (index, rest) = rest.split_once(']')?;
                (Step::Index(index.parse().ok()?), rest)
            }
        };
        all.push(step);
        path = rest;
    }
    path.is_empty().then_some(all)
}

/// The pytree with these leaves; numbered children are a tuple.
fn tree(leaves: &[(Vec<Step>, usize)]) -> Option<Tree<usize>> {
    if let [(path, place)] = leaves
        && path.is_empty()
    {
        return Some(Tree::Leaf(*place));
    }
    let mut children: Vec<(Step, Leaves)> = Vec::new();
    for (path, place) in leaves {
        let (first, rest) = path.split_first()?;
        match children.iter_mut().find(|(step, _)| step == first) {
            Some((_, below)) => below.push((rest.to_vec(), *place)),
            None => children.push((first.clone(), vec![(rest.to_vec(), *place)])),
        }
    }
    let (mut named, mut numbered) = (Vec::new(), Vec::new());
    for (step, below) in &children {
        match step {
            Step::Key(key) => named.push((*key, tree(below)?)),
            Step::Index(i) if *i == numbered.len() => numbered.push(tree(below)?),
            Step::Index(_) => return None,
        }
    }
    match (named.is_empty(), numbered.is_empty()) {
        (false, true) => Some(Tree::dict(named)),
        (true, false) => Some(Tree::Tuple(numbered)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_jax_are_pytrees() {
        let names = ["params['a']", "params['b'][0]", "params['b'][1]", "n"];
        let all = arguments(&names).expect("known");
        let expected = Tree::dict([("a", Tree::Leaf(0)), ("b", Tree::tuple([1, 2]))]);
        assert_eq!((all[0].name.as_str(), &all[0].tree), ("params", &expected));
        assert_eq!((all[1].name.as_str(), &all[1].tree), ("n", &Tree::Leaf(3)));
        let flat = arguments(&["W.0", "b.0"]).expect("leaves");
        assert!(flat.iter().all(|a| matches!(a.tree, Tree::Leaf(_))));
        for odd in [
            &["p['b']", "p['a']"][..],
            &["p['a']", "x", "p['b']"],
            &["p['a']", "p[0]"],
            &["p[1]"],
            &["p['a'", "x"],
            &["p['a'].b"],
            &["x", "x"],
            &["p['a']", "p['a']['b']"],
            &["['a']"],
        ] {
            assert!(arguments(odd).is_none(), "{odd:?}");
        }
    }
}
