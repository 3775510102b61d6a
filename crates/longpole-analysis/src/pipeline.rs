//! Processes that only wait for another one's output: `seq | sort | md5sum`.
//!
//! ```text
//! seq      ▓▓▓▓▓▓▓▓┤
//! sort     ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓┤            ▓ on a CPU
//! md5sum   ├───────────────────────▓──▓▓─▓┤          ended last, and waited for nearly all of its life
//! ```
//!
//! No span says who read from whom, and the last to end would be the answer. So the end of a process that hardly ran is taken to
//! wait for the end of the sibling that was started together with it, ran, and ended before it. That is a guess, so the saving is
//! a range with both readings.

use std::collections::HashMap;

use longpole_model::{Monotonic, Recording};

use crate::trace_tree::{Forest, NodeSource};

/// A shell starts all parts of a pipeline at once; so far apart at most.
const STARTED_TOGETHER_NANOS: i64 = 50_000_000;

/// Up to this share of its life on a CPU a process may have waited for another one.
const WAITED_PERCENT: i64 = 50;

/// The other one has at least so many times its CPU time, or nothing tells them apart.
const BUSIER_FACTOR: i64 = 2;

/// Lives shorter than so many sampling periods say nothing.
const PERIODS_MIN: i64 = 20;

/// Siblings that ended before a process, and are asked whether it waited for them.
const ASKED_MAX: usize = 16;

/// Pairs of nodes: one that waited, and the one whose end it waited for.
pub(crate) fn waits(recording: &Recording, forest: &Forest, start: &[i64], end: &[i64]) -> Vec<(usize, usize)> {
    if recording.samples.is_empty() && recording.cpu_slices.is_empty() {
        return Vec::new();
    }
    let lone = |&n: &usize| matches!(forest.nodes[n].source(), NodeSource::Process(_)) && forest.nodes[n].subtree_end() == n + 1;
    let mut families: Vec<(usize, Vec<usize>)> = Vec::new();
    for parent in (0..forest.len()).filter(|&i| forest.nodes[i].subtree_end() > i + 2) {
        let lone: Vec<usize> = forest.children(parent).filter(lone).collect();
        if lone.len() > 1 {
            families.push((parent, lone));
        }
    }
    if families.is_empty() {
        return Vec::new();
    }
    let cpu = cpu_of_processes(recording);
    let cpu_of = |n: usize| match forest.nodes[n].source() {
        NodeSource::Process(p) => cpu[p],
        _ => 0,
    };
    let shortest = 1_000_000_000 / i64::from(recording.run.rate_hz.max(1)) * PERIODS_MIN;
    let mut out = Vec::new();
    for (parent, mut lone) in families {
        lone.sort_by_key(|&n| (end[n], n));
        let siblings: Vec<usize> = forest.children(parent).collect();
        for (place, &waiting) in lone.iter().enumerate() {
            let life = end[waiting] - start[waiting];
            if life < shortest || cpu_of(waiting) > life / 100 * WAITED_PERCENT {
                continue;
            }
            let busy = lone[..place].iter().rev().take(ASKED_MAX).copied().find(|&other| {
                let together = (start[other] - start[waiting]).abs() <= STARTED_TOGETHER_NANOS;
                let ran = cpu_of(other) > (end[other] - start[other]) / 100 * WAITED_PERCENT;
                // What was started after it ended waited for that too, or for something else: this is no pipeline.
                let next = siblings.partition_point(|&s| start[s] < end[other]);
                let last = siblings.get(next).is_none_or(|&s| start[s] >= end[waiting]);
                together && ran && last && cpu_of(other) >= cpu_of(waiting).saturating_mul(BUSIER_FACTOR)
            });
            out.extend(busy.map(|busy| (waiting, busy)));
        }
    }
    out
}

/// CPU time of each process: from switch records, which are exact, or else from samples.
fn cpu_of_processes(recording: &Recording) -> Vec<i64> {
    let processes = &recording.processes;
    let mut of_pid: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, process) in processes.iter().enumerate() {
        of_pid.entry(process.pid).or_default().push(i);
    }
    for list in of_pid.values_mut() {
        list.sort_by_key(|&i| (processes[i].start, i));
    }
    let process_at = |pid: u32, at: Monotonic| {
        let list = of_pid.get(&pid)?;
        list.partition_point(|&i| processes[i].start <= at).checked_sub(1).map(|last| list[last])
    };
    let (mut exact, mut sampled) = (vec![0u64; processes.len()], vec![0u64; processes.len()]);
    for slice in &recording.cpu_slices {
        if let Some(p) = process_at(slice.pid, slice.start) {
            exact[p] = exact[p].saturating_add(slice.end.nanos_since(slice.start));
        }
    }
    for sample in &recording.samples {
        if let Some(p) = process_at(sample.pid, sample.time) {
            sampled[p] = sampled[p].saturating_add(sample.weight_nanos);
        }
    }
    let longer = |(exact, sampled): (u64, u64)| i64::try_from(exact.max(sampled)).unwrap_or(i64::MAX);
    exact.into_iter().zip(sampled).map(longer).collect()
}

#[cfg(test)]
mod tests {
    use crate::Report;
    use longpole_model::text;

    /// Poles as `name on-path low-high`, in milliseconds.
    fn check(input: &str, expected: &[&str]) {
        let report = Report::new(text::parse(input).unwrap());
        let millis = |nanos: i64| nanos / 1_000_000;
        let drawn: Vec<String> = report
            .poles()
            .iter()
            .map(|p| {
                let zero = p.savings.if_zero;
                format!("{} {} {}-{}", p.name, millis(p.on_path_nanos), millis(zero.low_nanos), millis(zero.high_nanos))
            })
            .collect();
        assert_eq!(drawn, expected);
    }

    const LIVES: &str = "\
run sh  0..1000ms
process seq     1..300ms  pid 2 under 1
process sort    2..980ms  pid 3 under 1
process md5sum  3..990ms  pid 4 under 1
";

    #[test]
    fn the_part_of_a_pipeline_that_runs_is_named_before_the_one_that_waits() {
        let busy = "sample 2ms x250 pid 2 m\nsample 2ms x950 pid 3 m\nsample 900ms x40 pid 4 m\n";
        check(&format!("{LIVES}{busy}"), &["sort 978 0-690", "md5sum 10 10-10"]);
    }

    #[test]
    fn without_samples_or_where_all_run_the_last_to_end_is_named() {
        check(LIVES, &["md5sum 987 10-10"]);
        check(&format!("{LIVES}sample 2ms x950 pid 3 m\nsample 3ms x900 pid 4 m\n"), &["md5sum 987 10-10"]);
    }

    #[test]
    fn a_script_with_something_idle_beside_it_is_no_pipeline() {
        check(
            "\
run sh  0..1000ms
process sleep   1..990ms  pid 2 under 1
process build   2..700ms  pid 3 under 1
process test  701..980ms  pid 4 under 1
sample 2ms x690 pid 3 m
sample 702ms x270 pid 4 m
",
            &["sleep 989 10-10"],
        );
    }
}
