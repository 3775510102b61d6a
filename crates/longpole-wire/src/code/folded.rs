//! Code as folded stacks, for flamegraph.pl, inferno and speedscope: a line a stack, the process first, then from the root to the leaf,
//! then nanoseconds.
//!
//! ```text
//! deploy;main;compress;hash_block 12012012
//! ```

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use longpole_model::Loss;

use super::lanes::{Lanes, Moment};
use super::{Code, Functions, lose};

/// Writes the lines, in order of their text; returns what they have no place for.
pub fn encode(code: &Code<'_>, out: &mut dyn Write) -> io::Result<Vec<Loss>> {
    let recording = code.recording;
    let lanes = Lanes::new(code);
    let mut without_stack = 0;
    let mut sums: HashMap<_, u64> = HashMap::new();
    for lane in &lanes.list {
        for moment in &lane.moments {
            let (stack, nanos) = match moment {
                Moment::Sample(number) => {
                    let sample = &recording.samples[*number as usize];
                    (Some(sample.stack), sample.weight_nanos)
                }
                Moment::Wait(number) => {
                    let wait = &recording.waits[*number as usize];
                    (wait.stack, wait.nanos())
                }
            };
            let Some(stack) = stack else {
                without_stack += 1;
                continue;
            };
            let sum = sums.entry((lane.process_name(), stack)).or_default();
            *sum = sum.saturating_add(nanos);
        }
    }
    let mut functions = Functions::default();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for ((process, stack), nanos) in sums {
        let mut line = escaped(process);
        for function in functions.of_stack(code, stack) {
            line.push(';');
            line.push_str(&escaped(&functions.list[function as usize].0));
        }
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(nanos);
    }
    for (line, nanos) in lines {
        writeln!(out, "{line} {nanos}")?;
    }
    let mut losses = code.losses();
    lose(&mut losses, without_stack, "waits whose stack was not seen");
    let all = (code.samples.len() + code.waits.len()) as u64 - without_stack;
    lose(&mut losses, all, "times, threads, spans and lines of samples and waits: folded stacks hold names and sums");
    Ok(losses)
}

/// A frame is ended by a semicolon, and a stack by a line.
fn escaped(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
