//! Profiles out: what of a recording goes into the file of a profiler, and in what order. The formats: `docs/formats/profiles.md`.
//!
//! ```text
//! process deploy (12)   thread main (12)   ▪▪▪▪ ──lock── ▪▪▪ ──sleep────── ▪      a track: samples and waits, by time
//!                       thread gz-1 (14)        ▪▪▪▪▪▪▪▪▪
//! ```

pub mod chrome_profile;
pub mod firefox;
pub mod folded;
pub mod pprof;
pub mod pprof_builder;
pub mod series;
pub mod speedscope;
#[cfg(test)]
mod tests;
pub(crate) mod tracks;

use std::borrow::Cow;
use std::collections::HashMap;

use longpole_model::stack::LocationKind;
use longpole_model::{
    Frame, IdVec, Location, LocationId, Loss, LossKind, Monotonic, Recording, SampleId, SampleLink, Span, SpanIndex, StackId, Text,
    Timestamp, Wait, WaitId,
};

use crate::number::row;

/// Frames of all stacks in a file that repeats them for each sample: 128 million, half a gigabyte to a gigabyte of it. A recording of a
/// megabyte may have a million samples of a stack of 4,096 frames.
const FRAMES_MAX: u64 = 1 << 27;

/// The same of a file whose stacks are in memory before it is written: 64 million, half a gigabyte.
const HELD_FRAMES_MAX: u64 = 1 << 26;

/// Bytes of the names in such a file: 256 MiB where it is made in memory, which is more than a browser takes.
const NAME_BYTES_MAX: u64 = 256 << 20;

/// What there is place for in a file, and how much came behind the last that had one.
#[derive(Debug)]
struct Room {
    left: u64,
    left_out: u64,
}

impl Room {
    fn new(max: u64) -> Self {
        Room { left: max, left_out: 0 }
    }

    /// Whether there is place for one more that takes so much. None behind the first that has none gets any.
    fn take(&mut self, size: usize) -> bool {
        let left = self.left.checked_sub(size as u64);
        self.left = left.unwrap_or(0);
        self.left_out += u64::from(left.is_none());
        left.is_some()
    }
}

/// Stands in a stack that was not seen.
const NO_STACK: &str = "[stack not seen]";

/// An export: the samples and waits of a recording that go into the file.
#[derive(Debug, Clone)]
pub struct ProfileExport<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The samples, ascending.
    pub samples: Vec<SampleId>,
    /// The waits, ascending.
    pub waits: Vec<WaitId>,
    /// For each wait of the recording, whether nobody's work waits in it: the thread waits for work, or does none of a span.
    pub is_idle: IdVec<WaitId, bool>,
    /// What is missing from the recording, for formats with a place for it.
    pub notes: Vec<String>,
    spans: SpanIndex,
}

impl<'a> ProfileExport<'a> {
    /// All samples and waits of a recording, no wait idle.
    pub fn new(recording: &'a Recording) -> Self {
        ProfileExport {
            recording,
            samples: recording.sample_ids().collect(),
            waits: recording.wait_ids().collect(),
            is_idle: IdVec::filled(false, recording.waits.len()),
            notes: Vec::new(),
            spans: SpanIndex::of(&recording.spans),
        }
    }

    /// Whether there is nothing of code.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.waits.is_empty()
    }

    /// Wall time of a moment; in a recording without a clock, its monotonic time.
    fn time(&self, at: Monotonic) -> Timestamp {
        self.recording.clock.to_unix(at).unwrap_or_else(|| Timestamp::from_unix_nanos(at.0))
    }

    /// The earliest of all that goes into a file with spans.
    pub(crate) fn origin(&self) -> Timestamp {
        let recording = self.recording;
        let spans = recording.spans.iter().map(|span| span.start);
        let samples = self.samples.first().map(|sample| self.time(recording.samples[*sample].time));
        let waits = self.waits.iter().map(|wait| self.time(recording.waits[*wait].start)).min();
        spans.chain(samples).chain(waits).min().unwrap_or(recording.run.start)
    }

    /// The first and last moment of samples and waits.
    fn ends(&self) -> (Timestamp, Timestamp) {
        let samples = self.samples.iter().map(|sample| &self.recording.samples[*sample]).map(|sample| (sample.time, sample.time));
        let waits = self.waits.iter().map(|wait| &self.recording.waits[*wait]).map(|wait| (wait.start, wait.end));
        let ends = samples.chain(waits).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        ends.map_or((self.recording.run.start, self.recording.run.start), |(start, end)| (self.time(start), self.time(end)))
    }

    /// The requested nanoseconds between two samples; 0 where they are unknown.
    fn period_nanos(&self) -> u64 {
        match self.recording.run.rate_hz {
            0 => self.samples.first().map_or(0, |sample| self.recording.samples[*sample].weight_nanos),
            rate => 1_000_000_000 / u64::from(rate),
        }
    }

    /// Entries of a stack, leaf first.
    fn stack(&self, stack: StackId) -> impl DoubleEndedIterator<Item = &'a Location> {
        let recording = self.recording;
        self.entries(stack).iter().filter_map(|id| recording.locations.get(id.0 as usize))
    }

    fn entries(&self, stack: StackId) -> &'a [LocationId] {
        self.recording.stacks.get(stack.0 as usize).map_or(&[][..], |stack| &stack.locations)
    }

    /// The span that a link names.
    fn span_of(&self, link: Option<&SampleLink>) -> Option<(usize, &'a Span)> {
        let (trace, span) = link?.span?;
        let spans = &self.recording.spans;
        self.spans.get(spans, trace, span).map(|place| (place, &spans[place]))
    }

    /// What formats of stacks and times have no place for.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        let slices = self.recording.cpu_slices.len() as u64;
        let mut losses = Vec::new();
        lose(&mut losses, slices, "context switches, the source of thread states; only .lpole keeps them");
        losses
    }
}

/// Counts what has no place.
pub(crate) fn lose(losses: &mut Vec<Loss>, count: u64, what: &str) {
    if count > 0 {
        losses.push(Loss::new(LossKind::FormatCannotHold, count, what));
    }
}

/// The frames of a location, innermost first; its address where symbols were not looked up.
fn frames(location: &Location) -> Cow<'_, [Frame]> {
    if !location.frames.is_empty() {
        return Cow::Borrowed(&location.frames);
    }
    let function = match &location.kind {
        LocationKind::Code { address, .. } => address.to_string(),
        LocationKind::Unmapped { address } | LocationKind::Named { address: Some(address), .. } => address.to_string(),
        LocationKind::Named { runtime, address: None } => format!("[{}]", runtime.as_str()),
        LocationKind::Cut { reason } => format!("[{reason}]"),
    };
    Cow::Owned(vec![Frame { function: function.into(), file: Text::new(), line: 0, reason: None }])
}

/// What a thread waits for, as a frame below the function that waits: `[lock: futex]`.
fn wait_frame(wait: &Wait) -> String {
    let kind = wait.kind.as_str();
    if wait.syscall.is_empty() { format!("[{kind}]") } else { format!("[{kind}: {}]", wait.syscall) }
}

/// Functions of stacks, each once: a name and a file.
#[derive(Debug, Default)]
struct Functions<'a> {
    /// Name and file.
    list: Vec<(Cow<'a, str>, &'a str)>,
    numbers: HashMap<(Cow<'a, str>, &'a str), u32>,
    of_location: HashMap<LocationId, Vec<u32>>,
    of_stack: HashMap<StackId, Vec<u32>>,
}

impl<'a> Functions<'a> {
    /// The number of a function.
    fn number(&mut self, name: Cow<'a, str>, file: &'a str) -> u32 {
        let next = row(self.list.len());
        let number = *self.numbers.entry((name.clone(), file)).or_insert(next);
        if number == next {
            self.list.push((name, file));
        }
        number
    }

    /// The functions of a location, innermost first.
    fn of_location(&mut self, location: &'a Location) -> &[u32] {
        if !self.of_location.contains_key(&location.id) {
            let numbers = match frames(location) {
                Cow::Borrowed(frames) => frames.iter().map(|frame| self.number(Cow::Borrowed(&frame.function), &frame.file)).collect(),
                Cow::Owned(frames) => frames.into_iter().map(|frame| self.number(Cow::Owned(frame.function.into()), "")).collect(),
            };
            self.of_location.insert(location.id, numbers);
        }
        &self.of_location[&location.id]
    }

    /// The functions of a stack, root first. They are put together once: a million samples may have one deep stack.
    fn of_stack(&mut self, export: &ProfileExport<'a>, stack: StackId) -> &[u32] {
        if !self.of_stack.contains_key(&stack) {
            let mut numbers = Vec::new();
            for location in export.stack(stack) {
                numbers.extend_from_slice(self.of_location(location));
            }
            numbers.reverse();
            self.of_stack.insert(stack, numbers);
        }
        &self.of_stack[&stack]
    }
}

/// Stacks as a tree: a node is an entry below its caller. Parents stand before their children.
#[derive(Debug, Default)]
struct Tree {
    /// The caller, and the number of the entry.
    nodes: Vec<(Option<u32>, u32)>,
    numbers: HashMap<(Option<u32>, u32), u32>,
}

impl Tree {
    /// The node of a stack, root first; `None` for an empty one.
    fn node(&mut self, entries: impl IntoIterator<Item = u32>) -> Option<u32> {
        entries.into_iter().fold(None, |at, entry| Some(self.child(at, entry)))
    }

    /// The node of an entry below a node.
    fn child(&mut self, at: Option<u32>, entry: u32) -> u32 {
        let next = row(self.nodes.len());
        let number = *self.numbers.entry((at, entry)).or_insert(next);
        if number == next {
            self.nodes.push((at, entry));
        }
        number
    }
}
