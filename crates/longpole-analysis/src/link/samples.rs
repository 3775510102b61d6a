//! Samples × spans → links with their evidence: what ran inside this span.
//!
//! A context record decides where there is one. It may name a span that is not in the recording: it had not ended when
//! the program did, or it is still on its way; the link keeps the id, as `record`, for a later sealing.
//!
//! Where no record was found, or one in the middle of a write, the journal of the thread decides, if it has one that reaches so far.
//!
//! Where there is neither, process, thread and time decide, and only if they leave no choice. Among the spans that are open in
//! the process, and can be on the thread (`threads_of_spans`), those count that have no open child there: a parent with an open child
//! is taken to wait for it.
//!
//! ```text
//! pid 7   handle     ├────────────────────┤
//!           parse      ├────┤
//!           fetch              ├───────┤
//!         handle                   ├────────────┤     another request
//! sample         ^ parse, inferred     ^ ambiguous: fetch or the other handle
//! ```

use std::collections::HashMap;

use longpole_model::{
    ContextRecord, Evidence, IdVec, Monotonic, NodeId, Recording, Sample, SampleId, SampleLink, Span, SpanId, SpanRow, ThreadKey,
    Timestamp, TraceId,
};

use crate::leaves::Leaves;
use crate::link::current_spans::CurrentSpans;
use crate::link::span_threads::{Group, Member, SpanThreads};
use crate::lists::Lists;
use crate::tree::forest::Forest;
use crate::tree::span_list::rows;

/// Something that was seen of a thread at a moment.
pub(crate) struct ThreadMoment {
    pub(crate) thread: ThreadKey,
    pub(crate) time: Monotonic,
    pub(crate) context: ContextRecord,
}

/// How samples were tied to their spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// By the context record.
    pub record: u64,
    /// By the thread's journal.
    pub journal: u64,
    /// By labels of a profile that was read.
    pub label: u64,
    /// By process and time.
    pub inferred: u64,
    /// Several spans could own them.
    pub ambiguous: u64,
    /// No span was open there.
    pub none: u64,
}

impl LinkCounts {
    /// Those of samples with these links.
    pub(crate) fn of(links: impl Iterator<Item = SampleLink>) -> LinkCounts {
        let mut counts = LinkCounts::default();
        for link in links {
            *match link.evidence {
                Evidence::Record => &mut counts.record,
                Evidence::Journal => &mut counts.journal,
                Evidence::Label => &mut counts.label,
                Evidence::Inferred => &mut counts.inferred,
                Evidence::Ambiguous { .. } => &mut counts.ambiguous,
                Evidence::None => &mut counts.none,
            } += 1;
        }
        counts
    }
}

/// The link of each sample, in the order of the samples.
pub fn link(recording: &Recording) -> Vec<SampleLink> {
    let asked = recording.samples.iter().map(|it| ThreadMoment { thread: it.thread(), time: it.time, context: it.context });
    link_all(recording, &SpanThreads::of(recording), asked)
}

/// The link of each of these, in their order, which is that of time.
pub(crate) fn link_all(
    recording: &Recording,
    threads: &SpanThreads,
    asked: impl ExactSizeIterator<Item = ThreadMoment>,
) -> Vec<SampleLink> {
    let nothing = SampleLink { span: None, evidence: Evidence::None };
    let mut links = vec![nothing; asked.len()];
    let mut current_spans = CurrentSpans::of(recording);
    let mut asking: HashMap<u32, Vec<Moment>> = HashMap::new();
    for (i, sample) in asked.enumerate() {
        match sample.context {
            ContextRecord::Span { trace_id, span_id } => {
                links[i] = SampleLink { span: Some((trace_id, span_id)), evidence: Evidence::Record };
            }
            ContextRecord::NoSpan => {}
            ContextRecord::Absent | ContextRecord::Torn => match current_spans.at(sample.thread, sample.time) {
                Some(Some(span)) => links[i] = SampleLink { span: Some(span), evidence: Evidence::Journal },
                Some(None) => {}
                None => {
                    if let Some(at) = recording.clock.to_unix(sample.time) {
                        asking.entry(sample.thread.pid.0).or_default().push(Moment { at, asked: i, tid: sample.thread.tid.0 });
                    }
                }
            },
        }
    }
    let mut spans_of: HashMap<u32, Vec<SpanRow>> = HashMap::new();
    for (row, span) in rows(&recording.spans) {
        if let Some(pid) = span.pid.filter(|pid| asking.contains_key(pid)) {
            spans_of.entry(pid).or_default().push(row);
        }
    }
    for (pid, mut samples) in asking {
        if let Some(spans) = spans_of.get(&pid) {
            // Already in order, unless the wall clock was stepped.
            samples.sort_unstable();
            let family = Family::of(recording, spans);
            let groups = threads.groups(spans);
            let mut group_of: HashMap<u32, usize> = HashMap::new();
            for (i, group) in groups.iter().enumerate() {
                group_of.extend(group.tids.iter().flatten().map(|tid| (*tid, i)));
            }
            let mut asked: Vec<Vec<&Moment>> = vec![Vec::new(); groups.len()];
            // The last group is of the threads that no span names.
            samples.iter().for_each(|moment| asked[group_of.get(&moment.tid).copied().unwrap_or(groups.len() - 1)].push(moment));
            for (Group { can_be_there, .. }, moments) in groups.iter().zip(asked) {
                infer(&family, can_be_there, moments.into_iter(), &mut links);
            }
        }
    }
    links
}

/// The time of a query, its place in the answer, and its thread.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Timestamp,
    asked: usize,
    tid: u32,
}

/// The spans of a process, and who called whom there.
struct Family<'a> {
    spans: IdVec<Member, &'a Span>,
    parent: IdVec<Member, Option<Member>>,
}

impl<'a> Family<'a> {
    fn of(recording: &'a Recording, spans: &[SpanRow]) -> Family<'a> {
        let spans: IdVec<Member, &Span> = spans.iter().map(|&row| &recording.spans[row]).collect();
        let known: HashMap<(TraceId, SpanId), Member> =
            spans.enumerated().rev().map(|(i, span)| ((span.trace_id, span.span_id), i)).collect();
        let parent = |(i, span): (Member, &&Span)| known.get(&(span.trace_id, span.parent_span_id?)).copied().filter(|&p| p != i);
        let parent = spans.enumerated().map(parent).collect();
        Family { spans, parent }
    }

    /// The nearest span above that can be on the thread too.
    fn parent_there(&self, span: Member, can_be_there: &IdVec<Member, bool>) -> Option<Member> {
        let above = std::iter::successors(self.parent[span], |&above| self.parent[above]);
        above.take(ABOVE_MAX).find(|&above| can_be_there[above] && above != span)
    }
}

/// Spans above a span that are compared with its thread; ids may form a cycle.
const ABOVE_MAX: usize = 64;

/// One sweep over the spans that can be on some threads of a process, and over the queries about those threads.
fn infer<'a>(family: &Family<'_>, can_be_there: &IdVec<Member, bool>, moments: impl Iterator<Item = &'a Moment>, links: &mut [SampleLink]) {
    let spans = &family.spans;
    let parent: IdVec<Member, Option<Member>> =
        spans.ids().map(|i| can_be_there[i].then(|| family.parent_there(i, can_be_there)).flatten()).collect();
    // At one moment ends come before starts, and both before samples: spans are half open.
    let mut events: Vec<(Timestamp, bool, Member)> = Vec::with_capacity(2 * spans.len());
    for (i, span) in spans.enumerated() {
        if can_be_there[i] && span.start < span.end {
            events.push((span.start, true, i));
            events.push((span.end, false, i));
        }
    }
    events.sort_unstable();
    let mut open: IdVec<Member, bool> = IdVec::filled(false, spans.len());
    let mut open_children: IdVec<Member, u32> = IdVec::filled(0, spans.len());
    // Spans that are open and have no open child in the process.
    let mut leaves = Leaves::default();
    let mut next = 0;
    for &Moment { at, asked, .. } in moments {
        while let Some(&(_, starts, i)) = events.get(next).filter(|e| e.0 <= at) {
            next += 1;
            open[i] = starts;
            if open_children[i] == 0 {
                if starts { leaves.add(i) } else { leaves.remove(i) }
            }
            if let Some(p) = parent[i] {
                if starts {
                    open_children[p] += 1;
                    if open_children[p] == 1 && open[p] {
                        leaves.remove(p);
                    }
                } else {
                    open_children[p] -= 1;
                    if open_children[p] == 0 && open[p] {
                        leaves.add(p);
                    }
                }
            }
        }
        let id = |span: Member| (spans[span].trace_id, spans[span].span_id);
        links[asked] = match (leaves.count, leaves.only()) {
            (_, Some(only)) => SampleLink { span: Some(id(only)), evidence: Evidence::Inferred },
            (0, None) => SampleLink { span: None, evidence: Evidence::None },
            (candidates, None) => SampleLink { span: None, evidence: Evidence::Ambiguous { candidates } },
        };
    }
}

/// Which node each sample belongs to, both ways.
#[derive(Debug, Clone)]
pub struct SampleNodes {
    node_of: IdVec<SampleId, Option<NodeId>>,
    of_node: Lists<NodeId, SampleId>,
}

impl SampleNodes {
    /// The node of this sample; `None` where it is ambiguous, or its span is not in the recording, or nothing was open and
    /// its process is no node.
    pub fn node(&self, sample: SampleId) -> Option<NodeId> {
        self.node_of.get(sample).copied().flatten()
    }

    /// The samples of this node itself, by time.
    pub fn of(&self, node: NodeId) -> &[SampleId] {
        self.of_node.get(node)
    }
}

/// Gives the samples to the nodes: by the recording's links, and where nothing was open to the node of their process.
pub fn samples_of_nodes(recording: &Recording, forest: &Forest) -> SampleNodes {
    let node = |(sample, link): (&Sample, &SampleLink)| match (link.span, link.evidence) {
        (Some((trace, span)), _) => forest.node_of_id(recording, trace, span),
        (None, Evidence::None) => {
            let at = recording.clock.to_unix(sample.time)?;
            forest.node_of_process(forest.process_at(sample.pid, at)?)
        }
        (None, _) => None,
    };
    let node_of: IdVec<SampleId, Option<NodeId>> = recording.samples.iter().zip(&recording.sample_links).map(node).collect();
    let of_node = Lists::group(forest.len(), node_of.enumerated().filter_map(|(sample, node)| Some(((*node)?, sample))));
    SampleNodes { node_of, of_node }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{CurrentSpan, Id, Thread, text};

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(&text::parse(text).unwrap()), expected);
    }

    /// Each sample as `name evidence`.
    fn words(recording: &Recording) -> Vec<String> {
        let name = |id: (TraceId, SpanId)| {
            let span = recording.spans.iter().find(|s| (s.trace_id, s.span_id) == id);
            span.map_or("unknown", |s| s.name.as_str())
        };
        link(recording)
            .iter()
            .map(|l| match (l.span, l.evidence) {
                (Some(id), evidence) => format!("{} {}", name(id), evidence.as_str()),
                (None, Evidence::Ambiguous { candidates }) => format!("one of {candidates}"),
                (None, evidence) => evidence.as_str().to_owned(),
            })
            .collect()
    }

    #[test]
    fn the_drawing_of_the_module_page() {
        let spans = "\
handle    0..20ms  web pid 7
  parse   2..6ms   web
  fetch  10..16ms  web
handle   12..25ms  web pid 7
";
        check(
            &format!("{spans}sample 1ms pid 7 m\nsample 4ms pid 7 m\nsample 11ms pid 7 m\nsample 14ms pid 7 m\nsample 30ms pid 7 m\n"),
            &["handle inferred", "parse inferred", "fetch inferred", "one of 2", "none"],
        );
    }

    #[test]
    fn a_record_wins_over_time_and_no_span_is_believed() {
        check(
            "a 0..9ms web pid 7\nb 0..9ms web pid 7\nsample 1ms pid 7 [b] m\nsample 2ms pid 7 [-] m\nsample 3ms pid 7 [~] m\n",
            &["b record", "none", "one of 2"],
        );
    }

    #[test]
    fn a_journal_wins_over_time_where_no_record_was_found() {
        let text = "a 0..9ms web pid 7\nb 0..9ms web pid 7\nsample 1ms pid 7 m\nsample 2ms pid 7 m\nsample 3ms pid 7 [~] m\nsample 4ms pid 7 m\nsample 5ms pid 7 [a] m\n";
        let mut recording = text::parse(text).unwrap();
        let (tid, time) = (recording.samples[0].tid, |sample: usize| recording.samples[sample].time);
        let b = recording.spans.iter().find(|span| span.name.as_str() == "b").map(|span| (span.trace_id, span.span_id));
        let stretch = |from: usize, to: usize, span| CurrentSpan { pid: 7, tid, start: time(from), end: time(to), span, is_sent: false };
        recording.current_spans = vec![stretch(1, 2, None), stretch(2, 3, b), stretch(4, 4, b)];
        let words: Vec<&str> = link(&recording).iter().map(|link| link.evidence.as_str()).collect();
        assert_eq!(words, ["ambiguous", "none", "journal", "ambiguous", "record"]);
        assert_eq!(link(&recording)[2].span, b);
    }

    #[test]
    fn another_process_and_the_borders_of_a_span_count() {
        check(
            "a 1..9ms web pid 7\n  b 2..3ms db pid 8\nsample 1ms pid 7 m\nsample 2ms pid 7 m\nsample 2ms pid 8 m\nsample 9ms pid 7 m\nsample 5ms pid 9 m\n",
            &["a inferred", "a inferred", "b inferred", "none", "none"],
        );
    }

    #[test]
    fn where_spans_name_their_threads_each_sample_is_linked_to_those_of_its_thread() {
        let mut recording = text::parse(
            "\
a 0..20ms web pid 7 thread.id=7
  b 5..15ms web pid 7 thread.id=8
    c 6..9ms web pid 7 thread.id=7
any 17..20ms web pid 7
sample 6ms pid 7 tid 7 m
sample 6ms pid 7 tid 8 m
sample 12ms pid 7 tid 7 m
sample 12ms pid 7 tid 9 m
sample 18ms pid 7 tid 7 m
sample 18ms pid 7 tid 9 m
",
        )
        .unwrap();
        let thread = |tid| Thread { pid: 7, tid, name: "x".to_owned(), start: Monotonic(0), end: None, totals: None, ident: None };
        recording.threads = [7, 8, 9].map(thread).to_vec();
        // A span above one of the same thread waits for it, also where another thread's stands between them.
        let expected = ["c inferred", "b inferred", "a inferred", "none", "one of 2", "any inferred"];
        assert_eq!(words(&recording), expected);
    }

    #[test]
    fn samples_outside_spans_belong_to_the_process_if_it_is_a_node() {
        let mut recording = text::parse(
            "run make 0..50ms\n  step 1..5ms make pid 1\nprocess cc 10..40ms pid 7 under 1\nsample 3ms pid 1 m\nsample 8ms pid 1 m\nsample 20ms pid 7 m\nsample 20ms pid 99 m\n",
        )
        .unwrap();
        let forest = Forest::build(&recording);
        recording.sample_links = link(&recording);
        let nodes = samples_of_nodes(&recording, &forest);
        let names: Vec<Option<&str>> =
            recording.sample_ids().map(|sample| nodes.node(sample).map(|n| forest.name(&recording, n))).collect();
        assert_eq!(names, [Some("step"), Some("make"), Some("cc"), None]);
        assert_eq!(nodes.of(NodeId::RUN), [SampleId::at(1)]);
    }
}
