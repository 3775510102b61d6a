//! The current span of a thread: the innermost of those that it is inside of, which its record and its journal publish.

use crate::span_context::{ContextWords, SpanContext};
use crate::span_stack::{self, Key};
use crate::thread_context;

/// The span becomes the current one.
#[inline]
pub(crate) fn enter(key: Key, context: SpanContext) {
    enter_words(key, ContextWords::new(&context), "");
}

/// The same, of a span with a name in the program's source.
#[inline]
pub(crate) fn enter_named(key: Key, context: SpanContext, name: &'static str) {
    enter_words(key, ContextWords::new(&context), name);
}

/// The same.
#[inline]
pub(crate) fn enter_words(key: Key, context: ContextWords, name: &'static str) {
    span_stack::push(key, context, name);
    thread_context::publish(context);
}

/// The span is left; the innermost of those that remain is current. Spans may be left in any order.
#[inline]
pub(crate) fn exit(key: Key) {
    if let Some(innermost) = span_stack::remove(key) {
        thread_context::publish(innermost);
    }
}

/// Gives an entered span other ids, on this thread.
pub(crate) fn replace(key: Key, context: SpanContext) {
    replace_words(key, ContextWords::new(&context));
}

/// The same.
pub(crate) fn replace_words(key: Key, context: ContextWords) {
    span_stack::replace(key, context);
    thread_context::publish(span_stack::innermost());
}

/// The current span of this thread.
pub(crate) fn current() -> Option<SpanContext> {
    span_stack::innermost().context()
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
