//! The run.

use arrow_array::{ArrayRef, Int64Array};
use longpole_model::run::RecorderCost;
use longpole_model::{CaptureMode, Run, RunUsage, Timestamp};

use super::batch::{Batch, Rows, at, required, span_id_at, text_at, texts_at, trace_id_at, unsigned_at, word};
use super::processes::{exit_code, exit_of, exit_signal};
use super::{Kind, Table, array, column, optional};

pub(crate) static TABLE: Table = Table::new(
    "runs",
    "The run: one row.",
    &[
        column("command", Kind::Texts, "The command and its arguments."),
        optional("working_directory", Kind::Text, "Working directory at the start."),
        column("host", Kind::Text, "Name of the machine."),
        column("cpus", Kind::Number, "CPUs online."),
        column("longpole_version", Kind::Text, "Version of longpole that recorded."),
        column("trace_id", Kind::TraceId, "The trace id in the command's `TRACEPARENT`."),
        column("root_span_id", Kind::SpanId, "The parent span id in the command's `TRACEPARENT`."),
        optional("root_pid", Kind::Number, "Pid of the command; NULL if it could not be started."),
        column("start_time_unix_nano", Kind::Nanos, "Start."),
        optional("end_time_unix_nano", Kind::Nanos, "End; NULL if the recorder was killed before."),
        optional("wall_nanos", Kind::Nanos, "From start to end."),
        optional("exit_code", Kind::Int, "Its exit code; NULL if a signal killed it."),
        optional("exit_signal", Kind::Int, "The signal that killed it."),
        column("rate_hz", Kind::Number, "Requested samples per second; 0 without sampling."),
        column(
            "mode",
            Kind::Text,
            "The recorder's permission: `user`, `perf` (includes the kernel), `off` or `refused`; `imported` for samples of another tool.",
        ),
        optional("mode_reason", Kind::Text, "Reason of a refusal, or for `user` why not the kernel, and the remedy."),
        optional("cpu_nanos", Kind::Nanos, "CPU time of the command and all its waited-for descendants, user and system."),
        optional("recorder_cpu_nanos", Kind::Nanos, "CPU time of the recorder itself; NULL if it was killed."),
        optional("recorder_rss_bytes_max", Kind::Nanos, "Peak resident memory of the recorder itself."),
        optional(
            "peak_resident_bytes",
            Kind::Nanos,
            "Largest peak memory of a waited-for process of the command; NULL if nobody waited, or if it is below the recorder's own memory at the fork, where the kernel starts counting.",
        ),
        optional("minor_faults", Kind::Nanos, "Page faults of the command and its waited-for descendants served from memory."),
        optional("major_faults", Kind::Nanos, "Such page faults that waited for storage."),
    ],
    || TABLE.arrow_schema(),
);

fn mode_reason(run: &Run) -> Option<&str> {
    match &run.mode {
        CaptureMode::Refused { reason } => Some(reason),
        CaptureMode::User { why_not_kernel } => Some(why_not_kernel.as_str()).filter(|why| !why.is_empty()),
        CaptureMode::Perf | CaptureMode::Imported | CaptureMode::Off => None,
    }
}

pub(crate) fn build(rows: &[Run]) -> Vec<ArrayRef> {
    vec![
        array::texts(rows.iter().map(|run| run.command.as_slice())),
        array::text_unless_empty(rows.iter().map(|run| run.working_directory.as_str())),
        array::text(rows.iter().map(|run| run.host.as_str())),
        array::number(rows.iter().map(|run| run.cpus)),
        array::text(rows.iter().map(|run| run.version.as_str())),
        array::trace_id(rows.iter().map(|run| Some(run.trace_id))),
        array::span_id(rows.iter().map(|run| Some(run.root_span_id))),
        array::optional_number(rows.iter().map(|run| run.root_pid)),
        array::int(rows.iter().map(|run| run.start.unix_nanos())),
        array::optional_int(rows.iter().map(|run| run.end.map(Timestamp::unix_nanos))),
        array::optional_int(rows.iter().map(|run| run.end.map(|end| end.nanos_since(run.start)))),
        array::optional_int(rows.iter().map(|run| exit_code(run.exit))),
        array::optional_int(rows.iter().map(|run| exit_signal(run.exit))),
        array::number(rows.iter().map(|run| run.rate_hz)),
        array::text(rows.iter().map(|run| run.mode.as_str())),
        array::optional_text(rows.iter().map(mode_reason)),
        array::optional_unsigned(rows.iter().map(|run| run.cpu_nanos)),
        array::optional_unsigned(rows.iter().map(|run| run.recorder_cost.map(|cost| cost.cpu_nanos))),
        array::optional_unsigned(rows.iter().map(|run| run.recorder_cost.map(|cost| cost.rss_bytes_max))),
        array::optional_unsigned(rows.iter().map(|run| run.usage?.peak_resident_bytes)),
        array::optional_unsigned(rows.iter().map(|run| run.usage.map(|usage| usage.minor_faults))),
        array::optional_unsigned(rows.iter().map(|run| run.usage.map(|usage| usage.major_faults))),
    ]
}

pub(crate) fn read(batch: &Batch<'_>, runs: &mut Vec<Run>) -> Rows<()> {
    let (code, signal) = (batch.int("exit_code")?, batch.int("exit_signal")?);
    let (end, root_pid) = (batch.int("end_time_unix_nano")?, batch.number("root_pid")?);
    let (cost_cpu, cost_rss) = (batch.int("recorder_cpu_nanos")?, batch.int("recorder_rss_bytes_max")?);
    let peak = batch.added("peak_resident_bytes", Batch::int)?;
    let (minor, major) = (batch.added("minor_faults", Batch::int)?, batch.added("major_faults", Batch::int)?);
    for row in batch.rows() {
        let exit = exit_of(at(code, row, |row| code.value(row)), at(signal, row, |row| signal.value(row)))?;
        let reason = batch.text("mode_reason")?;
        let mode = word("mode", batch.text("mode")?.value(row), |text| match text {
            "user" => Some(CaptureMode::User { why_not_kernel: text_at(reason, row) }),
            "perf" => Some(CaptureMode::Perf),
            "imported" => Some(CaptureMode::Imported),
            "off" => Some(CaptureMode::Off),
            "refused" => Some(CaptureMode::Refused { reason: text_at(reason, row) }),
            _ => None,
        })?;
        let cost = unsigned_at(cost_cpu, row).zip(unsigned_at(cost_rss, row));
        let added = |column: Option<&Int64Array>| column.and_then(|column| unsigned_at(column, row));
        let usage = added(minor).zip(added(major)).map(|(minor_faults, major_faults)| RunUsage {
            peak_resident_bytes: added(peak),
            minor_faults,
            major_faults,
        });
        runs.push(Run {
            command: texts_at(batch.budget(), "command", batch.list("command")?, row)?,
            working_directory: text_at(batch.text("working_directory")?, row),
            host: text_at(batch.text("host")?, row),
            cpus: batch.number("cpus")?.value(row),
            version: text_at(batch.text("longpole_version")?, row),
            trace_id: required(trace_id_at(batch.id("trace_id")?, row))?,
            root_span_id: required(span_id_at(batch.id("root_span_id")?, row))?,
            root_pid: at(root_pid, row, |row| root_pid.value(row)),
            start: Timestamp(batch.int("start_time_unix_nano")?.value(row)),
            end: at(end, row, |row| Timestamp(end.value(row))),
            exit,
            rate_hz: batch.number("rate_hz")?.value(row),
            mode,
            cpu_nanos: unsigned_at(batch.int("cpu_nanos")?, row),
            usage,
            recorder_cost: cost.map(|(cpu_nanos, rss_bytes_max)| RecorderCost { cpu_nanos, rss_bytes_max }),
        });
    }
    Ok(())
}
