//! Pulumi's own variables and flags.

use std::ffi::OsString;
use std::path::Path;

use super::note::{Note, note};
use super::variables::Environment;

/// Where Pulumi's own variables send its spans, in Pulumi's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PulumiTargets {
    /// `PULUMI_OPTION_OTEL_TRACES`.
    pub otel_traces: Option<String>,
    /// `PULUMI_OPTION_TRACING`.
    pub tracing: Option<String>,
}

/// Sets Pulumi's variables, which it reads since 3.208. It ignores OpenTelemetry's general ones, and only its event stream shows which resource a
/// span is about.
pub(super) fn set_pulumi(env: &mut Environment, argv: &[OsString], authority: &str, appdash: &str, notes: &mut Vec<Note>) -> PulumiTargets {
    let program = argv.first().and_then(|program| Path::new(program).file_name());
    let is_pulumi = program.is_some_and(|name| name == "pulumi");
    let is_typed = |flag: &str| {
        let is_flag =
            |word: &OsString| word.to_str().is_some_and(|word| word == flag || word.split_once('=').is_some_and(|(name, _)| name == flag));
        is_pulumi && argv.iter().any(is_flag)
    };
    let mut targets = PulumiTargets::default();
    let options = [
        ("--otel-traces", "PULUMI_OPTION_OTEL_TRACES", format!("grpc://{authority}"), &mut targets.otel_traces),
        ("--tracing", "PULUMI_OPTION_TRACING", appdash.to_owned(), &mut targets.tracing),
    ];
    for (flag, name, ours, target) in options {
        if is_typed(flag) {
            let text =
                format!("{flag} of pulumi wins over its environment: those spans go there, not here; give it to longpole run instead");
            notes.push(note("pulumi_elsewhere", text));
            continue;
        }
        match env.text(name) {
            // What another program that starts pulumi would have sent there is not what this command sends.
            Some(_) if !is_pulumi => {
                notes.push(note("pulumi_elsewhere", format!("{name} is set: a pulumi command sends its spans there, not here")));
                continue;
            }
            user => *target = user,
        }
        env.set(name, ours);
    }
    if is_typed("--event-log") || env.get("PULUMI_OPTION_EVENT_LOG").is_some() {
        let text = "--event-log or PULUMI_OPTION_EVENT_LOG sends pulumi's events elsewhere: its spans do not name their resources";
        notes.push(note("pulumi_events_elsewhere", text));
    } else {
        env.set("PULUMI_OPTION_EVENT_LOG", format!("tcp://{authority}"));
        env.set_where_unset("PULUMI_DEBUG_COMMANDS", "true");
    }
    targets
}
