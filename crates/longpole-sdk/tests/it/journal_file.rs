//! Reads journals the way a profiler does. The layout here comes from `docs/formats/span-context.md`, not from the SDK.

use std::path::Path;

const MAGIC: &[u8] = b"\x9cLONGPOLE-JRN1\xf3\xa7";

/// A journal that was not written around.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) state: u32,
    pub(crate) is_ended: bool,
    pub(crate) made_at: u64,
    pub(crate) times: Vec<u64>,
    span_ids: Vec<[u8; 8]>,
}

impl Journal {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let whole = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(&bytes[..16], MAGIC);
        assert_eq!((half(16), half(28), half(32)), (1, 40, 8192));
        let written = whole(40) as usize;
        let entries: Vec<usize> = (0..written).map(|entry| 128 + entry * 40).collect();
        for (number, at) in entries.iter().enumerate() {
            assert_eq!(whole(*at), number as u64 + 1);
        }
        Journal {
            pid: half(20),
            tid: half(24),
            state: half(36),
            is_ended: half(36) == 1,
            made_at: whole(48),
            times: entries.iter().map(|at| whole(at + 8)).collect(),
            span_ids: entries.iter().map(|at| bytes[at + 32..at + 40].try_into().unwrap()).collect(),
        }
    }

    /// The spans by the first byte of their ids.
    pub(crate) fn spans(&self) -> String {
        let name = |id: &[u8; 8]| if id[0] == 0 { "-".to_owned() } else { id[0].to_string() };
        self.span_ids.iter().map(name).collect::<Vec<_>>().join(".")
    }
}

/// Those in a directory, in the order in which they were made.
pub(crate) fn journals_in(directory: &Path) -> Vec<Journal> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let mut journals: Vec<Journal> = files.map(|bytes| Journal::parse(&bytes)).collect();
    journals.sort_by_key(|journal| journal.made_at);
    journals
}
