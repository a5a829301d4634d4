//! What of a safetensors file can be believed: the checks on its length and header, made before any data is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;

use safetensors::tensor::{Dtype, Metadata};
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Metadata key under which tied names are kept.
pub(super) const TIED: &str = "sinexp.tied";

/// Longest header that is written or read, the format's own limit.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// Characters of an error's cause that are shown; a hostile name may be as long as the header.
const MAX_CAUSE: usize = 200;

/// The checked header of a file.
pub(super) struct Header {
    pub(super) tensors: Metadata,
    /// Where the data begin.
    pub(super) data_start: u64,
    /// Free text by name, without the record of tied tensors.
    pub(super) metadata: BTreeMap<String, String>,
    /// Other names of stored tensors.
    pub(super) tied: BTreeMap<String, String>,
    /// Element types that the crate does not know, by tensor; in `tensors` these stand as bytes.
    pub(super) foreign: BTreeMap<String, String>,
}

/// Reads the header of a file that is `length` bytes long.
///
/// The error is the reason alone, in one line; the caller knows the file.
pub(super) fn read_header(mut file: impl Read, length: u64, unknown: Unknown) -> Result<Header, String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {}", crate::files::reason(&e));
    if length < 8 {
        return Err(format!("is no safetensors file: {length} bytes are too few"));
    }
    let mut word = [0u8; 8];
    file.read_exact(&mut word).map_err(unreadable)?;
    let size = u64::from_le_bytes(word);
    if size > MAX_HEADER {
        return Err(format!(
            "is no safetensors file: its header would be {size} bytes, at most {MAX_HEADER} are allowed"
        ));
    }
    if size > length - 8 {
        return Err(format!("is cut off: its header needs {size} bytes, {} are there", length - 8));
    }
    let mut text = vec![0u8; size as usize];
    file.read_exact(&mut text).map_err(unreadable)?;
    let damaged = |e: serde_json::Error| format!("has a damaged header: {}", one_line(&e.to_string()));
    distinct_names(&text, "__metadata__").map_err(damaged)?;
    let (tensors, foreign) = match serde_json::from_slice::<Metadata>(&text) {
        Ok(tensors) => (tensors, BTreeMap::new()),
        Err(error) if unknown == Unknown::Refuse => return Err(damaged(error)),
        Err(error) => {
            let (text, foreign) = as_bytes(&text).ok_or_else(|| damaged(error))?;
            (serde_json::from_value(text).map_err(damaged)?, foreign)
        }
    };
    let (want, have) = (tensors.data_len() as u64, length - 8 - size);
    if want != have {
        let how = if have < want { "is cut off" } else { "has bytes after its end" };
        return Err(format!("{how}: its tensors need {want} bytes, {have} are there"));
    }
    let mut metadata: BTreeMap<String, String> = tensors.metadata().clone().unwrap_or_default().into_iter().collect();
    let tied: BTreeMap<String, String> = match metadata.remove(TIED) {
        None => BTreeMap::new(),
        Some(text) => serde_json::from_str(&text)
            .ok()
            .filter(|map: &BTreeMap<String, String>| {
                map.iter().all(|(name, stored)| tensors.info(stored).is_some() && tensors.info(name).is_none())
            })
            .ok_or_else(|| format!("has a damaged record of tied tensors, its metadata entry {TIED}"))?,
    };
    Ok(Header { tensors, data_start: 8 + size, metadata, tied, foreign })
}

/// What becomes of a file with an element type that the crate does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It is refused.
    Refuse,
    /// The tensor stands as bytes, the others are read.
    AsBytes,
}

/// The header with each tensor of an unknown element type as bytes, and these types; `None` if there is none such.
fn as_bytes(text: &[u8]) -> Option<(Value, BTreeMap<String, String>)> {
    let mut header: Value = serde_json::from_slice(text).ok()?;
    let mut foreign = BTreeMap::new();
    for (name, entry) in header.as_object_mut()?.iter_mut().filter(|(name, _)| *name != "__metadata__") {
        let dtype = entry.get("dtype")?.as_str()?.to_owned();
        if serde_json::from_value::<Dtype>(Value::from(dtype.as_str())).is_err() {
            let offset = |i: usize| entry.get("data_offsets")?.get(i)?.as_u64();
            let length = offset(1)?.checked_sub(offset(0)?)?;
            entry["dtype"] = Value::from("U8");
            entry["shape"] = Value::from(vec![length]);
            foreign.insert(name.clone(), one_line(&dtype));
        }
    }
    (!foreign.is_empty()).then_some((header, foreign))
}

/// **Errors** when a name stands twice in the object, or in the one it holds under `inner`.
pub(super) fn distinct_names(json: &[u8], inner: &'static str) -> serde_json::Result<()> {
    DistinctNames { inner: Some(inner) }.deserialize(&mut serde_json::Deserializer::from_slice(json))
}

/// The bytes before the data: length, then JSON padded to a multiple of 8. The same content gives the same bytes.
pub(super) fn header_bytes(tensors: Metadata, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Header<'a> {
        // The map in the crate's own `Metadata` has no order.
        #[serde(rename = "__metadata__", skip_serializing_if = "BTreeMap::is_empty")]
        metadata: &'a BTreeMap<String, String>,
        #[serde(flatten)]
        tensors: Metadata,
    }
    let mut json = serde_json::to_vec(&Header { metadata, tensors }).map_err(|e| e.to_string())?;
    json.resize(json.len().next_multiple_of(8), b' ');
    if json.len() as u64 > MAX_HEADER {
        return Err(format!("its header would be {} bytes, at most {MAX_HEADER} are allowed", json.len()));
    }
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut json);
    Ok(bytes)
}

/// Text from a file for an error message: control characters escaped, cut to [`MAX_CAUSE`] characters.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == MAX_CAUSE {
            line.push_str(" ...");
            break;
        }
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Accepts an object only if no name stands in it twice, where a map would quietly keep the last. The rest of the form
/// is checked by [`Metadata`].
struct DistinctNames {
    /// The name under which it holds such an object itself, or null.
    inner: Option<&'static str>,
}

impl<'de> DeserializeSeed<'de> for DistinctNames {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DistinctNames {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.inner == Some(&name) {
                map.next_value_seed(DistinctNames { inner: None })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            if seen.contains(&name) {
                return Err(A::Error::custom(format!("`{name}` stands in it twice")));
            }
            seen.insert(name);
        }
        Ok(())
    }
}
