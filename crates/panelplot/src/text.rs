//! Text made to fit: sizes that suit a width, notes broken into lines.

use crate::canvas::{Anchor, Type, text_width};
use crate::style::{NORMAL, SMALL};

/// The smallest text that is set to fit, in points.
const LEAST: f64 = 5.0;

/// The largest size up to [`NORMAL`] at which every line of each text fits the width given with it, but not below
/// [`LEAST`].
pub(crate) fn fitting<'a>(texts: impl Iterator<Item = (&'a str, f64)>) -> f64 {
    let kind = Type::new(NORMAL, Anchor::Left);
    let share = |(text, room): (&str, f64)| {
        text.lines().map(|line| room / text_width(line, &kind).max(1.0)).fold(1.0, f64::min)
    };
    (NORMAL * texts.map(share).fold(1.0, f64::min)).max(LEAST)
}

/// Breaks a note into lines that fit; a word longer than a line (a file's name) is broken where the line ends.
pub(crate) fn wrap(text: &str, width: f64) -> Vec<String> {
    let kind = Type::new(SMALL * 0.92, Anchor::Left);
    let fits = |text: &str| text_width(text, &kind) <= width;
    let pieces = |word: &str| {
        let mut all = vec![String::new()];
        for letter in word.chars() {
            match all.last_mut() {
                Some(piece) if piece.is_empty() || fits(&format!("{piece}{letter}")) => piece.push(letter),
                _ => all.push(letter.to_string()),
            }
        }
        all
    };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace().flat_map(|w| if fits(w) { vec![w.to_owned()] } else { pieces(w) }) {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::register_fonts;

    #[test]
    fn notes_are_broken_between_words_and_long_words_where_the_line_ends() {
        register_fonts().expect("fonts");
        let (width, long) = (100.0, "name".repeat(40));
        let lines = wrap(&format!("{long}: two words and some more of them"), width);
        let kind = Type::new(SMALL * 0.92, Anchor::Left);
        assert!(lines.iter().all(|l| text_width(l, &kind) <= width), "{lines:?}");
        let joined = lines.concat();
        assert!(joined.starts_with(&long) && lines.iter().any(|l| l.contains("words and")), "{lines:?}");
        assert_eq!(wrap("a b", width), ["a b"]);
        assert!(wrap(" ", width).is_empty());
    }
}
