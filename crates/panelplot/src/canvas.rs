//! Drawing in points on any plotters backend: lines with dashes, clipped curves, markers, text by its baseline.

use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, FontTransform, RGBAColor, ShapeStyle, TextStyle};

use crate::error::{Error, Result};
use crate::style::{Color, Dash, LineStyle, Marker};

/// A point on the page: points (1/72 inch) from the left and from the top.
pub(crate) type At = (f64, f64);

/// A rectangle on the page, in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// Where text is relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Left,
    Center,
    Right,
}

/// What a piece of text looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    pub(crate) color: Color,
    pub(crate) anchor: Anchor,
    /// Reads upwards instead of to the right.
    pub(crate) upright: bool,
}

impl Type {
    pub(crate) fn new(size: f64, anchor: Anchor) -> Self {
        Type { size, bold: false, color: Color::INK, anchor, upright: false }
    }
}

// plotters' sizes are line heights: its SVG backend writes size / 1.24 as the font size.
const LINE_HEIGHT: f64 = 1.24;

fn font(kind: &Type, scale: f64) -> FontDesc<'static> {
    let style = if kind.bold { FontStyle::Bold } else { FontStyle::Normal };
    FontDesc::new(FontFamily::SansSerif, kind.size * LINE_HEIGHT * scale, style)
}

/// Width of `text` in points, in the bundled font.
pub(crate) fn text_width(text: &str, kind: &Type) -> f64 {
    // Measured 16 times as large, because plotters gives whole pixels.
    font(kind, 16.0).box_size(text).map_or(0.0, |(w, _)| f64::from(w) / 16.0)
}

fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T> {
    result.map_err(|e| Error::new("drawing a figure", e))
}

/// A plotters backend addressed in points.
pub(crate) struct Canvas<DB: DrawingBackend> {
    backend: DB,
    /// Pixels per point.
    scale: f64,
    /// How far below the top anchor the backend puts the baseline, in font sizes.
    ascent: f64,
}

impl<DB: DrawingBackend> Canvas<DB> {
    pub(crate) fn new(backend: DB, scale: f64, ascent: f64) -> Self {
        Canvas { backend, scale, ascent }
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        done(self.backend.present())
    }

    fn pixel(&self, (x, y): At) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    fn shape(&self, color: Color, alpha: f64, width: f64, filled: bool) -> ShapeStyle {
        let stroke_width = ((width * self.scale).round() as u32).max(1);
        ShapeStyle { color: RGBAColor(color.0, color.1, color.2, alpha), filled, stroke_width }
    }

    /// A polyline. Points closer together than a tenth of a point are merged.
    pub(crate) fn line(&mut self, points: &[At], color: Color, width: f64, dash: Dash) -> Result<()> {
        for piece in dashes(&thin(points), dash, width) {
            let style = self.shape(color, 1.0, width, false);
            for part in unfold(&piece) {
                let pixels: Vec<_> = part.iter().map(|p| self.pixel(*p)).collect();
                done(self.backend.draw_path(pixels, &style))?;
            }
        }
        Ok(())
    }

    /// A filled polygon.
    pub(crate) fn polygon(&mut self, points: &[At], color: Color, alpha: f64) -> Result<()> {
        let style = self.shape(color, alpha, 0.0, true);
        let pixels: Vec<_> = points.iter().map(|p| self.pixel(*p)).collect();
        done(self.backend.fill_polygon(pixels, &style))
    }

    /// The outline of a rectangle.
    pub(crate) fn frame(&mut self, r: &Rect, color: Color, width: f64) -> Result<()> {
        // Four strips that overlap at the corners: a closed stroke would need joins that backends draw differently.
        let h = width / 2.0;
        let strip = |left: f64, top: f64, right: f64, bottom: f64| {
            [(left - h, top - h), (right + h, top - h), (right + h, bottom + h), (left - h, bottom + h)]
        };
        self.polygon(&strip(r.left, r.top, r.right, r.top), color, 1.0)?;
        self.polygon(&strip(r.left, r.bottom, r.right, r.bottom), color, 1.0)?;
        self.polygon(&strip(r.left, r.top, r.left, r.bottom), color, 1.0)?;
        self.polygon(&strip(r.right, r.top, r.right, r.bottom), color, 1.0)
    }

    /// Text whose baseline starts, is centred or ends at `at`.
    pub(crate) fn text(&mut self, text: &str, (x, y): At, kind: &Type) -> Result<()> {
        let down = self.ascent * kind.size;
        let at = self.pixel(if kind.upright { (x - down, y) } else { (x, y - down) });
        let h = match kind.anchor {
            Anchor::Left => HPos::Left,
            Anchor::Center => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let font = font(kind, self.scale);
        let font = if kind.upright { font.transform(FontTransform::Rotate270) } else { font };
        let color = RGBAColor(kind.color.0, kind.color.1, kind.color.2, 1.0);
        let style = TextStyle { font, color: color.to_backend_color(), pos: Pos::new(h, VPos::Top) };
        done(self.backend.draw_text(text, &style, at))
    }

    /// A marker of `size` points across.
    pub(crate) fn marker(&mut self, (x, y): At, marker: Marker, size: f64, color: Color) -> Result<()> {
        let r = size / 2.0;
        let regular = |n: usize, turn: f64, radius: f64, inner: f64| -> Vec<At> {
            (0..n)
                .map(|i| {
                    let angle = std::f64::consts::TAU * (i as f64 / n as f64 + turn);
                    let radius = if i % 2 == 1 { inner } else { radius };
                    (x + radius * angle.sin(), y - radius * angle.cos())
                })
                .collect()
        };
        match marker {
            Marker::None => Ok(()),
            Marker::Circle => self.polygon(&regular(24, 0.0, r, r), color, 1.0),
            Marker::Square => self.polygon(&regular(4, 0.125, r * 1.25, r * 1.25), color, 1.0),
            Marker::Triangle => self.polygon(&regular(3, 0.0, r * 1.3, r * 1.3), color, 1.0),
            Marker::Down => self.polygon(&regular(3, 0.5, r * 1.3, r * 1.3), color, 1.0),
            Marker::Diamond => self.polygon(&regular(4, 0.0, r * 1.3, r * 1.3), color, 1.0),
            Marker::Star => self.polygon(&regular(10, 0.0, r * 1.6, r * 0.65), color, 1.0),
            Marker::Cross => {
                self.line(&[(x - r, y - r), (x + r, y + r)], color, size * 0.25, Dash::Solid)?;
                self.line(&[(x - r, y + r), (x + r, y - r)], color, size * 0.25, Dash::Solid)
            }
        }
    }

    /// A short stroke with its marker, as a legend shows it.
    pub(crate) fn sample(&mut self, (x, y): At, length: f64, style: &LineStyle) -> Result<()> {
        self.line(&[(x, y), (x + length, y)], style.color, style.width, style.dash)?;
        self.marker((x + length / 2.0, y), style.marker, 2.2 + style.width, style.color)
    }
}

fn thin(points: &[At]) -> Vec<At> {
    const MERGE: f64 = 0.1;
    let mut kept: Vec<At> = Vec::with_capacity(points.len().min(4096));
    for (i, p) in points.iter().enumerate() {
        match kept.last() {
            Some(q) if (p.0 - q.0).hypot(p.1 - q.1) < MERGE => {
                // The last point of a curve counts, unless it would leave nothing to draw.
                if i + 1 == points.len() && kept.len() > 1 {
                    kept.pop();
                    kept.push(*p);
                }
            }
            _ => kept.push(*p),
        }
    }
    kept
}

/// A polyline cut where it turns by more than a right angle: plotters mitres the joins of thick strokes, and the mitre
/// of a sharp turn is a long spike.
fn unfold(points: &[At]) -> Vec<&[At]> {
    let mut out = Vec::new();
    let mut start = 0;
    for (i, w) in points.windows(3).enumerate() {
        if (w[1].0 - w[0].0) * (w[2].0 - w[1].0) + (w[1].1 - w[0].1) * (w[2].1 - w[1].1) < 0.0 {
            out.push(&points[start..i + 2]);
            start = i + 1;
        }
    }
    out.push(&points[start..]);
    out
}

/// The strokes of a dashed polyline.
pub(crate) fn dashes(points: &[At], dash: Dash, width: f64) -> Vec<Vec<At>> {
    let pattern = dash.pattern();
    if points.len() < 2 {
        return Vec::new();
    }
    if pattern.is_empty() {
        return vec![points.to_vec()];
    }
    let mut out = Vec::new();
    let mut turn = 0;
    let mut left = pattern[0] * width;
    let mut stroke = vec![points[0]];
    for pair in points.windows(2) {
        let (mut a, b) = (pair[0], pair[1]);
        loop {
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            if length <= left {
                left -= length;
                if turn % 2 == 0 {
                    stroke.push(b);
                }
                break;
            }
            let t = left / length;
            a = (a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t);
            if turn % 2 == 0 {
                stroke.push(a);
                out.push(std::mem::take(&mut stroke));
            } else {
                stroke = vec![a];
            }
            turn = (turn + 1) % pattern.len();
            left = pattern[turn] * width;
        }
    }
    if stroke.len() > 1 {
        out.push(stroke);
    }
    out
}

/// The parts of a polyline inside `r`; `None` points break it.
pub(crate) fn clip(points: impl IntoIterator<Item = Option<At>>, r: &Rect) -> Vec<Vec<At>> {
    let mut out: Vec<Vec<At>> = Vec::new();
    let mut previous: Option<At> = None;
    for point in points {
        if let (Some(a), Some(b)) = (previous, point)
            && let Some((from, to)) = clip_segment(a, b, r)
        {
            match out.last_mut() {
                Some(piece) if piece.last() == Some(&from) && from == a => piece.push(to),
                _ => out.push(vec![from, to]),
            }
        }
        previous = point;
    }
    out
}

/// Liang and Barsky's clipping of one segment.
fn clip_segment(a: At, b: At, r: &Rect) -> Option<(At, At)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (p, q) in [(-dx, a.0 - r.left), (dx, r.right - a.0), (-dy, a.1 - r.top), (dy, r.bottom - a.1)] {
        if p == 0.0 {
            if q < 0.0 {
                return None;
            }
        } else if p < 0.0 {
            enter = enter.max(q / p);
        } else {
            leave = leave.min(q / p);
        }
    }
    if enter > leave {
        return None;
    }
    let at = |t: f64| match t {
        0.0 => a,
        1.0 => b,
        t => (a.0 + t * dx, a.1 + t * dy),
    };
    Some((at(enter), at(leave)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn a_curve_is_cut_at_the_frame_and_at_gaps() {
        let pieces =
            clip([Some((-5.0, 5.0)), Some((5.0, 5.0)), Some((5.0, 15.0)), Some((8.0, 15.0)), Some((8.0, 5.0))], &BOX);
        assert_eq!(pieces, [vec![(0.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]);
        let pieces = clip([Some((1.0, 1.0)), Some((2.0, 1.0)), None, Some((3.0, 1.0)), Some((4.0, 1.0))], &BOX);
        assert_eq!(pieces.len(), 2);
        assert!(clip([Some((-1.0, -1.0)), Some((-1.0, 20.0))], &BOX).is_empty());
    }

    #[test]
    fn dashes_follow_the_pattern_round_corners() {
        // A path of length 12 with strokes of 4 and gaps of 2: two strokes, the second round the corner at 8.
        let strokes = dashes(&[(0.0, 0.0), (8.0, 0.0), (8.0, 4.0)], Dash::Dashed, 1.0);
        assert_eq!(strokes, [vec![(0.0, 0.0), (4.0, 0.0)], vec![(6.0, 0.0), (8.0, 0.0), (8.0, 2.0)]]);
        assert_eq!(dashes(&[(0.0, 0.0), (1.0, 0.0)], Dash::Solid, 1.0).len(), 1);
    }

    #[test]
    fn sharp_turns_have_no_spikes() {
        use plotters::prelude::BitMapBackend;
        let (side, mut pixels) = (100usize, vec![255u8; 100 * 100 * 3]);
        let mut canvas = Canvas::new(BitMapBackend::with_buffer(&mut pixels, (100, 100)), 10.0, 0.6);
        let zigzag: Vec<At> = (0..30).map(|i| (3.5 + 0.1 * f64::from(i), if i % 2 == 0 { 4.0 } else { 6.0 })).collect();
        canvas.line(&zigzag, Color::INK, 0.5, Dash::Solid).expect("draws");
        canvas.finish().expect("draws");
        let inked = |y: usize| pixels[y * side * 3..(y + 1) * side * 3].iter().any(|v| *v < 255);
        let rows: Vec<usize> = (0..side).filter(|y| inked(*y)).collect();
        // The stroke is 5 pixels wide, and nothing of it lies further from the points than that.
        assert!(rows.first() >= Some(&35) && rows.first() <= Some(&41), "{rows:?}");
        assert!(rows.last() <= Some(&65) && rows.last() >= Some(&59), "{rows:?}");
    }

    #[test]
    fn thinning_keeps_both_ends() {
        let points: Vec<At> = (0..=1000).map(|i| (f64::from(i) * 0.013, 0.0)).collect();
        let kept = thin(&points);
        assert!(kept.len() < 140 && kept[0] == points[0] && kept.last() == points.last(), "{}", kept.len());
    }

    #[test]
    fn text_is_measured_in_points() {
        crate::style::register_fonts().expect("font");
        let kind = Type::new(10.0, Anchor::Left);
        // DejaVu Sans digits are 0.636 em wide; plotters draws 1.24 / 1.164 times the nominal size.
        let expected = 4.0 * 6.36 * 1.24 / 1.164;
        assert!((text_width("0123", &kind) - expected).abs() < 0.1, "{}", text_width("0123", &kind));
    }
}
