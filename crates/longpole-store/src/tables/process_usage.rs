//! What processes had used, over time.

use arrow_array::ArrayRef;
use longpole_model::{Clock, IoBytes, Monotonic, ProcessMemory, ProcessUsage};

use super::batch::{Batch, Rows, unsigned_at};
use super::processes::unix;
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "process_usage",
    "One row per reading of the usage of a process, by time: often while it is young, then at each 32nd of its age, but not while it does not run. All columns except memory count from its fork.",
    &[
        column("pid", Kind::Number, "Process."),
        optional("time_unix_nano", Kind::Nanos, "Time of the reading, by the wall clock; NULL if the recorder read no clock."),
        column("time_monotonic_nano", Kind::Nanos, "Time of the reading, by CLOCK_MONOTONIC."),
        optional(
            "resident_bytes",
            Kind::Nanos,
            "Memory in RAM, including shared memory; NULL if it had ended and its parent had not waited for it yet.",
        ),
        optional("peak_resident_bytes", Kind::Nanos, "Peak in RAM since its last exec, also between two readings."),
        column("cpu_nanos", Kind::Nanos, "User and system time of all its threads."),
        column("minor_faults", Kind::Nanos, "Page faults served from memory."),
        column("major_faults", Kind::Nanos, "Page faults that waited for storage."),
        optional(
            "read_bytes",
            Kind::Nanos,
            "Bytes of its reading calls (`rchar`): files, also cached ones, pipes, terminals; sockets only if it reads them like files. The kernel adds its children's bytes when it waits for their end. NULL if not permitted, as for another user's process.",
        ),
        optional("written_bytes", Kind::Nanos, "The same for its writing calls (`wchar`)."),
        optional("storage_read_bytes", Kind::Nanos, "Bytes read from storage for it, also by page faults (`read_bytes` of the kernel)."),
        optional("storage_written_bytes", Kind::Nanos, "Bytes that it caused to be written to storage (`write_bytes` of the kernel)."),
    ],
    || TABLE.arrow_schema(),
);

pub(crate) fn build(rows: &[ProcessUsage], clock: &Clock) -> Vec<ArrayRef> {
    let memory = |part: fn(ProcessMemory) -> u64| array::optional_unsigned(rows.iter().map(|row| row.memory.map(part)));
    let io = |part: fn(IoBytes) -> u64| array::optional_unsigned(rows.iter().map(|row| row.io.map(part)));
    vec![
        array::number(rows.iter().map(|row| row.pid)),
        array::optional_int(rows.iter().map(|row| unix(clock, Some(row.time)))),
        array::unsigned(rows.iter().map(|row| row.time.0)),
        memory(|memory| memory.resident_bytes),
        memory(|memory| memory.peak_resident_bytes),
        array::unsigned(rows.iter().map(|row| row.cpu_nanos)),
        array::unsigned(rows.iter().map(|row| row.minor_faults)),
        array::unsigned(rows.iter().map(|row| row.major_faults)),
        io(|io| io.read),
        io(|io| io.written),
        io(|io| io.storage_read),
        io(|io| io.storage_written),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, usage: &mut Vec<ProcessUsage>) -> Rows<()> {
    let (pid, time) = (batch.number("pid")?, batch.int("time_monotonic_nano")?);
    let (resident, peak) = (batch.int("resident_bytes")?, batch.int("peak_resident_bytes")?);
    let (cpu, minor, major) = (batch.int("cpu_nanos")?, batch.int("minor_faults")?, batch.int("major_faults")?);
    let (read, written) = (batch.int("read_bytes")?, batch.int("written_bytes")?);
    let (storage_read, storage_written) = (batch.int("storage_read_bytes")?, batch.int("storage_written_bytes")?);
    for row in batch.rows() {
        let memory = unsigned_at(resident, row).zip(unsigned_at(peak, row));
        let calls = unsigned_at(read, row).zip(unsigned_at(written, row));
        let storage = unsigned_at(storage_read, row).zip(unsigned_at(storage_written, row));
        usage.push(ProcessUsage {
            pid: pid.value(row),
            time: Monotonic(time.value(row).cast_unsigned()),
            memory: memory.map(|(resident_bytes, peak_resident_bytes)| ProcessMemory { resident_bytes, peak_resident_bytes }),
            cpu_nanos: cpu.value(row).cast_unsigned(),
            minor_faults: minor.value(row).cast_unsigned(),
            major_faults: major.value(row).cast_unsigned(),
            io: calls.zip(storage).map(|((read, written), (storage_read, storage_written))| IoBytes {
                read,
                written,
                storage_read,
                storage_written,
            }),
        });
    }
    Ok(())
}
