//! How large an experiment is: the three names that all experiments share.

use clap::ValueEnum;

/// How large an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Seconds: does it run at all.
    Smoke,
    /// Minutes to hours on two cores.
    Cpu,
    /// The paper's own sizes.
    Paper,
}

impl Preset {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Smoke => "smoke",
            Preset::Cpu => "cpu",
            Preset::Paper => "paper",
        }
    }
}
