//! What a reader of the numbers must know, in words.

use longpole_model::units::{counted, duration};
use longpole_model::{Nanos, UnsignedNanos};

use crate::note::{BusySavings, ClockName, ClockShift, CpusUsed, EngineOperation, FirstOf, Note, ProcessName};
use crate::tree::forest::base_name;

/// Clocks that a note names, at most.
const CLOCKS_NAMED: usize = 3;

/// Operations that a note names, at most.
const OPERATIONS_NAMED: usize = 3;

/// Pools that a note names, at most.
const POOLS_NAMED: usize = 3;

/// Why something is missing or doubtful, and what that means. What it is, and how often, says [`loss`](super::loss()).
pub fn note(fact: &Note) -> String {
    let words = match fact {
        Note::Loss(loss) => loss.detail.as_str(),
        Note::BlockedUnseen(on_path) => {
            return format!("{} of the critical path; longpole samples few of the waits under 5 ms", duration(on_path.0));
        }
        Note::StacksDeep { copied_kib: [least, most], .. } => {
            let copied = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return format!("deeper than the {copied} KiB that longpole copies");
        }
        Note::NamesMissing { reason, files } => return names_missing(reason, files),
        Note::UnfinishedRun => "the end of the run is unknown; longpole uses the latest recorded time",
        Note::OutlivedRun(processes) => {
            return format!("still running when recording stopped; their time counts up to then: {}", processes_named(processes));
        }
        Note::ProcessesUntimed(_) => "they are not in the tree",
        Note::DuplicateIds(_) => "their children are shown below the first",
        Note::LegacyJoined { by_legacy_id, .. } => {
            return format!("each counts once; {by_legacy_id} spans found their parent by its legacy id");
        }
        Note::Orphans(_) => "they are shown below their process, or the run",
        Note::RootsNested(_) => "they are shown below it",
        Note::RunsApart(idle) => {
            return format!(
                "nothing ran for {}; this recording may hold several runs, and the poles are ranked over all of them",
                duration(idle.0)
            );
        }
        Note::TimesOutsideRun(_) => "such as spans without a start time; longpole moved those times to the start or end of the run",
        Note::ForksFolded(_) => "subshells and short helpers; they are counted as part of their parent",
        Note::ProcessesUnsure(_) => {
            "several operations of their parent were open when they started, so savings of these operations are ranges"
        }
        Note::Cycles(_) => "the cycle is cut at its earliest span",
        Note::EndsClamped(_) => "their end was moved to the start",
        Note::ClockSkew(_) => "two clocks disagree, or a parent is wrong",
        Note::ClockShifted { clocks, .. } => {
            return format!("calls now lie inside their callers: {}", listed(clocks, CLOCKS_NAMED, clock_shift));
        }
        Note::ResourcesUnmatched(operations) => {
            let named = |it: &EngineOperation| format!("{} {} ({})", it.op, it.resource, duration(it.nanos.0));
            return format!("the longest first: {}", listed(operations, OPERATIONS_NAMED, named));
        }
        Note::ResourcesUnfinished(operations) => {
            let named = |it: &EngineOperation| format!("{} {} ({} so far)", it.op, it.resource, duration(it.nanos.0));
            return format!("their spans never arrived: {}", listed(operations, OPERATIONS_NAMED, named));
        }
        Note::ResourcesUnnamed { has_legacy: true, .. } => "the spans of neither of Pulumi's tracers say which",
        Note::ResourcesUnnamed { has_legacy: false, .. } => {
            "their spans do not say which. With a file of Pulumi's --otel-traces, import its --tracing file as well (--together), or use longpole run"
        }
        Note::LimitedSlots(limits) => {
            let named =
                listed(limits, POOLS_NAMED, |limit| format!("{} of {}", counted(limit.slots as u64, "child", "children"), limit.host));
            return format!("at most {named} ran at once; longpole assumes a limit, so savings there may be ranges");
        }
        Note::Watched => "longpole polled /proc every 5ms or more instead of sampling; shorter processes, threads and waits are missing",
        Note::KernelTime { unsampled, on_cpu, why } => return kernel_time(*unsampled, *on_cpu, why),
        Note::ScriptsUnnamed { language, on_cpu } => {
            return format!("{} on a CPU in {language} scripts, whose functions longpole cannot name", duration(on_cpu.0));
        }
        Note::Unaccounted { on_path, outside, is_estimate } => return unaccounted(*on_path, *outside, *is_estimate),
        Note::FunctionsUnnamed { files, .. } => return functions_unnamed(files),
        Note::CpuBusy { ready, used, savings } => return cpu_busy(*ready, *used, *savings),
    };
    words.to_owned()
}

/// `gzip, sort (stripped); their code shows as gzip+0xADDRESS`.
fn names_missing(reason: &str, files: &FirstOf<String>) -> String {
    let named = first_and_more(files.first.iter().map(|path| base_name(path).to_owned()), files.all);
    let example = files.first.first().map_or("", |path| base_name(path));
    let whose = if files.all == 1 { "its" } else { "their" };
    format!("{named} ({reason}); {whose} code shows as {example}+0xADDRESS")
}

/// `gzip, sort name only some of their functions; the others show as gzip+0xADDRESS`.
fn functions_unnamed(files: &FirstOf<String>) -> String {
    let named = first_and_more(files.first.iter().map(|path| base_name(path).to_owned()), files.all);
    let example = files.first.first().map_or("", |path| base_name(path));
    let verb = if files.all == 1 { "names only some of its" } else { "name only some of their" };
    format!("{named} {verb} functions; the others show as {example}+0xADDRESS")
}

/// Nobody can fix the time in which longpole starts the command or notices its end.
fn unaccounted(on_path: Nanos, outside: Nanos, is_estimate: bool) -> String {
    let all = format!("{} of the critical path", duration(on_path.0));
    let edges = "before the command's first process or after its last; no fix saves that";
    match is_estimate {
        _ if duration(outside.0) == duration(on_path.0) => format!("{all}, {edges}"),
        _ if outside > on_path / 2 => format!("{all}, {} of it {edges}", duration(outside.0)),
        true => format!("{all}, between samples; mostly short waits"),
        false => format!("{all}; longpole recorded neither CPU time nor a wait there"),
    }
}

fn kernel_time(unsampled: UnsignedNanos, on_cpu: UnsignedNanos, why: &str) -> String {
    let cause = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!(
        "{} of {} on-CPU time was in the kernel, which could not be sampled: its code is missing, and estimated states (≈) count it as unaccounted{cause}",
        duration(unsampled.0),
        duration(on_cpu.0)
    )
}

/// Waits for a CPU, and how many of the machine's CPUs the command used: if that is few, others had the rest.
fn cpu_busy(ready: UnsignedNanos, used: Option<CpusUsed>, savings: Option<BusySavings>) -> String {
    let used = used.map(|CpusUsed { tenths, cpus }| format!("; the command used {}.{} of {cpus} CPUs", tenths / 10, tenths % 10));
    let savings = match savings {
        Some(BusySavings::LowEnds) => "; the low end of each saving assumes that the waits for other programs remain",
        Some(BusySavings::TooLarge) => "; other processes may use the CPU time that a fix frees; the fix then saves less than shown",
        None => "",
    };
    format!("{} in all threads together{}{savings}", duration(ready.0), used.unwrap_or_default())
}

/// Why savings are ranges: in a run of threads alone, whose order is recorded, or in one of operations, whose order is not.
pub fn why_ranges(is_of_threads: bool) -> &'static str {
    match is_of_threads {
        true => "savings are ranges: the low end assumes that waits for CPUs that other programs used remain",
        false => "savings are ranges if longpole inferred the dependencies between operations; span links would make them certain",
    }
}

/// `agent (pid 2), sh (pid 3) and 4 more`.
fn processes_named(processes: &FirstOf<ProcessName>) -> String {
    first_and_more(processes.first.iter().map(|process| process_name(&process.program, process.pid)), processes.all)
}

/// The first of `all` items, and how many there are more: `a, b and 4 more`.
fn first_and_more(first: impl Iterator<Item = String>, all: usize) -> String {
    let named: Vec<String> = first.collect();
    let more = all - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", named.join(", "))
}

/// A program and its process: `bank (pid 12)`.
fn process_name(program: &str, pid: u32) -> String {
    format!("{program} (pid {pid})")
}

/// `db-1 by +1.5ms`.
fn clock_shift(shift: &ClockShift) -> String {
    let clock = match &shift.clock {
        ClockName::Recorder => "this machine".to_owned(),
        ClockName::Host(host) => host.clone(),
        ClockName::Emitter { service, pid: Some(pid), .. } => process_name(service, *pid),
        ClockName::Emitter { service, .. } => service.clone(),
    };
    let sign = if shift.nanos > Nanos::ZERO { "+" } else { "" };
    format!("{clock} by {sign}{}", duration(shift.nanos.0))
}

/// The first `most` items, and a mark where there are more.
fn listed<T>(items: &FirstOf<T>, most: usize, words: impl Fn(&T) -> String) -> String {
    let named: Vec<String> = items.first.iter().take(most).map(words).collect();
    let more = if items.all > most { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use longpole_model::{Loss, LossKind};

    use super::*;
    use crate::note::SlotLimit;

    #[test]
    fn each_note_has_its_sentence() {
        let process = |pid| ProcessName { program: "sh".to_owned(), pid };
        let shift = |clock, nanos| ClockShift { clock, nanos: Nanos(nanos) };
        let emitter = |pid| ClockName::Emitter { service: "pay".to_owned(), instance: String::new(), pid };
        let clocks = [
            shift(ClockName::Host("db-1".to_owned()), 9_000_000),
            shift(emitter(Some(7)), -4_500_000),
            shift(emitter(None), 1_500_000),
            shift(ClockName::Recorder, 1),
        ];
        let limit = |slots| SlotLimit { slots, host: "build".to_owned() };
        let (unsampled, on_cpu) = (UnsignedNanos(2_000_000), UnsignedNanos(8_000_000));
        let busy = |savings| Note::CpuBusy { ready: UnsignedNanos(1_940_000_000), used: Some(CpusUsed { tenths: 8, cpus: 2 }), savings };
        let kernel = |why: &str| Note::KernelTime { unsampled, on_cpu, why: why.to_owned() };
        let notes = [
            Note::Loss(Loss::new(LossKind::SpansDuplicate, 3, "finished twice")),
            Note::BlockedUnseen(Nanos(31_000_000)),
            Note::StacksDeep { stacks: 3, copied_kib: [16, 63] },
            Note::StacksDeep { stacks: 3, copied_kib: [16; 2] },
            Note::NamesMissing {
                reason: "stripped".to_owned(),
                files: ["/usr/bin/gzip", "/usr/bin/sort"].map(str::to_owned).into_iter().collect(),
            },
            Note::UnfinishedRun,
            Note::OutlivedRun((1..=8).map(process).collect()),
            Note::OutlivedRun((1..=2).map(process).collect()),
            Note::ProcessesUntimed(1),
            Note::DuplicateIds(1),
            Note::LegacyJoined { pairs: 1, by_legacy_id: 4 },
            Note::Orphans(1),
            Note::RootsNested(1),
            Note::RunsApart(Nanos(10_400_000_000)),
            Note::TimesOutsideRun(1),
            Note::ForksFolded(1),
            Note::ProcessesUnsure(1),
            Note::Cycles(1),
            Note::EndsClamped(1),
            Note::ClockSkew(1),
            Note::ClockShifted { spans: 2, clocks: clocks.iter().cloned().collect() },
            Note::ClockShifted { spans: 2, clocks: clocks[3..].iter().cloned().collect() },
            Note::ResourcesUnmatched(
                [EngineOperation { op: "create".to_owned(), resource: "a:b:C db".to_owned(), nanos: Nanos(1_500_000_000) }]
                    .into_iter()
                    .collect(),
            ),
            Note::ResourcesUnfinished(
                [EngineOperation { op: "create".to_owned(), resource: "a:b:C db".to_owned(), nanos: Nanos(1_200_000_000) }]
                    .into_iter()
                    .collect(),
            ),
            Note::ResourcesUnnamed { calls: 1, has_legacy: false },
            Note::ResourcesUnnamed { calls: 1, has_legacy: true },
            Note::LimitedSlots((2..6).map(limit).collect()),
            Note::LimitedSlots((2..3).map(limit).collect()),
            Note::Watched,
            kernel(""),
            kernel("perf_event_paranoid is 2"),
            Note::ScriptsUnnamed { language: "Perl", on_cpu: UnsignedNanos(209_000_000) },
            Note::Unaccounted { on_path: Nanos(4_500_000), outside: Nanos(4_400_000), is_estimate: false },
            Note::Unaccounted { on_path: Nanos(4_500_000), outside: Nanos(4_490_000), is_estimate: false },
            Note::Unaccounted { on_path: Nanos(300_000_000), outside: Nanos(4_400_000), is_estimate: false },
            Note::Unaccounted { on_path: Nanos(300_000_000), outside: Nanos(0), is_estimate: true },
            Note::FunctionsUnnamed { samples: 9, files: ["/usr/bin/git"].map(str::to_owned).into_iter().collect() },
            Note::FunctionsUnnamed { samples: 9, files: ["/usr/bin/cc1", "/usr/bin/ld"].map(str::to_owned).into_iter().collect() },
            Note::CpuBusy { ready: UnsignedNanos(1_940_000_000), used: None, savings: Some(BusySavings::TooLarge) },
            busy(Some(BusySavings::LowEnds)),
            busy(None),
        ];
        let said = [
            "finished twice",
            "31.0ms of the critical path; longpole samples few of the waits under 5 ms",
            "deeper than the 16 to 63 KiB that longpole copies",
            "deeper than the 16 KiB that longpole copies",
            "gzip, sort (stripped); their code shows as gzip+0xADDRESS",
            "the end of the run is unknown; longpole uses the latest recorded time",
            "still running when recording stopped; their time counts up to then: sh (pid 1), sh (pid 2), sh (pid 3), sh (pid 4), sh (pid \
             5), sh (pid 6) and 2 more",
            "still running when recording stopped; their time counts up to then: sh (pid 1), sh (pid 2)",
            "they are not in the tree",
            "their children are shown below the first",
            "each counts once; 4 spans found their parent by its legacy id",
            "they are shown below their process, or the run",
            "they are shown below it",
            "nothing ran for 10.40s; this recording may hold several runs, and the poles are ranked over all of them",
            "such as spans without a start time; longpole moved those times to the start or end of the run",
            "subshells and short helpers; they are counted as part of their parent",
            "several operations of their parent were open when they started, so savings of these operations are ranges",
            "the cycle is cut at its earliest span",
            "their end was moved to the start",
            "two clocks disagree, or a parent is wrong",
            "calls now lie inside their callers: db-1 by +9.0ms, pay (pid 7) by -4.5ms, pay by +1.5ms, …",
            "calls now lie inside their callers: this machine by +1ns",
            "the longest first: create a:b:C db (1.50s)",
            "their spans never arrived: create a:b:C db (1.20s so far)",
            "their spans do not say which. With a file of Pulumi's --otel-traces, import its --tracing file as well (--together), or use longpole run",
            "the spans of neither of Pulumi's tracers say which",
            "at most 2 children of build, 3 children of build, 4 children of build, … ran at once; longpole assumes a limit, so savings there may be ranges",
            "at most 2 children of build ran at once; longpole assumes a limit, so savings there may be ranges",
            "longpole polled /proc every 5ms or more instead of sampling; shorter processes, threads and waits are missing",
            "2.0ms of 8.0ms on-CPU time was in the kernel, which could not be sampled: its code is missing, and estimated states (≈) count it as unaccounted",
            "2.0ms of 8.0ms on-CPU time was in the kernel, which could not be sampled: its code is missing, and estimated states (≈) count it as unaccounted: perf_event_paranoid is 2",
            "209.0ms on a CPU in Perl scripts, whose functions longpole cannot name",
            "4.5ms of the critical path, 4.4ms of it before the command's first process or after its last; no fix saves that",
            "4.5ms of the critical path, before the command's first process or after its last; no fix saves that",
            "300.0ms of the critical path; longpole recorded neither CPU time nor a wait there",
            "300.0ms of the critical path, between samples; mostly short waits",
            "git names only some of its functions; the others show as git+0xADDRESS",
            "cc1, ld name only some of their functions; the others show as cc1+0xADDRESS",
            "1.94s in all threads together; other processes may use the CPU time that a fix frees; the fix then saves less than shown",
            "1.94s in all threads together; the command used 0.8 of 2 CPUs; the low end of each saving assumes that the waits for other programs remain",
            "1.94s in all threads together; the command used 0.8 of 2 CPUs",
        ];
        assert_eq!(notes.each_ref().map(note), said);
    }
}
