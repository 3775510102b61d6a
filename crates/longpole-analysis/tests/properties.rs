//! What holds for every recording, however odd: cycles, orphans, skewed clocks, links in circles, processes over spans.

use std::collections::HashMap;

use longpole_analysis::code::call_tree::CallTree;
use longpole_analysis::link::samples;
use longpole_analysis::pulumi::opentracing_bridge;
use longpole_analysis::report::diff::Diff;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_analysis::schedule::saving::{Change, Saving};
use longpole_analysis::tree::forest::{Forest, Node, NodeSource};
use longpole_analysis::{Report, words};
use longpole_model::{
    Attributes, ContextRecord, Evidence, Id, Nanos, NodeId, PoleId, Recording, SampleLink, Span, SpanHead, SpanId, SpanOutline, SpanRow,
    ThinVec, TraceId, text,
};
use proptest::prelude::*;

/// One span: parent (0 the run, 1.. a span, more: unknown), start, length (negative: ends before it starts), pid, links.
type SpanLine = (Option<usize>, i64, i64, Option<u32>, Vec<usize>);
/// One process: start, length (negative: outlived the run), parent pid, whether it executed a program.
type ProcessLine = (i64, i64, u32, bool);
/// Some samples: moment, how many, pid, context (0 absent, 1 torn, 2 none, 3.. a span), stack.
type SampleLine = (i64, u64, u32, usize, usize);

const STACKS: [&str; 5] = ["main", "main;a", "main;a;b|c", "main;a;a;a", "main;a;b|c;a"];

fn spelled(run: i64, spans: &[SpanLine], processes: &[ProcessLine], samples: &[SampleLine]) -> Recording {
    let mut out = format!("run x  0..{run}us\n");
    for (i, (parent, start, length, pid, links)) in spans.iter().enumerate() {
        let parent = parent.map(|p| format!(" parent {p}")).unwrap_or_default();
        let pid = pid.map(|p| format!(" pid {p}")).unwrap_or_default();
        let links: Vec<String> = links.iter().map(|l| format!("@s{}", l % spans.len())).collect();
        let links = if links.is_empty() { String::new() } else { format!(" <- {}", links.join(", ")) };
        out.push_str(&format!("n{} {start}..{}us svc{} @s{i}{parent}{pid}{links}\n", i % 5, start + length, i % 2));
    }
    for (i, (start, length, under, execed)) in processes.iter().enumerate() {
        let end = if *length < 0 { String::new() } else { format!("{}us", start + length) };
        let forked = if *execed { "" } else { " forked" };
        out.push_str(&format!("process p{i} {start}us..{end} pid {} under {under}{forked}\n", 2 + i % 4));
    }
    for (at, repeat, pid, context, stack) in samples {
        let context = match context {
            0 => String::new(),
            1 => " [~]".to_owned(),
            2 => " [-]".to_owned(),
            c if spans.is_empty() => format!(" [{}]", if c % 2 == 0 { "-" } else { "~" }),
            c => format!(" [s{}]", c % spans.len()),
        };
        out.push_str(&format!("sample {at}us x{repeat} every 100us pid {pid}{context} {}\n", STACKS[stack % STACKS.len()]));
    }
    text::parse(&out).expect("the notation")
}

fn any_recording() -> impl Strategy<Value = Recording> {
    let span = (
        prop::option::weighted(0.85, 0usize..14),
        -50i64..900,
        prop_oneof![9 => 0i64..500, 1 => -40i64..0],
        prop::option::of(1u32..6),
        prop::collection::vec(0usize..12, 0..3),
    );
    let process = (-20i64..900, prop_oneof![6 => 0i64..600, 1 => Just(-1)], 1u32..7, any::<bool>());
    let sample = (-20i64..1000, 1u64..5, 1u32..7, 0usize..8, 0usize..5);
    let lists = (prop::collection::vec(span, 0..12), prop::collection::vec(process, 0..6), prop::collection::vec(sample, 0..12));
    // A coarse clock makes many things happen at one moment, and take no time.
    (1i64..1000, any::<bool>(), lists).prop_map(|(run, coarse, (mut spans, processes, samples))| {
        if coarse {
            for (_, start, length, ..) in &mut spans {
                (*start, *length) = (*start / 300 * 300, *length / 300 * 300);
            }
        }
        spelled(run, &spans, &processes, &samples)
    })
}

/// The parent of each span and process, by identity, so that forests of reordered recordings can be compared.
fn shape(recording: &Recording) -> Vec<String> {
    let forest = Forest::build(recording);
    let identity = |node: NodeId| match forest[node].source {
        NodeSource::Root => "run".to_owned(),
        NodeSource::Span(i) => format!("span {}", recording.spans[i].span_id),
        NodeSource::Process(i) => format!("process {}", recording.processes[i].name),
    };
    forest
        .ids()
        .map(|i| {
            let node = &forest[i];
            format!(
                "{} {} {:?} {} {:?} {} {} {}",
                identity(i),
                node.parent.map(identity).unwrap_or_default(),
                node.edge,
                node.depth,
                node.range,
                node.orphan,
                node.cycle_broken,
                node.clamped
            )
        })
        .collect()
}

/// What `sample_links` says, by looking at every span for every sample.
fn link_slowly(recording: &Recording) -> Vec<SampleLink> {
    let of = |sample: &longpole_model::Sample| {
        if let ContextRecord::Span { trace_id, span_id } = sample.context {
            return SampleLink { span: Some((trace_id, span_id)), evidence: Evidence::Record };
        }
        let none = SampleLink { span: None, evidence: Evidence::None };
        if sample.context == ContextRecord::NoSpan {
            return none;
        }
        let at = recording.clock.to_unix(sample.time).expect("a clock");
        let open: Vec<_> = recording.spans.iter().filter(|s| s.pid == Some(sample.pid) && s.range().contains(at)).collect();
        let leaves: Vec<_> = open
            .iter()
            .filter(|s| !open.iter().any(|c| c.span_id != s.span_id && c.trace_id == s.trace_id && c.parent_span_id == Some(s.span_id)))
            .collect();
        match leaves.as_slice() {
            [] => none,
            [one] => SampleLink { span: Some((one.trace_id, one.span_id)), evidence: Evidence::Inferred },
            many => SampleLink { span: None, evidence: Evidence::Ambiguous { candidates: many.len() as u32 } },
        }
    };
    recording.samples.iter().map(of).collect()
}

fn check_tree(tree: &CallTree, weight: u64, samples: u64) {
    assert_eq!(tree.total_nanos[0], weight, "the root holds all samples");
    assert_eq!(tree.samples, samples);
    assert_eq!(tree.self_nanos.iter().sum::<u64>(), weight);
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for row in 0..tree.len() {
        assert!(tree.self_nanos[row] <= tree.total_nanos[row]);
        if let Some(parent) = tree.parent[row] {
            assert!(parent < row && tree.depth[row] == tree.depth[parent] + 1, "pre-order");
            children.entry(parent).or_default().push(row);
        }
    }
    for row in 0..tree.len() {
        let mut at = tree.offset_nanos[row];
        let mut before = u64::MAX;
        for &child in children.get(&row).map_or(&[] as &[usize], |c| c) {
            assert!(tree.total_nanos[child] <= before, "largest first");
            before = tree.total_nanos[child];
            assert_eq!(tree.offset_nanos[child], at, "side by side");
            at += tree.total_nanos[child];
        }
        assert_eq!(at + tree.self_nanos[row], tree.offset_nanos[row] + tree.total_nanos[row]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn everything_adds_up(recording in any_recording()) {
        let report = Report::new(recording);
        let (forest, wall) = (report.forest(), report.wall());

        // The forest is a tree in pre-order that holds every span once.
        prop_assert_eq!(forest.subtree(NodeId::RUN).len(), forest.len());
        for (i, node) in forest.nodes.enumerated().skip(1) {
            let parent = node.parent.unwrap();
            prop_assert!(parent < i && node.subtree_end <= forest[parent].subtree_end && forest.children(parent).any(|child| child == i));
        }
        let mut spans: Vec<SpanRow> = forest.nodes.iter().filter_map(|n| match n.source { NodeSource::Span(s) => Some(s), _ => None }).collect();
        spans.sort_unstable();
        prop_assert_eq!(spans, report.recording().span_rows().collect::<Vec<_>>());

        // The path is contiguous and is the run.
        let segments = &report.critical_path().segments;
        let mut at = forest.run_range().start;
        for segment in segments {
            prop_assert_eq!(segment.range.start, at);
            prop_assert!(segment.range.nanos() > 0);
            at = segment.range.end;
        }
        prop_assert_eq!(at, forest.run_range().end);
        prop_assert_eq!(report.critical_path().on_path.iter().sum::<Nanos>(), wall);

        // States sum to what they describe.
        prop_assert_eq!(report.path_states().sum(), wall);
        for node in forest.ids() {
            let states = report.node_states(node);
            prop_assert_eq!(states.sum().0, forest[node].range.nanos());
            prop_assert!(states.parts.iter().all(|(_, time)| *time >= Nanos::ZERO));
        }
        for pole in report.poles() {
            prop_assert_eq!(report.states_of_pole(pole).sum(), pole.on_path);
            for saving in [pole.savings.if_zero, pole.savings.if_half, pole.savings.own] {
                prop_assert!(Nanos::ZERO <= saving.low && saving.low <= saving.high && saving.high <= wall);
            }
        }

        // A replay that changes nothing is the recording; one that does saves something between nothing and all.
        for change in [Change::Zero, Change::Half, Change::OwnZero] {
            prop_assert_eq!(report.saves(&[], change), Saving::default());
            for node in forest.ids() {
                let saving = report.saves(&[node], change);
                prop_assert!(Nanos::ZERO <= saving.low && saving.low <= saving.high && saving.high <= wall);
            }
        }
        // A change of the run reaches only what it does itself.
        prop_assert_eq!(report.saves(&[NodeId::RUN], Change::Zero), report.saves(&[NodeId::RUN], Change::OwnZero));

        // No time of the path is missing.
        let in_poles: Nanos = report.poles().iter().map(|pole| pole.on_path).sum();
        prop_assert_eq!(in_poles + report.truncated_on_path() + report.between_operations(), wall);

        // Samples: every one is counted once, functions and trees add up.
        let counts = report.link_counts(report.all_samples());
        prop_assert_eq!(counts.record + counts.inferred + counts.ambiguous + counts.none, report.recording().samples.len() as u64);
        let weight: u64 = report.recording().samples.iter().map(|s| s.weight_nanos).sum();
        check_tree(&report.flame(None, FlameTime::OnCpu, Excerpt::default()).tree, weight, report.recording().samples.len() as u64);
        for (f, function) in report.functions().list.enumerated() {
            prop_assert!(function.weight.self_time <= function.weight.total && function.weight.total.0 <= weight);
            let nodes = report.nodes_with(f);
            prop_assert_eq!(nodes.nodes.iter().map(|n| n.samples).sum::<u64>() + nodes.unlinked_samples, function.weight.samples);
            prop_assert!(nodes.nodes.iter().all(|n| n.share > 0.0 && n.share <= 1.0));
        }
        prop_assert!(report.parallelism().mean >= 0.0 && report.parallelism().mean <= f64::from(report.parallelism().peak) + 1e-9);
        for (i, pole) in report.poles().enumerated() {
            prop_assert!(!words::reason(&report.reason(pole)).to_string().is_empty());
            prop_assert!(pole.contains.is_none_or(|inner| inner != i && report.poles().get(inner).is_some()));
        }

        // Figures.
        let own: Nanos = forest.ids().skip(1).map(|n| report.own_time(n)).sum();
        prop_assert_eq!(report.work().work, own);
        prop_assert!((Nanos::ZERO..=wall).contains(&report.work().span));
        let mut serial: Vec<_> = report.serial_stretches().iter().map(|s| s.range).collect();
        prop_assert!(serial.windows(2).all(|pair| pair[0].nanos() >= pair[1].nanos()), "longest first");
        serial.sort_by_key(|r| r.start);
        prop_assert!(serial.windows(2).all(|pair| pair[0].end <= pair[1].start), "beside each other");
        prop_assert!(report.path_cpu().iter().zip(&report.critical_path().on_path).all(|(cpu, path)| cpu <= path));
    }

    #[test]
    fn differences_are_explained_to_the_last_nanosecond(a in any_recording(), b in any_recording()) {
        let same = Diff::new(&Report::new(a.clone()), &Report::new(a.clone()));
        prop_assert_eq!(same.changed().count(), 0);
        let diff = Diff::new(&Report::new(a), &Report::new(b));
        prop_assert_eq!(diff.operations.iter().map(|o| o.delta()).sum::<Nanos>(), diff.delta());
    }

    #[test]
    fn legacy_spans_lose_nothing_but_their_twins(recording in any_recording(), legacy: u16, pulumi: u16) {
        let mut recording = recording;
        let chosen = |bits: u16, i: usize| bits & (1 << (i % 16)) != 0;
        let cli = text::parse("x 0..1us pulumi-cli").expect("the notation").spans.remove(0).resource;
        for (i, span) in recording.spans.iter_mut().enumerate() {
            if chosen(legacy, i) {
                span.scope = std::sync::Arc::new(longpole_model::Scope { name: "appdash".to_owned(), ..Default::default() });
            }
            if chosen(pulumi, i) {
                span.resource = std::sync::Arc::clone(&cli);
            }
        }
        let count = recording.spans.len();
        let mut joined = recording.clone();
        opentracing_bridge::join(&mut joined);
        let folded = joined.spans.iter().filter(|s| s.attributes.get(opentracing_bridge::LEGACY_SPAN_ID).is_some()).count();
        prop_assert_eq!(joined.spans.len() + folded, count);
        let once = joined.clone();
        opentracing_bridge::join(&mut joined);
        prop_assert_eq!(&joined, &once, "joined twice");
        let (one, two) = (Report::new(recording), Report::new(joined));
        prop_assert_eq!(one.poles(), two.poles());
        prop_assert_eq!(one.critical_path().on_path.iter().sum::<Nanos>(), one.wall());
        if let Some(time) = one.deployment_time() {
            prop_assert_eq!(time.sum(), one.wall());
        }
    }

    #[test]
    fn what_an_outline_leaves_out_changes_no_answer(recording in any_recording(), of_pulumi: bool) {
        let mut recording = recording;
        for (i, span) in recording.spans.iter_mut().enumerate() {
            let resource = longpole_model::AttributeValue::Str(format!("urn:pulumi:dev::x::t::{}", i % 3).into());
            span.attributes.push(longpole_model::resource_event::URN, resource.clone());
            span.attributes.push(longpole_model::resource_event::DEPENDENCIES, resource);
        }
        if of_pulumi && let Some(span) = recording.spans.first_mut() {
            span.resource = text::parse("n 0..1ms pulumi-cli\n").unwrap().spans.remove(0).resource;
        }
        let mut outline = recording.clone();
        longpole_analysis::report::summary_spans::reduce(&mut outline);
        prop_assert_eq!(outline == recording, of_pulumi || recording.spans.is_empty());
        let (whole, outline) = (Report::new(recording), Report::new(outline));
        prop_assert_eq!(&whole.forest().nodes, &outline.forest().nodes);
        prop_assert_eq!(whole.critical_path(), outline.critical_path());
        prop_assert_eq!(whole.poles(), outline.poles());
        for (one, other) in whole.poles().iter().zip(outline.poles()) {
            prop_assert_eq!(whole.reason(one), outline.reason(other));
        }
        prop_assert_eq!(whole.quality(), outline.quality());
    }

    #[test]
    fn heads_and_examples_give_the_same_answer_as_their_spans(recording in any_recording()) {
        let without_samples = Recording { samples: Vec::new(), sample_links: Vec::new(), ..recording };
        let outline = outlined(&without_samples.spans);
        prop_assert!(longpole_analysis::report::summary_spans::is_enough(outline.examples.iter()));
        let outline = Report::of_outline(Recording { spans: Vec::new(), ..without_samples.clone() }, outline);
        let whole = Report::new(without_samples);
        let drawn = |report: &Report| {
            let node = |node: &Node| (node.range, node.parent, node.subtree_end, node.edge, node.orphan, node.cycle_broken, node.clamped);
            report.forest().nodes.iter().map(node).collect::<Vec<_>>()
        };
        prop_assert_eq!(drawn(&whole), drawn(&outline));
        prop_assert_eq!(whole.labels(), outline.labels());
        prop_assert_eq!(whole.critical_path(), outline.critical_path());
        prop_assert_eq!(whole.poles(), outline.poles());
        prop_assert_eq!(whole.ceilings(), outline.ceilings());
        prop_assert_eq!(whole.work(), outline.work());
        prop_assert_eq!(whole.quality(), outline.quality());
        prop_assert_eq!((whole.span_count(), whole.trace_count()), (outline.span_count(), outline.trace_count()));
        for node in whole.forest().ids() {
            prop_assert_eq!(whole.savings(node), outline.savings(node));
        }
    }

    #[test]
    fn arrival_order_does_not_matter(recording in any_recording(), seed: u64) {
        let mut shuffled = recording.clone();
        let mut state = seed | 1;
        for i in (1..shuffled.spans.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            shuffled.spans.swap(i, (state >> 33) as usize % (i + 1));
        }
        prop_assert_eq!(shape(&shuffled), shape(&recording));
        let (a, b) = (Report::new(recording), Report::new(shuffled));
        prop_assert_eq!(a.poles(), b.poles());
        prop_assert_eq!(a.critical_path(), b.critical_path());
    }

    #[test]
    fn the_sweep_links_as_looking_at_every_span_does(recording in any_recording()) {
        // Ids that are their own parent's make "child of" ambiguous for the slow way; spans here have distinct ids.
        prop_assert_eq!(samples::link(&recording), link_slowly(&recording));
    }
}

/// The outline of spans, as whoever keeps them makes it.
fn outlined(spans: &[Span]) -> SpanOutline {
    let bare = |span: &Span| Span { attributes: Attributes::default(), events: ThinVec::new(), ..span.clone() };
    let is_linked =
        |span: &Span| spans.iter().flat_map(|s| &s.links).any(|link| (link.trace_id, link.span_id) == (span.trace_id, span.span_id));
    let mut outline = SpanOutline::default();
    for span in spans {
        let shares = |other: &Span| {
            let same = (&other.name, other.kind, &other.resource, &other.scope, other.pid);
            other.span_id == SpanId::MAX && same == (&span.name, span.kind, &span.resource, &span.scope, span.pid)
        };
        let is_apart = !span.links.is_empty() || is_linked(span);
        let known = outline.examples.iter().position(shares).filter(|_| !is_apart);
        let example = known.unwrap_or(outline.examples.len());
        if known.is_none() {
            let (trace_id, span_id) = if is_apart { (span.trace_id, span.span_id) } else { (TraceId::MAX, SpanId::MAX) };
            outline.examples.push(Span { trace_id, span_id, ..bare(span) });
        }
        let &Span { trace_id, span_id, parent_span_id, start, end, .. } = span;
        outline.heads.push(SpanHead { trace_id, span_id, parent_span_id, start, end, example: SpanRow::at(example) });
    }
    outline
}

/// A recording of many spans, built without the notation's own cost.
fn many(count: usize, span: impl Fn(usize) -> (usize, i64, i64)) -> Recording {
    let mut recording = text::parse("run x 0..1s\n  n 0..1ms svc pid 1\n").expect("the notation");
    let template = recording.spans.remove(0);
    for i in 1..=count {
        let (parent, start, end) = span(i);
        recording.spans.push(longpole_model::Span {
            span_id: text::span_id(i as u64),
            parent_span_id: Some(text::span_id(parent as u64)),
            start: text::ORIGIN.plus_nanos(start),
            end: text::ORIGIN.plus_nanos(end),
            ..template.clone()
        });
    }
    recording
}

#[test]
fn a_chain_of_ten_thousand_is_nothing_special() {
    let report = Report::new(many(10_000, |i| (i - 1, i as i64, 1_000_000_000 - i as i64)));
    assert_eq!(report.forest()[NodeId::at(10_000)].depth, 10_000);
    assert_eq!(report.critical_path().segments.len(), 20_001);
    assert_eq!(report.poles()[PoleId::at(0)].nodes.len(), 10_000);
    let leaf = report.saves(&[NodeId::at(10_000)], Change::Zero);
    assert_eq!(leaf, Saving { low: Nanos(999_980_000), high: Nanos(999_980_000) });
}

#[test]
fn ten_thousand_that_each_outlive_their_parent_are_nothing_special() {
    let report = Report::new(many(10_000, |i| (i - 1, i as i64, 1_000_000 + 10 * i as i64)));
    assert_eq!(report.critical_path().on_path.iter().sum::<Nanos>().0, 1_000_000_000);
    let skewed = Report::new(many(10_000, |i| (i - 1, 1_000_000 - 10 * i as i64, 2_000_000)));
    assert_eq!(skewed.critical_path().on_path.iter().sum::<Nanos>().0, 1_000_000_000);
}

#[test]
fn a_hundred_thousand_children_are_nothing_special() {
    let serial = Report::new(many(100_000, |i| (0, 10_000 * (i as i64 - 1), 10_000 * (i as i64 - 1) + 9_000)));
    assert_eq!(serial.poles()[PoleId::at(0)].nodes.len(), 100_000);
    assert_eq!(serial.poles()[PoleId::at(0)].savings.if_zero, Saving { low: Nanos(900_000_000), high: Nanos(900_000_000) });
    let parallel = Report::new(many(100_000, |i| (0, i as i64, 900_000_000 + i as i64)));
    assert_eq!(parallel.parallelism().peak, 100_000);
}

#[test]
fn a_stack_of_ten_thousand_frames_is_nothing_special() {
    let stack: Vec<String> = (0..10_000).map(|i| format!("f{i}")).collect();
    let recording = text::parse(&format!("run x 0..9ms\nsample 1ms {}\n", stack.join(";"))).expect("the notation");
    assert_eq!(Report::new(recording).flame(None, FlameTime::OnCpu, Excerpt::default()).tree.len(), 10_001);
}

#[test]
fn the_beginning_and_the_end_of_time_are_nothing_special() {
    for end_known in [true, false] {
        let mut recording = many(6, |i| match i {
            1 => (0, i64::MIN, i64::MAX),
            2 => (1, i64::MAX, i64::MAX),
            3 => (1, i64::MIN, i64::MIN),
            4 => (2, 5, i64::MAX),
            5 => (0, i64::MIN, 7),
            _ => (5, 1, 2),
        });
        recording.spans[0].end = longpole_model::Timestamp(i64::MAX);
        recording.spans[2].start = longpole_model::Timestamp(i64::MIN);
        if !end_known {
            recording.run.end = None;
        }
        let report = Report::new(recording);
        assert_eq!(report.critical_path().on_path.iter().sum::<Nanos>(), report.wall());
        for pole in report.poles() {
            assert!(pole.savings.own.high <= report.wall());
            assert!(report.states_on_path(&pole.nodes).sum() >= Nanos::ZERO);
        }
    }
}
