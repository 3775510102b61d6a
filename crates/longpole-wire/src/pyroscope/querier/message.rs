//! Writes a message once for both encodings: the number of a field for protobuf, its name for JSON.
//!
//! Fields with the default value are left out, as proto3 has it in both.

use crate::base64;
use crate::json_writer::{not_finite, push_display, write_list, write_text};
use crate::leb128;
use crate::protobuf::{put_bytes, put_fixed64, put_integer, put_message, put_set_bytes};
use crate::pyroscope::Codec;

/// A message under way. Members of a list are written in a row.
pub(super) struct MessageWriter {
    out: Out,
}

enum Out {
    Protobuf(Vec<u8>),
    Json { text: String, is_first: bool },
}

impl MessageWriter {
    /// Writes a message: `fill` writes its fields.
    pub(super) fn write(codec: Codec, fill: impl FnOnce(&mut MessageWriter)) -> Vec<u8> {
        let out = match codec {
            Codec::Protobuf => Out::Protobuf(Vec::new()),
            Codec::Json => Out::Json { text: "{".to_owned(), is_first: true },
        };
        let mut message = MessageWriter { out };
        fill(&mut message);
        match message.out {
            Out::Protobuf(bytes) => bytes,
            Out::Json { mut text, .. } => {
                text.push('}');
                text.into_bytes()
            }
        }
    }

    pub(super) fn text(&mut self, number: u32, name: &str, value: &str) {
        self.value(value.is_empty(), name, |out| put_bytes(out, number, value.as_bytes()), |out| write_text(out, value));
    }

    pub(super) fn bytes(&mut self, number: u32, name: &str, value: &[u8]) {
        self.value(value.is_empty(), name, |out| put_bytes(out, number, value), |out| write_text(out, &base64::encode(value)));
    }

    /// An `int64` or `uint64`, which is a text in JSON.
    pub(super) fn integer(&mut self, number: u32, name: &str, value: i64) {
        self.value(
            value == 0,
            name,
            |out| put_integer(out, number, value.cast_unsigned()),
            |out| push_display(out, format_args!("\"{value}\"")),
        );
    }

    pub(super) fn flag(&mut self, number: u32, name: &str, value: bool) {
        self.value(!value, name, |out| put_integer(out, number, 1), |out| out.push_str("true"));
    }

    pub(super) fn double(&mut self, number: u32, name: &str, value: f64) {
        // Minus zero is not the default.
        self.value(value.to_bits() == 0, name, |out| put_fixed64(out, number, value.to_bits()), |out| push_double(out, value));
    }

    pub(super) fn texts<'t>(&mut self, number: u32, name: &str, values: impl IntoIterator<Item = &'t str>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        match &mut self.out {
            Out::Protobuf(out) => values.for_each(|value| put_set_bytes(out, number, value.as_bytes())),
            Out::Json { .. } => write_list(self.member(name), values, write_text),
        }
    }

    /// A packed list of `int64`.
    pub(super) fn integers(&mut self, number: u32, name: &str, values: &[i64]) {
        self.value(
            values.is_empty(),
            name,
            |out| put_message(out, number, |out| values.iter().for_each(|value| leb128::put(out, value.cast_unsigned()))),
            |out| write_list(out, values, |out, value| push_display(out, format_args!("\"{value}\""))),
        );
    }

    /// A packed list of `int32`, which are numbers in JSON.
    pub(super) fn small_integers(&mut self, number: u32, name: &str, values: &[i32]) {
        self.value(
            values.is_empty(),
            name,
            |out| put_message(out, number, |out| values.iter().for_each(|value| leb128::put(out, i64::from(*value).cast_unsigned()))),
            |out| write_list(out, values, push_display),
        );
    }

    /// A packed list of doubles.
    pub(super) fn doubles(&mut self, number: u32, name: &str, values: &[f64]) {
        self.value(
            values.is_empty(),
            name,
            |out| put_set_bytes(out, number, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()),
            |out| write_list(out, values, |out, value| push_double(out, *value)),
        );
    }

    pub(super) fn message(&mut self, number: u32, name: &str, fill: impl FnOnce(&mut MessageWriter)) {
        match &mut self.out {
            Out::Protobuf(out) => put_inner(out, number, fill),
            Out::Json { .. } => {
                self.member(name);
                self.object(fill);
            }
        }
    }

    pub(super) fn messages<T>(
        &mut self,
        number: u32,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut MessageWriter, T),
    ) {
        let mut is_first = true;
        for item in items {
            match &mut self.out {
                Out::Protobuf(out) => put_inner(out, number, |inner| fill(inner, item)),
                Out::Json { .. } => {
                    let start = if is_first { '[' } else { ',' };
                    let text = if is_first { self.member(name) } else { self.json() };
                    text.push(start);
                    self.object(|inner| fill(inner, item));
                }
            }
            is_first = false;
        }
        if let (Out::Json { text, .. }, false) = (&mut self.out, is_first) {
            text.push(']');
        }
    }

    /// A member in JSON that is written already.
    pub(super) fn json_member(&mut self, name: &str, json: &str) {
        self.member(name).push_str(json);
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.out, Out::Json { .. })
    }

    fn value(&mut self, is_default: bool, name: &str, protobuf: impl FnOnce(&mut Vec<u8>), json: impl FnOnce(&mut String)) {
        match &mut self.out {
            _ if is_default => {}
            Out::Protobuf(out) => protobuf(out),
            Out::Json { .. } => json(self.member(name)),
        }
    }

    /// The text behind the name of a member.
    fn member(&mut self, name: &str) -> &mut String {
        if let Out::Json { text, is_first } = &mut self.out {
            if !std::mem::replace(is_first, false) {
                text.push(',');
            }
            write_text(text, name);
            text.push(':');
        }
        self.json()
    }

    fn json(&mut self) -> &mut String {
        match &mut self.out {
            Out::Json { text, .. } => text,
            Out::Protobuf(_) => unreachable!("only JSON has members"),
        }
    }

    fn object(&mut self, fill: impl FnOnce(&mut MessageWriter)) {
        self.json().push('{');
        self.set_first(true);
        fill(self);
        self.set_first(false);
        self.json().push('}');
    }

    fn set_first(&mut self, first: bool) {
        if let Out::Json { is_first, .. } = &mut self.out {
            *is_first = first;
        }
    }
}

fn put_inner(out: &mut Vec<u8>, number: u32, fill: impl FnOnce(&mut MessageWriter)) {
    put_message(out, number, |out| {
        let mut inner = MessageWriter { out: Out::Protobuf(std::mem::take(out)) };
        fill(&mut inner);
        if let Out::Protobuf(bytes) = inner.out {
            *out = bytes;
        }
    });
}

fn push_double(out: &mut String, value: f64) {
    match value.is_finite() {
        true => push_display(out, value),
        false => write_text(out, not_finite(value)),
    }
}
