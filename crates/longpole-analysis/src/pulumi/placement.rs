//! Where Pulumi's spans and processes stand in the tree: the rules that its conventions need ([`PlacementRules`]).
//!
//! ```text
//! RegisterResource db    ├──────────────────────┤
//!   Create db                ├────────────────┤      names the deployment as its parent; works for the registration
//! run-program            ├──────────────────┤
//!   LanguageRuntime/Run    ├──────────────┤          has the same parent as run-program; is what it says
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::ops::RangeInclusive;

use longpole_model::resource_event::TYPE;
use longpole_model::{IdVec, Recording, Span, SpanKind, SpanRow, TimeRange, Timestamp, ids};

use crate::interval_index::{IntervalIndex, Timed};
use crate::note::Note;
use crate::pulumi::call::{Call, RUN_PROGRAM, RUN_PROGRAM_CALL, method};
use crate::pulumi::call_halves;
use crate::pulumi::identity::DECORATOR;
use crate::pulumi::program_kind::{is_build_tool, is_language_host, is_plugin};
use crate::pulumi::span_pairing::{self, Interval, Window};
use crate::pulumi::{opentracing_bridge, urn::urn_of};
use crate::tree::placement::{Adoption, PlacedSpans, PlacementRules, ProcessPlace, SpanAliases};
use crate::tree::span_list::rows;

/// What a program asks of the engine.
const PROGRAM_CALLS: [&str; 2] = ["pulumirpc.ResourceMonitor/", "pulumirpc.Engine/"];

/// All calls between the parts of Pulumi.
const CALLS: &str = "pulumirpc.";

/// Runs of programs, at most: one for the preview and one for the update, of each stack.
const RUNS_MAX: usize = 64;

/// Registrations of one resource that are compared with a call: client and server, in preview and update, and some.
const REGISTRATIONS_MAX: usize = 16;

/// A registration begins before the call that it waits for, and may have waited ten minutes for its turn.
const REGISTRATION_AFTER_CALL_NANOS: RangeInclusive<i64> = -600_000_000_000..=2_000_000;

/// It ends with the call or a little later; measured: 1.8 to 8 ms, more on a busy machine.
const REGISTRATION_END_AFTER_CALL_NANOS: RangeInclusive<i64> = -2_000_000..=250_000_000;

ids! {
    /// A call that runs a program, by its place among those.
    struct RunId;
}

/// A span directly below a call that runs a program.
#[derive(Clone, Copy)]
struct RunSpan {
    span: SpanRow,
    range: TimeRange,
}

impl Timed for RunSpan {
    type Time = Timestamp;

    fn start(&self) -> Timestamp {
        self.range.start
    }

    fn end(&self) -> Timestamp {
        self.range.end
    }
}

/// The rules for one recording.
#[derive(Debug)]
pub(crate) struct PulumiPlacement {
    aliases: SpanAliases,
}

impl PulumiPlacement {
    /// The rules for this recording; `None` where no emitter is Pulumi's or an older tracer. `examples` holds a span of each emitter.
    pub(crate) fn of<'a>(recording: &Recording, examples: impl Iterator<Item = &'a Span>) -> Option<PulumiPlacement> {
        opentracing_bridge::concerns(examples).then(|| PulumiPlacement { aliases: opentracing_bridge::aliases(recording) })
    }
}

impl PlacementRules for PulumiPlacement {
    fn aliases(&self) -> &SpanAliases {
        &self.aliases
    }

    fn is_of_other_tracer(&self, span: &Span) -> bool {
        opentracing_bridge::is_legacy(span)
    }

    /// One of Pulumi's plug-ins, or the program that a language host runs: not what it runs to build that.
    fn is_served(&self, ProcessPlace { process, program, parent_program }: ProcessPlace<'_>) -> bool {
        is_plugin(program) || (parent_program.is_some_and(is_language_host) && !is_build_tool(process))
    }

    fn note(&self, spans: &PlacedSpans<'_>) -> Option<Note> {
        let changes = |span: &Span| Call::of(&span.name).is_some_and(|call| call.is_awaited() || call == Call::Delete);
        let is_server = |span: &Span| call_halves::is_side(span, SpanKind::Server);
        let unnamed = |span: &&Span| changes(span) && !is_server(span) && urn_of(span).is_none();
        let has_legacy = spans.spans.iter().any(opentracing_bridge::is_legacy);
        let calls = spans.spans.iter().filter(unnamed).count() as u64;
        (calls > 0).then_some(Note::ResourcesUnnamed { calls, has_legacy })
    }

    fn adoptions(&self, spans: &PlacedSpans<'_>) -> Vec<Adoption> {
        let call_of: IdVec<SpanRow, Option<Call>> = spans.spans.iter().map(|span| Call::of(&span.name)).collect();
        let outer = call_halves::outer_halves(spans.spans, &call_of, spans.range, spans.parent);
        let mut adoptions = calls(spans, &call_of);
        adoptions.extend(calls_by_time(spans, &call_of, &outer, &adoptions));
        let servers = outer.enumerated().filter_map(|(span, client)| Some(Adoption { span, parent: (*client)? }));
        adoptions.extend(servers.filter(|it| (spans.parent)(it.span) != Some(it.parent)));
        adoptions.extend(program_runs(spans));
        adoptions.extend(program_calls(spans));
        adoptions
    }
}

/// Puts the calls of providers under the registration of the same resource that covers them. The engine makes them in its own
/// name, so their parent ids say no more than "inside the deployment"; but the registration is over when they are.
fn calls(placed: &PlacedSpans<'_>, call_of: &IdVec<SpanRow, Option<Call>>) -> Vec<Adoption> {
    let PlacedSpans { spans, range, .. } = *placed;
    let working: Vec<(SpanRow, &str, Call)> = rows(spans).filter_map(|(i, s)| Some((i, urn_of(s)?, call_of[i]?))).collect();
    let mut registrations: HashMap<&str, Vec<(Timestamp, SpanRow)>> = HashMap::new();
    for &(i, urn, _) in working.iter().filter(|w| w.2.waits_for_work()) {
        registrations.entry(urn).or_default().push((range(i).start, i));
    }
    for list in registrations.values_mut() {
        list.sort_by_key(|&(start, i)| (start, spans[i].trace_id, spans[i].span_id, i));
    }
    let stands_inside = |i: SpanRow, urn: &str| placed.above(i).any(|above| urn_of(&spans[above]) == Some(urn));
    let mut adoptions = Vec::new();
    for (i, urn, _) in working.into_iter().filter(|w| !w.2.waits_for_work()) {
        let Some(list) = registrations.get(urn) else { continue };
        let before = &list[..list.partition_point(|&(start, _)| start <= range(i).start)];
        let covering = before.iter().rev().take(REGISTRATIONS_MAX).find(|&&(_, r)| range(i).end <= range(r).end);
        if let Some(&(_, registration)) = covering
            && !stands_inside(i, urn)
        {
            adoptions.push(Adoption { span: i, parent: registration });
        }
    }
    adoptions
}

/// Puts calls of providers under the registration that makes them, where not both sides name a resource.
///
/// The engine answers a registration as soon as its provider has answered the engine, and not before. It checks the inputs of one resource
/// after the other, and works on them in that order:
///
/// ```text
/// RegisterResource  ├──────────────────────────┤
///   Check             ├─┤                           begins 0.3 ms later, or once the others before it are checked
///   Create                 ├──────────────────┤     ends 0.2 to 10 ms earlier
/// ```
///
/// The type of the resource, which OpenTracing spans carry without payloads too, keeps those of other types apart.
fn calls_by_time(
    placed: &PlacedSpans<'_>,
    call_of: &IdVec<SpanRow, Option<Call>>,
    outer: &IdVec<SpanRow, Option<SpanRow>>,
    adopted: &[Adoption],
) -> Vec<Adoption> {
    let PlacedSpans { spans, range, .. } = *placed;
    let inner_half: HashMap<SpanRow, SpanRow> = outer.enumerated().filter_map(|(i, outer)| Some(((*outer)?, i))).collect();
    let taken: HashSet<SpanRow> = adopted.iter().flat_map(|it| [it.span, it.parent]).collect();
    let waits = |i: SpanRow| call_of[i].is_some_and(Call::waits_for_work);
    let stands_inside = |i: SpanRow| placed.above(i).any(waits);
    let type_of = |i: SpanRow| {
        let halves = [Some(i), outer[i], inner_half.get(&i).copied()];
        let typed = |half: SpanRow| [TYPE, DECORATOR].into_iter().find_map(|key| spans[half].attributes.get_str(key));
        halves.into_iter().flatten().find_map(typed)
    };
    let (mut awaited, mut before) = (Typed::new(), [Call::Check, Call::Diff].map(|call| (call, Typed::new())));
    let (mut all, mut free) = (Typed::new(), Typed::new());
    for (i, call) in call_of.enumerated() {
        let Some(call) = *call else { continue };
        if call.waits_for_work() {
            // The engine's half is the one that waits for the provider.
            if !inner_half.contains_key(&i) {
                all.entry(type_of(i)).or_default().push(i);
                (!taken.contains(&i)).then(|| free.entry(type_of(i)).or_default().push(i));
            }
        } else if outer[i].is_none() && !taken.contains(&i) && !stands_inside(i) {
            if call.is_awaited() {
                awaited.entry(type_of(i)).or_default().push(i);
            } else if let Some((_, list)) = before.iter_mut().find(|(kind, _)| *kind == call) {
                list.entry(type_of(i)).or_default().push(i);
            }
        }
    }
    let mut adoptions = match_types(placed, awaited, free, &|calls, registrations| {
        let window = Window { start: REGISTRATION_AFTER_CALL_NANOS, end: REGISTRATION_END_AFTER_CALL_NANOS, by_start: false };
        let [left, right] = [calls, registrations].map(|list| list.iter().map(|&i| Interval::from(range(i))).collect::<Vec<_>>());
        span_pairing::pair(&left, &right, &window)
    });
    // When each registration had its inputs checked and compared: before its first call that changes anything, else before its end.
    let mut checked_by: HashMap<SpanRow, Timestamp> = HashMap::new();
    for it in adopted.iter().chain(&adoptions).filter(|it| call_of[it.span].is_some_and(Call::is_awaited)) {
        let registration = inner_half.get(&it.parent).copied().unwrap_or(it.parent);
        let first = checked_by.entry(registration).or_insert(range(it.span).start);
        *first = (*first).min(range(it.span).start);
    }
    for (_, calls) in before {
        adoptions.extend(match_types(placed, calls, all.clone(), &|calls, registrations| {
            let calls: Vec<TimeRange> = calls.iter().map(|&i| range(i)).collect();
            let checked = |&i: &SpanRow| TimeRange { start: range(i).start, end: checked_by.get(&i).copied().unwrap_or(range(i).end) };
            in_order_of_deadlines(&calls, &registrations.iter().map(checked).collect::<Vec<_>>())
        }));
    }
    adoptions
}

/// Pairs calls, in order of their start, with the registrations that make them: of those open, the one that must have made its call first.
/// The ranges of registrations end when they must have. Pairs are places in both lists.
fn in_order_of_deadlines(calls: &[TimeRange], registrations: &[TimeRange]) -> Vec<(usize, usize)> {
    let mut open: BinaryHeap<Reverse<(Timestamp, usize)>> = BinaryHeap::new();
    let mut next = 0;
    let mut pairs = Vec::new();
    for (c, call) in calls.iter().enumerate() {
        while let Some(registration) = registrations.get(next).filter(|it| it.start <= call.start) {
            open.push(Reverse((registration.end, next)));
            next += 1;
        }
        while open.peek().is_some_and(|Reverse((end, _))| *end < call.end) {
            open.pop();
        }
        pairs.extend(open.pop().map(|Reverse((_, r))| (c, r)));
    }
    pairs
}

/// Spans by the type of their resource, where one says it.
type Typed<'a> = BTreeMap<Option<&'a str>, Vec<SpanRow>>;

/// Pairs of a call and a registration, by their places in two lists.
type Pairing<'a> = &'a dyn Fn(&[SpanRow], &[SpanRow]) -> Vec<(usize, usize)>;

/// Puts calls under registrations: of their own type; where one side does not know its type, of any. Where both do, they meet in their own.
fn match_types<'a>(placed: &PlacedSpans<'_>, mut calls: Typed<'a>, mut registrations: Typed<'a>, pair: Pairing<'_>) -> Vec<Adoption> {
    let mut adoptions = Vec::new();
    let mut match_up = |calls: &mut Vec<SpanRow>, registrations: &mut Vec<SpanRow>| {
        for list in [&mut *calls, &mut *registrations] {
            list.sort_by_key(|&i| {
                let span = &placed.spans[i];
                ((placed.range)(i).start, span.trace_id, span.span_id)
            });
        }
        let mut paired = HashSet::new();
        for (c, r) in pair(calls, registrations) {
            adoptions.push(Adoption { span: calls[c], parent: registrations[r] });
            paired.extend([calls[c], registrations[r]]);
        }
        for list in [calls, registrations] {
            list.retain(|i| !paired.contains(i));
        }
    };
    for (resource_type, calls) in &mut calls {
        if let (Some(_), Some(registrations)) = (resource_type, registrations.get_mut(resource_type)) {
            match_up(calls, registrations);
        }
    }
    let mut untyped = registrations.remove(&None).unwrap_or_default();
    let mut typed: Vec<SpanRow> = registrations.into_values().flatten().collect();
    let unknown: HashSet<SpanRow> = calls.remove(&None).unwrap_or_default().into_iter().collect();
    let mut rest: Vec<SpanRow> = calls.into_values().flatten().chain(unknown.iter().copied()).collect();
    match_up(&mut rest, &mut untyped);
    rest.retain(|call| unknown.contains(call));
    match_up(&mut rest, &mut typed);
    adoptions
}

/// Puts the call that runs the program under the span that says so: Pulumi gives both the same parent.
fn program_runs(placed: &PlacedSpans<'_>) -> Vec<Adoption> {
    let PlacedSpans { spans, range, parent } = *placed;
    let named = |name: &'static str| rows(spans).filter(move |(_, span)| span.name == name).filter_map(move |(i, _)| Some((parent(i)?, i)));
    let programs: HashMap<SpanRow, SpanRow> = named(RUN_PROGRAM).collect();
    let adopted = |(parent, call): (SpanRow, SpanRow)| {
        let program = *programs.get(&parent)?;
        let (outer, inner) = (range(program), range(call));
        (outer.start <= inner.start && inner.end <= outer.end).then_some(Adoption { span: call, parent: program })
    };
    named(RUN_PROGRAM_CALL).filter_map(adopted).collect()
}

/// Puts what a program asks of the engine under the call that runs the program. In OpenTracing the program, unless it is YAML, sends no spans, and
/// its requests name the command as their parent.
///
/// ```text
/// LanguageRuntime/Run  ├──────────────────────────────┤
///   RegisterResource      ├──────┤
///   RegisterResource                 ├──────────┤
/// ```
fn program_calls(placed: &PlacedSpans<'_>) -> Vec<Adoption> {
    let PlacedSpans { spans, range, parent } = *placed;
    let method = |i: SpanRow| method(&spans[i].name);
    let is_run = |i: SpanRow| method(i) == RUN_PROGRAM_CALL;
    let runs: Vec<SpanRow> = rows(spans).map(|(i, _)| i).filter(|&i| is_run(i)).collect();
    let callers: HashSet<SpanRow> = runs.iter().filter_map(|&run| parent(run)).collect();
    let inner: IdVec<RunId, SpanRow> = runs.into_iter().filter(|run| !callers.contains(run)).take(RUNS_MAX).collect();
    if inner.is_empty() {
        return Vec::new();
    }
    // What a host says of the program it runs stands between.
    let run_of: HashMap<SpanRow, RunId> = inner.enumerated().map(|(id, &run)| (run, id)).collect();
    let of_host = rows(spans).filter(|&(i, _)| !method(i).starts_with(CALLS));
    let below = of_host.filter_map(|(i, _)| Some((*run_of.get(&parent(i)?)?, RunSpan { span: i, range: range(i) })));
    let below = IntervalIndex::new(inner.len(), &below.collect::<Vec<_>>());
    let is_program_call = |i: SpanRow| PROGRAM_CALLS.iter().any(|calls| method(i).starts_with(calls));
    let covers = |run: SpanRow, i: SpanRow| range(run).start <= range(i).start && range(i).end <= range(run).end;
    let adopted = |i: SpanRow| {
        let above: Vec<SpanRow> = placed.above(i).collect();
        if above.iter().any(|&above| method(above).starts_with(CALLS) && !is_run(above)) {
            return None;
        }
        let mut covering = inner.enumerated().filter(|&(_, &run)| covers(run, i));
        let (id, run) = covering.next().filter(|_| covering.next().is_none())?;
        let mut programs = below.covering(id, (range(i).start, range(i).end));
        let program = programs.next().filter(|_| programs.next().is_none());
        let parent = program.map_or(*run, |program| program.span);
        (!above.contains(&parent)).then_some(Adoption { span: i, parent })
    };
    rows(spans).map(|(i, _)| i).filter(|&i| is_program_call(i)).filter_map(adopted).collect()
}

#[cfg(test)]
mod tests {
    use longpole_model::{Id, text};

    use super::*;
    use crate::Report;

    /// The tree below the plan: names of calls, without their services, and their starts in milliseconds.
    fn drawn(calls: &str) -> String {
        let text = format!("run pulumi up  0..1000ms\n  pulumi  1..999ms  pulumi-cli\n    pulumi-plan  2..990ms  pulumi-cli{calls}");
        let report = Report::new(text::parse(&text).unwrap());
        let mut out = String::new();
        for i in report.forest().ids().skip(3) {
            let node = &report.forest()[i];
            let start = node.range.start.nanos_since(text::ORIGIN) / 1_000_000;
            let name = report.name(i).rsplit('/').next().unwrap_or_default();
            out.push_str(&format!("{}{name} {start}\n", "  ".repeat(node.depth as usize - 3)));
        }
        out
    }

    #[test]
    fn calls_that_name_no_resource_hang_under_the_registration_that_ends_with_them() {
        let calls = "
      pulumirpc.ResourceMonitor/RegisterResource  10..205ms  pulumi-language-yaml  kind client
        pulumirpc.ResourceMonitor/RegisterResource  11..204ms  pulumi-cli  kind server
      pulumirpc.ResourceMonitor/RegisterResource  10..305ms  pulumi-language-yaml  kind client
        pulumirpc.ResourceMonitor/RegisterResource  12..304ms  pulumi-cli  kind server
      pulumirpc.ResourceProvider/Check  11.5..15ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Check  12.6..16ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Create  20..302ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  21..301ms  modern  kind server
      pulumirpc.ResourceProvider/Create  22..202ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Read  400..500ms  pulumi-cli  kind client
";
        let tree = "\
RegisterResource 10
  RegisterResource 11
    Check 11
    Create 22
RegisterResource 10
  RegisterResource 12
    Check 12
    Create 20
      Create 21
Read 400
";
        assert_eq!(drawn(calls), tree);
    }

    #[test]
    fn checks_belong_to_registrations_in_the_order_of_what_follows_them() {
        let calls = "
      pulumirpc.ResourceMonitor/RegisterResource  10..205ms  pulumi-cli  kind server
      pulumirpc.ResourceMonitor/RegisterResource  11..305ms  pulumi-cli  kind server
      pulumirpc.ResourceMonitor/RegisterResource  12..60ms  pulumi-cli  kind server
      pulumirpc.ResourceProvider/Check  20..21ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Check  40..41ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Check  50..51ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Create  45..302ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Create  70..202ms  pulumi-cli  kind client
";
        let tree = "\
RegisterResource 10
  Check 50
  Create 70
RegisterResource 11
  Check 20
  Create 45
RegisterResource 12
  Check 40
";
        assert_eq!(drawn(calls), tree);
    }

    #[test]
    fn what_a_program_asks_for_hangs_under_the_call_that_runs_it() {
        let calls = "
      /pulumirpc.LanguageRuntime/Run  5..900ms  pulumi-cli
        /pulumirpc.LanguageRuntime/Run  6..899ms  pulumi-cli
          execRuntime  7..898ms  pulumi-cli
      /pulumirpc.Engine/Log  8..9ms  pulumi-cli
      /pulumirpc.ResourceMonitor/RegisterResource  10..205ms  pulumi-cli
      /pulumirpc.ResourceMonitor/RegisterResource  210..305ms  pulumi-cli
      /pulumirpc.ResourceMonitor/RegisterResource  950..960ms  pulumi-cli
";
        assert_eq!(
            drawn(calls),
            "Run 5\n  Run 6\n    execRuntime 7\n      Log 8\n      RegisterResource 10\n      RegisterResource 210\nRegisterResource 950\n"
        );
    }

    /// A search through all spans of the host for each request took 400,000,000 steps here.
    #[test]
    fn many_requests_of_a_program_with_a_host_of_many_spans_cost_as_much_as_they_are() {
        const MANY: usize = 20_000;
        let template = text::parse("n 0..1ms pulumi-cli\n").unwrap().spans.remove(0);
        let named = |name: &str| Span { name: name.into(), ..template.clone() };
        let (host, request) = (named("execRuntime"), named("/pulumirpc.ResourceMonitor/RegisterResource"));
        let mut spans = vec![named(RUN_PROGRAM_CALL)];
        spans.extend(std::iter::repeat_n(host, MANY));
        spans.extend(std::iter::repeat_n(request, MANY));
        let range = |span: SpanRow| {
            let place = span.place();
            let millis = |from: usize, to: usize| TimeRange {
                start: text::ORIGIN.plus_nanos(from as i64 * 1_000_000),
                end: text::ORIGIN.plus_nanos(to as i64 * 1_000_000),
            };
            match place {
                0 => millis(0, 10 * MANY + 10),
                1..=MANY => millis(10 * place, 10 * place + 9),
                _ => millis(10 * (place - MANY), 10 * (place - MANY) + 5),
            }
        };
        let run = SpanRow::at(0);
        let parent = |span: SpanRow| (1..=MANY).contains(&span.place()).then_some(run);
        let adopted = program_calls(&PlacedSpans { spans: &spans, range: &range, parent: &parent });
        let expected = (1..=MANY).map(|host| Adoption { span: SpanRow::at(host + MANY), parent: SpanRow::at(host) });
        assert!(adopted.into_iter().eq(expected));
    }

    #[test]
    fn what_a_provider_starts_hangs_under_the_call_that_it_serves() {
        let calls = "
      pulumirpc.ResourceProvider/Create  20..500ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  21..499ms  command  kind server  pid 5
      pulumirpc.ResourceProvider/Create  22..900ms  pulumi-cli  kind client
        pulumirpc.ResourceProvider/Create  23..899ms  command  kind server  pid 5
process pulumi-resource-command  3..950ms  pid 5 under 1
process sh  30..490ms  pid 6 under 5
process helm  31..890ms  pid 7 under 5
";
        let tree = "Create 20\n  Create 21\n    sh 30\nCreate 22\n  Create 23\n    helm 31\n";
        assert_eq!(drawn(calls), tree);
    }

    #[test]
    fn a_server_that_lost_its_caller_hangs_under_the_client_around_it() {
        let calls = "
      pulumirpc.ResourceProvider/Create  20..60ms  pulumi-cli  kind client
      pulumirpc.ResourceProvider/Create  20..80ms  pulumi-cli  kind client
      /pulumirpc.ResourceProvider/Create  21..79ms  pulumi-resource-provider  span.kind=server
      /pulumirpc.ResourceProvider/Create  21.5..59ms  pulumi-resource-provider  span.kind=server
      /pulumirpc.ResourceProvider/Create  90..95ms  pulumi-resource-provider  span.kind=server
";
        assert_eq!(drawn(calls), "Create 20\n  Create 21\nCreate 20\n  Create 21\nCreate 90\n");
    }
}
