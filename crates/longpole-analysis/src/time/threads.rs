//! Where each thread's life went: on a CPU, ready and without one, blocked and what for.
//!
//! ```text
//! thread   ├==on CPU==|..blocked: network..|==|::ready::|===|..blocked, not sampled....|==┤
//! known by  switch      a wait               switch, preempted    shorter than 5 ms
//! ```
//!
//! On-CPU, ready and blocked are exact, from switch records; without these, the scheduler's own totals give the first two. A sampled
//! wait ([`Wait`](longpole_model::Wait)) says what the thread was blocked for; other waits have only a length.

use std::collections::HashMap;

use longpole_model::{AddNanos, IdVec, Monotonic, PoleId, Recording, SumNanos, ThreadKey, WaitId, WaitKind};

/// Poles whose threads are looked for.
pub const POLES_MAX: usize = 16;

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
    /// In sampled waits: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_nanos: [u64; WaitKind::ALL.len()],
    /// Blocked, in waits that were not sampled.
    pub unseen_nanos: u64,
    /// Samples.
    pub samples: u64,
}

impl ThreadLife {
    /// Blocked, whatever for.
    pub fn blocked(&self) -> u64 {
        self.blocked_nanos.iter().sum_nanos::<u64>().saturating_add(self.unseen_nanos)
    }
}

/// What makes a thread worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Importance {
    /// Its place in the order in which threads matter: a list that is cut keeps the first.
    pub rank: usize,
    /// The pole that it has most time in.
    pub pole: Option<PoleId>,
    /// How much of the critical path it has in all poles.
    pub in_poles_nanos: u64,
    /// Its waits for locks, those of workers that wait for work left out.
    pub lock_nanos: u64,
    /// Its longest wait, with the same left out.
    pub longest_wait_nanos: u64,
}

/// What a thread has in poles.
#[derive(Debug, Clone, Copy, Default)]
struct InPoles {
    nanos: u64,
    /// The most that it has in one of them, and which that is.
    most: Option<(u64, std::cmp::Reverse<PoleId>)>,
}

/// What makes each of these threads matter. They are taken in turns by how much they work in poles, run, wait for locks, and by their
/// longest waits, so that none of these crowds out the others. `idle` says which waits are those of workers.
pub(crate) fn importance(
    recording: &Recording,
    idle: &IdVec<WaitId, bool>,
    lives: &[ThreadLife],
    in_pole: &HashMap<(ThreadKey, PoleId), u64>,
) -> Vec<Importance> {
    let mut locks: HashMap<ThreadKey, u64> = HashMap::new();
    let mut longest: HashMap<ThreadKey, u64> = HashMap::new();
    for (wait, &idle) in recording.waits.iter().zip(idle) {
        if idle {
            continue;
        }
        let thread = wait.thread();
        let most = longest.entry(thread).or_default();
        *most = wait.nanos().max(*most);
        if wait.kind == WaitKind::Lock {
            locks.entry(thread).or_default().add_nanos(wait.nanos());
        }
    }
    let mut poles: HashMap<ThreadKey, InPoles> = HashMap::new();
    for (&(thread, pole), &nanos) in in_pole {
        let sum = poles.entry(thread).or_default();
        sum.nanos.add_nanos(nanos);
        // The first pole among equals.
        sum.most = sum.most.max(Some((nanos, std::cmp::Reverse(pole))));
    }
    let about = |life: &ThreadLife| {
        let key = recording.threads[life.thread].thread();
        let in_poles = poles.get(&key).copied().unwrap_or_default();
        let of = |sums: &HashMap<ThreadKey, u64>| sums.get(&key).copied().unwrap_or(0);
        Importance {
            rank: 0,
            pole: in_poles.most.map(|(_, pole)| pole.0),
            in_poles_nanos: in_poles.nanos,
            lock_nanos: of(&locks),
            longest_wait_nanos: of(&longest),
        }
    };
    let mut all: Vec<Importance> = lives.iter().map(about).collect();
    let ways: [fn(&Importance, &ThreadLife) -> u64; 4] =
        [|about, _| about.in_poles_nanos, |_, life| life.on_cpu_nanos, |about, _| about.lock_nanos, |about, _| about.longest_wait_nanos];
    let ordered = |way: fn(&Importance, &ThreadLife) -> u64| {
        let mut order: Vec<usize> = (0..lives.len()).filter(|&i| way(&all[i], &lives[i]) > 0).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(way(&all[i], &lives[i])), i));
        order
    };
    let orders = ways.map(ordered);
    let turns = (0..lives.len()).flat_map(|turn| orders.iter().filter_map(move |order| order.get(turn).copied()));
    let mut rank = vec![None; lives.len()];
    let mut next = 0;
    for thread in turns.chain(0..lives.len()) {
        if rank[thread].is_none() {
            rank[thread] = Some(next);
            next += 1;
        }
    }
    for (about, rank) in all.iter_mut().zip(rank) {
        about.rank = rank.unwrap_or(next);
    }
    all
}

/// The threads of a recording, those with the most time on a CPU first.
pub fn lives(recording: &Recording) -> Vec<ThreadLife> {
    let mut threads: HashMap<ThreadKey, Vec<usize>> = HashMap::new();
    for (i, thread) in recording.threads.iter().enumerate() {
        threads.entry(thread.thread()).or_default().push(i);
    }
    threads.values_mut().for_each(|list| list.sort_by_key(|&i| recording.threads[i].start));
    // Where the kernel used a number again, the last thread that had started. A foreign file may use one a hundred thousand times.
    let thread_at = |thread: ThreadKey, at: Monotonic| {
        let list = threads.get(&thread)?;
        let started = list.partition_point(|&i| recording.threads[i].start <= at);
        list.get(started.saturating_sub(1)).copied()
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
        let Some(i) = thread_at(slice.thread(), slice.start) else { continue };
        lives[i].on_cpu_nanos.add_nanos(slice.end.nanos_since(slice.start));
        if let Some((since, preempted)) = left.insert(i, (slice.end, slice.preempted)) {
            let gap = slice.start.nanos_since(since);
            if preempted { lives[i].ready_nanos.add_nanos(gap) } else { lives[i].unseen_nanos.add_nanos(gap) }
        }
    }
    for (i, (since, preempted)) in left {
        let end = recording.threads[i].end.or(last_seen).unwrap_or(since);
        if !preempted {
            lives[i].unseen_nanos.add_nanos(end.nanos_since(since));
        }
    }
    for wait in &recording.waits {
        let Some(i) = thread_at(wait.thread(), wait.start) else { continue };
        lives[i].blocked_nanos[wait.kind as usize].add_nanos(wait.nanos());
        lives[i].unseen_nanos = lives[i].unseen_nanos.saturating_sub(wait.nanos());
    }
    for life in &mut lives {
        if let Some(totals) = recording.threads[life.thread].totals
            && life.on_cpu_nanos <= totals.on_cpu_nanos
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
        if let Some(i) = thread_at(sample.thread(), sample.time) {
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
    fn a_list_that_is_cut_keeps_who_works_in_poles_runs_waits_for_a_lock_and_waits_long() {
        let mut text = String::from("run x 0..100ms\n  a 0..100ms svc pid 1\n");
        text.push_str("wait 10..20ms pid 1 tid 2 network [a] main;fetch\nwait 0..30ms pid 1 tid 3 lock main;lock_it\n");
        text.push_str("wait 0..90ms pid 1 tid 4 sleep main;nap\nwait 0..99ms pid 1 tid 5 lock std::thread::park\n");
        (1..=6).for_each(|tid| text.push_str(&format!("thread t{tid} 0..100ms pid 1 tid {tid}\n")));
        text.push_str("cpu 0..9ms pid 1 tid 6\n");
        let report = crate::Report::new(text::parse(&text).unwrap());
        let lives = lives(report.recording());
        let mut ranked: Vec<(usize, u32)> = report
            .importance_of_threads(&lives)
            .iter()
            .zip(&lives)
            .map(|(about, life)| (about.rank, report.recording().threads[life.thread].tid))
            .collect();
        ranked.sort_unstable();
        let order: Vec<u32> = ranked.into_iter().map(|(_, tid)| tid).collect();
        assert_eq!(order, [2, 6, 3, 4, 1, 5]);
    }

    #[test]
    fn a_life_has_parts_that_add_up() {
        let mut recording = text::parse("run x 0..100ms\nwait 20..40ms pid 1 network main;recv\n").unwrap();
        let at = |millis: u64| Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000);
        let slice = |start, end, preempted| CpuSlice { pid: 1, tid: 1, start: at(start), end: at(end), preempted };
        recording.threads = vec![
            Thread { pid: 1, tid: 1, name: "main".to_owned(), start: at(0), end: Some(at(100)), totals: None, ident: None },
            Thread { pid: 1, tid: 2, name: "idle".to_owned(), start: at(0), end: None, totals: None, ident: None },
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
