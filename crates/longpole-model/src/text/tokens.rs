//! Tokens of a line of the notation.

/// A word or a quoted text of a line, and whether it stood in quotes (then it is never a keyword).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) quoted: bool,
}

impl Token {
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// The tokens of a line.
pub(super) fn tokens(line: &str) -> Result<Vec<Token>, String> {
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
            out.push(Token { text, quoted: true });
        } else {
            let mut text = String::new();
            while let Some(&c) = chars.peek() {
                if c.is_whitespace() {
                    break;
                }
                text.push(c);
                chars.next();
            }
            out.push(Token { text, quoted: false });
        }
    }
    Ok(out)
}

pub(super) fn join(tokens: &[Token]) -> String {
    tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
}

pub(super) fn number<T: std::str::FromStr>(token: Option<&Token>, what: &str) -> Result<T, String> {
    token.and_then(|token| token.text.parse().ok()).ok_or_else(|| format!("`{what}` needs a number"))
}
