//! `exec`: runs a command as one span, for scripts, as otel-cli does: it reads and passes on `TRACEPARENT`, exits as the command does, and
//! without an endpoint in the environment only runs the command.
//!
//! ```text
//! environment ─ endpoint? ─ no ──► the command, in the environment as it is
//!                  └ yes ─► TRACEPARENT of the span ─► the command ─► span ─► endpoint ─► we end as the command ended
//! ```
//!
//! It records nothing and opens no store: a script may call it a thousand times.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::launch::child::{self, GatedChild};
use longpole_capture::launch::signals;
use longpole_model::{Attribute, AttributeValue, Attributes, Exit, Resource, Scope, Span, SpanId, SpanKind, Status, StatusCode, TimeRange};
use longpole_server::forward;
use longpole_wire::redact::Redactor;
use longpole_wire::traceparent::{FLAG_SAMPLED, TraceParent};

use crate::args::{ExecArguments, Kind};
use crate::env_vars;
use crate::launch_failure::{report_not_started, run_unrecorded};
use crate::session::{Moment, identity, spans_target};
use crate::terminal::stderr::note;

/// Time limit for sending the span: a script must not hang on a dead collector.
const SEND_MAX: Duration = Duration::from_secs(2);

/// Placeholder for the traceparent of the span in the command's arguments, as in otel-cli.
const PLACEHOLDER: &str = "{{traceparent}}";

/// Runs the command and exits as it did.
pub(crate) fn exec(arguments: &ExecArguments) -> ExitCode {
    let mut environment = env_vars::inherited();
    if let Err(error) = signals::begin() {
        return run_unrecorded(&arguments.argv, &environment, &error);
    }
    let mut argv = arguments.argv.clone();
    let wanted = spans_target(&environment).and_then(|target| match OpenSpan::begin() {
        Ok(span) => Some((target, span)),
        Err(error) => {
            note(format!("no span will be sent: {error:#}"));
            None
        }
    });
    if let Some((_, span)) = &wanted {
        let own = span.context.to_string();
        environment.retain(|(name, _)| name != env_vars::TRACEPARENT);
        environment.push((env_vars::TRACEPARENT.into(), own.clone().into()));
        for word in &mut argv {
            if let Some(text) = word.to_str().filter(|text| text.contains(PLACEHOLDER)) {
                *word = text.replace(PLACEHOLDER, &own).into();
            }
        }
    }
    let started = child::prepare_or(&argv, &environment, Some(&env_vars::inherited())).and_then(GatedChild::release);
    let (ended, pid) = match started {
        Ok(mut child) => {
            if child.has_spare_environment() {
                note("the command did not get TRACEPARENT: its arguments and environment leave no room for it");
            }
            (Ok(child.wait()), Some(child.pid()))
        }
        Err(error) => (Err(error), None),
    };
    if let Some((target, span)) = wanted.filter(|(_, span)| span.context.flags & FLAG_SAMPLED != 0) {
        let span = span.end(arguments, ended.as_ref().map_err(ToString::to_string).copied(), pid);
        if let Err(error) = forward::send_once(target, &[span], SEND_MAX) {
            note(format!("the span was not sent: {error}"));
        }
    }
    match ended {
        Ok(exit) => child::exit_like(exit),
        Err(error) if error.is_ours() => run_unrecorded(&argv, &environment, &error),
        Err(error) => report_not_started(&error),
    }
}

/// A span that has not ended.
struct OpenSpan {
    context: TraceParent,
    parent: Option<SpanId>,
    trace_state: String,
    start: Moment,
}

impl OpenSpan {
    fn begin() -> Result<Self> {
        let inherited = std::env::var(env_vars::TRACEPARENT).ok().and_then(|text| text.parse::<TraceParent>().ok());
        let (mut context, _) = identity().context("failed to make an id")?;
        // Children of an unsampled parent are unsampled.
        context.flags = inherited.map_or(FLAG_SAMPLED, |parent| parent.flags);
        let trace_state = inherited.and_then(|_| std::env::var("TRACESTATE").ok()).unwrap_or_default();
        Ok(OpenSpan { context, parent: inherited.map(|parent| parent.span_id), trace_state, start: Moment::now() })
    }

    fn end(self, arguments: &ExecArguments, ended: Result<Exit, String>, pid: Option<u32>) -> Span {
        let end = self.start.later(Instant::now());
        let mut words: Vec<String> = arguments.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Redactor::default().arguments(&mut words);
        let command = words.first().cloned().unwrap_or_default();
        let status = match &ended {
            Ok(Exit::Code(0)) => Status::default(),
            Ok(Exit::Code(code)) => Status { code: StatusCode::Error, message: format!("exit status {code}").into() },
            Ok(Exit::Signal(signal)) => Status { code: StatusCode::Error, message: format!("killed by signal {signal}").into() },
            Err(error) => Status { code: StatusCode::Error, message: error.into() },
        };
        let mut attributes = Attributes::default();
        attributes.push("process.command", AttributeValue::Str(command.as_str().into()));
        let words = words.into_iter().map(|word| AttributeValue::Str(word.into()));
        attributes.push("process.command_args", AttributeValue::Array(words.collect()));
        if let Some(pid) = pid {
            attributes.push("process.pid", AttributeValue::Int(pid.into()));
        }
        if let Ok(Exit::Code(code)) = ended {
            attributes.push("process.exit.code", AttributeValue::Int(code.into()));
        }
        attributes.0.extend(arguments.attrs.iter().map(|(key, text)| attribute(key, text)));
        let name = arguments.name.clone().unwrap_or_else(|| command.rsplit('/').next().unwrap_or_default().to_owned());
        let range = TimeRange { start: self.start.wall, end };
        Span {
            parent_span_id: self.parent,
            trace_state: self.trace_state.into(),
            flags: self.context.flags.into(),
            kind: kind(arguments.kind),
            attributes,
            status,
            resource: Arc::new(resource(arguments)),
            scope: Arc::new(Scope { name: "longpole exec".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), ..Scope::default() }),
            pid,
            ..Span::new(self.context.trace_id, self.context.span_id, name, range)
        }
    }
}

/// The service, and `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(arguments: &ExecArguments) -> Resource {
    let said = std::env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut attributes = Attributes(vec![attribute("service.name", &arguments.service)]);
    for (key, value) in said.split(',').filter_map(|pair| pair.trim().split_once('=')) {
        if key != "service.name" {
            attributes.push(key.trim(), AttributeValue::Str(percent_decoded(value.trim()).into()));
        }
    }
    Resource { attributes }
}

/// Numbers and booleans keep their type, as in otel-cli.
fn attribute(key: &str, text: &str) -> Attribute {
    let value = match (text.parse(), text.parse(), text.parse()) {
        (Ok(number), _, _) => AttributeValue::Int(number),
        (_, Ok(truth), _) => AttributeValue::Bool(truth),
        (_, _, Ok(number)) => AttributeValue::Double(number),
        _ => AttributeValue::Str(text.into()),
    };
    Attribute { key: key.into(), value }
}

/// A text without the escapes of W3C's baggage, which the variable uses. What is no escape stays as it is.
fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn kind(kind: Kind) -> SpanKind {
    match kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
        Kind::Producer => SpanKind::Producer,
        Kind::Consumer => SpanKind::Consumer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_and_types_are_kept() {
        assert_eq!(percent_decoded("a%20b%2Cc%zz%"), "a b,c%zz%");
        assert_eq!(attribute("n", "7").value, AttributeValue::Int(7));
        assert_eq!(attribute("n", "true").value, AttributeValue::Bool(true));
        assert_eq!(attribute("n", "0.5").value, AttributeValue::Double(0.5));
        assert_eq!(attribute("n", "x").value, AttributeValue::Str("x".into()));
    }
}
