//! Why goroutines could not be read.

use std::fmt;

use crate::memory::Unreadable;

/// Why nothing could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The process is gone.
    Gone,
    /// longpole may not read its memory.
    Closed,
    /// The binary has no table of symbols, or a very large one.
    NoSymbols,
    /// A version whose layout longpole does not have, without DWARF.
    UnknownVersion,
    /// The values do not fit together.
    Torn,
    /// There are more goroutines than are read.
    TooMany,
    /// Reading them takes more time than the recorder has for it.
    NoTime,
}

impl From<Unreadable> for Missing {
    fn from(why: Unreadable) -> Missing {
        match why {
            Unreadable::Gone => Missing::Gone,
            Unreadable::Closed => Missing::Closed,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::Gone => "the process had ended",
            Missing::Closed => "longpole may not read the memory of the process",
            Missing::NoSymbols => "the binary has no symbol table (built with -ldflags=-s), or one larger than longpole reads",
            Missing::UnknownVersion => "this longpole knows the version of Go only with DWARF, which the binary does not have",
            Missing::Torn => "the program changed them while they were read",
            Missing::NoTime => "longpole spends at most 1 % of a CPU on reading them",
            Missing::TooMany => "the process has more of them than longpole reads",
        })
    }
}
