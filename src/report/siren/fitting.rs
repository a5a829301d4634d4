//! Figures of fitted images: fits beside each other (Figures 1, 4 and 7 to 9), and training loss against step.
//!
//! ```
//! use sinexp::report::Raster;
//! use sinexp::report::siren::fitting::{FitColumn, fit_figure};
//! let gray = |size: usize, level: u8| Raster::new(size, size, vec![level; 3 * size * size]);
//! let fit = FitColumn { id: "uniform-mm".into(), train: gray(8, 99)?, eval: gray(16, 99)?, snr_db: 31.25 };
//! let truth = (&gray(8, 100)?, &gray(16, 100)?);
//! // The square of 4 pixels at row 10 and column 12 is shown enlarged; figure.write("fig1") makes PNG and SVG.
//! let figure = fit_figure(truth, &[fit.clone()], (10, 12, 4, 4), "")?;
//! let svg = figure.to_svg()?;
//! assert!(svg.matches("<image").count() == 6 && svg.contains("31.25"));
//! assert!(fit_figure(truth, &[fit], (10, 14, 4, 4), "").is_err()); // beyond the right edge
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::report::style::{COLUMN_WIDTH, Color, TEXT_WIDTH, label, named};
use crate::report::table::readable;
use panelplot::{Axis, Figure, Legend, Panel, Raster};

/// The square round the part that is shown enlarged.
const RED: Color = Color(0xd0, 0x10, 0x10);
/// With more columns than this at text width, titles are short and set in two lines.
const ROOMY: usize = 6;
/// Up to as many columns of pictures that are not wide fit one column of the page: at text width they would be too tall.
const NARROW: usize = 3;
/// A picture is wide if its height over its width is less than this.
const WIDE: f64 = 0.4;
/// Evaluation images with fewer pixels along the longer side are enlarged, so that the frame round a part is thin.
const FINE: usize = 360;
/// The most points a loss curve shows: dashes and markers are lost on more.
const SMOOTH: usize = 150;

/// One initialisation's fit: a column of [`fit_figure`].
#[derive(Clone, Debug, PartialEq)]
pub struct FitColumn {
    /// The method's command-line name, as `uniform-mm`; [`crate::report::style::method`] gives the name shown.
    pub id: String,
    /// The network on the training grid.
    pub train: Raster,
    /// The network on the evaluation grid.
    pub eval: Raster,
    /// Signal-to-noise ratio over the whole evaluation image, in dB.
    pub snr_db: f64,
}

/// Figures 1 and 4: the true image, given as (training grid, evaluation grid), then one column per initialisation.
/// Rows: training image, evaluation image with a red square, and the part in the square enlarged; the SNR is beneath.
///
/// `zoom` is the part: row and column of its first pixel, its height and its width, in evaluation pixels.
///
/// **Errors** when the part does not lie inside the evaluation image, or the evaluation images differ in size.
pub fn fit_figure(
    truth: (&Raster, &Raster),
    columns: &[FitColumn],
    zoom: (usize, usize, usize, usize),
    note: &str,
) -> Result<Figure> {
    let (top, left, part_height, part_width) = zoom;
    let size = |r: &Raster| (r.height(), r.width());
    if let Some(column) = columns.iter().find(|c| size(&c.eval) != size(truth.1)) {
        let ((h, w), (rows, across)) = (size(&column.eval), size(truth.1));
        return Err(Error::numeric(
            format!("evaluation image of `{}`", column.id),
            format!("{h} by {w} pixels (rows by columns), the true one {rows} by {across}; evaluate on its grid"),
        ));
    }
    let count = columns.len() + 1;
    let title = |id: &str| if count > ROOMY { short(id) } else { label(id).to_owned() };
    let first =
        (if count > ROOMY { "ground\ntruth" } else { "ground truth" }.to_owned(), truth.0, truth.1, "SNR [dB]".into());
    let all: Vec<_> = std::iter::once(first)
        .chain(columns.iter().map(|c| (title(&c.id), &c.train, &c.eval, decibels(c.snr_db))))
        .collect();
    let in_row = |panel: Panel, i: usize, row: &str| if i == 0 { panel.row_title(row) } else { panel };
    let wide = (truth.1.height() as f64) < WIDE * truth.1.width() as f64;
    let width = if count <= NARROW && !wide { COLUMN_WIDTH } else { TEXT_WIDTH };
    let times = FINE.div_ceil(truth.1.height().max(truth.1.width())).max(1);
    let mut figure = Figure::new(width, count).legend(Legend::None, None);
    for (i, (title, train, _, _)) in all.iter().enumerate() {
        figure = figure.panel(in_row(Panel::image(title, (*train).clone(), ""), i, "training"));
    }
    for (i, (_, _, eval, _)) in all.iter().enumerate() {
        let marked =
            eval.enlarged(times).outlined(top * times, left * times, part_height * times, part_width * times, RED);
        figure = figure.panel(in_row(Panel::image("", marked, ""), i, "evaluation"));
    }
    for (i, (_, _, eval, snr)) in all.iter().enumerate() {
        let part = eval.crop(top, left, part_height, part_width)?;
        figure = figure.panel(in_row(Panel::image("", part, snr), i, "enlarged"));
    }
    Ok(figure.note(note))
}

/// One image with the best fit of each method: a row of [`best_figure`].
#[derive(Clone, Debug, PartialEq)]
pub struct BestPicture {
    /// The image's name, as "Camera".
    pub image: String,
    /// The true image.
    pub truth: Raster,
    /// Method's command-line name, its fit, its test MSE (in the space it was trained in), and the input frequency
    /// omega0 that gave it, where the method has one.
    pub methods: Vec<(String, Raster, f64, Option<f64>)>,
}

/// Figures 7 to 9: one row per image, first the truth, then each method's best fit; its test MSE and omega0 beneath.
///
/// **Errors** when there is no image, or the images' methods are not the same in the same order.
pub fn best_figure(rows: &[BestPicture], note: &str) -> Result<Figure> {
    let Some(first) = rows.first() else {
        return Err(Error::numeric("figure of the best fits", "no image given; it needs at least one"));
    };
    let ids = |row: &BestPicture| row.methods.iter().map(|m| m.0.clone()).collect::<Vec<_>>();
    if let Some(row) = rows.iter().find(|r| ids(r) != ids(first)) {
        return Err(Error::numeric(
            format!("best fits of `{}`", row.image),
            format!(
                "methods {:?}, those of `{}` are {:?}; give the same in the same order",
                ids(row),
                first.image,
                ids(first)
            ),
        ));
    }
    let count = first.methods.len() + 1;
    let mut figure = Figure::new(TEXT_WIDTH, count).legend(Legend::None, None);
    for (i, row) in rows.iter().enumerate() {
        let title = |id: &str| match i {
            0 if count > ROOMY => short(id),
            0 => label(id).to_owned(),
            _ => String::new(),
        };
        let truth = if i == 0 { "ground truth" } else { "" };
        figure = figure.panel(Panel::image(truth, row.truth.clone(), "").row_title(&row.image));
        for (id, fit, mse, omega0) in &row.methods {
            let caption = match omega0 {
                Some(omega0) => format!("MSE {}\nω₀ = {}", readable(*mse), readable(*omega0)),
                None => format!("MSE {}", readable(*mse)),
            };
            figure = figure.panel(Panel::image(title(id), fit.clone(), caption));
        }
    }
    Ok(figure.note(note))
}

/// Training MSE (log) against step, one curve per initialisation: command-line name and (step, MSE) points in order of
/// the step. Of a curve with many points the geometric means of equally many neighbours are shown, and the note says so.
pub fn loss_figure(curves: &[(String, Vec<(f64, f64)>)], note: &str) -> Figure {
    let each = curves.iter().map(|c| c.1.len()).max().unwrap_or(0).div_ceil(SMOOTH).max(1);
    let means = if each > 1 { format!("Geometric means of {each} values each. ") } else { String::new() };
    let mut panel = Panel::new("", Axis::linear("step"), Axis::log("training MSE"));
    for (i, (id, points)) in curves.iter().enumerate() {
        let (label, style) = named(id, i, curves.len());
        panel = panel.line(label, style, points.chunks(each).map(geometric_mean).collect());
    }
    Figure::new(COLUMN_WIDTH, 1).aspect(0.7).panel(panel).note(format!("{means}{note}"))
}

/// The middle step and the geometric mean of the values; one that has no logarithm leaves a gap.
fn geometric_mean(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let step = points.iter().map(|p| p.0).sum::<f64>() / n;
    (step, if let [one] = points { one.1 } else { (points.iter().map(|p| p.1.ln()).sum::<f64>() / n).exp() })
}

/// A method's name in two short lines.
fn short(id: &str) -> String {
    match id {
        "uniform-mm" => "uniform-\nphase MM",
        "cvp26-s0" => "CVP26\nσₐ = 0",
        "cvp26-s1" => "CVP26\nσₐ = 1",
        "sm20-repo" => "SM20\n(code)",
        "tanh-pe" => "tanh, PE,\nXavier",
        _ => label(id),
    }
    .to_owned()
}

/// An SNR with two decimals.
fn decibels(snr: f64) -> String {
    if snr.is_finite() { format!("{snr:.2}").replace('-', "\u{2212}") } else { readable(snr) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use panelplot::Mark;

    fn shaded(width: usize, height: usize, tone: u8) -> Raster {
        let pixel = |i: usize| [((i % width) * 255 / width) as u8, ((i / width) * 255 / height) as u8, tone];
        Raster::new(width, height, (0..width * height).flat_map(pixel).collect()).expect("fits")
    }

    fn size(png: &[u8]) -> (u32, u32) {
        let reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("header");
        (reader.info().width, reader.info().height)
    }

    fn column(id: &str, snr_db: f64) -> FitColumn {
        FitColumn { id: id.into(), train: shaded(12, 8, 90), eval: shaded(48, 32, 200), snr_db }
    }

    #[test]
    fn fits_stand_beside_each_other_in_three_rows() {
        let (train, eval) = (shaded(12, 8, 0), shaded(48, 32, 0));
        let ids = ["uniform-mm", "cvp26-s0", "cvp26-s1", "sm20", "tanh-pe", "relu", "silu", "gelu"];
        let columns: Vec<_> = ids.iter().enumerate().map(|(i, id)| column(id, 20.0 - 3.125 * i as f64)).collect();
        let figure = fit_figure((&train, &eval), &columns, (4, 10, 6, 12), "Note.").expect("fits");
        assert_eq!((figure.panels.len(), figure.columns), (27, 9));
        // The part below is what is in the square above, and the training row is untouched.
        let image = |i: usize| figure.panels[i].image.clone().expect("an image");
        assert_eq!(image(18 + 3), columns[2].eval.crop(4, 10, 6, 12).expect("inside"));
        assert_eq!(image(3), columns[2].train);
        // Eight times as large, with a frame of six pixels round 48 by 96.
        let marked = image(9 + 3);
        let red = marked.rgb().chunks_exact(3).filter(|p| *p == [RED.0, RED.1, RED.2].as_slice()).count();
        assert_eq!((marked.width(), marked.height(), red), (384, 256, 60 * 108 - 48 * 96));
        let svg = figure.to_svg().expect("draws");
        for text in ["SNR [dB]", "20.00", "\u{2212}1.88", "phase MM", "GELU", "training", "evaluation", "Note."] {
            assert!(svg.contains(text), "{text} is missing");
        }
        let (wide, tall) = size(&figure.to_png().expect("draws"));
        // 6.75 inches at 300 dots per inch; three rows of images of 2 to 3 and some text.
        assert!(wide == 2025 && tall > 3 * 130 && tall < 3 * 150 + 250, "{wide} by {tall}");
    }

    #[test]
    fn pictures_that_do_not_belong_together_are_refused() {
        let (train, eval) = (shaded(12, 8, 0), shaded(48, 32, 0));
        let error = fit_figure((&train, &eval), &[], (0, 40, 5, 9), "").expect_err("outside");
        assert!(error.to_string().contains("column 40"), "{error}");
        let other = FitColumn { eval: shaded(32, 48, 0), ..column("relu", f64::NAN) };
        let error = fit_figure((&train, &eval), &[other], (0, 0, 5, 5), "").expect_err("other size");
        assert!(error.to_string().contains("`relu`: 48 by 32"), "{error}");
        assert!(best_figure(&[], "").is_err());
        let best = |ids: &[&str]| BestPicture {
            image: "Clock".into(),
            truth: shaded(8, 6, 0),
            methods: ids.iter().map(|id| (id.to_string(), shaded(8, 6, 9), 0.1, None)).collect(),
        };
        let error = best_figure(&[best(&["sm20", "relu"]), best(&["relu", "sm20"])], "").expect_err("other order");
        assert!(error.to_string().contains("Clock"), "{error}");
    }

    #[test]
    fn best_fits_have_a_row_per_image_and_their_numbers_beneath() {
        let row = |image: &str, width, height| BestPicture {
            image: image.into(),
            truth: shaded(width, height, 0),
            methods: vec![
                ("uniform-mm".into(), shaded(width, height, 90), 1.234e-5, None),
                ("sm20".into(), shaded(width, height, 90), f64::NAN, Some(82.083)),
            ],
        };
        // The last one is so tall that it is shown narrower than its column.
        let figure = best_figure(&[row("Camera", 8, 8), row("Clock", 8, 6), row("Tower", 2, 8)], "").expect("fits");
        assert_eq!((figure.panels.len(), figure.columns), (9, 3));
        let svg = figure.to_svg().expect("draws");
        for text in ["Camera", "Tower", "ground truth", "uniform-phase MM", "MSE 1.23 × 10⁻⁵", "MSE NaN", "ω₀ = 82.1"]
        {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert_eq!(svg.matches(">\nSM20\n<").count(), 1, "methods are named once, at the top");
        let (wide, tall) = size(&figure.to_png().expect("draws"));
        let heights = f64::from(wide) / 3.0 * (1.0 + 0.75 + TALLEST_SHOWN);
        assert!(f64::from(tall) > 0.93 * heights && f64::from(tall) < heights + 250.0, "{wide} by {tall}");
    }

    /// Height over width that layout gives an image at most.
    const TALLEST_SHOWN: f64 = 1.5;

    #[test]
    fn long_loss_curves_are_smoothed_and_bad_values_leave_gaps() {
        let long: Vec<_> = (0..1500).map(|i| (f64::from(i), if i % 2 == 0 { 1e-2 } else { 1e-4 })).collect();
        let broken = vec![(0.0, f64::NAN), (1.0, -1.0), (2.0, f64::INFINITY), (3.0, 1.0)];
        let figure = loss_figure(&[("sm20".into(), long), ("other".into(), broken.clone())], "Seed 0.");
        let Mark::Line { points, label, .. } = &figure.panels[0].marks[0] else { panic!("a curve") };
        assert_eq!((points.len(), label.as_deref()), (150, Some("SM20")));
        assert!(points[3].0 == 34.5 && (points[3].1 - 1e-3).abs() < 1e-12, "{:?}", points[3]);
        assert!(
            figure.note.as_deref().is_some_and(|n| n.starts_with("Geometric means of 10 ") && n.ends_with("Seed 0."))
        );
        for curves in [vec![], vec![("relu".into(), vec![])], vec![("relu".into(), broken)]] {
            assert_eq!(size(&loss_figure(&curves, "").to_png().expect("draws")).0, 975);
        }
    }
}
