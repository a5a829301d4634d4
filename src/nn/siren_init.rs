//! How each network of the SIREN papers starts: one law per parameter (2609.30633, Section 3, Appendices A and C).
//!
//! | id | input layer | hidden layers | output layer |
//! | --- | --- | --- | --- |
//! | `uniform-mm` | rows N(0, Omega/N_out), b U(-pi, pi) | N(0, 2/N), b U(-pi, pi) | columns N(0, 2 Sigma/N), b = mu |
//! | `sm20` | U(1/N_in), b U(1/sqrt fan_in) | U(sqrt(6/N)/omega_h), b likewise | U(sqrt(3/N)/omega_h), no bias |
//! | `sm20-repo` | as `sm20` | as `sm20` | U(sqrt(6/N)/omega_h), b U(1/sqrt fan_in) |
//! | `cvp26-s0`, `cvp26-s1` | as `sm20` | U(c_w/(omega_h sqrt N)), b N(0, (c_b/omega_h)^2) | as `sm20` |
//! | `tanh-pe` | Xavier uniform on 2 `pe` rows, `pe` N(0, sigma^2) fixed | Xavier uniform, b 0 | Xavier uniform, b 0 |
//! | `relu` | Kaiming uniform, b 0 | the same | the same |
//! | `silu`, `gelu` | Xavier uniform, b 0 | the same | the same |
//!
//! U(a) is uniform on (-a, a). Sine layers are sin(omega (W x + b)): omega0 in the input layer, omega_h in the hidden
//! ones, both 1 for `uniform-mm`. `sm20` is the seed paper's form (no output bias, sqrt 3); `sm20-repo` is its authors'
//! code. The first-layer bias of CVP26 is not settled by its paper; here it is `sm20`'s.
//!
//! ```
//! use sinexp::nn::siren_init::Initialization;
//! use sinexp::random::Key;
//! let init = Initialization::Sm20 { omega0: 30.0, omega_h: 1.0 };
//! let siren = init.siren(2, 16, 3, 1);
//! let weights = init.draw(&siren, Key::new(0))?;
//! assert_eq!(weights["W.1"].dims(), [16, 16]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::collections::BTreeMap;
use std::f64::consts::PI;

use ndarray::{Array1, Array2};

use super::cvp26::Cvp26;
use super::init::Law;
use super::siren::{Activation, Siren};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::random::Key;

/// First and second moments of a field, which the uniform-phase initialisation matches (Eq. 11, 12, 26). They are
/// estimated from samples by [`crate::analysis::moments`].
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Mean of the field, `[N_out]`.
    pub mu: Array1<f64>,
    /// Covariance of the field, `[N_out, N_out]`.
    pub sigma: Array2<f64>,
    /// Mean of J^T Sigma^-1 J over the samples, `[N_in, N_in]`, in inverse squared coordinate units.
    pub omega: Array2<f64>,
}

/// An initialisation with all its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Initialization {
    /// Uniform-phase, moment-matched: the paper's own.
    UniformPhase(Moments),
    /// Sitzmann et al. 2020 as the paper restates it.
    Sm20 {
        /// Frequency of the input layer.
        omega0: f64,
        /// Frequency of the hidden layers.
        omega_h: f64,
    },
    /// Sitzmann et al. 2020 as in its authors' code.
    Sm20Repo {
        /// Frequency of the input layer.
        omega0: f64,
        /// Frequency of the hidden layers.
        omega_h: f64,
    },
    /// Combette et al. 2026.
    Cvp26 {
        /// Weight and bias scales.
        family: Cvp26,
        /// Frequency of the input layer.
        omega0: f64,
        /// Frequency of the hidden layers.
        omega_h: f64,
    },
    /// tanh network on fixed random Fourier features.
    TanhPe {
        /// Standard deviation of the frequencies, in cycles per coordinate unit.
        sigma: f64,
    },
    /// ReLU network.
    Relu,
    /// SiLU network.
    Silu,
    /// GELU network.
    Gelu {
        /// Whether by the tanh approximation (JAX's default).
        approximate: bool,
    },
}

impl Initialization {
    /// The name on the command line; `cvp26` for the family's members that have no name of their own.
    pub fn id(&self) -> &'static str {
        match self {
            Initialization::UniformPhase(_) => "uniform-mm",
            Initialization::Sm20 { .. } => "sm20",
            Initialization::Sm20Repo { .. } => "sm20-repo",
            Initialization::Cvp26 { family, .. } if family.is(Cvp26::SIGMA_A_0) => "cvp26-s0",
            Initialization::Cvp26 { family, .. } if family.is(Cvp26::SIGMA_A_1) => "cvp26-s1",
            Initialization::Cvp26 { .. } => "cvp26",
            Initialization::TanhPe { .. } => "tanh-pe",
            Initialization::Relu => "relu",
            Initialization::Silu => "silu",
            Initialization::Gelu { .. } => "gelu",
        }
    }

    /// The network this initialisation belongs to: its activation, encoding and output bias.
    pub fn siren(&self, inputs: usize, width: usize, hidden: usize, outputs: usize) -> Siren {
        let siren = Siren::new(inputs, width, hidden, outputs);
        match *self {
            Initialization::UniformPhase(_) | Initialization::Sm20Repo { .. } => siren,
            Initialization::Sm20 { .. } | Initialization::Cvp26 { .. } => Siren { output_bias: false, ..siren },
            Initialization::TanhPe { .. } => Siren { activation: Activation::Tanh, encoding: width / 2, ..siren },
            Initialization::Relu => Siren { activation: Activation::Relu, ..siren },
            Initialization::Silu => Siren { activation: Activation::Silu, ..siren },
            Initialization::Gelu { approximate } => Siren { activation: Activation::Gelu { approximate }, ..siren },
        }
    }

    /// omega0 and omega_h, for the networks of sines.
    pub fn frequencies(&self) -> Option<(f64, f64)> {
        match *self {
            Initialization::UniformPhase(_) => Some((1.0, 1.0)),
            Initialization::Sm20 { omega0, omega_h }
            | Initialization::Sm20Repo { omega0, omega_h }
            | Initialization::Cvp26 { omega0, omega_h, .. } => Some((omega0, omega_h)),
            _ => None,
        }
    }

    /// Name, shape and law of every parameter of `siren`, in [`Siren::parameters`]' order; last the fixed `pe`.
    pub fn laws(&self, siren: &Siren) -> Vec<(String, Vec<usize>, Law)> {
        let last = siren.hidden + 1;
        let law = |name: &str, dims: &[usize]| {
            let (kind, layer) = name.split_once('.').unwrap_or((name, "0"));
            let layer: usize = layer.parse().unwrap_or(0);
            let fan_in = siren.fan_in(layer);
            let place = if layer == 0 {
                Place::Input
            } else if layer == last {
                Place::Output
            } else {
                Place::Hidden
            };
            if kind == "W" { self.weight(siren, place, fan_in, dims[0]) } else { self.bias(place, fan_in) }
        };
        let mut all: Vec<(String, Vec<usize>, Law)> = siren
            .parameters()
            .into_iter()
            .map(|(name, dims)| {
                let law = law(&name, &dims);
                (name, dims, law)
            })
            .collect();
        if let Initialization::TanhPe { sigma } = *self {
            all.push(("pe".into(), vec![siren.encoding, siren.inputs], Law::Normal { std: sigma }));
        }
        all
    }

    fn weight(&self, siren: &Siren, place: Place, fan_in: usize, fan_out: usize) -> Law {
        let n = siren.width as f64;
        match (self, place) {
            (Initialization::UniformPhase(m), Place::Input) => Law::GaussianRows(&m.omega / siren.outputs as f64),
            (Initialization::UniformPhase(_), Place::Hidden) => Law::Normal { std: (2.0 / n).sqrt() },
            (Initialization::UniformPhase(m), Place::Output) => Law::GaussianColumns(&m.sigma * (2.0 / n)),
            (
                Initialization::Sm20 { .. } | Initialization::Sm20Repo { .. } | Initialization::Cvp26 { .. },
                Place::Input,
            ) => Law::symmetric(1.0 / siren.inputs as f64),
            (Initialization::Cvp26 { family, omega_h, .. }, Place::Hidden) => {
                Law::symmetric(family.c_w / (omega_h * n.sqrt()))
            }
            (Initialization::Sm20 { omega_h, .. } | Initialization::Cvp26 { omega_h, .. }, Place::Output) => {
                Law::symmetric((3.0 / n).sqrt() / omega_h)
            }
            (Initialization::Sm20 { omega_h, .. } | Initialization::Sm20Repo { omega_h, .. }, _) => {
                Law::symmetric((6.0 / n).sqrt() / omega_h)
            }
            (Initialization::Relu, _) => Law::kaiming_uniform(fan_in),
            (Initialization::TanhPe { .. } | Initialization::Silu | Initialization::Gelu { .. }, _) => {
                Law::xavier_uniform(fan_in, fan_out)
            }
        }
    }

    fn bias(&self, place: Place, fan_in: usize) -> Law {
        match (self, place) {
            (Initialization::UniformPhase(m), Place::Output) => Law::Constant(m.mu.to_vec()),
            (Initialization::UniformPhase(_), _) => Law::symmetric(PI),
            (Initialization::Cvp26 { family, omega_h, .. }, Place::Hidden) => match family.c_b {
                0.0 => Law::Zeros,
                c_b => Law::Normal { std: c_b / omega_h },
            },
            (Initialization::Sm20 { .. } | Initialization::Sm20Repo { .. } | Initialization::Cvp26 { .. }, _) => {
                Law::torch_uniform(fan_in)
            }
            _ => Law::Zeros,
        }
    }

    /// A network's parameters in f32, with scalars `omega0` and `omega_h` for sine networks and `pe` where there is an
    /// encoding. Parameter i is drawn with key i of `split(key, number of parameters)`.
    ///
    /// **Errors** when the moments do not fit the network or are not positive definite.
    pub fn draw(&self, siren: &Siren, key: Key) -> Result<BTreeMap<String, Array>> {
        if let Initialization::UniformPhase(m) = self
            && (m.mu.len() != siren.outputs || m.omega.nrows() != siren.inputs)
        {
            let (o, i) = (m.mu.len(), m.omega.nrows());
            let reason = format!(
                "of a field from {i} to {o} dimensions, the network goes {} to {}",
                siren.inputs, siren.outputs
            );
            return Err(Error::numeric("moments", reason));
        }
        let laws = self.laws(siren);
        let mut drawn = BTreeMap::new();
        for ((name, dims, law), key) in laws.iter().zip(key.split(laws.len())) {
            drawn.insert(name.clone(), law.draw(key, dims)?);
        }
        if let Some((omega0, omega_h)) = self.frequencies() {
            drawn.insert("omega0".into(), Array::scalar(omega0 as f32));
            drawn.insert("omega_h".into(), Array::scalar(omega_h as f32));
        }
        Ok(drawn)
    }
}

#[derive(Clone, Copy)]
enum Place {
    Input,
    Hidden,
    Output,
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    const N: f64 = 256.0;

    /// A colour image's moments.
    fn matched() -> Initialization {
        let sigma = array![[0.04, 0.02, 0.01], [0.02, 0.05, 0.02], [0.01, 0.02, 0.03]];
        Initialization::UniformPhase(Moments {
            mu: array![0.5, 0.4, 0.3],
            sigma,
            omega: array![[900.0, 100.0], [100.0, 400.0]],
        })
    }

    fn all() -> Vec<Initialization> {
        let (omega0, omega_h) = (82.0, 30.0);
        vec![
            matched(),
            Initialization::Sm20 { omega0, omega_h },
            Initialization::Sm20Repo { omega0, omega_h },
            Initialization::Cvp26 { family: Cvp26::SIGMA_A_0, omega0, omega_h },
            Initialization::Cvp26 { family: Cvp26::SIGMA_A_1, omega0, omega_h },
            Initialization::TanhPe { sigma: 32.0 },
            Initialization::Relu,
            Initialization::Silu,
            Initialization::Gelu { approximate: true },
        ]
    }

    /// The laws of the specification's table at N = 256, 2 inputs, 3 outputs, omega_h = 30: input W and b, hidden W and
    /// b, output W and b.
    #[test]
    fn laws_are_the_tables() {
        let (Initialization::UniformPhase(m), u) = (matched(), Law::symmetric) else { unreachable!() };
        let (first, hidden) = ((1.0 / 2.0), 1.0 / N.sqrt());
        let c1 = (6.0 / (1.0 + (-2f64).exp())).sqrt();
        let c1_bias = (c1 * c1 * (-2f64).exp() / 3.0).sqrt();
        let torch = u(1.0 / 2f64.sqrt());
        let zero = Law::Zeros;
        let xavier = |fan_in: f64, fan_out: f64| u((6.0 / (fan_in + fan_out)).sqrt());
        let sum = |out: Law| [xavier(2.0, N), zero.clone(), xavier(N, N), zero.clone(), out, zero.clone()];
        let want = [
            vec![
                Law::GaussianRows(&m.omega / 3.0),
                u(PI),
                Law::Normal { std: (2.0 / N).sqrt() },
                u(PI),
                Law::GaussianColumns(&m.sigma * (2.0 / N)),
                Law::Constant(vec![0.5, 0.4, 0.3]),
            ],
            vec![u(first), torch.clone(), u((6.0 / N).sqrt() / 30.0), u(hidden), u((3.0 / N).sqrt() / 30.0)],
            vec![u(first), torch.clone(), u((6.0 / N).sqrt() / 30.0), u(hidden), u((6.0 / N).sqrt() / 30.0), u(hidden)],
            vec![u(first), torch.clone(), u((3.0 / N).sqrt() / 30.0), zero.clone(), u((3.0 / N).sqrt() / 30.0)],
            vec![
                u(first),
                torch,
                u(c1 / N.sqrt() / 30.0),
                Law::Normal { std: c1_bias / 30.0 },
                u((3.0 / N).sqrt() / 30.0),
            ],
            vec![xavier(N, N), zero.clone(), xavier(N, N), zero.clone(), xavier(N, 3.0), zero.clone()],
            vec![u(3f64.sqrt()), zero.clone(), u((6.0 / N).sqrt()), zero.clone(), u((6.0 / N).sqrt()), zero.clone()],
            sum(xavier(N, 3.0)).to_vec(),
            sum(xavier(N, 3.0)).to_vec(),
        ];
        let ids = ["uniform-mm", "sm20", "sm20-repo", "cvp26-s0", "cvp26-s1", "tanh-pe", "relu", "silu", "gelu"];
        for ((init, want), id) in all().iter().zip(want).zip(ids) {
            assert_eq!(init.id(), id);
            let laws = init.laws(&init.siren(2, 256, 3, 3));
            let law = |name: &str| laws.iter().find(|(n, _, _)| n == name).map(|(_, _, law)| law.clone());
            let got: Vec<Law> = ["W.0", "b.0", "W.2", "b.2", "W.4", "b.4"].iter().filter_map(|n| law(n)).collect();
            assert_eq!(got.len(), want.len(), "{id}");
            for (got, want) in got.iter().zip(&want) {
                let near = (got.std() - want.std()).abs() <= 1e-12 * want.std().max(1e-300);
                assert!(near && format!("{got}") == format!("{want}"), "{id}: {got} for {want}");
            }
            assert_eq!(law("W.1"), law("W.3"), "{id}: all hidden layers are alike");
            let encoding = (id == "tanh-pe").then_some(Law::Normal { std: 32.0 });
            assert_eq!(law("pe"), encoding);
        }
    }

    /// Every parameter's mean and variance lie within six standard errors of its law, and no two layers are the same.
    #[test]
    fn drawn_networks_follow_their_laws() {
        for init in all() {
            let siren = init.siren(2, 256, 3, 3);
            let drawn = init.draw(&siren, Key::new(11)).expect("a network");
            assert_eq!(Siren { activation: siren.activation, ..Siren::from_weights(&drawn).expect("complete") }, siren);
            for (name, dims, law) in init.laws(&siren) {
                let values = drawn[&name].to_f64_vec();
                assert_eq!(drawn[&name].dims(), dims);
                let n = values.len() as f64;
                if let Law::Constant(want) = &law {
                    assert!(values.iter().zip(want).all(|(v, w)| *v == f64::from(*w as f32)));
                    continue;
                }
                let mean = values.iter().sum::<f64>() / n;
                let square = values.iter().map(|v| v * v).sum::<f64>() / n;
                // The variance of a normal's square is the largest here: 2 std^4. Correlated entries count for fewer.
                let n = if matches!(law, Law::GaussianRows(_) | Law::GaussianColumns(_)) { 256.0 } else { n };
                assert!(mean.abs() <= 6.0 * law.std() / n.sqrt(), "{} {name}: mean {mean} of {law}", init.id());
                let spread = (square - law.std().powi(2)).abs();
                let error = law.std().powi(2) * (2.0 / n).sqrt();
                assert!(spread <= 6.0 * error, "{} {name}: mean square {square} of {law}", init.id());
            }
            assert_ne!(drawn["W.1"], drawn["W.2"]);
            assert_eq!(init.draw(&siren, Key::new(11)).expect("again"), drawn, "a key gives one network");
            assert_eq!(drawn.contains_key("omega0"), init.frequencies().is_some());
        }
    }

    #[test]
    fn moments_that_do_not_fit_are_refused() {
        let init = matched();
        let refused = |siren: Siren, word: &str| {
            let error = init.draw(&siren, Key::new(0)).expect_err("refused").to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(init.siren(2, 16, 2, 1), "from 2 to 3 dimensions, the network goes 2 to 1");
        refused(init.siren(3, 16, 2, 3), "from 2 to 3 dimensions, the network goes 3 to 3");
        let other = Initialization::Cvp26 { family: Cvp26 { c_w: 2.0, c_b: 0.1 }, omega0: 30.0, omega_h: 1.0 };
        assert_eq!(other.id(), "cvp26");
    }
}
