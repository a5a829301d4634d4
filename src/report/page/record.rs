//! What a run's `run.json` says of its making.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::files::reason;

/// The fields of a `run.json`, or none.
#[derive(Clone, Debug, Default)]
pub struct Record(Option<Value>);

/// What stands where a record lacks something.
pub const NOT_RECORDED: &str = "not recorded";

impl Record {
    /// **Errors** when it cannot be read or is not one JSON object.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {}", reason(&e))))?;
        match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => Ok(Record(Some(value))),
            Ok(_) => Err(Error::file(path, "is not a run's record: expected a JSON object")),
            Err(e) => Err(Error::file(path, format!("is damaged: {e}; run the program again"))),
        }
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.as_ref()?.pointer(pointer)
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str()
    }

    /// The program's name: the last word of `program`.
    pub fn program(&self) -> Option<&str> {
        self.text("/program")?.split_whitespace().last()
    }

    /// The program with its version.
    pub fn version(&self) -> Option<&str> {
        self.text("/program")
    }

    /// The preset; a dash for a program that has none.
    pub fn preset(&self) -> Option<String> {
        self.0.as_ref()?;
        let preset = self.text("/preset").or_else(|| self.text("/config/preset"));
        Some(preset.unwrap_or("–").to_owned())
    }

    /// Seeds, separated by commas.
    pub fn seeds(&self) -> Option<String> {
        let list = self.at("/seeds").or_else(|| self.at("/config/seeds")).and_then(Value::as_array);
        match list {
            Some(seeds) => Some(seeds.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
            None => self.at("/seed").map(Value::to_string),
        }
    }

    /// The device's own description; one that says the same twice says it once.
    pub fn device(&self) -> Option<String> {
        let device = self.text("/device")?;
        let inner = device.split_once(" (").and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
        match inner {
            Some((name, rest)) if rest.split(", ").all(|part| part == name) => Some(name.to_owned()),
            _ => Some(device.to_owned()),
        }
    }

    /// When it began: `2026-11-30 10:42 UTC`.
    pub fn started(&self) -> Option<String> {
        let text = self.text("/started")?;
        match chrono::DateTime::parse_from_rfc3339(text) {
            Ok(time) => Some(time.to_utc().format("%Y-%m-%d %H:%M UTC").to_string()),
            Err(_) => Some(text.to_owned()),
        }
    }

    /// The day it began.
    pub fn day(&self) -> Option<String> {
        Some(self.started()?.split_whitespace().next()?.to_owned())
    }

    /// Seconds of training of all runs behind the tables.
    pub fn training(&self) -> Option<f64> {
        self.at("/training_seconds")?.as_f64()
    }

    /// Seconds that the call took which wrote the folder.
    pub fn seconds(&self) -> Option<f64> {
        self.at("/seconds")?.as_f64()
    }

    /// Commit of the source, shortened; and whether files differed from it.
    pub fn commit(&self) -> Option<(String, bool)> {
        let commit: String = self.text("/source/commit")?.chars().take(10).collect();
        Some((commit, self.at("/source/changed").and_then(Value::as_bool).unwrap_or(false)))
    }

    /// The command line behind the program's name.
    pub fn arguments(&self) -> Option<String> {
        let list = self.at("/arguments")?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    }

    /// The whole record, indented.
    pub fn json(&self) -> Option<String> {
        serde_json::to_string_pretty(self.0.as_ref()?).ok()
    }
}

/// `0.8 s`, `42 s`, `34 min`, `5.2 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_none_and_not_made_up() {
        let empty = Record::default();
        assert!(empty.preset().is_none() && empty.seeds().is_none() && empty.commit().is_none());
        let record = Record(Some(json!({ "program": "sinexp 0.1.0 siren-audio", "seed": 3 })));
        assert_eq!((record.program(), record.seeds()), (Some("siren-audio"), Some("3".into())));
        assert_eq!((record.preset(), record.training(), record.started()), (Some("–".into()), None, None));
    }

    #[test]
    fn fields_are_read_where_either_kind_of_program_puts_them() {
        let record = Record(Some(json!({
            "config": { "preset": "cpu", "seeds": [0, 1] }, "device": "cpu (cpu, cpu)", "started": "2026-11-30T10:42:14Z",
            "source": { "commit": "0123456789abcdef", "changed": true }, "training_seconds": 61.0,
        })));
        assert_eq!((record.preset(), record.seeds()), (Some("cpu".into()), Some("0, 1".into())));
        assert_eq!((record.device(), record.day()), (Some("cpu".into()), Some("2026-11-30".into())));
        assert_eq!((record.commit(), record.training()), (Some(("0123456789".into(), true)), Some(61.0)));
        let other = Record(Some(json!({ "preset": "smoke", "seeds": [5], "device": "cuda (NVIDIA, sm_90)" })));
        assert_eq!((other.preset(), other.seeds()), (Some("smoke".into()), Some("5".into())));
        assert_eq!(other.device(), Some("cuda (NVIDIA, sm_90)".into()));
    }

    #[test]
    fn durations_read_well() {
        assert_eq!([0.82, 42.3, 2050.0, 20_000.0].map(duration), ["0.8 s", "42 s", "34 min", "5.6 h"]);
    }
}
