//! Where each thread's life went: on a CPU, ready and without one, blocked and what for.
//!
//! ```text
//! thread   ├==on CPU==|..blocked: network..|==|::ready::|===|..blocked, not looked at..|==┤
//! known by  switch      a wait               switch, preempted    shorter than 5 ms
//! ```
//!
//! On-CPU, ready and blocked are exact, from switch records; where there are none, the scheduler's own totals tell the first two. What a thread was blocked for is known of those waits that were looked
//! at ([`Wait`](longpole_model::Wait)); of the rest only how long they were.

use std::collections::HashMap;

use longpole_model::{Monotonic, Recording, WaitKind};

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLife {
    /// Its place in `recording.threads`.
    pub thread: usize,
    /// From its first to its last moment.
    pub nanos: u64,
    /// On a CPU.
    pub on_cpu_nanos: u64,
    /// It could have run, and others had the CPUs.
    pub ready_nanos: u64,
    /// Blocked, and looked at: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_nanos: [u64; WaitKind::ALL.len()],
    /// Blocked, and not looked at.
    pub unseen_nanos: u64,
    /// Samples.
    pub samples: u64,
}

impl ThreadLife {
    /// Blocked, whatever for.
    pub fn blocked(&self) -> u64 {
        self.blocked_nanos.iter().sum::<u64>() + self.unseen_nanos
    }
}

/// The threads of a recording, those with the most time on a CPU first.
pub fn lives(recording: &Recording) -> Vec<ThreadLife> {
    let mut threads: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (i, thread) in recording.threads.iter().enumerate() {
        threads.entry((thread.pid, thread.tid)).or_default().push(i);
    }
    // Of a thread whose number the kernel used again, the last that had started.
    let thread_at = |pid: u32, tid: u32, at: Monotonic| {
        let list = threads.get(&(pid, tid))?;
        list.iter().rev().find(|&&i| recording.threads[i].start <= at).or(list.first()).copied()
    };
    let last_seen = recording.cpu_slices.iter().map(|slice| slice.end).chain(recording.waits.iter().map(|wait| wait.end)).max();
    let mut lives: Vec<ThreadLife> = recording
        .threads
        .iter()
        .enumerate()
        .map(|(thread, about)| ThreadLife {
            thread,
            nanos: about.end.or(last_seen).unwrap_or(about.start).nanos_since(about.start),
            on_cpu_nanos: 0,
            ready_nanos: 0,
            blocked_nanos: [0; WaitKind::ALL.len()],
            unseen_nanos: 0,
            samples: 0,
        })
        .collect();
    let mut left: HashMap<usize, (Monotonic, bool)> = HashMap::new();
    for slice in &recording.cpu_slices {
        let Some(i) = thread_at(slice.pid, slice.tid, slice.start) else { continue };
        lives[i].on_cpu_nanos += slice.end.nanos_since(slice.start);
        if let Some((since, preempted)) = left.insert(i, (slice.end, slice.preempted)) {
            let gap = slice.start.nanos_since(since);
            if preempted { lives[i].ready_nanos += gap } else { lives[i].unseen_nanos += gap }
        }
    }
    for (i, (since, preempted)) in left {
        let end = recording.threads[i].end.or(last_seen).unwrap_or(since);
        if !preempted {
            lives[i].unseen_nanos += end.nanos_since(since);
        }
    }
    for wait in &recording.waits {
        let Some(i) = thread_at(wait.pid, wait.tid, wait.start) else { continue };
        lives[i].blocked_nanos[wait.kind as usize] += wait.nanos();
        lives[i].unseen_nanos = lives[i].unseen_nanos.saturating_sub(wait.nanos());
    }
    for life in &mut lives {
        if let Some(totals) = recording.threads[life.thread].totals
            && life.on_cpu_nanos == 0
        {
            life.on_cpu_nanos = totals.on_cpu_nanos;
            life.ready_nanos = totals.ready_nanos;
            let known = life
                .blocked_nanos
                .iter()
                .fold(totals.on_cpu_nanos.saturating_add(totals.ready_nanos), |sum, nanos| sum.saturating_add(*nanos));
            life.unseen_nanos = life.nanos.saturating_sub(known);
        }
    }
    for sample in &recording.samples {
        if let Some(i) = thread_at(sample.pid, sample.tid, sample.time) {
            lives[i].samples += 1;
        }
    }
    lives.sort_by_key(|life| (std::cmp::Reverse((life.on_cpu_nanos, life.samples)), life.thread));
    lives
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{CpuSlice, Thread, ThreadTotals, text};

    #[test]
    fn a_life_has_parts_that_add_up() {
        let mut recording = text::parse("run x 0..100ms\nwait 20..40ms pid 1 network main;recv\n").unwrap();
        let at = |millis: u64| Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000);
        let slice = |start, end, preempted| CpuSlice { pid: 1, tid: 1, start: at(start), end: at(end), preempted };
        recording.threads = vec![
            Thread { pid: 1, tid: 1, name: "main".to_owned(), start: at(0), end: Some(at(100)), totals: None },
            Thread { pid: 1, tid: 2, name: "idle".to_owned(), start: at(0), end: None, totals: None },
        ];
        recording.cpu_slices = vec![slice(0, 20, false), slice(40, 50, true), slice(55, 60, false), slice(63, 100, true)];
        let lives = lives(&recording);
        let main = &lives[0];
        let millis = [main.on_cpu_nanos, main.ready_nanos, main.blocked_nanos[WaitKind::Network as usize], main.unseen_nanos, main.nanos];
        assert_eq!(millis.map(|nanos| nanos / 1_000_000), [72, 5, 20, 3, 100]);
        assert_eq!((lives[1].thread, lives[1].on_cpu_nanos, lives[1].nanos / 1_000_000), (1, 0, 100));
        recording.cpu_slices.clear();
        recording.threads[0].totals = Some(ThreadTotals { on_cpu_nanos: 30_000_000, ready_nanos: 7_000_000 });
        let main = &super::lives(&recording)[0];
        let millis = [main.on_cpu_nanos, main.ready_nanos, main.blocked_nanos[WaitKind::Network as usize], main.unseen_nanos, main.nanos];
        assert_eq!(millis.map(|nanos| nanos / 1_000_000), [30, 7, 20, 43, 100]);
    }
}
