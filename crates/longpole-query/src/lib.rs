//! Ask: SQL over recordings.
//!
//! You bring sealed recordings of a [`longpole_store::Store`] and a statement; you get plain values.
//!
//! ```text
//! sql(&[r7], "SELECT name, duration_nanos FROM spans", &limits)  →  columns, rows
//! ```
//!
//! It only reads: SELECT, EXPLAIN, SHOW and DESCRIBE over the tables of `docs/formats/sql-schema.md`. It changes nothing,
//! opens no other file, and stops at the limits of memory, time and rows it is given. It is synchronous: the engine runs on
//! two threads of its own for as long as one statement takes.
//!
//! Every table is a scan of a Parquet file and every plan is made of the engine's own nodes, so that the same plans can one
//! day be sent to other machines. No type of the engine leaves this crate, except to tests.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod checked_sum;
mod depth;
mod engine;
pub mod error;
pub mod limits;
pub mod schema;
pub mod sql;
mod statement;
pub mod value;

/// The engine, for tests that run a server of SQL or write Parquet files. They cannot depend on it themselves: what tests depend on is compiled with
/// and without the feature `sql`, and the engine is most of a build.
#[doc(hidden)]
pub use datafusion;
pub use engine::THREAD_NAME;
pub use error::{MemoryUse, QueryError, QueryErrorKind};
pub use limits::Limits;
pub use sql::{Column, SqlResult, sql};
pub use value::Value;
