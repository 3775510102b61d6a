//! Runs the engine with its children, as a user would.

#[path = "../../../crates/longpole-sdk/tests/it/collector.rs"]
#[allow(dead_code, reason = "shared with the tests of the SDK, which use all of it")]
mod collector;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::{Command, Output};

use collector::{Collector, attribute_map, tree};
use deploy_example::program::resources;
use opentelemetry_proto::tonic::trace::v1::Span;

fn deploy(engine: &str, args: &[&str], vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(engine);
    command.args(args).current_dir("/");
    for inherited in
        ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME", "TRACEPARENT", "RUST_LOG", "OTEL_TRACES_SAMPLER"]
    {
        command.env_remove(inherited);
    }
    command.envs(vars.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tree of spans. Each resource's span has links to spans that had ended when it started: those of its dependencies,
/// or else of the start of the providers.
#[test]
fn the_spans_say_what_waited_for_what() {
    let collector = Collector::start(&[]);
    let output = deploy(env!("CARGO_BIN_EXE_deploy"), &[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).lines().last().unwrap().starts_with("12 resources created in "));

    let spans = collector.spans();
    let mut names: Vec<String> = tree(&spans)
        .lines()
        .filter(|line| !line.trim_start().starts_with(['*', '~']))
        .map(|line| line.split(" resource.urn").next().unwrap().to_owned())
        .collect();
    names[1..].sort();
    let mut expected: Vec<String> = vec!["deploy".into(), "  run program".into(), "    evaluate program".into(), "  stop".into()];
    expected.extend(["compute", "cloud"].map(|name| format!("  start provider-{name}")));
    for resource in resources() {
        expected.push(format!("  create {} client", resource.name));
        expected.push(format!("    {}/create {} server", resource.provider(), resource.name));
    }
    expected[1..].sort();
    assert_eq!(names, expected);

    let by_name: HashMap<&str, &Span> = spans.iter().map(|span| (span.name.as_str(), span)).collect();
    let by_id: HashMap<&[u8], &Span> = spans.iter().map(|span| (span.span_id.as_slice(), span)).collect();
    for resource in resources() {
        let span = by_name[format!("create {}", resource.name).as_str()];
        let linked: HashSet<&str> = span.links.iter().map(|link| by_id[link.span_id.as_slice()].name.as_str()).collect();
        let expected: HashSet<String> = match resource.depends_on.as_slice() {
            [] => ["start provider-compute".into(), "start provider-cloud".into()].into(),
            names => names.iter().map(|name| format!("create {name}")).collect(),
        };
        assert_eq!(linked, expected.iter().map(String::as_str).collect(), "{}", resource.name);
        for link in &span.links {
            let before = by_id[link.span_id.as_slice()];
            assert!(before.end_time_unix_nano <= span.start_time_unix_nano, "{} had not ended when {} began", before.name, span.name);
        }
        let attributes = attribute_map(&span.attributes);
        assert_eq!(attributes["resource.name"], format!("{:?}", resource.name));
        assert_eq!(attributes["resource.type"], format!("{:?}", resource.resource_type));
        assert_eq!(attributes["resource.urn"], format!("{:?}", resource.urn()));
    }
    let services: HashSet<String> = collector
        .requests()
        .iter()
        .flat_map(|(_, request)| &request.resource_spans)
        .map(|resource| attribute_map(&resource.resource.as_ref().unwrap().attributes)["service.name"].clone())
        .collect();
    assert_eq!(services, ["deploy", "deploy-host", "provider-compute", "provider-cloud"].map(|name| format!("{name:?}")).into());
}

#[test]
fn it_runs_without_anybody_listening() {
    let output = deploy(env!("CARGO_BIN_EXE_deploy"), &[], &[("OTEL_SDK_DISABLED", "true")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

/// A copy of some of the programs, without the others.
struct Copies(PathBuf);

impl Copies {
    fn make(name: &str, programs: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("deploy-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (program, path) in programs {
            // In a separate process: a child that another test forks meanwhile would hold the file open while we write it, and
            // the kernel does not execute such a file.
            let copied = Command::new("cp").arg(path).arg(folder.join(program)).status().unwrap();
            assert!(copied.success());
        }
        Self(folder)
    }

    fn deploy(&self) -> Output {
        deploy(self.0.join("deploy").to_str().unwrap(), &[], &[])
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_program_that_is_missing_is_named() {
    let copies = Copies::make("missing", &[("deploy", env!("CARGO_BIN_EXE_deploy")), ("deploy-host", env!("CARGO_BIN_EXE_deploy-host"))]);
    let output = copies.deploy();
    assert_eq!(output.status.code(), Some(1));
    let missing = copies.0.join("provider-compute");
    assert_eq!(text(&output.stderr), format!("deploy: {} is missing: build the whole example\n", missing.display()));
}

#[test]
fn a_child_that_ends_early_is_named() {
    let copies = Copies::make(
        "early",
        &[
            ("deploy", env!("CARGO_BIN_EXE_deploy")),
            ("deploy-host", env!("CARGO_BIN_EXE_deploy-host")),
            ("provider-compute", env!("CARGO_BIN_EXE_provider-compute")),
            ("provider-cloud", "/bin/true"),
        ],
    );
    let output = copies.deploy();
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("deploy: provider-cloud ended before it was needed: exit status: 0\n"), "{told}");
}

#[test]
fn a_provider_by_itself_says_who_starts_it() {
    let output = deploy(env!("CARGO_BIN_EXE_provider-cloud"), &[], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "provider-cloud: DEPLOY_ENGINE is not set: provider-cloud is started by deploy\n");
}

#[test]
fn what_is_expected_is_printed_for_programs() {
    let output = deploy(env!("CARGO_BIN_EXE_deploy"), &["--expected"], &[]);
    let poles: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(poles[0]["name"], "compute/create web-bundle");
    assert_eq!(poles[0]["function"], "compress_bundle");
    assert_eq!(poles[0]["saves_nanos"], 950_000_000);
    let output = deploy(env!("CARGO_BIN_EXE_deploy"), &["--help"], &[]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), "deploy: usage: deploy [--expected]\n".into()));
}
