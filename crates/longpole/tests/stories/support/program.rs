//! Programs under test that need a bare process: they run in this test binary before Rust's runtime does, so that they
//! see descriptors and signals as they were inherited, and have one thread.
#![expect(unsafe_code, reason = "bare processes: signals, descriptors, fork")]
#![expect(clippy::disallowed_methods, reason = "a forked child with one thread sets its own environment")]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Names the program to play.
const PROGRAM: &str = "LONGPOLE_STORY_PROGRAM";
/// For [`JOB_SHELL`]: the program that its job plays.
const JOB_PROGRAM: &str = "LONGPOLE_STORY_JOB_PROGRAM";
/// For [`LISTEN`]: pass the first SIGUSR1 on to the whole group.
pub(crate) const ECHO: &str = "LONGPOLE_STORY_ECHO";
/// For [`LISTEN`]: exit with 42 after this number of SIGINT.
pub(crate) const PATIENCE: &str = "LONGPOLE_STORY_PATIENCE";

/// Prints `ready PID`, then the name of each signal that comes, with the value that came along. Exits with 5 on SIGUSR2.
/// SIGTSTP and its relatives stop it.
pub(crate) const LISTEN: &str = "listen";
/// Exits with a bit set for each descriptor of 0 to 6 that is open.
pub(crate) const DESCRIPTORS: &str = "descriptors";
/// Executes `sh -c` with the value of [`SCRIPT`], and not on its first thread.
pub(crate) const EXEC_ON_A_THREAD: &str = "exec_on_a_thread";
/// For [`EXEC_ON_A_THREAD`].
pub(crate) const SCRIPT: &str = "LONGPOLE_STORY_SCRIPT";
/// A shell with one job: its arguments. See [`super::terminal`].
pub(crate) const JOB_SHELL: &str = "job_shell";

/// Descriptors that a [`JOB_SHELL`] is spoken to on, and on which it answers.
pub(crate) const ORDERS: c_int = 3;
pub(crate) const REPORTS: c_int = 4;

/// What a [`LISTEN`] hears.
pub(crate) const SIGNALS: [(&str, c_int); 13] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("USR1", libc::SIGUSR1),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CONT", libc::SIGCONT),
    ("WINCH", libc::SIGWINCH),
    ("XCPU", libc::SIGXCPU),
    ("SYS", libc::SIGSYS),
    ("TRAP", libc::SIGTRAP),
    ("FPE", libc::SIGFPE),
    ("USR2", libc::SIGUSR2),
];

/// The path of this binary, which plays the programs.
pub(crate) fn me() -> String {
    std::env::current_exe().unwrap().to_string_lossy().into_owned()
}

/// Makes the test binary play `program` when the command starts it.
pub(crate) fn plays(command: &mut Command, program: &str) {
    command.env(PROGRAM, program);
}

/// Makes the test binary be a job shell whose job plays `program` when it is, or starts, this binary.
pub(crate) fn plays_shell_of(command: &mut Command, program: &str) {
    command.env(PROGRAM, JOB_SHELL).env(JOB_PROGRAM, program);
}

#[used]
// SAFETY: the loader calls the entry once, before `main`; it either does nothing or never returns, and uses no part of
// the runtime that `main` sets up.
#[unsafe(link_section = ".init_array")]
static PLAY: extern "C" fn(c_int, *mut *mut c_char) = play;

extern "C" fn play(_argc: c_int, argv: *mut *mut c_char) {
    match std::env::var(PROGRAM).as_deref() {
        Ok(LISTEN) => listen(),
        Ok(DESCRIPTORS) => descriptors(),
        Ok(JOB_SHELL) => job_shell(argv),
        Ok(EXEC_ON_A_THREAD) => exec_on_a_thread(),
        _ => {}
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: always safe.
    unsafe { libc::_exit(code) }
}

fn say(descriptor: c_int, line: &str) {
    let line = format!("{line}\n");
    // SAFETY: the buffer is as long as said; lines are shorter than PIPE_BUF.
    unsafe { libc::write(descriptor, line.as_ptr().cast(), line.len()) };
}

fn name(signal: c_int) -> String {
    SIGNALS
        .iter()
        .find(|(_, number)| *number == signal)
        .map_or_else(|| format!("RTMIN+{}", signal - libc::SIGRTMIN()), |(name, _)| (*name).to_owned())
}

fn listen() -> ! {
    let mut echo = std::env::var_os(ECHO).is_some();
    let mut patience: u32 = std::env::var(PATIENCE).map_or(u32::MAX, |count| count.parse().unwrap_or(0));
    // SAFETY: plain calls on valid sets and places.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (_, signal) in SIGNALS {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigaddset(&mut set, libc::SIGRTMIN() + 3);
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
        say(1, &format!("ready {}", libc::getpid()));
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigwaitinfo(&set, &mut info);
            if signal < 0 {
                continue;
            }
            let value = if info.si_code == libc::SI_QUEUE { format!(" {}", info.si_value().sival_ptr as usize) } else { String::new() };
            say(1, &format!("{}{value}", name(signal)));
            if signal == libc::SIGUSR1 && std::mem::take(&mut echo) {
                libc::kill(0, libc::SIGUSR1);
            }
            if signal == libc::SIGINT {
                patience -= 1;
            }
            if patience == 0 {
                exit(42);
            }
            if signal == libc::SIGUSR2 {
                exit(5);
            }
        }
    }
}

fn exec_on_a_thread() -> ! {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(std::env::var_os(SCRIPT).unwrap_or_default()).env_remove(PROGRAM);
    let _ = std::thread::spawn(move || shell.exec()).join();
    exit(9)
}

fn descriptors() -> ! {
    // SAFETY: reads flags of descriptors, open or not.
    exit((0..7).filter(|descriptor| unsafe { libc::fcntl(*descriptor, libc::F_GETFD) } != -1).map(|descriptor| 1 << descriptor).sum())
}

/// What any job-control shell does, with its eyes on one job: start it in a group of its own in the foreground, or with
/// `&` as first argument in the background; report its end or stop; when it stopped take the terminal back and do as told:
/// `f` continues the group in the foreground, `b` in the background, `c` continues the job's first process alone.
fn job_shell(argv: *mut *mut c_char) -> ! {
    // SAFETY: one thread; the arguments end with NULL; descriptors are used as the test made them.
    unsafe {
        // A shell ignores what would stop it when it moves the terminal around.
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        libc::fcntl(ORDERS, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(REPORTS, libc::F_SETFD, libc::FD_CLOEXEC);
        let mut job = argv.add(1);
        let background = CStr::from_ptr(*job).to_bytes() == b"&";
        if background {
            job = job.add(1);
        }
        let program = std::env::var(JOB_PROGRAM).unwrap_or_default();
        let pid = libc::fork();
        if pid == 0 {
            libc::setpgid(0, 0);
            if !background {
                libc::tcsetpgrp(0, libc::getpid());
            }
            libc::signal(libc::SIGTTOU, libc::SIG_DFL);
            std::env::set_var(PROGRAM, program);
            libc::execvp(*job, job.cast());
            exit(99);
        }
        libc::setpgid(pid, pid);
        if !background {
            libc::tcsetpgrp(0, pid);
        }
        say(REPORTS, &format!("started {pid}"));
        loop {
            let mut status = 0;
            if libc::waitpid(pid, &mut status, libc::WUNTRACED) != pid {
                say(REPORTS, &format!("lost: {}", io::Error::last_os_error()));
                exit(98);
            }
            libc::tcsetpgrp(0, libc::getpgrp());
            if libc::WIFSTOPPED(status) {
                say(REPORTS, &format!("stopped {}", libc::WSTOPSIG(status)));
            } else {
                let (how, number) =
                    if libc::WIFSIGNALED(status) { ("killed", libc::WTERMSIG(status)) } else { ("exited", libc::WEXITSTATUS(status)) };
                say(REPORTS, &format!("{how} {number}"));
                exit(0);
            }
            let mut order = 0u8;
            if libc::read(ORDERS, (&raw mut order).cast(), 1) != 1 {
                exit(97);
            }
            match order {
                b'f' => {
                    libc::tcsetpgrp(0, pid);
                    libc::kill(-pid, libc::SIGCONT);
                }
                b'b' => {
                    libc::kill(-pid, libc::SIGCONT);
                }
                _ => {
                    libc::kill(pid, libc::SIGCONT);
                }
            }
        }
    }
}
