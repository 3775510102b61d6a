//! What was read off a wall clock that somebody set, put where it belongs; and the words for it.

use longpole_model::clock_steps::{ClockStep, Eras, is_step};
use longpole_model::time::Clock;
use longpole_model::units::duration;
use longpole_model::{Loss, LossKind, Span};

use super::Assembler;

/// Steps that are reported one by one.
const STEPS_NAMED: usize = 8;

impl Assembler {
    /// The stretches between steps of the wall clock, for times that do not come to this.
    pub fn eras(&self) -> Eras {
        Eras::of(&Clock::new(self.anchors.clone()))
    }

    /// Moves spans to where they would be if nobody had set the wall clock, and says what was done. The clock of the recording is the one
    /// that goes on.
    pub(super) fn undo_steps(&mut self) -> Clock {
        let clock = Clock::new(std::mem::take(&mut self.anchors));
        let steps = clock.steps();
        if steps.is_empty() {
            return clock;
        }
        let eras = Eras::of(&clock);
        let unsure = self.move_spans(&eras);
        let clock = clock.without_steps();
        for step in steps.iter().take(STEPS_NAMED) {
            let at = clock.to_unix(step.after).map_or(0, |at| at.nanos_since(self.run.start).max(0));
            for detail in self.words(step, &duration(at)) {
                self.loss(Loss::new(LossKind::ClockStepped, 1, detail));
            }
        }
        if steps.len() > STEPS_NAMED {
            let more = (steps.len() - STEPS_NAMED) as u64;
            self.loss(Loss::new(LossKind::ClockStepped, more, "more steps of the wall clock than the recording lists one by one"));
        }
        if eras.is_one() {
            let detail = "the wall clock was set too often to correct span times; spans keep the times that they reported";
            self.loss(Loss::new(LossKind::ClockStepped, 1, detail));
        }
        if unsure > 0 {
            let detail = "spans whose times are ambiguous because the wall clock was set back: they may be placed wrongly";
            self.loss(Loss::new(LossKind::ClockStepped, unsure, detail));
        }
        clock
    }

    /// Returns of how many spans it is not sure where they belong.
    fn move_spans(&mut self, eras: &Eras) -> u64 {
        let mut unsure = 0;
        for row in 0..self.spans.len() {
            let head = self.spans.heads()[row];
            let placed = eras.place_span(head.start, head.end);
            let is_moved = (placed.start, placed.end) != (head.start, head.end);
            if !is_moved && placed.is_sure {
                continue;
            }
            let mut span = self.spans.get(row);
            // Another machine has a clock of its own.
            if span.resource.attributes.get_str("host.name").is_some_and(|host| !host.is_empty() && host != self.run.host) {
                continue;
            }
            unsure += u64::from(!placed.is_sure);
            if is_moved {
                move_events(&mut span, eras);
                (span.start, span.end) = (placed.start, placed.end);
                self.spans.replace(row, &span);
            }
        }
        unsure
    }

    /// What happened: the machine slept, the clock was set, or both.
    fn words(&self, step: &ClockStep, at: &str) -> Vec<String> {
        let slept = self.sleeps.iter().filter(|(time, _)| step.before < *time && *time <= step.after).map(|(_, nanos)| *nanos);
        let slept = i64::try_from(slept.fold(0, u64::saturating_add)).unwrap_or(i64::MAX);
        let set = step.nanos.saturating_sub(slept);
        let mut words = Vec::new();
        if slept > 0 {
            words.push(format!("the machine slept for {}, {at} after the start; no duration here counts it", duration(slept)));
        }
        if is_step(set) {
            let direction = if set < 0 { "back" } else { "forward" };
            let by = duration(set.saturating_abs());
            words.push(format!(
                "the wall clock was set {direction} by {by}, {at} after the start; longpole corrects times read from it later"
            ));
        }
        words
    }
}

/// Events of a span lie in the era of its start, or, where a step falls into the span, in the one in which they lie inside of it.
fn move_events(span: &mut Span, eras: &Eras) {
    let placed = eras.place_span(span.start, span.end);
    let (by_start, by_end) = (placed.start.nanos_since(span.start), placed.end.nanos_since(span.end));
    for event in &mut span.events {
        let inside = |by: &i64| (placed.start..=placed.end).contains(&event.time.plus_nanos(*by));
        let by = [by_start, by_end].into_iter().find(inside).unwrap_or(by_start);
        event.time = event.time.plus_nanos(by);
    }
}
