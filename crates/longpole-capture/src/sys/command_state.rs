//! The command of this process, as the signal handler needs it: in atomics.

use std::ffi::c_int;
use std::sync::atomic::AtomicI32;

use longpole_model::Exit;

/// The value where there is no [`encode_exit`].
pub(super) const EXIT_NONE: i32 = i32::MIN;

/// Exit code of a child whose parent went away before it opened the gate, which nobody is left to see; and of our own failure.
pub(super) const EXIT_OWN_FAILURE: c_int = 125;

/// The command, from its fork until it is reaped; 0 where there is none.
pub(super) static COMMAND: AtomicI32 = AtomicI32::new(0);

/// The write end of the command's gate, while it is closed; else -1.
pub(super) static GATE: AtomicI32 = AtomicI32::new(-1);

/// [`encode_exit`] of the command once it is reaped.
pub(super) static REAPED_AS: AtomicI32 = AtomicI32::new(EXIT_NONE);

/// Codes as they are, 0 to 255; signals below 0.
pub(super) fn encode_exit(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code & 0xff,
        Exit::Signal(signal) => -signal,
    }
}
