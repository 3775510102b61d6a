//! How a process ended, as wait(2) encodes it.

use longpole_model::Exit;

/// A status as `wait` gives it.
pub(crate) fn exit_of_status(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_code_or_a_signal() {
        assert_eq!((exit_of_status(37 << 8), exit_of_status(9)), (Exit::Code(37), Exit::Signal(9)));
    }
}
