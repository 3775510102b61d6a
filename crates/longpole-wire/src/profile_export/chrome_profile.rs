//! Code inside a Chrome trace: samples as V8's profiles, which Perfetto, DevTools and the Firefox Profiler read; waits as slices.
//!
//! ```text
//! {"ph":"P","name":"Profile","id":"0x1","pid":1,"tid":14,"ts":20,"args":{"data":{"startTime":20}}}
//! {"ph":"P","name":"ProfileChunk","id":"0x1", … {"cpuProfile":{"nodes":[{"id":2,"parent":1,"callFrame":{"functionName":"main"}}],
//!    "samples":[2,2,1]},"timeDeltas":[1001,1001,20000]}}}       microseconds since the sample before; 1 is "(idle)"
//! {"ph":"X","name":"lock: futex","cat":"wait","pid":1,"tid":14,"ts":2003,"dur":20000,"args":{"stack":["lock_it","main"]}}
//! ```

use std::collections::HashMap;

use longpole_model::time::Timestamp;
use longpole_model::{Loss, StackId};

use super::tracks::{Moment, Track};
use super::{Functions, NAME_BYTES_MAX, ProfileExport, Tree, lose};
use crate::json_writer::{Members, push_display, write_list, write_text};

/// What a profile of V8 calls what stands above everything, and the time in which nothing ran.
const ROOT: &str = "(root)";
const IDLE: &str = "(idle)";

/// About what a node of a profile takes beside its names.
const NODE_BYTES: usize = 100;

/// In a gap of this many periods between two samples the thread did not run.
const GAP_PERIODS: i64 = 2;

/// Where a track stands in the trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackPlace {
    pub(crate) pid: usize,
    pub(crate) tid: usize,
}

impl TrackPlace {
    /// An event of this kind.
    fn event<'o>(self, out: &'o mut String, phase: &str, name: &str) -> Members<'o> {
        let mut event = Members::begin(out);
        event.text("ph", phase);
        event.text("name", name);
        event.raw("pid", self.pid);
        event.raw("tid", self.tid);
        event
    }
}

/// Writes tracks into a trace.
pub(crate) struct Writer<'c, 'a> {
    export: &'c ProfileExport<'a>,
    origin: Timestamp,
    /// Nodes of the profiles so far: the Firefox Profiler wants their numbers to differ in all of a trace, and readers take 0 for none.
    nodes: u64,
    names: NameBudget,
}

/// What there is place for: names stand at each node of a profile, and in the stack of each wait.
struct NameBudget {
    bytes_left: u64,
    samples_left_out: u64,
    stacks_left_out: u64,
}

impl NameBudget {
    fn take(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes as u64);
    }
}

impl<'c, 'a> Writer<'c, 'a> {
    pub(crate) fn new(export: &'c ProfileExport<'a>, origin: Timestamp) -> Self {
        Writer::with_room_for(NAME_BYTES_MAX, export, origin)
    }

    pub(super) fn with_room_for(bytes_left: u64, export: &'c ProfileExport<'a>, origin: Timestamp) -> Self {
        Writer { export, origin, nodes: 0, names: NameBudget { bytes_left, samples_left_out: 0, stacks_left_out: 0 } }
    }

    /// What there was no place for.
    pub(crate) fn lose(&self, losses: &mut Vec<Loss>) {
        lose(losses, self.names.samples_left_out, "samples of stacks after the first 256 MiB of names");
        lose(losses, self.names.stacks_left_out, "stacks of waits after the first 256 MiB of names");
    }

    /// The events of a track, as JSON objects with commas between them.
    pub(crate) fn track(&mut self, out: &mut String, track: &Track<'a>, place: TrackPlace) {
        let mut event = place.event(out, "M", "thread_name");
        let mut args = Members::begin(event.member("args"));
        args.text("name", &format!("{} ({})", track.thread_name(), track.tid));
        args.end();
        event.end();
        write_waits(out, self.export, track, place, self.origin, &mut self.names);
        self.nodes += write_profile(out, self.export, track, (place, self.nodes), self.origin, &mut self.names);
    }
}

fn write_waits<'a>(
    out: &mut String,
    export: &ProfileExport<'a>,
    track: &Track<'a>,
    place: TrackPlace,
    origin: Timestamp,
    names: &mut NameBudget,
) {
    let mut functions = Functions::default();
    for moment in &track.moments {
        let Moment::Wait(number) = moment else { continue };
        let wait = &export.recording.waits[*number];
        let name =
            if wait.syscall.is_empty() { wait.kind.as_str().to_owned() } else { format!("{}: {}", wait.kind.as_str(), wait.syscall) };
        out.push(',');
        let mut event = place.event(out, "X", &name);
        event.text("cat", "wait");
        let start = export.time(wait.start);
        micros(event.member("ts"), start.nanos_since(origin));
        micros(event.member("dur"), export.time(wait.end).nanos_since(start));
        let mut args = Members::begin(event.member("args"));
        if export.is_idle.get(*number) == Some(&true) {
            args.raw("idle", true);
        }
        if let Some((_, span)) = export.span_of(export.recording.wait_link(*number)) {
            args.text("span_id", &span.span_id.to_string());
        }
        if names.bytes_left > 0 {
            if let Some(stack) = wait.stack {
                functions.of_stack(export, stack);
            }
            let stack = wait.stack.and_then(|stack| functions.of_stack.get(&stack)).map_or(&[][..], |stack| stack);
            let text = args.member("stack");
            let begin = text.len();
            write_list(text, stack.iter().rev(), |out, number| write_text(out, &functions.list[*number as usize].0));
            names.take(text.len() - begin);
        } else {
            names.stacks_left_out += u64::from(wait.stack.is_some());
        }
        args.end();
        event.end();
    }
}

/// Writes the samples of a track, and returns how many nodes there are.
fn write_profile<'a>(
    out: &mut String,
    export: &ProfileExport<'a>,
    track: &Track<'a>,
    (place, nodes_before): (TrackPlace, u64),
    origin: Timestamp,
    names: &mut NameBudget,
) -> u64 {
    let mut functions = Functions::default();
    let mut tree = Tree::default();
    let root = functions.number(ROOT.into(), "");
    let idle = functions.number(IDLE.into(), "");
    let idle = tree.node([root, idle]);
    let mut of_stack: HashMap<StackId, Option<u32>> = HashMap::new();
    // Microseconds since the origin, and the node.
    let mut samples: Vec<(i64, Option<u32>)> = Vec::new();
    let mut runs_until = None;
    for moment in &track.moments {
        let Moment::Sample(number) = moment else { continue };
        let sample = &export.recording.samples[*number];
        let node = match of_stack.get(&sample.stack) {
            Some(node) => *node,
            None if names.bytes_left == 0 => {
                names.samples_left_out += 1;
                continue;
            }
            None => {
                let begin = tree.nodes.len();
                let node = tree.node(std::iter::once(root).chain(functions.of_stack(export, sample.stack).iter().copied()));
                let bytes =
                    |function: u32| NODE_BYTES + functions.list[function as usize].0.len() + functions.list[function as usize].1.len();
                names.take(tree.nodes[begin..].iter().map(|(_, function)| bytes(*function)).sum());
                of_stack.insert(sample.stack, node);
                node
            }
        };
        let at = export.time(sample.time).nanos_since(origin) / 1000;
        let period = i64::try_from(sample.weight_nanos / 1000).unwrap_or(i64::MAX).max(1);
        if let Some((until, gap)) = runs_until
            && at > gap
        {
            samples.push((until, idle));
        }
        samples.push((at, node));
        runs_until = Some((at.saturating_add(period), at.saturating_add(period.saturating_mul(GAP_PERIODS))));
    }
    let Some(&(first, _)) = samples.first() else { return 0 };
    // The last sample lasts as well.
    samples.extend(runs_until.map(|(until, _)| (until, idle)));
    let id = format!("0x{:x}{:08x}", place.pid, place.tid);
    out.push(',');
    let mut event = place.event(out, "P", "Profile");
    event.text("cat", "disabled-by-default-v8.cpu_profiler");
    event.text("id", &id);
    event.raw("ts", first);
    event.raw("args", format_args!("{{\"data\":{{\"startTime\":{first}}}}}"));
    event.end();
    out.push(',');
    let mut event = place.event(out, "P", "ProfileChunk");
    event.text("cat", "disabled-by-default-v8.cpu_profiler");
    event.text("id", &id);
    event.raw("ts", first);
    let mut args = Members::begin(event.member("args"));
    let mut data = Members::begin(args.member("data"));
    let mut profile = Members::begin(data.member("cpuProfile"));
    let number = |node: u32| nodes_before + u64::from(node) + 1;
    profile.list("nodes", tree.nodes.iter().zip(0..), |out, ((parent, function), node)| {
        let (name, file) = &functions.list[*function as usize];
        let mut object = Members::begin(out);
        object.raw("id", number(node));
        if let Some(parent) = parent {
            object.raw("parent", number(*parent));
        }
        let mut frame = Members::begin(object.member("callFrame"));
        frame.text("functionName", name);
        frame.text("url", file);
        frame.raw("scriptId", 0);
        frame.raw("codeType", "\"other\"");
        frame.end();
        object.end();
    });
    profile.list("samples", &samples, |out, (_, node)| push_display(out, number(node.unwrap_or(0))));
    profile.end();
    let mut before = first;
    data.list("timeDeltas", &samples, |out, (at, _)| {
        push_display(out, at - before);
        before = *at;
    });
    data.end();
    args.end();
    event.end();
    tree.nodes.len() as u64
}

/// Microseconds with what is left of nanoseconds behind the point.
pub(crate) fn micros(out: &mut String, nanos: i64) {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    push_display(out, format_args!("{sign}{}.{:03}", size / 1000, size % 1000));
}
