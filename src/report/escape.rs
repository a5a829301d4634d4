//! Text and names made safe for HTML.

/// Text for HTML, in an element or in a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A name that can stand in `id` and behind `#`.
pub(super) fn id(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        match character {
            c if c.is_alphanumeric() => out.push(c),
            _ if out.ends_with('-') || out.is_empty() => {}
            _ => out.push('-'),
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_becomes_markup() {
        assert_eq!(escape("<a href='x'>&\"b\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;b&quot;&lt;/a&gt;");
        assert_eq!(id("figures/siren-table2/CPU <b>"), "figures-siren-table2-cpu-b");
    }
}
