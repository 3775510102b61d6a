//! Spans that threads were inside of and that nobody received: a program that ends before it sends them does not say so itself.
//!
//! Journals say which spans are to be sent. Context records do not: an id that is in records only is expected where its process sent
//! other spans of the trace, which says that the trace is sampled there, and where no span names it as its parent, for it may be
//! one of another process.

use std::collections::HashSet;

use longpole_model::{ContextRecord, Recording, SpanId, SpanIndex, TraceId};

/// The ids of a span.
type Ids = (TraceId, SpanId);

/// How many spans of the recording's threads never arrived. Count them when the recording is assembled, with the spans as they came.
pub fn count(recording: &Recording) -> u64 {
    let samples = recording.samples.iter().filter_map(|sample| match sample.context {
        ContextRecord::Span { trace_id, span_id } => Some((sample.pid, (trace_id, span_id))),
        ContextRecord::NoSpan | ContextRecord::Absent | ContextRecord::Torn => None,
    });
    let mut samples = samples.peekable();
    if recording.current_spans.is_empty() && samples.peek().is_none() {
        return 0;
    }
    let arrived = SpanIndex::of(&recording.spans);
    let has_arrived = |(trace_id, span_id): Ids| arrived.get(&recording.spans, trace_id, span_id).is_some();
    let mut missing = HashSet::new();
    let mut journaled = HashSet::new();
    let mut before = None;
    for stretch in &recording.current_spans {
        journaled.insert(stretch.pid);
        let Some(ids) = stretch.span.filter(|ids| stretch.is_sent && before != Some(*ids)) else { continue };
        before = Some(ids);
        if !has_arrived(ids) {
            missing.insert(ids);
        }
    }
    // What a process with journals says in records stands there, too.
    let mut recorded: HashSet<(u32, Ids)> = samples.filter(|(pid, ids)| !journaled.contains(pid) && !has_arrived(*ids)).collect();
    if !recorded.is_empty() {
        let sampled: HashSet<(u32, TraceId)> = recording.spans.iter().filter_map(|span| Some((span.pid?, span.trace_id))).collect();
        let parents: HashSet<Ids> = recording.spans.iter().filter_map(|span| Some((span.trace_id, span.parent_span_id?))).collect();
        recorded.retain(|(pid, ids)| sampled.contains(&(*pid, ids.0)) && !parents.contains(ids));
        missing.extend(recorded.into_iter().map(|(_, ids)| ids));
    }
    missing.len() as u64
}

#[cfg(test)]
mod tests {
    use longpole_model::{CurrentSpan, Monotonic, text};

    use super::*;

    fn ids(number: u8) -> Ids {
        TraceId::new([1; 16]).zip(SpanId::new([number; 8])).unwrap()
    }

    fn stretch(start: u64, span: Option<Ids>) -> CurrentSpan {
        CurrentSpan { pid: 1, tid: 1, start: Monotonic(start), end: Monotonic(start + 10), span, is_sent: span.is_some() }
    }

    #[test]
    fn what_journals_name_and_nobody_received_is_counted_once() {
        let mut recording = text::parse("run x 0..9ms\na 0..1ms web pid 1\n").unwrap();
        let arrived = (recording.spans[0].trace_id, recording.spans[0].span_id);
        recording.current_spans = vec![
            stretch(0, Some(arrived)),
            stretch(10, Some(ids(2))),
            stretch(20, None),
            stretch(30, Some(ids(2))),
            stretch(40, Some(ids(3))),
        ];
        assert_eq!(count(&recording), 2);
        recording.current_spans[4].is_sent = false;
        assert_eq!(count(&recording), 1, "one is not sampled");
    }

    #[test]
    fn what_only_a_record_names_is_counted_where_its_trace_is_sampled() {
        let lines = "run x 0..9ms\na 0..1ms web pid 1\nb 0..1ms web pid 1\nsample 1ms pid 1 [b] m\nsample 2ms pid 1 [b] m\n";
        let mut recording = text::parse(lines).unwrap();
        let lost = recording.spans.iter().position(|span| span.name.as_str() == "b").unwrap();
        let lost = recording.spans.remove(lost);
        assert_eq!(count(&recording), 1);
        recording.spans[0].parent_span_id = Some(lost.span_id);
        assert_eq!(count(&recording), 0, "it may be the caller's");
        recording.spans.clear();
        assert_eq!(count(&recording), 0, "it may not be sampled");
    }
}
