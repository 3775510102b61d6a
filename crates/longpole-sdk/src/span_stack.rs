//! Which spans this thread is inside of, innermost last.

use std::cell::{Cell, RefCell};

use crate::span_context::ContextWords;

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
struct Entered {
    key: Key,
    context: ContextWords,
    /// The name that the program's source gives to the span; empty if there is none.
    #[cfg_attr(
        not(all(feature = "heap", target_os = "linux", not(target_arch = "arm"))),
        allow(dead_code, reason = "the allocator reads it")
    )]
    name: &'static str,
}

impl Entered {
    const NONE: Self = Self { key: Key { layer: 0, span: 0 }, context: ContextWords::NONE, name: "" };
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The outermost entries. Without a destructor, so that reaching them is a matter of an address: a pair of enter and exit
    /// takes some nanoseconds, and checks of that kind would be most of it.
    static ENTRIES: [Cell<Entered>; INLINE] = const { [const { Cell::new(Entered::NONE) }; INLINE] };
    /// Those past them.
    static DEEPER: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}

fn get(at: usize) -> Option<Entered> {
    match at.checked_sub(INLINE) {
        None => Some(ENTRIES.with(|entries| entries[at].get())),
        // Fails only while the thread tears its local storage down; there is nobody left to publish for then.
        Some(at) => DEEPER.try_with(|deeper| deeper.borrow().get(at).copied()).ok().flatten(),
    }
}

/// Writes an entry: one that is there, or the next one.
fn set(at: usize, entry: Entered) {
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

/// What the innermost span says; nothing outside of any.
pub(crate) fn innermost() -> ContextWords {
    DEPTH.get().checked_sub(1).and_then(get).map_or(ContextWords::NONE, |entry| entry.context)
}

/// The name of the innermost span; empty if it has none, and past the inline entries: the allocator calls this, and must not borrow the others.
#[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
pub(crate) fn innermost_name() -> &'static str {
    let top = DEPTH.get().wrapping_sub(1);
    if top < INLINE { ENTRIES.with(|entries| entries[top].get().name) } else { "" }
}

/// Adds a span, which is the innermost now.
#[inline]
pub(crate) fn push(key: Key, context: ContextWords, name: &'static str) {
    let depth = DEPTH.get();
    if depth < INLINE {
        ENTRIES.with(|entries| entries[depth].set(Entered { key, context, name }));
    } else {
        push_deep(depth, Entered { key, context, name });
    }
    DEPTH.set(depth + 1);
}

#[cold]
#[inline(never)]
fn push_deep(depth: usize, entry: Entered) {
    set(depth, entry);
}

/// Takes a span away, wherever it stands, and says what the innermost of those that remain says; `None` where it was not there.
#[inline]
pub(crate) fn remove(key: Key) -> Option<ContextWords> {
    let top = DEPTH.get().wrapping_sub(1);
    if top < INLINE && ENTRIES.with(|entries| entries[top].get().key) == key {
        DEPTH.set(top);
        let outer = top.wrapping_sub(1);
        Some(if outer < INLINE { ENTRIES.with(|entries| entries[outer].get().context) } else { ContextWords::NONE })
    } else {
        remove_any(key)
    }
}

/// [`remove`] from past the inline entries, out of order, or of a span that is not there.
#[cold]
#[inline(never)]
fn remove_any(key: Key) -> Option<ContextWords> {
    let depth = DEPTH.get();
    let at = (0..depth).rev().find(|at| get(*at).is_some_and(|entry| entry.key == key))?;
    for above in at + 1..depth {
        if let Some(entry) = get(above) {
            set(above - 1, entry);
        }
    }
    DEPTH.set(depth - 1);
    Some(innermost())
}

/// Gives a span other ids, wherever it stands.
pub(crate) fn replace(key: Key, context: ContextWords) {
    for at in 0..DEPTH.get() {
        if let Some(entry) = get(at).filter(|entry| entry.key == key) {
            set(at, Entered { context, ..entry });
        }
    }
}

/// A key for a guard that belongs to no subscriber.
#[inline]
pub(crate) fn next_guard_key() -> Key {
    let span = GUARDS.get();
    GUARDS.set(span.wrapping_add(1));
    Key { layer: 0, span }
}
