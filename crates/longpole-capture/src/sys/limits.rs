//! Sizes and limits of the system: pages, descriptors, stacks (getrlimit(2), sysconf(3)).
#![expect(unsafe_code, reason = "getrlimit, setrlimit, sysconf")]

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// The limit of descriptors of this process.
pub(crate) fn open_files_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure it is given.
    let outcome = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if outcome == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}

/// Raises the limit of descriptors of this process as far as allowed.
pub fn raise_open_files_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or fill the structure they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// The soft limit of the main thread's stack.
pub(crate) fn stack_limit_bytes() -> u64 {
    let mut stack = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `stack` is a valid place for the answer. It fails on nothing else.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut stack) };
    stack.rlim_cur
}
