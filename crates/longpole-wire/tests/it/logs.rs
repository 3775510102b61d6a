//! Log records that become events.

use longpole_model::attribute::AttributeValue;
use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::{Loss, LossKind};
use longpole_model::resource::{Resource, Scope};
use longpole_model::sink::EventRef;
use longpole_wire::otlp::Encoding;
use longpole_wire::otlp::logs::{LogCounts, LogSink, decode};
use longpole_wire::{DecodeError, Limits};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;

/// What a sink received, a line each.
#[derive(Default)]
struct Told(Vec<String>, Vec<Loss>);

impl LogSink for Told {
    fn resource(&mut self, resource: Resource) {
        self.0.push(format!("resource {}", resource.service_name()));
    }

    fn scope(&mut self, scope: Scope) {
        self.0.push(format!("scope {}", scope.name));
    }

    fn event(&mut self, trace_id: TraceId, span_id: SpanId, event: EventRef<'_>) {
        let attributes: Vec<_> = event.attributes.iter().map(|(key, value)| format!("{key}={}", plain(&value.to_owned()))).collect();
        self.0.push(format!("{trace_id}/{span_id} {} {} {}", event.time, event.name, attributes.join(" ")));
    }

    fn loss(&mut self, loss: Loss) {
        loss.merge_into(&mut self.1);
    }
}

fn plain(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Str(text) => text.to_string(),
        AttributeValue::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn text(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(Value::StringValue(text.into())) })
}

fn request() -> ExportLogsServiceRequest {
    let attribute = |key: &str, value: &str| KeyValue { key: key.into(), value: text(value), ..KeyValue::default() };
    let record = LogRecord {
        time_unix_nano: 7,
        severity_number: 17,
        severity_text: "error".into(),
        body: text("no such cart"),
        attributes: vec![attribute("cart", "9")],
        trace_id: vec![0xaa; 16],
        span_id: vec![0xbb; 8],
        ..LogRecord::default()
    };
    let named = LogRecord { event_name: "retry".into(), observed_time_unix_nano: 9, time_unix_nano: 0, ..record.clone() };
    let other = LogRecord { span_id: Vec::new(), ..record.clone() };
    let scope = InstrumentationScope { name: "cart".into(), ..InstrumentationScope::default() };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records: vec![record, other, named], ..ScopeLogs::default() }];
    let resource =
        opentelemetry_proto::tonic::resource::v1::Resource { attributes: vec![attribute("service.name", "shop")], ..Default::default() };
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() }] }
}

fn check(told: &Told, counts: LogCounts) {
    let ids = format!("{}/{}", "aa".repeat(16), "bb".repeat(8));
    let rest = "cart=9 log.body=no such cart log.severity_text=error log.severity_number=17";
    assert_eq!(told.0, ["resource shop", "scope cart", &format!("{ids} 7 log {rest}"), &format!("{ids} 9 retry {rest}")]);
    assert_eq!(counts, LogCounts { of_spans: 2, others: 1 });
}

#[test]
fn records_of_spans_are_events_and_the_others_are_counted() {
    let mut told = Told::default();
    let counts = decode(&request().encode_to_vec(), Encoding::Protobuf, &Limits::default(), &mut told).unwrap();
    check(&told, counts);

    let json = serde_json::to_vec(&request()).unwrap();
    let mut told = Told::default();
    let counts = decode(&json, Encoding::Json, &Limits::default(), &mut told).unwrap();
    check(&told, counts);
}

#[test]
fn severities_are_read_by_name_too() {
    let json = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"traceId":"{}","spanId":"{}","severityNumber":"SEVERITY_NUMBER_WARN3","attributes":[{{"key":"event.name","value":{{"stringValue":"slow"}}}}]}}]}}]}}]}}"#,
        "aa".repeat(16),
        "bb".repeat(8)
    );
    let mut told = Told::default();
    decode(json.as_bytes(), Encoding::Json, &Limits::default(), &mut told).unwrap();
    assert!(told.0[2].ends_with(" 0 slow event.name=slow log.severity_number=15"), "{:?}", told.0);
}

#[test]
fn a_broken_request_gives_nothing_and_a_bad_text_is_replaced() {
    let mut told = Told::default();
    let bytes = request().encode_to_vec();
    for cut in 1..bytes.len() {
        let result = decode(&bytes[..cut], Encoding::Protobuf, &Limits::default(), &mut told);
        assert!(matches!(result, Err(DecodeError::Protobuf { .. })) && told.0.is_empty(), "{cut}");
    }
    let at = bytes.windows(4).position(|window| window == b"cart").unwrap();
    let mut bad = bytes.clone();
    bad[at] = 0xff;
    decode(&bad, Encoding::Protobuf, &Limits::default(), &mut told).unwrap();
    assert_eq!((told.1[0].kind, told.1[0].count), (LossKind::TextReplaced, 1));
}
