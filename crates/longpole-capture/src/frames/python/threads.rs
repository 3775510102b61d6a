//! Finds the kernel's thread of an interpreter's thread.
//!
//! From 3.11 on CPython has the kernel's thread id, in the process's own pid namespace. Earlier versions have `pthread_self()` only: the address of the
//! C library's record of the thread, which holds that id at some offset. A search for the id of the main thread in its record yields the offset.
//! The same happens if CPython has the id from before a fork, which some versions keep.

use std::collections::HashMap;
use std::fs;

use longpole_symbols::memory::{Memory, MemoryPart};
use longpole_symbols::python::ThreadRead;

use crate::procfs::namespace::inner_id;

/// Bytes of a thread's record to search: glibc has the id at byte 720, musl at 48.
const RECORD_BYTES: usize = 1024;

/// How many readings to skip a thread that was not found: reading `/proc` takes longer than all the rest.
const PATIENCE: u32 = 16;

/// The threads of one process.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// By `pthread_self()` and the id inside.
    known: HashMap<(u64, u64), u32>,
    /// Offset of the id in the record of a thread.
    id_at: Option<usize>,
    /// Ids in the inner namespace, to ours.
    tasks: HashMap<u32, u32>,
    /// Threads that were not found, and how many more readings skip them.
    unknown: HashMap<(u64, u64), u32>,
}

impl Threads {
    /// The id of a thread in our pid namespace.
    pub(super) fn id(&mut self, memory: &dyn Memory, pid: u32, thread: &ThreadRead) -> Option<u32> {
        let key = (thread.pthread, thread.native.unwrap_or(0));
        if let Some(id) = self.known.get(&key) {
            return Some(*id);
        }
        if let Some(patience) = self.unknown.get_mut(&key).filter(|patience| **patience > 0) {
            *patience -= 1;
            return None;
        }
        // Each thread is searched once, so the others are read again.
        self.tasks = tasks(pid).unwrap_or_default();
        let native = thread.native.and_then(|native| u32::try_from(native).ok());
        let inside = native.filter(|native| self.tasks.contains_key(native)).or_else(|| self.id_of_record(memory, pid, thread.pthread));
        let id = inside.and_then(|inside| self.tasks.get(&inside)).copied();
        match id {
            Some(id) => {
                self.unknown.remove(&key);
                self.known.insert(key, id);
            }
            None => {
                self.unknown.insert(key, PATIENCE);
            }
        }
        id
    }

    /// Drops threads that have ended: their ids may belong to others now.
    pub(super) fn forget_all_but(&mut self, living: &[ThreadRead]) {
        let lives = |key: &(u64, u64)| living.iter().any(|thread| (thread.pthread, thread.native.unwrap_or(0)) == *key);
        if self.known.len() + self.unknown.len() > living.len() {
            self.known.retain(|key, _| lives(key));
            self.unknown.retain(|key, _| lives(key));
        }
    }

    fn id_of_record(&mut self, memory: &dyn Memory, pid: u32, record: u64) -> Option<u32> {
        let mut bytes = vec![0; RECORD_BYTES];
        let mut part = [MemoryPart { address: record, place: 0..RECORD_BYTES, is_there: false }];
        memory.copy(&mut part, &mut bytes).ok()?;
        if !part[0].is_there {
            return None;
        }
        let ids: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        if self.id_at.is_none() {
            // The id of the main thread is that of its process.
            let main = self.tasks.iter().find(|(_, outside)| **outside == pid).map(|(inside, _)| *inside)?;
            self.id_at = ids.iter().position(|id| *id == main);
        }
        self.id_at.and_then(|at| ids.get(at)).copied().filter(|id| self.tasks.contains_key(id))
    }
}

/// Threads of a process: their ids in its pid namespace, to those in ours.
fn tasks(pid: u32) -> Option<HashMap<u32, u32>> {
    let is_nested = inner_id(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?).is_some_and(|inner| inner != pid);
    let mut tasks = HashMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let inner =
            if is_nested { fs::read_to_string(entry.path().join("status")).ok().and_then(|text| inner_id(&text)) } else { Some(id) };
        tasks.extend(inner.map(|inner| (inner, id)));
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_id_is_the_one_that_the_process_knows() {
        assert_eq!(inner_id("Name:\tpython3\nNSpid:\t4711\t12\nNSpgid:\t4711\t12\n"), Some(12));
        assert_eq!(inner_id("NSpid:\t4711\n"), Some(4711));
        assert_eq!(inner_id("Name:\tx\n"), None);
        let own = std::process::id();
        assert_eq!(tasks(own).unwrap().values().filter(|id| **id == own).count(), 1);
    }
}
