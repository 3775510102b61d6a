//! What a reader of the numbers must know: facts, without words. [`words::note`](crate::words::note) says them.

use longpole_model::{Loss, LossKind, Nanos, UnsignedNanos};

/// Something about the forest, the replay or the recording that a reader must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A loss of the recording.
    Loss(Loss),
    /// Blocked time of the critical path without a sample, in a recording that missed waits it should have sampled.
    BlockedUnseen(Nanos),
    /// Stacks that are deeper than what was copied of them.
    StacksDeep {
        /// How many.
        stacks: u64,
        /// The least and the most that was copied, in KiB.
        copied_kib: [u64; 2],
    },
    /// Files whose functions have no names, for one reason.
    NamesMissing {
        /// Why.
        reason: String,
        /// Their paths.
        files: FirstOf<String>,
    },
    /// The run has no recorded end.
    UnfinishedRun,
    /// Processes that had not ended when the run did.
    OutlivedRun(FirstOf<ProcessName>),
    /// Processes whose start no clock anchor places.
    ProcessesUntimed(u64),
    /// Spans with the ids of an earlier span.
    DuplicateIds(u64),
    /// Two tracers recorded the same operations.
    LegacyJoined {
        /// Pairs of spans of one operation.
        pairs: u64,
        /// Spans that found their parent by the id of the other tracer.
        by_legacy_id: u64,
    },
    /// Spans whose parent the recording does not hold.
    Orphans(u64),
    /// Roots that hang under the span of another trace.
    RootsNested(u64),
    /// Nothing ran in most of a trace from a file: this long.
    RunsApart(Nanos),
    /// Spans with times a day or more away from the run.
    TimesOutsideRun(u64),
    /// Forks that ran no program of their own.
    ForksFolded(u64),
    /// Processes that several spans of their parent cover.
    ProcessesUnsure(u64),
    /// Spans that are their own ancestors.
    Cycles(u64),
    /// Spans that end before they start.
    EndsClamped(u64),
    /// Spans that start before their parent.
    ClockSkew(u64),
    /// Spans that were moved because clocks disagree.
    ClockShifted {
        /// How many.
        spans: u64,
        /// The clocks they were moved with, the largest shift first.
        clocks: FirstOf<ClockShift>,
    },
    /// Operations of Pulumi's engine without a span.
    ResourcesUnmatched(FirstOf<EngineOperation>),
    /// Operations of Pulumi's engine that had not ended when the command failed or was killed.
    ResourcesUnfinished(FirstOf<EngineOperation>),
    /// Calls of providers that name no resource.
    ResourcesUnnamed {
        /// How many.
        calls: u64,
        /// Whether spans of Pulumi's older tracer are here, which name more resources.
        has_legacy: bool,
    },
    /// Nodes that never had more children running at once than a limit.
    LimitedSlots(FirstOf<SlotLimit>),
    /// The recorder had no samples and polled `/proc` instead.
    Watched,
    /// Much of the time on a CPU was in the kernel, which could not be sampled.
    KernelTime {
        /// Time in the kernel.
        unsampled: UnsignedNanos,
        /// Time on a CPU.
        on_cpu: UnsignedNanos,
        /// Why the kernel could not be sampled; empty if unknown.
        why: String,
    },
    /// Much of the time on a CPU was in scripts of a language whose functions have no names.
    ScriptsUnnamed {
        /// The language.
        language: &'static str,
        /// Time on a CPU.
        on_cpu: UnsignedNanos,
    },
    /// Nothing was recorded in much of the critical path.
    Unaccounted {
        /// How long that is.
        on_path: Nanos,
        /// How much of it lies before the first process of the command or after the last one.
        outside: Nanos,
        /// Whether the states of the path are estimates.
        is_estimate: bool,
    },
    /// Many samples are in functions without a name, of files that name only some of theirs.
    FunctionsUnnamed {
        /// How many.
        samples: u64,
        /// Paths of the files, the one with the most samples first.
        files: FirstOf<String>,
    },
    /// Threads were runnable and had no CPU.
    CpuBusy {
        /// The sum of these times.
        ready: UnsignedNanos,
        /// The CPUs that the command used; `None` if the recording does not say how many there are.
        used: Option<CpusUsed>,
        /// What that means for the savings; `None` if there are none to read.
        savings: Option<BusySavings>,
    },
}

/// What waits for CPUs mean for the savings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusySavings {
    /// Their lower ends leave out the time in which programs outside the run had the CPUs.
    LowEnds,
    /// They are too large if other programs take the CPU time that a fix frees.
    TooLarge,
}

impl Note {
    /// The same for a reader who sees no savings.
    #[must_use]
    pub fn without_savings(self) -> Note {
        match self {
            Note::CpuBusy { ready, used, .. } => Note::CpuBusy { ready, used, savings: None },
            note => note,
        }
    }

    /// A note with a count, unless the count is 0.
    pub(crate) fn counted(count: usize, note: fn(u64) -> Note) -> Option<Note> {
        (count > 0).then(|| note(count as u64))
    }

    /// Stable code: one of these, or that of a [`LossKind`].
    pub fn code(&self) -> &'static str {
        match self {
            Note::Loss(loss) => loss.kind.as_str(),
            Note::StacksDeep { .. } => LossKind::StacksTruncated.as_str(),
            Note::BlockedUnseen(_) => "blocked_unseen",
            Note::NamesMissing { .. } => LossKind::SymbolsUnreadable.as_str(),
            Note::UnfinishedRun | Note::OutlivedRun(_) => "unfinished",
            Note::ProcessesUntimed(_) => "processes_untimed",
            Note::DuplicateIds(_) => "duplicate_ids",
            Note::LegacyJoined { .. } => "legacy_joined",
            Note::Orphans(_) => "orphans",
            Note::RootsNested(_) => "roots_nested",
            Note::RunsApart(_) => "runs_apart",
            Note::TimesOutsideRun(_) => "times_outside_run",
            Note::ForksFolded(_) => "forks_folded",
            Note::ProcessesUnsure(_) => "processes_unsure",
            Note::Cycles(_) => "cycles",
            Note::EndsClamped(_) => "ends_clamped",
            Note::ClockSkew(_) => "clock_skew",
            Note::ClockShifted { .. } => "clock_shifted",
            Note::ResourcesUnmatched(_) => "resources_unmatched",
            Note::ResourcesUnfinished(_) => "resources_unfinished",
            Note::ResourcesUnnamed { .. } => "resources_unnamed",
            Note::LimitedSlots(_) => "limited_slots",
            Note::Watched => "watched",
            Note::KernelTime { .. } => "kernel_time",
            Note::ScriptsUnnamed { .. } => "scripts_unnamed",
            Note::Unaccounted { .. } => "unaccounted",
            Note::FunctionsUnnamed { .. } => "functions_unnamed",
            Note::CpuBusy { .. } => "cpu_busy",
        }
    }

    /// How many: losses, spans, processes, pools. 1 where the note is about the run.
    pub fn count(&self) -> u64 {
        match self {
            Note::Loss(loss) => loss.count,
            Note::StacksDeep { stacks, .. } => *stacks,
            Note::NamesMissing { files, .. } => files.all as u64,
            Note::UnfinishedRun
            | Note::RunsApart(_)
            | Note::BlockedUnseen(_)
            | Note::Watched
            | Note::KernelTime { .. }
            | Note::ScriptsUnnamed { .. }
            | Note::Unaccounted { .. }
            | Note::CpuBusy { .. } => 1,
            Note::FunctionsUnnamed { samples, .. } => *samples,
            Note::OutlivedRun(processes) => processes.all as u64,
            Note::LegacyJoined { pairs, .. } => *pairs,
            Note::ClockShifted { spans, .. } => *spans,
            Note::LimitedSlots(limits) => limits.all as u64,
            Note::ResourcesUnmatched(operations) | Note::ResourcesUnfinished(operations) => operations.all as u64,
            Note::ProcessesUntimed(count)
            | Note::DuplicateIds(count)
            | Note::Orphans(count)
            | Note::RootsNested(count)
            | Note::TimesOutsideRun(count)
            | Note::ForksFolded(count)
            | Note::ProcessesUnsure(count)
            | Note::Cycles(count)
            | Note::EndsClamped(count)
            | Note::ClockSkew(count)
            | Note::ResourcesUnnamed { calls: count, .. } => *count,
        }
    }
}

/// Items that a note names, at most: a line or two of the answer.
const NAMED_MAX: usize = 6;

/// The first items of a list that may be as long as the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstOf<T> {
    /// The first few.
    pub first: Vec<T>,
    /// How many there are in all.
    pub all: usize,
}

impl<T> FromIterator<T> for FirstOf<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let first: Vec<T> = items.by_ref().take(NAMED_MAX).collect();
        FirstOf { all: first.len() + items.count(), first }
    }
}

/// What the engine was doing to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOperation {
    /// `create`, `update`, `delete`, …
    pub op: String,
    /// The resource's type and name.
    pub resource: String,
    /// For how long.
    pub nanos: Nanos,
}

/// A process and its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessName {
    /// Name of the program.
    pub program: String,
    /// The process.
    pub pid: u32,
}

/// A clock, and by how much its spans were moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockShift {
    /// The clock.
    pub clock: ClockName,
    /// Later if positive.
    pub nanos: Nanos,
}

/// A clock. Ordered, so that nothing depends on the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockName {
    /// That of the machine that recorded.
    Recorder,
    /// That of another host.
    Host(String),
    /// That of an emitter which names no host.
    Emitter {
        /// Its service.
        service: String,
        /// Its `service.instance.id`.
        instance: String,
        /// Its process.
        pid: Option<u32>,
    },
}

/// How many CPUs a command used on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpusUsed {
    /// In tenths of a CPU.
    pub tenths: u64,
    /// CPUs of the machine.
    pub cpus: u32,
}

/// A limit of concurrency that the schedule shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLimit {
    /// The most children that ran at once.
    pub slots: usize,
    /// Name of their parent.
    pub host: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_nothing_is_no_note() {
        assert_eq!(Note::counted(0, Note::Orphans), None);
        assert_eq!(Note::counted(3, Note::Orphans).map(|note| (note.code(), note.count())), Some(("orphans", 3)));
    }

    #[test]
    fn a_note_names_the_first_few_and_counts_all() {
        let few: FirstOf<u32> = (0..9).collect();
        assert_eq!(few, FirstOf { first: vec![0, 1, 2, 3, 4, 5], all: 9 });
    }
}
