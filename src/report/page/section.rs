//! The part of the page that shows one run: where it comes from, tables, pictures, charts.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::folder::{Drawing, Run};
use super::grid::{Cell, Grid};
use super::html::{escape, id};
use super::record::{NOT_RECORDED, duration};

/// Rows from which a table has a box to filter it.
const FILTERED: usize = 6;
/// Rows of a table that is shown open; longer ones are folded away.
const OPEN: usize = 64;

/// The papers' names.
pub(super) fn paper_title(paper: &str) -> &str {
    match paper {
        "arXiv 2609.30633" => "Uniform-phase SIREN, arXiv 2609.30633",
        "arXiv 2607.09967" => "SEL transformers, arXiv 2607.09967",
        other => other,
    }
}

/// The program and the variant: `siren-audio, every-8th`; the folder for others.
pub(super) fn name(run: &Run) -> String {
    let variant = run.variant();
    match run.experiment {
        Some(e) if variant.is_empty() => e.program.to_owned(),
        Some(e) => format!("{}, {variant}", e.program),
        None => variant,
    }
}

/// What a run is called in headings.
pub(super) fn heading(run: &Run) -> String {
    let Some(experiment) = run.experiment else { return name(run) };
    let variant = run.variant();
    // The usual folder is named after the preset, which is told elsewhere.
    let usual = variant.is_empty() || run.record.preset().is_some_and(|preset| preset == variant);
    if usual { experiment.heading.to_owned() } else { format!("{} ({variant})", experiment.heading) }
}

pub(super) fn anchor(run: &Run) -> String {
    id(&format!("run {}", run.folder.display()))
}

/// All sections, with a heading for each paper.
pub(super) fn all(runs: &[Run]) -> String {
    let mut out = String::new();
    let mut before = None;
    for run in runs {
        let paper = run.experiment.map_or("Other runs", |e| e.paper);
        if before != Some(paper) {
            out += &format!("<h2 id=\"{}\">{}</h2>\n", id(paper), escape(paper_title(paper)));
            before = Some(paper);
        }
        out += &one(run);
    }
    out
}

fn one(run: &Run) -> String {
    let anchor = anchor(run);
    let words = [name(run), run.record.preset().unwrap_or_default()].join(" ");
    let mut out = format!(
        "<section class=\"run\" id=\"{anchor}\" aria-labelledby=\"{anchor}-h\" data-words=\"{}\">\n<h3 id=\"{anchor}-h\">{}</h3>\n",
        escape(&words),
        escape(&heading(run))
    );
    if let Some(experiment) = run.experiment {
        out += &format!("<p class=\"place\">{}, {}</p>\n", escape(experiment.paper), escape(experiment.place));
        out += &format!("<p>{}</p>\n", escape(experiment.about));
        if let Some(ours) = (experiment.ours)(run) {
            out += &format!(
                "<dl class=\"main\"><div><dt>Ours</dt><dd>{}</dd></div><div><dt>Paper</dt><dd>{}</dd></div></dl>\n",
                escape(&ours),
                escape(experiment.printed)
            );
        }
    }
    for problem in &run.problems {
        out += &format!("<p class=\"problem\"><strong>Could not be read:</strong> {}</p>\n", escape(problem));
    }
    for (i, grid) in run.grids.iter().enumerate() {
        out += &table(run, grid, &format!("{anchor}-t{i}"));
    }
    for (i, drawing) in run.drawings.iter().enumerate() {
        out += &figure(run, drawing, &format!("{anchor}-f{i}"));
    }
    if !run.data.is_empty() {
        let items: String = run.data.iter().map(|d| format!("<li>{}</li>", escape(d))).collect();
        out += &format!("<p>In the folder, too long to show:</p><ul class=\"data\">{items}</ul>\n");
    }
    out + &provenance(run) + "</section>\n"
}

/// Where the numbers come from.
fn provenance(run: &Run) -> String {
    let record = &run.record;
    let or = |value: Option<String>| value.unwrap_or(NOT_RECORDED.into());
    let commit = record.commit().map(|(c, changed)| if changed { format!("{c}, with changes") } else { c });
    let mut facts = vec![
        ("Folder", run.folder.display().to_string()),
        ("Program", or(record.version().map(str::to_owned))),
        ("Arguments", or(record.arguments().map(|a| if a.is_empty() { "none".to_owned() } else { a }))),
        ("Preset", or(record.preset())),
        ("Seeds", or(record.seeds())),
        ("Device", or(record.device())),
        ("Date", or(record.started())),
        ("Commit", or(commit)),
    ];
    if run.experiment.is_none_or(|e| e.trains) {
        facts.push(("Training", or(record.training().map(duration))));
    }
    facts.push(("This call", or(record.seconds().map(duration))));
    let short = ["Preset", "Seeds", "Device", "Date", "Commit"];
    let line: Vec<String> = facts
        .iter()
        .filter(|(name, _)| short.contains(name))
        .map(|(name, value)| format!("<span><b>{name}</b> {}</span>", escape(value)))
        .collect();
    let list: String =
        facts.iter().map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value))).collect();
    let json = record.json().map_or(String::new(), |text| {
        format!("<pre tabindex=\"0\" aria-label=\"run.json\"><code>{}</code></pre>", escape(&text))
    });
    format!(
        "<p class=\"facts\">{}</p>\n<details class=\"made\"><summary>How it was made</summary><dl>{list}</dl>{json}</details>\n",
        line.join(" ")
    )
}

/// A header cell with a button that sorts.
pub(super) fn head(text: &str, numeric: bool) -> String {
    let (class, text) = (if numeric { " class=\"n\"" } else { "" }, escape(text));
    format!("<th scope=\"col\"{class}><button type=\"button\" class=\"sort\">{text}</button></th>")
}

fn table(run: &Run, grid: &Grid, id: &str) -> String {
    let title = if grid.title.is_empty() { format!("{}: {}", name(run), grid.stem) } else { grid.title.clone() };
    let notes: String = grid.notes.iter().map(|n| format!("<span class=\"note\">{}</span>", escape(n))).collect();
    let heads: String = grid.header.iter().zip(&grid.numeric).map(|(h, n)| head(h, *n)).collect();
    let mut rows = String::new();
    for row in &grid.rows {
        rows += "<tr>";
        for (i, (cell, numeric)) in row.iter().zip(&grid.numeric).enumerate() {
            rows += &data_cell(cell, *numeric, grid.header[i].starts_with("paper"), i == 0);
        }
        rows += "</tr>\n";
    }
    let filter = if grid.rows.len() >= FILTERED {
        format!(
            "<p class=\"filter\"><label for=\"{id}-q\">Filter rows</label> <input id=\"{id}-q\" type=\"search\" \
             autocomplete=\"off\" data-table=\"{id}\"> <span role=\"status\"></span></p>\n"
        )
    } else {
        String::new()
    };
    let body = format!(
        "{filter}<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}-c\">\n\
         <table id=\"{id}\"><caption id=\"{id}-c\">{}{notes}</caption>\n<thead><tr>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        escape(&title)
    );
    match grid.rows.len() > OPEN {
        true => {
            format!("<details><summary>{} ({} rows)</summary>\n{body}</details>\n", escape(&title), grid.rows.len())
        }
        false => body,
    }
}

fn data_cell(cell: &Cell, numeric: bool, paper: bool, first: bool) -> String {
    let value = cell.number.map_or(String::new(), |v| format!(" data-v=\"{v}\""));
    let classes: Vec<&str> = [(numeric, "n"), (paper, "p")].iter().filter(|c| c.0).map(|c| c.1).collect();
    let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
    let shown = escape(&cell.shown);
    match first {
        true => format!("<th scope=\"row\"{class}{value}>{shown}</th>"),
        false => format!("<td{class}{value}>{shown}</td>"),
    }
}

fn figure(run: &Run, drawing: &Drawing, id: &str) -> String {
    let known = run.experiment.and_then(|e| e.caption(&drawing.stem));
    let caption = known.map_or_else(|| format!("{} of {}", drawing.stem, name(run)), str::to_owned);
    let note = run.grids.iter().find_map(|g| g.notes.first()).map_or(String::new(), |n| format!(" {n}"));
    let picture = match &drawing.png {
        Some(bytes) => {
            let size = png_size(bytes).map_or(String::new(), |(w, h)| format!(" width=\"{w}\" height=\"{h}\""));
            let what = match &drawing.chart {
                Some(chart) => format!("{caption} {}", chart.describe()),
                None => caption.clone(),
            };
            format!(
                "<img alt=\"{}\"{size} decoding=\"async\" src=\"data:image/png;base64,{}\">",
                escape(&what),
                BASE64_STANDARD.encode(bytes)
            )
        }
        None => String::new(),
    };
    let body = match &drawing.chart {
        Some(chart) => {
            let folded = if picture.is_empty() {
                String::new()
            } else {
                format!("<details class=\"picture\"><summary>As a picture</summary>{picture}</details>\n")
            };
            format!(
                "<div class=\"chart\" id=\"{id}\" data-label=\"{}\"><script type=\"application/json\">{}</script>\
                 <p class=\"wait\">The chart is drawn by a script.</p></div>\n{folded}",
                escape(&caption),
                chart.json()
            )
        }
        None => format!("<div class=\"paper\">{picture}</div>\n"),
    };
    format!("<figure>\n{body}<figcaption>{}{}</figcaption>\n</figure>\n", escape(&caption), escape(&note))
}

/// Width and height from a PNG's header.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    bytes.starts_with(b"\x89PNG").then(|| Some((number(16)?, number(20)?)))?
}
