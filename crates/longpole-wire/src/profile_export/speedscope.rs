//! Code as a file of speedscope: a profile for each thread, one stack after the other in order of time.
//!
//! ```text
//! "shared":{"frames":[{"name":"main"},{"name":"hash","file":"src/hash.rs"},{"name":"[lock: futex]"}]}
//! "profiles":[{"type":"sampled","name":"deploy (12) › gz-1 (14)","unit":"nanoseconds",
//!              "samples":[[0,1],[0,2]],"weights":[1001001,20000000], …}]
//! ```

use std::io::{self, Write};

use longpole_model::{Loss, StackId};

use super::tracks::{Moment, Track, Tracks};
use super::{FRAMES_MAX, Functions, NO_STACK, ProfileExport, Room, lose, wait_frame};
use crate::json_writer::{Members, push_display};

/// Where the format is described; readers know files by it.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Text that is gathered before it is written.
const TEXT_BYTES: usize = 64 << 10;

/// Writes the file; returns what it has no place for.
///
/// # Errors
///
/// Those of `out`.
pub fn encode(export: &ProfileExport<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    encode_up_to(FRAMES_MAX, export, out)
}

/// The same with room for `frames_max` frames of all stacks.
pub(super) fn encode_up_to(frames_max: u64, export: &ProfileExport<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let mut room = Room::new(frames_max);
    let tracks = Tracks::new(export);
    let run = &export.recording.run;
    let mut functions = Functions::default();
    let mut text = String::new();
    let mut document = Members::begin(&mut text);
    document.text("$schema", SCHEMA);
    document.text("exporter", &format!("longpole {}", env!("CARGO_PKG_VERSION")));
    document.text("name", &run.command.join(" "));
    document.raw("activeProfileIndex", busiest(&tracks));
    document.member("profiles").push('[');
    for (number, track) in tracks.list.iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        let rows = rows(export, track, &mut functions, &mut room);
        profile(&mut text, export, track, &rows, &mut functions, out)?;
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

    let mut losses = export.losses();
    lose(&mut losses, tracks.threads_without, "threads without a sample or a sampled wait");
    lose(
        &mut losses,
        export.recording.spans.len() as u64,
        "spans, and the links of samples and waits to spans: speedscope holds only stacks",
    );
    lose(&mut losses, tracks.list.len() as u64, "gaps in a thread's timeline: speedscope places stacks back to back");
    let lines = export.recording.locations.iter().filter(|location| location.frames.iter().any(|frame| frame.line > 0)).count();
    lose(&mut losses, room.left_out, "samples and waits after the first 134 217 728 frames: each repeats the frames of its stack");
    lose(&mut losses, lines as u64, "lines and addresses inside of functions: speedscope has a function's name and file");
    Ok(losses)
}

/// The track that is shown first.
fn busiest(tracks: &Tracks<'_>) -> usize {
    let samples = |track: &Track<'_>| track.moments.iter().filter(|moment| matches!(moment, Moment::Sample(_))).count();
    let of = tracks.list.iter().enumerate().max_by_key(|(number, track)| (samples(track), std::cmp::Reverse(*number)));
    of.map_or(0, |(number, _)| number)
}

/// A stack that stands for some time.
struct StackRow {
    /// `None` where it was not seen.
    stack: Option<StackId>,
    /// What is waited for, as a function.
    wait: Option<u32>,
    weight: u64,
}

fn rows<'a>(export: &ProfileExport<'a>, track: &Track<'a>, functions: &mut Functions<'a>, room: &mut Room) -> Vec<StackRow> {
    let recording = export.recording;
    let mut rows: Vec<StackRow> = Vec::new();
    let mut before = None;
    for moment in &track.moments {
        match moment {
            Moment::Sample(number) => {
                let sample = &recording.samples[*number];
                let (own, weight) = (Some((sample.time, sample.stack)), sample.weight_nanos);
                match rows.last_mut().filter(|_| own == before) {
                    // Nothing comes between two samples of one moment. In a file without times that is each with the next.
                    Some(row) => row.weight = row.weight.saturating_add(weight),
                    None if room.take(functions.of_stack(export, sample.stack).len()) => {
                        rows.push(StackRow { stack: Some(sample.stack), wait: None, weight });
                        before = own;
                    }
                    None => before = None,
                }
            }
            Moment::Wait(number) => {
                let wait = &recording.waits[*number];
                let frames = match wait.stack {
                    Some(stack) => functions.of_stack(export, stack).len(),
                    None => 1,
                };
                if room.take(frames + 1) {
                    let label = functions.number(wait_frame(wait).into(), "");
                    rows.push(StackRow { stack: wait.stack, wait: Some(label), weight: wait.nanos() });
                }
                before = None;
            }
        }
    }
    rows
}

fn profile<'a>(
    text: &mut String,
    export: &ProfileExport<'a>,
    track: &Track<'a>,
    rows: &[StackRow],
    functions: &mut Functions<'a>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let no_stack = rows.iter().any(|row| row.stack.is_none()).then(|| [functions.number(NO_STACK.into(), "")]);
    let mut profile = Members::begin(text);
    profile.text("type", "sampled");
    profile.text("name", &format!("{} ({}) › {} ({})", track.process_name(), track.pid, track.thread_name(), track.tid));
    profile.text("unit", "nanoseconds");
    profile.raw("startValue", 0);
    profile.raw("endValue", rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.weight)));
    let samples = profile.member("samples");
    for (number, row) in rows.iter().enumerate() {
        samples.push(if number == 0 { '[' } else { ',' });
        let stack = match row.stack {
            Some(stack) => functions.of_stack(export, stack),
            None => no_stack.as_ref().map_or(&[][..], |stack| stack),
        };
        samples.push('[');
        for (place, function) in stack.iter().chain(&row.wait).enumerate() {
            samples.push_str(if place == 0 { "" } else { "," });
            push_display(samples, function);
        }
        samples.push(']');
        if samples.len() > TEXT_BYTES {
            out.write_all(samples.as_bytes())?;
            samples.clear();
        }
    }
    samples.push_str(if rows.is_empty() { "[]" } else { "]" });
    profile.list("weights", rows, |out, row| push_display(out, row.weight));
    profile.end();
    out.write_all(text.as_bytes())?;
    text.clear();
    Ok(())
}
