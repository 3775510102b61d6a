//! `/render` and `/render-diff`: what their addresses ask for, and flame graphs as the JSON that Pyroscope's page calls flamebearer.
//!
//! ```text
//! /pyroscope/render?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="cart"}&from=now-1h&until=now&max-nodes=1024&groupBy=pod
//! /pyroscope/render-diff?leftQuery=…&leftFrom=…&leftUntil=…&rightQuery=…&rightFrom=…&rightUntil=…
//!
//! {"version":1,"flamebearer":{"names":["total","main"],"levels":[[0,10,0,0],[0,10,10,1]],"numTicks":10,"maxSelf":10},
//!  "metadata":{"format":"single","units":"samples","sampleRate":1000000000,"name":"…"},"timeline":{"startTime":1700000000,"samples":[5,5],"durationDelta":15}}
//! ```

use longpole_model::profile::ProfileType;
use longpole_model::time::Timestamp;

use super::querier::{FlameGraph, FlameGraphDiff};
use super::selector::{self, Matcher};
use super::{SyntaxError, time};
use crate::json_writer::{Members, push_display, write_list, write_text};

/// One side of a query: a type, its series and a range of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderRange {
    /// What the numbers are.
    pub profile_type: ProfileType,
    /// Which series.
    pub matchers: Vec<Matcher>,
    /// From when: an hour ago, if the address says nothing.
    pub from: Timestamp,
    /// Until when: now, if the address says nothing.
    pub until: Timestamp,
}

/// How to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RenderFormat {
    /// Flamebearer.
    #[default]
    Json,
    /// A graph for Graphviz.
    Dot,
}

/// What an address asks for beside its ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderOptions {
    /// Most bars of the flame graph; 0 stands for all, `None` for what the server has as its default.
    pub max_nodes: Option<u32>,
    /// How to answer.
    pub format: RenderFormat,
    /// Labels whose values have a time line each.
    pub group_by: Vec<String>,
    /// Whether a point of a time line is an average, and not a sum.
    pub is_average: bool,
}

/// Reads decoded pairs of the address of `/render`.
///
/// # Errors
///
/// `query` is missing, or it, a time or a number is not well formed.
pub fn render<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    now: Timestamp,
) -> Result<(RenderRange, RenderOptions), SyntaxError> {
    let (mut side, mut options) = (Side::default(), RenderOptions::default());
    for (key, value) in pairs {
        match key {
            "query" => side.query = Some(value),
            "from" => side.from = Some(value),
            "until" => side.until = Some(value),
            _ => options.take(key, value)?,
        }
    }
    Ok((side.range("query", now)?, options))
}

/// Reads decoded pairs of the address of `/render-diff`: the side to compare with, and the other one.
///
/// # Errors
///
/// `leftQuery` or `rightQuery` is missing, or one of them, a time or a number is not well formed.
pub fn render_diff<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    now: Timestamp,
) -> Result<([RenderRange; 2], RenderOptions), SyntaxError> {
    let (mut left, mut right, mut options) = (Side::default(), Side::default(), RenderOptions::default());
    for (key, value) in pairs {
        match key {
            "leftQuery" => left.query = Some(value),
            "leftFrom" => left.from = Some(value),
            "leftUntil" => left.until = Some(value),
            "rightQuery" => right.query = Some(value),
            "rightFrom" => right.from = Some(value),
            "rightUntil" => right.until = Some(value),
            _ => options.take(key, value)?,
        }
    }
    Ok(([left.range("leftQuery", now)?, right.range("rightQuery", now)?], options))
}

#[derive(Default)]
struct Side<'a> {
    query: Option<&'a str>,
    from: Option<&'a str>,
    until: Option<&'a str>,
}

impl Side<'_> {
    fn range(&self, name: &'static str, now: Timestamp) -> Result<RenderRange, SyntaxError> {
        let missing = || SyntaxError::new("expected a query", name, 0, "");
        let (profile_type, matchers) = selector::parse_query(self.query.ok_or_else(missing)?)?;
        let at = |text: Option<&str>, default| time::relative(text.filter(|text| !text.is_empty()).unwrap_or(default), now);
        Ok(RenderRange { profile_type, matchers, from: at(self.from, "now-1h")?, until: at(self.until, "now")? })
    }
}

impl RenderOptions {
    /// Takes a parameter; one that nobody knows is ignored.
    fn take(&mut self, key: &str, value: &str) -> Result<(), SyntaxError> {
        match key {
            "max-nodes" | "maxNodes" if !value.is_empty() => {
                let refused = |_| SyntaxError::new("expected a number of nodes", "parameter max-nodes", 0, value);
                self.max_nodes = Some(value.parse::<u32>().map_err(refused)?);
            }
            "format" => {
                self.format = match value {
                    "" | "json" => RenderFormat::Json,
                    "dot" => RenderFormat::Dot,
                    _ => return Err(SyntaxError::new("expected json or dot", "parameter format", 0, value)),
                }
            }
            "groupBy" if !value.is_empty() => self.group_by.push(value.to_owned()),
            "aggregation" => self.is_average = matches!(value, "avg" | "average"),
            _ => {}
        }
        Ok(())
    }
}

/// Values over time, at the same distance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RenderTimeline {
    /// Seconds since 1970 of the first.
    pub start_secs: i64,
    /// The values.
    pub values: Vec<i64>,
    /// Seconds from each to the next.
    pub step_secs: i64,
}

/// Writes a flame graph with its time lines: of the whole, and of each group by the value of its label.
pub fn flamebearer(
    graph: &FlameGraph,
    profile_type: &ProfileType,
    timeline: Option<&RenderTimeline>,
    groups: &[(String, RenderTimeline)],
) -> String {
    let mut out = String::new();
    let mut document = Members::begin(&mut out);
    document.raw("version", 1);
    bars(document.member("flamebearer"), &graph.names, &graph.levels, graph.total, graph.max_self);
    metadata(document.member("metadata"), "single", profile_type);
    match timeline {
        Some(timeline) => put_timeline(document.member("timeline"), timeline),
        None => document.raw("timeline", "null"),
    }
    if groups.is_empty() {
        document.raw("groups", "null");
    } else {
        let mut members = Members::begin(document.member("groups"));
        groups.iter().for_each(|(name, timeline)| put_timeline(members.member(name), timeline));
        members.end();
    }
    document.raw("heatmap", "null");
    document.end();
    out
}

/// Writes two flame graphs in one.
pub fn flamebearer_diff(graph: &FlameGraphDiff, profile_type: &ProfileType) -> String {
    let mut out = String::new();
    let mut document = Members::begin(&mut out);
    document.raw("version", 1);
    bars(document.member("flamebearer"), &graph.names, &graph.levels, graph.total, graph.max_self);
    metadata(document.member("metadata"), "double", profile_type);
    document.raw("timeline", "null");
    document.raw("groups", "null");
    document.raw("heatmap", "null");
    document.raw("leftTicks", graph.left_ticks);
    document.raw("rightTicks", graph.right_ticks);
    document.end();
    out
}

fn bars(out: &mut String, names: &[String], levels: &[Vec<i64>], total: i64, max_self: i64) {
    let mut members = Members::begin(out);
    members.list("names", names, |out, name| write_text(out, name));
    members.list("levels", levels, |out, level| write_list(out, level, push_display));
    members.raw("numTicks", total);
    members.raw("maxSelf", max_self);
    members.end();
}

fn metadata(out: &mut String, format: &str, profile_type: &ProfileType) {
    // The page divides by the rate what is in samples: nanoseconds are samples of a billion a second.
    let (units, rate) = match (profile_type.sample_type.as_str(), profile_type.sample_unit.as_str()) {
        ("delay", _) => ("lock_nanoseconds", 100),
        ("contentions", _) => ("lock_samples", 100),
        ("goroutine" | "goroutines", _) => ("goroutines", 100),
        (_, "nanoseconds") => ("samples", 1_000_000_000),
        (_, "bytes") => ("bytes", 100),
        _ => ("objects", 100),
    };
    let mut members = Members::begin(out);
    members.text("format", format);
    members.text("spyName", "");
    members.raw("sampleRate", rate);
    members.text("units", units);
    members.text("name", &profile_type.sample_type);
    members.end();
}

fn put_timeline(out: &mut String, timeline: &RenderTimeline) {
    let mut members = Members::begin(out);
    members.raw("startTime", timeline.start_secs);
    members.list("samples", &timeline.values, push_display);
    members.raw("durationDelta", timeline.step_secs);
    members.raw("watermarks", "null");
    members.end();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pyroscope::test_graphs::{graph, graph_diff};

    const NOW: Timestamp = Timestamp(1_700_003_600_000_000_000);
    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

    #[test]
    fn the_address_of_a_flame_graph() {
        let query = format!("{CPU}{{service_name=\"cart\"}}");
        let pairs = [
            ("query", query.as_str()),
            ("from", "now-30m"),
            ("until", "1700003600"),
            ("max-nodes", "1024"),
            ("format", "dot"),
            ("groupBy", "pod"),
            ("groupBy", "env"),
            ("aggregation", "avg"),
            ("other", "x"),
        ];
        let (range, options) = render(pairs, NOW).unwrap();
        assert_eq!((range.profile_type.to_string().as_str(), range.matchers.len()), (CPU, 1));
        assert_eq!((NOW.nanos_since(range.from) / 1_000_000_000, range.until), (1_800, NOW));
        let group_by = vec!["pod".to_owned(), "env".to_owned()];
        assert_eq!(options, RenderOptions { max_nodes: Some(1_024), format: RenderFormat::Dot, group_by, is_average: true });

        let (range, options) = render([("query", CPU)], NOW).unwrap();
        assert_eq!((NOW.nanos_since(range.from) / 1_000_000_000, range.until, options), (3_600, NOW, RenderOptions::default()));
        let said = |pairs: &[(&'static str, &'static str)]| render(pairs.iter().copied(), NOW).unwrap_err().to_string();
        assert_eq!(said(&[]), "expected a query, at byte 0 of the query \"\"");
        assert_eq!(said(&[("query", CPU), ("max-nodes", "x")]), "expected a number of nodes, at byte 0 of the parameter max-nodes \"x\"");
        assert_eq!(said(&[("query", CPU), ("format", "svg")]), "expected json or dot, at byte 0 of the parameter format \"svg\"");
        assert!(said(&[("query", CPU), ("from", "x")]).starts_with("expected a number of seconds"));
    }

    #[test]
    fn the_address_of_a_difference() {
        let pairs =
            [("leftQuery", CPU), ("leftFrom", "now-2h"), ("leftUntil", "now-1h"), ("rightQuery", "memory:inuse_space:bytes:space:bytes{}")];
        let ([left, right], _) = render_diff(pairs, NOW).unwrap();
        let ago = |at| NOW.nanos_since(at) / 3_600_000_000_000;
        assert_eq!([left.from, left.until, right.from, right.until].map(ago), [2, 1, 1, 0]);
        assert_eq!(right.profile_type.name, "memory");
        let said = render_diff([("leftQuery", CPU)], NOW).unwrap_err().to_string();
        assert_eq!(said, "expected a query, at byte 0 of the rightQuery \"\"");
    }

    #[test]
    fn a_flame_graph_and_its_time_lines() {
        let graph = graph("a\"b", 10);
        let timeline = RenderTimeline { start_secs: 1_700_000_000, values: vec![5, 5], step_secs: 15 };
        let written = flamebearer(&graph, &CPU.parse().unwrap(), Some(&timeline), &[("a".to_owned(), timeline.clone())]);
        let line = r#"{"startTime":1700000000,"samples":[5,5],"durationDelta":15,"watermarks":null}"#;
        let expected = [
            r#"{"version":1,"flamebearer":{"names":["total","a\"b"],"levels":[[0,10,0,0],[0,10,10,1]],"numTicks":10,"maxSelf":10},"#,
            r#""metadata":{"format":"single","spyName":"","sampleRate":1000000000,"units":"samples","name":"cpu"},"#,
            &format!(r#""timeline":{line},"groups":{{"a":{line}}},"heatmap":null}}"#),
        ];
        assert_eq!(written, expected.concat());
        assert!(flamebearer(&graph, &CPU.parse().unwrap(), None, &[]).ends_with(r#""timeline":null,"groups":null,"heatmap":null}"#));
    }

    #[test]
    fn two_flame_graphs_in_one() {
        let expected = [
            r#"{"version":1,"flamebearer":{"names":["total"],"levels":[[0,5,0,0,7,0,0]],"numTicks":12,"maxSelf":0},"#,
            r#""metadata":{"format":"double","spyName":"","sampleRate":100,"units":"bytes","name":"inuse_space"},"#,
            r#""timeline":null,"groups":null,"heatmap":null,"leftTicks":5,"rightTicks":7}"#,
        ];
        assert_eq!(flamebearer_diff(&graph_diff(), &"memory:inuse_space:bytes:space:bytes".parse().unwrap()), expected.concat());
    }

    proptest! {
        #[test]
        fn any_address_is_read_or_refused(text in ".{0,30}") {
            let _ = render([("query", &text[..]), ("from", &text), ("max-nodes", &text)], NOW);
            let _ = render([("query", CPU), ("from", &text), ("until", &text)], NOW);
            let _ = render_diff([("leftQuery", CPU), ("rightQuery", CPU), ("rightFrom", &text)], NOW);
        }
    }
}
