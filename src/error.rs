//! The one error type of the library: each message says what was wrong, where, and what to do.
//!
//! A shape mistake while building a graph is a programming error and panics, as in `ndarray`. Everything that comes
//! from a user (files, arguments, shapes read from checkpoints, devices) ends in one of these values instead.
//!
//! ```
//! use sinexp::error::Error;
//! let error = Error::argument("--width", 0, "expected 1 or more");
//! assert_eq!(error.to_string(), "--width = 0: expected 1 or more");
//! assert!(error.is_user_mistake()); // exit code 2
//! ```

use std::path::{Path, PathBuf};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong outside the graph builder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read, written or understood.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was wrong and what to do.
        reason: String,
    },
    /// A named tensor has the wrong dtype, shape or content.
    #[error("tensor `{name}`: {reason}")]
    Tensor {
        /// The tensor's name (its safetensors key, or the program argument).
        name: String,
        /// What was expected, what was found.
        reason: String,
    },
    /// An option or argument is outside its range.
    #[error("{name} = {value}: {reason}")]
    Argument {
        /// The option's name as the user typed it.
        name: String,
        /// The value given.
        value: String,
        /// What is accepted instead.
        reason: String,
    },
    /// Numbers that a computation cannot start from: singular moments, NaN weights.
    #[error("{what}: {reason}")]
    Numeric {
        /// Which quantity.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A device is missing or refused to start.
    #[error("device `{device}`: {reason}")]
    Device {
        /// The device as asked for.
        device: String,
        /// The loader's or plugin's own reason, and the places tried.
        reason: String,
    },
    /// A program was called with arguments that do not fit its signature.
    #[error("program `{program}`: {reason}")]
    Call {
        /// The program's name.
        program: String,
        /// Which argument, what it is, what it should be.
        reason: String,
    },
    /// A graph's own: HLO text that is none, a derivative that does not exist, an array of another type.
    #[error(transparent)]
    Graph(#[from] hlograd::error::Error),
    /// The person asked the program to stop, and it did: what was kept and how to go on.
    #[error("{0}")]
    Interrupted(String),
    /// XLA reported an error of its own.
    #[error("XLA: {0}")]
    Xla(String),
}

impl From<panelplot::Error> for Error {
    fn from(error: panelplot::Error) -> Self {
        Error::numeric(error.what, error.reason)
    }
}

impl Error {
    /// A [`Error::File`] for `path`.
    pub fn file(path: impl AsRef<Path>, reason: impl std::fmt::Display) -> Self {
        Error::File { path: path.as_ref().to_owned(), reason: reason.to_string() }
    }

    /// A [`Error::Tensor`] for `name`.
    pub fn tensor(name: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Error::Tensor { name: name.into(), reason: reason.to_string() }
    }

    /// A [`Error::Argument`] for option `name`.
    pub fn argument(name: impl Into<String>, value: impl std::fmt::Display, reason: impl std::fmt::Display) -> Self {
        Error::Argument { name: name.into(), value: value.to_string(), reason: reason.to_string() }
    }

    /// A [`Error::Numeric`] about `what`.
    pub fn numeric(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Error::Numeric { what: what.into(), reason: reason.to_string() }
    }

    /// Whether the person running the program can mend it (exit code 2) rather than the program having failed (1).
    pub fn is_user_mistake(&self) -> bool {
        match self {
            Error::Graph(error) => error.is_user_mistake(),
            other => !matches!(other, Error::Xla(_)),
        }
    }
}
