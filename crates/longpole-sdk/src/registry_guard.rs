//! Where a span cannot be made it is left out and counted, instead of a panic in the program.
//!
//! The registry of `tracing-subscriber` panics on a thread that tears its local storage down and above 4,096 threads at a time, and
//! what it does on a thread must not be interrupted by itself, as a signal handler does that makes a span. A [`RegistryGuard`] stands in
//! front of the registry and checks first.
//!
//! ```text
//!  span! ─► RegistryGuard: has this thread an end, a place, and is it not inside? ─► layers ─► Above ─► Registry
//!              └ no: the span is switched off, and counted                             └ the registry is done: user code may follow
//! ```

#![allow(unsafe_code, reason = "a subscriber that stands in front of another one must hand on `downcast_raw`")]

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::thread::LocalKey;
use std::time::Instant;

use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Dispatch, Event, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::layer::Context;

use crate::locks::lock;

/// Threads that have spans at a time, at most. The registry numbers 4,096; some are left for those that use it without us, and
/// for those whose number is on its way back.
const THREADS_MAX: usize = 4_096 - 256;

/// Spans that a thread leaves when it ends inside of them, at most.
const LEFT_MAX: usize = 10_000;

/// Spans that wait for a thread that may close them, at most.
const UNCLOSED_MAX: usize = 1 << 16;

static LIVE_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Spans of this process that could not be made, or not be closed.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Bits of a thread's state. It has a number in the registry's slab of spans.
const NUMBERED: u8 = 1;
/// It has a stack of entered spans in the registry.
const STACKED: u8 = 2;
/// It tears its local storage down.
const ENDS: u8 = 4;

/// Work that must not be interrupted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Outside,
    Inside,
    /// A span is closed, and with it, from inside of the registry, its parents.
    Closing,
}

thread_local! {
    // Without destructors: they are read to the very end.
    static THREAD: Cell<u8> = const { Cell::new(0) };
    static WORK: Cell<Work> = const { Cell::new(Work::Outside) };
    static CLOSED_AT: Cell<Option<Instant>> = const { Cell::new(None) };
    // Threads destroy first what they made last. So each of these is made right after what it watches, and goes right before.
    static BEFORE_NUMBER: EndOfThread = const { EndOfThread };
    static BEFORE_STACK: EndOfThread = const { EndOfThread };
    static BEFORE_EXIT: EndOfThread = const { EndOfThread };
}

/// Spans that were not made.
pub(crate) fn refused() -> u64 {
    REFUSED.load(Relaxed)
}

/// Whether this thread may make a span now.
#[inline]
pub(crate) fn admits() -> bool {
    (THREAD.get() & (NUMBERED | ENDS) == NUMBERED && WORK.get() == Work::Outside) || admits_newcomer()
}

#[cold]
fn admits_newcomer() -> bool {
    THREAD.get() & (NUMBERED | ENDS) == 0 && WORK.get() == Work::Outside && LIVE_THREADS.load(Relaxed) < THREADS_MAX
}

/// Whether this thread may look into the registry now, as an event does for its span. It needs no number for that.
#[inline]
fn may_look() -> bool {
    !is_ending() && WORK.get() == Work::Outside
}

/// Whether a span or an event may be made; counts a span that may not.
#[inline]
pub(crate) fn admits_callsite(metadata: &Metadata<'_>) -> bool {
    if !metadata.is_span() {
        return may_look();
    }
    let admitted = admits();
    if !admitted {
        REFUSED.fetch_add(1, Relaxed);
    }
    admitted
}

/// Whether this thread tears its local storage down, or has done so.
#[inline]
pub(crate) fn is_ending() -> bool {
    THREAD.get() & ENDS != 0
}

/// This thread has made or closed a span: it has a number from now on.
#[inline]
pub(crate) fn has_number() {
    if THREAD.get() & (NUMBERED | ENDS) == 0 {
        LIVE_THREADS.fetch_add(1, Relaxed);
        watch(NUMBERED, &BEFORE_NUMBER);
    }
}

/// This thread has entered a span.
#[inline]
pub(crate) fn has_stack() {
    if THREAD.get() & (STACKED | ENDS) == 0 {
        watch(STACKED, &BEFORE_STACK);
    }
}

/// The thread that sets us up is often the one that ends the process: in what runs at the exit its storage is gone.
pub(crate) fn watch_exit() {
    watch(0, &BEFORE_EXIT);
}

#[cold]
fn watch(what: u8, end: &'static LocalKey<EndOfThread>) {
    let ends = if end.try_with(|_| ()).is_ok() { 0 } else { ENDS };
    THREAD.set(THREAD.get() | what | ends);
}

struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        if is_ending() {
            return;
        }
        // Left behind in the registry, they would be those of the next thread that gets this one's stack there.
        tracing::dispatcher::get_default(|dispatch| {
            for _ in 0..LEFT_MAX {
                match dispatch.current_span().id() {
                    Some(id) => dispatch.exit(id),
                    None => return,
                }
            }
        });
        if THREAD.replace(THREAD.get() | ENDS) & NUMBERED != 0 {
            LIVE_THREADS.fetch_sub(1, Relaxed);
        }
    }
}

/// Work that must not be interrupted by itself, until it is dropped.
pub(crate) struct Inside {
    was: Work,
}

impl Inside {
    #[inline]
    pub(crate) fn begin() -> Self {
        Self { was: WORK.replace(Work::Inside) }
    }

    #[inline]
    fn closing() -> Self {
        Self { was: WORK.replace(Work::Closing) }
    }

    /// Runs code of the program in between, which may make spans.
    pub(crate) fn pause<T>(code: impl FnOnce() -> T) -> T {
        let _until = Inside { was: WORK.replace(Work::Outside) };
        code()
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        WORK.set(self.was);
    }
}

fn is_inside() -> bool {
    WORK.get() == Work::Inside
}

/// When the span that is being closed was left for good, where that was before now.
pub(crate) fn closed_at() -> Option<Instant> {
    CLOSED_AT.get()
}

/// Stands right above the registry: once a span is in it, layers may run code of the program.
pub(crate) struct Above;

impl<S: Subscriber> tracing_subscriber::Layer<S> for Above {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        WORK.set(Work::Outside);
    }
}

/// A subscriber with a guard in front of it.
pub(crate) struct RegistryGuard<S> {
    inner: S,
    /// Spans whose last thread may not close them, and when it would have.
    unclosed: Mutex<Vec<(Id, Instant)>>,
    has_unclosed: AtomicBool,
}

impl<S: Subscriber> RegistryGuard<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, unclosed: Mutex::default(), has_unclosed: AtomicBool::new(false) }
    }

    /// Keeps the span for another thread to close.
    #[cold]
    fn leave_unclosed(&self, id: Id) {
        // Whoever interrupts us does not come here.
        let _inside = Inside::begin();
        let mut unclosed = lock(&self.unclosed);
        if unclosed.len() < UNCLOSED_MAX {
            unclosed.push((id, Instant::now()));
            self.has_unclosed.store(true, Relaxed);
        } else {
            REFUSED.fetch_add(1, Relaxed);
        }
    }

    #[cold]
    fn close_unclosed(&self) {
        let unclosed = {
            let _inside = Inside::begin();
            let mut unclosed = lock(&self.unclosed);
            self.has_unclosed.store(false, Relaxed);
            std::mem::take(&mut *unclosed)
        };
        for (id, at) in unclosed {
            CLOSED_AT.set(Some(at));
            let _inside = Inside::closing();
            self.inner.try_close(id);
        }
        CLOSED_AT.set(None);
    }
}

impl<S: Subscriber> Subscriber for RegistryGuard<S> {
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        self.inner.on_register_dispatch(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let interest = self.inner.register_callsite(metadata);
        // `enabled` decides each time whether this thread may make spans.
        if interest.is_always() { Interest::sometimes() } else { interest }
    }

    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // On a thread that ends not even the filters may run: they use thread-local storage, too.
        admits_callsite(metadata) && self.inner.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.inner.max_level_hint()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        if self.has_unclosed.load(Relaxed) {
            self.close_unclosed();
        }
        let _inside = Inside::begin();
        let id = self.inner.new_span(attributes);
        has_number();
        id
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if !is_inside() {
            self.inner.record(span, values);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if !is_inside() {
            self.inner.record_follows_from(span, follows);
        }
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        may_look() && self.inner.event_enabled(event)
    }

    fn event(&self, event: &Event<'_>) {
        if may_look() {
            self.inner.event(event);
        }
    }

    #[inline]
    fn enter(&self, span: &Id) {
        // On a thread that ends there is nothing to keep it in; whoever interrupts us leaves it, too, before we go on.
        if !may_look() {
            return;
        }
        let _inside = Inside::begin();
        self.inner.enter(span);
        has_stack();
    }

    #[inline]
    fn exit(&self, span: &Id) {
        if !may_look() {
            return;
        }
        let _inside = Inside::begin();
        self.inner.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.inner.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        if is_inside() {
            // In the middle of the same work: it stays open.
            REFUSED.fetch_add(1, Relaxed);
            return false;
        }
        if THREAD.get() & (NUMBERED | ENDS) == 0 && LIVE_THREADS.load(Relaxed) >= THREADS_MAX {
            self.leave_unclosed(id);
            return false;
        }
        if self.has_unclosed.load(Relaxed) {
            self.close_unclosed();
        }
        let _inside = Inside::closing();
        let is_closed = self.inner.try_close(id);
        has_number();
        is_closed
    }

    // SAFETY: the pointers are to `self` and to what it owns, each of the requested type, and valid as long as `self`.
    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        // SAFETY: what the inner one promises of its pointers is what is promised here.
        unsafe { self.inner.downcast_raw(id) }
    }

    fn current_span(&self) -> Current {
        if is_ending() { Current::none() } else { self.inner.current_span() }
    }
}
