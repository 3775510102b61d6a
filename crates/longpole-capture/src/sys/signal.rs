//! Signals: sets, masks, dispositions, what is pending, and how to send one.
//!
//! Every function here is async-signal-safe.
#![expect(unsafe_code, reason = "the system calls of signals")]

use std::ffi::{c_int, c_void};
use std::{mem, ptr};

/// A process id, as the kernel has it.
pub(crate) type Pid = libc::pid_t;

/// The kernel's own set of the signals 1 to 64. The C library's is larger and hides the two signals it uses itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalSet(pub(super) u64);

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

    pub(super) fn bit(signal: i32) -> u64 {
        if (1..=SIGNAL_MAX).contains(&signal) { 1 << (signal - 1) } else { 0 }
    }
}

/// The last signal.
pub(super) const SIGNAL_MAX: i32 = 64;

/// Bytes of the kernel's signal set, an argument of each `rt_sig…` call.
pub(super) const KERNEL_SET_BYTES: usize = mem::size_of::<u64>();

/// `struct sigaction` of the kernel on x86-64 and aarch64: handler, flags, restorer, mask. Not the C library's.
type KernelAction = [u64; 4];

const HANDLER_DEFAULT: u64 = 0;

pub(super) const HANDLER_IGNORE: u64 = 1;

/// A signal that came to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Which.
    pub(crate) signal: i32,
    /// `si_code`: above 0 the kernel made it, else a process sent it.
    pub(crate) code: i32,
    /// The process that sent it, if one did.
    pub(crate) sender: Pid,
    /// The value of sigqueue(3).
    pub(crate) value: u64,
}

pub(super) const EVENT_BYTES: usize = 24;

impl Event {
    /// Whether a process sent it, not the kernel.
    pub(crate) fn is_sent(&self) -> bool {
        self.code <= 0
    }

    /// # Safety
    ///
    /// `info` must have been filled by the kernel, or be zeroed.
    pub(super) unsafe fn new(signal: i32, info: &libc::siginfo_t) -> Event {
        // SAFETY: pid and value are plain bytes of a union, meaningless where the code says so, never invalid.
        unsafe { Event { signal, code: info.si_code, sender: info.si_pid(), value: info.si_value().sival_ptr as u64 } }
    }

    pub(super) fn to_bytes(self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        bytes[0..4].copy_from_slice(&self.signal.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sender.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Event {
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut value = [0; 8];
        value.copy_from_slice(&bytes[16..24]);
        Event { signal: word(0), code: word(4), sender: word(8), value: u64::from_ne_bytes(value) }
    }
}

/// Changes the mask of the calling thread, and returns the mask before.
pub(super) fn change_mask(how: c_int, set: SignalSet) -> SignalSet {
    let mut before = 0u64;
    // SAFETY: both sets are valid 8-byte kernel sets; the call touches the calling thread only and fails on nothing else
    // than a wrong `how`.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set.0, &mut before, KERNEL_SET_BYTES) };
    SignalSet(before)
}

/// Blocks these signals in the calling thread, and in threads that it starts from now on.
pub(crate) fn block(set: SignalSet) {
    change_mask(libc::SIG_BLOCK, set);
}

/// Unblocks these signals. Pending ones are delivered before this returns.
pub(crate) fn unblock(set: SignalSet) {
    change_mask(libc::SIG_UNBLOCK, set);
}

pub(super) fn kernel_handler(signal: i32) -> Option<u64> {
    let mut action: KernelAction = [0; 4];
    // SAFETY: no new action is given; `action` is large enough for the old one.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<KernelAction>(), action.as_mut_ptr(), KERNEL_SET_BYTES) };
    (result == 0).then_some(action[0])
}

/// Sets a disposition that needs no handler. Async-signal-safe.
pub(super) fn set_disposition(signal: i32, ignore: bool) {
    let action: KernelAction = [if ignore { HANDLER_IGNORE } else { HANDLER_DEFAULT }, 0, 0, 0];
    // SAFETY: a complete kernel action without a handler, so no restorer is needed; the call does not return the old one.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), ptr::null_mut::<KernelAction>(), KERNEL_SET_BYTES) };
}

/// The pending signals of the calling thread.
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

/// Sends a signal to a child that is not reaped; one that has ended ignores it.
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

pub(super) fn send_to_own_thread(signal: i32) {
    // SAFETY: sends to the calling thread itself.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}
