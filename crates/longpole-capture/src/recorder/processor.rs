//! The record thread: puts records in order, keeps the process tree, unwinds, and writes observations.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longpole_model::{AbsAddr, ContextRecord, Loss, LossKind, Monotonic, Observation, Sample, StackId, Wait, units};
use longpole_symbols::unwind::{Code, StackEnd};

use super::drain::{Batch, CloseOnDrop, Handover, Taken};
use super::left_out_records::LeftOutRecords;
use super::losses::Losses;
use super::process_tree::ProcessTree;
use super::reorder::{Pending, Reorder};
use super::short_waits::{OffCpuSample, ShortWaits};
use super::stack_of_sample::{SampleStack, StackBuilder};
use super::stats::Stats;
use super::weights::Weigher;
use crate::clock::Clocks;
use crate::execs::Execs;
use crate::frames::jit::Jit;
use crate::frames::kallsyms::Kallsyms;
use crate::frames::kernel::Kernel;
use crate::frames::maps::Binaries;
use crate::frames::stacks::Truncation;
use crate::perf::options::{Options, SampleClock};
use crate::perf::record::{Body, MapRecord, Record, SampleRecord, Source, records};
use crate::perf::settings::chain_depth_max;
use crate::perf::stack_dump_size::{Depths, SizeChange, StackDumpSize};
use crate::procfs::process_snapshot::{self, MappedCode, ProcessSnapshot};
use crate::procfs::unsampled::Unsampled;
use crate::procfs::usage::{ProcessUsages, memory_of};
use crate::sink::ObservationWriter;
use crate::span_context::context_record;
use crate::span_context::otel::Published;
use crate::span_context::otel::thread::{self as otel_thread, ContextInStack};
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::thread::block_signals_of_this_thread;
use crate::waits::blocked_thread::BlockedThread;
use crate::waits::off_cpu::Waits;
use longpole_model::fast_hash::FastMap;

/// How often to read the clocks and report losses.
const ANCHOR_NANOS: u64 = 1_000_000_000;

/// How often to flush the sink, so that little is lost if the recorder is killed.
const FLUSH_NANOS: u64 = 100_000_000;

/// When to read the names of the kernel's functions, after the start: it takes as much CPU time as sampling two busy threads for two seconds.
const KERNEL_NAMES_NANOS: u64 = 30_000_000_000;

/// Most threads with a journal to remember: 1 MB. The torn records of a forgotten one count as lost.
const JOURNALED_MAX: usize = 1 << 16;

/// The state of a recording.
pub(super) struct Processor {
    pub(super) out: ObservationWriter,
    pub(super) tree: ProcessTree,
    pub(super) binaries: Binaries,
    pub(super) stack_builder: StackBuilder,
    pub(super) published: Published,
    execs: Execs,
    pub(super) stats: Stats,
    pub(super) losses: Losses,
    /// Context records read in the middle of a write, by thread, not yet reported.
    pub(super) torn: FastMap<u32, u64>,
    /// Samples whose OTEP 4947 record was out of reach, by thread, not yet reported.
    pub(super) out_of_reach: FastMap<u32, u64>,
    /// Threads that keep a journal, which makes up for such a record.
    pub(super) journaled: FastMap<u32, ()>,
    pub(super) waits: Waits,
    pub(super) short_waits: ShortWaits,
    pub(super) usages: ProcessUsages,
    /// Processes that are polled because the kernel stopped sampling them.
    pub(super) unsampled: Unsampled,
    pub(super) weigher: Weigher,
    /// Grows the stack dumps, as long as they can grow.
    pub(super) stack_dump_size: Option<StackDumpSize>,
    pub(super) size_change: Option<SizeChange>,
    /// Samples since the last change of the size, and how many have a deeper stack than the dump.
    pub(super) depths: Depths,
    pub(super) reorder: Reorder,
    pub(super) clocks: Clocks,
    pub(super) next_anchor: u64,
    memory_bytes_max: Option<u64>,
    /// The recorder has more than that.
    pub(super) is_memory_short: bool,
    pub(super) next_flush: u64,
    pub(super) kernel_names_due: u64,
    /// Processes of a host that ran before the recorder and were not sampled yet: their mappings are not read.
    pub(super) unread: HashSet<u32>,
    /// Processes that are not read at all, and their records dropped.
    pub(super) left_out: LeftOutRecords,
    /// When the mappings of each polled process were first and last read since its exec.
    pub(super) mapped_at: FastMap<u32, (u64, u64)>,
}

impl Processor {
    pub(super) fn new(root: u32, clock: SampleClock, rate_hz: u32, options: &Options, out: ObservationWriter) -> Processor {
        Processor {
            out,
            tree: ProcessTree::new(root),
            binaries: Binaries::within(options.open_binaries_max, options.unwind_bytes_max),
            stack_builder: StackBuilder::new(
                Jit::new(options.remove_perf_maps),
                Kernel::new(chain_depth_max(), Kallsyms::new(options.cache.clone())),
            ),
            published: Published::default(),
            execs: Execs::default(),
            stats: Stats::default(),
            losses: Losses::default(),
            torn: FastMap::default(),
            out_of_reach: FastMap::default(),
            journaled: FastMap::default(),
            waits: Waits::new(),
            short_waits: ShortWaits::default(),
            usages: ProcessUsages::new(),
            unsampled: Unsampled::new(),
            weigher: Weigher::new(clock, rate_hz),
            stack_dump_size: None,
            size_change: None,
            depths: Depths::default(),
            reorder: Reorder::default(),
            clocks: Clocks::begin().0,
            next_anchor: 0,
            memory_bytes_max: options.memory_bytes_max,
            is_memory_short: false,
            next_flush: 0,
            kernel_names_due: monotonic_nanos() + KERNEL_NAMES_NANOS,
            unread: HashSet::new(),
            left_out: LeftOutRecords::new(options.left_out.clone()),
            mapped_at: FastMap::default(),
        }
    }

    /// Takes over processes that run already: their identity, their mappings, and which threads sleep.
    pub(super) fn found(&mut self, tree: &[ProcessSnapshot]) {
        let now = monotonic_nanos();
        for process in tree {
            self.tree.found(now, process, &mut self.out);
            self.usages.execed(process.pid, now);
            self.published.found(process.pid, now);
            self.unsampled.found(process.pid);
            self.found_code(process.pid, now, &process.maps);
            for thread in process.threads.iter().filter(|thread| thread.blocked) {
                self.waits.switched(process.pid, thread.tid, now, true);
            }
        }
    }

    /// Takes over the processes of a host that run already. It reads the code of one when that is first sampled: most of them sleep.
    pub(super) fn found_host(&mut self, processes: &[ProcessSnapshot]) {
        let now = monotonic_nanos();
        self.tree.executions().has_room();
        // Whoever reads profiles does not wait for the end of the recorder.
        self.kernel_names_due = now;
        for process in processes {
            if self.left_out.found(process.pid) {
                continue;
            }
            self.tree.found(now, process, &mut self.out);
            self.published.found(process.pid, now);
            self.unread.insert(process.pid);
        }
    }

    /// Reads the code of a process of a host that is sampled for the first time.
    fn read_late(&mut self, pid: u32, now: u64) {
        if self.unread.remove(&pid) {
            self.found_code(pid, now, &process_snapshot::maps_of(pid));
        }
    }

    /// Takes over the mappings of a process.
    pub(super) fn found_code(&mut self, pid: u32, now: u64, maps: &[MappedCode]) {
        for map in maps {
            let record = MapRecord {
                start: map.start,
                bytes: map.end.saturating_sub(map.start),
                file_offset: map.file_offset,
                device: map.device,
                inode: map.inode,
                inode_generation: 0,
                protection: libc::PROT_EXEC as u32,
                path: &map.path,
            };
            let code = self.loaded(pid, now, &record);
            self.map(pid, now, &record, Some(code));
        }
    }

    /// Opens the code of a mapping, and shows the mapping to all that read more of the process.
    pub(super) fn loaded(&mut self, pid: u32, time: u64, map: &MapRecord<'_>) -> Code {
        let code = self.binaries.load(pid, map, &mut self.out);
        self.stack_builder.pythons.mapped(pid, time, map, &code, &self.execs);
        self.stack_builder.javascripts.mapped(pid, time, &code, &self.execs);
        self.stack_builder.jvms.mapped(pid, time, map, &code);
        self.stack_builder.jit.mapped(pid, time, map);
        self.waits.go_programs.mapped(pid, time, map, &code, &self.execs);
        self.published.mapped(pid, time, map, &code);
        code
    }

    pub(super) fn run(mut self, handover: &Handover) -> Stats {
        let _close = CloseOnDrop(handover);
        block_signals_of_this_thread();
        loop {
            let now = monotonic_nanos();
            let mut due = self.next_anchor;
            if self.out.dirty {
                due = due.min(self.next_flush);
            }
            let dues = [
                self.waits.next_probe(),
                self.usages.next_due(),
                self.published.next_due(),
                self.tree.executions().next_look(),
                self.unsampled.next_look(),
            ];
            due = dues.into_iter().flatten().fold(due, u64::min);
            match handover.take(Duration::from_nanos(due.saturating_sub(now))) {
                Taken::Batch(batch) => {
                    let is_last = batch.is_last;
                    self.accept(batch, handover);
                    if is_last {
                        break;
                    }
                }
                Taken::Nothing => {}
                Taken::Closed => break,
            }
            self.keep_up(handover.is_empty());
            if self.is_memory_short {
                break;
            }
            handover.hurry(self.waits.hurry_until());
        }
        self.end()
    }

    /// Does what is due. With `is_idle` no records wait, and there is time to write.
    pub(super) fn keep_up(&mut self, is_idle: bool) {
        let now = monotonic_nanos();
        self.tree.executions().look(now, &mut self.out);
        let tree = &self.tree;
        let mut polling = Vec::new();
        if self.waits.probe(now, |tid| tree.record_hint(tid), &mut polling) {
            self.stack_builder.pythons.look_soon(&polling);
        }
        self.usages.look(now, &mut self.out);
        // A waiting record may show that a process is sampled after all, or report a child before `/proc` does.
        if is_idle && self.unsampled.next_look().is_some_and(|next| next <= now) {
            self.look_at_unsampled(now);
        }
        self.published.look(now, &mut self.out);
        if self.depths.call_for_more() {
            self.grow_stack_dumps();
        }
        let out = &mut self.out;
        self.clocks.look(|observation| {
            out.give(observation);
        });
        if now >= self.next_anchor {
            self.usages.compare(now, self.tree.pids());
            self.anchor();
            self.check_memory();
        }
        if self.out.dirty && now >= self.next_flush && is_idle {
            self.out.flush();
            self.next_flush = now + FLUSH_NANOS;
        }
    }

    /// Ends the recorder where it takes too much memory, and says so.
    fn check_memory(&mut self) {
        let Some(most) = self.memory_bytes_max else { return };
        if memory_of(std::process::id()).is_some_and(|memory| memory.resident_bytes > most) {
            self.is_memory_short = true;
            let most = units::bytes(most);
            let detail =
                format!("the recorder ended early, because longpole would need more than {most} of memory: what followed is missing");
            self.out.give(Observation::Loss(Loss::new(LossKind::SamplesLost, 1, detail)));
        }
    }

    /// Unwinds blocked threads whose process's mappings are known up to the beginning of the wait.
    pub(super) fn walk_blocked_threads(&mut self, known_until: impl Fn(u32) -> Option<u64>) {
        let (tree, stack_builder) = (&self.tree, &mut self.stack_builder);
        self.waits.walk(|blocked| {
            let is_known = known_until(blocked.pid).is_some_and(|until| blocked.since <= until);
            if is_known {
                let StackBuilder { walker, slow_walks, jvms, .. } = &mut *stack_builder;
                blocked.walk((walker, slow_walks), tree.space(blocked.pid), jvms);
                stack_builder.name_while_asleep(blocked);
            }
            is_known
        });
    }

    /// Grows the stack dumps, if possible.
    fn grow_stack_dumps(&mut self) {
        self.depths = Depths::default();
        let Some(stack_dump_size) = &mut self.stack_dump_size else { return };
        let pids: Vec<u32> = self.tree.pids().collect();
        let threads = || pids.iter().flat_map(|pid| process_snapshot::threads_of(*pid)).map(|thread| thread.tid).collect();
        match stack_dump_size.grow(threads) {
            Some(change) => self.size_change = Some(change),
            None => self.depths.enough = true,
        }
    }

    pub(super) fn end(mut self) -> Stats {
        let now = monotonic_nanos();
        self.look_at_unsampled(now);
        for (pid, tid, totals) in self.unsampled.poller().totals() {
            self.out.give(Observation::ThreadTotals { pid, tid, totals });
        }
        for (tid, blocked) in self.waits.rest() {
            self.wait(tid, blocked, now);
        }
        self.usages.finish(now, &mut self.out);
        self.tree.finish(now, &mut self.out);
        self.stack_builder.jit.finish(&mut self.stack_builder.stacks, &mut self.out);
        let python_cpu_nanos = self.stack_builder.pythons.finish();
        self.kernel_names_due = now;
        self.anchor();
        for loss in self.binaries.losses() {
            self.out.give(Observation::Loss(loss));
        }
        self.out.flush();
        let mut stats = self.stats;
        stats.cpu_slices = self.tree.slices;
        stats.not_kept = self.out.not_kept;
        stats.not_kept_reason = self.out.not_kept_reason;
        stats.binaries = Arc::clone(self.binaries.open());
        stats.recorder_cpu_nanos = thread_cpu_nanos() + python_cpu_nanos;
        stats
    }

    /// Reads the clocks and reports losses.
    pub(super) fn anchor(&mut self) {
        let out = &mut self.out;
        let anchor = self.clocks.anchor(|observation| {
            out.give(observation);
        });
        self.next_anchor = anchor.monotonic.0 + ANCHOR_NANOS;
        if anchor.monotonic.0 >= self.kernel_names_due {
            self.stack_builder.kernel.name(&mut self.stack_builder.stacks, &mut self.out);
            self.stats.waits += self.short_waits.report(&mut self.stack_builder.kernel, &mut self.out);
        }
        let of_others = |counts: FastMap<u32, u64>| -> u64 {
            counts.into_iter().filter(|(tid, _)| !self.journaled.contains_key(tid)).map(|(_, count)| count).sum()
        };
        self.losses.torn = of_others(std::mem::take(&mut self.torn));
        self.losses.out_of_reach = of_others(std::mem::take(&mut self.out_of_reach));
        if self.journaled.len() > JOURNALED_MAX {
            self.journaled.clear();
        }
        self.losses.waits_skipped = std::mem::take(&mut self.waits.skipped);
        self.losses.long_waits_skipped = std::mem::take(&mut self.waits.skipped_long);
        self.losses.waits_refused = std::mem::take(&mut self.waits.refused);
        for loss in std::mem::take(&mut self.losses)
            .into_list()
            .into_iter()
            .chain(self.stack_builder.pythons.losses())
            .chain(self.stack_builder.javascripts.losses())
            .chain(self.waits.go_programs.losses())
            .chain(self.stack_builder.jit.losses())
            .chain(self.stack_builder.jvms.losses())
            .chain(self.stack_builder.kernel.losses())
            .chain(self.usages.losses())
            .chain(self.unsampled.losses())
            .chain(self.published.losses())
        {
            self.out.give(Observation::Loss(loss));
        }
        for (pid, tid, ident) in self.stack_builder.pythons.idents() {
            self.out.give(Observation::ThreadIdent { pid, tid, ident });
        }
        self.stack_builder.pythons.forget(self.reorder.horizon());
    }

    /// Takes the batch of a round, and processes the records that are in order now.
    fn accept(&mut self, mut batch: Batch, handover: &Handover) {
        for observation in batch.journals.drain(..) {
            if let Observation::Journal { tid, .. } = observation {
                self.journaled.insert(tid, ());
            }
            self.out.give(observation);
        }
        self.announce_execs(&batch);
        let arrived = self.arrived(&batch);
        let in_order = self.reorder.add(batch.bytes, arrived, batch.before, batch.is_last);
        self.unsampled.all_arrived(in_order);
        let mut reorder = std::mem::take(&mut self.reorder);
        reorder.take_until(in_order, |pending, bytes| self.turn(pending, bytes));
        self.walk_blocked_threads(|_| Some(in_order));
        for buffer in reorder.take_spent() {
            handover.give_back(buffer);
        }
        self.reorder = reorder;
        if let Some(total) = batch.lost_in_all {
            // No record reports the last losses, because none was written after them.
            let total = total + self.stack_dump_size.as_mut().map_or(0, StackDumpSize::lost);
            let untold = total.saturating_sub(self.stats.lost);
            self.losses.lost += untold;
            self.stats.lost += untold;
        }
    }

    /// Tells of a record that has arrived, before its turn.
    pub(super) fn announce(&mut self, record: &Record<'_>) {
        self.execs.arrived(record);
        self.stack_builder.pythons.arrived(record, &self.execs);
        self.waits.go_programs.arrived(record, &self.execs);
        self.published.arrived(record);
    }

    /// Takes the records of a round as they arrive: `/proc` is read now, because a process may be gone when its record has its turn.
    fn arrived(&mut self, batch: &Batch) -> Vec<Pending> {
        let mut arrived = Vec::new();
        for (source, range) in &batch.parts {
            let bytes = batch.bytes.get(range.clone()).unwrap_or_default();
            for record in records(bytes) {
                let Ok(record) = record else {
                    self.losses.undecodable += 1;
                    continue;
                };
                if self.left_out.drops(&record, *source) {
                    continue;
                }
                if let Some((pid, tid, blocked)) = record.switch() {
                    self.waits.switched(pid, tid, record.time(), blocked);
                }
                let code = match (source, record.decode(*source)) {
                    (Source::Tracker, Ok(Record { pid, time, body: Body::Map(map), .. })) if !self.unread.contains(&pid) => {
                        Some(self.loaded(pid, time, &map))
                    }
                    (Source::Tracker, Ok(record)) => {
                        self.note_unread(&record);
                        self.announce(&record);
                        if let Body::Exit { pid, tid } = record.body
                            && pid == tid
                        {
                            self.unsampled.exit_arrived(pid, record.time);
                        }
                        self.count_usage(&record);
                        None
                    }
                    _ => None,
                };
                arrived.push(Pending { time: record.time(), source: *source, at: range.start + record.offset, code });
            }
        }
        arrived
    }

    /// A process whose code was not read yet executes another program, forks, or ends.
    fn note_unread(&mut self, record: &Record<'_>) {
        match record.body {
            Body::Comm { exec: true, .. } => {
                self.unread.remove(&record.pid);
            }
            Body::Fork { pid, parent_pid, .. } if self.unread.contains(&parent_pid) => {
                self.unread.insert(pid);
            }
            Body::Exit { pid, tid } if pid == tid => {
                self.unread.remove(&pid);
            }
            _ => {}
        }
    }

    /// Processes the record at the beginning of `bytes`, whose turn has come.
    fn turn(&mut self, pending: Pending, bytes: &[u8]) {
        match records(bytes).next().map(|record| record.and_then(|record| record.decode(pending.source))) {
            Some(Ok(Record { pid, tid, time, body, .. })) if pending.source == Source::Switcher => {
                // Its lost records are no loss: it samples waits only.
                if let Body::Sample(sample) = body {
                    self.falls_asleep(pid, tid, time, &sample);
                }
            }
            Some(Ok(record)) => self.record(&record, pending.code),
            Some(Err(_)) | None => self.losses.undecodable += 1,
        }
    }

    /// Starts or ends reading what a process uses, when its record arrives.
    pub(super) fn count_usage(&mut self, record: &Record<'_>) {
        match record.body {
            Body::Fork { pid, parent_pid, .. } if pid != parent_pid => self.usages.forked(pid, record.time),
            Body::Comm { exec: true, .. } => self.usages.execed(record.pid, record.time),
            Body::Exit { pid, tid } if pid == tid && !self.unsampled.has(pid) => self.usages.leaving(pid, &mut self.out),
            _ => {}
        }
    }

    /// Reads `/proc` at once for programs that were executed: they may be short-lived.
    fn announce_execs(&mut self, batch: &Batch) {
        let mut execs: Vec<(u64, u32, &[u8])> = Vec::new();
        for (_, range) in batch.parts.iter().filter(|(source, _)| *source == Source::Tracker) {
            let bytes = batch.bytes.get(range.clone()).unwrap_or_default();
            for record in records(bytes).flatten() {
                if let Ok(Record { pid, time, body: Body::Comm { name, exec: true }, .. }) = record.decode(Source::Tracker)
                    && !self.left_out.found(pid)
                {
                    execs.push((time, pid, name));
                }
            }
        }
        execs.sort_by_key(|(time, ..)| *time);
        for (i, (time, pid, name)) in execs.iter().enumerate() {
            self.unsampled.exec_arrived(*pid, *time);
            // `/proc` shows only the last exec of a process.
            let is_latest = !execs[i + 1..].iter().any(|(_, later, _)| later == pid);
            self.tree.executions().announce(*pid, *time, name, is_latest);
        }
    }

    /// Processes one record, in its turn.
    pub(super) fn record(&mut self, record: &Record<'_>, code: Option<Code>) {
        let Record { pid, tid, time, cpu, ref body } = *record;
        match body {
            Body::Sample(sample) => {
                self.tree.sampled((time, cpu), pid, tid, &mut self.out);
                self.sample(pid, tid, time, cpu, sample);
            }
            Body::SwitchIn => {
                self.wakes(tid, time);
                self.tree.switch_in((time, cpu), pid, tid, &mut self.out);
            }
            Body::SwitchOut { preempted } => {
                self.short_waits.switched_out(tid, time, *preempted);
                self.tree.switch_out(time, tid, *preempted, &mut self.out);
            }
            Body::Map(_) if self.unread.contains(&pid) => {}
            Body::Map(map) => self.map(pid, time, map, code),
            Body::Comm { name, exec: true } => {
                self.stack_builder.javascripts.over(pid, time);
                self.stack_builder.jvms.over(pid, time);
                self.stack_builder.jit.over(pid, time, &mut self.stack_builder.stacks, &mut self.out);
                self.tree.exec((time, cpu), pid, name, &mut self.out);
            }
            Body::Comm { name, exec: false } => self.tree.rename(time, pid, tid, name, &mut self.out),
            Body::Fork { pid, tid, parent_pid, parent_tid } => {
                if pid != parent_pid {
                    self.stack_builder.javascripts.forked(*pid, *parent_pid, time);
                    self.stack_builder.jit.forked(*pid, *parent_pid);
                }
                self.tree.fork(time, *pid, *tid, *parent_pid, *parent_tid, &mut self.out);
            }
            Body::Exit { pid, tid } if pid == tid && self.unsampled.outlives_its_exit(*pid, time) => {
                self.tree.switch_out(time, *tid, false, &mut self.out);
            }
            Body::Exit { pid, tid } => {
                self.waits.ended(*tid);
                self.short_waits.over(*tid);
                self.tree.exit(time, *pid, *tid, &mut self.out);
                if self.tree.space(*pid).is_none() {
                    self.stack_builder.javascripts.over(*pid, time);
                    self.stack_builder.jvms.over(*pid, u64::MAX);
                    self.stack_builder.jit.ended(*pid, time, &mut self.stack_builder.stacks, &mut self.out);
                    self.mapped_at.remove(pid);
                    self.usages.ended(*pid, time);
                }
            }
            Body::Lost { count } => {
                self.tree.lost(cpu, &mut self.out);
                self.losses.lost += count;
                self.stats.lost += count;
            }
            Body::Throttle => {
                self.losses.throttled += 1;
                self.stats.throttled += 1;
            }
            Body::Unthrottle | Body::Other => {}
        }
    }

    fn map(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: Option<Code>) {
        let code = match code {
            Some(code) => code,
            None => self.binaries.load(pid, map, &mut self.out),
        };
        if self.tree.thread(pid, pid, time, &mut self.out).is_none() {
            return;
        }
        self.stack_builder.jit.binary(pid, map.path);
        let range = AbsAddr(map.start)..AbsAddr(map.start.saturating_add(map.bytes));
        if self.tree.space(pid).is_some_and(|space| space.has(range.clone(), &code)) {
            return;
        }
        if let Some(space) = self.tree.space_mut(pid) {
            space.map(range, map.file_offset, code);
        }
    }

    fn sample(&mut self, pid: u32, tid: u32, time: u64, cpu: u32, sample: &SampleRecord<'_>) {
        if self.size_change.is_some_and(|change| change.is_duplicate(time, sample.period)) {
            return;
        }
        self.read_late(pid, time);
        let found = self.context((pid, tid, time), sample);
        if found == ContextInStack::OutOfReach {
            *self.out_of_reach.entry(tid).or_default() += 1;
        }
        let context = found.or_absent();
        if context == ContextRecord::Torn {
            *self.torn.entry(tid).or_default() += 1;
            self.stats.torn += 1;
        }
        let Some(stack) = self.stack((pid, tid, time), sample, true) else { return };
        let weight_nanos = self.weigher.weigh(sample.period);
        let kept = Sample { time: Monotonic(time), pid, tid, cpu, stack, weight_nanos, context };
        self.depths.all += 1;
        if self.out.give(Observation::Sample(kept)) {
            self.stats.samples += 1;
        }
    }

    /// The span context that the thread had published, from the copied stack: of our SDK, else of another one.
    fn context(&mut self, (pid, tid, time): (u32, u32, u64), sample: &SampleRecord<'_>) -> ContextInStack {
        let may_publish = self.tree.space(pid).is_none_or(|space| space.may_publish_context());
        let thread = self.tree.thread(pid, tid, time, &mut self.out);
        let (Some(thread), Some(registers)) = (thread, sample.registers) else { return ContextInStack::Context(ContextRecord::Absent) };
        let own = if may_publish {
            context_record::find(sample.stack, registers.sp, tid, &mut thread.record_hint)
        } else {
            ContextRecord::Absent
        };
        self.or_of_another((pid, tid, time), own, sample.stack, registers.sp)
    }

    /// The context of our SDK; if there is none, that of another one.
    fn or_of_another(&mut self, (pid, tid, time): (u32, u32, u64), own: ContextRecord, stack: &[u8], sp: u64) -> ContextInStack {
        let offset = self.published.thread_offset(pid, time).filter(|_| own == ContextRecord::Absent);
        let Some(offset) = offset else { return ContextInStack::Context(own) };
        match self.tree.thread(pid, tid, time, &mut self.out) {
            Some(thread) => otel_thread::find(stack, sp, thread.id_inside(tid), offset, &mut thread.thread_pointer),
            None => ContextInStack::Context(own),
        }
    }

    /// A thread leaves its CPU, with a copy of its stack.
    fn falls_asleep(&mut self, pid: u32, tid: u32, time: u64, sample: &SampleRecord<'_>) {
        let context = self.context((pid, tid, time), sample).or_absent();
        let stack = self.stack((pid, tid, time), sample, false);
        let chain = sample.kernel.addresses().collect();
        self.short_waits.sampled(tid, OffCpuSample { pid, stack, context, chain, since: None });
    }

    /// A thread has a CPU again: its wait is over, if one was found.
    fn wakes(&mut self, tid: u32, time: u64) {
        let sample = self.short_waits.over(tid);
        let skipped = self.waits.skipped;
        match (self.waits.over(tid, time), sample) {
            (Some(blocked), _) => self.wait(tid, blocked, time),
            (None, Some(sample)) => {
                // It was not probed, but sampled when it left its CPU.
                self.waits.skipped = skipped;
                self.short_waits.keep(tid, sample, time);
                if self.short_waits.is_full() {
                    self.stats.waits += self.short_waits.report(&mut self.stack_builder.kernel, &mut self.out);
                }
            }
            (None, None) => {}
        }
    }

    /// A probed wait is over.
    pub(super) fn wait(&mut self, tid: u32, mut blocked: BlockedThread, end: u64) {
        let (futex, kind) = blocked.until(end);
        let StackBuilder { walker, slow_walks, jvms, .. } = &mut self.stack_builder;
        blocked.walk((walker, slow_walks), self.tree.space(blocked.pid), jvms);
        // The thread sleeps, so its memory did not change.
        let context = self.or_of_another((blocked.pid, tid, blocked.since), blocked.context, &blocked.stack, blocked.place.1).or_absent();
        let stack = self.stack_builder.of_blocked_thread(tid, &blocked, end, &mut self.out);
        let BlockedThread { pid, since, syscall, .. } = blocked;
        let (start, end, syscall) = (Monotonic(since), Monotonic(end), syscall.to_owned());
        if self.out.give(Observation::Wait(Wait { pid, tid, start, end, kind, syscall, stack, context, futex })) {
            self.stats.waits += 1;
        }
    }

    /// The id of the stack of a sample; `None` if the sink could not keep a definition. With `counts`, a truncated stack is a loss.
    fn stack(&mut self, thread: (u32, u32, u64), sample: &SampleRecord<'_>, counts: bool) -> Option<StackId> {
        let space = self.tree.space(thread.0).map(Arc::clone).unwrap_or_default();
        let SampleStack { id, user, kernel } = self.stack_builder.of_sample(thread, &space, sample, &mut self.out);
        if counts {
            for cut in user.into_iter().chain(kernel) {
                *self.losses.cut.entry(cut).or_insert(0) += 1;
                self.depths.deep += u64::from(matches!(cut, Truncation::Walk(StackEnd::Deeper { .. })));
                match cut {
                    Truncation::Walk(end) if end.is_truncated() => self.stats.truncated += 1,
                    Truncation::KernelDeep => self.stats.truncated += 1,
                    _ => self.stats.unwind_failed += 1,
                }
            }
        }
        id
    }
}
