//! The write-ahead log: what was acknowledged, in the order it came. Its bytes are described in
//! `docs/formats/recording.md`.
//!
//! ```text
//! recorder ─► writer, observation_sink ─► frames ─► 000001.wal ─► replay ─► whoever seals
//!                                                                 └ search, behind damage
//! ```

mod error;
mod frame;
mod observation_codec;
mod observation_sink;
mod profile_codec;
mod replay;
mod search;
mod secret;
mod writer;

pub use self::error::WalError;
pub use self::frame::{BodyEncoding, Frame, Generation, RequestHead};
pub use self::observation_sink::WalObservationSink;
pub(crate) use self::profile_codec::encode as encode_profiles;
pub use self::replay::Replay;
pub(crate) use self::replay::{AtEnd, Since};
pub use self::secret::Secret;
pub use self::writer::{SyncPolicy, WalWriter};

#[cfg(test)]
mod tests;
