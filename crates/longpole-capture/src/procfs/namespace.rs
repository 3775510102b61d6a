//! Ids of threads inside a pid namespace of their own.

use std::fs;

/// The id of a thread inside of its own pid namespace.
pub(crate) fn id_inside(pid: u32, tid: u32) -> Option<u32> {
    inner_id(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?)
}

/// The innermost of the ids that `NSpid` lists, outermost first.
pub(crate) fn inner_id(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().next_back()?.parse().ok()
}
