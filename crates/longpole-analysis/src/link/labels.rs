//! Labels of a profile → the spans of a recording that they name.
//!
//! An id of a trace with that of a span names one span, whether it is there or not. An id of a span alone, or a name, may be that of
//! several: then none is chosen.

use std::collections::{HashMap, HashSet};

use longpole_model::{Evidence, SampleLink, Span, SpanId, SpanLabel, TraceId};

/// How many spans a label names, and the first of them.
#[derive(Debug, Clone, Copy)]
struct Named {
    count: usize,
    first: (TraceId, SpanId),
}

impl Named {
    /// One more, or several.
    fn add(named: &mut Option<Named>, more: Named) {
        match named {
            Some(named) => named.count += more.count,
            None => *named = Some(more),
        }
    }
}

/// The spans of a recording, by what labels say of them.
#[derive(Debug, Default)]
pub struct LabelledSpans<'a> {
    known: HashSet<(TraceId, SpanId)>,
    by_id: HashMap<SpanId, Option<Named>>,
    by_name: HashMap<&'a str, Option<Named>>,
    by_name_in_trace: HashMap<(&'a str, TraceId), Option<Named>>,
}

impl<'a> LabelledSpans<'a> {
    /// All of these.
    pub fn of(spans: &'a [Span]) -> Self {
        let mut out = LabelledSpans::default();
        for span in spans {
            let named = Named { count: 1, first: (span.trace_id, span.span_id) };
            out.known.insert(named.first);
            Named::add(out.by_id.entry(span.span_id).or_default(), named);
            Named::add(out.by_name.entry(&span.name).or_default(), named);
            Named::add(out.by_name_in_trace.entry((&span.name, span.trace_id)).or_default(), named);
        }
        out
    }

    /// What a label names.
    pub fn link(&self, label: &SpanLabel) -> SampleLink {
        if let (Some(trace_id), &[span_id, ..]) = (label.trace_id, &label.span_ids[..]) {
            let span_id = label.span_ids.iter().find(|id| self.known.contains(&(trace_id, **id))).copied().unwrap_or(span_id);
            return SampleLink { span: Some((trace_id, span_id)), evidence: Evidence::Label };
        }
        let mut named = None;
        let by_id = label.span_ids.iter().filter_map(|id| *self.by_id.get(id)?);
        by_id.for_each(|it| Named::add(&mut named, it));
        let by_name = |name| match label.trace_id {
            Some(trace_id) => *self.by_name_in_trace.get(&(name, trace_id))?,
            None => *self.by_name.get(name)?,
        };
        match named.or_else(|| by_name(label.name.as_deref()?)) {
            None => SampleLink { span: None, evidence: Evidence::None },
            Some(Named { count: 1, first }) => SampleLink { span: Some(first), evidence: Evidence::Label },
            Some(Named { count, .. }) => {
                let candidates = u32::try_from(count).unwrap_or(u32::MAX);
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

    /// Each label went through all spans of its name, or of its id: 20,000,000,000 steps.
    #[test]
    fn labels_of_a_name_that_many_spans_have_do_not_go_through_them() {
        const COUNT: u64 = 100_000;
        let recording = text::parse("a 0..9ms web id 7\n").unwrap();
        let id = |number: u64| SpanId::from_slice(&number.to_be_bytes()).unwrap();
        let trace = |number: u64| TraceId::from_slice(&u128::from(number).to_be_bytes()).unwrap();
        // Half of them have one name, half of them one id.
        let span = |number: u64| {
            let (name, id) = if number <= COUNT { ("one".into(), id(number)) } else { (number.to_string().into(), id(COUNT + 1)) };
            Span { trace_id: trace(number), span_id: id, name, ..recording.spans[0].clone() }
        };
        let list: Vec<Span> = (1..=2 * COUNT).map(span).collect();
        let spans = LabelledSpans::of(&list);
        for number in 0..COUNT {
            let by_name = SpanLabel { trace_id: None, span_ids: vec![id(3 * COUNT + number)], name: Some("one".to_owned()) };
            let both = SpanLabel { trace_id: Some(trace(2 * COUNT - number)), span_ids: vec![id(COUNT + 1)], name: None };
            let ambiguous = Evidence::Ambiguous { candidates: COUNT as u32 };
            assert_eq!(spans.link(&by_name), SampleLink { span: None, evidence: ambiguous });
            assert_eq!(spans.link(&both).span, Some((trace(2 * COUNT - number), id(COUNT + 1))));
        }
        let in_trace = SpanLabel { trace_id: Some(trace(5)), span_ids: Vec::new(), name: Some("one".to_owned()) };
        assert_eq!(spans.link(&in_trace).span, Some((trace(5), id(5))));
    }
}
