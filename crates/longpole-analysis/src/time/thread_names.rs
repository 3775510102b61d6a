//! What threads are called: by their own names, or by the function that they begin with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use longpole_model::{FunctionId, Recording, ThreadKey};

use crate::code::functions::Functions;
use crate::code::origin::CodeOrigin;

/// Samples in which it is looked for what threads begin with; those that wait are known by their waits.
const ENTRY_SAMPLES_MAX: usize = 1 << 20;

/// By process and thread, the function that the thread begins with.
pub(crate) type ThreadEntries = HashMap<ThreadKey, FunctionId>;

/// The outermost function of the program's own of each thread that is not the main one: what was given to be run in it.
fn entries(recording: &Recording, functions: &Functions) -> ThreadEntries {
    let mut entries = ThreadEntries::new();
    let waits = recording.waits.iter().filter_map(|wait| Some((wait.thread(), wait.stack?)));
    let samples = recording.samples.iter().take(ENTRY_SAMPLES_MAX).map(|sample| (sample.thread(), sample.stack));
    for (thread, stack) in waits.chain(samples).filter(|(thread, _)| !thread.is_main()) {
        if let Entry::Vacant(unknown) = entries.entry(thread) {
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
    pub(crate) fn of(&self, key: ThreadKey) -> Option<&'a str> {
        let thread = self.recording.threads.iter().rev().find(|thread| thread.thread() == key)?;
        let process = self.recording.processes.iter().rev().find(|process| process.pid == key.pid.0);
        let is_own = !thread.name.is_empty() && process.is_none_or(|process| process.name != thread.name);
        if is_own { Some(&thread.name) } else { self.entry_function(key) }
    }

    /// The function that a thread begins with. `None` where it was never seen in one.
    pub(crate) fn entry_function(&self, thread: ThreadKey) -> Option<&'a str> {
        self.entries
            .get_or_init(|| entries(self.recording, self.functions))
            .get(&thread)
            .map(|&function| self.functions.list[function].function.as_str())
    }
}
