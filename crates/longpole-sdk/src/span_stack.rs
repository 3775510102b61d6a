//! Which spans this thread is inside of, innermost last. The innermost is the current one: it is what the context record says.

use std::cell::{Cell, RefCell};

use crate::context::{ContextWords, SpanContext};
use crate::thread_context;

/// Whose span it is. A program may have several subscribers, whose span numbers overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// Number of the layer that entered it; 0 for [`enter_span_context`](crate::enter_span_context).
    pub(crate) layer: u32,
    /// The subscriber's number of the span.
    pub(crate) span: u64,
}

/// Spans that a thread is inside of at a time without memory of its own for it. More are rare, and cost a little more.
const INLINE: usize = 8;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    context: ContextWords,
}

impl Entry {
    const NONE: Self = Self { key: Key { layer: 0, span: 0 }, context: ContextWords::NONE };
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The outermost entries. Without a destructor, so that reaching them is a matter of an address: a pair of enter and exit
    /// takes some nanoseconds, and checks of that kind would be most of it.
    static ENTRIES: [Cell<Entry>; INLINE] = const { [const { Cell::new(Entry::NONE) }; INLINE] };
    /// Those past them.
    static DEEPER: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}

fn get(at: usize) -> Option<Entry> {
    match at.checked_sub(INLINE) {
        None => Some(ENTRIES.with(|entries| entries[at].get())),
        // Fails only while the thread tears its local storage down; there is nobody left to publish for then.
        Some(at) => DEEPER.try_with(|deeper| deeper.borrow().get(at).copied()).ok().flatten(),
    }
}

/// Writes an entry: one that is there, or the next one.
fn set(at: usize, entry: Entry) {
    match at.checked_sub(INLINE) {
        None => ENTRIES.with(|entries| entries[at].set(entry)),
        Some(at) => {
            let _ = DEEPER.try_with(|deeper| {
                let mut deeper = deeper.borrow_mut();
                match deeper.get_mut(at) {
                    Some(slot) => *slot = entry,
                    None => deeper.push(entry),
                }
            });
        }
    }
}

/// The current span.
fn innermost() -> ContextWords {
    DEPTH.get().checked_sub(1).and_then(get).map_or(ContextWords::NONE, |entry| entry.context)
}

/// The span becomes the current one.
#[inline]
pub(crate) fn enter(key: Key, context: SpanContext) {
    enter_words(key, ContextWords::new(&context));
}

/// The same.
#[inline]
pub(crate) fn enter_words(key: Key, context: ContextWords) {
    let depth = DEPTH.get();
    if depth < INLINE {
        ENTRIES.with(|entries| entries[depth].set(Entry { key, context }));
    } else {
        enter_deep(depth, Entry { key, context });
    }
    DEPTH.set(depth + 1);
    thread_context::publish(context);
}

#[cold]
#[inline(never)]
fn enter_deep(depth: usize, entry: Entry) {
    set(depth, entry);
}

/// The span is left; the innermost of those that remain is current. Spans may be left in any order.
#[inline]
pub(crate) fn exit(key: Key) {
    let top = DEPTH.get().wrapping_sub(1);
    if top < INLINE && ENTRIES.with(|entries| entries[top].get().key) == key {
        DEPTH.set(top);
        let outer = top.wrapping_sub(1);
        thread_context::publish(if outer < INLINE { ENTRIES.with(|entries| entries[outer].get().context) } else { ContextWords::NONE });
    } else {
        exit_any(key);
    }
}

/// [`exit`] from past the inline entries, out of order, or of a span that is not entered.
#[cold]
#[inline(never)]
fn exit_any(key: Key) {
    let depth = DEPTH.get();
    let Some(at) = (0..depth).rev().find(|at| get(*at).is_some_and(|entry| entry.key == key)) else { return };
    for above in at + 1..depth {
        if let Some(entry) = get(above) {
            set(above - 1, entry);
        }
    }
    DEPTH.set(depth - 1);
    thread_context::publish(innermost());
}

/// Gives an entered span other ids, on this thread.
pub(crate) fn replace(key: Key, context: SpanContext) {
    replace_words(key, ContextWords::new(&context));
}

/// The same.
pub(crate) fn replace_words(key: Key, context: ContextWords) {
    for at in 0..DEPTH.get() {
        if get(at).is_some_and(|entry| entry.key == key) {
            set(at, Entry { key, context });
        }
    }
    thread_context::publish(innermost());
}

/// The current span of this thread.
pub(crate) fn current() -> Option<SpanContext> {
    innermost().context()
}

/// Says again what is current, after the record has changed its place.
pub(crate) fn republish() {
    thread_context::publish_in_record(innermost());
}

/// A key for a guard that belongs to no subscriber.
#[inline]
pub(crate) fn next_guard_key() -> Key {
    let span = GUARDS.get();
    GUARDS.set(span.wrapping_add(1));
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

    #[test]
    fn deep_nesting_is_no_different() {
        let letters = "abcdefghijklmnopqrstuvwxyz";
        let capitals = letters.to_uppercase();
        let backwards: String = capitals.chars().rev().collect();
        let after_each_exit: String = letters.chars().rev().skip(1).collect();
        check(&format!("{letters}{backwards}"), &format!("{letters}{after_each_exit}-"));
        // The outermost first: the innermost stays current to the last.
        check(&format!("{letters}{capitals}"), &format!("{letters}{}-", "z".repeat(25)));
        // Shrink and grow again over the border between the inline entries and the others.
        check("abcdefghijJIHGxyzZYXFEDCBA", "abcdefghijihgfxyzyxfedcba-");
    }
}
