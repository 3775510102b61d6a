//! Which allocation is sampled: a thread counts down bytes to its next point, and draws a new distance there (`weight.rs`).

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::weight;
use crate::forks;

/// Bytes of a sample on average; 0 while sampling is off.
static RATE: AtomicU64 = AtomicU64::new(0);

/// Bytes until a thread checks again whether sampling is on.
const CHECK_BYTES: i64 = 64 << 10;

/// What a thread has of ours. Plain thread-local memory without a destructor: it is there before the first line of a thread and after the last.
struct Countdown {
    /// Bytes to the next point. A block that goes beyond is sampled.
    left: Cell<i64>,
    /// State of the generator; 0 before the thread has drawn its first distance.
    random: Cell<u64>,
    /// The thread is in the middle of a sample, or holds the lock: an allocation is now one of a signal handler, and counts for nobody.
    busy: Cell<bool>,
}

thread_local! {
    static COUNTDOWN: Countdown = const { Countdown { left: Cell::new(0), random: Cell::new(0), busy: Cell::new(false) } };
}

/// Counts an allocation; whether its countdown has ended. That is the whole cost of the others: a subtraction and a branch.
#[inline(always)]
pub(super) fn is_due(bytes: usize) -> bool {
    COUNTDOWN.with(|countdown| {
        // A layout has at most `isize::MAX` bytes.
        let left = countdown.left.get().wrapping_sub(bytes as i64);
        countdown.left.set(left);
        left < 0
    })
}

/// At the end of a countdown: the rate if this block is sampled, and then [`sampled`] ends the sample. Otherwise a new countdown has begun, or, as a
/// block of `realloc` comes here in any case, the old one goes on.
#[inline(always)]
pub(super) fn begin_sample(bytes: usize) -> Option<u64> {
    COUNTDOWN.with(|countdown| {
        if countdown.left.get() >= 0 {
            return None;
        }
        let rate = RATE.load(Relaxed);
        if rate == 0 || countdown.busy.get() || forks::is_forked_child() {
            countdown.left.set(CHECK_BYTES);
            return None;
        }
        if countdown.random.get() == 0 {
            countdown.random.set(seed(countdown));
            // The points lie from here on: whether one lies on this block, the countdown from before does not say.
            countdown.left.set(countdown.next_gap(rate).wrapping_sub(bytes as i64));
            if countdown.left.get() >= 0 {
                return None;
            }
        }
        countdown.busy.set(true);
        Some(rate)
    })
}

/// The sample is kept, and a new countdown begins.
#[inline(always)]
pub(super) fn sampled(rate: u64) {
    COUNTDOWN.with(|countdown| {
        countdown.busy.set(false);
        countdown.left.set(countdown.next_gap(rate));
    });
}

/// Whether this thread takes a sample or holds the lock: then what runs now is a signal handler.
pub(super) fn is_busy() -> bool {
    COUNTDOWN.with(|countdown| countdown.busy.get())
}

/// Where this thread's own memory is, which no other thread has.
pub(super) fn thread_address() -> usize {
    COUNTDOWN.with(|countdown| std::ptr::from_ref(countdown).addr())
}

/// Runs `body`, which takes the lock, so that a signal handler on this thread does not wait for it.
pub(super) fn quietly<T>(body: impl FnOnce() -> T) -> T {
    COUNTDOWN.with(|countdown| {
        let before = countdown.busy.replace(true);
        let result = body();
        countdown.busy.set(before);
        result
    })
}

/// Switches sampling on, once; whether it was off. This thread begins at once, another one with the first block of a new countdown.
pub(super) fn start(rate: u64) -> bool {
    let was_off = RATE.compare_exchange(0, rate.max(1), Relaxed, Relaxed).is_ok();
    COUNTDOWN.with(|countdown| countdown.left.set(0));
    was_off
}

/// Bytes of a sample on average; 0 while sampling is off.
pub(super) fn rate() -> u64 {
    RATE.load(Relaxed)
}

/// Whether `allocate` is counted, which it is if the program's allocator is ours.
pub(super) fn is_counted(allocate: impl FnOnce()) -> bool {
    COUNTDOWN.with(|countdown| {
        let before = countdown.left.replace(i64::MAX / 2);
        allocate();
        countdown.left.replace(before) != i64::MAX / 2
    })
}

impl Countdown {
    fn next_gap(&self, rate: u64) -> i64 {
        // xorshift64*: small, and enough for distances.
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        weight::gap(state.wrapping_mul(0x2545_f491_4f6c_dd1d), rate)
    }
}

/// A seed that no two threads share, without a system call: a number for each thread, and where it and the program lie in memory.
fn seed(countdown: &Countdown) -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    let number = THREADS.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = std::ptr::from_ref(countdown).addr() as u64 ^ (std::ptr::from_ref(&RATE).addr() as u64).rotate_left(32);
    // splitmix64's last steps; a state of zero would stay.
    let mixed = (number ^ place).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb) | 1
}
