//! 8-bit colour images for panels and PNG files.

use crate::error::{Error, Result};
use crate::style::Color;

/// Row-major RGB pixels, three bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) rgb: Vec<u8>,
}

impl Raster {
    /// An image from `height * width * 3` bytes.
    ///
    /// **Errors** when the size is zero or the bytes do not fit it.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Result<Self> {
        match width.checked_mul(height).and_then(|n| n.checked_mul(3)) {
            Some(n) if n > 0 && n == rgb.len() => Ok(Raster { width, height, rgb }),
            _ => Err(Error::new(
                format!("image of {width} by {height} pixels"),
                format!("{} bytes given; it needs three for each pixel, and at least one pixel", rgb.len()),
            )),
        }
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// All bytes: rows from the top, pixels from the left, red, green and blue.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The part of `height` by `width` pixels whose first pixel is in row `top` and column `left`.
    ///
    /// **Errors** when it is empty or does not lie inside the image.
    pub fn crop(&self, top: usize, left: usize, height: usize, width: usize) -> Result<Raster> {
        let inside = |start: usize, length: usize, all: usize| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= all)
        };
        if !inside(top, height, self.height) || !inside(left, width, self.width) {
            return Err(Error::new(
                "part of an image",
                format!(
                    "{height} by {width} pixels (rows by columns) from row {top} and column {left} do not lie in an \
                     image of {} by {}; choose a smaller part",
                    self.height, self.width
                ),
            ));
        }
        let row = |y: usize| &self.rgb[(y * self.width + left) * 3..(y * self.width + left + width) * 3];
        Raster::new(width, height, (top..top + height).flat_map(row).copied().collect())
    }

    /// The image with a frame in `color` round the part that [`Raster::crop`] would take, and a thin white line round
    /// that, so that it shows in grayscale too. The frame is about a sixtieth of the image thick, less in a long and
    /// narrow one; it lies outside the part, except where the image ends.
    pub fn outlined(&self, top: usize, left: usize, height: usize, width: usize, color: Color) -> Raster {
        let size = self.width.max(self.height).min(3 * self.width.min(self.height));
        let (line, halo) = ((size / 60).max(1), (size / 180).max(1));
        let span = |start: usize, length: usize, all: usize, room: usize| {
            (start.saturating_sub(room).min(all), start.saturating_add(length).saturating_add(room).min(all))
        };
        let mut out = self.clone();
        for (room, thick, color) in [(line + halo, halo, Color(255, 255, 255)), (line, line, color)] {
            let (rows, columns) = (span(top, height, self.height, room), span(left, width, self.width, room));
            for y in rows.0..rows.1 {
                for x in columns.0..columns.1 {
                    let depth = (y - rows.0).min(rows.1 - 1 - y).min(x - columns.0).min(columns.1 - 1 - x);
                    if depth < thick {
                        let at = (y * self.width + x) * 3;
                        out.rgb[at..at + 3].copy_from_slice(&[color.0, color.1, color.2]);
                    }
                }
            }
        }
        out
    }

    /// With each pixel as a square of `times` by `times`.
    pub fn enlarged(&self, times: usize) -> Raster {
        let (width, height) = (self.width * times, self.height * times);
        Raster { width, height, rgb: self.resized(width, height) }
    }

    /// The image at another size: each new pixel is the mean of the old ones it covers, or the old one it lies in.
    pub(crate) fn resized(&self, width: usize, height: usize) -> Vec<u8> {
        let ranges = |new: usize, old: usize| -> Vec<(usize, usize)> {
            (0..new)
                .map(|i| {
                    let (a, b) = (i * old / new, (i + 1) * old / new);
                    (a, b.max(a + 1))
                })
                .collect()
        };
        let (columns, rows) = (ranges(width, self.width), ranges(height, self.height));
        let mut out = vec![0; width * height * 3];
        let mut empty = out.as_mut_slice();
        // Plain loops without calls: pages are drawn large and shrunk here, in builds for tests too.
        for &(top, bottom) in &rows {
            for &(left, right) in &columns {
                let (mut red, mut green, mut blue) = (0, 0, 0);
                let mut y = top;
                while y < bottom {
                    let mut row = &self.rgb[(y * self.width + left) * 3..(y * self.width + right) * 3];
                    while let [r, g, b, rest @ ..] = row {
                        (red, green, blue) = (red + *r as usize, green + *g as usize, blue + *b as usize);
                        row = rest;
                    }
                    y += 1;
                }
                let n = (bottom - top) * (right - left);
                if let [r, g, b, rest @ ..] = empty {
                    *r = ((red + n / 2) / n) as u8;
                    *g = ((green + n / 2) / n) as u8;
                    *b = ((blue + n / 2) / n) as u8;
                    empty = rest;
                }
            }
        }
        out
    }

    /// As a PNG file's bytes, with its resolution in dots per inch if given.
    pub fn to_png(&self, dots_per_inch: Option<f64>) -> Result<Vec<u8>> {
        let fail = |e: png::EncodingError| Error::new("encoding a PNG", e);
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
    use super::*;

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
    fn a_part_is_the_pixels_it_names() {
        let image = Raster::new(4, 3, (0..36).collect()).expect("fits");
        let part = image.crop(1, 2, 2, 1).expect("inside");
        assert_eq!((part.width(), part.height()), (1, 2));
        assert_eq!(part.rgb(), [18, 19, 20, 30, 31, 32]);
        for (top, left, height, width) in
            [(0, 0, 4, 1), (0, 0, 1, 5), (2, 0, 2, 1), (0, 0, 0, 1), (usize::MAX, 0, 2, 1)]
        {
            assert!(image.crop(top, left, height, width).is_err());
        }
    }

    #[test]
    fn an_outline_leaves_its_inside_alone() {
        let image = Raster::new(120, 90, vec![9; 120 * 90 * 3]).expect("fits");
        let out = image.outlined(30, 40, 20, 25, Color(200, 1, 2));
        assert_eq!(out.crop(30, 40, 20, 25).expect("inside"), image.crop(30, 40, 20, 25).expect("inside"));
        let pixel = |y, x| out.crop(y, x, 1, 1).expect("inside").rgb().to_vec();
        // 120 / 60 pixels of the colour, then one of white, on each side.
        for (y, x) in [(28, 38), (29, 50), (51, 66), (40, 65)] {
            assert_eq!(pixel(y, x), [200, 1, 2], "{y}, {x}");
        }
        assert_eq!((pixel(27, 50), pixel(40, 67), pixel(26, 50)), (vec![255; 3], vec![255; 3], vec![9; 3]));
        // At the border the frame moves inwards instead of being lost.
        let corner = image.outlined(0, 0, 10, 10, Color(200, 1, 2));
        assert_eq!(corner.rgb()[..3], [200, 1, 2]);
        assert_eq!(image.outlined(500, 500, 10, 10, Color(0, 0, 0)), image);
    }

    #[test]
    fn shrinking_averages_and_growing_repeats() {
        let image = Raster::new(2, 1, vec![0, 10, 20, 100, 110, 120]).expect("fits");
        assert_eq!(image.resized(1, 1), [50, 60, 70]);
        assert_eq!(image.resized(4, 1), [0, 10, 20, 0, 10, 20, 100, 110, 120, 100, 110, 120]);
    }
}
