//! When the time of a blocked call runs out.
//!
//! | calls | argument |
//! |---|---|
//! | `poll`, `epoll_wait`, `epoll_pwait` | milliseconds; below zero for ever |
//! | `ppoll`, `pselect6`, `epoll_pwait2`, `semtimedop`, `rt_sigtimedwait`, `io_getevents`, `futex` | the address of a `struct timespec`; zero for ever |
//! | `select` | the address of a `struct timeval`; zero for ever |

use super::blocked_call::BlockedCall;
use super::futex::Call;
use crate::sys::clock::{monotonic_nanos, realtime_nanos};
use crate::sys::remote_memory::read_memory;

/// Bytes of a `struct timespec` or `struct timeval`.
const TIME_BYTES: usize = 16;

/// A thread leaves its CPU a moment after it made the call. From there the kernel counts.
const CALL_NANOS: u64 = 200_000;

/// How an argument says how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timeout {
    /// As a number of milliseconds.
    Millis(u64),
    /// At this address: seconds, and a rest in parts of a second, which has this many.
    At(u64, u64),
}

impl Timeout {
    fn of(call: &BlockedCall) -> Option<Timeout> {
        let [.., third, fourth, fifth, _] = call.arguments;
        // C passes it as an `int`.
        let millis = |argument: u64| u64::try_from(argument as i32).ok().map(Timeout::Millis);
        let at = |address: u64, part_of_second: u64| (address != 0).then_some(Timeout::At(address, part_of_second));
        match call.number {
            libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => at(third, NANOS),
            libc::SYS_futex | libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => at(fourth, NANOS),
            libc::SYS_pselect6 | libc::SYS_io_getevents => at(fifth, NANOS),
            libc::SYS_epoll_pwait => millis(fourth),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => millis(third),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => millis(fourth),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => at(fifth, MICROS),
            _ => None,
        }
    }

    fn nanos(self, read: impl Fn(u64) -> Option<[u8; TIME_BYTES]>) -> Option<u64> {
        match self {
            Timeout::Millis(millis) => millis.checked_mul(1_000_000),
            Timeout::At(address, part_of_second) => nanos(&read(address)?, part_of_second),
        }
    }
}

const NANOS: u64 = 1_000_000_000;
const MICROS: u64 = 1_000_000;

/// A time in nanoseconds; `None` for an invalid one.
fn nanos(time: &[u8; TIME_BYTES], part_of_second: u64) -> Option<u64> {
    let number = |half: &[u8]| half.first_chunk().map(|bytes| i64::from_ne_bytes(*bytes)).and_then(|number| u64::try_from(number).ok());
    let (seconds, rest) = time.split_at(TIME_BYTES / 2);
    number(seconds)?.checked_mul(NANOS)?.checked_add(number(rest)?.checked_mul(NANOS / part_of_second)?)
}

/// When the time of a call runs out that a thread of process `pid` has been blocked in since `since`, by CLOCK_MONOTONIC; `None` if it waits for
/// ever. `stack` holds the bytes from the stack pointer upwards.
pub(super) fn deadline(call: &BlockedCall, futex: Option<&Call>, (pid, since): (u32, u64), stack: &[u8]) -> Option<u64> {
    let read = |address: u64| {
        // It nearly always lies on the stack.
        let on_stack = address.checked_sub(call.sp).and_then(|at| stack.get(usize::try_from(at).ok()?..)?.first_chunk().copied());
        on_stack.or_else(|| {
            let mut time = [0; TIME_BYTES];
            read_memory(pid, address, &mut time).is_ok_and(|read| read == time.len()).then_some(time)
        })
    };
    let timeout = Timeout::of(call)?.nanos(read)?;
    Some(match futex {
        Some(futex) => futex.deadline(timeout, since, realtime_nanos().saturating_sub(monotonic_nanos())),
        None => since.saturating_add(timeout).saturating_sub(CALL_NANOS.min(timeout / 2)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64, rest: i64) -> [u8; TIME_BYTES] {
        let mut bytes = [0; TIME_BYTES];
        bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
        bytes[8..].copy_from_slice(&rest.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_time_is_in_nanoseconds_or_microseconds_and_may_be_invalid() {
        assert_eq!(nanos(&time(1, 5), NANOS), Some(1_000_000_005));
        assert_eq!(nanos(&time(1, 5), MICROS), Some(1_000_005_000));
        assert_eq!(nanos(&time(0, i64::MAX), NANOS), Some(i64::MAX as u64));
        for (seconds, rest) in [(-1, 0), (0, -1), (i64::MAX, 0)] {
            assert_eq!(nanos(&time(seconds, rest), NANOS), None);
        }
        assert_eq!(nanos(&time(0, i64::MAX), MICROS), None);
    }

    #[test]
    fn each_call_has_its_timeout_where_it_expects_it() {
        let at = |number, arguments| deadline(&BlockedCall { number, arguments, sp: 100, ip: 0 }, None, (0, NANOS), &time(2, 0));
        let until = NANOS + 2 * NANOS - CALL_NANOS;
        assert_eq!(at(libc::SYS_ppoll, [0, 0, 100, 0, 0, 0]), Some(until));
        assert_eq!(at(libc::SYS_pselect6, [0, 0, 0, 0, 100, 0]), Some(until));
        assert_eq!(at(libc::SYS_epoll_pwait, [0, 0, 0, 2000, 0, 0]), Some(until));
        for forever in [
            at(libc::SYS_epoll_pwait, [0, 0, 0, u64::MAX, 0, 0]),
            at(libc::SYS_ppoll, [0; 6]),
            at(libc::SYS_read, [0, 0, 100, 100, 100, 0]),
        ] {
            assert_eq!(forever, None);
        }
    }
}
