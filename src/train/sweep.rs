//! Sweeps: which of many runs are still to do, who does them, and where their results lie.
//!
//! A sweep is a list of resolved configurations. Each has a stable hash; its result is one Parquet file of one row,
//! `HASH.parquet`, in the sweep's folder. The file appears when the run is complete, so any number of processes can
//! share a folder, a sweep that was cut off goes on where it stopped, and joining folders is copying files.
//!
//! ```
//! use sinexp::train::sweep::{Shard, Store, stable_hash};
//! let hash = stable_hash(&("uniform-mm", 16, 0.001))?;
//! let folder = std::env::temp_dir().join(format!("sinexp-doc-sweep-{}", std::process::id()));
//! assert!(!Store::new(folder).is_done(&hash));
//! assert_eq!(Shard::ALL.share(&[1.0, 1.0]), [true, true]);
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use polars::prelude::{DataFrame, ParquetReader, SerReader};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::{hex, reason, unreadable, write_bytes};
use crate::report::{Table, TableFormat};

/// The first 16 hexadecimal digits of the SHA-256 of the configuration as JSON with sorted keys. The same on every
/// machine and in every version that writes the same fields.
pub fn stable_hash<C: Serialize>(config: &C) -> Result<String> {
    // serde_json's maps are sorted by key.
    let value = serde_json::to_value(config).map_err(|e| Error::numeric("configuration", e))?;
    let digest = Sha256::digest(value.to_string().as_bytes());
    Ok(hex(&digest[..8]))
}

/// Part k of n of a sweep: `1/4` .. `4/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// 0 .. n - 1.
    index: usize,
    count: usize,
}

impl Shard {
    /// The whole sweep.
    pub const ALL: Shard = Shard { index: 0, count: 1 };

    /// Which items of the sweep's list belong to this part, given what each costs: from the costliest down, each goes to
    /// the part that has the least to do so far. All parts agree.
    pub fn share(&self, costs: &[f64]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|a, b| costs[*b].total_cmp(&costs[*a]));
        let mut parts = vec![0.0; self.count.min(costs.len())];
        let mut mine = vec![false; costs.len()];
        for i in order {
            let least = (0..parts.len()).min_by(|a, b| f64::total_cmp(&parts[*a], &parts[*b])).unwrap_or(0);
            parts[least] += costs[i];
            mine[i] = least == self.index;
        }
        mine
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = |t: &str| t.trim().parse::<usize>().ok();
        match text.split_once('/').map(|(k, n)| (number(k), number(n))) {
            Some((Some(k), Some(n))) if (1..=n).contains(&k) => Ok(Shard { index: k - 1, count: n }),
            _ => Err("give k/n with k from 1 to n, as 1/4 .. 4/4".into()),
        }
    }
}

/// How many runs train together in one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// As many as the caller finds fastest.
    Auto,
    /// At most this many.
    AtMost(usize),
}

impl FromStr for Batch {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Batch::Auto),
            Ok(n) if n > 0 => Ok(Batch::AtMost(n)),
            _ => Err("give `auto` or a number of runs, at least 1".into()),
        }
    }
}

/// Groups positions of `keys` with the same key, in order, at most `most(key)` together.
///
/// The groups depend on the list alone, not on what is done already, so that all shards agree on them.
pub fn batches<K: PartialEq>(keys: &[K], most: impl Fn(&K) -> usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (i, key) in keys.iter().enumerate() {
        let room = |b: &&mut Vec<usize>| keys[b[0]] == *key && b.len() < most(key).max(1);
        match all.iter_mut().rev().find(room) {
            Some(batch) => batch.push(i),
            None => all.push(vec![i]),
        }
    }
    all
}

/// The folder of a sweep's results.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// In `folder`, which must exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Store { folder: folder.into() }
    }

    /// The path of one of the run's files: `HASH.SUFFIX`.
    pub fn path(&self, hash: &str, suffix: &str) -> PathBuf {
        self.folder.join(format!("{hash}.{suffix}"))
    }

    /// Whether the run's result is there.
    pub fn is_done(&self, hash: &str) -> bool {
        self.path(hash, "parquet").is_file()
    }

    /// Records a result, one row. The run's other files must be complete by now.
    ///
    /// **Errors** when the file cannot be written.
    pub fn put(&self, hash: &str, row: &Table) -> Result<()> {
        row.write(self.path(hash, "parquet"), TableFormat::Parquet)
    }

    /// The row of a run, None where it is not done.
    ///
    /// **Errors** when the file is damaged: it names it and says to delete it.
    pub fn get(&self, hash: &str) -> Result<Option<DataFrame>> {
        if !self.is_done(hash) {
            return Ok(None);
        }
        let path = self.path(hash, "parquet");
        let damaged =
            |e: String| Error::file(&path, format!("is not a result of a run ({e}); delete it to have it run again"));
        let file = fs::File::open(&path).map_err(|e| damaged(reason(&e)))?;
        let frame = ParquetReader::new(file).finish().map_err(|e| damaged(e.to_string()))?;
        if frame.height() == 1 { Ok(Some(frame)) } else { Err(damaged(format!("{} rows", frame.height()))) }
    }

    /// Copies the results of `others` that are not here yet, with their pictures and weights, and returns how many.
    ///
    /// **Errors** when a folder cannot be read, or two folders hold different results of one run (other than time and
    /// place): nothing is copied then.
    pub fn merge(&self, others: &[PathBuf]) -> Result<usize> {
        let mut copies = Vec::new();
        for folder in others {
            let other = Store::new(folder);
            for hash in other.hashes()? {
                match self.get(&hash)? {
                    None => copies.push((other.clone(), hash)),
                    Some(here) => {
                        let there = other.get(&hash)?;
                        if there.is_some_and(|there| numbers(&there) != numbers(&here)) {
                            let reason = format!("holds another result for run {hash} than {}", self.folder.display());
                            return Err(Error::file(folder, reason));
                        }
                    }
                }
            }
        }
        for (other, hash) in &copies {
            other.get(hash)?;
            let mut files: Vec<PathBuf> =
                other.files()?.into_iter().filter(|f| name(f).starts_with(&format!("{hash}."))).collect();
            // The row last: it says that the rest is there.
            files.sort_by_key(|f| name(f) == format!("{hash}.parquet"));
            for file in files {
                let bytes = fs::read(&file).map_err(|e| Error::file(&file, reason(&e)))?;
                write_bytes(self.folder.join(name(&file)), &bytes)?;
            }
        }
        Ok(copies.len())
    }

    /// The hashes of all results here, sorted.
    pub fn hashes(&self) -> Result<Vec<String>> {
        let mut all: Vec<String> =
            self.files()?.iter().filter_map(|f| name(f).strip_suffix(".parquet").map(str::to_owned)).collect();
        all.sort();
        Ok(all)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let fail = |e: std::io::Error| unreadable(&self.folder, &e);
        let entries = fs::read_dir(&self.folder).map_err(fail)?;
        let paths = entries.map(|e| e.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>().map_err(fail)?;
        Ok(paths.into_iter().filter(|p| p.is_file() && !name(p).starts_with('.')).collect())
    }
}

/// What two runs of one configuration must agree on.
fn numbers(row: &DataFrame) -> Vec<String> {
    let kept = row.columns().iter().filter(|c| !matches!(c.name().as_str(), "seconds" | "batch" | "date" | "device"));
    kept.map(|c| format!("{} {:?}", c.name(), c.get(0))).collect()
}

fn name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use polars::prelude::Column;
    use serde_json::json;

    use super::*;

    fn row(loss: f64, seconds: f64) -> Table {
        Table::new("run", vec![Column::new("loss".into(), [loss]), Column::new("seconds".into(), [seconds])])
            .expect("a row")
    }

    #[test]
    fn a_hash_depends_on_every_field_and_not_on_their_order() {
        let hash = |v: serde_json::Value| stable_hash(&v).expect("a hash");
        let base = hash(json!({ "omega0": 30.0, "seed": 1 }));
        assert_eq!(base, hash(json!({ "seed": 1, "omega0": 30.0 })));
        assert_ne!(base, hash(json!({ "seed": 2, "omega0": 30.0 })));
        assert_ne!(base, hash(json!({ "seed": 1, "omega0": 30.000000000000004 })));
        // Written down: a change would run every finished sweep again.
        assert_eq!(base, "2e3886a792870625");
    }

    #[test]
    fn shards_and_batches_split_a_sweep() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 1, count: 3 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        let parts: Vec<Shard> = (1..=3).map(|k| format!("{k}/3").parse().expect("a part")).collect();
        for costs in [vec![1.0; 10], vec![1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 4.0], vec![1.0, 2.0], vec![]] {
            let shares: Vec<Vec<bool>> = parts.iter().map(|p| p.share(&costs)).collect();
            assert!((0..costs.len()).all(|i| shares.iter().filter(|s| s[i]).count() == 1), "{costs:?}");
            let sums = shares.iter().map(|s| s.iter().zip(&costs).filter(|(m, _)| **m).map(|(_, c)| c).sum::<f64>());
            let (least, most) = sums.fold((f64::MAX, 0.0), |(a, b): (f64, f64), s| (a.min(s), b.max(s)));
            let costliest = costs.iter().copied().fold(0.0, f64::max);
            assert!(most - least <= costliest, "{costs:?}: {least} to {most}");
        }
        assert_eq!(Shard::ALL.share(&[1.0, 2.0]), [true; 2]);
        let keys = ["a", "b", "a", "a", "b", "a"];
        assert_eq!(batches(&keys, |_| 2), [vec![0, 2], vec![1, 4], vec![3, 5]]);
        assert_eq!(batches(&keys, |k| if *k == "a" { 9 } else { 1 }), [vec![0, 2, 3, 5], vec![1], vec![4]]);
        assert_eq!("auto".parse(), Ok(Batch::Auto));
        assert_eq!("7".parse(), Ok(Batch::AtMost(7)));
        assert!("0".parse::<Batch>().is_err());
    }

    #[test]
    fn results_are_kept_merged_and_never_mixed_up() {
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        let [a, b, c] = [0, 1, 2].map(|i| Store::new(folders[i].path()));
        a.put("11", &row(0.5, 1.0)).expect("written");
        b.put("11", &row(0.5, 2.0)).expect("the same result, slower");
        b.put("22", &row(0.25, 1.0)).expect("written");
        fs::write(b.path("22", "png"), b"picture").expect("written");
        assert!(a.is_done("11") && !a.is_done("22"));
        assert_eq!(a.merge(&[folders[1].path().into()]).expect("merged"), 1);
        assert_eq!(a.hashes().expect("both"), ["11", "22"]);
        assert_eq!(fs::read(a.path("22", "png")).expect("copied"), b"picture");
        c.put("11", &row(0.75, 1.0)).expect("written");
        let refused = a.merge(&[folders[2].path().into()]).expect_err("another number").to_string();
        assert!(refused.contains("another result for run 11"), "{refused}");
        fs::write(a.path("33", "parquet"), b"PAR1 cut off").expect("written");
        assert!(a.get("33").expect_err("damaged").to_string().contains("delete it"));
        assert!(a.get("44").expect("not there").is_none());
    }
}
