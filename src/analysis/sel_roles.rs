//! The paper's module roles in our weights: gate and up are the two halves of one fused matrix.
//!
//! ```
//! use sinexp::analysis::sel_roles::{ROLES, places};
//! use sinexp::nn::transformer::Transformer;
//! let transformer = Transformer::new(256, 64, 2);
//! let all = places(&transformer);
//! let [gate, up] = [4, 5].map(|i| all.iter().find(|place| place.role == ROLES[i]).unwrap());
//! assert_eq!((gate.weight.as_str(), gate.rows.clone()), ("blocks.ff1.W", 0..transformer.hidden));
//! assert_eq!((up.weight.as_str(), up.rows.start), ("blocks.ff1.W", transformer.hidden));
//! ```

use std::ops::Range;

use crate::nn::transformer::Transformer;

/// The roles of Figures 8 and 9 of 2607.09967, in its order.
pub const ROLES: [&str; 7] = ["q", "k", "v", "o", "gate", "up", "down"];

/// Where a role's matrix lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// One of [`ROLES`].
    pub role: &'static str,
    /// Name of the weight, stacked over blocks: `blocks.ff1.W`.
    pub weight: String,
    /// Dimensions of that weight in one block.
    pub dims: [usize; 2],
    /// Its rows that are this role's.
    pub rows: Range<usize>,
}

impl Place {
    /// Weights of the role in all blocks.
    pub fn count(&self, depth: usize) -> usize {
        depth * self.rows.len() * self.dims[1]
    }
}

/// Places of all roles: the first half of the fused `ff1` goes through GELU and is the gate, the second is up.
pub fn places(transformer: &Transformer) -> Vec<Place> {
    let (d, hidden) = (transformer.width, transformer.hidden);
    let place = |role: &'static str| {
        let (name, dims, rows) = match role {
            "gate" => ("ff1", [2 * hidden, d], 0..hidden),
            "up" => ("ff1", [2 * hidden, d], hidden..2 * hidden),
            "down" => ("ff2", [d, hidden], 0..d),
            _ => (role, [d, d], 0..d),
        };
        Place { role, weight: format!("blocks.{name}.W"), dims, rows }
    };
    ROLES.map(place).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_cover_every_matrix_once() {
        let transformer = Transformer::new(256, 64, 3);
        let places = places(&transformer);
        for w in transformer.weights().iter().filter(|w| w.name.starts_with("blocks.") && w.name.ends_with(".W")) {
            let mut rows = vec![0; w.dims[0]];
            for place in places.iter().filter(|p| p.weight == w.name) {
                assert_eq!(place.dims.to_vec(), w.dims);
                place.rows.clone().for_each(|row| rows[row] += 1);
            }
            assert!(rows.iter().all(|count| *count == 1), "{}", w.name);
        }
    }
}
