//! Samples with the span each belongs to.

use std::collections::HashMap;

use arrow::array::ArrayRef;
use longpole_model::{Clock, ContextRecord, Evidence, Monotonic, Sample, SampleLink, StackId, Thread, Timestamp};

use super::batch::{BadRows, Batch, Rows, at, required, span_id_at, trace_id_at, unsigned_at, word};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "samples",
    "One row per on-CPU sample, by time.",
    &[
        optional("time_unix_nano", Kind::Nanos, "When, by the wall clock; NULL where the recorder read no clock."),
        column("time_monotonic_nano", Kind::Nanos, "When, by CLOCK_MONOTONIC: the clock it was taken with."),
        column("pid", Kind::Number, "Process."),
        column("tid", Kind::Number, "Thread."),
        optional("thread_name", Kind::Text, "Name of the thread, as in `threads`."),
        column("cpu", Kind::Number, "CPU it ran on."),
        column("stack_id", Kind::Number, "Its stack in `stacks`."),
        column("weight_nanos", Kind::Nanos, "On-CPU nanoseconds it stands for."),
        optional("trace_id", Kind::TraceId, "Trace of the span it belongs to; NULL where none is chosen."),
        optional("span_id", Kind::SpanId, "The span it belongs to; NULL where none is chosen."),
        optional(
            "evidence",
            Kind::Text,
            "How that is known: `record` (the SDK had published the span), `inferred` (the only span open in that process or thread at that time), `ambiguous` (several were open), `none`.",
        ),
        optional("candidates", Kind::Number, "How many spans were open where the evidence is `ambiguous`."),
        column(
            "context",
            Kind::Text,
            "What the SDK had published: `absent` (nothing found), `no_span`, `torn` (caught in the middle of a write), `span`.",
        ),
        optional("context_trace_id", Kind::TraceId, "Trace of the published span."),
        optional("context_span_id", Kind::SpanId, "The published span."),
    ],
    || TABLE.arrow_schema(),
);

/// A sample with what is derived for it.
pub(crate) struct Row<'a> {
    sample: &'a Sample,
    link: Option<&'a SampleLink>,
    time: Option<Timestamp>,
    thread_name: Option<&'a str>,
}

/// The samples with their links; `links` is empty or as long as `samples`.
pub(crate) fn rows<'a>(samples: &'a [Sample], links: &'a [SampleLink], threads: &'a [Thread], clock: &Clock) -> Vec<Row<'a>> {
    let mut by_id: HashMap<(u32, u32), Vec<&Thread>> = HashMap::new();
    for thread in threads {
        by_id.entry((thread.pid, thread.tid)).or_default().push(thread);
    }
    samples
        .iter()
        .enumerate()
        .map(|(number, sample)| Row {
            sample,
            link: links.get(number),
            time: clock.to_unix(sample.time),
            thread_name: by_id.get(&(sample.pid, sample.tid)).and_then(|threads| name_at(threads, sample.time)),
        })
        .collect()
}

/// The name of the last thread of this id that had begun; a sample a little before the first one is its, too.
fn name_at<'a>(threads: &[&'a Thread], time: Monotonic) -> Option<&'a str> {
    let begun = threads.iter().rfind(|thread| thread.start <= time);
    begun.or(threads.first()).map(|thread| thread.name.as_str())
}

fn context_word(context: &ContextRecord) -> &'static str {
    match context {
        ContextRecord::Absent => "absent",
        ContextRecord::NoSpan => "no_span",
        ContextRecord::Torn => "torn",
        ContextRecord::Span { .. } => "span",
    }
}

fn candidates(link: &SampleLink) -> Option<u32> {
    match link.evidence {
        Evidence::Ambiguous { candidates } => Some(candidates),
        Evidence::Record | Evidence::Inferred | Evidence::None => None,
    }
}

pub(crate) fn build(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    let samples = || rows.iter().map(|row| row.sample);
    let links = || rows.iter().map(|row| row.link);
    let span = |link: Option<&SampleLink>| link.and_then(|link| link.span);
    let published = |sample: &Sample| match sample.context {
        ContextRecord::Span { trace_id, span_id } => Some((trace_id, span_id)),
        ContextRecord::Absent | ContextRecord::NoSpan | ContextRecord::Torn => None,
    };
    vec![
        array::optional_int(rows.iter().map(|row| row.time.map(Timestamp::unix_nanos))),
        array::unsigned(samples().map(|sample| sample.time.0)),
        array::number(samples().map(|sample| sample.pid)),
        array::number(samples().map(|sample| sample.tid)),
        array::optional_text(rows.iter().map(|row| row.thread_name)),
        array::number(samples().map(|sample| sample.cpu)),
        array::number(samples().map(|sample| sample.stack.0)),
        array::unsigned(samples().map(|sample| sample.weight_nanos)),
        array::trace_id(links().map(|link| span(link).map(|(trace_id, _)| trace_id))),
        array::span_id(links().map(|link| span(link).map(|(_, span_id)| span_id))),
        array::optional_text(links().map(|link| link.map(|link| link.evidence.as_str()))),
        array::optional_number(links().map(|link| link.and_then(candidates))),
        array::text(samples().map(|sample| context_word(&sample.context))),
        array::trace_id(samples().map(|sample| published(sample).map(|(trace_id, _)| trace_id))),
        array::span_id(samples().map(|sample| published(sample).map(|(_, span_id)| span_id))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, samples: &mut Vec<Sample>, links: &mut Vec<SampleLink>) -> Rows<()> {
    let (time, weight) = (batch.int("time_monotonic_nano")?, batch.int("weight_nanos")?);
    let (pid, tid, cpu, stack) = (batch.number("pid")?, batch.number("tid")?, batch.number("cpu")?, batch.number("stack_id")?);
    let (trace_id, span_id) = (batch.id("trace_id")?, batch.id("span_id")?);
    let (evidence, candidates) = (batch.text("evidence")?, batch.number("candidates")?);
    let (context, context_trace_id) = (batch.text("context")?, batch.id("context_trace_id")?);
    let context_span_id = batch.id("context_span_id")?;
    for row in batch.rows() {
        let context = match context.value(row) {
            "absent" => ContextRecord::Absent,
            "no_span" => ContextRecord::NoSpan,
            "torn" => ContextRecord::Torn,
            "span" => ContextRecord::Span {
                trace_id: required(trace_id_at(context_trace_id, row))?,
                span_id: required(span_id_at(context_span_id, row))?,
            },
            other => return Err(BadRows(format!("column context holds the unknown word `{other}`"))),
        };
        samples.push(Sample {
            time: Monotonic(time.value(row).cast_unsigned()),
            pid: pid.value(row),
            tid: tid.value(row),
            cpu: cpu.value(row),
            stack: StackId(stack.value(row)),
            weight_nanos: unsigned_at(weight, row).unwrap_or_default(),
            context,
        });
        let Some(how) = at(evidence, row, |row| evidence.value(row)) else { continue };
        let evidence = word("evidence", how, |how| match how {
            "record" => Some(Evidence::Record),
            "inferred" => Some(Evidence::Inferred),
            "ambiguous" => at(candidates, row, |row| Evidence::Ambiguous { candidates: candidates.value(row) }),
            "none" => Some(Evidence::None),
            _ => None,
        })?;
        links.push(SampleLink { span: trace_id_at(trace_id, row)?.zip(span_id_at(span_id, row)?), evidence });
    }
    Ok(())
}
