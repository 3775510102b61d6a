//! What the kernel's answer to perf_event_open(2) means, beside how strict it is set.

use std::fs;
use std::io;

use super::options::SampleClock;
use super::settings::read_number;
use crate::refusal::{Refused, Sampled};

/// Why there is no ring buffer.
pub(super) fn refused_ring(error: &io::Error) -> Refused {
    match error.raw_os_error() {
        Some(libc::EPERM) => Refused::LockedMemory,
        Some(libc::EMFILE | libc::ENFILE) => Refused::TooFewDescriptors,
        errno => Refused::NoRingMemory { errno: errno.unwrap_or_default() },
    }
}

/// Why there is no event.
pub(super) fn refused_event(error: &io::Error, clock: SampleClock) -> Refused {
    explain(error.raw_os_error().unwrap_or_default(), clock, paranoid_level(), is_filtered())
}

/// Why the kernel may not be sampled.
pub(super) fn refused_kernel(error: &io::Error) -> Refused {
    explain_kernel(error.raw_os_error().unwrap_or_default(), paranoid_level())
}

/// `kernel.perf_event_paranoid`; `None` where the kernel has no such setting.
fn paranoid_level() -> Option<i64> {
    read_number("/proc/sys/kernel/perf_event_paranoid")
}

/// Whether a seccomp filter decides which system calls this thread may make (proc_pid_status(5)).
fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn explain_kernel(errno: i32, paranoid: Option<i64>) -> Refused {
    match paranoid {
        Some(level) if level > 1 => Refused::Paranoid { level, what: Sampled::Kernel },
        _ => Refused::KernelDenied { errno },
    }
}

fn explain(errno: i32, clock: SampleClock, paranoid: Option<i64>, is_filtered: bool) -> Refused {
    let blocked = Refused::Blocked { errno, by_filter: is_filtered };
    match (errno, paranoid) {
        (libc::EPERM | libc::ENOSYS, _) if is_filtered => blocked,
        (libc::EACCES | libc::EPERM, Some(level)) if level > 2 => Refused::Paranoid { level, what: Sampled::Programs },
        (libc::EACCES, _) if is_filtered => blocked,
        (libc::EPERM | libc::ENOSYS, Some(_)) => blocked,
        (libc::EACCES, _) => Refused::OtherUsersProcess { errno },
        (libc::ENOSYS | libc::EPERM, None) => Refused::NoPerfEvents,
        (libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV, _) => Refused::NoClock { clock: clock.as_str(), errno },
        (libc::EMFILE | libc::ENFILE, _) => Refused::TooFewDescriptors,
        (libc::ESRCH, _) => Refused::Ended,
        (libc::EINVAL | libc::E2BIG, _) => Refused::OldKernel { errno },
        _ => Refused::Failed { errno },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(errno: i32, paranoid: Option<i64>, is_filtered: bool) -> Refused {
        explain(errno, SampleClock::CpuClock, paranoid, is_filtered)
    }

    #[test]
    fn an_answer_of_the_kernel_means_what_its_setting_says() {
        assert_eq!(of(libc::EACCES, Some(3), false), Refused::Paranoid { level: 3, what: Sampled::Programs });
        assert_eq!(of(libc::EPERM, Some(2), false), Refused::Blocked { errno: libc::EPERM, by_filter: false });
        assert_eq!(of(libc::EACCES, Some(2), false), Refused::OtherUsersProcess { errno: libc::EACCES });
        assert_eq!(of(libc::ENOSYS, None, false), Refused::NoPerfEvents);
        assert_eq!(of(libc::EMFILE, Some(2), false), Refused::TooFewDescriptors);
        assert_eq!(of(libc::ENOENT, Some(2), false), Refused::NoClock { clock: "cpu-clock", errno: libc::ENOENT });
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            assert_eq!(of(errno, Some(2), true), Refused::Blocked { errno, by_filter: true });
        }
        assert_eq!(explain_kernel(libc::EACCES, Some(2)), Refused::Paranoid { level: 2, what: Sampled::Kernel });
        assert_eq!(explain_kernel(libc::EACCES, Some(1)), Refused::KernelDenied { errno: libc::EACCES });
    }

    #[test]
    fn each_refusal_has_a_reason_in_words() {
        for (errno, is_filtered) in (1..134).flat_map(|errno| [(errno, false), (errno, true)]) {
            let reason = of(errno, Some(2), is_filtered).to_string();
            assert!(!reason.is_empty() && reason.starts_with(char::is_lowercase) && !reason.contains("os error"), "{reason}");
        }
        let blocked = of(libc::EPERM, Some(2), false);
        assert_eq!(blocked.to_string(), "perf_event_open is blocked (operation not permitted), as by the seccomp filter of a container");
        assert!(blocked.remedy().unwrap().contains("seccomp"));
        let kernel = explain_kernel(libc::EACCES, Some(1));
        assert_eq!(kernel.to_string(), "the kernel forbids sampling of kernel code (permission denied)");
    }
}
