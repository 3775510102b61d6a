//! Writes JSON piece by piece into a text that its owner streams or keeps.

use std::fmt::Write as _;

/// Writes a JSON text.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[written..at]);
        out.push_str(escape);
        if escape.is_empty() {
            push_escaped(out, byte);
        }
        written = at + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

/// What proto3's JSON calls the doubles that JSON has no number for.
pub(crate) fn not_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Writing to a `String` cannot fail.
pub(crate) fn push_display(out: &mut String, value: impl std::fmt::Display) {
    let _: std::fmt::Result = write!(out, "{value}");
}

/// The shortest spelling that reads as the same double, always with a point or an exponent, so that it is no integer.
pub(crate) fn push_debug(out: &mut String, number: f64) {
    let _: std::fmt::Result = write!(out, "{number:?}");
}

fn push_escaped(out: &mut String, control: u8) {
    let _: std::fmt::Result = write!(out, "\\u{control:04x}");
}

/// Writes the members of a JSON object one by one.
pub(crate) struct Members<'o> {
    out: &'o mut String,
    is_first: bool,
}

impl<'o> Members<'o> {
    /// Opens the object; [`Members::end`] closes it.
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Members { out, is_first: true }
    }

    /// A member whose value the caller writes.
    pub(crate) fn member(&mut self, name: &str) -> &mut String {
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
        write_text(self.out, name);
        self.out.push(':');
        self.out
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        write_text(self.member(name), value);
    }

    /// A number, an id between quotes, or what else prints as JSON.
    pub(crate) fn raw(&mut self, name: &str, value: impl std::fmt::Display) {
        push_display(self.member(name), value);
    }

    /// A list; the function writes one element.
    pub(crate) fn list<T>(&mut self, name: &str, elements: impl IntoIterator<Item = T>, write: impl FnMut(&mut String, T)) {
        write_list(self.member(name), elements, write);
    }

    /// Closes the object.
    pub(crate) fn end(self) {
        self.out.push('}');
    }
}

/// Writes a list; the function writes one element.
pub(crate) fn write_list<T>(out: &mut String, elements: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut String, T)) {
    out.push('[');
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, element);
    }
    out.push(']');
}
