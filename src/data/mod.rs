//! Pictures and sounds: files in, samples on coordinate grids out. Text: files in, batches of tokens out.
//!
//! ```
//! use ndarray::Array3;
//! use sinexp::data::{grid, resize};
//! let picture = Array3::from_elem((64, 48, 3), 0.5);
//! let (height, width) = resize::fit_within(64, 48, 32);
//! let small = resize::resize(picture.view(), (height, width));
//! assert_eq!(small.dim(), (32, 24, 3));
//! // What a network takes in: row and column of each pixel, on [-1, 1].
//! assert_eq!(grid::coordinates(&[height, width], -1.0, 1.0).dim(), (32 * 24, 2));
//! ```

pub mod audio;
pub mod color;
pub mod datasets;
pub mod grid;
pub mod image;
pub mod resize;
pub mod text;
