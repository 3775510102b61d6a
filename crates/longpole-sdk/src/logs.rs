//! Events as lines on stderr, for people or for machines, with the ids of the span that they belong to.

use std::fmt::{self, Write};

use tracing_core::field::{Field, Visit};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::span_context::SpanContext;
use crate::{current_span, layer};

/// `tracing-subscriber`'s line with `trace_id` and `span_id` at its end.
pub(crate) struct TextLine(pub(crate) Format);

/// One object per event.
pub(crate) struct JsonLine;

/// The span that an event belongs to: the one it names, else the one that the thread is inside of.
fn context_of<S, N>(ctx: &FmtContext<'_, S, N>, event: &Event<'_>) -> Option<SpanContext>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let named = event.parent().and_then(|id| ctx.span(id)).or_else(|| ctx.lookup_current());
    named.and_then(|span| layer::context_in(&span.extensions())).or_else(current_span::current)
}

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(context) = context_of(ctx, event) else { return self.0.format_event(ctx, writer, event) };
        let mut line = String::new();
        self.0.format_event(ctx, Writer::new(&mut line), event)?;
        let (trace_id, span_id) = context.hex_ids();
        writeln!(writer, "{} trace_id={trace_id} span_id={span_id}", line.trim_end_matches('\n'))
    }
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        let mut time = String::new();
        // A clock that cannot be shown is no reason to lose the line.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let mut line = String::from("{\"timestamp\":");
        push_string(&mut line, &time);
        line.push_str(",\"level\":");
        push_string(&mut line, metadata.level().as_str());
        line.push_str(",\"target\":");
        push_string(&mut line, metadata.target());
        let mut fields = JsonFields { fields: String::new(), message: None };
        event.record(&mut fields);
        if let Some(message) = &fields.message {
            line.push_str(",\"message\":");
            push_string(&mut line, message);
        }
        if !fields.fields.is_empty() {
            line.push_str(",\"fields\":{");
            line.push_str(&fields.fields);
            line.push('}');
        }
        let span = event.parent().and_then(|id| ctx.span(id)).or_else(|| ctx.lookup_current());
        if let Some(span) = span {
            line.push_str(",\"span\":");
            push_string(&mut line, span.name());
        }
        if let Some(context) = context_of(ctx, event) {
            let (trace_id, span_id) = context.hex_ids();
            // Hex digits need no care.
            write!(line, ",\"trace_id\":\"{trace_id}\",\"span_id\":\"{span_id}\"")?;
        }
        writeln!(writer, "{line}}}")
    }
}

/// The values of an event as members of an object.
struct JsonFields {
    fields: String,
    message: Option<String>,
}

impl JsonFields {
    fn key(&mut self, field: &Field) {
        if !self.fields.is_empty() {
            self.fields.push(',');
        }
        push_string(&mut self.fields, field.name());
        self.fields.push(':');
    }

    /// A number or a truth value, as JSON spells it.
    fn bare(&mut self, field: &Field, value: &dyn fmt::Display) {
        self.key(field);
        let _ = write!(self.fields, "{value}");
    }

    fn text(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = Some(value.to_owned());
            return;
        }
        self.key(field);
        push_string(&mut self.fields, value);
    }
}

impl Visit for JsonFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for the others.
        if value.is_finite() { self.bare(field, &value) } else { self.text(field, &value.to_string()) }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.bare(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.bare(field, &value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.bare(field, &value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.bare(field, &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.bare(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

/// A JSON string.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string() {
        let mut out = String::new();
        push_string(&mut out, "a\"b\\c\n\t\u{1}ä");
        assert_eq!(out, r#""a\"b\\c\n\t\u0001ä""#);
    }
}
