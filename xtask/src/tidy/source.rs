//! A Rust file as the rules see it: code without its text, and its text without the code.

use std::ops::Range;

/// Code, comments and string literals of one file, told apart without a parser.
pub(super) struct Source {
    /// The code, byte for byte as long as the file: comments, strings and characters are blanks, line breaks stay.
    pub(super) code: String,
    /// Comments with the number of their first line; the line comments of one block are one text.
    pub(super) comments: Vec<(usize, String)>,
    /// String literals with the number of their first line, as they are written.
    pub(super) strings: Vec<(usize, String)>,
    /// Child modules that exist only in tests: `#[cfg(test)] mod NAME;`.
    pub(super) test_modules: Vec<String>,
}

impl Source {
    pub(super) fn new(text: &str) -> Source {
        let mut lexer = Lexer { text, code: text.as_bytes().to_vec(), comments: Vec::new(), strings: Vec::new() };
        lexer.run();
        let code = String::from_utf8(lexer.code).expect("only whole characters are blanked");
        Source { code, comments: lexer.comments, strings: lexer.strings, test_modules: Vec::new() }
    }

    /// The same with every item under `#[cfg(test)]` blanked.
    pub(super) fn without_tests(mut self) -> Source {
        let mut at = 0;
        while let Some(found) = self.code[at..].find("#[cfg(test)]").map(|found| at + found) {
            let item = self.item_after(found);
            let words = self.code[item.clone()].trim();
            if let Some(name) = words.strip_suffix(';').and_then(|words| words.rsplit_once("mod ")).map(|(_, name)| name.trim()) {
                self.test_modules.push(name.to_owned());
            }
            at = item.end;
            let blank: String = self.code[found..at].chars().flat_map(|c| blank(c).chars()).collect();
            self.code.replace_range(found..at, &blank);
        }
        self
    }

    /// The item behind the attribute at `start`: up to its `;`, or to the end of its braces.
    fn item_after(&self, start: usize) -> Range<usize> {
        let bytes = self.code.as_bytes();
        let mut at = start;
        // This attribute, and those that follow it.
        while bytes.get(at) == Some(&b'#') {
            at += self.code[at..].find(']').map_or(1, |end| end + 1);
            at += self.code[at..].len() - self.code[at..].trim_start().len();
        }
        let item = at;
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            // A field or a variant ends with its comma.
            if depth == 0 && matches!(byte, b';' | b'}' | b',') {
                // `use a::{b};` ends with the `;`.
                if *byte == b'}' && self.code[at..].trim_start().starts_with(';') {
                    continue;
                }
                break;
            }
        }
        item..at
    }

    /// The number of the line with the byte at `offset`.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.code[..offset].bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

/// As many blanks as the character has bytes; a line break stays one.
fn blank(c: char) -> &'static str {
    if c == '\n' { "\n" } else { &"    "[..c.len_utf8()] }
}

struct Lexer<'a> {
    text: &'a str,
    code: Vec<u8>,
    comments: Vec<(usize, String)>,
    strings: Vec<(usize, String)>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut at, mut line) = (0, 1);
        // The line on which the last line comment ended, which the next may carry on.
        let mut carried = 0;
        while at < bytes.len() {
            let rest = &self.text[at..];
            let before = at.checked_sub(1).map(|before| bytes[before]);
            let is_inside_a_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let end = if rest.starts_with("//") {
                let length = rest.find('\n').unwrap_or(rest.len());
                let words = rest[..length].trim_start_matches(['/', '!']).trim();
                let begins_the_line = self.text[..at].rsplit('\n').next().is_some_and(|code| code.trim().is_empty());
                match self.comments.last_mut().filter(|_| begins_the_line && carried + 1 == line) {
                    Some((_, text)) => {
                        text.push('\n');
                        text.push_str(words);
                    }
                    None => self.comments.push((line, words.to_owned())),
                }
                carried = if begins_the_line { line } else { 0 };
                length
            } else if rest.starts_with("/*") {
                let length = block_comment(rest);
                self.comments.push((line, rest[2..length].trim_end_matches("*/").to_owned()));
                length
            } else if let Some((open, close)) = raw_string(rest).filter(|_| !is_inside_a_word) {
                let length = rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len());
                self.strings.push((line, rest[open..length.saturating_sub(close.len()).max(open)].to_owned()));
                length
            } else if rest.starts_with('"') {
                let length = string(rest);
                self.strings.push((line, rest[1..length.saturating_sub(1).max(1)].to_owned()));
                length
            } else if rest.starts_with('\'') {
                character(rest)
            } else {
                0
            };
            if end == 0 {
                line += usize::from(bytes[at] == b'\n');
                at += 1;
                while !self.text.is_char_boundary(at) {
                    at += 1;
                }
                continue;
            }
            for byte in &mut self.code[at..at + end] {
                if *byte == b'\n' {
                    line += 1;
                } else {
                    *byte = b' ';
                }
            }
            at += end;
        }
    }
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let two = text.as_bytes().get(at..at + 2);
        match two {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of an opening `r##"` (also `br`, `cr`), and what ends the string.
fn raw_string(text: &str) -> Option<(usize, String)> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix("cr")).or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then(|| (text.len() - after.len() + hashes + 1, format!("\"{}", "#".repeat(hashes))))
}

/// The length of a string literal with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal with its quotes; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // `'\u{10ffff}'` is the longest.
            text.char_indices().take(12).skip(3).find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some((_, c)) if c != '\'' => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_strings_come_apart() {
        let text =
            "// one\n// two\nlet a = \"x // \\\" y\"; // three\nlet b = r#\"un\"safe\"#; /* /* */ z */ let c = '\"'; fn f<'a>() {}\n";
        let source = Source::new(text);
        assert_eq!(source.code.len(), text.len());
        assert_eq!(source.comments, [(1, "one\ntwo".to_owned()), (3, "three".to_owned()), (4, " /* */ z ".to_owned())]);
        assert_eq!(source.strings, [(3, "x // \\\" y".to_owned()), (4, "un\"safe".to_owned())]);
        let words: Vec<_> = source.code.split_whitespace().collect();
        assert_eq!(words.join(" "), "let a = ; let b = ; let c = ; fn f<'a>() {}");
    }

    #[test]
    fn what_only_tests_have_is_blanked() {
        let text =
            "use a;\n#[cfg(test)]\nuse b::{c};\n#[cfg(test)]\nmod t;\n#[cfg(test)]\n#[allow(x)]\nmod tests { fn f() {} }\nfn g() {}\n";
        let source = Source::new(text).without_tests();
        assert_eq!(source.test_modules, ["t"]);
        assert_eq!(source.code.split_whitespace().collect::<Vec<_>>(), ["use", "a;", "fn", "g()", "{}"]);
        assert_eq!(source.line(source.code.find("fn g").unwrap()), 9);
    }
}
