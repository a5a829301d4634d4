//! What of a safetensors file can be believed: the checks on its length and header, made before any data is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;

use safetensors::tensor::Metadata;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// Longest header that is written or read, the format's own limit.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// Characters of an error's cause that are shown; a hostile name may be as long as the header.
const MAX_CAUSE: usize = 200;

/// Reads the header of a file that is `length` bytes long, and says where its data begin.
///
/// The error is the reason alone, in one line; the caller knows the file.
pub(super) fn read_header(mut file: impl Read, length: u64) -> Result<(Metadata, u64), String> {
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
    let mut json = serde_json::Deserializer::from_slice(&text);
    DistinctNames { whole_header: true }.deserialize(&mut json).map_err(damaged)?;
    let header: Metadata = serde_json::from_slice(&text).map_err(damaged)?;
    let (want, have) = (header.data_len() as u64, length - 8 - size);
    if want != have {
        let how = if have < want { "is cut off" } else { "has bytes after its end" };
        return Err(format!("{how}: its tensors need {want} bytes, {have} are there"));
    }
    Ok((header, 8 + size))
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
    /// The names are tensors' and `__metadata__`, which is such an object itself, or null.
    whole_header: bool,
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
            if self.whole_header && name == "__metadata__" {
                map.next_value_seed(DistinctNames { whole_header: false })?;
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
