//! A trained or foreign SIREN's weights, found by name in a file and checked before any graph sees them.
//!
//! ```
//! use std::collections::BTreeMap;
//! use sinexp::interop::npz;
//! use sinexp::nn::siren_weights::{LayerNames, Layout, SirenWeights};
//! // Flax's params/Dense_0/kernel (2, 8) ... params/Dense_4/kernel (8, 3).
//! let tensors = npz::read("tests/spectrum_hlo/flax.npz")?;
//! let omega = (Some(30.0), Some(1.0));
//! let found = SirenWeights::find(&tensors, &BTreeMap::new(), &LayerNames::default(), omega, None)?;
//! assert_eq!((found.n_in, found.width, found.depth, found.layout), (2, 8, 3, Layout::InOut));
//! assert_eq!(found.params["W.0"].dims(), [8, 2]); // turned round
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;

use super::layer_names::Found;
use crate::array::{Array, DType};
use crate::error::{Error, Result};
use crate::nn::siren::Siren;

pub use super::layer_names::{LayerNames, Layout};

/// A SIREN's parameters (spec: sin(omega0 (W_0 x + b_0)), L hidden layers sin(omega_h (W_i h + b_i)), a linear
/// output), renumbered as this library names them.
#[derive(Clone, Debug, PartialEq)]
pub struct SirenWeights {
    /// `W.0` (N, n_in), `W.1` ... `W.L` (N, N), `W.{L+1}` (n_out, N), and `b.0` ... `b.{L+1}` of matching lengths, all
    /// of one float type. A bias that the file does not have is zero, and absent for the output layer.
    pub params: BTreeMap<String, Array>,
    /// Input coordinates.
    pub n_in: usize,
    /// N.
    pub width: usize,
    /// L, the hidden layers after the input layer.
    pub depth: usize,
    /// Frequency of the input layer.
    pub omega0: f64,
    /// Frequency of the hidden layers.
    pub omega_h: f64,
    /// Which way the file's matrices lie.
    pub layout: Layout,
    /// The file's names of W.0, W.1 ...
    pub names: Vec<String>,
}

impl SirenWeights {
    /// Finds a SIREN among named tensors. The frequencies are `omega`'s where given, else the metadata entries
    /// `omega0` and `omega_h`, else scalars of these names, else the two entries of a tensor `omega`. Which way matrices lie is
    /// `layout` where given, else what their names say, else the only way in which the shapes chain.
    ///
    /// **Errors** (each naming the tensor) when no layer is found, several networks are, fewer than four weight matrices are there (L < 2
    /// has no Jacobian between hidden layers), shapes do not chain or hidden layers differ in width, a type is not a
    /// float or differs from the others, a value is NaN or infinite, a bias has no weight, or a frequency is missing
    /// or not positive.
    pub fn find(
        tensors: &BTreeMap<String, Array>,
        metadata: &BTreeMap<String, String>,
        names: &LayerNames,
        omega: (Option<f64>, Option<f64>),
        layout: Option<Layout>,
    ) -> Result<Self> {
        let Found { weights: matrices, mut biases, layout: named } = names.find(tensors)?;
        if matrices.is_empty() {
            let known: Vec<_> = tensors.keys().take(6).map(String::as_str).collect();
            let reason = format!(
                "no weights named {}; the file has {}{}; say how layers are named with --names",
                names.weights(),
                if known.is_empty() { "no tensors".to_owned() } else { known.join(", ") },
                if tensors.len() > 6 { " ..." } else { "" },
            );
            return Err(Error::numeric("SIREN", reason));
        }
        let last = matrices.len() - 1;
        if last < 3 {
            let reason = format!(
                "{} weight matrices found ({}); dh_L/dh_1 needs at least four: input, two hidden, output",
                last + 1,
                matrices.values().map(String::as_str).collect::<Vec<_>>().join(", ")
            );
            return Err(Error::numeric("SIREN", reason));
        }
        let layout = match layout.or(named) {
            Some(layout) => layout,
            None => only_layout(matrices.values().filter_map(|name| tensors.get(name)))?,
        };
        let mut params = BTreeMap::new();
        let (mut previous, mut n_in, mut width) = (0, 0, 0);
        let mut dtype = None;
        for (layer, (number, name)) in matrices.iter().enumerate() {
            let matrix = &tensors[name];
            let &[first, second] = matrix.dims() else {
                return Err(Error::tensor(name, format!("shape {:?}; a weight matrix has two axes", matrix.dims())));
            };
            let (rows, columns) = if layout == Layout::OutIn { (first, second) } else { (second, first) };
            if rows == 0 || columns == 0 {
                return Err(Error::tensor(name, format!("shape {:?} is empty", matrix.dims())));
            }
            if layer == 0 {
                (n_in, width) = (columns, rows);
            } else if columns != previous {
                let reason =
                    format!("shape {:?} does not take the {previous} outputs of the layer before", matrix.dims());
                return Err(Error::tensor(name, reason + &format!("; weights are {layout}; --layout says else")));
            } else if layer < last && rows != width {
                let reason = format!("{rows} outputs; every hidden layer must be as wide as the first, {width}");
                return Err(Error::tensor(name, reason));
            }
            previous = rows;
            check(name, matrix, &mut dtype)?;
            let matrix = if layout == Layout::OutIn { matrix.clone() } else { transposed(matrix)? };
            params.insert(format!("W.{layer}"), matrix);
            if let Some(bias_name) = biases.remove(number) {
                let bias = &tensors[&bias_name];
                if bias.dims() != [rows] {
                    let reason = format!(
                        "shape {:?}; the bias of `{name}` has shape [{rows}] where weights are {layout}; --layout says else",
                        bias.dims()
                    );
                    return Err(Error::tensor(bias_name, reason));
                }
                check(&bias_name, bias, &mut dtype)?;
                params.insert(format!("b.{layer}"), bias.clone());
            } else if layer < last {
                params.insert(format!("b.{layer}"), Array::full(tensors[name].dtype(), &[rows], 0.0));
            }
        }
        if let Some(name) = biases.values().next() {
            return Err(Error::tensor(name, "a bias without a weight matrix of the same number"));
        }
        let stored = stored_omega(tensors, metadata)?;
        Ok(SirenWeights {
            params,
            n_in,
            width,
            depth: last - 1,
            omega0: frequency("--omega0", omega.0.or(stored.0))?,
            omega_h: frequency("--omega-h", omega.1.or(stored.1))?,
            layout,
            names: matrices.into_values().collect(),
        })
    }

    /// The network these weights belong to, and the weights with the frequencies as scalars `omega0` and `omega_h`
    /// (f64), as [`Siren::layers`] takes them.
    pub fn network(self) -> (Siren, BTreeMap<String, Array>) {
        let output = format!(".{}", self.depth + 1);
        let outputs = self.params.get(&format!("W{output}")).map_or(0, |w| w.dims()[0]);
        let mut siren = Siren::new(self.n_in, self.width, self.depth, outputs);
        siren.output_bias = self.params.contains_key(&format!("b{output}"));
        let mut params = self.params;
        params.insert("omega0".into(), Array::scalar(self.omega0));
        params.insert("omega_h".into(), Array::scalar(self.omega_h));
        (siren, params)
    }
}

/// The layout in which each matrix takes what the one before gives.
fn only_layout<'a>(matrices: impl Iterator<Item = &'a Array>) -> Result<Layout> {
    let dims: Vec<&[usize]> = matrices.map(Array::dims).filter(|d| d.len() == 2).collect();
    let chains = |out: usize| dims.windows(2).all(|w| w[0][out] == w[1][1 - out]);
    match (chains(0), chains(1)) {
        (true, false) => Ok(Layout::OutIn),
        (false, true) => Ok(Layout::InOut),
        (both, _) => {
            let why = if both { "all matrices are square" } else { "the matrices chain in neither way" };
            Err(Error::numeric(
                "SIREN",
                format!("{why}, so that they do not tell which way they lie; say with --layout"),
            ))
        }
    }
}

/// A matrix with its axes exchanged.
fn transposed(matrix: &Array) -> Result<Array> {
    let (rows, columns, size) = (matrix.dims()[0], matrix.dims()[1], matrix.dtype().size());
    let mut bytes = Vec::with_capacity(matrix.bytes().len());
    for column in 0..columns {
        for row in 0..rows {
            let at = (row * columns + column) * size;
            bytes.extend_from_slice(&matrix.bytes()[at..at + size]);
        }
    }
    Ok(Array::from_bytes(matrix.dtype(), &[columns, rows], bytes)?)
}

fn check(name: &str, tensor: &Array, dtype: &mut Option<DType>) -> Result<()> {
    if !tensor.dtype().is_float() {
        return Err(Error::tensor(name, format!("type {}; weights are floating point", tensor.dtype())));
    }
    match dtype {
        Some(first) if *first != tensor.dtype() => {
            return Err(Error::tensor(name, format!("type {}; the layers before are {first}", tensor.dtype())));
        }
        _ => *dtype = Some(tensor.dtype()),
    }
    match tensor.to_f64_vec().iter().enumerate().find(|(_, v)| !v.is_finite()) {
        Some((at, v)) => Err(Error::tensor(name, format!("{v} at position {at}; every weight must be finite"))),
        None => Ok(()),
    }
}

fn stored_omega(
    tensors: &BTreeMap<String, Array>,
    metadata: &BTreeMap<String, String>,
) -> Result<(Option<f64>, Option<f64>)> {
    let entry = |name: &str| -> Result<Option<f64>> {
        let Some(text) = metadata.get(name) else { return Ok(None) };
        let number = text.trim().parse();
        number.map(Some).map_err(|_| Error::numeric(format!("metadata `{name}`"), format!("`{text}` is not a number")))
    };
    let scalar = |name: &str| tensors.get(name).filter(|t| t.len() == 1).map(|t| t.to_f64_vec()[0]);
    let omega0 = entry("omega0")?.or_else(|| scalar("omega0"));
    let omega_h = entry("omega_h")?.or_else(|| scalar("omega_h"));
    match tensors.get("omega").filter(|t| t.len() == 2).map(Array::to_f64_vec) {
        Some(pair) => Ok((omega0.or(Some(pair[0])), omega_h.or(Some(pair[1])))),
        None => Ok((omega0, omega_h)),
    }
}

fn frequency(option: &str, value: Option<f64>) -> Result<f64> {
    match value {
        Some(omega) if omega.is_finite() && omega > 0.0 => Ok(omega),
        Some(omega) => Err(Error::argument(option, omega, "a frequency is positive and finite")),
        None => Err(Error::argument(option, "(not given)", "the file does not say it; give it on the command line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tensors = BTreeMap<String, Array>;

    /// Width 3, L = 2, two inputs, one output without bias.
    fn sample(weight: &str, bias: &str, numbers: [usize; 4]) -> Tensors {
        let shapes = [[3, 2], [3, 3], [3, 3], [1, 3]];
        let mut out = Tensors::new();
        for (i, ([rows, columns], n)) in shapes.into_iter().zip(numbers).enumerate() {
            let values: Vec<f32> = (0..rows * columns).map(|v| v as f32 + i as f32).collect();
            out.insert(weight.replace("{i}", &n.to_string()), Array::from_slice(&[rows, columns], &values));
            if i < 3 {
                out.insert(bias.replace("{i}", &n.to_string()), Array::from_slice(&[rows], &vec![0.5f32; rows]));
            }
        }
        out
    }

    fn find(tensors: &Tensors) -> Result<SirenWeights> {
        SirenWeights::find(tensors, &BTreeMap::new(), &LayerNames::default(), (Some(30.0), Some(1.0)), None)
    }

    /// Whatever the file called them.
    fn unnamed(siren: SirenWeights) -> SirenWeights {
        SirenWeights { names: Vec::new(), ..siren }
    }

    fn refused(tensors: &Tensors, part: &str) {
        let text = find(tensors).expect_err(part).to_string();
        assert!(text.contains(part), "`{text}` does not say `{part}`");
    }

    #[test]
    fn own_and_foreign_names_give_the_same_network() {
        let own = find(&sample("W.{i}", "b.{i}", [0, 1, 2, 3])).expect("own names");
        assert_eq!(own.names, ["W.0", "W.1", "W.2", "W.3"]);
        let own = unnamed(own);
        assert_eq!((own.n_in, own.width, own.depth, own.omega0), (2, 3, 2, 30.0));
        assert_eq!(own.params.len(), 7);
        // A torch Sequential counts its activations too, and ten comes after two only as a number.
        let torch = find(&sample("net.{i}.weight", "net.{i}.bias", [0, 2, 4, 10])).expect("torch names");
        assert_eq!(torch.names[3], "net.10.weight");
        assert_eq!(unnamed(torch), own);
        let names = LayerNames::parse("siren/x.{i}".replace("siren", "a{i}w").as_str()).expect("pair");
        let odd = sample("a{i}w", "x.{i}", [1, 2, 3, 4]);
        let odd = SirenWeights::find(&odd, &BTreeMap::new(), &names, (Some(30.0), Some(1.0)), None);
        assert_eq!(unnamed(odd.expect("given names")), own);
    }

    #[test]
    fn hidden_biases_that_are_not_there_are_zero() {
        let mut tensors = sample("W.{i}", "b.{i}", [0, 1, 2, 3]);
        tensors.remove("b.1");
        let found = find(&tensors).expect("valid");
        assert_eq!(found.params["b.1"].to_f64_vec(), [0.0; 3]);
        assert!(!found.params.contains_key("b.3"));
    }

    #[test]
    fn the_network_has_the_weights_sizes() {
        let (siren, params) = find(&sample("W.{i}", "b.{i}", [0, 1, 2, 3])).expect("valid").network();
        assert_eq!((siren.inputs, siren.width, siren.hidden, siren.outputs, siren.output_bias), (2, 3, 2, 1, false));
        assert_eq!(Siren::from_weights(&params).expect("complete"), siren);
        assert_eq!(params["omega0"].to_f64_vec(), [30.0]);
    }

    #[test]
    fn frequencies_come_from_flag_then_metadata_then_tensor() {
        let mut tensors = sample("W.{i}", "b.{i}", [0, 1, 2, 3]);
        let names = LayerNames::default();
        let none = SirenWeights::find(&tensors, &BTreeMap::new(), &names, (None, None), None).expect_err("unknown");
        assert!(none.to_string().contains("--omega0"), "{none}");
        tensors.insert("omega".into(), Array::from_slice(&[2], &[82.0f32, 2.0]));
        let read = |metadata: &BTreeMap<_, _>, flag| {
            let found = SirenWeights::find(&tensors, metadata, &names, flag, None).expect("known");
            (found.omega0, found.omega_h)
        };
        let metadata = BTreeMap::from([("omega0".to_owned(), "40".to_owned())]);
        assert_eq!(read(&BTreeMap::new(), (None, None)), (82.0, 2.0));
        assert_eq!(read(&metadata, (None, None)), (40.0, 2.0));
        assert_eq!(read(&metadata, (Some(5.0), None)), (5.0, 2.0));
        assert!(SirenWeights::find(&tensors, &metadata, &names, (Some(-1.0), None), None).is_err());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let good = || sample("W.{i}", "b.{i}", [0, 1, 2, 3]);
        let with = |name: &str, array: Array| {
            let mut tensors = good();
            tensors.insert(name.into(), array);
            tensors
        };
        refused(&Tensors::new(), "no tensors");
        refused(&with("W.1", Array::from_slice(&[3, 2], &[0f32; 6])), "tensor `W.1`: shape [3, 2] does not take the 3");
        refused(&with("W.1", Array::from_slice(&[4, 3], &[0f32; 12])), "`W.1`: 4 outputs");
        refused(&with("W.1", Array::from_slice(&[9], &[0f32; 9])), "`W.1`: shape [9]");
        refused(&with("b.2", Array::from_slice(&[2], &[0f32; 2])), "`b.2`: shape [2]");
        refused(&with("b.7", Array::from_slice(&[2], &[0f32; 2])), "`b.7`: a bias without");
        refused(&with("W.2", Array::from_slice(&[3, 3], &[0i32; 9])), "`W.2`: type int32");
        refused(&with("W.2", Array::from_slice(&[3, 3], &[0f64; 9])), "`W.2`: type float64");
        let mut values = [0f32; 9];
        values[5] = f32::NAN;
        refused(&with("W.2", Array::from_slice(&[3, 3], &values)), "`W.2`: NaN at position 5");
        let mut short = good();
        short.remove("W.3");
        refused(&short, "3 weight matrices");
    }

    #[test]
    fn kernels_are_transposed_by_name_or_by_shape() {
        let own = find(&sample("W.{i}", "b.{i}", [0, 1, 2, 3])).expect("own names");
        let turned = |weight: &str, bias: &str| -> Tensors {
            let turn = |(n, t): (String, Array)| {
                if t.dims().len() == 2 { (n, transposed(&t).expect("matrix")) } else { (n, t) }
            };
            sample(weight, bias, [0, 1, 2, 3]).into_iter().map(turn).collect()
        };
        for (weight, bias) in [("params/Dense_{i}/kernel", "params/Dense_{i}/bias"), ("[{i}]['w']", "[{i}]['b']")] {
            let found = find(&turned(weight, bias)).expect(weight);
            assert_eq!((&found.params, found.layout), (&own.params, Layout::InOut), "{weight}");
        }
        // A list of dicts that is (outputs, inputs), and kernels that lie about it.
        assert_eq!(find(&sample("{i}.w", "{i}.b", [0, 1, 2, 3])).expect("by shape").params, own.params);
        refused(&sample("Dense_{i}.kernel", "Dense_{i}.bias", [0, 1, 2, 3]), "--layout");
        let mut square = Tensors::new();
        (0..4).for_each(|i| drop(square.insert(format!("{i}.w"), Array::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]))));
        refused(&square, "square");
        let layout = |layout| {
            let names = LayerNames::default();
            let found = SirenWeights::find(&square, &BTreeMap::new(), &names, (Some(1.0), Some(1.0)), Some(layout));
            found.expect("said").params["W.1"].to_f64_vec()
        };
        assert_eq!(layout(Layout::OutIn), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(layout(Layout::InOut), [1.0, 3.0, 2.0, 4.0]);
    }
}
