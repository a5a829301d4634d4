//! Figure 5: a fitted sound, whole and at its beginning.
//!
//! ```
//! use sinexp::report::FigureFiles;
//! use sinexp::report::siren::sound::{SoundRow, sound_figure};
//! let truth: Vec<f64> = (0..800).map(|i| (f64::from(i) * 0.3).sin()).collect();
//! let prediction = truth.iter().map(|v| 0.9 * v).collect(); // an error of a tenth: 20 dB
//! let row = SoundRow { id: "uniform-mm".into(), prediction, snr_db: 20.0 };
//! let figure = sound_figure(&truth, 8000, &[row], 81, ""); // figure.write("fig5")
//! // The right panel ends with the 81st sample, 10 ms after the first.
//! let table = figure.curves()?.unwrap();
//! assert_eq!(table.frame().column("x").unwrap().f64().unwrap().last(), Some(10.0));
//! assert!(figure.to_svg()?.contains("SNR 20.00 dB"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use crate::report::style::{Color, Dash, LineStyle, Marker, PALETTE, TEXT_WIDTH, label};
use panelplot::{Axis, Figure, Mark, Panel};

/// Bins of the envelope: one per pixel of the left panels at 300 dots per inch, about.
const BINS: usize = 840;
const TRUTH: Color = Color(0xa8, 0xa8, 0xa8);
const PREDICTION: Color = PALETTE[0];

/// One initialisation's fit: a row of [`sound_figure`].
#[derive(Clone, Debug, PartialEq)]
pub struct SoundRow {
    /// The method's command-line name, as `uniform-mm`.
    pub id: String,
    /// The network at every sample, on the scale of the truth.
    pub prediction: Vec<f64>,
    /// Signal-to-noise ratio over the whole recording, in dB.
    pub snr_db: f64,
}

/// Figure 5: one row per initialisation, the truth in gray and the prediction in blue. Left the whole waveform as an
/// envelope: a stroke from the smallest to the largest sample of each pixel's width; right the first `first` samples on
/// their own vertical scale, with the SNR above. `rate` is in samples per second.
pub fn sound_figure(truth: &[f64], rate: u32, rows: &[SoundRow], first: usize, note: &str) -> Figure {
    let rate = f64::from(rate.max(1));
    let span = |samples: usize, unit: f64| (samples.max(2) - 1) as f64 / rate * unit;
    let full = loudest(truth);
    // All left panels show the same range; a prediction far louder than the truth leaves it.
    let high = rows.iter().map(|r| loudest(&r.prediction)).fold(full, f64::max).min(1.5 * full);
    let head = |all: &[f64]| -> Vec<(f64, f64)> {
        all.iter().take(first).enumerate().map(|(i, v)| (i as f64 / rate * 1e3, *v)).collect()
    };
    let line = |color, width| LineStyle::new(color, Dash::Solid, Marker::None).with_width(width);
    let unnamed = |points, style| Mark::Line { points, style, label: None };
    let mut figure = Figure::new(TEXT_WIDTH, 2).aspect(0.21).note(note);
    for (i, row) in rows.iter().enumerate() {
        let last = i + 1 == rows.len();
        let named = |text: &'static str| if last { text } else { "" };
        let x = Axis::linear(named("time [s]")).range(0.0, span(truth.len(), 1.0));
        let left = Panel::new(label(&row.id), x, amplitude("amplitude", high))
            .numbers(last, true)
            .mark(unnamed(envelope(truth, rate), line(TRUTH, 0.4)))
            .mark(unnamed(envelope(&row.prediction, rate), line(PREDICTION, 0.4)));
        let x = Axis::linear(named("time [ms]")).range(0.0, span(first.min(truth.len()), 1e3));
        let near =
            [truth, &row.prediction].map(|all| loudest(&all[..first.min(all.len())])).into_iter().fold(0.0, f64::max);
        let snr = if row.snr_db.is_finite() { format!("{:.2} dB", row.snr_db) } else { row.snr_db.to_string() };
        let right = Panel::new(format!("SNR {}", snr.replace('-', "\u{2212}")), x, amplitude("", near))
            .numbers(last, true)
            .line("ground truth", line(TRUTH, 1.6), head(truth))
            .line("prediction", line(PREDICTION, 0.7), head(&row.prediction));
        figure = figure.panel(left).panel(right);
    }
    figure
}

/// The largest finite magnitude; zero if there is none.
fn loudest(samples: &[f64]) -> f64 {
    samples.iter().filter(|v| v.is_finite()).fold(0.0, |a: f64, v| a.max(v.abs()))
}

/// An axis with zero in its middle, room for `loudest`, and ticks at a round number on both sides.
fn amplitude(name: &str, loudest: f64) -> Axis {
    let high = if loudest > 0.0 { loudest } else { 1.0 };
    let unit = 10f64.powf(high.log10().floor());
    let round = [5.0, 2.0, 1.0].into_iter().map(|m| m * unit).find(|t| *t <= high).unwrap_or(high);
    let round = format!("{round:.0e}").parse().unwrap_or(round);
    Axis::linear(name).range(-1.08 * high, 1.08 * high).ticks(&[-round, 0.0, round])
}

/// For each of at most [`BINS`] bins: (seconds, smallest), (seconds, largest), in turns up and down, so that one line
/// through all of them is the envelope. A bin without a finite sample gives points that break the line.
fn envelope(samples: &[f64], rate: f64) -> Vec<(f64, f64)> {
    let bins = BINS.min(samples.len());
    let mut out = Vec::with_capacity(2 * bins);
    for bin in 0..bins {
        let (from, to) = (bin * samples.len() / bins, (bin + 1) * samples.len() / bins);
        let finite = samples[from..to].iter().filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        let time = (from + to - 1) as f64 / 2.0 / rate;
        let ends = if bin % 2 == 0 { [low, high] } else { [high, low] };
        out.extend(ends.map(|v| (time, v)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_holds_every_bin_s_extremes() {
        let mut samples = vec![0.0; 10 * BINS];
        samples[25] = 3.0;
        samples[27] = -2.0;
        samples[30..40].fill(f64::NAN);
        let points = envelope(&samples, 10.0);
        assert_eq!(points.len(), 2 * BINS);
        assert_eq!(points[4..6], [(2.45, -2.0), (2.45, 3.0)]);
        assert!(points[6..8].iter().all(|p| !p.1.is_finite()));
        assert_eq!(envelope(&[1.0, -1.0], 1.0), [(0.0, 1.0), (0.0, 1.0), (1.0, -1.0), (1.0, -1.0)]);
    }

    #[test]
    fn amplitudes_have_round_ticks_on_both_sides() {
        for (loudest, tick) in [(1.0, 1.0), (0.99, 0.5), (2.3e-4, 2e-4), (0.0, 1.0)] {
            assert_eq!(amplitude("a", loudest).ticks, Some(vec![-tick, 0.0, tick]), "{loudest}");
        }
    }

    #[test]
    fn each_method_has_its_row_and_its_snr() {
        let truth: Vec<f64> = (0..4410).map(|i| f64::from(i) / 4410.0 * (f64::from(i) * 0.3).sin()).collect();
        let row = |id: &str, gain: f64, snr_db| SoundRow {
            id: id.into(),
            prediction: truth.iter().map(|v| v * gain).collect(),
            snr_db,
        };
        let rows = [row("uniform-mm", 0.9, 29.334), row("sm20", 1e9, -3.5), row("relu", f64::NAN, f64::NAN)];
        let figure = sound_figure(&truth, 44_100, &rows, 1000, "Seed 0.");
        assert_eq!((figure.panels.len(), figure.columns), (6, 2));
        // A thousand samples at 44.1 kHz end after 22.65 ms; the whole is 4410 samples.
        assert_eq!(figure.panels[1].x.range, Some((0.0, 999.0 / 44.1)));
        assert_eq!(figure.panels[0].x.range, Some((0.0, 4409.0 / 44_100.0)));
        // The quiet beginning has its own scale, and the loud prediction does not flatten the others' whole.
        let high = |i: usize| figure.panels[i].y.range.expect("set").1;
        assert!(high(1) < 0.4 * high(0) && high(0) < 2.0 && high(3) > 1e8);
        let svg = figure.to_svg().expect("draws");
        for text in [
            "uniform-phase MM",
            "SNR 29.33 dB",
            "SNR \u{2212}3.50 dB",
            "SNR NaN",
            "time [s]",
            "time [ms]",
            "prediction",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(figure.to_png().is_ok());
    }

    #[test]
    fn silence_and_nothing_are_drawn() {
        let row = SoundRow { id: "x".into(), prediction: vec![], snr_db: f64::NEG_INFINITY };
        for (truth, rows) in [(vec![], vec![]), (vec![], vec![row.clone()]), (vec![0.0; 5], vec![row])] {
            assert!(sound_figure(&truth, 0, &rows, 1000, "").to_svg().is_ok());
        }
    }
}
