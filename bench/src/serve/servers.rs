//! The servers under measurement: how each starts, takes spans and answers questions.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use super::client::Client;
use super::data::{Format, SentTrace};
use super::process::{self, Process};

/// longpole moves spans from its log into segments at least this often here, so that what a round costs includes segments. Its usual 10 minutes matter only
/// for slow loads: a log of 262,144 spans is moved anyway.
pub(super) const SEGMENT_EVERY: &str = "15s";

/// What Zipkin's heap may take.
const ZIPKIN_HEAP: &str = "-Xmx8g";

/// Traces of a search: what Jaeger's page asks for.
const LIMIT: usize = 20;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// With its number among the binaries of longpole.
    Longpole(usize),
    /// The same, by Zipkin's protocol and API.
    LongpoleZipkin(usize),
    JaegerMemory,
    JaegerBadger,
    Zipkin,
}

impl Kind {
    pub(super) fn format(self) -> Format {
        if self.speaks_zipkin() { Format::ZipkinJson } else { Format::Otlp }
    }

    fn speaks_zipkin(self) -> bool {
        matches!(self, Kind::Zipkin | Kind::LongpoleZipkin(_))
    }

    pub(super) fn is_longpole(self) -> bool {
        matches!(self, Kind::Longpole(_) | Kind::LongpoleZipkin(_))
    }

    /// Whether it has its spans after it was killed.
    pub(super) fn keeps(self) -> bool {
        !matches!(self, Kind::Zipkin | Kind::JaegerMemory)
    }

    pub(super) fn ingest_path(self) -> &'static str {
        if self.speaks_zipkin() { "/api/v2/spans" } else { "/v1/traces" }
    }
}

/// A server, and how it starts.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) program: String,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) kind: Kind,
    pub(super) process: Process,
    pub(super) ingest_port: u16,
    query_port: u16,
    admin_port: u16,
    /// From its start to the first answer of its page.
    pub(super) page_secs: f64,
}

impl Contender {
    /// Starts it in a folder, which keeps its data, and waits for its page. `spans`: how many it will have to hold.
    pub(super) fn start(&self, folder: &Path, spans: usize, is_usual: bool) -> Result<Running> {
        fs::create_dir_all(folder).context("failed to make a folder for a server")?;
        let [ingest, query, query_grpc, admin] = process::free_ports()?;
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let data = folder.join("data").to_string_lossy().into_owned();
        let (argv, env): (Vec<String>, Vec<(&str, String)>) = match self.kind {
            Kind::Longpole(_) | Kind::LongpoleZipkin(_) => {
                let mut argv = text(&[&self.program, "serve", "--store", &data, "--port", "all=0"]);
                let door = if self.kind.speaks_zipkin() { "zipkin" } else { "otlp-http" };
                for (door, port) in [(door, ingest), ("page", query), ("admin", admin)] {
                    argv.extend(["--port".to_owned(), format!("{door}={port}")]);
                }
                if !is_usual {
                    argv.extend(text(&["--segment-every", SEGMENT_EVERY]));
                }
                (argv, vec![])
            }
            Kind::JaegerMemory | Kind::JaegerBadger => {
                let config = folder.join("jaeger.yaml");
                let storage = if self.kind == Kind::JaegerMemory {
                    // Room for traces of three spans.
                    format!("memory: {{max_traces: {}}}", spans / 3 + 100_000)
                } else {
                    format!("badger: {{directories: {{keys: {data}/keys, values: {data}/values}}, ephemeral: false, ttl: {{spans: 48h}}}}")
                };
                let written = fs::write(&config, jaeger_config(&storage, ingest, query, query_grpc));
                written.with_context(|| format!("failed to write {}", config.display()))?;
                (text(&[&self.program, "--config", &config.to_string_lossy()]), vec![])
            }
            Kind::Zipkin => {
                let env = vec![("QUERY_PORT", ingest.to_string()), ("MEM_MAX_SPANS", (spans * 2 + 100_000).to_string())];
                (text(&["java", ZIPKIN_HEAP, "-jar", &self.program]), env)
            }
        };
        let start = Instant::now();
        let mut process = Process::start(&argv, &env, &folder.join("said.txt"))?;
        let query_port = if self.kind.speaks_zipkin() { ingest } else { query };
        let (page_port, page) = match self.kind {
            Kind::Zipkin => (ingest, "/zipkin/"),
            _ => (query, "/search"),
        };
        let waited = process.wait_for(start, page_port, page).with_context(|| format!("{}: see {}", self.name, folder.display()));
        Ok(Running { kind: self.kind, page_secs: waited?, process, ingest_port: ingest, query_port, admin_port: admin })
    }
}

fn jaeger_config(storage: &str, ingest: u16, query: u16, query_grpc: u16) -> String {
    format!(
        "service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], processors: [batch], exporters: [jaeger_storage_exporter]}}
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
extensions:
  jaeger_query:
    storage: {{traces: spans}}
    http: {{endpoint: '127.0.0.1:{query}'}}
    grpc: {{endpoint: '127.0.0.1:{query_grpc}'}}
  jaeger_storage:
    backends:
      spans:
        {storage}
receivers:
  otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{ingest}'}}}}}}
processors: {{batch: {{}}}}
exporters:
  jaeger_storage_exporter: {{trace_storage: spans}}
"
    )
}

/// A search: a service, an attribute perhaps, and the time in which spans start, in Unix nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) service: &'a str,
    pub(super) attribute: Option<(&'a str, &'a str)>,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Running {
    pub(super) fn ingest(&self) -> Result<Client> {
        Client::connect(self.ingest_port)
    }

    pub(super) fn queries(&self) -> Result<Client> {
        Client::connect(self.query_port)
    }

    /// How many spans it has of a trace.
    pub(super) fn spans_of(&self, client: &mut Client, trace: &SentTrace) -> Result<usize> {
        let path = if self.kind.speaks_zipkin() { "/api/v2/trace/" } else { "/api/traces/" };
        let answer = client.get(&format!("{path}{}", trace.id))?;
        if answer.status == 404 {
            return Ok(0);
        }
        let json: serde_json::Value = serde_json::from_slice(&answer.body).context("the trace is no JSON")?;
        let spans = if self.kind.speaks_zipkin() { &json } else { &json["data"][0]["spans"] };
        Ok(spans.as_array().map_or(0, Vec::len))
    }

    /// The answer to a search, in the bytes of the server.
    pub(super) fn search(&self, client: &mut Client, search: Search<'_>) -> Result<Vec<u8>> {
        let Search { service, attribute, from, to } = search;
        let path = if self.kind.speaks_zipkin() {
            let query = attribute.map(|(key, value)| format!("&annotationQuery={key}%3D{value}")).unwrap_or_default();
            let (end, back) = (to.div_ceil(1_000_000), to.div_ceil(1_000_000) - from / 1_000_000);
            format!("/api/v2/traces?serviceName={service}{query}&endTs={end}&lookback={back}&limit={LIMIT}")
        } else {
            let tags = attribute.map(|(key, value)| format!("&tags=%7B%22{key}%22%3A%22{value}%22%7D")).unwrap_or_default();
            format!("/api/traces?service={service}{tags}&start={}&end={}&limit={LIMIT}", from / 1_000, to.div_ceil(1_000))
        };
        let answer = client.get(&path)?;
        anyhow::ensure!(answer.status == 200, "{path} answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        Ok(answer.body)
    }

    /// How many traces an answer to a search has.
    pub(super) fn traces_in(&self, body: &[u8]) -> usize {
        let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let traces = if self.kind.speaks_zipkin() { &json } else { &json["data"] };
        traces.as_array().map_or(0, Vec::len)
    }

    /// A counter or gauge of longpole's own.
    pub(super) fn metric(&self, name: &str) -> Result<Option<u64>> {
        if !self.kind.is_longpole() {
            return Ok(None);
        }
        let answer = Client::connect(self.admin_port)?.get("/metrics")?;
        let text = String::from_utf8_lossy(&answer.body);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
        Ok(value)
    }
}

/// Where a server keeps its data, in the folder in which it was started.
pub(super) fn data_folder(folder: &Path) -> PathBuf {
    folder.join("data")
}
