//! The child that becomes the command: fork, a gate, exec.
//!
//! Between `fork` and `exec` or `_exit` the child makes async-signal-safe calls only, because another thread of the parent may have
//! held any lock, the allocator's too, at the moment of the fork. All that it needs is built before the fork.
#![expect(unsafe_code, reason = "fork and exec")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::{io, mem, ptr};

use crate::sys::command_state::{COMMAND, EXIT_OWN_FAILURE, GATE};
use crate::sys::descriptors::pipe;
use crate::sys::inherited::{ignored_signals, open_files, signal_mask, was_closed};
use crate::sys::signal::{Pid, SIGNAL_MAX, SignalSet, change_mask, set_disposition};

/// All that the child needs for its exec, built before the fork.
pub(crate) struct ExecImage {
    candidates: Vec<CString>,
    /// Whether the candidates come from the PATH: then a missing one does not end the search.
    searched: bool,
    argv: Vec<*const c_char>,
    /// The arguments for a text file without `#!`: the shell, a slot for the path, and the rest.
    shell_argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// The environment for a second try, if the first is too long.
    spare_envp: Option<Vec<*const c_char>>,
    /// The texts that the pointers point to.
    _owned: Vec<CString>,
}

const SHELL: &CStr = c"/bin/sh";

const SHELL_ARGV_PATH: usize = 1;

impl ExecImage {
    /// `argv` must not be empty.
    pub(crate) fn new(
        candidates: Vec<CString>,
        searched: bool,
        argv: Vec<CString>,
        env: Vec<CString>,
        spare_env: Option<Vec<CString>>,
    ) -> ExecImage {
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
        ExecImage { candidates, searched, argv: argv_pointers, shell_argv, envp, spare_envp, _owned: owned }
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

/// Forks a child that waits at its gate with all signals blocked.
pub(crate) fn fork_gated(image: &mut ExecImage) -> io::Result<Gated> {
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

/// The command will not start: nobody may open its gate.
pub(crate) fn forget_command() {
    GATE.store(-1, Ordering::Relaxed);
    COMMAND.store(0, Ordering::Relaxed);
}

/// The child: async-signal-safe calls only. It blocks signals until the last moment, so that none finds the handlers of our parent, or stops the
/// child unnoticed.
fn run_child(image: &mut ExecImage, gate: RawFd, status: RawFd) -> ! {
    let ignored = ignored_signals();
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
        // The old list is never freed: this process may not use the allocator.
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

/// Executes the image in this process, for a process that may not fork. Returns why that failed.
pub(crate) fn execute_here(image: &mut ExecImage) -> io::Error {
    let ignored = ignored_signals();
    let before = change_mask(libc::SIG_SETMASK, SignalSet::ALL);
    for signal in 1..=SIGNAL_MAX {
        set_disposition(signal, ignored.contains(signal));
    }
    let error = io::Error::from_raw_os_error(become_image(image));
    change_mask(libc::SIG_SETMASK, before);
    error
}

/// Restores what we inherited, and executes. Returns the errno of the failure. Async-signal-safe.
fn become_image(image: &mut ExecImage) -> i32 {
    for descriptor in 0..3 {
        if was_closed(descriptor) {
            // SAFETY: what is open there is the runtime's `/dev/null`, which this process does not use.
            unsafe { libc::close(descriptor) };
        }
    }
    let files = open_files();
    let mut files_now = files;
    // SAFETY: both are valid limits. We only ever raise the soft one, so setting it back is always allowed.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut files_now) == 0 && files_now.rlim_cur != files.rlim_cur {
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
        }
    }
    change_mask(libc::SIG_SETMASK, signal_mask());
    execute(image)
}

/// As execvp(3): tries each candidate; a text file without `#!` goes to the shell. Returns the errno of the failure.
fn execute(image: &mut ExecImage) -> i32 {
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
            // Missing, or on a file system that does not answer: try the next directory.
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
    /// Opens the gate. The returned end reports the exec.
    pub(crate) fn open(self) -> ExecStatus {
        // SAFETY: one byte from a constant. The child holds the other end unless somebody killed it; then the write
        // fails with EPIPE (SIGPIPE never kills us), and how the child ended says all.
        unsafe { libc::write(self.gate.as_raw_fd(), c"g".as_ptr().cast(), 1) };
        GATE.store(-1, Ordering::Relaxed);
        ExecStatus(self.status)
    }
}

/// A child's report of its exec.
#[derive(Debug)]
pub(crate) enum ExecReport {
    /// The command runs, or has ended.
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
    /// Reads the report. Call it once the end can be read, or the child has ended.
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
