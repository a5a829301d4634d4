//! A short two-voice piece in place of a recording, so that the audio experiment runs without a file.

use std::f64::consts::TAU;

use super::{Sound, duration};

/// The theme: MIDI note and length in eighths.
const SUBJECT: [(i32, u32); 12] =
    [(64, 1), (69, 2), (68, 1), (69, 1), (71, 1), (72, 2), (71, 1), (69, 1), (65, 2), (64, 1), (62, 1), (64, 2)];
/// What the voice that had the theme goes on with below it.
const COUNTER: [(i32, u32); 15] = [
    (57, 1),
    (60, 1),
    (64, 1),
    (59, 1),
    (57, 1),
    (56, 1),
    (57, 1),
    (60, 1),
    (56, 1),
    (57, 1),
    (62, 1),
    (57, 1),
    (60, 1),
    (59, 1),
    (56, 2),
];
/// Eighths per entry: the length of either list.
const ENTRY: u32 = 16;
/// Seconds per eighth.
const EIGHTH: f64 = 0.22;
/// Each overtone's loudness is its number to this power.
const BRIGHTNESS: f64 = -1.2;
const HARMONICS: i32 = 8;
/// The largest absolute sample.
const PEAK: f64 = 0.8;

/// The beginning of a small fugue: `(rate * seconds).round()` samples at `rate` per second, the largest |y| 0.8.
///
/// One voice plays a subject of twelve notes alone for 3.5 s; then a second voice answers a fifth above while the first
/// goes on below, and they change places at every further entry. Each note is a sum of decaying harmonics. The samples
/// are the same on every machine; a length that is not a positive number gives none.
pub fn fugue_subject(rate: u32, seconds: f64) -> Sound {
    let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    let count = (f64::from(rate) * seconds).round() as usize;
    let mut samples = vec![0.0; count];
    let entry = EIGHTH * f64::from(ENTRY);
    for number in 0.. {
        let start = f64::from(number) * entry;
        if start >= seconds {
            break;
        }
        // The answer is a fifth above the subject.
        let up = if number % 2 == 0 { 0 } else { 7 };
        play(&mut samples, rate, start, &SUBJECT, up);
        if number > 0 {
            play(&mut samples, rate, start, &COUNTER, up - 12 * (number % 2));
        }
    }
    let largest = samples.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    if largest > 0.0 {
        samples.iter_mut().for_each(|v| *v *= PEAK / largest);
    }
    let about = format!("synthesised fugue subject, mono, {}", duration(count, rate));
    Sound { samples, rate, about }
}

/// Adds one voice: `notes` moved by `up` semitones, from `start` seconds.
fn play(samples: &mut [f64], rate: u32, start: f64, notes: &[(i32, u32)], up: i32) {
    let mut eighths = 0;
    for &(note, length) in notes {
        let begin = start + EIGHTH * f64::from(eighths);
        eighths += length;
        let pitch = 440.0 * libm::exp2(f64::from(note + up - 69) / 12.0);
        add_note(samples, f64::from(rate), begin, EIGHTH * f64::from(length), pitch);
    }
}

/// Adds one note of `pitch` Hz: harmonics below half the rate, the higher the sooner gone, with a soft start and end.
fn add_note(samples: &mut [f64], rate: f64, begin: f64, length: f64, pitch: f64) {
    const ATTACK: f64 = 0.008;
    const RELEASE: f64 = 0.03;
    let first = (begin * rate).ceil() as usize;
    let last = (((begin + length) * rate).ceil() as usize).min(samples.len());
    for (i, sample) in samples.iter_mut().enumerate().take(last).skip(first) {
        let t = i as f64 / rate - begin;
        let edges = (t / ATTACK).min((length - t) / RELEASE).clamp(0.0, 1.0);
        let overtones = (1..=HARMONICS).map(f64::from).take_while(|k| k * pitch < rate / 2.0);
        let wave = overtones
            .map(|k| libm::pow(k, BRIGHTNESS) * libm::exp(-(1.0 + 0.6 * k) * t) * libm::sin(TAU * k * pitch * t));
        *sample += edges * wave.sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of `pitch` Hz there is in `samples`.
    fn strength(samples: &[f64], rate: u32, pitch: f64) -> f64 {
        let part = |f: fn(f64) -> f64| {
            samples.iter().enumerate().map(|(i, v)| v * f(TAU * pitch * i as f64 / f64::from(rate))).sum::<f64>()
        };
        part(f64::sin).hypot(part(f64::cos)) / samples.len() as f64
    }

    #[test]
    fn lists_fill_an_entry() {
        assert_eq!(SUBJECT.iter().map(|n| n.1).sum::<u32>(), ENTRY);
        assert_eq!(COUNTER.iter().map(|n| n.1).sum::<u32>(), ENTRY);
    }

    #[test]
    fn two_voices_enter_one_after_the_other() {
        let rate = 16000;
        let sound = fugue_subject(rate, 7.0);
        assert_eq!((sound.samples.len(), sound.rate), (112_000, rate));
        assert_eq!(sound.about, "synthesised fugue subject, mono, 16000 Hz, 7.0 s");
        let largest = sound.samples.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!((largest - PEAK).abs() < 1e-12, "{largest}");
        // The second eighth of the subject is an A; of the answer an E, above the first voice's G.
        let eighth = |n: f64| {
            let start = ((n * EIGHTH + 0.01) * f64::from(rate)) as usize;
            &sound.samples[start..start + 3000]
        };
        let (a, e, g) = (440.0, 659.255, 195.998);
        let alone = eighth(1.0);
        assert!(strength(alone, rate, a) > 0.03, "{}", strength(alone, rate, a));
        assert!(strength(alone, rate, g) < 0.1 * strength(alone, rate, a));
        let both = eighth(f64::from(ENTRY) + 1.0);
        assert!(strength(both, rate, e) > 0.03 && strength(both, rate, g) > 0.03);
        assert!(strength(both, rate, a) < 0.3 * strength(both, rate, e));
    }

    #[test]
    fn it_is_the_same_each_time_and_from_the_beginning() {
        let (long, short) = (fugue_subject(8000, 5.0), fugue_subject(8000, 0.3));
        assert_eq!(long, fugue_subject(8000, 5.0));
        let scale = long.samples[700] / short.samples[700];
        assert_eq!(short.samples.len(), 2400);
        assert!(short.samples.iter().zip(&long.samples).all(|(s, l)| (s * scale - l).abs() < 1e-12));
        assert!(fugue_subject(8000, 0.0).samples.is_empty() && fugue_subject(8000, f64::NAN).samples.is_empty());
    }
}
