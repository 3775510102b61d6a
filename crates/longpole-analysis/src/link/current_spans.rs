//! Which span was current on a thread at a moment, by the journals of the recording.

use std::collections::HashMap;

use longpole_model::{ContextRecord, CurrentSpan, Monotonic, Recording, Sample, SpanId, ThreadKey, TraceId};

/// A sample that lies no further than this from a change is not held against the span before or after it: the clocks of two
/// processors are not the same to the last nanosecond.
const SLACK_NANOS: u64 = 1_000;

/// The stretches of each thread. Asked in the order of time, which is how samples and waits come, each is passed once.
#[derive(Debug)]
pub(crate) struct CurrentSpans<'a> {
    stretches: &'a [CurrentSpan],
    of_thread: HashMap<ThreadKey, Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    /// Places in the stretches, by start.
    places: Vec<u32>,
    /// The first that starts after the last query.
    next: usize,
}

impl<'a> CurrentSpans<'a> {
    pub(crate) fn of(recording: &'a Recording) -> CurrentSpans<'a> {
        let stretches = recording.current_spans.as_slice();
        let mut of_thread: HashMap<ThreadKey, Thread> = HashMap::new();
        for (place, stretch) in (0..).zip(stretches) {
            of_thread.entry(stretch.thread()).or_default().places.push(place);
        }
        CurrentSpans { stretches, of_thread }
    }

    /// What was current: the outer `None` where the thread's journal does not say, the inner one where it says that nothing was.
    pub(crate) fn at(&mut self, thread: ThreadKey, time: Monotonic) -> Option<Option<(TraceId, SpanId)>> {
        let place = self.place(thread, time)?;
        let stretch = self.stretch(thread, place)?;
        (time < stretch.end).then_some(stretch.span)
    }

    /// The last stretch of the thread that starts no later than this, by its place among those of the thread.
    fn place(&mut self, thread: ThreadKey, time: Monotonic) -> Option<usize> {
        let thread = self.of_thread.get_mut(&thread)?;
        let is_begun = |place: &u32| self.stretches[*place as usize].start <= time;
        if thread.next > 0 && !is_begun(&thread.places[thread.next - 1]) {
            thread.next = thread.places.partition_point(is_begun);
        }
        while thread.places.get(thread.next).is_some_and(is_begun) {
            thread.next += 1;
        }
        thread.next.checked_sub(1)
    }

    fn stretch(&self, thread: ThreadKey, place: usize) -> Option<&'a CurrentSpan> {
        let place = *self.of_thread.get(&thread)?.places.get(place)?;
        self.stretches.get(place as usize)
    }

    /// Whether the sample's own record says what the journal says; `None` where one of them says nothing.
    fn agrees(&mut self, sample: &Sample) -> Option<bool> {
        let record = match sample.context {
            ContextRecord::Span { trace_id, span_id } => Some((trace_id, span_id)),
            ContextRecord::NoSpan => None,
            ContextRecord::Absent | ContextRecord::Torn => return None,
        };
        let journal = self.at(sample.thread(), sample.time)?;
        if journal == record {
            return Some(true);
        }
        let thread = sample.thread();
        let here = self.place(thread, sample.time)?;
        let near = Monotonic(sample.time.0.saturating_sub(SLACK_NANOS))..=Monotonic(sample.time.0.saturating_add(SLACK_NANOS));
        let names = |stretch: &CurrentSpan| stretch.span == record;
        let before = (0..here).rev().map_while(|place| self.stretch(thread, place)).take_while(|it| near.contains(&it.end)).any(names);
        let after = (here + 1..).map_while(|place| self.stretch(thread, place)).take_while(|it| near.contains(&it.start)).any(names);
        Some(before || after)
    }
}

/// How the context records of samples and the journals of their threads compare: they are written and read in two ways, so each tests
/// the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrossCheck {
    /// Samples with a span from both.
    pub both: u64,
    /// Samples with different spans from the two.
    pub disagree: u64,
}

impl CrossCheck {
    /// Compares them for all samples.
    pub fn of(recording: &Recording) -> CrossCheck {
        let mut check = CrossCheck::default();
        if recording.current_spans.is_empty() {
            return check;
        }
        let mut current_spans = CurrentSpans::of(recording);
        for agrees in recording.samples.iter().filter_map(|sample| current_spans.agrees(sample)) {
            check.both += 1;
            check.disagree += u64::from(!agrees);
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    fn span(number: u8) -> (TraceId, SpanId) {
        TraceId::new([1; 16]).zip(SpanId::new([number; 8])).unwrap()
    }

    fn stretch(tid: u32, start: u64, end: u64, span: Option<(TraceId, SpanId)>) -> CurrentSpan {
        CurrentSpan { pid: 1, tid, start: Monotonic(start), end: Monotonic(end), span, is_sent: false }
    }

    #[test]
    fn a_query_finds_the_span_of_its_thread_at_its_time() {
        let mut recording = text::parse("run x 0..9ms\n").unwrap();
        recording.current_spans = vec![
            stretch(1, 10, 20, Some(span(1))),
            stretch(2, 12, 30, Some(span(2))),
            stretch(1, 20, 25, None),
            stretch(1, 40, 50, Some(span(3))),
        ];
        let mut current_spans = CurrentSpans::of(&recording);
        let mut at = |tid, time| current_spans.at(ThreadKey::new(1, tid), Monotonic(time));
        assert_eq!([at(1, 9), at(1, 10), at(1, 19), at(1, 20)], [None, Some(Some(span(1))), Some(Some(span(1))), Some(None)]);
        assert_eq!([at(1, 25), at(1, 39), at(1, 40), at(1, 50)], [None, None, Some(Some(span(3))), None], "a gap, and the end");
        assert_eq!([at(2, 12), at(3, 12)], [Some(Some(span(2))), None]);
    }

    #[test]
    fn a_record_beside_a_change_may_name_what_was_before_or_comes_after() {
        let cases = ["5us [a]", "8us [b]", "9.5us [b]", "10.5us [a]", "12us [a]", "15us [b]", "60us [a]"];
        let lines: String =
            cases.iter().map(|case| format!("sample {} pid 1 {} m\n", &case[..case.len() - 4], &case[case.len() - 3..])).collect();
        let mut recording = text::parse(&format!("run x 0..9ms\na 0..1ms web pid 1\nb 0..1ms web pid 1\n{lines}")).unwrap();
        let id = |name: &str| recording.spans.iter().find(|span| span.name.as_str() == name).map(|span| (span.trace_id, span.span_id));
        let (tid, zero) = (recording.samples[0].tid, text::ORIGIN_MONOTONIC.0);
        recording.current_spans = vec![stretch(tid, zero, zero + 10_000, id("a")), stretch(tid, zero + 10_000, zero + 20_000, id("b"))];
        assert_eq!(CrossCheck::of(&recording), CrossCheck { both: 6, disagree: 2 });
    }
}
