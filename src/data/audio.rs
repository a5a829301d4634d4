//! Sounds as one channel of f64 samples: WAV files in and out, and a short piece that the program plays itself.
//!
//! ```
//! use sinexp::data::audio::{Encoding, Sound, write_wav};
//! let path = std::env::temp_dir().join(format!("sinexp-doc-{}.wav", std::process::id()));
//! let samples: Vec<f64> = (0..800).map(|i| 0.5 * (i as f64 * 0.3).sin()).collect();
//! write_wav(&path, &samples, 8000, Encoding::Int16)?;
//! let sound = Sound::read(&path)?;
//! assert_eq!((sound.rate, sound.samples.len()), (8000, 800));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod fugue;
mod wav;

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};

pub use self::fugue::fugue_subject;
use crate::error::{Error, Result};
use crate::files::{unreadable, write_bytes};

/// One channel of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Sound pressure, one value per sample. Integers of a file are scaled to [-1, 1); floats are as stored.
    pub samples: Vec<f64>,
    /// Samples per second.
    pub rate: u32,
    /// What it is, in words: `WAV, 24-bit, 2 channels averaged, 44100 Hz, 3.2 s`.
    pub about: String,
}

impl Sound {
    /// Reads a WAV file: 8 (unsigned), 16, 24 or 32-bit integers or 32-bit floats, plain or "extensible". Several
    /// channels are averaged. Integers are divided by 2^(bits - 1).
    ///
    /// **Errors** when the file is missing, a folder, empty or cut off, is no WAV (what it looks like is said, and how
    /// to convert it), holds samples of another kind, none at all, or one that is NaN or infinite.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = content(path)?;
        let wav = wav::Wav::parse(&bytes).map_err(|reason| Error::file(path, reason))?;
        let samples = wav.samples().map_err(|reason| Error::file(path, reason))?;
        if let Some((at, value)) = samples.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            let all = samples.len();
            return Err(Error::file(path, format!("sample {at} of {all} is {value}; a sound has finite samples only")));
        }
        let about = format!("WAV, {}, {}", wav.kind(), duration(samples.len(), wav.rate));
        Ok(Sound { samples, rate: wav.rate, about })
    }

    /// The samples divided by the largest |y| (Section 4.2 of 2609.30633), so that it becomes 1.
    ///
    /// **Errors** when there are no samples, all are zero, or one is not finite.
    pub fn normalized(&self) -> Result<Vec<f64>> {
        let refuse = |reason: String| Err(Error::numeric(format!("sound ({})", self.about), reason));
        if let Some(value) = self.samples.iter().find(|v| !v.is_finite()) {
            return refuse(format!("a sample is {value}"));
        }
        let largest = self.samples.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        match (self.samples.len(), largest) {
            (0, _) => refuse("it has no samples".into()),
            (n, 0.0) => refuse(format!("all {n} samples are zero: silence cannot be normalised; give another file")),
            _ => Ok(self.samples.iter().map(|v| v / largest).collect()),
        }
    }
}

/// How the samples of a WAV file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 32-bit floats, as they are.
    Float32,
    /// 16-bit integers, clipped to [-1, 1]: what every player and browser plays.
    Int16,
}

/// Writes `samples` as a WAV file of one channel. `rate` is in samples per second.
///
/// **Errors** when there are no samples or more than a WAV can hold, one is not finite as f32, the rate is zero or
/// above 2^30, or the file cannot be written.
pub fn write_wav(path: impl AsRef<Path>, samples: &[f64], rate: u32, encoding: Encoding) -> Result<()> {
    let path = path.as_ref();
    let fail = |reason: String| Error::file(path, format!("cannot be written: {reason}"));
    // hound computes the file's length and its bytes per second in u32, unchecked.
    if rate == 0 || rate > 1 << 30 {
        return Err(fail(format!("a WAV file of {rate} samples per second; at least 1, at most {}", 1 << 30)));
    }
    if samples.is_empty() || samples.len() > (u32::MAX as usize - 128) / 4 {
        return Err(fail(format!("{} samples; a WAV file holds at least 1 and at most 4 GiB", samples.len())));
    }
    if let Some((at, value)) = samples.iter().enumerate().find(|(_, v)| !(**v as f32).is_finite()) {
        return Err(fail(format!("sample {at} is {value}; a sound has finite samples only")));
    }
    let (bits_per_sample, sample_format) = match encoding {
        Encoding::Float32 => (32, SampleFormat::Float),
        Encoding::Int16 => (16, SampleFormat::Int),
    };
    let spec = WavSpec { channels: 1, sample_rate: rate, bits_per_sample, sample_format };
    let mut bytes = Vec::with_capacity(4 * samples.len() + 128);
    let written = WavWriter::new(Cursor::new(&mut bytes), spec).and_then(|mut writer| {
        samples.iter().try_for_each(|v| match encoding {
            Encoding::Float32 => writer.write_sample(*v as f32),
            Encoding::Int16 => writer.write_sample((v.clamp(-1.0, 1.0) * f64::from(i16::MAX)).round() as i16),
        })?;
        writer.finalize()
    });
    written.map_err(|e| fail(e.to_string()))?;
    write_bytes(path, &bytes)
}

/// The whole file, once its first bytes are those of a WAV.
fn content(path: &Path) -> Result<Vec<u8>> {
    let fail = |e: std::io::Error| unreadable(path, &e);
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; give a WAV file"));
    }
    let mut file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.by_ref().take(wav::START as u64).read_to_end(&mut bytes).map_err(fail)?;
    wav::check_start(&bytes).map_err(|reason| Error::file(path, reason))?;
    file.read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// `44100 Hz, 3.2 s`
fn duration(samples: usize, rate: u32) -> String {
    let seconds = samples as f64 / f64::from(rate);
    format!("{rate} Hz, {seconds:.0$} s", if seconds < 0.1 { 4 } else { 1 })
}
