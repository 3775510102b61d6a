//! The signal handler, and what it leaves for the main thread.
//!
//! The handler, and everything it calls, makes async-signal-safe calls only and keeps `errno`.
#![expect(unsafe_code, reason = "a signal handler")]

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::{io, mem, ptr};

use longpole_model::Exit;

use crate::sys::command_state::{COMMAND, EXIT_NONE, EXIT_OWN_FAILURE, GATE, REAPED_AS, encode_exit};
use crate::sys::descriptors::pipe;
use crate::sys::inherited::{ignored_signals, inherited_as_ignored};
use crate::sys::leave::leave;
use crate::sys::signal::{EVENT_BYTES, Event, KERNEL_SET_BYTES, SignalSet, block, send_to_own_thread, set_disposition};
use crate::sys::wait::{Change, wait4};

/// Write end of the handler's pipe; -1 before [`open_events`].
static STRAYS_WRITE: AtomicI32 = AtomicI32::new(-1);

/// Signals that interrupt us once the command has ended.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// [`encode_exit`] of the command; [`EXIT_NONE`] while it lives.
static ENDED_AS: AtomicI32 = AtomicI32::new(EXIT_NONE);

/// Whether a thread of ours has aborted while there is a command.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// Reports an abort of ours while there is a command.
const ABORTING: &CStr =
    c"longpole: the command continues without longpole, and its recording is incomplete: longpole ran out of memory or has a bug, reported \
      above\n";

/// Reports an abort of ours after the command has ended.
const ABORTED: &CStr =
    c"longpole: the command ran, and its recording is incomplete: longpole ran out of memory or has a bug, reported above\n";

/// Whether an incomplete recording is a failure.
static IS_STRICT: AtomicBool = AtomicBool::new(false);

/// From now on an incomplete recording is a failure, unless the command's own end is one.
pub(crate) fn be_strict() {
    IS_STRICT.store(true, Ordering::Relaxed);
}

/// Runs for signals that some thread does not block. While the command lives that is a thread from before us, and the signal goes into a pipe.
/// Afterwards the first interrupt sets a flag, and the second ends us at once, as the command ended: work that does not check the flag holds up
/// nobody.
///
/// An abort of our own, as without memory, must not become the command's end: after the command has ended we end as it did; before that we open
/// its gate and wait for its end.
///
/// A fault of our own other than an abort ends us at once, as it would without this handler. If the thread blocks the signal, the kernel ends us
/// without calling the handler.
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
    hang_up();
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

/// Descriptors among which our sockets are: more than the receiver has connections.
const SOCKETS_BELOW: c_int = 4096;

/// Hangs up our connections and closes our ports: nobody answers there any more, and the command's processes should not wait for that.
/// Async-signal-safe. It closes no descriptor, because other threads go on for a moment and could take its number for another file.
fn hang_up() {
    for descriptor in libc::STDERR_FILENO + 1..SOCKETS_BELOW {
        // Descriptors that the command inherits from our parent stay open across exec; ours do not.
        // SAFETY: reads flags of a number that may be no descriptor, and ends what may be no socket; both are then errors without effect.
        unsafe {
            let flags = libc::fcntl(descriptor, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::shutdown(descriptor, libc::SHUT_RDWR);
            }
        }
    }
}

/// Faults that we catch because processes send them, too.
const FAULTS: [c_int; 3] = [libc::SIGTRAP, libc::SIGFPE, libc::SIGSYS];

/// Where the main thread finds the signals that it blocks.
#[derive(Debug)]
pub(crate) struct Events {
    /// Readable while a signal of the set is pending. The signal itself comes from the kernel's queue.
    pending: OwnedFd,
    /// Read end of the handler's pipe.
    strays: OwnedFd,
}

impl Events {
    /// The next signal that another thread got, if any.
    pub(crate) fn next_stray(&self) -> Option<Event> {
        let mut bytes = [0; EVENT_BYTES];
        // Records are smaller than PIPE_BUF, so each is written, and read, whole.
        // SAFETY: the buffer is as long as said.
        let n = unsafe { libc::read(self.strays.as_raw_fd(), bytes.as_mut_ptr().cast(), EVENT_BYTES) };
        (n == EVENT_BYTES as isize).then(|| Event::from_bytes(&bytes))
    }

    /// Waits for a signal, or until `status` can be read, and returns whether it can.
    pub(crate) fn wait(&self, status: Option<BorrowedFd<'_>>) -> bool {
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let status = status.map_or(-1, |fd| fd.as_raw_fd());
        let mut entries = [entry(self.pending.as_raw_fd()), entry(self.strays.as_raw_fd()), entry(status)];
        // SAFETY: three valid entries; a negative descriptor is skipped.
        unsafe { libc::poll(entries.as_mut_ptr(), 3, -1) > 0 && entries[2].revents != 0 }
    }
}

/// Opens a signalfd(2) for the signals of `held_back`, and the handler's pipe.
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

/// Catches the signals of `handled` for a command. The calling thread, and threads that it starts from now on, block those of `held_back`.
pub(crate) fn install_handlers(handled: SignalSet, held_back: SignalSet, interrupts: SignalSet) -> io::Result<()> {
    block(held_back);
    // An inherited "ignore" stays one after the command has ended.
    INTERRUPTS.store(interrupts.without(ignored_signals()).0, Ordering::Relaxed);
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

/// Ignores SIGXFSZ: a write beyond the user's limit of file size becomes an error of that write.
pub(crate) fn ignore_file_size_signal() {
    set_disposition(libc::SIGXFSZ, true);
}

/// Whether an interrupt came after the command had ended.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Makes [`interrupted`] return true.
pub(crate) fn set_interrupted() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on signals are for us, not for the command, and these signals get their inherited disposition back.
pub(crate) fn command_has_ended(exit: Exit, give_back: &[i32]) {
    ENDED_AS.store(encode_exit(exit), Ordering::Relaxed);
    for &signal in give_back {
        set_disposition(signal, inherited_as_ignored(signal));
    }
}
