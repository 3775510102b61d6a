//! Where each thread's life went: on a CPU, ready and without one, blocked and what for.
//!
//! ```text
//! thread   ├==on CPU==|..blocked: network..|==|::ready::|===|..blocked, not sampled....|==┤
//! known by  switch      a wait               switch, preempted    shorter than 5 ms
//! ```
//!
//! On-CPU, ready and blocked are exact, from switch records; without these, the scheduler's own totals give the first two. A sampled
//! wait ([`Wait`]) says what the thread was blocked for; other waits have only a length.

use std::collections::HashMap;

use longpole_model::{IdVec, Monotonic, PoleId, Recording, ThreadKey, Timestamp, UnsignedNanos, Wait, WaitId, WaitKind};

use crate::{intervals, window};

/// Poles whose threads are looked for.
pub const POLES_MAX: usize = 16;

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLife {
    /// Its place in `recording.threads`.
    pub thread: usize,
    /// From its first to its last moment.
    pub nanos: UnsignedNanos,
    /// On a CPU.
    pub on_cpu: UnsignedNanos,
    /// It could have run, and others had the CPUs.
    pub ready: UnsignedNanos,
    /// In sampled waits: by kind, in the order of [`WaitKind::ALL`].
    pub blocked_seen: [UnsignedNanos; WaitKind::ALL.len()],
    /// Blocked, in waits that were not sampled.
    pub unseen: UnsignedNanos,
    /// Samples.
    pub samples: u64,
    /// `on_cpu` is the time that its samples stand for: neither switch records nor the scheduler's totals tell of it. Its ready
    /// time is unknown, and of its blocked time only sampled waits are known.
    pub is_estimate: bool,
}

/// What makes a thread worth a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Importance {
    /// Its place in the order in which threads matter: a list that is cut keeps the first.
    pub rank: usize,
    /// The pole that it has most time in.
    pub pole: Option<PoleId>,
    /// All poles that it has time in, the first pole first.
    pub poles: Vec<PoleId>,
    /// How much of the critical path it has in all poles.
    pub in_poles: UnsignedNanos,
    /// Its waits for locks, those of workers that wait for work left out.
    pub locks: UnsignedNanos,
    /// Its longest wait, with the same left out.
    pub longest_wait: UnsignedNanos,
}

/// What a thread has in poles.
#[derive(Debug, Clone, Default)]
struct InPoles {
    nanos: UnsignedNanos,
    poles: Vec<PoleId>,
    /// The most that it has in one of them, and which that is.
    most: Option<(UnsignedNanos, std::cmp::Reverse<PoleId>)>,
}

/// What makes each of these threads matter. They are taken in turns by how much they work in poles, run, wait for locks, and by their
/// longest waits, so that none of these crowds out the others. `idle` says which waits are those of workers.
pub(crate) fn importance(
    recording: &Recording,
    idle: &IdVec<WaitId, bool>,
    lives: &[ThreadLife],
    in_pole: &HashMap<(ThreadKey, PoleId), UnsignedNanos>,
) -> Vec<Importance> {
    let mut locks: HashMap<ThreadKey, UnsignedNanos> = HashMap::new();
    let mut longest: HashMap<ThreadKey, UnsignedNanos> = HashMap::new();
    for (wait, &idle) in recording.waits.iter().zip(idle) {
        if idle {
            continue;
        }
        let thread = wait.thread();
        let most = longest.entry(thread).or_default();
        *most = length(wait).max(*most);
        if matches!(wait.kind, WaitKind::Lock | WaitKind::Queue) {
            *locks.entry(thread).or_default() += length(wait);
        }
    }
    let mut poles: HashMap<ThreadKey, InPoles> = HashMap::new();
    for (&(thread, pole), &nanos) in in_pole {
        if nanos == UnsignedNanos::ZERO {
            continue;
        }
        let sum = poles.entry(thread).or_default();
        sum.nanos += nanos;
        sum.poles.push(pole);
        // The first pole among equals.
        sum.most = sum.most.max(Some((nanos, std::cmp::Reverse(pole))));
    }
    poles.values_mut().for_each(|sum| sum.poles.sort_unstable());
    let about = |life: &ThreadLife| {
        let key = recording.threads[life.thread].thread();
        let in_poles = poles.get(&key).cloned().unwrap_or_default();
        let of = |sums: &HashMap<ThreadKey, UnsignedNanos>| sums.get(&key).copied().unwrap_or_default();
        Importance {
            rank: 0,
            pole: in_poles.most.map(|(_, pole)| pole.0),
            poles: in_poles.poles,
            in_poles: in_poles.nanos,
            locks: of(&locks),
            longest_wait: of(&longest),
        }
    };
    let mut all: Vec<Importance> = lives.iter().map(about).collect();
    let ways: [fn(&Importance, &ThreadLife) -> UnsignedNanos; 4] =
        [|about, _| about.in_poles, |_, life| life.on_cpu, |about, _| about.locks, |about, _| about.longest_wait];
    let ordered = |way: fn(&Importance, &ThreadLife) -> UnsignedNanos| {
        let mut order: Vec<usize> = (0..lives.len()).filter(|&i| way(&all[i], &lives[i]) > UnsignedNanos::ZERO).collect();
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

/// The threads of a recording, those with the most time on a CPU first. Where switch records and totals are missing, samples give that time.
pub fn lives(recording: &Recording) -> Vec<ThreadLife> {
    lives_between(recording, None)
}

/// The threads that lived in a range of time, with what they did in it. Where switch records are missing, samples give the time on CPUs.
pub fn lives_in(recording: &Recording, range: (Timestamp, Timestamp)) -> Vec<ThreadLife> {
    let mut lives = lives_between(recording, Some(range));
    lives.retain(|life| life.nanos > UnsignedNanos::ZERO);
    lives
}

fn lives_between(recording: &Recording, range: Option<(Timestamp, Timestamp)>) -> Vec<ThreadLife> {
    let within = |start: Monotonic, end: Monotonic| match range {
        None => between(start, end),
        Some(range) => {
            let time = recording.clock.to_unix(start).zip(recording.clock.to_unix(end)).and_then(|time| intervals::clip(time, range));
            time.map_or(UnsignedNanos::ZERO, |(from, to)| UnsignedNanos(to.nanos_since(from).max(0).cast_unsigned()))
        }
    };
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
            nanos: within(about.start, about.end.or(last_seen).unwrap_or(about.start)),
            on_cpu: UnsignedNanos::ZERO,
            ready: UnsignedNanos::ZERO,
            blocked_seen: [UnsignedNanos::ZERO; WaitKind::ALL.len()],
            unseen: UnsignedNanos::ZERO,
            samples: 0,
            is_estimate: false,
        })
        .collect();
    let mut left: HashMap<usize, (Monotonic, bool)> = HashMap::new();
    for slice in &recording.cpu_slices {
        let Some(i) = thread_at(slice.thread(), slice.start) else { continue };
        lives[i].on_cpu += within(slice.start, slice.end);
        if let Some((since, preempted)) = left.insert(i, (slice.end, slice.preempted)) {
            let gap = within(since, slice.start);
            if preempted { lives[i].ready += gap } else { lives[i].unseen += gap }
        }
    }
    let mut has_switches = vec![false; lives.len()];
    for (i, (since, preempted)) in left {
        has_switches[i] = true;
        let end = recording.threads[i].end.or(last_seen).unwrap_or(since);
        if !preempted {
            lives[i].unseen += within(since, end);
        }
    }
    for wait in &recording.waits {
        let Some(i) = thread_at(wait.thread(), wait.start) else { continue };
        let waited = within(wait.start, wait.end);
        lives[i].blocked_seen[wait.kind as usize] += waited;
        lives[i].unseen -= waited;
    }
    if range.is_none() {
        add_totals(recording, &mut lives);
    }
    let mut sampled = vec![UnsignedNanos::ZERO; lives.len()];
    for sample in &recording.samples {
        let is_inside = |(from, to)| recording.clock.to_unix(sample.time).is_some_and(|at| from <= at && at < to);
        if range.is_some_and(|range| !is_inside(range)) {
            continue;
        }
        if let Some(i) = thread_at(sample.thread(), sample.time) {
            lives[i].samples += 1;
            sampled[i] += UnsignedNanos(sample.weight_nanos);
        }
    }
    for ((life, sampled), has_switches) in lives.iter_mut().zip(sampled).zip(has_switches) {
        if !has_switches && (range.is_some() || life.on_cpu == UnsignedNanos::ZERO) && sampled > UnsignedNanos::ZERO {
            life.is_estimate = true;
            // Threads of a profile without times have no length.
            life.on_cpu = if life.nanos > UnsignedNanos::ZERO { sampled.min(life.nanos) } else { sampled };
        }
    }
    lives.sort_by_key(|life| (std::cmp::Reverse((life.on_cpu, life.samples)), life.thread));
    lives
}

/// What the scheduler and the kernel's accounts know of whole lives, where switch records are missing.
fn add_totals(recording: &Recording, lives: &mut [ThreadLife]) {
    for life in &mut *lives {
        if let Some(totals) = recording.threads[life.thread].totals
            && life.on_cpu <= UnsignedNanos(totals.on_cpu_nanos)
        {
            life.on_cpu = UnsignedNanos(totals.on_cpu_nanos);
            life.ready = UnsignedNanos(totals.ready_nanos);
            let known = life.on_cpu + life.ready + life.blocked_seen.iter().sum();
            life.unseen = life.nanos - known;
        }
    }
    let read = cpu_of_single_threads(recording);
    for life in lives {
        let cpu = read.get(&recording.threads[life.thread].pid).copied().unwrap_or_default();
        let known = life.ready + life.unseen + life.blocked_seen.iter().sum();
        life.on_cpu = life.on_cpu.max(cpu.min(life.nanos - known));
    }
}

/// For each process of one thread the CPU time of its last reading: it is the thread's, also if switch records are missing. Nothing for a
/// recording of processes that ran before it, because readings count from their start.
fn cpu_of_single_threads(recording: &Recording) -> HashMap<u32, UnsignedNanos> {
    let mut read: HashMap<u32, UnsignedNanos> = HashMap::new();
    if window::is_attached(recording) {
        return read;
    }
    for usage in &recording.process_usage {
        let most = read.entry(usage.pid).or_default();
        *most = UnsignedNanos(usage.cpu_nanos).max(*most);
    }
    let mut threads: HashMap<u32, usize> = HashMap::new();
    recording.threads.iter().for_each(|thread| *threads.entry(thread.pid).or_default() += 1);
    read.retain(|pid, _| threads.get(pid) == Some(&1));
    read
}

fn length(wait: &Wait) -> UnsignedNanos {
    UnsignedNanos(wait.nanos())
}

fn between(start: Monotonic, end: Monotonic) -> UnsignedNanos {
    UnsignedNanos(end.nanos_since(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{CpuSlice, ProcessUsage, Thread, ThreadTotals, text};

    #[test]
    fn a_thread_without_later_switch_records_had_the_cpu_time_of_its_process() {
        let rows = "run make 0..100ms pid 1\nthread as 10..40ms pid 2 tid 2\ncpu 10..11ms pid 2 preempted\n";
        let mut recording = text::parse(rows).unwrap();
        let usage = |cpu_nanos| ProcessUsage {
            pid: 2,
            time: Monotonic(39_000_000),
            memory: None,
            cpu_nanos,
            minor_faults: 0,
            major_faults: 0,
            io: None,
        };
        let on_cpu = |recording: &Recording| lives(recording)[0].on_cpu;
        assert_eq!(on_cpu(&recording), UnsignedNanos(1_000_000));
        recording.process_usage = vec![usage(3_000_000)];
        assert_eq!(on_cpu(&recording), UnsignedNanos(3_000_000));
        recording.process_usage = vec![usage(90_000_000)];
        assert_eq!(on_cpu(&recording), UnsignedNanos(30_000_000), "no more than it lived");
        recording.threads.push(Thread { tid: 3, ..recording.threads[0].clone() });
        assert_eq!(on_cpu(&recording), UnsignedNanos(1_000_000), "the process has two");
    }

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
        let millis = [main.on_cpu, main.ready, main.blocked_seen[WaitKind::Network as usize], main.unseen, main.nanos];
        assert_eq!(millis.map(|time| time.0 / 1_000_000), [72, 5, 20, 3, 100]);
        assert_eq!((lives[1].thread, lives[1].on_cpu, lives[1].nanos.0 / 1_000_000), (1, UnsignedNanos::ZERO, 100));
        let range = |from: i64, to: i64| {
            let origin = recording.clock.to_unix(at(0)).unwrap();
            (origin.plus_nanos(from * 1_000_000), origin.plus_nanos(to * 1_000_000))
        };
        assert_eq!(super::lives_in(&recording, range(0, 100)), lives, "the whole is the same");
        let main = &super::lives_in(&recording, range(30, 62))[0];
        let millis = [main.on_cpu, main.ready, main.blocked_seen[WaitKind::Network as usize], main.unseen, main.nanos];
        assert_eq!(millis.map(|time| time.0 / 1_000_000), [15, 5, 10, 2, 32]);
        recording.cpu_slices.clear();
        recording.threads[0].totals = Some(ThreadTotals { on_cpu_nanos: 30_000_000, ready_nanos: 7_000_000 });
        let main = &super::lives(&recording)[0];
        let millis = [main.on_cpu, main.ready, main.blocked_seen[WaitKind::Network as usize], main.unseen, main.nanos];
        assert_eq!(millis.map(|time| time.0 / 1_000_000), [30, 7, 20, 43, 100]);
    }
}
