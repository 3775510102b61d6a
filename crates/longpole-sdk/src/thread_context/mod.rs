//! Which span is current on this thread, where a profiler can read it: the context record, which says so of now, and the journal,
//! which says since when. The byte contract of both is `docs/formats/span-context.md`; what decides the current span is in
//! `span_stack.rs`.
//!
//! Other profilers find the record by the name that OTEP 4947 gives it.
//!
//! Elsewhere than on Linux nothing reads them, and nothing is published.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod otel_symbol;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod slot;

#[cfg(not(target_os = "linux"))]
pub(crate) use self::elsewhere::*;
#[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
pub(crate) use self::slot::published;
#[cfg(target_os = "linux")]
pub(crate) use self::slot::{publish, thread_id, watch_forks, with_main_record};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// The hex dump of a worked example of the format: 1 is the record's, 2 the journal's.
    pub(super) fn worked_example(number: usize) -> Vec<u8> {
        let page = include_str!("../../../../docs/formats/span-context.md");
        let dump = page.split("```text\n").nth(number).and_then(|rest| rest.split("```").next()).unwrap();
        dump.lines().flat_map(|line| line[4..52].split_whitespace()).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }
}
