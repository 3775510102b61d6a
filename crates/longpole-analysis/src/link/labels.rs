//! Labels of a profile → the spans of a recording that they name.
//!
//! An id of a trace with that of a span names one span, whether it is there or not. An id of a span alone, or a name, may be that of
//! several: then none is chosen.

use std::collections::HashMap;

use longpole_model::{Evidence, SampleLink, Span, SpanId, SpanLabel, TraceId};

/// The spans of a recording, by what labels say of them.
#[derive(Debug, Default)]
pub struct LabelledSpans<'a> {
    by_id: HashMap<SpanId, Vec<TraceId>>,
    by_name: HashMap<&'a str, Vec<(TraceId, SpanId)>>,
}

impl<'a> LabelledSpans<'a> {
    /// All of these.
    pub fn of(spans: &'a [Span]) -> Self {
        let mut out = LabelledSpans::default();
        for span in spans {
            out.by_id.entry(span.span_id).or_default().push(span.trace_id);
            out.by_name.entry(&span.name).or_default().push((span.trace_id, span.span_id));
        }
        out
    }

    /// What a label names.
    pub fn link(&self, label: &SpanLabel) -> SampleLink {
        if let (Some(trace_id), &[span_id, ..]) = (label.trace_id, &label.span_ids[..]) {
            let is_there = |id: &&SpanId| self.by_id.get(*id).is_some_and(|traces| traces.contains(&trace_id));
            let span_id = label.span_ids.iter().find(is_there).copied().unwrap_or(span_id);
            return SampleLink { span: Some((trace_id, span_id)), evidence: Evidence::Label };
        }
        let mut candidates: Vec<(TraceId, SpanId)> =
            label.span_ids.iter().flat_map(|id| self.by_id.get(id).into_iter().flatten().map(|trace| (*trace, *id))).collect();
        if candidates.is_empty() {
            let named = label.name.as_deref().and_then(|name| self.by_name.get(name));
            candidates = named.into_iter().flatten().copied().filter(|(trace, _)| label.trace_id.is_none_or(|it| it == *trace)).collect();
        }
        match candidates[..] {
            [] => SampleLink { span: None, evidence: Evidence::None },
            [span] => SampleLink { span: Some(span), evidence: Evidence::Label },
            _ => {
                let candidates = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
                SampleLink { span: None, evidence: Evidence::Ambiguous { candidates } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    #[test]
    fn a_label_names_one_span_or_is_ambiguous() {
        let recording = text::parse("a 0..9ms web id 7\nb 1..2ms web id 8\nb 3..4ms web id 9\ntrace 2\nc 5..6ms web id 9\n").unwrap();
        let spans = LabelledSpans::of(&recording.spans);
        let id = |number: u64| SpanId::from_slice(&number.to_be_bytes()).unwrap();
        let first = recording.spans[0].trace_id;
        let words = |trace_id: Option<TraceId>, ids: &[u64], name: Option<&str>| {
            let label = SpanLabel { trace_id, span_ids: ids.iter().map(|it| id(*it)).collect(), name: name.map(str::to_owned) };
            let link = spans.link(&label);
            match (link.span, link.evidence) {
                (_, Evidence::Ambiguous { candidates }) => format!("one of {candidates}"),
                (None, evidence) => evidence.as_str().to_owned(),
                (Some(named), evidence) => {
                    let name =
                        recording.spans.iter().find(|span| (span.trace_id, span.span_id) == named).map_or("unknown", |span| &span.name);
                    format!("{name} {}", evidence.as_str())
                }
            }
        };
        assert_eq!(words(None, &[7], None), "a label");
        assert_eq!(words(None, &[9], None), "one of 2");
        assert_eq!(words(Some(first), &[9], None), "b label");
        assert_eq!(words(Some(first), &[5, 8], None), "b label");
        assert_eq!(words(Some(first), &[5], None), "unknown label");
        assert_eq!(words(None, &[5], None), "none");
        assert_eq!(words(None, &[5], Some("a")), "a label");
        assert_eq!(words(None, &[], Some("b")), "one of 2");
        assert_eq!(words(None, &[], Some("x")), "none");
        assert_eq!(words(None, &[], None), "none");
    }
}
