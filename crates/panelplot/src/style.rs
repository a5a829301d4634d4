//! How every figure looks: one bundled font, a colour-blind-safe palette, and one colour, dash and marker per method.
//!
//! Colours alone never carry meaning: each line also has its own dash pattern and marker, so a figure reads in
//! grayscale. Lengths are in points (1/72 inch) at the printed size.
//!
//! ```
//! use sinexp::report::style::{label, method};
//! let (name, _line) = method("uniform-mm").unwrap();
//! assert_eq!(label("uniform-mm"), name);
//! assert!(method("no such method").is_none());
//! ```

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

/// The label and style of a method, by its command-line name (`uniform-mm`, `cvp26-s0`, `sel-mismatch` ...); the same in every
/// figure. `None` for a name that no figure knows.
pub fn method(name: &str) -> Option<(&'static str, LineStyle)> {
    use Dash::*;
    use Marker::{Circle, Cross, Diamond, Down, Square, Star, Triangle};
    const GRAY: Color = Color(0x77, 0x77, 0x77);
    Some(match name {
        "uniform-mm" => ("uniform-phase MM", LineStyle::new(PALETTE[0], Solid, Circle)),
        "cvp26-s0" => ("CVP26 σₐ = 0", LineStyle::new(PALETTE[1], Dashed, Square)),
        "cvp26-s1" => ("CVP26 σₐ = 1", LineStyle::new(PALETTE[4], DashDot, Triangle)),
        "sm20" => ("SM20", LineStyle::new(PALETTE[2], LongDash, Diamond)),
        "sm20-repo" => ("SM20 (code)", LineStyle::new(PALETTE[2], Dotted, Cross)),
        "tanh-pe" => ("tanh, PE, Xavier", LineStyle::new(PALETTE[3], Dashed, Down)),
        "relu" => ("ReLU", LineStyle::new(PALETTE[6], Dotted, Triangle)),
        "silu" => ("SiLU", LineStyle::new(PALETTE[5], DashDot, Square)),
        "gelu" => ("GELU", LineStyle::new(GRAY, LongDash, Circle)),
        "baseline" => ("baseline", LineStyle::new(GRAY, Dashed, Square)),
        "sel-mismatch" => ("SEL mismatch", LineStyle::new(PALETTE[0], Solid, Circle)),
        "sel-mismatch-plus" => ("SEL mismatch + offset, LoRA", LineStyle::new(PALETTE[3], Solid, Diamond)),
        "sel-congruent" => ("SEL congruent", LineStyle::new(PALETTE[1], DashDot, Triangle)),
        "sel-congruent-plus" => ("SEL congruent + offset, LoRA", LineStyle::new(PALETTE[4], LongDash, Down)),
        "sel-exp-only" => ("SEL exponential only", LineStyle::new(PALETTE[2], Dotted, Cross)),
        "sel-fixed" => ("SEL fixed multipliers", LineStyle::new(PALETTE[1], Dashed, Triangle)),
        "sel-absorbed" => ("SEL β absorbed", LineStyle::new(PALETTE[5], LongDash, Cross)),
        "sel-normalized" => ("SEL normalized by m", LineStyle::new(PALETTE[4], Dotted, Triangle)),
        "sel-combined" => ("SEL β absorbed, normalized", LineStyle::new(PALETTE[6], Solid, Star)),
        "sel-sinh" => ("SEL sinh", LineStyle::new(PALETTE[2], DashDot, Circle)),
        "sel-damped" => ("SEL damped", LineStyle::new(PALETTE[5], LongDash, Square)),
        _ => return None,
    })
}

/// The label of a method, or the name itself where no figure knows it.
pub fn label(name: &str) -> &str {
    method(name).map_or(name, |(label, _)| label)
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
pub(super) fn register_fonts() -> Result<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let ok = DONE.get_or_init(|| {
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok()
            && register_font("sans-serif", FontStyle::Bold, dejavu::sans::bold()).is_ok()
    });
    if *ok { Ok(()) } else { Err(Error::numeric("figure font", "the bundled DejaVu Sans cannot be read")) }
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

    #[test]
    fn methods_differ_without_colour() {
        let siren = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo", "tanh-pe", "relu", "silu", "gelu"];
        let sel = [
            "baseline",
            "sel-mismatch",
            "sel-mismatch-plus",
            "sel-congruent",
            "sel-congruent-plus",
            "sel-exp-only",
            "sel-fixed",
            "sel-absorbed",
            "sel-normalized",
            "sel-combined",
            "sel-sinh",
            "sel-damped",
        ];
        for names in [&siren[..], &sel] {
            for (i, a) in names.iter().enumerate() {
                for b in &names[..i] {
                    let (a, b) = (method(a).expect("known"), method(b).expect("known"));
                    assert_ne!(a.0, b.0);
                    assert_ne!((a.1.dash, a.1.marker), (b.1.dash, b.1.marker), "{} and {}", a.0, b.0);
                }
            }
        }
        assert!(method("nonsense").is_none());
    }

    #[test]
    fn the_font_has_every_glyph_the_labels_use() {
        register_fonts().expect("font");
        let font = ab_glyph_face();
        for name in ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "sm20-repo", "tanh-pe"] {
            let (label, _) = method(name).expect("known");
            assert!(label.chars().all(|c| font.contains(&c)), "{label}");
        }
    }

    /// Characters of the bundled font's format-4 character map (the basic multilingual plane).
    fn ab_glyph_face() -> std::collections::HashSet<char> {
        let f = dejavu::sans::regular();
        let u16at = |at: usize| usize::from(u16::from_be_bytes([f[at], f[at + 1]]));
        let u32at = |at: usize| (u16at(at) << 16) | u16at(at + 2);
        let tables = u16at(4);
        let cmap =
            (0..tables).map(|i| 12 + 16 * i).find(|&r| &f[r..r + 4] == b"cmap").map(|r| u32at(r + 8)).expect("cmap");
        let sub = (0..u16at(cmap + 2))
            .map(|i| cmap + u32at(cmap + 4 + 8 * i + 4))
            .find(|&s| u16at(s) == 4)
            .expect("format 4");
        let n = u16at(sub + 6) / 2;
        (0..n)
            .flat_map(|i| u16at(sub + 16 + 2 * n + 2 * i)..=u16at(sub + 14 + 2 * i))
            .filter_map(|c| char::from_u32(c as u32))
            .collect()
    }
}
