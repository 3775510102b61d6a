//! What differs between two runs beside their times, in words.

use longpole_model::units::duration;

/// Characters of a command or a name in a sentence.
const NOTED_CHARS_MAX: usize = 36;

fn noted(text: &str) -> String {
    match text.char_indices().nth(NOTED_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// `different kinds of recordings: r1 is of a command, cpu.pprof of a profile`.
pub fn kinds_differ((a, kind_a): (&str, &str), (b, kind_b): (&str, &str)) -> String {
    format!("different kinds of recordings: {} is of {kind_a}, {} of {kind_b}", noted(a), noted(b))
}

/// `the commands differ: make and ninja`.
pub fn commands_differ(a: &str, b: &str) -> String {
    format!("the commands differ: {} and {}", noted(a), noted(b))
}

/// `the machines differ: build-1 and build-2`.
pub fn machines_differ(a: &str, b: &str) -> String {
    format!("the machines differ: {} and {}", noted(a), noted(b))
}

/// `the sampling rates differ: 99 Hz and 997 Hz`.
pub fn rates_differ(a: u32, b: u32) -> String {
    format!("the sampling rates differ: {a} Hz and {b} Hz")
}

/// `empty.json took no time: 0.0ms`.
pub fn took_no_time(recording: &str) -> String {
    format!("{} took no time: {}", noted(recording), duration(0))
}
