//! What this process is, where other profilers find it (OTEP 4719).

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use self::elsewhere::publish;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::publish;
