//! Reads the context record of the calling thread the way a profiler does: from a copy of the stack, by its magic. The
//! layout here comes from `docs/formats/span-context.md`, not from the SDK.

use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: [u8; 16] = [0x9c, 0x4c, 0x4f, 0x4e, 0x47, 0x50, 0x4f, 0x4c, 0x45, 0x2d, 0x43, 0x54, 0x58, 0x31, 0xf3, 0xa7];

/// The record's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Bytes from the reader's stack pointer, about.
    pub(crate) distance: usize,
    pub(crate) version: u32,
    pub(crate) sequence: u64,
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) valid: u8,
    pub(crate) flags: u8,
    pub(crate) rest: [u8; 6],
}

impl Found {
    /// The span as a `traceparent`; `None` where the record says that there is none.
    pub(crate) fn traceparent(&self) -> Option<String> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        (self.valid == 1).then(|| format!("00-{}-{}-{:02x}", hex(&self.trace_id), hex(&self.span_id), self.flags))
    }
}

/// The one record of this thread between the stack pointer and the end of the stack's mapping.
#[inline(never)]
pub(crate) fn read() -> Option<Found> {
    let here = std::hint::black_box(&0u8) as *const u8 as usize;
    let local = 0u8;
    let here = if mapping_end(here).is_some_and(|(_, stack)| stack) { here } else { std::hint::black_box(&local) as *const u8 as usize };
    let (end, _) = mapping_end(here)?;
    let start = here & !15;
    let mut stack = vec![0; end - start];
    let read = File::open("/proc/thread-self/mem").unwrap().read_at(&mut stack, start as u64).unwrap();
    let thread_id: u32 = std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
    let mut found = None;
    for (at, record) in (0..read.saturating_sub(63)).step_by(16).map(|at| (at, &stack[at..at + 64])) {
        if record[..16] == MAGIC && record[20..24] == thread_id.to_ne_bytes() {
            assert_eq!(found, None, "two records of one thread");
            found = Some(Found {
                distance: at,
                version: u32::from_ne_bytes(record[16..20].try_into().unwrap()),
                sequence: u64::from_ne_bytes(record[24..32].try_into().unwrap()),
                trace_id: record[32..48].try_into().unwrap(),
                span_id: record[48..56].try_into().unwrap(),
                valid: record[56],
                flags: record[57],
                rest: record[58..64].try_into().unwrap(),
            });
        }
    }
    found
}

/// End of the mapping that holds an address.
fn mapping_end(address: usize) -> Option<(usize, bool)> {
    let maps = std::fs::read_to_string("/proc/thread-self/maps").unwrap();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        (start..end).contains(&address).then(|| (end, rest.starts_with("rw")))
    })
}
