//! Sizes and numbers that a program is built with, checked against what it has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Entry, Network};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::nn::siren::Activation;

/// A size of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its name, `width`.
    pub name: &'static str,
    /// What it is where nothing is said.
    pub default: usize,
    /// Least value.
    pub least: usize,
    /// Whether it is the network's, so that a file of weights decides it.
    pub of_network: bool,
}

/// A size of the network.
pub(super) const fn network(name: &'static str, default: usize) -> Size {
    Size { name, default, least: 1, of_network: true }
}

/// A size of the data.
pub(super) const fn data(name: &'static str, default: usize) -> Size {
    Size { name, default, least: 1, of_network: false }
}

/// What a program is built with; what is not there is as the entry says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// By name.
    pub sizes: BTreeMap<String, usize>,
    /// By name.
    pub numbers: BTreeMap<String, f64>,
    /// Element type of weights and data; bf16: of a transformer's activations, its weights stay f32.
    pub dtype: Option<DType>,
    /// Nonlinearity of a coordinate network.
    pub activation: Option<Activation>,
    /// A file of trained weights whose network it is.
    pub weights: Option<PathBuf>,
}

/// Most elements of one array.
const MOST_ELEMENTS: u128 = 1 << 40;

/// Choices that fit an entry.
pub(super) struct Resolved<'a> {
    entry: &'a Entry,
    choices: &'a Choices,
}

impl<'a> Resolved<'a> {
    /// **Errors** name the option that the entry does not have, or that is too small.
    pub(super) fn new(entry: &'a Entry, choices: &'a Choices) -> Result<Self> {
        let refuse = |option: &str, value: &dyn std::fmt::Display| {
            let sizes = entry.sizes.iter().map(|s| s.name).chain(entry.numbers.iter().map(|n| n.0));
            let known: Vec<String> = sizes.map(|name| format!("--{name}")).collect();
            let reason = format!("{} has no such option, only {}", entry.name, known.join(", "));
            Err(Error::argument(format!("--{option}"), value, reason))
        };
        for (name, value) in &choices.sizes {
            let Some(size) = entry.sizes.iter().find(|s| s.name == name) else { return refuse(name, value) };
            let option = format!("--{name}");
            if *value < size.least {
                return Err(Error::argument(option, value, format!("expected at least {}", size.least)));
            }
            if let (true, Some(path)) = (size.of_network, &choices.weights) {
                return Err(Error::argument(option, value, format!("comes from {}: leave it out", path.display())));
            }
        }
        for (name, value) in &choices.numbers {
            if entry.numbers.iter().all(|(known, _)| known != name) {
                return refuse(name, value);
            }
            if !(value.is_finite() && *value > 0.0) {
                return Err(Error::argument(format!("--{name}"), value, "expected a positive number"));
            }
        }
        if let Some(dtype) = choices.dtype.filter(|d| !entry.dtypes.contains(d)) {
            let known: Vec<&str> = entry.dtypes.iter().map(|d| d.hlo_name()).collect();
            let reason = format!("{} is of {}", entry.name, known.join(", "));
            return Err(Error::argument("--dtype", dtype.hlo_name(), reason));
        }
        if let Some(path) = choices.weights.as_ref().filter(|_| entry.network == Network::None) {
            let reason = format!("{} is built from sizes only", entry.name);
            return Err(Error::argument("--weights", path.display(), reason));
        }
        if choices.activation.is_some() && entry.network != Network::Siren {
            return Err(Error::argument("--activation", entry.name, "it has no such choice"));
        }
        Ok(Resolved { entry, choices })
    }

    /// The size where it was given.
    pub(super) fn given(&self, name: &str) -> Option<usize> {
        self.choices.sizes.get(name).copied()
    }

    /// The size.
    pub(super) fn size(&self, name: &str) -> usize {
        let default = || self.entry.sizes.iter().find(|s| s.name == name).map_or(1, |s| s.default);
        self.given(name).unwrap_or_else(default)
    }

    /// The number where it was given.
    pub(super) fn given_number(&self, name: &str) -> Option<f64> {
        self.choices.numbers.get(name).copied()
    }

    /// The number.
    pub(super) fn number(&self, name: &str) -> f64 {
        let default = || self.entry.numbers.iter().find(|n| n.0 == name).map_or(1.0, |n| n.1);
        self.given_number(name).unwrap_or_else(default)
    }

    pub(super) fn dtype(&self) -> DType {
        self.choices.dtype.unwrap_or(self.entry.dtypes[0])
    }

    pub(super) fn activation(&self) -> Option<Activation> {
        self.choices.activation
    }

    pub(super) fn weights(&self) -> Option<&Path> {
        self.choices.weights.as_deref()
    }

    pub(super) fn name(&self) -> &'static str {
        self.entry.name
    }

    /// **Errors** when an array of these dimensions would be larger than any machine's memory.
    pub(super) fn check_size(&self, what: &str, dims: &[usize]) -> Result<()> {
        let elements = dims.iter().try_fold(1u128, |n, d| n.checked_mul(*d as u128));
        if elements.is_some_and(|n| n <= MOST_ELEMENTS) {
            return Ok(());
        }
        let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
        let reason = format!("its {what} would have {} elements: choose smaller sizes", dims.join(" x "));
        Err(Error::argument("program", self.entry.name, reason))
    }
}
