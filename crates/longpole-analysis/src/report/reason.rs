//! Why a pole is long: the facts, by its states, samples and waits. [`explain`] has the words.

use std::cmp::Reverse;

use longpole_model::resource_event::PAYLOAD_LOGS;
use longpole_model::units::whole_percent;
use longpole_model::{Nanos, StateKind, SumNanos, Wait, WaitKind};

use crate::code::named::Named;
use crate::report::explain::{self, Hot, OffCpu, ThreadName};
use crate::report::{FEW_SAMPLES, Report};
use crate::schedule::poles::Pole;
use crate::time::blocked_by::{BlockedBy, Blocker};
use crate::time::blockers::{BlockerEvidence, PROBE_NANOS};
use crate::time::callees::Callee;
use crate::time::states::States;
use crate::time::wait_groups::{WaitPart, WaitSum};

/// Fewer short waits than this say nothing of the others.
const SHORT_WAITS_MIN: usize = 3;

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

/// Why a pole is long, in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: ReasonCode,
    /// Lower-case fragment for people.
    pub text: String,
    /// The function that the text names.
    pub function: Option<String>,
    /// The function of a library that the text says most of it is in.
    pub mostly_in: Option<String>,
}

impl Report {
    /// Why a pole is long, in the words of its states, and whether its spans follow each other.
    pub fn reason(&self, pole: &Pole) -> Reason {
        let samples = self.samples_on_path(&pole.nodes);
        let states = self.states_on_path(&pole.nodes);
        let own = states.own().0;
        let few = (samples.len() as u64) < FEW_SAMPLES;
        let expected = i128::from(own) * i128::from(self.recording.run.rate_hz) / 1_000_000_000;
        let busy = whole_percent(states.of(StateKind::OnCpu).0, own);
        let runnable = Some(whole_percent(states.of(StateKind::Runnable).0, own)).filter(|percent| *percent >= RUNNABLE_PERCENT);
        let hot = || self.named(&samples).map(|named| self.hot(named, &samples));
        let (mut function, mut mostly_in) = (None, None);
        // A profile of sums does not say which of them was on the path.
        let are_untimed = self.sample_offsets.first().is_some_and(|at| *at == Nanos::MIN);
        // A program that was sampled and had none has no CPU time to speak of; what it waited for was seen all the same.
        let waited = whole_percent(states.blocked_seen().0, own) > WAITING_PERCENT;
        let was_sampled = self.recording.run.rate_hz > 0 || !self.recording.samples.is_empty();
        let is_told = waited && (was_sampled || told_wait(&states).is_some());
        let has_no_samples = are_untimed || (self.recording.samples.is_empty() && !is_told);
        // What it waits for beside its work may be the better thing to mend.
        let beside = |told: Option<(WaitKind, i64)>| {
            let counts = told.filter(|(_, nanos)| whole_percent(*nanos, own) >= BESIDE_PERCENT);
            counts.map(|wait| self.wait_words(pole, wait, own))
        };
        let (code, mut text) = if has_no_samples && !states.is_exact() {
            let beside = beside(states.longest_wait().map(|(kind, time)| (kind, time.0)));
            function = beside.as_ref().and_then(|(_, function)| *function);
            (ReasonCode::NoSamples, explain::no_samples(are_untimed, beside.as_ref().map(|(words, _)| words.as_str())))
        } else if few && was_sampled && !states.is_exact() && expected < i128::from(FEW_SAMPLES) {
            (ReasonCode::FewSamples, explain::too_short(self.has_hardly_any_own_time(pole)).to_owned())
        } else if computes(&states) && few {
            (ReasonCode::OnCpu, explain::computes_somewhere(busy, runnable))
        } else if computes(&states) {
            let hot = hot();
            (function, mostly_in) = (hot.map(|hot| hot.function), hot.and_then(|hot| hot.mostly_in));
            let beside = beside(told_wait(&states));
            (ReasonCode::OnCpu, explain::computes(busy, runnable, hot, beside.as_ref().map(|(words, _)| words.as_str())))
        } else {
            let (rest, waiting) = self.off_cpu_words(pole, &states);
            function = waiting;
            if busy > WAITING_PERCENT {
                let hot = if few { None } else { hot() };
                function = waiting.or(hot.map(|hot| hot.function));
                mostly_in = hot.filter(|_| waiting.is_none()).and_then(|hot| hot.mostly_in);
                (ReasonCode::Mixed, explain::computes_and(busy, hot, &rest))
            } else if waiting.is_some() {
                (ReasonCode::Waits, rest)
            } else {
                (ReasonCode::Waits, explain::hardly_computes(&rest, busy, self.event_before_wait(pole)))
            }
        };
        // These are shares of what it does between the operations that it calls, and not of it as a whole.
        if self.wraps(pole, own) && matches!(code, ReasonCode::OnCpu | ReasonCode::Waits | ReasonCode::Mixed) {
            text = explain::of_own_time(own, &text);
        }
        if self.in_sequence(&pole.nodes) {
            text = explain::in_sequence(pole.nodes.len(), &text);
        }
        Reason { code, text, function: function.map(str::to_owned), mostly_in: mostly_in.map(str::to_owned) }
    }

    /// A function that is named for samples, with the CPU time of those that have it in their stack.
    fn hot(&self, named: Named, samples: &[u32]) -> Hot<'_> {
        let holds = self.functions.stacks_with(&self.recording, named.function);
        let samples = samples.iter().map(|&sample| &self.recording.samples[sample as usize]);
        let nanos: u64 =
            samples.filter(|sample| holds.get(sample.stack.0 as usize) == Some(&true)).map(|sample| sample.weight_nanos).sum_nanos();
        let (function, mostly_in) = self.names_of(named);
        Hot { nanos: i64::try_from(nanos).unwrap_or(i64::MAX), function, mostly_in }
    }

    fn names_of(&self, named: Named) -> (&str, Option<&str>) {
        let name = |function: usize| self.functions.list[function].function.as_str();
        (name(named.function), named.mostly_in.map(name).map(explain::without_types))
    }

    /// What a pole did in most of the time in which it did not run, and the function that is named in it.
    fn off_cpu_words(&self, pole: &Pole, states: &States) -> (String, Option<&str>) {
        let own = states.own().0;
        let seen = states.blocked_seen().0;
        if let Some(wait) = told_wait(states) {
            return self.wait_words(pole, wait, own);
        }
        let parts = [
            (states.of(StateKind::Unaccounted).0, OffCpu::Unaccounted),
            (states.of(StateKind::Awaiting).0, OffCpu::Awaiting),
            (states.of(StateKind::Remote).0, OffCpu::Remote),
            (states.of(StateKind::BlockedUnseen).0, OffCpu::BlockedUnseen),
            (seen, OffCpu::Blocked),
            (states.of(StateKind::Runnable).0, OffCpu::Runnable),
        ];
        let (nanos, state) = parts.into_iter().max_by_key(|(nanos, _)| *nanos).unwrap_or((0, OffCpu::Unaccounted));
        let percent = whole_percent(nanos, own);
        let short = if nanos == states.of(StateKind::BlockedUnseen).0 { self.short_waits(pole) } else { None };
        match short {
            Some(ShortWaits { of_kind, all, word, function }) => (explain::short_waits(percent, of_kind, all, word, function), function),
            None => (explain::off_cpu(percent, state), None),
        }
    }

    /// What most of those short waits of a pole were for that were probed, which are few of all.
    fn short_waits(&self, pole: &Pole) -> Option<ShortWaits<'_>> {
        let sums = self.waits_on_path(&pole.nodes);
        let is_short = |part: &&WaitPart| self.recording.waits[part.wait as usize].nanos() < PROBE_NANOS;
        let count = |sum: &WaitSum<'_>| sum.parts.iter().filter(is_short).count();
        let all: usize = sums.iter().map(count).sum();
        let most = sums.iter().max_by_key(|sum| count(sum))?;
        let of_kind = count(most);
        let tells = of_kind >= SHORT_WAITS_MIN && of_kind * 2 > all;
        tells.then(|| ShortWaits { of_kind, all, word: most.word(), function: self.waiting_function(most.wait) })
    }

    /// What a pole waited for, so long of its own time, and the function that waited.
    fn wait_words(&self, pole: &Pole, (kind, nanos): (WaitKind, i64), own: i64) -> (String, Option<&str>) {
        let sum = self.waits_on_path(&pole.nodes).into_iter().find(|sum| sum.wait.kind == kind);
        let function = sum.as_ref().and_then(|sum| self.waiting_function(sum.wait));
        let word = sum.map_or_else(|| explain::wait_word(kind), |sum| sum.word());
        (explain::wait(whole_percent(nanos, own), word, function), function)
    }

    /// Whether a pole is mostly what it calls: then its own time is a small part of it.
    fn wraps(&self, pole: &Pole, own: i64) -> bool {
        self.has_children(pole) && own < self.whole_nanos(pole) / 2
    }

    /// Whether the time of a pole on the path is a small part of it, because it calls something.
    fn has_hardly_any_own_time(&self, pole: &Pole) -> bool {
        self.has_children(pole) && pole.on_path_nanos < self.whole_nanos(pole) / 10
    }

    fn whole_nanos(&self, pole: &Pole) -> i64 {
        pole.nodes.iter().map(|&n| self.forest.nodes[n].range.nanos()).sum_nanos()
    }

    fn has_children(&self, pole: &Pole) -> bool {
        pole.nodes.iter().any(|&n| self.forest.nodes[n].subtree_end() > n + 1)
    }

    /// The event after which a pole waited longest, where that was most of its longest span.
    fn event_before_wait(&self, pole: &Pole) -> Option<&str> {
        let longest = pole.nodes.iter().copied().max_by_key(|&n| (self.path.on_path_nanos[n], Reverse(n)))?;
        let span = self.forest.span(&self.recording, longest)?;
        let ends = span.events.iter().skip(1).map(|event| event.time).chain([span.end]);
        let waits = span.events.iter().zip(ends).map(|(event, end)| (end.nanos_since(event.time), event.name.as_str()));
        let (wait, event) = waits.filter(|(_, event)| !PAYLOAD_LOGS.contains(event)).max_by_key(|(wait, _)| *wait)?;
        (wait > span.end.nanos_since(span.start) / 2).then_some(event)
    }

    /// Whether there are several of them and none overlaps another.
    fn in_sequence(&self, nodes: &[usize]) -> bool {
        let mut ranges: Vec<_> = nodes.iter().map(|&n| self.forest.nodes[n].range).collect();
        ranges.sort_by_key(|r| r.start);
        ranges.len() > 1 && ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// Whom these waits were for, in words; `None` where nothing is known.
    pub fn blocked_by_words(&self, sum: &WaitSum<'_>, blocked: &BlockedBy<'_>) -> Option<String> {
        let relation = sum.relation?;
        let Some(first) = blocked.list.first().filter(|first| blocked.one_of.is_none_or(|(nanos, _)| nanos <= first.nanos)) else {
            let (_, threads) = blocked.one_of.filter(|(nanos, _)| *nanos > 0)?;
            return Some(explain::one_of(relation, threads));
        };
        Some(explain::and_more(self.blocker_words(sum.wait, first), blocked.list.len() - 1))
    }

    /// A thread that was waited for: `held by thread flush: asleep, in write_all`.
    pub fn blocker_words(&self, wait: &Wait, blocker: &Blocker<'_>) -> String {
        let name = match blocker.name {
            _ if blocker.tid == wait.tid => ThreadName::Itself,
            Some(name) => ThreadName::Named(name),
            None if blocker.tid == wait.pid => ThreadName::Main,
            None => ThreadName::Number(blocker.tid),
        };
        let is_inferred = blocker.evidence == BlockerEvidence::Inferred;
        explain::blocker(blocker.relation, name, is_inferred, self.activity_words(&blocker.samples, &blocker.waits).as_deref())
    }

    /// The process that answers, and what it does, where no span says so: `in process bank (pid 12): asleep, in look_up`.
    pub fn callee_words(&self, callee: &Callee<'_>) -> Option<String> {
        let &process = callee.processes.first().filter(|_| !callee.answers)?;
        let (name, pid) = (self.forest.program(&self.recording, process), self.recording.processes[process].pid);
        Some(explain::callee(name, pid, self.activity_words(&callee.samples, &callee.waits).as_deref()))
    }

    /// What somebody did most: `asleep, in look_up`. `None` where nothing was seen of it.
    fn activity_words(&self, samples: &[u32], waits: &[WaitSum<'_>]) -> Option<String> {
        let on_cpu: u64 = samples.iter().map(|&sample| self.recording.samples[sample as usize].weight_nanos).sum_nanos();
        match waits.first() {
            Some(sum) if u64::try_from(sum.nanos).unwrap_or(0) > on_cpu => {
                Some(explain::waited(sum.word(), self.waiting_function(sum.wait)))
            }
            _ if on_cpu == 0 => None,
            _ => Some(explain::computed(self.named(samples).map(|named| self.names_of(named)))),
        }
    }
}

/// What most short waits of a pole were for.
struct ShortWaits<'a> {
    of_kind: usize,
    all: usize,
    word: &'static str,
    function: Option<&'a str>,
}

/// Whether it is on a CPU for most of its time, or could be: whatever lacks a CPU has something to compute.
pub(super) fn computes(states: &States) -> bool {
    let share = |state| whole_percent(states.of(state).0, states.own().0);
    let (busy, runnable) = (share(StateKind::OnCpu), share(StateKind::Runnable));
    busy >= BUSY_PERCENT || (busy > WAITING_PERCENT && busy + runnable >= BUSY_PERCENT)
}

/// The kind of wait it was blocked in longest, and how long, where waits were sampled in most of the time in which it was on no CPU.
pub(super) fn told_wait(states: &States) -> Option<(WaitKind, i64)> {
    let is_most = states.blocked_seen() * 2 >= states.own() - states.of(StateKind::OnCpu);
    states.longest_wait().filter(|_| is_most).map(|(kind, time)| (kind, time.0))
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use crate::Report;

    fn report(text: &str) -> Report {
        Report::new(text::parse(text).unwrap())
    }

    #[test]
    fn the_reason_of_a_pole_is_what_its_samples_tell() {
        let reason = |text: &str| {
            let report = report(text);
            let reason = report.reason(&report.poles()[0]);
            (reason.code.as_str(), reason.text)
        };
        let busy = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;build;hash\n";
        assert_eq!(reason(busy), ("on_cpu", "95% on-CPU, most of it (95.0ms) in hash".to_owned()));
        let waits = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x4 pid 1 [build] main\n";
        assert_eq!(reason(waits), ("waits", "96% unaccounted, 4% on-CPU".to_owned()));
        let mixed = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] main;hash\n";
        assert_eq!(reason(mixed), ("mixed", "40% on-CPU, most of it (40.0ms) in hash; 60% unaccounted".to_owned()));
        assert_eq!(reason("run x 0..100ms\n  build 0..100ms\n").0, "no_samples");
        assert_eq!(reason("run x 0..9ms\n  build 0..9ms svc pid 1\nsample 1ms pid 1 [build] main\n").0, "few_samples");
        let loops = "run x 0..100ms\n  post 0..50ms svc pid 1\n  post 50..100ms svc pid 1\nsample 0ms pid 1 main\n";
        assert_eq!(reason(loops), ("waits", "2 in sequence; 99% unaccounted, 1% on-CPU".to_owned()));
    }

    #[test]
    fn a_reason_names_the_programs_own_function_and_the_library_it_calls() {
        let reason = |text: &str| {
            let report = report(text);
            report.reason(&report.poles()[0])
        };
        let text = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] main;index_words;std::hash_one;std::write\n";
        let found = reason(text);
        assert_eq!(found.text, "95% on-CPU, most of it (95.0ms) in index_words (mostly in std::write)");
        assert_eq!((found.function.as_deref(), found.mostly_in.as_deref()), (Some("index_words"), Some("std::write")));
        let spread = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] tokio::run;a\nsample 40ms x40 pid 1 [build] tokio::run;b\nsample 80ms x15 pid 1 [build] tokio::run;c\n";
        assert_eq!(reason(spread).text, "95% on-CPU, spread over many functions");
        let nothing_own = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x95 pid 1 [build] std::rt;std::write\n";
        assert_eq!(reason(nothing_own).text, "95% on-CPU, most of it (95.0ms) in std::write");
    }

    #[test]
    fn shares_of_what_a_wrapper_does_itself_name_its_own_time() {
        let report =
            report("run x 0..100ms\n  outer 0..100ms svc pid 1\n    inner 0..60ms svc pid 1\nsample 62ms x30 pid 1 [outer] main;hash\n");
        let pole = report.poles().iter().find(|pole| pole.name == "outer").unwrap();
        assert_eq!(report.reason(pole).text, "of its own 40.0ms: 75% on-CPU, most of it (30.0ms) in hash");
    }
}
