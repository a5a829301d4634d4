//! Figures in a notebook: what the Rust kernel evcxr shows for a cell's last expression.
//!
//! evcxr calls a method `evcxr_display` where a type has one. It reads blocks from standard output: a line with the media
//! type, the content (base64 where it is binary), a closing line.

use std::io::{self, Write as _};

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::error::Result;
use crate::figure::Figure;

/// Dots per inch: twice a browser's, so that a figure of the text's width has 1296 pixels.
const DPI: f64 = 192.0;

impl Figure {
    /// What [`Figure::evcxr_display`] prints: a PNG of 192 dots per inch. **Errors** when it cannot be drawn.
    pub fn to_evcxr(&self) -> Result<String> {
        Ok(block("image/png", &BASE64_STANDARD.encode(self.to_png_at(DPI)?)))
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

/// One form of what a cell shows.
pub fn block(media_type: &str, content: &str) -> String {
    format!("EVCXR_BEGIN_CONTENT {media_type}\n{content}\nEVCXR_END_CONTENT\n")
}

/// Writes blocks at once: nothing else that prints may come between.
pub fn show(text: &str) {
    let mut out = io::stdout().lock();
    // Where nobody reads any more there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Color, sequence};
    use crate::{Axis, Panel};

    #[test]
    fn a_figure_is_a_picture_of_twice_a_browsers_dots() {
        let line = vec![(0.0, 0.0), (1.0, 2.0)];
        let panel = Panel::new("t", Axis::linear("x"), Axis::linear("y")).line("l", sequence(0, 1), line);
        let text = Figure::new(2.0, 1).panel(panel).to_evcxr().expect("draws");
        let content = text.strip_prefix("EVCXR_BEGIN_CONTENT image/png\n").expect("a block begins");
        let content = content.strip_suffix("\nEVCXR_END_CONTENT\n").expect("and ends");
        let bytes = BASE64_STANDARD.decode(content).expect("base64");
        let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().expect("a PNG");
        assert_eq!(reader.info().width, 384);
        let mut rgb = vec![0; reader.output_buffer_size().expect("fits")];
        reader.next_frame(&mut rgb).expect("pixels");
        let Color(r, g, b) = sequence(0, 1).color;
        assert!(rgb.chunks_exact(3).any(|p| p == [r, g, b]), "the line is there");
    }

    #[test]
    fn a_figure_too_large_to_draw_is_refused() {
        let panel = Panel::new("t", Axis::linear("x"), Axis::linear("y"));
        let e = Figure::new(1000.0, 1).panel(panel).to_evcxr().expect_err("200000 pixels");
        assert!(e.to_string().contains("too large"), "{e}");
    }
}
