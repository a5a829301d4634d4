//! Where the ticks of an axis go and what they say.

/// Largest magnitude that an axis reaches for.
const FARTHEST: f64 = 1e300;

/// How data become positions along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps are equal lengths.
    Linear,
    /// Equal ratios are equal lengths; values that are not positive have no place and are left out.
    Log,
}

/// One axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name, with units in square brackets if it has any.
    pub label: String,
    /// How data become positions.
    pub scale: Scale,
    /// Ends asked for; without them the data's, with a little room.
    pub range: Option<(f64, f64)>,
    /// Where ticks are; without them at round numbers.
    pub ticks: Option<Vec<f64>>,
}

impl Axis {
    /// A linear axis with this label (units in square brackets, if it has any).
    pub fn linear(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Linear, range: None, ticks: None }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Axis { label: label.into(), scale: Scale::Log, range: None, ticks: None }
    }

    /// Shows exactly `low ..= high` instead of what the data span. Ignored where `low < high` does not hold, or on a
    /// log axis where `low` is not positive.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        let fits = |v: f64| v.abs() <= FARTHEST;
        if low < high && (self.scale == Scale::Linear || low > 0.0) && fits(low) && fits(high) {
            self.range = Some((low, high));
        }
        self
    }

    /// Puts ticks at these values instead of at round numbers.
    pub fn ticks(mut self, values: &[f64]) -> Self {
        self.ticks = Some(values.to_vec());
        self
    }

    /// Puts ticks at 0 and at minus and plus the largest of 1, 2 or 5 times a power of ten up to `bound`: for narrow panels
    /// about 0.
    pub fn ticks_about_zero(self, bound: f64) -> Self {
        let decade = 10f64.powf(bound.abs().log10().floor());
        let fits = [5.0, 2.0, 1.0].into_iter().map(|m| m * decade).find(|v| *v <= bound.abs() * (1.0 + 1e-9));
        match fits {
            // Through text, so that 3 * 0.1 is 0.3.
            Some(v) => {
                let v = format!("{v:.3e}").parse().unwrap_or(v);
                self.ticks(&[-v, 0.0, v])
            }
            None => self,
        }
    }

    /// The range shown: the one asked for, or the data's with a little room. Numbers beyond 1e300, and subnormal ones on a log axis, have
    /// no place, so that
    /// differences and ratios of ends are numbers.
    pub(crate) fn fit(&self, data: impl Iterator<Item = f64>) -> Span {
        let usable = |v: &f64| v.abs() <= FARTHEST && (self.scale == Scale::Linear || *v >= f64::MIN_POSITIVE);
        let (low, high) = self.range.unwrap_or_else(|| {
            let (low, high) =
                data.filter(usable).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
            match self.scale {
                _ if low > high => (1.0, 10.0),
                Scale::Linear if low == high => (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0)),
                Scale::Linear => (low - 0.03 * (high - low), high + 0.03 * (high - low)),
                Scale::Log => {
                    let room = if low == high { 3.0 } else { (0.03 * (high.ln() - low.ln())).exp() };
                    ((low / room).max(f64::MIN_POSITIVE), (high * room).min(f64::MAX))
                }
            }
        });
        Span { scale: self.scale, low, high }
    }

    pub(crate) fn marks(&self, span: &Span, room: usize) -> Ticks {
        match &self.ticks {
            Some(values) => Ticks {
                major: values.iter().filter(|v| span.contains(**v)).map(|v| (*v, number(*v))).collect(),
                minor: Vec::new(),
            },
            None if span.scale == Scale::Log => log_ticks(span.low, span.high, room),
            None => linear_ticks(span.low, span.high, room),
        }
    }
}

/// An axis' visible range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Span {
    /// Position of `value` along the axis, 0 at `low` and 1 at `high`; `None` where it has no place.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let t = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            Scale::Log => return None,
        };
        t.is_finite().then_some(t)
    }

    fn contains(&self, value: f64) -> bool {
        self.position(value).is_some_and(|t| (-1e-9..=1.0 + 1e-9).contains(&t))
    }
}

/// A tick's text: `base`, and an exponent set as a superscript behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) base: String,
    pub(crate) exponent: Option<String>,
}

/// Ticks with labels, and the small ones between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) major: Vec<(f64, Label)>,
    pub(crate) minor: Vec<f64>,
}

fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

fn power(k: i32) -> Label {
    match k {
        0 => Label { base: "1".into(), exponent: None },
        1 => Label { base: "10".into(), exponent: None },
        _ => Label { base: "10".into(), exponent: Some(minus(&k.to_string())) },
    }
}

/// A number as a person writes it: plainly between 1e-4 and 1e5, else as `m × 10^k`.
fn number(value: f64) -> Label {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e5).contains(&magnitude) {
        return Label { base: minus(&format!("{value}")), exponent: None };
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let base = match mantissa {
        "1" => "10".to_owned(),
        m => format!("{} × 10", minus(m)),
    };
    Label { base, exponent: Some(minus(exponent)) }
}

/// Whole decades, every `stride`-th with a label; below two decades the 2s and 5s too.
fn log_ticks(low: f64, high: f64, room: usize) -> Ticks {
    let (first, last) = ((low.log10() - 1e-9).ceil() as i32, (high.log10() + 1e-9).floor() as i32);
    let inside = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
    let steps = |multiples: &'static [f64]| {
        (first - 1..=last).flat_map(move |k| multiples.iter().map(move |m| m * 10f64.powi(k))).filter(inside)
    };
    const BETWEEN: [f64; 8] = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let decades = (last - first + 1).max(0) as usize;
    if decades < 2 {
        let coarse: &'static [f64] = &[1.0, 2.0, 5.0];
        let multiples = if steps(coarse).count() < 3 { &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0] } else { coarse };
        let round = |v: f64| format!("{v:.3e}").parse().unwrap_or(v);
        let major = steps(multiples).map(|v| (v, number(round(v)))).collect();
        return Ticks { major, minor: steps(&BETWEEN).collect() };
    }
    let stride =
        [1, 2, 3, 4, 5, 10, 20, 50, 100].into_iter().find(|s| decades.div_ceil(*s) <= room.max(2)).unwrap_or(100);
    let major =
        (first..=last).filter(|k| k.rem_euclid(stride as i32) == 0).map(|k| (10f64.powi(k), power(k))).collect();
    let minor = if stride == 1 {
        steps(&BETWEEN).collect()
    } else {
        (first..=last).filter(|k| k.rem_euclid(stride as i32) != 0).map(|k| 10f64.powi(k)).collect()
    };
    Ticks { major, minor }
}

/// Multiples of 1, 2, 2.5 or 5 times a power of ten; at least two of them.
fn linear_ticks(low: f64, high: f64, room: usize) -> Ticks {
    let width = high - low;
    let rough = width / room.max(1) as f64;
    let unit = 10f64.powf(rough.log10().floor());
    let steps = [0.5, 1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * unit);
    let ends = |step: f64| ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let fitting = steps.iter().skip(1).position(|s| *s >= rough * (1.0 - 1e-9)).map_or(5, |i| i + 1);
    // One tick alone gives no scale.
    let step = steps[..=fitting].iter().rev().copied().find(|s| ends(*s).1 > ends(*s).0).unwrap_or(steps[0]);
    let (first, last) = ends(step);
    // Rounded to twelve digits of the step, so that 3 * 0.1 is written 0.3.
    let clean = |i: i64| {
        let digits = (12.0 - step.abs().log10().floor()).clamp(0.0, 300.0) as usize;
        format!("{:.digits$}", i as f64 * step).parse::<f64>().unwrap_or(i as f64 * step) + 0.0
    };
    let major: Vec<_> = (first..=last).map(clean).map(|v| (v, number(v))).collect();
    let half = step / 2.0;
    let minor = (first - 1..=last).map(|i| i as f64 * step + half).filter(|v| *v >= low && *v <= high).collect();
    Ticks { major, minor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(t: &Ticks) -> Vec<String> {
        t.major
            .iter()
            .map(|(_, l)| l.base.clone() + l.exponent.as_deref().map(|e| format!("^{e}")).unwrap_or_default().as_str())
            .collect()
    }

    #[test]
    fn decades_have_superscripts() {
        let t = log_ticks(1e-3, 1e2, 7);
        assert_eq!(texts(&t), ["10^−3", "10^−2", "10^−1", "1", "10", "10^2"]);
        assert_eq!(t.minor.len(), 5 * 8);
    }

    #[test]
    fn many_decades_are_thinned_to_round_exponents() {
        let t = log_ticks(1e-12, 1e3, 6);
        assert_eq!(texts(&t), ["10^−12", "10^−9", "10^−6", "10^−3", "1", "10^3"]);
        assert_eq!(t.minor.len(), 10);
        let t = log_ticks(1e-30, 1e3, 6);
        assert_eq!(texts(&t), ["10^−30", "10^−20", "10^−10", "1"]);
    }

    #[test]
    fn extreme_numbers_have_an_axis_too() {
        for data in
            [vec![5e-324, 1e-7, 1e308], vec![1e-300, 1e300], vec![1e300], vec![5e-324], vec![-1e308, 1e308, 1.0]]
        {
            for axis in [Axis::linear("x"), Axis::log("x")] {
                let span = axis.fit(data.iter().copied());
                assert!(span.low < span.high && (span.high - span.low).is_finite(), "{span:?}");
                let marks = axis.marks(&span, 6);
                assert!(marks.major.len() < 40 && marks.major.iter().all(|m| m.0.is_finite()), "{data:?}: {marks:?}");
            }
        }
    }

    #[test]
    fn less_than_two_decades_shows_plain_numbers() {
        assert_eq!(texts(&log_ticks(0.3, 3.0, 5)), ["0.5", "1", "2"]);
        assert_eq!(texts(&log_ticks(1.0, 2.5, 5)), ["1", "1.5", "2"]);
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(texts(&linear_ticks(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(texts(&linear_ticks(-0.31, 0.32, 6)), ["−0.2", "0", "0.2"]);
        assert_eq!(texts(&linear_ticks(1.0, 256.0, 4)), ["100", "200"]);
        assert_eq!(texts(&linear_ticks(-0.15, 0.15, 3)), ["−0.1", "0", "0.1"]);
        assert_eq!(texts(&linear_ticks(0.0, 4e6, 4)), ["0", "10^6", "2 × 10^6", "3 × 10^6", "4 × 10^6"]);
    }

    #[test]
    fn ranges_follow_the_data_and_ignore_what_has_no_place() {
        let span = Axis::log("y").fit([0.0, -1.0, f64::NAN, 1e-2, 1e2].into_iter());
        assert!(span.low < 1e-2 && span.low > 1e-3 && span.high > 1e2 && span.high < 1e3, "{span:?}");
        assert_eq!(span.position(0.0), None);
        assert!((span.position(1.0).expect("inside") - 0.5).abs() < 1e-12);
        assert_eq!(Axis::linear("x").range(2.0, 1.0).range, None);
        assert_eq!(Axis::log("x").range(0.0, 1.0).range, None);
        let flat = Axis::linear("x").fit([3.0, 3.0].into_iter());
        assert!(flat.low < 3.0 && flat.high > 3.0);
    }
}
