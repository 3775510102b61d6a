//! What a run would take without some of its poles.

use std::cmp::Reverse;
use std::fmt::Display;

use longpole_analysis::schedule::saving::Saving;
use longpole_analysis::{Handle, Report, words};
use longpole_model::{Nanos, PoleId};
use serde::Serialize;

use super::shared::{RangeNanos, range};

/// Poles that are tried as the next one: each takes a replay of the run.
const TRIED_MAX: usize = 8;

/// A run without some of its poles.
#[derive(Debug, Clone, Serialize)]
pub struct WhatIfView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handles of the poles that take no time.
    pub without: Vec<String>,
    /// How long the run took.
    pub wall_nanos: i64,
    /// How much earlier it would end. Savings of poles that run at the same time do not add up.
    pub saves_nanos: RangeNanos,
    /// How long it would take.
    pub wall_after_nanos: RangeNanos,
    /// The pole that would then save most, one that contains others only if none of those saves more; null if none of the next 8 does.
    pub next: Option<NextPoleView>,
}

/// The pole that saves most once others are gone.
#[derive(Debug, Clone, Serialize)]
pub struct NextPoleView {
    /// Its handle.
    pub handle: String,
    /// Operation.
    pub name: String,
    /// The piece of work that it belongs to, such as `create web-bundle`.
    pub context: Option<String>,
    /// The part of its own time that it is, such as `insert_one (disk)`; null for a pole that is its spans as a whole.
    pub part: Option<String>,
    /// Spans in the group.
    pub count: u64,
    /// What it would save beside them.
    pub saves_more_nanos: RangeNanos,
}

impl WhatIfView {
    /// The run without these poles; the handle that names none if there is one.
    pub fn new(recording: impl Display, report: &Report, without: &[&str]) -> Result<Self, String> {
        let pole_of = |handle: &&str| match handle.parse() {
            Ok(Handle::Pole(pole)) if report.poles().get(pole).is_some() => Ok(pole),
            _ => Err((*handle).to_owned()),
        };
        let mut poles: Vec<PoleId> = without.iter().map(pole_of).collect::<Result<_, _>>()?;
        poles.sort_unstable();
        poles.dedup();
        let saves = report.saves_without(&poles);
        let wall = report.wall();
        Ok(WhatIfView {
            recording: recording.to_string(),
            without: poles.iter().map(|&pole| Handle::Pole(pole).to_string()).collect(),
            wall_nanos: wall.0,
            saves_nanos: range(saves),
            wall_after_nanos: [(wall - saves.high).or_zero().0, (wall - saves.low).or_zero().0],
            next: next_pole(report, &poles, saves),
        })
    }
}

/// The pole that saves most beside these. What an outer pole saves is mostly what poles inside it save, so it comes only where none of those saves more.
fn next_pole(report: &Report, without: &[PoleId], saves: Saving) -> Option<NextPoleView> {
    let more = |pole: PoleId| {
        let together = report.saves_without(&[without, &[pole]].concat());
        let more = Saving { low: (together.low - saves.low).or_zero(), high: (together.high - saves.high).or_zero() };
        (more.low + more.high, Reverse(pole), more)
    };
    let best = |is_outer: bool| {
        let is_asked = |pole: &PoleId| !without.contains(pole) && report.poles()[*pole].contains.is_some() == is_outer;
        let tried = report.poles().ids().filter(is_asked).take(TRIED_MAX).map(more);
        tried.max_by_key(|(sum, pole, _)| (*sum, *pole)).filter(|(sum, ..)| *sum > Nanos::ZERO)
    };
    let (_, Reverse(pole), more) = best(false).or_else(|| best(true))?;
    let next = &report.poles()[pole];
    Some(NextPoleView {
        handle: Handle::Pole(pole).to_string(),
        name: next.name.clone(),
        context: next.context.clone(),
        part: report.part_of(next).map(words::part),
        count: next.nodes.len() as u64,
        saves_more_nanos: range(more),
    })
}
