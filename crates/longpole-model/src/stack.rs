//! Stacks of a recording: interned, leaf first, in OTLP's and pprof's terms.
//!
//! ```text
//! stack 7  = [location 12, location 4, location 1]          leaf first
//! location 12 = mapping 2 + 0x4f3a0                          one address of one binary
//!   frames    = [hash_block (inlined), compress_archive]     innermost first, what a person sees
//! ```

use crate::address::{AbsAddr, VirtOffset};
use crate::index::Id;
use crate::interned_text::Text;

/// Number of a mapping within its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MappingId(pub u32);

/// Number of a location within its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// Number of a stack within its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

macro_rules! numbers {
    ($($name:ident)*) => {$(
        impl Id for $name {
            #[inline]
            fn at(place: usize) -> Self {
                debug_assert!(u32::try_from(place).is_ok(), "a table of more than 2^32 rows");
                $name(u32::try_from(place).unwrap_or(u32::MAX))
            }

            #[inline]
            fn place(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

numbers! { MappingId LocationId StackId }

/// A binary as it was mapped: one per file and build id, shared by the processes of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its number.
    pub id: MappingId,
    /// Path as the kernel reported it, such as `/usr/lib/libc.so.6`, `[vdso]`.
    pub path: String,
    /// GNU build id, empty where the file has none or was unreadable.
    pub build_id: Vec<u8>,
}

/// What one entry of a stack is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LocationKind {
    /// Code of a mapped binary.
    Code {
        /// The binary.
        mapping: MappingId,
        /// Address to look up: a return address is already one byte less.
        address: VirtOffset,
    },
    /// Code outside every known mapping (JIT, or a mapping the recorder lost).
    Unmapped {
        /// Address in the process, to look up.
        address: AbsAddr,
    },
    /// Code that no binary of the process holds and that has a name all the same: interpreted, compiled while the program ran,
    /// or of the kernel. Its one frame comes with it and is not looked up.
    Named {
        /// What runs it.
        runtime: Runtime,
        /// Address in the process, to look up, where it is machine code.
        address: Option<AbsAddr>,
    },
    /// Not code: the unwinder stopped here, and why (`stack deeper than the 16 KiB that were copied`).
    Cut {
        /// Lower-case fragment for people.
        reason: String,
    },
}

/// What runs code that no binary holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// CPython.
    Python,
    /// Node.js, or another program around V8.
    Node,
    /// A Java virtual machine.
    Jvm,
    /// Another one that compiles code while it runs.
    Other,
    /// The kernel of the operating system, below the functions that called it.
    Kernel,
}

impl Runtime {
    /// Every one.
    pub const ALL: [Runtime; 5] = [Runtime::Python, Runtime::Node, Runtime::Jvm, Runtime::Other, Runtime::Kernel];

    /// The code SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            Runtime::Python => "python",
            Runtime::Node => "node",
            Runtime::Jvm => "jvm",
            Runtime::Other => "other",
            Runtime::Kernel => "kernel",
        }
    }

    /// The runtime of this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.as_str() == code)
    }
}

/// One entry of a stack, interned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Its number.
    pub id: LocationId,
    /// What it is.
    pub kind: LocationKind,
    /// Its frames, innermost inlined function first; empty before symbols are looked up, unless it is [`LocationKind::Named`].
    pub frames: Vec<Frame>,
}

/// One line of one location after inlining: what a person sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Demangled function name; for an address without a name: `name.so+0x12ab`; for a cut: `[reason]`.
    pub function: Text,
    /// Source file, empty where unknown.
    pub file: Text,
    /// Source line, 0 where unknown.
    pub line: u32,
    /// Why there is no function name, where there is none.
    pub reason: Option<String>,
}

/// A stack, leaf first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Its number.
    pub id: StackId,
    /// Entries, leaf first.
    pub locations: Vec<LocationId>,
}
