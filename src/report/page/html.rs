//! The whole page: its frame, the overview, the list of contents.

use super::folder::Run;
use super::readme::time;
use super::record::NOT_RECORDED;
use super::section::{self, name};
use crate::error::{Error, Result};
use crate::files::reason;
use crate::report::escape::escape;

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of `runs`, in their order, under `title`.
///
/// **Errors** when there are charts and the library that draws them is missing.
pub fn html(title: &str, runs: &[Run]) -> Result<String> {
    let charts = runs.iter().flat_map(|r| &r.drawings).any(|d| d.chart.is_some());
    let library = if charts { library(LIBRARY)? } else { String::new() };
    let parts = [
        ("{{title}}", escape(title)),
        ("{{style}}", STYLE.to_owned()),
        ("{{version}}", env!("CARGO_PKG_VERSION").to_owned()),
        ("{{count}}", format!("{} result{}", runs.len(), if runs.len() == 1 { "" } else { "s" })),
        ("{{contents}}", contents(runs)),
        ("{{overview}}", overview(runs)),
        ("{{sections}}", section::all(runs)),
        ("{{library}}", library),
        ("{{script}}", SCRIPT.to_owned()),
    ];
    let mut rest = FRAME;
    let mut out = String::new();
    // Piece by piece, so that braces in what is put in stay what they are.
    while let Some((place, value, at)) =
        parts.iter().filter_map(|(place, value)| Some((place, value, rest.find(place)?))).min_by_key(|found| found.2)
    {
        out += &rest[..at];
        out += value;
        rest = &rest[at + place.len()..];
    }
    Ok(out + rest)
}

/// plotly.js, which `./setup` puts into the checkout's folder of the native side.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.xla/plotly/plotly.min.js");

/// The file of plotly.js as a script element.
///
/// **Errors** when it is missing.
fn library(path: &str) -> Result<String> {
    let missing = |e: std::io::Error| {
        let reason = reason(&e);
        Error::file(path, format!("plotly.js, which draws the page's charts, cannot be read: {reason}; run ./setup"))
    };
    Ok(format!("<script>{}</script>", std::fs::read_to_string(path).map_err(missing)?))
}

fn contents(runs: &[Run]) -> String {
    let mut out = String::new();
    for (paper, runs) in section::by_paper(runs) {
        out += &format!("<li><span>{}</span><ul>\n", escape(section::paper_title(paper)));
        for run in runs {
            let heading = escape(&section::heading(run));
            out += &format!("<li><a href=\"#{}\">{heading}</a></li>\n", section::anchor(run));
        }
        out += "</ul></li>\n";
    }
    out
}

/// One row per run: what, how, how long, ours, the paper's.
fn overview(runs: &[Run]) -> String {
    let mut out = String::new();
    let header = ["Experiment", "Ours", "Paper", "In the paper", "Preset", "Seeds", "Device", "Date", "Training"];
    for head in header {
        out += &section::head(head, false);
    }
    let mut out = format!("<thead><tr>{out}</tr></thead>\n<tbody>\n");
    for run in runs {
        let record = &run.record;
        let or = |value: Option<String>| escape(&value.unwrap_or(NOT_RECORDED.into()));
        let place = run.experiment.map_or("–", |e| e.place);
        let seconds = record.training().or(record.seconds()).map_or(String::new(), |s| format!(" data-v=\"{s}\""));
        out += &format!(
            "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td class=\"long\">{}</td><td class=\"long p\">{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{seconds}>{}</td></tr>\n",
            section::anchor(run),
            escape(&name(run)),
            escape(&run.experiment.and_then(|e| (e.ours)(&run.grids)).unwrap_or("–".into())),
            escape(run.experiment.map_or("–", |e| e.printed)),
            escape(place),
            or(record.preset()),
            or(record.seeds()),
            or(record.device()),
            or(record.day()),
            escape(&time(run)),
        );
    }
    out + "</tbody>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_one_whole_script() {
        let script = library(LIBRARY).expect("./setup has fetched it");
        assert!(script.starts_with("<script") && script.ends_with("</script>") && script.contains("plotly.js v"));
        assert!(script.len() > 1_000_000 && !script.contains("MathJax.js"));
        assert_eq!(script.matches("</script").count(), 1);
        let e = library("no/such/plotly.min.js").expect_err("missing").to_string();
        assert!(e.starts_with("no/such/plotly.min.js: plotly.js") && e.ends_with("run ./setup"), "{e}");
    }

    #[test]
    fn places_of_the_frame_are_all_filled() {
        let page = html("A {{script}} & <b>", &[]).expect("a page");
        assert!(page.contains("<title>A {{script}} &amp; &lt;b&gt;</title>"));
        assert_eq!(page.matches("{{").count(), page.matches("{{script}}").count());
        assert!(!page.contains("<script src") && !page.contains("plotly.js v"));
    }
}
