//! What differs between two runs beside their times, in words.

use longpole_model::units::{TimeUnit, duration, range};

/// Characters of a command or a name in a sentence.
const NOTED_CHARS_MAX: usize = 36;

fn noted(text: &str) -> String {
    match text.char_indices().nth(NOTED_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Characters that two texts have in common, as far as a sentence shows them before the part that differs.
const COMMON_CHARS_MAX: usize = 16;

/// Two texts that differ, each cut so that the part that differs is there: what they have in common before it becomes `…`, from a component of a
/// path or a word on.
fn apart(a: &str, b: &str) -> (String, String) {
    let is_short = |text: &str| text.chars().nth(NOTED_CHARS_MAX).is_none();
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    let (same_bytes, same_chars) = same.fold((0, 0), |(bytes, chars), (c, _)| (bytes + c.len_utf8(), chars + 1));
    if is_short(a) && is_short(b) || same_chars <= COMMON_CHARS_MAX {
        return (noted(a), noted(b));
    }
    let common = &a[..same_bytes];
    let near = common.char_indices().nth(same_chars - COMMON_CHARS_MAX).map_or(same_bytes, |(place, _)| place);
    let start = common[near..].find(['/', ' ']).map_or(near, |place| near + place);
    let cut = |text: &str| format!("…{}", noted(&text[start..]));
    (cut(a), cut(b))
}

/// `different kinds of recordings: r1 is a recorded command, cpu.pprof an imported profile`.
pub fn kinds_differ((a, kind_a): (&str, &str), (b, kind_b): (&str, &str)) -> String {
    format!("different kinds of recordings: {} is {kind_a}, {} {kind_b}", noted(a), noted(b))
}

/// `the commands differ: make and ninja`.
pub fn commands_differ(a: &str, b: &str) -> String {
    let (a, b) = apart(a, b);
    format!("the commands differ: {a} and {b}")
}

/// `the machines differ: build-1 and build-2`.
pub fn machines_differ(a: &str, b: &str) -> String {
    let (a, b) = apart(a, b);
    format!("the machines differ: {a} and {b}")
}

/// `the sampling rates differ: 99 Hz and 997 Hz`.
pub fn rates_differ(a: u32, b: u32) -> String {
    format!("the sampling rates differ: {a} Hz and {b} Hz")
}

/// `empty.json took no time: 0.0ms`.
pub fn took_no_time(recording: &str) -> String {
    format!("{} took no time: {}", noted(recording), duration(0))
}

/// A pole that was fixed between two runs: `Fixing p1 of r1 (create web-bundle › compress_bundle) was to save 0.95s. In r2 it is too small to list, and
/// the run ended 0.93s earlier, other changes included.` `left` is what the second run would still save without it.
pub fn fixed_pole(
    (handle, name): (&str, &str),
    (before, promised): (&str, [i64; 2]),
    (after, left): (&str, Option<[i64; 2]>),
    gained: i64,
) -> String {
    let unit = TimeUnit::of(promised[1].max(gained));
    let left = left.map_or_else(|| "it is too small to list".to_owned(), |left| format!("{} of that is left", range(unit, left)));
    format!(
        "Fixing {handle} of {} ({name}) was to save {}. In {} {left}, and the run ended {} earlier, other changes included.",
        noted(before),
        range(unit, promised),
        noted(after),
        unit.show(gained)
    )
}

/// Two runs that took the same time: `r1 and r2 took the same time, within 1%: nothing to explain`.
pub fn no_difference(a: &str, b: &str, within_percent: u32) -> String {
    format!("{} and {} took the same time, within {within_percent}%", noted(a), noted(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_two_commands_is_there() {
        assert_eq!(commands_differ("make", "ninja -j 2"), "the commands differ: make and ninja -j 2");
        let python = |script: &str| format!("/root/.pyenv/versions/3.12.4/bin/python3 {script}");
        assert_eq!(
            commands_differ(&python("slow.py"), &python("fast.py")),
            "the commands differ: …/bin/python3 slow.py and …/bin/python3 fast.py"
        );
        let of = |version: &str| format!("/root/.pyenv/versions/{version}/bin/python3 -m shop.serve --workers 4 --port 8080");
        assert_eq!(
            commands_differ(&of("3.12.4"), &of("3.13.0")),
            "the commands differ: …/versions/3.12.4/bin/python3 -m shop… and …/versions/3.13.0/bin/python3 -m shop…"
        );
        assert_eq!(
            commands_differ("cargo build --workspace --features full", "cargo build --workspace --features full --release"),
            "the commands differ: … --features full and … --features full --release"
        );
    }

    #[test]
    fn texts_that_differ_at_once_lose_their_ends() {
        assert_eq!(
            commands_differ(&"é".repeat(40), &"è".repeat(40)),
            format!("the commands differ: {}… and {}…", "é".repeat(36), "è".repeat(36))
        );
        assert_eq!(
            commands_differ(&format!("{}1", "é".repeat(40)), &format!("{}2", "é".repeat(40))),
            format!("the commands differ: …{0}1 and …{0}2", "é".repeat(16))
        );
    }

    #[test]
    fn a_promise_stands_beside_what_was_gained() {
        let p1 = ("p1", "web-bundle › compress_bundle");
        let promised = ("r1", [950_000_000; 2]);
        assert_eq!(
            fixed_pole(p1, promised, ("r2", None), 930_000_000),
            "Fixing p1 of r1 (web-bundle › compress_bundle) was to save 950.0ms. In r2 it is too small to list, and the run ended 930.0ms earlier, \
             other changes included."
        );
        assert_eq!(
            fixed_pole(p1, ("r1", [950_000_000, 1_050_000_000]), ("r2", Some([20_000_000; 2])), 930_000_000),
            "Fixing p1 of r1 (web-bundle › compress_bundle) was to save 0.95s–1.05s. In r2 20.0ms of that is left, and the run ended 0.93s earlier, \
             other changes included."
        );
    }

    #[test]
    fn a_recording_is_of_a_kind() {
        let kinds = kinds_differ(("r10", "a recorded command"), ("r13", "an imported profile"));
        assert_eq!(kinds, "different kinds of recordings: r10 is a recorded command, r13 an imported profile");
    }
}
