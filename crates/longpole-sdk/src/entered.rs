//! Which spans this thread is inside of, innermost last. The innermost is the current one: it is what the context record says.

use std::cell::{Cell, RefCell};

use crate::context::SpanContext;
use crate::thread_context;

/// Whose span it is. A program may have several subscribers, whose span numbers overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// Number of the layer that entered it; 0 for [`enter_span_context`](crate::enter_span_context).
    pub(crate) layer: u32,
    /// The subscriber's number of the span.
    pub(crate) span: u64,
}

thread_local! {
    static ENTERED: RefCell<Vec<(Key, SpanContext)>> = const { RefCell::new(Vec::new()) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}

/// The span becomes the current one.
#[inline]
pub(crate) fn enter(key: Key, context: SpanContext) {
    // Fails only while the thread tears its local storage down; there is nothing left to publish for then.
    if ENTERED.try_with(|entered| entered.borrow_mut().push((key, context))).is_ok() {
        thread_context::publish(Some(&context));
    }
}

/// The span is left; the innermost of those that remain is current. Spans may be left in any order.
#[inline]
pub(crate) fn exit(key: Key) {
    let _ = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        if let Some(at) = entered.iter().rposition(|(other, _)| *other == key) {
            entered.remove(at);
            thread_context::publish(entered.last().map(|(_, context)| context));
        }
    });
}

/// Gives an entered span other ids, on this thread.
pub(crate) fn replace(key: Key, context: SpanContext) {
    let _ = ENTERED.try_with(|entered| {
        for (other, slot) in entered.borrow_mut().iter_mut() {
            if *other == key {
                *slot = context;
            }
        }
    });
    republish();
}

/// The current span of this thread.
pub(crate) fn current() -> Option<SpanContext> {
    ENTERED.try_with(|entered| entered.borrow().last().map(|(_, context)| *context)).ok().flatten()
}

/// Says again what is current, after the record has changed its place.
pub(crate) fn republish() {
    thread_context::publish(current().as_ref());
}

/// A key for a guard that belongs to no subscriber.
pub(crate) fn next_guard_key() -> Key {
    let span = GUARDS.try_with(|guards| guards.replace(guards.get().wrapping_add(1))).unwrap_or(0);
    Key { layer: 0, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(steps: &str, expected: &str) {
        let context = |name: u8| SpanContext { trace_id: [1; 16], span_id: [name; 8], flags: 1 };
        let mut seen = String::new();
        for step in steps.as_bytes() {
            let key = Key { layer: 1, span: u64::from(step.to_ascii_lowercase()) };
            if step.is_ascii_lowercase() {
                enter(key, context(*step));
            } else {
                exit(key);
            }
            seen.push(current().map_or('-', |context| char::from(context.span_id[0])));
        }
        assert_eq!(seen, expected, "{steps}");
    }

    /// Small letter: enter; capital: exit. Below: the current span after each step.
    #[test]
    fn the_innermost_span_that_is_still_entered_is_current() {
        check("abBA", "aba-");
        check("abAB", "abb-");
        check("aaAA", "aaa-");
        check("abaBAA", "abaaa-");
        check("A", "-");
        check("aBA", "aa-");
    }
}
