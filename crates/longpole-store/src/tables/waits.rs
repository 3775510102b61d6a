//! Sampled waits, with the span each belongs to.

use arrow_array::ArrayRef;
use longpole_model::{AbsAddr, Clock, Futex, Monotonic, SampleLink, StackId, Wait, WaitKind};

use super::batch::{Batch, Rows, at, text_at, word};
use super::links::{self, Links};
use super::processes::unix;
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "waits",
    "One row per sampled wait of a thread, by start. Other waits are gaps in `cpu_slices`.",
    &[
        column("pid", Kind::Number, "Process."),
        column("tid", Kind::Number, "Thread."),
        optional("start_time_unix_nano", Kind::Nanos, "Switched out, by the wall clock; NULL if the recorder read no clock."),
        column("start_time_monotonic_nano", Kind::Nanos, "Switched out, by CLOCK_MONOTONIC."),
        column("end_time_monotonic_nano", Kind::Nanos, "Switched in again, or the end of the recording, by CLOCK_MONOTONIC."),
        column("duration_nanos", Kind::Nanos, "Length of the wait: exact, from switch records."),
        column(
            "kind",
            Kind::Text,
            "Cause: `lock`, `queue` (another thread to go on), `join` (the end of a thread), `disk`, `network`, `sleep`, `page_fault`, `child`, `pipe`, `idle` (work to arrive), `other`.",
        ),
        optional("syscall", Kind::Text, "Its system call; NULL if it was in none, or in one without a name here."),
        optional("stack_id", Kind::Number, "Its stack in `stacks`; NULL if its memory was unreadable."),
        links::TRACE_ID,
        links::SPAN_ID,
        links::EVIDENCE,
        links::CANDIDATES,
        links::CONTEXT,
        links::CONTEXT_TRACE_ID,
        links::CONTEXT_SPAN_ID,
        optional(
            "futex_address",
            Kind::Address,
            "The futex it waited at: waits at one address of a process are for one thing; NULL if there was none, or the wait timed out.",
        ),
        optional(
            "holder_tid",
            Kind::Number,
            "The thread that the futex names: the holder of the lock, or for a `join` the thread to end; NULL if it names none.",
        ),
    ],
    || TABLE.arrow_schema(),
);

/// A wait with its link.
pub(crate) type Row<'a> = (&'a Wait, Option<&'a SampleLink>);

/// The waits with their links; `links` is empty or as long as `waits`.
pub(crate) fn rows<'a>(waits: &'a [Wait], links: &'a [SampleLink]) -> Vec<Row<'a>> {
    waits.iter().enumerate().map(|(number, wait)| (wait, links.get(number))).collect()
}

pub(crate) fn build(rows: &[Row<'_>], clock: &Clock) -> Vec<ArrayRef> {
    let waits = || rows.iter().map(|(wait, _)| wait);
    let mut columns = vec![
        array::number(waits().map(|wait| wait.pid)),
        array::number(waits().map(|wait| wait.tid)),
        array::optional_int(waits().map(|wait| unix(clock, Some(wait.start)))),
        array::unsigned(waits().map(|wait| wait.start.0)),
        array::unsigned(waits().map(|wait| wait.end.0)),
        array::unsigned(waits().map(|wait| wait.nanos())),
        array::text(waits().map(|wait| wait.kind.as_str())),
        array::optional_text(waits().map(|wait| Some(wait.syscall.as_str()).filter(|name| !name.is_empty()))),
        array::optional_number(waits().map(|wait| wait.stack.map(|stack| stack.0))),
    ];
    columns.extend(links::build(rows.iter().map(|(wait, link)| (*link, wait.context))));
    columns.push(array::optional_address(waits().map(|wait| wait.futex.map(|futex| futex.address.0))));
    columns.push(array::optional_number(waits().map(|wait| wait.futex.and_then(|futex| futex.holder))));
    columns
}

pub(crate) fn read(batch: &Batch<'_>, waits: &mut Vec<Wait>, wait_links: &mut Vec<SampleLink>) -> Rows<()> {
    let (pid, tid) = (batch.number("pid")?, batch.number("tid")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    let (kind, syscall, stack) = (batch.text("kind")?, batch.text("syscall")?, batch.number("stack_id")?);
    let links = Links::of(batch)?;
    let (address, holder) = (batch.added("futex_address", Batch::address)?, batch.added("holder_tid", Batch::number)?);
    for row in batch.rows() {
        waits.push(Wait {
            pid: pid.value(row),
            tid: tid.value(row),
            start: Monotonic(start.value(row).cast_unsigned()),
            end: Monotonic(end.value(row).cast_unsigned()),
            kind: word("kind", kind.value(row), WaitKind::from_code)?,
            syscall: text_at(syscall, row),
            stack: at(stack, row, |row| StackId(stack.value(row))),
            context: links.context(row)?,
            futex: address
                .and_then(|address| at(address, row, |row| AbsAddr(address.value(row))))
                .map(|address| Futex { address, holder: holder.and_then(|holder| at(holder, row, |row| holder.value(row))) }),
        });
        wait_links.extend(links.link(row)?);
    }
    Ok(())
}
