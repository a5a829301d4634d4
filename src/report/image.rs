//! 8-bit colour images for panels and PNG files.

use crate::error::{Error, Result};

/// Row-major RGB pixels, three bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) rgb: Vec<u8>,
}

impl Raster {
    /// An image from `height * width * 3` bytes.
    ///
    /// **Errors** when the size is zero or the bytes do not fit it.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Result<Self> {
        match width.checked_mul(height).and_then(|n| n.checked_mul(3)) {
            Some(n) if n > 0 && n == rgb.len() => Ok(Raster { width, height, rgb }),
            _ => Err(Error::numeric(
                format!("image of {width} by {height} pixels"),
                format!("{} bytes given; it needs three for each pixel, and at least one pixel", rgb.len()),
            )),
        }
    }

    /// The image at another size: each new pixel is the mean of the old ones it covers, or the old one it lies in.
    pub(super) fn resized(&self, width: usize, height: usize) -> Vec<u8> {
        let ranges = |new: usize, old: usize| -> Vec<(usize, usize)> {
            (0..new)
                .map(|i| {
                    let (a, b) = (i * old / new, (i + 1) * old / new);
                    (a, b.max(a + 1))
                })
                .collect()
        };
        let (columns, rows) = (ranges(width, self.width), ranges(height, self.height));
        let mut out = Vec::with_capacity(width * height * 3);
        for &(top, bottom) in &rows {
            for &(left, right) in &columns {
                let mut sum = [0usize; 3];
                for y in top..bottom {
                    for pixel in self.rgb[(y * self.width + left) * 3..(y * self.width + right) * 3].chunks_exact(3) {
                        sum.iter_mut().zip(pixel).for_each(|(s, p)| *s += usize::from(*p));
                    }
                }
                let n = (bottom - top) * (right - left);
                out.extend(sum.map(|s| ((s + n / 2) / n) as u8));
            }
        }
        out
    }

    /// As a PNG file's bytes, with its resolution in dots per inch if given.
    pub(super) fn to_png(&self, dots_per_inch: Option<f64>) -> Result<Vec<u8>> {
        let fail = |e: png::EncodingError| Error::numeric("encoding a PNG", e);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_filter(png::Filter::Adaptive);
        encoder.set_pixel_dims(dots_per_inch.map(|dpi| {
            let per_metre = (dpi / 0.0254).round() as u32;
            png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }
        }));
        let mut writer = encoder.write_header().map_err(fail)?;
        writer.write_image_data(&self.rgb).map_err(fail)?;
        writer.finish().map_err(fail)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine as _};

    use super::*;

    #[test]
    fn base64_agrees_with_the_standard() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(BASE64_STANDARD.encode(plain), coded);
        }
    }

    #[test]
    fn a_png_reads_back_as_written() {
        let rgb: Vec<u8> = (0..5 * 4 * 3).map(|i| (i * 4) as u8).collect();
        let image = Raster::new(5, 4, rgb.clone()).expect("fits");
        let bytes = image.to_png(Some(300.0)).expect("encodes");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes.as_slice())).read_info().expect("header");
        assert_eq!(reader.info().pixel_dims.map(|d| d.xppu), Some(11811));
        let mut back = vec![0; reader.output_buffer_size().expect("fits")];
        reader.next_frame(&mut back).expect("pixels");
        assert_eq!(back, rgb);
        assert!(Raster::new(5, 4, vec![0; 59]).is_err() && Raster::new(0, 4, vec![]).is_err());
    }

    #[test]
    fn shrinking_averages_and_growing_repeats() {
        let image = Raster::new(2, 1, vec![0, 10, 20, 100, 110, 120]).expect("fits");
        assert_eq!(image.resized(1, 1), [50, 60, 70]);
        assert_eq!(image.resized(4, 1), [0, 10, 20, 0, 10, 20, 100, 110, 120, 100, 110, 120]);
    }
}
