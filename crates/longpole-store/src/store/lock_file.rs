//! Whether the machine has started anew since a recording began. Nothing is synced while it is made: what was acknowledged survives the
//! recorder, and not a power cut. So what can be said of a log depends on it.

use std::path::Path;

use crate::files;

/// A number the kernel makes at each start.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const PREFIX: &str = "boot ";

/// What is known of the time since the recorder died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// The machine has run on: the log is what the recorder wrote.
    SameBoot,
    /// It has started anew, or the recording is on another machine now: the log is what had reached the disk.
    OtherBoot,
    /// An older longpole did not write it down, or the kernel does not tell.
    Unknown,
}

/// The line that the lock file of a recording holds; empty where the kernel does not tell.
pub(crate) fn line() -> String {
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    if boot.trim().is_empty() { String::new() } else { format!("{PREFIX}{}\n", boot.trim()) }
}

/// Compares the line in this lock file with the machine's own.
pub(crate) fn since(lock: &Path) -> Since {
    let (then, now) = (files::read_to_string(lock).unwrap_or_default(), line());
    let then = then.lines().next().unwrap_or_default();
    if !then.starts_with(PREFIX) || now.is_empty() {
        Since::Unknown
    } else if then == now.trim_end() {
        Since::SameBoot
    } else {
        Since::OtherBoot
    }
}

/// What the line begins with in which a recorder says that it ended, and why it could not seal.
const ENDED: &str = "ended ";

/// The longest of its reasons.
const REASON_BYTES_MAX: usize = 500;

/// The line. It stands in the lock file, which has a block already: that of a disk that is full takes it, too.
pub(crate) fn ended_line(reason: &str) -> String {
    let mut reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    format!("{ENDED}{reason}\n")
}

/// Why the recorder could not seal, where it said so.
pub(crate) fn why_ended(lock: &Path) -> Option<String> {
    let text = files::read_to_string(lock).ok()?;
    text.lines().find_map(|line| line.strip_prefix(ENDED)).map(str::to_owned)
}
