//! A server of `longpole serve`, which ends with the story.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{http, longpole};

/// A server at free ports.
pub(crate) struct Served {
    child: Child,
    /// Its ports by their names.
    ports: BTreeMap<String, u16>,
}

/// The names that its greeting has other words for.
const IN_WORDS: [(&str, &str); 6] = [
    ("page and Jaeger API", "page"),
    ("OTLP over HTTP", "otlp-http"),
    ("OTLP over gRPC", "otlp-grpc"),
    ("Zipkin", "zipkin"),
    ("Pyroscope", "pyroscope"),
    ("health and metrics", "admin"),
];

impl Served {
    /// Starts one, and reads its ports from its greeting.
    pub(crate) fn start(store: &Path) -> Served {
        Served::start_with(store, &[], &[])
    }

    /// The same with more arguments, and with more variables in its environment.
    #[track_caller]
    pub(crate) fn start_with(store: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Served {
        Served::try_start(store, arguments, variables).unwrap_or_else(|| panic!("the server did not start"))
    }

    /// The same; `None` where it ended with an error instead.
    #[track_caller]
    pub(crate) fn try_start(store: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Option<Served> {
        let mut command = longpole(store);
        command.envs(variables.iter().copied()).args(["serve", "--port", "all=0", "--listen", "127.0.0.1"]).args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut ports = BTreeMap::new();
        let mut is_ready = false;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
            if line.starts_with("  store") {
                is_ready = true;
                break;
            }
            match line.split_once("localhost:") {
                Some((words, rest)) => {
                    let name = IN_WORDS.iter().find(|(in_words, _)| words.contains(in_words)).unwrap().1;
                    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                    ports.insert(name.to_owned(), digits.parse().unwrap());
                }
                // Others: `jaeger-thrift 14268, jaeger-grpc 14250`.
                None => {
                    let named = line.trim().trim_start_matches("other ports").split(", ").filter_map(|port| port.trim().split_once(' '));
                    ports.extend(named.filter_map(|(name, port)| Some((name.to_owned(), port.parse().ok()?))));
                }
            }
        }
        if !is_ready {
            let status = child.wait().unwrap();
            assert!(status.code().is_some_and(|code| (1..=4).contains(&code)), "it ended without an error of its own: {status}");
            return None;
        }
        Some(Served { child, ports })
    }

    /// A port by its name.
    pub(crate) fn port(&self, name: &str) -> u16 {
        *self.ports.get(name).unwrap_or_else(|| panic!("the greeting names {:?}", self.ports))
    }

    /// Whether its greeting names this port.
    pub(crate) fn has_port(&self, name: &str) -> bool {
        self.ports.contains_key(name)
    }

    /// An answer of the page's port, as JSON.
    pub(crate) fn jaeger(&self, path: &str) -> Value {
        http::get(self.port("page"), path).json()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does.
    pub(crate) fn stop(mut self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended in most stories.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
