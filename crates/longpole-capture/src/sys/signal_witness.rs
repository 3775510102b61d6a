//! The signal witness: a process that says which signals our process group was sent.
#![expect(unsafe_code, reason = "a forked child of its own")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use longpole_model::process::WITNESS_NAME;

use crate::sys::descriptors::readable;
use crate::sys::inherited::arguments;
use crate::sys::job_control::own_pid;
use crate::sys::signal::{Pid, SignalSet, change_mask, kill, take};
use crate::sys::wait::reap;

/// A process in our process group that only reports which signals it got.
///
/// A signal does not show whether it went to a process or to its group. The witness does: the kernel signals a group in one sweep, youngest member
/// first, so a signal for the group is pending at the witness before it is at ours.
#[derive(Debug)]
pub(crate) struct SignalWitness {
    socket: OwnedFd,
    pid: Pid,
}

/// An answer is a list of signals, each two words: number, and sender or [`SENDER_KERNEL`]. One that is full is followed
/// by the rest when asked again.
const ANSWER_SIGNALS: usize = 64;

const ANSWER_SIGNAL_BYTES: usize = 8;

const ANSWER_BYTES: usize = ANSWER_SIGNALS * ANSWER_SIGNAL_BYTES;

/// Stands for the kernel as a sender.
pub(crate) const SENDER_KERNEL: Pid = -1;

/// Answers take some ten microseconds. After this long the witness is presumed stopped, and is continued.
const ANSWER_MILLIS: c_int = 100;

/// After this long without an answer there is no evidence.
const ANSWER_LAST_MILLIS: c_int = 1_000;

impl SignalWitness {
    /// Starts one. It ends with the thread that calls this.
    pub(crate) fn start() -> io::Result<SignalWitness> {
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
        Ok(SignalWitness { socket: ours, pid })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The signals that it got since the last answer, each with its sender; `None` if it does not answer, and then it never will.
    pub(crate) fn ask(&self) -> Option<Vec<(i32, Pid)>> {
        // Short and without interruptions: no answer may be left for the next request.
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

impl Drop for SignalWitness {
    fn drop(&mut self) {
        kill(self.pid, libc::SIGKILL);
        reap(self.pid);
    }
}

/// The witness: async-signal-safe calls only, with all signals blocked, so that they stay pending until counted.
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
        libc::prctl(libc::PR_SET_NAME, WITNESS_NAME.as_ptr());
        let (arguments, bytes) = arguments();
        if !arguments.is_null() {
            ptr::write_bytes(arguments, 0, bytes);
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
