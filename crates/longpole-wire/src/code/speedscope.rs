//! Code as a file of speedscope: a profile for each thread, one stack after the other in order of time.
//!
//! ```text
//! "shared":{"frames":[{"name":"main"},{"name":"hash","file":"src/hash.rs"},{"name":"[lock: futex]"}]}
//! "profiles":[{"type":"sampled","name":"deploy (12) › gz-1 (14)","unit":"nanoseconds",
//!              "samples":[[0,1],[0,2]],"weights":[1001001,20000000], …}]
//! ```

use std::io::{self, Write};

use longpole_model::Loss;

use super::lanes::{Lane, Lanes, Moment};
use super::{Code, Functions, lose};
use crate::plain::{Members, push_display, write_list};

/// Where the format is described; readers know files by it.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes the file; returns what it has no place for.
pub fn encode(code: &Code<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let lanes = Lanes::new(code);
    let run = &code.recording.run;
    let mut functions = Functions::default();
    let mut text = String::new();
    let mut document = Members::begin(&mut text);
    document.text("$schema", SCHEMA);
    document.text("exporter", &format!("longpole {}", env!("CARGO_PKG_VERSION")));
    document.text("name", &run.command.join(" "));
    document.raw("activeProfileIndex", busiest(&lanes));
    document.member("profiles").push('[');
    for (number, lane) in lanes.list.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        profile(&mut text, code, lane, &mut functions);
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    text.push_str("],\"shared\":");
    let mut shared = Members::begin(&mut text);
    shared.list("frames", &functions.list, |out, (name, file)| {
        let mut frame = Members::begin(out);
        frame.text("name", name);
        if !file.is_empty() {
            frame.text("file", file);
        }
        frame.end();
    });
    shared.end();
    text.push('}');
    out.write_all(text.as_bytes())?;

    let mut losses = code.losses();
    lose(&mut losses, lanes.threads_without, "threads without a sample or a wait that was looked at");
    lose(&mut losses, code.recording.spans.len() as u64, "spans, and which samples and waits are whose: speedscope has stacks alone");
    lose(&mut losses, lanes.list.len() as u64, "gaps in the life of a thread: speedscope lays its stacks one behind the other");
    let lines = code.recording.locations.iter().filter(|location| location.frames.iter().any(|frame| frame.line > 0)).count();
    lose(&mut losses, lines as u64, "lines and addresses inside of functions: speedscope has a function's name and file");
    Ok(losses)
}

/// The lane that is shown first.
fn busiest(lanes: &Lanes<'_>) -> usize {
    let samples = |lane: &Lane<'_>| lane.moments.iter().filter(|moment| matches!(moment, Moment::Sample(_))).count();
    let of = lanes.list.iter().enumerate().max_by_key(|(number, lane)| (samples(lane), std::cmp::Reverse(*number)));
    of.map_or(0, |(number, _)| number)
}

fn profile<'a>(out: &mut String, code: &Code<'a>, lane: &Lane<'a>, functions: &mut Functions<'a>) {
    let recording = code.recording;
    let mut stacks = Vec::with_capacity(lane.moments.len());
    let mut weights = Vec::with_capacity(lane.moments.len());
    for moment in &lane.moments {
        match moment {
            Moment::Sample(number) => {
                let sample = &recording.samples[*number as usize];
                stacks.push(functions.of_stack(code, sample.stack));
                weights.push(sample.weight_nanos);
            }
            Moment::Wait(number) => {
                let wait = &recording.waits[*number as usize];
                stacks.push(functions.of_wait(code, wait));
                weights.push(wait.nanos());
            }
        }
    }
    let mut profile = Members::begin(out);
    profile.text("type", "sampled");
    profile.text("name", &format!("{} ({}) › {} ({})", lane.process_name(), lane.pid, lane.thread_name(), lane.tid));
    profile.text("unit", "nanoseconds");
    profile.raw("startValue", 0);
    profile.raw("endValue", weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)));
    profile.list("samples", &stacks, |out, stack| write_list(out, stack, push_display));
    profile.list("weights", &weights, push_display);
    profile.end();
}
