//! The threads that others waited for and the processes that answer calls, each with its main activity.

use longpole_model::{Nanos, SampleId, ThreadKey};

use crate::report::Report;
use crate::report::names::{FunctionNames, NamedWait};
use crate::time::blocked_by::{BlockedBy, Blocker};
use crate::time::blockers::{BlockerEvidence, Relation};
use crate::time::callees::Callee;
use crate::time::wait_groups::WaitSum;

/// The thread that some waits were for most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedBySummary<'a> {
    /// One of several threads; the number is the most that it can have been.
    OneOf(Relation, u32),
    /// A known thread.
    Thread {
        /// The thread.
        blocker: BlockerSummary<'a>,
        /// How many others there were.
        others: usize,
    },
}

/// A thread that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockerSummary<'a> {
    /// What it was for the waiting thread.
    pub relation: Relation,
    /// Its name.
    pub thread: ThreadName<'a>,
    /// How it is known.
    pub evidence: BlockerEvidence,
    /// What it did most; `None` if nothing was seen of it.
    pub activity: Option<MainActivity<'a>>,
}

/// A thread that was waited for, as the waiting one sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadName<'a> {
    /// The waiting thread.
    Itself,
    /// One with a name of its own.
    Named(&'a str),
    /// The main thread of their process.
    Main,
    /// Another one, by its id.
    Number(u32),
}

/// A process that answers a call without a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalleeSummary<'a> {
    /// Name of its program.
    pub program: &'a str,
    /// The process.
    pub pid: u32,
    /// What it did most; `None` if nothing was seen of it.
    pub activity: Option<MainActivity<'a>>,
}

/// What a thread or a process did most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainActivity<'a> {
    /// It waited.
    Waited(NamedWait<'a>),
    /// It was on a CPU; the function is `None` if its samples are spread.
    Computed(Option<FunctionNames<'a>>),
}

impl Report {
    /// Whom these waits were for most; `None` where nothing is known.
    pub fn blocked_by_summary<'a>(&'a self, sum: &WaitSum<'_>, blocked: &BlockedBy<'a>) -> Option<BlockedBySummary<'a>> {
        let relation = sum.relation?;
        let Some(first) = blocked.list.first().filter(|first| blocked.one_of.is_none_or(|(nanos, _)| nanos <= first.nanos)) else {
            let (_, threads) = blocked.one_of.filter(|(nanos, _)| *nanos > Nanos::ZERO)?;
            return Some(BlockedBySummary::OneOf(relation, threads));
        };
        Some(BlockedBySummary::Thread { blocker: self.blocker_summary(sum, first), others: blocked.threads - 1 })
    }

    /// A thread that these waits were for.
    pub fn blocker_summary<'a>(&'a self, sum: &WaitSum<'_>, blocker: &Blocker<'a>) -> BlockerSummary<'a> {
        let wait = sum.wait;
        let thread = match blocker.name {
            _ if blocker.tid == wait.tid && sum.threads == 1 => ThreadName::Itself,
            name => name_of(ThreadKey::new(blocker.pid, blocker.tid), name),
        };
        let activity = self.main_activity(&blocker.samples, &blocker.waits);
        BlockerSummary { relation: blocker.relation, thread, evidence: blocker.evidence, activity }
    }

    /// What a thread is called.
    pub fn thread_name(&self, thread: ThreadKey) -> ThreadName<'_> {
        name_of(thread, self.thread_names().of(thread))
    }

    /// The process that answers, where no span says so.
    pub fn callee_summary(&self, callee: &Callee<'_>) -> Option<CalleeSummary<'_>> {
        let &process = callee.processes.first().filter(|_| !callee.answers)?;
        let (program, pid) = (self.forest.program(&self.recording, process), self.recording.processes[process].pid);
        Some(CalleeSummary { program, pid, activity: self.main_activity(&callee.samples, &callee.waits) })
    }

    fn main_activity(&self, samples: &[SampleId], waits: &[WaitSum<'_>]) -> Option<MainActivity<'_>> {
        let on_cpu: Nanos = samples.iter().map(|&sample| Nanos::from_u64(self.recording.samples[sample].weight_nanos)).sum();
        match waits.first() {
            Some(sum) if sum.nanos > on_cpu => Some(MainActivity::Waited(self.named_wait(sum.wait, sum.relation))),
            _ if on_cpu == Nanos::ZERO => None,
            _ => Some(MainActivity::Computed(self.named(samples).map(|named| self.names_of(named)))),
        }
    }
}

fn name_of(thread: ThreadKey, name: Option<&str>) -> ThreadName<'_> {
    match name {
        Some(name) => ThreadName::Named(name),
        None if thread.is_main() => ThreadName::Main,
        None => ThreadName::Number(thread.tid.0),
    }
}
