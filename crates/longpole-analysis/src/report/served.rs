//! Calls of servers on the path: while one waits for the network and a server of the run is at work, the path goes through the server.

use longpole_model::{IdVec, Nanos, NodeId, Recording, TimeRange};

use crate::link::waits::{NodeWaits, is_call};
use crate::report::Report;
use crate::schedule::critical_path::{CriticalPath, Segment};
use crate::schedule::recorded::Schedule;
use crate::schedule::servers::within;
use crate::tree::forest::{Forest, NodeSource};

/// The path with the servers in the place of those who wait for them.
pub(super) fn through_servers(
    path: CriticalPath,
    schedule: &Schedule,
    recording: &Recording,
    forest: &Forest,
    waits: &NodeWaits,
) -> CriticalPath {
    if schedule.servers.list.is_empty() {
        return path;
    }
    let origin = forest.run_range().start;
    let offset = |at: longpole_model::Timestamp| Nanos(at.nanos_since(origin));
    let mut segments: Vec<Segment> = Vec::new();
    let mut on_path: IdVec<NodeId, Nanos> = IdVec::filled(Nanos::ZERO, forest.len());
    let mut push = |node: NodeId, from: Nanos, to: Nanos| {
        if from >= to {
            return;
        }
        on_path[node] += to - from;
        let (start, end) = (origin.plus_nanos(from.0), origin.plus_nanos(to.0));
        match segments.last_mut() {
            Some(last) if last.node == node && last.range.end == start => last.range.end = end,
            _ => segments.push(Segment { node, range: TimeRange { start, end } }),
        }
    };
    for segment in &path.segments {
        let node = segment.node;
        let (mut at, end) = (offset(segment.range.start), offset(segment.range.end));
        for call in calls(schedule, recording, forest, waits, node, (at, end)) {
            let Some(server) = server_of(schedule, node, call) else { continue };
            for (from, to) in schedule.servers.work_of(server, call) {
                push(node, at, from);
                push(server, from, to);
                at = to;
            }
        }
        push(node, at, end);
    }
    CriticalPath { segments, on_path }
}

/// When a node waits for an answer in a time.
fn calls(
    schedule: &Schedule,
    recording: &Recording,
    forest: &Forest,
    waits: &NodeWaits,
    node: NodeId,
    time: (Nanos, Nanos),
) -> Vec<(Nanos, Nanos)> {
    if let NodeSource::Process(row) = forest[node].source {
        return schedule.servers.calls.get(&recording.processes[row].pid).map_or_else(Vec::new, |calls| within(calls, time).collect());
    }
    let mut until = time.0;
    let own = waits.of_node_within(node, time).filter(|wait| is_call(&recording.waits[wait.wait]));
    let own = own.map(|wait| {
        let call = (wait.from.max(until), wait.to.min(time.1));
        until = until.max(call.1);
        call
    });
    own.filter(|(from, to)| from < to).collect()
}

/// The server that works longest while a node waits.
fn server_of(schedule: &Schedule, node: NodeId, call: (Nanos, Nanos)) -> Option<NodeId> {
    let is_outside = |server: &NodeId| !(*server <= node && node < schedule.subtree_end[*server]);
    let works = schedule.servers.at_work(call).into_iter().filter(|(server, works)| *works > Nanos::ZERO && is_outside(server));
    works.max_by_key(|(server, works)| (*works, std::cmp::Reverse(*server))).map(|(server, _)| server)
}

/// A call that a server answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnsweredCall {
    /// The caller.
    node: NodeId,
    call: (Nanos, Nanos),
    server: NodeId,
}

impl Report {
    /// The calls that servers answer, by node and time.
    fn answers(&self) -> &[AnsweredCall] {
        self.answers.get_or_init(|| {
            let schedule = self.replay.schedule();
            if schedule.servers.list.is_empty() {
                return Vec::new();
            }
            let of = |node: NodeId| {
                let calls = self.calls_by(node).into_iter();
                calls.filter_map(move |call| Some(AnsweredCall { node, call, server: server_of(schedule, node, call)? }))
            };
            self.forest.ids().flat_map(of).collect()
        })
    }

    /// The time in which the server of a call works for the node.
    fn time_of(&self, answer: &AnsweredCall) -> impl Iterator<Item = (NodeId, Nanos, Nanos)> {
        let (schedule, node) = (self.replay.schedule(), answer.node);
        let works = schedule.servers.work_of(answer.server, answer.call);
        works.flat_map(move |(from, to)| schedule.cover.gaps(node, from, to)).map(move |(from, to)| (node, from, to))
    }

    /// The times in which a server works for this node, which waits: node, from and to.
    pub(super) fn answered(&self, node: NodeId) -> impl Iterator<Item = (NodeId, Nanos, Nanos)> {
        let answers = self.answers();
        let first = answers.partition_point(|answer| answer.node < node);
        answers[first..].iter().take_while(move |answer| answer.node == node).flat_map(|answer| self.time_of(answer))
    }

    /// Whether these nodes are a server of others.
    pub(super) fn is_server(&self, nodes: &[NodeId]) -> bool {
        let servers = &self.replay.schedule().servers;
        nodes.iter().all(|node| servers.contains(*node))
    }

    /// The times in which others wait for one of these servers at work: without its work they would not. By start.
    pub(super) fn calls_of(&self, servers: &[NodeId]) -> Vec<(NodeId, Nanos, Nanos)> {
        let of_these = self.answers().iter().filter(|answer| servers.binary_search(&answer.server).is_ok());
        let mut calls: Vec<_> = of_these.flat_map(|answer| self.time_of(answer)).collect();
        calls.sort_unstable_by_key(|(_, from, _)| *from);
        calls
    }

    fn calls_by(&self, node: NodeId) -> Vec<(Nanos, Nanos)> {
        let schedule = self.replay.schedule();
        calls(schedule, &self.recording, &self.forest, &self.waits, node, (schedule.start[node], schedule.end[node]))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use longpole_model::text;

    use super::*;

    /// Each process of a pid had all calls of the pid in its life: 40,000 of these.
    #[test]
    fn a_call_is_of_one_process_of_its_pid() {
        const COUNT: usize = 200;
        let end = 30 + COUNT;
        let mut said = format!("run x 0..{end}ms\nprocess web 0..{end}ms pid 2 under 1\n");
        for at in 0..COUNT {
            writeln!(said, "process client {}..{}us pid 3 under 1", 10_000 + at, (COUNT + 20) * 1000).unwrap();
        }
        writeln!(said, "thread web 0..{end}ms pid 2 tid 2\nwait 1..2ms pid 2 idle main;accept").unwrap();
        writeln!(said, "wait {}..{end}ms pid 2 idle main;accept", end - 5).unwrap();
        for at in 0..COUNT {
            writeln!(said, "wait {}..{}us pid 3 network main;recv", (at + 12) * 1000, (at + 12) * 1000 + 600).unwrap();
        }
        let report = Report::new(text::parse(&said).unwrap());
        let clients: Vec<NodeId> = report.forest.ids().filter(|&node| report.name(node) == "client").collect();
        let answered = |&node: &NodeId| report.answered(node).count();
        assert_eq!((clients.len(), clients.iter().map(answered).sum::<usize>()), (COUNT, COUNT));
    }
    /// All calls were searched for their servers again for each server that is a pole: 300,000,000 steps for these.
    #[test]
    fn the_server_of_a_call_is_found_once() {
        const SERVERS: usize = 1_200;
        const CALLS: usize = 4_000;
        let end = 2 * CALLS + 100;
        let mut said = format!("run x 0..{end}ms\n");
        (0..SERVERS).for_each(|number| writeln!(said, "process s{number} 0..{end}ms pid {} under 1", 10 + number).unwrap());
        writeln!(said, "process client 1..{end}ms pid 3 under 1").unwrap();
        for pid in 10..10 + SERVERS {
            writeln!(said, "thread s 0..{end}ms pid {pid} tid {pid}\nwait 1..2ms pid {pid} idle main;accept").unwrap();
            writeln!(said, "wait {}..{end}ms pid {pid} idle main;accept", end - 20).unwrap();
        }
        for at in 0..CALLS {
            writeln!(said, "wait {}..{}us pid 3 network main;recv", (2 * at + 10) * 1000, (2 * at + 10) * 1000 + 1600).unwrap();
        }
        let report = Report::new(text::parse(&said).unwrap());
        assert_eq!((report.replay.schedule().servers.list.len(), report.answers().len()), (SERVERS, CALLS));
    }
}
