//! Runs as resolved configurations: every number that a result depends on, with a stable hash.

use serde::Serialize;

use super::field::{Field, FieldId};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::nn::cvp26::Cvp26;
use crate::nn::siren::Siren;
use crate::nn::siren_init::{Initialization, Moments};
use crate::random::Key;
use crate::train::Start;

/// Command-line names of the paper's initialisations, in the order of its tables; `sm20-repo` is offered too.
pub const METHODS: [&str; 9] =
    ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "tanh-pe", "relu", "silu", "gelu", "sm20-repo"];

/// An initialisation with the numbers that go with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// One of [`METHODS`].
    pub init: String,
    /// Frequency of the input layer; None where the network has none to choose.
    pub omega0: Option<f64>,
    /// Frequency of the hidden layers.
    pub omega_h: Option<f64>,
    /// Standard deviation of the positional encoding's frequencies.
    pub pe_sigma: Option<f64>,
    /// GELU by its tanh approximation (true) or exactly.
    pub gelu_tanh: Option<bool>,
}

impl Method {
    /// `init` with those of the numbers that it has.
    pub fn new(init: &str, omega0: f64, omega_h: f64, pe_sigma: f64, gelu_tanh: bool) -> Self {
        let sine = matches!(init, "cvp26-s0" | "cvp26-s1" | "sm20" | "sm20-repo");
        Method {
            init: init.to_owned(),
            omega0: sine.then_some(omega0),
            omega_h: sine.then_some(omega_h),
            pe_sigma: (init == "tanh-pe").then_some(pe_sigma),
            gelu_tanh: (init == "gelu").then_some(gelu_tanh),
        }
    }

    /// The initialisation for a field.
    ///
    /// **Errors** when the name is unknown, or moments are needed and the field has none.
    pub fn initialization(&self, field: &Field) -> Result<Initialization> {
        self.with_moments(|| field.moments().cloned())
    }

    /// The initialisation for a field with these moments, which are asked for only where they are matched.
    ///
    /// **Errors** when the name is unknown, or those of `moments`.
    pub fn with_moments(&self, moments: impl FnOnce() -> Result<Moments>) -> Result<Initialization> {
        let (omega0, omega_h) = (self.omega0.unwrap_or(1.0), self.omega_h.unwrap_or(1.0));
        Ok(match self.init.as_str() {
            "uniform-mm" => Initialization::UniformPhase(moments()?),
            "cvp26-s0" => Initialization::Cvp26 { family: Cvp26::SIGMA_A_0, omega0, omega_h },
            "cvp26-s1" => Initialization::Cvp26 { family: Cvp26::SIGMA_A_1, omega0, omega_h },
            "sm20" => Initialization::Sm20 { omega0, omega_h },
            "sm20-repo" => Initialization::Sm20Repo { omega0, omega_h },
            "tanh-pe" => Initialization::TanhPe { sigma: self.pe_sigma.unwrap_or(1.0) },
            "relu" => Initialization::Relu,
            "silu" => Initialization::Silu,
            "gelu" => Initialization::Gelu { approximate: self.gelu_tanh.unwrap_or(true) },
            other => {
                let reason = format!("unknown; choose from {}", METHODS.join(", "));
                return Err(Error::argument("--methods", other, reason));
            }
        })
    }
}

/// One run: what is fitted, from where, how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunConfig {
    /// Raised when the meaning of a field or the arithmetic of a run changes.
    pub version: u32,
    /// What is fitted.
    pub field: FieldId,
    /// From where.
    #[serde(flatten)]
    pub method: Method,
    /// N.
    pub width: usize,
    /// L, hidden layers after the input layer.
    pub hidden: usize,
    /// Adam steps.
    pub steps: usize,
    /// Key of the initial weights: parameter i of n is drawn with key i of `split(key(seed), n)`.
    pub seed: u64,
    /// Learning rate of the input matrix and all biases.
    pub learning_rate: f64,
    /// Factor of the learning rate for hidden and output matrices (muP: N0/N).
    pub matrix_rate: f64,
    /// Factor of the initial output matrix (muP with last-layer scaling: sqrt(N0/N)).
    pub output_scale: f64,
    /// Adam's epsilon.
    pub eps: f64,
    /// Samples per block of the gradient's sum; None for all at once.
    pub block: Option<usize>,
    /// Where it is computed: `cpu` ..., because rounding differs.
    pub platform: String,
}

impl RunConfig {
    /// The network it trains.
    pub fn siren(&self, field: &Field) -> Result<Siren> {
        let (inputs, outputs) = (field.train.shape.len(), field.train.y.ncols());
        Ok(self.method.initialization(field)?.siren(inputs, self.width, self.hidden, outputs))
    }

    /// Its initial weights and hyperparameters.
    ///
    /// **Errors** as [`Method::initialization`].
    pub fn start(&self, field: &Field) -> Result<Start> {
        let siren = self.siren(field)?;
        let init = self.method.initialization(field)?;
        let mut weights = init.draw(&siren, Key::new(self.seed))?;
        if self.output_scale != 1.0 {
            let name = format!("W.{}", self.hidden + 1);
            if let Some(output) = weights.get_mut(&name) {
                let scaled: Vec<f32> = output.to_vec::<f32>()?.iter().map(|w| w * self.output_scale as f32).collect();
                *output = Array::from_slice(output.dims(), &scaled);
            }
        }
        Ok(Start {
            weights,
            learning_rate: self.learning_rate,
            matrix_learning_rate: self.learning_rate * self.matrix_rate,
            eps: self.eps,
        })
    }

    /// A few words for a line of progress.
    pub fn describe(&self) -> String {
        let color = match self.field.color {
            Some(color) => format!(" {}", format!("{color:?}").to_lowercase()),
            None => String::new(),
        };
        let omega0 = self.method.omega0.map(|o| format!(" ω₀ {o:.3}")).unwrap_or_default();
        format!("{}{color} {}{omega0} N {} seed {}", self.field.name, self.method.init, self.width, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::audio::fugue_subject;
    use crate::train::sweep::stable_hash;

    fn config(field: &Field, init: &str) -> RunConfig {
        RunConfig {
            version: 1,
            field: field.id.clone(),
            method: Method::new(init, 30.0, 2.0, 10.0, true),
            width: 8,
            hidden: 3,
            steps: 10,
            seed: 1,
            learning_rate: 1e-3,
            matrix_rate: 0.5,
            output_scale: 1.0,
            eps: 1e-8,
            block: None,
            platform: "cpu".into(),
        }
    }

    fn field() -> Field {
        Field::sound("fugue", &fugue_subject(8000, 0.2), "made".into(), 1).expect("a field")
    }

    /// Every number that a result depends on is part of the hash.
    #[test]
    fn the_hash_sees_every_number() {
        let base = config(&field(), "sm20");
        let with = |change: fn(&mut RunConfig)| {
            let mut other = base.clone();
            change(&mut other);
            stable_hash(&other).expect("a hash")
        };
        let all = [
            with(|_| ()),
            with(|c| c.field.sha256 = "other".into()),
            with(|c| c.field.train_size = 7),
            with(|c| c.method.omega0 = Some(31.0)),
            with(|c| c.method.omega_h = Some(1.0)),
            with(|c| c.width = 9),
            with(|c| c.hidden = 4),
            with(|c| c.steps = 11),
            with(|c| c.seed = 2),
            with(|c| c.learning_rate = 1.1e-3),
            with(|c| c.matrix_rate = 1.0),
            with(|c| c.output_scale = 2.0),
            with(|c| c.eps = 0.0),
            with(|c| c.block = Some(64)),
            with(|c| c.platform = "cuda".into()),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    /// A frequency is part of the methods that have one; muP's factors reach the output matrix and its learning rate.
    #[test]
    fn methods_have_their_own_numbers_only() {
        let field = field();
        for init in METHODS {
            let config = config(&field, init);
            let start = config.start(&field).expect("a start");
            assert_eq!(config.method.initialization(&field).expect("known").id(), init);
            let sine = !matches!(init, "tanh-pe" | "relu" | "silu" | "gelu");
            assert_eq!(start.weights.contains_key("omega0"), sine, "{init}");
            assert_eq!(config.method.omega0.is_some(), sine && init != "uniform-mm", "{init}");
            assert_eq!(start.matrix_learning_rate, 0.5e-3);
            let scaled = RunConfig { output_scale: 3.0, ..config }.start(&field).expect("a start");
            let (a, b) = (start.weights["W.4"].to_f64_vec(), scaled.weights["W.4"].to_f64_vec());
            assert!(a.iter().zip(&b).all(|(a, b)| (3.0 * a - b).abs() <= 1e-6 * b.abs()), "{init}");
            assert_eq!(start.weights["W.1"], scaled.weights["W.1"]);
        }
        let unknown = Method::new("xavier", 1.0, 1.0, 1.0, true).initialization(&field).expect_err("unknown");
        assert!(unknown.to_string().contains("uniform-mm"), "{unknown}");
    }
}
