//! What stands below a pole, in words.

use std::fmt::Write;

use longpole_model::units::{TimeUnit, duration, range};

use crate::code::functions::Function;
use crate::report::names::NamedPart;
use crate::tree::forest::base_name;
use crate::words::file::telling_file;
use crate::words::phrase::Words;
use crate::words::wait::wait_kind;

/// What a pole contains or where it is, then its reason: `contains p4; 95% on-CPU, most of it (1.11s) in compress_bundle`, `prog.py:4; 100% on-CPU`.
/// `contains` is the handle of the other pole, and whether all of it is inside.
pub fn pole(contains: Option<(&str, bool)>, place: Option<(&str, u32)>, reason: Words) -> Words {
    let words = contains
        .map_or_else(Words::default, |(handle, all)| Words::plain(format!("contains {}{handle}; ", if all { "" } else { "part of " })));
    let words = match place {
        Some((file, line)) => words.text(format!("{}:{line}; ", base_name(file))),
        None => words,
    };
    words.words(reason)
}

/// A pole in one line: `context › name ×count › part`.
pub fn name_of_pole(context: Option<&str>, name: &str, count: u64, part: Option<&str>) -> String {
    let mut text = match context {
        Some(context) if !name.contains(context) => format!("{context} › {name}"),
        _ => name.to_owned(),
    };
    if count > 1 {
        let _ = write!(text, " ×{count}");
    }
    if let Some(part) = part.filter(|part| !part.is_empty()) {
        let _ = write!(text, " › {part}");
    }
    text
}

/// The part of own time that a pole is: `parse_rules`, `insert_one (disk)`, `asleep`, `main in prog.py`, `the rest`; empty for all but idle time.
pub fn part(part: NamedPart<'_>) -> String {
    match part {
        NamedPart::Computes(_, function) => named(function),
        NamedPart::Waits(kind, None) => wait_kind(kind).to_owned(),
        NamedPart::Waits(kind, Some((_, function))) => format!("{} ({})", named(function), kind.as_str()),
        NamedPart::Rest => "the rest".to_owned(),
        NamedPart::Busy => String::new(),
    }
}

fn named(function: &Function) -> String {
    let name = &function.function;
    telling_file(name, &function.file).map_or_else(|| name.clone(), |file| format!("{name} in {file}"))
}

/// What is on the critical path if a pole takes no time: `it cannot save more: without it, create bucket (s9) is on the path`. If its
/// dependencies are inferred, that is not certain. `name` and `within`, the longer operation that it is a part of, come with their handles.
pub fn limit((name, handle): (&str, &str), within: Option<(&str, &str)>, is_certain: bool) -> String {
    let within = within.map_or_else(String::new, |(name, handle)| format!(" in {name} ({handle})"));
    match is_certain {
        true => format!("it cannot save more: without it, {name} ({handle}){within} is on the path"),
        false => format!("it probably cannot save more: without it, {name} ({handle}){within} would be on the path"),
    }
}

/// What a pole saves after those above it, if that is more than it saves alone: `once those above are fixed, it saves 0.73s`. That may be more than
/// it takes on the path: then most of it is what it does beside the path.
pub fn saves_after(unit: TimeUnit, nanos: i64, on_path: i64) -> String {
    let beside = if nanos / 2 > on_path { "; until then, most of its work runs beside the critical path" } else { "" };
    format!("once those above are fixed, it saves {}{beside}", unit.show(nanos))
}

/// What a pole still saves after those above it, if that is much less than it saves alone: `once those above are fixed, it saves only 30.0ms more`.
pub fn saves_less_after(unit: TimeUnit, nanos: i64) -> String {
    if unit.show(nanos) == unit.show(0) {
        return "once those above are fixed, it saves nothing more".to_owned();
    }
    format!("once those above are fixed, it saves only {} more", unit.show(nanos))
}

/// The process that a pole without a child waits for: `the other side is in process bank (pid 12): asleep, in look_up`. `callee` is what
/// [`callee`](crate::words::callee) says of it.
pub fn other_side(callee: &str) -> String {
    format!("the other side is {callee}")
}

/// What it saves to fix some poles: `Fixing p1 and p2 saves 104.7ms: 972.7ms → 868.0ms`. `before` and `after` are how long the run takes.
pub fn fixing(handles: &[String], saves: [i64; 2], before: i64, after: [i64; 2]) -> String {
    let unit = TimeUnit::of(before);
    let poles = match handles {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    format!("Fixing {poles} saves {}: {} → {}", range(unit, saves), unit.show(before), range(unit, after))
}

/// No pole is left that would save anything once others are fixed.
pub const NOTHING_MORE: &str = "No remaining pole saves anything.";

/// Poles that a list omits: `3 more, 0.12s on path`.
pub fn more_poles(poles: usize, on_path: i64) -> String {
    format!("{poles} more, {} on path", duration(on_path))
}

/// Time of the path in no pole: `0.30s of the path belongs to no pole: it is between operations, or in the command itself`.
pub fn between_poles(nanos: i64) -> String {
    format!("{} of the path belongs to no pole: it is between operations, or in the command itself", duration(nanos))
}

/// Time of the path in which processes had nothing to do: `2.90s of the path is idle: a thread waited for work to arrive`.
pub fn idle_on_path(nanos: i64) -> String {
    format!("{} of the path is idle: a thread waited for work to arrive", duration(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_dependencies_limit_a_saving_for_certain() {
        assert_eq!(limit(("create db", "s9"), None, true), "it cannot save more: without it, create db (s9) is on the path");
        let within = limit(("basename", "s31"), Some(("bash", "s12")), false);
        assert_eq!(within, "it probably cannot save more: without it, basename (s31) in bash (s12) would be on the path");
    }

    #[test]
    fn fixing_some_poles_shortens_the_run() {
        let fixed = |handles: &[&str], saves, after| {
            let handles: Vec<String> = handles.iter().map(|&handle| handle.to_owned()).collect();
            fixing(&handles, saves, 972_700_000, after)
        };
        assert_eq!(fixed(&["p1"], [0; 2], [972_700_000; 2]), "Fixing p1 saves 0.0ms: 972.7ms → 972.7ms");
        assert_eq!(fixed(&["p1", "p2", "p4"], [104_700_000; 2], [868_000_000; 2]), "Fixing p1, p2 and p4 saves 104.7ms: 972.7ms → 868.0ms");
        assert_eq!(
            fixed(&["p1", "p2"], [4_700_000, 104_700_000], [868_000_000, 968_000_000]),
            "Fixing p1 and p2 saves 4.7ms–104.7ms: 972.7ms → 868.0ms–968.0ms"
        );
    }

    #[test]
    fn a_saving_beyond_the_time_on_the_path_is_beside_it() {
        let after = |on_path| saves_after(TimeUnit::Seconds, 870_000_000, on_path);
        assert_eq!(after(900_000_000), "once those above are fixed, it saves 0.87s");
        assert_eq!(
            after(71_000_000),
            "once those above are fixed, it saves 0.87s; until then, most of its work runs beside the critical path"
        );
    }

    #[test]
    fn a_saving_that_others_save_too_has_a_sentence() {
        assert_eq!(saves_less_after(TimeUnit::Seconds, 30_000_000), "once those above are fixed, it saves only 30.0ms more");
        assert_eq!(saves_less_after(TimeUnit::Seconds, 0), "once those above are fixed, it saves nothing more");
    }

    #[test]
    fn what_a_pole_contains_stands_before_its_reason() {
        let reason = || Words::plain("95% on-CPU");
        assert_eq!(pole(None, Some(("/src/prog.py", 4)), reason()).to_string(), "prog.py:4; 95% on-CPU");
        assert_eq!(pole(Some(("p4", true)), None, reason()).to_string(), "contains p4; 95% on-CPU");
        assert_eq!(pole(Some(("p4", false)), None, reason()).to_string(), "contains part of p4; 95% on-CPU");
    }
}
