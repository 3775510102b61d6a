//! Somebody else's collector, which gets copies: a second longpole, whose command does nothing but say where it is received and wait.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{Sandbox, json, longpole};

/// A collector that takes every format. When the story lets go of it, it has kept what it got.
pub(crate) struct Collector {
    run: Child,
    store: PathBuf,
    /// `127.0.0.1:PORT` of OTLP and Zipkin.
    pub(crate) address: String,
    /// `tcp://127.0.0.1:PORT` of AppDash.
    pub(crate) appdash: String,
}

impl Collector {
    pub(crate) fn start(sandbox: &Sandbox, name: &str) -> Collector {
        let store = sandbox.path(name);
        let mut run = longpole(&store)
            .args(["run", "--no-profile", "--summary", "none", "--", "sh", "-c"])
            .arg("echo $OTEL_EXPORTER_OTLP_ENDPOINT $PULUMI_OPTION_TRACING; exec cat >/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(run.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let (endpoint, appdash) = said.trim().split_once(' ').unwrap();
        let address = endpoint.strip_prefix("http://").unwrap().to_owned();
        Collector { appdash: appdash.to_owned(), address, run, store }
    }

    /// What it says of all that it got.
    pub(crate) fn ends(mut self) -> Collected {
        drop(self.run.stdin.take());
        assert!(self.run.wait().unwrap().success());
        Collected { summary: json(longpole(&self.store).args(["show", "--format", "json"])), spans: spans(&self.store) }
    }
}

/// What a collector got.
pub(crate) struct Collected {
    pub(crate) summary: Value,
    pub(crate) spans: BTreeSet<Identity>,
}

/// What every format must give back of a span.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) service: String,
    pub(crate) name: String,
}

/// The spans of the last recording of a store.
pub(crate) fn spans(store: &std::path::Path) -> BTreeSet<Identity> {
    let query = "SELECT encode(trace_id, 'hex') AS trace, encode(span_id, 'hex') AS id, encode(parent_span_id, 'hex') AS parent, \
                 service_name AS service, name FROM spans";
    let answer = json(longpole(store).args(["sql", "--format", "json", query]));
    assert_eq!(answer["truncated"], false);
    let rows = answer["rows"].as_array().unwrap();
    let spans: BTreeSet<Identity> = rows
        .iter()
        .map(|row| {
            let text = |column: &str| row[column].as_str().map(str::to_owned);
            let [trace, id, service, name] = ["trace", "id", "service", "name"].map(|column| text(column).unwrap());
            Identity { trace, id, parent: text("parent"), service, name }
        })
        .collect();
    assert_eq!(spans.len(), rows.len(), "an id twice");
    spans
}
