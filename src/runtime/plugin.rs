//! PJRT plugins: finding them in pip packages, and loading them with a reason when they do not load.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::device::is_verbose;
use super::quiet::quietly;
use super::{DeviceOptions, xla_error};
use crate::error::{Error, Result};
use crate::files::ensure_writable_folder;

/// A plugin found on this machine.
#[derive(Clone, Debug)]
pub struct PluginFile {
    /// The device name that opens it: `cuda` or `tpu`.
    pub device: &'static str,
    /// The shared library.
    pub path: PathBuf,
}

/// Where the pip packages put their plugins, below a site-packages folder, the preferred one first.
const FILES: [(&str, &str); 3] = [
    ("cuda", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"),
    ("cuda", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"),
    ("tpu", "libtpu/libtpu.so"),
];

/// Every plugin found in the site-packages folders.
pub fn find_plugins() -> Vec<PluginFile> {
    candidates().into_iter().filter(|p| p.path.is_file()).collect()
}

/// Every place where a plugin could be, the preferred file of a device first.
fn candidates() -> Vec<PluginFile> {
    let sites = site_packages();
    let places = FILES.iter().flat_map(|&(device, file)| sites.iter().map(move |s| (device, s.join(file))));
    places.map(|(device, path)| PluginFile { device, path }).collect()
}

/// The plugin of `cuda` or `tpu`. The error lists the places tried and what to install, or says that there is no TPU.
pub(super) fn find(device: &str) -> Result<PathBuf> {
    if device == "tpu" && !has_pci_device(GOOGLE) {
        // libtpu would ask the cloud's metadata server for minutes first.
        let reason = "this machine has no TPU: there is no PCI device of Google's; plugin:/path/to/libtpu.so starts the plugin all the same";
        return Err(Error::Device { device: device.into(), reason: reason.into() });
    }
    let mut places: Vec<PathBuf> = candidates().into_iter().filter(|p| p.device == device).map(|p| p.path).collect();
    let found = places.iter().position(|p| p.is_file());
    found.map(|i| places.swap_remove(i)).ok_or_else(|| {
        let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        let package = if device == "tpu" { "libtpu" } else { "jax-cuda13-pjrt or jax-cuda12-pjrt" };
        let tried = if places.is_empty() { "no site-packages folder was found".into() } else { places.join(", ") };
        Error::Device {
            device: device.into(),
            reason: format!(
                "no plugin found; run ./setup --{device}, or install the pip package {package}. Tried: {tried}"
            ),
        }
    })
}

/// Vendor number of TPUs.
const GOOGLE: &str = "0x1ae0";

/// Whether the kernel lists a PCI device of this vendor. Where it has no list, one may be there.
fn has_pci_device(vendor: &str) -> bool {
    let Ok(devices) = std::fs::read_dir("/sys/bus/pci/devices") else { return true };
    let of = |path: PathBuf| std::fs::read_to_string(path.join("vendor")).is_ok_and(|v| v.trim() == vendor);
    devices.flatten().any(|device| of(device.path()))
}

/// What `./setup --cuda` and `--tpu` installed, and the site-packages of the active virtual environment, of `./.venv`, and
/// of `python3` on the path.
fn site_packages() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".plugins");
    let mut folders: Vec<PathBuf> = ["cuda", "tpu"].map(|device| own.join(device)).into();
    folders.retain(|folder| folder.is_dir());
    let environments = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().chain([PathBuf::from(".venv")]);
    for lib in environments.map(|e| e.join("lib")) {
        let Ok(entries) = std::fs::read_dir(&lib) else { continue };
        folders.extend(entries.flatten().map(|e| e.path().join("site-packages")).filter(|p| p.is_dir()));
    }
    let script = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))";
    if let Ok(output) = Command::new("python3").args(["-c", script]).output() {
        folders.extend(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).filter(|p| p.is_dir()));
    }
    folders
}

/// Loads the plugin and starts its client.
pub(super) fn client(name: &str, path: &Path, options: &DeviceOptions) -> Result<xla::PjRtClient> {
    let refuse = |reason: String| Error::Device { device: name.into(), reason };
    let path = path.canonicalize().map_err(|e| refuse(format!("{}: {e}", path.display())))?;
    // The crate hands paths on as text.
    let text = path.to_str().ok_or_else(|| refuse(format!("{}: give a path that is valid UTF-8", path.display())))?;
    check_library(&path).map_err(|reason| refuse(format!("{}: {reason}", path.display())))?;
    let mut settings: Vec<(&str, xla::PluginOption)> = Vec::new();
    // A plugin refuses options that it does not know.
    if name != "tpu" {
        if let Some(fraction) = options.memory_fraction {
            settings.push(("memory_fraction", xla::PluginOption::Float(fraction)));
        }
        if let Some(preallocate) = options.preallocate {
            settings.push(("preallocate", xla::PluginOption::Bool(preallocate)));
        }
    }
    if let (Some(count), false) = (options.cpu_devices, matches!(name, "cuda" | "tpu")) {
        settings.push(("cpu_device_count", xla::PluginOption::Int(count as i64)));
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "cuda" || file.contains("cuda") {
        if options.deterministic {
            add_xla_flag("--xla_gpu_deterministic_ops=true");
        }
        if let Some(folder) = &options.autotune_cache {
            ensure_writable_folder(folder)?;
            let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            add_xla_flag(&format!("--xla_gpu_per_fusion_autotune_cache_dir={}", whole.display()));
        }
    }
    // Looking a plugin up, loading and initialising it are separate steps inside the crate: one thread at a time.
    static LOADING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    let registered = registry_name(text);
    xla::PjRtClient::plugin_with_options(&registered, &path, &settings).map_err(|e| match xla_error(e) {
        Error::Xla(reason) => {
            let reason = reason.strip_prefix(&format!("{text}: ")).unwrap_or(&reason);
            refuse(format!("{text} refused to start: {reason}"))
        }
        other => other,
    })
}

/// The plugin's name in XLA's registry, which compares names without case and silently gives the first library when a
/// name is there already, whatever the path: paths that differ give names that differ, so a capital A becomes `^a`.
fn registry_name(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    for c in path.chars() {
        if c == '^' || c.is_ascii_uppercase() {
            name.push('^');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// Appends to XLA_FLAGS, which XLA reads when its first client starts.
fn add_xla_flag(flag: &str) {
    let mut flags = std::env::var("XLA_FLAGS").unwrap_or_default();
    if !flags.contains(flag) {
        flags = format!("{flags} {flag}");
        // SAFETY: called while a device is opened, before XLA's threads read the environment.
        unsafe { std::env::set_var("XLA_FLAGS", flags.trim()) };
    }
}

/// Whether the file is a shared library that exports `GetPjrtApi`; the loader's own reason when not.
fn check_library(path: &Path) -> std::result::Result<(), String> {
    let file = CString::new(path.to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: dlopen, dlsym and dlerror with valid C strings; the handle is kept open, as the client needs it anyway.
    unsafe {
        let load = || libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        let library = if is_verbose() { load() } else { quietly(load) };
        if library.is_null() {
            let reason = libc::dlerror();
            let known = !reason.is_null();
            return Err(if known { CStr::from_ptr(reason).to_string_lossy().into() } else { "does not load".into() });
        }
        if libc::dlsym(library, c"GetPjrtApi".as_ptr()).is_null() {
            libc::dlclose(library);
            return Err("is not a PJRT plugin: it does not export GetPjrtApi".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::registry_name;

    #[test]
    fn different_paths_have_different_names_even_without_case() {
        let paths = ["/a/b-c.so", "/a/b_c.so", "/A/b_c.so", "/a/B_c.so", "/^a/b_c.so", "/^A/b_c.so", "/^^a/b_c.so"];
        let names: std::collections::BTreeSet<String> =
            paths.iter().map(|p| registry_name(p).to_ascii_lowercase()).collect();
        assert_eq!(names.len(), paths.len(), "{names:?}");
    }
}
