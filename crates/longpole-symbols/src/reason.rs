//! Why an address has no name, or a binary no symbols: data to show, not an error to handle.

use std::fmt;

/// Why there is no function name. Its words fit into `[…]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nothing is at the path.
    Missing,
    /// The file was deleted while it was mapped.
    Deleted,
    /// Mapped memory that is no file: a JIT's heap, `[vsyscall]`.
    NotAFile,
    /// The system refused to read it.
    Unreadable {
        /// Its words.
        error: String,
    },
    /// The file is no ELF file.
    NotElf,
    /// The file's headers contradict themselves or point outside it.
    MalformedElf,
    /// Another file now lies at the path than the one that was mapped.
    BuildIdDiffers,
    /// The file has neither a symbol table nor debug information.
    Stripped,
    /// The file has symbols, but none covers the address.
    NoSymbol,
    /// The debug information contradicts itself. Names come from the symbol table, where it has one.
    MalformedDwarf,
    /// The debug information asks for more steps than its size accounts for. What was found before is kept.
    DwarfTooLaborious,
    /// The names of the recording ask for more steps than honest ones do. Some of this binary stay mangled.
    NamesTooLaborious,
    /// The address lies outside every file that was seen mapped.
    Unmapped,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Missing => f.write_str("file missing"),
            Reason::Deleted => f.write_str("file deleted"),
            Reason::NotAFile => f.write_str("not a file"),
            Reason::Unreadable { error } => write!(f, "file unreadable: {error}"),
            Reason::NotElf => f.write_str("not an elf file"),
            Reason::MalformedElf => f.write_str("malformed elf file"),
            Reason::BuildIdDiffers => f.write_str("file replaced since it was mapped"),
            Reason::Stripped => f.write_str("stripped"),
            Reason::NoSymbol => f.write_str("no symbol at this address"),
            Reason::MalformedDwarf => f.write_str("malformed debug information"),
            Reason::DwarfTooLaborious => f.write_str("debug information too laborious for its size"),
            Reason::NamesTooLaborious => f.write_str("names too laborious to demangle"),
            Reason::Unmapped => f.write_str("outside every mapped file"),
        }
    }
}
