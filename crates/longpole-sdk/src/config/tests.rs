use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use prost::Message;

use super::export::{HAS_GRPC_TLS, HAS_STANDARD_STACK, HAS_TLS, TlsFiles};
use super::*;
use crate::options::Protocol;

/// Reads `NAME=value` lines.
fn read(lines: &str) -> Config {
    read_as(None, lines)
}

fn read_as(service: Option<&str>, lines: &str) -> Config {
    let vars: Vec<(&str, &str)> = lines.lines().filter_map(|line| line.trim().split_once('=')).collect();
    let program = Program { service: service.map(Into::into), ..Program::default() };
    read_program(&program, &vars)
}

fn read_program(program: &Program, vars: &[(&str, &str)]) -> Config {
    let facts = ProcessFacts { pid: 42, executable: Some("/bin/app".into()), host: Some("box".into()) };
    Config::read(&|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()), &facts, program)
}

fn resource(lines: &str) -> String {
    resource_as(None, lines)
}

fn resource_as(service: Option<&str>, lines: &str) -> String {
    let config = read_as(service, &format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318\n{lines}"));
    resource_text(&config)
}

fn resource_text(config: &Config) -> String {
    let encoded = config.export.as_ref().unwrap().resource.encoded();
    let resource = opentelemetry_proto::tonic::resource::v1::Resource::decode(encoded.as_slice()).unwrap();
    // What is the machine's is left out.
    let shown = resource
        .attributes
        .iter()
        .filter(|attribute| !["telemetry.sdk.", "host.arch", "os."].iter().any(|start| attribute.key.starts_with(start)));
    let pairs = shown.map(|attribute| match attribute.value.clone().unwrap().value.unwrap() {
        Any::StringValue(text) => format!("{}={text}", attribute.key),
        Any::IntValue(number) => format!("{}={number}", attribute.key),
        other => panic!("{other:?}"),
    });
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn nobody_asks_for_spans_without_an_endpoint() {
    let config = read("");
    assert!(config.export.is_none() && !config.disabled && config.complaints.is_empty());
    assert!(read("OTEL_EXPORTER_OTLP_ENDPOINT= ").export.is_none());
    assert!(read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_TRACES_EXPORTER=none").export.is_none());
    let disabled = read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_SDK_DISABLED=TRUE");
    assert!(disabled.disabled && disabled.export.is_none());
}

#[test]
fn the_general_endpoint_gets_a_path_and_the_one_for_traces_is_taken_as_it_is() {
    let url = |lines| read(lines).export.unwrap().url;
    assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1"), "http://h:1/v1/traces");
    assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1/otlp/"), "http://h:1/otlp/v1/traces");
    assert_eq!(url("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://t:2/in"), "http://t:2/in");
}

#[test]
fn unusable_values_are_replaced_and_told_once_each() {
    let config = read(
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1
         OTEL_EXPORTER_OTLP_PROTOCOL=smoke
         OTEL_EXPORTER_OTLP_COMPRESSION=gzip
         OTEL_EXPORTER_OTLP_HEADERS=secret
         OTEL_EXPORTER_OTLP_TIMEOUT=-1
         OTEL_BSP_SCHEDULE_DELAY=soon
         OTEL_BSP_MAX_QUEUE_SIZE=0
         OTEL_BSP_MAX_EXPORT_BATCH_SIZE=99999999999999999999
         OTEL_BSP_EXPORT_TIMEOUT=0
         OTEL_BSP_MAX_CONCURRENT_EXPORTS=0
         LONGPOLE_SPAN_PROCESSOR=best
         OTEL_TRACES_SAMPLER=sometimes
         OTEL_RESOURCE_ATTRIBUTES=a=%zz
         OTEL_SDK_DISABLED=maybe
         TRACEPARENT=00-1-1-1",
    );
    let complaints = config.complaints.join("\n");
    assert_eq!(config.complaints.len(), 13, "{complaints}");
    assert!(!complaints.contains("secret"));
    let export = config.export.unwrap();
    assert_eq!(export.request_timeout, Some(Duration::from_secs(10)));
    assert_eq!(export.export_timeout, None);
    assert_eq!(export.schedule_delay, Duration::from_secs(5));
    assert_eq!((export.max_queue_spans, export.max_batch_spans), (16_384, 512));
    assert_eq!(config.sampler, Sampler::DEFAULT);
    assert_eq!(config.remote_parent, None);
    for endpoint in ["ftp://h:1", "h:1", "unix:///x", "http://", "http:// h"] {
        let config = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}"));
        assert!(config.export.is_none() && config.complaints.len() == 1, "{endpoint}: {:?}", config.complaints);
    }
}

#[test]
fn settings_that_need_the_standard_stack_are_reported_without_it() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1/otlp");
    let asked = [endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("LONGPOLE_SPAN_PROCESSOR", "batch-span-processor")];
    let config = read_program(&Program::default(), &asked);
    let export = config.export.unwrap();
    if HAS_STANDARD_STACK {
        assert_eq!(config.complaints, [""; 0]);
        assert_eq!((config.processor, export.protocol), (SpanProcessor::Batch, Protocol::Grpc));
        assert_eq!((export.url.as_str(), export.max_queue_spans), ("http://h:1", 2_048));
    } else {
        assert_eq!(config.complaints.len(), 2, "{:?}", config.complaints);
        assert_eq!((config.processor, export.protocol), (SpanProcessor::Longpole, Protocol::HttpProtobuf));
        assert_eq!((export.url.as_str(), export.max_queue_spans), ("http://h:1/otlp/v1/traces", 16_384));
    }
}

#[test]
fn the_program_decides_how_to_send_and_the_environment_where_and_as_whom() {
    let program = Program {
        service: Some("shop".into()),
        resource: vec![("team".into(), "red".into()), ("host.name".into(), "mine".into())],
        endpoint: Some("http://default:1".into()),
        protocol: Some(Protocol::HttpJson),
        processor: Some(SpanProcessor::Longpole),
    };
    let config = read_program(&program, &[("LONGPOLE_SPAN_PROCESSOR", "simple")]);
    assert_eq!(config.processor, SpanProcessor::Longpole);
    assert_eq!(config.complaints.len(), 1, "{:?}", config.complaints);
    assert_eq!(config.export.as_ref().unwrap().url, "http://default:1/v1/traces");
    let known = "process.pid=42 process.executable.name=app process.executable.path=/bin/app";
    assert_eq!(resource_text(&config), format!("service.name=shop team=red host.name=mine {known}"));
    let vars = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:1"), ("OTEL_RESOURCE_ATTRIBUTES", "team=blue,service.name=web")];
    let config = read_program(&program, &vars);
    assert_eq!(config.export.as_ref().unwrap().url, "http://h:1/v1/traces");
    assert_eq!(resource_text(&config), format!("host.name=mine team=blue service.name=web {known}"));
}

#[test]
fn https_is_reported_without_tls() {
    let files = "OTEL_EXPORTER_OTLP_CERTIFICATE=ca.pem\nOTEL_EXPORTER_OTLP_CLIENT_KEY=a\nOTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=b";
    let config = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT=https://h:1\n{files}"));
    if HAS_TLS {
        let export = config.export.unwrap();
        let expected = TlsFiles { certificate: Some("ca.pem".into()), client_certificate: None, client_key: Some("b".into()) };
        assert_eq!((export.url.as_str(), export.tls), ("https://h:1/v1/traces", Some(expected)));
    } else {
        assert!(config.export.is_none() && config.complaints[0].contains("the feature `tls` of longpole-sdk"), "{:?}", config.complaints);
    }
    let plain = read(&format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\n{files}"));
    assert_eq!(plain.export.unwrap().tls, None);
    let grpc = read("OTEL_EXPORTER_OTLP_ENDPOINT=https://h:1/x\nOTEL_EXPORTER_OTLP_PROTOCOL=grpc");
    assert_eq!(
        grpc.export.map(|export| export.url),
        HAS_GRPC_TLS.then(|| "https://h:1".into()).or(HAS_TLS.then(|| "https://h:1/x/v1/traces".into()).filter(|_| !HAS_STANDARD_STACK))
    );
}

#[test]
fn a_batch_is_never_larger_than_the_queue() {
    let export = read("OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_BSP_MAX_QUEUE_SIZE=10").export.unwrap();
    assert_eq!((export.max_queue_spans, export.max_batch_spans), (10, 10));
}

#[test]
fn the_resource_is_what_the_user_said_then_what_we_know() {
    let own = "process.pid=42 process.executable.name=app process.executable.path=/bin/app host.name=box";
    assert_eq!(resource(""), format!("service.name=unknown_service:app {own}"));
    assert_eq!(resource("OTEL_SERVICE_NAME=web"), format!("service.name=web {own}"));
    assert_eq!(resource_as(Some("shop"), ""), format!("service.name=shop {own}"));
    assert_eq!(resource_as(Some("shop"), "OTEL_SERVICE_NAME=web"), format!("service.name=web {own}"));
    assert_eq!(resource_as(Some("shop"), "OTEL_RESOURCE_ATTRIBUTES=service.name=web"), format!("service.name=web {own}"));
    assert_eq!(
        resource("OTEL_RESOURCE_ATTRIBUTES=a=1, service.name=from%20list ,a=%C3%A4,host.name=given"),
        "service.name=from list a=ä host.name=given process.pid=42 process.executable.name=app process.executable.path=/bin/app"
    );
    assert_eq!(resource("OTEL_SERVICE_NAME=web\nOTEL_RESOURCE_ATTRIBUTES=service.name=x"), format!("service.name=web {own}"));
}

#[test]
fn headers_are_decoded() {
    let lines = "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1\nOTEL_EXPORTER_OTLP_HEADERS=api-key=a%3Db, x-tenant = me";
    let headers = read(lines).export.unwrap().headers;
    assert_eq!(headers, [("api-key".into(), "a=b".into()), ("x-tenant".into(), "me".into())]);
}

#[test]
fn samplers_decide_by_parent_or_by_id() {
    let sampler = |lines: &str| read(lines).sampler;
    let low = [0; 16];
    let high = [0xff; 16];
    let unsampled_parent = SpanContext { trace_id: low, span_id: [1; 8], flags: 0 };
    assert_eq!(sampler("").flags(&low, None), 1);
    assert_eq!(sampler("").flags(&high, None), 1);
    assert_eq!(sampler("").flags(&low, Some(&unsampled_parent)), 0);
    assert_eq!(sampler("OTEL_TRACES_SAMPLER=always_on").flags(&low, Some(&unsampled_parent)), 1);
    assert_eq!(sampler("OTEL_TRACES_SAMPLER=always_off").flags(&low, None), 0);
    let half = sampler("OTEL_TRACES_SAMPLER=parentbased_traceidratio\nOTEL_TRACES_SAMPLER_ARG=0.5");
    assert_eq!((half.flags(&low, None), half.flags(&high, None), half.flags(&low, Some(&unsampled_parent))), (1, 0, 0));
    assert_eq!(sampler("OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=2").flags(&high, None), 1);
    assert_eq!(sampler("OTEL_TRACES_SAMPLER=traceidratio\nOTEL_TRACES_SAMPLER_ARG=NaN").flags(&high, None), 1);
}
