//! Which process emitted the spans that Pulumi's command forwarded.
//!
//! Plug-ins of Pulumi, and the program they run, send their spans to the command, which forwards all of them: by their connection they
//! seem to be the command's own. Their service, the type of their resource, and the span that started them identify the process:
//!
//! ```text
//! service pulumi-language-yaml                                    process pulumi-language-yaml
//! service modern                                                  process pulumi-resource-modern
//! service pulumi-resource-provider, type legacy:index:Step        process pulumi-resource-legacy
//! service pulumi-resource-provider, under newPlugin bin=…/X       process X
//! ```
//!
//! Among several that live, the one that started last: a preview's plug-in ends before the update's starts, and one that served
//! its schema alone works no more.

use std::collections::{HashMap, HashSet};

use longpole_model::resource_event::TYPE;
use longpole_model::{Process, Recording, Span, SpanId, Timestamp, TraceId};

use crate::pulumi::opentracing_bridge::PULUMI_CLI;
use crate::pulumi::program_kind::is_plugin;
use crate::tree::forest::base_name;

/// The engine's span around the start of a plug-in; its attribute `bin` is the path of the program.
const NEW_PLUGIN: &str = "newPlugin";

/// Spans above a span that may name the started plug-in. Calls that start a plug-in are its grandchildren at most.
const ABOVE_MAX: usize = 8;

/// Reading of two clocks: a plug-in may seem to answer a little before it started.
const SLACK_NANOS: i64 = 1_000_000;

/// Gives spans that came by way of the command the process that made them, or none where that is unknown.
pub fn place(recording: &mut Recording) {
    let program =
        |process: &Process| if process.executable.is_empty() { process.name.clone() } else { base_name(&process.executable).to_owned() };
    let wall = |at| recording.clock.to_unix(at);
    let mut plugins: HashMap<String, Vec<(Timestamp, Option<Timestamp>, u32)>> = HashMap::new();
    let mut commands: HashSet<u32> = HashSet::new();
    for process in &recording.processes {
        let name = program(process);
        if name == "pulumi" {
            commands.insert(process.pid);
        } else if is_plugin(&name)
            // A fork of a plug-in, on its way to another program, emits nothing.
            && process.execed
            && let Some(start) = wall(process.start)
        {
            plugins.entry(name).or_default().push((start, process.end.and_then(wall), process.pid));
        }
    }
    if plugins.is_empty() || commands.is_empty() {
        return;
    }
    plugins.values_mut().for_each(|list| list.sort_unstable());
    let spans = &recording.spans;
    let index: HashMap<(TraceId, SpanId), usize> = spans.iter().enumerate().map(|(i, s)| ((s.trace_id, s.span_id), i)).collect();
    let handed_on = |span: &Span| {
        span.pid.is_some_and(|pid| commands.contains(&pid)) && span.service_name() != PULUMI_CLI && span.resource.process_pid().is_none()
    };
    let started_by = |span: &Span| {
        let mut at = span;
        for _ in 0..ABOVE_MAX {
            at = &spans[*index.get(&(at.trace_id, at.parent_span_id?))?];
            if at.name == NEW_PLUGIN {
                return at.attributes.get_str("bin").map(|path| base_name(path).to_owned());
            }
        }
        None
    };
    let name_of = |span: &Span| {
        let service = span.service_name();
        let of_type = || Some(format!("pulumi-resource-{}", span.attributes.get_str(TYPE)?.split(':').next()?));
        [Some(service.to_owned()), Some(format!("pulumi-resource-{service}")), of_type(), started_by(span)]
            .into_iter()
            .flatten()
            .find(|name| plugins.contains_key(name))
    };
    let placed: Vec<(usize, Option<u32>)> = spans
        .iter()
        .enumerate()
        .filter(|(_, span)| handed_on(span))
        .map(|(i, span)| {
            let lives = |&&(start, end, _): &&(Timestamp, Option<Timestamp>, u32)| {
                start.nanos_since(span.start) <= SLACK_NANOS && end.is_none_or(|end| span.end.nanos_since(end) <= SLACK_NANOS)
            };
            (i, name_of(span).and_then(|name| plugins[&name].iter().rev().find(lives).map(|&(.., pid)| pid)))
        })
        .collect();
    for (i, pid) in placed {
        recording.spans[i].pid = pid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    #[test]
    fn spans_of_plug_ins_belong_to_their_processes() {
        let mut recording = text::parse(
            "\
run pulumi up  0..1000ms
process pulumi 0..1000ms pid 1
process pulumi-resource-modern 10..300ms pid 2 under 1
process pulumi-resource-modern 400..900ms pid 3 under 1
process pulumi-resource-modern 499..501ms pid 6 under 3 forked
process pulumi-resource-legacy 400..900ms pid 4 under 1
process pulumi-language-yaml 5..990ms pid 5 under 1
up  1..999ms  pulumi-cli  pid 1
early  20..30ms  modern  pid 1
late  420..430ms  modern  pid 1
starts helm  500..600ms  modern  pid 1
between  350..360ms  modern  pid 1
create  500..600ms  pulumi-resource-provider  pid 1  pulumi.resource.type=legacy:index:Step
host  6..900ms  pulumi-language-yaml  pid 1
program  7..800ms  pulumi-sdk-go  pid 1
own  8..9ms  modern  pid 7
",
        )
        .unwrap();
        place(&mut recording);
        let pids: Vec<(&str, Option<u32>)> = recording.spans.iter().map(|span| (span.name.as_str(), span.pid)).collect();
        let expected = [
            ("up", Some(1)),
            ("early", Some(2)),
            ("late", Some(3)),
            ("starts helm", Some(3)),
            ("between", None),
            ("create", Some(4)),
            ("host", Some(5)),
            ("program", None),
            ("own", Some(7)),
        ];
        assert_eq!(pids, expected);
    }
}
