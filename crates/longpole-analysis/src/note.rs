//! What a reader of the numbers must know: one function for each note, plain inputs in, words out.
//!
//! Whoever finds something doubtful counts it and calls the function here; no other file of the lower floors holds a sentence.
//! A function whose count can be 0 returns `None` then.

use longpole_model::units::duration;
use longpole_model::{Loss, LossKind};

/// Names of processes that outlived the run, at most: a line or two of the answer.
const OUTLIVED_NAMED: usize = 6;

/// Clocks that a note calls by name.
const CLOCKS_NAMED: usize = 3;

/// Pools that a note calls by name.
const POOLS_NAMED: usize = 3;

/// Why a frame has no name where nobody looked.
pub(crate) const NO_SYMBOLS: &str = "symbols were not looked up";

/// The clock of the machine that recorded.
pub(crate) const THIS_MACHINE: &str = "this machine";

/// Something about the forest, the replay or the recording that a reader must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable code: `orphans`, `cycles`, `ends_clamped`, `clock_skew`, `clock_shifted`, `unfinished`, `processes_untimed`,
    /// `forks_folded`, `times_outside_run`, `duplicate_ids`, `legacy_joined`, `resources_unmatched`, `limited_slots`, `watched`,
    /// `kernel_time`, `cpu_busy`, or the code of a [`LossKind`].
    pub code: &'static str,
    /// How many.
    pub count: u64,
    /// Lower-case fragment for people.
    pub detail: String,
}

fn counted(code: &'static str, count: usize, detail: &str) -> Option<Note> {
    (count > 0).then(|| Note { code, count: count as u64, detail: detail.to_owned() })
}

/// The first few of these names, and whether there are more.
fn few(names: &[String], few: usize) -> (String, bool) {
    (names[..names.len().min(few)].join(", "), names.len() > few)
}

/// A program and its process: `bank (pid 12)`.
pub(crate) fn named_process(name: &str, pid: u32) -> String {
    format!("{name} (pid {pid})")
}

/// A loss of the recording.
pub(crate) fn loss(loss: &Loss) -> Note {
    Note { code: loss.kind.as_str(), count: loss.count, detail: loss.detail.clone() }
}

/// The run has no recorded end.
pub(crate) fn unfinished_run() -> Note {
    let detail = "the end of the run is not known; the latest thing seen stands for it";
    Note { code: "unfinished", count: 1, detail: detail.to_owned() }
}

/// Processes, by name and pid, that had not ended when the run did.
pub(crate) fn outlived_run(processes: &[(&str, u32)]) -> Option<Note> {
    let named: Vec<String> = processes.iter().take(OUTLIVED_NAMED).map(|(name, pid)| named_process(name, *pid)).collect();
    let more = processes.len() - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    counted("unfinished", processes.len(), &format!("processes that outlived the run; it ends theirs here: {}{more}", named.join(", ")))
}

/// Processes whose start no clock anchor places.
pub(crate) fn processes_untimed(count: usize) -> Option<Note> {
    counted("processes_untimed", count, "processes without a reading of the clock are not in the tree")
}

/// Spans with the ids of an earlier span.
pub(crate) fn duplicate_ids(count: usize) -> Option<Note> {
    counted("duplicate_ids", count, "spans whose id another span has too; children hang under the first")
}

/// Pairs of spans that two tracers made of one operation, and spans that found their parent by the id of the other tracer.
pub(crate) fn legacy_joined(pairs: u64, by_legacy_id: u64) -> Option<Note> {
    let detail = format!("operations that two tracers saw are one; {by_legacy_id} spans found their parent by its legacy id");
    (pairs + by_legacy_id > 0).then_some(Note { code: "legacy_joined", count: pairs, detail })
}

/// Spans whose parent the recording does not hold.
pub(crate) fn orphans(count: usize) -> Option<Note> {
    counted("orphans", count, "spans whose parent is not in the recording; they hang under their process, or the run")
}

/// Spans with times a day or more away from the run.
pub(crate) fn times_outside_run(count: usize) -> Option<Note> {
    let detail = "spans that say times more than a day away from the run, as one without a start does: they begin and end with it here";
    counted("times_outside_run", count, detail)
}

/// Forks that ran no program of their own.
pub(crate) fn forks_folded(count: usize) -> Option<Note> {
    counted("forks_folded", count, "forks that ran no program of their own (subshells, short helpers) count as their parent")
}

/// Spans that are their own ancestors.
pub(crate) fn cycles(count: usize) -> Option<Note> {
    counted("cycles", count, "spans that were their own ancestors; the cycle is cut at its earliest span")
}

/// Spans that end before they start.
pub(crate) fn ends_clamped(count: usize) -> Option<Note> {
    counted("ends_clamped", count, "spans that end before they start; their end was moved to the start")
}

/// Spans that start before their parent.
pub(crate) fn clock_skew(count: usize) -> Option<Note> {
    counted("clock_skew", count, "spans that start before their parent does: two clocks disagree, or a parent is wrong")
}

/// Spans that were moved, and the clocks they were moved with: name, and by how many nanoseconds; the largest shift first.
pub(crate) fn clock_shifted(spans: u64, clocks: &[(String, i64)]) -> Option<Note> {
    let named: Vec<String> =
        clocks.iter().map(|(name, shift)| format!("{name} by {}{}", if *shift > 0 { "+" } else { "" }, duration(*shift))).collect();
    let (list, more) = few(&named, CLOCKS_NAMED);
    let more = if more { ", …" } else { "" };
    let detail = format!("clocks disagree; spans moved so that calls lie inside their callers: {list}{more}");
    (spans > 0).then_some(Note { code: "clock_shifted", count: spans, detail })
}

/// Operations of Pulumi's engine without a span.
pub(crate) fn resources_unmatched(count: usize) -> Option<Note> {
    counted("resources_unmatched", count, "operations of Pulumi's engine whose call was not found among the spans")
}

/// Spans that a tracer of the older kind sent twice.
pub(crate) fn finished_twice(spans: u64) -> Loss {
    Loss::new(LossKind::SpansDuplicate, spans, "finished twice; the later end is kept")
}

/// Nodes that never had more children running at once than a limit: that limit, and the node's name.
pub(crate) fn limited_slots(pools: &[(usize, &str)]) -> Option<Note> {
    let named: Vec<String> = pools.iter().take(POOLS_NAMED + 1).map(|(limit, host)| format!("{limit} in {host}")).collect();
    let (list, more) = few(&named, POOLS_NAMED);
    let more = if more { ", …" } else { "" };
    let detail = format!("at most {list}{more} ever ran at once, which counts as a limit of concurrency; savings there are ranges");
    counted("limited_slots", pools.len(), &detail)
}

/// The recorder had no samples and polled `/proc` instead.
pub(crate) fn watched() -> Note {
    let detail = "longpole polled /proc every 5ms or more instead of sampling; shorter processes, threads and waits are missing";
    Note { code: "watched", count: 1, detail: detail.to_owned() }
}

/// Nanoseconds in the kernel without a sample, of those on a CPU, and why the kernel could not be sampled.
pub(crate) fn kernel_time(unsampled: u64, on_cpu: u64, why: &str) -> Note {
    let mut detail = format!(
        "{} of {} on-CPU time was in the kernel, which could not be sampled: its code is missing, and estimated states (≈) count it as unaccounted",
        duration(unsampled),
        duration(on_cpu)
    );
    if !why.is_empty() {
        detail.push_str(&format!(": {why}"));
    }
    Note { code: "kernel_time", count: 1, detail }
}

/// Nanoseconds in which threads were runnable and had no CPU.
pub(crate) fn cpu_busy(ready: u64) -> Note {
    let detail = format!(
        "others had the CPUs: threads waited {} to run. Estimated states (≈) count this as unaccounted, and poles may save less",
        duration(ready)
    );
    Note { code: "cpu_busy", count: 1, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_stops_after_a_few() {
        let clocks: Vec<(String, i64)> = (1..=4).map(|n| (format!("host{n}"), -n * 1_500_000)).collect();
        let detail = |clocks: &[(String, i64)]| clock_shifted(2, clocks).unwrap().detail;
        assert!(detail(&clocks).ends_with(": host1 by -1.5ms, host2 by -3.0ms, host3 by -4.5ms, …"));
        assert!(detail(&clocks[..3]).ends_with("host3 by -4.5ms"));
        let pools = [(2, "a"), (3, "b"), (4, "c"), (5, "d")];
        assert!(limited_slots(&pools).unwrap().detail.starts_with("at most 2 in a, 3 in b, 4 in c, … ever ran at once"));
        let processes: Vec<(&str, u32)> = (1..=8).map(|pid| ("sh", pid)).collect();
        assert!(outlived_run(&processes).unwrap().detail.ends_with("sh (pid 6) and 2 more"));
    }

    #[test]
    fn nothing_to_say_is_no_note() {
        assert_eq!([orphans(0), legacy_joined(0, 0), clock_shifted(0, &[]), limited_slots(&[])], [None, None, None, None]);
    }
}
