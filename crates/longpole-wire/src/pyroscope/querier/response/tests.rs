use super::*;
use crate::pyroscope::test_graphs::{graph, graph_diff};

/// An answer in JSON.
fn json(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn labels(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

#[test]
fn a_flame_graph_in_both_encodings() {
    let answer = StacktracesAnswer::FlameGraph(graph("main", 300));
    let expected = r#"{"flamegraph":{"names":["total","main"],"levels":[{"values":["0","300","0","0"]},{"values":["0","300","300","1"]}],"total":"300","maxSelf":"300"}}"#;
    assert_eq!(json(stacktraces(&answer, Codec::Json).unwrap()), expected);
    let expected = [
        &[0x0a, 38][..],
        &[0x0a, 5],
        b"total",
        &[0x0a, 4],
        b"main",
        &[0x12, 7, 0x0a, 5, 0, 0xac, 2, 0, 0],
        &[0x12, 8, 0x0a, 6, 0, 0xac, 2, 0xac, 2, 1],
        &[0x18, 0xac, 2],
        &[0x20, 0xac, 2],
    ];
    assert_eq!(stacktraces(&answer, Codec::Protobuf).unwrap(), expected.concat());
}

#[test]
fn the_other_answers_with_stacks() {
    let both =
        |answer: StacktracesAnswer| (json(stacktraces(&answer, Codec::Json).unwrap()), stacktraces(&answer, Codec::Protobuf).unwrap());
    assert_eq!(both(StacktracesAnswer::Tree(vec![0xff])), (r#"{"tree":"/w=="}"#.to_owned(), vec![0x12, 1, 0xff]));
    assert_eq!(both(StacktracesAnswer::Dot("digraph".to_owned())).0, r#"{"dot":"digraph"}"#);
    let pprof = both(StacktracesAnswer::Pprof(vec![0x48, 7]));
    assert_eq!(pprof, (r#"{"pprof":{"profile":{"timeNanos":"7"}}}"#.to_owned(), vec![0x2a, 4, 0x0a, 2, 0x48, 7]));
    assert!(stacktraces(&StacktracesAnswer::Pprof(vec![0x48]), Codec::Json).is_err());
    assert_eq!(super::pprof(vec![0x48, 7], Codec::Json).map(json), Ok(r#"{"timeNanos":"7"}"#.to_owned()));
    assert_eq!(super::pprof(vec![0x48, 7], Codec::Protobuf), Ok(vec![0x48, 7]));
    // Nothing found is an empty flame graph, and no error.
    assert_eq!(both(StacktracesAnswer::FlameGraph(FlameGraph::default())), (r#"{"flamegraph":{}}"#.to_owned(), vec![0x0a, 0]));
}

#[test]
fn a_difference_has_seven_numbers_a_bar() {
    let expected = r#"{"flamegraph":{"names":["total"],"levels":[{"values":["0","5","0","0","7","0","0"]}],"total":"12","leftTicks":"5","rightTicks":"7"}}"#;
    assert_eq!(json(diff(&graph_diff(), Codec::Json)), expected);
    let expected = [&[0x0a, 24, 0x0a, 5][..], b"total", &[0x12, 9, 0x0a, 7, 0, 5, 0, 0, 7, 0, 0, 0x18, 12, 0x28, 5, 0x30, 7]];
    assert_eq!(diff(&graph_diff(), Codec::Protobuf), expected.concat());
}

#[test]
fn types_names_and_label_sets() {
    let types = ["process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse().unwrap()];
    let expected = r#"{"profileTypes":[{"ID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","name":"process_cpu","sampleType":"cpu","sampleUnit":"nanoseconds","periodType":"cpu","periodUnit":"nanoseconds"}]}"#;
    assert_eq!(json(profile_types(&types, Codec::Json)), expected);
    let types = ["a:b:c:d:e".parse().unwrap()];
    let expected = [&[0x0a, 26, 0x0a, 9][..], b"a:b:c:d:e", b"\x12\x01a\x22\x01b\x2a\x01c\x32\x01d\x3a\x01e"];
    assert_eq!(profile_types(&types, Codec::Protobuf), expected.concat());

    assert_eq!(json(names(["pod", "env"], Codec::Json)), r#"{"names":["pod","env"]}"#);
    assert_eq!(names(["pod", ""], Codec::Protobuf), b"\x0a\x03pod\x0a\x00");
    assert_eq!((json(names([], Codec::Json)), names([], Codec::Protobuf)), ("{}".to_owned(), vec![]));

    let sets = [labels("pod", "a"), vec![]];
    assert_eq!(json(label_sets(&sets, Codec::Json)), r#"{"labelsSet":[{"labels":[{"name":"pod","value":"a"}]},{}]}"#);
    assert_eq!(label_sets(&sets, Codec::Protobuf), b"\x12\x0a\x0a\x08\x0a\x03pod\x12\x01a\x12\x00");
}

#[test]
fn series_have_points_and_examples() {
    let exemplar = ProfileExemplar {
        at_millis: 1,
        profile_id: "p".to_owned(),
        span_id: "s".to_owned(),
        trace_id: "t".to_owned(),
        value: 2,
        labels: labels("a", "b"),
    };
    let point = |value, exemplars| SeriesPoint { value, at_millis: 1_700_000_000_000, exemplars };
    let answer = [SeriesAnswer { labels: labels("pod", "a"), points: vec![point(0.5, vec![exemplar.clone()]), point(0.0, vec![])] }];
    let expected = r#"{"series":[{"labels":[{"name":"pod","value":"a"}],"points":[{"value":0.5,"timestamp":"1700000000000","exemplars":[{"timestamp":"1","profileId":"p","spanId":"s","value":"2","labels":[{"name":"a","value":"b"}],"traceId":"t"}]},{"timestamp":"1700000000000"}]}]}"#;
    assert_eq!(json(series(&answer, Codec::Json)), expected);
    let answer = [SeriesAnswer { labels: vec![], points: vec![SeriesPoint { value: f64::NAN, at_millis: 2, exemplars: vec![] }] }];
    assert_eq!(json(series(&answer, Codec::Json)), r#"{"series":[{"points":[{"value":"NaN","timestamp":"2"}]}]}"#);
    let expected = [&[0x0a, 13, 0x12, 11, 0x09][..], &f64::NAN.to_le_bytes(), &[0x10, 2]];
    assert_eq!(series(&answer, Codec::Protobuf), expected.concat());

    let slot = HeatmapSlot { at_millis: 5, y_min: vec![0.0, 1.5], counts: vec![3, 0], exemplars: vec![] };
    let answer = [HeatmapAnswer { labels: vec![], slots: vec![slot] }];
    assert_eq!(json(heatmap(&answer, Codec::Json)), r#"{"series":[{"slots":[{"timestamp":"5","yMin":[0,1.5],"counts":[3,0]}]}]}"#);
    let expected = [&[0x0a, 26, 0x12, 24, 0x08, 5, 0x12, 16][..], &[0; 8], &1.5f64.to_le_bytes(), &[0x1a, 2, 3, 0]];
    assert_eq!(heatmap(&answer, Codec::Protobuf), expected.concat());
}

#[test]
fn stats_and_costs_in_both_encodings() {
    let stats = ProfileStats { has_data: true, oldest_millis: 1, newest_millis: 300 };
    assert_eq!(json(profile_stats(stats, Codec::Json)), r#"{"dataIngested":true,"oldestProfileTime":"1","newestProfileTime":"300"}"#);
    assert_eq!(profile_stats(stats, Codec::Protobuf), [0x08, 1, 0x10, 1, 0x18, 0xac, 2]);
    let scope = QueryScope { component: "store".to_owned(), components: 1, counts: [2, 3, 4, 5], bytes: [6, 7, 8] };
    let cost = QueryAnalysis { scopes: vec![scope], total_bytes: 9, total_series: 10, needs_deduplication: false };
    let expected = r#"{"queryScopes":[{"componentType":"store","componentCount":"1","blockCount":"2","seriesCount":"3","profileCount":"4","sampleCount":"5","indexBytes":"6","profileBytes":"7","symbolBytes":"8"}],"queryImpact":{"totalBytesInTimeRange":"9","totalQueriedSeries":"10"}}"#;
    assert_eq!(json(analysis(&cost, Codec::Json)), expected);
    let expected = [
        &[0x0a, 23, 0x0a, 5][..],
        b"store",
        &[0x10, 1, 0x18, 2, 0x20, 3, 0x28, 4, 0x30, 5, 0x38, 6, 0x40, 7, 0x48, 8, 0x12, 4, 0x10, 9, 0x18, 10],
    ];
    assert_eq!(analysis(&cost, Codec::Protobuf), expected.concat());
}
