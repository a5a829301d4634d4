//! Words and marks of HLO text, with the line each stands on.

/// One token. Names, numbers, `3x3` and `0_1x2_2` are all words: what a word means depends on where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// Letters, digits and `_ . - + $`; a leading `%` is dropped.
    Word(&'a str),
    /// What stands between double quotes, escapes and all.
    Text(&'a str),
    /// Any other character.
    Mark(char),
    /// `->`.
    Arrow,
    /// The end of the text.
    End,
    /// A string or comment that never ends: what it is.
    Open(&'static str),
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(w) => write!(f, "`{}`", short(w)),
            Token::Text(t) => write!(f, "\"{}\"", short(t)),
            Token::Mark(c) => write!(f, "`{}`", c.escape_default()),
            Token::Arrow => f.write_str("`->`"),
            Token::End => f.write_str("the end of the text"),
            Token::Open(what) => write!(f, "{what} that does not end"),
        }
    }
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    let head: String = text.chars().take(60).collect();
    let more = if head.len() < text.len() { "..." } else { "" };
    format!("{}{more}", head.escape_default())
}

/// Where reading stands; a copy of it is a look ahead.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// Bytes read.
    at: usize,
    /// Current line, from 1.
    pub(super) line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, line: usize) -> Self {
        Lexer { text, at: 0, line }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let part = &self.rest()[..bytes];
        self.line += part.bytes().filter(|b| *b == b'\n').count();
        self.at += bytes;
        part
    }

    /// Skips space and comments; false where a comment does not end.
    fn skip_space(&mut self) -> bool {
        loop {
            let rest = self.rest();
            self.advance(rest.len() - rest.trim_ascii_start().len());
            let rest = self.rest();
            let comment = match rest.as_bytes() {
                [b'/', b'*', ..] => rest.find("*/").map(|n| n + 2),
                [b'/', b'/', ..] => Some(rest.find('\n').unwrap_or(rest.len())),
                _ => return true,
            };
            match comment {
                Some(n) => self.advance(n),
                None => return false,
            };
        }
    }

    /// The next token, which is used up.
    pub(super) fn next(&mut self) -> Token<'a> {
        if !self.skip_space() {
            self.at = self.text.len();
            return Token::Open("a comment");
        }
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let Some(first) = rest.chars().next() else { return Token::End };
        if rest.starts_with("->") {
            self.advance(2);
            return Token::Arrow;
        }
        if first == '"' {
            let mut end = 1;
            while let Some(b) = bytes.get(end) {
                match b {
                    b'"' => {
                        let text = &rest[1..end];
                        self.advance(end + 1);
                        return Token::Text(text);
                    }
                    b'\\' => end += 2,
                    _ => end += 1,
                }
            }
            self.at = self.text.len();
            return Token::Open("a string");
        }
        let mut end = usize::from(first == '%');
        while let Some(b) = bytes.get(end) {
            let arrow = *b == b'-' && bytes.get(end + 1) == Some(&b'>');
            if arrow || !(b.is_ascii_alphanumeric() || b"_.-+$".contains(b)) {
                break;
            }
            end += 1;
        }
        if end > usize::from(first == '%') {
            return Token::Word(self.advance(end).trim_start_matches('%'));
        }
        self.advance(first.len_utf8());
        Token::Mark(first)
    }

    /// The next token, which stays.
    pub(super) fn peek(&self) -> Token<'a> {
        let mut ahead = *self;
        ahead.next()
    }

    /// Uses the mark up if it comes next.
    pub(super) fn eat(&mut self, mark: char) -> bool {
        let mut ahead = *self;
        let found = ahead.next() == Token::Mark(mark);
        if found {
            *self = ahead;
        }
        found
    }

    /// The mark, which must come next.
    pub(super) fn expect(&mut self, mark: char) -> Result<(), String> {
        match self.next() {
            Token::Mark(c) if c == mark => Ok(()),
            other => Err(format!("`{mark}` is expected, found {other}")),
        }
    }

    /// A word, which must come next.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, String> {
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("{what} is expected, found {other}")),
        }
    }

    /// What stands between the bracket just used up and the one that closes it, which is used up too.
    pub(super) fn enclosed(&mut self) -> Result<&'a str, String> {
        let (start, mut depth) = (self.at, 1usize);
        loop {
            match self.next() {
                Token::Mark('{' | '(' | '[') => depth += 1,
                Token::Mark('}' | ')' | ']') => depth -= 1,
                end @ (Token::End | Token::Open(_)) => return Err(format!("a bracket is not closed before {end}")),
                _ => {}
            }
            if depth == 0 {
                return Ok(&self.text[start..self.at - 1]);
            }
        }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text from an earlier position to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text, 1);
        std::iter::from_fn(|| Some(lexer.next()).filter(|t| *t != Token::End)).take(50).collect()
    }

    #[test]
    fn words_marks_and_comments() {
        use Token::*;
        let text = "ROOT %a.1-b = f32[2]{0:T(8)} add(/*index=5*/x, -1e+5) // done\n \"q\\\"}\"";
        let f32 = [Word("f32"), Mark('['), Word("2"), Mark(']'), Mark('{'), Word("0"), Mark(':'), Word("T")];
        let tail = [Mark('('), Word("8"), Mark(')'), Mark('}'), Word("add"), Mark('('), Word("x"), Mark(',')];
        let mut want = vec![Word("ROOT"), Word("a.1-b"), Mark('=')];
        want.extend(f32);
        want.extend(tail);
        want.extend([Word("-1e+5"), Mark(')'), Text("q\\\"}")]);
        assert_eq!(tokens(text), want);
        assert_eq!(tokens("b01f_01io->b01f"), [Word("b01f_01io"), Arrow, Word("b01f")]);
        assert_eq!(tokens("a /* b"), [Word("a"), Open("a comment")]);
        assert_eq!(tokens("\"a\\"), [Open("a string")]);
    }

    #[test]
    fn brackets_close_around_strings_and_lines_are_counted() {
        let mut lexer = Lexer::new("{ a={\"}\"}\n, (b) } c", 7);
        assert!(lexer.eat('{'));
        assert_eq!(lexer.enclosed().expect("closed"), " a={\"}\"}\n, (b) ");
        assert_eq!((lexer.next(), lexer.line), (Token::Word("c"), 8));
        assert!(Lexer::new("a (b", 1).enclosed().is_err());
    }
}
