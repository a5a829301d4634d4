//! The results table of a README, between two markers.
//!
//! ```
//! use sinexp::cli::RunRecord;
//! use sinexp::report::page::{find, readme};
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! # let path = folder.join("README.md");
//! let mut record = RunRecord::new("spectrum", 7, "cpu");
//! record.set("seconds", 90.into());
//! record.write(folder)?;
//! std::fs::write(&path, format!("# Title\n{}\n{}\nThe end\n", readme::BEGIN, readme::END)).unwrap();
//! readme::write(&path, &find(&[folder.to_owned()])?)?;
//! let text = std::fs::read_to_string(&path).unwrap();
//! // One row, with what the paper has; the rest of the file stays.
//! assert!(text.contains("| 7 |") && text.contains("uniform-phase: 1 at any depth"));
//! assert!(text.starts_with("# Title\n") && text.ends_with("\nThe end\n"));
//! # Ok::<(), sinexp::error::Error>(())
//! ```

use std::path::{Path, PathBuf};

use super::folder::Run;
use super::record::{NOT_RECORDED, duration};
use super::section;
use crate::error::{Error, Result};
use crate::files::{reason, write_bytes};

/// The page of the book that has the table, from the repository's folder.
pub const PAGE: &str = "docs/src/reference/results.md";
/// The line above the table.
pub const BEGIN: &str = "<!-- results: written by `report --readme`, not by hand -->";
/// The line below it.
pub const END: &str = "<!-- end of results -->";

/// Rewrites the table in the file at `path`; links are relative to it.
///
/// **Errors** when it cannot be read or written, or does not have both markers once, in order.
pub fn write(path: &Path, runs: &[Run]) -> Result<()> {
    let fail = |e: std::io::Error| Error::file(path, format!("cannot be read: {}", reason(&e)));
    let text = std::fs::read(path).map_err(fail)?;
    let text = String::from_utf8(text).map_err(|_| Error::file(path, "is not UTF-8 text"))?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = replaced(&text, &table(runs, folder)).ok_or_else(|| {
        Error::file(path, format!("expected the lines {BEGIN} and {END}, once each and in this order"))
    })?;
    if new != text { write_bytes(path, new.as_bytes()) } else { Ok(()) }
}

/// `text` with `table` between the markers.
pub fn replaced(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let again = [before, old, after].iter().any(|part| part.contains(BEGIN) || part.contains(END));
    (!again).then(|| format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

/// One row per run, but for those at preset `smoke`, which only show that a program runs. Links are relative to `folder`.
pub fn table(runs: &[Run], folder: &Path) -> String {
    let mut out = "| experiment | preset | seeds | device | when | training | ours | paper |\n".to_owned();
    out += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for run in runs.iter().filter(|run| run.record.preset().as_deref() != Some("smoke")) {
        let name = section::name(run);
        let place = run.experiment.map_or(String::new(), |e| format!(", {}", e.place));
        let record = &run.record;
        let cells = [
            format!("[{}](<{}>){}", text(&name), link(&run.folder, folder), text(&place)),
            text(&record.preset().unwrap_or(NOT_RECORDED.into())),
            text(&record.seeds().unwrap_or(NOT_RECORDED.into())),
            text(&record.device().unwrap_or(NOT_RECORDED.into())),
            text(&record.day().unwrap_or(NOT_RECORDED.into())),
            time(run),
            text(&run.experiment.and_then(|e| (e.ours)(&run.grids)).unwrap_or("–".into())),
            text(run.experiment.map_or("–", |e| e.printed)),
        ];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

/// How long training took; for a program that trains nothing, how long its call took.
pub fn time(run: &Run) -> String {
    let trains = run.experiment.is_some_and(|e| e.trains);
    let seconds = if trains { run.record.training() } else { run.record.training().or(run.record.seconds()) };
    match seconds {
        Some(seconds) if trains => duration(seconds),
        Some(seconds) => format!("none; {} in all", duration(seconds)),
        None => NOT_RECORDED.to_owned(),
    }
}

/// Safe in a Markdown cell.
fn text(cell: &str) -> String {
    let mut out = String::new();
    for character in cell.chars() {
        match character {
            '|' | '<' | '>' | '[' | ']' | '*' | '`' | '\\' => out.extend(['\\', character]),
            '\n' | '\r' => out.push(' '),
            // A name such as e_w stays as it is: an underscore inside a word means nothing.
            other => out.push(other),
        }
    }
    out
}

/// The way from `folder` to `target`, by as many `..` as it takes.
fn link(target: &Path, folder: &Path) -> String {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (to, from) = (whole(target), whole(folder));
    let up = |(i, base): (usize, &Path)| {
        Some(std::iter::repeat_n(Path::new(".."), i).collect::<PathBuf>().join(to.strip_prefix(base).ok()?))
    };
    let path = from.ancestors().enumerate().find_map(up).unwrap_or_else(|| target.to_owned());
    path.to_string_lossy().replace(['<', '>', '\n'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("# Title\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replaced(&text, "| a |\n").expect("markers");
        assert_eq!(new, format!("# Title\n{BEGIN}\n\n| a |\n\n{END}\nafter\n"));
        assert_eq!(replaced(&new, "| a |\n").expect("again"), new);
        for wrong in [format!("{END}{BEGIN}"), BEGIN.to_owned(), format!("{BEGIN}{END}{BEGIN}"), String::new()] {
            assert!(replaced(&wrong, "x").is_none(), "{wrong}");
        }
    }

    #[test]
    fn links_go_up_where_they_must() {
        assert_eq!(link(Path::new("/a/b/c"), Path::new("/a")), "b/c");
        assert_eq!(link(Path::new("/a/figures/c"), Path::new("/a/docs/src")), "../../figures/c");
    }

    #[test]
    fn cells_are_safe_in_markdown() {
        assert_eq!(text("a|b <i>\n[x](y) e_w"), "a\\|b \\<i\\> \\[x\\](y) e_w");
    }
}
