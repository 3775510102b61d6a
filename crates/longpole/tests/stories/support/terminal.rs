//! A terminal with a person before it: a pseudo-terminal, a small job-control shell on it ([`super::program::JOB_SHELL`]),
//! and keys to press.
#![expect(unsafe_code, reason = "a pseudo-terminal, and signals to a job")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::program::{self, ORDERS, REPORTS};

pub(crate) const CTRL_BACKSLASH: u8 = 0x1c;
pub(crate) const CTRL_C: u8 = 0x03;
pub(crate) const CTRL_Z: u8 = 0x1a;

/// A story that hangs fails after this long; nothing is ever waited for by time.
const DEADLINE_MILLIS: i32 = 60_000;

/// Lines as they come, with an end to patience.
pub(crate) struct Lines {
    file: File,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(from: impl Into<OwnedFd>) -> Self {
        Lines { file: File::from(from.into()), buffer: Vec::new() }
    }

    /// The next line; `None` at the end.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.drain(..=end).collect::<Vec<u8>>();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let mut entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid entry.
            let ready = unsafe { libc::poll(&mut entry, 1, DEADLINE_MILLIS) };
            assert!(ready == 1, "nothing came for a minute, after {:?}", String::from_utf8_lossy(&self.buffer));
            let mut chunk = [0; 4096];
            match self.file.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// The next line, which must come.
    #[track_caller]
    pub(crate) fn expect(&mut self) -> String {
        self.next().expect("the program ended without the line")
    }
}

/// A new pseudo-terminal: the side of the person, and the side of the programs.
pub(crate) fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: both places are valid; the descriptors are owned by nobody else.
    unsafe {
        let nothing = std::ptr::null_mut();
        assert_eq!(libc::openpty(&mut master, &mut slave, nothing, nothing.cast(), nothing.cast()), 0);
        for descriptor in [master, slave] {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}

/// What a command writes to a terminal of its own of this many columns, standard output and standard error together.
pub(crate) fn on_a_terminal(mut command: Command, columns: Option<u16>) -> Vec<u8> {
    let (person, terminal) = pseudo_terminal();
    // Bytes arrive as they were written: no carriage return before a new line.
    // SAFETY: a descriptor of a terminal that is ours, and structures that are filled before they are used.
    unsafe {
        let mut settings = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut settings), 0);
        libc::cfmakeraw(&mut settings);
        assert_eq!(libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &settings), 0);
        let size = libc::winsize { ws_row: 50, ws_col: columns.unwrap_or_default(), ws_xpixel: 0, ws_ypixel: 0 };
        assert_eq!(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &size), 0);
    }
    let reader = std::thread::spawn(move || {
        let (mut person, mut seen) = (File::from(person), Vec::new());
        // The end of a terminal is an error (EIO).
        let _ = person.read_to_end(&mut seen);
        seen
    });
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    command.stdout(terminal.try_clone().unwrap()).stderr(terminal);
    command.spawn().unwrap().wait().unwrap();
    drop(command);
    reader.join().unwrap()
}

/// Makes the command the leader of a new session on this terminal.
pub(crate) fn lead_session_on(command: &mut Command, terminal: &OwnedFd) {
    command.stdin(terminal.try_clone().unwrap());
    // SAFETY: async-signal-safe calls only; stdin is the terminal by then.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
}

/// A shell on a terminal of its own, with one job.
pub(crate) struct Terminal {
    person: File,
    shell: Child,
    orders: File,
    reports: Lines,
    /// Standard output of the job.
    pub(crate) output: Lines,
    /// Process id of the job's first process, and of its group.
    pub(crate) job: i32,
    has_job: bool,
}

impl Terminal {
    /// Starts `job` in the foreground, or in the background; this binary plays `program` in it.
    pub(crate) fn start(job: &Command, program: &str, background: bool) -> Self {
        let (master, slave) = pseudo_terminal();
        let (orders_read, orders) = std::io::pipe().unwrap();
        let (reports, reports_write) = std::io::pipe().unwrap();
        let mut command = Command::new(program::me());
        command.args(background.then_some("&")).arg(job.get_program()).args(job.get_args());
        for (name, value) in job.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        program::plays_shell_of(&mut command, program);
        lead_session_on(&mut command, &slave);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (orders_read, reports_write) = (OwnedFd::from(orders_read), OwnedFd::from(reports_write));
        let (order_number, report_number) = (orders_read.as_raw_fd(), reports_write.as_raw_fd());
        // SAFETY: async-signal-safe calls only. The copies above 9 keep one `dup2` from closing what the next one needs.
        unsafe {
            command.pre_exec(move || {
                let order = libc::fcntl(order_number, libc::F_DUPFD_CLOEXEC, 10);
                let report = libc::fcntl(report_number, libc::F_DUPFD_CLOEXEC, 10);
                libc::dup2(order, ORDERS);
                libc::dup2(report, REPORTS);
                Ok(())
            });
        }
        let mut shell = command.spawn().unwrap();
        let output = Lines::new(shell.stdout.take().unwrap());
        let mut terminal = Terminal {
            person: master.into(),
            shell,
            orders: OwnedFd::from(orders).into(),
            reports: Lines::new(reports),
            output,
            job: 0,
            has_job: false,
        };
        let started = terminal.report();
        terminal.job = started.strip_prefix("started ").unwrap().parse().unwrap();
        terminal
    }

    /// What the shell says next: `stopped N`, `exited N`, `killed N`.
    #[track_caller]
    pub(crate) fn report(&mut self) -> String {
        let report = self.reports.expect();
        self.has_job = report.starts_with("started") || report.starts_with("stopped");
        report
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.person.write_all(keys).unwrap();
    }

    /// Tells the shell what to do with its stopped job: `f`, `b` or `c`.
    pub(crate) fn order(&mut self, order: u8) {
        self.orders.write_all(&[order]).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // SAFETY: the shell has not been reaped, and neither has its job where it has reported no end of it.
        unsafe {
            if self.has_job {
                libc::kill(-self.job, libc::SIGKILL);
            }
            libc::kill(self.shell.id() as i32, libc::SIGKILL);
        }
        self.shell.wait().ok();
    }
}
