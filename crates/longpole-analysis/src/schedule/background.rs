//! Processes that nobody waited for when they ended: they ran beside the process that started them.
//!
//! ```text
//! parent     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓┤     ▓ on a CPU
//!   helper       ├──────────────────┤                 the parent was busy: without it the parent ends when it did
//! parent     ▓▓▓▓▓····················▓▓▓▓▓▓▓▓▓▓▓▓┤    · blocked
//!   command      ├──────────────────┤                 its end let the parent go on
//! parent     ▓▓▓▓▓····················▓▓▓▓▓·········▓▓▓┤    it waited for the command, and then for the end of the thread
//!   thread   ───▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓┤       without the command the thread ends when it did
//!   command      ├──────────────────┤
//! ```
//!
//! By default a parent waits for its children, and the last one to end is on the critical path. The switch records of a process show
//! when it did not wait: no thread of the parent was blocked, at the end of the child, on anything that the end of a child can release.
//! If the main thread waits for the end of another thread, only that thread counts, because the process waits for it. That also holds
//! if the wait begins after the child has ended, the thread is older than the child, and nothing that the main thread did in between
//! let the thread go on. Without such records the default holds.

use std::collections::HashMap;

use longpole_model::{CpuSlice, Monotonic, NodeId, Recording, Wait, WaitKind};

use crate::tree::forest::{Forest, NodeSource};

/// Threads and joins that are compared with children, and threads with joins. More take seconds; then every child counts as waited for.
const COMPARED_MAX: usize = 20_000_000;

/// A process closes its pipes before it has ended, so who reads them may run that long before.
const CLOSED_BEFORE_NANOS: u64 = 20_000_000;

/// A thread that the end of a process releases has a CPU after that time, at most; one that polls has noticed.
const RELEASED_WITHIN_NANOS: u64 = 60_000_000;

/// A parent that was blocked for less than this, or for less than that part of a shorter life of its child, hardly waited.
const WAITED_NANOS_MIN: u64 = 20_000_000;
const WAITED_PART: u64 = 4;

/// How long before a thread goes on it may have been let, and how far apart the end of a wait for a thread and that of the thread may be.
const WAKE_NANOS: u64 = 10_000_000;

/// Threads that wait for the end of the next one; programs of more are not seen.
const JOINS_MAX: usize = 16;

/// Gaps of a thread that are compared with one end. A thread that has more of them in [`CLOSED_BEFORE_NANOS`] waits for nothing long.
const GAPS_MAX: usize = 64;

/// The nodes of processes whose parent, a process too, did not wait for their end.
pub(crate) fn background(recording: &Recording, forest: &Forest) -> Vec<NodeId> {
    if recording.cpu_slices.is_empty() {
        return Vec::new();
    }
    let parent_of = |node: NodeId| {
        let parent = forest[node].parent?;
        let is_process = !matches!(forest[parent].source, NodeSource::Span(_));
        forest.process(recording, parent).filter(|_| is_process)
    };
    let children: Vec<(NodeId, Child, u32)> = forest
        .ids()
        .skip(1)
        .filter_map(|node| {
            let NodeSource::Process(row) = forest[node].source else { return None };
            let child = &recording.processes[row];
            let end = child.end?;
            Some((node, Child { start: child.start, end }, parent_of(node)?.pid))
        })
        .collect();
    let mut threads: HashMap<u32, Threads<'_>> = children.iter().map(|&(.., pid)| (pid, Threads::default())).collect();
    for slice in &recording.cpu_slices {
        if let Some(threads) = threads.get_mut(&slice.pid) {
            threads.of(slice.tid).slices.push(slice);
        }
    }
    for wait in &recording.waits {
        if let Some(threads) = threads.get_mut(&wait.pid) {
            threads.of(wait.tid).waits.push(wait);
        }
    }
    for thread in &recording.threads {
        if let Some(threads) = threads.get_mut(&thread.pid)
            && let Some(end) = thread.end
        {
            threads.of(thread.tid).lived = Some((thread.start, end));
        }
    }
    for (pid, threads) in &mut threads {
        threads.sort();
        threads.joins = threads.joins_of_main(*pid);
    }
    let mut compared = 0;
    let mut runs_beside = |threads: &Threads<'_>, pid, child| {
        compared += threads.by_id.len() + threads.joins.len();
        compared <= COMPARED_MAX && (threads.do_not_wait(pid, child) || threads.wait_for_a_thread(child))
    };
    children.into_iter().filter(|&(_, child, pid)| runs_beside(&threads[&pid], pid, child)).map(|(node, ..)| node).collect()
}

/// A process whose parent may have waited for it.
#[derive(Clone, Copy)]
struct Child {
    start: Monotonic,
    end: Monotonic,
}

impl Child {
    fn life(self) -> u64 {
        self.end.nanos_since(self.start)
    }
}

/// Those of one process.
#[derive(Default)]
struct Threads<'a> {
    by_id: HashMap<u32, ThreadRows<'a>>,
    /// Long waits of the main thread for the end of another one, by time.
    joins: Vec<Join>,
}

/// A long wait of the main thread for the end of another one.
struct Join {
    start: Monotonic,
    /// The thread that it waited for, and since when that one was there.
    tid: u32,
    there_since: Monotonic,
    /// Up to when the main thread may have let go on a thread that had been blocked for long before this wait.
    let_on_until: Monotonic,
}

/// What one thread did, by time.
#[derive(Default)]
struct ThreadRows<'a> {
    slices: Vec<&'a CpuSlice>,
    waits: Vec<&'a Wait>,
    /// When it began and ended, if it did.
    lived: Option<(Monotonic, Monotonic)>,
}

impl<'a> Threads<'a> {
    fn of(&mut self, tid: u32) -> &mut ThreadRows<'a> {
        self.by_id.entry(tid).or_default()
    }

    fn sort(&mut self) {
        for rows in self.by_id.values_mut() {
            rows.slices.sort_by_key(|slice| slice.start);
            rows.waits.sort_by_key(|wait| wait.start);
        }
    }

    /// Whether it is known of all that count that they did not wait for a child that ended then, after such a life.
    fn do_not_wait(&self, pid: u32, child: Child) -> bool {
        let end = child.end;
        if let Some(joined) = self.joined(pid, end) {
            return !joined.may_wait(child);
        }
        let ran_before = |rows: &&ThreadRows<'_>| rows.slices.first().is_some_and(|first| first.start <= end);
        let mut known = self.by_id.values().filter(ran_before).peekable();
        known.peek().is_some() && known.all(|rows| !rows.may_wait(child))
    }

    /// Whether the main thread waited, after the child had ended, for the end of a thread that was there before the child, and that
    /// neither waited for the child itself nor for what the main thread did after it.
    fn wait_for_a_thread(&self, child: Child) -> bool {
        let after = self.joins.partition_point(|join| join.start < child.end);
        self.joins[after..].iter().any(|join| {
            let is_its_own = join.there_since <= child.start && join.let_on_until <= child.end;
            is_its_own && !self.by_id[&join.tid].may_wait(child)
        })
    }

    fn joins_of_main(&self, pid: u32) -> Vec<Join> {
        let Some(main) = self.by_id.get(&pid) else { return Vec::new() };
        let is_join = |wait: &&&Wait| wait.kind == WaitKind::Join && wait.end.nanos_since(wait.start) >= WAITED_NANOS_MIN;
        let joins = main.waits.iter().filter(is_join).take(COMPARED_MAX / self.by_id.len().max(1)).filter_map(|wait| {
            let tid = self.ended_with(pid, wait)?;
            let (there_since, _) = self.by_id.get(&tid)?.lived?;
            Some(Join { start: wait.start, tid, there_since, let_on_until: Monotonic(0) })
        });
        let mut joins: Vec<Join> = joins.collect();
        if joins.is_empty() {
            return joins;
        }
        let others = self.by_id.iter().filter(|(tid, _)| **tid != pid).map(|(_, rows)| rows);
        let mut let_on: Vec<(Monotonic, Monotonic)> = others.flat_map(|rows| rows.let_on_by(main)).collect();
        let_on.sort_unstable();
        let (mut next, mut until) = (0, Monotonic(0));
        for join in &mut joins {
            while let Some((_, end)) = let_on.get(next).filter(|(blocked, _)| *blocked < join.start) {
                (next, until) = (next + 1, until.max(*end));
            }
            join.let_on_until = until;
        }
        joins
    }

    /// The thread whose end ended this wait, where it can only have been one.
    fn ended_with(&self, pid: u32, wait: &Wait) -> Option<u32> {
        if let Some(tid) = wait.futex.and_then(|futex| futex.holder) {
            return Some(tid);
        }
        let ended = |rows: &ThreadRows<'_>| rows.lived.is_some_and(|(_, end)| end.0.abs_diff(wait.end.0) <= WAKE_NANOS);
        let mut ended = self.by_id.iter().filter(|(tid, rows)| **tid != pid && ended(rows)).map(|(tid, _)| *tid);
        ended.next().filter(|_| ended.next().is_none())
    }

    /// The thread for whose end the main thread waits then, maybe by way of others.
    fn joined(&self, pid: u32, at: Monotonic) -> Option<&ThreadRows<'a>> {
        let next = |tid: &u32| self.by_id.get(tid)?.joins(at).filter(|joined| self.by_id.contains_key(joined));
        let last = std::iter::successors(next(&pid), next).take(JOINS_MAX).last()?;
        self.by_id.get(&last)
    }
}

impl ThreadRows<'_> {
    /// The thread for whose end this one waits at that moment.
    fn joins(&self, at: Monotonic) -> Option<u32> {
        let begun = self.waits.partition_point(|wait| wait.start <= at);
        let wait = self.waits[..begun].last().filter(|wait| wait.kind == WaitKind::Join && wait.end > at)?;
        wait.futex?.holder
    }

    fn may_wait(&self, child: Child) -> bool {
        let end = child.end;
        let begun = self.slices.partition_point(|slice| slice.start <= end);
        (0..begun).rev().take(GAPS_MAX).any(|place| {
            let (slice, next) = (self.slices[place], self.slices.get(place + 1));
            let (from, to) = (slice.end, next.map_or(Monotonic(u64::MAX), |next| next.start));
            if slice.preempted || from > end || to.0.saturating_add(CLOSED_BEFORE_NANOS) < end.0 {
                return false;
            }
            match self.kind_of_wait(from) {
                Some(WaitKind::Child) => true,
                // Whom a thread of the same process lets go on waits for that one, which has a wait of its own.
                Some(WaitKind::Lock | WaitKind::Queue | WaitKind::Join | WaitKind::Disk | WaitKind::PageFault) => false,
                Some(_) => to.0 <= end.0.saturating_add(RELEASED_WITHIN_NANOS),
                None => to.nanos_since(from) >= WAITED_NANOS_MIN.min(child.life() / WAITED_PART),
            }
        })
    }

    /// When it was blocked for long, and `main` may have let it go on: it was on a CPU shortly before.
    fn let_on_by(&self, main: &ThreadRows<'_>) -> impl Iterator<Item = (Monotonic, Monotonic)> {
        let gaps = self.slices.windows(2).filter(|pair| !pair[0].preempted).map(|pair| (pair[0].end, pair[1].start));
        let gaps = gaps.filter(|(start, end)| end.nanos_since(*start) >= WAITED_NANOS_MIN);
        let by_others = |start| matches!(self.kind_of_wait(start), Some(WaitKind::Sleep | WaitKind::Disk | WaitKind::PageFault));
        gaps.filter(move |(start, _)| !by_others(*start)).filter(|(_, end)| {
            let first = main.slices.partition_point(|slice| slice.end.0.saturating_add(WAKE_NANOS) <= end.0);
            main.slices.get(first).is_some_and(|slice| slice.start <= *end)
        })
    }

    /// What the wait that began then was for, if it was sampled.
    fn kind_of_wait(&self, from: Monotonic) -> Option<WaitKind> {
        let place = self.waits.binary_search_by_key(&from, |wait| wait.start).ok()?;
        Some(self.waits[place].kind)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use crate::Report;
    use crate::schedule::poles::Pole;
    use longpole_model::{Nanos, text};

    /// Poles as `name on-path low-high`, in milliseconds.
    #[track_caller]
    fn check(rows: &str, expected: &[&str]) {
        const RUN: &str = "run work 0..2000ms\nprocess helper 100..1000ms pid 2 under 1\n";
        let report = Report::new(text::parse(&format!("{RUN}{rows}")).unwrap());
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        // All parts of an operation together.
        let sum =
            |name: &str, nanos: &dyn Fn(&Pole) -> Nanos| millis(report.poles().iter().filter(|pole| pole.name == name).map(nanos).sum());
        let mut names: Vec<&str> = report.poles().iter().map(|pole| pole.name.as_str()).collect();
        names.sort_by_key(|name| Reverse(sum(name, &|pole| pole.on_path)));
        names.dedup();
        let poles = names.into_iter().map(|name| {
            let [low, high] = [sum(name, &|pole| pole.savings.if_zero.low), sum(name, &|pole| pole.savings.if_zero.high)];
            format!("{name} {} {low}-{high}", sum(name, &|pole| pole.on_path))
        });
        assert_eq!(poles.collect::<Vec<String>>(), expected);
    }

    const BESIDE: &[&str] = &["work 2000 2000-2000"];
    const WAITED_FOR: &[&str] = &["work 1100 1100-1100", "helper 900 900-900"];

    #[test]
    fn what_runs_beside_a_busy_parent_is_not_on_the_critical_path() {
        check("cpu 0..2000ms pid 1 tid 1", BESIDE);
        // It had to leave its CPU when the helper ended, and was blocked at other times.
        check("cpu 0..400ms pid 1 tid 1\ncpu 500..990ms pid 1 tid 1 preempted\ncpu 1010..2000ms pid 1 tid 1", BESIDE);
        // Its threads wait for each other, and for a moment for something unknown.
        let threads = "cpu 0..100ms pid 1 tid 1\nwait 100..1900ms pid 1 tid 1 join m\ncpu 1900..2000ms pid 1 tid 1\n\
                       cpu 100..998ms pid 1 tid 3\ncpu 1002..1900ms pid 1 tid 3";
        check(threads, BESIDE);
    }

    #[test]
    fn whose_end_may_have_let_the_parent_go_on_is() {
        check("cpu 0..100ms pid 1 tid 1\ncpu 1000..2000ms pid 1 tid 1", WAITED_FOR);
        for kind in ["child", "pipe"] {
            check(&format!("cpu 0..100ms pid 1 tid 1\nwait 100..1001ms pid 1 tid 1 {kind} m\ncpu 1001..2000ms pid 1 tid 1"), WAITED_FOR);
            // Its output ended before it did.
            check(&format!("cpu 0..100ms pid 1 tid 1\nwait 100..990ms pid 1 tid 1 {kind} m\ncpu 990..2000ms pid 1 tid 1"), WAITED_FOR);
        }
        // For several children, and another one is the last.
        check("cpu 0..100ms pid 1 tid 1\nwait 100..1900ms pid 1 tid 1 child m\ncpu 1900..2000ms pid 1 tid 1", WAITED_FOR);
        // Nobody knows what the parent did.
        check("cpu 0..2000ms pid 2 tid 2", WAITED_FOR);
    }

    #[test]
    fn of_threads_that_counts_whose_end_the_main_thread_waits_for() {
        let joins = |tid: u32| {
            format!(
                "cpu 0..100ms pid 1 tid 1\nwait 100..1900ms pid 1 tid 1 join at 0x10 holder {tid} m\ncpu 1900..2000ms pid 1 tid 1\n\
                 cpu 100..1900ms pid 1 tid 3\n\
                 cpu 100..110ms pid 1 tid 4\nwait 110..1000ms pid 1 tid 4 pipe m\ncpu 1000..1001ms pid 1 tid 4"
            )
        };
        check(&joins(3), BESIDE);
        check(&joins(4), WAITED_FOR);
        check(&joins(9), WAITED_FOR);
    }

    #[test]
    fn a_thread_that_ends_later_hides_what_was_waited_for_before() {
        let runs = |thread: &str, main: &str| {
            format!(
                "thread t 50..1900ms pid 1 tid 3\n\
                 cpu 0..100ms pid 1 tid 1\nwait 100..1001ms pid 1 tid 1 child m\n{main}wait 1100..1900ms pid 1 tid 1 join m\n\
                 cpu 1901..2000ms pid 1 tid 1\n{thread}"
            )
        };
        let busy = "cpu 1001..1100ms pid 1 tid 1\n";
        check(&runs("cpu 50..1900ms pid 1 tid 3", busy), BESIDE);
        // It was asleep, or waited for another thread while the main one was blocked.
        check(&runs("cpu 50..60ms pid 1 tid 3\nwait 60..1090ms pid 1 tid 3 sleep t\ncpu 1090..1900ms pid 1 tid 3", busy), BESIDE);
        check(&runs("cpu 50..60ms pid 1 tid 3\nwait 60..1500ms pid 1 tid 3 lock t\ncpu 1500..1900ms pid 1 tid 3", busy), BESIDE);
        // What the main thread did after the child may have let it go on; or it waited for the child itself.
        check(&runs("cpu 50..60ms pid 1 tid 3\nwait 60..1050ms pid 1 tid 3 lock t\ncpu 1050..1900ms pid 1 tid 3", busy), WAITED_FOR);
        check(&runs("cpu 50..60ms pid 1 tid 3\nwait 60..1000ms pid 1 tid 3 pipe t\ncpu 1000..1900ms pid 1 tid 3", busy), WAITED_FOR);
        // It began after the child.
        let late = runs("cpu 150..1900ms pid 1 tid 3", busy).replace("thread t 50", "thread t 150");
        check(&late, WAITED_FOR);
    }

    #[test]
    fn who_goes_on_much_later_was_not_released_by_it() {
        let on = |to: u32| format!("cpu 0..100ms pid 1 tid 1\nwait 100..{to}ms pid 1 tid 1 sleep m\ncpu {to}..2000ms pid 1 tid 1");
        check(&on(1050), WAITED_FOR);
        check(&on(1500), BESIDE);
    }
}
