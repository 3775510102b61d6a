//! When each process last executed a program, by the records that have arrived.

use longpole_model::fast_hash::FastMap;

use crate::perf::record::{Body, Record};

/// The last exec of each process that has not ended.
#[derive(Debug, Default)]
pub(crate) struct Execs(FastMap<u32, u64>);

impl Execs {
    /// A record of the tracker has arrived, possibly out of order.
    pub(crate) fn arrived(&mut self, record: &Record<'_>) {
        match record.body {
            Body::Comm { exec: true, .. } => {
                let last = self.0.entry(record.pid).or_insert(0);
                *last = record.time.max(*last);
            }
            Body::Exit { pid, tid } if pid == tid => {
                self.0.remove(&pid);
            }
            _ => {}
        }
    }

    /// The last exec of a process; 0 if none has arrived.
    pub(crate) fn last(&self, pid: u32) -> u64 {
        self.0.get(&pid).copied().unwrap_or(0)
    }
}
