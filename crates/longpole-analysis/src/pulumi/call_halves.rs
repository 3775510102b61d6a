//! Which two spans are client and server of one call.
//!
//! Mostly the server says so: its parent is the client. A provider without OpenTelemetry loses its caller on the way through Pulumi's
//! bridge, which puts its spans under the command; then time says it:
//!
//! ```text
//! pulumi                        ├───────────────────────────┤
//! Create, client (pulumi-cli)      ├───────────────────┤
//! Create, server (provider)         ├─────────────────┤         parent "pulumi"; 0.2 to 1 ms later, and as much earlier
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use longpole_model::{IdVec, Span, SpanKind, SpanRow, TimeRange};

use crate::pulumi::call::Call;
use crate::pulumi::span_pairing::{self, Interval, Window};
use crate::tree::span_list::rows;

/// A server begins so much later than its client; measured: 0.2 to 1 ms, more on a busy machine.
const SERVER_AFTER_CLIENT_NANOS: RangeInclusive<i64> = 0..=50_000_000;

/// A server ends so much later than its client: earlier, that is.
const SERVER_END_AFTER_CLIENT_NANOS: RangeInclusive<i64> = -50_000_000..=0;

/// How OpenTracing writes the kind of a span, and how Pulumi's bridge leaves it.
const KIND: &str = "span.kind";

/// For each span the client of its call, where the span is a server; `call_of`, `range` and `parent` are of the span with this number,
/// and `parent` is the span that it names.
pub(super) fn outer_halves(
    spans: &[Span],
    call_of: &IdVec<SpanRow, Option<Call>>,
    range: &dyn Fn(SpanRow) -> TimeRange,
    parent: &dyn Fn(SpanRow) -> Option<SpanRow>,
) -> IdVec<SpanRow, Option<SpanRow>> {
    let named = |i: SpanRow| parent(i).filter(|&above| above != i && call_of[i].is_some() && call_of[above] == call_of[i]);
    let mut outer: IdVec<SpanRow, Option<SpanRow>> = rows(spans).map(|(i, _)| named(i)).collect();
    for (server, client) in by_time(spans, call_of, range, &outer) {
        outer[server] = Some(client);
    }
    outer
}

/// Whether a span is this side of a call.
pub(super) fn is_side(span: &Span, side: SpanKind) -> bool {
    span.kind == side || span.attributes.get_str(KIND) == Some(side.as_str())
}

/// Servers that name no client, and the clients without a server that they fit.
fn by_time(
    spans: &[Span],
    call_of: &IdVec<SpanRow, Option<Call>>,
    range: &dyn Fn(SpanRow) -> TimeRange,
    outer: &IdVec<SpanRow, Option<SpanRow>>,
) -> Vec<(SpanRow, SpanRow)> {
    let mut has_server: IdVec<SpanRow, bool> = IdVec::filled(false, spans.len());
    outer.iter().flatten().for_each(|&client| has_server[client] = true);
    // Clients, servers.
    let mut lone: BTreeMap<Call, [Vec<SpanRow>; 2]> = BTreeMap::new();
    for (i, span) in rows(spans).filter(|&(i, _)| outer[i].is_none()) {
        let Some(call) = call_of[i] else { continue };
        let sides = lone.entry(call).or_default();
        if is_side(span, SpanKind::Server) {
            sides[1].push(i);
        } else if is_side(span, SpanKind::Client) && !has_server[i] {
            sides[0].push(i);
        }
    }
    let window = Window { start: SERVER_AFTER_CLIENT_NANOS, end: SERVER_END_AFTER_CLIENT_NANOS, by_start: true };
    let mut pairs = Vec::new();
    for [clients, servers] in lone.values_mut() {
        for list in [&mut *clients, &mut *servers] {
            list.sort_by_key(|&i| (range(i).start, spans[i].trace_id, spans[i].span_id));
        }
        let [left, right] = [&*clients, &*servers].map(|list| list.iter().map(|&i| Interval::from(range(i))).collect::<Vec<_>>());
        pairs.extend(span_pairing::pair(&left, &right, &window).into_iter().map(|(c, s)| (servers[s], clients[c])));
    }
    pairs
}
