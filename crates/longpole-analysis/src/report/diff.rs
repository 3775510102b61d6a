//! Why one run took longer than another: the difference of their wall times, explained along their critical paths.
//!
//! ```text
//! A   | plan 2 | create db 40 | create web 18 | run 1 |     61 s
//! B   | plan 2 | create db 55 | run 1 |                     58 s
//!       create db +15   create web −18   = −3               the parts are the whole, always
//! ```
//!
//! Operations of both runs are the same where service, name and resource are, numbers and ids in names aside. The critical path
//! of a run is as long as the run, so differences of time on the path sum to the difference of the runs. An operation that took
//! as long as before may still have more time on the path: something that hid it is gone.
//!
//! What an operation did in that time says why: it computed longer, or it waited longer, and in which function.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use longpole_model::{IdVec, Nanos, NodeId, StateKind, WaitKind};

use crate::pulumi::urn::title_of_urn;
use crate::report::{FEW_SAMPLES, Report};
use crate::tree::labels::{NameId, ServiceId};

/// Operations whose states are compared: those with the largest difference.
pub const EXPLAINED_MAX: usize = 100;

/// States of an operation are listed from this share of its difference on.
const CHANGE_PERCENT_MIN: u64 = 10;

/// Shortest run of hexadecimal digits that is taken for an id. Words such as `facade` are shorter.
const ID_DIGITS_MIN: usize = 8;

/// `1b4e28ba-2fa1-11d2-883f-0016d3cca427`.
const UUID_BYTES: usize = 36;

/// What an operation is in one of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Side {
    /// How many there were.
    pub count: u64,
    /// Their durations together.
    pub total: Nanos,
    /// Time of the critical path in which one of them was the innermost.
    pub on_path: Nanos,
    /// How much of that a thread of theirs was on a CPU.
    pub on_path_cpu: Nanos,
    /// The one with most time on the path, of equals the first; `None` if there are none.
    pub longest: Option<NodeId>,
}

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Only the second run has it.
    Added,
    /// Only the first run has it.
    Removed,
    /// Both have it.
    Kept,
}

impl Fate {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Added => "added",
            Fate::Removed => "removed",
            Fate::Kept => "kept",
        }
    }
}

/// How much longer an operation was in one state while it was on the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDiff {
    /// The state.
    pub state: StateKind,
    /// In the second run more than in the first.
    pub delta: Nanos,
    /// The function that holds most of it, in the run that has more of it.
    pub function: Option<String>,
}

/// One operation in both runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationDiff {
    /// Its service.
    pub service: String,
    /// Its name, numbers and ids replaced.
    pub name: String,
    /// Type and name of the cloud resource it works on, where it does.
    pub resource: Option<String>,
    /// In the first run.
    pub a: Side,
    /// In the second run.
    pub b: Side,
    /// What it did longer or shorter, the largest difference first; what matters little is left out. Empty where a run has no
    /// samples, and behind the first [`EXPLAINED_MAX`] operations.
    pub states: Vec<StateDiff>,
}

impl OperationDiff {
    /// How much longer the second run is because of it.
    pub fn delta(&self) -> Nanos {
        self.b.on_path - self.a.on_path
    }

    /// What became of it.
    pub fn fate(&self) -> Fate {
        match (self.a.count, self.b.count) {
            (0, _) => Fate::Added,
            (_, 0) => Fate::Removed,
            _ => Fate::Kept,
        }
    }
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// How long the first run took.
    pub a_wall: Nanos,
    /// How long the second run took.
    pub b_wall: Nanos,
    /// All operations of both: the largest difference first, then by how long they are, then by name.
    pub operations: Vec<OperationDiff>,
}

impl Diff {
    /// Compares.
    pub fn new(a: &Report, b: &Report) -> Diff {
        let mut sides: BTreeMap<Key, [Group; 2]> = BTreeMap::new();
        for (which, report) in [a, b].into_iter().enumerate() {
            for (key, group) in operations(report) {
                sides.entry(key).or_default()[which] = group;
            }
        }
        let mut operations: Vec<(OperationDiff, [Vec<NodeId>; 2])> = sides
            .into_iter()
            .map(|((service, name, resource), [in_a, in_b])| {
                let is_run = in_a.nodes.iter().chain(&in_b.nodes).any(|node| *node == NodeId::RUN);
                let name = if is_run { name_of_runs(a, b) } else { name };
                (OperationDiff { service, name, resource, a: in_a.side, b: in_b.side, states: Vec::new() }, [in_a.nodes, in_b.nodes])
            })
            .collect();
        operations.sort_by_key(|(o, _)| (Reverse(o.delta().magnitude()), Reverse(o.a.total.max(o.b.total))));
        // Without samples a run computes as long, and its states do not show it.
        if ![a, b].iter().any(|report| report.recording().samples.is_empty()) {
            for (operation, [in_a, in_b]) in operations.iter_mut().take(EXPLAINED_MAX).filter(|(o, _)| o.delta() != Nanos::ZERO) {
                operation.states = state_diffs((a, in_a), (b, in_b), operation.delta());
            }
        }
        let operations = operations.into_iter().map(|(operation, _)| operation).collect();
        Diff { a_wall: a.wall(), b_wall: b.wall(), operations }
    }

    /// How much longer the second run took. The differences of the operations sum to it.
    pub fn delta(&self) -> Nanos {
        self.b_wall - self.a_wall
    }

    /// Operations whose time on the path differs.
    pub fn changed(&self) -> impl Iterator<Item = &OperationDiff> {
        self.operations.iter().filter(|o| o.delta() != Nanos::ZERO)
    }
}

/// What the commands of two runs are called: `make`, or `ninja (before: make)`.
fn name_of_runs(a: &Report, b: &Report) -> String {
    let [before, after] = [a, b].map(|report| report.name(NodeId::RUN));
    if before == after { before.to_owned() } else { format!("{after} (before: {before})") }
}

/// Service, name, resource.
type Key = (String, String, Option<String>);

/// The nodes of an operation in one of the runs.
#[derive(Default)]
struct Group {
    side: Side,
    nodes: Vec<NodeId>,
}

fn operations(report: &Report) -> BTreeMap<Key, Group> {
    // Labels and resources repeat: each name is normalised once.
    let labels = report.labels();
    let names: IdVec<NameId, String> = labels.names.iter().map(|name| normalised(name)).collect();
    let mut groups: BTreeMap<(ServiceId, NameId, Option<&str>), Vec<NodeId>> = BTreeMap::new();
    for node in report.forest().ids() {
        groups.entry((labels.service[node], labels.name[node], report.resource(node))).or_default().push(node);
    }
    let mut out: BTreeMap<Key, Group> = BTreeMap::new();
    let cpu = report.path_cpu();
    for ((service, name, urn), nodes) in groups {
        // The commands of two runs are one operation, whatever they are called.
        let name = if nodes[0] == NodeId::RUN { String::new() } else { names[name].clone() };
        let key = (labels.services[service].clone(), name, urn.map(title_of_urn));
        let Group { side, nodes: all } = out.entry(key).or_default();
        side.count += nodes.len() as u64;
        for &node in &nodes {
            side.total += Nanos(report.forest()[node].range.nanos());
            side.on_path += report.critical_path().on_path[node];
            side.on_path_cpu += cpu[node];
            let on_path = |node: NodeId| report.critical_path().on_path[node];
            if side.longest.is_none_or(|longest| on_path(node) > on_path(longest)) {
                side.longest = Some(node);
            }
        }
        all.extend(nodes);
    }
    out
}

/// What these nodes did longer or shorter while they were on the path, which makes up this difference. A difference of a few samples
/// is none.
fn state_diffs(a: (&Report, &[NodeId]), b: (&Report, &[NodeId]), difference: Nanos) -> Vec<StateDiff> {
    let [before, after] = [a, b].map(|(report, nodes)| report.states_on_path(nodes));
    let exact = before.is_exact() && after.is_exact();
    let rate_hz = a.0.recording().run.rate_hz.min(b.0.recording().run.rate_hz).max(1);
    let few = Nanos::from_u64(FEW_SAMPLES * 1_000_000_000 / u64::from(rate_hz));
    let matters = |state: StateKind, delta: Nanos| {
        let is_measured = exact || matches!(state, StateKind::Blocked(_)) || delta.magnitude() >= few.magnitude();
        is_measured
            && delta != Nanos::ZERO
            && u128::from(delta.magnitude()) * 100 >= u128::from(difference.magnitude()) * u128::from(CHANGE_PERCENT_MIN)
    };
    let blocked = WaitKind::ALL.into_iter().map(StateKind::Blocked);
    let others =
        [StateKind::OnCpu, StateKind::Runnable, StateKind::BlockedUnseen, StateKind::Awaiting, StateKind::Remote, StateKind::Unaccounted];
    let mut out: Vec<StateDiff> = Vec::new();
    let of_functions = wait_diffs(a, b);
    for state in others.into_iter().chain(blocked) {
        let mut rest = after.of(state) - before.of(state);
        // Waits of two functions that change in opposite directions would pass for one small change of either.
        let of_state = of_functions.iter().filter(|((kind, _), delta)| state == StateKind::Blocked(*kind) && matters(state, **delta));
        for ((_, function), delta) in of_state {
            rest -= *delta;
            out.push(StateDiff { state, delta: *delta, function: Some(function.clone()) });
        }
        if matters(state, rest) {
            out.push(StateDiff { state, delta: rest, function: changed_function(a, b, state, rest) });
        }
    }
    out.sort_by_key(|state| Reverse(state.delta.magnitude()));
    out
}

/// How much longer these nodes waited in each function while they were on the path, by kind of wait.
fn wait_diffs(a: (&Report, &[NodeId]), b: (&Report, &[NodeId])) -> BTreeMap<(WaitKind, String), Nanos> {
    let mut deltas: BTreeMap<(WaitKind, String), Nanos> = BTreeMap::new();
    for ((report, nodes), is_after) in [(a, false), (b, true)] {
        for sum in report.waits_on_path(nodes).into_iter().filter(|sum| !sum.in_other_threads) {
            let Some(function) = report.waiting_function(sum.wait) else { continue };
            let delta = deltas.entry((sum.wait.kind, function.to_owned())).or_default();
            *delta = if is_after { *delta + sum.nanos } else { *delta - sum.nanos };
        }
    }
    deltas
}

/// The function of the program whose time in a state changed most in the direction of the whole change, if it makes up half of that. Waits have their
/// functions already.
fn changed_function(a: (&Report, &[NodeId]), b: (&Report, &[NodeId]), state: StateKind, change: Nanos) -> Option<String> {
    if state != StateKind::OnCpu {
        return None;
    }
    let mut deltas: BTreeMap<&str, Nanos> = BTreeMap::new();
    for ((report, nodes), is_after) in [(a, false), (b, true)] {
        let samples = report.samples_on_path(nodes);
        for (stack, nanos) in report.stacks(samples.into_iter()) {
            let Some((own, _)) = report.functions().own_of_stack(report.recording(), stack) else { continue };
            let delta = deltas.entry(report.functions().list[own].function.as_str()).or_default();
            let nanos = Nanos::from_u64(nanos);
            *delta = if is_after { *delta + nanos } else { *delta - nanos };
        }
    }
    let is_less = change < Nanos::ZERO;
    let in_direction = deltas.into_iter().filter(|(_, delta)| (*delta < Nanos::ZERO) == is_less);
    let (function, most) = in_direction.max_by_key(|(_, delta)| delta.magnitude())?;
    (most.magnitude().saturating_mul(2) >= change.magnitude()).then(|| function.to_owned())
}

/// The name without what differs from run to run: `#` for numbers, and for ids of [`ID_DIGITS_MIN`] hexadecimal digits or more.
///
/// `worker-12` and `worker-7` are one operation, `GET /order/5b8efff798038103/2` is `GET /order/#/#`; `v2`, `s3` and `ec2` stay
/// what they are, for a number that is part of a word is part of the name.
pub fn normalised(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if rest.get(..UUID_BYTES).is_some_and(is_uuid) {
            out.push('#');
            rest = &rest[UUID_BYTES..];
            continue;
        }
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        if word == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (piece, tail) = rest.split_at(word);
        let digits = piece.bytes().filter(u8::is_ascii_digit).count();
        let is_number = digits == piece.len();
        let is_id = piece.len() >= ID_DIGITS_MIN && digits > 0 && piece.bytes().all(|b| b.is_ascii_hexdigit());
        out.push_str(if is_number || is_id { "#" } else { piece });
        rest = tail;
    }
    out
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { b == b'-' } else { b.is_ascii_hexdigit() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    fn report(input: &str) -> Report {
        Report::new(text::parse(input).unwrap())
    }

    /// Each operation that makes a difference, as `name +millis fate`.
    fn check(a: &str, b: &str, expected: &[&str]) {
        let diff = Diff::new(&report(a), &report(b));
        let drawn: Vec<String> = diff
            .changed()
            .map(|o| {
                let resource = o.resource.as_ref().map(|r| format!(" {r}")).unwrap_or_default();
                format!("{}{resource} {:+} {}", o.name, o.delta().0 / 1_000_000, o.fate().as_str())
            })
            .collect();
        assert_eq!(drawn, expected);
        assert_eq!(diff.operations.iter().map(OperationDiff::delta).sum::<Nanos>(), diff.delta());
    }

    #[test]
    fn the_commands_of_two_runs_are_one_operation_with_their_names() {
        check("run make 0..90ms\n", "run make 0..60ms\n", &["make -30 kept"]);
        check("run make 0..90ms\n", "run ninja 0..60ms\n", &["ninja (before: make) -30 kept"]);
    }

    #[test]
    fn names_lose_what_differs_from_run_to_run() {
        for (name, expected) in [
            ("worker-12", "worker-#"),
            ("GET /order/5b8efff798038103/2", "GET /order/#/#"),
            ("job 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "job #"),
            ("s3 PutObject v2", "s3 PutObject v2"),
            ("step 3 of 10", "step # of #"),
            ("facade deadbeef", "facade deadbeef"),
            ("größe 5", "größe #"),
            ("", ""),
        ] {
            assert_eq!(normalised(name), expected);
        }
    }

    #[test]
    fn the_difference_is_explained_by_what_was_on_the_paths() {
        check(
            "run a 0..61ms\n  plan 0..2ms\n  create db 2..42ms\n  create web 42..60ms\n",
            "run b 0..58ms\n  plan 0..2ms\n  create db 2..57ms\n",
            &["create web -18 removed", "create db +15 kept"],
        );
        check("run x 0..10ms\n  a-1 0..10ms\n  b 0..9ms\n", "run x 0..9ms\n  a-2 0..3ms\n  b 0..9ms\n", &["a-# -10 kept", "b +9 kept"]);
    }

    #[test]
    fn a_state_that_grew_is_listed_with_its_function() {
        let run = |hash: usize| {
            let end = 10 + hash;
            format!("run x 0..{end}ms\n  build 0..{end}ms svc pid 1\nsample 0ms x{hash} pid 1 [build] main;hash\n")
        };
        let said = |a: usize, b: usize| {
            let diff = Diff::new(&report(&run(a)), &report(&run(b)));
            let of = |s: &StateDiff| (s.state, s.delta.0 / 1_000_000, s.function.clone());
            diff.operations[0].states.iter().map(of).collect::<Vec<_>>()
        };
        let hash = Some("hash".to_owned());
        assert_eq!(said(20, 60), [(StateKind::OnCpu, 40, hash.clone())]);
        assert_eq!(said(60, 20), [(StateKind::OnCpu, -40, hash)]);
        assert_eq!(said(20, 20), []);
    }

    #[test]
    fn the_function_that_changed_is_named_and_not_the_one_with_most_time() {
        let run = |parse: usize, render: usize| {
            let end = 10 + parse + render;
            format!(
                "run x 0..{end}ms\n  build 0..{end}ms svc pid 1\nsample 0ms x{parse} pid 1 [build] main;parse\nsample {parse}ms x{render} pid 1 [build] main;render\n"
            )
        };
        let diff = Diff::new(&report(&run(120, 60)), &report(&run(121, 4)));
        let of = |it: &StateDiff| (it.state, it.delta.0 / 1_000_000, it.function.clone());
        assert_eq!(diff.operations[0].states.iter().map(of).collect::<Vec<_>>(), [(StateKind::OnCpu, -55, Some("render".to_owned()))]);
    }

    #[test]
    fn waits_that_change_in_opposite_directions_are_both_listed() {
        let run = |fetch: usize, write: usize| {
            let (end, first) = (fetch + write + 10, fetch + 5);
            report(&format!(
                "run x 0..{end}ms\ncpu 0..5ms pid 1\nwait 5..{first}ms pid 1 sleep main;fetch\nwait {first}..{}ms pid 1 sleep main;write\ncpu {}..{end}ms pid 1\nsample 0ms x5 pid 1 main\n",
                end - 5,
                end - 5
            ))
        };
        let diff = Diff::new(&run(600, 100), &run(100, 400));
        let said: Vec<_> = diff.operations[0].states.iter().map(|it| (it.state, it.delta.0 / 1_000_000, it.function.clone())).collect();
        let sleep = StateKind::Blocked(WaitKind::Sleep);
        assert_eq!(said, [(sleep, -500, Some("fetch".to_owned())), (sleep, 300, Some("write".to_owned()))]);
    }

    #[test]
    fn a_run_differs_from_itself_in_nothing() {
        let text = "run x 0..61ms\n  plan 0..2ms\n  create db 2..42ms\n";
        check(text, text, &[]);
        assert_eq!(Diff::new(&report(text), &report(text)).operations.len(), 3);
    }

    #[test]
    fn resources_are_operations_of_their_own_and_their_stacks_are_not() {
        let up = |stack: &str, db: i64| {
            format!(
                "run pulumi 0..100ms\n  Create 0..{db}ms pulumi-cli pulumi.resource.urn=urn:pulumi:{stack}::shop::aws:rds:Instance::db\n  Create {db}..99ms pulumi-cli pulumi.resource.urn=urn:pulumi:{stack}::shop::aws:s3:Bucket::web\n"
            )
        };
        check(&up("dev", 50), &up("test", 60), &["Create aws:rds:Instance db +10 kept", "Create aws:s3:Bucket web -10 kept"]);
    }
}
