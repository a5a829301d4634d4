//! What the programs in `experiments/` run, by paper: [`siren`] fits pictures and sounds, [`sel`] trains language models.
//!
//! Both make lists of resolved configurations, train what is not done yet, and turn the results into a paper's tables and
//! figures. What they share lies beside them: presets, summaries over seeds, and where results go.

mod output;
mod preset;
pub mod sel;
pub mod siren;
mod summary;

pub use preset::Preset;
pub use siren::{
    Cameraman, Color, Field, FieldId, Keep, METHODS, Method, OmegaArguments, OmegaSweep, Outcome, PAPER_OMEGA0,
    RunConfig, Runner, Samples, SirenArguments, Sizes, audio, background, field_of_file, mup,
};
pub use summary::Summary;
