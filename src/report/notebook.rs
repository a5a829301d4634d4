//! Figures and tables in a notebook (feature `notebook`): what the Rust kernel evcxr shows for a cell's last expression.
//!
//! evcxr calls a method `evcxr_display` where a type has one. It reads blocks from standard output: a line with the media
//! type, the content (base64 where it is binary), a closing line.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::figure::Figure;
use super::output;
use super::page::html::escape;
use super::table::Table;
use crate::error::Result;

/// Dots per inch: twice a browser's, so that a figure of the text's width has 1296 pixels.
const DPI: f64 = 192.0;

impl Figure {
    /// What [`Figure::evcxr_display`] prints: a PNG of 192 dots per inch. **Errors** when it cannot be drawn.
    pub fn to_evcxr(&self) -> Result<String> {
        Ok(block("image/png", &BASE64_STANDARD.encode(output::png(self, DPI)?)))
    }

    /// Shows the figure as the cell's picture; called by evcxr. A figure that cannot be drawn is one line of text
    /// on standard error.
    pub fn evcxr_display(&self) {
        match self.to_evcxr() {
            Ok(text) => show(&text),
            Err(e) => eprintln!("{e}"),
        }
    }
}

impl Table {
    /// What [`Table::evcxr_display`] prints: an HTML table with rounded numbers, and the same as plain text.
    pub fn to_evcxr(&self) -> String {
        block("text/html", &self.to_html()) + &block("text/plain", self.to_string().trim_end())
    }

    /// Shows the table in the notebook; called by evcxr.
    pub fn evcxr_display(&self) {
        show(&self.to_evcxr());
    }

    fn to_html(&self) -> String {
        let (rows, numeric) = self.cells();
        let mut out = format!("<table>\n<caption>{}</caption>\n", escape(self.title()));
        for (i, row) in rows.iter().enumerate() {
            let tag = if i == 0 { "th" } else { "td" };
            out += "<tr>";
            for (cell, numeric) in row.iter().zip(&numeric) {
                let side = if *numeric { "right" } else { "left" };
                let _ = write!(out, "<{tag} style=\"text-align: {side}\">{}</{tag}>", escape(cell));
            }
            out += "</tr>\n";
        }
        out + "</table>"
    }
}

fn block(media_type: &str, content: &str) -> String {
    format!("EVCXR_BEGIN_CONTENT {media_type}\n{content}\nEVCXR_END_CONTENT\n")
}

/// Written at once: nothing else that prints may come between.
fn show(text: &str) {
    let mut out = io::stdout().lock();
    // Where nobody reads any more there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use polars::prelude::Column;

    use super::super::{Axis, Panel, style};
    use super::*;

    /// Content by media type, as evcxr reads it.
    fn read(text: &str) -> Vec<(&str, String)> {
        let mut lines = text.lines();
        let mut out = Vec::new();
        while let Some(line) = lines.next() {
            let media_type = line.strip_prefix("EVCXR_BEGIN_CONTENT ").expect("a block begins");
            let content: Vec<_> = lines.by_ref().take_while(|l| *l != "EVCXR_END_CONTENT").collect();
            out.push((media_type, content.join("\n")));
        }
        out
    }

    #[test]
    fn a_figure_is_a_picture_of_twice_a_browsers_dots() {
        let line = vec![(0.0, 0.0), (1.0, 2.0)];
        let panel = Panel::new("t", Axis::linear("x"), Axis::linear("y")).line("l", style::sequence(0, 1), line);
        let text = Figure::new(2.0, 1).panel(panel).to_evcxr().expect("draws");
        let blocks = read(&text);
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].0, "image/png");
        let picture = image::load_from_memory(&BASE64_STANDARD.decode(&blocks[0].1).expect("base64")).expect("a PNG");
        assert_eq!(picture.width(), 384);
        let rgb = picture.to_rgb8();
        let style::Color(r, g, b) = style::sequence(0, 1).color;
        assert!(rgb.pixels().any(|p| p.0 == [r, g, b]), "the line is there");
    }

    #[test]
    fn a_figure_too_large_to_draw_is_refused() {
        let panel = Panel::new("t", Axis::linear("x"), Axis::linear("y"));
        let e = Figure::new(1000.0, 1).panel(panel).to_evcxr().expect_err("200000 pixels");
        assert!(e.to_string().contains("too large"), "{e}");
    }

    #[test]
    fn a_table_is_html_and_text() {
        let columns = vec![Column::new("init <a&b>".into(), ["x<y"]), Column::new("v".into(), [0.123_456])];
        let table = Table::new("A > B", columns).expect("columns fit").unit("v", "dB");
        let text = table.to_evcxr();
        let blocks = read(&text);
        assert_eq!(blocks.iter().map(|b| b.0).collect::<Vec<_>>(), ["text/html", "text/plain"]);
        assert_eq!(
            blocks[0].1,
            "<table>\n<caption>A &gt; B</caption>\n\
             <tr><th style=\"text-align: left\">init &lt;a&amp;b&gt;</th><th style=\"text-align: right\">v [dB]</th></tr>\n\
             <tr><td style=\"text-align: left\">x&lt;y</td><td style=\"text-align: right\">0.1235</td></tr>\n</table>"
        );
        assert_eq!(blocks[1].1, table.to_string().trim_end());
    }
}
