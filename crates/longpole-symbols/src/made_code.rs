//! Code that a virtual machine made while it ran, as an unwinder meets it. No binary holds it: the machine's own objects say which function it
//! is, and how large its frame is.

/// Number of a function that no binary holds. The reader of the machine has the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MadeId(pub u32);

/// A frame in executable memory of no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeFrame {
    /// The instruction pointer, or the return address.
    pub ip: u64,
    /// Whether the thread is there now; else it will return there.
    pub is_leaf: bool,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// rbx of the innermost frame; 0 on other machines, and where it is not known.
    pub bx: u64,
}

/// Registers of the caller of such a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeCaller {
    /// The return address.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
}

/// The stack of a thread, and which addresses are code.
pub trait Stack {
    /// The word at an address of the stack.
    fn word(&mut self, address: u64) -> Option<u64>;

    /// Whether an address lies in code: of a binary, or in other executable memory.
    fn is_code(&self, address: u64) -> bool;
}

/// What reads the objects of a virtual machine.
pub trait MadeCode {
    /// Adds the functions of a frame, innermost first, and returns the caller's registers, each as far as it is known.
    fn step(&mut self, frame: &MadeFrame, stack: &mut dyn Stack, functions: &mut Vec<MadeId>) -> Option<MadeCaller>;
}
