//! The recorded schedule: what waited for what, and what a change would do.

pub(crate) mod background;
pub mod concurrency_limit;
pub mod critical_path;
pub(crate) mod own_work;
mod phases;
pub(crate) mod pipeline;
pub mod poles;
pub(crate) mod recorded;
pub mod replay;
pub mod saving;
pub(crate) mod servers;
pub(crate) mod slots;
