//! Ids of threads inside their own pid namespace (pid_namespaces(7)).

use std::fs;

/// The id of a thread inside its own pid namespace; `None` if the thread is gone.
pub(crate) fn id_inside(pid: u32, tid: u32) -> Option<u32> {
    inner_id(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?)
}

/// The innermost of the ids that `NSpid` of a `status` file lists, outermost first.
pub(crate) fn inner_id(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().next_back()?.parse().ok()
}
