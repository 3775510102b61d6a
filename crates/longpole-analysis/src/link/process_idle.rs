//! When a process of several threads is idle, and in which wait: one without a thread that is known to do its work.
//!
//! ```text
//! thread 7   =====|··· disk ·····················|====         the two ran most of the process's time on CPUs
//! thread 8   ==|=====|··· lock ·····················|==
//! thread 9   ··········· asleep, always ··············         ran next to nothing
//!                    ├── rests, for the disk ────┤
//! ```
//!
//! A process rests while no thread of it is on a CPU or could be, by switch records. All that are blocked then are so from before the rest
//! until its end or longer. It rests for what one of the threads waits for that do its work: the fewest that together ran
//! [`WORK_SHARE_PERCENT`] of its time on CPUs, and the others of their pools; of several for what comes from outside before what other threads have to do. Where none of
//! these was sampled, or all wait for work, another thread stands for the process, and for no span of it: it may wait for anything.
//!
//! A thread that waits again and again for others until a timeout is a timer of the program: OpenTelemetry's exporters look into their queue
//! each half a second. While a thread that does the work is idle, the process is.
//!
//! Where nobody recorded switches, the scheduler has counted what each thread ran in all, and who works is taken for busy but in the
//! waits that were sampled.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use longpole_model::{
    AddNanos, ContextRecord, CpuSlice, Id, IdVec, Monotonic, Recording, StackId, SumNanos, Thread, Wait, WaitId, WaitKind,
};

use crate::intervals;
use crate::link::wait_order::{FUTEX, blocked_rank};

/// Timeouts of one thread in one place that make it a timer.
const TIMEOUTS: usize = 4;

/// The threads that do the work ran this much of their process's time on CPUs.
const WORK_SHARE_PERCENT: u64 = 80;

/// A process that rests for what this wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIdle {
    pub(crate) from: Monotonic,
    pub(crate) to: Monotonic,
    /// Its place in `recording.waits`.
    pub(crate) wait: WaitId,
    /// A span of the process may rest for it, too: the thread is one of those that do the work, and no timer hides what another one waits for.
    pub(crate) works: bool,
}

/// The rests of these processes, by time. `idle` says which waits are for work, `pool` in which function of a known pool a stack waits for it.
pub(crate) fn intervals(
    recording: &Recording,
    pids: &HashSet<u32>,
    idle: &IdVec<WaitId, bool>,
    pool: impl Fn(StackId) -> Option<&'static str>,
) -> Vec<ProcessIdle> {
    let mut slices: HashMap<u32, Vec<&CpuSlice>> = HashMap::new();
    for slice in recording.cpu_slices.iter().filter(|slice| pids.contains(&slice.pid)) {
        slices.entry(slice.pid).or_default().push(slice);
    }
    let mut waits: HashMap<u32, Vec<WaitId>> = HashMap::new();
    for (i, wait) in recording.wait_ids().zip(&recording.waits) {
        let is_published = matches!(wait.context, ContextRecord::Span { .. } | ContextRecord::NoSpan);
        if pids.contains(&wait.pid) && (!idle[i] || wait.kind == WaitKind::Idle) && !is_published {
            waits.entry(wait.pid).or_default().push(i);
        }
    }
    let mut threads: HashMap<u32, Vec<&Thread>> = HashMap::new();
    for thread in recording.threads.iter().filter(|thread| waits.contains_key(&thread.pid)) {
        threads.entry(thread.pid).or_default().push(thread);
    }
    let mut out = Vec::new();
    for (pid, waits) in waits {
        let threads = threads.remove(&pid).unwrap_or_default();
        let guests = guests(pid, &threads);
        let (busy, workers) = match slices.get_mut(&pid) {
            Some(slices) => {
                slices.sort_by_key(|slice| (slice.tid, slice.start));
                (busy(slices), workers(slices.iter().map(|slice| (slice.tid, slice.end.nanos_since(slice.start)))))
            }
            None => {
                let workers = workers(threads.iter().filter_map(|thread| Some((thread.tid, thread.totals?.on_cpu_nanos))));
                let working = threads.into_iter().filter(|thread| workers.contains(&thread.tid));
                (but_in_waits(recording, working, &waits), workers)
            }
        };
        let workers = with_their_pools(recording, workers, &waits, &pool);
        of_process(recording, &busy, &waits, (&workers, &guests), &mut out);
    }
    out.sort_by_key(|interval| (interval.from, interval.wait));
    out
}

/// The fewest threads that ran most of the time.
fn workers(times: impl Iterator<Item = (u32, u64)>) -> HashSet<u32> {
    let mut ran: HashMap<u32, u64> = HashMap::new();
    for (tid, nanos) in times {
        ran.entry(tid).or_default().add_nanos(nanos);
    }
    let all: u64 = ran.values().sum_nanos();
    let mut ran: Vec<(u32, u64)> = ran.into_iter().collect();
    ran.sort_by_key(|(tid, nanos)| (Reverse(*nanos), *tid));
    let mut sum = 0;
    let is_needed = |(_, nanos): &(u32, u64)| {
        let needed = u128::from(sum) * 100 < u128::from(all) * u128::from(WORK_SHARE_PERCENT);
        sum.add_nanos(*nanos);
        needed
    };
    ran.into_iter().take_while(is_needed).map(|(tid, _)| tid).collect()
}

/// These threads, and those that wait for work in the same place as one of them: whichever of a pool is free takes what comes, as the threads of
/// Go's scheduler do.
fn with_their_pools(
    recording: &Recording,
    mut workers: HashSet<u32>,
    waits: &[WaitId],
    pool: impl Fn(StackId) -> Option<&'static str>,
) -> HashSet<u32> {
    // Threads of a known pool come to its function in different ways.
    let place_of = |stack: StackId| pool(stack).map_or((None, Some(stack)), |function| (Some(function), None));
    let mut known = HashMap::new();
    let mut place = |wait: &Wait| wait.stack.map(|stack| *known.entry(stack).or_insert_with(|| place_of(stack)));
    let waits = waits.iter().map(|wait| &recording.waits[*wait]).filter(|wait| wait.kind == WaitKind::Idle);
    let idle: Vec<_> = waits.filter_map(|wait| Some((wait.tid, place(wait)?))).collect();
    let pools: HashSet<_> = idle.iter().filter(|(tid, _)| workers.contains(tid)).map(|(_, place)| *place).collect();
    workers.extend(idle.iter().filter(|(_, place)| pools.contains(place)).map(|(tid, _)| *tid));
    workers
}

/// The threads of a process that came and went within half of its life: a thread for each request, say.
fn guests(pid: u32, threads: &[&Thread]) -> HashSet<u32> {
    let life = threads.iter().filter(|thread| thread.tid == pid).filter_map(|main| Some(main.end?.nanos_since(main.start))).max();
    let is_guest = |thread: &&&Thread| thread.end.zip(life).is_some_and(|(end, life)| end.nanos_since(thread.start) < life / 2);
    threads.iter().filter(is_guest).map(|thread| thread.tid).collect()
}

/// When some thread was on a CPU, or had to leave it and was not back; by time, those that touch joined. Slices stand by thread and start.
fn busy(slices: &[&CpuSlice]) -> Vec<(Monotonic, Monotonic)> {
    let mut busy: Vec<(Monotonic, Monotonic)> = Vec::with_capacity(slices.len());
    for (i, slice) in slices.iter().enumerate() {
        let next = slices.get(i + 1).filter(|next| slice.preempted && next.tid == slice.tid);
        // The last one of all ended because the recording did.
        busy.push((slice.start, next.map_or(slice.end, |next| next.start.max(slice.end))));
    }
    intervals::union(busy)
}

/// When one of these threads was alive and not in one of these waits, which stand by start.
fn but_in_waits<'a>(recording: &Recording, threads: impl Iterator<Item = &'a Thread>, waits: &[WaitId]) -> Vec<(Monotonic, Monotonic)> {
    let mut busy = Vec::new();
    let mut by_thread: HashMap<u32, Vec<&Wait>> = HashMap::new();
    for wait in waits.iter().map(|wait| &recording.waits[*wait]) {
        by_thread.entry(wait.tid).or_default().push(wait);
    }
    for thread in threads {
        let end = thread.end.unwrap_or(Monotonic(u64::MAX));
        let mut from = thread.start;
        // A number may be given again: what an earlier thread of that number waited for stands before.
        let own = by_thread.get(&thread.tid).map_or(&[][..], |waits| waits);
        let first = own.partition_point(|wait| wait.start < thread.start);
        for wait in own[first..].iter().take_while(|wait| wait.start <= end) {
            busy.push((from, wait.start.max(from)));
            from = from.max(wait.end);
        }
        busy.push((from, end.max(from)));
    }
    intervals::union(busy)
}

/// The places, each of a thread, in which it waited for others until a timeout [`TIMEOUTS`] times or more.
fn timers(recording: &Recording, waits: &[WaitId]) -> HashSet<(u32, StackId)> {
    let mut counts: HashMap<(u32, StackId), usize> = HashMap::new();
    for wait in waits.iter().map(|wait| &recording.waits[*wait]) {
        if let (WaitKind::Sleep, FUTEX, Some(stack)) = (wait.kind, wait.syscall.as_str(), wait.stack) {
            *counts.entry((wait.tid, stack)).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count >= TIMEOUTS);
    counts.into_keys().collect()
}

/// Between two times in which it is busy, what it waits for does not change.
fn of_process(
    recording: &Recording,
    busy: &[(Monotonic, Monotonic)],
    waits: &[WaitId],
    (workers, guests): (&HashSet<u32>, &HashSet<u32>),
    out: &mut Vec<ProcessIdle>,
) {
    let of = |wait: WaitId| -> &Wait { &recording.waits[wait] };
    // A thread that came later and went is a worker, too, even if it hardly computes: before it, the others may be idle.
    let is_idle = |wait: WaitId| of(wait).kind == WaitKind::Idle;
    let works = |wait: WaitId| workers.contains(&of(wait).tid) || (!is_idle(wait) && guests.contains(&of(wait).tid));
    let key = |wait: WaitId| (!works(wait), is_idle(wait), blocked_rank(of(wait).kind), wait);
    let timers = timers(recording, waits);
    let is_timer =
        |wait: WaitId| of(wait).kind == WaitKind::Sleep && of(wait).stack.is_some_and(|stack| timers.contains(&(of(wait).tid, stack)));
    let mut by_end: Vec<WaitId> = waits.to_vec();
    by_end.sort_by_key(|wait| of(*wait).end);
    let (mut starts, mut ends) = (waits.iter().copied().peekable(), by_end.into_iter().peekable());
    let mut open = BTreeSet::new();
    let ends_of_busy = busy.iter().map(|(_, to)| *to);
    let starts_of_busy = busy.iter().skip(1).map(|(from, _)| *from).chain([Monotonic(u64::MAX)]);
    for (from, to) in ends_of_busy.zip(starts_of_busy) {
        while let Some(wait) = starts.next_if(|wait| of(*wait).start <= from) {
            open.insert(key(wait));
        }
        while let Some(wait) = ends.next_if(|wait| of(*wait).end <= from) {
            open.remove(&key(wait));
        }
        // While the one that stands for all is idle, another one may begin to wait for something, and end.
        if let Some(&(.., first)) = open.first() {
            // The first thread that does the work and is idle.
            let idle = || {
                open.range((false, true, 0, WaitId::at(0))..).next().map(|(.., wait)| *wait).filter(|wait| is_idle(*wait) && works(*wait))
            };
            let instead = Some(first).filter(|first| is_timer(*first)).and_then(|_| idle());
            let wait = instead.unwrap_or(first);
            // A span that is open then waits for something else.
            let for_spans = instead.is_none() && workers.contains(&of(wait).tid);
            let to = to.min(of(wait).end);
            out.push(ProcessIdle { from, to, wait, works: for_spans });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    /// The rests of process 1, as `10..50 disk`; a star where the thread does no work.
    #[track_caller]
    fn check(lines: &str, expected: &[&str]) {
        let recording = text::parse(&format!("run x 0..100ms\n{lines}")).unwrap();
        let idle = crate::link::waits::idle(&recording);
        let millis = |at: Monotonic| at.nanos_since(text::ORIGIN_MONOTONIC) / 1_000_000;
        let words = |interval: &ProcessIdle| {
            let kind = recording.waits[interval.wait].kind.as_str();
            format!("{}..{} {kind}{}", millis(interval.from), millis(interval.to), if interval.works { "" } else { "*" })
        };
        let found: Vec<String> = intervals(&recording, &HashSet::from([1]), &idle, |stack| crate::link::waits::pool(&recording, stack))
            .iter()
            .map(words)
            .collect();
        assert_eq!(found, expected);
    }

    /// Two threads that work in turns, and both are blocked from 20 to 60 ms.
    const TWO: &str = "\
cpu 0..10ms pid 1 tid 7
cpu 10..20ms pid 1 tid 8
cpu 60..70ms pid 1 tid 7
cpu 80..90ms pid 1 tid 8
";

    #[test]
    fn a_process_rests_while_all_who_work_are_blocked_for_what_comes_from_outside() {
        let waits = "wait 10..60ms pid 1 tid 7 disk m\nwait 20..80ms pid 1 tid 8 lock m\n";
        check(&format!("{TWO}{waits}"), &["20..60 disk", "70..80 lock"]);
        // One of them was not sampled.
        check(&format!("{TWO}wait 20..80ms pid 1 tid 8 lock m\n"), &["20..60 lock", "70..80 lock"]);
    }

    #[test]
    fn who_runs_next_to_nothing_stands_for_nobody_else() {
        let sleeper = "cpu 15..16ms pid 1 tid 9\nwait 16..100ms pid 1 tid 9 network m\n";
        let waits = "wait 20..80ms pid 1 tid 8 lock m\n";
        check(&format!("{TWO}{sleeper}{waits}"), &["20..60 lock", "70..80 lock", "90..100 network*"]);
    }

    #[test]
    fn a_timer_keeps_no_server_from_being_idle() {
        // A server answers from 40 to 45 ms; its exporter looks into its queue each 15 ms.
        let server =
            "cpu 0..10ms pid 1 tid 7\nwait 10..40ms pid 1 tid 7 idle m\ncpu 40..45ms pid 1 tid 7\nwait 45..90ms pid 1 tid 7 idle m\n";
        let exporter = |call: &str| {
            let turn = |turn: u32| {
                let (from, to) = (9 + 15 * turn, 24 + 15 * turn);
                format!("wait {from}..{to}ms pid 1 tid 8 sleep in {call} e;export\ncpu {}..{}us pid 1 tid 8\n", to * 1000, to * 1000 + 500)
            };
            format!("{server}cpu 0..9ms pid 1 tid 8\n{}", (0..5).map(turn).collect::<String>())
        };
        let of_kind = |call: &str, kind: &str| {
            let recording = text::parse(&format!("run x 0..100ms\n{}", exporter(call))).unwrap();
            let idle = crate::link::waits::idle(&recording);
            let found = intervals(&recording, &HashSet::from([1]), &idle, |stack| crate::link::waits::pool(&recording, stack));
            found.iter().filter(|it| recording.waits[it.wait].kind.as_str() == kind).count()
        };
        assert_eq!((of_kind("futex", "sleep"), of_kind("futex", "idle")), (0, 7));
        // What sleeps works on something.
        assert_eq!((of_kind("clock_nanosleep", "sleep"), of_kind("clock_nanosleep", "idle")), (6, 1));
    }

    #[test]
    fn a_thread_of_a_pool_works_however_little_it_ran() {
        // Thread 9 sleeps for a task that others then go on with; before, it waited for work where they do.
        let idle = "wait 20..60ms pid 1 tid 7 idle pool;take\nwait 20..60ms pid 1 tid 8 idle pool;take\n";
        let ninth = |place: &str| {
            format!("cpu 15..16ms pid 1 tid 9\nwait 1..15ms pid 1 tid 9 idle {place}\nwait 16..58ms pid 1 tid 9 sleep task;nap\n")
        };
        check(&format!("{TWO}{idle}{}", ninth("pool;take")), &["20..58 sleep"]);
        check(&format!("{TWO}{idle}{}", ninth("other;take")), &["20..60 idle"]);
        let go = idle.replace("pool;take", "runtime.mstart;runtime.stopm");
        check(&format!("{TWO}{go}{}", ninth("runtime.park_m;runtime.stopm")), &["20..58 sleep"]);
    }

    #[test]
    fn who_wants_a_cpu_does_not_rest() {
        let preempted = TWO.replace("cpu 10..20ms pid 1 tid 8", "cpu 10..20ms pid 1 tid 8 preempted");
        check(&format!("{preempted}wait 10..60ms pid 1 tid 7 disk m\n"), &[]);
    }

    #[test]
    fn workers_that_wait_for_work_rest_for_nothing() {
        let waits = "wait 10..60ms pid 1 tid 7 lock m;std::thread::park\nwait 20..80ms pid 1 tid 8 lock m;std::thread::park\n";
        check(&format!("{TWO}{waits}"), &[]);
    }

    #[test]
    fn another_process_does_not_count() {
        check(&format!("{TWO}cpu 30..40ms pid 2 tid 2\nwait 10..60ms pid 1 tid 7 disk m\n"), &["20..60 disk"]);
    }

    #[test]
    fn where_only_totals_are_known_who_works_is_busy_but_in_its_waits() {
        let lines = "run x 0..100ms\nthread main 0..100ms pid 1 tid 1\nthread helper 0..100ms pid 1 tid 7\n\
                     wait 20..60ms pid 1 tid 1 lock m\nwait 0..90ms pid 1 tid 7 sleep m\n";
        let rests_of = |totals: [u64; 2]| -> Vec<(u64, u64, bool)> {
            let mut recording = text::parse(lines).unwrap();
            for (thread, on_cpu_nanos) in recording.threads.iter_mut().zip(totals) {
                thread.totals = Some(longpole_model::ThreadTotals { on_cpu_nanos, ready_nanos: 0 });
            }
            let idle = crate::link::waits::idle(&recording);
            let millis = |at: Monotonic| at.nanos_since(text::ORIGIN_MONOTONIC) / 1_000_000;
            let found = intervals(&recording, &HashSet::from([1]), &idle, |stack| crate::link::waits::pool(&recording, stack));
            found.iter().map(|interval| (millis(interval.from), millis(interval.to), interval.works)).collect()
        };
        assert_eq!(rests_of([900, 1]), [(20, 60, true)], "the helper runs next to nothing");
        assert_eq!(rests_of([500, 500]), [(20, 60, true)], "both work, and both are blocked");
        assert_eq!(rests_of([0, 0]), [], "nothing was counted");
    }
}
