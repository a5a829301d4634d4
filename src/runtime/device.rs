//! Devices: where programs are compiled and run.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use super::{Buffer, Executable, plugin, xla_error};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Program;

static VERBOSE: AtomicBool = AtomicBool::new(false);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Whether XLA's own log lines are shown. Off by default; takes effect at the first [`Device::open`].
pub fn set_verbose(verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
}

pub(super) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Silences XLA's two loggers, once, unless asked not to.
pub(super) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if !is_verbose() {
            xla::set_tf_min_log_level(xla::TfLogLevel::Fatal);
            xla::set_min_log_level(xla::TfLogLevel::Fatal);
        }
    });
}

/// Makes the C allocator keep large blocks instead of returning them to the kernel after every step: on CPU a training
/// step otherwise spends 12-20 % of its time on fresh pages. Call it first thing in `main`; the process holds its peak
/// memory from then on.
pub fn tune_allocator() {
    // SAFETY: mallopt only sets parameters of the allocator; it is called before threads are started.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 256 << 20);
    }
}

/// The folder that XLA was linked from.
pub fn xla_folder() -> &'static str {
    env!("SINEXP_XLA_FOLDER")
}

/// The packages that `./setup` assembled that folder from, as (name, version); empty for an official build, which does
/// not say. The library itself has no version.
pub fn xla_packages() -> Vec<(String, String)> {
    let list = Path::new(xla_folder()).with_file_name("versions");
    let list = std::fs::read_to_string(list).unwrap_or_default();
    list.lines().filter_map(|line| line.split_once(' ')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

/// Choices when a device is opened. `cpu`, `cuda` and `tpu` ignore those that do not concern them; a `plugin:` device is
/// handed all that are set, and refuses one that it does not know.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// GPU: share of the memory that the allocator may take, in (0, 1] (XLA's default is 0.75).
    pub memory_fraction: Option<f32>,
    /// GPU: whether it takes that share at once (XLA's default) or as needed.
    pub preallocate: Option<bool>,
    /// GPU: only kernels whose results do not vary from run to run (`--xla_gpu_deterministic_ops`). CPU is exact anyway.
    pub deterministic: bool,
    /// GPU: folder that keeps what autotuning chose, made if need be (`--xla_gpu_per_fusion_autotune_cache_dir`). With it the same
    /// program is the same kernels in every process.
    pub autotune_cache: Option<PathBuf>,
    /// CPU plugins: how many virtual devices (1 is the fastest on few cores).
    pub cpu_devices: Option<usize>,
}

/// A number that no other opened device or group has.
pub(super) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

struct Inner {
    client: xla::PjRtClient,
    name: String,
    id: u64,
    plugin: Option<PathBuf>,
    /// Held while a program is started on several of its devices.
    launch: Mutex<()>,
}

/// A device that was opened. Cheap to clone; buffers and executables of different opened devices do not mix.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

impl Device {
    /// Opens a device by name, with default [`DeviceOptions`]:
    ///
    /// * `cpu`: in this process, all cores; opened once and shared.
    /// * `cuda`, `tpu`: the PJRT plugin of the pip packages jax-cuda13-pjrt, jax-cuda12-pjrt or libtpu, looked for in
    ///   `$VIRTUAL_ENV`, `.venv` and the site-packages of `python3`.
    /// * `plugin:/path/to/plugin.so`: any PJRT plugin.
    ///
    /// **Errors** say what is missing, the places tried and the loader's reason. There is no falling back to another
    /// device.
    pub fn open(name: &str) -> Result<Device> {
        Device::open_with(name, &DeviceOptions::default())
    }

    /// [`Device::open`] with options.
    pub fn open_with(name: &str, options: &DeviceOptions) -> Result<Device> {
        quiet();
        if let Some(fraction) = options.memory_fraction.filter(|f| !(*f > 0.0 && *f <= 1.0)) {
            return Err(Error::argument("--memory-fraction", fraction, "expected more than 0, at most 1"));
        }
        match name {
            "cpu" => {
                static CPU: OnceLock<Device> = OnceLock::new();
                if let Some(device) = CPU.get() {
                    return Ok(device.clone());
                }
                let client = xla::PjRtClient::cpu().map_err(xla_error)?;
                Ok(CPU.get_or_init(|| Device::new(client, name, None)).clone())
            }
            "cuda" | "tpu" => Device::open_plugin(name, plugin::find(name)?, options),
            _ => match name.strip_prefix("plugin:") {
                Some(path) => Device::open_plugin(name, PathBuf::from(path), options),
                None => Err(Error::argument("device", name, "expected cpu, cuda, tpu or plugin:/path/to/plugin.so")),
            },
        }
    }

    fn open_plugin(name: &str, path: PathBuf, options: &DeviceOptions) -> Result<Device> {
        let client = plugin::client(name, &path, options)?;
        Ok(Device::new(client, name, Some(path)))
    }

    fn new(client: xla::PjRtClient, name: &str, plugin: Option<PathBuf>) -> Device {
        Device(Arc::new(Inner { client, name: name.to_string(), id: next_id(), plugin, launch: Mutex::default() }))
    }

    pub(super) fn client(&self) -> &xla::PjRtClient {
        &self.0.client
    }

    pub(super) fn id(&self) -> u64 {
        self.0.id
    }

    /// Keeps other threads from starting replicated programs, whose collectives must come in one order on all devices.
    pub(super) fn launch(&self) -> MutexGuard<'_, ()> {
        self.0.launch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name it was opened by.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The plugin's file, where it is one.
    pub fn plugin(&self) -> Option<&Path> {
        self.0.plugin.as_deref()
    }

    /// XLA's name of the platform, in lower case: `cpu`, `cuda`, `tpu`.
    pub fn platform(&self) -> String {
        self.0.client.platform_name().to_lowercase()
    }

    /// The platform's version line.
    pub fn platform_version(&self) -> String {
        self.0.client.platform_version()
    }

    /// Its name, platform and version in one line, for run records.
    pub fn describe(&self) -> String {
        format!("{} ({}, {})", self.name(), self.platform(), self.platform_version())
    }

    /// How many devices a replicated program could use.
    pub fn device_count(&self) -> usize {
        self.0.client.addressable_device_count()
    }

    /// Whether programs run on the host's cores, where [`fast_sine`](crate::transform::fast_sine) pays.
    pub fn is_cpu(&self) -> bool {
        matches!(self.platform().as_str(), "cpu" | "host")
    }

    /// Compiles a program.
    pub fn compile(&self, program: &Program) -> Result<Executable> {
        Executable::compile(self, program)
    }

    /// Copies a host tensor to the device.
    pub fn put(&self, array: &Array) -> Result<Buffer> {
        Buffer::from_host(self, array)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.0.name)
    }
}
