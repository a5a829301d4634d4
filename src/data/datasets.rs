//! Where the input files are: those that `./setup --data` fetched, and those that the user names.
//!
//! ```
//! use sinexp::data::datasets::{image, parse_image, sha256};
//! # let folder = tempfile::tempdir().unwrap();
//! # let file = folder.path().join("skin.jpg");
//! # std::fs::write(&file, "abc").unwrap();
//! let given = [parse_image(&format!("skin={}", file.display()))?]; // --image skin=PATH
//! let path = image("skin", &given)?;
//! assert_eq!(path, file);
//! assert!(sha256(&path)?.starts_with("ba7816bf8f01cfea")); // of the bytes `abc`, FIPS 180-4
//! assert!(image("no such picture", &given).is_err());
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::{hex, unreadable};

/// The pictures of the SIREN experiments that `./setup --data` fetches: the paper's name, the file below `images/`.
///
/// Hubble is published as a JPEG, whose pixels depend on the decoder: the one that [`Picture`](super::image::Picture) reads
/// with differs from libjpeg-turbo, which the paper used, by a level or two of 255 in 1 % of the values, enough to miss
/// printed digits of the moments. So `./setup --data` stores libjpeg-turbo's pixels as a PNG beside the JPEG.
pub const IMAGES: [(&str, &str); 7] = [
    ("brick", "brick.png"),
    ("camera", "camera.png"),
    ("gravel", "gravel.png"),
    ("clock", "clock_motion.png"),
    ("hubble", "hubble_deep_field.png"),
    ("astronaut", "astronaut.png"),
    ("coffee", "coffee.png"),
];

/// The paper's picture that is in no package: its name, and the sha256 of scikit-image's skin.jpg.
pub const SKIN: (&str, &str) = ("skin", "8759fe080509712163453f4b17106582b8513e73b0788d80160abf840e272075");

/// The folder of fetched files: `$SINEXP_DATA` if that is set, else `.data` in the source folder of this build.
pub fn folder() -> PathBuf {
    match std::env::var_os("SINEXP_DATA") {
        Some(folder) if !folder.is_empty() => folder.into(),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join(".data"),
    }
}

/// The file of picture `name`: the one in `given` (pairs of name and path, as [`parse_image`] makes them; the last of a
/// name counts), else the fetched one.
///
/// **Errors** when the file is not there, with what to do, or the name is neither given nor one of [`IMAGES`] and
/// [`SKIN`].
pub fn image(name: &str, given: &[(String, PathBuf)]) -> Result<PathBuf> {
    image_in(&folder(), name, given)
}

fn image_in(folder: &Path, name: &str, given: &[(String, PathBuf)]) -> Result<PathBuf> {
    if let Some((_, path)) = given.iter().rev().find(|(n, _)| n == name) {
        return match path.is_file() {
            true => Ok(path.clone()),
            false if path.exists() => Err(Error::file(path, format!("is not a file; --image {name}=PATH names one"))),
            false => Err(Error::file(path, format!("is not there; --image {name}=PATH names the picture"))),
        };
    }
    if name == SKIN.0 {
        let reason = format!(
            "is in no package; give it with --image skin=PATH: the skin.jpg that skimage.data.skin() of scikit-image \
             downloads, sha256 {}",
            SKIN.1
        );
        return Err(Error::argument("image", name, reason));
    }
    let Some((_, file)) = IMAGES.iter().find(|(n, _)| *n == name) else {
        let known = IMAGES.map(|(n, _)| n).join(", ");
        let reason =
            format!("unknown; there are {known} and {}, and --image {name}=PATH names a file of yours", SKIN.0);
        return Err(Error::argument("image", name, reason));
    };
    let path = folder.join("images").join(file);
    match path.is_file() {
        true => Ok(path),
        false => {
            Err(Error::file(path, format!("is not there; run ./setup --data, or name it with --image {name}=PATH")))
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    IMAGES.iter().map(|(name, _)| *name).chain([SKIN.0])
}

/// `NAME=PATH` as a pair, for `--image`.
///
/// **Errors** when there is no `=`, or nothing before or behind the first one, or the name is that of no picture: a slip
/// of the pen would go unnoticed.
pub fn parse_image(text: &str) -> Result<(String, PathBuf)> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => match names().any(|n| n == name) {
            true => Ok((name.to_owned(), path.into())),
            false => {
                let reason =
                    format!("there is no picture {name}; there are {}", names().collect::<Vec<_>>().join(", "));
                Err(Error::argument("--image", text, reason))
            }
        },
        _ => Err(Error::argument("--image", text, "expected NAME=PATH, such as skin=skin.jpg")),
    }
}

/// The recording of the audio experiment: the one given, whether or not it is there, else `gt_bach.wav` in [`folder`],
/// else none; [`fugue_subject`](super::audio::fugue_subject) stands in then.
pub fn bach(given: Option<&Path>) -> Option<PathBuf> {
    bach_in(&folder(), given)
}

fn bach_in(folder: &Path, given: Option<&Path>) -> Option<PathBuf> {
    match given {
        Some(path) => Some(path.to_owned()),
        None => Some(folder.join("gt_bach.wav")).filter(|path| path.is_file()),
    }
}

/// SHA-256 of a file of any size, in lower-case hexadecimal digits, for the run record.
///
/// **Errors** when it cannot be read.
pub fn sha256(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let fail = |e: std::io::Error| unreadable(path, &e);
    let mut file = File::open(path).map_err(fail)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(read) => digest.update(&block[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(fail(e)),
        }
    }
    Ok(hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_picture_comes_first_then_the_fetched_one() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let folder = folder.path();
        let missing = image_in(folder, "clock", &[]).expect_err("nothing fetched").to_string();
        assert!(missing.contains("images/clock_motion.png: is not there; run ./setup --data"), "{missing}");
        std::fs::create_dir(folder.join("images")).expect("folder");
        let (fetched, own) = (folder.join("images/clock_motion.png"), folder.join("own.png"));
        for path in [&fetched, &own] {
            std::fs::write(path, b"x").expect("file");
        }
        assert_eq!(image_in(folder, "clock", &[]).expect("fetched"), fetched);
        let pair = |name: &str, path: &Path| (name.to_owned(), path.to_owned());
        let given = [pair("clock", Path::new("no.png")), pair("clock", &own), pair("dog", &own), pair("cat", folder)];
        assert_eq!(image_in(folder, "clock", &given).expect("the last one given"), own);
        assert_eq!(image_in(folder, "dog", &given).expect("the user's own name"), own);
        let refused = image_in(folder, "clock", &given[..1]).expect_err("not there").to_string();
        assert!(refused.starts_with("no.png: is not there"), "{refused}");
        assert!(image_in(folder, "cat", &given).expect_err("a folder").to_string().contains("is not a file"));
    }

    #[test]
    fn other_names_say_what_to_do() {
        let folder = Path::new("/nowhere");
        let skin = image_in(folder, "skin", &[]).expect_err("in no package").to_string();
        assert!(skin.contains("--image skin=PATH") && skin.contains("sha256 8759fe08"), "{skin}");
        let unknown = image_in(folder, "Camera", &[]).expect_err("unknown").to_string();
        let list = "there are brick, camera, gravel, clock, hubble, astronaut, coffee and skin, and";
        assert!(unknown.starts_with("image = Camera: unknown") && unknown.contains(list), "{unknown}");
    }

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        assert_eq!(parse_image("skin=a=b.jpg").expect("a pair"), ("skin".to_owned(), PathBuf::from("a=b.jpg")));
        let unknown = parse_image("camra=a.png").expect_err("unknown").to_string();
        assert!(unknown.contains("no picture camra") && unknown.contains("camera"), "{unknown}");
        for text in ["skin.jpg", "skin=", "=skin.jpg", ""] {
            assert!(parse_image(text).expect_err(text).to_string().contains("NAME=PATH"), "{text}");
        }
    }

    #[test]
    fn the_recording_is_the_given_one_or_the_fetched_one_or_none() {
        let folder = tempfile::tempdir().expect("temporary folder");
        assert_eq!(bach_in(folder.path(), None), None);
        let there = folder.path().join("gt_bach.wav");
        std::fs::write(&there, b"x").expect("file");
        assert_eq!(bach_in(folder.path(), None), Some(there));
        assert_eq!(bach_in(folder.path(), Some(Path::new("my.wav"))), Some(PathBuf::from("my.wav")));
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("a");
        // FIPS 180-2, Appendix B.1 and B.3.
        std::fs::write(&path, b"abc").expect("file");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).expect("read"), abc);
        std::fs::write(&path, vec![b'a'; 1_000_000]).expect("file");
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(sha256(&path).expect("read"), million);
        assert!(sha256(folder.path().join("b")).expect_err("missing").to_string().contains("no such file"));
    }
}
