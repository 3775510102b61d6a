//! Pyroscope's doors: profiles in as its SDKs and agents push them, questions and answers as Grafana and its own page exchange them.
//!
//! ```text
//! POST /push.v1.PusherService/Push       ─► push             pprof with the labels of its series
//! POST /ingest?name=cart.cpu{env=prod}   ─► ingest           pprof, folded stacks, lines, trie, tree, speedscope, JFR
//! POST /querier.v1.QuerierService/…      ─► querier          queries of Grafana, and their answers
//! GET /render, /render-diff              ─► render           queries of Pyroscope's page, and flame graphs for it
//!
//! profile_type   process_cpu:cpu:nanoseconds:cpu:nanoseconds        what a number is, and how numbers of it are added up
//! selector       {service_name="cart"}                              which series
//! time           1700000000, now-1h                                 from when, and until when
//! ```
//!
//! Field numbers are those of Pyroscope's public `api` folder (`push/v1/push.proto`, `types/v1/types.proto`, `querier/v1/querier.proto`), as of
//! August 2026.

mod codec;
pub mod ingest;
pub mod profile_type;
pub mod push;
pub mod querier;
pub mod render;
pub mod selector;
mod syntax_error;
#[cfg(test)]
mod test_graphs;
pub mod time;

pub use codec::Codec;
pub use syntax_error::SyntaxError;
