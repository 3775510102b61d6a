//! Keep and fetch: recordings on disk.
//!
//! You bring a directory. A [`Store`] numbers recordings `r1, r2, …` in it, gives a recorder a write-ahead log to append
//! to ([`RecordingWriter`]), turns what was recorded into Parquet files, one per table, and reads them back as model
//! values ([`StoredRecording`]).
//!
//! ```text
//! <root>/catalog.sqlite              which recordings there are, and the line that `ls` shows of each
//! <root>/recordings/r7/format        version of what follows
//!                      lock          locked (flock) while the recorder lives; holds the id of the machine's boot
//!                      seal.lock     locked while someone turns the log into segments
//!                      wal/000001.wal      until the disk has the segments: what was acknowledged, in order
//!                      segments/*.parquet  once it is sealed: one file per table, and `checksums` of them
//! ```
//!
//! What was acknowledged is never lost with the recorder: it is in the log before the append returns. Whoever opens the
//! recording of a recorder that died finds the lock free, replays the log and seals it. Sealing can be interrupted
//! anywhere and begun again.
//!
//! Everything is for the user who made it (0700, 0600). A store that another user owns, or can change, is refused.
//!
//! [`archive`] makes one file of a sealed recording, and reads it. [`prune`] says which recordings can go. [`outside`] opens what lies outside of
//! a store, where others may have a hand in.
//!
//! It does not decode OTLP, look up symbols or tie samples to spans: between [`StoredRecording::replay`] and
//! [`StoredRecording::write_segments`] others do. It runs no query; `longpole-query` reads the files that
//! [`StoredRecording::table_files`] names. Bytes: `docs/formats/recording.md`; tables: `docs/formats/sql-schema.md`.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![warn(clippy::missing_errors_doc)]

pub mod archive;
mod assemble;
mod bits;
mod compact_spans;
mod encoding;
mod error;
mod error_kind;
mod files;
pub mod format;
mod format_file;
mod layout;
pub mod live;
mod memory;
mod name;
mod numbers;
mod query_limits;
mod query_stop;
mod segment;
mod span_order;
mod store;
pub mod tables;
#[cfg(test)]
mod testing;
mod trace_summary;
mod wal;

pub use assemble::Assembler;
pub use compact_spans::{CompactRecording, CompactSpans};
pub use error::StoreError;
pub use error_kind::ErrorKind;
pub use files::{outside, users};
pub use name::RecordingName;
pub use segment::quiet_thread;
pub use store::prune;
pub use store::{DirectoryIdentity, EndReason, Listing, RecordingState, RecordingWriter, Store, StoredRecording, SummaryRow, TraceIds};
pub use wal::{BodyEncoding, Frame, Generation, Replay, RequestHead, Secret, SyncPolicy, WalError, WalObservationSink, WalWriter};
