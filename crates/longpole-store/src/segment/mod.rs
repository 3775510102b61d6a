//! Immutable files: one Parquet file per table of a recording.
//!
//! A segment may be damaged, or somebody else's. Before the first row of it is read:
//!
//! ```text
//! bytes ─ checksum ─ footer, pages: claims ─ columns ─ memory of its rows ─► rows, in batches ─ texts counted ─► model
//!         `checksums`  `preflight`            ours?    `budget`             behind `panic_guard` `budget`
//! ```
//!
//! Texts are read as views: a batch refers to a text that comes a thousand times, and does not hold it a thousand times.

pub(crate) mod checksums;
mod panic_guard;
mod positioned_file;
mod preflight;
pub(crate) mod reader;
pub(crate) mod recording;
mod text_search;
pub(crate) mod writer;

pub(crate) use self::checksums::FILE_NAME as CHECKSUMS_FILE;
#[cfg(test)]
pub(crate) use self::checksums::{Checksum, Checksums};
pub use self::panic_guard::quiet_thread;
pub(crate) use self::reader::Tables;

#[cfg(test)]
pub(crate) use self::tests::reread;

#[cfg(test)]
mod tests;
