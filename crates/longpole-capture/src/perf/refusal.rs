//! Why the kernel refuses events, from what it said and how strict it is set.

use std::fs;
use std::io;

use super::options::SampleClock;
use super::settings::read_number;
use crate::refusal::Refused;

pub(super) fn refuse_ring(error: &io::Error) -> Refused {
    let (reason, remedy) = match error.raw_os_error() {
        Some(libc::EPERM) => (
            "the memory that a user may lock for samples is used up (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK)".to_owned(),
            "wait for other recordings of this user to end, or raise it: sysctl kernel.perf_event_mlock_kb=2048".to_owned(),
        ),
        Some(libc::EMFILE | libc::ENFILE) => too_many_files(),
        _ => (format!("no memory for samples: {}", os_words(error)), String::new()),
    };
    Refused { reason, remedy }
}

fn too_many_files() -> (String, String) {
    ("too many open files: sampling needs two descriptors for each CPU".to_owned(), "raise the limit: ulimit -n 4096".to_owned())
}

fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

pub(super) fn refuse_event(error: &io::Error, clock: SampleClock) -> Refused {
    let paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
    let (reason, remedy) = explain(error, clock, paranoid, is_filtered());
    Refused { reason, remedy }
}

/// Whether a filter decides which system calls this thread may make.
fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// Why the kernel may not be looked into.
pub(super) fn refuse_kernel(error: &io::Error) -> Refused {
    let paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
    let (reason, remedy) = explain_kernel(error, paranoid);
    Refused { reason, remedy }
}

fn explain_kernel(error: &io::Error, paranoid: Option<i64>) -> (String, String) {
    let remedy = "sysctl kernel.perf_event_paranoid=1, or the capability CAP_PERFMON".to_owned();
    match paranoid {
        Some(level) if level > 1 => (format!("kernel.perf_event_paranoid is {level}"), remedy),
        // Lockdown and security modules refuse whatever the level says.
        _ => (format!("the kernel does not let itself be sampled ({})", os_words(error)), "see /sys/kernel/security/lockdown".to_owned()),
    }
}

/// Words for a refusal, from what the kernel said and how strict it is set.
fn explain(error: &io::Error, clock: SampleClock, paranoid: Option<i64>, is_filtered: bool) -> (String, String) {
    let said = os_words(error);
    let blocked = || {
        let reason = if is_filtered {
            format!("perf_event_open is blocked by a seccomp filter ({said})")
        } else {
            format!("perf_event_open is blocked ({said}), as by the seccomp filter of a container")
        };
        (reason, "allow it: docker run --cap-add PERFMON, or --security-opt seccomp=… with a profile that lists it".to_owned())
    };
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) if is_filtered => blocked(),
        Some(libc::EACCES | libc::EPERM) if paranoid.is_some_and(|level| level > 2) => (
            format!("kernel.perf_event_paranoid is {}, which forbids sampling to users", paranoid.unwrap_or_default()),
            "sysctl kernel.perf_event_paranoid=2".to_owned(),
        ),
        Some(libc::EACCES) if is_filtered => blocked(),
        Some(libc::EPERM | libc::ENOSYS) if paranoid.is_some() => blocked(),
        Some(libc::EACCES) => (
            format!("the kernel forbids to sample this process ({said}), as it does for a process of another user"),
            "run longpole as the user that it runs as".to_owned(),
        ),
        Some(libc::ENOSYS | libc::EPERM) => (
            "this kernel has no performance events (built without CONFIG_PERF_EVENTS, or a sandbox that emulates Linux)".to_owned(),
            "record on a kernel that has them".to_owned(),
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            (format!("this kernel cannot sample by {clock} ({said})"), "sample by cpu-clock, or record on another kernel".to_owned())
        }
        Some(libc::EMFILE | libc::ENFILE) => too_many_files(),
        Some(libc::ESRCH) => ("it ended before it could be sampled".to_owned(), String::new()),
        Some(libc::EINVAL | libc::E2BIG) => (
            format!("this kernel does not know what longpole asks of it ({said}); it needs Linux 4.3 or newer"),
            "record on a newer kernel".to_owned(),
        ),
        _ => (format!("perf_event_open failed: {said}"), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_why_and_what_to_do() {
        let words = |errno, paranoid| explain(&io::Error::from_raw_os_error(errno), SampleClock::CpuClock, paranoid, false);
        assert_eq!(
            words(libc::EACCES, Some(3)),
            (
                "kernel.perf_event_paranoid is 3, which forbids sampling to users".to_owned(),
                "sysctl kernel.perf_event_paranoid=2".to_owned()
            )
        );
        let (reason, remedy) = words(libc::EPERM, Some(2));
        assert_eq!(reason, "perf_event_open is blocked (operation not permitted), as by the seccomp filter of a container");
        assert!(remedy.contains("seccomp"));
        let filtered = |errno| explain(&io::Error::from_raw_os_error(errno), SampleClock::CpuClock, Some(2), true).0;
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            assert!(filtered(errno).contains("by a seccomp filter"), "{}", filtered(errno));
        }
        assert!(words(libc::ENOSYS, None).0.contains("no performance events"));
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let (reason, remedy) = explain_kernel(&denied, Some(2));
        assert_eq!(reason, "kernel.perf_event_paranoid is 2");
        assert!(remedy.contains("perf_event_paranoid=1") && remedy.contains("CAP_PERFMON"));
        assert!(explain_kernel(&denied, Some(1)).0.contains("permission denied"));
        assert!(words(libc::EMFILE, Some(2)).1.contains("ulimit -n"));
        assert!(words(libc::ENOENT, Some(2)).0.contains("cannot sample by cpu-clock"));
        for errno in 1..134 {
            let (reason, _) = words(errno, Some(2));
            assert!(!reason.is_empty() && reason.starts_with(char::is_lowercase) && !reason.contains("os error"), "{reason}");
        }
    }
}
