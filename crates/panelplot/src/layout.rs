//! Where everything on the page goes: margins from measured text, a grid of panels, the legend, the note.

use crate::axis::{Label, Scale, Span, Ticks};
use crate::canvas::{Anchor, At, Rect, Type, text_width};
use crate::figure::{Figure, Legend, Mark, Panel};
use crate::raster::Raster;
use crate::style::{LineStyle, Marker, NORMAL, SMALL};
use crate::text::{fitting, wrap};

/// Tick length in points.
pub(crate) const TICK: f64 = 2.5;
/// Length of a line sample in the legend, in points.
pub(crate) const SAMPLE: f64 = 24.0;
/// Size of a superscript, and how far it is raised, in font sizes.
pub(crate) const SUPERSCRIPT: (f64, f64) = (0.72, 0.38);
/// Share of the colour in the bars of a histogram.
pub(crate) const BARS: f64 = 0.55;
const EDGE: f64 = 3.0;
/// Between columns of panels, and of pictures alone.
const GAP: (f64, f64) = (8.0, 3.0);
/// Height of a line of text with the room round it, and from line to line, in font sizes.
const LEADING: f64 = 1.4;
const NEXT: f64 = 1.22;
/// The tallest an image may be, over the width of its column.
const TALLEST: f64 = 1.5;

/// One panel's place and axes.
pub(crate) struct Place {
    pub(crate) plot: Rect,
    pub(crate) x: (Span, Ticks),
    pub(crate) y: (Span, Ticks),
    pub(crate) show_x: bool,
    pub(crate) show_y: bool,
}

/// What a legend entry shows before its text.
pub(crate) enum Key {
    Line(LineStyle),
    Point(Marker, f64, crate::style::Color),
    Box(crate::style::Color, f64),
}

/// The whole page, in points.
pub(crate) struct Layout {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) places: Vec<Place>,
    /// Titles, captions and axis labels: text, the middle of its baseline, what it looks like.
    pub(crate) labels: Vec<(String, At, Type)>,
    /// Key (none for the legend's title), its left end on the middle of the line, text.
    pub(crate) legend: Vec<(Option<Key>, At, String)>,
    pub(crate) note: Vec<(At, String)>,
}

pub(crate) fn label_width(label: &Label, size: f64) -> f64 {
    let plain = text_width(&label.base, &Type::new(size, Anchor::Left));
    let raised = Type::new(size * SUPERSCRIPT.0, Anchor::Left);
    plain + label.exponent.as_ref().map_or(0.0, |e| text_width(e, &raised))
}

impl Layout {
    pub(crate) fn new(figure: &Figure) -> Self {
        let width = figure.width * 72.0;
        let (columns, count) = (figure.columns, figure.panels.len());
        let entries = entries(figure);
        let entry_type = Type::new(SMALL, Anchor::Left);
        let entry_width = |(key, text): &(Option<Key>, String)| {
            key.as_ref().map_or(0.0, |k| sample_width(k) + 3.0) + text_width(text, &entry_type) + 9.0
        };
        let legend_right = match figure.legend {
            Legend::Right => entries.iter().map(entry_width).fold(0.0, f64::max),
            _ => 0.0,
        };
        let right = width - EDGE - legend_right;

        let pictures = count > 0 && figure.panels.iter().all(Panel::bare);
        let gap = if pictures { GAP.1 } else { GAP.0 };
        let axes = spans(figure);
        let rough = (right - EDGE) / columns as f64 - 24.0;
        let ticks: Vec<(Ticks, Ticks)> = figure
            .panels
            .iter()
            .zip(&axes)
            .map(|(panel, (x, y))| {
                let room = |length: f64, each: f64| ((length / each) as usize).max(2);
                (panel.x.marks(x, room(rough, 26.0)), panel.y.marks(y, room(rough * figure.aspect, 13.0)))
            })
            .collect();
        let panel = |i: usize| &figure.panels[i];
        let shows_y = |i: usize| panel(i).numbers.1 && (!figure.shared || i.is_multiple_of(columns));
        let lowest = |i: usize| i + columns >= count || panel(i + columns).blank;
        let shows_x = |i: usize| panel(i).numbers.0 && (!figure.shared || lowest(i));
        let tick_room = |i: usize| -> f64 {
            if panel(i).bare() || !shows_y(i) {
                return 0.0;
            }
            ticks[i].1.major.iter().map(|(_, l)| label_width(l, SMALL)).fold(0.0, f64::max) + TICK + 2.0
        };
        let label_room = |i: usize| {
            let named = !panel(i).y.label.is_empty() && (!figure.shared || i.is_multiple_of(columns));
            if named { NORMAL * LEADING } else { 0.0 }
        };
        let row_room = |i: usize| if panel(i).row.is_empty() { 0.0 } else { NORMAL * LEADING };
        let widest = |f: &dyn Fn(usize) -> f64, c: usize| (c..count).step_by(columns).map(f).fold(0.0, f64::max);
        // Plots of one column begin at the same x: the widest labels of the column decide.
        let rooms: Vec<[f64; 3]> = (0..columns.min(count.max(1)))
            .map(|c| [widest(&tick_room, c), widest(&label_room, c), widest(&row_room, c)])
            .collect();
        let lefts: Vec<f64> = rooms.iter().map(|r| r.iter().sum()).collect();
        let used = lefts.len();
        let taken = lefts.iter().sum::<f64>() + gap * (used - 1) as f64 + if pictures { 0.0 } else { 4.0 };
        let plot_width = ((right - EDGE - taken) / used as f64).max(TICK);
        let tallest = |i: usize| match &panel(i).image {
            Some(image) => plot_width * (image.height as f64 / image.width as f64).min(TALLEST),
            None => plot_width * figure.aspect,
        };
        // One size for all titles, one for all captions and one for all upright names, the largest that fits.
        let title_size = fitting(figure.panels.iter().map(|p| (p.title.as_str(), plot_width + gap - 2.0)));
        let images = || figure.panels.iter().filter(|p| p.image.is_some());
        let caption_size = fitting(images().map(|p| (p.x.label.as_str(), plot_width + gap - 2.0)));
        let upright =
            (0..count).flat_map(|i| [&panel(i).row, &panel(i).y.label].map(|t| (t.as_str(), tallest(i) + 6.0)));
        let upright_size = if figure.shared { NORMAL } else { fitting(upright) };

        let mut places: Vec<Place> = Vec::with_capacity(count);
        let mut labels = Vec::new();
        let mut y = EDGE;
        for row in 0..count.div_ceil(columns) {
            let members = row * columns..((row + 1) * columns).min(count);
            let lines =
                |f: &dyn Fn(&Panel) -> &str| members.clone().map(|i| f(panel(i)).lines().count()).max().unwrap_or(0);
            y += match lines(&|p| &p.title) {
                0 => 2.0,
                n => NORMAL * LEADING + title_size * NEXT * (n - 1) as f64,
            };
            // A row of low pictures is as high as its name is long.
            let bold = Type { bold: true, ..Type::new(upright_size, Anchor::Left) };
            let named = |i: usize| if pictures { text_width(&panel(i).row, &bold) } else { 0.0 };
            let height = members.clone().filter(|i| !panel(*i).blank).map(|i| tallest(i).max(named(i)));
            let height = height.fold(0.0, f64::max);
            let mut x = EDGE;
            for i in members.clone() {
                let c = i % columns;
                x += lefts[c] + if c > 0 { gap } else { 0.0 };
                let plot = Rect { left: x, top: y, right: x + plot_width, bottom: y + height };
                let plot = panel(i).image.as_ref().map_or(plot, |image| fitted(image, &plot));
                let ((x_span, y_span), (x_ticks, y_ticks)) = (axes[i], ticks[i].clone());
                places.push(Place {
                    plot,
                    x: (x_span, x_ticks),
                    y: (y_span, y_ticks),
                    show_x: shows_x(i),
                    show_y: shows_y(i),
                });
                let title = panel(i).title.lines();
                let above = plot.top - 3.0 - title_size * NEXT * (title.clone().count().max(1) - 1) as f64;
                stack(&mut labels, title, ((plot.left + plot.right) / 2.0, above), title_size);
                let turned = Type { upright: true, ..Type::new(upright_size, Anchor::Center) };
                let middle = (plot.top + plot.bottom) / 2.0;
                if label_room(i) > 0.0 && !figure.shared {
                    labels.push((panel(i).y.label.clone(), (x - rooms[c][0] - 3.0, middle), turned));
                }
                if row_room(i) > 0.0 {
                    let at = (x - rooms[c][0] - rooms[c][1] - 3.0, middle);
                    labels.push((panel(i).row.clone(), at, Type { bold: true, ..turned }));
                }
                x += plot_width;
            }
            y += height;
            if members.clone().any(|i| !panel(i).bare()) {
                y += TICK;
            }
            if members.clone().any(|i| shows_x(i) && !panel(i).bare()) {
                y += SMALL * LEADING;
            }
            let labelled =
                |i: usize| (panel(i).image.is_some() || lowest(i) || !figure.shared) && !panel(i).x.label.is_empty();
            if members.clone().any(labelled) {
                for i in members.clone().filter(|i| labelled(*i) && !figure.shared) {
                    let plot = places[i].plot;
                    let (under, size) = match panel(i).image {
                        Some(_) => (plot.bottom + NORMAL * 1.15, caption_size),
                        None => (y + NORMAL * 0.85, NORMAL),
                    };
                    stack(&mut labels, panel(i).x.label.lines(), ((plot.left + plot.right) / 2.0, under), size);
                }
                let more = lines(&|p| &p.x.label).max(1) - 1;
                let last = row + 1 == count.div_ceil(columns);
                y += if figure.shared && !last { 0.0 } else { NORMAL * LEADING + caption_size * NEXT * more as f64 };
            }
            y += if pictures { 1.0 } else { 4.0 };
        }
        // Shared axes are named once, in the middle of the grid's edge.
        if let (true, Some(first), Some(last)) = (figure.shared, figure.panels.first(), places.last()) {
            let right = places.iter().map(|p| p.plot.right).fold(0.0, f64::max);
            let plain = Type::new(NORMAL, Anchor::Center);
            let (left, top, bottom) = (places[0].plot.left, places[0].plot.top, last.plot.bottom);
            labels.push((first.x.label.clone(), ((left + right) / 2.0, y - 4.0 - NORMAL * (LEADING - 0.85)), plain));
            labels.push((
                first.y.label.clone(),
                (EDGE + 0.85 * NORMAL, (top + bottom) / 2.0),
                Type { upright: true, ..plain },
            ));
        }

        let mut legend = Vec::new();
        let line = SMALL * LEADING;
        match figure.legend {
            Legend::None => {}
            Legend::Right => {
                let top = places.first().map_or(EDGE, |p| p.plot.top);
                for (i, (key, text)) in entries.into_iter().enumerate() {
                    legend.push((key, (right + 6.0, top + line * (i as f64 + 0.5)), text));
                }
            }
            Legend::Below => {
                let mut rows: Vec<(f64, Vec<_>)> = Vec::new();
                for entry in entries {
                    let w = entry_width(&entry);
                    match rows.last_mut() {
                        Some((total, row)) if *total + w <= width - 2.0 * EDGE => {
                            *total += w;
                            row.push((entry, w));
                        }
                        _ => rows.push((w, vec![(entry, w)])),
                    }
                }
                for (total, row) in rows {
                    let mut x = ((width - total + 9.0) / 2.0).max(EDGE);
                    for ((key, text), w) in row {
                        legend.push((key, (x, y + line / 2.0), text));
                        x += w;
                    }
                    y += line;
                }
            }
        }
        let mut note = Vec::new();
        for text in figure.note.iter().flat_map(|n| wrap(n, width - 2.0 * EDGE)) {
            y += SMALL * 0.92 * LEADING;
            note.push(((EDGE, y - 1.0), text));
        }
        Layout { width, height: y + EDGE, places, labels, legend, note }
    }

    /// The figure's images and where they go.
    pub(crate) fn images<'a>(&'a self, figure: &'a Figure) -> impl Iterator<Item = (&'a Raster, Rect)> {
        figure.panels.iter().zip(&self.places).filter_map(|(panel, place)| Some((panel.image.as_ref()?, place.plot)))
    }
}

pub(crate) fn sample_width(key: &Key) -> f64 {
    match key {
        Key::Line(_) => SAMPLE,
        Key::Point(..) | Key::Box(..) => 8.0,
    }
}

/// Lines of text one under the other, the first one's baseline at `at`.
fn stack<'a>(labels: &mut Vec<(String, At, Type)>, lines: impl Iterator<Item = &'a str>, at: At, size: f64) {
    for (k, line) in lines.enumerate() {
        labels.push((line.to_owned(), (at.0, at.1 + size * NEXT * k as f64), Type::new(size, Anchor::Center)));
    }
}

/// What each panel shows along x and y; the same for all where axes are shared.
fn spans(figure: &Figure) -> Vec<(Span, Span)> {
    let all = || figure.panels.iter().flat_map(Panel::data);
    let each = figure.panels.iter().map(|panel| match figure.shared {
        true => (panel.x.fit(all().filter_map(|p| p.0)), panel.y.fit(all().map(|p| p.1))),
        false => (panel.x.fit(panel.data().filter_map(|p| p.0)), panel.y.fit(panel.data().map(|p| p.1))),
    });
    // Bars stand on zero, so a linear axis begins there unless something lies below.
    let grounded = figure.panels.iter().zip(each).map(|(panel, (x, mut y))| {
        let bars = panel.marks.iter().any(|m| matches!(m, Mark::Bars { .. }));
        if bars && y.scale == Scale::Linear && panel.data().all(|p| !p.1.is_finite() || p.1 >= 0.0) {
            y.low = 0.0;
        }
        (x, y)
    });
    grounded.collect()
}

/// The largest rectangle of the image's proportions in `space`, centred.
fn fitted(image: &Raster, space: &Rect) -> Rect {
    let scale = (space.width() / image.width as f64).min(space.height() / image.height as f64);
    let (w, h) = (image.width as f64 * scale, image.height as f64 * scale);
    let (x, y) = (space.left + (space.width() - w) / 2.0, space.top + (space.height() - h) / 2.0);
    Rect { left: x, top: y, right: x + w, bottom: y + h }
}

/// The legend: its title, then every label once, in order of first appearance.
fn entries(figure: &Figure) -> Vec<(Option<Key>, String)> {
    let mut out: Vec<(Option<Key>, String)> = Vec::new();
    for mark in figure.panels.iter().flat_map(|p| &p.marks) {
        let (key, label) = match mark {
            Mark::Line { style, label, .. } => (Key::Line(*style), label),
            Mark::Level { style, label, .. } | Mark::Upright { style, label, .. } => {
                (Key::Line(style.with_marker(Marker::None)), label)
            }
            Mark::Points { marker, size, color, label, .. } => (Key::Point(*marker, *size, *color), label),
            Mark::Bars { color, label, .. } => (Key::Box(*color, BARS), label),
            Mark::Band { color, strength, label, .. } => (Key::Box(*color, *strength), label),
        };
        if let Some(label) = label
            && out.iter().all(|(_, known)| known != label)
        {
            out.push((Some(key), label.clone()));
        }
    }
    match &figure.legend_title {
        Some(title) if !out.is_empty() => out.insert(0, (None, title.clone())),
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{COLUMN_WIDTH, register_fonts};

    #[test]
    fn names_of_rows_do_not_run_into_each_other() {
        let low = || Raster::new(80, 4, vec![9; 80 * 4 * 3]).expect("fits");
        let panel = |name: &str| Panel::image("", low(), "").row_title(name);
        let figure = Figure::new(COLUMN_WIDTH, 1).panel(panel("training")).panel(panel("evaluation"));
        register_fonts().expect("fonts");
        let layout = Layout::new(&figure);
        let middle = |i: usize| (layout.places[i].plot.top + layout.places[i].plot.bottom) / 2.0;
        let half = |name: &str| {
            let (_, _, kind) = layout.labels.iter().find(|l| l.0 == name).expect("named");
            text_width(name, kind) / 2.0
        };
        assert!(middle(1) - middle(0) > half("training") + half("evaluation"), "{} {}", middle(0), middle(1));
        assert!(layout.places[0].plot.height() < 0.06 * layout.places[0].plot.width(), "images keep their shape");
    }
}
