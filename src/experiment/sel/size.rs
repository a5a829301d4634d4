//! Width and depth of a model that is profiled.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Width and depth, written `128x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// d.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('x').and_then(|(w, d)| Some((w.trim().parse().ok()?, d.trim().parse().ok()?)));
        match parts {
            Some((width, depth)) if width > 0 && depth > 0 => Ok(Size { width, depth }),
            _ => Err(Error::argument("--sizes", text, "expected WIDTHxDEPTH, as 1024x12")),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.width, self.depth)
    }
}
