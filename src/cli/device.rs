//! The options that say where a command computes, and how: the same for all commands.

use std::path::PathBuf;

use clap::Args;

use crate::error::Result;
use crate::runtime::{Device, DeviceGroup, DeviceOptions};

/// Where to compute, and how.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    /// Where to compute: cpu, cuda, tpu or plugin:/path/to/plugin.so
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = "Device")]
    device: String,
    /// GPU: only kernels whose results are the same in every run. On a CPU they always are
    #[arg(long, help_heading = "Device")]
    deterministic: bool,
    /// GPU: keeps what autotuning chose in this folder, made if need be, and takes it from there
    #[arg(long, value_name = "FOLDER", help_heading = "Device")]
    autotune_cache: Option<PathBuf>,
    /// GPU: share of the memory that may be used, above 0 up to 1 [default: XLA's, 0.75]
    #[arg(long, value_name = "SHARE", help_heading = "Device")]
    memory_fraction: Option<f32>,
    /// GPU: takes that memory as it is needed and not all at once
    #[arg(long, help_heading = "Device")]
    no_preallocate: bool,
}

impl DeviceArguments {
    /// The device's name as given.
    pub fn name(&self) -> &str {
        &self.device
    }

    /// The options beside the name.
    pub fn options(&self) -> DeviceOptions {
        DeviceOptions {
            memory_fraction: self.memory_fraction,
            preallocate: self.no_preallocate.then_some(false),
            deterministic: self.deterministic,
            autotune_cache: self.autotune_cache.clone(),
            cpu_devices: None,
        }
    }

    /// Opens it: [`Device::open_with`].
    pub fn open(&self) -> Result<Device> {
        Device::open_with(&self.device, &self.options())
    }

    /// Opens so many of its devices: [`DeviceGroup::open`].
    pub fn open_group(&self, replicas: usize) -> Result<DeviceGroup> {
        DeviceGroup::open(&self.device, replicas, &self.options())
    }

    /// The words on the command line that say the same, for a command to go on with; none for the defaults.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.device != "cpu" {
            words.push(format!("--device {}", self.device));
        }
        words.extend(self.deterministic.then(|| "--deterministic".into()));
        words.extend(self.autotune_cache.as_ref().map(|folder| format!("--autotune-cache {}", folder.display())));
        words.extend(self.memory_fraction.map(|share| format!("--memory-fraction {share}")));
        words.extend(self.no_preallocate.then(|| "--no-preallocate".into()));
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        device: DeviceArguments,
    }

    #[test]
    fn the_words_of_options_give_the_same_options() {
        let line = "x --device cuda --deterministic --autotune-cache /tmp/a --memory-fraction 0.5 --no-preallocate";
        let given = Command::parse_from(line.split(' ')).device;
        assert_eq!(given.words().join(" "), line[2..]);
        let options = given.options();
        assert_eq!((options.memory_fraction, options.preallocate), (Some(0.5), Some(false)));
        assert!(options.deterministic && options.autotune_cache.is_some());
        assert!(Command::parse_from(["x"]).device.words().is_empty());
    }

    #[test]
    fn a_share_of_memory_beyond_one_is_refused_on_every_device() {
        for share in ["0", "1.5", "-1", "NaN"] {
            let given = Command::parse_from(["x".into(), format!("--memory-fraction={share}")]).device;
            let refused = given.open().expect_err("no share").to_string();
            assert!(refused.contains("--memory-fraction") && !refused.contains('\n'), "{refused}");
        }
    }
}
