//! The limit of open files, which connections share with everything else.

/// How many files may be open under these limits of the process (`/proc/self/limits`).
pub(crate) fn max(limits: &str) -> Option<usize> {
    limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_ascii_whitespace().next()?.parse().ok())
}
