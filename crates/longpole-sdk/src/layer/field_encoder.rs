//! The values of a macro as encoded attributes.

use std::fmt::{self, Write};

use tracing_core::field::{Field, Visit};

use super::buffers::with_text;
use super::span_state::{MAX_SPAN_BYTES, Overrides};
use crate::config::Limits;
use crate::encode::{self, Value};
use crate::registry_guard::Inside;

/// Turns the values of a macro into encoded attributes.
pub(super) struct FieldEncoder<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Field of the message in `out` that attributes are.
    pub(super) number: u32,
    pub(super) limits: &'a Limits,
    pub(super) kept: u32,
    pub(super) dropped: u32,
    /// Bits of the fields whose values were kept.
    pub(super) recorded: u64,
    pub(super) role: Role<'a>,
}

/// Whose values they are.
pub(super) enum Role<'a> {
    Span {
        overrides: &'a mut Overrides,
        /// Bits of the fields that have a value from before.
        already: u64,
        /// Keys of those that get another one now.
        replaced: &'a mut Vec<&'static str>,
    },
    Event {
        message: &'a mut Option<String>,
        exception: &'a mut Option<String>,
    },
}

impl FieldEncoder<'_> {
    fn attribute(&mut self, field: &Field, value: Value<'_>) {
        let value = match value {
            Value::Str(text) => Value::Str(cut(text, self.limits.value_bytes)),
            other => other,
        };
        let mut takes_a_place = true;
        if let Role::Span { overrides, already, replaced } = &mut self.role {
            if field.name().strip_prefix("otel.").is_some_and(|name| overrides.set(name, value)) {
                return;
            }
            if *already & field_bit(field) != 0 {
                replaced.push(field.name());
                takes_a_place = false;
            }
        }
        if (takes_a_place && self.kept >= self.limits.attributes) || self.out.len() > MAX_SPAN_BYTES {
            self.dropped += 1;
            return;
        }
        self.recorded |= field_bit(field);
        self.kept += 1;
        encode::attribute(self.out, self.number, field.name(), value);
    }

    fn text(&mut self, field: &Field, fill: impl FnOnce(&mut String)) {
        with_text(fill, |text| self.record_str(field, text));
    }
}

/// The fields of a macro are numbered from 0, and few; those past 63 share the last bit, which only means that an attribute
/// may be looked for in vain.
fn field_bit(field: &Field) -> u64 {
    1 << field.index().min(63)
}

/// The first `limit` bytes of a text, or fewer, to end at a character.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    &text[..text.floor_char_boundary(limit)]
}

impl Visit for FieldEncoder<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attribute(field, Value::Double(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attribute(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            // OTLP has no larger integers: digits lose nothing.
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match i64::try_from(value) {
            Ok(value) => self.attribute(field, Value::Int(value)),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attribute(field, Value::Bool(value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.attribute(field, Value::Bytes(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if let Role::Event { message, exception } = &mut self.role {
            match field.name() {
                "message" => {
                    **message = Some(cut(value, self.limits.value_bytes).to_owned());
                    return;
                }
                // What `#[instrument(err)]` names the error it logs.
                "error" => **exception = Some(value.to_owned()),
                _ => {}
            }
        }
        self.attribute(field, Value::Str(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, |text| {
            let _ = write!(text, "{value}");
        });
        // Its causes, outermost first, bounded because nothing says that the chain ends.
        let causes = std::iter::successors(value.source(), |cause| cause.source()).take(16);
        let causes = || causes.map(|cause| cut(&cause.to_string(), self.limits.value_bytes).to_owned()).collect::<Vec<_>>();
        let causes = Inside::pause(causes);
        if !causes.is_empty() && self.kept < self.limits.attributes && self.out.len() <= MAX_SPAN_BYTES {
            self.kept += 1;
            encode::attribute(self.out, self.number, &format!("{}.chain", field.name()), Value::Texts(&causes));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, |text| {
            let _ = write!(text, "{value:?}");
        });
    }
}
