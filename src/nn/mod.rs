//! Models and their initialisations, written in graph operations.
//!
//! ```
//! # use ndarray::{Array1, Array2};
//! # use sinexp::array::{Array, DType};
//! # use sinexp::graph::{Program, Shape, Tensor};
//! # use sinexp::{random::Key, runtime::Device};
//! use sinexp::nn::siren_init::{Initialization, Moments};
//! // Moments of a field, a network that starts with them, and the power of its last hidden layer at 200 points.
//! let moments = Moments { mu: Array1::zeros(1), sigma: Array2::eye(1), omega: Array2::eye(1) * 900.0 };
//! let init = Initialization::UniformPhase(moments);
//! let siren = init.siren(1, 64, 3, 1);
//! let weights = init.draw(&siren, Key::new(0))?;
//! let params = siren.inputs(DType::F32);
//! let x = Tensor::parameter("x", Shape::new(DType::F32, &[200, 1]));
//! let power = siren.layers(&params, &x).activations[3].square().mean_all();
//! let inputs: Vec<Tensor> = params.values().cloned().chain([x]).collect();
//! let points = Array::from_ndarray(&Key::new(1).uniform::<f32>(&[200, 1], -1.0, 1.0));
//! let arguments: Vec<&Array> = params.keys().map(|name| &weights[name]).chain([&points]).collect();
//! let found = Device::open("cpu")?.compile(&Program::new("power", &inputs, &[("power", power)])?)?.call(&arguments)?;
//! assert!((found[0].to_f64_vec()[0] - 0.5).abs() < 0.03); // sines of uniform phases, at every depth
//! # Ok::<(), sinexp::error::Error>(())
//! ```

pub mod cvp26;
pub mod init;
pub mod language_model;
pub mod layer_names;
pub mod parameterization;
pub mod sel;
pub mod siren;
pub mod siren_init;
pub mod siren_weights;
pub mod transformer;
