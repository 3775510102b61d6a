//! What runs inside of the allocator: counts, samples, and recognises sampled blocks when they are freed.
//!
//! ```text
//!  allocate ─ countdown ─ not its turn ──────────────────────────────→ return
//!                  └ its turn: walk the stack ─ lock ─ stack table, recent, live samples
//!  free ───── filter ──── not one of them ───────────────────────────→ return
//!                  └ perhaps: two cache lines ─ live samples
//! ```
//!
//! Any allocation of the program may come here, also one before `main`, in a destructor of a thread's storage, in a signal handler or in a forked child.
//! So nothing here allocates, panics, waits for another thread longer than a few microseconds, or relies on the life of a thread. All memory is static. The
//! one lock is held by samples, for about 100 ns, and never while the stack is walked. Whoever holds it is marked as busy, so that a signal handler on
//! the same thread does not wait for it. A forked child takes no samples and does not lock; its frees find their blocks as before.

mod backtrace;
mod countdown;
mod live_samples;
mod recent_samples;
mod sample;
mod span_names;
mod stack_table;
mod weight;

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

pub(crate) use self::backtrace::DEPTH;
pub(crate) use self::live_samples::LIVE_MAX;
pub(crate) use self::sample::HeapSample;
pub(crate) use self::stack_table::{Allocated, NOT_KEPT};
pub(crate) use self::weight::objects;
use self::{backtrace::OwnFrame, live_samples::LiveSamples, recent_samples::RecentSamples, span_names::SpanNames, stack_table::StackTable};
use crate::locks::lock;
use crate::{forks, span_stack, thread_context};

static LIVE: LiveSamples = LiveSamples::new();
static STACKS: StackTable = StackTable::new();
static RECENT: RecentSamples = RecentSamples::new();
static NAMES: SpanNames = SpanNames::new();

/// Whether somebody takes recent samples.
static KEEPS_RECENT: AtomicBool = AtomicBool::new(false);

/// Samples that the table of live ones had no room for.
static LIVE_NOT_KEPT: AtomicU64 = AtomicU64::new(0);

/// Samples with deeper stacks than are kept.
static CUT: AtomicU64 = AtomicU64::new(0);

/// That of [`allocated`].
static OWN_FRAME: OwnFrame = OwnFrame::new();

/// Counts a block that is about to be allocated; whether [`allocated`] must hear of it.
#[inline(always)]
pub(super) fn is_due(bytes: usize) -> bool {
    countdown::is_due(bytes)
}

/// Whether a block that is about to be freed may be a sampled one, so that [`forget`] or [`take`] must hear of it.
#[inline(always)]
pub(super) fn may_be_sampled(address: usize) -> bool {
    LIVE.may_have(address)
}

/// A block is about to be freed.
#[inline(never)]
pub(super) extern "C" fn forget(address: usize) {
    take(address);
}

/// A block is about to be freed: what was kept of it, if it was sampled.
pub(super) fn take(address: usize) -> Option<HeapSample> {
    if !LIVE.may_have(address) {
        return None;
    }
    let (sample, place) = LIVE.take(address)?;
    // Where the lock is out of reach, a place stays taken, and the filter goes on saying "perhaps".
    if !countdown::is_busy() && !forks::is_forked_child() {
        alone(|| LIVE.forget(address, place));
    }
    Some(sample)
}

/// The block was not freed after all.
pub(super) fn put_back(address: usize, sample: &HeapSample) {
    if !countdown::is_busy() && !forks::is_forked_child() {
        alone(|| LIVE.put(address, sample));
    }
}

/// A block was allocated, none if the address is 0, and its countdown has ended.
///
/// `extern "C"`: a panic, which would be a bug of ours, ends the program here instead of unwinding out of an allocator.
#[cold]
#[inline(never)]
pub(super) extern "C" fn allocated(address: usize, bytes: usize) {
    let Some(rate) = countdown::begin_sample(bytes) else { return };
    if address != 0 {
        let here = 0_u8;
        let mut frames = [0; DEPTH];
        let (len, is_cut) = backtrace::walk(&mut frames, (&raw const here).addr(), &OWN_FRAME, countdown::thread_address());
        record(address, bytes, rate, &frames[..len], is_cut);
    }
    countdown::sampled(rate);
}

fn record(address: usize, bytes: usize, rate: u64, frames: &[usize], is_cut: bool) {
    let (context, name) = (thread_context::published(), span_stack::innermost_name());
    let objects = weight::objects(bytes, rate);
    alone(|| {
        let stack = STACKS.number(frames);
        STACKS.add(stack, objects, objects * bytes as f64);
        let sample = HeapSample { bytes, stack, name: NAMES.number(name), context };
        if KEEPS_RECENT.load(Relaxed) {
            RECENT.push(&sample);
        }
        let is_kept = LIVE.put(address, &sample);
        LIVE_NOT_KEPT.fetch_add(u64::from(!is_kept), Relaxed);
        CUT.fetch_add(u64::from(is_cut), Relaxed);
    });
}

/// Runs `body` while no other thread runs another one. std's lock takes no memory; a thread that waits for it sleeps, so one with a high priority does not keep
/// the owner from the CPU.
fn alone<T>(body: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    countdown::quietly(|| {
        let _one = lock(&ONE);
        body()
    })
}

/// Whether the program's allocator is ours.
pub(super) fn is_installed() -> bool {
    countdown::is_counted(|| drop(black_box(Box::new(0_u64))))
}

/// Starts sampling, once for each process; whether this call did. `keeps_recent` if somebody calls [`take_recent`].
pub(super) fn start(rate: u64, keeps_recent: bool) -> bool {
    KEEPS_RECENT.store(keeps_recent, Relaxed);
    countdown::start(rate)
}

/// Bytes of a sample on average; 0 before the start.
pub(super) fn rate() -> u64 {
    countdown::rate()
}

/// Samples of the blocks that are in use.
pub(super) fn live() -> Vec<HeapSample> {
    LIVE.copy(|part| alone(part))
}

/// What was allocated with each stack since the start, by its number.
pub(super) fn totals() -> Vec<Allocated> {
    take_totals(|| ())
}

/// The same, and the samples since the last call.
pub(super) fn take_recent() -> (Vec<Allocated>, Vec<HeapSample>) {
    // Some more may come before the lock is ours: they find room.
    let mut recent = Vec::with_capacity(alone(|| RECENT.len()) + 1_024);
    let totals = take_totals(|| RECENT.move_to(&mut recent));
    (totals, recent)
}

fn take_totals(with_them: impl FnOnce()) -> Vec<Allocated> {
    let mut totals = Vec::with_capacity(alone(|| STACKS.len()) + 1_024);
    alone(|| {
        with_them();
        // Without more memory: a stack that is newer waits for the next time.
        let room = totals.capacity();
        totals.extend(STACKS.allocated().take(room));
    });
    totals
}

/// The return addresses of a stack, innermost first.
pub(super) fn frames(number: u32) -> Vec<usize> {
    STACKS.frames(number)
}

/// The name of a span by its number.
pub(super) fn span_name(number: u32) -> &'static str {
    NAMES.name(number)
}

/// What had no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lost {
    /// Samples that are not in the memory in use.
    pub(super) live: u64,
    /// Samples without a stack.
    pub(super) stacks: u64,
    /// Samples whose outermost frames are missing.
    pub(super) cut: u64,
}

pub(super) fn lost() -> Lost {
    Lost { live: LIVE_NOT_KEPT.load(Relaxed), stacks: STACKS.not_kept.load(Relaxed), cut: CUT.load(Relaxed) }
}
