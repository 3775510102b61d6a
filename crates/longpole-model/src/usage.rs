//! What processes have used, as the kernel counts: memory, page faults, bytes, CPU time.

use crate::time::Monotonic;

/// What one process had used at one moment: all but the memory since it was forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Process.
    pub pid: u32,
    /// When it was read.
    pub time: Monotonic,
    /// Its memory; `None` where it has none any more, because it has ended and waits for its parent to take notice.
    pub memory: Option<ProcessMemory>,
    /// User and system time of all its threads.
    pub cpu_nanos: u64,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Bytes it read and wrote; `None` where they may not be seen.
    pub io: Option<IoBytes>,
}

/// Memory of a process. What it shares with others (libraries, pages since the fork) counts in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMemory {
    /// In RAM at this moment.
    pub resident_bytes: u64,
    /// The most that was in RAM since its last exec, also between two readings.
    pub peak_resident_bytes: u64,
}

/// What a process read and wrote. The kernel adds to it what its children did, at the moment it waits for their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoBytes {
    /// By calls that read: of files (also those in memory already), pipes, terminals and, where they are read as files, sockets.
    pub read: u64,
    /// By calls that write.
    pub written: u64,
    /// Fetched from storage.
    pub storage_read: u64,
    /// To be brought to storage.
    pub storage_written: u64,
}

impl IoBytes {
    /// What is left of this without that; nothing where that is more.
    pub fn saturating_sub(self, other: IoBytes) -> IoBytes {
        IoBytes {
            read: self.read.saturating_sub(other.read),
            written: self.written.saturating_sub(other.written),
            storage_read: self.storage_read.saturating_sub(other.storage_read),
            storage_written: self.storage_written.saturating_sub(other.storage_written),
        }
    }

    /// Both.
    pub fn saturating_add(self, other: IoBytes) -> IoBytes {
        IoBytes {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
            storage_read: self.storage_read.saturating_add(other.storage_read),
            storage_written: self.storage_written.saturating_add(other.storage_written),
        }
    }
}

/// What the command and all it waited for used, as `wait4` tells at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunUsage {
    /// The most that one of these processes had in RAM; `None` where it was less than what the recorder itself had when it forked the
    /// command, because the kernel counts from the fork.
    pub peak_resident_bytes: Option<u64>,
    /// Page faults that were served from memory.
    pub minor_faults: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
}
