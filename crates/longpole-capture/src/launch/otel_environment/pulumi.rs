//! Pulumi's own variables and flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::note::{Note, note};
use super::variables::Environment;

/// Where Pulumi's own variables send its spans, in Pulumi's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PulumiTargets {
    /// `PULUMI_OPTION_OTEL_TRACES`.
    pub otel_traces: Option<String>,
    /// `PULUMI_OPTION_TRACING`.
    pub tracing: Option<String>,
    /// Files that it writes because flags of the command say so.
    pub files: Vec<TraceFile>,
}

/// A file that Pulumi writes its spans to when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// The flag that names it.
    pub flag: &'static str,
    /// Its path, as Pulumi reads the URL of the flag.
    pub path: PathBuf,
}

/// Sets Pulumi's variables, which it reads since 3.208. It ignores OpenTelemetry's general ones, and only its event stream shows which resource a
/// span is about.
pub(super) fn set_pulumi(env: &mut Environment, argv: &[OsString], authority: &str, appdash: &str, notes: &mut Vec<Note>) -> PulumiTargets {
    let program = argv.first().and_then(|program| Path::new(program).file_name());
    let is_pulumi = program.is_some_and(|name| name == "pulumi");
    let typed = |flag: &str| typed_value(argv, flag).filter(|_| is_pulumi);
    let mut targets = PulumiTargets::default();
    let options = [
        ("--otel-traces", "PULUMI_OPTION_OTEL_TRACES", format!("grpc://{authority}"), &mut targets.otel_traces),
        ("--tracing", "PULUMI_OPTION_TRACING", appdash.to_owned(), &mut targets.tracing),
    ];
    for (flag, name, ours, target) in options {
        if let Some(value) = typed(flag) {
            if let Some(path) = file_of_url(value, env.text("HOME").as_deref()) {
                targets.files.push(TraceFile { flag, path });
                continue;
            }
            let text = format!(
                "pulumi's {flag} overrides its environment, so those spans do not reach longpole; pass {flag} to longpole run instead"
            );
            notes.push(note("pulumi_elsewhere", text));
            continue;
        }
        match env.text(name) {
            // What another program that starts pulumi would have sent there is not what this command sends.
            Some(_) if !is_pulumi => {
                notes.push(note("pulumi_elsewhere", format!("{name} is set: a pulumi command sends its spans there, not to longpole")));
                continue;
            }
            user => *target = user,
        }
        env.set(name, ours);
    }
    if typed("--event-log").is_some() || env.get("PULUMI_OPTION_EVENT_LOG").is_some() {
        let text = "--event-log or PULUMI_OPTION_EVENT_LOG sends pulumi's events elsewhere: its spans do not name their resources";
        notes.push(note("pulumi_events_elsewhere", text));
    } else {
        env.set("PULUMI_OPTION_EVENT_LOG", format!("tcp://{authority}"));
        env.set_where_unset("PULUMI_DEBUG_COMMANDS", "true");
    }
    targets
}

/// The value of a flag among these words, `--flag=value` or `--flag value`; of several the last, which counts. Empty where it is missing.
fn typed_value<'a>(argv: &'a [OsString], flag: &str) -> Option<&'a str> {
    let value = |(place, word): (usize, &'a OsString)| {
        let word = word.to_str()?;
        if word == flag {
            return Some(argv.get(place + 1).and_then(|next| next.to_str()).unwrap_or_default());
        }
        word.split_once('=').filter(|(name, _)| *name == flag).map(|(_, value)| value)
    };
    argv.iter().enumerate().rev().find_map(value)
}

/// The file that a URL of Pulumi's names: `file:./up.trace`, `file:///tmp/up.trace`, `file://~/up.trace`. Between `//` and the next `/`
/// stands a host, which Pulumi does not read. `None` for any other URL.
pub fn file_of_url(url: &str, home: Option<&str>) -> Option<PathBuf> {
    let path = url.strip_prefix("file:")?;
    let Some(path) = path.strip_prefix("//") else { return Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty()) };
    let (host, path) = path.split_at(path.find('/')?);
    match home.filter(|_| host == "~") {
        Some(home) => Some(Path::new(home).join(&path[1..])),
        None => Some(PathBuf::from(path)),
    }
}
