//! Fills the rows: threads and their switches, the stretches of journals, and what can be inferred of a process with one thread.

use std::collections::HashSet;

use longpole_model::{
    CpuSlice, CurrentSpan, Id, IdVec, Monotonic, Nanos, NodeId, ProcessRow, Recording, Thread, ThreadKey, Timestamp, Wait, WaitId, ids,
};

use super::sweep::Sweep;
use super::{JOURNAL_TAIL_NANOS, JournalGap, PlainId, PlainProcess, RowId, Slice, Source, SpanOnThread, ThreadRow, ThreadWait, Timelines};
use crate::lists::Lists;
use crate::schedule::recorded;
use crate::tree::forest::Forest;

ids! {
    /// A place in one of the recording's tables of rows of threads.
    struct TableRow;
}

/// Rows by thread, and there in their own order: `(thread, row)`.
fn by_thread(rows: impl ExactSizeIterator<Item = ThreadKey>) -> Vec<(ThreadKey, TableRow)> {
    let mut order: Vec<(ThreadKey, TableRow)> = rows.enumerate().map(|(i, thread)| (thread, TableRow::at(i))).collect();
    order.sort_unstable();
    order
}

impl Timelines {
    pub(super) fn add_threads(&mut self, recording: &Recording, offset: &impl Fn(Monotonic) -> Nanos) {
        let slices = by_thread(recording.cpu_slices.iter().map(CpuSlice::thread));
        let waits = by_thread(recording.waits.iter().map(Wait::thread));
        let threads = by_thread(recording.threads.iter().map(Thread::thread));
        let last_seen = recording.cpu_slices.iter().map(|slice| slice.end).chain(recording.waits.iter().map(|wait| wait.end)).max();
        let last_seen = last_seen.map_or(Nanos::ZERO, offset);
        // What ran already when the recording began is found all at one moment.
        let began = recording.processes.iter().map(|process| process.start).min();
        self.slices.reserve_exact(slices.len());
        self.waits.reserve_exact(waits.len());
        for group in slices.chunk_by(|a, b| a.0 == b.0) {
            let thread = group[0].0;
            let first = self.slices.len();
            // The wall clock may have been stepped back.
            let mut at = Nanos::MIN;
            for &(_, i) in group {
                let slice = &recording.cpu_slices[i.place()];
                let from = offset(slice.start).max(at);
                at = offset(slice.end).max(from);
                self.slices.push(Slice { from, to: at, preempted: slice.preempted });
            }
            let first_wait = self.waits.len();
            let start = waits.partition_point(|(of, _)| *of < thread);
            let mut at = Nanos::MIN;
            for &(_, i) in waits[start..].iter().take_while(|(of, _)| *of == thread) {
                let wait = &recording.waits[i.place()];
                let from = offset(wait.start).max(at);
                at = offset(wait.end).max(from);
                self.waits.push(ThreadWait { from, to: at, kind: wait.kind, wait: WaitId::at(i.place()) });
            }
            let start = threads.partition_point(|(of, _)| *of < thread);
            let mut lives = threads[start..].iter().take_while(|(of, _)| *of == thread).map(|&(_, i)| &recording.threads[i.place()]);
            let life = lives.next();
            let end = lives.last().or(life).and_then(|life| life.end);
            self.rows.push(ThreadRow {
                thread,
                slices: first..self.slices.len(),
                waits: first_wait..self.waits.len(),
                born: life.map(|life| life.start).filter(|born| began.is_some_and(|began| began < *born)).map(offset),
                until: end.map_or(last_seen, offset),
            });
        }
    }

    /// Gives the stretches of the journals to their nodes; the processes that keep one, by pid. Where entries were overwritten,
    /// these may have been the first of any journal.
    pub(super) fn add_journals(
        &mut self,
        recording: &Recording,
        forest: &Forest,
        overwritten: bool,
        offset: &impl Fn(Monotonic) -> Nanos,
        held: &mut Vec<(NodeId, SpanOnThread)>,
    ) -> Vec<u32> {
        let order = by_thread(recording.current_spans.iter().map(CurrentSpan::thread));
        let mut pids = Vec::new();
        let mut unseen = Vec::new();
        held.reserve_exact(order.len());
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let pid = group[0].0.pid.0;
            if pids.last() != Some(&pid) {
                pids.push(pid);
            }
            let row = self.row(group[0].0);
            let first = &recording.current_spans[group[0].1.place()];
            let mut before = first.start;
            if overwritten {
                self.gaps.push(JournalGap { pid, from: Nanos::MIN, to: offset(before) });
            }
            let mut at = Nanos::MIN;
            let mut last = None;
            for &(_, i) in group {
                let current = &recording.current_spans[i.place()];
                let from = offset(current.start).max(at);
                if before < current.start {
                    self.gaps.push(JournalGap { pid, from: offset(before).min(from), to: from });
                }
                before = before.max(current.end);
                at = offset(current.end).max(from);
                let Some((trace, span)) = current.span else { continue };
                // A thread often has the same span again.
                let node = match last {
                    Some((id, node)) if id == (trace, span) => node,
                    _ => forest.node_of_id(recording, trace, span),
                };
                last = Some(((trace, span), node));
                let Some(node) = node else { continue };
                self.sources[node] = Source::Journal;
                match row {
                    Some(row) => held.push((node, SpanOnThread { row, from, to: at })),
                    None => unseen.push(node),
                }
            }
            let ran_until = row.and_then(|row| self.slices[self.rows[row].slices.clone()].last()).map(|slice| slice.to);
            if let Some(until) = ran_until.filter(|until| *until - at > JOURNAL_TAIL_NANOS) {
                self.gaps.push(JournalGap { pid, from: at, to: until });
            }
        }
        for node in unseen {
            self.sources[node] = Source::Nothing;
        }
        self.gaps.sort_unstable();
        self.gaps.dedup_by(|next, before| {
            let touches = next.pid == before.pid && next.from <= before.to;
            if touches {
                before.to = before.to.max(next.to);
            }
            touches
        });
        pids
    }

    /// Gives the only thread of a process to the span that it can only have worked for.
    pub(super) fn infer(
        &mut self,
        recording: &Recording,
        forest: &Forest,
        journaled: &[u32],
        offset: &impl Fn(Monotonic) -> Nanos,
        held: &mut Vec<(NodeId, SpanOnThread)>,
    ) {
        let only = self.only_threads(recording, forest, journaled);
        let mut nodes_of: Vec<(ProcessRow, NodeId)> = Vec::new();
        let mut sweep = Sweep::new(forest.len());
        for node in forest.ids() {
            let Some(pid) = forest.span(recording, node).and_then(|span| span.pid) else { continue };
            let process = forest.process_at(pid, forest[node].range.start).filter(|&process| only[process].is_some());
            if let Some(process) = process {
                sweep.process[node] = Some(process);
                nodes_of.push((process, node));
            }
        }
        nodes_of.sort_unstable();
        let origin = forest.run_range().start;
        let mut refused = Vec::new();
        let with_spans: HashSet<u32> = recording.spans.iter().filter_map(|span| span.pid).collect();
        for (process, &row) in only.enumerated() {
            let own = forest.node_of_process(process);
            let about = &recording.processes[process];
            let (since, until) = forest.turn(recording, process);
            let wall = |at: Timestamp| recorded::offset(at, origin);
            let turn = (since.map_or(Nanos::MIN, wall), until.map_or(Nanos::MAX, wall));
            let life = (offset(about.start), about.end.map_or(Nanos::MAX, offset).min(turn.1));
            let Some(row) = row else {
                let is_plain = !with_spans.contains(&about.pid) && journaled.binary_search(&about.pid).is_err();
                match own.filter(|_| is_plain && self.rows_of(about.pid).next().is_some()) {
                    Some(own) => {
                        let is_node = forest.process_row(recording, own) == Some(process);
                        self.plain.push(PlainProcess { id: self.plain.next_id(), node: own, pid: about.pid, life, turn, is_node });
                        self.sources[own] = Source::AllThreads;
                    }
                    // The node of a folded fork is another process's.
                    None => refused.extend(own.filter(|&own| forest.process_row(recording, own) == Some(process))),
                }
                continue;
            };
            // A folded fork adds to what the threads of its program do.
            if let Some(own) = own.filter(|&own| self.sources[own] != Source::AllThreads) {
                self.sources[own] = Source::OneThread;
            }
            let first = nodes_of.partition_point(|(of, _)| *of < process);
            let nodes = nodes_of[first..].iter().take_while(|(of, _)| *of == process).map(|(_, node)| *node);
            let range = |node: NodeId| {
                let range = forest[node].range;
                (recorded::offset(range.start, origin), recorded::offset(range.end, origin))
            };
            let parent = |node: NodeId| forest[node].parent;
            let ambiguous = sweep.run(nodes.clone().map(|node| (node, range(node))), parent, life, |node, from, to| {
                if let Some(node) = node.or(own) {
                    held.push((node, SpanOnThread { row, from, to }));
                }
            });
            for node in nodes {
                self.sources[node] = Source::OneThread;
            }
            for node in ambiguous {
                self.sources[node] = Source::Nothing;
            }
        }
        for node in refused {
            self.sources[node] = Source::Nothing;
        }
    }

    /// Finds the threads of the processes of several threads without spans. Where several had one pid, a thread is of those in whose turn it got
    /// a CPU.
    pub(super) fn place_plain_threads(&mut self) {
        let mut of_pid: Vec<(u32, Nanos, PlainId)> = self.plain.iter().map(|it| (it.pid, it.turn.0, it.id)).collect();
        of_pid.sort_unstable();
        let mut threads: Vec<(PlainId, RowId)> = Vec::new();
        for same in of_pid.chunk_by(|a, b| a.0 == b.0) {
            let (pid, _, only) = same[0];
            let is_alone = self.plain[only].turn == (Nanos::MIN, Nanos::MAX);
            for (row, it) in self.rows_of(pid) {
                if is_alone {
                    threads.push((only, row));
                    continue;
                }
                let mut before = None;
                for slice in &self.slices[it.slices.clone()] {
                    let place = same.partition_point(|(_, since, _)| *since <= slice.from).checked_sub(1);
                    let process = place.map(|place| same[place].2).filter(|&id| slice.from < self.plain[id].turn.1);
                    if let Some(process) = process.filter(|_| process != before) {
                        threads.push((process, row));
                    }
                    before = process;
                }
            }
        }
        self.plain_threads = Lists::group(self.plain.len(), threads.iter().copied());
        self.plain_of_node = self.plain.iter().filter(|it| !it.is_node).map(|it| (it.node, it.id)).collect();
        self.plain_of_node.extend(self.plain.iter().filter(|it| it.is_node).map(|it| (it.node, it.id)));
    }

    /// The row of the only thread of each process; `None` where it has more, keeps a journal, or was not seen to switch.
    fn only_threads(&self, recording: &Recording, forest: &Forest, journaled: &[u32]) -> IdVec<ProcessRow, Option<RowId>> {
        let mut threads: IdVec<ProcessRow, (u32, ThreadKey)> = IdVec::filled((0, ThreadKey::new(0, 0)), recording.processes.len());
        for thread in &recording.threads {
            let Some(at) = recording.clock.to_unix(thread.start) else { continue };
            if let Some(process) = forest.process_at(thread.pid, at) {
                threads[process] = (threads[process].0 + 1, thread.thread());
            }
        }
        let row = |(process, (count, thread)): (&longpole_model::Process, (u32, ThreadKey))| {
            let known = count == 1 && journaled.binary_search(&process.pid).is_err();
            known.then(|| self.row(thread)).flatten()
        };
        recording.processes.iter().zip(threads).map(row).collect()
    }
}
