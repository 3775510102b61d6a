//! Versions of what lies on disk, and who reads whom.
//!
//! A reader reads its own version and every older one; it refuses a newer one and names it. Each kind of file says its
//! version itself, so that a file that was copied out of its recording can still be read or refused.
//!
//! | file | where its version stands | version |
//! |---|---|---|
//! | `catalog.sqlite` | `PRAGMA user_version` | [`CATALOG_VERSION`] |
//! | `recordings/r7/format` | its only line: `longpole recording 6` | [`RECORDING_VERSION`] |
//! | `recordings/r7/wal/000001.wal` | bytes 8 to 11 | [`WAL_VERSION`] |
//! | `recordings/r7/segments/*.parquet` | key `longpole.format` of the footer's key-value metadata | [`RECORDING_VERSION`] |
//! | `r7.lpole` | its first member, which is that `format` file | [`RECORDING_VERSION`] |

/// Version of the catalog's tables.
pub const CATALOG_VERSION: u32 = 3;

/// Version of a recording's directory and of the tables in its segments. Version 1 had no `waits`, and no `runtime` in `locations`;
/// version 2 had no `process_usage`, and no exits in `processes`; version 3 had no `current_spans`;
/// version 4 had no futexes in `waits`, and no kind `join`; version 5 had no checksums of its segments.
pub const RECORDING_VERSION: u32 = 6;

/// The first version whose segments have checksums.
pub(crate) const CHECKSUMS_SINCE: u32 = 6;

/// Key under which a segment's footer has its version.
pub(crate) const SEGMENT_KEY: &str = "longpole.format";

/// Version of the write-ahead log's bytes. Version 1 had no observations above 16, version 2 none above 19, version 3 none above 23,
/// version 4 none above 28, version 5 none above 29 and did not say in journals who is sent, version 6 had no logs of servers, version 7 no profiles in these.
pub const WAL_VERSION: u32 = 8;
