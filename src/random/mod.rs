//! Random numbers on the host: JAX's threefry2x32, bit for bit.
//!
//! `Key::new(0)` and `jax.random.key(0)` start the same streams, so a network drawn here is the network drawn there.
//! Keys are values: a function of a key always gives the same numbers; use [`Key::split`] or [`Key::fold_in`] for more.
//!
//! The form is JAX's default, `jax_threefry_partitionable=True` (since 0.5.0); [`Variant::Original`] is the older one.
//! What was checked against JAX 0.10.2: keys, splits, bits, integers, permutations and bounded uniforms to the bit,
//! normals to 4 units in the last place (XLA's logarithm is not the host's).

mod draw;
mod erf_inv;
mod threefry;

pub use draw::Real;
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
