//! The code that a signal handler returns to.

use std::ops::Range;

use crate::eh_frame::{Section, functions_where};

/// Largest `.eh_frame` that is looked through for them: a C library has 0.2 MB, a program with one built in some more.
const SIGNAL_SEARCH_BYTES_MAX: usize = 8 << 20;

/// Augmentations of call frame information that mark the frame of a signal, as compilers and assemblers spell them.
const SIGNAL_AUGMENTATIONS: [&[u8]; 2] = [b"zRS\0", b"zSR\0"];

/// Finds the code that handlers return to.
///
/// Only the C library has it, so a look for the bytes of the mark comes first: it spares all others the walk over thousands of entries.
pub(crate) fn signal_returns(eh_frame: &Section) -> Vec<Range<u64>> {
    // On other machines the kernel lays out the frame such that it reads as any other.
    if !cfg!(target_arch = "x86_64") || eh_frame.bytes.len() > SIGNAL_SEARCH_BYTES_MAX {
        return Vec::new();
    }
    if !eh_frame.bytes.windows(4).any(|four| four[0] == b'z' && SIGNAL_AUGMENTATIONS.contains(&four)) {
        return Vec::new();
    }
    functions_where(eh_frame, |_, _, entry| entry.cie().is_signal_trampoline())
}
