//! Arrays by name from `.safetensors` and `.npz` files, and which of a program's inputs they are.
//!
//! A pytree's leaf has many spellings: `params['Dense_0']['kernel']` in an HLO parameter, `params/Dense_0/kernel` and
//! `params.Dense_0.kernel` in files. [`plain_name`] makes them one.

use std::collections::BTreeMap;
use std::path::Path;

use super::{npz, safetensors};
use crate::array::Array;
use crate::error::{Error, Result};

pub use super::safetensors::Tensors;
pub use crate::nn::layer_names::plain_name;

/// Reads every array of a file, by its extension; `.npz` files have no metadata.
///
/// **Errors** when it is neither `.safetensors` nor `.npz`, or as [`safetensors::read`] and [`npz::read`].
pub fn read(path: impl AsRef<Path>) -> Result<Tensors> {
    let path = path.as_ref();
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz") => Ok(Tensors { tensors: npz::read(path)?, metadata: BTreeMap::new() }),
        Some("safetensors") => safetensors::read(path),
        _ => Err(Error::file(path, "expected a .safetensors or .npz file")),
    }
}

/// The same with all punctuation alike, as in `params__Dense_0____kernel__`, which is what HLO text makes of such a path.
fn loose(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|p| !p.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// Whether `tail` is the whole of `name` or its last parts.
fn ends_with(name: &str, tail: &str, separator: char) -> bool {
    name.strip_suffix(tail).is_some_and(|front| front.is_empty() || front.ends_with(separator))
}

/// Which of `names` is meant by `name`, and how surely (0: it is its own name). In turn: the same name; the same leaf of a pytree,
/// however it is written, also in HLO text; the only one that ends in `name` or in which `name` ends, as a whole part of its path.
pub fn find(names: &[String], name: &str) -> Option<(u8, usize)> {
    let only = |fits: &dyn Fn(&str) -> bool| {
        let mut all = (0..names.len()).filter(|i| fits(&names[*i]));
        all.next().filter(|_| all.next().is_none())
    };
    let (plain, vague) = (plain_name(name), loose(name));
    let either = |a: &str, b: &str, separator| ends_with(a, b, separator) || ends_with(b, a, separator);
    let ways: [&dyn Fn(&str) -> bool; 5] = [
        &|n| n == name,
        &|n| plain_name(n) == plain,
        &|n| loose(n) == vague,
        &|n| either(&plain_name(n), &plain, '.'),
        // One part alone says too little: `w` is not `x_w`.
        &|n| vague.contains('_') && loose(n).contains('_') && either(&loose(n), &vague, '_'),
    ];
    (0..).zip(ways).find_map(|(how, fits)| only(fits).map(|i| (how, i)))
}

/// Which of `names` each of a file's arrays is: the number of the name and the array.
///
/// What an array is called is found as [`find`] does; `layers.0.weight` can be `params['layers'][0].weight`. Where none
/// belongs to any, and there are as many arrays as names, and each array's name ends in a number, they are taken in the order of
/// these numbers (numpy.savez's arr_0, arr_1 ...). Arrays that belong to no name are left out.
///
/// **Errors** when none belongs to any.
pub fn assign(names: &[String], arrays: BTreeMap<String, Array>, path: &Path) -> Result<BTreeMap<usize, Array>> {
    let mut found: BTreeMap<usize, (u8, Array)> = BTreeMap::new();
    for (name, array) in &arrays {
        let fit = find(names, name);
        // The better fit stays.
        if let Some((how, i)) = fit.filter(|(how, i)| found.get(i).is_none_or(|(known, _)| how < known)) {
            found.insert(i, (how, array.clone()));
        }
    }
    if found.is_empty() && !arrays.is_empty() {
        // Numbers as such: arr_10 after arr_9.
        let number = |name: &str| name.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse::<u64>().ok());
        if arrays.len() != names.len() || arrays.keys().any(|name| number(name).is_none()) {
            return Err(Error::file(path, format!("has none of the program's inputs: {}", names.join(", "))));
        }
        let mut ordered: Vec<(String, Array)> = arrays.into_iter().collect();
        ordered.sort_by_key(|(name, _)| number(name));
        return Ok(ordered.into_iter().map(|(_, array)| array).enumerate().collect());
    }
    Ok(found.into_iter().map(|(i, (_, array))| (i, array)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(names: &[&str], arrays: &[&str]) -> Result<Vec<(usize, f64)>> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let of = |(i, n): (usize, &&str)| (n.to_string(), Array::scalar(i as f64));
        let found = assign(&names, arrays.iter().enumerate().map(of).collect(), Path::new("x.npz"))?;
        Ok(found.into_iter().map(|(i, a)| (i, a.to_f64_vec()[0])).collect())
    }

    #[test]
    fn one_leaf_in_every_spelling() {
        let spellings =
            ["params['D_0']['kernel']", "params/D_0/kernel", "['params']['D_0']['kernel']", ".params.D_0.kernel"];
        for name in spellings {
            assert_eq!(plain_name(name), "params.D_0.kernel", "{name}");
            assert_eq!(numbered(&["x", "params.D_0.kernel"], &[name]).expect("found"), [(1, 0.0)], "{name}");
        }
    }

    #[test]
    fn shorter_and_longer_names_where_only_one_fits() {
        let names = ["p.a.w", "p.b.w", "x"];
        assert_eq!(numbered(&names, &["a.w", "b.w"]).expect("found"), [(0, 0.0), (1, 1.0)]);
        assert_eq!(numbered(&names, &["batch.x", "x"]).expect("found"), [(2, 1.0)], "its own name wins");
        assert_eq!(numbered(&names, &["batch.x"]).expect("found"), [(2, 0.0)]);
        assert_eq!(numbered(&["params__D_0____w__", "x_w"], &["params/D_0/w"]).expect("found"), [(0, 0.0)]);
        assert_eq!(numbered(&["params__D_0____w__", "x"], &["D_0.w"]).expect("found"), [(0, 0.0)]);
        assert!(numbered(&["x_w"], &["w"]).is_err(), "a part of a part");
        assert!(numbered(&names, &["w"]).is_err(), "two fit");
        assert!(numbered(&names, &["max"]).is_err(), "`max` ends in x, but not as a part");
    }

    #[test]
    fn order_where_no_name_is_known() {
        assert_eq!(numbered(&["a", "b"], &["arr_10", "arr_9"]).expect("ordered"), [(0, 1.0), (1, 0.0)]);
        assert!(numbered(&["a", "b"], &["arr_0"]).is_err());
        assert!(numbered(&["a", "b"], &["left", "right"]).expect_err("unknown").to_string().contains("a, b"));
        assert!(numbered(&["a"], &[]).expect("nothing").is_empty());
    }
}
