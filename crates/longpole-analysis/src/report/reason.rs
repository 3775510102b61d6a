//! Why a pole is long: the facts, by its states, samples and waits. [`words::reason`](crate::words::reason()) says them.

use std::cmp::Reverse;

use longpole_model::fast_hash::FastMap;
use longpole_model::resource_event::PAYLOAD_LOGS;
use longpole_model::units::whole_percent;
use longpole_model::{Id, Nanos, NodeId, SampleId, StateKind, SumNanos, WaitKind};

use crate::code::functions::Function;
use crate::code::named::Named;
use crate::report::handle::Handle;
use crate::report::held_lock::HeldLock;
use crate::report::names::{FunctionNames, NamedPart, NamedWait};
use crate::report::{FEW_SAMPLES, Report};
use crate::schedule::poles::{Outlier, Pole};
use crate::schedule::saving::{Change, Saving};
use crate::time::short_waits::{self, SHORT_WAITS_MIN};
use crate::time::states::States;
use crate::time::wait_groups::{WaitPart, WaitSum};

/// From this number of nodes on the reason of a pole names the one that is most of it.
const MANY: usize = 3;

/// If there are only two nodes, it names the one that has this share of the pole's time on the path.
const NEARLY_ALL_PERCENT: i64 = 90;

/// The reason says that the time of a function includes its callees if they have more than this share of it.
const CALLEES_PERCENT: u64 = 10;

/// A saving of one node of a pole walks the forest: beyond this number of nodes it takes too long to be worth a word.
const SAVES_NODES_MAX: usize = 50_000;

/// From this share of its own time a pole is called busy.
const BUSY_PERCENT: i64 = 60;

/// From this share of its own time on the reason of a busy pole names the time in which it had no CPU.
const RUNNABLE_PERCENT: i64 = 10;

/// From this share of its own time on the reason of a busy pole names what it waits for, too.
const BESIDE_PERCENT: i64 = 15;

/// Up to this share of its own time on a CPU a pole counts as waiting.
const WAITING_PERCENT: i64 = 20;

/// Why a pole is long, as far as its states tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasonCode {
    /// It computes.
    OnCpu,
    /// It is hardly on a CPU: blocked, awaiting, remote, runnable, or nobody knows.
    Waits,
    /// Some of both.
    Mixed,
    /// Its own time is too short for the sampling rate.
    FewSamples,
    /// The recording has no samples.
    NoSamples,
}

impl ReasonCode {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            ReasonCode::OnCpu => "on_cpu",
            ReasonCode::Waits => "waits",
            ReasonCode::Mixed => "mixed",
            ReasonCode::FewSamples => "few_samples",
            ReasonCode::NoSamples => "no_samples",
        }
    }
}

impl ReasonCode {
    /// Whether the reason gives shares of a time.
    pub fn has_shares(self) -> bool {
        matches!(self, ReasonCode::OnCpu | ReasonCode::Waits | ReasonCode::Mixed)
    }
}

/// Why a pole is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason<'a> {
    /// Nodes of the pole.
    pub nodes: usize,
    /// The same, if there are several and none overlaps another.
    pub in_sequence: Option<usize>,
    /// The pole is one operation that stands out among others.
    pub outlier: Option<Outlier>,
    /// The process of that operation.
    pub outlier_process: Option<NodeOfPole<'a>>,
    /// The node of the pole that is most of it, if there are several others.
    pub longest: Option<Longest<'a>>,
    /// The function that the pole is.
    pub part: Option<&'a Function>,
    /// The pole's own time, if it is mostly what it calls: shares are of this time and not of the whole.
    pub of_own: Option<Nanos>,
    /// Whether the shares are estimates.
    pub is_estimate: bool,
    /// What it does in its own time.
    pub cause: Cause<'a>,
    /// The lock that it holds meanwhile while others wait for it.
    pub held_lock: Option<HeldLock<'a>>,
}

impl<'a> Reason<'a> {
    /// The reason of a pole of this number of nodes. Nothing but the cause is known.
    pub(crate) fn of(nodes: usize, cause: Cause<'a>) -> Reason<'a> {
        let (in_sequence, outlier, outlier_process, longest, part, of_own, held_lock) = Default::default();
        Reason { nodes, in_sequence, outlier, outlier_process, longest, part, of_own, is_estimate: false, cause, held_lock }
    }
}

/// A node, and what tells it from others of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOfPole<'a> {
    /// The node.
    pub handle: Handle,
    /// The arguments of a process, the program first; empty for a span.
    pub arguments: &'a [String],
    /// Places in `arguments` of those that most of the other processes do not have: they tell it from them. Empty if there are none.
    pub own_arguments: Vec<usize>,
}

/// A node that holds most of a pole's time on the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Longest<'a> {
    /// The node.
    pub node: NodeOfPole<'a>,
    /// Its time on the path.
    pub nanos: Nanos,
    /// Whether no other node of the pole is on the path.
    pub is_only: bool,
    /// What the run saves if it alone took no time; `None` if that is as much as the pole saves, or would take too long to find out.
    pub saves: Option<Saving>,
}

/// What a pole does in its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause<'a> {
    /// It has no samples on the path.
    NoSamples {
        /// Whether the recording has samples, but without times.
        are_untimed: bool,
        /// What it waited for all the same.
        wait: Option<WaitShare<'a>>,
    },
    /// It has too few samples, because it is mostly what it calls.
    HardlyAnyOwnTime,
    /// It has too few samples, because it is short.
    TooShort,
    /// It computes and has too few samples to say where.
    ComputesSomewhere(OnCpuShare),
    /// It computes.
    Computes {
        /// How much.
        share: OnCpuShare,
        /// Where; `None` if its samples are spread over many functions.
        hot: Option<HotFunction<'a>>,
        /// What it waits for beside.
        wait: Option<WaitShare<'a>>,
    },
    /// It computes for a part of its time and does something else in the other.
    ComputesAndWaits {
        /// Share of its time on a CPU.
        percent: i64,
        /// Where; `None` if its samples are too few or spread.
        hot: Option<HotFunction<'a>>,
        /// The other part.
        rest: OffCpu<'a>,
    },
    /// It hardly computes and waits in a known function.
    Waits(OffCpu<'a>),
    /// It hardly computes; which function waits is unknown.
    HardlyComputes {
        /// What it does instead.
        rest: OffCpu<'a>,
        /// The share of its next longest state, if no wait is named and that is worth saying.
        next: Option<(i64, OffCpuState)>,
        /// Share of its time on a CPU.
        percent: i64,
        /// The event of its span after which it waited.
        after_event: Option<&'a str>,
    },
}

/// Shares of a time in whole percent: on a CPU, and ready to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnCpuShare {
    /// On a CPU.
    pub percent: i64,
    /// Runnable without a CPU, if it is worth saying.
    pub runnable_percent: Option<i64>,
}

/// The function that holds most of some samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotFunction<'a> {
    /// CPU time that the samples in it stand for, those in what it calls included.
    pub nanos: Nanos,
    /// Whether a part of that worth saying is in what it calls.
    pub has_callees: bool,
    /// Its name.
    pub names: FunctionNames<'a>,
}

/// A share of a time in a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitShare<'a> {
    /// In whole percent.
    pub percent: i64,
    /// The wait.
    pub wait: NamedWait<'a>,
}

/// What a pole did in most of the time in which it was on no CPU. Shares are of its own time, in whole percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffCpu<'a> {
    /// It waited.
    Wait(WaitShare<'a>),
    /// It waited in short waits. longpole sampled few of them.
    ShortWaits {
        /// Share of all its short waits.
        percent: i64,
        /// Sampled waits of the most frequent kind.
        of_kind: usize,
        /// All sampled waits.
        all: usize,
        /// One of the most frequent kind.
        wait: NamedWait<'a>,
    },
    /// It was in a state without a known wait.
    State {
        /// Share of the state.
        percent: i64,
        /// The state.
        state: OffCpuState,
    },
}

/// A state on no CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffCpuState {
    /// Nobody knows.
    Unaccounted,
    /// Its task was awaited.
    Awaiting,
    /// Another machine or process worked for it.
    Remote,
    /// Blocked in waits that were not sampled.
    BlockedUnseen,
    /// Blocked.
    Blocked,
    /// Runnable while others had the CPUs.
    Runnable,
}

impl<'a> Reason<'a> {
    /// The kind of the reason.
    pub fn code(&self) -> ReasonCode {
        match self.cause {
            Cause::NoSamples { .. } => ReasonCode::NoSamples,
            Cause::HardlyAnyOwnTime | Cause::TooShort => ReasonCode::FewSamples,
            Cause::ComputesSomewhere(_) | Cause::Computes { .. } => ReasonCode::OnCpu,
            Cause::ComputesAndWaits { .. } => ReasonCode::Mixed,
            Cause::Waits(_) | Cause::HardlyComputes { .. } => ReasonCode::Waits,
        }
    }

    /// The function to look at: where it waits, else where it computes.
    pub fn function(&self) -> Option<&'a str> {
        match self.cause {
            Cause::NoSamples { wait, .. } => wait.and_then(|share| share.wait.function),
            Cause::Computes { hot, .. } => hot.map(|hot| hot.names.function),
            Cause::ComputesAndWaits { hot, rest, .. } => rest.waiting_function().or(hot.map(|hot| hot.names.function)),
            Cause::Waits(rest) | Cause::HardlyComputes { rest, .. } => rest.waiting_function(),
            Cause::HardlyAnyOwnTime | Cause::TooShort | Cause::ComputesSomewhere(_) => None,
        }
    }

    /// The function of a library that [`Reason::function`] is mostly in.
    pub fn mostly_in(&self) -> Option<&'a str> {
        let library = |hot: Option<HotFunction<'a>>| Some(hot?.names.mostly_in?.function);
        match self.cause {
            Cause::Computes { hot, .. } => library(hot),
            Cause::ComputesAndWaits { hot, rest, .. } if rest.waiting_function().is_none() => library(hot),
            _ => None,
        }
    }
}

impl<'a> OffCpu<'a> {
    fn waiting_function(self) -> Option<&'a str> {
        match self {
            OffCpu::Wait(WaitShare { wait, .. }) | OffCpu::ShortWaits { wait, .. } => wait.function,
            OffCpu::State { .. } => None,
        }
    }
}

impl Report {
    /// Why a pole is long, by its states, samples and waits, and whether its spans follow each other.
    pub fn reason(&self, pole: &Pole) -> Reason<'_> {
        let states = self.states_of_pole(pole);
        let own = states.own();
        let reason = Reason::of(pole.nodes.len(), self.cause(pole));
        Reason {
            outlier: pole.outlier,
            outlier_process: self.outlier_process(pole),
            held_lock: self.held_lock(pole),
            is_estimate: reason.code().has_shares() && !states.is_exact(),
            part: self.part_of(pole).and_then(NamedPart::function),
            in_sequence: (pole.part.is_none() && self.in_sequence(&pole.nodes)).then_some(pole.nodes.len()),
            longest: self.longest(pole).filter(|_| pole.part.is_none()),
            // These are shares of what it does between the operations that it calls, and not of it as a whole.
            of_own: (pole.part.is_none() && reason.code().has_shares() && (self.wraps(pole, own) || leaves_out(own, pole.on_path)))
                .then_some(own),
            ..reason
        }
    }

    fn cause(&self, pole: &Pole) -> Cause<'_> {
        let samples = self.samples_of_pole(pole);
        let states = self.states_of_pole(pole);
        let own = states.own();
        let few = (samples.len() as u64) < FEW_SAMPLES;
        let expected = i128::from(own.0) * i128::from(self.recording.run.rate_hz) / 1_000_000_000;
        let percent = whole_percent(states.of(StateKind::OnCpu).0, own.0);
        let runnable = whole_percent(states.of(StateKind::Runnable).0, own.0);
        let share = OnCpuShare { percent, runnable_percent: Some(runnable).filter(|percent| *percent >= RUNNABLE_PERCENT) };
        let hot = || self.named(&samples).map(|named| self.hot(named, &samples));
        // A profile of sums does not say which of them was on the path.
        let are_untimed = self.are_samples_untimed();
        // A program that was sampled and had none has no CPU time to speak of; what it waited for was seen all the same.
        let waited = whole_percent(states.blocked_seen().0, own.0) > WAITING_PERCENT;
        let was_sampled = self.recording.run.rate_hz > 0 || !self.recording.samples.is_empty();
        let has_wait = waited && (was_sampled || longest_seen_wait(&states).is_some());
        let has_no_samples = are_untimed || (self.recording.samples.is_empty() && !has_wait);
        // What it waits for beside its work may be the better thing to mend.
        let beside = |wait: Option<(WaitKind, Nanos)>| {
            let counts = wait.filter(|(_, nanos)| whole_percent(nanos.0, own.0) >= BESIDE_PERCENT);
            counts.map(|wait| self.wait_share(pole, wait, own))
        };
        if has_no_samples && !states.is_exact() {
            return Cause::NoSamples { are_untimed, wait: beside(states.longest_wait()) };
        }
        if few && was_sampled && !states.is_exact() && expected < i128::from(FEW_SAMPLES) {
            return if self.has_hardly_any_own_time(pole) { Cause::HardlyAnyOwnTime } else { Cause::TooShort };
        }
        if computes(&states) {
            return match few {
                true => Cause::ComputesSomewhere(share),
                false => Cause::Computes { share, hot: hot(), wait: beside(longest_seen_wait(&states)) },
            };
        }
        let rest = self.off_cpu(pole, &states);
        if percent > WAITING_PERCENT {
            Cause::ComputesAndWaits { percent, hot: if few { None } else { hot() }, rest }
        } else if rest.waiting_function().is_some() {
            Cause::Waits(rest)
        } else {
            let [_, (nanos, state)] = longest_off_cpu(&states);
            let next = Some((whole_percent(nanos.0, own.0), state));
            let next = next.filter(|(percent, _)| matches!(rest, OffCpu::State { .. }) && *percent >= BESIDE_PERCENT);
            Cause::HardlyComputes { rest, next, percent, after_event: self.event_before_wait(pole) }
        }
    }

    /// A function that is named for samples, with the CPU time of those that have it in their stack.
    fn hot(&self, named: Named, samples: &[SampleId]) -> HotFunction<'_> {
        let holds = self.functions.stacks_with(&self.recording, named.function);
        let samples = || samples.iter().map(|&sample| &self.recording.samples[sample]);
        let nanos: u64 = samples().filter(|sample| holds.get(sample.stack) == Some(&true)).map(|sample| sample.weight_nanos).sum_nanos();
        let is_innermost = |stack| self.functions.of_stack(&self.recording, stack).next() == Some(named.function);
        let own: u64 = samples().filter(|sample| is_innermost(sample.stack)).map(|sample| sample.weight_nanos).sum_nanos();
        let has_callees = nanos.saturating_sub(own) > nanos / 100 * CALLEES_PERCENT;
        HotFunction { nanos: Nanos::from_u64(nanos), has_callees, names: self.names_of(named) }
    }

    /// What a pole did in most of the time in which it did not run.
    fn off_cpu(&self, pole: &Pole, states: &States) -> OffCpu<'_> {
        let own = states.own();
        if let Some(wait) = longest_seen_wait(states) {
            return OffCpu::Wait(self.wait_share(pole, wait, own));
        }
        let [(nanos, state), _] = longest_off_cpu(states);
        let percent = whole_percent(nanos.0, own.0);
        let short = if nanos == states.of(StateKind::BlockedUnseen) { self.short_waits(pole, percent) } else { None };
        short.unwrap_or(OffCpu::State { percent, state })
    }

    /// What most of those short waits of a pole were for that were probed, which are few of all.
    fn short_waits(&self, pole: &Pole, percent: i64) -> Option<OffCpu<'_>> {
        let sums = self.waits_of_pole(pole);
        let is_short = |part: &&WaitPart| short_waits::is_short(&self.recording, part.wait);
        let count = |sum: &WaitSum<'_>| sum.parts.iter().filter(is_short).count();
        let all: usize = sums.iter().map(count).sum();
        let most = sums.iter().max_by_key(|sum| count(sum))?;
        let of_kind = count(most);
        let are_enough = of_kind >= SHORT_WAITS_MIN && of_kind * 2 > all;
        are_enough.then(|| OffCpu::ShortWaits { percent, of_kind, all, wait: self.named_wait(most.wait, most.relation) })
    }

    /// What a pole waited for, so long of its own time.
    fn wait_share(&self, pole: &Pole, (kind, nanos): (WaitKind, Nanos), own: Nanos) -> WaitShare<'_> {
        let sum = self.waits_of_pole(pole).into_iter().find(|sum| sum.wait.kind == kind);
        let unknown = NamedWait { kind, relation: None, function: None };
        WaitShare { percent: whole_percent(nanos.0, own.0), wait: sum.map_or(unknown, |sum| self.named_wait(sum.wait, sum.relation)) }
    }

    /// Whether a pole is mostly what it calls: then its own time is a small part of it.
    fn wraps(&self, pole: &Pole, own: Nanos) -> bool {
        self.has_children(pole) && own < self.whole(pole) / 2
    }

    /// Whether the time of a pole on the path is a small part of it, because it calls something.
    fn has_hardly_any_own_time(&self, pole: &Pole) -> bool {
        self.has_children(pole) && pole.on_path < self.whole(pole) / 10
    }

    fn whole(&self, pole: &Pole) -> Nanos {
        pole.nodes.iter().map(|&n| Nanos(self.forest[n].range.nanos())).sum()
    }

    fn has_children(&self, pole: &Pole) -> bool {
        pole.nodes.iter().any(|&n| self.forest[n].subtree_end > n.next())
    }

    /// The event after which a pole waited longest, where that was most of its longest span.
    fn event_before_wait(&self, pole: &Pole) -> Option<&str> {
        let longest = pole.nodes.iter().copied().max_by_key(|&n| (self.path.on_path[n], Reverse(n)))?;
        let span = self.forest.span(&self.recording, longest)?;
        let ends = span.events.iter().skip(1).map(|event| event.time).chain([span.end]);
        let waits = span.events.iter().zip(ends).map(|(event, end)| (end.nanos_since(event.time), event.name.as_str()));
        let (wait, event) = waits.filter(|(_, event)| !PAYLOAD_LOGS.contains(event)).max_by_key(|(wait, _)| *wait)?;
        (wait > span.end.nanos_since(span.start) / 2).then_some(event)
    }

    /// The node that is more than half of a pole of many, or nearly all of two.
    fn longest(&self, pole: &Pole) -> Option<Longest<'_>> {
        let node = pole.nodes.iter().copied().max_by_key(|&node| (self.path.on_path[node], Reverse(node)))?;
        let nanos = self.path.on_path[node];
        let tells = match pole.nodes.len() {
            0 | 1 => false,
            2..MANY => whole_percent(nanos.0, pole.on_path.0) >= NEARLY_ALL_PERCENT,
            _ => nanos > pole.on_path / 2,
        };
        if !tells {
            return None;
        }
        let is_worth_a_walk = self.forest.len() <= SAVES_NODES_MAX && node != NodeId::RUN;
        let saves = is_worth_a_walk.then(|| self.saves(&[node], Change::Zero)).filter(|saves| *saves != pole.savings.if_zero);
        let node = self.node_among(node, pole.nodes.iter().copied());
        Some(Longest { node, nanos, is_only: nanos >= pole.on_path, saves })
    }

    /// The process that stands out among others of its name, if the pole is one.
    fn outlier_process(&self, pole: &Pole) -> Option<NodeOfPole<'_>> {
        let (Some(_), [node], None) = (pole.outlier, &pole.nodes[..], &pole.part) else { return None };
        let name = &self.forest.process(&self.recording, *node)?.name;
        let same = |node: &NodeId| self.forest.process(&self.recording, *node).is_some_and(|process| process.name == *name);
        Some(self.node_among(*node, self.forest.ids().filter(same)))
    }

    /// A node, with what tells it from these.
    fn node_among(&self, node: NodeId, others: impl Iterator<Item = NodeId>) -> NodeOfPole<'_> {
        let arguments = self.forest.process(&self.recording, node).map_or(&[][..], |process| &process.arguments);
        NodeOfPole { handle: Handle::Node(node), arguments, own_arguments: self.own_arguments(others, arguments) }
    }

    /// Places of those of these arguments of one process that at most half of these processes have.
    fn own_arguments(&self, nodes: impl Iterator<Item = NodeId>, arguments: &[String]) -> Vec<usize> {
        // How many processes have the argument, and the last of them that was counted.
        let mut having: FastMap<&str, (usize, Option<NodeId>)> = arguments.iter().map(|text| (text.as_str(), (0, None))).collect();
        let mut processes = 0;
        for node in nodes {
            let Some(process) = self.forest.process(&self.recording, node) else { continue };
            processes += 1;
            for argument in process.arguments.iter() {
                if let Some((count, last)) = having.get_mut(argument.as_str()).filter(|(_, last)| *last != Some(node)) {
                    (*count, *last) = (*count + 1, Some(node));
                }
            }
        }
        let is_own = |place: &usize| having.get(arguments[*place].as_str()).is_some_and(|(count, _)| count * 2 <= processes);
        (1..arguments.len()).filter(is_own).collect()
    }

    /// Whether there are several of them and none overlaps another.
    fn in_sequence(&self, nodes: &[NodeId]) -> bool {
        let mut ranges: Vec<_> = nodes.iter().map(|&n| self.forest[n].range).collect();
        ranges.sort_by_key(|r| r.start);
        ranges.len() > 1 && ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }
}

/// Whether the own time of a pole is so much shorter than its time on the path that a share of the one is not one of the other.
fn leaves_out(own: Nanos, on_path: Nanos) -> bool {
    on_path - own > on_path / 100
}

/// Whether it is on a CPU for most of its time, or could be: whatever lacks a CPU has something to compute. On a machine that is busy with others,
/// the function that wants the CPU is the one to name.
pub(super) fn computes(states: &States) -> bool {
    let share = |state| whole_percent(states.of(state).0, states.own().0);
    let (busy, runnable) = (share(StateKind::OnCpu), share(StateKind::Runnable));
    busy >= BUSY_PERCENT || (busy > 0 && busy + runnable >= BUSY_PERCENT)
}

/// The two states in which it was on no CPU for longest. If waits were sampled in a part of the blocked time, all of that time is one state.
fn longest_off_cpu(states: &States) -> [(Nanos, OffCpuState); 2] {
    let share = |nanos: Nanos| whole_percent(nanos.0, states.own().0);
    let (seen, unseen) = (states.blocked_seen(), states.of(StateKind::BlockedUnseen));
    let are_one = share(seen) >= BESIDE_PERCENT && share(unseen) >= BESIDE_PERCENT;
    let (seen, unseen) = if are_one { (seen + unseen, Nanos::ZERO) } else { (seen, unseen) };
    let mut parts = [
        (states.of(StateKind::Runnable), OffCpuState::Runnable),
        (seen, OffCpuState::Blocked),
        (unseen, OffCpuState::BlockedUnseen),
        (states.of(StateKind::Remote), OffCpuState::Remote),
        (states.of(StateKind::Awaiting), OffCpuState::Awaiting),
        (states.of(StateKind::Unaccounted), OffCpuState::Unaccounted),
    ];
    parts.sort_by_key(|(nanos, _)| Reverse(*nanos));
    [parts[0], parts[1]]
}

/// The kind of wait it was blocked in longest, and how long, where waits were sampled in most of the time in which it was on no CPU.
pub(super) fn longest_seen_wait(states: &States) -> Option<(WaitKind, Nanos)> {
    let is_most = states.blocked_seen() * 2 >= states.own() - states.of(StateKind::OnCpu);
    states.longest_wait().filter(|_| is_most)
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;
    use crate::report::names::LibraryFunction;

    fn report(text: &str) -> Report {
        Report::new(text::parse(text).unwrap())
    }

    const fn on_cpu(percent: i64) -> OnCpuShare {
        OnCpuShare { percent, runnable_percent: None }
    }

    fn hot<'a>(millis: i64, function: &'a str, mostly_in: Option<&'a str>) -> HotFunction<'a> {
        let mostly_in = mostly_in.map(|function| LibraryFunction { function, file: "" });
        let names = FunctionNames { function, file: "", mostly_in };
        HotFunction { nanos: Nanos(millis * 1_000_000), has_callees: mostly_in.is_some(), names }
    }

    const fn unaccounted(percent: i64) -> OffCpu<'static> {
        OffCpu::State { percent, state: OffCpuState::Unaccounted }
    }

    #[test]
    fn the_reason_of_a_pole_is_what_its_samples_tell() {
        let check = |text: &str, code: &str, cause: Cause<'_>| {
            let report = report(text);
            let reason = report.reason(report.poles().iter().next().unwrap());
            assert_eq!((reason.code().as_str(), reason.cause, reason.of_own), (code, cause, None), "{text}");
        };
        let busy = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;build;hash\n";
        check(busy, "on_cpu", Cause::Computes { share: on_cpu(95), hot: Some(hot(95, "hash", None)), wait: None });
        let waits = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x4 pid 1 [build] main\n";
        check(waits, "waits", Cause::HardlyComputes { rest: unaccounted(96), next: None, percent: 4, after_event: None });
        let mixed = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] main;hash\n";
        check(mixed, "mixed", Cause::ComputesAndWaits { percent: 40, hot: Some(hot(40, "hash", None)), rest: unaccounted(60) });
        check("run x 0..100ms\n  build 0..100ms\n", "no_samples", Cause::NoSamples { are_untimed: false, wait: None });
        check("run x 0..9ms\n  build 0..9ms svc pid 1\nsample 1ms pid 1 [build] main\n", "few_samples", Cause::TooShort);
    }

    #[test]
    fn what_wants_a_cpu_computes() {
        let text = "\
run x 0..1000ms
thread x 0..1000ms pid 1 tid 1
cpu 0..100ms pid 1 preempted
cpu 900..1000ms pid 1
sample 0ms x100 pid 1 main;build;hash
sample 900ms x100 pid 1 main;build;hash
";
        let report = report(text);
        let share = OnCpuShare { percent: 20, runnable_percent: Some(80) };
        let reason = report.reason(report.poles().iter().next().unwrap());
        assert_eq!(reason.cause, Cause::Computes { share, hot: Some(hot(200, "hash", None)), wait: None });
    }

    #[test]
    fn the_process_that_is_most_of_a_pole_has_arguments_of_its_own() {
        let longest = |rows: &[(&str, &str)]| {
            let lines = rows.iter().zip(2..).map(|((times, _), pid)| format!("process cc1 {times} pid {pid} under 1\n"));
            let mut recording = text::parse(&format!("run make 0..100ms\n{}", lines.collect::<String>())).unwrap();
            for process in &mut recording.processes {
                let Some((_, file)) = rows.get((process.pid as usize).wrapping_sub(2)) else { continue };
                process.arguments = ["cc1", "-quiet", file, "-O2", file].map(str::to_owned).into();
            }
            let report = Report::new(recording);
            let reason = report.reason(report.poles().iter().next().unwrap());
            reason
                .longest
                .map(|it| (it.node.handle.to_string(), it.node.own_arguments, it.is_only, it.saves.map(|saves| saves.high.0 / 1_000_000)))
        };
        let of_three = longest(&[("1..21ms", "a.c"), ("21..41ms", "b.c"), ("41..99ms", "c.c")]);
        assert_eq!(of_three, Some(("s4".to_owned(), vec![2, 4], false, Some(58))));
        // Only one of two is on the path.
        assert_eq!(longest(&[("1..99ms", "a.c"), ("1..50ms", "b.c")]), Some(("s2".to_owned(), vec![2, 4], true, Some(49))));
        assert_eq!(longest(&[("1..40ms", "a.c"), ("40..99ms", "b.c")]), None);
        let alike = longest(&[("1..21ms", "a.c"), ("21..41ms", "a.c"), ("41..99ms", "a.c")]);
        assert_eq!(alike.map(|(_, own_arguments, ..)| own_arguments), Some(Vec::new()));
    }

    #[test]
    fn spans_that_follow_each_other_are_counted() {
        let report = report("run x 0..100ms\n  post 0..50ms svc pid 1\n  post 50..100ms svc pid 1\nsample 0ms pid 1 main\n");
        let cause = Cause::HardlyComputes { rest: unaccounted(99), next: None, percent: 1, after_event: None };
        assert_eq!(
            report.reason(report.poles().iter().next().unwrap()),
            Reason { in_sequence: Some(2), is_estimate: true, ..Reason::of(2, cause) }
        );
    }

    #[test]
    fn a_reason_names_the_programs_own_function_and_the_library_it_calls() {
        let check_share = |text: &str, percent: i64, expected: Option<HotFunction<'_>>| {
            let report = report(text);
            let reason = report.reason(report.poles().iter().next().unwrap());
            assert_eq!(reason.cause, Cause::Computes { share: on_cpu(percent), hot: expected, wait: None });
            let names = expected.map(|hot| hot.names);
            assert_eq!(
                (reason.function(), reason.mostly_in()),
                (names.map(|it| it.function), names.and_then(|it| Some(it.mostly_in?.function)))
            );
        };
        let check = |text: &str, expected| check_share(text, 95, expected);
        let text = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;index_words;std::hash_one;std::write\n";
        check(text, Some(hot(95, "index_words", Some("std::write"))));
        let mut spread = "run x 0..100ms\n  build 0..100ms svc pid 1\n".to_owned();
        (0..32).for_each(|i| spread.push_str(&format!("sample {}ms x3 pid 1 [build] tokio::run;f{i}\n", 3 * i)));
        (96..97).for_each(|i| spread.push_str(&format!("sample {i}ms pid 1 [build] tokio::run\n")));
        check_share(&spread, 97, None);
        let nothing_own = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] std::rt;std::write\n";
        check(nothing_own, Some(hot(95, "std::write", None)));
    }

    #[test]
    fn shares_of_what_a_wrapper_does_itself_name_its_own_time() {
        let report =
            report("run x 0..100ms\n  outer 0..100ms svc pid 1\n    inner 0..60ms svc pid 1\nsample 62ms x30 pid 1 [outer] main;hash\n");
        let pole = report.poles().iter().find(|pole| pole.name == "outer").unwrap();
        let cause = Cause::Computes { share: on_cpu(75), hot: Some(hot(30, "hash", None)), wait: None };
        assert_eq!(report.reason(pole), Reason { of_own: Some(Nanos(40_000_000)), is_estimate: true, ..Reason::of(1, cause) });
    }
}
