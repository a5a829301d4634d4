//! Tables in a notebook (feature `notebook`): what the Rust kernel evcxr shows for a cell's last expression, through the
//! method `evcxr_display`. Figures show themselves: see [`panelplot::notebook`].

use std::fmt::Write as _;

use panelplot::notebook::{block, show};

use super::escape::escape;
use super::table::Table;

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

#[cfg(test)]
mod tests {
    use polars::prelude::Column;

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
