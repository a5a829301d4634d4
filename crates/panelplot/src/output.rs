//! A figure as PNG and as SVG: two backends, one drawing.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use plotters::prelude::{BitMapBackend, SVGBackend};

use crate::canvas::Canvas;
use crate::draw::draw;
use crate::error::{Error, Result};
use crate::figure::Figure;
use crate::layout::Layout;
use crate::raster::Raster;
use crate::style::register_fonts;

/// Dots per inch of PNG files.
const DPI: f64 = 300.0;
/// Pixels drawn per pixel written, each way: the smoothing of edges.
const OVERSAMPLE: usize = 3;
/// Units of an SVG's coordinate system per point.
const SVG_UNITS: f64 = 20.0;

impl Figure {
    /// The figure as a PNG file's bytes, 300 dots per inch of the printed size.
    ///
    /// **Errors** when it has more than 8192 pixels either way.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        png(self, DPI)
    }

    /// [`Figure::to_png`] with another number of dots per inch.
    pub fn to_png_at(&self, dots_per_inch: f64) -> Result<Vec<u8>> {
        png(self, dots_per_inch)
    }

    /// The figure as SVG text; text stays text in the generic family `sans-serif`.
    pub fn to_svg(&self) -> Result<String> {
        svg(self)
    }
}

fn png(figure: &Figure, dpi: f64) -> Result<Vec<u8>> {
    register_fonts()?;
    let layout = Layout::new(figure);
    let (width, height) = ((layout.width * dpi / 72.0).ceil() as usize, (layout.height * dpi / 72.0).ceil() as usize);
    if width.max(height) > 8192 {
        return Err(Error::new("figure", format!("{width} by {height} pixels is too large to draw")));
    }
    let scale = dpi / 72.0 * OVERSAMPLE as f64;
    let (wide, tall) = (width * OVERSAMPLE, height * OVERSAMPLE);
    let mut pixels = vec![255u8; wide * tall * 3];
    for (image, place) in layout.images(figure) {
        let edge = |v: f64| (v * scale).round() as usize;
        let (left, top) = (edge(place.left), edge(place.top));
        let (w, h) = (edge(place.right).min(wide) - left, edge(place.bottom).min(tall) - top);
        for (row, line) in image.resized(w, h).chunks_exact(w * 3).enumerate() {
            let at = ((top + row) * wide + left) * 3;
            pixels[at..at + w * 3].copy_from_slice(line);
        }
    }
    // plotters' own text layout puts the baseline half a line height under the top.
    let mut canvas = Canvas::new(BitMapBackend::with_buffer(&mut pixels, (wide as u32, tall as u32)), scale, 0.62);
    draw(figure, &layout, &mut canvas)?;
    canvas.finish()?;
    let large = Raster::new(wide, tall, pixels)?;
    Raster::new(width, height, large.resized(width, height))?.to_png(Some(dpi))
}

fn svg(figure: &Figure) -> Result<String> {
    register_fonts()?;
    let layout = Layout::new(figure);
    let size = |v: f64| (v * SVG_UNITS).ceil() as u32;
    let (width, height) = (size(layout.width), size(layout.height));
    let mut text = String::new();
    let mut canvas = Canvas::new(SVGBackend::with_string(&mut text, (width, height)), SVG_UNITS, 0.76);
    draw(figure, &layout, &mut canvas)?;
    canvas.finish()?;
    // plotters states the size in pixels; a figure has a size on paper, a background, and images under its lines.
    let body = text
        .split_once('>')
        .map(|(_, body)| body)
        .ok_or_else(|| Error::new("figure", "plotters wrote an SVG without a root element"))?;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.2}pt\" height=\"{:.2}pt\" \
         viewBox=\"0 0 {width} {height}\" stroke-linejoin=\"round\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        f64::from(width) / SVG_UNITS,
        f64::from(height) / SVG_UNITS,
    );
    for (image, place) in layout.images(figure) {
        out += &format!(
            "<image x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
            place.left * SVG_UNITS,
            place.top * SVG_UNITS,
            place.width() * SVG_UNITS,
            place.height() * SVG_UNITS,
            BASE64_STANDARD.encode(image.to_png(None)?),
        );
    }
    out.push_str(body.trim_start());
    Ok(out)
}
