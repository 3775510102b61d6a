//! Records of processes that a recorder leaves out ([`LeftOut`]): nothing of such a process may be read, so its records go nowhere.

use std::collections::HashSet;

use crate::perf::record::{Body, RawRecord, Record, Source};
use crate::procfs::left_out::LeftOut;

/// Which processes to leave out, as far as they have been met.
#[derive(Debug, Default)]
pub(super) struct LeftOutRecords {
    left_out: LeftOut,
    pids: HashSet<u32>,
}

impl LeftOutRecords {
    pub(super) fn new(left_out: LeftOut) -> LeftOutRecords {
        LeftOutRecords { left_out, pids: HashSet::new() }
    }

    /// A process is there, or executes another program. Returns whether it is left out.
    pub(super) fn found(&mut self, pid: u32) -> bool {
        if self.left_out.has(pid) {
            self.pids.insert(pid);
        } else if !self.pids.is_empty() {
            self.pids.remove(&pid);
        }
        self.pids.contains(&pid)
    }

    /// Whether to drop a record that arrived.
    pub(super) fn drops(&mut self, record: &RawRecord<'_>, source: Source) -> bool {
        if self.left_out.is_empty() {
            return false;
        }
        let Ok(Record { pid, body, .. }) = record.decode(source) else { return false };
        match body {
            Body::Fork { pid, parent_pid, .. } if pid != parent_pid => self.found(pid),
            Body::Exit { pid, tid } if pid == tid => self.pids.remove(&pid),
            _ => self.pids.contains(&pid),
        }
    }
}
