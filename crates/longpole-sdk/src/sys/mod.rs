//! What the SDK asks of the system and std has no words for: the id of a thread, clocks, limits, rights, calls at a fork and at the exit,
//! signals, mapped memory.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use self::elsewhere::*;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::*;
