//! Story: somebody deploys with the real Pulumi, the command unchanged, and asks what to fix first.
//! Guarantees: the spans of engine, language host and providers, with OpenTelemetry and without, are as many as Pulumi itself exports,
//! under one root, without an orphan and none twice, and the engine's calls say which resource they are about; who gets copies, in any of
//! Pulumi's formats, gets the same spans; what Pulumi writes and sends without longpole around it comes in whole; a secret property stands
//! in no byte; plug-ins that outlive a killed Pulumi are named; `longpole serve` takes the place of the containers of Pulumi's page, with
//! its commands unchanged. What the slow resource saves: the timing story `save_in_a_deployment`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::keep_no_secret::{all_bytes, all_exports, all_rows, contains};
use crate::support::collector::{Collector, Identity};
use crate::support::pulumi::{RESOURCES, Stack, pulumi, spans_of_lines, text};
use crate::support::served::Served;
use crate::support::tee::Tee;
use crate::support::{Sandbox, http, longpole};

/// How long it takes where only the spans matter.
const QUICK_MILLIS: i64 = 100;

/// Spans per service and name.
type Counts = BTreeMap<(String, String), usize>;

fn counts(spans: &BTreeSet<Identity>) -> Counts {
    let mut counts = Counts::new();
    for span in spans {
        *counts.entry((span.service.clone(), span.name.clone())).or_default() += 1;
    }
    counts
}

/// What Pulumi itself exports of the deployment. Deployed once, for all stories.
fn exported(pulumi: &Path) -> &'static Counts {
    static EXPORTED: OnceLock<Counts> = OnceLock::new();
    EXPORTED.get_or_init(|| {
        let sandbox = Sandbox::new();
        let stack = Stack::new(&sandbox, "alone", pulumi, QUICK_MILLIS);
        let file = stack.path("traces.json");
        stack.succeeds(&["up", "--yes", "--non-interactive", &format!("--otel-traces=file://{}", file.display())]);
        let (spans, count) = spans_of_lines(&file);
        assert_eq!(spans.len(), count);
        assert_eq!(stack.imports(&file)["spans"], count, "the file comes in whole");
        let counts = counts(&spans);
        for service in ["pulumi-cli", "pulumi-language-yaml", "modern", "pulumi-resource-provider"] {
            assert!(counts.keys().any(|(of, _)| of == service), "Pulumi itself exports nothing of {service}: {counts:?}");
        }
        deterministic(counts)
    })
}

/// Spans that are as many in each deployment. How often Pulumi asks a plug-in that starts whether it is there yet is chance.
fn deterministic(counts: Counts) -> Counts {
    counts.into_iter().filter(|((_, name), _)| !["testConnection", "<empty method>"].contains(&name.as_str())).collect()
}

/// What is wrong with the recording, and must not be.
fn complaints(summary: &Value) -> Vec<&Value> {
    let codes = ["orphans", "cycles", "duplicate_ids", "requests_refused", "spans_invalid", "drain_timed_out", "forward_failed"];
    summary["quality"].as_array().unwrap().iter().filter(|q| codes.contains(&q["code"].as_str().unwrap())).collect()
}

/// The spans that arrived are those that Pulumi exports.
#[track_caller]
fn assert_all(expected: &Counts, counted: &Counts, answer: &str) {
    let keys = expected.keys().chain(counted.keys()).filter(|key| expected.get(*key) != counted.get(*key));
    let different: Vec<_> = keys.map(|key| (key, expected.get(key), counted.get(key))).collect();
    assert!(different.is_empty(), "spans that Pulumi exports, and that are here: {different:?}\n{answer}");
}

/// Nothing is missing of what Pulumi exports, nothing is there twice, and each call of the engine knows its resource.
#[track_caller]
fn assert_complete(stack: &Stack, pulumi: &Path, answer: &str) {
    assert_all(exported(pulumi), &deterministic(counts(&stack.spans())), answer);
    let summary = stack.asks(&["show"]);
    assert_eq!(complaints(&summary), Vec::<&Value>::new(), "{answer}");
    let created = "SELECT count(*) AS calls, count(DISTINCT attributes['pulumi.resource.urn']) AS urns FROM spans \
                   WHERE service_name = 'pulumi-cli' AND name = 'pulumirpc.ResourceProvider/Create'";
    let row = &stack.asks(&["sql", created])["rows"][0];
    // Once in the preview, once in the update.
    assert_eq!((&row["calls"], &row["urns"]), (&(2 * RESOURCES).into(), &RESOURCES.into()));
}

/// A forward target has the spans of the recording below the span of the command, and the parent of each.
#[track_caller]
fn assert_handed_on(stack: &Stack, what: &str, copies: &BTreeSet<Identity>) {
    let short = |spans: &BTreeSet<Identity>| -> BTreeSet<[String; 4]> {
        spans.iter().map(|span| [&span.trace, &span.id, &span.service, &span.name].map(Clone::clone)).collect()
    };
    let (own, copied) = (short(&stack.spans()), short(copies));
    let missing: Vec<_> = own.difference(&copied).collect();
    let added: Vec<_> = copied.difference(&own).map(|[_, _, service, name]| (service.as_str(), name.as_str())).collect();
    assert!(missing.is_empty() && added == [("longpole", "pulumi")], "{what}: missing {missing:?}, added {added:?}");
    let ids: BTreeSet<_> = copies.iter().map(|span| (&span.trace, &span.id)).collect();
    let orphans: Vec<_> =
        copies.iter().filter(|span| span.parent.as_ref().is_some_and(|parent| !ids.contains(&(&span.trace, parent)))).collect();
    assert!(orphans.is_empty(), "{what}: {orphans:?}");
}

#[test]
fn spans_of_engine_host_and_providers_are_complete() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "recorded", &pulumi, QUICK_MILLIS);
    let answer = stack.deploys(&[]);
    assert_complete(&stack, &pulumi, &answer);
}

#[test]
fn targets_in_formats_of_the_older_tracing_get_the_same_spans() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "tracing", &pulumi, QUICK_MILLIS);
    let file = stack.path("up.trace");
    let [appdash, zipkin] = ["appdash", "zipkin"].map(|name| Collector::start(&sandbox, name));
    let targets = [format!("file:{}", file.display()), appdash.appdash.clone(), format!("http://{}/api/v1/spans", zipkin.address)];
    let answer = stack.deploys(&targets.each_ref().map(|target| ["--tracing", target]).concat());
    assert_complete(&stack, &pulumi, &answer);
    assert_handed_on(&stack, "file:", &stack.spans_of_file(&file));
    for (what, collector) in [("tcp://", appdash), ("http://…/api/v1/spans", zipkin)] {
        let collected = collector.ends();
        assert_eq!(complaints(&collected.summary), Vec::<&Value>::new(), "{what}");
        assert_handed_on(&stack, what, &collected.spans);
    }
}

#[test]
fn otlp_targets_get_the_same_spans() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "otel-traces", &pulumi, QUICK_MILLIS);
    let file = stack.path("traces.json");
    let [grpc, http] = ["grpc", "http"].map(|name| Collector::start(&sandbox, name));
    let targets = [format!("file://{}", file.display()), format!("grpc://{}", grpc.address), format!("http://{}", http.address)];
    let answer = stack.deploys(&targets.each_ref().map(|target| ["--otel-traces", target]).concat());
    assert_complete(&stack, &pulumi, &answer);
    let (lines, count) = spans_of_lines(&file);
    assert_eq!(lines.len(), count, "file:// holds an id twice");
    assert_handed_on(&stack, "file://", &lines);
    for (what, collector) in [("grpc://", grpc), ("http://", http)] {
        let collected = collector.ends();
        assert_eq!(complaints(&collected.summary), Vec::<&Value>::new(), "{what}");
        assert_handed_on(&stack, what, &collected.spans);
    }
}

#[test]
fn targets_in_all_formats_get_the_same_spans() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "both", &pulumi, QUICK_MILLIS);
    let file = stack.path("up.trace");
    let grpc = Collector::start(&sandbox, "grpc");
    let (tracing, otel_traces) = (format!("file:{}", file.display()), format!("grpc://{}", grpc.address));
    let answer = stack.deploys(&["--tracing", &tracing, "--otel-traces", &otel_traces]);
    assert_complete(&stack, &pulumi, &answer);
    assert_handed_on(&stack, "file:", &stack.spans_of_file(&file));
    assert_handed_on(&stack, "grpc://", &grpc.ends().spans);
}

/// The program `small` with other resources, which have these as a property, in the clear and as a secret, one of each provider.
fn program_with(plain: &str, secret: &str) -> String {
    let resource = |provider: &str| {
        format!(
            "  {provider}-plain:\n    type: {provider}:Step\n    properties: {{ label: a, millis: 1, secret: {plain} }}\n  \
             {provider}-secret:\n    type: {provider}:Step\n    properties: {{ label: b, millis: 1, secret: {{ 'fn::secret': {secret} }} }}\n"
        )
    };
    format!("name: small\nruntime: yaml\nresources:\n{}{}", resource("modern"), resource("legacy"))
}

#[test]
fn no_byte_holds_a_secret_of_the_deployment() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::of(&sandbox, "secrets", &pulumi, "small");
    let secrets = ["Zq7f41c09be2d5a6", "Zq90d3e8f1176bc4", "Zq2b85aa63c07e9d"];
    let [plain, secret, configured] = secrets;
    std::fs::write(stack.path("project/Pulumi.yaml"), program_with(plain, secret)).unwrap();
    let holds = |bytes: &[u8]| -> Vec<&str> { secrets.into_iter().filter(|secret| contains(bytes, secret)).collect() };

    let file = stack.path("own.trace");
    stack.succeeds(&["preview", "--non-interactive", &format!("--tracing=file:{}", file.display())]);
    let own = std::fs::read(&file).unwrap();
    assert_eq!(holds(&own), [plain, secret], "Pulumi itself writes none, so there is nothing to be kept out");

    // Told on a command line, too, before the deployment.
    let script = format!(
        "pulumi config set --secret password {configured} && pulumi up --yes --non-interactive >&2 && echo deployed && read -r line"
    );
    let copies = [stack.path("up.trace"), stack.path("traces.json")];
    let (tracing, otel_traces) = (format!("file:{}", copies[0].display()), format!("file://{}", copies[1].display()));
    let flags = ["--tracing", &tracing, "--otel-traces", &otel_traces];
    let mut run =
        stack.recorded(&flags, &["sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = run.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut said, &mut text).map(|_| text).unwrap()
    });
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("deployed"));
    let store = stack.path("store");
    let running = all_bytes(&store);
    assert!(contains(&running, "ResourceProvider/Create") && contains(&running, "[payload left out, "), "nothing is in the log yet");
    assert_eq!(holds(&running), Vec::<&str>::new(), "the log");
    run.stdin.take().unwrap().write_all(b"\n").unwrap();
    let (status, said) = (run.wait().unwrap(), said.join().unwrap());
    assert!(status.success(), "{}", text(&said));

    assert_eq!(holds(&said), Vec::<&str>::new(), "the answer");
    assert_eq!(holds(&all_bytes(&store)), Vec::<&str>::new(), "the files");
    assert_eq!(holds(&all_rows(&store)), Vec::<&str>::new(), "the tables");
    for (what, bytes) in all_exports(&sandbox, &store) {
        assert_eq!(holds(&bytes), Vec::<&str>::new(), "{what}");
    }
    for copy in &copies {
        assert_eq!(holds(&std::fs::read(copy).unwrap()), Vec::<&str>::new(), "{}", copy.display());
    }
    let created = "SELECT count(*) AS n FROM spans WHERE attributes['pulumi.resource.urn'] LIKE '%::legacy-secret'";
    assert!(stack.asks(&["sql", created])["rows"][0]["n"].as_u64().unwrap() > 0, "with the payloads went what they say");

    // Without longpole around it, by the one door that cuts payloads off.
    let zipkin = Collector::start(&sandbox, "zipkin");
    stack.succeeds(&["preview", "--non-interactive", &format!("--tracing=http://{}/api/v1/spans", zipkin.address)]);
    zipkin.ends();
    let kept = sandbox.path("zipkin");
    assert_eq!(holds(&[all_bytes(&kept), all_rows(&kept)].concat()), Vec::<&str>::new());
}

#[test]
fn files_and_requests_of_pulumi_itself_are_imported_completely() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::of(&sandbox, "by-itself", &pulumi, "small");
    let spans_of = |summary: &Value, may_miss_parents: bool| {
        let complaints = complaints(summary).into_iter().filter(|it| !(may_miss_parents && it["code"] == "orphans"));
        assert_eq!(complaints.collect::<Vec<_>>(), Vec::<&Value>::new());
        let again = summary["quality"].as_array().unwrap().iter().find(|q| q["code"] == "spans_duplicate");
        (summary["spans"].as_u64().unwrap(), again.map_or(0, |q| q["count"].as_u64().unwrap_or(1)))
    };
    let up = |tracing: &str| stack.succeeds(&["up", "--yes", "--non-interactive", "--skip-preview", &format!("--tracing={tracing}")]);

    // A file has each span once. As many as Pulumi's own reader of it sends, one by one.
    let file = stack.path("up.trace");
    up(&format!("file:{}", file.display()));
    let reader = Collector::start(&sandbox, "reader");
    let endpoint = format!("http://{}", reader.address);
    let convert = ["convert-trace", "--otel", "--ignore-log-spans=false", file.to_str().unwrap()];
    stack.succeeds_with(&[("PULUMI_DEBUG_COMMANDS", "true"), ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)], &convert);
    let sent = reader.ends().spans.len() as u64;
    assert_eq!(spans_of(&stack.imports(&file), false), (sent, 0));

    // A stream has each finish, and the last annotation of each is this one. A post is one finish. How many come differs by run:
    // plug-ins end without sending their last, which may be the parent of others.
    for (scheme, path, mark) in [("tcp", "", &b"_schema:Timespan"[..]), ("http", "/api/v1/spans", b"POST /api/v1/spans HTTP/1.1\r\n")] {
        let collector = Collector::start(&sandbox, scheme);
        let tee = Tee::before(if scheme == "tcp" { collector.appdash.trim_start_matches("tcp://") } else { &collector.address });
        up(&format!("{scheme}://{}{path}", tee.address));
        let (spans, again) = spans_of(&collector.ends().summary, true);
        let said = tee.count(mark) as u64;
        assert!(spans > 40, "{scheme}: {spans}");
        assert_eq!(spans + again, said, "{scheme}");
    }
}

/// All spans of a server, by service and name.
fn served_counts(served: &Served) -> Counts {
    let mut traces = BTreeMap::new();
    for service in served.jaeger("/api/services")["data"].as_array().unwrap() {
        let found = served.jaeger(&format!("/api/traces?limit=1500&service={}", service.as_str().unwrap()));
        for trace in found["data"].as_array().unwrap() {
            traces.insert(trace["traceID"].as_str().unwrap().to_owned(), trace.clone());
        }
    }
    let mut counts = Counts::new();
    for trace in traces.values() {
        for span in trace["spans"].as_array().unwrap() {
            let process = &trace["processes"][span["processID"].as_str().unwrap()];
            let key = [&process["serviceName"], &span["operationName"]].map(|text| text.as_str().unwrap().to_owned());
            *counts.entry(key.into()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn a_server_takes_the_place_of_the_containers_of_pulumis_page() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "served", &pulumi, QUICK_MILLIS);
    let served = Served::start(&sandbox.path("server"));
    let port = |name: &str| served.port(name);
    let [zipkin, grpc] = [format!("http://localhost:{}/api/v1/spans", port("zipkin")), format!("grpc://localhost:{}", port("otlp-grpc"))];

    // OpenTelemetry: all that Pulumi exports, and what to fix first.
    stack.succeeds(&["up", "--yes", "--non-interactive", &format!("--otel-traces={grpc}")]);
    assert_all(exported(&pulumi), &deterministic(served_counts(&served)), "");
    let traces = served.jaeger("/api/traces?service=pulumi-cli&operation=pulumi");
    let id = traces["data"][0]["traceID"].as_str().unwrap();
    let at = format!("http://localhost:{}", port("page"));
    let trace = longpole(&sandbox.path("own")).args(["trace", id, "--at", &at]).output().unwrap();
    let answer = text(&trace.stdout);
    assert!(trace.status.success() && answer.contains("LONG POLES"), "{answer}{}", text(&trace.stderr));

    // The older tracing, to Zipkin's door; and both at once.
    stack.succeeds(&["preview", "--non-interactive", &format!("--tracing={zipkin}")]);
    let spans = || served_counts(&served).values().sum::<usize>();
    let first = spans();
    assert!(first > exported(&pulumi).values().sum::<usize>() + 20, "{first}");
    stack.succeeds(&["preview", "--non-interactive", &format!("--tracing={zipkin}"), &format!("--otel-traces={grpc}")]);
    assert!(spans() > first + 40, "{first}, and {} with both", spans());
    // Values that look like secrets are cut off; nothing else is lost.
    let metrics = http::get(port("admin"), "/metrics").body;
    let mut losses = metrics.lines().filter(|line| line.starts_with("longpole_losses_total{") && !line.contains("values_redacted"));
    assert!(losses.all(|line| line.ends_with(" 0")), "{metrics}");
}

#[test]
fn plugins_that_outlive_a_killed_pulumi_are_named() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let stack = Stack::new(&sandbox, "killed", &pulumi, 600_000);
    let script = "echo $$; exec pulumi up --yes --non-interactive --skip-preview";
    let mut run = stack.recorded(&[], &["sh", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid = lines.next().unwrap();
    assert!(lines.any(|line| line.contains("database creating")), "the deployment did not come to its slow resource");
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    run.wait().unwrap();

    let summary = stack.asks(&["show"]);
    assert_eq!(summary["exit"]["signal"], 9, "{summary}");
    let outlived = summary["quality"].as_array().unwrap().iter().find(|q| q["code"] == "unfinished");
    let said = outlived.and_then(|q| q["detail"].as_str()).unwrap_or_default().to_owned();
    // They would wait for the slow resource for ten minutes.
    for pid in said.split("(pid ").skip(1).filter_map(|rest| rest.split_once(')')) {
        Command::new("kill").args(["-KILL", pid.0]).stderr(Stdio::null()).status().unwrap();
    }
    for name in ["pulumi-resource-modern", "pulumi-language-yaml"] {
        assert!(said.contains(name), "{name} is not named: {summary}");
    }
}
