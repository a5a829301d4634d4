//! Draws: bits, uniforms, normals, integers, permutations, named as in `jax.random`.

use ndarray::ArrayD;

use super::erf_inv::{erf_inv_f32, erf_inv_f64};
use super::threefry::threefry2x32;
use super::{Key, Variant, shaped};
use crate::array::Element;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Floating-point types that can be drawn. Sealed.
pub trait Real: sealed::Sealed + Element {
    /// `n` uniforms on [0, 1): the mantissa's bits.
    fn unit(key: Key, n: usize) -> Vec<Self>;
    /// `max(lo, u (hi - lo) + lo)` of each, in one rounding, as XLA contracts it.
    fn between(u: &mut [Self], lo: Self, hi: Self);
    /// sqrt(2) erf_inv(u) of each of these uniforms on (-1, 1).
    fn normal_from(u: &mut [Self]);
    /// The smallest value above -1.
    const ABOVE_MINUS_ONE: Self;
    /// One.
    const ONE: Self;
}

impl Real for f32 {
    fn unit(key: Key, n: usize) -> Vec<f32> {
        key.words32(n).into_iter().map(|b| f32::from_bits(b >> 9 | 0x3f80_0000) - 1.0).collect()
    }
    fn between(u: &mut [f32], lo: f32, hi: f32) {
        // u, hi - lo and lo have 24 bits: with sizes not too far apart, f64 holds the sum exactly, and is vector code.
        let ratio = (lo / (hi - lo)).abs();
        if lo == 0.0 || (ratio > (-27f32).exp2() && ratio < 16.0) {
            let (scale, offset) = (f64::from(hi - lo), f64::from(lo));
            u.iter_mut().for_each(|u| *u = ((f64::from(*u) * scale + offset) as f32).max(lo));
        } else {
            u.iter_mut().for_each(|u| *u = u.mul_add(hi - lo, lo).max(lo));
        }
    }
    fn normal_from(u: &mut [f32]) {
        erf_inv_f32(u);
        u.iter_mut().for_each(|u| *u *= std::f32::consts::SQRT_2);
    }
    const ABOVE_MINUS_ONE: f32 = -1.0 + f32::EPSILON / 2.0;
    const ONE: f32 = 1.0;
}

impl Real for f64 {
    fn unit(key: Key, n: usize) -> Vec<f64> {
        key.words64(n).into_iter().map(|b| f64::from_bits(b >> 12 | 0x3ff0_0000_0000_0000) - 1.0).collect()
    }
    fn between(u: &mut [f64], lo: f64, hi: f64) {
        u.iter_mut().for_each(|u| *u = u.mul_add(hi - lo, lo).max(lo));
    }
    fn normal_from(u: &mut [f64]) {
        u.iter_mut().for_each(|u| *u = std::f64::consts::SQRT_2 * erf_inv_f64(*u));
    }
    const ABOVE_MINUS_ONE: f64 = -1.0 + f64::EPSILON / 2.0;
    const ONE: f64 = 1.0;
}

impl Key {
    /// `n` words of 32 bits.
    fn words32(self, n: usize) -> Vec<u32> {
        match self.variant {
            Variant::Partitionable => {
                // In place over the lower halves of the counts: the inner loop becomes vector code.
                let mut words: Vec<u32> = (0..n).map(|i| i as u32).collect();
                for (i, chunk) in words.chunks_mut(1 << 16).enumerate() {
                    let high = (i >> 16) as u32;
                    for word in chunk {
                        let [a, b] = threefry2x32(self.words, [high, *word]);
                        *word = a ^ b;
                    }
                }
                words
            }
            Variant::Original => self.paired_words(n),
        }
    }

    /// `n` words of 64 bits.
    fn words64(self, n: usize) -> Vec<u64> {
        let join = |hi: u32, lo: u32| u64::from(hi) << 32 | u64::from(lo);
        match self.variant {
            Variant::Partitionable => (0..n as u64)
                .map(|i| {
                    let [a, b] = self.block(i);
                    join(a, b)
                })
                .collect(),
            Variant::Original => {
                let words = self.paired_words(2 * n);
                (0..n).map(|i| join(words[i], words[n + i])).collect()
            }
        }
    }

    /// `jax.random.bits(key, dims, "uint32")`.
    pub fn bits32(self, dims: &[usize]) -> ArrayD<u32> {
        shaped(dims, self.words32(dims.iter().product()))
    }

    /// `jax.random.bits(key, dims, "uint64")` (JAX needs x64 for it).
    pub fn bits64(self, dims: &[usize]) -> ArrayD<u64> {
        shaped(dims, self.words64(dims.iter().product()))
    }

    /// `jax.random.bits(key, dims, "uint16")`.
    pub fn bits16(self, dims: &[usize]) -> ArrayD<u16> {
        shaped(dims, self.parts_of_words(dims.iter().product(), 16).map(|part| part as u16).collect())
    }

    /// `jax.random.bits(key, dims, "uint8")`.
    pub fn bits8(self, dims: &[usize]) -> ArrayD<u8> {
        shaped(dims, self.parts_of_words(dims.iter().product(), 8).map(|part| part as u8).collect())
    }

    /// `n` values of which the lowest `width` bits count: the partitionable form takes the low end of one word for each,
    /// the original one cuts each word up, low end first.
    fn parts_of_words(self, n: usize, width: usize) -> impl Iterator<Item = u32> {
        let per_word = match self.variant {
            Variant::Partitionable => 1,
            Variant::Original => 32 / width,
        };
        let words = self.words32(n.div_ceil(per_word));
        (0..n).map(move |i| words[i / per_word] >> (width * (i % per_word)))
    }

    /// `jax.random.uniform(key, dims, minval=lo, maxval=hi)`, on [lo, hi).
    pub fn uniform<T: Real>(self, dims: &[usize], lo: T, hi: T) -> ArrayD<T> {
        shaped(dims, self.uniforms(dims, lo, hi))
    }

    fn uniforms<T: Real>(self, dims: &[usize], lo: T, hi: T) -> Vec<T> {
        let mut values = T::unit(self, dims.iter().product());
        T::between(&mut values, lo, hi);
        values
    }

    /// `jax.random.normal(key, dims)`: mean 0, variance 1.
    pub fn normal<T: Real>(self, dims: &[usize]) -> ArrayD<T> {
        let mut values = self.uniforms(dims, T::ABOVE_MINUS_ONE, T::ONE);
        T::normal_from(&mut values);
        shaped(dims, values)
    }

    /// `jax.random.truncated_normal(key, lower, upper, dims)` in f32.
    ///
    /// Between bounds on one side of 0 few digits of erf are left (JAX's too), and beyond 3 the two differ in the third.
    pub fn truncated_normal(self, dims: &[usize], lower: f32, upper: f32) -> ArrayD<f32> {
        let at = |x: f32| libm::erff(x / std::f32::consts::SQRT_2);
        let mut values = self.uniforms(dims, at(lower), at(upper));
        f32::normal_from(&mut values);
        shaped(dims, values).mapv(|z| z.max(lower.next_up()).min(upper.next_down()))
    }

    /// `jax.random.randint(key, dims, lo, hi)`, on lo .. hi; `lo` where the range is empty.
    pub fn randint(self, dims: &[usize], lo: i32, hi: i32) -> ArrayD<i32> {
        let keys = self.split(2);
        let n = dims.iter().product();
        let span = if hi > lo { hi.wrapping_sub(lo) as u32 } else { 1 };
        // 2^32 mod span, by which the upper words count.
        let half = (1u32 << 16) % span;
        let weight = half.wrapping_mul(half) % span;
        let (high, low) = (keys[0].words32(n), keys[1].words32(n));
        let offset = |(h, l): (u32, u32)| (h % span).wrapping_mul(weight).wrapping_add(l % span) % span;
        shaped(dims, high.into_iter().zip(low).map(|w| lo.wrapping_add(offset(w) as i32)).collect())
    }

    /// `jax.random.bernoulli(key, p, dims)`.
    pub fn bernoulli(self, dims: &[usize], p: f32) -> ArrayD<bool> {
        self.uniform::<f32>(dims, 0.0, 1.0).mapv(|u| u < p)
    }

    /// `jax.random.permutation(key, n)`: 0 .. n in random order, by stable sorts on random words.
    pub fn permutation(self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        // Enough rounds that ties among 32-bit words do not matter (JAX's rule: 3 ln n / ln 2^32, rounded up).
        let rounds = (3.0 * (n.max(1) as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize;
        let mut key = self;
        for _ in 0..rounds {
            let keys = key.split(2);
            key = keys[0];
            let words = keys[1].words32(n);
            let mut pairs: Vec<(u32, u32)> = words.into_iter().zip(order).collect();
            pairs.sort_by_key(|&(word, _)| word);
            order = pairs.into_iter().map(|(_, i)| i).collect();
        }
        order
    }
}
