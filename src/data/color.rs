//! sRGB and CIELAB, as `skimage.color.rgb2lab` and `lab2rgb` turn one into the other: D65, the 2 degree observer.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::data::color::{lab_to_rgb, rgb_to_lab};
//! let white = Array3::from_elem((1, 1, 3), 1.0);
//! let lab = rgb_to_lab(white.view());
//! assert!((lab[[0, 0, 0]] - 100.0).abs() < 1e-6 && lab[[0, 0, 1]].abs() < 1e-2);
//! assert!(lab_to_rgb(lab.view()).iter().all(|v| (v - 1.0).abs() < 1e-6));
//! ```

use ndarray::{Array3, ArrayView3, Axis};

/// XYZ of linear sRGB.
const XYZ_FROM_RGB: [[f64; 3]; 3] =
    [[0.412453, 0.35758, 0.180423], [0.212671, 0.71516, 0.072169], [0.019334, 0.119193, 0.950227]];
/// Its inverse.
const RGB_FROM_XYZ: [[f64; 3]; 3] = [
    [3.2404813432005266, -1.5371515162713183, -0.4985363261688878],
    [-0.9692549499965682, 1.8759900014898907, 0.04155592655829284],
    [0.055646639135177166, -0.20404133836651123, 1.0573110696453443],
];
/// XYZ of white.
const WHITE: [f64; 3] = [0.95047, 1.0, 1.08883];

/// CIELAB of an sRGB picture `(h, w, 3)` in [0, 1]: L in [0, 100], a and b within about [-110, 110].
///
/// **Panics** unless there are three channels.
pub fn rgb_to_lab(rgb: ArrayView3<f64>) -> Array3<f64> {
    each_pixel(rgb, |rgb| {
        let xyz = times(&XYZ_FROM_RGB, rgb.map(linear));
        let [x, y, z] = [0, 1, 2].map(|i| lightness(xyz[i] / WHITE[i]));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    })
}

/// sRGB of a CIELAB picture `(h, w, 3)`; colours that sRGB does not have are clipped to [0, 1] channel by channel.
///
/// **Panics** unless there are three channels.
pub fn lab_to_rgb(lab: ArrayView3<f64>) -> Array3<f64> {
    each_pixel(lab, |[l, a, b]| {
        let y = (l + 16.0) / 116.0;
        let xyz = [a / 500.0 + y, y, (y - b / 200.0).max(0.0)];
        let xyz = [0, 1, 2].map(|i| WHITE[i] * from_lightness(xyz[i]));
        times(&RGB_FROM_XYZ, xyz).map(|v| gamma(v).clamp(0.0, 1.0))
    })
}

/// sRGB's curve, undone.
fn linear(v: f64) -> f64 {
    if v > 0.04045 { ((v + 0.055) / 1.055).powf(2.4) } else { v / 12.92 }
}

fn gamma(v: f64) -> f64 {
    if v > 0.0031308 { 1.055 * v.powf(1.0 / 2.4) - 0.055 } else { 12.92 * v }
}

/// CIELAB's curve: a cube root with a straight foot.
fn lightness(v: f64) -> f64 {
    if v > 0.008856 { v.cbrt() } else { 7.787 * v + 16.0 / 116.0 }
}

fn from_lightness(v: f64) -> f64 {
    if v > 0.2068966 { v.powi(3) } else { (v - 16.0 / 116.0) / 7.787 }
}

fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

fn each_pixel(picture: ArrayView3<f64>, f: impl Fn([f64; 3]) -> [f64; 3]) -> Array3<f64> {
    assert_eq!(picture.dim().2, 3, "a colour picture has three channels, not {}", picture.dim().2);
    let mut out = picture.to_owned();
    for mut pixel in out.lanes_mut(Axis(2)) {
        let new = f([pixel[0], pixel[1], pixel[2]]);
        pixel.iter_mut().zip(new).for_each(|(old, new)| *old = new);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pixels: &[[f64; 3]]) -> Array3<f64> {
        Array3::from_shape_vec((1, pixels.len(), 3), pixels.concat()).expect("three channels")
    }

    fn close(got: &Array3<f64>, want: &[[f64; 3]], tolerance: f64) {
        for (g, w) in got.iter().zip(want.concat()) {
            assert!((g - w).abs() <= tolerance, "{got} for {want:?}");
        }
    }

    /// Expected values here and below by scikit-image 0.26.0, whose white is not quite its matrix's.
    #[test]
    fn lab_of_colours() {
        let colours = [
            [0.0, 0.0, 0.0],
            [1.0, 1.0, 1.0],
            [0.5, 0.25, 0.75],
            [0.01, 0.02, 0.03],
            [1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
        ];
        let lab = [
            [0.0, 0.0, 0.0],
            [100.0, -0.0024549378620508655, 0.004653421154054982],
            [41.15482443350158, 51.408966255579365, -56.44527965897671],
            [1.3000539221486065, -0.31235027728143683, -1.1997649952041],
            [53.2405879437449, 80.0923082256922, 67.2027510444287],
            [87.73509948831895, -86.18302974439501, 83.17970317538452],
            [32.29567256501351, 79.18559091176556, -107.85730020669489],
        ];
        close(&rgb_to_lab(row(&colours).view()), &lab, 1e-12);
        close(&lab_to_rgb(row(&lab).view()), &colours, 1e-6);
    }

    #[test]
    fn colours_beyond_srgb_are_clipped() {
        let lab =
            [[50.0, 20.0, -30.0], [100.0, 0.0, 0.0], [30.0, -100.0, 90.0], [4.0, 1.0, 60.0], [95.0, -10.0, -60.0]];
        let rgb = [
            [0.4963614436870913, 0.4292576410173743, 0.6668388990840572],
            [1.0, 0.9999954233438438, 1.0],
            [0.0, 0.36436478434085645, 0.0],
            [0.13929251439135598, 0.041194771186089336, 0.0],
            [0.36277765386880295, 0.9893465535893636, 1.0],
        ];
        close(&lab_to_rgb(row(&lab).view()), &rgb, 1e-13);
    }

    #[test]
    #[should_panic(expected = "three channels, not 1")]
    fn one_channel_has_no_colour() {
        rgb_to_lab(Array3::zeros((2, 2, 1)).view());
    }
}
