//! Requests of other signals are counted.

use longpole_wire::otlp::{count_logs, count_metrics};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, Summary, SummaryDataPoint, metric::Data,
};
use prost::Message;

fn metrics() -> ExportMetricsServiceRequest {
    let points = |count| vec![NumberDataPoint { time_unix_nano: 5, ..NumberDataPoint::default() }; count];
    let data = [
        Data::Gauge(Gauge { data_points: points(3) }),
        Data::Sum(Sum { data_points: points(4), ..Sum::default() }),
        Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint { count: 2, ..HistogramDataPoint::default() }; 5],
            ..Histogram::default()
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![ExponentialHistogramDataPoint::default(); 6],
            ..ExponentialHistogram::default()
        }),
        Data::Summary(Summary { data_points: vec![SummaryDataPoint::default(); 7] }),
    ];
    let metrics = data.into_iter().map(|data| Metric { name: "m".into(), data: Some(data), ..Metric::default() }).collect();
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics: vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }; 2] }
}

fn logs() -> ExportLogsServiceRequest {
    let record = LogRecord { severity_text: "INFO".into(), ..LogRecord::default() };
    let scope_logs = vec![ScopeLogs { log_records: vec![record; 3], ..ScopeLogs::default() }, ScopeLogs::default()];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }; 4] }
}

#[test]
fn data_points_of_every_kind_of_metric() {
    assert_eq!(count_metrics(&metrics().encode_to_vec(), false), Ok(50));
    assert_eq!(count_metrics(&serde_json::to_vec(&metrics()).unwrap(), true), Ok(50));
    let snake = r#"{"resource_metrics":[{"scope_metrics":[{"metrics":[{"exponential_histogram":{"data_points":[{},{}]}}]}]}]}"#;
    assert_eq!(count_metrics(snake.as_bytes(), true), Ok(2));
}

#[test]
fn log_records() {
    assert_eq!(count_logs(&logs().encode_to_vec(), false), Ok(12));
    assert_eq!(count_logs(&serde_json::to_vec(&logs()).unwrap(), true), Ok(12));
    assert_eq!(count_logs(b"", false), Ok(0));
    assert_eq!(count_logs(b"{}", true), Ok(0));
}

#[test]
fn what_is_no_request_is_refused() {
    assert_eq!(count_logs(&[0x0a, 3, 0], false).unwrap_err().to_string(), "bytes end inside a field, in the request message at byte 0");
    assert_eq!(
        count_metrics(br#"[{"resourceMetrics":[]}]"#, true).unwrap_err().to_string(),
        "invalid type: sequence, expected an object, at line 1 column 1"
    );
    assert!(count_metrics(br#"{"resourceMetrics":{}}"#, true).is_err());
    assert!(count_logs(br#"{"resourceLogs":[[]]}"#, true).is_err());
}
