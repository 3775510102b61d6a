//! What was sampled: `struct perf_event_attr`, and what its records consist of.

use std::collections::HashMap;

use super::fields::Fields;
use crate::number::halves;

/// Size of the first version of the struct.
pub(super) const ATTR_BYTES_MIN: usize = 64;

/// Bits of `sample_type`, in the order of the fields they switch on.
pub(super) mod format {
    pub(in super::super) const IP: u64 = 1;
    pub(in super::super) const TID: u64 = 1 << 1;
    pub(in super::super) const TIME: u64 = 1 << 2;
    pub(in super::super) const ADDR: u64 = 1 << 3;
    pub(in super::super) const READ: u64 = 1 << 4;
    pub(in super::super) const CALLCHAIN: u64 = 1 << 5;
    pub(in super::super) const ID: u64 = 1 << 6;
    pub(in super::super) const CPU: u64 = 1 << 7;
    pub(in super::super) const PERIOD: u64 = 1 << 8;
    pub(in super::super) const STREAM_ID: u64 = 1 << 9;
    pub(in super::super) const RAW: u64 = 1 << 10;
    pub(in super::super) const BRANCH_STACK: u64 = 1 << 11;
    pub(in super::super) const REGS_USER: u64 = 1 << 12;
    pub(in super::super) const STACK_USER: u64 = 1 << 13;
    pub(in super::super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `flags`.
mod flag {
    pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(super) const FREQUENCY: u64 = 1 << 10;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

/// Linux's number of the clock that our own recordings use.
const CLOCK_MONOTONIC: u32 = 1;

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Nanoseconds on a CPU: `cpu-clock` or `task-clock`.
    CpuTime,
    /// Cycles of a CPU.
    Cycles,
    /// Something else: instructions, page faults, a tracepoint.
    Other,
    /// Nothing: it only carries records of mappings and processes.
    Nothing,
}

/// How often there was a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// This many times a second of CPU time.
    Frequency(u64),
    /// Each time so much was counted.
    Count(u64),
}

/// An event of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name as perf spells it; empty where the file does not say it.
    pub name: String,
    /// What it counts.
    pub kind: EventKind,
    /// How often there was a sample.
    pub period: Period,
    /// Whether code of the kernel was left out.
    pub excludes_kernel: bool,
    /// Whether times are those of CLOCK_MONOTONIC.
    pub is_monotonic: bool,
    /// How many bytes of stack were to be copied.
    pub stack_bytes: u32,
    /// Samples in the file.
    pub samples: u64,
    /// Numbers by which records name it.
    pub(super) ids: Vec<u64>,
    pub(super) fields: FieldsOf,
}

/// What the records of an event consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FieldsOf {
    pub(super) sample: u64,
    pub(super) read: u64,
    pub(super) branches: u64,
    pub(super) registers: u64,
    /// Whether records that are no samples end with who, when and where.
    pub(super) all_identified: bool,
}

impl FieldsOf {
    /// Bytes at the end of a record that is no sample.
    pub(super) fn trailer_bytes(self) -> usize {
        use format::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        if !self.all_identified {
            return 0;
        }
        (self.sample & (TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER)).count_ones() as usize * 8
    }
}

impl Event {
    /// Reads the struct; `None` where it is too short.
    pub(super) fn read(bytes: &[u8]) -> Option<Event> {
        let mut fields = Fields(bytes.get(..ATTR_BYTES_MIN)?);
        let (kind, _size) = (fields.u32()?, fields.u32()?);
        let (config, period) = (fields.u64()?, fields.u64()?);
        let (sample, read, flags) = (fields.u64()?, fields.u64()?, fields.u64()?);
        // Later versions of the struct are longer; what an older one lacks is zero.
        let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (stack_bytes, clock) = halves(word(88));
        Some(Event {
            name: String::new(),
            kind: match (kind, config) {
                (1, 0 | 1) => EventKind::CpuTime,
                (1, 9) => EventKind::Nothing,
                // The upper half says which kind of core.
                (0, config) if config & 0xffff_ffff == 0 => EventKind::Cycles,
                _ => EventKind::Other,
            },
            period: if flags & flag::FREQUENCY != 0 { Period::Frequency(period) } else { Period::Count(period) },
            excludes_kernel: flags & flag::EXCLUDE_KERNEL != 0,
            is_monotonic: flags & flag::USE_CLOCKID != 0 && clock == CLOCK_MONOTONIC,
            stack_bytes,
            samples: 0,
            ids: Vec::new(),
            fields: FieldsOf { sample, read, branches: word(72), registers: word(80), all_identified: flags & flag::SAMPLE_ID_ALL != 0 },
        })
    }
}

/// Which event a record is of, and so what it consists of.
#[derive(Debug, Default)]
pub(super) struct Layout {
    fields: Vec<FieldsOf>,
    event_of_id: HashMap<u64, usize>,
}

impl Layout {
    pub(super) fn new(events: &[Event]) -> Layout {
        let mut layout = Layout::default();
        events.iter().for_each(|event| layout.add(event));
        layout
    }

    /// Adds the next event.
    pub(super) fn add(&mut self, event: &Event) {
        let number = self.fields.len();
        self.fields.push(event.fields);
        self.event_of_id.extend(event.ids.iter().map(|id| (*id, number)));
    }

    /// The event of a record, with what it consists of. Events that differ in that put their number at one place: perf makes
    /// them so. Where a record names none, it is taken for the first's.
    pub(super) fn of(&self, is_sample: bool, body: &[u8]) -> (usize, FieldsOf) {
        let first = self.fields.first().copied().unwrap_or_default();
        if self.fields.len() < 2 {
            return (0, first);
        }
        let event = id_at(first, is_sample, body.len())
            .and_then(|at| body.get(at..at + 8)?.try_into().ok())
            .and_then(|id| self.event_of_id.get(&u64::from_le_bytes(id)))
            .copied()
            .unwrap_or(0);
        (event, self.fields[event])
    }
}

/// Where the number of its event stands in a record.
fn id_at(fields: FieldsOf, is_sample: bool, body_bytes: usize) -> Option<usize> {
    use format::{ADDR, CPU, ID, IDENTIFIER, IP, STREAM_ID, TID, TIME};
    let words = |mask: u64| (fields.sample & mask).count_ones() as usize * 8;
    match (fields.sample & IDENTIFIER != 0, fields.sample & ID != 0) {
        (true, _) if is_sample => Some(0),
        (false, true) if is_sample => Some(words(IP | TID | TIME | ADDR)),
        (true, _) if fields.all_identified => body_bytes.checked_sub(8),
        (false, true) if fields.all_identified => body_bytes.checked_sub(words(ID | STREAM_ID | CPU)),
        _ => None,
    }
}
