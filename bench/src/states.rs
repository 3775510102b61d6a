//! The cost of exact span times for a million spans, from journals and switch records in memory.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_model::{
    CpuSlice, CurrentSpan, Monotonic, NodeId, Process, Recording, Span, SpanId, ThinVec, Thread, TimeRange, Timestamp, TraceId, Wait,
    WaitKind, text,
};

use crate::timing::own_peak_megabytes;

const SPANS: u64 = 1_000_000;
/// Spans of a request: one, and what it calls.
const SPANS_PER_REQUEST: u64 = 5;
const THREADS: u64 = 16;
/// How long a span has a thread for itself.
const TURN_NANOS: u64 = 4_000;

const PID: u32 = 7;

fn span_id(number: u64) -> SpanId {
    SpanId::new((number + 1).to_be_bytes()).expect("not zero")
}

/// Requests on all threads at once. Each span has a thread twice and is blocked in between; one block in ten has a sampled wait.
fn recording() -> Result<Recording> {
    let mut recording = text::parse("run server 0..1s\n")?;
    let (trace, origin) = (recording.run.trace_id, text::ORIGIN_MONOTONIC.0);
    let trace = TraceId::new(trace.bytes()).context("a trace id")?;
    let mut spans: Vec<Span> = Vec::with_capacity(SPANS as usize);
    let turns = SPANS_PER_REQUEST * 2;
    for request in 0..SPANS / SPANS_PER_REQUEST {
        let (thread, at) = (request % THREADS, request / THREADS * turns * TURN_NANOS);
        let tid = PID + thread as u32;
        for turn in 0..turns {
            // The first span has the first and the last turn; the others two each, one behind the other.
            let place = if turn == 0 || turn + 1 == turns { 0 } else { turn.div_ceil(2) };
            let number = request * SPANS_PER_REQUEST + place;
            let start = origin + at + turn * TURN_NANOS;
            let on_cpu = TURN_NANOS - TURN_NANOS / 4;
            let (left, end) = (Monotonic(start + on_cpu), Monotonic(start + TURN_NANOS));
            let id = Some((trace, span_id(number)));
            recording.current_spans.push(CurrentSpan { pid: PID, tid, start: Monotonic(start), end, span: id, is_sent: true });
            recording.cpu_slices.push(CpuSlice { pid: PID, tid, start: Monotonic(start), end: left, preempted: turn % 3 == 0 });
            if turn % 10 == 1 {
                let syscall = String::new();
                let context = longpole_model::ContextRecord::Absent;
                recording.waits.push(Wait {
                    pid: PID,
                    tid,
                    start: left,
                    end,
                    kind: WaitKind::Network,
                    syscall,
                    stack: None,
                    context,
                    futex: None,
                });
            }
        }
        for place in 0..SPANS_PER_REQUEST {
            let (first, last) = if place == 0 { (0, turns) } else { (place * 2 - 1, place * 2 + 1) };
            let moment = |turn: u64| text::ORIGIN.plus_nanos((at + turn * TURN_NANOS) as i64);
            let range = TimeRange { start: moment(first), end: moment(last) };
            let parent = (place > 0).then(|| span_id(request * SPANS_PER_REQUEST));
            let name = if place == 0 { "GET /order" } else { "SELECT" };
            let number = request * SPANS_PER_REQUEST + place;
            spans.push(Span {
                parent_span_id: parent,
                pid: Some(PID),
                links: ThinVec::new(),
                ..Span::new(trace, span_id(number), name, range)
            });
        }
    }
    let end = Monotonic(origin + SPANS / THREADS * 2 * TURN_NANOS);
    recording.run.end = recording.clock.to_unix(end).or(Some(Timestamp(0)));
    recording.processes.push(Process {
        pid: PID,
        parent_pid: Some(1),
        name: "server".to_owned(),
        end: Some(end),
        ..recording.processes[0].clone()
    });
    let thread =
        |tid: u32| Thread { pid: PID, tid, name: String::new(), start: Monotonic(origin), end: Some(end), totals: None, ident: None };
    recording.threads = (0..THREADS as u32).map(|i| thread(PID + i)).collect();
    recording.current_spans.sort_by_key(|current| current.start);
    recording.cpu_slices.sort_by_key(|slice| slice.start);
    recording.waits.sort_by_key(|wait| wait.start);
    recording.spans = spans;
    Ok(recording)
}

/// Prints seconds and megabytes.
pub(crate) fn measure() -> Result<()> {
    let recording = recording()?;
    let (spans, stretches, slices) = (recording.spans.len(), recording.current_spans.len(), recording.cpu_slices.len());
    println!("exact time of {spans} spans, from {stretches} stretches of journals and {slices} switch records");
    let without = Recording { current_spans: Vec::new(), cpu_slices: Vec::new(), waits: Vec::new(), ..recording.clone() };
    println!("  the recording in memory, twice     {:7.0} MB", own_peak_megabytes()?);
    let timed = |name: &str, start: Instant| -> Result<()> {
        println!("  {name:34} {:7.2} s, peak {:.0} MB", start.elapsed().as_secs_f64(), own_peak_megabytes()?);
        Ok(())
    };
    let start = Instant::now();
    drop(black_box(Report::new(without)));
    timed("the answer without them", start)?;
    let start = Instant::now();
    let report = Report::new(recording);
    timed("the answer with them", start)?;
    let start = Instant::now();
    let mut exact = 0u64;
    for node in report.forest().ids() {
        exact += u64::from(black_box(report.node_states(node)).is_exact());
    }
    timed("states of every span", start)?;
    let start = Instant::now();
    black_box(report.node_states_with_descendants(NodeId::RUN));
    timed("states of the run with all below it", start)?;
    println!("  {exact} spans are exact");
    Ok(())
}
