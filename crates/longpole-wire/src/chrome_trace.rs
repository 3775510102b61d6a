//! Chrome's trace event format out, for Perfetto and chrome://tracing. It is not read back: a lane is all it has of a tree.
//!
//! ```text
//! service shop   lane 1  ├ GET /cart ──────────────┤        "X": a span, with ts and dur in microseconds
//!                          ├ load ─────┤                    below its parent, on the same lane
//!                lane 2        ├ price ────┤                overlaps load: a lane of its own
//!                                 ▽ retry                   "i": an event
//!                shop (12)  ▪▪▪▪ ─ lock ─ ▪▪▪                a thread: samples and waits, see [`profile_export::chrome_profile`](crate::profile_export::chrome_profile)
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use longpole_model::Loss;
use longpole_model::attribute::Attribute;
use longpole_model::id::{SpanId, TraceId};
use longpole_model::span::{Span, StatusCode};
use longpole_model::time::Timestamp;

use crate::attribute_json::write_members;
use crate::json_writer::{Members, write_text};
use crate::profile_export::chrome_profile::{self, TrackPlace, micros};
use crate::profile_export::{self, ProfileExport, tracks as threads};

/// A document of the spans of a recording, with its code. Times count from the earliest, whose absolute time stands in `otherData`;
/// each service, and each process where pids are known, is a process. Returns what it has no place for.
pub fn encode(export: &ProfileExport<'_>) -> (Vec<u8>, Vec<Loss>) {
    let spans = &export.recording.spans[..];
    let origin = export.origin();
    let threads = threads::Tracks::new(export);
    let mut processes = processes_of(spans);
    let process_of_thread: Vec<usize> = threads.list.iter().map(|thread| processes.of_thread(thread)).collect();
    let lanes = lanes_of(spans, &processes.of_span);
    let mut out = String::from("{\"traceEvents\":[");
    let mut is_first = true;
    let mut separate = |out: &mut String| {
        if !is_first {
            out.push(',');
        }
        is_first = false;
    };
    for (index, (service, pid)) in processes.named.iter().enumerate() {
        separate(&mut out);
        let mut event = Members::begin(&mut out);
        event.raw("ph", "\"M\"");
        event.raw("name", "\"process_name\"");
        event.raw("pid", index + 1);
        event.raw("tid", 0);
        let mut args = Members::begin(event.member("args"));
        match pid {
            Some(pid) => args.text("name", &format!("{service} ({pid})")),
            None => args.text("name", service),
        }
        args.end();
        event.end();
    }
    for (index, span) in spans.iter().enumerate() {
        let place = (processes.of_span[index] + 1, lanes[index] + 1);
        separate(&mut out);
        write_span(&mut out, span, place, origin);
        for event in &span.events {
            separate(&mut out);
            let mut object = Members::begin(&mut out);
            object.raw("ph", "\"i\"");
            object.raw("s", "\"t\"");
            object.text("name", &event.name);
            object.raw("pid", place.0);
            object.raw("tid", place.1);
            micros(object.member("ts"), event.time.nanos_since(origin));
            write_object(object.member("args"), &event.attributes.0);
            object.end();
        }
    }
    // Lanes of spans are numbered from 1 in each process, threads above all of them.
    let lanes_max = lanes.iter().max().map_or(0, |lane| lane + 1);
    let mut writer = chrome_profile::Writer::new(export, origin);
    for (thread, process) in threads.list.iter().zip(process_of_thread) {
        separate(&mut out);
        let place = TrackPlace { pid: process + 1, tid: lanes_max + thread.tid as usize };
        writer.track(&mut out, thread, place);
    }
    out.push_str("],\"displayTimeUnit\":\"ns\",\"otherData\":");
    let mut other = Members::begin(&mut out);
    other.text("origin_unix_nano", &origin.unix_nanos().to_string());
    other.end();
    out.push('}');
    let mut losses = if export.is_empty() { Vec::new() } else { export.losses() };
    profile_export::lose(&mut losses, threads.threads_without, "threads without a sample or a sampled wait");
    let links = export.samples.iter().filter_map(|sample| export.recording.sample_link(*sample));
    let links = links.filter(|link| link.span.is_some()).count() as u64;
    writer.lose(&mut losses);
    profile_export::lose(&mut losses, links, "links of samples to spans: they have their process and time in common");
    (out.into_bytes(), losses)
}

fn write_span(out: &mut String, span: &Span, (pid, tid): (usize, usize), origin: Timestamp) {
    let mut event = Members::begin(out);
    event.raw("ph", "\"X\"");
    event.text("name", &span.name);
    event.text("cat", span.kind.as_str());
    event.raw("pid", pid);
    event.raw("tid", tid);
    micros(event.member("ts"), span.start.nanos_since(origin));
    micros(event.member("dur"), span.duration_nanos());
    let mut args = Members::begin(event.member("args"));
    args.raw("trace_id", format_args!("\"{}\"", span.trace_id));
    args.raw("span_id", format_args!("\"{}\"", span.span_id));
    if let Some(parent) = span.parent_span_id {
        args.raw("parent_span_id", format_args!("\"{parent}\""));
    }
    if span.status.code != StatusCode::Unset {
        args.text("status", span.status.code.as_str());
        args.text("status_message", &span.status.message);
    }
    if !span.links.is_empty() {
        args.list("links", &span.links, |out, link| write_text(out, &format!("{} {}", link.trace_id, link.span_id)));
    }
    write_object(args.member("attributes"), &span.attributes.0);
    args.end();
    event.end();
}

fn write_object(out: &mut String, attributes: &[Attribute]) {
    out.push('{');
    write_members(out, attributes);
    out.push('}');
}

/// The processes of the spans, by service and pid, and those that have code alone.
struct Processes<'a> {
    named: Vec<(&'a str, Option<u32>)>,
    /// The first of each pid.
    of_pid: HashMap<u32, usize>,
    /// Number of the process of each span.
    of_span: Vec<usize>,
}

impl<'a> Processes<'a> {
    /// The number of the process of a thread: that of its spans where it sent some.
    fn of_thread<'l: 'a>(&mut self, thread: &'l threads::Track<'_>) -> usize {
        *self.of_pid.entry(thread.pid).or_insert_with(|| {
            self.named.push((thread.process_name(), Some(thread.pid)));
            self.named.len() - 1
        })
    }
}

fn processes_of(spans: &[Span]) -> Processes<'_> {
    let mut numbers = HashMap::new();
    let mut named = Vec::new();
    let of_span = spans
        .iter()
        .map(|span| {
            let key = (span.service_name(), span.pid);
            *numbers.entry(key).or_insert_with(|| {
                named.push(key);
                named.len() - 1
            })
        })
        .collect();
    let mut of_pid = HashMap::new();
    for (number, (_, pid)) in named.iter().enumerate() {
        if let Some(pid) = *pid {
            of_pid.entry(pid).or_insert(number);
        }
    }
    Processes { named, of_pid, of_span }
}

/// A lane of a process: the ends of the spans that are open on it, the outermost first.
#[derive(Default)]
struct Lane(Vec<Timestamp>);

impl Lane {
    /// Whether a span fits inside what is open when it starts; takes it if so.
    fn take(&mut self, start: Timestamp, end: Timestamp) -> bool {
        while self.0.last().is_some_and(|open| *open <= start) {
            self.0.pop();
        }
        let fits = self.0.last().is_none_or(|open| *open >= end);
        if fits {
            self.0.push(end);
        }
        fits
    }
}

/// The lanes of one process.
#[derive(Default)]
struct Lanes {
    lanes: Vec<Lane>,
    /// End of the outermost span of each lane, the earliest on top: where a span may go that fits under no parent.
    free: BinaryHeap<Reverse<(Timestamp, usize)>>,
}

/// The lane of each span in its process: its parent's where it fits, else one that is free by then, else a new one.
fn lanes_of(spans: &[Span], process_of: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|index| (spans[*index].start, Reverse(spans[*index].end)));
    let mut processes: HashMap<usize, Lanes> = HashMap::new();
    let mut lane_of: HashMap<(TraceId, SpanId), (usize, usize)> = HashMap::new();
    let mut found = vec![0; spans.len()];
    for index in order {
        let span = &spans[index];
        let (start, end) = (span.start, span.end.max(span.start));
        let process = process_of[index];
        let Lanes { lanes, free } = processes.entry(process).or_default();
        let parent = span.parent_span_id.and_then(|parent| lane_of.get(&(span.trace_id, parent)));
        let below = parent.filter(|(of, lane)| *of == process && lanes[*lane].take(start, end)).map(|(_, lane)| *lane);
        let lane = below.unwrap_or_else(|| {
            let lane = match free.peek() {
                Some(Reverse((until, lane))) if *until <= start => {
                    let lane = *lane;
                    free.pop();
                    lane
                }
                _ => {
                    lanes.push(Lane::default());
                    lanes.len() - 1
                }
            };
            // A free lane may have been taken by a child meanwhile: then the span has one of its own.
            let lane = if lanes[lane].take(start, end) {
                lane
            } else {
                lanes.push(Lane(vec![end]));
                lanes.len() - 1
            };
            free.push(Reverse((end, lane)));
            lane
        });
        found[index] = lane;
        lane_of.entry((span.trace_id, span.span_id)).or_insert((process, lane));
    }
    found
}

#[cfg(test)]
mod tests {
    use longpole_model::text::parse;

    use super::*;

    #[test]
    fn spans_are_laid_on_lanes_where_they_nest() {
        let recording =
            parse("cart 0..100ms shop\n  load 1..50ms shop\n  price 40..90ms shop\n  db 60..70ms db\nlater 120..130ms shop\n").unwrap();
        let (bytes, _) = encode(&ProfileExport::new(&recording));
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let lanes: Vec<_> = document["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| format!("{} {}/{} {}+{}", event["name"].as_str().unwrap(), event["pid"], event["tid"], event["ts"], event["dur"]))
            .collect();
        assert_eq!(
            lanes,
            [
                "cart 1/1 0.0+100000.0",
                "load 1/1 1000.0+49000.0",
                "price 1/2 40000.0+50000.0",
                "db 2/1 60000.0+10000.0",
                "later 1/2 120000.0+10000.0"
            ]
        );
    }
}
