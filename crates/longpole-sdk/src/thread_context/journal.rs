//! The journal: since when which span was current on a thread, in a file that outlives it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};

use super::record::in_words;
use crate::diagnostic::tell;
use crate::forks::is_forked_child;
use crate::span_context::ContextWords;
use crate::sys::{self, Mapping, monotonic_nanos, unix_nanos};

/// First bytes of a journal.
const JOURNAL_MAGIC_WORDS: [u64; 2] = in_words(*b"\x9cLONGPOLE-JRN1\xf3\xa7");
const JOURNAL_VERSION: u32 = 1;

/// Entries of a journal: a twelfth of a second at 100,000 a second, in 320 KiB.
pub(super) const CAPACITY: usize = 8192;

/// A journal gets its memory in steps of this, or of a page where that is more: a thread with few spans takes little.
const STEP_BYTES: usize = 16 << 10;

/// Feature of a journal: spans that are not sent have a mark before them.
const HAS_MARKS: u64 = 1;

/// The thread lives, or was killed.
pub(super) const OPEN: u32 = 0;
/// The thread has ended.
pub(super) const ENDED: u32 = 1;
/// There was no memory for more; the thread goes on without.
pub(super) const OUT_OF_MEMORY: u32 = 2;

/// Stands for a journal where there is none and none is to be tried.
pub(super) const NO_JOURNAL: *const Journal = ptr::without_provenance(1);

/// A journal file as it lies in memory. Only its own thread writes; other processes read what the fields say, in the order in
/// which they were stored.
#[repr(C)]
pub(super) struct Journal {
    magic: [AtomicU64; 2],
    version: AtomicU32,
    pub(super) process_id: AtomicU32,
    pub(super) thread_id: AtomicU32,
    entry_bytes: AtomicU32,
    capacity: AtomicU32,
    pub(super) state: AtomicU32,
    pub(super) written: AtomicU64,
    pub(super) anchor_monotonic: AtomicU64,
    pub(super) anchor_unix: AtomicU64,
    pub(super) pid_namespace: AtomicU64,
    pub(super) time_namespace: AtomicU64,
    features: AtomicU64,
    reserved: [AtomicU64; 5],
    pub(super) entries: [JournalEntry; CAPACITY],
}

/// From this moment on this span is current, or none.
#[repr(C)]
pub(super) struct JournalEntry {
    pub(super) number: AtomicU64,
    time: AtomicU64,
    trace_id: [AtomicU64; 2],
    span_id: AtomicU64,
}

pub(super) const JOURNAL_BYTES: usize = size_of::<Journal>();
pub(super) const ENTRIES_AT: usize = offset_of!(Journal, entries);

const _: () = assert!(ENTRIES_AT == 128 && size_of::<JournalEntry>() == 40 && CAPACITY.is_power_of_two());
const _: () = assert!(offset_of!(Journal, state) == 36 && offset_of!(Journal, written) == 40 && offset_of!(Journal, time_namespace) == 72);

impl Journal {
    /// Appends an entry; the oldest goes where there is no room.
    #[inline(always)]
    pub(super) fn append(&self, time: u64, context: ContextWords) {
        let number = self.written.load(Relaxed).wrapping_add(1);
        let entry = &self.entries[self.next()];
        // What was written before is seen before this entry changes: a reader that counts can tell which it may trust.
        fence(Release);
        entry.time.store(time, Relaxed);
        entry.trace_id[0].store(context.trace_id[0], Relaxed);
        entry.trace_id[1].store(context.trace_id[1], Relaxed);
        entry.span_id.store(context.span_id, Relaxed);
        entry.number.store(number, Release);
        self.written.store(number, Release);
    }

    /// Place of the next entry.
    #[inline(always)]
    pub(super) fn next(&self) -> usize {
        self.written.load(Relaxed) as usize & (CAPACITY - 1)
    }

    /// Says whose it is. The magic comes last: until then it is no journal.
    pub(super) fn sign(&self, thread_id: u32) {
        self.version.store(JOURNAL_VERSION, Relaxed);
        self.process_id.store(std::process::id(), Relaxed);
        self.thread_id.store(thread_id, Relaxed);
        self.entry_bytes.store(size_of::<JournalEntry>() as u32, Relaxed);
        self.capacity.store(CAPACITY as u32, Relaxed);
        self.state.store(OPEN, Relaxed);
        let before = monotonic_nanos();
        self.anchor_unix.store(unix_nanos(), Relaxed);
        self.anchor_monotonic.store(before + (monotonic_nanos() - before) / 2, Relaxed);
        self.pid_namespace.store(namespace("pid"), Relaxed);
        self.time_namespace.store(namespace("time"), Relaxed);
        self.features.store(HAS_MARKS, Relaxed);
        self.magic[0].store(JOURNAL_MAGIC_WORDS[0], Release);
        self.magic[1].store(JOURNAL_MAGIC_WORDS[1], Release);
    }
}

/// Makes the file and maps it; says for how many entries there is memory.
pub(super) fn map(path: &Path) -> io::Result<(*const Journal, usize)> {
    if !sys::file_may_have(JOURNAL_BYTES) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_len(JOURNAL_BYTES as u64)?;
    let backed = Mapping::shared(&file, JOURNAL_BYTES).and_then(|mapping| {
        let backed = back(mapping.start().cast_const().cast(), 0).or_else(|error| back_whole(&file, error))?;
        Ok((mapping.into_start().cast_const().cast(), backed))
    });
    if backed.is_err() {
        // It came to nothing. Where it cannot go, it goes with its directory.
        let _ = fs::remove_file(path);
    }
    backed
}

/// Has the kernel put memory behind the next step of a mapped journal, or say that it has none. Says for how many entries there
/// is memory then.
pub(super) fn back(journal: *const Journal, from: usize) -> io::Result<usize> {
    let page = sys::page_bytes(STEP_BYTES);
    let from = from / page * page;
    // The last page of the mapping is whole.
    let to = (from + STEP_BYTES.max(page)).min(JOURNAL_BYTES.next_multiple_of(page));
    sys::populate(journal.cast_mut().wrapping_byte_add(from).cast(), to - from)?;
    Ok(((to - ENTRIES_AT) / size_of::<JournalEntry>()).min(CAPACITY))
}

/// Linux before 5.14 cannot populate memory in steps: all of it at once, then.
fn back_whole(file: &File, error: io::Error) -> io::Result<usize> {
    if error.raw_os_error() != Some(libc::EINVAL) {
        return Err(error);
    }
    sys::allocate(file, JOURNAL_BYTES).map(|()| CAPACITY)
}

/// Where journals are to be put; `None` where nobody reads them.
pub(super) fn directory() -> Option<&'static Path> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    // In a forked child a thread of the parent may have been initialising it for ever.
    let directory = if is_forked_child() { DIRECTORY.get()? } else { DIRECTORY.get_or_init(read_directory) };
    directory.as_deref()
}

fn read_directory() -> Option<PathBuf> {
    if sys::has_more_rights_than_its_caller() {
        return None;
    }
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_true = |value: OsString| value.to_string_lossy().trim().eq_ignore_ascii_case("true");
    let directory = PathBuf::from(value("LONGPOLE_JOURNAL_DIR")?);
    (directory.is_absolute() && !value("OTEL_SDK_DISABLED").is_some_and(is_true)).then_some(directory)
}

/// Says once that the profiler will know less.
pub(super) fn tell_none(why: &str) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Relaxed) && !is_forked_child() {
        tell(&format!("a thread has no span journal: {why}; a profiler links fewer of its samples exactly"));
    }
}

/// Number of a namespace of this process; 0 where the kernel has none, or does not say.
fn namespace(kind: &str) -> u64 {
    fs::metadata(format!("/proc/self/ns/{kind}")).map_or(0, |meta| meta.ino())
}
