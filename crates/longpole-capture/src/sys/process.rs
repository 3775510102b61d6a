//! Processes and signals: fork and exec behind a gate, wait, stop and die like somebody else.
//!
//! Three kinds of code live here, and each may do less than ordinary code:
//!
//! - the function in `.init_array`, which runs before Rust's runtime: it reads kernel state and stores it in atomics;
//! - the signal handler, and everything it calls: async-signal-safe calls only, `errno` kept;
//! - the two children after `fork` and before `exec` or `_exit`: the same, because another thread of the parent may have
//!   held any lock, the allocator's too, at the moment of the fork. All they need is built before the fork.
#![expect(unsafe_code, reason = "the system calls of processes and signals")]

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::{fs, io};

use longpole_model::{Exit, RunUsage};

use crate::procfs::usage::exit_of_status;

/// A process id, as the kernel has it.
pub(crate) type Pid = libc::pid_t;

/// The kernel's own set of the signals 1 to 64. The C library's is larger and hides the two signals it uses itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalSet(u64);

impl SignalSet {
    /// Every signal there is.
    pub(crate) const ALL: SignalSet = SignalSet(!0);

    /// The set of these.
    pub(crate) fn of(signals: impl IntoIterator<Item = i32>) -> SignalSet {
        SignalSet(signals.into_iter().fold(0, |bits, signal| bits | Self::bit(signal)))
    }

    /// Those that are in both.
    pub(crate) fn and(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & other.0)
    }

    /// Those that are not in `other`.
    pub(crate) fn without(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & !other.0)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = i32> {
        (1..=SIGNAL_MAX).filter(move |signal| self.contains(*signal))
    }

    /// Whether the signal is one of them.
    pub(crate) fn contains(self, signal: i32) -> bool {
        self.0 & Self::bit(signal) != 0
    }

    fn bit(signal: i32) -> u64 {
        if (1..=SIGNAL_MAX).contains(&signal) { 1 << (signal - 1) } else { 0 }
    }
}

/// The last signal.
const SIGNAL_MAX: i32 = 64;

/// Bytes of the kernel's signal set, which every `rt_sig…` call wants to be told.
const KERNEL_SET_BYTES: usize = mem::size_of::<u64>();

/// `struct sigaction` of the kernel on x86-64 and aarch64: handler, flags, restorer, mask. Not the C library's.
type KernelAction = [u64; 4];

const HANDLER_DEFAULT: u64 = 0;
const HANDLER_IGNORE: u64 = 1;

// ---------------------------------------------------------------------------------------------------------------------
// What we inherited
// ---------------------------------------------------------------------------------------------------------------------

/// What a process inherits and Rust's runtime, or we, change: the command must find it as we did.
///
/// The runtime ignores SIGPIPE and opens `/dev/null` in place of closed standard descriptors, both before `main`. So it
/// is read earlier, by [`record_inherited`], which the loader calls; and stored in atomics, because nothing else is
/// initialised then.
static INHERITED_IGNORED: AtomicU64 = AtomicU64::new(0);
static INHERITED_MASK: AtomicU64 = AtomicU64::new(0);
/// Bit n: descriptor n, of 0 to 2, was closed.
static INHERITED_CLOSED: AtomicU64 = AtomicU64::new(0);
static INHERITED_FILES_SOFT: AtomicU64 = AtomicU64::new(u64::MAX);
static INHERITED_FILES_HARD: AtomicU64 = AtomicU64::new(u64::MAX);
static INHERITED_IS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Where the bytes of our arguments lie, so that the witness can take them off itself.
static ARGUMENTS_START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static ARGUMENTS_BYTES: AtomicUsize = AtomicUsize::new(0);

#[used]
// SAFETY: the loader calls each entry of this section once, single-threaded, after relocation; the entry has the C ABI
// and calls nothing that needs an initialised runtime.
#[unsafe(link_section = ".init_array")]
static RECORD_INHERITED: extern "C" fn(c_int, *mut *mut c_char) = record_inherited;

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

/// Remembers where the arguments lie, if they lie in one piece as the kernel puts them.
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

/// Takes a variable out of our own environment, if nobody else can be reading it: in a process with a second thread it stays, and is `None`.
pub(crate) fn take_variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    if fs::read_dir("/proc/self/task").ok()?.count() != 1 {
        return None;
    }
    // SAFETY: nobody reads the environment meanwhile, for this is the only thread.
    unsafe { std::env::remove_var(name) };
    Some(value)
}

/// Whether a file is one that the kernel makes up: proc, sysfs, tracefs, debugfs.
pub(crate) fn is_of_the_kernel(file: &File) -> bool {
    // TRACEFS_MAGIC and DEBUGFS_MAGIC of <linux/magic.h>.
    const KERNEL: [u64; 4] = [libc::PROC_SUPER_MAGIC as u64, libc::SYSFS_MAGIC as u64, 0x7472_6163, 0x6462_6720];
    // SAFETY: all zero is a value of the type, and a place for the answer.
    let found = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &mut found) == 0).then_some(found.f_type)
    };
    found.is_some_and(|kind| KERNEL.contains(&(kind as u64)))
}

/// Finds what stands in a folder under this name, a link itself if it is one, without opening it. `None` where another file system is mounted
/// there: a daemon of anybody (FUSE) would be asked for all else, and may never answer.
pub(crate) fn find_in(folder: &File, name: &OsStr) -> io::Result<Option<File>> {
    let name = CString::new(name.as_bytes())?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: all zero is a value of the type, which the kernel only reads.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    (how.flags, how.resolve) = (flags as u64, libc::RESOLVE_NO_XDEV);
    // SAFETY: the name ends with a zero, and the last argument is the size of `how`.
    let found = unsafe { libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), name.as_ptr(), &how, size_of_val(&how)) };
    let found = match (found, io::Error::last_os_error()) {
        (..0, error) if error.raw_os_error() == Some(libc::EXDEV) => return Ok(None),
        // Before Linux 5.6, and behind filters that do not know the call.
        (..0, error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            // SAFETY: the name ends with a zero.
            let found = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
            if found < 0 {
                return Err(io::Error::last_os_error());
            }
            found
        }
        (..0, error) => return Err(error),
        (found, _) => i32::try_from(found).map_err(io::Error::other)?,
    };
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(Some(unsafe { File::from_raw_fd(found) }))
}

/// The soft limit of the main thread's stack.
pub(crate) fn stack_limit_bytes() -> u64 {
    let mut stack = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `stack` is a valid place for the answer. It fails on nothing else.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut stack) };
    stack.rlim_cur
}

/// Records now what should have been recorded by the loader, where a strange linker left the entry out: worse, because
/// the runtime has changed some of it, and better than nothing.
pub(crate) fn ensure_inherited_is_recorded() {
    if !INHERITED_IS_RECORDED.load(Ordering::Relaxed) {
        record_inherited(0, ptr::null_mut());
    }
}

/// Whether we inherited this signal as ignored, as `nohup` and a shell's `&` arrange it.
pub(crate) fn inherited_as_ignored(signal: i32) -> bool {
    SignalSet(INHERITED_IGNORED.load(Ordering::Relaxed)).contains(signal)
}

// ---------------------------------------------------------------------------------------------------------------------
// Masks and dispositions
// ---------------------------------------------------------------------------------------------------------------------

/// Changes the mask of the calling thread; the answer is the mask before.
fn change_mask(how: c_int, set: SignalSet) -> SignalSet {
    let mut before = 0u64;
    // SAFETY: both sets are valid 8-byte kernel sets; the call touches the calling thread only and fails on nothing else
    // than a wrong `how`.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set.0, &mut before, KERNEL_SET_BYTES) };
    SignalSet(before)
}

/// Holds these signals back from the calling thread, and from threads it starts from now on.
pub(crate) fn block(set: SignalSet) {
    change_mask(libc::SIG_BLOCK, set);
}

/// Lets these signals in; the ones that wait come in before this returns.
pub(crate) fn unblock(set: SignalSet) {
    change_mask(libc::SIG_UNBLOCK, set);
}

fn kernel_handler(signal: i32) -> Option<u64> {
    let mut action: KernelAction = [0; 4];
    // SAFETY: no new action is given; `action` is large enough for the old one.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<KernelAction>(), action.as_mut_ptr(), KERNEL_SET_BYTES) };
    (result == 0).then_some(action[0])
}

/// Sets a disposition that needs no handler. Async-signal-safe.
fn set_disposition(signal: i32, ignore: bool) {
    let action: KernelAction = [if ignore { HANDLER_IGNORE } else { HANDLER_DEFAULT }, 0, 0, 0];
    // SAFETY: a complete kernel action without a handler, so no restorer is needed; the old one is not asked for.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), ptr::null_mut::<KernelAction>(), KERNEL_SET_BYTES) };
}

// ---------------------------------------------------------------------------------------------------------------------
// The handler
// ---------------------------------------------------------------------------------------------------------------------

/// A signal that came to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Which.
    pub(crate) signal: i32,
    /// `si_code`: above 0 the kernel made it, else a process sent it.
    pub(crate) code: i32,
    /// Who sent it, where a process did.
    pub(crate) sender: Pid,
    /// What `sigqueue` gave along.
    pub(crate) value: u64,
}

const EVENT_BYTES: usize = 24;

impl Event {
    /// Whether a process sent it, not the kernel.
    pub(crate) fn is_sent(&self) -> bool {
        self.code <= 0
    }

    /// # Safety
    ///
    /// `info` must have been filled by the kernel, or be zeroed.
    unsafe fn new(signal: i32, info: &libc::siginfo_t) -> Event {
        // SAFETY: pid and value are plain bytes of a union, meaningless where the code says so, never invalid.
        unsafe { Event { signal, code: info.si_code, sender: info.si_pid(), value: info.si_value().sival_ptr as u64 } }
    }

    fn to_bytes(self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        bytes[0..4].copy_from_slice(&self.signal.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sender.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Event {
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut value = [0; 8];
        value.copy_from_slice(&bytes[16..24]);
        Event { signal: word(0), code: word(4), sender: word(8), value: u64::from_ne_bytes(value) }
    }
}

/// Write end of the pipe from the handler; -1 before [`open_events`].
static STRAYS_WRITE: AtomicI32 = AtomicI32::new(-1);
/// Signals that ask us to stop, once the command has ended.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// [`encode_exit`] of the command; [`EXIT_NONE`] while it lives.
static ENDED_AS: AtomicI32 = AtomicI32::new(EXIT_NONE);

const EXIT_NONE: i32 = i32::MIN;

/// The command, from its fork until it is reaped; 0 where there is none.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// The write end of the command's gate, while it is closed; else -1.
static GATE: AtomicI32 = AtomicI32::new(-1);
/// [`encode_exit`] of the command once it is reaped.
static REAPED_AS: AtomicI32 = AtomicI32::new(EXIT_NONE);

/// Whether a thread of ours has aborted while there is a command.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// Reports an abort of ours while there is a command.
const ABORTING: &CStr =
    c"longpole: the command runs on alone, and its recording is not complete: longpole ran out of memory, or has a bug, said above\n";
/// Reports an abort of ours after the command has ended.
const ABORTED: &CStr =
    c"longpole: the command ran, and its recording is not complete: longpole ran out of memory, or has a bug, said above\n";
/// Whether a recording that is not complete is a failure.
static IS_STRICT: AtomicBool = AtomicBool::new(false);

/// From now on a recording that is not complete is a failure, where the command's own end is none.
pub(crate) fn be_strict() {
    IS_STRICT.store(true, Ordering::Relaxed);
}

/// Codes as they are, 0 to 255; signals below 0.
fn encode_exit(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code & 0xff,
        Exit::Signal(signal) => -signal,
    }
}

/// Runs for signals that no thread holds back. While the command lives that is a thread that was there before us, and the
/// signal goes into a pipe. Afterwards the first interrupt sets a flag, and the second leaves at once, as the command did:
/// nobody is kept waiting by work that does not look at the flag.
///
/// An abort of our own, as where there is no memory, must not become the command's end: after it has ended we end as it did, and before that its
/// gate is opened and its end is waited for.
///
/// A fault of our own that is no abort ends us at once, as it would without this handler. A thread that holds it back never comes here: the
/// kernel ends us then.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo.
    if FAULTS.contains(&signal) && unsafe { (*info).si_code > 0 } {
        set_disposition(signal, false);
        send_to_own_thread(signal);
        return;
    }
    let ended_as = ENDED_AS.load(Ordering::Relaxed);
    // SAFETY: the kernel hands a valid siginfo.
    let is_own_abort = unsafe { signal == libc::SIGABRT && (*info).si_code <= 0 && (*info).si_pid() == libc::getpid() };
    if is_own_abort && ended_as == EXIT_NONE && COMMAND.load(Ordering::Relaxed) != 0 {
        abandon_the_command();
    }
    if ended_as != EXIT_NONE {
        if is_own_abort {
            // SAFETY: the text is a constant, and whether it is taken is no concern.
            unsafe { libc::write(libc::STDERR_FILENO, ABORTED.as_ptr().cast(), ABORTED.count_bytes()) };
            let is_hidden = ended_as == 0 && IS_STRICT.load(Ordering::Relaxed);
            leave(if is_hidden { EXIT_OWN_FAILURE } else { ended_as });
        }
        if SignalSet(INTERRUPTS.load(Ordering::Relaxed)).contains(signal) && INTERRUPTED.swap(true, Ordering::Relaxed) {
            leave(ended_as);
        }
        return;
    }
    // SAFETY: `errno` of this thread is always there; the interrupted code must find it unchanged. The kernel hands a
    // valid siginfo. Writing to a descriptor that is full or closed is an error we accept.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let bytes = Event::new(signal, &*info).to_bytes();
        libc::write(STRAYS_WRITE.load(Ordering::Relaxed), bytes.as_ptr().cast(), EVENT_BYTES);
        *errno = before;
    }
}

/// Lets the command run to its end, which becomes ours. Async-signal-safe.
fn abandon_the_command() -> ! {
    while IS_ABANDONED.swap(true, Ordering::Relaxed) {
        // SAFETY: always safe. The thread that aborted first ends us all.
        unsafe { libc::pause() };
    }
    let is_strict = IS_STRICT.load(Ordering::Relaxed);
    let gate = GATE.swap(-1, Ordering::Relaxed);
    if gate >= 0 && is_strict {
        // Closed with us, it keeps the command from starting.
        leave(EXIT_OWN_FAILURE);
    }
    // SAFETY: both texts are constants, and whether they are taken is no concern.
    unsafe {
        libc::write(libc::STDERR_FILENO, ABORTING.as_ptr().cast(), ABORTING.count_bytes());
        if gate >= 0 {
            libc::write(gate, c"g".as_ptr().cast(), 1);
        }
    }
    let ended_as = loop {
        match wait4(COMMAND.load(Ordering::Relaxed), 0) {
            Change::Ended { exit, .. } => break encode_exit(exit),
            // Another thread of ours has reaped it.
            Change::Lost => break REAPED_AS.load(Ordering::Relaxed),
            Change::None | Change::Stopped(_) | Change::Continued => {}
        }
    };
    leave(if ended_as == EXIT_NONE || (ended_as == 0 && is_strict) { EXIT_OWN_FAILURE } else { ended_as })
}

/// Faults that are caught because others send them, too.
const FAULTS: [c_int; 3] = [libc::SIGTRAP, libc::SIGFPE, libc::SIGSYS];

/// Where the main thread finds the signals it holds back.
#[derive(Debug)]
pub(crate) struct Events {
    /// Can be read while a signal of the set is pending. What it would say is fetched from the kernel's queue directly.
    pending: OwnedFd,
    /// Read end of the handler's pipe.
    strays: OwnedFd,
}

impl Events {
    /// The next signal that came to another thread, if one did.
    pub(crate) fn next_stray(&self) -> Option<Event> {
        let mut bytes = [0; EVENT_BYTES];
        // Records are smaller than PIPE_BUF, so each is written, and read, whole.
        // SAFETY: the buffer is as long as said.
        let n = unsafe { libc::read(self.strays.as_raw_fd(), bytes.as_mut_ptr().cast(), EVENT_BYTES) };
        (n == EVENT_BYTES as isize).then(|| Event::from_bytes(&bytes))
    }

    /// Waits until a signal came, or until `status` can be read; the answer says whether it can.
    pub(crate) fn wait(&self, status: Option<BorrowedFd<'_>>) -> bool {
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let status = status.map_or(-1, |fd| fd.as_raw_fd());
        let mut entries = [entry(self.pending.as_raw_fd()), entry(self.strays.as_raw_fd()), entry(status)];
        // SAFETY: three valid entries; a negative descriptor is skipped.
        unsafe { libc::poll(entries.as_mut_ptr(), 3, -1) > 0 && entries[2].revents != 0 }
    }
}

/// The signals that wait for the calling thread.
pub(crate) fn pending() -> SignalSet {
    let mut set = 0u64;
    // SAFETY: `set` is a valid 8-byte kernel set.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &mut set, KERNEL_SET_BYTES) };
    SignalSet(set)
}

/// Takes one pending signal of the set away.
pub(crate) fn take(set: SignalSet) -> Option<Event> {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: set, place for the answer and timeout are valid. Pid and value are plain bytes of a union, meaningless
    // where the code says so, never invalid.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let signal = libc::syscall(libc::SYS_rt_sigtimedwait, &set.0, &raw mut info, &now, KERNEL_SET_BYTES);
        (signal > 0).then(|| Event::new(signal as i32, &info))
    }
}

/// Opens the place where signals of `held_back` are waited for, and the handler's pipe.
pub(crate) fn open_events(held_back: SignalSet) -> io::Result<Events> {
    // SAFETY: -1 asks for a new descriptor; the set is a valid 8-byte kernel set. The descriptor is owned by nobody else.
    let pending = unsafe {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let descriptor = libc::syscall(libc::SYS_signalfd4, -1, &held_back.0, KERNEL_SET_BYTES, flags);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(descriptor as RawFd)
    };
    let (strays, write) = pipe(libc::O_CLOEXEC | libc::O_NONBLOCK)?;
    // The handler may run as long as the process does: this end stays open for good.
    STRAYS_WRITE.store(write.into_raw_fd(), Ordering::Relaxed);
    Ok(Events { pending, strays })
}

/// Catches the signals of `handled` for a command; those of `held_back` are held back from the calling thread, and from
/// threads that it starts from now on, until they are [`take`]n or let in.
pub(crate) fn install_handlers(handled: SignalSet, held_back: SignalSet, interrupts: SignalSet) -> io::Result<()> {
    block(held_back);
    // An inherited "ignore" stays one after the command has ended.
    INTERRUPTS.store(interrupts.0 & !INHERITED_IGNORED.load(Ordering::Relaxed), Ordering::Relaxed);
    INTERRUPTED.store(false, Ordering::Relaxed);
    ENDED_AS.store(EXIT_NONE, Ordering::Relaxed);
    for signal in handled.iter() {
        // SAFETY: a zeroed sigaction is valid; the handler has the signature that SA_SIGINFO asks for and is
        // async-signal-safe.
        let result = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal, &action, ptr::null_mut())
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A write beyond the file size limit of the user becomes an error of that write, as a broken pipe already is.
pub(crate) fn ignore_file_size_signal() {
    set_disposition(libc::SIGXFSZ, true);
}

/// Whether somebody asked us to stop after the command had ended.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Sets what [`interrupted`] says.
pub(crate) fn set_interrupted() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on signals concern us, not the command: the handler changes its mind, and these signals get their inherited
/// disposition back.
pub(crate) fn command_has_ended(exit: Exit, give_back: &[i32]) {
    ENDED_AS.store(encode_exit(exit), Ordering::Relaxed);
    for &signal in give_back {
        set_disposition(signal, inherited_as_ignored(signal));
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Descriptors
// ---------------------------------------------------------------------------------------------------------------------

/// Read end and write end.
fn pipe(flags: c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: the call fills both ends or fails; each is owned by nobody else.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), flags) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Waits until the descriptor can be read, so long at the most.
fn readable(descriptor: &OwnedFd, millis: c_int) -> bool {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&mut entry, 1, millis) > 0 }
}

// ---------------------------------------------------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------------------------------------------------

/// All that the child needs for its exec, laid out before the fork.
pub(crate) struct Image {
    candidates: Vec<CString>,
    /// Whether the candidates come from a search of the PATH: then one that is not there is no reason to stop.
    searched: bool,
    argv: Vec<*const c_char>,
    /// The arguments for a text without `#!`: the shell, a slot for the path, and the rest.
    shell_argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// The environment for a second try, where the first is too long.
    spare_envp: Option<Vec<*const c_char>>,
    /// What the pointers point to.
    _owned: Vec<CString>,
}

const SHELL: &CStr = c"/bin/sh";
const SHELL_ARGV_PATH: usize = 1;

impl Image {
    /// `argv` must not be empty.
    pub(crate) fn new(
        candidates: Vec<CString>,
        searched: bool,
        argv: Vec<CString>,
        env: Vec<CString>,
        spare_env: Option<Vec<CString>>,
    ) -> Image {
        fn pointers(texts: &[CString]) -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        }
        // Moving a CString does not move its bytes, so the pointers stay right when the texts are put together below.
        let argv_pointers = pointers(&argv);
        let mut shell_argv = vec![SHELL.as_ptr(), ptr::null()];
        shell_argv.extend(argv_pointers.iter().skip(1));
        let envp = pointers(&env);
        let spare_envp = spare_env.as_deref().map(pointers);
        let mut owned = argv;
        owned.extend(env);
        owned.extend(spare_env.into_iter().flatten());
        Image { candidates, searched, argv: argv_pointers, shell_argv, envp, spare_envp, _owned: owned }
    }
}

/// A child that waits at its gate.
#[derive(Debug)]
pub(crate) struct Gated {
    /// The child.
    pub(crate) pid: Pid,
    /// One byte opens the gate; closing it unopened ends the child.
    gate: OwnedFd,
    /// [`TRIES_SPARE`] if it takes the spare environment; its errno if its exec fails; end of file if it succeeds or the child dies.
    status: OwnedFd,
}

/// No errno: the child is about to execute with the spare environment.
const TRIES_SPARE: c_int = 0;

/// Exit code of a child whose parent went away before it opened the gate, which nobody is left to see; and of our own failure.
const EXIT_OWN_FAILURE: c_int = 125;

/// Forks a child that waits at its gate with all signals held back.
pub(crate) fn fork_gated(image: &mut Image) -> io::Result<Gated> {
    let (gate_read, gate_write) = pipe(libc::O_CLOEXEC)?;
    let (status_read, status_write) = pipe(libc::O_CLOEXEC)?;
    let before = change_mask(libc::SIG_SETMASK, SignalSet::ALL);
    // SAFETY: the child calls async-signal-safe functions only, and never returns from here.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The child's own copy of the other ends: with it gone, our end of the gate is the only one.
        // SAFETY: plain closes in a process of one thread that never returns, so nobody else uses these descriptors.
        unsafe {
            libc::close(gate_write.as_raw_fd());
            libc::close(status_read.as_raw_fd());
        }
        run_child(image, gate_read.as_raw_fd(), status_write.as_raw_fd());
    }
    let error = io::Error::last_os_error();
    change_mask(libc::SIG_SETMASK, before);
    if pid < 0 {
        return Err(error);
    }
    GATE.store(gate_write.as_raw_fd(), Ordering::Relaxed);
    COMMAND.store(pid, Ordering::Relaxed);
    Ok(Gated { pid, gate: gate_write, status: status_read })
}

/// The command will not be started: nobody is to open its gate.
pub(crate) fn forget_command() {
    GATE.store(-1, Ordering::Relaxed);
    COMMAND.store(0, Ordering::Relaxed);
}

/// The child: async-signal-safe calls only. Signals are held back until the last moment, so that none finds the
/// handlers of our parent or stops the child where nobody looks.
fn run_child(image: &mut Image, gate: RawFd, status: RawFd) -> ! {
    let ignored = SignalSet(INHERITED_IGNORED.load(Ordering::Relaxed));
    for signal in 1..=SIGNAL_MAX {
        set_disposition(signal, ignored.contains(signal));
    }
    let mut byte = 0u8;
    // SAFETY: one byte into one byte; no signal can interrupt it.
    if unsafe { libc::read(gate, (&raw mut byte).cast(), 1) } != 1 {
        // SAFETY: always safe.
        unsafe { libc::_exit(EXIT_OWN_FAILURE) };
    }
    let mut errno = become_image(image);
    if errno == libc::E2BIG
        && let Some(spare) = image.spare_envp.take()
    {
        // What was there is freed by nobody: the allocator is not for this process.
        mem::forget(mem::replace(&mut image.envp, spare));
        let notice = TRIES_SPARE.to_ne_bytes();
        // SAFETY: writes four bytes; a parent that is gone is no concern any more.
        unsafe { libc::write(status, notice.as_ptr().cast(), notice.len()) };
        errno = execute(image);
    }
    let errno = errno.to_ne_bytes();
    // SAFETY: writes four bytes and ends; a parent that is gone is no concern any more.
    unsafe {
        libc::write(status, errno.as_ptr().cast(), errno.len());
        libc::_exit(if i32::from_ne_bytes(errno) == libc::ENOENT { 127 } else { 126 })
    }
}

/// Executes the image in this very process, which has nothing left to do of its own: for who may not fork. The answer is why it failed.
pub(crate) fn execute_here(image: &mut Image) -> io::Error {
    let ignored = SignalSet(INHERITED_IGNORED.load(Ordering::Relaxed));
    let before = change_mask(libc::SIG_SETMASK, SignalSet::ALL);
    for signal in 1..=SIGNAL_MAX {
        set_disposition(signal, ignored.contains(signal));
    }
    let error = io::Error::from_raw_os_error(become_image(image));
    change_mask(libc::SIG_SETMASK, before);
    error
}

/// Puts back what we inherited, and executes. Returns the errno of the failure. Async-signal-safe.
fn become_image(image: &mut Image) -> i32 {
    let closed = INHERITED_CLOSED.load(Ordering::Relaxed);
    for descriptor in 0..3 {
        if closed & (1 << descriptor) != 0 {
            // SAFETY: what is open there is the runtime's `/dev/null`, which this process does not use.
            unsafe { libc::close(descriptor) };
        }
    }
    let files =
        libc::rlimit { rlim_cur: INHERITED_FILES_SOFT.load(Ordering::Relaxed), rlim_max: INHERITED_FILES_HARD.load(Ordering::Relaxed) };
    let mut files_now = files;
    // SAFETY: both are valid limits. We only ever raise the soft one, so setting it back is always allowed.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut files_now) == 0 && files_now.rlim_cur != files.rlim_cur {
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
        }
    }
    change_mask(libc::SIG_SETMASK, SignalSet(INHERITED_MASK.load(Ordering::Relaxed)));
    execute(image)
}

/// As `execvp`: each candidate in turn; a text without `#!` goes to the shell. Returns the errno of the failure.
fn execute(image: &mut Image) -> i32 {
    let mut denied = false;
    for candidate in &image.candidates {
        let mut error = execve(candidate, &image.argv, &image.envp);
        if error == libc::ENOEXEC {
            image.shell_argv[SHELL_ARGV_PATH] = candidate.as_ptr();
            error = execve(SHELL, &image.shell_argv, &image.envp);
            return error;
        }
        match error {
            _ if !image.searched => return error,
            libc::EACCES => denied = true,
            // Not there, or on a file system that does not answer: perhaps the next directory has it.
            libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
            other => return other,
        }
    }
    if denied { libc::EACCES } else { libc::ENOENT }
}

fn execve(path: &CStr, argv: &[*const c_char], envp: &[*const c_char]) -> i32 {
    // SAFETY: the path is a C text; both lists are NULL-terminated and point to C texts that live as long as the image.
    unsafe {
        libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
        *libc::__errno_location()
    }
}

impl Gated {
    /// Opens the gate. What becomes of the exec is to be read from the returned end.
    pub(crate) fn open(self) -> ExecStatus {
        // SAFETY: one byte from a constant. The child holds the other end unless somebody killed it; then the write
        // fails with EPIPE (SIGPIPE never kills us), and how the child ended says all.
        unsafe { libc::write(self.gate.as_raw_fd(), c"g".as_ptr().cast(), 1) };
        GATE.store(-1, Ordering::Relaxed);
        ExecStatus(self.status)
    }
}

/// What a child says of its exec.
#[derive(Debug)]
pub(crate) enum ExecReport {
    /// Nothing, since it runs; or it has ended.
    Done,
    /// The environment was too long, and it tries the spare one. There is more to read.
    TriesSpare,
    /// Why the exec failed.
    Failed(io::Error),
}

/// The end on which the child reports its exec.
#[derive(Debug)]
pub(crate) struct ExecStatus(pub(crate) OwnedFd);

impl ExecStatus {
    /// To be called once the end can be read, or the child has ended.
    pub(crate) fn read(&self) -> ExecReport {
        let mut errno = [0; 4];
        // SAFETY: the buffer is as long as said. A signal handler restarts the read.
        let n = unsafe { libc::read(self.0.as_raw_fd(), errno.as_mut_ptr().cast(), errno.len()) };
        match i32::from_ne_bytes(errno) {
            _ if n != errno.len() as isize => ExecReport::Done,
            TRIES_SPARE => ExecReport::TriesSpare,
            errno => ExecReport::Failed(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// What became of a child since it was looked at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// This signal stopped it.
    Stopped(i32),
    /// It goes on.
    Continued,
    /// It ended, and is reaped.
    Ended {
        /// How.
        exit: Exit,
        /// CPU time of it and of every descendant that was waited for.
        cpu_nanos: u64,
        /// Memory and page faults of the same.
        usage: RunUsage,
    },
    /// It is not our child any more: somebody else in this process has reaped it.
    Lost,
}

/// Looks at the child without waiting.
pub(crate) fn look_at(pid: Pid) -> Change {
    wait4(pid, libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED)
}

/// Whether the child has ended and is not reaped.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the call fills the structure it is given; all zero is a valid one, and says that nobody has ended.
    unsafe { libc::waitid(libc::P_PID, pid.unsigned_abs(), info.as_mut_ptr(), options) == 0 && info.assume_init().si_pid() == pid }
}

/// Waits for the end of a child.
fn reap(pid: Pid) {
    wait4(pid, 0);
}

fn wait4(pid: Pid, options: c_int) -> Change {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let result = loop {
        // SAFETY: both places are valid for the answer.
        let result = unsafe { libc::wait4(pid, &mut status, options, usage.as_mut_ptr()) };
        if result != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break result;
        }
    };
    // SAFETY: all zero is a valid rusage, and so is what the kernel writes.
    let usage = unsafe { usage.assume_init() };
    let has_ended = libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
    if result > 0 && has_ended && result == COMMAND.load(Ordering::Relaxed) {
        REAPED_AS.store(encode_exit(exit_of_status(status)), Ordering::Relaxed);
    }
    match result {
        0 => Change::None,
        -1 => Change::Lost,
        _ if libc::WIFSTOPPED(status) => Change::Stopped(libc::WSTOPSIG(status)),
        _ if libc::WIFCONTINUED(status) => Change::Continued,
        _ => Change::Ended {
            exit: exit_of_status(status),
            cpu_nanos: nanos(usage.ru_utime).saturating_add(nanos(usage.ru_stime)),
            usage: RunUsage {
                peak_resident_bytes: u64::try_from(usage.ru_maxrss).ok().and_then(|kilobytes| kilobytes.checked_mul(1024)),
                minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
                major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
            },
        },
    }
}

fn nanos(time: libc::timeval) -> u64 {
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_usec).saturating_mul(1_000))
}

/// A socket to ask the kernel about sockets: sock_diag(7). Answers are there when a question was written.
pub(crate) fn sock_diag_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a call without pointers.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was made here and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the kernel gives us orphans to reap: as PID 1, or as a subreaper.
pub(crate) fn adopts_orphans() -> bool {
    let mut subreaper: c_int = 0;
    // SAFETY: `subreaper` is a valid place for the answer.
    unsafe { libc::getpid() == 1 || libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut subreaper) == 0 && subreaper != 0 }
}

/// Reaps children that ended, except `own`.
pub(crate) fn reap_orphans(own: &[Pid]) {
    loop {
        // SAFETY: a zeroed siginfo is valid; the kernel fills it, and leaves its pid 0 where no child has ended.
        let ended = unsafe {
            let mut info: libc::siginfo_t = mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut info, options) != 0 { 0 } else { info.si_pid() }
        };
        if ended == 0 || own.contains(&ended) {
            return;
        }
        reap(ended);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Sending
// ---------------------------------------------------------------------------------------------------------------------

/// Our own process id.
pub(crate) fn own_pid() -> Pid {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// Whether we lead our session.
pub(crate) fn leads_session() -> bool {
    // SAFETY: always succeeds.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Sends a signal to a child that has not been reaped; one that has ended takes no notice.
pub(crate) fn kill(pid: Pid, signal: i32) {
    // SAFETY: the pid is that of an unreaped child, so it is nobody else's.
    unsafe { libc::kill(pid, signal) };
}

/// Sends a signal with its value, as `sigqueue`.
pub(crate) fn queue(pid: Pid, signal: i32, value: u64) {
    let value = libc::sigval { sival_ptr: value as *mut c_void };
    // SAFETY: as for `kill`; the value is handed on as the bytes it is, and never looked behind by us.
    unsafe { libc::sigqueue(pid, signal, value) };
}

fn send_to_own_thread(signal: i32) {
    // SAFETY: sends to the calling thread itself.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// Whether a child whose stop has been seen was continued, or has ended, since.
fn has_gone_on(child: Pid) -> bool {
    // SAFETY: a zeroed siginfo is valid; the kernel fills it, and leaves its pid 0 where nothing is to report.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let options = libc::WEXITED | libc::WCONTINUED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as libc::id_t, &mut info, options) != 0 || info.si_pid() != 0
    }
}

/// Stops this process by `signal`, as the child was stopped; returns when somebody continued it. Returns at once where
/// the child goes on already, or where the kernel does not let us stop: in an orphaned process group, and as PID 1.
pub(crate) fn stop_like(child: Pid, signal: i32) {
    if signal == libc::SIGSTOP {
        if !has_gone_on(child) {
            send_to_own_thread(signal);
        }
        return;
    }
    // Somebody may continue the whole group between our look at the child and our own stop, and then nobody would
    // continue us. So the stop is first made pending: a SIGCONT that comes now takes it away again, by the kernel's
    // rule; one that came before shows in the child.
    let one = SignalSet::of([signal]);
    let before = change_mask(libc::SIG_BLOCK, one);
    // SAFETY: a zeroed sigaction is valid, and is "default"; `handler` is a valid place for the old one.
    let handler = unsafe {
        let mut handler = MaybeUninit::<libc::sigaction>::zeroed();
        let default: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &default, handler.as_mut_ptr());
        handler.assume_init()
    };
    send_to_own_thread(signal);
    if has_gone_on(child) {
        take(one);
    }
    unblock(one);
    // SAFETY: puts back the action that was there.
    unsafe { libc::sigaction(signal, &handler, ptr::null_mut()) };
    change_mask(libc::SIG_SETMASK, before);
}

// ---------------------------------------------------------------------------------------------------------------------
// Leaving
// ---------------------------------------------------------------------------------------------------------------------

/// Ends this process as `exit` says. Async-signal-safe.
pub(crate) fn leave_as(exit: Exit) -> ! {
    leave(encode_exit(exit))
}

fn leave(encoded: i32) -> ! {
    if encoded < 0 {
        die_of(-encoded);
    }
    // SAFETY: always safe. No destructor and no exit handler runs: other threads may still use what those take away.
    unsafe { libc::_exit(encoded) }
}

fn die_of(signal: i32) -> ! {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limits and flags of this process, which is about to end. The limit keeps the kernel from writing a core
    // file, the flag keeps it from starting a core-dump helper, which no limit does.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    change_mask(libc::SIG_BLOCK, SignalSet::ALL);
    set_disposition(signal, false);
    send_to_own_thread(signal);
    unblock(SignalSet::of([signal]));
    // Still here: PID 1, which no signal kills by default.
    // SAFETY: always safe.
    unsafe { libc::_exit(128 + signal) }
}

// ---------------------------------------------------------------------------------------------------------------------
// The witness
// ---------------------------------------------------------------------------------------------------------------------

/// A process in our process group that does nothing but say which signals it was sent, too.
///
/// A signal does not tell whether it was sent to a process or to its group. This one makes it known: the kernel sends to
/// a group in one sweep, youngest member first, so a signal for the group waits at the witness before it waits for us.
#[derive(Debug)]
pub(crate) struct Witness {
    socket: OwnedFd,
    pid: Pid,
}

/// An answer is a list of signals, each two words: number, and sender or [`SENDER_KERNEL`]. One that is full is followed
/// by the rest when asked again.
const ANSWER_SIGNALS: usize = 64;
const ANSWER_SIGNAL_BYTES: usize = 8;
const ANSWER_BYTES: usize = ANSWER_SIGNALS * ANSWER_SIGNAL_BYTES;
/// Stands for the kernel where a sender is asked for.
pub(crate) const SENDER_KERNEL: Pid = -1;
/// Answers take some ten microseconds. After this long the witness is presumed stopped, and is continued.
const ANSWER_MILLIS: c_int = 100;
/// After this long without an answer there is no evidence.
const ANSWER_LAST_MILLIS: c_int = 1_000;

impl Witness {
    /// Starts one. It ends with the thread that calls this.
    pub(crate) fn start() -> io::Result<Witness> {
        let mut ends: [RawFd; 2] = [-1; 2];
        // SAFETY: the call fills both ends or fails; each is owned by nobody else.
        let (ours, theirs) = unsafe {
            if libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        let parent = own_pid();
        let before = change_mask(libc::SIG_SETMASK, SignalSet::ALL);
        // SAFETY: the child calls async-signal-safe functions only, and never returns from here.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            testify(theirs.as_raw_fd(), parent);
        }
        let error = io::Error::last_os_error();
        change_mask(libc::SIG_SETMASK, before);
        if pid < 0 {
            return Err(error);
        }
        Ok(Witness { socket: ours, pid })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Which signals it got, and from whom, since it was asked last; `None` where it does not answer, and then it never
    /// will.
    pub(crate) fn ask(&self) -> Option<Vec<(i32, Pid)>> {
        // Short, and free of interruptions: an answer must never be left for the next question.
        let before = change_mask(libc::SIG_SETMASK, SignalSet::ALL);
        let mut all = Vec::new();
        let answered = loop {
            let known = all.len();
            if self.ask_once(&mut all).is_none() {
                break None;
            }
            if all.len() - known < ANSWER_SIGNALS {
                break Some(all);
            }
        };
        change_mask(libc::SIG_SETMASK, before);
        answered
    }

    fn ask_once(&self, all: &mut Vec<(i32, Pid)>) -> Option<()> {
        let socket = self.socket.as_raw_fd();
        // SAFETY: one byte from a constant.
        if unsafe { libc::send(socket, c"?".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) } != 1 {
            return None;
        }
        // The end of file of a witness that was killed can be read, too.
        if !readable(&self.socket, ANSWER_MILLIS) {
            kill(self.pid, libc::SIGCONT);
            readable(&self.socket, ANSWER_LAST_MILLIS);
        }
        let mut answer = [0u8; ANSWER_BYTES + 1];
        // SAFETY: the buffer is as long as said.
        let n = unsafe { libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT) };
        // One byte more than the signals: an answer that says "none" is not an end of file.
        let bytes = answer.get(1..usize::try_from(n).ok()?)?;
        let word = |bytes: &[u8]| bytes.try_into().map(i32::from_ne_bytes).unwrap_or_default();
        all.extend(bytes.chunks_exact(ANSWER_SIGNAL_BYTES).map(|signal| (word(&signal[..4]), word(&signal[4..]))));
        Some(())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        kill(self.pid, libc::SIGKILL);
        reap(self.pid);
    }
}

/// The witness: async-signal-safe calls only, all signals held back, so that what is sent waits to be counted.
fn testify(socket: RawFd, parent: Pid) -> ! {
    // SAFETY: plain system calls on this process, which has one thread and never returns. The argument bytes are its own
    // copy, and nothing reads them any more.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
        // Nothing of the user's is held open: no pipe whose reader waits for its end, no directory.
        libc::dup2(socket, 0);
        if libc::syscall(libc::SYS_close_range, 1, c_int::MAX, 0) != 0 {
            close_one_by_one();
        }
        libc::chdir(c"/".as_ptr());
        // Neither by name nor by arguments is it taken for longpole: `pkill longpole` means the other one.
        libc::prctl(libc::PR_SET_NAME, c"lp-witness".as_ptr());
        let arguments = ARGUMENTS_START.load(Ordering::Relaxed);
        if !arguments.is_null() {
            ptr::write_bytes(arguments, 0, ARGUMENTS_BYTES.load(Ordering::Relaxed));
        }
    }
    loop {
        let mut question = 0u8;
        // SAFETY: one byte into one byte.
        if unsafe { libc::recv(0, (&raw mut question).cast(), 1, 0) } != 1 {
            // SAFETY: always safe.
            unsafe { libc::_exit(0) };
        }
        let mut answer = [0u8; ANSWER_BYTES + 1];
        let mut length = 1;
        while length < answer.len() {
            let Some(event) = take(SignalSet::ALL) else { break };
            // What longpole itself sends, to continue us, is no evidence.
            if event.is_sent() && event.sender == parent {
                continue;
            }
            let sender = if event.is_sent() { event.sender } else { SENDER_KERNEL };
            answer[length..length + 4].copy_from_slice(&event.signal.to_ne_bytes());
            answer[length + 4..length + ANSWER_SIGNAL_BYTES].copy_from_slice(&sender.to_ne_bytes());
            length += ANSWER_SIGNAL_BYTES;
        }
        // SAFETY: the buffer is at least as long as said.
        unsafe { libc::send(0, answer.as_ptr().cast(), length, libc::MSG_NOSIGNAL) };
    }
}

/// For kernels before 5.9, which have no `close_range`.
fn close_one_by_one() {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer; closing a number that is not open is an error we accept.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut files);
        for descriptor in 1..c_int::try_from(files.rlim_cur).unwrap_or(c_int::MAX).min(1 << 16) {
            libc::close(descriptor);
        }
    }
}
