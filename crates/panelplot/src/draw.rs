//! The one drawing function: a laid-out figure on any backend.

use plotters::prelude::DrawingBackend;

use crate::axis::{Label, Span};
use crate::canvas::{Anchor, At, Canvas, Rect, Type, clip, text_width};
use crate::error::Result;
use crate::figure::{Figure, Mark};
use crate::layout::{BARS, Key, Layout, Place, SUPERSCRIPT, TICK, label_width, sample_width};
use crate::style::{Color, Dash, FRAME, LineStyle, Marker, SMALL};

/// Height of a digit over the font size: what centres a tick label on its tick.
const DIGIT: f64 = 0.73;

pub(crate) fn draw<DB: DrawingBackend>(figure: &Figure, layout: &Layout, canvas: &mut Canvas<DB>) -> Result<()> {
    for (panel, place) in figure.panels.iter().zip(&layout.places) {
        if panel.blank {
            continue;
        }
        if panel.image.is_none() {
            grid(place, canvas)?;
            for mark in &panel.marks {
                draw_mark(mark, place, canvas)?;
            }
            ticks(place, canvas)?;
        }
        canvas.frame(&place.plot, Color::INK, FRAME)?;
    }
    for (text, at, kind) in layout.labels.iter().filter(|l| !l.0.is_empty()) {
        canvas.text(text, *at, kind)?;
    }
    for (key, (x, y), text) in &layout.legend {
        let indent = match key {
            Some(key) => {
                sample(key, (*x, *y), canvas)?;
                sample_width(key) + 3.0
            }
            None => 0.0,
        };
        canvas.text(text, (x + indent, y + SMALL * DIGIT / 2.0), &Type::new(SMALL, Anchor::Left))?;
    }
    for (at, text) in &layout.note {
        canvas.text(text, *at, &Type { color: Color::MUTED, ..Type::new(SMALL * 0.92, Anchor::Left) })?;
    }
    Ok(())
}

/// Position of a data point on the page; `None` where it has none.
fn project(place: &Place, x: f64, y: f64) -> Option<At> {
    let (u, v) = (place.x.0.position(x)?, place.y.0.position(y)?);
    // Far outside the panel is as good as anywhere outside it, and keeps the clipping exact.
    let (u, v) = (u.clamp(-1e3, 1e3), v.clamp(-1e3, 1e3));
    Some((place.plot.left + u * place.plot.width(), place.plot.bottom - v * place.plot.height()))
}

fn inside(at: &At, r: &Rect) -> bool {
    const SLACK: f64 = 0.05;
    at.0 >= r.left - SLACK && at.0 <= r.right + SLACK && at.1 >= r.top - SLACK && at.1 <= r.bottom + SLACK
}

fn x_at(place: &Place, span: &Span, value: f64) -> f64 {
    place.plot.left + span.position(value).unwrap_or(0.0) * place.plot.width()
}

fn y_at(place: &Place, span: &Span, value: f64) -> f64 {
    place.plot.bottom - span.position(value).unwrap_or(0.0) * place.plot.height()
}

fn grid<DB: DrawingBackend>(place: &Place, canvas: &mut Canvas<DB>) -> Result<()> {
    let r = place.plot;
    for (value, _) in &place.x.1.major {
        let x = x_at(place, &place.x.0, *value);
        canvas.line(&[(x, r.top), (x, r.bottom)], Color::GRID, FRAME * 0.7, Dash::Solid)?;
    }
    for (value, _) in &place.y.1.major {
        let y = y_at(place, &place.y.0, *value);
        canvas.line(&[(r.left, y), (r.right, y)], Color::GRID, FRAME * 0.7, Dash::Solid)?;
    }
    Ok(())
}

fn ticks<DB: DrawingBackend>(place: &Place, canvas: &mut Canvas<DB>) -> Result<()> {
    let r = place.plot;
    let major = place.x.1.major.iter().map(|(v, _)| (*v, TICK)).chain(place.x.1.minor.iter().map(|v| (*v, TICK * 0.6)));
    for (value, length) in major {
        let x = x_at(place, &place.x.0, value);
        canvas.line(&[(x, r.bottom), (x, r.bottom + length)], Color::INK, FRAME, Dash::Solid)?;
    }
    let major = place.y.1.major.iter().map(|(v, _)| (*v, TICK)).chain(place.y.1.minor.iter().map(|v| (*v, TICK * 0.6)));
    for (value, length) in major {
        let y = y_at(place, &place.y.0, value);
        canvas.line(&[(r.left - length, y), (r.left, y)], Color::INK, FRAME, Dash::Solid)?;
    }
    if place.show_x {
        for (value, label) in &place.x.1.major {
            let x = x_at(place, &place.x.0, *value) + label_width(label, SMALL) / 2.0;
            tick_label(label, (x, r.bottom + TICK + SMALL * 1.05), canvas)?;
        }
    }
    if place.show_y {
        for (value, label) in &place.y.1.major {
            let y = y_at(place, &place.y.0, *value) + SMALL * DIGIT / 2.0;
            tick_label(label, (r.left - TICK - 2.0, y), canvas)?;
        }
    }
    Ok(())
}

/// A tick label that ends at `at`. Base and superscript meet at one point, whatever the font.
fn tick_label<DB: DrawingBackend>(label: &Label, (x, y): At, canvas: &mut Canvas<DB>) -> Result<()> {
    let Some(exponent) = &label.exponent else {
        return canvas.text(&label.base, (x, y), &Type::new(SMALL, Anchor::Right));
    };
    let raised = Type::new(SMALL * SUPERSCRIPT.0, Anchor::Left);
    let seam = x - text_width(exponent, &raised);
    canvas.text(&label.base, (seam, y), &Type::new(SMALL, Anchor::Right))?;
    canvas.text(exponent, (seam, y - SMALL * SUPERSCRIPT.1), &raised)
}

fn draw_mark<DB: DrawingBackend>(mark: &Mark, place: &Place, canvas: &mut Canvas<DB>) -> Result<()> {
    let r = &place.plot;
    match mark {
        Mark::Line { points, style, .. } => curve(points, style, place, canvas),
        Mark::Band { points, color, strength, .. } => {
            let clamp = |at: At| (at.0.clamp(r.left, r.right), at.1.clamp(r.top, r.bottom));
            let floor = |v: f64| if v > 0.0 { v } else { f64::MIN_POSITIVE };
            let edge = |x: f64, y: f64| project(place, x, y).or_else(|| project(place, x, floor(y))).map(clamp);
            let low = points.iter().filter_map(|p| edge(p.0, p.1));
            let high = points.iter().rev().filter_map(|p| edge(p.0, p.2));
            let outline: Vec<At> = low.chain(high).collect();
            if outline.len() < 4 { Ok(()) } else { canvas.polygon(&outline, *color, *strength) }
        }
        Mark::Points { points, marker, size, color, .. } => {
            for at in points.iter().filter_map(|p| project(place, p.0, p.1)).filter(|at| inside(at, r)) {
                if *marker == Marker::Star {
                    canvas.marker(at, *marker, size * 1.35, Color(255, 255, 255))?;
                }
                canvas.marker(at, *marker, *size, *color)?;
            }
            Ok(())
        }
        Mark::Level { y, style, .. } => match place.y.0.position(*y) {
            Some(v) if (0.0..=1.0).contains(&v) => {
                let y = r.bottom - v * r.height();
                canvas.line(&[(r.left, y), (r.right, y)], style.color, style.width, style.dash)
            }
            _ => Ok(()),
        },
        Mark::Upright { x, style, .. } => match place.x.0.position(*x) {
            Some(u) if (0.0..=1.0).contains(&u) => {
                let x = r.left + u * r.width();
                canvas.line(&[(x, r.bottom), (x, r.top)], style.color, style.width, style.dash)
            }
            _ => Ok(()),
        },
        Mark::Bars { edges, heights, color, .. } => {
            for (pair, height) in edges.windows(2).zip(heights) {
                let Some((left, top)) = project(place, pair[0], *height) else { continue };
                let Some((right, _)) = project(place, pair[1], *height) else { continue };
                let (left, right) = (left.clamp(r.left, r.right), right.clamp(r.left, r.right));
                let top = top.clamp(r.top, r.bottom);
                if right > left && r.bottom > top {
                    let corners = [(left, r.bottom), (left, top), (right, top), (right, r.bottom)];
                    canvas.polygon(&corners, *color, BARS)?;
                    canvas.line(&corners, *color, FRAME, Dash::Solid)?;
                }
            }
            Ok(())
        }
    }
}

fn curve<DB: DrawingBackend>(
    points: &[(f64, f64)],
    style: &LineStyle,
    place: &Place,
    canvas: &mut Canvas<DB>,
) -> Result<()> {
    let at: Vec<Option<At>> = points.iter().map(|p| project(place, p.0, p.1)).collect();
    for piece in clip(at.iter().copied(), &place.plot) {
        canvas.line(&piece, style.color, style.width, style.dash)?;
    }
    let visible: Vec<At> = at.into_iter().flatten().filter(|a| inside(a, &place.plot)).collect();
    let size = 2.2 + style.width;
    if visible.len() <= 2 * LineStyle::MARKERS {
        return visible.into_iter().try_for_each(|a| canvas.marker(a, style.marker, size, style.color));
    }
    // Equal distances along the curve: markers neither crowd on flat parts nor thin out on steep ones.
    let step = |w: &[At]| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1);
    let total: f64 = visible.windows(2).map(step).sum();
    let mut next = total / (2.0 * LineStyle::MARKERS as f64);
    let mut walked = 0.0;
    for pair in visible.windows(2) {
        walked += step(pair);
        if walked >= next {
            canvas.marker(pair[1], style.marker, size, style.color)?;
            next += total / LineStyle::MARKERS as f64;
        }
    }
    Ok(())
}

fn sample<DB: DrawingBackend>(key: &Key, (x, y): At, canvas: &mut Canvas<DB>) -> Result<()> {
    match key {
        Key::Line(style) => canvas.sample((x, y), sample_width(key), style),
        Key::Point(marker, size, color) => canvas.marker((x + sample_width(key) / 2.0, y), *marker, *size, *color),
        Key::Box(color, strength) => {
            let (right, top, bottom) = (x + sample_width(key), y - 2.5, y + 2.5);
            canvas.polygon(&[(x, bottom), (x, top), (right, top), (right, bottom)], *color, *strength)
        }
    }
}
