//! A line of the notation as words.

/// A word of a line, and whether it stood in quotes (then it is never a keyword).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) quoted: bool,
}

impl Word {
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

pub(super) fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut out = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
        } else if c == '"' {
            chars.next();
            let mut text = String::new();
            loop {
                match chars.next() {
                    None => return Err("a quote is not closed".to_owned()),
                    Some('"') => break,
                    Some('\\') => match chars.next() {
                        Some('n') => text.push('\n'),
                        Some('r') => text.push('\r'),
                        Some(other) => text.push(other),
                        None => return Err("a quote is not closed".to_owned()),
                    },
                    Some(other) => text.push(other),
                }
            }
            out.push(Word { text, quoted: true });
        } else {
            let mut text = String::new();
            while let Some(&c) = chars.peek() {
                if c.is_whitespace() {
                    break;
                }
                text.push(c);
                chars.next();
            }
            out.push(Word { text, quoted: false });
        }
    }
    Ok(out)
}

pub(super) fn join(words: &[Word]) -> String {
    words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")
}

pub(super) fn number<T: std::str::FromStr>(word: Option<&Word>, what: &str) -> Result<T, String> {
    word.and_then(|w| w.text.parse().ok()).ok_or_else(|| format!("`{what}` needs a number"))
}
