//! Why the kernel, or this machine, does not let us sample; and the words for it.

use std::fmt;
use std::io;

/// Why something cannot be recorded.
///
/// Its text is the reason, a lower-case fragment; what to do about it is [`Refused::remedy`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The options leave it out.
    NotRequested,
    /// There is no such process.
    NoProcess {
        /// Its id.
        pid: u32,
    },
    /// The process ended before its events were opened.
    Ended,
    /// `/proc` belongs to another pid namespace: its ids mean other processes (pid_namespaces(7)).
    OtherPidNamespace,
    /// The process belongs to another user.
    OtherUser {
        /// That user.
        uid: u32,
    },
    /// The process does not let others of its user read it: ptrace(2), "Ptrace access mode checking".
    Undumpable,
    /// The kernel denied the events of this process, as it does for a process of another user.
    OtherUsersProcess {
        /// What it answered.
        errno: i32,
    },
    /// The kernel reserves sampling, or sampling the kernel, for privileged users.
    Paranoid {
        /// `kernel.perf_event_paranoid`.
        level: i64,
        /// What this user may not sample.
        what: Sampled,
    },
    /// The kernel denied sampling itself, at a level that would allow it: lockdown, or a security module.
    KernelDenied {
        /// What it answered.
        errno: i32,
    },
    /// The system call is blocked.
    Blocked {
        /// What it answered.
        errno: i32,
        /// Whether a seccomp filter is known to be there (seccomp(2)).
        by_filter: bool,
    },
    /// The kernel has no performance events.
    NoPerfEvents,
    /// The kernel has no event to sample by.
    NoClock {
        /// The event.
        clock: &'static str,
        /// What it answered.
        errno: i32,
    },
    /// The kernel does not know an attribute of the event: it is older than Linux 4.3.
    OldKernel {
        /// What it answered.
        errno: i32,
    },
    /// Any other answer to perf_event_open(2).
    Failed {
        /// What it answered.
        errno: i32,
    },
    /// This user has locked as much memory for ring buffers as allowed.
    LockedMemory,
    /// There is no memory for a ring buffer.
    NoRingMemory {
        /// What the kernel answered.
        errno: i32,
    },
    /// The limit of open files does not allow two events for each CPU.
    TooFewDescriptors,
    /// The limit of open files does not allow a pipe.
    NoDescriptor,
    /// The limit of processes does not allow a thread.
    NoThread {
        /// What the system answered.
        error: String,
    },
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Programs in user space.
    Programs,
    /// The kernel below them.
    Kernel,
}

const NEEDS_PERFMON: &str = "as root, or with the capabilities CAP_PERFMON and CAP_SYS_PTRACE";

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotRequested => f.write_str("no option requested it"),
            Refused::NoProcess { pid } => write!(f, "there is no process {pid}"),
            Refused::Ended => f.write_str("it ended before it could be sampled"),
            Refused::OtherPidNamespace => f.write_str("/proc belongs to another pid namespace, so it describes other processes"),
            Refused::OtherUser { uid } => write!(f, "it belongs to another user (uid {uid})"),
            Refused::Undumpable => {
                f.write_str("it forbids inspection by other processes of its user (set-user-id, capabilities, or PR_SET_DUMPABLE)")
            }
            Refused::OtherUsersProcess { errno } => {
                let said = os_words(*errno);
                write!(f, "the kernel forbids sampling this process ({said}), as for another user's process")
            }
            Refused::Paranoid { level, what: Sampled::Programs } => {
                write!(f, "kernel.perf_event_paranoid is {level}, which forbids sampling by unprivileged users")
            }
            Refused::Paranoid { level, what: Sampled::Kernel } => write!(f, "kernel.perf_event_paranoid is {level}"),
            Refused::KernelDenied { errno } => write!(f, "the kernel forbids sampling of kernel code ({})", os_words(*errno)),
            Refused::Blocked { errno, by_filter: true } => {
                write!(f, "perf_event_open is blocked by a seccomp filter ({})", os_words(*errno))
            }
            Refused::Blocked { errno, by_filter: false } => {
                write!(f, "perf_event_open is blocked ({}), as by the seccomp filter of a container", os_words(*errno))
            }
            Refused::NoPerfEvents => {
                f.write_str("this kernel has no performance events (built without CONFIG_PERF_EVENTS, or a sandbox that emulates Linux)")
            }
            Refused::NoClock { clock, errno } => write!(f, "this kernel cannot sample by {clock} ({})", os_words(*errno)),
            Refused::OldKernel { errno } => {
                write!(f, "this kernel does not support the events that longpole needs ({}): Linux 4.3 or newer does", os_words(*errno))
            }
            Refused::Failed { errno } => write!(f, "perf_event_open failed: {}", os_words(*errno)),
            Refused::LockedMemory => {
                f.write_str("the memory that a user may lock for samples is used up (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK)")
            }
            Refused::NoRingMemory { errno } => write!(f, "no memory for samples: {}", os_words(*errno)),
            Refused::TooFewDescriptors => f.write_str("too many open files: sampling needs two descriptors for each CPU"),
            Refused::NoDescriptor => f.write_str("too many open files"),
            Refused::NoThread { error } => write!(f, "no thread for the recorder: {error}"),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// What to do about it, as a lower-case fragment; `None` where nothing helps.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Refused::NotRequested | Refused::NoProcess { .. } | Refused::Ended | Refused::Failed { .. } | Refused::NoRingMemory { .. } => {
                return None;
            }
            Refused::OtherPidNamespace => "mount its own: unshare --mount-proc".to_owned(),
            Refused::OtherUser { .. } => format!("run longpole as that user or {NEEDS_PERFMON}"),
            Refused::Undumpable => format!("run longpole {NEEDS_PERFMON}"),
            Refused::OtherUsersProcess { .. } => "run longpole as the user of that process".to_owned(),
            Refused::Paranoid { what: Sampled::Programs, .. } => "sysctl kernel.perf_event_paranoid=2".to_owned(),
            Refused::Paranoid { what: Sampled::Kernel, .. } => {
                "sysctl kernel.perf_event_paranoid=1, or the capability CAP_PERFMON".to_owned()
            }
            // Lockdown and security modules refuse whatever the level is.
            Refused::KernelDenied { .. } => "see /sys/kernel/security/lockdown".to_owned(),
            Refused::Blocked { .. } => {
                "allow it: docker run --cap-add PERFMON, or --security-opt seccomp=… with a profile that lists it".to_owned()
            }
            Refused::NoPerfEvents => "record on a kernel that has them".to_owned(),
            Refused::NoClock { .. } => "sample by cpu-clock, or record on another kernel".to_owned(),
            Refused::OldKernel { .. } => "record on a newer kernel".to_owned(),
            Refused::LockedMemory => {
                "wait for other recordings of this user to end, or raise it: sysctl kernel.perf_event_mlock_kb=2048".to_owned()
            }
            Refused::TooFewDescriptors | Refused::NoDescriptor => "raise the limit: ulimit -n 4096".to_owned(),
            Refused::NoThread { .. } => "raise the limit of processes: ulimit -u".to_owned(),
        })
    }

    /// Reason and remedy as one fragment: what recordings keep.
    pub fn to_words(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }
}

/// The system's words for an error number, in lower case.
fn os_words(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_keep_reason_and_remedy_as_one_fragment() {
        let closed = Refused::Paranoid { level: 2, what: Sampled::Kernel };
        let words = "kernel.perf_event_paranoid is 2; sysctl kernel.perf_event_paranoid=1, or the capability CAP_PERFMON";
        assert_eq!(closed.to_words(), words);
        assert_eq!(Refused::NotRequested.to_words(), "no option requested it");
        let foreign = "it belongs to another user (uid 7); run longpole as that user or as root, or with the capabilities CAP_PERFMON and CAP_SYS_PTRACE";
        assert_eq!(Refused::OtherUser { uid: 7 }.to_words(), foreign);
    }
}
