//! The one door to the terminal: everything that this program writes to standard output and standard error goes through here.
//!
//! Names come from other programs and from strangers' files. An escape sequence in a name moves the cursor, sets the title or fills the
//! clipboard; a line break forges a line of ours; a bidirectional override or a character without width makes it look like another name.
//! So longpole prints each of these characters as an escape: `\x1b`, `\u{202e}`.
//!
//! No caller has to remember this. [`print()`] takes a [`Screen`], a screen is made of lines, and a line is escaped when it is added. The
//! two things that only we may send cannot be forged: a line break is the end of a [`Screen::line`], and a colour is a mark that holds a
//! random number of this process ([`painted`]), which a name cannot know. `cargo xtask tidy` keeps other files away from the streams.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};
use unicode_width::UnicodeWidthChar as _;

/// Whether a character does more, or less, than fill its place: controls (C0, DEL, C1), separators of lines and paragraphs, and
/// what Unicode calls default-ignorable (`Default_Ignorable_Code_Point` of DerivedCoreProperties.txt, Unicode 16: zero-width and
/// bidirectional controls, variation selectors, tags, fillers), with the interlinear annotations.
pub(crate) fn is_unsafe(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Appends a character in its safe form.
fn push_shown(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c if !is_unsafe(c) => out.push(c),
        c if u32::from(c) < 0x100 => {
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        }
        c => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
    }
}

/// A text in its safe form: nothing in it moves the cursor, breaks the line or is invisible.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_shown(&mut out, c));
    out
}

/// Columns of a text in its safe form: two for each wide character (Unicode Annex 11), none for a mark on the character before it.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Columns of a character in its safe form.
pub(crate) fn columns(c: char) -> usize {
    match c {
        ' '..='~' => 1,
        '\n' | '\t' | '\r' => 2,
        c if !is_unsafe(c) => c.width().unwrap_or(1),
        c if u32::from(c) < 0x100 => 4,
        c => 4 + (u32::BITS - u32::from(c).leading_zeros()).div_ceil(4) as usize,
    }
}

/// Colours and weights of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Strong,
    Faint,
    Warning,
    Handle,
}

impl Look {
    /// Its parameter in a control sequence (ECMA-48, SGR).
    fn sgr(self) -> &'static str {
        match self {
            Look::Strong => "1",
            Look::Faint => "2",
            Look::Warning => "33",
            Look::Handle => "36",
        }
    }
}

/// A random number of this process that tells our marks from forged ones. `None` without randomness; then there is no colour.
fn seal() -> Option<&'static str> {
    static SEAL: OnceLock<Option<String>> = OnceLock::new();
    let random = || {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok().map(|()| format!("{:016x}", u64::from_ne_bytes(bytes)))
    };
    SEAL.get_or_init(random).as_deref()
}

/// Text between marks that turn into a colour on a [`Screen`] only. Measure its width before painting.
pub(crate) fn painted(look: Look, text: &str) -> String {
    match seal() {
        Some(seal) => format!("\x1b{seal}{}m{text}\x1b{seal}0m", look.sgr()),
        None => text.to_owned(),
    }
}

/// Lines that are safe to print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    text: String,
}

impl Screen {
    /// A screen of one line.
    pub(crate) fn of(line: impl AsRef<str>) -> Self {
        let mut screen = Screen::default();
        screen.line(line);
        screen
    }

    /// Adds a line. Our marks become colours; every other unsafe character becomes an escape.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        let mut rest = text.as_ref();
        while let Some(at) = rest.find(is_unsafe) {
            self.text.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = match our_mark(rest) {
                Some((sgr, behind)) => {
                    let _ = write!(self.text, "\x1b[{sgr}m");
                    behind
                }
                None => {
                    let mut chars = rest.chars();
                    chars.next().into_iter().for_each(|c| push_shown(&mut self.text, c));
                    chars.as_str()
                }
            };
        }
        self.text.push_str(rest);
        self.text.push('\n');
    }

    /// Adds the lines of another screen.
    pub(crate) fn append(&mut self, other: &Screen) {
        self.text.push_str(&other.text);
    }

    /// The text, for a file.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Text of clap, with lines and colours of its own. clap has seen unsafe arguments only in their escaped form.
    pub(crate) fn of_usage(rendered: &str) -> Self {
        let mut text = String::with_capacity(rendered.len());
        let mut rest = rendered;
        while let Some(c) = rest.chars().next() {
            let sgr = rest.strip_prefix("\x1b[").and_then(|behind| behind.split_once('m'));
            match sgr.filter(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')) {
                Some((code, behind)) => {
                    let _ = write!(text, "\x1b[{code}m");
                    rest = behind;
                }
                None => {
                    if c == '\n' {
                        text.push(c)
                    } else {
                        push_shown(&mut text, c)
                    }
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        Screen { text }
    }
}

impl<S: AsRef<str>> Extend<S> for Screen {
    fn extend<I: IntoIterator<Item = S>>(&mut self, lines: I) {
        lines.into_iter().for_each(|line| self.line(line));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Screen {
    fn from_iter<I: IntoIterator<Item = S>>(lines: I) -> Self {
        let mut screen = Screen::default();
        screen.extend(lines);
        screen
    }
}

/// The code of a mark of ours at the start of a text, and the text behind it.
fn our_mark(text: &str) -> Option<(&str, &str)> {
    // A process that never painted anything has no marks.
    text.strip_prefix('\x1b')?.strip_prefix(seal()?)?.split_once('m')
}

/// Columns of the terminal that standard output is; `None` where it is none.
pub(crate) fn stdout_columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(terminal_size::Width(columns), _)| columns.into())
}

/// Columns of the terminal that standard error is; `None` where it is none.
pub(crate) fn stderr_columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stderr()).map(|(terminal_size::Width(columns), _)| columns.into())
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes to standard output. A reader that went away (`| head`) is not an error.
pub(crate) fn print(screen: &Screen) -> Result<()> {
    write_out(screen.text.as_bytes())
}

/// Writes one line to standard output.
pub(crate) fn print_line(text: impl AsRef<str>) -> Result<()> {
    print(&Screen::of(text))
}

fn write_out(bytes: &[u8]) -> Result<()> {
    write_politely(&mut io::stdout().lock(), bytes)
}

/// Writes a file's text to standard output: see [`stdout_for`].
pub(crate) fn print_file(content: Content, text: &str) -> Result<()> {
    stdout_for(content).map_or(Ok(()), |mut out| write_politely(&mut out, text.as_bytes()))
}

fn write_politely(out: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("failed to write to standard output"),
    }
}

/// Writes a byte to standard output, for a process that watches this one; fails if it is gone.
pub(crate) fn print_beat() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(b".").and_then(|()| out.flush())
}

/// Writes a line to standard error. Ignores failures: there is nowhere to report them.
pub(crate) fn say(line: impl AsRef<str>) {
    say_all(&Screen::of(line));
}

/// Writes lines to standard error.
pub(crate) fn say_all(screen: &Screen) {
    io::stderr().lock().write_all(screen.text.as_bytes()).ok();
}

/// Prints a view as JSON, with a newline at its end.
pub(crate) fn print_json(view: &impl serde::Serialize) -> Result<()> {
    write_out(json(view)?.as_bytes())
}

/// Writes a view as JSON to standard error, below an empty line.
pub(crate) fn say_json(view: &impl serde::Serialize) -> Result<()> {
    io::stderr().lock().write_all(format!("\n{}", json(view)?).as_bytes()).ok();
    Ok(())
}

/// A view as JSON that is safe to print: unsafe characters are escaped (`\u001b`), which is the same text to a parser.
pub(crate) fn json(view: &impl serde::Serialize) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, PlainFormatter(PrettyFormatter::new()));
    view.serialize(&mut serializer).context("failed to write JSON")?;
    bytes.push(b'\n');
    String::from_utf8(bytes).context("failed to write JSON")
}

/// Indented JSON without unsafe characters in its strings.
struct PlainFormatter(PrettyFormatter<'static>);

/// Delegates to the pretty formatter.
macro_rules! as_pretty {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl Formatter for PlainFormatter {
    as_pretty! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
        write_char_escape(escape: CharEscape);
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unsafe) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let mut chars = rest[at..].chars();
            chars.next().into_iter().try_for_each(|c| write_json_escape(writer, c))?;
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// `\u202e`; two of them for what is beyond 16 bits (RFC 8259, 7).
fn write_json_escape<W: ?Sized + Write>(writer: &mut W, c: char) -> io::Result<()> {
    c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))
}

/// The content of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Lines of text.
    Text,
    Json,
    /// Not text.
    Binary,
}

/// Standard output for a file: pipes and files get the bytes as they are, a terminal gets text escaped, and no binary (`None`).
pub(crate) fn stdout_for(content: Content) -> Option<Box<dyn Write>> {
    let out = io::stdout().lock();
    if out.is_terminal() { Escaping::of(content, out) } else { Some(Box::new(out)) }
}

/// The same for a named device, which may be a terminal: `/dev/tty`.
pub(crate) fn device_for(content: Content, device: File) -> Option<Box<dyn Write>> {
    if device.is_terminal() { Escaping::of(content, device) } else { Some(Box::new(device)) }
}

/// Escapes text for a terminal, except line breaks: these formats have none inside names.
struct Escaping<W: Write> {
    inner: W,
    is_json: bool,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write + 'static> Escaping<W> {
    fn of(content: Content, inner: W) -> Option<Box<dyn Write>> {
        let is_json = content == Content::Json;
        (content != Content::Binary).then(|| -> Box<dyn Write> { Box::new(Escaping { inner, is_json, begun: Vec::new() }) })
    }
}

impl<W: Write> Escaping<W> {
    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let mut out = Vec::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => out.push(b'\n'),
                c if self.is_json && is_unsafe(c) => write_json_escape(&mut out, c)?,
                c => {
                    let mut shown = String::new();
                    push_shown(&mut shown, c);
                    out.extend_from_slice(shown.as_bytes());
                }
            }
        }
        self.inner.write_all(&out)
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [std::mem::take(&mut self.begun), bytes.to_vec()].concat();
        let mut rest = &all[..];
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.write_text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (text, behind) = rest.split_at(error.valid_up_to());
                    self.write_text(&String::from_utf8_lossy(text))?;
                    let Some(wrong) = error.error_len() else {
                        self.begun = behind.to_vec();
                        return Ok(bytes.len());
                    };
                    behind[..wrong].iter().try_for_each(|byte| write!(self.inner, "\\x{byte:02x}"))?;
                    rest = &behind[wrong..];
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Standard error for logs, one line a write.
pub(crate) struct LogLines;

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        say(text.strip_suffix('\n').unwrap_or(&text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_only_our_colours_are_colours() {
        let mut screen = Screen::default();
        screen.line(format!("{} \x1b[31mred\x1b[0m", painted(Look::Strong, "a\nhint: b\x1b]0;t\x07")));
        assert_eq!(screen.as_str(), "\x1b[1ma\\nhint: b\\x1b]0;t\\x07\x1b[0m \\x1b[31mred\\x1b[0m\n");
        // A forged mark, with the number of another process.
        assert_eq!(Screen::of("\x1b00000000000000001m").as_str(), "\\x1b00000000000000001m\n");
    }

    #[test]
    fn what_cannot_be_seen_is_shown_and_measured() {
        let text = "a\u{9b}b\u{202e}c\u{200b}\u{feff}\u{e0041}\u{ad}\u{2028}\u{7f}\u{fe0f}é漢";
        let shown = "a\\x9bb\\u{202e}c\\u{200b}\\u{feff}\\u{e0041}\\xad\\u{2028}\\x7f\\u{fe0f}é漢";
        assert_eq!(printable(text), shown);
        assert_eq!(width(text), shown.chars().count() + 1, "the last one is wide");
        assert_eq!(width("\n\t\r\0"), 2 + 2 + 2 + 4);
        assert_eq!(printable(shown), shown, "what was escaped is plain text");
    }

    #[test]
    fn every_character_that_may_be_shown_is_shown_as_it_is() {
        for c in ('\0'..=char::MAX).filter(|c| !is_unsafe(*c)) {
            assert!(!c.is_control() && width(&c.to_string()) <= 3 && printable(&c.to_string()) == c.to_string(), "{c:?}");
        }
        for c in ('\0'..=char::MAX).filter(|c| is_unsafe(*c)) {
            let shown = printable(&c.to_string());
            assert!(shown.is_ascii() && shown.chars().count() == width(&c.to_string()), "{c:?}");
        }
    }

    #[test]
    fn json_is_the_same_to_a_parser_and_plain_to_a_terminal() {
        let view = serde_json::json!({ "a\u{202e}": ["\u{1b}[2J\u{9b}\u{7f}\u{e0041}é", 1, null, { "b": true }], "c": [], "d": {} });
        let text = json(&view).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), view);
        let plain = serde_json::json!({ "a": ["é", 1, null, { "b": true }], "c": [], "d": {} });
        assert_eq!(json(&plain).unwrap(), serde_json::to_string_pretty(&plain).unwrap() + "\n");
    }

    #[test]
    fn usage_keeps_its_lines_and_colours() {
        assert_eq!(
            Screen::of_usage("\x1b[1;4merror\x1b[0m:\n\x1b]0;t\x07\u{9b}\r").as_str(),
            "\x1b[1;4merror\x1b[0m:\n\\x1b]0;t\\x07\\x9b\\r"
        );
    }

    #[test]
    fn bytes_for_a_terminal_are_escaped_wherever_they_are_cut() {
        for cut in 0..=9 {
            let bytes = "a\u{202e}\x1b\u{e0041}\n".as_bytes();
            let escaped = |is_json| {
                let mut out = Escaping { inner: Vec::new(), is_json, begun: Vec::new() };
                out.write_all(&bytes[..cut]).unwrap();
                out.write_all(&bytes[cut..]).unwrap();
                out.write_all(b"\xff!").unwrap();
                String::from_utf8(out.inner).unwrap()
            };
            assert_eq!(escaped(false), "a\\u{202e}\\x1b\\u{e0041}\n\\xff!");
            assert_eq!(escaped(true), "a\\u202e\\u001b\\udb40\\udc41\n\\xff!");
        }
    }
}
