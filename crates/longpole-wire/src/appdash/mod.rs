//! AppDash: what Pulumi's legacy tracing speaks over TCP and writes into `up.trace`.
//!
//! ```text
//! TCP      ──► frames.rs ──► annotations by span ──┐
//! up.trace ──► file.rs ◄── gob.rs: Go's encoding ──┼─► annotations.rs ──► sink
//! spans    ──► encode.rs ──► frames, or a file ◄───┘ (the same keys, written)
//! ```
//!
//! A span is a heap of annotations, a key with bytes each; what the keys mean stands in `annotations.rs`. Spans have ids
//! of 64 bits and no resource: what process a connection belongs to, only the socket knows.

mod annotations;
mod encode;
mod file;
mod frames;
mod gob;

pub use encode::{encode_file, encode_frames};
pub use file::decode_file;
pub use frames::FrameReader;

/// Name of the scope of spans that came by this channel.
pub const SCOPE: &str = "appdash";

#[cfg(test)]
mod tests;
