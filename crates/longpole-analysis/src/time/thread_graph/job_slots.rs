//! Jobs that a thread starts whenever one of them ends: `make -j`, `xargs -P`, a script that keeps as many children as there are CPUs.
//!
//! ```text
//! xargs   =|=|.. waits .|=|.. waits .|=|.. waits .|=|.... waits ......|=|
//! slot 1   |===== long =================================================|
//! slot 2    |=== b ======|=== c ======|=== d ======|                       two slots: without `long`, c starts beside b
//! ```
//!
//! The thread that starts the jobs waits for the one that happens to end first. Taken for a dependency, that would keep c behind b whatever
//! becomes free. Jobs of one slot follow each other in a script as well, whose other job runs in the background: such an order says that there
//! are slots only if the program is known to start jobs like that; a shell does not, and of others it is unknown.

use std::collections::{HashMap, HashSet};

use longpole_model::{IdVec, Nanos};

use super::{GraphThread, LineId, is_main, median};
use crate::schedule::slots::{self, Slots};

/// A job that starts so soon after another one ended follows it.
const FOLLOWS_NANOS: Nanos = Nanos(1_000_000);

/// The same, as a multiple of the median, and as a part of the time that jobs take: slots that are free for longer than they are taken limit nothing.
const FOLLOWS_FACTOR: i64 = 16;
const FOLLOWS_PART: i64 = 4;

/// Processes behind the first ones, at least, whose order says that there may be slots where nothing else does.
const LATE_MIN: usize = 4;

/// Share of the jobs behind the first ones that follow the slot that was free first.
const EXPLAINED_PERCENT: usize = 90;

/// Programs that start the next job when any other one ends.
const JOB_RUNNERS: [&str; 9] = ["make", "gmake", "ninja", "samu", "xargs", "parallel", "cargo", "meson", "ctest"];

/// Programs that start the next command when the last one ends.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// Jobs of one thread that share slots.
#[derive(Debug)]
pub(super) struct JobSlots {
    /// How many run at once.
    count: usize,
    /// By their start; how long each started after its slot was free, where slots explain that.
    jobs: Vec<(LineId, Option<Nanos>)>,
    /// Whether it is known that they do.
    is_certain: bool,
}

/// A job and its pool.
#[derive(Debug, Clone, Copy)]
struct JobOf {
    pool: usize,
    /// See [`JobSlots`].
    gap: Option<Nanos>,
}

/// All jobs of a graph.
#[derive(Debug, Default)]
pub(super) struct AllJobs {
    /// How many slots each pool has, and whether that is certain.
    pools: Vec<(usize, bool)>,
    /// Nothing if there is no pool.
    of_line: IdVec<LineId, Option<JobOf>>,
}

impl AllJobs {
    /// The jobs of these threads, whose processes have these names.
    pub(super) fn find<'a>(lines: &IdVec<LineId, GraphThread>, name: impl Fn(&GraphThread) -> &'a str) -> AllJobs {
        let mut started: IdVec<LineId, Vec<LineId>> = IdVec::filled(Vec::new(), lines.len());
        for (id, line) in lines.enumerated().filter(|(_, line)| line.is_joined) {
            if let Some((_, creator)) = line.born.filter(|&(_, creator)| is_waited_for(line, &lines[creator])) {
                started[creator].push(id);
            }
        }
        let mut all = AllJobs::default();
        for (creator, jobs) in started.enumerated() {
            let Some(pool) = JobSlots::of(lines, jobs, name(&lines[creator])) else { continue };
            if all.pools.is_empty() {
                all.of_line = IdVec::filled(None, lines.len());
            }
            for (job, gap) in pool.jobs {
                all.of_line[job] = Some(JobOf { pool: all.pools.len(), gap });
            }
            all.pools.push((pool.count, pool.is_certain));
        }
        all
    }

    /// How many pools there are; only those that are certain, or all of them.
    pub(super) fn pools(&self, only_certain: bool) -> usize {
        self.pools.iter().filter(|(_, is_certain)| *is_certain || !only_certain).count()
    }
}

/// Whether the thread that started a thread may wait for its end: it does not if it has waited for the last time before. Such a thread is no
/// job, and what starts beside it does not start beside a job.
fn is_waited_for(line: &GraphThread, creator: &GraphThread) -> bool {
    is_main(line.thread) || creator.gaps.last().is_some_and(|last| line.until <= last.to)
}

impl JobSlots {
    /// The slots of jobs that a thread of a program of this name started; `None` where they have none.
    fn of(lines: &IdVec<LineId, GraphThread>, jobs: &[LineId], program: &str) -> Option<JobSlots> {
        let times = |&job: &LineId| (lines[job].born.map_or(Nanos::MIN, |(born, _)| born), lines[job].until);
        let mut jobs = jobs.to_vec();
        jobs.sort_by_key(times);
        // A thread that hands over its result ends a moment later, beside whatever starts then.
        let nearly_ended = |job: &LineId| times(job).1 - FOLLOWS_NANOS;
        let count = slots::peak(jobs.iter().map(|job| (times(job).0, nearly_ended(job))));
        if count < 2 || jobs.len() <= count {
            return None;
        }
        let free = slots::slot_free(count, jobs.iter().map(|job| (times(job).1, *job)));
        let mut ends: Vec<Nanos> = jobs.iter().map(|job| times(job).1).collect();
        ends.sort_unstable();
        // Behind the end of all before it a job may have waited for all of them.
        let mut last_end = Nanos::MIN;
        let is_beside = jobs.iter().map(|job| {
            let is_beside = times(job).0 < last_end;
            last_end = last_end.max(nearly_ended(job));
            is_beside
        });
        let late: Vec<bool> = is_beside.zip(&free).map(|(is_beside, free)| is_beside && free.is_some()).collect();
        let since_any =
            |job: &LineId| ends.partition_point(|end| *end <= times(job).0).checked_sub(1).map(|last| times(job).0 - ends[last]);
        let usual = median(jobs.iter().zip(&late).filter(|(_, late)| **late).filter_map(|(job, _)| since_any(job)).collect());
        let length = median(jobs.iter().map(|job| times(job).1 - times(job).0).collect()).unwrap_or_default();
        let follows = usual.map_or(FOLLOWS_NANOS, |usual| (usual * FOLLOWS_FACTOR).min(length / FOLLOWS_PART).max(FOLLOWS_NANOS));
        let gap = |(place, job): (usize, &LineId)| {
            let (at, _) = free[place].filter(|_| late[place])?;
            Some(times(job).0 - at).filter(|gap| (-FOLLOWS_NANOS..=follows).contains(gap))
        };
        let gaps: Vec<Option<Nanos>> = jobs.iter().enumerate().map(gap).collect();
        let (all, explained) = (late.iter().filter(|late| **late).count(), gaps.iter().flatten().count());
        if all == 0 || explained * 100 < all * EXPLAINED_PERCENT {
            return None;
        }
        let is_certain = JOB_RUNNERS.contains(&program) || hand_over(&jobs, &free, &gaps) >= 2;
        let may_be = all >= LATE_MIN && !SHELLS.contains(&program) && jobs.iter().all(|job| is_main(lines[*job].thread));
        (is_certain || may_be).then(|| JobSlots { count, jobs: jobs.into_iter().zip(gaps).collect(), is_certain })
    }
}

/// How many slots go from one job to the next one.
fn hand_over(jobs: &[LineId], free: &[Option<(Nanos, LineId)>], gaps: &[Option<Nanos>]) -> usize {
    // The first job of each slot stands for it.
    let mut slot_of: HashMap<LineId, LineId> = HashMap::new();
    let mut hand_over: HashSet<LineId> = HashSet::new();
    for ((&job, free), gap) in jobs.iter().zip(free).zip(gaps) {
        let slot = free.map_or(job, |(_, before)| slot_of[&before]);
        slot_of.insert(job, slot);
        if gap.is_some() {
            hand_over.insert(slot);
        }
    }
    hand_over.len()
}

/// The jobs of a replay that has been replayed without slots before, or with those of that replay.
pub(super) struct Handout {
    slots: Vec<Option<Slots<LineId>>>,
    /// How long each job takes now.
    duration: IdVec<LineId, Nanos>,
    /// When the last job of each pool started.
    last: Vec<Nanos>,
}

impl Handout {
    pub(super) fn new(jobs: &AllJobs, only_certain: bool, duration: IdVec<LineId, Nanos>) -> Handout {
        let slots = jobs.pools.iter().map(|&(count, is_certain)| (is_certain || !only_certain).then(|| Slots::new(count)));
        Handout { slots: slots.collect(), duration, last: vec![Nanos::MIN; jobs.pools.len()] }
    }

    /// When a job starts that would start at this moment without slots, and whose slot it takes. `work` is how long that takes the thread that
    /// starts it: the time that it took, in the recording, to start the job in a free slot.
    pub(super) fn start(
        &mut self,
        jobs: &AllJobs,
        job: LineId,
        otherwise: Nanos,
        work: impl Fn(Nanos) -> Nanos,
    ) -> Option<(Nanos, Option<LineId>)> {
        let JobOf { pool, gap } = jobs.of_line.get(job).copied().flatten()?;
        let slots = self.slots[pool].as_mut()?;
        let (start, whose) = match (slots.take(), gap) {
            (Some((free, whose)), Some(gap)) => ((free + work(gap)).max(self.last[pool]), Some(whose)),
            _ => (otherwise, None),
        };
        slots.give_back(start + self.duration[job], job);
        self.last[pool] = start;
        Some((start, whose))
    }
}
