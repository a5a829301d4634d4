//! Sets of files: whole ones, and what is missing, foreign or hostile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use super::*;
use crate::interop::safetensors::{Reader, Tensors, write};

/// Writes a file of f32 tensors, whose first element is the number given.
fn file(path: &Path, entries: &[(&str, f32)]) {
    let tensors = entries.iter().map(|(n, v)| ((*n).to_owned(), Array::from_slice(&[2], &[*v, -1.0])));
    write(path, &Tensors { tensors: tensors.collect(), metadata: BTreeMap::new() }).expect("written");
}

/// Two shards with an index, and what the index says beside `entries`.
fn sharded(entries: &str) -> TempDir {
    let folder = tempdir().expect("temporary folder");
    file(&folder.path().join("m-1.safetensors"), &[("a", 1.0), ("b", 2.0)]);
    file(&folder.path().join("m-2.safetensors"), &[("c", 3.0)]);
    let map = format!(r#""a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"{entries}"#);
    let text = format!(r#"{{"metadata":{{"total_size":24}},"weight_map":{{{map}}}}}"#);
    fs::write(folder.path().join("m.safetensors.index.json"), text).expect("index");
    folder
}

fn open(path: &Path) -> Shards {
    Shards::open(&[path.to_owned()]).expect("opens")
}

fn refusal(paths: &[&Path]) -> String {
    let paths: Vec<PathBuf> = paths.iter().map(|p| (*p).to_owned()).collect();
    let message = Shards::open(&paths).expect_err("refused").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

fn names(shards: &Shards) -> Vec<&str> {
    shards.tensors().iter().map(|t| t.name.as_str()).collect()
}

fn problems(shards: &Shards) -> Vec<String> {
    shards.problems().iter().map(Error::to_string).collect()
}

#[test]
fn a_folder_an_index_and_its_files_are_the_same_set() {
    let folder = sharded("");
    let path = |name: &str| folder.path().join(name);
    let both = Shards::open(&[path("m-1.safetensors"), path("m-2.safetensors")]).expect("opens");
    for shards in [open(folder.path()), open(&path("m.safetensors.index.json")), both] {
        assert_eq!((names(&shards), problems(&shards).len()), (vec!["a", "b", "c"], 0));
        assert_eq!(shards.array("c").expect("there"), Array::from_slice(&[2], &[3.0f32, -1.0]));
        let c = shards.find("c").expect("there").clone();
        assert_eq!((c.file, c.dtype, c.len(), c.byte_len()), (1, Dtype::F32, 2, 8));
        let before = shards.bytes(&c).to_vec();
        shards.release(&c);
        shards.load_part(&c, 4..8);
        assert_eq!(shards.bytes(&c), before, "released pages come back");
        let mut values = Vec::new();
        crate::interop::safetensors::to_f32(c.dtype, shards.bytes(&c), &mut values).expect("real");
        assert_eq!(values, [3.0, -1.0]);
        let unknown = shards.array("d").expect_err("unknown").to_string();
        assert!(unknown.starts_with("tensor `d`: not in "), "{unknown}");
    }
    // Without an index, all files of the folder.
    fs::remove_file(path("m.safetensors.index.json")).expect("removed");
    file(&path("other.safetensors"), &[("z", 0.0)]);
    assert_eq!(names(&open(folder.path())), ["a", "b", "c", "z"]);
    // With one, only its own.
    let folder = sharded("");
    file(&folder.path().join("other.safetensors"), &[("a", 0.0)]);
    assert_eq!(names(&open(folder.path())), ["a", "b", "c"]);
}

#[test]
fn it_agrees_with_the_reader_and_knows_tied_names() {
    let folder = tempdir().expect("temporary folder");
    let path = folder.path().join("a.safetensors");
    let shared = Array::from_slice(&[2, 1], &[1.5f64, 2.5]);
    let mut content = Tensors::default();
    for name in ["head", "emb"] {
        content.tensors.insert(name.into(), shared.clone());
    }
    content.tensors.insert("flag".into(), Array::from_slice(&[2], &[true, false]));
    content.metadata.insert("k".into(), "v".into());
    write(&path, &content).expect("written");
    let shards = open(&path);
    let mut reader = Reader::open(&path).expect("opens");
    let known: Vec<String> = reader.names().map(str::to_owned).collect();
    assert_eq!(known.len(), 3);
    for name in &known {
        assert_eq!(shards.array(name).expect("there"), reader.tensor(name).expect("there"));
    }
    assert_eq!(shards.tensors().len(), 2, "tied tensors are listed once");
    assert_eq!(shards.find("head").expect("tied").aliases, ["head"]);
    assert_eq!(shards.files()[0].metadata, content.metadata);
    let header = shards.files()[0].header();
    assert_eq!(8 + u64::from_le_bytes(header[..8].try_into().expect("8 bytes")) as usize, header.len());
}

#[test]
fn what_is_missing_leaves_the_rest() {
    let folder = sharded(r#","d":"m-1.safetensors","c2":"m-3.safetensors","c3":"m-3.safetensors""#);
    let shards = open(folder.path());
    assert_eq!(names(&shards), ["a", "b", "c"]);
    let found = problems(&shards);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("tensor `d`: ") && found[0].contains("m-1.safetensors, where it is not"), "{found:?}");
    assert!(found[1].contains("m-3.safetensors: cannot be read: no such file"), "{found:?}");
    assert!(found[1].ends_with("has c2 and 1 more in it"), "{found:?}");
    // A damaged shard.
    let folder = sharded("");
    let path = folder.path().join("m-2.safetensors");
    let bytes = fs::read(&path).expect("bytes");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("cut off");
    let shards = open(folder.path());
    assert_eq!(names(&shards), ["a", "b"]);
    assert!(problems(&shards)[0].contains("m-2.safetensors: is cut off"), "{:?}", problems(&shards));
    // Nothing is left.
    assert!(refusal(&[&path]).contains("is cut off"));
    assert!(refusal(&[&folder.path().join("no.safetensors")]).contains("no.safetensors: cannot be read"));
}

#[test]
fn files_beyond_the_index_folder_are_not_opened() {
    let outside = tempdir().expect("temporary folder");
    let absolute = outside.path().join("x.safetensors");
    file(&absolute, &[("x", 9.0)]);
    let absolute = absolute.display().to_string();
    let beside = format!("../{}/x.safetensors", outside.path().file_name().expect("a name").to_string_lossy());
    for hostile in [beside.clone(), absolute, format!("m/../{beside}"), String::new()] {
        let folder = sharded(&format!(r#","x":"{hostile}""#));
        let shards = open(folder.path());
        assert_eq!(names(&shards), ["a", "b", "c"], "{hostile}");
        let found = problems(&shards);
        assert!(found.len() == 1 && found[0].contains("not below its folder; skipped"), "{found:?}");
    }
    let folder = sharded(r#","x":"deep/x.safetensors""#);
    fs::create_dir(folder.path().join("deep")).expect("folder");
    file(&folder.path().join("deep/x.safetensors"), &[("x", 9.0)]);
    assert_eq!(names(&open(folder.path())), ["x", "a", "b", "c"]);
}

#[test]
fn ambiguous_and_damaged_sets_are_refused() {
    let folder = sharded("");
    let path = |name: &str| folder.path().join(name);
    file(&path("twice.safetensors"), &[("b", 5.0)]);
    let message = refusal(&[&path("m-1.safetensors"), &path("twice.safetensors")]);
    assert!(message.starts_with("tensor `b`: stands in both "), "{message}");
    assert!(message.contains("m-1.safetensors and ") && message.contains("twice.safetensors; give one"), "{message}");
    fs::write(path("n.safetensors.index.json"), "{}").expect("file");
    assert!(refusal(&[folder.path()]).contains("holds 2 files *.safetensors.index.json"));
    assert!(refusal(&[&path("n.safetensors.index.json")]).contains("it has no object weight_map"));
    for (text, why) in [
        ("[]", "is no index: "),
        ("{", "EOF"),
        (r#"{"weight_map":{"a":1}}"#, "no file name for a"),
        (r#"{"weight_map":[]}"#, "expected an object"),
        (r#"{"weight_map":null}"#, "no object weight_map"),
        (r#"{"weight_map":{"a":"m-1.safetensors","a":"m-2.safetensors"}}"#, "`a` stands in it twice"),
        (r#"{"weight_map":{}}"#, "give a .safetensors file"),
    ] {
        fs::write(path("n.safetensors.index.json"), text).expect("file");
        let message = refusal(&[&path("n.safetensors.index.json")]);
        assert!(message.contains(why), "{why} in {message}");
    }
    let empty = tempdir().expect("temporary folder");
    assert!(refusal(&[empty.path()]).contains("holds neither *.safetensors nor"));
    assert!(refusal(&[]).contains("give a .safetensors file"));
}

#[test]
fn an_unknown_element_type_costs_its_own_tensor_only() {
    let folder = tempdir().expect("temporary folder");
    let path = folder.path().join("a.safetensors");
    let header = r#"{"odd":{"dtype":"F12","shape":[2],"data_offsets":[0,3]},
                     "good":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[3,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend([0, 0, 0, 0x38]);
    fs::write(&path, &bytes).expect("file");
    let shards = open(&path);
    assert_eq!(names(&shards), ["good"]);
    let found = problems(&shards);
    assert!(found[0].contains("tensor `odd`: has the unknown element type F12 in "), "{found:?}");
    assert!(shards.array("good").expect_err("no such array").to_string().contains("F8_E4M3, which is not supported"));
    assert_eq!(shards.bytes(&shards.tensors()[0]), [0x38]);
    // Offsets that lie are still refused.
    let at = bytes.windows(5).position(|w| w == b"[0,3]").expect("offsets");
    bytes[at + 3] = b'2';
    fs::write(&path, bytes).expect("file");
    assert!(refusal(&[&path]).contains("damaged header"));
}
