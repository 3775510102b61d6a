//! Everything that knows Pulumi: its tracers, its plug-ins, its resources, its engine.
//!
//! The tree asks it through one door, [`PlacementRules`](crate::tree::placement::PlacementRules).

pub(crate) mod call;
mod call_halves;
pub mod deployment;
pub(crate) mod engine;
pub mod identity;
pub mod opentracing_bridge;
pub(crate) mod placement;
pub(crate) mod program_kind;
pub(crate) mod resources;
pub(crate) mod span_pairing;
pub mod span_process;
pub mod urn;
