//! Fields to fit: a picture or a sound as training and evaluation samples on coordinate grids (2609.30633, Appendix C).

use std::f64::consts::PI;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, ArrayD, ArrayView3};
use serde::Serialize;

use crate::analysis::moments::{Moments, moments};
use crate::array::Array;
use crate::data::audio::Sound;
use crate::data::color::{lab_to_rgb, rgb_to_lab};
use crate::data::datasets;
use crate::data::grid::{coordinates, spacing};
use crate::data::image::{Alpha, Picture, to_rgb8};
use crate::data::resize::{fit_within, resize};
use crate::error::{Error, Result};
use crate::report::Raster;

/// The paper's omega0 for pictures, 64 pi / sqrt 6.
pub const PAPER_OMEGA0: f64 = 64.0 * PI / 2.449_489_742_783_178;

/// The channels a picture is fitted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// Luminance in [0, 1].
    Gray,
    /// Red, green, blue in [0, 1].
    Rgb,
    /// CIELAB, D65: L in [0, 100], a and b about [-100, 100].
    Lab,
}

/// Which field, at which sizes: part of a run's configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldId {
    /// `camera`, `bach` ...
    pub name: String,
    /// None for a sound.
    pub color: Option<Color>,
    /// SHA-256 of the file it was read from, or of the synthesised sound's name.
    pub sha256: String,
    /// Largest dimension of the training grid; for a sound the number of samples.
    pub train_size: usize,
    /// Largest dimension of the evaluation grid.
    pub eval_size: usize,
}

/// Values on a grid.
pub struct Samples {
    /// Coordinates, (samples, N_in), f32.
    pub x: Array,
    /// Values, (samples, N_out).
    pub y: Array2<f32>,
    /// Samples along each grid dimension.
    pub shape: Vec<usize>,
}

impl Samples {
    fn new(values: &ArrayD<f64>, range: (f64, f64)) -> Result<Self> {
        let (grid, channels) = (&values.shape()[..values.ndim() - 1], values.shape()[values.ndim() - 1]);
        let x = coordinates(grid, range.0, range.1).mapv(|v| v as f32);
        let y = Array2::from_shape_vec((x.nrows(), channels), values.iter().map(|v| *v as f32).collect());
        let y = y.map_err(|e| Error::numeric("samples", e))?;
        Ok(Samples { x: Array::from_ndarray(&x), y, shape: grid.to_vec() })
    }
}

/// A field, ready to be fitted.
pub struct Field {
    /// Name, source and sizes.
    pub id: FieldId,
    /// What it was read from, for people: format, size, what was done to it.
    pub about: String,
    /// What is fitted.
    pub train: Samples,
    /// What the fit is measured on; the training samples where None.
    eval: Option<Samples>,
    moments: std::result::Result<Moments, String>,
    /// Samples per second of a sound.
    pub rate: Option<u32>,
    /// Factor that undoes a sound's normalisation.
    pub peak: f64,
}

/// What helps where there are no moments.
const NEEDS_NONE: &str = "an initialisation that needs none, as sm20";
/// Coordinates of pictures.
const UNIT: (f64, f64) = (-1.0, 1.0);
/// Coordinates of sounds.
const AUDIO: (f64, f64) = (-100.0, 100.0);

impl Field {
    /// A picture: resized with anti-aliasing so that its larger side is `train_size` for training and `eval_size` for
    /// evaluation (0: as it is), then turned into `color` (None: gray where every pixel is, else RGB), on an
    /// endpoint-inclusive grid on [-1, 1]^2.
    ///
    /// **Errors** when the file cannot be read as a picture.
    pub fn picture(
        name: &str,
        path: &Path,
        color: Option<Color>,
        (train_size, eval_size): (usize, usize),
        alpha: Alpha,
    ) -> Result<Self> {
        let picture = Picture::read(path, alpha)?;
        let gray = picture.pixels.rows().into_iter().all(|pixel| pixel.iter().all(|v| *v == pixel[0]));
        let fitted_gray = (color.is_none() && gray && picture.pixels.dim().2 > 1)
            .then(|| "every pixel is gray: fitted as one channel".to_owned());
        let color = color.unwrap_or(if gray { Color::Gray } else { Color::Rgb });
        let pixels = if color == Color::Gray { picture.gray() } else { colored(&picture.pixels) };
        let sized = |size: usize| {
            let (h, w, _) = pixels.dim();
            let size = if size == 0 { h.max(w) } else { size };
            let resized = resize(pixels.view(), fit_within(h, w, size));
            if color == Color::Lab { rgb_to_lab(resized.view()) } else { resized }
        };
        let (train, eval) = (sized(train_size), sized(eval_size));
        let grid = [train.dim().0, train.dim().1];
        let train = train.into_dyn();
        let moments = match gray && color != Color::Gray {
            // Lab's a and b of gray are rounding, which would be taken for a field.
            true => {
                Err(format!("every pixel is gray, so its channels say the same; choose --color gray or {NEEDS_NONE}"))
            }
            false => {
                moments(train.view(), &spacing(&grid, UNIT.0, UNIT.1)).map_err(|e| format!("{e}; choose {NEEDS_NONE}"))
            }
        };
        let id = FieldId {
            name: name.to_owned(),
            color: Some(color),
            sha256: datasets::sha256(path)?,
            train_size,
            eval_size,
        };
        let about = [vec![picture.about], picture.notes, fitted_gray.into_iter().collect()].concat().join("; ");
        Ok(Field {
            id,
            about,
            train: Samples::new(&train, UNIT)?,
            eval: Some(Samples::new(&eval.into_dyn(), UNIT)?),
            moments,
            rate: None,
            peak: 1.0,
        })
    }

    /// A sound: mono, divided by its largest magnitude, on an endpoint-inclusive grid on [-100, 100]. Every `stride`-th
    /// sample is used (1: all). Training and evaluation are the same samples.
    ///
    /// **Errors** when the sound is silent.
    pub fn sound(name: &str, sound: &Sound, sha256: String, stride: usize) -> Result<Self> {
        let stride = stride.max(1);
        let y: Vec<f64> = sound.normalized()?.into_iter().step_by(stride).collect();
        let n = y.len();
        let values = ArrayD::from_shape_vec(vec![n, 1], y).map_err(|e| Error::numeric("sound", e))?;
        let moments =
            moments(values.view(), &spacing(&[n], AUDIO.0, AUDIO.1)).map_err(|e| format!("{e}; choose {NEEDS_NONE}"));
        let id = FieldId { name: name.to_owned(), color: None, sha256, train_size: n, eval_size: n };
        Ok(Field {
            id,
            about: sound.about.clone(),
            train: Samples::new(&values, AUDIO)?,
            eval: None,
            moments,
            rate: Some((sound.rate / stride as u32).max(1)),
            peak: sound.samples.iter().fold(0.0, |m, v| f64::max(m, v.abs())),
        })
    }

    /// What the fit is measured on.
    pub fn eval(&self) -> &Samples {
        self.eval.as_ref().unwrap_or(&self.train)
    }

    /// Moments of the training samples.
    ///
    /// **Errors** when there are none to match: a constant field, one sample.
    pub fn moments(&self) -> Result<&Moments> {
        self.moments.as_ref().map_err(|e| {
            let reason = format!("no moments to match: {}", e.trim_start_matches("moments: "));
            Error::numeric(format!("field `{}`", self.id.name), reason)
        })
    }

    /// The input layer's frequency where none is given: the paper's for pictures, 30 for sounds.
    pub fn omega0(&self) -> f64 {
        if self.rate.is_some() { 30.0 } else { PAPER_OMEGA0 }
    }

    /// Values on a grid of `shape` as RGB pixels in [0, 1], (h, w, 3), or (h, w, 1) for gray.
    pub fn pixels(&self, values: &Array2<f32>, shape: &[usize]) -> Result<Array3<f64>> {
        let &[h, w] = shape else { return Err(Error::numeric("picture", format!("a grid of shape {shape:?}"))) };
        let values = values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
        let channels = values.len() / (h * w).max(1);
        let pixels = Array3::from_shape_vec((h, w, channels), values).map_err(|e| Error::numeric("picture", e))?;
        let pixels = if self.id.color == Some(Color::Lab) { lab_to_rgb(pixels.view()) } else { pixels };
        Ok(pixels.mapv(|v| v.clamp(0.0, 1.0)))
    }

    /// [`Field::pixels`] for a figure.
    pub fn raster(&self, values: &Array2<f32>, shape: &[usize]) -> Result<Raster> {
        raster(self.pixels(values, shape)?.view())
    }
}

/// Pixels in [0, 1] for a figure.
pub(super) fn raster(pixels: ArrayView3<f64>) -> Result<Raster> {
    let (h, w, _) = pixels.dim();
    Ok(Raster::new(w, h, to_rgb8(pixels))?)
}

/// A gray picture's one channel three times.
fn colored(pixels: &Array3<f64>) -> Array3<f64> {
    let (h, w, c) = pixels.dim();
    if c == 3 { pixels.clone() } else { Array3::from_shape_fn((h, w, 3), |(i, j, _)| pixels[[i, j, 0]]) }
}

impl Field {
    /// One of the paper's pictures, or the file that `given` names for it.
    ///
    /// **Errors** when it is not there, saying where to get it.
    pub fn named(name: &str, color: Color, sizes: (usize, usize), given: &[(String, PathBuf)]) -> Result<Self> {
        Field::picture(name, &datasets::image(name, given)?, Some(color), sizes, Alpha::Refuse)
    }
}

/// The user's own picture or sound: a sound where the file begins like one (or is named like one), else a picture.
/// `color` None takes gray for a gray picture and RGB for one in colour.
///
/// **Errors** when it can be read as neither, and when `color` or a background is given for a sound.
pub fn field_of_file(path: &Path, color: Option<Color>, sizes: (usize, usize), alpha: Alpha) -> Result<Field> {
    if path.is_dir() {
        return Err(Error::file(path, "is a folder; give a picture (PNG, JPEG) or a sound (WAV)"));
    }
    let name = path.file_stem().map_or_else(|| "field".into(), |s| s.to_string_lossy().into_owned());
    match kind(path) {
        Kind::Sound => {}
        Kind::Picture => return Field::picture(&name, path, color, sizes, alpha),
        Kind::Heic => return Err(Error::file(path, "is a HEIC picture, as phones take; convert it to JPEG or PNG")),
        Kind::Unknown => return Err(Error::file(path, "is neither a picture (PNG, JPEG) nor a sound (WAV)")),
    }
    let sound = Sound::read(path)?;
    let color = color.map(|c| ("--color", format!("{c:?}").to_lowercase()));
    let background = match alpha {
        Alpha::Over(back) => Some(("--background", back.map(|v| (255.0 * v).round().to_string()).join(","))),
        Alpha::Refuse => None,
    };
    if let Some((option, value)) = color.or(background) {
        return Err(Error::argument(option, value, format!("is for pictures; {} is a sound", path.display())));
    }
    // What is wrong with its samples is said without its name.
    Field::sound(&name, &sound, datasets::sha256(path)?, 1).map_err(|e| Error::file(path, e))
}

/// What a file looks like.
enum Kind {
    Sound,
    Picture,
    Heic,
    Unknown,
}

/// By the first bytes, then by the name; what cannot be read counts as a picture, whose reader says why.
fn kind(path: &Path) -> Kind {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|f| f.take(12).read_to_end(&mut start));
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match start.as_slice() {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => Kind::Sound,
        [b'I', b'D', b'3', ..] | [b'f', b'L', b'a', b'C', ..] | [b'O', b'g', b'g', b'S', ..] => Kind::Sound,
        [b'F', b'O', b'R', b'M', ..] => Kind::Sound,
        [_, _, _, _, b'f', b't', b'y', b'p', b'h' | b'm', b'e' | b'i', b'i' | b'v' | b'f', ..] => Kind::Heic,
        [_, _, _, _, b'f', b't', b'y', b'p', b'M' | b'i' | b'm', ..] => Kind::Sound,
        _ if matches!(extension.as_str(), "wav" | "wave" | "mp3" | "flac" | "ogg" | "m4a" | "aac" | "aif" | "aiff") => {
            Kind::Sound
        }
        [] => Kind::Picture,
        bytes if read.is_ok() && image::guess_format(bytes).is_err() => Kind::Unknown,
        _ => Kind::Picture,
    }
}

/// What shows through transparent pixels, from a command line: `white`, `black` or `R,G,B` from 0 to 255.
///
/// **Errors** say what is accepted.
pub fn background(text: &str) -> Result<Alpha, String> {
    let number = |t: &str| t.trim().parse::<u8>().ok().map(|v| f64::from(v) / 255.0);
    match (text, text.split(',').map(number).collect::<Option<Vec<f64>>>().as_deref()) {
        ("white", _) => Ok(Alpha::Over([1.0; 3])),
        ("black", _) => Ok(Alpha::Over([0.0; 3])),
        (_, Some(&[r, g, b])) => Ok(Alpha::Over([r, g, b])),
        _ => Err("give white, black or R,G,B from 0 to 255".into()),
    }
}
