//! `querier.v1.QuerierService`: what Grafana and others query, and the answers, in both encodings.
//!
//! ```text
//! POST /querier.v1.QuerierService/SelectMergeStacktraces
//! {"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{service_name=\"cart\"}","start":"1700000000000","end":1700003600000}
//!
//! {"flamegraph":{"names":["total","main","hash"],"levels":[{"values":["0","10","0","0"]}, …],"total":"10","maxSelf":"7"}}
//! ```
//!
//! A bar of a level has four values: its distance from the end of the bar before it, total, self, and the number of its name.

mod message;
mod pprof_json;
mod request;
mod response;

pub use request::{AnswerFormat, ExemplarKind, ProfileQuery, QuerierMethod, decode, decode_diff};
pub use response::{
    FlameGraph, FlameGraphDiff, HeatmapAnswer, HeatmapSlot, ProfileExemplar, ProfileStats, QueryAnalysis, QueryScope, SeriesAnswer,
    SeriesPoint, StacktracesAnswer, analysis, diff, heatmap, label_sets, names, pprof, profile_stats, profile_types, series, stacktraces,
};

/// Where methods are posted to: their names follow.
pub const SERVICE: &str = "/querier.v1.QuerierService/";
