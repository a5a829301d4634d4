//! What all binaries share: exit codes, one-line errors, progress, the run record.
//!
//! Exit code 0 is success, 2 a mistake the person can mend (an unknown value, a file that does not fit, a folder that
//! cannot be written), 130 a stop by Ctrl-C, 1 a failure of the program. Every error is one line on stderr that starts with `error: `.
//!
//! ```
//! use sinexp::cli::{Progress, RunRecord};
//! let mut record = RunRecord::new("my-experiment", 0, "cpu");
//! record.set("width", 16.into());
//! let mut progress = Progress::new("runs", 2); // a bar on a terminal, plain lines elsewhere
//! progress.step("first");
//! let folder = std::env::temp_dir().join(format!("sinexp-doc-{}", std::process::id()));
//! std::fs::create_dir_all(&folder).unwrap();
//! assert!(record.write(&folder)?.ends_with("run.json"));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), sinexp::error::Error>(())
//! ```

mod device;
mod supervised;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

pub use self::device::DeviceArguments;
pub use self::supervised::supervised;
use crate::error::{Error, Result};
use crate::files::write_bytes;
use crate::runtime::xla_packages;

/// Parses the command line, runs `main` and turns its outcome into an exit code.
pub fn run<A: Parser>(main: impl FnOnce(A) -> anyhow::Result<()>) -> ExitCode {
    run_from(std::env::args_os(), main)
}

fn run_from<A: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    main: impl FnOnce(A) -> anyhow::Result<()>,
) -> ExitCode {
    let outcome = match A::try_parse_from(arguments) {
        Ok(arguments) => main(arguments),
        Err(error) if error.use_stderr() => {
            complain(&match error.kind() {
                // What clap prints here is the whole help.
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => commands_of::<A>(),
                _ => one_line(&error.render().to_string()),
            });
            return ExitCode::from(2);
        }
        Err(help) => {
            say(&help.render().to_string());
            return ExitCode::SUCCESS;
        }
    };
    match outcome {
        Ok(()) if CUT_OFF.load(Ordering::Relaxed) => {
            complain("not all of the output could be written to stdout; is the disk full?");
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&one_line(&format!("{error:#}")));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// One line on stderr, which nobody may read any more (`2>&1 | head`): that ends no work.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "error: {line}");
}

/// Prints a line of what is odd, and no reason to stop, on stderr.
pub fn warn(line: &str) {
    let _ = writeln!(std::io::stderr(), "warning: {line}");
}

/// That a command is missing, and which there are.
fn commands_of<A: CommandFactory>() -> String {
    let command = A::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    format!("a command is missing: {} (see --help)", names.join(", "))
}

/// 2 where the chain of causes holds a mistake of the user's, 130 where the user stopped the program, else 1.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if matches!(error.downcast_ref::<Error>(), Some(Error::Interrupted(_))) {
        return 130;
    }
    let mistake = error.chain().any(|cause| cause.downcast_ref::<Error>().is_some_and(Error::is_user_mistake));
    if mistake { 2 } else { 1 }
}

/// A message of several lines (clap's, XLA's) as one: clap's usage and closing hint are left out.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let lines = lines.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information"));
    let joined = lines.collect::<Vec<_>>().join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}

/// A flag that Ctrl-C or SIGTERM sets, for work that ends in order. A second one exits at once with 130.
///
/// **Errors** when the handlers cannot be installed.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, 130, flag.clone())
            .and_then(|_| register(signal, flag.clone()))
            .map_err(|e| Error::numeric("signal handlers", e))?;
    }
    Ok(flag)
}

/// Prints to stdout. A reader that has gone (`| head`) is not an error.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = write!(out, "{text}{end}").and_then(|()| out.flush());
    if written.is_err_and(|e| e.kind() != std::io::ErrorKind::BrokenPipe) {
        CUT_OFF.store(true, Ordering::Relaxed);
    }
}

/// Whether something of [`say`] is lost: said at the end, as the work itself goes on.
static CUT_OFF: AtomicBool = AtomicBool::new(false);

/// How far a long job is: a bar with the time left on a terminal, otherwise a plain line about every tenth of the way, and
/// when two minutes have gone without one. Everything goes to stderr.
pub struct Progress {
    label: String,
    total: u64,
    done: u64,
    every: u64,
    started: Instant,
    spoken: Instant,
    bar: Option<ProgressBar>,
}

/// Longest time without a plain line of progress.
const SILENCE: Duration = Duration::from_secs(120);

impl Progress {
    /// A job of `total` equal steps.
    pub fn new(label: impl Into<String>, total: u64) -> Self {
        let label = label.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len}, {elapsed} gone, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar.set_message(label.clone());
            bar
        });
        let now = Instant::now();
        Progress { label, total, done: 0, every: total.div_ceil(10).max(1), started: now, spoken: now, bar }
    }

    /// One step is done; `what` says which.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(format!("{} {what}", self.label));
                bar.set_position(self.done);
            }
            None if self.done.is_multiple_of(self.every)
                || self.done == self.total
                || self.spoken.elapsed() >= SILENCE =>
            {
                self.spoken = Instant::now();
                let line = self.line(what, self.started.elapsed().as_secs_f64());
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            None => {}
        }
    }

    /// The job is done, though it may have taken fewer steps than were foreseen: the last line says 100 %.
    pub fn finish(mut self, what: &str) {
        if self.done < self.total {
            self.done = self.total - 1;
            self.step(what);
        }
    }

    fn line(&self, what: &str, seconds: f64) -> String {
        let left = seconds / self.done as f64 * self.total.saturating_sub(self.done) as f64;
        let percent = 100 * self.done / self.total.max(1);
        let left = if self.done < self.total { format!(", about {left:.0} s left") } else { String::new() };
        format!("{} {}/{} ({percent} %) {what}, {seconds:.1} s{left}", self.label, self.done, self.total)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What made a folder of results: program, resolved configuration, seed, versions, device, date, source commit.
/// Written as `run.json`.
pub struct RunRecord {
    started: Instant,
    fields: Map<String, Value>,
}

impl RunRecord {
    /// A record of a run of `program` that begins now. `device` is the device's own description. Set `config` to every
    /// option after defaults were filled in.
    pub fn new(program: &str, seed: u64, device: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("program".into(), json!(format!("sinexp {} {program}", env!("CARGO_PKG_VERSION"))));
        let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
        fields.insert("arguments".into(), json!(arguments));
        fields.insert("seed".into(), json!(seed));
        fields.insert("random".into(), json!("threefry2x32, partitionable (as jax.random)"));
        fields.insert("device".into(), json!(device));
        let locked = ["xla", "ndarray-linalg", "polars"].map(|n| (n.to_owned(), json!(crate_version(n))));
        let native = xla_packages().into_iter().map(|(name, version)| (name, json!(version)));
        fields.insert("versions".into(), Value::Object(locked.into_iter().chain(native).collect()));
        fields.insert("host".into(), json!({ "os": std::env::consts::OS, "arch": std::env::consts::ARCH }));
        fields.insert("started".into(), json!(utc(SystemTime::now())));
        fields.insert("source".into(), source_commit());
        RunRecord { started: Instant::now(), fields }
    }

    /// Adds the version of something the result depends on.
    pub fn version(mut self, of: &str, version: &str) -> Self {
        if let Some(Value::Object(versions)) = self.fields.get_mut("versions") {
            versions.insert(of.to_owned(), json!(version));
        }
        self
    }

    /// Adds or replaces a field.
    pub fn set(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// Writes `folder/run.json` with the seconds since the record was begun, and returns its path.
    ///
    /// **Errors** when it cannot be written.
    pub fn write(&mut self, folder: impl AsRef<Path>) -> Result<PathBuf> {
        self.set("seconds", json!((self.started.elapsed().as_secs_f64() * 1e3).round() / 1e3));
        let path = folder.as_ref().join("run.json");
        let text = serde_json::to_string_pretty(&self.fields).map_err(|e| Error::file(&path, e))?;
        write_bytes(&path, (text + "\n").as_bytes())?;
        Ok(path)
    }
}

/// The version of the crate `name` that this program was built with, from Cargo.lock.
pub fn crate_version(name: &str) -> Option<&'static str> {
    let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"));
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}

/// Commit of the source folder this program was built from, and whether files in it, results aside, differ from it; null where there
/// is no git or no repository.
fn source_commit() -> Value {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).stdin(std::process::Stdio::null());
        let output = command.output().ok().filter(|o| o.status.success())?;
        String::from_utf8(output.stdout).ok().map(|s| s.trim().to_owned())
    };
    match git(&["rev-parse", "HEAD"]) {
        Some(commit) => {
            let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures"])
                .map(|s| !s.is_empty());
            json!({ "commit": commit, "changed": changed })
        }
        None => Value::Null,
    }
}

/// `time` in UTC as ISO 8601 to the second.
fn utc(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use anyhow::Context;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[arg(long, default_value_t = 1)]
        width: u32,
    }

    #[derive(Parser)]
    #[command(about = "What it is for")]
    enum Several {
        One,
        Two,
    }

    #[test]
    fn a_missing_command_is_named() {
        let error = Several::try_parse_from(["test"]).err().expect("no command");
        assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        assert_eq!(commands_of::<Several>(), "a command is missing: one, two (see --help)");
        assert_eq!(format!("{:?}", run_from(["test".into()], |_: Several| Ok(()))), expect(2));
    }

    fn code(arguments: &[&str], main: impl FnOnce(Arguments) -> anyhow::Result<()>) -> String {
        let arguments = ["test"].iter().chain(arguments).map(OsString::from);
        format!("{:?}", run_from(arguments, main))
    }

    fn expect(code: u8) -> String {
        format!("{:?}", ExitCode::from(code))
    }

    #[test]
    fn exit_codes_tell_mistakes_from_failures() {
        assert_eq!(
            code(&["--width", "3"], |a| if a.width == 3 { Ok(()) } else { anyhow::bail!("{}", a.width) }),
            expect(0)
        );
        assert_eq!(code(&["--width", "x"], |_| Ok(())), expect(2));
        assert_eq!(code(&["--nonsense"], |_| Ok(())), expect(2));
        assert_eq!(code(&["--help"], |_| anyhow::bail!("not reached")), expect(0));
        let mistake = |_| Err(Error::argument("--width", 0, "at least 1")).context("while reading options");
        assert_eq!(code(&[], mistake), expect(2));
        assert_eq!(code(&[], |_| Err(Error::Xla("out of memory".into()).into())), expect(1));
        assert_eq!(code(&[], |_| anyhow::bail!("something")), expect(1));
    }

    #[test]
    fn messages_become_one_line() {
        let clap = Arguments::try_parse_from(["t", "--widht", "3"]).err().expect("unknown").render().to_string();
        assert_eq!(one_line(&clap), "unexpected argument '--widht' found tip: a similar argument exists: '--width'");
        assert_eq!(one_line("one\n\n  two\n"), "one two");
    }

    #[test]
    fn plain_progress_says_how_long_is_left() {
        let mut progress = Progress::new("spectra", 16);
        progress.done = 4;
        assert_eq!(progress.line("sm20 L 8", 3.0), "spectra 4/16 (25 %) sm20 L 8, 3.0 s, about 9 s left");
    }

    #[test]
    fn dates_follow_the_calendar() {
        let at = |s| utc(UNIX_EPOCH + Duration::from_secs(s));
        // date -u -d @SECONDS
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_record_holds_what_a_rerun_needs() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut record = RunRecord::new("spectrum", 7, "cpu").version("plugin", "1.2");
        record.set("config", json!({ "width": 16 }));
        record.set("files", json!(["fig3.png"]));
        let path = record.write(folder.path()).expect("written");
        let read: Value = serde_json::from_slice(&std::fs::read(path).expect("file")).expect("JSON");
        assert_eq!((&read["config"]["width"], &read["seed"], &read["device"]), (&json!(16), &json!(7), &json!("cpu")));
        assert_eq!(read["versions"]["plugin"], "1.2");
        assert!(read["versions"]["xla"].as_str().expect("locked").starts_with("0."), "{}", read["versions"]);
        assert!(read["seconds"].is_f64() && read["started"].as_str().expect("date").ends_with('Z'));
    }
}
