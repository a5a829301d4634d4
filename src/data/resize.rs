//! Pictures at another size, as `skimage.transform.resize(image, to, order=1, anti_aliasing=True)` makes them.
//!
//! Per axis with f = in/out: a Gaussian of sigma = max(0, (f - 1)/2), cut at 4 sigma, then linear interpolation between
//! pixel centres, both reading beyond an edge as in a mirror that stands on the edge pixel (ndimage's `mirror`). Both are
//! linear, so each new row is one weighted sum of old rows: `taps` holds its weights.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::data::resize::{fit_within, resize};
//! assert_eq!(fit_within(512, 384, 128), (128, 96));
//! // Half as large, a chessboard is gray all over: its frequency is above what the small picture can hold.
//! let board = Array3::from_shape_fn((16, 16, 1), |(y, x, _)| ((y + x) % 2) as f64);
//! assert!(resize(board.view(), (8, 8)).iter().all(|v| (v - 0.5).abs() < 1e-12));
//! ```

use std::collections::BTreeMap;

use ndarray::{Array3, ArrayView3, Axis};

/// `image` `(h, w, channels)` at `to` = (height, width) pixels, in f64, clipped to the input's range.
///
/// Larger sizes than the input's are interpolated without smoothing.
///
/// **Panics** when `image` has no pixels.
pub fn resize(image: ArrayView3<f64>, to: (usize, usize)) -> Array3<f64> {
    assert!(!image.is_empty(), "resize: a picture of shape {:?} has no pixels", image.shape());
    let low = image.iter().copied().fold(f64::INFINITY, f64::min);
    let high = image.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let rows = along(image, 0, to.0);
    let mut out = along(rows.view(), 1, to.1);
    out.mapv_inplace(|v| v.max(low).min(high));
    out
}

/// (height, width) when the larger side becomes `largest` and the aspect is kept: each n * largest / max(height, width),
/// rounded half to even, at least 1.
pub fn fit_within(height: usize, width: usize, largest: usize) -> (usize, usize) {
    let scaled = |n: usize| ((n * largest) as f64 / height.max(width) as f64).round_ties_even().max(1.0) as usize;
    (scaled(height), scaled(width))
}

fn along(image: ArrayView3<f64>, axis: usize, size: usize) -> Array3<f64> {
    let mut shape = image.raw_dim();
    let old = shape[axis];
    shape[axis] = size;
    let mut out = Array3::zeros(shape);
    for (mut target, taps) in out.axis_iter_mut(Axis(axis)).zip(taps(old, size)) {
        for (i, weight) in taps {
            target.scaled_add(weight, &image.index_axis(Axis(axis), i));
        }
    }
    out
}

/// For each of `size` new samples: which of the `old` ones it is made of, and their weights, which sum to 1.
fn taps(old: usize, size: usize) -> Vec<BTreeMap<usize, f64>> {
    let factor = old as f64 / size as f64;
    let blur = gaussian((0.5 * (factor - 1.0)).max(0.0));
    let radius = (blur.len() / 2) as isize;
    let new_sample = |o: usize| {
        let centre = mirrored((o as f64 + 0.5) * factor - 0.5, old);
        let (first, beyond) = (centre.floor(), centre - centre.floor());
        let mut taps = BTreeMap::new();
        for (i, share) in [(first as isize, 1.0 - beyond), (first as isize + 1, beyond)] {
            // The neighbour itself may lie beyond the edge, where its own weight is 0 or the mirror's.
            let i = fold(i, old) as isize;
            for (k, weight) in blur.iter().enumerate().filter(|_| share > 0.0) {
                *taps.entry(fold(i + k as isize - radius, old)).or_insert(0.0) += share * weight;
            }
        }
        taps
    };
    (0..size).map(new_sample).collect()
}

/// Normalised weights at -radius ..= radius; one weight of 1 without smoothing.
fn gaussian(sigma: f64) -> Vec<f64> {
    const TRUNCATE: f64 = 4.0;
    const NONE: f64 = 1e-15; // as scipy.ndimage.gaussian_filter leaves an axis alone
    if sigma <= NONE {
        return vec![1.0];
    }
    let radius = (TRUNCATE * sigma + 0.5) as isize;
    let weights: Vec<f64> = (-radius..=radius).map(|x| (-0.5 / (sigma * sigma) * (x * x) as f64).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}

/// The index that a mirror on the first and the last sample shows in place of `i`.
fn fold(i: isize, n: usize) -> usize {
    let last = n as isize - 1;
    if last == 0 {
        return 0;
    }
    let i = i.rem_euclid(2 * last);
    i.min(2 * last - i) as usize
}

/// The same for a place between samples; half a pixel beyond an edge is the furthest asked for.
fn mirrored(x: f64, n: usize) -> f64 {
    let last = n as f64 - 1.0;
    let x = x.abs();
    if x > last { (2.0 * last - x).max(0.0) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Array3<f64>, want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() < 1e-14, "{got} for {want:?}");
        }
    }

    /// Uneven numbers in [0, 1): (37 i + 11 i^2 mod 101) / 101.
    fn numbers(h: usize, w: usize, c: usize) -> Array3<f64> {
        let value = |i: usize| ((37 * i + 11 * i * i) % 101) as f64 / 101.0;
        Array3::from_shape_vec((h, w, c), (0..h * w * c).map(value).collect()).expect("h w c values")
    }

    /// Expected values by scikit-image 0.26.0.
    #[test]
    fn as_scikit_image_does() {
        let resized = |h, w, c, to| resize(numbers(h, w, c).view(), to);
        let thirds = [
            0.3547815356910199,
            0.3626291602775799,
            0.5387144889311704,
            0.2385557320960096,
            0.3285499007449909,
            0.6144136344662282,
            0.5838157168784444,
            0.3892503610943407,
            0.2366441937292284,
            0.2439283905091958,
            0.4903521429797818,
            0.3391869950672434,
        ];
        close(resized(7, 5, 1, (3, 4)), &thirds);
        let up_and_down = [
            0.1165016595895086,
            0.3247524724729542,
            0.2293729361929487,
            0.1537953883090144,
            0.3277227710256551,
            0.3646864636305216,
            0.265676574467532,
            0.3366336666837579,
            0.7706270459432405,
            0.5686468573529573,
            0.3366336666837578,
            0.4676567630578153,
            0.669636951648099,
            0.3366336666837579,
            0.3666666687626736,
        ];
        close(resized(3, 4, 1, (5, 3)), &up_and_down);
        let larger = [
            0.1424092409240924,
            0.0661716171617162,
            0.2186468646864686,
            0.3711221122112212,
            0.2948844884488449,
            0.1420792079207921,
            0.1034653465346535,
            0.1806930693069307,
            0.2579207920792079,
            0.2193069306930693,
            0.1417491749174918,
            0.1407590759075908,
            0.1427392739273927,
            0.1447194719471947,
            0.1437293729372937,
        ];
        close(resized(2, 2, 1, (3, 5)), &larger);
        let channels = [
            0.1820888856782185,
            0.4341401368729464,
            0.4538801728800966,
            0.454641987737690,
            0.4210548587835881,
            0.2761026061856822,
        ];
        close(resized(5, 3, 3, (2, 1)), &channels);
        // Few pixels, where the mirrors see each other.
        close(
            resized(1, 6, 1, (2, 2)),
            &[0.2620126746767414, 0.2590703721963116, 0.2620126746767414, 0.2590703721963116],
        );
        close(resized(23, 1, 1, (1, 1)), &[0.4364499253478484]);
        close(resized(1, 1, 3, (2, 1)), &[0.0, 0.4752475247524752, 0.1683168316831683].repeat(2));
    }

    #[test]
    fn a_constant_stays_and_the_range_holds() {
        let grey = Array3::from_elem((31, 17, 2), 0.3);
        assert!(resize(grey.view(), (7, 40)).iter().all(|v| (v - 0.3).abs() < 1e-15));
        let picture = numbers(20, 20, 1);
        let top = picture.iter().copied().fold(0.0, f64::max);
        assert!(resize(picture.view(), (45, 45)).iter().all(|v| (0.0..=top).contains(v)));
    }

    #[test]
    fn sizes_are_rounded_half_to_even() {
        assert_eq!(fit_within(512, 512, 128), (128, 128));
        assert_eq!(fit_within(300, 400, 128), (96, 128));
        assert_eq!(fit_within(400, 600, 128), (85, 128));
        assert_eq!(fit_within(872, 1000, 128), (112, 128));
        assert_eq!((fit_within(1, 4, 2), fit_within(3, 4, 2), fit_within(5, 2, 5)), ((1, 2), (2, 2), (5, 2)));
        assert_eq!(fit_within(1000, 1, 10), (10, 1));
    }
}
