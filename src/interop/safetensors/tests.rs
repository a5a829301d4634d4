//! Round trips, the format as the reference crate sees it, and files made to be misread.

use std::collections::BTreeMap;
use std::path::PathBuf;

use half::{bf16, f16};
use ndarray::{Array2, ShapeBuilder};
use safetensors::SafeTensors;
use tempfile::TempDir;

use super::header::TIED;
use super::{Reader, Tensors, read, write};
use crate::array::{Array, DType};
use crate::random::Key;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.safetensors");
    (folder, path)
}

fn tensors(entries: impl IntoIterator<Item = (&'static str, Array)>) -> Tensors {
    Tensors { tensors: entries.into_iter().map(|(n, a)| (n.to_owned(), a)).collect(), metadata: BTreeMap::new() }
}

/// Every element type, a scalar, empty shapes and metadata.
fn all_kinds() -> Tensors {
    let mut content = tensors([
        ("scalar.f32", Array::from_slice(&[], &[1.5f32])),
        ("scalar.bf16", Array::from_slice(&[], &[bf16::from_f32(-2.0)])),
        ("empty", Array::from_slice::<f64>(&[0], &[])),
        ("empty.too", Array::from_slice::<f64>(&[3, 0, 2], &[])),
        ("special", Array::from_slice(&[4], &[f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 8.0])),
        ("half", Array::from_slice(&[2], &[f16::MAX, f16::MIN_POSITIVE])),
    ]);
    let values = Array::from_slice(&[2, 3], &[0.0f64, 1.0, 2.0, 3.0, 100.0, 1.0]);
    for dtype in DType::ALL {
        content.tensors.insert(format!("all.{dtype}"), values.cast(dtype));
    }
    content.metadata.insert("step".into(), "7".into());
    content.metadata.insert("σ \"quoted\"\n".into(), String::new());
    content
}

/// A file of this header and `data` bytes.
fn foreign(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend((0..data).map(|i| i as u8));
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    let (_folder, path) = place();
    std::fs::write(&path, bytes).expect("a file");
    let message = read(&path).expect_err("refused").to_string();
    assert!(message.contains(&path.display().to_string()), "names the file: {message}");
    assert!(!message.contains('\n') && message.len() < 600, "one line: {message}");
    message
}

#[test]
fn every_element_type_scalars_and_empty_tensors_come_back() {
    let (_folder, path) = place();
    let content = all_kinds();
    write(&path, &content).expect("written");
    assert_eq!(read(&path).expect("read"), content);
    let first = std::fs::read(&path).expect("bytes");
    write(&path, &content).expect("written again");
    assert_eq!(std::fs::read(&path).expect("bytes"), first, "the same content is the same file");
    write(&path, &Tensors::default()).expect("nothing at all");
    assert_eq!(read(&path).expect("read"), Tensors::default());
}

#[test]
fn the_reference_crate_reads_what_is_written_and_writes_what_is_read() {
    let (_folder, path) = place();
    let content = all_kinds();
    write(&path, &content).expect("written");
    let bytes = std::fs::read(&path).expect("bytes");
    let theirs = SafeTensors::deserialize(&bytes).expect("a valid file");
    assert_eq!(theirs.len(), content.tensors.len());
    for (name, array) in &content.tensors {
        let view = theirs.tensor(name).expect("by name");
        assert_eq!(
            (view.dtype(), view.shape(), view.data()),
            (super::to_file(array.dtype()), array.dims(), array.bytes())
        );
        let start = view.data().as_ptr() as usize - bytes.as_ptr() as usize;
        assert_eq!(start % array.dtype().size(), 0, "{name} is aligned in the file");
    }
    let again = safetensors::serialize(theirs.tensors(), None).expect("serialised");
    std::fs::write(&path, again).expect("a file");
    assert_eq!(read(&path).expect("read").tensors, content.tensors);
}

#[test]
fn column_major_arrays_are_written_in_row_major_order() {
    let (_folder, path) = place();
    let columns = Array2::from_shape_vec((2, 3).f(), vec![1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0]).expect("column-major");
    write(&path, &tensors([("w", Array::from_ndarray(&columns))])).expect("written");
    assert_eq!(read(&path).expect("read").tensors["w"], Array::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
}

#[test]
fn tied_tensors_are_stored_once_and_tied_again() {
    let (_folder, path) = place();
    let embedding = Array::from_slice(&[64, 32], &[0.5f32; 2048]);
    let content = tensors([("head", embedding.clone()), ("emb", embedding.clone()), ("tail", embedding)]);
    write(&path, &content).expect("written");
    assert!(std::fs::metadata(&path).expect("size").len() < 2 * 8192);
    let back = read(&path).expect("read");
    assert_eq!(back, content);
    assert_eq!(back.tensors["emb"].bytes().as_ptr(), back.tensors["head"].bytes().as_ptr());
    let mut reader = Reader::open(&path).expect("opened");
    assert_eq!(reader.names().collect::<Vec<_>>(), ["emb", "head", "tail"]);
    assert_eq!(reader.shape("tail"), Some((Some(DType::F32), &[64, 32][..])));
    assert_eq!(reader.tensor("tail").expect("tied"), content.tensors["tail"]);
    // Equal values in memory of their own are not tied.
    let twice = tensors([("a", Array::from_slice(&[1], &[1u8])), ("b", Array::from_slice(&[1], &[1u8]))]);
    write(&path, &twice).expect("written");
    let back = read(&path).expect("read");
    assert_eq!(back, twice);
    assert_ne!(back.tensors["a"].bytes().as_ptr(), back.tensors["b"].bytes().as_ptr());
}

#[test]
fn reserved_names_are_refused_and_the_old_file_stays() {
    let (_folder, path) = place();
    write(&path, &all_kinds()).expect("written");
    let old = std::fs::read(&path).expect("bytes");
    let reserved = write(&path, &tensors([("__metadata__", Array::from_slice(&[], &[1u8]))]));
    assert!(reserved.expect_err("reserved").to_string().contains("__metadata__"));
    let mut content = all_kinds();
    content.metadata.insert(TIED.into(), "{}".into());
    assert!(write(&path, &content).expect_err("reserved").to_string().contains(TIED));
    assert_eq!(std::fs::read(&path).expect("bytes"), old);
}

#[test]
fn a_missing_tensor_is_answered_by_those_there_are() {
    let (_folder, path) = place();
    write(&path, &tensors([("W.0", Array::from_slice(&[1], &[1f32]))])).expect("written");
    let message = Reader::open(&path).expect("opened").tensor("W.9").expect_err("missing").to_string();
    assert_eq!(message, format!("tensor `W.9`: not in {}; it holds W.0", path.display()));
    let message = read(path.with_extension("none")).expect_err("no such file").to_string();
    assert!(message.ends_with("a.none: cannot be read: no such file or directory"), "{message}");
    assert!(read(path.parent().expect("folder")).expect_err("a folder").to_string().contains("is a folder"));
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let good = entry("F32", "[2]", "[0,8]");
    assert!(refusal(b"").contains("0 bytes are too few"));
    assert!(refusal(&u64::MAX.to_le_bytes()).contains("at most 100000000 are allowed"));
    assert!(refusal(&foreign(&good, 8)[..40]).contains("is cut off: its header needs"));
    assert!(refusal(&foreign(&good, 7)).contains("is cut off: its tensors need 8 bytes, 7 are there"));
    assert!(refusal(&foreign(&good, 9)).contains("bytes after its end"));
    for (header, why) in [
        ("".into(), "EOF"),
        ("{".into(), "EOF"),
        ("[]".into(), "expected an object"),
        ("null".into(), "damaged header"),
        (format!("{good}x"), "trailing"),
        (r#"{"a":7}"#.into(), "damaged header"),
        ("[".repeat(100_000), "damaged header"),
        (entry("F33", "[2]", "[0,8]"), "F33"),
        (entry(&"long\\n".repeat(1000), "[2]", "[0,8]"), "..."),
        (entry("F32", "[2]", "[0,4]"), "damaged header"),
        (entry("F32", "[2]", "[8,0]"), "damaged header"),
        (entry("F32", "[1]", "[4,8]"), "invalid offset"),
        (entry("F32", "[-1]", "[0,8]"), "damaged header"),
        (entry("F32", "[1e3]", "[0,8]"), "damaged header"),
        (entry("F32", "[4294967296,4294967296]", "[0,8]"), "damaged header"),
        (entry("F64", "[18446744073709551615]", "[0,8]"), "damaged header"),
        (entry("F4", "[1]", "[0,0]"), "damaged header"),
        (format!("{},{}", &good[..good.len() - 1], &good[1..]), "`a` stands in it twice"),
        (format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},{}"#, &good[1..]), "`k` stands in it twice"),
        (format!(r#"{{"__metadata__":{{"k":1}},{}"#, &good[1..]), "damaged header"),
        (format!(r#"{{"b":{{"dtype":"F32","shape":[2],"data_offsets":[4,8]}},{}"#, &good[1..]), "damaged header"),
        (format!(r#"{{"__metadata__":{{"{TIED}":"{{\"b\":\"c\"}}"}},{}"#, &good[1..]), "record of tied tensors"),
        (format!(r#"{{"__metadata__":{{"{TIED}":"x"}},{}"#, &good[1..]), "record of tied tensors"),
        (entry("F8_E4M3", "[8]", "[0,8]"), "F8_E4M3, which is not supported"),
        (entry("BOOL", "[8]", "[0,8]"), "bool bytes other than 0 and 1"),
    ] {
        let message = refusal(&foreign(&header, 8));
        assert!(message.contains(why), "{why} in: {message}");
    }
    let far = entry("F32", "[9223372036854775807,0]", "[0,0]");
    assert!(refusal(&foreign(&far, 0)).contains("cannot be held"));
}

/// 2000 damaged copies of a good file: each is refused or read, and none panics or takes memory it has no right to.
#[test]
fn damaged_files_never_panic() {
    let (_folder, path) = place();
    let mut content = all_kinds();
    content.tensors.insert("tied".into(), content.tensors["special"].clone());
    write(&path, &content).expect("written");
    let good = std::fs::read(&path).expect("bytes");
    let header = 8 + u64::from_le_bytes(good[..8].try_into().expect("8 bytes")) as usize;
    let mut refused = 0;
    for (i, key) in Key::new(2).split(2000).into_iter().enumerate() {
        let words: Vec<usize> = key.bits32(&[13]).iter().map(|&w| w as usize).collect();
        let mut bytes = good.clone();
        if i % 4 == 0 {
            bytes.truncate(words[0] % good.len());
        } else {
            // One to six bytes of the length or header (sometimes of the data) become others.
            for at in words[1..].chunks_exact(2).take(1 + words[0] % 6) {
                let end = if i % 4 == 1 { good.len() } else { header };
                bytes[at[0] % end] = at[1] as u8;
            }
        }
        std::fs::write(&path, &bytes).expect("a file");
        match read(&path) {
            Ok(back) => assert!(back.tensors.len() <= content.tensors.len() + 1),
            Err(e) => {
                refused += 1;
                let message = e.to_string();
                assert!(message.contains("a.safetensors") && !message.contains('\n'), "{message}");
            }
        }
    }
    assert!(refused > 1000, "{refused} of 2000 refused");
}
