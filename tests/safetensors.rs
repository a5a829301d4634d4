//! safetensors files between this library and Python: each reads what the other wrote, and a write that the system
//! cuts off leaves the old file.
//!
//! Both sides know the same content by formula: `content` here, `content()` in python/checks/check_safetensors.py.
//! `SINEXP_UPDATE=1 cargo test --test safetensors` writes tests/golden/safetensors/rust.safetensors anew,
//! `python/checks/check_safetensors.py --write` python.safetensors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use sinexp::array::{Array, DType};
use sinexp::interop::safetensors::{Reader, Tensors, read, write};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/safetensors").join(name)
}

/// Every element type as [2,3], scalars, empty tensors, values at the edges, metadata.
fn content() -> Tensors {
    let mut tensors = BTreeMap::new();
    for dtype in DType::ALL {
        let values: [f64; 6] = match dtype {
            DType::Bool => [0.0, 1.0, 1.0, 0.0, 1.0, 0.0],
            d if d.is_unsigned() => [0.0, 1.0, 2.0, 50.0, 100.0, 200.0],
            d if d.is_integer() => [0.0, 1.0, -2.0, 50.0, -100.0, 127.0],
            _ => [0.0, -0.5, 1.25, -96.0, 0.0078125, 240.0],
        };
        tensors.insert(format!("all.{}", dtype.numpy_name()), Array::from_slice(&[2, 3], &values).cast(dtype));
    }
    tensors.insert("scalar".into(), Array::scalar(0.1f32));
    tensors.insert("empty".into(), Array::from_slice::<f32>(&[0], &[]));
    tensors.insert("empty.middle".into(), Array::from_slice::<i32>(&[2, 0, 3], &[]));
    tensors.insert("edge.int64".into(), Array::from_slice(&[2], &[i64::MIN, i64::MAX]));
    tensors.insert("edge.uint64".into(), Array::from_slice(&[1], &[u64::MAX]));
    let edges = [f64::MAX, f64::from_bits(1), f64::INFINITY, f64::NEG_INFINITY, -0.0];
    tensors.insert("edge.float64".into(), Array::from_slice(&[5], &edges));
    let metadata = [("step", "12"), ("ω0", "30 \"rad\"\n")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    Tensors { tensors, metadata: metadata.into() }
}

#[test]
fn what_python_wrote_is_read() {
    let got = read(golden("python.safetensors")).expect("Python's file");
    let want = content();
    assert_eq!(got.metadata, want.metadata);
    assert_eq!(got.tensors.keys().collect::<Vec<_>>(), want.tensors.keys().collect::<Vec<_>>());
    for (name, array) in &want.tensors {
        // Bytes too: the sign of zero and the last bit of a subnormal are part of a file.
        assert_eq!((&got.tensors[name], got.tensors[name].bytes()), (array, array.bytes()), "{name}");
    }
    let mut reader = Reader::open(golden("python.safetensors")).expect("Python's file");
    for (name, array) in want.tensors.iter().rev() {
        assert_eq!(reader.shape(name), Some((Some(array.dtype()), array.dims())), "{name}");
        assert_eq!(&reader.tensor(name).expect("one tensor"), array, "{name}");
    }
}

/// The file that python/checks/check_safetensors.py reads is what is written today, byte for byte.
#[test]
fn what_python_reads_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rust.safetensors");
    write(&path, &content()).expect("written");
    let bytes = std::fs::read(&path).expect("bytes");
    if std::env::var_os("SINEXP_UPDATE").is_some() {
        sinexp::files::write_bytes(golden("rust.safetensors"), &bytes).expect("tests/golden can be written");
    }
    let stored = std::fs::read(golden("rust.safetensors")).unwrap_or_default();
    assert!(stored == bytes, "run SINEXP_UPDATE=1 cargo test --test safetensors");
}

/// Files may grow to a few kilobytes in a child process: the write of a large tensor fails half-way, as on a full disk.
#[cfg(unix)]
#[test]
fn a_write_that_is_cut_off_leaves_the_old_file() {
    const PATH: &str = "SINEXP_TEST_CUT_OFF";
    let large = || Tensors {
        tensors: [("w".to_owned(), Array::full(DType::F64, &[1 << 17], 1.0))].into(),
        ..Tensors::default()
    };
    if let Some(path) = std::env::var_os(PATH) {
        // The child's part.
        let message = write(&path, &large()).expect_err("a limit of 4 kilobytes").to_string();
        assert!(message.ends_with("old.safetensors: cannot be written: file too large"), "{message}");
        assert!(!message.contains('\n'), "one line: {message}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.safetensors");
    write(&path, &content()).expect("written");
    let old = std::fs::read(&path).expect("bytes");
    let child = Command::new("bash")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 4; exec "$0" --exact a_write_that_is_cut_off_leaves_the_old_file"#])
        .arg(std::env::current_exe().expect("this test"))
        .env(PATH, &path)
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(std::fs::read(&path).expect("bytes"), old);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left behind");
    // Without the limit the same write replaces the file.
    write(&path, &large()).expect("written");
    assert_eq!(read(&path).expect("read"), large());
}
