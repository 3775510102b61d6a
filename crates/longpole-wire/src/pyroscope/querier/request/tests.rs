use proptest::prelude::*;

use super::*;
use crate::protobuf::{put_bytes, put_fixed64, put_integer, put_message, put_set_integer};

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

/// What all methods that select have in common.
fn selected() -> ProfileQuery {
    ProfileQuery {
        profile_type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(),
        selector: "{}".to_owned(),
        start_millis: 1_700_000_000_000,
        end_millis: 1_700_003_600_000,
        ..ProfileQuery::default()
    }
}

fn put_selected(out: &mut Vec<u8>, numbers: [u32; 4]) {
    let query = selected();
    put_bytes(out, numbers[0], query.profile_type.as_bytes());
    put_bytes(out, numbers[1], query.selector.as_bytes());
    put_integer(out, numbers[2], query.start_millis.cast_unsigned());
    put_integer(out, numbers[3], query.end_millis.cast_unsigned());
}

const SELECTED: &str =
    r#""profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":"1700000000000","end":1700003600000"#;

fn both(method: QuerierMethod, protobuf: &[u8], text: &str, expected: &ProfileQuery) {
    assert_eq!(decode(method, protobuf, Codec::Protobuf).as_ref(), Ok(expected), "{method:?}");
    assert_eq!(decode(method, text.as_bytes(), Codec::Json).as_ref(), Ok(expected), "{method:?}");
}

#[test]
fn stacks_are_queried_with_all_selectors() {
    let mut bytes = Vec::new();
    put_selected(&mut bytes, [1, 2, 3, 4]);
    put_set_integer(&mut bytes, 5, 0);
    put_integer(&mut bytes, 6, 4);
    put_message(&mut bytes, 7, |out| {
        ["main", "work"].iter().for_each(|name| put_message(out, 1, |out| put_bytes(out, 1, name.as_bytes())))
    });
    put_bytes(&mut bytes, 8, b"7c9e6679");
    put_message(&mut bytes, 9, |out| put_integer(out, 2, 1));
    put_bytes(&mut bytes, 10, b"7c9e66797425440de944be07fc1f90ae");
    put_bytes(&mut bytes, 11, b"9a517183f26a089d");
    put_bytes(&mut bytes, 11, b"5a4fe264a9c987fe");
    let text = format!(
        r#"{{{SELECTED},"maxNodes":"0","format":"PROFILE_FORMAT_PPROF","stackTraceSelector":{{"callSite":[{{"name":"main"}},{{"name":"work"}}]}},
        "profileIdSelector":["7c9e6679"],"async":{{"type":"ASYNC_QUERY_TYPE_FORCE"}},"traceIdSelector":["7c9e66797425440de944be07fc1f90ae"],
        "spanSelector":["9a517183f26a089d","5a4fe264a9c987fe"],"later":1}}"#
    );
    let expected = ProfileQuery {
        max_nodes: Some(0),
        format: AnswerFormat::Pprof,
        call_site: texts(&["main", "work"]),
        profile_ids: texts(&["7c9e6679"]),
        is_async: true,
        trace_ids: texts(&["7c9e66797425440de944be07fc1f90ae"]),
        span_ids: texts(&["9a517183f26a089d", "5a4fe264a9c987fe"]),
        ..selected()
    };
    both(QuerierMethod::SelectMergeStacktraces, &bytes, &text, &expected);
}

#[test]
fn series_and_heat_maps_have_a_step() {
    let mut bytes = Vec::new();
    put_selected(&mut bytes, [1, 2, 3, 4]);
    put_bytes(&mut bytes, 5, b"pod");
    put_fixed64(&mut bytes, 6, 15f64.to_bits());
    put_integer(&mut bytes, 7, 1);
    put_integer(&mut bytes, 9, 10);
    put_integer(&mut bytes, 10, 3);
    let text = format!(
        r#"{{{SELECTED},"group_by":["pod"],"step":15,"aggregation":"TIME_SERIES_AGGREGATION_TYPE_AVERAGE","limit":10,"exemplar_type":3}}"#
    );
    let (group_by, limit) = (texts(&["pod"]), Some(10));
    let expected = ProfileQuery { group_by, limit, step_secs: 15.0, is_average: true, exemplars: ExemplarKind::Spans, ..selected() };
    both(QuerierMethod::SelectSeries, &bytes, &text, &expected);

    let mut bytes = Vec::new();
    put_selected(&mut bytes, [1, 2, 3, 4]);
    put_fixed64(&mut bytes, 5, 0.5f64.to_bits());
    put_integer(&mut bytes, 7, 2);
    put_integer(&mut bytes, 8, 2);
    let text = format!(r#"{{{SELECTED},"step":0.5,"queryType":"HEATMAP_QUERY_TYPE_SPAN","exemplarType":"EXEMPLAR_TYPE_INDIVIDUAL"}}"#);
    let expected = ProfileQuery { step_secs: 0.5, is_of_spans: true, exemplars: ExemplarKind::Profiles, ..selected() };
    both(QuerierMethod::SelectHeatmap, &bytes, &text, &expected);
}

#[test]
fn older_methods_have_other_numbers() {
    let mut bytes = Vec::new();
    put_selected(&mut bytes, [1, 2, 4, 5]);
    put_bytes(&mut bytes, 3, b"9a517183f26a089d");
    put_integer(&mut bytes, 6, 100);
    put_integer(&mut bytes, 7, 2);
    let text = format!(r#"{{{SELECTED},"span_selector":["9a517183f26a089d"],"max_nodes":100,"format":2}}"#);
    let expected = ProfileQuery { span_ids: texts(&["9a517183f26a089d"]), max_nodes: Some(100), format: AnswerFormat::Tree, ..selected() };
    both(QuerierMethod::SelectMergeSpanProfile, &bytes, &text, &expected);

    let mut bytes = Vec::new();
    put_selected(&mut bytes, [1, 2, 3, 4]);
    put_bytes(&mut bytes, 8, b"7c9e66797425440de944be07fc1f90ae");
    let text = format!(r#"{{{SELECTED},"trace_id_selector":["7c9e66797425440de944be07fc1f90ae"]}}"#);
    let expected = ProfileQuery { trace_ids: texts(&["7c9e66797425440de944be07fc1f90ae"]), ..selected() };
    both(QuerierMethod::SelectMergeProfile, &bytes, &text, &expected);
}

#[test]
fn labels_types_and_costs_are_of_a_range() {
    let range = || ProfileQuery { start_millis: 5, end_millis: 9, ..ProfileQuery::default() };
    both(QuerierMethod::ProfileTypes, &[0x08, 5, 0x10, 9], r#"{"start":"5","end":"9"}"#, &range());
    let matchers = texts(&["{a=\"b\"}"]);
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, 1, matchers[0].as_bytes());
    bytes.extend([0x10, 5, 0x18, 9]);
    let text = r#"{"matchers":["{a=\"b\"}"],"start":5,"end":9}"#;
    both(QuerierMethod::LabelNames, &bytes, text, &ProfileQuery { matchers: matchers.clone(), ..range() });
    let values = [0x0a, 3, b'p', b'o', b'd', 0x18, 5, 0x20, 9];
    both(QuerierMethod::LabelValues, &values, r#"{"name":"pod","start":5,"end":9}"#, &ProfileQuery { name: "pod".to_owned(), ..range() });
    let series = [0x12, 3, b'p', b'o', b'd', 0x18, 5, 0x20, 9];
    let expected = ProfileQuery { label_names: texts(&["pod"]), ..range() };
    both(QuerierMethod::Series, &series, r#"{"labelNames":["pod"],"start":5,"end":9}"#, &expected);
    let analysed = [0x10, 5, 0x18, 9, 0x22, 2, b'{', b'}'];
    both(
        QuerierMethod::AnalyzeQuery,
        &analysed,
        r#"{"start":5,"end":9,"query":"{}"}"#,
        &ProfileQuery { query: "{}".to_owned(), ..range() },
    );
    both(QuerierMethod::GetProfileStats, b"", "{}", &ProfileQuery::default());
}

#[test]
fn a_difference_has_two_sides() {
    let mut bytes = Vec::new();
    put_message(&mut bytes, 1, |out| put_selected(out, [1, 2, 3, 4]));
    put_message(&mut bytes, 2, |out| put_bytes(out, 1, b"x"));
    let text = format!(r#"{{"left":{{{SELECTED}}},"right":{{"profileTypeID":"x"}}}}"#);
    let expected = [selected(), ProfileQuery { profile_type: "x".to_owned(), ..ProfileQuery::default() }];
    assert_eq!(decode_diff(&bytes, Codec::Protobuf), Ok(expected.clone()));
    assert_eq!(decode_diff(text.as_bytes(), Codec::Json), Ok(expected));
}

#[test]
fn a_broken_query_says_where() {
    let said = |bytes: &[u8], codec| decode(QuerierMethod::SelectSeries, bytes, codec).unwrap_err().to_string();
    assert_eq!(said(&[0x08, 1], Codec::Protobuf), "unexpected wire type of field 1, in the SelectSeries message at byte 0");
    assert_eq!(said(&[0x30, 1], Codec::Protobuf), "unexpected wire type of field 6, in the SelectSeries message at byte 0");
    let expected = "invalid value: string \"HOUR\", expected the name of an enum, at line 1 column 21";
    assert_eq!(said(br#"{"aggregation":"HOUR"}"#, Codec::Json), expected);
    assert!(said(br#"{"start":"x"}"#, Codec::Json).contains("expected a 64-bit integer"));
    let many = [0x2a, 0].repeat(100_000);
    assert!(said(&many, Codec::Protobuf).starts_with("more than 65536 messages"));
}

#[test]
fn a_method_has_a_name() {
    for method in QuerierMethod::ALL {
        assert_eq!(QuerierMethod::of_name(method.as_str()), Some(method));
    }
    assert_eq!(QuerierMethod::of_name("Select"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_a_query_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for codec in [Codec::Protobuf, Codec::Json] {
            QuerierMethod::ALL.into_iter().for_each(|method| drop(decode(method, &bytes, codec)));
            let _ = decode_diff(&bytes, codec);
        }
    }
}
