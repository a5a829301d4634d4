//! Running a program twice: XLA ends the process on some damaged programs, so what opens those runs in a child.

use std::env;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::complain;

/// Tells the child that it is one.
const MARK: &str = "SINEXP_SUPERVISED";

/// Time that a child has to stop by itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs this program again, with the same arguments, in a child process, and returns its exit code; None in that child,
/// which does the work. A child that a signal ends is reported in one line; `what` names the work.
///
/// Ctrl-C reaches the child too, as every process of the terminal's group.
pub fn supervised(what: &str) -> Option<ExitCode> {
    if env::var_os(MARK).is_some() {
        return None;
    }
    // Where there is no second process to be had, the work is done in this one.
    let program = env::current_exe().ok()?;
    let mut child = Command::new(program).args(env::args_os().skip(1)).env(MARK, "1").spawn().ok()?;
    let status = wait(&mut child).ok()?;
    Some(match (status.code(), ended_by(status)) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        (None, Some(signal)) if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal) => ExitCode::from(130),
        (None, Some(libc::SIGKILL)) => {
            complain(&format!("{what} was killed, which is what the system does when memory runs out"));
            ExitCode::from(1)
        }
        (None, signal) => {
            let signal = signal.map_or("a signal".to_owned(), |s| format!("signal {s}"));
            let reason = "the program is damaged, or has what this XLA cannot compile";
            complain(&format!("XLA ended {what} with {signal}: {reason}"));
            ExitCode::from(2)
        }
    })
}

/// Waits for the child. One that was asked to stop by a signal to this process alone is killed.
fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let Ok(stop) = super::stop_on_signal() else { return child.wait() };
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn ended_by(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn ended_by(_: ExitStatus) -> Option<i32> {
    None
}
