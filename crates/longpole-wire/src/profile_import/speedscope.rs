//! speedscope's files: one or more profiles, of samples or of events, over one table of frames.
//!
//! ```text
//! {"shared":{"frames":[{"name":"main"},{"name":"hash","file":"src/hash.rs","line":12}]},
//!  "profiles":[{"type":"sampled","unit":"milliseconds","samples":[[0,1],[0]],"weights":[1.5,2]},        root first
//!              {"type":"evented","unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":7}]}]}
//! ```
//!
//! Times become nanoseconds. A file may hold profiles of several units: then a sample has a value for each, and zero for the units of others.

use std::borrow::Cow;

use longpole_model::LocationId;

use super::named_stacks::NamedStacks;
use super::{Profile, ValueType};
use crate::error::FileError;
use crate::json::{self, Element, List, message};
use crate::limits::Limits;

message!(File<'a>, Container, { shared: Shared<'a> = "shared", profiles: List<Track<'a>> = "profiles" });
message!(Shared<'a>, Container, { frames: List<FrameMessage<'a>> = "frames" });
message!(FrameMessage<'a>, Value, { name: Cow<'a, str> = "name", file: Cow<'a, str> = "file", line: Option<u32> = "line" });
message!(Track<'a>, Value, {
    kind: Cow<'a, str> = "type",
    unit: Cow<'a, str> = "unit",
    end: f64 = "endValue",
    samples: List<List<u32>> = "samples",
    weights: List<f64> = "weights",
    events: List<Event<'a>> = "events",
});
message!(Event<'a>, Value, { kind: Cow<'a, str> = "type", frame: u32 = "frame", at: f64 = "at" });

impl Element for Track<'_> {}
impl Element for FrameMessage<'_> {}
impl Element for Event<'_> {}

/// Decodes a file.
///
/// # Errors
///
/// It is no JSON, refers to a frame that it does not have, closes a frame that is not open, or takes too much.
pub(crate) fn decode(bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    // As many frames, profiles and events as its bytes allow: a profile takes 150 bytes, also one that is written as `{},`.
    let limits = Limits { values_max: u32::MAX, ..Limits::default() };
    let (file, _) = json::parse_request::<File<'_>>(bytes, &limits).map_err(|error| FileError::Document { error, offset: 0 })?;
    let broken = |problem| FileError::Broken { problem, format: "speedscope", offset: 0 };
    let mut stacks = NamedStacks::new(Profile::default(), bytes.len(), memory_bytes_max);
    let frames = file.shared.frames.kept.iter();
    let frames: Result<Vec<LocationId>, &str> =
        frames.map(|frame| stacks.new_location(frame.name.as_bytes(), frame.file.as_bytes(), frame.line.unwrap_or(0))).collect();
    let frames = frames.map_err(broken)?;
    for track in &file.profiles.kept {
        let unit = unit(&track.unit).ok_or_else(|| broken("a unit that speedscope does not have"))?;
        let mut weigher = Weigher { place: place_of(&mut stacks.profile, unit), each: unit.each, stacks: &mut stacks, frames: &frames };
        match &*track.kind {
            "sampled" => weigher.sampled(track),
            "evented" => weigher.evented(track),
            _ => Err("a profile that is neither sampled nor evented"),
        }
        .map_err(broken)?;
    }
    if stacks.profile.types.is_empty() {
        return Err(broken("a file without profiles"));
    }
    stacks.finish().map_err(broken)
}

/// A unit of the format, and what it becomes.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    unit: &'static str,
    each: f64,
}

fn unit(name: &str) -> Option<Unit> {
    let (name, unit, each) = match name {
        "" | "none" => ("samples", "count", 1.0),
        "bytes" => ("space", "bytes", 1.0),
        "nanoseconds" => ("time", "nanoseconds", 1.0),
        "microseconds" => ("time", "nanoseconds", 1e3),
        "milliseconds" => ("time", "nanoseconds", 1e6),
        "seconds" => ("time", "nanoseconds", 1e9),
        _ => return None,
    };
    Some(Unit { name, unit, each })
}

/// The place of a type. There are three at most.
fn place_of(profile: &mut Profile, unit: Unit) -> usize {
    let known = profile.types.iter().position(|kind| kind.name == unit.name);
    known.unwrap_or_else(|| {
        profile.types.push(ValueType { name: unit.name.to_owned(), unit: unit.unit.to_owned() });
        profile.types.len() - 1
    })
}

/// Adds the samples of one profile of the file.
struct Weigher<'f> {
    place: usize,
    each: f64,
    stacks: &'f mut NamedStacks,
    frames: &'f [LocationId],
}

impl Weigher<'_> {
    fn frame(&self, index: u32) -> Result<LocationId, &'static str> {
        self.frames.get(index as usize).copied().ok_or("a frame that is not in the table of frames")
    }

    /// Adds a stack, root first.
    fn add(&mut self, root_first: &[LocationId], weight: f64) -> Result<(), &'static str> {
        let weight = whole(weight * self.each).ok_or("a weight that is negative or no number")?;
        if weight == 0 {
            return Ok(());
        }
        let mut values = vec![0; self.place + 1];
        values[self.place] = weight;
        self.stacks.sample(root_first.iter().rev().copied(), size_of_val(root_first), values)
    }

    fn sampled(&mut self, track: &Track<'_>) -> Result<(), &'static str> {
        let (samples, weights) = (&track.samples.kept, &track.weights.kept);
        // Without weights each counts as one.
        if !weights.is_empty() && weights.len() != samples.len() {
            return Err("other numbers of samples and of weights");
        }
        let weights = weights.iter().copied().chain(std::iter::repeat(1.0));
        for (sample, weight) in samples.iter().zip(weights) {
            let stack: Result<Vec<LocationId>, &str> = sample.kept.iter().map(|index| self.frame(*index)).collect();
            self.add(&stack?, weight)?;
        }
        Ok(())
    }

    /// Between two events the open frames are the stack.
    fn evented(&mut self, track: &Track<'_>) -> Result<(), &'static str> {
        let (mut open, mut stack, mut last) = (Vec::new(), Vec::new(), None);
        for event in &track.events.kept {
            let passed = event.at - last.unwrap_or(event.at);
            if !stack.is_empty() {
                self.add(&stack, passed)?;
            }
            last = Some(event.at);
            match &*event.kind {
                "O" => {
                    open.push(event.frame);
                    stack.push(self.frame(event.frame)?);
                }
                "C" if open.pop() == Some(event.frame) => drop(stack.pop()),
                "C" => return Err("a frame that is closed and is not the innermost open one"),
                _ => return Err("an event that neither opens nor closes a frame"),
            }
        }
        match last {
            // Whoever forgot to close a frame meant the end.
            Some(last) if !stack.is_empty() && track.end > last => self.add(&stack, track.end - last),
            _ => Ok(()),
        }
    }
}

/// The nearest whole number; `None` for one that is negative, infinite or none.
#[expect(clippy::cast_possible_truncation, reason = "a rounded number that is not negative; the cast stops at the largest one")]
fn whole(number: f64) -> Option<i64> {
    (number.is_finite() && number >= 0.0).then(|| number.round() as i64)
}
