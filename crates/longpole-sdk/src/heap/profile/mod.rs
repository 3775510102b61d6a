//! From samples to a profile in pprof. All of this runs on a thread that may allocate, long after the samples were taken.

mod elf;
mod encode;
mod functions;
mod mappings;
mod rows;

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) use self::functions::KnownFunctions;
use self::rows::HeapRow;
use super::recorder::{self, Allocated, Lost};
use crate::forks;

/// What a profile covers.
#[derive(Debug, Clone, Copy)]
struct Interval {
    end: Duration,
    length: Duration,
}

/// A profile of what is in use now, and what was allocated since the start.
pub(super) fn since_start() -> io::Result<Vec<u8>> {
    if recorder::rate() == 0 {
        return Err(io::Error::other(
            "heap profiling has not started; call longpole_sdk::heap::start() first, in a program whose allocator is longpole's",
        ));
    }
    if forks::is_forked_child() {
        return Err(io::Error::other("a forked child has no heap profile of its own"));
    }
    let live = recorder::live();
    // After the live ones: what they allocated is in the totals then.
    let totals = recorder::totals();
    let rows = rows::add_up(&live, &live, &totals, recorder::rate());
    let interval = Interval { end: now(), length: Duration::ZERO };
    Ok(encoded(&rows, interval, &mut KnownFunctions::default()))
}

/// What was allocated before an interval.
#[derive(Default)]
pub(super) struct Before(Vec<Allocated>);

/// A profile of what is in use now, and what was allocated since `before`; and what to give as `before` next time, if the profile arrives.
pub(super) fn since(before: &Before, length: Duration, known: &mut KnownFunctions) -> (Vec<u8>, Before) {
    let live = recorder::live();
    let (totals, recent) = recorder::take_recent();
    let rows = rows::add_up(&live, &recent, &rows::difference(&totals, &before.0), recorder::rate());
    (encoded(&rows, Interval { end: now(), length }, known), Before(totals))
}

/// What had no room so far, for people; `None` if all had.
pub(super) fn losses() -> Option<String> {
    describe(recorder::lost())
}

fn describe(lost: Lost) -> Option<String> {
    let mut told = Vec::new();
    if lost.live > 0 {
        let most = recorder::LIVE_MAX;
        told.push(format!(
            "{} blocks were sampled while {most} others were in use: the profile has them as allocated, not as in use",
            lost.live
        ));
    }
    if lost.stacks > 0 {
        told.push(format!("{} samples found no room for their stack: the profile has them as [stack not kept]", lost.stacks));
    }
    if lost.cut > 0 {
        told.push(format!("{} samples have more than {} frames: the outermost are missing", lost.cut, recorder::DEPTH));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

fn encoded(rows: &[HeapRow], interval: Interval, known: &mut KnownFunctions) -> Vec<u8> {
    let numbers: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.stack).collect();
    let stacks = numbers.into_iter().map(|number| (number, recorder::frames(number))).collect();
    let resolved = functions::resolve(&stacks, known);
    encode::profile(rows, &stacks, &resolved, interval, recorder::rate(), losses().as_deref(), recorder::span_name)
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_say_what_the_profile_has_instead() {
        assert_eq!(describe(Lost::default()), None);
        let said = describe(Lost { live: 2, stacks: 0, cut: 7 }).unwrap();
        let end = "as allocated, not as in use; 7 samples have more than 128 frames: the outermost are missing";
        assert!(said.starts_with("2 blocks were sampled while 98304 others") && said.ends_with(end), "{said}");
    }
}
