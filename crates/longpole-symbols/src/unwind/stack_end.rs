//! How a walk ended, and why it went no further.

use std::fmt;

use super::frame::FRAMES_MAX;

/// An address further above the copied bytes than this is not "deeper in the stack" but a register that was no frame
/// pointer: the default limit of a stack is 8 MiB, of a thread made by Rust 2 MiB.
pub(super) const DEEPER_BYTES_MAX: u64 = 64 << 20;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackEnd {
    /// At the function that has no caller.
    Root,
    /// The stack is deeper than the bytes that were copied.
    Deeper {
        /// How many were copied.
        copied_bytes: u32,
    },
    /// The copy is shorter than asked, because memory was not there, and the walk left it.
    NotResident,
    /// The next frame would lie below the last one, or nowhere near the stack. A program that goes on on another stack (rustc does, where recursion is deep)
    /// ends so, too.
    Astray,
    /// The return address is in no code of the process.
    NotCode,
    /// A handler of signals that runs on a stack of its own, so what it interrupted was not copied.
    OtherStack,
    /// More frames than any real stack.
    TooMany,
    /// Its unwind information is so long that this stack, or those of its process, would take too long.
    TooSlow,
    /// The unwind information led nowhere.
    BadInformation,
}

impl StackEnd {
    /// Whether only the number of copied bytes was too small.
    pub fn is_truncated(self) -> bool {
        matches!(self, StackEnd::Deeper { .. })
    }
}

impl fmt::Display for StackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackEnd::Root => f.write_str("complete"),
            StackEnd::Deeper { copied_bytes } if copied_bytes % 1024 == 0 => {
                write!(f, "the stack is deeper than the {} KiB that longpole copies", copied_bytes / 1024)
            }
            StackEnd::Deeper { copied_bytes } => write!(f, "the stack is deeper than the {copied_bytes} bytes that longpole copies"),
            StackEnd::NotResident => f.write_str("part of the stack could not be copied"),
            StackEnd::Astray => {
                f.write_str("no caller found: it is on another stack, or this code has neither unwind information nor a frame pointer")
            }
            StackEnd::NotCode => {
                f.write_str("the return address is not in code: the function has neither unwind information nor a frame pointer")
            }
            StackEnd::OtherStack => f.write_str("the signal handler runs on a stack of its own"),
            StackEnd::TooMany => write!(f, "more than {FRAMES_MAX} frames"),
            StackEnd::TooSlow => f.write_str("the unwind information is so long that unwinding would take too long"),
            StackEnd::BadInformation => f.write_str("the unwind information leads nowhere"),
        }
    }
}

pub(super) fn end_of_error(error: framehop::Error, sp: u64, copied: usize, asked_bytes: u32) -> StackEnd {
    match error {
        framehop::Error::CouldNotReadStack(address) => {
            let top = sp.saturating_add(copied as u64);
            let near = address >= sp && address < top.saturating_add(DEEPER_BYTES_MAX);
            match (near, copied as u64 >= u64::from(asked_bytes)) {
                (true, true) => StackEnd::Deeper { copied_bytes: asked_bytes },
                (true, false) => StackEnd::NotResident,
                (false, _) => StackEnd::Astray,
            }
        }
        framehop::Error::FramepointerUnwindingMovedBackwards => StackEnd::Astray,
        framehop::Error::ReturnAddressIsNull => StackEnd::Root,
        framehop::Error::DidNotAdvance | framehop::Error::IntegerOverflow => StackEnd::BadInformation,
    }
}
