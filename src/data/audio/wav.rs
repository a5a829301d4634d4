//! The WAV format: which samples a file holds.
//!
//! hound decodes the samples, but it does not skip the pad byte after a chunk of odd length, reads four bytes of a
//! `fact` chunk whatever its length, takes 24 valid bits in 32 for the lowest, and refuses 32-bit integers behind an
//! 18-byte and floats behind a 40-byte `fmt ` chunk. So the chunks are gone through here, and hound gets the samples
//! behind the plainest header.

use std::io::Read;

use hound::WavReader;

/// How many bytes [`check_start`] looks at.
pub(super) const START: usize = 12;

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xFFFE;
/// What follows the format tag in an extensible format's identifier.
const IDENTIFIER: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];
/// Length of the data of a file whose writer could not go back to fill it in.
const UNKNOWN: u32 = u32::MAX;

/// A file's samples as stored.
pub(super) struct Wav<'a> {
    /// Samples per second, not zero.
    pub(super) rate: u32,
    format: Format,
    /// Whole frames.
    data: &'a [u8],
}

struct Format {
    float: bool,
    /// Of a stored sample: 8, 16, 24 or 32.
    bits: u16,
    channels: usize,
    rate: u32,
}

/// Refuses files that do not start as a WAV does, with what they look like.
pub(super) fn check_start(bytes: &[u8]) -> Result<(), String> {
    let convert = |name: &str, extension: &str| {
        Err(format!("looks like {name}; convert it with e.g. ffmpeg -i in.{extension} out.wav"))
    };
    match bytes {
        [] => Err("is empty".into()),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => Ok(()),
        [b'R', b'I', b'F', b'F', ..] if bytes.len() < START => {
            Err(format!("is cut off: it ends after {} bytes", bytes.len()))
        }
        [b'R', b'F' | b'I', b'6' | b'F', b'4' | b'X', ..] | [b'B', b'W', b'6', b'4', ..] => {
            convert("a WAV file of more than 4 GiB or with reversed bytes", "wav")
        }
        [b'I', b'D', b'3', ..] => convert("MP3", "mp3"),
        [b'f', b'L', b'a', b'C', ..] => convert("FLAC", "flac"),
        [b'O', b'g', b'g', b'S', ..] => convert("OGG", "ogg"),
        [b'F', b'O', b'R', b'M', ..] => convert("AIFF", "aiff"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => convert("MP4", "m4a"),
        // A frame: eleven bits set, then version and layer; layer 0 is AAC.
        [0xFF, second, ..] if second & 0xF6 == 0xF0 => convert("AAC", "aac"),
        [0xFF, second, ..] if second & 0xE0 == 0xE0 && second & 0x06 != 0 => convert("MP3", "mp3"),
        _ => Err("is not a WAV file: it does not start with RIFF and WAVE".into()),
    }
}

impl<'a> Wav<'a> {
    /// Finds format and samples in a whole file that [`check_start`] has let through.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let mut rest = bytes.get(START..).unwrap_or(&[]);
        let mut format = None;
        while let Some((header, body)) = rest.split_at_checked(8) {
            let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
            if header.starts_with(b"data") {
                let format: Format =
                    format.ok_or("its data chunk comes before the fmt chunk that says what is in it")?;
                let data = format.whole(body, length)?;
                return Ok(Wav { rate: format.rate, format, data });
            }
            let Some(content) = body.get(..length as usize) else { break };
            if header.starts_with(b"fmt ") {
                format = Some(Format::parse(content)?);
            }
            // A chunk of odd length is followed by a byte that belongs to none.
            rest = body.get(content.len().next_multiple_of(2)..).unwrap_or(&[]);
        }
        let found = if format.is_some() { "" } else { " and before its fmt chunk" };
        Err(format!("is cut off: it ends after {} bytes, before its data chunk{found}", bytes.len()))
    }

    /// One value per frame: the mean of the channels; integers divided by 2^(bits - 1).
    pub(super) fn samples(&self) -> Result<Vec<f64>, String> {
        let header = self.format.plain_header(self.data.len())?;
        let mut reader = WavReader::new(header.as_slice().chain(self.data)).map_err(|e| e.to_string())?;
        let values: Result<Vec<f64>, hound::Error> = if self.format.float {
            reader.samples::<f32>().map(|v| v.map(f64::from)).collect()
        } else {
            let scale = 2f64.powi(i32::from(self.format.bits) - 1);
            // hound gives 8-bit samples with 128 taken away.
            reader.samples::<i32>().map(|v| v.map(|v| f64::from(v) / scale)).collect()
        };
        let values = values.map_err(|e| e.to_string())?;
        if self.format.channels == 1 {
            return Ok(values);
        }
        let channels = self.format.channels as f64;
        Ok(values.chunks_exact(self.format.channels).map(|frame| frame.iter().sum::<f64>() / channels).collect())
    }

    /// `24-bit, 2 channels averaged`
    pub(super) fn kind(&self) -> String {
        let float = if self.format.float { " float" } else { "" };
        let channels = match self.format.channels {
            1 => "mono".to_owned(),
            n => format!("{n} channels averaged"),
        };
        format!("{}-bit{float}, {channels}", self.format.bits)
    }
}

impl Format {
    fn parse(fmt: &[u8]) -> Result<Self, String> {
        let too_short = || format!("its fmt chunk has {} bytes, too few for what it announces", fmt.len());
        let u16_at = |at: usize| fmt.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]])).ok_or_else(too_short);
        let (mut tag, channels, block, bits) = (u16_at(0)?, u16_at(2)?, u16_at(12)?, u16_at(14)?);
        let rate = u32::from(u16_at(4)?) | u32::from(u16_at(6)?) << 16;
        if tag == EXTENSIBLE {
            tag = u16_at(24)?;
            let rest = fmt.get(26..40).ok_or_else(too_short)?;
            if rest != IDENTIFIER {
                return Err(
                    "holds samples of an unknown kind (a sub-format of its writer's own); convert it with e.g. \
                            ffmpeg -i in.wav -c:a pcm_f32le out.wav"
                        .into(),
                );
            }
        }
        let refuse = |what: String| {
            Err(format!(
                "holds {what}, which are not read; convert it with e.g. ffmpeg -i in.wav -c:a pcm_f32le out.wav"
            ))
        };
        if tag != PCM && tag != FLOAT {
            return refuse(format!("samples of format tag {tag:#06x}{}", name(tag)));
        }
        if channels == 0 || rate == 0 {
            return Err(format!("is damaged: {channels} channels, {rate} Hz"));
        }
        let float = tag == FLOAT;
        if !(matches!(bits, 8 | 16 | 24) && !float || bits == 32) {
            return refuse(format!("{bits}-bit {} samples", if float { "float" } else { "integer" }));
        }
        let format = Format { float, bits, channels: channels.into(), rate };
        if usize::from(block) != format.frame() {
            return Err(format!("is damaged: {block} bytes for {channels} channels of {bits} bits"));
        }
        Ok(format)
    }

    /// Bytes of one sample of every channel.
    fn frame(&self) -> usize {
        self.channels * usize::from(self.bits / 8)
    }

    /// The data chunk's content, which should be `length` bytes and whole frames.
    fn whole<'a>(&self, body: &'a [u8], length: u32) -> Result<&'a [u8], String> {
        let frame = self.frame();
        let data = match body.get(..length as usize) {
            Some(data) => data,
            None if length == UNKNOWN => &body[..body.len() / frame * frame],
            None => {
                let (there, all) = (body.len() / frame, length as usize / frame);
                return Err(format!("is cut off: {there} of {all} samples are there; copy it again"));
            }
        };
        if data.is_empty() {
            return Err("holds no samples".into());
        }
        if data.len() % frame != 0 {
            return Err(format!("is damaged: {length} bytes of samples, {frame} per sample"));
        }
        Ok(data)
    }

    /// The header of one channel of `bytes` bytes.
    fn plain_header(&self, bytes: usize) -> Result<Vec<u8>, String> {
        let length = u32::try_from(bytes).map_err(|_| "holds more than 4 GiB of samples; cut it".to_owned())?;
        let (tag, width) = (if self.float { FLOAT } else { PCM }, self.bits / 8);
        let mut header = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        // The rate is not needed to decode; 1 Hz makes the bytes per second fit their field.
        header.extend([tag, 1, 1, 0, width, 0, width, self.bits].iter().flat_map(|v| v.to_le_bytes()));
        header.extend_from_slice(b"data");
        header.extend(length.to_le_bytes());
        Ok(header)
    }
}

/// The usual name of what a format tag stands for, in brackets.
fn name(tag: u16) -> &'static str {
    match tag {
        0x0002 => " (Microsoft ADPCM)",
        0x0006 => " (A-law)",
        0x0007 => " (mu-law)",
        0x0011 => " (IMA ADPCM)",
        0x0031 => " (GSM 6.10)",
        0x0050 => " (MPEG)",
        0x0055 => " (MP3)",
        0x00FF | 0x1600 | 0x1610 => " (AAC)",
        0x0161 | 0x0162 => " (Windows Media)",
        0x2000 => " (AC-3)",
        0xF1AC => " (FLAC)",
        _ => "",
    }
}
