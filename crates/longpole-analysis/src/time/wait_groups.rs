//! Waits in groups: of one kind, in one function that waits, for one reason.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use longpole_model::fast_hash::FastMap;
use longpole_model::{FunctionId, Nanos, Recording, ThreadKey, Wait, WaitId, WaitKind};

use crate::code::functions::Functions;
use crate::time::blockers::{Blockers, Relation};

/// Waits of one kind in one function.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitSum<'a> {
    /// One of them.
    pub wait: &'a Wait,
    /// How long they were; where threads waited at the same time, that time once.
    pub nanos: Nanos,
    /// Threads that waited.
    pub threads: usize,
    /// Lines of the function where they were, longest first.
    pub places: Vec<WaitPlace<'a>>,
    /// What other threads were for them.
    pub relation: Option<Relation>,
    /// Whether they are waits of other threads of a process, which did not hold up what it did.
    pub in_other_threads: bool,
    pub(crate) parts: Vec<WaitPart>,
}

/// Waits on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitPlace<'a> {
    /// The source file.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// How long they were.
    pub nanos: Nanos,
}

/// A stretch of a wait, in nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WaitPart {
    pub(crate) wait: WaitId,
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// How much of it counts.
    pub(crate) nanos: Nanos,
}

/// Kind, system call, what other threads were for them, and the function that waits.
pub(crate) type WaitGroup<'w> = (WaitKind, &'w str, Option<Relation>, Option<FunctionId>);

/// What waits are grouped by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitGroups<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) functions: &'a Functions,
    pub(crate) blockers: &'a Blockers,
}

impl<'a> WaitGroups<'a> {
    /// Waits of one kind in one call of one function are one; `length` says how long several are together.
    pub(crate) fn sums(&self, waits: impl Iterator<Item = WaitPart>, length: impl Fn(&[WaitPart]) -> Nanos) -> Vec<WaitSum<'a>> {
        let mut groups: HashMap<WaitGroup<'_>, Vec<WaitPart>> = HashMap::new();
        for part in waits {
            groups.entry(self.group_of(&self.recording.waits[part.wait])).or_default().push(part);
        }
        let sum = |parts: Vec<WaitPart>| {
            let wait = |part: &WaitPart| &self.recording.waits[part.wait];
            let mut lines: FastMap<(&str, u32), Vec<WaitPart>> = FastMap::default();
            for part in &parts {
                if let Some(place) = self.waiting_place(wait(part)) {
                    lines.entry(place).or_default().push(*part);
                }
            }
            let mut places: Vec<WaitPlace<'a>> =
                lines.into_iter().map(|((file, line), parts)| WaitPlace { file, line, nanos: length(&parts) }).collect();
            places.sort_by_key(|place| (Reverse(place.nanos), place.line));
            let threads: HashSet<ThreadKey> = parts.iter().map(wait).map(Wait::thread).collect();
            let relation = self.blockers.relation(wait(&parts[0]));
            WaitSum {
                wait: wait(&parts[0]),
                nanos: length(&parts),
                threads: threads.len(),
                places,
                relation,
                in_other_threads: false,
                parts,
            }
        };
        let mut list: Vec<(WaitId, WaitSum<'a>)> = groups.into_values().map(|parts| (parts[0].wait, sum(parts))).collect();
        list.sort_by_key(|(first, sum)| (Reverse(sum.nanos), *first));
        list.into_iter().map(|(_, sum)| sum).collect()
    }

    /// What waits have in common that are one line of a list.
    pub(crate) fn group_of<'w>(&self, wait: &'w Wait) -> WaitGroup<'w> {
        (wait.kind, wait.syscall.as_str(), self.blockers.relation(wait), self.waiting(wait).map(|(function, _)| function))
    }

    /// The function of the program that waits, and its line, 0 where unknown.
    fn waiting(&self, wait: &Wait) -> Option<(FunctionId, u32)> {
        self.functions.waiting_in_stack(self.recording, wait.stack?)
    }

    /// The function of the program that waits.
    pub(crate) fn waiting_function(&self, wait: &Wait) -> Option<&'a str> {
        self.waiting(wait).map(|(function, _)| self.functions.list[function].function.as_str())
    }

    /// Where it waits: source file and line of that function, where they are known.
    pub(crate) fn waiting_place(&self, wait: &Wait) -> Option<(&'a str, u32)> {
        let (function, line) = self.waiting(wait)?;
        let file = self.functions.list[function].file.as_str();
        (!file.is_empty() && line > 0).then_some((file, line))
    }
}
