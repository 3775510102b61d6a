//! Which pole somebody fixed between two runs: what the first answer promised of it, and what is left of it in the second.
//!
//! A pole of the first run is found in the second one by its service, name, context and part, numbers and ids in them aside. The pole with the
//! largest loss of its saving is the fixed one, if at least half of that saving is gone, and it makes up at least half of what the second run is shorter.

use longpole_model::{Nanos, NodeId, PoleId, WaitKind};

use super::Report;
use super::diff::normalised;
use super::names::NamedPart;
use crate::schedule::poles::Pole;
use crate::schedule::saving::Saving;

/// A fixed pole saved at least this share of the first run.
const PROMISE_PERCENT_MIN: i64 = 2;

/// The pole that was fixed between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedPole {
    /// The pole, in the first run.
    pub pole: PoleId,
    /// What the first run would have saved without it.
    pub promised: Saving,
    /// What the second run would still save without it; `None` if it has no such pole.
    pub left: Option<Saving>,
}

/// Service, name, context, part: what makes two poles of two runs the same one.
type PoleKey = (String, String, Option<String>, Option<PartKey>);

/// What makes two parts the same: what it waits for, and the function; neither for everything else.
type PartKey = (Option<WaitKind>, Option<String>);

fn part_key(part: NamedPart<'_>) -> PartKey {
    match part {
        NamedPart::Computes(_, function) => (None, Some(function.function.clone())),
        NamedPart::Waits(kind, function) => (Some(kind), function.map(|(_, function)| function.function.clone())),
        NamedPart::Rest | NamedPart::Busy => (None, None),
    }
}

impl FixedPole {
    /// The pole of `before` that was fixed in `after`, if one was. A pole that contains others counts only where none of those was fixed.
    pub fn between(before: &Report, after: &Report) -> Option<FixedPole> {
        if after.wall() >= before.wall() {
            return None;
        }
        let gained = before.wall() - after.wall();
        let left: Vec<(PoleKey, Saving)> = after.poles().iter().map(|pole| (key(after, pole), pole.savings.if_zero)).collect();
        let fixed = |contains_others: bool| {
            before
                .poles()
                .ids()
                .filter(|&id| before.poles()[id].contains.is_some() == contains_others)
                .filter_map(|id| {
                    let pole = &before.poles()[id];
                    let key = key(before, pole);
                    let promised = pole.savings.if_zero;
                    let left = left.iter().find(|(other, _)| *other == key).map(|(_, saving)| *saving);
                    let lost = middle(promised) - left.map_or(Nanos::ZERO, middle);
                    // What explains little of the difference is no reason for it.
                    let is_fixed = lost.0.saturating_mul(2) >= middle(promised).0.max(gained.0)
                        && middle(promised).0.saturating_mul(100) >= before.wall().0.saturating_mul(PROMISE_PERCENT_MIN);
                    is_fixed.then_some((lost, FixedPole { pole: id, promised, left }))
                })
                .max_by_key(|(lost, _)| *lost)
                .map(|(_, fixed)| fixed)
        };
        fixed(false).or_else(|| fixed(true))
    }
}

fn middle(saving: Saving) -> Nanos {
    Nanos(saving.low.0.midpoint(saving.high.0))
}

fn key(report: &Report, pole: &Pole) -> PoleKey {
    // The commands of two runs are one operation, whatever they are called.
    let name = if pole.nodes.contains(&NodeId::RUN) { String::new() } else { normalised(&pole.name) };
    (pole.service.clone(), name, pole.context.as_deref().map(normalised), report.part_of(pole).map(part_key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    fn fixed(before: &str, after: &str) -> Option<(String, i64, Option<i64>)> {
        let [before, after] = [before, after].map(|input| Report::new(text::parse(input).unwrap()));
        let fixed = FixedPole::between(&before, &after)?;
        let millis = |saving: Saving| middle(saving).0 / 1_000_000;
        Some((before.poles()[fixed.pole].name.clone(), millis(fixed.promised), fixed.left.map(millis)))
    }

    #[test]
    fn the_pole_that_lost_most_of_its_saving_is_the_fixed_one() {
        let run = |db: u32, web: u32| {
            let end = 10 + db + web;
            format!("run x 0..{end}ms\n  plan 0..10ms\n  create-7 db 10..{}ms\n  create web {}..{end}ms\n", 10 + db, 10 + db)
        };
        assert_eq!(fixed(&run(60, 30), &run(10, 30)), Some(("create-7 db".to_owned(), 60, Some(10))));
        assert_eq!(fixed(&run(60, 30), &run(60, 1)).map(|(name, ..)| name), Some("create web".to_owned()));
    }

    #[test]
    fn a_longer_run_and_a_smaller_change_fixed_nothing() {
        let run = |db: u32| format!("run x 0..{db}ms\n  create db 0..{db}ms\n");
        assert_eq!(fixed(&run(60), &run(70)), None);
        assert_eq!(fixed(&run(60), &run(50)), None);
        assert_eq!(fixed(&run(60), &run(60)), None);
        // Most of the time that is gone was of something else.
        let both = |db: u32, web: u32| format!("run x 0..{}ms\n  create db 0..{db}ms\n  create web {db}..{}ms\n", db + web, db + web);
        assert_eq!(fixed(&both(10, 200), &both(1, 110)), None);
    }
}
