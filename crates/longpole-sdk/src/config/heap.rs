//! How heap profiles are sampled and where they go.

use std::time::Duration;

use super::export::{HAS_TLS, TlsFiles, read_headers, read_tls_files};
use super::program::Program;
use super::reader::Variables;
use super::resource::{ProcessFacts, Resource, ResourceValue, read_resource};

/// Bytes of a sample on average: the default of Go's and jemalloc's heap profiles.
const SAMPLE_BYTES: u64 = 512 << 10;

/// As often as Pyroscope's SDKs push profiles of memory.
const PUSH_SECONDS: u64 = 15;

/// More are a day, and no profile.
const PUSH_SECONDS_MAX: u64 = 86_400;

/// Labels that a server takes beside the name of the service, and bytes of each that it surely takes.
const LABELS_MAX: usize = 48;
const LABEL_BYTES_MAX: usize = 1_000;

/// What the program chooses, where the environment does not.
#[derive(Debug, Default, Clone)]
pub(crate) struct HeapProgram {
    /// Its name, and labels.
    pub(crate) program: Program,
    pub(crate) server: Option<String>,
    pub(crate) sample_bytes: Option<u64>,
    pub(crate) push_every: Option<Duration>,
}

/// How heap profiles are made.
#[derive(Debug)]
pub(crate) struct HeapConfig {
    /// Bytes of a sample on average; 0 switches it off.
    pub(crate) sample_bytes: u64,
    /// `None`: there is no server.
    pub(crate) push: Option<HeapPush>,
    /// What could not be used, for people.
    pub(crate) complaints: Vec<String>,
}

/// How heap profiles are pushed.
#[derive(Debug)]
pub(crate) struct HeapPush {
    /// With the name of the service and the labels, ready for more parameters.
    pub(crate) url: String,
    /// The same for people.
    pub(crate) server: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) every: Duration,
    pub(crate) tls: Option<TlsFiles>,
}

impl HeapConfig {
    /// Reads the variables through `get`. For heap profiles the environment decides everything that it says: whoever runs the program pays for them.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>, facts: &ProcessFacts, chosen: &HeapProgram) -> Self {
        let mut reader = Variables { get, complaints: Vec::new() };
        let is_disabled = reader.flag("OTEL_SDK_DISABLED");
        // The layer complains about the resource.
        let resource = read_resource(&mut Variables { get, complaints: Vec::new() }, facts, &chosen.program);
        let default_bytes = chosen.sample_bytes.unwrap_or(SAMPLE_BYTES);
        let sample_bytes = reader.parsed(&["LONGPOLE_HEAP_SAMPLE_BYTES"], default_bytes, |_| true);
        let push = read_server(&mut reader, chosen.server.as_deref()).map(|server| {
            let default_seconds = chosen.push_every.map_or(PUSH_SECONDS, |every| every.as_secs());
            let is_usable = |seconds: &u64| (1..=PUSH_SECONDS_MAX).contains(seconds);
            let seconds = reader
                .first(&["LONGPOLE_HEAP_PUSH_SECONDS"])
                .is_some()
                .then(|| reader.parsed(&["LONGPOLE_HEAP_PUSH_SECONDS"], default_seconds, is_usable));
            let every = seconds.map(Duration::from_secs).or(chosen.push_every).unwrap_or(Duration::from_secs(PUSH_SECONDS));
            HeapPush {
                url: format!("{}/ingest?name={}", server.trim_end_matches('/'), percent_encoded(&name(&resource))),
                headers: read_headers(&mut reader, &["LONGPOLE_HEAP_HEADERS"]),
                tls: server.starts_with("https://").then(|| read_tls_files(&reader)),
                // Not zero, which would keep a core busy.
                every: every.max(Duration::from_millis(1)),
                server,
            }
        });
        Self { sample_bytes: if is_disabled { 0 } else { sample_bytes }, push, complaints: reader.complaints }
    }
}

fn read_server(reader: &mut Variables<'_>, chosen: Option<&str>) -> Option<String> {
    let given = reader.first(&["LONGPOLE_HEAP_SERVER"]).or_else(|| chosen.map(|server| ("server", server.to_owned())));
    let (variable, server) = given?;
    let uri = server.parse::<ureq::http::Uri>().ok();
    let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none());
    let refused = match uri.as_ref().and_then(|uri| uri.scheme_str()) {
        Some("http") => return Some(server),
        Some("https") if HAS_TLS => return Some(server),
        Some("https") => "this program is built without the feature `tls` of longpole-sdk".to_owned(),
        _ => format!("{server} is not an http:// or https:// address"),
    };
    reader.complaints.push(format!("{variable}: {refused}; pushing no heap profiles"));
    None
}

/// `cart{host_name=box,process_pid=42}`: the service, and what the resource says beside it. Values have no quotation marks there, so the signs of the
/// form itself become underscores.
fn name(resource: &Resource) -> String {
    let plain = |text: &str| -> String {
        let text: String = text.chars().map(|c| if "{},=".contains(c) || c.is_control() { '_' } else { c }).collect();
        text[..text.floor_char_boundary(LABEL_BYTES_MAX)].to_owned()
    };
    let mut service = String::new();
    let mut labels = Vec::new();
    for (key, value) in &resource.0 {
        let value = match value {
            ResourceValue::Text(text) => plain(text),
            ResourceValue::Int(number) => number.to_string(),
        };
        match key.as_str() {
            "service.name" => service = value,
            // The same for every program here, or for the machine: nobody would choose by them.
            "os.type" | "host.arch" | "process.executable.name" | "process.executable.path" => {}
            key if key.starts_with("telemetry.sdk.") => {}
            key => {
                let key: String = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(LABEL_BYTES_MAX).collect();
                labels.push(format!("{key}={value}"));
            }
        }
    }
    labels.truncate(LABELS_MAX);
    format!("{service}{{{}}}", labels.join(","))
}

fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chosen: &HeapProgram, lines: &str) -> HeapConfig {
        let vars: Vec<(&str, &str)> = lines.lines().filter_map(|line| line.trim().split_once('=')).collect();
        let facts = ProcessFacts { pid: 42, executable: Some("/bin/cart".into()), host: Some("box".into()) };
        HeapConfig::read(&|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()), &facts, chosen)
    }

    #[test]
    fn nothing_is_pushed_without_a_server() {
        let config = read(&HeapProgram::default(), "");
        assert!(config.push.is_none() && config.complaints.is_empty());
        assert_eq!(config.sample_bytes, 524_288);
        assert_eq!(read(&HeapProgram::default(), "OTEL_SDK_DISABLED=true").sample_bytes, 0);
    }

    #[test]
    fn the_environment_decides_and_the_program_fills_in() {
        let chosen = HeapProgram {
            server: Some("http://a:4040/".into()),
            sample_bytes: Some(1_000),
            push_every: Some(Duration::from_millis(500)),
            ..HeapProgram::default()
        };
        let config = read(&chosen, "");
        let push = config.push.unwrap();
        let name = "unknown_service%3Acart%7Bprocess_pid%3D42%2Chost_name%3Dbox%7D";
        assert_eq!(
            (push.url.as_str(), push.every, config.sample_bytes),
            (&*format!("http://a:4040/ingest?name={name}"), Duration::from_millis(500), 1_000)
        );
        let lines = "LONGPOLE_HEAP_SERVER=http://b/profiles\nLONGPOLE_HEAP_SAMPLE_BYTES=7\nLONGPOLE_HEAP_PUSH_SECONDS=60\n\
                     LONGPOLE_HEAP_HEADERS=authorization=Bearer%20t\nOTEL_SERVICE_NAME=shop\n\
                     OTEL_RESOURCE_ATTRIBUTES=service.version=1.8,team=a{b=c},host.name=h%2Ci";
        let config = read(&chosen, lines);
        let push = config.push.unwrap();
        assert_eq!((push.every, config.sample_bytes), (Duration::from_secs(60), 7));
        assert_eq!(
            push.url,
            "http://b/profiles/ingest?name=shop%7Bservice_version%3D1.8%2Cteam%3Da_b_c_%2Chost_name%3Dh_i%2Cprocess_pid%3D42%7D"
        );
        assert_eq!(push.headers, [("authorization".to_owned(), "Bearer t".to_owned())]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let lines = "LONGPOLE_HEAP_SERVER=localhost:4040\nLONGPOLE_HEAP_SAMPLE_BYTES=much";
        let config = read(&HeapProgram::default(), lines);
        assert!(config.push.is_none());
        assert_eq!(config.sample_bytes, 524_288);
        let complaints = [
            "LONGPOLE_HEAP_SAMPLE_BYTES=much is not usable; using the default 524288",
            "LONGPOLE_HEAP_SERVER: localhost:4040 is not an http:// or https:// address; pushing no heap profiles",
        ];
        assert_eq!(config.complaints, complaints);
        let config = read(&HeapProgram::default(), "LONGPOLE_HEAP_SERVER=https://a");
        assert_eq!(config.push.is_some(), HAS_TLS);
        let config = read(&HeapProgram::default(), "LONGPOLE_HEAP_SERVER=http://a\nLONGPOLE_HEAP_PUSH_SECONDS=0");
        assert_eq!(config.push.unwrap().every, Duration::from_secs(15));
        assert_eq!(config.complaints.len(), 1);
    }
}
