//! Folded stacks, as `stackcollapse-perf.pl`, `inferno-collapse-*`, `py-spy record -f raw` and many more write them.
//!
//! ```text
//! # comment
//! main;work;hash 12         root first; 12 samples, or nanoseconds, or bytes: the file does not say
//! main;work;read file 0.5   the number is what stands behind the last space
//! ```

use std::collections::HashMap;

use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{Frame, LocationId, Text};

use super::parts::{Budget, LOCATION_BYTES, SAMPLE_BYTES};
use super::{Numbers, Profile, ProfileSample, ValueType, parts, push_location};
use crate::error::FileError;
use crate::limits::{NAME_BYTES_MAX, PROFILE_SAMPLES_MAX, STACK_FRAMES_MAX};

/// Lines that are read to know the format.
const LINES_LOOKED_AT: usize = 20;

/// Parts of a sample that are kept where numbers are no whole ones.
const PARTS: f64 = 1e6;

/// A stack and its number; `None` where the line is none.
fn parse(line: &[u8]) -> Option<(&[u8], Number)> {
    let space = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    let (stack, number) = (line[..space].trim_ascii(), &line[space + 1..]);
    let number = std::str::from_utf8(number).ok()?;
    // What else reads as a number, `inf` and `1e9`, is a name in such a file.
    if stack.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let whole = number.parse::<i64>().ok().map(Number::Whole);
    Some((stack, whole.or_else(|| number.parse::<f64>().ok().map(Number::Broken))?))
}

/// A number in parts; `None` where it is too large.
#[expect(clippy::cast_possible_truncation, reason = "what is less than a part is cut, and the number is below the largest")]
fn millionths(value: f64) -> Option<i64> {
    let parts = value * PARTS;
    (parts < i64::MAX as f64).then_some(parts as i64)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Whole(i64),
    Broken(f64),
}

/// Lines that say something, each with its number, counted from 1, and its offset.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8], u64)> {
    let mut offset = 0;
    let all = bytes.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let at = offset;
        offset += line.len() as u64;
        (line.trim_ascii(), at)
    });
    (1u64..).zip(all).filter(|(_, (line, _))| !line.is_empty() && !line.starts_with(b"#")).map(|(number, (line, at))| (number, line, at))
}

/// Whether every line at the beginning is a stack with a number.
pub(super) fn is_one(first_bytes: &[u8]) -> bool {
    let looked_at: Vec<&[u8]> = lines(first_bytes).map(|(_, line, _)| line).take(LINES_LOOKED_AT).collect();
    // The last line may go on behind what was given.
    let whole = if looked_at.len() > 1 { &looked_at[..looked_at.len() - 1] } else { &looked_at[..] };
    !whole.is_empty() && whole.iter().all(|line| parse(line).is_some() && std::str::from_utf8(line).is_ok())
}

pub(super) fn decode(bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    decode_by(parse, bytes, memory_bytes_max)
}

/// The same of lines without a number: a stack on each, once for each sample.
pub(crate) fn decode_lines(bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    decode_by(|line| Some((line, Number::Whole(1))), bytes, memory_bytes_max)
}

/// Reads a line: a stack and its number, or `None`.
type ParseLine = fn(&[u8]) -> Option<(&[u8], Number)>;

fn decode_by(parse: ParseLine, bytes: &[u8], memory_bytes_max: u64) -> Result<Profile, FileError> {
    let mut budget = Budget::new(memory_bytes_max);
    let mut samples = Vec::new();
    for (number, line, offset) in lines(bytes) {
        if samples.len() >= PROFILE_SAMPLES_MAX as usize {
            return Err(FileError::Line { line: number, offset, problem: "more than 2,097,152 stacks" });
        }
        let (stack, value) = parse(line).ok_or(FileError::Line { line: number, offset, problem: "expected a stack and then a number" })?;
        samples.push((stack, value, (number, offset)));
    }
    let is_whole = samples.iter().all(|(_, number, _)| matches!(number, Number::Whole(_)));
    let unit = if is_whole { "count" } else { "millionths" };
    let mut profile = Profile { types: vec![ValueType { name: "samples".to_owned(), unit: unit.to_owned() }], ..Profile::default() };
    let (mut numbers, mut known, mut stack, mut has_memory) = (Numbers::default(), HashMap::new(), Vec::new(), true);
    for (names, number, (line, offset)) in samples {
        stack.clear();
        let frames = names.rsplit(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
        // One more than are kept of a stack, so that it shows.
        for name in frames.take(STACK_FRAMES_MAX + 1) {
            let location = *known.entry(name).or_insert_with(|| {
                has_memory &= budget.has(LOCATION_BYTES + name.len());
                location(&mut profile, name)
            });
            stack.push(location);
        }
        has_memory &= budget.has(SAMPLE_BYTES + size_of_val(&stack[..]));
        if !has_memory {
            return Err(FileError::Line { line, offset, problem: "all before it takes more memory than there is for it" });
        }
        let value = match number {
            Number::Whole(value) if is_whole => Some(value),
            Number::Whole(value) => millionths(value as f64),
            Number::Broken(value) => millionths(value),
        };
        // To stop at the largest number there is would make of two that differ the same.
        let value = value.ok_or(FileError::Line { line, offset, problem: "a number that is too large to count in millionths" })?;
        let stack = numbers.stack(&mut profile, &stack);
        profile.samples.push(ProfileSample { stack, values: vec![value], ..ProfileSample::default() });
    }
    profile.stacks = numbers.into_stacks();
    Ok(profile)
}

fn location(profile: &mut Profile, name: &[u8]) -> LocationId {
    let function = parts::cut(name, NAME_BYTES_MAX);
    let frame = Frame { function: function.into(), file: Text::new(), line: 0, reason: None };
    push_location(profile, LocationKind::Named { runtime: Runtime::Other, address: None }, vec![frame])
}
