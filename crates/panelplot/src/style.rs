//! How every figure looks: one bundled font, a colour-blind-safe palette, dashes and markers.
//!
//! Colours alone never carry meaning: each line also has its own dash pattern and marker, so a figure reads in
//! grayscale. Lengths are in points (1/72 inch) at the printed size.

use std::sync::OnceLock;

use plotters::style::{FontStyle, register_font};

use crate::error::{Error, Result};

/// Width of one column of a two-column page, in inches.
pub const COLUMN_WIDTH: f64 = 3.25;
/// Width of the whole text block, in inches.
pub const TEXT_WIDTH: f64 = 6.75;
/// Text size of tick labels and legends, in points.
pub const SMALL: f64 = 6.5;
/// Text size of axis labels and panel titles, in points.
pub const NORMAL: f64 = 7.5;
/// Line width of curves, in points.
pub const CURVE: f64 = 1.0;
/// Line width of frames and ticks, in points.
pub const FRAME: f64 = 0.5;

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// Text, frames and ticks.
    pub const INK: Color = Color(0x1a, 0x1a, 0x1a);
    /// Grid lines.
    pub const GRID: Color = Color(0xdc, 0xdc, 0xdc);
    /// Secondary text.
    pub const MUTED: Color = Color(0x66, 0x66, 0x66);

    /// Relative luminance (Rec. 709 on linear light) in [0, 1]: what is left of the colour in a grayscale print.
    pub fn luminance(self) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }
}

/// The Okabe-Ito palette without its yellow, which is too light for a line on paper.
pub const PALETTE: [Color; 7] = [
    Color(0x00, 0x72, 0xb2), // blue
    Color(0xd5, 0x5e, 0x00), // vermillion
    Color(0x00, 0x9e, 0x73), // bluish green
    Color(0xcc, 0x79, 0xa7), // reddish purple
    Color(0xe6, 0x9f, 0x00), // orange
    Color(0x56, 0xb4, 0xe9), // sky blue
    Color(0x00, 0x00, 0x00), // black
];

/// Dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the documentation
pub enum Dash {
    Solid,
    Dashed,
    Dotted,
    DashDot,
    LongDash,
}

impl Dash {
    /// Lengths of strokes and gaps in turn, in units of the line width; empty for a solid line.
    pub fn pattern(self) -> &'static [f64] {
        match self {
            Dash::Solid => &[],
            Dash::Dashed => &[4.0, 2.0],
            Dash::Dotted => &[1.2, 1.6],
            Dash::DashDot => &[5.0, 1.8, 1.2, 1.8],
            Dash::LongDash => &[8.0, 2.4],
        }
    }
}

/// Shape drawn at some points of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the documentation
pub enum Marker {
    None,
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
    Cross,
    Star,
}

/// Everything that tells one curve from another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineStyle {
    /// Colour of the line and its markers.
    pub color: Color,
    /// Dash pattern.
    pub dash: Dash,
    /// Marker, drawn about [`LineStyle::MARKERS`] times along the curve.
    pub marker: Marker,
    /// Line width in points.
    pub width: f64,
}

impl LineStyle {
    /// Number of markers along a curve with more points than this.
    pub const MARKERS: usize = 6;

    /// A line of the usual width.
    pub const fn new(color: Color, dash: Dash, marker: Marker) -> Self {
        LineStyle { color, dash, marker, width: CURVE }
    }

    /// The same with another marker.
    pub const fn with_marker(self, marker: Marker) -> Self {
        LineStyle { marker, ..self }
    }

    /// The same with another width in points.
    pub const fn with_width(self, width: f64) -> Self {
        LineStyle { width, ..self }
    }
}

/// Style `i` of `n` ordered curves (depths, widths, learning rates): dark to light along a blue-green-yellow ramp
/// whose luminance rises steadily, with a dash pattern and marker that change from one to the next.
pub fn sequence(i: usize, n: usize) -> LineStyle {
    const RAMP: [Color; 5] = [
        Color(0x2b, 0x0a, 0x4f),
        Color(0x2f, 0x4a, 0x8a),
        Color(0x1f, 0x83, 0x8d),
        Color(0x4d, 0xae, 0x5e),
        Color(0xb4, 0xc0, 0x2c),
    ];
    const DASHES: [Dash; 4] = [Dash::Solid, Dash::LongDash, Dash::Dashed, Dash::DashDot];
    const MARKERS: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down];
    let t = if n > 1 { i as f64 / (n - 1) as f64 } else { 0.0 } * (RAMP.len() - 1) as f64;
    let (k, part) = ((t as usize).min(RAMP.len() - 2), t - (t as usize).min(RAMP.len() - 2) as f64);
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    let (a, b) = (RAMP[k], RAMP[k + 1]);
    let color = Color(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2));
    LineStyle::new(color, DASHES[i % DASHES.len()], MARKERS[i % MARKERS.len()])
}

/// Makes the bundled font (DejaVu Sans) known to plotters as `sans-serif`, once per process. An SVG names only the
/// generic family, so it shows with whatever the reader's machine has.
pub(crate) fn register_fonts() -> Result<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let ok = DONE.get_or_init(|| {
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok()
            && register_font("sans-serif", FontStyle::Bold, dejavu::sans::bold()).is_ok()
    });
    if *ok { Ok(()) } else { Err(Error::new("figure font", "the bundled DejaVu Sans cannot be read")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_curves_grow_lighter_and_stay_visible() {
        for n in 1..=8 {
            let light: Vec<f64> = (0..n).map(|i| sequence(i, n).color.luminance()).collect();
            assert!(light.windows(2).all(|w| w[1] > w[0] + 0.02), "{light:?}");
            // Contrast against white paper (WCAG): 1.05 / (L + 0.05); below 1.8 a thin line is lost.
            assert!(light.iter().all(|l| 1.05 / (l + 0.05) > 1.8), "{light:?}");
        }
    }
}
