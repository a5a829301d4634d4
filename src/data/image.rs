//! Pictures as arrays of numbers in [0, 1], read from PNG and JPEG files and written as PNG.
//!
//! Whatever was done to a picture on the way in (transparency composited, turned by its orientation mark, ...) is kept as a
//! note, so that a run record can tell.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::data::image::{Alpha, Picture, write_png};
//! let path = std::env::temp_dir().join(format!("sinexp-doc-{}.png", std::process::id()));
//! write_png(&path, Array3::from_elem((4, 6, 3), 0.2).view())?;
//! assert_eq!(Picture::read(&path, Alpha::Refuse)?.gray().dim(), (4, 6, 1));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use image::codecs::png::PngEncoder;
use image::metadata::Orientation;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, Limits,
};
use ndarray::{Array3, ArrayView3, s};

use crate::error::{Error, Result};
use crate::files::{reason, write_bytes};

/// The largest picture that is read, in pixels: 8192 x 8192, or as many in another shape.
const MAX_PIXELS: u64 = 1 << 26;
/// Its size in bytes at 16 bits for each of red, green, blue and alpha; no file may be larger either.
const MAX_BYTES: u64 = 8 * MAX_PIXELS;

/// What to do with a picture that is transparent somewhere. One whose alpha is 1 everywhere needs nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// Refuse it, naming the option that helps.
    Refuse,
    /// Composite it over this red, green and blue in [0, 1]: alpha * colour + (1 - alpha) * background, of the values as
    /// stored.
    Over([f64; 3]),
}

/// A picture and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// `(height, width, channels)` in [0, 1]; one channel (gray) or three (red, green, blue). 8-bit values are divided by
    /// 255, 16-bit ones by 65535.
    pub pixels: Array3<f64>,
    /// What the file holds: format, bits, kind, width x height, as "PNG, 16-bit gray, 640 x 480".
    pub about: String,
    /// What was done to it, a sentence each.
    pub notes: Vec<String>,
}

impl Picture {
    /// Reads a PNG (1 to 16 bits; gray, RGB, palette; with or without alpha) or a JPEG (gray, RGB, CMYK), whatever its name
    /// ends in, and turns it upright.
    ///
    /// **Errors** when the file is missing, a folder, neither PNG nor JPEG, cut off or damaged, larger than 67,108,864
    /// pixels, or transparent while `alpha` refuses that; and when a background is outside [0, 1].
    pub fn read(path: &Path, alpha: Alpha) -> Result<Picture> {
        let bytes = contents(path)?;
        let format = match image::guess_format(&bytes) {
            Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
            Ok(other) => {
                let name = other.extensions_str().first().unwrap_or(&"unknown").to_uppercase();
                return Err(Error::file(path, format!("is a {name} file; convert it to PNG")));
            }
            Err(_) => return Err(Error::file(path, "is neither a PNG nor a JPEG picture")),
        };
        let mut picture = decode(&bytes, format).map_err(|reason| Error::file(path, reason))?;
        picture.settle(path, alpha)?;
        Ok(picture)
    }

    /// One gray channel `(h, w, 1)`, as `skimage.color.rgb2gray`: 0.2125 red + 0.7154 green + 0.0721 blue.
    pub fn gray(&self) -> Array3<f64> {
        const WEIGHTS: [f64; 3] = [0.2125, 0.7154, 0.0721];
        let (h, w, channels) = self.pixels.dim();
        if channels == 1 {
            return self.pixels.clone();
        }
        Array3::from_shape_fn((h, w, 1), |(y, x, _)| (0..3).map(|c| WEIGHTS[c] * self.pixels[[y, x, c]]).sum())
    }

    /// Does away with the last of two or four channels, which is alpha.
    fn settle(&mut self, path: &Path, alpha: Alpha) -> Result<()> {
        let (h, w, channels) = self.pixels.dim();
        if channels % 2 == 1 {
            return Ok(());
        }
        let colours = channels - 1;
        let clear = self.pixels.slice(s![.., .., colours]).iter().filter(|a| **a < 1.0).count();
        if clear == 0 {
            self.pixels = self.pixels.slice(s![.., .., ..colours]).to_owned();
            self.notes.push("alpha dropped: every pixel is opaque".into());
            return Ok(());
        }
        let back = match alpha {
            Alpha::Over(back) => back,
            Alpha::Refuse => {
                let what = format!("is transparent in {clear} of {} pixels", h * w);
                let how = "say what lies behind it: --background white or --background R,G,B";
                return Err(Error::file(path, format!("{what}; {how}")));
            }
        };
        let shown = match back {
            [1.0, 1.0, 1.0] => "white".to_owned(),
            [0.0, 0.0, 0.0] => "black".to_owned(),
            [r, g, b] => format!("{r},{g},{b}"),
        };
        if let Some(part) = back.iter().find(|v| !(0.0..=1.0).contains(*v)) {
            return Err(Error::argument("--background", shown, format!("{part} is outside 0 to 1")));
        }
        // A gray picture stays gray over gray.
        let kept = if colours == 1 && back[0] == back[1] && back[1] == back[2] { 1 } else { 3 };
        let old = &self.pixels;
        let new = Array3::from_shape_fn((h, w, kept), |(y, x, c)| {
            let a = old[[y, x, colours]];
            a * old[[y, x, c.min(colours - 1)]] + (1.0 - a) * back[c]
        });
        self.pixels = new;
        self.notes.push(format!("composited over {shown}: {clear} of {} pixels are transparent", h * w));
        Ok(())
    }
}

/// Writes `(h, w, 1)` as an 8-bit gray PNG or `(h, w, 3)` as RGB: clipped to [0, 1], times 255, rounded; NaN as 0.
///
/// **Errors** when there are no pixels, another number of channels, or the file cannot be written.
pub fn write_png(path: impl AsRef<Path>, pixels: ArrayView3<f64>) -> Result<()> {
    let (h, w, channels) = pixels.dim();
    let refuse = |reason: String| Error::numeric(format!("picture of shape {:?}", pixels.shape()), reason);
    let color = match channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => return Err(refuse("a PNG takes 1 channel (gray) or 3 (RGB)".into())),
    };
    let (width, height) = match (u32::try_from(w), u32::try_from(h)) {
        (Ok(width), Ok(height)) if width > 0 && height > 0 => (width, height),
        _ => return Err(refuse("a PNG has 1 to 4294967295 pixels a side".into())),
    };
    let levels: Vec<u8> = pixels.iter().map(|v| level(*v)).collect();
    let mut bytes = Vec::new();
    let encoded = PngEncoder::new(&mut bytes).write_image(&levels, width, height, color);
    encoded.map_err(|e| refuse(one_line(&e)))?;
    write_bytes(path, &bytes)
}

/// Row-major red, green and blue of `(h, w, 1)` or `(h, w, 3)`, a byte each: `h * w * 3` of them, made as [`write_png`]'s.
///
/// **Panics** when there is another number of channels.
pub fn to_rgb8(pixels: ArrayView3<f64>) -> Vec<u8> {
    let repeat = match pixels.dim().2 {
        1 => 3,
        3 => 1,
        other => panic!("to_rgb8: 1 channel or 3, not {other}"),
    };
    pixels.iter().flat_map(|v| std::iter::repeat_n(level(*v), repeat)).collect()
}

fn level(v: f64) -> u8 {
    (v.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// The file's bytes, if it is not too large to be a picture.
fn contents(path: &Path) -> Result<Vec<u8>> {
    let fail = |e: std::io::Error| crate::files::unreadable(path, &e);
    let file = File::open(path).map_err(fail)?;
    if file.metadata().map_err(fail)?.is_dir() {
        return Err(Error::file(path, "is a folder; give a PNG or JPEG file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    match bytes.len() as u64 {
        0 => Err(Error::file(path, "is empty")),
        n if n > MAX_BYTES => Err(Error::file(path, format!("is larger than {} MiB", MAX_BYTES >> 20))),
        _ => Ok(bytes),
    }
}

/// The picture upright, with its alpha still among the channels, or why there is none.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<Picture, String> {
    if format == ImageFormat::Jpeg && without_end(bytes) {
        return Err("is a JPEG without an end: cut off".into());
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!("is {width} x {height} pixels; at most {MAX_PIXELS} pixels are read: make it smaller"));
    }
    let mut notes = Vec::new();
    let kind = match format {
        ImageFormat::Png => png_kind(bytes, &mut notes)?,
        _ => jpeg_kind(bytes, &mut notes).to_owned(),
    };
    if matches!(decoder.icc_profile(), Ok(Some(_))) {
        notes.push("colour profile not applied: values taken as sRGB".into());
    }
    let orientation = decoder.orientation().map_err(unreadable)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    if let Some(how) = turned(orientation) {
        decoded.apply_orientation(orientation);
        notes.push(format!("{how}, as its EXIF orientation says: now {} x {}", decoded.width(), decoded.height()));
    }
    let about = format!("{format:?}").to_uppercase();
    Ok(Picture { pixels: numbers(&decoded)?, about: format!("{about}, {kind}, {width} x {height}"), notes })
}

/// Every channel, alpha too, as a number in [0, 1].
fn numbers(decoded: &DynamicImage) -> Result<Array3<f64>, String> {
    let color = decoded.color();
    let channels = color.channel_count();
    let bytes = decoded.as_bytes();
    let values: Vec<f64> = match color.bytes_per_pixel() / channels {
        1 => bytes.iter().map(|v| f64::from(*v) / 255.0).collect(),
        2 => bytes.chunks_exact(2).map(|v| f64::from(u16::from_ne_bytes([v[0], v[1]])) / 65535.0).collect(),
        other => return Err(format!("has {other} bytes per value; 8-bit and 16-bit pictures are read")),
    };
    let shape = (decoded.height() as usize, decoded.width() as usize, usize::from(channels));
    Array3::from_shape_vec(shape, values).map_err(|e| e.to_string())
}

fn png_kind(bytes: &[u8], notes: &mut Vec<String>) -> Result<String, String> {
    let reader = png::Decoder::new(Cursor::new(bytes)).read_info().map_err(|e| one_line(&e))?;
    let info = reader.info();
    if info.animation_control.is_some() {
        notes.push("animated: the still picture was taken".into());
    }
    let kind = match info.color_type {
        png::ColorType::Grayscale => "gray",
        png::ColorType::Rgb => "RGB",
        png::ColorType::Indexed => "palette",
        png::ColorType::GrayscaleAlpha => "gray and alpha",
        png::ColorType::Rgba => "RGBA",
    };
    Ok(format!("{}-bit {kind}", info.bit_depth as u8))
}

fn jpeg_kind(bytes: &[u8], notes: &mut Vec<String>) -> &'static str {
    match jpeg_components(bytes) {
        Some(1) => "8-bit gray",
        Some(4) => {
            notes.push("CMYK turned into RGB without a colour profile".into());
            "8-bit CMYK"
        }
        _ => "8-bit RGB",
    }
}

/// How many components the frame header names: the decoder does not tell CMYK from RGB.
fn jpeg_components(bytes: &[u8]) -> Option<u8> {
    let mut at = 2;
    loop {
        match *bytes.get(at + 1)? {
            0xFF => at += 1, // padding
            0xC4 | 0xC8 | 0xCC => at += 2 + length(bytes, at)?,
            0xC0..=0xCF => return bytes.get(at + 9).copied(),
            _ => at += 2 + length(bytes, at)?,
        }
    }
}

/// The length of the segment whose marker is `at`.
fn length(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?])))
}

/// Whether the last scan of a JPEG has no end marker behind it; the decoder would fill the rest with gray.
fn without_end(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xFF, marker]);
    last(0xDA) > last(0xD9)
}

fn turned(orientation: Orientation) -> Option<&'static str> {
    match orientation {
        Orientation::NoTransforms => None,
        Orientation::Rotate90 => Some("turned by 90 degrees clockwise"),
        Orientation::Rotate180 => Some("turned by 180 degrees"),
        Orientation::Rotate270 => Some("turned by 90 degrees counterclockwise"),
        Orientation::FlipHorizontal => Some("mirrored left to right"),
        Orientation::FlipVertical => Some("mirrored top to bottom"),
        Orientation::Rotate90FlipH => Some("rows and columns exchanged"),
        Orientation::Rotate270FlipH => Some("mirrored along the other diagonal"),
    }
}

fn unreadable(error: ImageError) -> String {
    match error {
        ImageError::Limits(_) => format!("needs more than {} MiB to decode: make it smaller", MAX_BYTES >> 20),
        ImageError::Unsupported(e) => format!("cannot be decoded: {}; convert it to an 8-bit PNG", one_line(&e)),
        ImageError::IoError(e) => format!("is damaged or cut off: {}", reason(&e)),
        other => format!("is damaged or cut off: {}", one_line(&other)),
    }
}

fn one_line(error: &dyn std::error::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
