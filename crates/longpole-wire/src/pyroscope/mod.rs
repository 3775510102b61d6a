//! Pyroscope's doors: profiles in as its SDKs and agents push them, questions and answers as Grafana and its own page exchange them.
//!
//! ```text
//! POST /push.v1.PusherService/Push       ─► push             pprof with the labels of its series
//! ```
//!
//! Field numbers are those of Pyroscope's public `api` folder (`push/v1/push.proto`, `types/v1/types.proto`, `querier/v1/querier.proto`), as of
//! August 2026.

mod codec;
pub mod push;

pub use codec::Codec;
