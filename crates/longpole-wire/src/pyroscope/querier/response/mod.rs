//! Answers out, in the encoding of the request. Numbers and names are those of `querier/v1/querier.proto` and `types/v1/types.proto`.

use longpole_model::profile::ProfileType;

use crate::error::DecodeError;
use crate::pyroscope::Codec;
use crate::pyroscope::querier::message::MessageWriter;
use crate::pyroscope::querier::pprof_json::pprof_json;

/// A flame graph: bars in levels, the root first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlameGraph {
    /// Names by number; the first is `total`.
    pub names: Vec<String>,
    /// Bars of each level, four numbers each: distance from the end of the bar before, total, self, number of the name.
    pub levels: Vec<Vec<i64>>,
    /// Total of the root.
    pub total: i64,
    /// Largest self value.
    pub max_self: i64,
}

/// Two flame graphs in one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlameGraphDiff {
    /// Names by number; the first is `total`.
    pub names: Vec<String>,
    /// Bars of each level, seven numbers each: distance, total and self on the left, the same on the right, number of the name.
    pub levels: Vec<Vec<i64>>,
    /// Both totals together.
    pub total: i64,
    /// Largest self value of either.
    pub max_self: i64,
    /// Total on the left.
    pub left_ticks: i64,
    /// Total on the right.
    pub right_ticks: i64,
}

/// An example of what is in a point.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileExemplar {
    /// Milliseconds since 1970.
    pub at_millis: i64,
    /// Id of the profile.
    pub profile_id: String,
    /// Id of the span, in hex, if it is of one.
    pub span_id: String,
    /// Id of its trace, in hex.
    pub trace_id: String,
    /// Its value.
    pub value: i64,
    /// Labels that the series does not have.
    pub labels: Vec<(String, String)>,
}

/// A value at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesPoint {
    /// The value.
    pub value: f64,
    /// Milliseconds since 1970.
    pub at_millis: i64,
    /// Examples.
    pub exemplars: Vec<ProfileExemplar>,
}

/// A series of points with the labels that they share.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesAnswer {
    /// Names and values.
    pub labels: Vec<(String, String)>,
    /// Ascending in time.
    pub points: Vec<SeriesPoint>,
}

/// A column of a heat map.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatmapSlot {
    /// Milliseconds since 1970 at its right edge, which belongs to it.
    pub at_millis: i64,
    /// Lowest value of each cell.
    pub y_min: Vec<f64>,
    /// How many profiles or spans each cell has.
    pub counts: Vec<i32>,
    /// Examples.
    pub exemplars: Vec<ProfileExemplar>,
}

/// A heat map of one series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeatmapAnswer {
    /// Names and values.
    pub labels: Vec<(String, String)>,
    /// Ascending in time.
    pub slots: Vec<HeatmapSlot>,
}

/// An answer with stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StacktracesAnswer {
    /// Levels of bars.
    FlameGraph(FlameGraph),
    /// Pyroscope's own tree, whose bytes the caller has.
    Tree(Vec<u8>),
    /// A graph for Graphviz.
    Dot(String),
    /// pprof, not compressed: see [`PprofBuilder`](crate::profile_export::pprof_builder::PprofBuilder).
    Pprof(Vec<u8>),
}

/// Whether there is anything, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProfileStats {
    /// Whether a profile ever came.
    pub has_data: bool,
    /// Milliseconds since 1970.
    pub oldest_millis: i64,
    /// Milliseconds since 1970.
    pub newest_millis: i64,
}

/// What one part of the server would read for a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryScope {
    /// What the part is called.
    pub component: String,
    /// How many there are of it.
    pub components: i64,
    /// How many segments, series, profiles and samples it would read.
    pub counts: [i64; 4],
    /// How many bytes of indexes, profiles and symbols.
    pub bytes: [i64; 3],
}

/// What a query would cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryAnalysis {
    /// By part of the server.
    pub scopes: Vec<QueryScope>,
    /// Bytes of all profiles in the range.
    pub total_bytes: i64,
    /// Series that match.
    pub total_series: i64,
    /// Whether profiles are there more than once.
    pub needs_deduplication: bool,
}

/// Writes `ProfileTypesResponse`.
pub fn profile_types(types: &[ProfileType], codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.messages(1, "profileTypes", types, |message, it| {
            message.text(1, "ID", &it.to_string());
            message.text(2, "name", &it.name);
            message.text(4, "sampleType", &it.sample_type);
            message.text(5, "sampleUnit", &it.sample_unit);
            message.text(6, "periodType", &it.period_type);
            message.text(7, "periodUnit", &it.period_unit);
        });
    })
}

/// Writes `LabelNamesResponse` and `LabelValuesResponse`, which are alike.
pub fn names<'a>(names: impl IntoIterator<Item = &'a str>, codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| message.texts(1, "names", names))
}

/// Writes `SeriesResponse`.
pub fn label_sets(sets: &[Vec<(String, String)>], codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| message.messages(2, "labelsSet", sets, |message, set| labels(message, 1, set)))
}

/// Writes `SelectSeriesResponse`.
pub fn series(series: &[SeriesAnswer], codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.messages(1, "series", series, |message, series| {
            labels(message, 1, &series.labels);
            message.messages(2, "points", &series.points, |message, point| {
                message.double(1, "value", point.value);
                message.integer(2, "timestamp", point.at_millis);
                exemplars(message, &point.exemplars);
            });
        });
    })
}

/// Writes `SelectHeatmapResponse`.
pub fn heatmap(series: &[HeatmapAnswer], codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.messages(1, "series", series, |message, series| {
            labels(message, 1, &series.labels);
            message.messages(2, "slots", &series.slots, |message, slot| {
                message.integer(1, "timestamp", slot.at_millis);
                message.doubles(2, "yMin", &slot.y_min);
                message.small_integers(3, "counts", &slot.counts);
                exemplars(message, &slot.exemplars);
            });
        });
    })
}

/// Writes `SelectMergeStacktracesResponse`, and `SelectMergeSpanProfileResponse`, which has the first two of its fields.
///
/// # Errors
///
/// The answer is pprof, the encoding JSON, and the bytes are no pprof.
pub fn stacktraces(answer: &StacktracesAnswer, codec: Codec) -> Result<Vec<u8>, DecodeError> {
    let profile_json = match answer {
        StacktracesAnswer::Pprof(bytes) if codec == Codec::Json => pprof_json(bytes)?,
        _ => String::new(),
    };
    Ok(MessageWriter::write(codec, |message| match answer {
        StacktracesAnswer::FlameGraph(graph) => message.message(1, "flamegraph", |message| {
            levels(message, &graph.names, &graph.levels);
            message.integer(3, "total", graph.total);
            message.integer(4, "maxSelf", graph.max_self);
        }),
        StacktracesAnswer::Tree(bytes) => message.bytes(2, "tree", bytes),
        StacktracesAnswer::Dot(text) => message.text(3, "dot", text),
        StacktracesAnswer::Pprof(bytes) => message.message(5, "pprof", |message| match message.is_json() {
            true => message.json_member("profile", &profile_json),
            false => message.bytes(1, "profile", bytes),
        }),
    }))
}

/// Writes the answer of `SelectMergeProfile`, which is the profile itself: pprof, not compressed.
///
/// # Errors
///
/// The encoding is JSON, and the bytes are no pprof.
pub fn pprof(bytes: Vec<u8>, codec: Codec) -> Result<Vec<u8>, DecodeError> {
    match codec {
        Codec::Protobuf => Ok(bytes),
        Codec::Json => pprof_json(&bytes).map(String::into_bytes),
    }
}

/// Writes `DiffResponse`.
pub fn diff(graph: &FlameGraphDiff, codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.message(1, "flamegraph", |message| {
            levels(message, &graph.names, &graph.levels);
            message.integer(3, "total", graph.total);
            message.integer(4, "maxSelf", graph.max_self);
            message.integer(5, "leftTicks", graph.left_ticks);
            message.integer(6, "rightTicks", graph.right_ticks);
        });
    })
}

/// Writes `GetProfileStatsResponse`.
pub fn profile_stats(stats: ProfileStats, codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.flag(1, "dataIngested", stats.has_data);
        message.integer(2, "oldestProfileTime", stats.oldest_millis);
        message.integer(3, "newestProfileTime", stats.newest_millis);
    })
}

/// Writes `AnalyzeQueryResponse`.
pub fn analysis(analysis: &QueryAnalysis, codec: Codec) -> Vec<u8> {
    MessageWriter::write(codec, |message| {
        message.messages(1, "queryScopes", &analysis.scopes, |message, scope| {
            message.text(1, "componentType", &scope.component);
            message.integer(2, "componentCount", scope.components);
            let counts = ["blockCount", "seriesCount", "profileCount", "sampleCount"].into_iter().zip(scope.counts);
            let bytes = ["indexBytes", "profileBytes", "symbolBytes"].into_iter().zip(scope.bytes);
            for (number, (name, value)) in (3..).zip(counts.chain(bytes)) {
                message.integer(number, name, value);
            }
        });
        message.message(2, "queryImpact", |message| {
            message.integer(2, "totalBytesInTimeRange", analysis.total_bytes);
            message.integer(3, "totalQueriedSeries", analysis.total_series);
            message.flag(4, "deduplicationNeeded", analysis.needs_deduplication);
        });
    })
}

fn labels(message: &mut MessageWriter, number: u32, labels: &[(String, String)]) {
    message.messages(number, "labels", labels, |message, (name, value)| {
        message.text(1, "name", name);
        message.text(2, "value", value);
    });
}

fn exemplars(message: &mut MessageWriter, exemplars: &[ProfileExemplar]) {
    message.messages(4, "exemplars", exemplars, |message, exemplar| {
        message.integer(1, "timestamp", exemplar.at_millis);
        message.text(2, "profileId", &exemplar.profile_id);
        message.text(3, "spanId", &exemplar.span_id);
        message.integer(4, "value", exemplar.value);
        labels(message, 5, &exemplar.labels);
        message.text(6, "traceId", &exemplar.trace_id);
    });
}

fn levels(message: &mut MessageWriter, names: &[String], levels: &[Vec<i64>]) {
    message.texts(1, "names", names.iter().map(String::as_str));
    message.messages(2, "levels", levels, |message, bars| message.integers(1, "values", bars));
}

#[cfg(test)]
mod tests;
