//! Threads have names, slices, and the context record that they publish.

use std::sync::atomic::Ordering;

use longpole_model::{ContextRecord, Observation, Sample, SpanId, TraceId};
use longpole_testing::holds;

use crate::program::{MILLI, burn_even, burn_odd, fact, gettid, thread_cpu};
use crate::recorded::{record_role, within};

/// The context record of `docs/formats/span-context.md`, written by hand.
#[repr(C, align(16))]
struct Record {
    magic: [u8; 16],
    version: u32,
    tid: u32,
    sequence: u64,
    trace: [u8; 16],
    span: [u8; 8],
    valid: u8,
    flags: u8,
    attributes: u16,
    padding: u32,
}

impl Record {
    const fn none() -> Record {
        Record {
            magic: *b"\x9cLONGPOLE-CTX1\xf3\xa7",
            version: 1,
            tid: 0,
            sequence: 0,
            trace: [0; 16],
            span: [0; 8],
            valid: 0,
            flags: 0,
            attributes: 0,
            padding: 0,
        }
    }
}

thread_local! {
    static RECORD: std::cell::UnsafeCell<Record> = const { std::cell::UnsafeCell::new(Record::none()) };
}

fn publish(span: u8) {
    use std::sync::atomic::compiler_fence;
    RECORD.with(|record| {
        let record = record.get();
        // SAFETY: only this thread writes its own record; volatile, because the reader is not of this program.
        unsafe {
            (&raw mut (*record).tid).write_volatile(gettid());
            let sequence = (&raw const (*record).sequence).read_volatile();
            (&raw mut (*record).sequence).write_volatile(sequence + 1);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*record).valid).write_volatile(0);
            (&raw mut (*record).trace).write_volatile([9; 16]);
            (&raw mut (*record).span).write_volatile([span; 8]);
            (&raw mut (*record).valid).write_volatile(1);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*record).sequence).write_volatile(sequence + 2);
        }
    });
}

/// Four threads, each with a name; even and odd ones work in functions and spans of their own, alternating with no span.
pub(crate) fn role_threads() {
    let threads: Vec<_> = (0..4u8)
        .map(|number| {
            std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    publish(number + 1);
                    for _ in 0..15 {
                        let until = thread_cpu() + 10 * MILLI;
                        if number % 2 == 0 { burn_even(until) } else { burn_odd(until) }
                    }
                    fact(&format!("cpu-{number}"), thread_cpu());
                    fact(&format!("tid-{number}"), gettid());
                })
                .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn threads_have_names_and_their_samples_carry_their_record() {
    holds(2, 4, "slices of threads are as long as their clocks say", named_threads);
}

fn named_threads() -> Result<(), String> {
    let recorded = record_role("threads");
    for number in 0..4 {
        let tid = recorded.fact(&format!("tid-{number}")) as u32;
        let named = recorded
            .all
            .iter()
            .any(|o| matches!(o, Observation::ThreadNamed { tid: t, name, .. } if *t == tid && *name == format!("worker-{number}")));
        assert!(named, "thread {number} has its name");
        let ended = recorded.all.iter().any(|o| matches!(o, Observation::ThreadExited { tid: t, .. } if *t == tid));
        assert!(ended, "thread {number} ended");
        let function = if number % 2 == 0 { "burn_even" } else { "burn_odd" };
        let own: Vec<&Sample> = recorded.samples().filter(|s| s.tid == tid && recorded.is_in(s, function)).collect();
        assert!(own.len() > 80, "{} samples of thread {number}\n{}", own.len(), recorded.describe());
        let span = SpanId::new([number as u8 + 1; 8]).unwrap();
        let expected = ContextRecord::Span { trace_id: TraceId::new([9; 16]).unwrap(), span_id: span };
        let right = own.iter().filter(|s| s.context == expected).count();
        assert!(right * 100 >= own.len() * 99, "{right} of {} samples carry the record", own.len());
        let wrong = own.iter().filter(|s| s.context != expected && matches!(s.context, ContextRecord::Span { .. })).count();
        assert_eq!(wrong, 0);
        let on_cpu: u64 = recorded.slices().filter(|s| s.tid == tid).map(|s| s.end.nanos_since(s.start)).sum();
        let told = recorded.fact(&format!("cpu-{number}"));
        if !within(on_cpu as f64, told as f64, 0.05) {
            return Err(format!("thread {number}: slices {on_cpu}, its own clock {told}"));
        }
    }
    recorded.assert_unwound("burn_even");
    recorded.assert_unwound("burn_odd");
    Ok(())
}
