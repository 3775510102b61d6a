//! Which thread of a process mattered when: from its end backwards over joins.
//!
//! ```text
//! main       ==start==|=parse=|.. joins worker ........|==write==|      the process ends with its main thread
//! worker              |=========== encode =============|
//! logger              |================================================
//! path       ==main==|| ========= worker =============== |==main==|     parse is not on it, nor is the logger
//! ```
//!
//! The thread that something joined mattered from its start on: what the main thread did beside it, it did while it had time. While the
//! thread that mattered was blocked for something else, any other may have held it up: then all of them count, as far as they compute.

use longpole_model::{Nanos, NodeId, ThreadKey};

use super::{RowId, SpanOnThread, ThreadRow, Timelines};
use crate::intervals;

/// Stretches of a process's threads, at most: past that, all its threads count all the time.
const STRETCHES_MAX: usize = 200_000;

/// Steps backwards from thread to thread.
const STEPS_MAX: usize = 10_000;

impl Timelines {
    /// The thread that mattered, from the end of the process backwards; `None` where its main thread was not seen.
    fn path_of_threads(&self, pid: u32, (start, end): (Nanos, Nanos)) -> Option<Vec<(Nanos, Nanos, RowId)>> {
        let main = self.row(ThreadKey::new(pid, pid))?;
        let (mut row, mut at) = (main, end.min(self.rows[main].until));
        let mut path = Vec::new();
        for _ in 0..STEPS_MAX {
            let joined = self.last_join(&self.rows[row], at).and_then(|(from, to, tid)| {
                let other = self.row(ThreadKey::new(pid, tid)).filter(|&other| other != row)?;
                // A thread of before the recording tells nothing.
                self.rows[other].born.filter(|&born| start <= born && born < to && born <= from)?;
                Some((to, other))
            });
            match joined {
                Some((to, other)) => {
                    path.push((to, at, row));
                    (row, at) = (other, to);
                }
                None => {
                    // A thread that was joined was made by the main one, as far as anybody knows.
                    let since = if row == main { start } else { self.rows[row].born.unwrap_or(start).max(start) };
                    path.push((since.min(at), at, row));
                    if row == main || since >= at {
                        break;
                    }
                    (row, at) = (main, since);
                }
            }
        }
        Some(path)
    }

    /// The last wait of a thread for the end of another one, that had ended by this moment.
    fn last_join(&self, row: &ThreadRow, at: Nanos) -> Option<(Nanos, Nanos, u32)> {
        let waits = &self.waits[row.waits.clone()];
        let before = waits.partition_point(|wait| wait.to <= at);
        waits[..before].iter().rev().find_map(|wait| Some((wait.from, wait.to, wait.joins?)))
    }

    /// When each thread of a process counts for its node: the one that mattered, and while that was blocked all of them, as far as they compute.
    /// All of them all the time where that is not known.
    pub(super) fn stretches_that_matter(&self, node: NodeId, pid: u32, life: (Nanos, Nanos)) -> Vec<SpanOnThread> {
        let rows: Vec<RowId> = self.rows_of(pid).map(|(row, _)| row).collect();
        let held = |row: RowId, (from, to): (Nanos, Nanos)| SpanOnThread { node, row, from, to, latest: to };
        let all = || rows.iter().map(|&row| held(row, life)).collect();
        let Some(path) = self.path_of_threads(pid, life) else { return all() };
        let (mut out, mut blocked) = (Vec::new(), Vec::new());
        for &(from, to, row) in path.iter().rev() {
            let mut at = from;
            for (busy, end) in self.computes(&self.rows[row], (from, to)) {
                blocked.push((at, busy));
                out.push(held(row, (busy, end)));
                at = end;
            }
            blocked.push((at, to));
        }
        // Others may go on after the main thread.
        blocked.push((path.first().map_or(life.0, |&(_, to, _)| to), life.1));
        blocked.retain(|(from, to)| from < to);
        for &row in &rows {
            for busy in self.computes(&self.rows[row], life) {
                let first = blocked.partition_point(|&(_, to)| to <= busy.0);
                let meanwhile = blocked[first..].iter().take_while(|(from, _)| *from < busy.1);
                out.extend(meanwhile.filter_map(|&gap| intervals::clip(gap, busy)).map(|both| held(row, both)));
            }
            if out.len() > STRETCHES_MAX {
                return all();
            }
        }
        out
    }

    /// When a thread was on a CPU, or wanted one and did not have it, between two moments; those that touch are one.
    fn computes(&self, row: &ThreadRow, (from, to): (Nanos, Nanos)) -> Vec<(Nanos, Nanos)> {
        let slices = &self.slices[row.slices.clone()];
        let first = slices.partition_point(|slice| slice.to <= from).saturating_sub(1);
        let within = slices.iter().enumerate().skip(first).take_while(|(_, slice)| slice.from < to);
        // A new thread wants a CPU.
        let new = row.born.map(|born| (born, slices.first().map_or(to, |slice| slice.from)));
        let computes = within.map(|(place, slice)| {
            let next = slices.get(place + 1).filter(|_| slice.preempted).map_or(slice.to, |next| next.from);
            (slice.from, next)
        });
        intervals::union(new.into_iter().chain(computes).filter_map(|busy| intervals::clip(busy, (from, to))).collect())
    }
}
