//! What nodes, functions and threads waited for, and for whom.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use longpole_model::{FunctionId, IdVec, Monotonic, Nanos, NodeId, StackId, ThreadKey, Timestamp, Wait, WaitId};

use crate::intervals;
use crate::link::waits::NodeWait;
use crate::report::Report;
use crate::report::reason;
use crate::schedule::poles::Pole;
use crate::time::activity::{Activity, Stretch};
use crate::time::blocked_by::{BlockedBy, WaitedFor, WaitedForThreads};
use crate::time::blockers::Blockers;
use crate::time::callees::{self, Callee, Servers};
use crate::time::thread_names::ThreadNames;
use crate::time::wait_groups::{WaitGroups, WaitPart, WaitSum};

/// A wait is one of other threads if they waited this many times as long as it held up the process.
const OTHERS_FACTOR: i64 = 10;

impl Report {
    pub(super) fn blockers(&self) -> &Blockers {
        self.blockers.get_or_init(|| Blockers::of(&self.recording))
    }

    pub(super) fn wait_groups(&self) -> WaitGroups<'_> {
        WaitGroups { recording: &self.recording, functions: &self.functions, blockers: self.blockers() }
    }

    pub(super) fn thread_names(&self) -> ThreadNames<'_> {
        ThreadNames { recording: &self.recording, functions: &self.functions, entries: &self.entries }
    }

    fn waited_for(&self) -> WaitedForThreads<'_> {
        WaitedForThreads {
            groups: self.wait_groups(),
            timelines: &self.timelines,
            origin: self.origin(),
            sample_offsets: &self.sample_offsets,
            names: self.thread_names(),
        }
    }

    /// The waits of these nodes while they were on the path, longest first, each with how long it was in the way.
    pub fn waits_on_path(&self, nodes: &[NodeId]) -> Vec<WaitSum<'_>> {
        self.waits_of(self.stretches_on_path(nodes).into_iter())
    }

    /// The waits of a pole while it was on the path, longest first, each with how long it was in the way.
    pub fn waits_of_pole(&self, pole: &Pole) -> Vec<WaitSum<'_>> {
        self.waits_of(self.stretches_of_pole(pole).into_iter())
    }

    /// The waits of a node itself that held it up, longest first, then those of its other threads; each with how much of it no child covers.
    pub fn node_waits(&self, node: NodeId) -> Vec<WaitSum<'_>> {
        self.waits_of_nodes(&[node])
    }

    /// The same of several nodes.
    pub fn waits_of_nodes(&self, nodes: &[NodeId]) -> Vec<WaitSum<'_>> {
        let (activity, schedule) = (self.activity(), self.replay.schedule());
        let whole = || nodes.iter().map(|&node| Stretch { node, from: schedule.start[node], to: schedule.end[node] });
        let mut sums = self.sums_of(&activity, whole(), |stretch| activity.waits_in(stretch).collect());
        if !nodes.iter().any(|&node| self.waits.threads_tell(node)) {
            return sums;
        }
        let groups = self.wait_groups();
        let all = groups.sums(whole().flat_map(|stretch| self.parts_of_all_threads(stretch)), once);
        // A wait that held it up for a moment only, and another thread for long, is one of that thread.
        let of_all: HashMap<_, Nanos> = all.iter().map(|sum| (groups.group_of(sum.wait), sum.nanos)).collect();
        let is_of_others = |sum: &WaitSum<'_>| of_all.get(&groups.group_of(sum.wait)).is_some_and(|all| sum.nanos < *all / OTHERS_FACTOR);
        sums.retain(|sum| !is_of_others(sum));
        let known: HashSet<_> = sums.iter().map(|sum| groups.group_of(sum.wait)).collect();
        let others = all.into_iter().filter(|sum| !known.contains(&groups.group_of(sum.wait)));
        sums.extend(others.map(|sum| WaitSum { in_other_threads: true, ..sum }));
        sums
    }

    /// What all threads of a node waited for in a stretch of it, outside its children.
    fn parts_of_all_threads(&self, Stretch { node, from, to }: Stretch) -> Vec<WaitPart> {
        let cover = &self.replay.schedule().cover;
        let part = |&wait: &WaitId| {
            let it = &self.recording.waits[wait];
            let time = self.offset(it.start).zip(self.offset(it.end)).and_then(|time| intervals::clip(time, (from, to)));
            let own = time.into_iter().flat_map(|(from, to)| cover.gaps(node, from, to));
            own.map(move |(from, to)| WaitPart { wait, from, to, nanos: to - from })
        };
        self.waits.whole_of_node(node).iter().flat_map(part).collect()
    }

    fn waits_of(&self, stretches: impl Iterator<Item = Stretch>) -> Vec<WaitSum<'_>> {
        let activity = self.activity_on_path();
        self.sums_of(&activity, stretches, |stretch| activity.waits_in(stretch).collect())
    }

    fn sums_of(
        &self,
        activity: &Activity<'_>,
        stretches: impl Iterator<Item = Stretch>,
        waits: impl Fn(Stretch) -> Vec<NodeWait>,
    ) -> Vec<WaitSum<'_>> {
        let part = |node: NodeId, it: NodeWait| WaitPart {
            wait: it.wait,
            from: it.from,
            to: it.to,
            nanos: activity.own_of_wait(node, &it).or_zero(),
        };
        let of = |stretch: Stretch| waits(stretch).into_iter().map(|it| part(stretch.node, it)).collect::<Vec<_>>();
        // Those of one node stand beside each other.
        self.wait_groups().sums(stretches.flat_map(of), |parts| parts.iter().map(|part| part.nanos).sum())
    }

    /// The waits in which a function occurs, longest first.
    pub fn waits_with(&self, function: FunctionId) -> Vec<WaitSum<'_>> {
        self.whole_waits(self.waits_on(&self.functions.stacks_with(&self.recording, function)))
    }

    /// The waits whose stack is one of these.
    pub(super) fn waits_on(&self, stacks: &IdVec<StackId, bool>) -> impl Iterator<Item = WaitId> {
        self.all_waits().filter(|&wait| is_on(stacks, &self.recording.waits[wait]))
    }

    /// These waits from start to end, longest first, as time of threads.
    pub fn whole_waits(&self, waits: impl Iterator<Item = WaitId>) -> Vec<WaitSum<'_>> {
        let whole = |wait: WaitId| {
            let nanos = Nanos::from_u64(self.recording.waits[wait].nanos());
            let from = self.offset(self.recording.waits[wait].start).unwrap_or_default();
            WaitPart { wait, from, to: from + nanos, nanos }
        };
        self.wait_groups().sums(waits.map(whole), |parts| parts.iter().map(|part| part.nanos).sum())
    }

    /// Whom these waits were for, and what that did meanwhile.
    pub fn blocked_by(&self, sum: &WaitSum<'_>) -> BlockedBy<'_> {
        self.waited_for().blocked_by(sum)
    }

    /// Whom each thread waited for, longest first; of the
    /// [`TOLD_WAITS_MAX`](crate::time::blocked_by::TOLD_WAITS_MAX) longest waits. Workers that wait for work wait for nobody.
    pub fn threads_waited_for(&self) -> HashMap<ThreadKey, Vec<WaitedFor<'_>>> {
        self.waited_for().threads_waited_for(self.waits.idle())
    }

    /// The outermost function of the program's own of a thread that is not the main one: what was given to be run in it. `None` where it
    /// was never seen in one.
    pub fn entry_function(&self, thread: ThreadKey) -> Option<&str> {
        self.thread_names().entry_function(thread)
    }

    /// The function of the program that waits.
    pub fn waiting_function(&self, wait: &Wait) -> Option<&str> {
        self.wait_groups().waiting_function(wait)
    }

    /// Where it waits: source file and line of that function, where they are known.
    pub fn waiting_place(&self, wait: &Wait) -> Option<(&str, u32)> {
        self.wait_groups().waiting_place(wait)
    }

    /// The waits that the reason of a pole is about, where it is about waits.
    pub fn pole_wait(&self, pole: &Pole) -> Option<WaitSum<'_>> {
        let states = self.states_of_pole(pole);
        if reason::computes(&states) {
            return None;
        }
        let (kind, _) = reason::longest_seen_wait(&states)?;
        self.waits_of_pole(pole).into_iter().find(|sum| sum.wait.kind == kind)
    }

    /// The processes that answer the calls of these nodes; `None` where they name no address, or different ones.
    pub fn callee(&self, nodes: &[NodeId]) -> Option<Callee<'_>> {
        let mut found: Option<(SocketAddr, Vec<Timestamp>)> = None;
        for &node in nodes {
            let span = self.forest.span(&self.recording, node)?;
            let address = callees::address_of(span)?;
            match &mut found {
                None => found = Some((address, vec![span.start])),
                Some((known, starts)) if *known == address => starts.push(span.start),
                Some(_) => return None,
            }
        }
        let (address, starts) = found?;
        let processes = callees::processes_at(&self.recording, address, starts);
        let is_its = |node: NodeId| self.forest.process_row(&self.recording, node).is_some_and(|it| processes.binary_search(&it).is_ok());
        let answers = nodes.iter().any(|&node| self.forest.children(node).any(is_its));
        let schedule = self.replay.schedule();
        let stretches = intervals::union(nodes.iter().map(|&node| (schedule.start[node], schedule.end[node])).collect());
        let pids: HashSet<u32> = processes.iter().map(|&it| self.recording.processes[it].pid).collect();
        let servers = self.servers.get_or_init(|| Servers::of(&self.recording, self.origin(), self.waits.idle()));
        let (samples, waits) = servers.meanwhile(&pids, &stretches);
        let part = |(wait, from, to): (WaitId, Nanos, Nanos)| WaitPart { wait, from, to, nanos: to - from };
        Some(Callee { address, processes, answers, samples, waits: self.wait_groups().sums(waits.into_iter().map(part), once) })
    }

    /// When it was, from the start of the run.
    pub(super) fn offset(&self, at: Monotonic) -> Option<Nanos> {
        self.recording.clock.to_unix(at).map(|at| Nanos(at.nanos_since(self.origin())))
    }
}

/// How long these waits are. Several threads may wait at the same time, and what they work for does not become longer by that.
fn once(parts: &[WaitPart]) -> Nanos {
    intervals::union(parts.iter().map(|part| (part.from, part.to)).collect()).iter().map(|(from, to)| *to - *from).sum()
}

/// Whether the stack of a wait is one of these, of all stacks.
pub(super) fn is_on(stacks: &IdVec<StackId, bool>, wait: &Wait) -> bool {
    wait.stack.is_some_and(|stack| stacks.get(stack).copied().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use longpole_model::{Id, NodeId, ProcessRow, WaitKind, text};

    use crate::Report;
    use crate::report::blocker_summary::{CalleeSummary, MainActivity};
    use crate::report::names::NamedWait;

    fn report(text: &str) -> Report {
        Report::new(text::parse(text).unwrap())
    }

    #[test]
    fn who_answers_a_call_is_named_where_no_span_does() {
        let report = report(
            "\
run x  0..100ms
process bank  1..99ms pid 2 under 1 listens 127.0.0.1:80
process idle  1..20ms pid 3 under 1
validate  10..90ms  pay  pid 1 kind client server.address=127.0.0.1 server.port=80
wait 11..90ms pid 1 network [validate] main;pay;recv
wait  2..12ms pid 2 tid 2 network main;accept
wait 13..80ms pid 2 tid 2 sleep main;look_up
wait 13..18ms pid 3 tid 3 sleep main;other
sample 82ms x3 pid 2 tid 2 main;answer
",
        );
        // The bank is called, and its life is no work of its own.
        let names: Vec<&str> = report.forest().ids().map(|node| report.name(node)).collect();
        assert_eq!(names, ["x", "idle", "validate"]);
        let callee = report.callee(&[NodeId::at(2)]).unwrap();
        assert_eq!(
            (callee.address.to_string().as_str(), &callee.processes[..], callee.answers),
            ("127.0.0.1:80", &[ProcessRow::at(1)][..], false)
        );
        assert_eq!(callee.samples.len(), 3);
        let waits: Vec<_> = callee.waits.iter().map(|sum| (sum.wait.kind, sum.nanos.0 / 1_000_000)).collect();
        assert_eq!(waits, [(WaitKind::Sleep, 67)]);
        let pole = report.poles().iter().find(|pole| pole.name == "validate").unwrap();
        let look_up = NamedWait { kind: WaitKind::Sleep, relation: None, function: Some("look_up") };
        let summary = CalleeSummary { program: "bank", pid: 2, activity: Some(MainActivity::Waited(look_up)) };
        assert_eq!(report.callee_summary(&report.callee(&pole.nodes).unwrap()), Some(summary));
    }

    #[test]
    fn waits_of_a_function_are_listed_by_line_and_those_of_two_threads_do_not_add_up_beyond_the_call() {
        let report = report(
            "\
run x 0..100ms
process bank 0..99ms pid 2 under 1 listens 127.0.0.1:80
call 10..90ms pay pid 1 kind client server.address=127.0.0.1 server.port=80
wait 11..31ms pid 1 sleep [call] main;nap@m.rs:3
wait 40..50ms pid 1 sleep [call] main;nap@m.rs:9
wait 12..80ms pid 2 tid 2 sleep main;look_up
wait 20..88ms pid 2 tid 3 sleep main;look_up
",
        );
        let call = report.forest().ids().find(|&node| report.name(node) == "call").unwrap();
        let waits = report.node_waits(call);
        let places: Vec<_> = waits[0].places.iter().map(|place| (place.line, place.nanos.0 / 1_000_000)).collect();
        assert_eq!((waits.len(), waits[0].nanos.0 / 1_000_000, places), (1, 30, vec![(3, 20), (9, 10)]));
        let callee = report.callee(&[call]).unwrap();
        let waits: Vec<_> = callee.waits.iter().map(|sum| (sum.nanos.0 / 1_000_000, sum.threads)).collect();
        assert_eq!(waits, [(76, 2)]);
    }

    #[test]
    fn waits_of_other_threads_are_as_long_as_any_of_them_waited() {
        // Two threads wait for a lock while another one waits for the network from before that, and the main thread computes.
        let report = report(
            "\
run x 0..100ms
process web 0..100ms pid 2 under 1
thread web 0..100ms pid 2 tid 2
thread a 5..90ms pid 2 tid 7
thread b 6..92ms pid 2 tid 8
thread c 7..94ms pid 2 tid 9
cpu 0..100ms pid 2 tid 2
cpu 5..11ms pid 2 tid 7
cpu 89..90ms pid 2 tid 7
cpu 6..12ms pid 2 tid 8
cpu 80..92ms pid 2 tid 8
cpu 7..13ms pid 2 tid 9
cpu 85..94ms pid 2 tid 9
wait 11..89ms pid 2 tid 7 network client;recv
wait 12..80ms pid 2 tid 8 lock at 0x20 serve;update;pthread_mutex_lock
wait 13..85ms pid 2 tid 9 lock at 0x20 serve;update;pthread_mutex_lock
",
        );
        let web = report.forest().ids().find(|&node| report.name(node) == "web").unwrap();
        let others = report.node_waits(web).into_iter().filter(|sum| sum.in_other_threads);
        let found: Vec<_> = others.map(|sum| (sum.wait.kind, sum.nanos.0 / 1_000_000, sum.threads)).collect();
        assert_eq!(found, [(WaitKind::Network, 78, 1), (WaitKind::Lock, 73, 2)]);
    }
}
