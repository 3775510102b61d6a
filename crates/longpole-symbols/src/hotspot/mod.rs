//! The methods that a Java virtual machine (HotSpot) runs, out of its own memory.
//!
//! You bring the memory of a process ([`Memory`](crate::memory::Memory)) and where its `libjvm.so` has the tables that describe its objects to debuggers
//! ([`HotSpotSymbols`]). A [`Jvm`] then walks the frames of code that the machine made ([`MadeCode`](crate::made_code::MadeCode)) and names
//! their methods. The machine needs no option, is not stopped and knows nothing of it.
//!
//! ```text
//! gHotSpotVMStructs ─► layout       CodeCache::_heaps ─► CodeHeap ─ segment map ─► CodeBlob: where its code is, how large its frame is
//!
//! interpreted   fp-24 ─► Method ─► ConstMethod ─► ConstantPool ─► Symbol  callBank
//!                                                  └ InstanceKlass ─► Symbol  Orders
//! compiled      nmethod ─ PcDesc ─ scopes ─► Method, and the one it is inlined into, …
//! ```
//!
//! It reads while the machine writes, so any pointer may lead anywhere, and any number may be any number: each loop has a limit, each
//! object must lead back to where it came from, and what does not hold together is no method.

mod code_cache;
mod jvm;
mod layout;
mod method;
mod process_bytes;
mod scopes;
mod step;

pub use jvm::{Jvm, JvmFunction};
pub use layout::{HotSpotSymbols, SYMBOLS};

#[cfg(test)]
mod tests;
