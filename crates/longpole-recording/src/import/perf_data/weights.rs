//! Which events are shown, and what time a sample of them stands for.

use longpole_wire::perf_data::{Event, EventKind, Period};

use super::super::unseen::ASSUMED_WEIGHT_NANOS;

/// For each event whether its samples are shown: the time on a CPU, else cycles, else what has most.
pub(super) fn shown(events: &[Event]) -> Vec<bool> {
    let most = |kind: Option<EventKind>| {
        let all = events.iter().enumerate().filter(move |(_, event)| event.samples > 0 && kind.is_none_or(|kind| event.kind == kind));
        all.max_by_key(|(place, event)| (event.samples, std::cmp::Reverse(*place))).map(|(place, _)| place)
    };
    let chosen = most(Some(EventKind::CpuTime)).or_else(|| most(Some(EventKind::Cycles))).or_else(|| most(None));
    // Cores of two kinds count cycles by an event each.
    let with = |event: &Event, chosen: usize| event.kind == EventKind::Cycles && events[chosen].kind == EventKind::Cycles;
    (0..events.len()).map(|place| chosen.is_some_and(|chosen| place == chosen || with(&events[place], chosen))).collect()
}

/// How long samples of an event stand for, where they all do for the same time.
pub(super) fn weight_of(event: &Event) -> Option<u64> {
    match (event.kind, event.period) {
        (_, Period::Frequency(rate)) => Some(1_000_000_000 / rate.max(1)),
        (EventKind::CpuTime, Period::Count(nanos)) => Some(nanos),
        (_, Period::Count(_)) => None,
    }
}

pub(super) fn weight(event: &Event, period: Option<u64>) -> u64 {
    match (event.kind, period) {
        (EventKind::CpuTime, Some(nanos)) => nanos,
        _ => weight_of(event).unwrap_or(ASSUMED_WEIGHT_NANOS),
    }
}
