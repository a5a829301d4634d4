//! What files of JAX, PyTorch and ours call the layers of a network, and which way their matrices lie.
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::array::{Array, DType};
//! use sinexp::nn::siren_weights::{LayerNames, SirenWeights};
//! # let layer = |w: &str, b: &str, dims: &[usize]| {
//! #     [(w.to_owned(), Array::full(DType::F32, dims, 0.1)), (b.to_owned(), Array::full(DType::F32, &dims[..1], 0.0))]
//! # };
//! # let hidden = |i: usize| layer(&format!("sine.{i}.lin.A"), &format!("sine.{i}.lin.c"), &[8, 8]);
//! # let ends = [layer("sine.0.lin.A", "sine.0.lin.c", &[8, 2]), layer("out.A", "out.c", &[3, 8])];
//! # let tensors: BTreeMap<String, Array> = ends.into_iter().chain([1, 2].map(hidden)).flatten().collect();
//! // A file with sine.0.lin.A, sine.0.lin.c ... sine.2.lin.c, out.A, out.c: a pair for the layers, one for the output.
//! let names = LayerNames::parse("sine.{i}.lin.A/sine.{i}.lin.c,out.A/out.c")?;
//! let found = SirenWeights::find(&tensors, &BTreeMap::new(), &names, (Some(30.0), Some(1.0)), None)?;
//! assert_eq!(found.names, ["sine.0.lin.A", "sine.1.lin.A", "sine.2.lin.A", "out.A"]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;

use crate::array::Weights;
use crate::error::{Error, Result};

/// The path of a pytree's leaf with dots between its parts, however it is written: `params['Dense_0']['kernel']`,
/// `params/Dense_0/kernel` and `.params.Dense_0.kernel` are all `params.Dense_0.kernel`.
///
/// ```
/// use sinexp::nn::layer_names::plain_name;
/// assert_eq!(plain_name("model.layers[0].weight"), "model.layers.0.weight");
/// ```
pub fn plain_name(name: &str) -> String {
    let parts = name.split(['.', '/', '[', ']', '\'', '"']).map(str::trim).filter(|p| !p.is_empty());
    parts.collect::<Vec<_>>().join(".")
}

/// Which way a weight matrix lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// (outputs, inputs): this library's, PyTorch's and Equinox's `weight`.
    OutIn,
    /// (inputs, outputs): Flax's `kernel`.
    InOut,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layout::OutIn => "(outputs, inputs)",
            Layout::InOut => "(inputs, outputs)",
        })
    }
}

/// Patterns of one weight and its bias, as plain names; `{i}` stands for the layer's number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    weight: String,
    bias: String,
    /// None where the name does not say it.
    layout: Option<Layout>,
}

/// How a file names its layers: pairs of patterns with `{i}` for the layer's number, tried in order for each tensor.
/// Numbers need not be consecutive (`net.0`, `net.2`, ...), only ascending from input to output. A name may be any spelling
/// of a pytree's path (see [`plain_name`]), and all names may have the same parts in front (`params/`, `model.`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerNames(Vec<Pair>);

/// The layers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// By the layer's number.
    pub weights: BTreeMap<usize, String>,
    /// By the layer's number.
    pub biases: BTreeMap<usize, String>,
    /// As the weights' names say; None where they do not, or not all the same.
    pub layout: Option<Layout>,
}

impl Default for LayerNames {
    /// `W.{i}/b.{i}` (this library's own); PyTorch's and Equinox's `net.{i}.linear.weight`, `net.{i}.weight`,
    /// `layers.{i}.linear.weight`, `layers.{i}.weight` and `{i}.weight` with `bias`; Flax's `Dense_{i}.kernel`,
    /// `layers.{i}.kernel`, `layers_{i}.kernel` and `{i}.kernel` with `bias`; and `{i}.w` with `b` of lists of dicts, whose
    /// orientation the shapes must tell.
    fn default() -> Self {
        let mut pairs = vec![pair("W.{i}", "b.{i}")];
        for layer in ["net.{i}.linear", "net.{i}", "layers.{i}.linear", "layers.{i}", "{i}.linear", "{i}"] {
            pairs.push(pair(&format!("{layer}.weight"), &format!("{layer}.bias")));
        }
        for layer in ["Dense_{i}", "Linear_{i}", "layers.{i}", "layers_{i}", "linear_{i}", "dense_{i}", "{i}"] {
            pairs.push(pair(&format!("{layer}.kernel"), &format!("{layer}.bias")));
            // flax.nnx keeps a leaf's value under a name of its own.
            pairs.push(pair(&format!("{layer}.kernel.value"), &format!("{layer}.bias.value")));
        }
        for layer in ["layers.{i}", "layers_{i}", "linear_{i}", "{i}"] {
            pairs.push(pair(&format!("{layer}.w"), &format!("{layer}.b")));
        }
        LayerNames(pairs)
    }
}

fn pair(weight: &str, bias: &str) -> Pair {
    let (weight, bias) = (plain_name(weight), plain_name(bias));
    let layout = match weight.rsplit('.').find(|part| *part != "value") {
        Some("kernel") => Some(Layout::InOut),
        Some("w") => None,
        _ => Some(Layout::OutIn),
    };
    Pair { weight, bias, layout }
}

impl LayerNames {
    /// From pairs of patterns such as `W.{i}/b.{i}`: weight and bias, separated by a slash; several pairs by commas. Names
    /// with slashes of their own have the same number of them. A pair without `{i}` is the output layer. A weight called
    /// `kernel` is (inputs, outputs), one called `w` what the shapes say, any other (outputs, inputs).
    ///
    /// **Errors** when a pattern holds `{i}` twice or only one of a pair has it, or a pair is not a pair.
    pub fn parse(text: &str) -> Result<Self> {
        let fail = |reason: &str| Error::argument("--names", text, reason);
        let mut pairs = Vec::new();
        for part in text.split(',') {
            let slashes: Vec<usize> = part.match_indices('/').map(|(at, _)| at).collect();
            if slashes.len().is_multiple_of(2) {
                return Err(fail("give weight and bias patterns separated by a slash, as W.{i}/b.{i}"));
            }
            let middle = slashes[slashes.len() / 2];
            let (weight, bias) = (&part[..middle], &part[middle + 1..]);
            let count = |pattern: &str| pattern.matches("{i}").count();
            if count(weight) != count(bias) || count(weight) > 1 {
                return Err(fail("each pattern needs {i} once, for the layer's number, as in W.{i}/b.{i}"));
            }
            if plain_name(weight).is_empty() || plain_name(bias).is_empty() {
                return Err(fail("a pattern is empty"));
            }
            pairs.push(pair(weight, bias));
        }
        match pairs.iter().any(|p| p.weight.contains("{i}")) {
            true => Ok(LayerNames(pairs)),
            false => Err(fail("no pattern has {i}, for the layer's number, as in W.{i}/b.{i}")),
        }
    }

    /// The patterns of the weights, for messages.
    pub(super) fn weights(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|p| p.weight.as_str()).filter(|n| !n.ends_with(".value")).collect();
        names.join(", ")
    }

    /// The layers among named tensors: those without anything before the pattern, else those with the same parts before it.
    ///
    /// **Errors** when several networks are found, naming what is before each.
    pub(super) fn find(&self, tensors: &Weights) -> Result<Found> {
        let mut groups: BTreeMap<String, (Found, Vec<Option<Layout>>)> = BTreeMap::new();
        for name in tensors.keys() {
            let plain = plain_name(name);
            let fit = |pattern: &str| number(pattern, &plain);
            let matching = self.0.iter().find_map(|p| {
                let weight = fit(&p.weight).map(|(front, i)| (front, i, true));
                weight.or_else(|| fit(&p.bias).map(|(front, i)| (front, i, false))).map(|found| (found, p.layout))
            });
            let Some(((front, i, is_weight), layout)) = matching else { continue };
            let (found, layouts) = groups.entry(front.to_owned()).or_default();
            if is_weight {
                found.weights.entry(i).or_insert_with(|| name.clone());
                layouts.push(layout);
            } else {
                found.biases.entry(i).or_insert_with(|| name.clone());
            }
        }
        groups.retain(|_, (found, _)| !found.weights.is_empty());
        let all: Vec<&str> = groups.keys().take(4).map(String::as_str).collect();
        if all.len() > 1 && !groups.contains_key("") {
            let reason = format!("the file has several networks: {}; say which with --names", all.join(", "));
            return Err(Error::numeric("SIREN", reason));
        }
        let Some((_, (mut found, layouts))) = groups.pop_first() else { return Ok(Found::default()) };
        let first = layouts.first().copied().flatten();
        found.layout = first.filter(|first| layouts.iter().all(|l| *l == Some(*first)));
        Ok(found)
    }
}

/// What is before `pattern` in `name`, without the dot, and the layer's number; a pattern without `{i}` comes last.
fn number<'a>(pattern: &str, name: &'a str) -> Option<(&'a str, usize)> {
    let (front, number) = match pattern.split_once("{i}") {
        Some((before, after)) => {
            let rest = name.strip_suffix(after)?;
            let digits = rest.len() - rest.bytes().rev().take_while(u8::is_ascii_digit).count();
            (rest[..digits].strip_suffix(before)?, rest[digits..].parse().ok()?)
        }
        None => (name.strip_suffix(pattern)?, usize::MAX),
    };
    match front.strip_suffix('.') {
        Some(front) => Some((front, number)),
        None => front.is_empty().then_some((front, number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;

    fn find(names: &LayerNames, tensors: &[&str]) -> Result<Found> {
        names.find(&tensors.iter().map(|n| (n.to_string(), Array::scalar(0f32))).collect())
    }

    #[test]
    fn patterns_are_checked() {
        for bad in ["W.{i}", "W/b.{i}", "W.{i}.{i}/b.{i}.{i}", "W/b", "a/b/c", "/", "W.{i}/b.{i},"] {
            assert!(LayerNames::parse(bad).is_err(), "{bad}");
        }
        for good in ["W.{i}/b.{i},net.{i}.weight/net.{i}.bias", "p/D_{i}/kernel/p/D_{i}/bias", "a{i}.w/a{i}.b,o.w/o.b"]
        {
            assert!(LayerNames::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn pytrees_of_equinox_and_flax() {
        let all = [
            (["layers.0.weight", "layers.1.weight"], Some(Layout::OutIn)),
            ([".layers[0].weight", ".layers[1].weight"], Some(Layout::OutIn)),
            (["model/layers/0/weight", "model/layers/1/weight"], Some(Layout::OutIn)),
            (["params/Dense_0/kernel", "params/Dense_1/kernel"], Some(Layout::InOut)),
            (["params['Dense_0']['kernel']", "params['Dense_1']['kernel']"], Some(Layout::InOut)),
            (["layers.0.kernel.value", "layers.1.kernel.value"], Some(Layout::InOut)),
            (["[0]['w']", "[1]['w']"], None),
        ];
        for (names, layout) in all {
            let found = find(&LayerNames::default(), &names).expect("one network");
            assert_eq!(found.weights.keys().copied().collect::<Vec<_>>(), [0, 1], "{names:?}");
            assert_eq!(found.layout, layout, "{names:?}");
        }
        let found = find(&LayerNames::default(), &["params/Dense_10/kernel", "params/Dense_10/bias"]).expect("found");
        assert_eq!(
            (&found.weights[&10][..], &found.biases[&10][..]),
            ("params/Dense_10/kernel", "params/Dense_10/bias")
        );
        assert_eq!(find(&LayerNames::default(), &["xW.0", "Dense_.kernel"]).expect("none"), Found::default());
    }

    #[test]
    fn one_network_of_several() {
        // A checkpoint with the optimiser's state beside the weights.
        let found = find(&LayerNames::default(), &["W.0", "m.W.0", "v.W.0"]).expect("the one without a prefix");
        assert_eq!(found.weights[&0], "W.0");
        let error =
            find(&LayerNames::default(), &["a/Dense_0/kernel", "b/Dense_0/kernel"]).expect_err("two").to_string();
        assert!(error.contains("a, b") && error.contains("--names"), "{error}");
        let names = LayerNames::parse("b/Dense_{i}/kernel/b/Dense_{i}/bias,b/out/kernel/b/out/bias").expect("pairs");
        let found = find(&names, &["a/Dense_0/kernel", "b/Dense_0/kernel", "b/out/kernel"]).expect("one");
        assert_eq!(found.weights.into_values().collect::<Vec<_>>(), ["b/Dense_0/kernel", "b/out/kernel"]);
    }
}
