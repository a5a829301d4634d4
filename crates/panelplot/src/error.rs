//! What can go wrong with a figure.

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a figure or a picture could not be made: which one, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct Error {
    /// Of which picture, part or file format.
    pub what: String,
    /// What was wrong and what to do.
    pub reason: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Error { what: what.into(), reason: reason.to_string() }
    }
}
