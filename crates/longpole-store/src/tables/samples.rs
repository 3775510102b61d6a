//! Samples with the span each belongs to.

use std::collections::HashMap;

use arrow_array::ArrayRef;
use longpole_model::{Clock, Monotonic, Sample, SampleLink, StackId, Thread, Timestamp};

use super::batch::{Batch, Rows, unsigned_at};
use super::links::{self, Links};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "samples",
    "One row per on-CPU sample, by time.",
    &[
        optional("time_unix_nano", Kind::Nanos, "Time, by the wall clock; NULL if the recorder read no clock."),
        column("time_monotonic_nano", Kind::Nanos, "Time, by CLOCK_MONOTONIC: the clock of the sampler."),
        column("pid", Kind::Number, "Process."),
        column("tid", Kind::Number, "Thread."),
        optional("thread_name", Kind::Text, "Name of the thread, as in `threads`."),
        column("cpu", Kind::Number, "CPU it ran on."),
        column("stack_id", Kind::Number, "Its stack in `stacks`."),
        column("weight_nanos", Kind::Nanos, "On-CPU nanoseconds that it represents."),
        links::TRACE_ID,
        links::SPAN_ID,
        links::EVIDENCE,
        links::CANDIDATES,
        links::CONTEXT,
        links::CONTEXT_TRACE_ID,
        links::CONTEXT_SPAN_ID,
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
    // They come by start, except in a file that somebody else wrote.
    by_id.values_mut().for_each(|threads| threads.sort_by_key(|thread| thread.start));
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
    let begun = threads.partition_point(|thread| thread.start <= time);
    threads.get(begun.saturating_sub(1)).map(|thread| thread.name.as_str())
}

pub(crate) fn build(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    let samples = || rows.iter().map(|row| row.sample);
    let mut columns = vec![
        array::optional_int(rows.iter().map(|row| row.time.map(Timestamp::unix_nanos))),
        array::unsigned(samples().map(|sample| sample.time.0)),
        array::number(samples().map(|sample| sample.pid)),
        array::number(samples().map(|sample| sample.tid)),
        array::optional_text(rows.iter().map(|row| row.thread_name)),
        array::number(samples().map(|sample| sample.cpu)),
        array::number(samples().map(|sample| sample.stack.0)),
        array::capped(samples().map(|sample| sample.weight_nanos)),
    ];
    columns.extend(links::build(rows.iter().map(|row| (row.link, row.sample.context))));
    columns
}

pub(crate) fn read(batch: &Batch<'_>, samples: &mut Vec<Sample>, links: &mut Vec<SampleLink>) -> Rows<()> {
    let (time, weight) = (batch.int("time_monotonic_nano")?, batch.int("weight_nanos")?);
    let (pid, tid, cpu, stack) = (batch.number("pid")?, batch.number("tid")?, batch.number("cpu")?, batch.number("stack_id")?);
    let columns = Links::of(batch)?;
    for row in batch.rows() {
        samples.push(Sample {
            time: Monotonic(time.value(row).cast_unsigned()),
            pid: pid.value(row),
            tid: tid.value(row),
            cpu: cpu.value(row),
            stack: StackId(stack.value(row)),
            weight_nanos: unsigned_at(weight, row).unwrap_or_default(),
            context: columns.context(row)?,
        });
        links.extend(columns.link(row)?);
    }
    Ok(())
}
