//! From addresses to frames: mappings, compiled code, the kernel, Python, JavaScript, Java; and the tables that number stacks.

pub(crate) mod javascript;
pub(crate) mod jit;
pub(crate) mod jvm;
pub(crate) mod kallsyms;
pub(crate) mod kernel;
pub(crate) mod maps;
pub(crate) mod python;
pub(crate) mod stacks;
