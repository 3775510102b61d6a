//! What this process inherits and Rust's runtime, or we, change: the command must get it as we did.
//!
//! The runtime ignores SIGPIPE and opens `/dev/null` for closed standard descriptors, both before `main`. So [`record_inherited`], which the loader
//! calls, reads all that earlier, and stores it in atomics, because nothing else is initialised then.
#![expect(unsafe_code, reason = "an entry of .init_array, and the environment of this process")]

use std::ffi::{CStr, OsString, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::{fs, ptr};

use crate::sys::signal::{HANDLER_IGNORE, SIGNAL_MAX, SignalSet, change_mask, kernel_handler};

/// Bit n - 1: signal n was ignored.
static INHERITED_IGNORED: AtomicU64 = AtomicU64::new(0);

static INHERITED_MASK: AtomicU64 = AtomicU64::new(0);

/// Bit n: descriptor n, of 0 to 2, was closed.
static INHERITED_CLOSED: AtomicU64 = AtomicU64::new(0);

static INHERITED_FILES_SOFT: AtomicU64 = AtomicU64::new(u64::MAX);

static INHERITED_FILES_HARD: AtomicU64 = AtomicU64::new(u64::MAX);

static INHERITED_IS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Where the bytes of our arguments lie, so that the witness can blank its copy of them.
static ARGUMENTS_START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

static ARGUMENTS_BYTES: AtomicUsize = AtomicUsize::new(0);

// Miri calls entries of this section without arguments.
#[cfg(not(miri))]
#[used]
// SAFETY: the loader calls each entry of this section once, single-threaded, after relocation; the entry has the C ABI
// and calls nothing that needs an initialised runtime.
#[unsafe(link_section = ".init_array")]
static RECORD_INHERITED: extern "C" fn(c_int, *mut *mut c_char) = record_inherited;

#[cfg_attr(miri, allow(dead_code, reason = "its entry is left out"))]
extern "C" fn record_inherited(argc: c_int, argv: *mut *mut c_char) {
    let mut ignored = 0;
    for signal in 1..=SIGNAL_MAX {
        if kernel_handler(signal) == Some(HANDLER_IGNORE) {
            ignored |= SignalSet::bit(signal);
        }
    }
    INHERITED_IGNORED.store(ignored, Ordering::Relaxed);
    INHERITED_MASK.store(change_mask(libc::SIG_BLOCK, SignalSet(0)).0, Ordering::Relaxed);
    let mut closed = 0;
    for descriptor in 0..3 {
        // SAFETY: reads the flags of a descriptor, whatever it is.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            closed |= 1 << descriptor;
        }
    }
    INHERITED_CLOSED.store(closed, Ordering::Relaxed);
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `files` is a valid place for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) } == 0 {
        INHERITED_FILES_SOFT.store(files.rlim_cur, Ordering::Relaxed);
        INHERITED_FILES_HARD.store(files.rlim_max, Ordering::Relaxed);
    }
    // Only glibc hands the arguments to this function.
    if cfg!(target_env = "gnu") {
        record_arguments(argc, argv);
    }
    INHERITED_IS_RECORDED.store(true, Ordering::Relaxed);
}

/// Stores where the arguments are, if they are in one piece as the kernel puts them.
fn record_arguments(argc: c_int, argv: *mut *mut c_char) {
    let mut start = ptr::null_mut::<u8>();
    let mut bytes = 0;
    for i in 0..usize::try_from(argc).unwrap_or(0) {
        // SAFETY: argv has argc entries, each a NUL-terminated text.
        let (text, length) = unsafe {
            let text = (*argv.add(i)).cast::<u8>();
            if text.is_null() {
                return;
            }
            (text, CStr::from_ptr(text.cast()).count_bytes() + 1)
        };
        if i == 0 {
            start = text;
        } else if text != start.wrapping_add(bytes) {
            return;
        }
        bytes += length;
    }
    ARGUMENTS_START.store(start, Ordering::Relaxed);
    ARGUMENTS_BYTES.store(bytes, Ordering::Relaxed);
}

/// Records it now if a strange linker dropped the entry: the runtime has changed some of it, but that is better than nothing.
pub(crate) fn ensure_inherited_is_recorded() {
    if !INHERITED_IS_RECORDED.load(Ordering::Relaxed) {
        record_inherited(0, ptr::null_mut());
    }
}

/// The signals that we inherited as ignored. Async-signal-safe.
pub(super) fn ignored_signals() -> SignalSet {
    SignalSet(INHERITED_IGNORED.load(Ordering::Relaxed))
}

/// The signal mask that we inherited. Async-signal-safe.
pub(super) fn signal_mask() -> SignalSet {
    SignalSet(INHERITED_MASK.load(Ordering::Relaxed))
}

/// Whether a standard descriptor, 0 to 2, was closed. Async-signal-safe.
pub(super) fn was_closed(descriptor: c_int) -> bool {
    INHERITED_CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

/// The limit of open files that we inherited. Async-signal-safe.
pub(super) fn open_files() -> libc::rlimit {
    libc::rlimit { rlim_cur: INHERITED_FILES_SOFT.load(Ordering::Relaxed), rlim_max: INHERITED_FILES_HARD.load(Ordering::Relaxed) }
}

/// Where the bytes of our arguments lie, and how many they are; null where they do not lie in one piece. Async-signal-safe.
pub(super) fn arguments() -> (*mut u8, usize) {
    (ARGUMENTS_START.load(Ordering::Relaxed), ARGUMENTS_BYTES.load(Ordering::Relaxed))
}

/// Whether we inherited this signal as ignored, as `nohup` and a shell's `&` arrange it.
pub(crate) fn inherited_as_ignored(signal: i32) -> bool {
    ignored_signals().contains(signal)
}

/// Removes a variable from our own environment and returns it, unless there is a second thread, which might read it: then the variable stays, and
/// this is `None`.
pub(crate) fn take_variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    if fs::read_dir("/proc/self/task").ok()?.count() != 1 {
        return None;
    }
    // SAFETY: nobody reads the environment meanwhile, for this is the only thread.
    unsafe { std::env::remove_var(name) };
    Some(value)
}
