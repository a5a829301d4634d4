//! The toolkit's programs by name, as functions that JAX can take: what `hlo list` lists and `hlo export` writes.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod.rs` | [`Entry`], [`entries`]: what there is |
//! | `choices.rs` | [`Choices`]: sizes and numbers that a program is built with |
//! | `function.rs` | [`Function`]: a program with the pytrees of its arguments and results |
//! | `names.rs` | pytrees from the names that JAX gives to inputs |
//! | `siren.rs` | sine networks: forward, hidden Jacobian, training step |
//! | `sel.rs` | the SEL transform of one matrix |
//! | `language.rs` | the transformer: logits, loss, training step |
//! | `file.rs` | sizes of a trained network, from its file |

mod choices;
mod file;
mod function;
mod language;
mod names;
mod sel;
mod siren;

pub use self::choices::{Choices, Size};
pub use self::function::{Argument, Function};
use crate::array::DType;
use crate::error::{Error, Result};

use self::choices::Resolved;

/// Which files of weights an entry takes its sizes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// None.
    None,
    /// A coordinate network's: `W.0`, `b.0` ..., as `fit` writes them.
    Siren,
    /// A language model's: a run, a checkpoint, or what `sel fold` or `sel invert` made.
    Language,
}

/// A program of the toolkit.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in one line.
    pub about: &'static str,
    /// Sizes it has.
    pub sizes: &'static [Size],
    /// Other numbers it has, with their defaults.
    pub numbers: &'static [(&'static str, f64)],
    /// Element types it can be of, the default first.
    pub dtypes: &'static [DType],
    /// Whose weights it can be built for.
    pub network: Network,
    /// How often JAX can differentiate it unless asked otherwise.
    pub orders: usize,
    build: fn(&Resolved) -> Result<Function>,
}

/// All of them.
pub fn entries() -> Vec<Entry> {
    [siren::ENTRIES, sel::ENTRIES, language::ENTRIES].concat()
}

/// The one of this name.
///
/// **Errors** list those there are.
pub fn find(name: &str) -> Result<Entry> {
    let all = entries();
    let names: Vec<&str> = all.iter().map(|e| e.name).collect();
    let unknown = || Error::argument("program", name, format!("expected a file, or one of {}", names.join(", ")));
    all.iter().find(|e| e.name == name).copied().ok_or_else(unknown)
}

impl Entry {
    /// Builds it.
    ///
    /// **Errors** name the option that it does not have or that makes no sense, and say what is wrong with a file of weights.
    ///
    /// ```
    /// use sinexp::catalog::{Choices, find};
    /// let choices = Choices { sizes: [("width".into(), 32)].into(), ..Choices::default() };
    /// let forward = find("siren_forward")?.build(&choices)?;
    /// assert_eq!(forward.program.inputs[0].1.dims, [32, 2]);
    /// assert_eq!(forward.arguments[1].name, "x");
    /// # Ok::<(), sinexp::error::Error>(())
    /// ```
    pub fn build(&self, choices: &Choices) -> Result<Function> {
        (self.build)(&Resolved::new(self, choices)?)
    }
}
