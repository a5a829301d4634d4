//! The part of the page that shows one run: where it comes from, tables, pictures, charts.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::folder::{Drawing, Run};
use super::grid::{Cell, Grid};
use super::record::{NOT_RECORDED, duration};
use crate::report::escape::{escape, id};

/// Rows from which a table has a box to filter it.
const FILTERED: usize = 6;
/// Rows of a table that is shown open; longer ones are folded away.
const OPEN: usize = 64;

/// Characters from which a cell's text may be broken into lines.
const LONG: usize = 24;
/// Pixels of the page per pixel of a PNG: pictures have 300 dots per inch of paper, and are shown at 1.8 times their printed size.
const SHOWN: f64 = 96.0 / 300.0 * 1.8;
/// Width from which a picture is not squeezed into a phone's screen but scrolled, in pixels of the page.
const WIDE: f64 = 700.0;

/// Neighbouring runs of the same paper, with what it is called.
pub(super) fn by_paper(runs: &[Run]) -> impl Iterator<Item = (&'static str, &[Run])> {
    let paper = |run: &Run| run.experiment.map_or("Other runs", |e| e.paper);
    runs.chunk_by(move |a, b| paper(a) == paper(b)).map(move |runs| (paper(&runs[0]), runs))
}

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
        Some(e) if usual(&variant) => e.program.to_owned(),
        Some(e) => format!("{}, {variant}", e.program),
        None => variant,
    }
}

/// Whether a folder is named after nothing but the preset, which is told elsewhere.
fn usual(variant: &str) -> bool {
    ["", "smoke", "cpu", "paper"].contains(&variant)
}

/// What a run is called in headings.
pub(super) fn heading(run: &Run) -> String {
    let Some(experiment) = run.experiment else { return name(run) };
    let variant = run.variant();
    if usual(&variant) { experiment.heading.to_owned() } else { format!("{} ({variant})", experiment.heading) }
}

pub(super) fn anchor(run: &Run) -> String {
    id(&format!("run {}", run.folder.display()))
}

/// All sections, with a heading for each paper.
pub(super) fn all(runs: &[Run]) -> String {
    let mut out = String::new();
    for (paper, runs) in by_paper(runs) {
        out += &format!("<h2 id=\"{}\">{}</h2>\n", id(paper), escape(paper_title(paper)));
        runs.iter().for_each(|run| out += &one(run));
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
    }
    let facts = facts(run);
    out += &short(&facts);
    if let Some(experiment) = run.experiment {
        out += &format!("<p>{}</p>\n", escape(experiment.about));
        if let Some(ours) = (experiment.ours)(&run.grids) {
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
    out + &provenance(run, &facts) + "</section>\n"
}

/// Where the numbers come from.
fn facts(run: &Run) -> Vec<(&'static str, String)> {
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
    facts
}

/// The facts that a reader of the tables wants at once, in a line.
fn short(facts: &[(&str, String)]) -> String {
    let shown = ["Preset", "Seeds", "Device", "Date", "Commit", "Training"];
    let line: Vec<String> = facts
        .iter()
        .filter(|(name, value)| shown.contains(name) && value != "–")
        .map(|(name, value)| format!("<span><b>{name}</b> {}</span>", escape(value)))
        .collect();
    format!("<p class=\"facts\">{}</p>\n", line.join(" "))
}

fn provenance(run: &Run, facts: &[(&str, String)]) -> String {
    let list: String =
        facts.iter().map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value))).collect();
    let json = run.record.json().map_or(String::new(), |text| {
        format!("<pre tabindex=\"0\" aria-label=\"run.json\"><code>{}</code></pre>", escape(&text))
    });
    format!("<details class=\"made\"><summary>How it was made</summary><dl>{list}</dl>{json}</details>\n")
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
            rows += &data_cell(cell, *numeric, &grid.header[i], i == 0);
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
         <table id=\"{id}\"><caption id=\"{id}-c\"><span>{}{notes}</span></caption>\n<thead><tr>{heads}</tr></thead>\n\
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

fn data_cell(cell: &Cell, numeric: bool, header: &str, first: bool) -> String {
    let value = cell.number.map_or(String::new(), |v| format!(" data-v=\"{v}\""));
    let long = !numeric && cell.shown.chars().count() > LONG;
    let classes = [(numeric, "n"), (header.starts_with("paper"), "p"), (long, "long")];
    let classes: Vec<&str> = classes.iter().filter(|c| c.0).map(|c| c.1).collect();
    let class = if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
    // One seed has no standard error.
    let undefined = cell.shown == "NaN" && (header.starts_with('±') || header.starts_with("spread"));
    let shown = if undefined { "–".to_owned() } else { escape(&cell.shown) };
    match first {
        true => format!("<th scope=\"row\"{class}{value}>{shown}</th>"),
        false => format!("<td{class}{value}>{shown}</td>"),
    }
}

fn figure(run: &Run, drawing: &Drawing, id: &str) -> String {
    let known = run.experiment.and_then(|e| e.caption(&drawing.stem));
    let caption = known.map_or_else(|| format!("{} of {}", drawing.stem, name(run)), str::to_owned);
    let picture = drawing.png.as_ref().map(|bytes| picture(bytes, &caption, drawing));
    let body = match (&drawing.chart, picture) {
        (Some(chart), picture) => {
            let picture = picture.map_or(String::new(), |picture| {
                format!("<details class=\"picture\"><summary>As a picture</summary>{picture}</details>\n")
            });
            format!(
                "<div class=\"chart\" id=\"{id}\" data-start=\"{}\" data-label=\"{}\"><script type=\"application/json\">{}</script>\
                 <p class=\"wait\">The chart is drawn by a script.</p></div>\n{picture}",
                run.experiment.map_or(0, |e| chart.start(e.heading)),
                escape(&caption),
                chart.json()
            )
        }
        (None, picture) => picture.unwrap_or_default(),
    };
    // A picture says by itself how it was made.
    let note = run.grids.iter().find_map(|g| g.notes.first()).filter(|_| drawing.chart.is_some());
    let note = note.map_or(String::new(), |note| format!(" {}", escape(note)));
    format!("<figure>\n{body}<figcaption>{}{note}</figcaption>\n</figure>\n", escape(&caption))
}

/// The picture itself; a wide one in a box that scrolls.
fn picture(bytes: &[u8], caption: &str, drawing: &Drawing) -> String {
    let (width, height) = png_size(bytes).unwrap_or((1, 1));
    let shown = f64::from(width) * SHOWN;
    let text = match &drawing.chart {
        Some(chart) => format!("{caption} {}", chart.describe()),
        None => caption.to_owned(),
    };
    let image = format!(
        "<img alt=\"{}\" width=\"{width}\" height=\"{height}\" style=\"width:{shown:.0}px\" decoding=\"async\" \
         src=\"data:image/png;base64,{}\">",
        escape(&text),
        BASE64_STANDARD.encode(bytes)
    );
    match shown > WIDE {
        true => format!(
            "<div class=\"paper wide scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{image}</div>\n",
            escape(caption)
        ),
        false => format!("<div class=\"paper\">{image}</div>\n"),
    }
}

/// Width and height from a PNG's header.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    bytes.starts_with(b"\x89PNG").then(|| Some((number(16)?, number(20)?)))?
}

#[cfg(test)]
mod tests {
    use super::super::chart::Chart;
    use super::super::record::Record;
    use super::*;

    fn run() -> Run {
        let cell = |shown: &str, number| Cell { shown: shown.into(), number };
        let grid = Grid {
            stem: "table".into(),
            title: "<i>title</i>".into(),
            notes: vec!["note & more".into()],
            header: vec!["a\"b".into(), "± SNR [dB]".into(), "paper".into()],
            numeric: vec![false, true, false],
            rows: vec![vec![cell("<script>x</script>", None), cell("NaN", None), cell("'p'", Some(2.5))]],
        };
        Run {
            folder: "/x/<b>".into(),
            experiment: None,
            record: Record::default(),
            grids: vec![grid],
            drawings: vec![Drawing { stem: "f\"".into(), png: None, chart: Some(Chart { panels: Vec::new() }) }],
            data: vec!["<d>".into()],
            problems: vec!["<p>".into()],
        }
    }

    /// Every text of a file with a mark of HTML in it is shown as it is.
    #[test]
    fn a_section_shows_what_files_say_and_is_not_changed_by_it() {
        let html = all(&[run()]);
        for raw in ["<script>x", "<i>title", "<d>", "<p>", "a\"b", "/x/<b>", "f\" of"] {
            assert!(!html.replace("<p>In the folder", "").contains(raw), "{raw} is not escaped: {html}");
            assert!(html.contains(&escape(raw)), "{raw} is missing");
        }
        assert!(
            html.contains("<td class=\"n\">–</td>") && html.contains("<td class=\"p\" data-v=\"2.5\">&#39;p&#39;</td>")
        );
        assert!(html.contains("<b>Commit</b> not recorded") && html.contains("Could not be read"));
        assert!(html.contains("<th scope=\"col\" class=\"n\">") && html.contains("<caption"));
    }

    #[test]
    fn sizes_of_pictures_come_from_their_headers() {
        let png = crate::report::Raster::new(3, 2, vec![0; 18]).expect("a raster").to_png(None).expect("a PNG");
        assert_eq!(png_size(&png), Some((3, 2)));
        assert_eq!(png_size(b"GIF89a"), None);
        let drawing = Drawing { stem: "f".into(), png: Some(png), chart: None };
        assert!(figure(&run(), &drawing, "f").contains("alt=\"f of "));
    }
}
