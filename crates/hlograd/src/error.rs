//! The one error type of the crate: each message says what was wrong, where, and what to do.
//!
//! A shape mistake while building a graph is a programming error and panics, as in `ndarray`. What comes from a user
//! (numbers, names, HLO text) ends in one of these values instead.
//!
//! ```
//! use hlograd::{array::{Array, DType}, error::Error};
//! let error = Array::from_bytes(DType::F32, &[2], [0u8; 4]).unwrap_err();
//! assert_eq!(error.to_string(), "array float32[2]: 4 bytes given, its shape needs 8");
//! assert!(matches!(error, Error::Numeric { .. }) && error.is_user_mistake());
//! ```

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong outside the graph builder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Numbers that an array cannot be made of, or be read as.
    #[error("{what}: {reason}")]
    Numeric {
        /// Which quantity.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// HLO text that is no graph, or a graph that is no program.
    #[error("program `{program}`: {reason}")]
    Call {
        /// The program's name.
        program: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// A derivative that does not exist: the loss does not reach the parameter, or an operation has no reverse rule.
    #[error("{0}")]
    Differentiate(String),
}

impl Error {
    /// A [`Error::Numeric`] about `what`.
    pub fn numeric(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Error::Numeric { what: what.into(), reason: reason.to_string() }
    }

    /// Whether the person who gave the numbers or the text can mend it, rather than the program being wrong.
    pub fn is_user_mistake(&self) -> bool {
        !matches!(self, Error::Differentiate(_))
    }
}
