//! Selectors of series, as PromQL writes them, and a profile type with one behind it.
//!
//! ```text
//! {service_name="cart", env=~"prod.*", region!="eu", pod!~"test|canary"}
//! process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}
//! ```
//!
//! A label that a series does not have is equal to the empty text. Regular expressions are those of RE2 and match the whole value: `prod.*` is
//! `^(?:prod.*)$`. Whoever evaluates them compiles them, and refuses those that are none.

use longpole_model::profile::ProfileType;

use super::SyntaxError;
use crate::limits::{MATCHERS_MAX, SELECTOR_BYTES_MAX};

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
}

impl MatchOp {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Match => "=~",
            MatchOp::NotMatch => "!~",
        }
    }
}

/// A condition on one label. All of a selector must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    /// The label.
    pub name: String,
    /// How.
    pub op: MatchOp,
    /// A value, or a regular expression for the whole value.
    pub value: String,
}

/// Reads a selector. An empty text, and braces without anything, select everything.
///
/// # Errors
///
/// It is not well formed, or has too much.
pub fn parse(text: &str) -> Result<Vec<Matcher>, SyntaxError> {
    let mut cursor = Cursor::new(text, "selector")?;
    cursor.skip_blanks();
    let matchers = if cursor.rest().is_empty() { Vec::new() } else { cursor.matchers()? };
    cursor.end()?;
    Ok(matchers)
}

/// Reads a profile type with a selector behind it; without one, the type selects all its series.
///
/// # Errors
///
/// The type does not have five parts, or the selector is not well formed, or has too much.
pub fn parse_query(text: &str) -> Result<(ProfileType, Vec<Matcher>), SyntaxError> {
    let mut cursor = Cursor::new(text, "query")?;
    let end = text.find('{').unwrap_or(text.len());
    let of_type = text[..end].trim();
    let refused = |_| SyntaxError::new("expected a profile type, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds", "query", 0, text);
    let profile_type = of_type.parse().map_err(refused)?;
    cursor.at = end;
    let matchers = if cursor.rest().is_empty() { Vec::new() } else { cursor.matchers()? };
    cursor.end()?;
    Ok((profile_type, matchers))
}

struct Cursor<'a> {
    text: &'a str,
    what: &'static str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str, what: &'static str) -> Result<Self, SyntaxError> {
        if text.len() > SELECTOR_BYTES_MAX {
            return Err(SyntaxError::new("expected 65,536 bytes at most", what, SELECTOR_BYTES_MAX, text));
        }
        Ok(Cursor { text, what, at: 0 })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn refused(&self, problem: &'static str) -> SyntaxError {
        SyntaxError::new(problem, self.what, self.at, self.text)
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether the rest begins with this, which is passed over then.
    fn takes(&mut self, wanted: &str) -> bool {
        let takes = self.rest().starts_with(wanted);
        self.at += if takes { wanted.len() } else { 0 };
        takes
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        self.skip_blanks();
        if self.rest().is_empty() { Ok(()) } else { Err(self.refused("expected the end")) }
    }

    fn matchers(&mut self) -> Result<Vec<Matcher>, SyntaxError> {
        let mut matchers = Vec::new();
        if !self.takes("{") {
            return Err(self.refused("expected {"));
        }
        loop {
            self.skip_blanks();
            if self.takes("}") {
                return Ok(matchers);
            }
            if matchers.len() >= MATCHERS_MAX {
                return Err(self.refused("expected 128 matchers at most"));
            }
            let name = self.name()?;
            self.skip_blanks();
            let op = self.op()?;
            self.skip_blanks();
            let value = self.quoted("expected a value in quotation marks")?;
            matchers.push(Matcher { name, op, value });
            self.skip_blanks();
            // A comma may stand behind the last one.
            if !self.takes(",") && !self.rest().starts_with('}') {
                return Err(self.refused("expected , or }"));
            }
        }
    }

    /// The name of a label; one with other characters than these stands in quotation marks, as in Prometheus 3.
    fn name(&mut self) -> Result<String, SyntaxError> {
        if self.rest().starts_with(['"', '\'', '`']) {
            return self.quoted("expected the name of a label");
        }
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let length = self.rest().bytes().take_while(|byte| is_part(*byte)).count();
        let name = &self.rest()[..length];
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(self.refused("expected the name of a label"));
        }
        self.at += length;
        Ok(name.to_owned())
    }

    fn op(&mut self) -> Result<MatchOp, SyntaxError> {
        // The longer ones first.
        let all = [MatchOp::Match, MatchOp::NotMatch, MatchOp::NotEqual, MatchOp::Equal];
        let found = all.into_iter().find(|op| self.takes(op.as_str()));
        found.ok_or_else(|| self.refused("expected =, !=, =~ or !~"))
    }

    /// A text in quotation marks, with the escapes of Go; between backquotes there are none.
    fn quoted(&mut self, expected: &'static str) -> Result<String, SyntaxError> {
        let quote = self.rest().chars().next().filter(|first| matches!(first, '"' | '\'' | '`')).ok_or_else(|| self.refused(expected))?;
        let start = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find([quote, '\\', '\n']) else {
                self.at = start;
                return Err(self.refused("a quotation mark that is not closed"));
            };
            text.extend_from_slice(&rest.as_bytes()[..end]);
            self.at += end;
            match rest.as_bytes()[end] {
                b'\\' if quote == '`' => {
                    text.push(b'\\');
                    self.at += 1;
                }
                b'\\' => self.escape(quote, &mut text)?,
                b'\n' if quote != '`' => return Err(self.refused("a line that ends between quotation marks")),
                b'\n' => {
                    text.push(b'\n');
                    self.at += 1;
                }
                _ => {
                    self.at += 1;
                    // Escapes of bytes can make what is no text.
                    return String::from_utf8(text).map_err(|_| SyntaxError::new("bytes that are not UTF-8", self.what, start, self.text));
                }
            }
        }
    }

    fn escape(&mut self, quote: char, text: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let rest = &self.rest()[1..];
        let number = |from: usize, length: usize, base: u32| {
            let digits = rest.get(from..from + length).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_alphanumeric()))?;
            u32::from_str_radix(digits, base).ok()
        };
        let put_char = |text: &mut Vec<u8>, number: Option<u32>| {
            let found = number.and_then(char::from_u32)?;
            text.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
            Some(())
        };
        let put_byte = |text: &mut Vec<u8>, number: Option<u32>| {
            text.push(u8::try_from(number?).ok()?);
            Some(())
        };
        let plain = |text: &mut Vec<u8>, byte: u8| {
            text.push(byte);
            Some(())
        };
        let (done, length) = match rest.as_bytes().first().copied().unwrap_or_default() {
            b'a' => (plain(text, 7), 1),
            b'b' => (plain(text, 8), 1),
            b'f' => (plain(text, 12), 1),
            b'n' => (plain(text, b'\n'), 1),
            b'r' => (plain(text, b'\r'), 1),
            b't' => (plain(text, b'\t'), 1),
            b'v' => (plain(text, 11), 1),
            b'\\' => (plain(text, b'\\'), 1),
            mark if char::from(mark) == quote => (plain(text, mark), 1),
            b'x' => (put_byte(text, number(1, 2, 16)), 3),
            b'u' => (put_char(text, number(1, 4, 16)), 5),
            b'U' => (put_char(text, number(1, 8, 16)), 9),
            b'0'..=b'7' => (put_byte(text, number(0, 3, 8)), 3),
            _ => (None, 0),
        };
        done.ok_or_else(|| self.refused("an escape that Go does not have"))?;
        self.at += 1 + length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matcher(name: &str, op: MatchOp, value: &str) -> Matcher {
        Matcher { name: name.to_owned(), op, value: value.to_owned() }
    }

    #[test]
    fn a_selector_has_matchers() {
        let read = parse(r#"{ service_name = "cart", env=~"prod.*",region!='eu',pod!~`a\d|"b"`, }"#).unwrap();
        let expected = [
            matcher("service_name", MatchOp::Equal, "cart"),
            matcher("env", MatchOp::Match, "prod.*"),
            matcher("region", MatchOp::NotEqual, "eu"),
            matcher("pod", MatchOp::NotMatch, "a\\d|\"b\""),
        ];
        assert_eq!(read, expected);
        for everything in ["", " ", "{}", " { } "] {
            assert_eq!(parse(everything), Ok(vec![]), "{everything:?}");
        }
        assert_eq!(parse(r#"{"service.name"="a",service.name="b"}"#).unwrap()[0].name, "service.name");
        assert_eq!(parse(r#"{a="\"\\\n\x41\u00e4\101"}"#).unwrap()[0].value, "\"\\\nA\u{e4}A");
    }

    #[test]
    fn a_query_begins_with_a_type() {
        let (profile_type, matchers) = parse_query(r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}"#).unwrap();
        assert_eq!(profile_type.to_string(), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        assert_eq!(matchers, [matcher("service_name", MatchOp::Equal, "cart")]);
        assert_eq!(parse_query("memory:alloc_space:bytes::").unwrap().1, []);
        let said = |text: &str| parse_query(text).unwrap_err().to_string();
        let expected = r#"expected a profile type, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds, at byte 0 of the query "cpu{}""#;
        assert_eq!(said("cpu{}"), expected);
        assert_eq!(said("a:b:c:d:e{}x"), r#"expected the end, at byte 11 of the query "a:b:c:d:e{}x""#);
    }

    #[test]
    fn an_error_says_where() {
        for (text, problem, offset) in [
            ("service", "expected {", 0),
            ("{", "expected the name of a label", 1),
            ("{a", "expected =, !=, =~ or !~", 2),
            ("{a=b}", "expected a value in quotation marks", 3),
            ("{a=\"b}", "a quotation mark that is not closed", 3),
            ("{a=\"b\"", "expected , or }", 6),
            ("{a=\"b\" c=\"d\"}", "expected , or }", 7),
            ("{1a=\"b\"}", "expected the name of a label", 1),
            ("{a=\"\\d\"}", "an escape that Go does not have", 4),
            ("{a=\"\\xff\"}", "bytes that are not UTF-8", 3),
            ("{a=\"b\nc\"}", "a line that ends between quotation marks", 5),
            ("{}{}", "expected the end", 2),
        ] {
            let said = parse(text).unwrap_err();
            assert_eq!((said.problem, said.offset), (problem, offset), "{text}");
        }
        let many = format!("{{{}}}", "a=\"b\",".repeat(MATCHERS_MAX + 1));
        assert_eq!(parse(&many).unwrap_err().problem, "expected 128 matchers at most");
        let long = parse(&" ".repeat(SELECTOR_BYTES_MAX + 1)).unwrap_err();
        assert_eq!((long.problem, long.text.len()), ("expected 65,536 bytes at most", 203));
    }

    proptest! {
        #[test]
        fn any_text_is_a_selector_or_refused(text in r#"\{[a=!~", \\x0}]{0,30}|.{0,30}"#) {
            let _ = (parse(&text), parse_query(&text));
        }

        #[test]
        fn any_value_comes_back(value in ".{0,20}") {
            prop_assume!(!value.contains('\n'));
            let text = format!("{{a=\"{}\"}}", value.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(&parse(&text).unwrap()[0].value, &value);
        }
    }
}
