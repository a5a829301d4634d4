//! Writing files so that each is complete or absent: a temporary name beside it, fsync, rename, fsync of the folder.
//! What a killed writer leaves behind, the next run into the folder removes.
//!
//! ```
//! use sinexp::files::{write_atomically, write_bytes};
//! let folder = std::env::temp_dir();
//! let path = folder.join(format!("sinexp-doc-{}", std::process::id()));
//! write_bytes(&path, b"whole")?;
//! // A writer that fails leaves the old file as it was.
//! let failed = write_atomically(&path, |_| Err(sinexp::error::Error::numeric("loss", "is NaN")));
//! assert!(failed.is_err() && std::fs::read(&path).unwrap() == b"whole");
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use memmap2::{Mmap, UncheckedAdvice};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Lets `fill` write the new content of `path`; what was there before stays until the new file is safely on disk.
///
/// **Errors** when the folder does not exist or cannot be written, the disk is full, or `fill` fails; `path` is then
/// as it was, and nothing else is left behind.
pub fn write_atomically(path: impl AsRef<Path>, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let path = path.as_ref();
    let fail = |e: std::io::Error| Error::file(path, format!("cannot be written: {}", reason(&e)));
    let folder = folder_of(path);
    if path.is_dir() {
        return Err(Error::file(path, "cannot be written: it is a folder; give a file name"));
    }
    let mut temporary = temporary_in(folder).map_err(fail)?;
    let mut writer = BufWriter::new(temporary.as_file_mut());
    fill(&mut writer)?;
    writer.flush().map_err(fail)?;
    drop(writer);
    set_mode(temporary.as_file(), path).map_err(fail)?;
    temporary.as_file().sync_all().map_err(fail)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    // Makes the new name itself durable; some file systems cannot sync a folder, and the file is complete either way.
    if let Ok(folder) = File::open(folder) {
        folder
            .sync_all()
            .or_else(|e| if e.kind() == ErrorKind::InvalidInput { Ok(()) } else { Err(e) })
            .map_err(fail)?;
    }
    Ok(())
}

/// Bytes as lower-case hexadecimal digits: how digests are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// [`write_atomically`] for content that is already there.
pub fn write_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    write_atomically(path, |w| {
        w.write_all(bytes).map_err(|e| Error::file(path, format!("cannot be written: {}", reason(&e))))
    })
}

/// Makes `folder` and its parents if need be, and proves that files can be made in it, before long work begins. What
/// writers that were killed left behind in it is removed.
///
/// **Errors** when it is not a folder or cannot be written.
pub fn ensure_writable_folder(folder: impl AsRef<Path>) -> Result<()> {
    let folder = folder.as_ref();
    let fail = |e: std::io::Error| {
        Error::file(folder, format!("cannot be used as output folder: {}; give another with --out", reason(&e)))
    };
    if folder.exists() && !folder.is_dir() {
        return Err(Error::file(folder, "is a file; give a folder with --out"));
    }
    fs::create_dir_all(folder).map_err(fail)?;
    temporary_in(folder).map_err(fail)?;
    remove_leftovers(folder);
    Ok(())
}

/// A temporary file, locked for as long as it is written: one that nobody has locked is a leftover.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    loop {
        let file = tempfile::Builder::new().prefix(".").suffix(".partial").tempfile_in(folder)?;
        // Where files cannot be locked, nobody removes leftovers either.
        let locked = file.as_file().lock().is_ok();
        // It may have been taken for a leftover before it was locked.
        if !locked || file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes temporary files of writers that are no more. Others may be writing into the folder meanwhile.
pub(crate) fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.strip_prefix('.').and_then(|n| n.strip_suffix(".partial"));
        if ours.is_none_or(|random| random.len() != 6) || !entry.file_type().is_ok_and(|t| t.is_file()) {
            continue;
        }
        // An exclusive lock needs a file open for writing on some network file systems.
        if File::options().write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes a file; one that is not there is no error.
pub fn remove(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(Error::file(path, format!("cannot be removed: {}", reason(&e))))
        }
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Maps a file to be read as bytes.
///
/// A file that is cut short while it is mapped ends the program by SIGBUS.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: read only, and as bytes, of which any value is valid. Files of the cache are replaced by renaming and never
    // written to, so the mapped one does not change; if another program cuts it short, the kernel ends this one.
    unsafe { Mmap::map(file) }
}

/// Takes pages of a mapped file out of memory; the next access reads them again.
#[allow(unsafe_code)]
pub(crate) fn release(map: &Mmap, start: usize, length: usize) {
    // SAFETY: the map is shared and read only, so a page that is dropped comes back from the file with the same content:
    // what borrows it sees no change. A refusal only leaves the pages where they are.
    let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, length) };
}

/// An I/O error's text without the temporary file's name and the system's number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code).to_string(),
        None => error.to_string(),
    };
    let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
    text.to_lowercase()
}

/// The error for a file or folder that cannot be read.
pub(crate) fn unreadable(path: impl AsRef<Path>, error: &std::io::Error) -> Error {
    Error::file(path, format!("cannot be read: {}", reason(error)))
}

/// Temporary files are private; a finished one has the mode of the file it replaces, or the usual one of new files.
#[cfg(unix)]
fn set_mode(file: &File, path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match fs::metadata(path) {
        Ok(old) => old.permissions().mode() & 0o777,
        Err(_) => 0o644,
    };
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("folder");
        entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a.txt");
        write_bytes(&path, b"old").expect("first");
        let failed = write_atomically(&path, |w| {
            w.write_all(b"half").expect("into the temporary file");
            Err(Error::numeric("loss", "is NaN"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).expect("still there"), b"old");
        assert_eq!(names(folder.path()), ["a.txt"]);
        write_bytes(&path, b"new").expect("second");
        assert_eq!(fs::read(&path).expect("replaced"), b"new");
    }

    #[test]
    fn what_killed_writers_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let in_use = temporary_in(folder.path()).expect("being written");
        let kept = [".notes.partial", "abcdef.partial", ".abcdef.png"];
        for name in [".aB3xYz.partial", ".000000.partial"].iter().chain(&kept) {
            write_bytes(folder.path().join(name), b"x").expect("written");
        }
        ensure_writable_folder(folder.path()).expect("writable");
        let mut left = names(folder.path());
        left.sort();
        let mut expected: Vec<String> = kept.iter().map(|n| (*n).to_owned()).collect();
        expected.push(in_use.path().file_name().expect("a name").to_string_lossy().into_owned());
        expected.sort();
        assert_eq!(left, expected);
        in_use.persist(folder.path().join("done")).expect("still there");
    }

    #[test]
    fn places_that_cannot_be_written_say_so_in_one_line() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let missing = write_bytes(folder.path().join("no/such/a.txt"), b"x").expect_err("no folder").to_string();
        assert!(missing.ends_with("a.txt: cannot be written: no such file or directory"), "{missing}");
        assert!(write_bytes(folder.path(), b"x").expect_err("a folder").to_string().contains("is a folder"));
        let file = folder.path().join("file");
        write_bytes(&file, b"x").expect("file");
        assert!(ensure_writable_folder(&file).expect_err("a file").to_string().contains("is a file"));
        assert!(ensure_writable_folder(file.join("below")).is_err());
        ensure_writable_folder(folder.path().join("new/deep")).expect("made");
        assert!(folder.path().join("new/deep").is_dir());
    }
}
