//! The notation: a recording as an indented text. Tests are written in it, snapshots are printed in it.
//!
//! ```text
//! run                0..120ms                        the command: pid 1, root of the run
//!   deploy           1..119ms  engine                a child of the run, as its parent id says
//!     web            2..14ms   aws      pid 3        pid 3 emitted it, and what stands below it
//!     db            15..98ms   aws      <- web       a span link: waited for web
//! cron               5..6ms    cron     pid 7        not indented: a span without a parent
//! process cc1        3..50ms   pid 8 under 1         a process; `forked` at the end: it never executed a program;
//!                                                    `listens 127.0.0.1:80`: it takes connections there
//! sample 20ms x3 every 1ms  pid 3 tid 3  [web] main;handle|inlined;hash@src/hash.rs:12
//! wait   20..60ms  pid 3 tid 4  lock at 0x7f10 holder 5  [web] main;lock_it
//! thread worker    0..90ms  pid 3 tid 4
//! cpu     2..20ms  pid 3 tid 4  preempted          on a CPU; `preempted` where it had to leave it
//! current 2..14ms  pid 3 tid 4  web                the thread's journal: its current span; `-` none
//! ```
//!
//! A line is one span: name, times, service, and then in any order
//!
//! | word | meaning |
//! |---|---|
//! | `pid 3` | emitted by that process; spans below inherit it, `pid -` ends that |
//! | `kind client` | its kind, where it is not internal |
//! | `scope appdash` | the name of its scope |
//! | `key=text`, `key=[a,b]` | an attribute, a text or a list of texts, without blanks |
//! | `@label` | a second name for links and samples, where names repeat |
//! | `id 7`, `parent 9` | span ids, where the line's number (1, 2, …) and the indentation are not what is meant: orphans, cycles |
//! | `<- a, b` | span links to those spans; ends the line |
//!
//! Times are `2..14ms`, `500us..2ms`, `1.5..2s`; the unit of the end serves the start too; `3ms..` has no end (a run that
//! was killed, a process that outlived it). `trace 2` on a line of its own starts another trace. Names and services with
//! odd characters stand in double quotes. `#` starts a comment line.
//!
//! A sample line is one moment, or `x3` moments that follow each other by the weight that `every` names (1 ms where
//! there is none). `[web]` is the context record: the span of that name; `[-]` no span, `[~]` torn; without brackets
//! absent. A wait line has times, a kind, `in` with the system call, `at` with the address of the futex that it is at, `holder` with the
//! thread that this names, and `?` where no stack is known. The stack is written from the root to the leaf; `a|b` is one location with `b` inlined into `a`; `@file:line`
//! follows a function's name.

mod parse;
mod print;
mod times;
mod tokens;

pub use parse::{TextError, parse};
pub use print::print;

use crate::id::{SpanId, TraceId};
use crate::time::{Monotonic, Timestamp};

/// Wall time that `0` means in the notation.
pub const ORIGIN: Timestamp = Timestamp(1_700_000_000_000_000_000);

/// Monotonic time that `0` means in the notation.
pub const ORIGIN_MONOTONIC: Monotonic = Monotonic(1_000_000_000_000);

/// Span id of the run in the notation.
pub const ROOT_SPAN: u64 = u64::MAX;

/// The trace of this number.
pub fn trace_id(number: u64) -> TraceId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&1u64.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    TraceId::new(bytes).expect("the first half is not zero")
}

/// The span of this number; 0, which no span can have, is the run's own.
pub fn span_id(number: u64) -> SpanId {
    let number = if number == 0 { ROOT_SPAN } else { number };
    SpanId::new(number.to_be_bytes()).expect("not zero")
}

fn span_number(id: SpanId) -> u64 {
    u64::from_be_bytes(id.bytes())
}

fn trace_number(id: TraceId) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&id.bytes()[8..]);
    u64::from_be_bytes(low)
}

#[cfg(test)]
mod tests;
