//! What a figure shows, as data: panels of curves, bands, stars, bars and images. [`Figure::to_png`] and
//! [`Figure::to_svg`] draw it with one and the same drawing function.

use crate::axis::{Axis, Scale};
use crate::raster::Raster;
use crate::style::{Color, LineStyle, Marker};

/// Where the legend goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the documentation
pub enum Legend {
    None,
    Below,
    Right,
}

/// One thing drawn in a panel. Points that are not finite, or have no place on a log axis, break a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A curve through (x, y) points.
    Line {
        /// (x, y) in data units, in drawing order.
        points: Vec<(f64, f64)>,
        /// Colour, dash, marker, width.
        style: LineStyle,
        /// Legend entry; curves of several panels with the same label share one.
        label: Option<String>,
    },
    /// A shaded region between two curves over the same x, as a standard error.
    Band {
        /// (x, low, high) in data units.
        points: Vec<(f64, f64, f64)>,
        /// Fill colour.
        color: Color,
        /// Share of the colour in what is drawn, 0 to 1.
        strength: f64,
        /// Legend entry.
        label: Option<String>,
    },
    /// Single points without a line.
    Points {
        /// (x, y) in data units.
        points: Vec<(f64, f64)>,
        /// Marker shape (a [`Marker::Star`] at a minimum, say).
        marker: Marker,
        /// Size across, in points of the page.
        size: f64,
        /// Fill colour.
        color: Color,
        /// Legend entry.
        label: Option<String>,
    },
    /// A horizontal line across the panel.
    Level {
        /// Its height in data units.
        y: f64,
        /// Colour, dash, width.
        style: LineStyle,
        /// Legend entry.
        label: Option<String>,
    },
    /// A vertical line across the panel.
    Upright {
        /// Its place in data units.
        x: f64,
        /// Colour, dash, width.
        style: LineStyle,
        /// Legend entry.
        label: Option<String>,
    },
    /// Bars from the bottom of the panel: a histogram.
    Bars {
        /// Bin borders in data units, one more than there are bars.
        edges: Vec<f64>,
        /// Heights in data units.
        heights: Vec<f64>,
        /// Fill colour.
        color: Color,
        /// Legend entry.
        label: Option<String>,
    },
}

/// One set of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Of one or more lines, above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, each over those before it.
    pub marks: Vec<Mark>,
    /// Shown instead of the marks.
    pub image: Option<Raster>,
    /// Bold text at the left, reading upwards; empty for none.
    pub row: String,
    /// Takes its place in the grid and draws nothing.
    pub blank: bool,
    /// Whether the ticks along x and y have numbers.
    pub numbers: (bool, bool),
}

impl Panel {
    /// An empty panel. A title may have several lines.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (marks, row) = (Vec::new(), String::new());
        Panel { title: title.into(), x, y, marks, image: None, row, blank: false, numbers: (true, true) }
    }

    /// A place in the grid left empty.
    pub fn blank() -> Self {
        Panel { blank: true, ..Panel::new("", Axis::linear(""), Axis::linear("")) }
    }

    /// A panel that shows an image in its own proportions, without ticks; `caption`, of one or more lines, is written
    /// beneath.
    pub fn image(title: impl Into<String>, raster: Raster, caption: impl Into<String>) -> Self {
        let mut panel = Panel::new(title, Axis::linear(caption), Axis::linear(""));
        panel.image = Some(raster);
        panel
    }

    /// With the name of its row in bold at the left, reading upwards.
    pub fn row_title(self, text: impl Into<String>) -> Self {
        Panel { row: text.into(), ..self }
    }

    /// With numbers at the ticks along x and y, or without: for panels whose neighbours show the same range.
    pub fn numbers(self, x: bool, y: bool) -> Self {
        Panel { numbers: (x, y), ..self }
    }

    /// With one more thing drawn, over those before it.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// With a curve that appears in the legend.
    pub fn line(self, label: impl Into<String>, style: LineStyle, points: Vec<(f64, f64)>) -> Self {
        self.mark(Mark::Line { points, style, label: Some(label.into()) })
    }

    /// With a histogram drawn as an outline, so that several can lie over each other: `edges` of the bins, one more than
    /// there are `heights`. On a log axis a bin of height 0 reaches below the panel: give such an axis a range.
    pub fn outline(self, label: impl Into<String>, style: LineStyle, edges: &[f64], heights: &[f64]) -> Self {
        let bottom = if self.y.range.is_some() && self.y.scale == Scale::Log { f64::MIN_POSITIVE } else { 0.0 };
        let top = |height: &f64| height.max(bottom);
        // From the first bin that holds something to the last.
        let full = |h: &f64| *h > 0.0;
        let first = heights.iter().position(full).unwrap_or(heights.len());
        let last = heights.iter().rposition(full).map_or(first, |i| i + 1);
        let bins = edges.windows(2).zip(heights).skip(first).take(last - first);
        let corners = bins.flat_map(|(e, h)| [(e[0], top(h)), (e[1], top(h))]);
        let ends = [edges.get(first), edges.get(last)].map(|edge| edge.map(|x| (*x, bottom)));
        let points = ends[0].into_iter().chain(corners).chain(ends[1]).collect();
        self.line(label, style.with_marker(Marker::None), points)
    }

    /// With a star at the point of `points` with the smallest y (none if no y is finite).
    pub fn star_at_minimum(self, color: Color, points: &[(f64, f64)]) -> Self {
        match points.iter().filter(|p| p.1.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some(&lowest) => {
                self.mark(Mark::Points { points: vec![lowest], marker: Marker::Star, size: 4.2, color, label: None })
            }
            None => self,
        }
    }

    /// Without ticks and numbers: an image, or nothing at all.
    pub fn bare(&self) -> bool {
        self.blank || self.image.is_some()
    }

    /// All points of its marks: x, of marks that have a place along it, and y.
    pub fn data(&self) -> impl Iterator<Item = (Option<f64>, f64)> {
        self.marks.iter().flat_map(|mark| -> Vec<(Option<f64>, f64)> {
            match mark {
                Mark::Line { points, .. } | Mark::Points { points, .. } => {
                    points.iter().map(|p| (Some(p.0), p.1)).collect()
                }
                Mark::Band { points, .. } => points.iter().flat_map(|p| [(Some(p.0), p.1), (Some(p.0), p.2)]).collect(),
                Mark::Level { y, .. } => vec![(None, *y)],
                Mark::Upright { x, .. } => vec![(Some(*x), f64::NAN)],
                Mark::Bars { edges, heights, .. } => {
                    let tops = heights.iter().copied().chain([0.0]);
                    edges.iter().zip(tops).map(|(x, y)| (Some(*x), y)).collect()
                }
            }
        })
    }
}

/// A figure: panels in a grid, filled row by row, with one legend and a note beneath.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// In inches.
    pub width: f64,
    /// Panels side by side.
    pub columns: usize,
    /// Height of each panel over its width.
    pub aspect: f64,
    /// Whether all panels show the same ranges.
    pub shared: bool,
    /// Where the legend is.
    pub legend: Legend,
    /// What stands before its entries.
    pub legend_title: Option<String>,
    /// Small text under everything.
    pub note: Option<String>,
    /// Row by row.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// A figure `width` inches wide (see [`crate::style::COLUMN_WIDTH`]) with this many panels side by side.
    pub fn new(width: f64, columns: usize) -> Self {
        Figure {
            width,
            columns: columns.max(1),
            aspect: 0.75,
            shared: false,
            legend: Legend::Below,
            legend_title: None,
            note: None,
            panels: Vec::new(),
        }
    }

    /// Adds a panel.
    pub fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// Height of each panel over its width (default 0.75).
    pub fn aspect(mut self, aspect: f64) -> Self {
        self.aspect = aspect;
        self
    }

    /// All panels show the same ranges; labels only at the left column and under the lowest panel of each column.
    pub fn shared_axes(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Where the legend goes (default: below), and a title before its entries.
    pub fn legend(mut self, legend: Legend, title: Option<&str>) -> Self {
        self.legend = legend;
        self.legend_title = title.map(str::to_owned);
        self
    }

    /// Small text under everything: the preset, what was cut off.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}
