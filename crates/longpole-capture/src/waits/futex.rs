//! The thread that the waiters of a futex wait for, from the bytes at the futex.
//!
//! ```text
//! futex(word, WAIT, value, timeout)         the word, and the bytes after it
//!
//! glibc mutex       | 2 | count | owner | users | kind |        2: locked with waiters; the owner has it
//! robust, musl      | waiters bit, owner |                      the word is the owner
//! priority-inherit  | waiters bit, owner |                      the same; the kernel itself reads it
//! pthread_join      | thread |  value: the same                 the kernel clears it when that thread ends, and wakes the waiters
//! ```
//!
//! A number counts if it is the id of a living thread of the process. Other locks (Rust's, Go's, Python's, condition variables) do not hold
//! their owner. Sources: futex(2); glibc's `struct __pthread_mutex_s`.

use longpole_model::{AbsAddr, Futex};

/// Bytes to read from the word on: a mutex up to its kind.
pub(crate) const WORD_BYTES: usize = 20;

/// The word of a glibc mutex with waiters.
const LOCKED_WITH_WAITERS: u32 = 2;

/// Kinds of mutexes that are locked this way: type (2 bits), shared between processes, with and without elision. Robust ones and those
/// with priority inheritance have the owner in the word.
const PLAIN_KINDS: u32 = 0b11 | 128 | 256 | 512;

/// Above every thread id: `PID_MAX_LIMIT` of Linux.
const THREADS_MAX: u32 = 1 << 22;

/// A call that waits at a futex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) address: u64,
    command: i32,
    is_private: bool,
    /// Whether the timeout is by the wall clock.
    is_wall_clock: bool,
    /// The value of the word when it blocked.
    value: u32,
}

impl Call {
    /// The call with these arguments; `None` if it does not wait.
    pub(crate) fn of(arguments: &[u64; 6]) -> Option<Call> {
        let [address, operation, value, ..] = *arguments;
        let operation = operation as i32;
        let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
        let waits = [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAIT_REQUEUE_PI, libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2];
        waits.contains(&command).then_some(Call {
            address,
            command,
            is_private: operation & libc::FUTEX_PRIVATE_FLAG != 0,
            is_wall_clock: operation & libc::FUTEX_CLOCK_REALTIME != 0 || command == libc::FUTEX_LOCK_PI,
            value: value as u32,
        })
    }

    /// The futex that thread `tid` waits at, and whether it waits for the end of a thread. `memory` holds the bytes from the word on; `is_thread`
    /// says whether a number is the id of a thread of the process.
    pub(crate) fn futex(&self, tid: u32, memory: &[u8], is_thread: impl Fn(u32) -> bool) -> (Futex, bool) {
        let at = |place: usize| Some(u32::from_ne_bytes(*memory.get(place..)?.first_chunk()?));
        // Most words are no thread id, and asking takes longer than reading them.
        let is_thread = |number: u32| (1..THREADS_MAX).contains(&number) && is_thread(number);
        let named = |number: u32| Some(number).filter(|number| is_thread(*number));
        let futex = |holder| Futex { address: AbsAddr(self.address), holder };
        let Some(word) = at(0) else { return (futex(None), false) };
        let owner = word & libc::FUTEX_TID_MASK;
        match self.command {
            libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 => return (futex(named(owner)), false),
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if word == self.value => {}
            _ => return (futex(None), false),
        }
        if !self.is_private && word != tid && is_thread(word) {
            return (futex(Some(word)), true);
        }
        if word & libc::FUTEX_WAITERS != 0 {
            return (futex(named(owner)), false);
        }
        let mutex = at(8).zip(at(12)).zip(at(16));
        let holder = mutex.and_then(|((owner, users), kind)| {
            let is_mutex = word == LOCKED_WITH_WAITERS && users > 0 && kind & !PLAIN_KINDS == 0;
            named(owner).filter(|_| is_mutex)
        });
        (futex(holder), false)
    }

    /// When the wait times out, by CLOCK_MONOTONIC: `timeout` is the argument in nanoseconds, `since` the beginning of the wait, and `wall_nanos`
    /// how far CLOCK_REALTIME is ahead.
    pub(crate) fn deadline(&self, timeout: u64, since: u64, wall_nanos: u64) -> u64 {
        match self.command {
            libc::FUTEX_WAIT => since.saturating_add(timeout),
            _ if self.is_wall_clock => timeout.saturating_sub(wall_nanos),
            _ => timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: u64 = libc::FUTEX_PRIVATE_FLAG as u64;
    const BITSET: u64 = libc::FUTEX_WAIT_BITSET as u64;
    const WALL_CLOCK: u64 = libc::FUTEX_CLOCK_REALTIME as u64;
    const WAITERS: u32 = libc::FUTEX_WAITERS;

    /// What thread 7 of a process with threads 7, 8 and 9 waits for: the holder, and whether it is to end.
    #[track_caller]
    fn check(operation: u64, value: u32, words: &[u32], expected: (Option<u32>, bool)) {
        let memory: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let call = Call::of(&[0x1000, operation, value.into(), 0, 0, 0]).unwrap();
        let (futex, is_join) = call.futex(7, &memory, |tid| (7..10).contains(&tid));
        assert_eq!((futex.address, (futex.holder, is_join)), (AbsAddr(0x1000), expected), "{operation} {value} {words:?}");
    }

    #[test]
    fn a_mutex_of_glibc_names_its_owner() {
        check(PRIVATE, 2, &[2, 0, 8, 1, 0], (Some(8), false));
        check(PRIVATE, 2, &[2, 1, 8, 1, 1], (Some(8), false));
        check(PRIVATE | BITSET | WALL_CLOCK, 2, &[2, 0, 8, 1, 2], (Some(8), false));
        check(0, 2, &[2, 0, 8, 1, 128], (Some(8), false));
        // It waits for itself for ever.
        check(PRIVATE, 2, &[2, 0, 7, 1, 0], (Some(7), false));
    }

    #[test]
    fn bytes_that_are_no_mutex_name_nobody() {
        for words in [
            &[2, 0, 1_000, 1, 0][..],
            &[2, 0, 8, 0, 0],
            &[2, 0, 8, 1, 16],
            &[2, 0, 8, 1, 0x7f00],
            &[2, 0, 8, 1],
            &[2],
            &[],
            // It was given back meanwhile.
            &[0, 0, 8, 1, 0],
        ] {
            check(PRIVATE, 2, words, (None, false));
        }
        check(PRIVATE, 1, &[1, 0, 8, 1, 0], (None, false));
        check(libc::FUTEX_WAIT_REQUEUE_PI as u64 | PRIVATE, 2, &[2, 0, 8, 1, 0], (None, false));
    }

    #[test]
    fn a_word_that_is_the_owner_counts_if_there_are_waiters() {
        check(PRIVATE, 8 | WAITERS, &[8 | WAITERS], (Some(8), false));
        check(PRIVATE, 8, &[8], (None, false));
        check(PRIVATE, 1_000 | WAITERS, &[1_000 | WAITERS], (None, false));
        check(PRIVATE | libc::FUTEX_LOCK_PI as u64, 0, &[9 | WAITERS], (Some(9), false));
        check(PRIVATE | libc::FUTEX_LOCK_PI2 as u64, 0, &[9], (Some(9), false));
    }

    #[test]
    fn a_join_waits_for_the_end_of_a_thread() {
        check(BITSET | WALL_CLOCK, 8, &[8], (Some(8), true));
        check(0, 9, &[9], (Some(9), true));
        check(0, 9, &[0], (None, false));
        check(0, 7, &[7], (None, false));
        check(PRIVATE, 9, &[9], (None, false));
    }

    #[test]
    fn only_calls_that_wait_count() {
        for command in [1, 3, 5, 7, 10, 12, 99] {
            assert_eq!(Call::of(&[0x1000, command | PRIVATE, 0, 0, 0, 0]), None);
        }
    }

    #[test]
    fn a_timeout_is_from_now_or_by_one_of_two_clocks() {
        let deadline = |operation: u64, timeout| Call::of(&[8, operation, 0, 64, 0, 0]).unwrap().deadline(timeout, 1_000, 500);
        assert_eq!(deadline(PRIVATE, 1_000_000_005), 1_000_001_005);
        assert_eq!(deadline(BITSET, 2_000), 2_000);
        assert_eq!(deadline(BITSET | WALL_CLOCK, 2_000), 1_500);
        assert_eq!(deadline(libc::FUTEX_LOCK_PI as u64, 2_000), 1_500);
        assert_eq!(deadline(PRIVATE, u64::MAX), u64::MAX);
    }
}
