//! Processes, threads and when each was on a CPU, from the kernel's records.
//!
//! ```text
//! records   exec        fork          switch out   switch in        exit
//! thread    |===========|=============|            |================|
//! slices    |-------------------------|            |----------------|
//! ```
//! The command's own first slice starts at its exec, where the events are switched on; that of every other thread starts at
//! its first switch in. A slice ends at a switch out, at the thread's exit, or at the end of the recording.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::Read;
use std::sync::Arc;

use longpole_model::{CpuSlice, Loss, LossKind, Monotonic, Observation};
use longpole_symbols::unwind::AddressSpace;

use crate::procfs::process_snapshot::Living;
use crate::frames::python::id_inside;
use crate::frames::stacks::{NumberMap, Out};

/// How many ended processes are remembered, so that a late record of one does not make it start again.
const ENDED_MAX: usize = 4_096;

/// Most bytes of a command line that are kept.
const ARGUMENTS_BYTES_MAX: u64 = 16 << 10;

/// Most arguments that are kept of a program: an empty one takes a byte in the kernel, and 24 here.
const ARGUMENTS_MAX: usize = 1_024;

/// What the arguments of all programs of a recording may take. Those of programs behind them are left out.
const ALL_ARGUMENTS_BYTES_MAX: u64 = 64 << 20;

/// How long a process may take to lay out its arguments after its exec: a busy machine lets it wait in the middle of that.
const EXEC_PATIENCE_NANOS: u64 = 1_000_000_000;

/// Shortest pause between two looks for them, and the part of the time since the exec that it is later: a program of another user never
/// tells everything.
const EXEC_PAUSE_NANOS: u64 = 1_000_000;
const EXEC_PAUSE_PART: u64 = 8;

/// One thread that lives.
pub(crate) struct Thread {
    pid: u32,
    name: Arc<str>,
    on_cpu_since: Option<u64>,
    /// Where its context record was found last.
    pub(crate) record_hint: Option<u64>,
    /// Its thread pointer, where that was looked for and found.
    pub(crate) thread_pointer: Option<u64>,
    /// Its id as it knows it itself, where that was asked for.
    id_inside: Option<u32>,
}

impl Thread {
    fn new(pid: u32, name: Arc<str>) -> Thread {
        Thread { pid, name, on_cpu_since: None, record_hint: None, thread_pointer: None, id_inside: None }
    }

    /// The id of this thread, which is `tid` to us, inside of its own pid namespace.
    pub(crate) fn id_inside(&mut self, tid: u32) -> u32 {
        let pid = self.pid;
        *self.id_inside.get_or_insert_with(|| id_inside(pid, tid).unwrap_or(tid))
    }
}

struct Process {
    space: Arc<AddressSpace>,
    threads: HashSet<u32>,
}

/// An exec whose program and arguments are not told yet.
struct Exec {
    pid: u32,
    time: u64,
    name: Arc<str>,
    executable: String,
    arguments: Vec<String>,
    /// When it is looked at next.
    due: u64,
    /// Whether what `/proc` says now is still about this exec.
    is_latest: bool,
    /// Whether its record had its turn.
    seen: bool,
}

/// Everything that lives.
pub(crate) struct ProcessTree {
    root: u32,
    root_started: bool,
    processes: NumberMap<u32, Process>,
    threads: NumberMap<u32, Thread>,
    ended: HashSet<u32>,
    ended_order: VecDeque<u32>,
    execs: Vec<Exec>,
    arguments: AllArguments,
    /// Whether there are records of switches; without them nobody knows when a thread was on a CPU.
    pub(crate) sees_switches: bool,
    /// Slices given to the sink.
    pub(crate) slices: u64,
}

impl ProcessTree {
    /// The tree before the exec of process `root`.
    pub(crate) fn new(root: u32) -> ProcessTree {
        let mut tree = ProcessTree {
            root,
            root_started: false,
            processes: NumberMap::default(),
            threads: NumberMap::default(),
            ended: HashSet::new(),
            ended_order: VecDeque::new(),
            execs: Vec::new(),
            arguments: AllArguments { bytes_left: ALL_ARGUMENTS_BYTES_MAX, left_out: 0 },
            sees_switches: true,
            slices: 0,
        };
        tree.processes.insert(root, Process { space: Arc::default(), threads: HashSet::from([root]) });
        tree.threads.insert(root, Thread::new(root, "".into()));
        tree
    }

    /// A process that ran already when the recording began.
    pub(crate) fn found(&mut self, time: u64, living: &Living, out: &mut Out) {
        let (pid, at) = (living.pid, Monotonic(time));
        self.root_started = true;
        self.processes.insert(pid, Process { space: Arc::default(), threads: HashSet::new() });
        out.give(Observation::ProcessStarted { pid, parent_pid: living.parent, time: at });
        for thread in &living.threads {
            let name: Arc<str> = thread.name.as_str().into();
            if let Some(process) = self.processes.get_mut(&pid) {
                process.threads.insert(thread.tid);
            }
            self.threads.insert(thread.tid, Thread::new(pid, Arc::clone(&name)));
            out.give(Observation::ThreadStarted { pid, tid: thread.tid, time: at });
            out.give(Observation::ThreadNamed { pid, tid: thread.tid, name: name.to_string() });
        }
        self.announce_exec(pid, time, living.name.as_bytes(), true);
        if let Some(exec) = self.execs.last_mut() {
            exec.seen = true;
        }
    }

    /// All that live.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// The mappings of a process, for reading.
    pub(crate) fn space(&self, pid: u32) -> Option<&Arc<AddressSpace>> {
        self.processes.get(&pid).map(|p| &p.space)
    }

    /// Where the context record of a thread was found last.
    pub(crate) fn record_hint(&self, tid: u32) -> Option<u64> {
        self.threads.get(&tid)?.record_hint
    }

    /// The mappings of a process, for changing; shared ones are copied.
    pub(crate) fn space_mut(&mut self, pid: u32) -> Option<&mut AddressSpace> {
        self.processes.get_mut(&pid).map(|p| Arc::make_mut(&mut p.space))
    }

    /// A thread that was seen running at `time`; `None` where its process has ended.
    ///
    /// Where the record of its making was lost, it is made up for here.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32, time: u64, out: &mut Out) -> Option<&mut Thread> {
        if !self.threads.contains_key(&tid) {
            if pid == 0 || tid == 0 || self.ended.contains(&pid) {
                return None;
            }
            if !self.processes.contains_key(&pid) {
                let parent = parent_of(pid).filter(|p| self.processes.contains_key(p)).unwrap_or(self.root);
                self.fork(time, pid, pid, parent, parent, out);
            }
            if !self.threads.contains_key(&tid) {
                self.fork(time, pid, tid, pid, pid, out);
            }
        }
        self.threads.get_mut(&tid)
    }

    /// A thread, or a process with its first thread, was made.
    pub(crate) fn fork(&mut self, time: u64, pid: u32, tid: u32, parent_pid: u32, parent_tid: u32, out: &mut Out) {
        let at = Monotonic(time);
        let name = self.threads.get(&parent_tid).map(|t| Arc::clone(&t.name)).unwrap_or_default();
        if pid == parent_pid {
            if let Some(process) = self.processes.get_mut(&pid) {
                process.threads.insert(tid);
            }
        } else {
            self.ended.remove(&pid);
            let space = self.processes.get(&parent_pid).map(|p| Arc::clone(&p.space)).unwrap_or_default();
            self.processes.insert(pid, Process { space, threads: HashSet::from([tid]) });
            out.give(Observation::ProcessStarted { pid, parent_pid: Some(parent_pid), time: at });
        }
        self.threads.insert(tid, Thread::new(pid, Arc::clone(&name)));
        out.give(Observation::ThreadStarted { pid, tid, time: at });
        if !name.is_empty() {
            out.give(Observation::ThreadNamed { pid, tid, name: name.to_string() });
        }
    }

    /// A process executes a program: its memory is new and all its threads but one are gone.
    pub(crate) fn exec(&mut self, time: u64, pid: u32, name: &[u8], out: &mut Out) {
        let at = Monotonic(time);
        let mut running_since = None;
        if pid == self.root && !self.root_started {
            self.root_started = true;
            out.give(Observation::ProcessStarted { pid, parent_pid: None, time: at });
            out.give(Observation::ThreadStarted { pid, tid: pid, time: at });
            running_since = self.sees_switches.then_some(time);
        } else {
            self.thread(pid, pid, time, out);
        }
        // A thread that is not the first and executes a program takes over the id of the first, which ended just before.
        let others: Vec<u32> =
            self.processes.get(&pid).map(|p| p.threads.iter().copied().filter(|tid| *tid != pid).collect()).unwrap_or_default();
        for tid in others {
            if let Some(thread) = self.threads.remove(&tid) {
                running_since = running_since.or(thread.on_cpu_since);
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
        let thread = self.threads.entry(pid).or_insert(Thread::new(pid, "".into()));
        thread.name = Arc::clone(&name);
        thread.record_hint = None;
        thread.on_cpu_since = thread.on_cpu_since.or(running_since);
        out.give(Observation::ThreadNamed { pid, tid: pid, name: name.to_string() });
        match self.execs.iter_mut().find(|e| e.pid == pid && e.time == time) {
            Some(exec) => exec.seen = true,
            // Nobody announced it; what /proc says now is the best there is.
            None => {
                self.announce_exec(pid, time, name.as_bytes(), true);
                if let Some(exec) = self.execs.last_mut() {
                    exec.seen = true;
                }
            }
        }
    }

    /// A record of an exec has arrived, before its turn: what `/proc` tells of it may be gone when its turn comes.
    pub(crate) fn announce_exec(&mut self, pid: u32, time: u64, name: &[u8], is_latest: bool) {
        for earlier in self.execs.iter_mut().filter(|e| e.pid == pid) {
            earlier.is_latest = false;
        }
        let name = String::from_utf8_lossy(name).into();
        let mut exec = Exec { pid, time, name, executable: String::new(), arguments: Vec::new(), due: time, is_latest, seen: false };
        exec.read(time);
        self.execs.push(exec);
    }

    /// Looks again at programs that had not laid out their arguments yet, and tells of those whose turn has come.
    pub(crate) fn tell_execs(&mut self, now: u64, out: &mut Out) {
        let mut i = 0;
        while let Some(exec) = self.execs.get_mut(i) {
            exec.read(now);
            let is_done = !exec.is_latest || exec.is_complete() || now > exec.time.saturating_add(EXEC_PATIENCE_NANOS);
            if exec.seen && is_done {
                self.execs.remove(i).tell(&mut self.arguments, out);
            } else {
                i += 1;
            }
        }
    }

    /// When a program is to be looked at that has not laid out its arguments yet, as far as is known.
    pub(crate) fn next_exec(&self) -> Option<u64> {
        self.execs.iter().filter(|exec| exec.is_latest && !exec.is_complete()).map(|exec| exec.due).min()
    }

    /// A thread has another name.
    pub(crate) fn rename(&mut self, time: u64, pid: u32, tid: u32, name: &[u8], out: &mut Out) {
        let name: Arc<str> = String::from_utf8_lossy(name).into();
        if let Some(thread) = self.thread(pid, tid, time, out) {
            thread.name = Arc::clone(&name);
            out.give(Observation::ThreadNamed { pid, tid, name: name.to_string() });
        }
    }

    /// A thread ended, and with the last of them its process.
    pub(crate) fn exit(&mut self, time: u64, pid: u32, tid: u32, out: &mut Out) {
        let at = Monotonic(time);
        let Some(thread) = self.threads.remove(&tid) else { return };
        self.slice(&thread, tid, time, false, out);
        out.give(Observation::ThreadExited { pid, tid, time: at });
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.threads.remove(&tid);
        if !process.threads.is_empty() {
            return;
        }
        self.processes.remove(&pid);
        while let Some(place) = self.execs.iter().position(|e| e.pid == pid && e.seen) {
            self.execs.remove(place).tell(&mut self.arguments, out);
        }
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

    /// A thread was given a CPU.
    pub(crate) fn switch_in(&mut self, time: u64, pid: u32, tid: u32, out: &mut Out) {
        if let Some(thread) = self.thread(pid, tid, time, out) {
            // Where the record of the switch out was lost, the end of the earlier slice is unknown; it is left out.
            thread.on_cpu_since = Some(time);
        }
    }

    /// A thread lost its CPU.
    pub(crate) fn switch_out(&mut self, time: u64, tid: u32, preempted: bool, out: &mut Out) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && let Some(since) = thread.on_cpu_since.take()
        {
            let pid = thread.pid;
            self.slices += 1;
            give_slice(pid, tid, since, time, preempted, out);
        }
    }

    fn slice(&mut self, thread: &Thread, tid: u32, end: u64, preempted: bool, out: &mut Out) {
        if let Some(since) = thread.on_cpu_since {
            self.slices += 1;
            give_slice(thread.pid, tid, since, end, preempted, out);
        }
    }

    /// The recording ends: what is open is told as far as it went.
    pub(crate) fn finish(&mut self, time: u64, out: &mut Out) {
        let threads: HashMap<u32, Thread> = std::mem::take(&mut self.threads).into_iter().collect();
        for (tid, thread) in threads {
            self.slice(&thread, tid, time, true, out);
        }
        for exec in std::mem::take(&mut self.execs) {
            exec.tell(&mut self.arguments, out);
        }
        self.arguments.tell_left_out(out);
    }
}

fn give_slice(pid: u32, tid: u32, start: u64, end: u64, preempted: bool, out: &mut Out) {
    if start < end {
        out.give(Observation::CpuSlice(CpuSlice { pid, tid, start: Monotonic(start), end: Monotonic(end), preempted }));
    }
}

impl Exec {
    fn is_complete(&self) -> bool {
        !self.arguments.is_empty() && !self.executable.is_empty()
    }

    fn read(&mut self, now: u64) {
        if !self.is_latest || self.is_complete() || now < self.due {
            return;
        }
        self.due = now + EXEC_PAUSE_NANOS.max(now.saturating_sub(self.time) / EXEC_PAUSE_PART);
        if let Ok(path) = fs::read_link(format!("/proc/{}/exe", self.pid)) {
            self.executable = path.to_string_lossy().into_owned();
        }
        self.arguments = arguments_of(self.pid);
    }

    fn tell(self, all: &mut AllArguments, out: &mut Out) {
        let Exec { pid, time, name, executable, arguments, .. } = self;
        let arguments = all.take(arguments);
        out.give(Observation::ProcessExec { pid, time: Monotonic(time), name: name.to_string(), executable, arguments });
    }
}

/// What may still be told of the arguments of programs: a command can start any number of them.
struct AllArguments {
    bytes_left: u64,
    /// Programs whose arguments found no place.
    left_out: u64,
}

impl AllArguments {
    /// These arguments, or none where they find no place.
    fn take(&mut self, arguments: Vec<String>) -> Vec<String> {
        let bytes = arguments.iter().map(|argument| (size_of::<String>() + argument.len()) as u64).sum();
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                arguments
            }
            None => {
                self.left_out += 1;
                Vec::new()
            }
        }
    }

    fn tell_left_out(&mut self, out: &mut Out) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            let detail = format!("without their arguments: those of all programs take more than {} MiB", ALL_ARGUMENTS_BYTES_MAX >> 20);
            out.give(Observation::Loss(Loss::new(LossKind::UsageNotSeen, count, detail)));
        }
    }
}

/// Empty until the program's first stack is laid out, and of a program that ends.
pub(crate) fn arguments_of(pid: u32) -> Vec<String> {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/cmdline")) else { return Vec::new() };
    let mut bytes = Vec::new();
    match file.take(ARGUMENTS_BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => split_arguments(&bytes),
        Err(_) => Vec::new(),
    }
}

/// `/proc/PID/cmdline`: each argument ends in a zero byte. What is over the limit is cut, and says so by its last character.
fn split_arguments(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let whole = bytes.strip_suffix(b"\0");
    let mut all = whole.unwrap_or(bytes).split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned());
    let mut arguments: Vec<String> = all.by_ref().take(ARGUMENTS_MAX).collect();
    let is_cut = bytes.len() as u64 >= ARGUMENTS_BYTES_MAX || all.next().is_some();
    if is_cut && let Some(last) = arguments.last_mut() {
        last.push('…');
    }
    arguments
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, spaces and brackets included; behind its last bracket come state and parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::stacks::testing;
    use std::fmt::Write as _;

    /// Pids above the kernel's largest, so that /proc knows nothing of them.
    const ROOT: u32 = 5_000_000;

    fn story(play: impl FnOnce(&mut ProcessTree, &mut Out)) -> String {
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
            tree.exec(100, ROOT, b"sh", out);
            tree.fork(200, ROOT, ROOT + 1, ROOT, ROOT, out);
            tree.rename(210, ROOT, ROOT + 1, b"worker", out);
            tree.switch_out(300, ROOT, false, out);
            tree.switch_in(310, ROOT, ROOT + 1, out);
            tree.fork(320, ROOT + 2, ROOT + 2, ROOT, ROOT + 1, out);
            tree.switch_out(330, ROOT + 1, true, out);
            tree.switch_in(340, ROOT + 2, ROOT + 2, out);
            tree.exec(350, ROOT + 2, b"cc", out);
            tree.exit(400, ROOT + 2, ROOT + 2, out);
            tree.switch_in(500, ROOT, ROOT, out);
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
            tree.exec(100, ROOT, b"a", out);
            tree.fork(200, ROOT, ROOT + 1, ROOT, ROOT, out);
            tree.switch_out(300, ROOT, false, out);
            tree.switch_in(310, ROOT, ROOT + 1, out);
            tree.exit(320, ROOT, ROOT, out);
            tree.exec(330, ROOT, b"b", out);
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
    fn what_is_missing_is_made_up_for_and_the_dead_stay_dead() {
        let text = story(|tree, out| {
            tree.exec(100, ROOT, b"a", out);
            tree.switch_out(200, ROOT, false, out);
            tree.switch_in(300, ROOT + 7, ROOT + 8, out);
            tree.switch_in(310, ROOT + 7, ROOT + 8, out);
            tree.switch_out(350, ROOT + 9, false, out);
            tree.exit(400, ROOT + 7, ROOT + 8, out);
            tree.exit(410, ROOT + 7, ROOT + 7, out);
            tree.switch_in(420, ROOT + 7, ROOT + 8, out);
            tree.switch_in(9_000, ROOT, ROOT, out);
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

    #[test]
    fn arguments_are_split_at_zero_bytes() {
        assert_eq!(split_arguments(b""), Vec::<String>::new());
        assert_eq!(split_arguments(b"sh\0-c\0\0"), ["sh", "-c", ""]);
        assert_eq!(split_arguments(b"title without end"), ["title without end"]);
        let long = split_arguments(&vec![b'x'; ARGUMENTS_BYTES_MAX as usize]);
        assert!(long[0].ends_with("x…"));
    }

    #[test]
    fn of_many_arguments_the_first_are_kept_and_the_last_of_them_says_so() {
        let arguments = split_arguments(&[0; ARGUMENTS_MAX]);
        assert!(arguments.len() == ARGUMENTS_MAX && arguments.iter().all(String::is_empty));
        let arguments = split_arguments(&[0; ARGUMENTS_MAX + 1]);
        assert_eq!((arguments.len(), arguments[ARGUMENTS_MAX - 1].as_str()), (ARGUMENTS_MAX, "…"));
    }

    #[test]
    fn arguments_that_find_no_place_are_counted() {
        let (mut out, seen) = testing::out(false);
        let mut all = AllArguments { bytes_left: 60, left_out: 0 };
        let lines: Vec<usize> = ["first", "second", "", "last"].map(|it| all.take(vec![it.to_owned()]).len()).to_vec();
        assert_eq!(lines, [1, 1, 0, 0]);
        all.tell_left_out(&mut out);
        all.tell_left_out(&mut out);
        let detail = "without their arguments: those of all programs take more than 64 MiB";
        assert_eq!(*seen.lock().unwrap(), [Observation::Loss(Loss::new(LossKind::UsageNotSeen, 2, detail))]);
    }
}
