//! How far training moved each weight: |w - w0| from a start w0 drawn from Xavier's uniform law.

use rayon::prelude::*;

use super::role::Fans;
use crate::error::Result;
use crate::interop::safetensors::{ShardTensor, Shards, to_f32};
use crate::random::Key;

/// Neighbours that are taken together where not all weights are.
const BLOCK: usize = 1 << 12;

/// A sample of distances, smallest first.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    /// |w - w0| of the sampled weights, sorted.
    pub sorted: Vec<f32>,
    /// One in so many blocks of 4096 neighbours was taken; 1 for all.
    pub every: usize,
}

impl Distances {
    /// Mean distance; NaN for none.
    pub fn mean(&self) -> f64 {
        self.sorted.iter().map(|d| f64::from(*d)).sum::<f64>() / self.sorted.len() as f64
    }

    /// The distance that `share` of the weights do not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let place = (last as f64 * share).round() as usize;
        self.sorted.get(place.min(last)).map_or(f64::NAN, |d| f64::from(*d))
    }
}

/// Distances of the finite weights of `matrices`, at most about `most` of them: every n-th block of 4096 neighbours of each.
///
/// Matrix i starts at `key.fold_in(i).uniform(-b, b)` with Xavier's b, one draw per block: block j from
/// `key.fold_in(i).fold_in(j)`. Nothing is stored but the distances.
///
/// **Errors** when a tensor holds no real floating-point numbers.
pub fn distances(shards: &Shards, matrices: &[(&ShardTensor, Fans)], key: Key, most: usize) -> Result<Distances> {
    let total: usize = matrices.iter().map(|m| m.0.len()).sum();
    let every = total.div_ceil(most.max(1)).max(1);
    let mut all = Vec::with_capacity(total.min(most));
    for (i, (tensor, fans)) in matrices.iter().enumerate() {
        let (bytes, size) = (shards.bytes(tensor), tensor.byte_len() / tensor.len().max(1));
        let (bound, key) = (fans.xavier_max() as f32, key.fold_in(i as u32));
        let blocks: Vec<usize> = (0..tensor.len().div_ceil(BLOCK)).step_by(every).collect();
        let found: Vec<Vec<f32>> = blocks
            .par_iter()
            .map(|j| {
                let mut block = Vec::with_capacity(BLOCK);
                let end = ((j + 1) * BLOCK * size).min(bytes.len());
                to_f32(tensor.dtype, &bytes[j * BLOCK * size..end], &mut block)?;
                let start = key.fold_in(*j as u32).uniform::<f32>(&[block.len()], -bound, bound);
                block.iter_mut().zip(start).for_each(|(w, s)| *w = (*w - s).abs());
                block.retain(|d| d.is_finite());
                Ok(block)
            })
            .collect::<Result<_>>()?;
        all.extend(found.into_iter().flatten());
        shards.release(tensor);
    }
    all.par_sort_unstable_by(f32::total_cmp);
    Ok(Distances { sorted: all, every })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::array::Array;
    use crate::interop::safetensors::{Tensors, write};

    #[test]
    fn distances_are_from_the_stated_draws() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a.safetensors");
        let mut values = Key::new(5).normal::<f32>(&[100 * 100]).into_raw_vec_and_offset().0;
        values[3] = f32::NAN;
        let tensors = BTreeMap::from([
            ("a".to_owned(), Array::from_slice(&[100, 100], &values)),
            ("b".to_owned(), Array::from_slice(&[10, 20], &values[500..700])),
        ]);
        write(&path, &Tensors { tensors, metadata: BTreeMap::new() }).expect("written");
        let shards = Shards::open(&[path]).expect("opens");
        let matrices: Vec<_> = shards
            .tensors()
            .iter()
            .map(|t| (t, Fans { inputs: t.dims[1], outputs: t.dims[0], inputs_first: false }))
            .collect();
        assert_eq!(matrices[0].0.name, "a");
        let blocks = |value: &[f32], i: u32, bound: f64, every: usize| -> Vec<f32> {
            let key = Key::new(9).fold_in(i);
            let each = value.chunks(BLOCK).enumerate().step_by(every);
            each.flat_map(|(j, w)| {
                let start = key.fold_in(j as u32).uniform::<f32>(&[w.len()], -bound as f32, bound as f32);
                w.iter().zip(start).map(|(w, s)| (w - s).abs()).filter(|d| d.is_finite()).collect::<Vec<_>>()
            })
            .collect()
        };
        for (most, every, count) in [(usize::MAX, 1, 10_199), (10_200, 1, 10_199), (6_000, 2, 4095 + 1808 + 200)] {
            let found = distances(&shards, &matrices, Key::new(9), most).expect("distances");
            let mut want = blocks(&values, 0, (6.0f64 / 200.0).sqrt(), every);
            want.extend(blocks(&values[500..700], 1, (6.0f64 / 30.0).sqrt(), every));
            want.sort_by(f32::total_cmp);
            assert_eq!((found.every, found.sorted.len()), (every, count));
            assert_eq!(found.sorted, want);
            assert_eq!(found.quantile(1.0), f64::from(want[count - 1]));
            assert!((found.mean() - want.iter().map(|d| f64::from(*d)).sum::<f64>() / count as f64).abs() < 1e-9);
        }
        let none = distances(&shards, &[], Key::new(9), 5).expect("nothing");
        assert!(none.mean().is_nan() && none.quantile(0.5).is_nan());
    }
}
