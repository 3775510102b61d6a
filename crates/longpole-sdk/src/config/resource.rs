//! Whom the spans are of: OTLP's `Resource`.

use super::program::Program;
use super::reader::{Variables, parse_pairs};
use crate::encode::{self, Value, attribute};

/// What we know of ourselves, for the resource.
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    /// Path of the executable.
    pub(crate) executable: Option<String>,
    pub(crate) host: Option<String>,
}

impl ProcessFacts {
    /// Those of this process.
    pub(crate) fn of_this() -> Self {
        let executable = std::env::current_exe().ok();
        let host = if cfg!(target_os = "linux") {
            std::fs::read_to_string("/proc/sys/kernel/hostname").ok()
        } else {
            std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok()
        };
        ProcessFacts {
            pid: std::process::id(),
            executable: executable.map(|path| path.to_string_lossy().into_owned()),
            host: host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
        }
    }
}

/// The revision of OTEP 4947 whose record and symbol we publish: the one that its text names until it is stable.
const THREAD_CONTEXT_SCHEMA: &str = "tlsdesc_v1_dev";

/// Whom the spans are of.
#[derive(Debug, Clone)]
pub(crate) struct Resource(pub(crate) Vec<(String, ResourceValue)>);

#[derive(Debug, Clone)]
pub(crate) enum ResourceValue {
    Text(String),
    Int(i64),
}

impl Resource {
    /// What OTEP 4719 publishes of a process: the resource, and that its threads follow OTEP 4947 without attributes of their own.
    pub(crate) fn process_context(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encode::bytes(&mut out, 1, &self.encoded());
        attribute(&mut out, 2, "threadlocal.schema_version", Value::Str(THREAD_CONTEXT_SCHEMA));
        attribute(&mut out, 2, "threadlocal.attribute_key_map", Value::Texts(&[]));
        out
    }

    /// OTLP's `Resource` message.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in &self.0 {
            let value = match value {
                ResourceValue::Text(text) => Value::Str(text),
                ResourceValue::Int(number) => Value::Int(*number),
            };
            attribute(&mut out, 1, key, value);
        }
        out
    }
}

/// The later of the sources wins: what we know, what the program says, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`.
pub(super) fn read_resource(reader: &mut Variables<'_>, facts: &ProcessFacts, program: &Program) -> Resource {
    use ResourceValue::{Int, Text};
    let mut given = match reader.text("OTEL_RESOURCE_ATTRIBUTES") {
        None => Vec::new(),
        Some(text) => parse_pairs(&text).unwrap_or_else(|| {
            reader.complaints.push(format!("OTEL_RESOURCE_ATTRIBUTES={text} is not a list of key=value pairs; ignoring it"));
            Vec::new()
        }),
    };
    given.splice(0..0, program.resource.iter().cloned());
    // The later of two pairs of one key counts.
    let mut seen = Vec::new();
    given.reverse();
    given.retain(|(key, _)| {
        !seen.contains(key) && {
            seen.push(key.clone());
            true
        }
    });
    given.reverse();
    let executable_name = facts.executable.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
    if let Some(name) = reader.text("OTEL_SERVICE_NAME") {
        given.retain(|(key, _)| key != "service.name");
        given.insert(0, ("service.name".into(), name));
    } else if !given.iter().any(|(key, _)| key == "service.name") {
        let unknown = || executable_name.map_or("unknown_service".into(), |executable| format!("unknown_service:{executable}"));
        let name = program.service.clone().unwrap_or_else(unknown);
        given.insert(0, ("service.name".into(), name));
    }
    let own: [(&str, Option<ResourceValue>); 9] = [
        ("telemetry.sdk.name", Some(Text("longpole".into()))),
        ("telemetry.sdk.language", Some(Text("rust".into()))),
        ("telemetry.sdk.version", Some(Text(env!("CARGO_PKG_VERSION").into()))),
        ("process.pid", Some(Int(i64::from(facts.pid)))),
        ("process.executable.name", executable_name.map(|name| Text(name.into()))),
        ("process.executable.path", facts.executable.clone().map(Text)),
        ("host.name", facts.host.clone().map(Text)),
        ("host.arch", Some(Text(host_arch().into()))),
        ("os.type", Some(Text(std::env::consts::OS.into()))),
    ];
    let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let known = own.filter(|(key, _)| !seen.contains(key)).collect::<Vec<_>>();
    Resource(given.into_iter().map(|(key, value)| (key, Text(value))).chain(known).collect())
}

/// OpenTelemetry's word for the machine's instruction set.
fn host_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
