//! What blocked threads wait for.

pub(crate) mod futex;
pub(crate) mod probe;
