//! Which spans work on which cloud resource, and which resources had to be there first.
//!
//! Pulumi's OpenTelemetry spans carry no identity; it comes from the payloads of the legacy spans that were folded into them
//! ([`crate::pulumi::opentracing_bridge`]), or, without payloads, from the engine's event stream, by time:
//!
//! ```text
//! RegisterResource   ├───────────────────────────────┤      the last that began before the pre-event, and ends with the outputs
//! pre-event                  ▼
//! Create                       ├───────────────────┤        begins 5 to 35 ms after it
//! outputs event                                     ▼       0.2 to 1.9 ms after its end
//! ```
//!
//! [`identify`] writes what it finds to attributes, so that the store, SQL and the page know it too. [`Resources`] reads those
//! attributes. A call of a provider is work of the registration that waits for it, whatever parent it names: the tree puts it
//! there (`trace_tree`). And a resource waits for those it depends on: to the schedule that is as good as a span link.

use std::collections::{BTreeMap, HashMap};

use longpole_model::resource_event::{DEPENDENCIES, PARENT, PROVIDER, TYPE, URN};
use longpole_model::{AttributeValue, Process, Recording, ResourceEvent, ResourceStep, Span, SpanId, TraceId};

use crate::pulumi::opentracing_bridge;
use crate::pulumi::span_pairing::{self, Seen, Window};
use crate::tree::forest::{Forest, Note};

/// Attributes that say which resource a span works on.
const IDENTITY: [&str; 5] = [URN, TYPE, DEPENDENCIES, PARENT, PROVIDER];

/// Attribute of legacy spans, also without payloads: the type of the resource, or the function that is called.
const DECORATOR: &str = "pulumi-decorator";

/// The engine's span around the program.
pub(crate) const RUN_PROGRAM: &str = "run-program";

/// The call in it, as its client names it.
pub(crate) const RUN_PROGRAM_CALL: &str = "pulumirpc.LanguageRuntime/Run";

/// A measurement in the form of a span: from the start of the process to its first output. Nothing waits for it.
const FIRST_PRINT: &str = "time-to-first-print";

/// Whether the span is a measurement, and no work.
pub(crate) fn is_measurement(span: &Span) -> bool {
    span.name == FIRST_PRINT && span.service_name() == "pulumi-cli"
}

/// A call of a provider begins so much later than the engine's word that it will. The engine's own clock has whole seconds, so
/// events are dated by their arrival: on a busy machine a call may even seem to begin first.
const CALL_AFTER_PRE_NANOS: std::ops::RangeInclusive<i64> = -2_000_000..=500_000_000;

/// A registration begins before the engine's word, and may have waited ten minutes for its turn.
const REGISTRATION_AFTER_PRE_NANOS: std::ops::RangeInclusive<i64> = -600_000_000_000..=2_000_000;

/// A call ends before the engine's word that it did; measured: 0.2 to 1.9 ms.
const CALL_END_AFTER_OUTPUTS_NANOS: std::ops::RangeInclusive<i64> = -100_000_000..=2_000_000;

/// A registration ends when the outputs are on their way.
const REGISTRATION_END_AFTER_OUTPUTS_NANOS: std::ops::RangeInclusive<i64> = -2_000_000..=100_000_000;

/// Calls of one method inside each other, as client and server are, that share their identity.
const SAME_CALL_MAX: usize = 4;

/// What a span does in a deployment, told by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// A program registers a resource, and waits until it is there.
    Register,
    /// A program reads a resource that is not its own, and waits.
    ReadResource,
    /// A provider makes it.
    Create,
    /// A provider reads it.
    Read,
    /// A provider changes it.
    Update,
    /// A provider removes it.
    Delete,
    /// A provider is asked for data or for a method of a resource.
    Invoke,
    /// A provider looks at inputs, without the cloud.
    Check,
    /// A provider compares.
    Diff,
}

impl Call {
    /// The call that a span of this name is.
    pub fn of(name: &str) -> Option<Call> {
        let (service, method) = name.strip_prefix('/').unwrap_or(name).strip_prefix("pulumirpc.")?.split_once('/')?;
        Some(match (service, method) {
            ("ResourceMonitor", "RegisterResource") => Call::Register,
            ("ResourceMonitor", "ReadResource") => Call::ReadResource,
            ("ResourceProvider", "Create") => Call::Create,
            ("ResourceProvider", "Read") => Call::Read,
            ("ResourceProvider", "Update") => Call::Update,
            ("ResourceProvider", "Delete") => Call::Delete,
            ("ResourceProvider", "Invoke" | "StreamInvoke" | "Call") => Call::Invoke,
            ("ResourceProvider", "Check") => Call::Check,
            ("ResourceProvider", "Diff") => Call::Diff,
            _ => return None,
        })
    }

    /// Whether the cloud is asked: what it takes is the cloud's time where no code of ours runs.
    pub fn asks_the_cloud(self) -> bool {
        matches!(self, Call::Create | Call::Read | Call::Update | Call::Delete | Call::Invoke)
    }

    /// Whether a program waits in it for the work on the resource.
    pub(crate) fn waits_for_work(self) -> bool {
        matches!(self, Call::Register | Call::ReadResource)
    }

    /// The calls that an operation of the engine makes: of a provider, and the registration around it.
    fn of_operation(op: &str) -> (Option<Call>, Option<Call>) {
        match op {
            "create" | "create-replacement" => (Some(Call::Create), Some(Call::Register)),
            "update" => (Some(Call::Update), Some(Call::Register)),
            "read" | "read-replacement" => (Some(Call::Read), Some(Call::ReadResource)),
            "refresh" => (Some(Call::Read), None),
            "import" | "import-replacement" => (Some(Call::Read), Some(Call::Register)),
            "delete" | "delete-replaced" => (Some(Call::Delete), None),
            "same" => (None, Some(Call::Register)),
            _ => (None, None),
        }
    }
}

/// The last part of a URN: what people call the resource.
pub fn name_of_urn(urn: &str) -> &str {
    urn.splitn(4, "::").nth(3).unwrap_or(urn)
}

/// The type in a URN, without those of its parents.
pub fn type_of_urn(urn: &str) -> &str {
    urn.split("::").nth(2).map_or("", |types| types.rsplit('$').next().unwrap_or(types))
}

/// `aws:rds/instance:Instance db`: short enough for a table, and still telling.
pub fn title_of_urn(urn: &str) -> String {
    format!("{} {}", type_of_urn(urn), name_of_urn(urn)).trim().to_owned()
}

/// Whether the process serves Pulumi's calls: its life says nothing, its calls do.
pub(crate) fn is_plugin(program: &str) -> bool {
    ["pulumi-resource", "pulumi-language", "pulumi-analyzer", "pulumi-converter", "pulumi-tool"].iter().any(|p| program.starts_with(p))
}

/// Whether the process is a provider.
pub(crate) fn is_provider(program: &str) -> bool {
    program.starts_with("pulumi-resource")
}

/// Whether the process is a language host.
pub(crate) fn is_language_host(program: &str) -> bool {
    program.starts_with("pulumi-language")
}

/// Programs that turn a Pulumi program into something that runs, or fetch what it needs.
const BUILD_TOOLS: [&str; 26] = [
    "go", "compile", "link", "asm", "cgo", "gcc", "g++", "cc", "cc1", "collect2", "as", "ld", "clang", "tsc", "esbuild", "swc", "npm",
    "yarn", "pnpm", "bun", "pip", "uv", "javac", "csc", "cargo", "rustc",
];

/// Whether the process compiles: by its own name, or as a script that an interpreter runs (`node …/tsc`, `dotnet build`).
pub(crate) fn is_build_tool(process: &Process) -> bool {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let listed = |word: &str| BUILD_TOOLS.contains(&word.strip_suffix(".js").unwrap_or(word));
    let script = process.arguments.iter().skip(1).find(|a| !a.starts_with('-')).map(|a| base(a));
    listed(&process.name)
        || listed(&base(&process.executable))
        || script.as_deref().is_some_and(|word| listed(word) || word == "build" || word == "publish")
}

/// One operation of the engine on one resource.
struct Operation<'a> {
    event: &'a ResourceEvent,
    start: i64,
    end: Option<i64>,
}

impl Operation<'_> {
    fn seen(&self) -> Seen {
        Seen { start: self.start, end: self.end }
    }
}

/// Events of one operation belong together: the one before, and the next of its resource after.
fn operations(events: &[ResourceEvent]) -> Vec<Operation<'_>> {
    let mut order: Vec<&ResourceEvent> = events.iter().collect();
    order.sort_by_key(|e| e.time);
    let mut open: HashMap<(&str, &str), usize> = HashMap::new();
    let mut out: Vec<Operation<'_>> = Vec::new();
    for event in order {
        let key = (event.urn.as_str(), event.op.as_str());
        match event.step {
            ResourceStep::Pre => {
                open.insert(key, out.len());
                out.push(Operation { event, start: event.time.unix_nanos(), end: None });
            }
            ResourceStep::Outputs | ResourceStep::Failed => {
                if let Some(i) = open.remove(&key) {
                    out[i].end = Some(event.time.unix_nanos());
                    // What was made says more than what was meant.
                    if event.dependencies.len() >= out[i].event.dependencies.len() {
                        out[i].event = event;
                    }
                }
            }
        }
    }
    out
}

/// Gives the spans of a recording the identity of the resources they work on: what one half of a call says, the other half gets;
/// for calls of which neither half says anything, the engine's events tell. What a span says itself is not changed. Says how many
/// operations found no span.
pub fn identify(recording: &mut Recording, events: &[ResourceEvent]) -> Vec<Note> {
    let call_of: Vec<Option<Call>> = recording.spans.iter().map(|s| Call::of(&s.name)).collect();
    if call_of.iter().all(Option::is_none) && events.is_empty() {
        return Vec::new();
    }
    let outer = outer_halves(recording, &call_of);
    share_identity(&mut recording.spans, &outer);
    let operations = operations(events);
    let found = by_events(&recording.spans, &call_of, &outer, &operations);
    let left = found.unmatched;
    for (i, event) in found.of_span {
        write_identity(&mut recording.spans[i], event);
    }
    share_identity(&mut recording.spans, &outer);
    unmatched(left)
}

fn unmatched(count: usize) -> Vec<Note> {
    let detail = "operations of Pulumi's engine whose call was not found among the spans";
    if count > 0 { vec![Note { code: "resources_unmatched", count: count as u64, detail: detail.to_owned() }] } else { Vec::new() }
}

/// For each span the outer half of its call, where it has one: client and server of one call are one inside the other.
fn outer_halves(recording: &Recording, call_of: &[Option<Call>]) -> Vec<Option<usize>> {
    let spans = &recording.spans;
    let index: HashMap<(TraceId, SpanId), usize> = spans.iter().enumerate().rev().map(|(i, s)| ((s.trace_id, s.span_id), i)).collect();
    // A provider without OpenTelemetry names its caller by the id that this had in legacy tracing.
    let by_legacy_id = opentracing_bridge::Joined::of(recording).by_legacy_id;
    let outer = |i: usize| {
        let call = call_of[i]?;
        let parent = spans[i].parent_span_id?;
        let parent = index.get(&(spans[i].trace_id, parent)).or_else(|| by_legacy_id.get(&parent)).copied()?;
        (parent != i && call_of[parent] == Some(call)).then_some(parent)
    };
    (0..spans.len()).map(outer).collect()
}

/// Both halves of a call work on the same resource: whichever says so says it for the other.
fn share_identity(spans: &mut [Span], outer: &[Option<usize>]) {
    let says = |span: &Span| span.attributes.get(URN).is_some();
    // Halves of halves: a call that is forwarded has more than two.
    for _ in 0..SAME_CALL_MAX {
        let mut shared = false;
        for (inner, outer) in outer.iter().enumerate().filter_map(|(i, outer)| Some((i, (*outer)?))) {
            let (from, to) = match (says(&spans[inner]), says(&spans[outer])) {
                (true, false) => (inner, outer),
                (false, true) => (outer, inner),
                _ => continue,
            };
            for key in IDENTITY {
                if let Some(value) = spans[from].attributes.get(key).cloned()
                    && spans[to].attributes.get(key).is_none()
                {
                    spans[to].attributes.push(key, value);
                }
            }
            shared = true;
        }
        if !shared {
            break;
        }
    }
}

/// What the events tell of spans.
struct Found<'a> {
    of_span: Vec<(usize, &'a ResourceEvent)>,
    /// How many operations of providers no span was found for.
    unmatched: usize,
}

/// Finds by time the outer half of the call that each operation made, where no call says by itself that it is this one.
fn by_events<'a>(spans: &[Span], call_of: &[Option<Call>], outer: &[Option<usize>], operations: &[Operation<'a>]) -> Found<'a> {
    let mut told: HashMap<(Call, &str), Vec<usize>> = HashMap::new();
    let mut candidates: BTreeMap<(Call, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (i, span) in spans.iter().enumerate().filter(|&(i, _)| outer[i].is_none()) {
        let Some(call) = call_of[i] else { continue };
        if let Some(urn) = urn_of(span) {
            told.entry((call, urn)).or_default().push(i);
        } else {
            let resource_type = [TYPE, DECORATOR].into_iter().find_map(|key| span.attributes.get_str(key));
            candidates.entry((call, resource_type)).or_default().push(i);
        }
    }
    let mut found: HashMap<usize, &ResourceEvent> = HashMap::new();
    let mut unmatched = 0;
    for (is_registration, window) in [
        (false, Window { start: CALL_AFTER_PRE_NANOS, end: CALL_END_AFTER_OUTPUTS_NANOS, by_start: true }),
        (true, Window { start: REGISTRATION_AFTER_PRE_NANOS, end: REGISTRATION_END_AFTER_OUTPUTS_NANOS, by_start: false }),
    ] {
        let mut wanted: BTreeMap<(Call, &str), Vec<usize>> = BTreeMap::new();
        for (o, operation) in operations.iter().enumerate() {
            let (provider, registration) = Call::of_operation(&operation.event.op);
            // Stacks, components and providers themselves have none.
            let provider = provider.filter(|_| operation.event.provider.is_some());
            let Some(call) = (if is_registration { registration } else { provider }) else { continue };
            let is_told = |&i: &usize| {
                let starts = spans[i].start.unix_nanos().saturating_sub(operation.start);
                let ends = operation.end.map(|end| spans[i].end.unix_nanos().saturating_sub(end));
                window.start.contains(&starts) && ends.is_none_or(|ends| window.end.contains(&ends))
            };
            if !told.get(&(call, operation.event.urn.as_str())).is_some_and(|list| list.iter().any(is_told)) {
                wanted.entry((call, operation.event.resource_type.as_str())).or_default().push(o);
            }
        }
        // Spans that know their type first; then those that do not, of any type.
        let mut left: BTreeMap<Call, Vec<usize>> = BTreeMap::new();
        for ((call, resource_type), operations_of) in wanted {
            let spans_of = candidates.get(&(call, Some(resource_type))).map_or(&[][..], |list| list);
            let rest = match_spans(operations, operations_of, spans, spans_of, &window, &mut found);
            left.entry(call).or_default().extend(rest);
        }
        for (call, operations_of) in left {
            let spans_of = candidates.get(&(call, None)).map_or(&[][..], |list| list);
            let rest = match_spans(operations, operations_of, spans, spans_of, &window, &mut found);
            unmatched += if is_registration { 0 } else { rest.len() };
        }
    }
    let mut of_span: Vec<(usize, &ResourceEvent)> = found.into_iter().collect();
    of_span.sort_by_key(|(i, _)| *i);
    Found { of_span, unmatched }
}

/// Gives each operation its span where one fits; returns those without.
fn match_spans<'a>(
    operations: &[Operation<'a>],
    mut wanted: Vec<usize>,
    spans: &[Span],
    candidates: &[usize],
    window: &Window,
    found: &mut HashMap<usize, &'a ResourceEvent>,
) -> Vec<usize> {
    let mut free: Vec<usize> = candidates.iter().copied().filter(|i| !found.contains_key(i)).collect();
    free.sort_by_key(|&i| (spans[i].start, spans[i].trace_id, spans[i].span_id));
    let left: Vec<Seen> = wanted.iter().map(|&o| operations[o].seen()).collect();
    let right: Vec<Seen> =
        free.iter().map(|&i| Seen { start: spans[i].start.unix_nanos(), end: Some(spans[i].end.unix_nanos()) }).collect();
    let mut matched = vec![false; wanted.len()];
    for (o, s) in span_pairing::pair(&left, &right, window) {
        matched[o] = true;
        found.insert(free[s], operations[wanted[o]].event);
    }
    let mut place = 0;
    wanted.retain(|_| {
        place += 1;
        !matched[place - 1]
    });
    wanted
}

fn write_identity(span: &mut Span, event: &ResourceEvent) {
    let text = |text: &str| AttributeValue::Str(text.into());
    let list = || AttributeValue::Array(event.dependencies.iter().map(|d| text(d)).collect());
    let values = [
        (URN, Some(text(&event.urn))),
        (TYPE, Some(text(&event.resource_type))),
        (DEPENDENCIES, (!event.dependencies.is_empty()).then(list)),
        (PARENT, event.parent.as_deref().map(text)),
        (PROVIDER, event.provider.as_deref().map(text)),
    ];
    for (key, value) in values {
        if let Some(value) = value
            && span.attributes.get(key).is_none()
        {
            span.attributes.push(key, value);
        }
    }
}

/// URNs that an attribute lists.
fn listed(value: Option<&AttributeValue>) -> Vec<&str> {
    match value {
        Some(AttributeValue::Str(text)) => text.split(',').map(str::trim).filter(|t| !t.is_empty()).collect(),
        Some(AttributeValue::Array(items)) => items.iter().filter_map(AttributeValue::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The resource that a span says it works on.
pub fn urn_of(span: &Span) -> Option<&str> {
    span.attributes.get_str(URN).filter(|urn| !urn.is_empty())
}

/// What a span needs to be there before: its dependencies, its parent, its provider.
pub(crate) fn needs_of(span: &Span) -> impl Iterator<Item = &str> {
    let attributes = &span.attributes;
    listed(attributes.get(DEPENDENCIES)).into_iter().chain(attributes.get_str(PARENT)).chain(attributes.get_str(PROVIDER))
}

/// Which nodes of a forest work on which resources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    /// For each resource the outermost nodes that work on it, by end.
    units: Vec<Vec<(i64, usize)>>,
    /// For each resource those it needs.
    needs: Vec<Vec<usize>>,
    /// The outermost nodes and their resource.
    of_node: HashMap<usize, usize>,
}

impl Resources {
    /// Reads the attributes of the forest's spans. `end` holds the end of each node.
    pub(crate) fn of(recording: &Recording, forest: &Forest, end: &[i64]) -> Resources {
        let mut out = Resources::default();
        if !forest.pulumi() {
            return out;
        }
        // Pulumi's events do not say what depends on what; its payloads do. Where nobody does, parents and providers alone would
        // say that nothing else was waited for.
        if !recording.spans.iter().any(|span| span.attributes.get(DEPENDENCIES).is_some()) {
            return out;
        }
        let mut number: HashMap<&str, usize> = HashMap::new();
        let mut needs: Vec<Vec<&str>> = Vec::new();
        // The resource of each node, where it or the nearest node above it that works on one says so.
        let mut inside: Vec<Option<usize>> = vec![None; forest.len()];
        for node in 0..forest.len() {
            let above = forest.nodes[node].parent().and_then(|p| inside[p]);
            inside[node] = above;
            let Some((span, urn)) = forest.span(recording, node).and_then(|s| Some((s, urn_of(s)?))) else { continue };
            let resource = *number.entry(urn).or_insert_with(|| {
                needs.push(Vec::new());
                out.units.push(Vec::new());
                needs.len() - 1
            });
            inside[node] = Some(resource);
            needs[resource].extend(needs_of(span));
            if above != Some(resource) {
                out.units[resource].push((end[node], node));
                out.of_node.insert(node, resource);
            }
        }
        for unit in &mut out.units {
            unit.sort_unstable();
        }
        // A provider is named by its URN with an id behind it.
        let find = |urn: &&str| number.get(urn).or_else(|| number.get(urn.rsplit_once("::")?.0)).copied();
        out.needs = needs
            .iter()
            .enumerate()
            .map(|(resource, urns)| {
                let mut list: Vec<usize> = urns.iter().filter_map(find).filter(|&r| r != resource).collect();
                list.sort_unstable();
                list.dedup();
                list
            })
            .collect();
        out
    }

    /// The nodes that may have waited for a resource.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = usize> + '_ {
        self.of_node.keys().copied()
    }

    /// What a node that starts then waited for: of each resource it needs the last work that had ended, and where there is any,
    /// of its own too.
    pub(crate) fn waited_for(&self, node: usize, start: i64) -> Vec<usize> {
        let Some(&resource) = self.of_node.get(&node) else { return Vec::new() };
        let last = |&r: &usize| {
            let ended = self.units[r].partition_point(|&(end, _)| end <= start);
            ended.checked_sub(1).map(|last| self.units[r][last].1).filter(|&x| x != node)
        };
        let mut out: Vec<usize> = self.needs[resource].iter().filter_map(last).collect();
        if !out.is_empty() {
            out.extend(last(&resource));
        }
        out
    }
}

#[cfg(test)]
mod tests;
