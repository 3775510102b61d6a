//! Queries in: one shape for all methods, filled by the numbers that each method gives its fields.

mod json;
mod protobuf;

use crate::error::DecodeError;
use crate::pyroscope::Codec;

/// A method of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuerierMethod {
    /// Which types of profiles there are.
    ProfileTypes,
    /// Values of one label.
    LabelValues,
    /// Names of labels.
    LabelNames,
    /// Label sets of series.
    Series,
    /// One flame graph of all that a selector finds.
    SelectMergeStacktraces,
    /// The same of some spans.
    SelectMergeSpanProfile,
    /// The same as pprof.
    SelectMergeProfile,
    /// Values over time.
    SelectSeries,
    /// Values over time, by how many profiles or spans have them.
    SelectHeatmap,
    /// Two flame graphs on one scale: [`decode_diff`].
    Diff,
    /// Whether there is anything, and since when.
    GetProfileStats,
    /// What a query would cost.
    AnalyzeQuery,
}

impl QuerierMethod {
    /// Every method.
    pub const ALL: [QuerierMethod; 12] = [
        QuerierMethod::ProfileTypes,
        QuerierMethod::LabelValues,
        QuerierMethod::LabelNames,
        QuerierMethod::Series,
        QuerierMethod::SelectMergeStacktraces,
        QuerierMethod::SelectMergeSpanProfile,
        QuerierMethod::SelectMergeProfile,
        QuerierMethod::SelectSeries,
        QuerierMethod::SelectHeatmap,
        QuerierMethod::Diff,
        QuerierMethod::GetProfileStats,
        QuerierMethod::AnalyzeQuery,
    ];

    /// Its name, the last part of the address.
    pub fn as_str(self) -> &'static str {
        match self {
            QuerierMethod::ProfileTypes => "ProfileTypes",
            QuerierMethod::LabelValues => "LabelValues",
            QuerierMethod::LabelNames => "LabelNames",
            QuerierMethod::Series => "Series",
            QuerierMethod::SelectMergeStacktraces => "SelectMergeStacktraces",
            QuerierMethod::SelectMergeSpanProfile => "SelectMergeSpanProfile",
            QuerierMethod::SelectMergeProfile => "SelectMergeProfile",
            QuerierMethod::SelectSeries => "SelectSeries",
            QuerierMethod::SelectHeatmap => "SelectHeatmap",
            QuerierMethod::Diff => "Diff",
            QuerierMethod::GetProfileStats => "GetProfileStats",
            QuerierMethod::AnalyzeQuery => "AnalyzeQuery",
        }
    }

    /// The method of this name.
    pub fn of_name(name: &str) -> Option<QuerierMethod> {
        QuerierMethod::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// What an answer with stacks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerFormat {
    /// Levels of bars.
    #[default]
    FlameGraph,
    /// Pyroscope's own tree.
    Tree,
    /// A graph for Graphviz.
    Dot,
    /// A profile.
    Pprof,
}

/// Which examples go with the points of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExemplarKind {
    /// None.
    #[default]
    None,
    /// Profiles.
    Profiles,
    /// Spans.
    Spans,
}

/// What a request asks for. Fields that its method does not have, and those that were not set, are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileQuery {
    /// The profile type, as text; see [`ProfileType`](longpole_model::profile::ProfileType).
    pub profile_type: String,
    /// The selector, as text; see [`selector::parse`](crate::pyroscope::selector::parse).
    pub selector: String,
    /// Milliseconds since 1970 at which the range begins. A range from 0 to 0 is all there is.
    pub start_millis: i64,
    /// Milliseconds since 1970 at which it ends.
    pub end_millis: i64,
    /// The label whose values are wanted.
    pub name: String,
    /// Selectors; a series must match one of them.
    pub matchers: Vec<String>,
    /// The labels to answer; all if it is empty.
    pub label_names: Vec<String>,
    /// Labels whose values make a series each.
    pub group_by: Vec<String>,
    /// Distance of the points, in seconds.
    pub step_secs: f64,
    /// Whether a point is an average, and not a sum.
    pub is_average: bool,
    /// Most bars of a flame graph; 0 stands for all.
    pub max_nodes: Option<i64>,
    /// How to answer.
    pub format: AnswerFormat,
    /// Functions that a stack must begin with, root first.
    pub call_site: Vec<String>,
    /// Ids of profiles.
    pub profile_ids: Vec<String>,
    /// Ids of traces, in hex.
    pub trace_ids: Vec<String>,
    /// Ids of spans, in hex.
    pub span_ids: Vec<String>,
    /// Most series, the largest first.
    pub limit: Option<i64>,
    /// Examples to answer.
    pub exemplars: ExemplarKind,
    /// Whether a heat map is of spans, and not of profiles.
    pub is_of_spans: bool,
    /// The text of a query to analyse.
    pub query: String,
    /// Whether the answer is to be fetched later, which longpole does not offer.
    pub is_async: bool,
}

/// Reads the request of a method; of [`QuerierMethod::Diff`] see [`decode_diff`].
///
/// # Errors
///
/// It is not well formed, or has more texts than its bytes allow.
pub fn decode(method: QuerierMethod, bytes: &[u8], codec: Codec) -> Result<ProfileQuery, DecodeError> {
    match codec {
        Codec::Protobuf => protobuf::read(method, bytes),
        Codec::Json => json::read(bytes),
    }
}

/// Reads `DiffRequest`: two requests of [`QuerierMethod::SelectMergeStacktraces`], the first to compare with.
///
/// # Errors
///
/// It is not well formed, or has more texts than its bytes allow.
pub fn decode_diff(bytes: &[u8], codec: Codec) -> Result<[ProfileQuery; 2], DecodeError> {
    match codec {
        Codec::Protobuf => protobuf::read_diff(bytes),
        Codec::Json => json::read_diff(bytes),
    }
}

/// Numbers of enums that both encodings compare with.
const AVERAGE: i32 = 1;
const OF_SPANS: i32 = 2;

/// Numbers that nobody knows are those of later versions, and say nothing.
fn format(number: i32) -> AnswerFormat {
    match number {
        2 => AnswerFormat::Tree,
        3 => AnswerFormat::Dot,
        4 => AnswerFormat::Pprof,
        _ => AnswerFormat::FlameGraph,
    }
}

fn exemplars(number: i32) -> ExemplarKind {
    match number {
        2 => ExemplarKind::Profiles,
        3 => ExemplarKind::Spans,
        _ => ExemplarKind::None,
    }
}

#[cfg(test)]
mod tests;
