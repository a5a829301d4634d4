//! Random numbers on the host: JAX's threefry2x32, bit for bit.
//!
//! `Key::new(0)` and `jax.random.key(0)` start the same streams, so a network drawn here is the network drawn there.
//! Keys are values: a function of a key always gives the same numbers; use [`Key::split`] or [`Key::fold_in`] for more.
//!
//! The form is JAX's default, `jax_threefry_partitionable=True` (since 0.5.0); [`Variant::Original`] is the older one.
//! What was checked against JAX 0.10.2: keys, splits, bits, integers, permutations and bounded uniforms to the bit,
//! normals to 4 units in the last place (XLA's logarithm is not the host's).
//!
//! ```
//! use hlograd::random::Key;
//! // jax.random.key(0); jax.random.split; jax.random.uniform
//! let keys = Key::new(0).split(2);
//! assert_eq!(keys[0].words(), [1797259609, 2579123966]);
//! let x = keys[1].uniform::<f32>(&[2, 3], -1.0, 1.0);
//! assert_eq!(x, Key::new(0).split(2)[1].uniform(&[2, 3], -1.0, 1.0));
//! ```

mod draw;
mod erf_inv;
mod threefry;

pub use draw::Real;
use ndarray::{ArrayD, IxDyn};
use threefry::threefry2x32;

/// Which of JAX's two ways of counting blocks a key uses (`jax_threefry_partitionable`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Variant {
    /// One block per element, counted by its index: the default since JAX 0.5.0.
    #[default]
    Partitionable,
    /// One block per two elements, the second half of the counts paired with the first.
    Original,
}

/// A random key: two words, as `jax.random.key_data` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    words: [u32; 2],
    variant: Variant,
}

impl Key {
    /// `jax.random.key(seed)`: the upper and the lower half of the seed. (Without x64 JAX itself keeps the lower only.)
    pub fn new(seed: u64) -> Self {
        Key::from_words([(seed >> 32) as u32, seed as u32])
    }

    /// A key with these words.
    pub fn from_words(words: [u32; 2]) -> Self {
        Key { words, variant: Variant::default() }
    }

    /// The same words under another [`Variant`].
    pub fn with_variant(self, variant: Variant) -> Self {
        Key { variant, ..self }
    }

    /// The two words.
    pub fn words(self) -> [u32; 2] {
        self.words
    }

    /// `jax.random.split(key, n)`: n independent keys.
    pub fn split(self, n: usize) -> Vec<Key> {
        let key = |words| Key { words, ..self };
        match self.variant {
            Variant::Partitionable => (0..n).map(|i| key(self.block(i as u64))).collect(),
            Variant::Original => {
                let words = self.paired_words(2 * n);
                words.chunks_exact(2).map(|w| key([w[0], w[1]])).collect()
            }
        }
    }

    /// `jax.random.split(key, dims)`: an array of independent keys.
    pub fn split_shape(self, dims: &[usize]) -> ArrayD<Key> {
        shaped(dims, self.split(dims.iter().product()))
    }

    /// `jax.random.fold_in(key, data)`: the key of item `data` of a stream.
    pub fn fold_in(self, data: u32) -> Key {
        Key { words: threefry2x32(self.words, [0, data]), ..self }
    }

    /// The block of one 64-bit count.
    fn block(self, count: u64) -> [u32; 2] {
        threefry2x32(self.words, [(count >> 32) as u32, count as u32])
    }

    /// The original form's stream of `n` words: count i is paired with count i + n/2.
    fn paired_words(self, n: usize) -> Vec<u32> {
        let half = n.div_ceil(2);
        // An odd length is padded by a count of 0.
        let count = |i: usize| if i < n { i as u32 } else { 0 };
        let blocks: Vec<[u32; 2]> = (0..half).map(|i| threefry2x32(self.words, [count(i), count(i + half)])).collect();
        blocks.iter().map(|b| b[0]).chain(blocks.iter().map(|b| b[1])).take(n).collect()
    }
}

/// Row-major values as an array of shape `dims`.
fn shaped<T>(dims: &[usize], values: Vec<T>) -> ArrayD<T> {
    // The number of values is the product of dims by construction.
    ArrayD::from_shape_vec(IxDyn(dims), values).unwrap_or_else(|_| unreachable!("draws fill their shape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by JAX 0.10.2 with `jax_threefry_partitionable=False`; tests/golden has the rest.
    #[test]
    fn the_original_form_cuts_words_up() {
        let key = Key::new(42).with_variant(Variant::Original);
        assert_eq!(key.bits8(&[7]).into_raw_vec_and_offset().0, [45, 179, 215, 3, 244, 131, 208]);
        let bits16 = [8426, 37627, 39131, 56140, 55571, 3896, 35161];
        assert_eq!(key.bits16(&[7]).into_raw_vec_and_offset().0, bits16);
        assert_eq!(key.permutation(10), [9, 0, 2, 6, 1, 4, 5, 8, 3, 7]);
    }

    /// Printed by JAX 0.10.2.
    #[test]
    fn integers_reach_the_ends_of_their_type() {
        let draw = |lo, hi| Key::new(42).randint(&[4], lo, hi).into_raw_vec_and_offset().0;
        assert_eq!(draw(0, i32::MAX), [977810629, 1236381715, 780371127, 1127988417]);
        assert_eq!(draw(i32::MIN, i32::MAX), [977810628, 1236381714, -1367112521, -1019495231]);
        assert_eq!(draw(7, 3), [7; 4], "an empty range");
    }

    #[test]
    fn split_shape_is_split_in_row_major_order() {
        let keys = Key::new(1).split_shape(&[2, 3]);
        assert_eq!(keys.shape(), [2, 3]);
        assert_eq!(keys.iter().copied().collect::<Vec<_>>(), Key::new(1).split(6));
        assert_eq!(Key::new(1).split_shape(&[0, 3]).len(), 0);
    }
}
