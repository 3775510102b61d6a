//! What the formats beside OTLP share: how a span of theirs becomes one of the model, and how one of the model goes into
//! tags where they have no field for it.
//!
//! ```text
//! in   tags, logs ──► Building ──► Span ──► deliver ──► sink
//! out  Span ──► said_in_tags, event_text ──► the format's own writer, and CannotHold: what got lost
//! ```
//!
//! | tag | is | known to |
//! |---|---|---|
//! | `span.kind` | kind | OpenTracing, Jaeger |
//! | `error`, `otel.status_code`, `otel.status_description` | status | OpenTelemetry's rules for Zipkin and Jaeger |
//! | `otel.scope.name`, `otel.scope.version` | scope | the same |
//! | `otel.dropped_attributes_count`, `…events…`, `…links…` | what the emitter dropped | the same |
//! | `w3c.tracestate` | trace state | Jaeger, the Collector |
//! | `otlp.link.0`, … | link: `trace id\|span id\|state\|attributes as JSON\|dropped` | the Collector |
//! | `otel.resource.KEY` | attribute of the resource | us |
//! | `longpole.flags`, `longpole.trace_id` | flags; a trace id that is longer than the format's | us |

mod building;
mod deliver;
mod ids;
mod keys;
mod losses;
mod outgoing;

pub(crate) use building::Building;
pub(crate) use deliver::Deliver;
pub(crate) use ids::{HexId, halves, hex_id, number, number_of_bytes, span_id, span_id_of_bytes, trace_id, trace_id_of_bytes};
pub(crate) use keys::{TRACE_ID, UNFINISHED, is_spoken_for};
pub(crate) use losses::{BEFORE_1970, CannotHold, Losses, NAMES, NANOS, TIMES_MOVED};
pub(crate) use outgoing::{attribute_text, event_text, flags_tag, kind_tag, link_tags, resource_tags, said_in_tags, service_and_others};
