//! Processes, threads and when each was on a CPU, from the kernel's records.
//!
//! ```text
//! records   exec        fork          switch out   switch in        exit
//! thread    |===========|=============|            |================|
//! slices    |-------------------------|            |----------------|
//! ```
//! The command's own first slice starts at its exec, where the events are switched on; that of every other thread starts at
//! its first switch in. A slice ends at a switch out, at the thread's exit, or at the end of the recording.
//!
//! The kernel drops records when its buffer is full. Then a slice ends when its thread was seen last: when records of its CPU are lost, when
//! another thread runs there, and when the same thread is given a CPU again. What happened until the next record is unknown. A process whose
//! exit was lost ends when it was seen last.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use longpole_model::{CpuSlice, Monotonic, Observation};
use longpole_symbols::unwind::AddressSpace;

use super::executions::Executions;
use crate::procfs::namespace::id_inside;
use crate::procfs::process_snapshot::ProcessSnapshot;
use crate::procfs::stat::Stat;
use crate::sink::ObservationWriter;
use longpole_model::fast_hash::FastMap;

/// Most ended processes to remember, so that a late record of one does not start it again.
const ENDED_MAX: usize = 4_096;

/// The slice of a thread that has not ended.
#[derive(Debug, Clone, Copy)]
struct OnCpu {
    since: u64,
    cpu: u32,
}

/// A thread that lives.
pub(crate) struct LivingThread {
    pid: u32,
    name: Arc<str>,
    on_cpu: Option<OnCpu>,
    /// The time of the last record that shows it.
    last_seen: u64,
    /// The address of its context record, once found.
    pub(crate) record_hint: Option<u64>,
    /// Its thread pointer, once found.
    pub(crate) thread_pointer: Option<u64>,
    /// Its id in its own pid namespace, once read.
    id_inside: Option<u32>,
}

impl LivingThread {
    fn new(pid: u32, name: Arc<str>, time: u64) -> LivingThread {
        LivingThread { pid, name, on_cpu: None, last_seen: time, record_hint: None, thread_pointer: None, id_inside: None }
    }

    fn seen(&mut self, time: u64) {
        self.last_seen = self.last_seen.max(time);
    }

    /// The id of this thread in its own pid namespace; in ours it is `tid`.
    pub(crate) fn id_inside(&mut self, tid: u32) -> u32 {
        let pid = self.pid;
        *self.id_inside.get_or_insert_with(|| id_inside(pid, tid).unwrap_or(tid))
    }
}

#[derive(Default)]
struct Process {
    space: Arc<AddressSpace>,
    threads: HashSet<u32>,
    /// When the last of its threads ended that have ended.
    last_exit: u64,
}

/// The processes and threads that live.
pub(crate) struct ProcessTree {
    root: u32,
    root_started: bool,
    processes: FastMap<u32, Process>,
    threads: FastMap<u32, LivingThread>,
    ended: HashSet<u32>,
    ended_order: VecDeque<u32>,
    executions: Executions,
    /// The thread with an open slice on each CPU; none on one with lost records, until a record shows which thread runs there.
    running: FastMap<u32, Option<u32>>,
    has_lost_records: bool,
    /// Whether there are switch records; without them nobody knows when a thread was on a CPU.
    pub(crate) sees_switches: bool,
    /// Slices written to the sink.
    pub(crate) slices: u64,
}

impl ProcessTree {
    /// The tree before the exec of process `root`.
    pub(crate) fn new(root: u32) -> ProcessTree {
        let mut tree = ProcessTree {
            root,
            root_started: false,
            processes: FastMap::default(),
            threads: FastMap::default(),
            ended: HashSet::new(),
            ended_order: VecDeque::new(),
            executions: Executions::new(),
            running: FastMap::default(),
            has_lost_records: false,
            sees_switches: true,
            slices: 0,
        };
        tree.processes.insert(root, Process { threads: HashSet::from([root]), ..Process::default() });
        tree.threads.insert(root, LivingThread::new(root, "".into(), 0));
        tree
    }

    /// A process that ran already when the recording began.
    pub(crate) fn found(&mut self, time: u64, snapshot: &ProcessSnapshot, out: &mut ObservationWriter) {
        let (pid, at) = (snapshot.pid, Monotonic(time));
        self.root_started = true;
        self.processes.insert(pid, Process::default());
        out.give(Observation::ProcessStarted { pid, parent_pid: snapshot.parent, time: at });
        for thread in &snapshot.threads {
            let name: Arc<str> = thread.name.as_str().into();
            if let Some(process) = self.processes.get_mut(&pid) {
                process.threads.insert(thread.tid);
            }
            self.threads.insert(thread.tid, LivingThread::new(pid, Arc::clone(&name), time));
            out.give(Observation::ThreadStarted { pid, tid: thread.tid, time: at });
            out.give(Observation::ThreadNamed { pid, tid: thread.tid, name: name.to_string() });
        }
        self.executions.has_happened(pid, time, snapshot.name.as_bytes());
    }

    /// The processes that live.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// The mappings of a process, for reading.
    pub(crate) fn space(&self, pid: u32) -> Option<&Arc<AddressSpace>> {
        self.processes.get(&pid).map(|p| &p.space)
    }

    /// The address of the context record of a thread, once found.
    pub(crate) fn record_hint(&self, tid: u32) -> Option<u64> {
        self.threads.get(&tid)?.record_hint
    }

    /// The mappings of a process, for changing; shared ones are copied.
    pub(crate) fn space_mut(&mut self, pid: u32) -> Option<&mut AddressSpace> {
        self.processes.get_mut(&pid).map(|p| Arc::make_mut(&mut p.space))
    }

    /// A thread that was seen running at `time`; `None` if its process has ended.
    ///
    /// Makes up for a lost fork record.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, time: u64, out: &mut ObservationWriter) -> Option<&mut LivingThread> {
        if !self.threads.contains_key(&tid) {
            if pid == 0 || tid == 0 || self.ended.contains(&pid) {
                return None;
            }
            if !self.processes.contains_key(&pid) {
                let parent = Stat::of_process(pid).map(|stat| stat.parent).filter(|p| self.processes.contains_key(p)).unwrap_or(self.root);
                self.fork(time, pid, pid, parent, parent, out);
            }
            if !self.threads.contains_key(&tid) {
                self.fork(time, pid, tid, pid, pid, out);
            }
        }
        let thread = self.threads.get_mut(&tid)?;
        thread.seen(time);
        Some(thread)
    }

    /// A thread, or a process with its first thread, was made.
    pub(crate) fn fork(&mut self, time: u64, pid: u32, tid: u32, parent_pid: u32, parent_tid: u32, out: &mut ObservationWriter) {
        let at = Monotonic(time);
        let name = self.threads.get(&parent_tid).map(|t| Arc::clone(&t.name)).unwrap_or_default();
        if pid != parent_pid && self.last_seen(pid).is_some_and(|last_seen| last_seen < time) {
            // Its exit was lost, and another process has its id.
            self.exit_unseen(pid, out);
        }
        if pid == parent_pid {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.threads.insert(tid);
            }
        } else {
            self.ended.remove(&pid);
            if !self.processes.contains_key(&pid) {
                let space = self.processes.get(&parent_pid).map(|p| Arc::clone(&p.space)).unwrap_or_default();
                self.processes.insert(pid, Process { space, threads: HashSet::from([tid]), last_exit: 0 });
            }
            out.give(Observation::ProcessStarted { pid, parent_pid: Some(parent_pid), time: at });
        }
        // The record may come after what the thread did.
        self.threads.entry(tid).or_insert_with(|| LivingThread::new(pid, Arc::clone(&name), time));
        out.give(Observation::ThreadStarted { pid, tid, time: at });
        if !name.is_empty() {
            out.give(Observation::ThreadNamed { pid, tid, name: name.to_string() });
        }
    }

    /// A process executes a program: its memory is new and all its threads but one are gone.
    pub(crate) fn exec(&mut self, (time, cpu): (u64, u32), pid: u32, name: &[u8], out: &mut ObservationWriter) {
        let at = Monotonic(time);
        let mut on_cpu = None;
        if pid == self.root && !self.root_started {
            self.root_started = true;
            out.give(Observation::ProcessStarted { pid, parent_pid: None, time: at });
            out.give(Observation::ThreadStarted { pid, tid: pid, time: at });
            on_cpu = self.sees_switches.then_some(OnCpu { since: time, cpu });
        } else {
            self.thread(pid, pid, time, out);
        }
        // A thread that is not the first and executes a program takes over the id of the first, which ended just before.
        let others: Vec<u32> =
            self.processes.get(&pid).map(|p| p.threads.iter().copied().filter(|tid| *tid != pid).collect()).unwrap_or_default();
        for tid in others {
            if let Some(thread) = self.threads.remove(&tid) {
                on_cpu = on_cpu.or(thread.on_cpu);
                out.give(Observation::ThreadExited { pid, tid, time: at });
            }
        }
        let name: Arc<str> = String::from_utf8_lossy(name).into();
        if let Some(process) = self.processes.get_mut(&pid) {
            process.space = Arc::default();
            if !process.threads.contains(&pid) {
                out.give(Observation::ThreadStarted { pid, tid: pid, time: at });
            }
            process.threads = HashSet::from([pid]);
        }
        let thread = self.threads.entry(pid).or_insert(LivingThread::new(pid, "".into(), time));
        thread.name = Arc::clone(&name);
        thread.record_hint = None;
        thread.on_cpu = thread.on_cpu.or(on_cpu);
        thread.seen(time);
        if let Some(OnCpu { cpu, .. }) = thread.on_cpu {
            self.running.insert(cpu, Some(pid));
        }
        out.give(Observation::ThreadNamed { pid, tid: pid, name: name.to_string() });
        self.executions.has_happened(pid, time, name.as_bytes());
    }

    /// The executed programs.
    pub(crate) fn executions(&mut self) -> &mut Executions {
        &mut self.executions
    }

    /// A thread has another name.
    pub(crate) fn rename(&mut self, time: u64, pid: u32, tid: u32, name: &[u8], out: &mut ObservationWriter) {
        let name: Arc<str> = String::from_utf8_lossy(name).into();
        if let Some(thread) = self.thread(pid, tid, time, out) {
            thread.name = Arc::clone(&name);
            out.give(Observation::ThreadNamed { pid, tid, name: name.to_string() });
        }
    }

    /// A thread ended, and with the last of them its process.
    pub(crate) fn exit(&mut self, time: u64, pid: u32, tid: u32, out: &mut ObservationWriter) {
        let at = Monotonic(time);
        if !self.threads.contains_key(&tid) {
            return;
        }
        self.end_slice(tid, time, false, out);
        self.threads.remove(&tid);
        out.give(Observation::ThreadExited { pid, tid, time: at });
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.threads.remove(&tid);
        process.last_exit = process.last_exit.max(time);
        if !process.threads.is_empty() {
            return;
        }
        let at = Monotonic(process.last_exit);
        self.processes.remove(&pid);
        self.executions.process_ended(pid, out);
        out.give(Observation::ProcessExited { pid, time: at });
        if self.ended.insert(pid) {
            self.ended_order.push_back(pid);
        }
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    /// The time of the last record that shows a process.
    fn last_seen(&self, pid: u32) -> Option<u64> {
        let process = self.processes.get(&pid)?;
        let threads = process.threads.iter().filter_map(|tid| self.threads.get(tid));
        threads.map(|thread| thread.last_seen).chain([process.last_exit]).max()
    }

    /// Ends a process whose exit, or one of a thread, was lost: each of its threads ended when it was seen last.
    fn exit_unseen(&mut self, pid: u32, out: &mut ObservationWriter) {
        let Some(process) = self.processes.get(&pid) else { return };
        let last_seen = |tid: &u32| Some((*tid, self.threads.get(tid)?.last_seen));
        let threads: Vec<(u32, u64)> = process.threads.iter().filter_map(last_seen).collect();
        threads.into_iter().for_each(|(tid, last_seen)| self.exit(last_seen, pid, tid, out));
    }

    /// A thread was given a CPU.
    pub(crate) fn switch_in(&mut self, (time, cpu): (u64, u32), pid: u32, tid: u32, out: &mut ObservationWriter) {
        self.vacate(cpu, out);
        self.running.remove(&cpu);
        // Its switch out was lost.
        self.end_unseen_slice(tid, out);
        if let Some(thread) = self.thread(pid, tid, time, out) {
            thread.on_cpu = Some(OnCpu { since: time, cpu });
            self.running.insert(cpu, Some(tid));
        }
    }

    /// A thread was sampled on a CPU.
    pub(crate) fn sampled(&mut self, (time, cpu): (u64, u32), pid: u32, tid: u32, out: &mut ObservationWriter) {
        let running = self.running.get(&cpu).copied();
        match running {
            Some(Some(running)) if running != tid => self.vacate(cpu, out),
            Some(None) => _ = self.running.remove(&cpu),
            _ => {}
        }
        let (was_in_doubt, sees_switches) = (running == Some(None), self.sees_switches);
        let Some(thread) = self.thread(pid, tid, time, out) else { return };
        if was_in_doubt && sees_switches && thread.on_cpu.is_none() {
            thread.on_cpu = Some(OnCpu { since: time, cpu });
            self.running.insert(cpu, Some(tid));
        }
    }

    /// A thread lost its CPU.
    pub(crate) fn switch_out(&mut self, time: u64, tid: u32, preempted: bool, out: &mut ObservationWriter) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.seen(time);
            self.end_slice(tid, time, preempted, out);
        }
    }

    /// Records of a CPU were lost.
    pub(crate) fn lost(&mut self, cpu: u32, out: &mut ObservationWriter) {
        self.has_lost_records = true;
        self.vacate(cpu, out);
        self.running.insert(cpu, None);
    }

    /// Ends the slice of the thread that runs on a CPU, as far as that is known.
    fn vacate(&mut self, cpu: u32, out: &mut ObservationWriter) {
        if let Some(tid) = self.running.get(&cpu).copied().flatten() {
            self.end_unseen_slice(tid, out);
        }
    }

    /// Ends the open slice of a thread when it was seen last.
    fn end_unseen_slice(&mut self, tid: u32, out: &mut ObservationWriter) {
        if let Some(last_seen) = self.threads.get(&tid).map(|thread| thread.last_seen) {
            self.end_slice(tid, last_seen, true, out);
        }
    }

    fn end_slice(&mut self, tid: u32, end: u64, preempted: bool, out: &mut ObservationWriter) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(OnCpu { since, cpu }) = thread.on_cpu.take() else { return };
        if self.running.get(&cpu) == Some(&Some(tid)) {
            self.running.remove(&cpu);
        }
        self.slices += 1;
        give_slice(thread.pid, tid, since, end, preempted, out);
    }

    /// The recording ends: open slices end here, and processes whose exits were lost when they were seen last.
    pub(crate) fn finish(&mut self, time: u64, out: &mut ObservationWriter) {
        if self.has_lost_records {
            let is_gone = |pid: &u32| Stat::of_process(*pid).is_none_or(|stat| stat.has_ended);
            let gone: Vec<u32> = self.pids().filter(is_gone).collect();
            gone.into_iter().for_each(|pid| self.exit_unseen(pid, out));
        }
        let running: Vec<u32> = self.running.values().copied().flatten().collect();
        for tid in running {
            self.end_slice(tid, time, true, out);
        }
        self.executions.finish(out);
    }
}

fn give_slice(pid: u32, tid: u32, start: u64, end: u64, preempted: bool, out: &mut ObservationWriter) {
    if start < end {
        out.give(Observation::CpuSlice(CpuSlice { pid, tid, start: Monotonic(start), end: Monotonic(end), preempted }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::testing;
    use std::fmt::Write as _;

    /// Pids above the kernel's largest, so that /proc knows nothing of them.
    const ROOT: u32 = 5_000_000;

    fn story(play: impl FnOnce(&mut ProcessTree, &mut ObservationWriter)) -> String {
        let (mut out, seen) = testing::out(false);
        let mut tree = ProcessTree::new(ROOT);
        play(&mut tree, &mut out);
        tree.finish(10_000, &mut out);
        let mut text = String::new();
        let short = |id: &u32| id - ROOT;
        for observation in seen.lock().unwrap().iter() {
            match observation {
                Observation::ProcessStarted { pid, parent_pid, time } => {
                    writeln!(text, "{} process {} of {:?}", time.0, short(pid), parent_pid.as_ref().map(short))
                }
                Observation::ProcessExec { pid, time, name, .. } => writeln!(text, "{} exec {} {name}", time.0, short(pid)),
                Observation::ProcessExited { pid, time } => writeln!(text, "{} process {} ends", time.0, short(pid)),
                Observation::ThreadStarted { tid, time, .. } => writeln!(text, "{} thread {}", time.0, short(tid)),
                Observation::ThreadNamed { tid, name, .. } => writeln!(text, "- thread {} is {name}", short(tid)),
                Observation::ThreadExited { tid, time, .. } => writeln!(text, "{} thread {} ends", time.0, short(tid)),
                Observation::CpuSlice(s) => {
                    writeln!(text, "{}..{} slice {}{}", s.start.0, s.end.0, short(&s.tid), if s.preempted { " preempted" } else { "" })
                }
                other => writeln!(text, "{other:?}"),
            }
            .unwrap();
        }
        text
    }

    fn same(actual: &str, expected: &str) {
        let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
        assert_eq!(actual.trim().lines().collect::<Vec<_>>(), expected, "\n{actual}");
    }

    #[test]
    fn a_command_its_thread_and_its_child() {
        let text = story(|tree, out| {
            tree.exec((100, 0), ROOT, b"sh", out);
            tree.fork(200, ROOT, ROOT + 1, ROOT, ROOT, out);
            tree.rename(210, ROOT, ROOT + 1, b"worker", out);
            tree.switch_out(300, ROOT, false, out);
            tree.switch_in((310, 0), ROOT, ROOT + 1, out);
            tree.fork(320, ROOT + 2, ROOT + 2, ROOT, ROOT + 1, out);
            tree.switch_out(330, ROOT + 1, true, out);
            tree.switch_in((340, 0), ROOT + 2, ROOT + 2, out);
            tree.exec((350, 0), ROOT + 2, b"cc", out);
            tree.exit(400, ROOT + 2, ROOT + 2, out);
            tree.switch_in((500, 0), ROOT, ROOT, out);
            tree.exit(600, ROOT, ROOT + 1, out);
            tree.exit(700, ROOT, ROOT, out);
        });
        same(
            &text,
            "100 process 0 of None
             100 thread 0
             - thread 0 is sh
             200 thread 1
             - thread 1 is sh
             - thread 1 is worker
             100..300 slice 0
             320 process 2 of Some(0)
             320 thread 2
             - thread 2 is worker
             310..330 slice 1 preempted
             - thread 2 is cc
             340..400 slice 2
             400 thread 2 ends
             350 exec 2 cc
             400 process 2 ends
             600 thread 1 ends
             500..700 slice 0
             700 thread 0 ends
             100 exec 0 sh
             700 process 0 ends",
        );
    }

    #[test]
    fn an_exec_by_another_thread_goes_on_under_the_first_ones_id() {
        let text = story(|tree, out| {
            tree.exec((100, 0), ROOT, b"a", out);
            tree.fork(200, ROOT, ROOT + 1, ROOT, ROOT, out);
            tree.switch_out(300, ROOT, false, out);
            tree.switch_in((310, 0), ROOT, ROOT + 1, out);
            tree.exit(320, ROOT, ROOT, out);
            tree.exec((330, 0), ROOT, b"b", out);
            tree.switch_out(400, ROOT, false, out);
        });
        same(
            &text,
            "100 process 0 of None
             100 thread 0
             - thread 0 is a
             200 thread 1
             - thread 1 is a
             100..300 slice 0
             320 thread 0 ends
             330 thread 0
             330 thread 1 ends
             - thread 0 is b
             310..400 slice 0
             100 exec 0 a
             330 exec 0 b",
        );
    }

    #[test]
    fn a_slice_whose_end_was_lost_ends_when_its_thread_was_seen_last() {
        let text = story(|tree, out| {
            tree.exec((100, 0), ROOT, b"a", out);
            tree.fork(150, ROOT, ROOT + 1, ROOT, ROOT, out);
            tree.sampled((200, 0), ROOT, ROOT, out);
            // Another thread runs there now.
            tree.switch_in((300, 0), ROOT, ROOT + 1, out);
            tree.sampled((350, 0), ROOT, ROOT + 1, out);
            tree.lost(0, out);
            // What it did until it is seen again is unknown.
            tree.sampled((500, 0), ROOT, ROOT + 1, out);
            tree.switch_out(600, ROOT + 1, false, out);
            // Records of another CPU were lost.
            tree.switch_in((700, 0), ROOT, ROOT, out);
            tree.lost(1, out);
            tree.switch_out(800, ROOT, false, out);
            // The first CPU is free, and the thread is on another one.
            tree.switch_in((900, 0), ROOT, ROOT, out);
            tree.sampled((950, 0), ROOT, ROOT, out);
            tree.switch_in((1_000, 1), ROOT, ROOT, out);
            tree.switch_out(1_100, ROOT, false, out);
        });
        let slices: Vec<&str> = text.lines().filter(|line| line.contains("slice")).collect();
        let known =
            ["300..350 slice 1 preempted", "500..600 slice 1", "700..800 slice 0", "900..950 slice 0 preempted", "1000..1100 slice 0"];
        assert_eq!(slices[0], "100..200 slice 0 preempted");
        assert_eq!(slices[1..], known);
    }

    #[test]
    fn a_process_whose_exit_was_lost_ends_when_it_was_seen_last() {
        let text = story(|tree, out| {
            tree.exec((100, 0), ROOT, b"a", out);
            tree.switch_out(200, ROOT, false, out);
            tree.fork(210, ROOT + 1, ROOT + 1, ROOT, ROOT, out);
            tree.switch_in((220, 0), ROOT + 1, ROOT + 1, out);
            tree.switch_out(230, ROOT + 1, false, out);
            // Its id is given to another one.
            tree.fork(300, ROOT + 1, ROOT + 1, ROOT, ROOT, out);
            tree.switch_in((310, 0), ROOT + 1, ROOT + 1, out);
            tree.lost(0, out);
            // A fork that arrives after what its child did is no second one.
            tree.switch_in((400, 1), ROOT + 2, ROOT + 2, out);
            tree.fork(390, ROOT + 2, ROOT + 2, ROOT, ROOT, out);
        });
        // The pids of this test are those of no process.
        let mut ends: Vec<&str> = text.lines().filter(|line| line.contains("process") && line.ends_with("ends")).collect();
        ends.sort_unstable();
        assert_eq!(ends, ["200 process 0 ends", "230 process 1 ends", "310 process 1 ends", "400 process 2 ends"]);
    }

    #[test]
    fn lost_records_are_made_up_for_and_ended_processes_stay_ended() {
        let text = story(|tree, out| {
            tree.exec((100, 0), ROOT, b"a", out);
            tree.switch_out(200, ROOT, false, out);
            tree.switch_in((300, 0), ROOT + 7, ROOT + 8, out);
            tree.switch_in((310, 0), ROOT + 7, ROOT + 8, out);
            tree.switch_out(350, ROOT + 9, false, out);
            tree.exit(400, ROOT + 7, ROOT + 8, out);
            tree.exit(410, ROOT + 7, ROOT + 7, out);
            tree.switch_in((420, 0), ROOT + 7, ROOT + 8, out);
            tree.switch_in((9_000, 0), ROOT, ROOT, out);
        });
        same(
            &text,
            "100 process 0 of None
             100 thread 0
             - thread 0 is a
             100..200 slice 0
             300 process 7 of Some(0)
             300 thread 7
             - thread 7 is a
             300 thread 8
             - thread 8 is a
             310..400 slice 8
             400 thread 8 ends
             410 thread 7 ends
             410 process 7 ends
             9000..10000 slice 0 preempted
             100 exec 0 a",
        );
    }
}
