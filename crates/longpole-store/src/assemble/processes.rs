//! The processes and threads of a run, dead and alive.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use longpole_model::process::{CpuSlice, Process, Thread, ThreadTotals};
use longpole_model::time::{Clock, Monotonic, Timestamp};
use longpole_model::{Attributes, Exit, Resource, Sample};

/// Longest chain of ancestors that is followed.
const ANCESTORS_MAX: usize = 1 << 10;

/// The processes and threads of the run, dead and alive.
#[derive(Debug, Default)]
pub(super) struct ProcessesBuilder {
    pub(super) root_pid: Option<u32>,
    pub(super) processes: Vec<Process>,
    /// Processes that have not ended, by pid.
    living: HashMap<u32, usize>,
    pub(super) threads: Vec<Thread>,
    /// Threads that have not ended, by pid and tid: those of a process lie together.
    living_threads: BTreeMap<(u32, u32), usize>,
    /// The last process of each pid and thread of each pid and tid, dead or alive.
    pub(super) last: HashMap<u32, usize>,
    last_threads: HashMap<(u32, u32), usize>,
    /// How processes ended: pid, when, how.
    pub(super) statuses: Vec<(u32, Monotonic, Exit)>,
    /// Where processes take connections: pid, address.
    pub(super) listens: Vec<(u32, SocketAddr)>,
    /// What interpreters call threads: pid, tid, ident.
    pub(super) idents: Vec<(u32, u32, u64)>,
    /// What processes say of themselves: pid, when it was read, what. It comes before what the kernel's records of that time tell.
    pub(super) resources: Vec<(u32, Monotonic, Attributes)>,
}

impl ProcessesBuilder {
    /// Nobody yet. The command is this process, where that is known.
    pub(super) fn of(root_pid: Option<u32>) -> Self {
        ProcessesBuilder { root_pid, ..ProcessesBuilder::default() }
    }

    pub(super) fn process_started(&mut self, pid: u32, parent_pid: Option<u32>, time: Monotonic) {
        // The kernel gives a pid again only after its process is gone: if the exit went unseen, it was before now.
        self.process_exited(pid, time);
        // A forked process is a copy of its parent until it executes something.
        let parent = parent_pid.and_then(|parent| self.living.get(&parent)).map(|&at| &self.processes[at]);
        let program = parent.map(|it| (it.name.clone(), it.executable.clone(), it.arguments.clone())).unwrap_or_default();
        self.push_process(pid, parent_pid, program, time);
    }

    fn push_process(&mut self, pid: u32, parent_pid: Option<u32>, program: (String, Arc<str>, Arc<[String]>), start: Monotonic) {
        let (name, executable, arguments) = program;
        self.living.insert(pid, self.processes.len());
        self.last.insert(pid, self.processes.len());
        self.push_thread(pid, pid, name.clone(), start);
        self.processes.push(Process {
            pid,
            parent_pid,
            name,
            executable,
            arguments,
            start,
            end: None,
            execed: false,
            exit: None,
            listens: Vec::new(),
            resource: Resource::default(),
        });
    }

    fn push_thread(&mut self, pid: u32, tid: u32, name: String, start: Monotonic) {
        self.living_threads.insert((pid, tid), self.threads.len());
        self.last_threads.insert((pid, tid), self.threads.len());
        self.threads.push(Thread { pid, tid, name, start, end: None, totals: None, ident: None });
    }

    /// The living process of this pid. One whose fork went unseen is taken for a child of the command, because
    /// everything the recorder sees descends from it; which program it runs is not known.
    fn process(&mut self, pid: u32, time: Monotonic) -> &mut Process {
        if !self.living.contains_key(&pid) {
            let parent_pid = self.root_pid.filter(|root| *root != pid);
            self.push_process(pid, parent_pid, Default::default(), time);
        }
        &mut self.processes[self.living[&pid]]
    }

    fn thread(&mut self, pid: u32, tid: u32, time: Monotonic) -> &mut Thread {
        let name = self.process(pid, time).name.clone();
        if !self.living_threads.contains_key(&(pid, tid)) {
            self.push_thread(pid, tid, name, time);
        }
        &mut self.threads[self.living_threads[&(pid, tid)]]
    }

    pub(super) fn process_exec(&mut self, pid: u32, time: Monotonic, name: String, executable: String, arguments: Vec<String>) {
        let process = self.process(pid, time);
        // The command itself begins with its first exec: what it did before was ours (waiting for the gate).
        let begins = process.parent_pid.is_none() && !process.execed;
        if begins {
            process.start = time;
        }
        process.name.clone_from(&name);
        process.executable = executable.into();
        process.arguments = arguments.into();
        process.execed = true;
        let began = process.start;
        // What a short process executed is known only when it ends, after its first thread has.
        let ended = self.last_threads.get(&(pid, pid)).copied().filter(|&at| self.threads[at].start >= began);
        let main = match ended {
            Some(at) => &mut self.threads[at],
            None => self.thread(pid, pid, time),
        };
        main.name = name;
        if begins {
            main.start = time;
        }
    }

    /// Where ends were found by looking, the last look comes after the run: what it found had ended by then.
    pub(super) fn end_by(&mut self, end: Timestamp, clock: &Clock) {
        let lives = self.processes.iter_mut().map(|process| (process.start, &mut process.end));
        for (start, life_end) in lives.chain(self.threads.iter_mut().map(|thread| (thread.start, &mut thread.end))) {
            let Some(at) = life_end else { continue };
            let late = clock.to_unix(*at).map_or(0, |at| at.nanos_since(end));
            *at = Monotonic(at.0.saturating_sub(late.max(0).cast_unsigned())).max(start);
        }
    }

    pub(super) fn process_exited(&mut self, pid: u32, time: Monotonic) {
        let Some(at) = self.living.remove(&pid) else { return };
        self.processes[at].end = Some(time);
        let own: Vec<((u32, u32), usize)> = self.living_threads.range((pid, 0)..=(pid, u32::MAX)).map(|(id, at)| (*id, *at)).collect();
        for (id, at) in own {
            self.threads[at].end = Some(time);
            self.living_threads.remove(&id);
        }
    }

    pub(super) fn thread_started(&mut self, pid: u32, tid: u32, time: Monotonic) {
        // The main thread came with its process.
        if tid != pid {
            self.thread_exited(pid, tid, time);
        }
        self.thread(pid, tid, time);
    }

    pub(super) fn thread_named(&mut self, pid: u32, tid: u32, name: String) {
        // Where none lives, the last that did.
        match self.last_threads.get(&(pid, tid)).copied() {
            Some(at) => self.threads[at].name.clone_from(&name),
            None => {
                // A rename has no time. The start of its process is the earliest the thread can have begun.
                let start = self.living.get(&pid).map_or(Monotonic(0), |&at| self.processes[at].start);
                self.thread(pid, tid, start).name.clone_from(&name);
            }
        }
        if pid == tid
            && let Some(process) = self.last.get(&pid).and_then(|at| self.processes.get_mut(*at))
        {
            process.name = name;
        }
    }

    pub(super) fn thread_exited(&mut self, pid: u32, tid: u32, time: Monotonic) {
        if let Some(at) = self.living_threads.remove(&(pid, tid)) {
            self.threads[at].end = Some(time);
        }
    }

    pub(super) fn thread_totals(&mut self, pid: u32, tid: u32, totals: ThreadTotals) {
        if let Some(at) = self.living_threads.get(&(pid, tid)) {
            self.threads[*at].totals = Some(totals);
        }
    }

    /// The processes of each pid.
    fn of_pid(&self) -> HashMap<u32, Vec<usize>> {
        let mut of_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, process) in self.processes.iter().enumerate() {
            of_pid.entry(process.pid).or_default().push(at);
        }
        of_pid
    }

    /// Gives processes their exit status, which may come before their end or long after: to the last process of that pid that had started.
    /// The command's own status is known in any case.
    pub(super) fn place_statuses(&mut self, exit: Option<Exit>) {
        let of_pid = self.of_pid();
        for (pid, time, exit) in std::mem::take(&mut self.statuses) {
            let started = of_pid.get(&pid).into_iter().flatten().rev().find(|at| self.processes[**at].start <= time);
            if let Some(&at) = started {
                self.processes[at].exit = Some(exit);
            }
        }
        let root = self.processes.iter_mut().find(|process| Some(process.pid) == self.root_pid && process.parent_pid.is_none());
        if let Some(root) = root {
            root.exit = root.exit.or(exit);
        }
    }

    /// Gives processes the addresses where they take connections. An address of a pid holds for every process with that pid.
    pub(super) fn place_listens(&mut self) {
        let mut known = HashSet::new();
        let mut listens: HashMap<u32, Vec<SocketAddr>> = HashMap::new();
        for (pid, address) in std::mem::take(&mut self.listens) {
            if known.insert((pid, address)) {
                listens.entry(pid).or_default().push(address);
            }
        }
        for process in &mut self.processes {
            process.listens = listens.get(&process.pid).cloned().unwrap_or_default();
        }
    }

    /// Gives processes their resources, the last one that each published.
    pub(super) fn place_resources(&mut self) {
        if self.resources.is_empty() {
            return;
        }
        let of_pid = self.of_pid();
        for (pid, time, attributes) in std::mem::take(&mut self.resources) {
            let lived = |process: &Process| process.start <= time && process.end.is_none_or(|end| time <= end);
            let mut rows = of_pid.get(&pid).into_iter().flatten().rev();
            if let Some(&at) = rows.find(|at| lived(&self.processes[**at])) {
                self.processes[at].resource = Resource { attributes };
            }
        }
    }

    /// Gives threads the ident of their interpreter, the first one that came.
    pub(super) fn place_idents(&mut self) {
        let mut known: HashMap<(u32, u32), u64> = HashMap::new();
        for (pid, tid, ident) in std::mem::take(&mut self.idents) {
            known.entry((pid, tid)).or_insert(ident);
        }
        for thread in &mut self.threads {
            thread.ident = known.get(&(thread.pid, thread.tid)).copied();
        }
    }

    /// Adds processes and threads that were sampled or switched without ever having been announced.
    ///
    /// Only here at the end: while observations still come, one that is a little out of order is no stranger.
    pub(super) fn add_unseen(&mut self, samples: &[Sample], slices: &[CpuSlice]) {
        let mut known: HashSet<(u32, u32)> = self.threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
        let known_pids: HashSet<u32> = self.processes.iter().map(|process| process.pid).collect();
        let mut first_seen: Vec<(Monotonic, u32, u32)> = Vec::new();
        let seen = slices.iter().map(|it| (it.start, it.pid, it.tid)).chain(samples.iter().map(|it| (it.time, it.pid, it.tid)));
        for (time, pid, tid) in seen {
            if known.insert((pid, tid)) {
                first_seen.push((time, pid, tid));
            }
        }
        first_seen.sort_by_key(|(time, ..)| *time);
        for (time, pid, tid) in first_seen {
            if known_pids.contains(&pid) {
                // Its process may have ended meanwhile; the thread is added without waking it.
                let name = self.last.get(&pid).map_or(String::new(), |at| self.processes[*at].name.clone());
                self.threads.push(Thread { pid, tid, name, start: time, end: None, totals: None, ident: None });
            } else {
                self.thread(pid, tid, time);
            }
        }
    }

    /// Whether this process started that one, or one that did.
    pub(super) fn is_above(&self, pid: u32, of: u32) -> bool {
        let parent = |pid: &u32| self.last.get(pid).and_then(|at| self.processes[*at].parent_pid);
        of != pid && std::iter::successors(Some(of), parent).take(ANCESTORS_MAX).any(|ancestor| ancestor == pid)
    }
}
