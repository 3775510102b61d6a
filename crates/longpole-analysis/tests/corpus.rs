//! Story: traces of many shapes, each small enough to see its truth.
//! Guarantees: the first pole is the one that the trace's header argues for, and its saving is right, or in the range.
//!
//! A file of `corpus/` is a trace in the notation of `longpole_model::text` below four lines:
//!
//! ```text
//! # p1: NAME            of the first pole
//! # saves: 400ms        if it and everything it calls took no time (`own:` if its own work took none); `298..300ms` where the trace leaves
//!                       it open
//! # why: …
//! # source: …
//! ```

use std::path::Path;

use longpole_analysis::Report;
use longpole_model::{Id, PoleId, text};

/// Traces that there are at least.
const TRACES_MIN: usize = 40;

/// The value of a line of the header.
fn header<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": "))
}

/// `400ms`, `7s` or `298..300ms` in nanoseconds.
fn truth(value: &str) -> (i64, i64) {
    let (number, unit) = value.split_at(value.find(|c: char| c.is_ascii_alphabetic()).unwrap());
    let unit = if unit == "s" { 1_000_000_000 } else { 1_000_000 };
    let (low, high) = number.split_once("..").unwrap_or((number, number));
    [low, high].map(|number| number.parse::<i64>().unwrap() * unit).into()
}

#[test]
fn the_first_pole_is_the_true_one_and_its_saving_is_in_range() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= TRACES_MIN, "{} traces", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let trace = std::fs::read_to_string(file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy();
        let report = Report::new(text::parse(&trace).unwrap_or_else(|error| panic!("{name}: {error}")));
        let expected = header(&trace, "p1").unwrap();
        assert!(["why", "source"].iter().all(|key| header(&trace, key).is_some()), "{name} has no argument");
        let poles = report.poles();
        let Some(first) = poles.get(PoleId::at(0)) else {
            wrong.push(format!("{name}: no pole"));
            continue;
        };
        let (saving, (low, high)) = match header(&trace, "saves") {
            Some(value) => (first.savings.if_zero, truth(value)),
            None => (first.savings.own, truth(header(&trace, "own").unwrap())),
        };
        let is_in_range = saving.low.0 <= high && low <= saving.high.0;
        if first.name != expected || !is_in_range {
            let all = poles.iter().map(|pole| {
                let millis = |nanos: longpole_model::Nanos| nanos.0 as f64 / 1e6;
                let savings = &pole.savings;
                format!("{} {}..{}", pole.name, millis(savings.if_zero.low), millis(savings.if_zero.high))
            });
            wrong.push(format!(
                "{name}: {expected} saves {}..{} ms, found {:?}",
                low / 1_000_000,
                high / 1_000_000,
                all.collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}
