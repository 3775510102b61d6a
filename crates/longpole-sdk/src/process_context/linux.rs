//! The same on Linux: a mapping with a name.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::{offset_of, size_of};
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
use std::sync::{Mutex, Once};

use crate::forks;
use crate::sys::{self, Mapping};

/// What OTEP 4719 has of a process in a mapping that other processes find by its name.
#[repr(C)]
struct ProcessHeader {
    signature: AtomicU64,
    version: AtomicU32,
    payload_bytes: AtomicU32,
    /// CLOCK_BOOTTIME; 0 while it is being changed.
    published_at: AtomicU64,
    payload: AtomicU64,
}

const _: () = assert!(size_of::<ProcessHeader>() == 32 && offset_of!(ProcessHeader, published_at) == 16);

const PROCESS_SIGNATURE: [u8; 8] = *b"OTEL_CTX";
const PROCESS_VERSION: u32 = 2;

/// Name of the mapping.
const PROCESS_NAME: &CStr = c"OTEL_CTX";

/// The mapping of this process; null until there is one. There must not be two.
static PROCESS_HEADER: AtomicPtr<ProcessHeader> = AtomicPtr::new(ptr::null_mut());

/// Publishes what this process is, an encoded `ProcessContext`, instead of what it published before. Where memory is missing, other profilers do without.
pub(crate) fn publish(payload: Vec<u8>) {
    /// What the header points to.
    static PAYLOAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    watch_forks();
    // In a forked child a thread of the parent may hold the lock for ever; and a second caller publishes the same.
    let (Ok(mut kept), Ok(payload_bytes)) = (PAYLOAD.try_lock(), u32::try_from(payload.len())) else { return };
    let mut header = PROCESS_HEADER.load(Relaxed);
    if header.is_null() {
        let Some(mapped) = map_header() else { return };
        header = mapped;
        PROCESS_HEADER.store(header, Relaxed);
    }
    // SAFETY: the mapping holds a header at its start, is never taken away, and all of it is atomics; a forked child, which
    // does not have it, has forgotten the pointer.
    let shown = unsafe { &*header };
    let before = shown.published_at.swap(0, Relaxed);
    fence(SeqCst);
    shown.signature.store(u64::from_ne_bytes(PROCESS_SIGNATURE), Relaxed);
    shown.version.store(PROCESS_VERSION, Relaxed);
    shown.payload_bytes.store(payload_bytes, Relaxed);
    shown.payload.store(payload.as_ptr().addr() as u64, Relaxed);
    fence(SeqCst);
    shown.published_at.store(sys::boot_nanos().max(before + 1), Relaxed);
    // The call tells those who watch for it; that the mapping cannot be named is no fault where it has a file's name.
    sys::name_memory(header.cast(), size_of::<ProcessHeader>(), PROCESS_NAME);
    // The old payload may go: a reader in the middle of it sees that the time has changed.
    *kept = payload;
}

/// Memory for the header: of a file without a place, whose name shows, or, where there may be none, without a file.
fn map_header() -> Option<*mut ProcessHeader> {
    let bytes = size_of::<ProcessHeader>();
    let file = sys::file_in_memory(PROCESS_NAME).filter(|file| sys::file_may_have(bytes) && file.set_len(bytes as u64).is_ok());
    let mapping = Mapping::private(file.as_ref(), bytes).ok()?;
    let is_kept_from_children = mapping.is_kept_from_children();
    let is_found = file.is_some() || sys::name_memory(mapping.start(), bytes, PROCESS_NAME);
    (is_kept_from_children && is_found).then(|| mapping.into_start().cast())
}

fn watch_forks() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        forks::watch();
        sys::call_in_forked_children(forget);
    });
}

/// The mapping stayed behind with the parent.
extern "C" fn forget() {
    PROCESS_HEADER.store(ptr::null_mut(), Relaxed);
}
