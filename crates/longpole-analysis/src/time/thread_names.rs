//! What threads are called: by their own names, or by the function that they begin with.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use longpole_model::{FunctionId, Pid, ProcessRow, Recording, ThreadKey};

use crate::code::functions::Functions;
use crate::code::origin::CodeOrigin;

/// Samples in which it is looked for what threads begin with; those that wait are known by their waits.
const ENTRY_SAMPLES_MAX: usize = 1 << 20;

/// What the names of threads are looked up in, filled in when the first thread needs it.
#[derive(Debug, Default)]
pub(crate) struct ThreadEntries {
    /// The function that each thread begins with.
    functions: OnceLock<HashMap<ThreadKey, FunctionId>>,
    last: OnceLock<LastRows>,
}

/// The last thread of each process and number, and the last process of each number.
#[derive(Debug)]
struct LastRows {
    threads: HashMap<ThreadKey, usize>,
    processes: HashMap<Pid, ProcessRow>,
}

impl LastRows {
    fn of(recording: &Recording) -> LastRows {
        LastRows {
            threads: recording.threads.iter().enumerate().map(|(row, thread)| (thread.thread(), row)).collect(),
            processes: recording.process_rows().map(|row| (Pid(recording.processes[row].pid), row)).collect(),
        }
    }
}

/// The outermost function of the program's own of each thread that is not the main one: what was given to be run in it.
fn entries(recording: &Recording, functions: &Functions) -> HashMap<ThreadKey, FunctionId> {
    let mut entries = HashMap::new();
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
    pub(crate) entries: &'a ThreadEntries,
}

impl<'a> ThreadNames<'a> {
    /// What a thread is called, where that is not what its process is called; else the function that it begins with.
    pub(crate) fn of(&self, key: ThreadKey) -> Option<&'a str> {
        let last = self.entries.last.get_or_init(|| LastRows::of(self.recording));
        let thread = &self.recording.threads[*last.threads.get(&key)?];
        let process = last.processes.get(&key.pid).map(|&row| &self.recording.processes[row]);
        let is_own = !thread.name.is_empty() && process.is_none_or(|process| process.name != thread.name);
        if is_own { Some(&thread.name) } else { self.entry_function(key) }
    }

    /// The function that a thread begins with. `None` where it was never seen in one.
    pub(crate) fn entry_function(&self, thread: ThreadKey) -> Option<&'a str> {
        self.entries
            .functions
            .get_or_init(|| entries(self.recording, self.functions))
            .get(&thread)
            .map(|&function| self.functions.list[function].function.as_str())
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{Process, Thread, text};

    use super::*;

    /// All threads and all processes were searched for each thread: 90,000,000,000 steps.
    #[test]
    fn names_of_many_threads_are_each_found_at_once() {
        const COUNT: u32 = 300_000;
        let mut recording = text::parse("run x 0..100ms\nprocess a 1..90ms pid 2 under 1\n").unwrap();
        let process = recording.processes[1].clone();
        let thread = |number: u32, name: String| Thread {
            pid: 2 + number,
            tid: 2 + number,
            name,
            start: process.start,
            end: None,
            totals: None,
            ident: None,
        };
        recording.processes = (0..COUNT).map(|number| Process { pid: 2 + number, ..process.clone() }).collect();
        // The name of the last thread of that number holds.
        let names = (0..COUNT).map(|number| if number % 2 == 0 { "a".to_owned() } else { number.to_string() });
        recording.threads = (0..COUNT).map(|number| thread(number, "old".to_owned())).collect();
        recording.threads.extend(names.enumerate().map(|(number, name)| thread(number as u32, name)));
        let (functions, entries) = (Functions::default(), ThreadEntries::default());
        let names = ThreadNames { recording: &recording, functions: &functions, entries: &entries };
        for number in 0..COUNT {
            let name = (number % 2 == 1).then(|| number.to_string());
            assert_eq!(names.of(ThreadKey::new(2 + number, 2 + number)), name.as_deref());
        }
        assert_eq!(names.of(ThreadKey::new(2, 3)), None);
    }
}
