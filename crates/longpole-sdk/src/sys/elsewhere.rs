//! Elsewhere nobody reads what the SDK publishes, and it needs little of the system.

pub(crate) fn has_more_rights_than_its_caller() -> bool {
    false
}

/// A forked child does not learn that it is one.
pub(crate) fn call_in_forked_children(_handler: extern "C" fn()) {}

/// What is not flushed by a guard is lost.
pub(crate) fn call_at_exit(_handler: extern "C" fn()) {}

pub(crate) fn write_stderr(bytes: &[u8]) {
    use std::io::Write;
    let _ = std::io::stderr().lock().write_all(bytes);
}

pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    start()
}
