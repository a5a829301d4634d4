//! Going through the bytes of a tensor: over all cores, a few megabytes in memory at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::central::Central;
use super::order::{KEPT, Needs, counted, end, key, merged};
use crate::error::Result;
use crate::interop::safetensors::{Dtype, ShardTensor, Shards, to_f64};

/// Bytes that one core works on.
const CHUNK: usize = 1 << 22;
/// Elements that the caches hold.
const BLOCK: usize = 1 << 10;
/// Up to this many elements a tensor of a wide type is sorted instead of counted.
const FEW: usize = 1 << 16;

/// What is known of a tensor's elements after going through it once.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Sorted keys and how many elements have them.
    pub(super) bins: Vec<(i32, u64)>,
    /// All values and how often they occur, sorted; `None` for a large tensor of a wide type, whose values [`collect`]
    /// brings where they are needed.
    pub(super) values: Option<Vec<(f64, u64)>>,
    pub(super) central: Central,
    pub(super) not_finite: u64,
}

impl Counted {
    /// The largest magnitude, or a number a little above it; 0 where there is none.
    pub(super) fn largest_magnitude(&self) -> f64 {
        match &self.values {
            Some(values) => [values.first(), values.last()].into_iter().flatten().fold(0.0, |m, v| v.0.abs().max(m)),
            None => [self.bins.first(), self.bins.last()].into_iter().flatten().fold(0.0, |m, b| end(b.0).max(m)),
        }
    }
}

/// Counts the elements of a tensor: `finite` ones only, but for `not_finite`.
///
/// **Errors** when they are no real floating-point numbers.
pub(super) fn count(shards: &Shards, tensor: &ShardTensor) -> Result<Counted> {
    match tensor.dtype {
        Dtype::F32 if tensor.len() > FEW => Ok(count_wide::<f32>(shards, tensor)),
        Dtype::F64 if tensor.len() > FEW => Ok(count_wide::<f64>(shards, tensor)),
        Dtype::F32 | Dtype::F64 => {
            let mut values = Vec::with_capacity(tensor.len());
            to_f64(tensor.dtype, shards.bytes(tensor), &mut values)?;
            shards.release(tensor);
            let all = values.len();
            values.retain(|v| v.is_finite());
            Ok(of_values((all - values.len()) as u64, counted(values)))
        }
        _ => count_patterns(shards, tensor),
    }
}

/// Of all values, sorted.
fn of_values(not_finite: u64, values: Vec<(f64, u64)>) -> Counted {
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for (value, count) in &values {
        match bins.last_mut() {
            Some(last) if last.0 == key(*value) => last.1 += count,
            _ => bins.push((key(*value), *count)),
        }
    }
    Counted { bins, central: Central::of_counted(&values), not_finite, values: Some(values) }
}

/// Calls `work` with the place and bytes of each chunk, on all cores, each with a state of its own; the bytes leave the
/// memory again.
fn in_chunks<W: Send>(
    shards: &Shards,
    tensor: &ShardTensor,
    new: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize, &[u8]) + Sync,
) -> Vec<W> {
    let bytes = shards.bytes(tensor);
    let chunks = bytes.len().div_ceil(CHUNK);
    let range = |i: usize| (i * CHUNK).min(bytes.len())..((i + 1) * CHUNK).min(bytes.len());
    let workers = rayon::current_num_threads().min(chunks).max(1);
    let next = AtomicUsize::new(0);
    let one = |_| {
        let mut state = new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= chunks {
                return state;
            }
            shards.load_part(tensor, range(i));
            work(&mut state, i, &bytes[range(i)]);
            shards.release_part(tensor, range(i));
        }
    };
    (0..workers).into_par_iter().with_max_len(1).map(one).collect()
}

/// Counts of table entries that do not overflow.
struct Tally {
    counts: Vec<u32>,
    pending: u64,
    totals: Option<Vec<u64>>,
}

impl Tally {
    fn new(entries: usize) -> Tally {
        Tally { counts: vec![0; entries], pending: 0, totals: None }
    }

    /// Makes room for so many more.
    fn expect(&mut self, more: usize) {
        self.pending += more as u64;
        if self.pending > u64::from(u32::MAX) {
            let totals = self.totals.take().unwrap_or_else(|| vec![0; self.counts.len()]);
            self.totals = Some(totals.iter().zip(&self.counts).map(|(t, c)| t + u64::from(*c)).collect());
            self.counts.fill(0);
            self.pending = more as u64;
        }
    }

    /// How often an entry occurred.
    fn total(&self, entry: usize) -> u64 {
        u64::from(self.counts[entry]) + self.totals.as_ref().map_or(0, |t| t[entry])
    }

    /// Entries that occurred, and how often.
    fn entries(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..self.counts.len()).map(|i| (i, self.total(i))).filter(|e| e.1 > 0)
    }
}

/// Counts of all cores.
fn totals<'a>(entries: usize, tallies: impl Iterator<Item = &'a Tally>) -> Vec<u64> {
    let mut totals = vec![0u64; entries];
    for (i, count) in tallies.flat_map(Tally::entries) {
        totals[i] += count;
    }
    totals
}

/// Counts the 256 or 65536 bit patterns, which say everything.
fn count_patterns(shards: &Shards, tensor: &ShardTensor) -> Result<Counted> {
    let wide = matches!(tensor.dtype, Dtype::F16 | Dtype::BF16);
    let patterns: Vec<u8> = match wide {
        true => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        false => (0..=u8::MAX).collect(),
    };
    let mut values = Vec::new();
    to_f64(tensor.dtype, &patterns, &mut values)?;
    let tallies = in_chunks(
        shards,
        tensor,
        || Tally::new(values.len()),
        |tally, _, bytes| match wide {
            true => {
                tally.expect(bytes.len() / 2);
                if let Some(counts) = tally.counts.first_chunk_mut::<{ 1 << 16 }>() {
                    for pair in bytes.as_chunks::<2>().0 {
                        counts[usize::from(u16::from_le_bytes(*pair))] += 1;
                    }
                }
            }
            false => {
                tally.expect(bytes.len());
                if let Some(counts) = tally.counts.first_chunk_mut::<256>() {
                    bytes.iter().for_each(|b| counts[usize::from(*b)] += 1);
                }
            }
        },
    );
    let totals = totals(values.len(), tallies.iter());
    let mut pairs: Vec<(f64, u64)> = values.into_iter().zip(totals).filter(|p| p.1 > 0).collect();
    let not_finite = pairs.iter().filter(|p| !p.0.is_finite()).map(|p| p.1).sum();
    pairs.retain(|p| p.0.is_finite());
    pairs.iter_mut().for_each(|p| p.0 += 0.0);
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(of_values(not_finite, merged(&pairs, &[])))
}

/// f32 and f64: types with too many patterns to count.
trait Wide: Copy + Into<f64> + Send + Sync {
    /// Size of a table of bins.
    const ENTRIES: usize;
    /// Smallest magnitude's key of numbers that are not finite.
    const NOT_FINITE: i32;
    /// Reads elements.
    fn read(bytes: &[u8], out: &mut Vec<Self>);
    /// Place of the number's bin in the table.
    fn entry(self) -> usize;
    /// Key of a place.
    fn key_of(entry: usize) -> i32;
}

/// Bit of the table places of negative f64.
const SIGN: usize = 1 << 22;

impl Wide for f32 {
    const ENTRIES: usize = 1 << 20;
    const NOT_FINITE: i32 = 255 << KEPT;
    fn read(bytes: &[u8], out: &mut Vec<f32>) {
        out.clear();
        out.extend(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)));
    }
    fn entry(self) -> usize {
        (self.to_bits() >> 12) as usize
    }
    fn key_of(entry: usize) -> i32 {
        let magnitude = (entry & 0x7ffff) as i32;
        if entry > 0x7ffff { -magnitude } else { magnitude }
    }
}

impl Wide for f64 {
    const ENTRIES: usize = 2 * SIGN;
    const NOT_FINITE: i32 = (2047 - 896) << KEPT;
    fn read(bytes: &[u8], out: &mut Vec<f64>) {
        out.clear();
        out.extend(bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)));
    }
    fn entry(self) -> usize {
        let key = key(self.abs()) as usize % SIGN;
        if self < 0.0 { key | SIGN } else { key }
    }
    fn key_of(entry: usize) -> i32 {
        let magnitude = (entry % SIGN) as i32;
        if entry >= SIGN { -magnitude } else { magnitude }
    }
}

/// What one core has seen of a tensor.
struct Seen<T> {
    tally: Tally,
    /// By chunk, so that the sum does not depend on which core took which.
    parts: Vec<(usize, Central)>,
    block: Vec<T>,
}

impl<T: Wide> Seen<T> {
    fn look(&mut self, place: usize, bytes: &[u8]) {
        self.tally.expect(bytes.len() / size_of::<T>());
        let mut central = Central::default();
        for bytes in bytes.chunks(BLOCK * size_of::<T>()) {
            T::read(bytes, &mut self.block);
            let counts = &mut self.tally.counts[..T::ENTRIES];
            for value in self.block.as_slice() {
                counts[value.entry() % T::ENTRIES] += 1;
            }
            let mut part = Central::of(&self.block);
            if !part.is_finite() {
                self.block.retain(|v| (*v).into().is_finite());
                part = Central::of(&self.block);
            }
            central = central.merged(&part);
        }
        self.parts.push((place, central));
    }
}

fn count_wide<T: Wide>(shards: &Shards, tensor: &ShardTensor) -> Counted {
    let new = || Seen::<T> { tally: Tally::new(T::ENTRIES), parts: Vec::new(), block: Vec::with_capacity(BLOCK) };
    let seen = in_chunks(shards, tensor, new, Seen::look);
    let totals = totals(T::ENTRIES, seen.iter().map(|s| &s.tally));
    // From the most negative on; 0 and -0 share their key.
    let rising = (T::ENTRIES / 2..T::ENTRIES).rev().chain(0..T::ENTRIES / 2);
    let entries: Vec<(i32, u64)> = rising.filter(|i| totals[*i] > 0).map(|i| (T::key_of(i), totals[i])).collect();
    let mut bins = merged(&entries, &[]);
    let not_finite = bins.iter().filter(|b| b.0.abs() >= T::NOT_FINITE).map(|b| b.1).sum();
    bins.retain(|b| b.0.abs() < T::NOT_FINITE);
    let mut parts: Vec<(usize, Central)> = seen.iter().flat_map(|s| s.parts.iter().copied()).collect();
    parts.sort_unstable_by_key(|p| p.0);
    Counted {
        bins,
        values: None,
        central: parts.iter().fold(Central::default(), |sum, part| sum.merged(&part.1)),
        not_finite,
    }
}

/// The values of a counted tensor in the bins that one of `needs` asks for, and how often they occur, sorted.
pub(super) fn collect(shards: &Shards, tensor: &ShardTensor, bins: &[(i32, u64)], needs: &[&Needs]) -> Vec<(f64, u64)> {
    let wanted = |key: i32| needs.iter().any(|n| n.keys.contains(&key));
    let keys: Vec<(i32, bool)> = bins.iter().map(|b| (b.0, wanted(b.0))).collect();
    let keys: Vec<(i32, bool)> =
        keys.into_iter().filter(|(key, wanted)| *wanted || needs.iter().any(|n| n.has(*key))).collect();
    match tensor.dtype {
        Dtype::F32 => collect_f32(shards, tensor, &keys),
        _ => collect_f64(shards, tensor, &keys),
    }
}

/// Bits of an f32 below those of its bin.
const FINE: usize = 1 << (23 - KEPT);
/// Stands for a bin whose elements are kept one by one.
const LOOSE: u16 = u16::MAX;

/// Bins that are asked for are counted by the bits that are left, so that any number of equal elements takes the same
/// memory. The rest, in the tail, are few, and kept.
fn collect_f32(shards: &Shards, tensor: &ShardTensor, keys: &[(i32, bool)]) -> Vec<(f64, u64)> {
    let mut slots = vec![0u16; f32::ENTRIES];
    let mut entries = Vec::new();
    for (key, wanted) in keys {
        let entry = (key.unsigned_abs() as usize) | if *key < 0 { f32::ENTRIES / 2 } else { 0 };
        // 0 and -0 share their key.
        for entry in [(*key == 0).then_some(f32::ENTRIES / 2), Some(entry)].into_iter().flatten() {
            slots[entry] = LOOSE;
            if *wanted && entries.len() + 1 < usize::from(LOOSE) {
                entries.push(entry);
                slots[entry] = entries.len() as u16;
            }
        }
    }
    let new = || (Tally::new(entries.len() * FINE), Vec::<f32>::new());
    let seen = in_chunks(shards, tensor, new, |(tally, loose), _, bytes| {
        tally.expect(bytes.len() / 4);
        let (counts, slots) = (tally.counts.as_mut_slice(), &slots[..f32::ENTRIES]);
        for word in bytes.as_chunks::<4>().0 {
            let bits = u32::from_le_bytes(*word);
            match slots[(bits >> 12) as usize % f32::ENTRIES] {
                0 => {}
                LOOSE => loose.push(f32::from_bits(bits)),
                slot => counts[(usize::from(slot) - 1) * FINE + bits as usize % FINE] += 1,
            }
        }
    });
    // In rising order, as the keys are: the magnitudes of negative numbers fall.
    let of_slot = |(slot, entry): (usize, &usize)| {
        let falls = *entry >= f32::ENTRIES / 2;
        let mut pairs = Vec::new();
        for i in 0..FINE {
            let low = if falls { FINE - 1 - i } else { i };
            let count: u64 = seen.iter().map(|s| s.0.total(slot * FINE + low)).sum();
            if count > 0 {
                let bits = ((entry << (23 - KEPT)) | low) as u32;
                pairs.push((f64::from(f32::from_bits(bits)) + 0.0, count));
            }
        }
        pairs
    };
    let pairs: Vec<(f64, u64)> = entries.par_iter().enumerate().flat_map_iter(of_slot).collect();
    let loose = seen.into_iter().flat_map(|s| s.1).map(f64::from).collect();
    merged(&pairs, &counted(loose))
}

/// Elements are kept one by one, and equal ones put together from time to time.
fn collect_f64(shards: &Shards, tensor: &ShardTensor, keys: &[(i32, bool)]) -> Vec<(f64, u64)> {
    let mut wanted = vec![false; f64::ENTRIES];
    for (key, _) in keys {
        let magnitude = key.unsigned_abs() as usize;
        // Small ones of either sign share the key 0.
        wanted[magnitude] |= *key >= 0;
        wanted[magnitude | SIGN] |= *key <= 0;
    }
    let new = || (Vec::<(f64, u64)>::new(), Vec::<f64>::new());
    let seen = in_chunks(shards, tensor, new, |(values, loose), _, bytes| {
        let found = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b));
        loose.extend(found.filter(|v| v.is_finite() && wanted[v.entry() % f64::ENTRIES]));
        if loose.len() > CHUNK / 4 {
            *values = merged(values, &counted(std::mem::take(loose)));
        }
    });
    seen.into_iter().fold(Vec::new(), |all, (values, loose)| merged(&all, &merged(&values, &counted(loose))))
}
