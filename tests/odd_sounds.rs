//! WAV files as they occur, built byte by byte: what is read, what is refused and in which words.

use std::path::{Path, PathBuf};

use ndarray::Array;
use sinexp::analysis::moments::{EPSILON, moments};
use sinexp::data::audio::{Encoding, Sound, write_wav};
use sinexp::data::datasets;

const IDENTIFIER: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];

fn bytes_of<const N: usize, T: Copy>(values: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|v| bytes(*v)).collect()
}

fn floats(values: &[f32]) -> Vec<u8> {
    bytes_of(values, f32::to_le_bytes)
}

fn int24(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()[..3].to_vec()).collect()
}

/// Name, length, content, and the pad byte where the length is odd.
fn chunk(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = [name.as_bytes(), &(content.len() as u32).to_le_bytes(), content].concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

/// A fmt chunk of 16 bytes and `more`.
fn fmt(tag: u16, channels: u16, bits: u16, more: &[u8]) -> Vec<u8> {
    let block = channels * bits.div_ceil(8);
    let rate = 8000u32;
    let mut content = bytes_of(&[tag, channels], u16::to_le_bytes);
    content.extend(bytes_of(&[rate, rate * u32::from(block)], u32::to_le_bytes));
    content.extend(bytes_of(&[block, bits], u16::to_le_bytes));
    content.extend(more);
    chunk("fmt ", &content)
}

/// An extensible one of 40 bytes.
fn extensible(tag: u16, channels: u16, bits: u16, valid: u16) -> Vec<u8> {
    let more = [&[22, 0], &valid.to_le_bytes()[..], &[3, 0, 0, 0], &tag.to_le_bytes(), &IDENTIFIER].concat();
    fmt(0xFFFE, channels, bits, &more)
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    chunk("RIFF", &[b"WAVE".as_slice(), &chunks.concat()].concat())
}

fn read(bytes: &[u8]) -> Result<Sound, String> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.wav");
    std::fs::write(&path, bytes).expect("file");
    Sound::read(&path).map_err(|e| e.to_string().replace(&path.display().to_string(), "a.wav"))
}

fn expect(chunks: &[Vec<u8>], samples: &[f64], about: &str) {
    let sound = read(&riff(chunks)).expect(about);
    assert_eq!(sound.samples, samples, "{about}");
    assert_eq!((sound.rate, sound.about.as_str()), (8000, about));
}

fn refused(bytes: &[u8], words: &str) {
    let error = read(bytes).expect_err(words);
    assert!(error.starts_with("a.wav: ") && error.contains(words) && !error.contains('\n'), "{error}");
}

#[test]
fn integers_are_divided_by_their_range() {
    let lengths = [0.0, -1.0, 0.5, 1.0 - 1.0 / 128.0];
    let about = |bits: &str| format!("WAV, {bits}-bit, mono, 8000 Hz, 0.0005 s");
    expect(&[fmt(1, 1, 8, &[]), chunk("data", &[128, 0, 192, 255])], &lengths, &about("8"));
    let values = bytes_of(&[0i16, i16::MIN, 1 << 14, i16::MAX], i16::to_le_bytes);
    let lengths = [0.0, -1.0, 0.5, 1.0 - 2f64.powi(-15)];
    expect(&[fmt(1, 1, 16, &[]), chunk("data", &values)], &lengths, &about("16"));
    // 18 and 40 bytes of fmt.
    expect(&[fmt(1, 1, 16, &[0, 0]), chunk("data", &values)], &lengths, &about("16"));
    expect(&[fmt(1, 1, 16, &[7; 24]), chunk("data", &values)], &lengths, &about("16"));
    expect(&[extensible(1, 1, 16, 16), chunk("data", &values)], &lengths, &about("16"));
    let values = int24(&[0, -(1 << 23), 1 << 22, (1 << 23) - 1]);
    let lengths = [0.0, -1.0, 0.5, 1.0 - 2f64.powi(-23)];
    expect(&[fmt(1, 1, 24, &[]), chunk("data", &values)], &lengths, &about("24"));
    let values = bytes_of(&[0, i32::MIN, 1 << 30, i32::MAX], i32::to_le_bytes);
    let lengths = [0.0, -1.0, 0.5, 1.0 - 2f64.powi(-31)];
    expect(&[fmt(1, 1, 32, &[]), chunk("data", &values)], &lengths, &about("32"));
    expect(&[fmt(1, 1, 32, &[0, 0]), chunk("data", &values)], &lengths, &about("32"));
    // 24 valid bits in 32 are the highest.
    expect(&[extensible(1, 1, 32, 24), chunk("data", &values)], &lengths, &about("32"));
}

#[test]
fn floats_are_as_stored() {
    let values = [0.0, -1.0, 0.1, 1.5];
    let want = values.map(f64::from);
    let about = "WAV, 32-bit float, mono, 8000 Hz, 0.0005 s";
    let data = chunk("data", &floats(&values));
    let fact = |length: usize| chunk("fact", &vec![4; length]);
    expect(&[fmt(3, 1, 32, &[]), data.clone()], &want, about);
    expect(&[fmt(3, 1, 32, &[0, 0]), fact(4), data.clone()], &want, about);
    expect(&[fmt(3, 1, 32, &[0; 24]), fact(12), data.clone()], &want, about);
    expect(&[extensible(3, 1, 32, 32), fact(4), data.clone()], &want, about);
    expect(&[extensible(3, 1, 32, 0), data], &want, about);
}

#[test]
fn channels_are_averaged() {
    let values = int24(&[1 << 22, -(1 << 21), 1 << 22, 1 << 22]);
    let about = "WAV, 24-bit, 2 channels averaged, 8000 Hz, 0.0003 s";
    expect(&[fmt(1, 2, 24, &[]), chunk("data", &values)], &[0.125, 0.5], about);
    let values = floats(&[0.5, 0.25, 0.0, -1.0, -1.0, -1.0]);
    let about = "WAV, 32-bit float, 3 channels averaged, 8000 Hz, 0.0003 s";
    expect(&[extensible(3, 3, 32, 32), chunk("data", &values)], &[0.25, -1.0], about);
}

#[test]
fn other_chunks_are_skipped_with_their_pad_byte() {
    let (bext, list) = (chunk("bext", &[1; 602]), chunk("LIST", b"INFOabc"));
    assert_eq!(list.len(), 16);
    let data = chunk("data", &[192, 64, 128]);
    let chunks = [bext, list.clone(), fmt(1, 1, 8, &[]), list.clone(), data.clone(), list];
    expect(&chunks, &[0.5, -0.5, 0.0], "WAV, 8-bit, mono, 8000 Hz, 0.0004 s");
    // A stream's writer could not go back to say how much came.
    let mut stream = riff(&[fmt(1, 1, 16, &[]), chunk("data", &[0, 64, 0, 192, 1])]);
    let at = stream.len() - 10;
    stream[at..at + 4].fill(0xFF);
    assert_eq!(read(&stream).expect("a stream").samples, [0.5, -0.5, 1.0 / 32768.0]);
}

#[test]
fn files_cut_off_say_how_much_is_there() {
    let whole = riff(&[fmt(3, 2, 32, &[0, 0]), chunk("fact", &[0; 4]), chunk("data", &floats(&[0.5; 2000]))]);
    refused(&whole[..whole.len() - 2000], "is cut off: 750 of 1000 samples are there");
    refused(&whole[..whole.len() - 1], "is cut off: 999 of 1000 samples are there");
    refused(&whole[..whole.len() - 8000], "is cut off: 0 of 1000 samples are there");
    refused(&whole[..54], "is cut off: it ends after 54 bytes, before its data chunk");
    refused(&whole[..20], "before its data chunk and before its fmt chunk");
    refused(&whole[..7], "is cut off: it ends after 7 bytes");
    assert!((0..80).chain((80..whole.len()).step_by(101)).all(|length| read(&whole[..length]).is_err()));
}

#[test]
fn files_of_other_kinds_are_recognised() {
    refused(b"", "is empty");
    refused(b"ID3\x04\0\0\0\0\0\0TIT2", "looks like MP3; convert it with e.g. ffmpeg -i in.mp3 out.wav");
    refused(&[0xFF, 0xFB, 0x90, 0x64, 0, 0], "looks like MP3");
    refused(&[0xFF, 0xE3, 0x18, 0xC4, 0, 0], "looks like MP3");
    refused(&[0xFF, 0xF1, 0x50, 0x80], "looks like AAC");
    refused(b"fLaC\0\0\0\x22", "looks like FLAC; convert it with e.g. ffmpeg -i in.flac out.wav");
    refused(b"OggS\0\x02", "looks like OGG");
    refused(b"FORM\0\0\0\0AIFF", "looks like AIFF");
    refused(b"\0\0\0\x1CftypM4A ", "looks like MP4");
    refused(b"RF64\xFF\xFF\xFF\xFFWAVE", "more than 4 GiB");
    refused(b"RIFF\x10\0\0\0AVI LIST", "is not a WAV file");
    refused(b"time,value\n", "is not a WAV file");
}

#[test]
fn samples_of_other_kinds_are_named() {
    let tagged = |fmt: Vec<u8>| riff(&[fmt, chunk("data", &[0; 64])]);
    refused(&tagged(fmt(6, 1, 8, &[0, 0])), "format tag 0x0006 (A-law), which are not read; convert");
    refused(&tagged(fmt(0x55, 1, 16, &[0; 14])), "format tag 0x0055 (MP3)");
    refused(&tagged(fmt(0x1234, 1, 16, &[])), "format tag 0x1234, which");
    refused(&tagged(extensible(7, 1, 8, 8)), "format tag 0x0007 (mu-law)");
    refused(&tagged(fmt(0xFFFE, 1, 16, &[9; 24])), "unknown kind");
    refused(&tagged(fmt(0xFFFE, 1, 16, &[0; 2])), "its fmt chunk has 18 bytes, too few");
    refused(&tagged(fmt(3, 1, 64, &[])), "64-bit float samples, which are not read");
    refused(&tagged(fmt(3, 1, 16, &[])), "16-bit float samples");
    refused(&tagged(fmt(1, 1, 12, &[])), "12-bit integer samples");
    refused(&tagged(fmt(1, 0, 16, &[])), "is damaged: 0 channels");
    refused(&tagged(chunk("fmt ", &[1, 0, 1, 0])), "its fmt chunk has 4 bytes, too few");
    let mut block = fmt(1, 1, 24, &[]);
    block[20] = 4;
    refused(&tagged(block), "is damaged: 4 bytes for 1 channels of 24 bits");
    refused(&riff(&[chunk("data", &[0; 4]), fmt(1, 1, 16, &[])]), "before the fmt chunk");
}

#[test]
fn sounds_without_usable_samples_are_refused() {
    refused(&riff(&[fmt(1, 1, 16, &[]), chunk("data", &[])]), "holds no samples");
    refused(&riff(&[fmt(1, 2, 16, &[]), chunk("data", &[0; 6])]), "is damaged: 6 bytes of samples, 4 per sample");
    let values = floats(&[0.0, 0.5, f32::NAN, 0.5]);
    refused(&riff(&[fmt(3, 1, 32, &[]), chunk("data", &values)]), "sample 2 of 4 is NaN");
    refused(&riff(&[fmt(3, 2, 32, &[]), chunk("data", &values)]), "sample 1 of 2 is NaN");
    let values = floats(&[f32::NEG_INFINITY, 0.5]);
    refused(&riff(&[fmt(3, 1, 32, &[]), chunk("data", &values)]), "sample 0 of 2 is -inf");
    let silence = read(&riff(&[fmt(1, 1, 16, &[]), chunk("data", &[0; 6])])).expect("zeros are a sound");
    let error = silence.normalized().expect_err("silence").to_string();
    assert!(error.contains("all 3 samples are zero"), "{error}");
}

#[test]
fn paths_that_are_no_files_say_so() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let error = Sound::read(folder.path()).expect_err("a folder").to_string();
    assert!(error.ends_with("is a folder; give a WAV file"), "{error}");
    let error = Sound::read(folder.path().join("no.wav")).expect_err("missing").to_string();
    assert!(error.ends_with("no.wav: cannot be read: no such file or directory"), "{error}");
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("a.wav");
    let samples: Vec<f64> = (0..1000).map(|i| f64::from((f64::from(i) * 0.37).sin() as f32)).collect();
    write_wav(&path, &samples, 22050, Encoding::Float32).expect("written");
    let sound = Sound::read(&path).expect("read");
    assert_eq!((&sound.samples, sound.rate), (&samples, 22050));
    assert_eq!(sound.about, "WAV, 32-bit float, mono, 22050 Hz, 0.0454 s");
    let largest = samples.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let want: Vec<f64> = samples.iter().map(|v| v / largest).collect();
    assert_eq!(sound.normalized().expect("not silent"), want);
    let refused = |samples: &[f64], rate: u32, words: &str| {
        let error = write_wav(&path, samples, rate, Encoding::Float32).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&[], 8000, "0 samples");
    refused(&[0.0, f64::NAN], 8000, "sample 1 is NaN");
    refused(&[1e39], 8000, "sample 0 is 1000000");
    refused(&[0.5], 0, "0 samples per second");
    refused(&[0.5], u32::MAX, "4294967295 samples per second");
    assert_eq!(Sound::read(&path).expect("still there"), sound);
}

/// The paper's recording, where it lies beside the source or in the data folder.
fn recording() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/gt_bach.wav");
    datasets::bach(None).or(Some(beside)).filter(|path| path.is_file())
}

#[test]
fn the_papers_recording_has_its_moments() {
    let Some(path) = recording() else {
        eprintln!("left out: gt_bach.wav is not there");
        return;
    };
    let checksum = "023940a1bcc534349e16ff46f360ffbfffa993842961dbed955c168fd2f38190";
    assert_eq!(datasets::sha256(&path).expect("read"), checksum);
    let sound = Sound::read(&path).expect("read");
    assert_eq!((sound.samples.len(), sound.rate), (308_207, 44100));
    assert_eq!(sound.about, "WAV, 32-bit float, mono, 44100 Hz, 7.0 s");
    let samples = sound.normalized().expect("not silent");
    let n = samples.len();
    let field = Array::from_shape_vec((n, 1), samples).expect("one channel").into_dyn();
    let m = moments(field.view(), &[200.0 / (n - 1) as f64]).expect("moments");
    let (mu, sigma, omega) = (m.mu[0], m.sigma[[0, 0]], m.omega[[0, 0]]);
    // numpy in f64, the variance divided by n - 1 as `moments` does.
    assert_eq!(format!("{mu:.9e} {sigma:.10e} {omega:.4}"), "-1.385323089e-5 2.4203502658e-2 18854.3119");
    // The specification's digits divide it by n, which differs in the last ones.
    let by_n = sigma * (n - 1) as f64 / n as f64;
    let omega_by_n = (omega - EPSILON) * (sigma + EPSILON) / (by_n + EPSILON) + EPSILON;
    assert_eq!(format!("{mu:.3e} {by_n:.7} {omega_by_n:.1}"), "-1.385e-5 0.0242034 18854.4");
}
