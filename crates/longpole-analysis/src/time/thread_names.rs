//! What threads are called: by their own names, or by the function that they begin with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use longpole_model::Recording;

use crate::code::functions::Functions;
use crate::code::origin::CodeOrigin;

/// Samples in which it is looked for what threads begin with; those that wait are known by their waits.
const ENTRY_SAMPLES_MAX: usize = 1 << 20;

/// By process and thread, the function that the thread begins with.
pub(crate) type ThreadEntries = HashMap<(u32, u32), usize>;

/// The outermost function of the program's own of each thread that is not the main one: what was given to be run in it.
fn entries(recording: &Recording, functions: &Functions) -> ThreadEntries {
    let mut entries: HashMap<(u32, u32), usize> = HashMap::new();
    let waits = recording.waits.iter().filter_map(|wait| Some((wait.pid, wait.tid, wait.stack?)));
    let samples = recording.samples.iter().take(ENTRY_SAMPLES_MAX).map(|sample| (sample.pid, sample.tid, sample.stack));
    for (pid, tid, stack) in waits.chain(samples).filter(|(pid, tid, _)| pid != tid) {
        if let Entry::Vacant(unknown) = entries.entry((pid, tid)) {
            let mut outermost = functions.of_stack(recording, stack).rev();
            outermost.find(|&function| functions.list[function].whose == CodeOrigin::Program).map(|entry| unknown.insert(entry));
        }
    }
    entries
}

/// What names are read from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadNames<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) functions: &'a Functions,
    /// Filled in for the first thread without a name of its own.
    pub(crate) entries: &'a OnceLock<ThreadEntries>,
}

impl<'a> ThreadNames<'a> {
    /// What a thread is called, where that is not what its process is called; else the function that it begins with.
    pub(crate) fn of(&self, pid: u32, tid: u32) -> Option<&'a str> {
        let thread = self.recording.threads.iter().rev().find(|thread| (thread.pid, thread.tid) == (pid, tid))?;
        let process = self.recording.processes.iter().rev().find(|process| process.pid == pid);
        let is_own = !thread.name.is_empty() && process.is_none_or(|process| process.name != thread.name);
        if is_own { Some(&thread.name) } else { self.entry_function(pid, tid) }
    }

    /// The function that a thread begins with. `None` where it was never seen in one.
    pub(crate) fn entry_function(&self, pid: u32, tid: u32) -> Option<&'a str> {
        self.entries
            .get_or_init(|| entries(self.recording, self.functions))
            .get(&(pid, tid))
            .map(|&function| self.functions.list[function].function.as_str())
    }
}
