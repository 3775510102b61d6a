//! Code as folded stacks, for flamegraph.pl, inferno and speedscope: a line a stack, the process first, then from the root to the leaf,
//! then nanoseconds.
//!
//! ```text
//! deploy;main;compress;hash_block 12012012
//! ```

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Write};

use longpole_model::Loss;

use super::tracks::{Moment, Tracks};
use super::{Functions, HELD_FRAMES_MAX, ProfileExport, Room, lose};
use crate::number::row;

/// Bytes of the file: 1 GiB. A name stands in the line of each stack that it is in.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// Writes the lines, in order of their text; returns what they have no place for.
///
/// # Errors
///
/// Those of `out`.
pub fn encode(export: &ProfileExport<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    encode_up_to((HELD_FRAMES_MAX, TEXT_BYTES_MAX), export, out)
}

/// The same with room for `frames_max` frames of all stacks, and for `bytes_max` bytes.
pub(super) fn encode_up_to((frames_max, bytes_max): (u64, u64), export: &ProfileExport<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let (mut frames, mut bytes) = (Room::new(frames_max), Room::new(bytes_max));
    let recording = export.recording;
    let tracks = Tracks::new(export);
    let mut without_stack = 0;
    let mut sums: HashMap<_, u64> = HashMap::new();
    for track in &tracks.list {
        for moment in &track.moments {
            let (stack, nanos) = match moment {
                Moment::Sample(number) => {
                    let sample = &recording.samples[*number];
                    (Some(sample.stack), sample.weight_nanos)
                }
                Moment::Wait(number) => {
                    let wait = &recording.waits[*number];
                    (wait.stack, wait.nanos())
                }
            };
            let Some(stack) = stack else {
                without_stack += 1;
                continue;
            };
            let sum = sums.entry((track.process_name(), stack)).or_default();
            *sum = sum.saturating_add(nanos);
        }
    }
    let (mut functions, mut names) = (Functions::default(), NameTable::default());
    // By the numbers of names: a name of 4 KB may stand in each of a million lines, and in one line as often as its stack is deep.
    let mut lines: HashMap<Vec<u32>, u64> = HashMap::new();
    let mut of_function: Vec<u32> = Vec::new();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable();
    for ((process, stack), nanos) in sums {
        let mut line = vec![names.number(process)];
        let stack = functions.of_stack(export, stack).to_vec();
        if !frames.take(stack.len() + 1) {
            continue;
        }
        for (name, _) in &functions.list[of_function.len()..] {
            of_function.push(names.number(name));
        }
        line.extend(stack.into_iter().map(|function| of_function[function as usize]));
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(nanos);
    }
    let mut lines: Vec<(Vec<u32>, u64)> = lines.into_iter().collect();
    lines.sort_unstable_by(|(a, _), (b, _)| names.compare(a, b));
    let mut text = String::new();
    for (line, nanos) in lines {
        if !bytes.take(line.iter().map(|name| names.list[*name as usize].len() + 1).sum()) {
            continue;
        }
        text.clear();
        for (place, name) in line.iter().enumerate() {
            text.push_str(if place == 0 { "" } else { ";" });
            text.push_str(&names.list[*name as usize]);
        }
        writeln!(out, "{text} {nanos}")?;
    }
    let mut losses = export.losses();
    lose(&mut losses, without_stack, "waits whose stack longpole did not record");
    lose(&mut losses, frames.left_out + bytes.left_out, "stacks after the first 67 108 864 frames, or after 1 GiB of names");
    let all = (export.samples.len() + export.waits.len()) as u64 - without_stack;
    lose(&mut losses, all, "times, threads, spans and lines of samples and waits: folded stacks hold names and sums");
    Ok(losses)
}

/// Names as they are written, each once.
#[derive(Default)]
struct NameTable {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl NameTable {
    fn number(&mut self, name: &str) -> u32 {
        let name = escaped(name);
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = row(self.list.len());
        self.list.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The order of two lines as texts, by their first difference alone.
    fn compare(&self, a: &[u32], b: &[u32]) -> Ordering {
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let (Some(first_a), Some(first_b)) = (a.get(same), b.get(same)) else { return a.len().cmp(&b.len()) };
        let (name_a, name_b) = (&self.list[*first_a as usize], &self.list[*first_b as usize]);
        // Where one name begins with the other, a semicolon or nothing stands behind the shorter one.
        let ends = |line: &[u32]| (line.len() > same + 1).then_some(b';');
        name_a.bytes().chain(ends(a)).cmp(name_b.bytes().chain(ends(b)))
    }
}

/// A frame is ended by a semicolon, and a stack by a line.
fn escaped(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
