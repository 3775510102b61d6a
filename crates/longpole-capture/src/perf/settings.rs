//! Numbers below `/proc/sys/kernel`.

use std::fs;

/// Most entries of its own call chain that the kernel reports.
pub(crate) fn chain_depth_max() -> usize {
    let told = read_number("/proc/sys/kernel/perf_event_max_stack").and_then(|max| usize::try_from(max).ok());
    // Its default.
    told.unwrap_or(127)
}

pub(super) fn read_number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
