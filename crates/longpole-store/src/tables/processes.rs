//! Processes.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use longpole_model::process::ARGUMENTS_BYTES_MAX;
use longpole_model::{Clock, Exit, Monotonic, Process, Resource, Timestamp};

use super::attributes::{self, attributes_at};
use super::batch::{BadRows, Batch, Rows, at, strings_at, texts_at, unsigned_at};
use super::{Kind, Table, array, column, optional};
use crate::memory::kept_programs::KeptPrograms;
use crate::memory::kept_texts::KeptTexts;
use crate::memory::needs::Needs;

pub(crate) static TABLE: Table = Table::new(
    "processes",
    "One row per process of the run, by start. A reused pid has a row for each of its processes.",
    &[
        column("pid", Kind::Number, "Its id while it lived."),
        optional("parent_pid", Kind::Number, "Its parent at the fork; NULL for the command itself."),
        column("name", Kind::Text, "Name: the kernel's comm, 15 bytes at most."),
        optional("executable", Kind::Text, "Path of the executable."),
        column("arguments", Kind::Texts, "Arguments after the last exec."),
        column("execed", Kind::Bool, "Whether it ran another program than its parent."),
        optional("start_time_unix_nano", Kind::Nanos, "Fork, by the wall clock; NULL if the recorder read no clock."),
        optional("end_time_unix_nano", Kind::Nanos, "Exit, by the wall clock; NULL if it outlived the recording."),
        column("start_time_monotonic_nano", Kind::Nanos, "Fork, by CLOCK_MONOTONIC."),
        optional("end_time_monotonic_nano", Kind::Nanos, "Exit, by CLOCK_MONOTONIC."),
        optional(
            "exit_code",
            Kind::Int,
            "Its exit code; NULL if a signal killed it, it outlived the recording, or the code was not visible (before Linux 6.15 it is visible only if its parent waits for it late).",
        ),
        optional("exit_signal", Kind::Int, "The signal that killed it."),
        optional("listens", Kind::Texts, "Addresses where it accepts connections and that spans call: `127.0.0.1:8080`."),
        optional(
            "resource_attributes",
            Kind::TextMap,
            "The resource that it published (OTEP 4719), as strings: `resource_attributes['service.name']`; empty if it did not.",
        ),
        optional("resource_attributes_json", Kind::Text, "The same with their types, as OTLP's JSON; NULL if all are strings."),
    ],
    || TABLE.arrow_schema(),
);

/// Wall time of a moment, for a column.
pub(super) fn unix(clock: &Clock, time: Option<Monotonic>) -> Option<i64> {
    time.and_then(|time| clock.to_unix(time)).map(Timestamp::unix_nanos)
}

/// Marks where a text was cut.
const CUT: char = '…';

/// Longer paths of executables are cut: the kernel has none.
const PATH_BYTES_MAX: usize = 8 << 10;

/// The path of an executable, as a recorder reads it.
fn path_of(process: &Process) -> Cow<'_, str> {
    match process.executable.len() {
        ..=PATH_BYTES_MAX => Cow::Borrowed(&process.executable),
        _ => Cow::Owned(cut(&process.executable, PATH_BYTES_MAX)),
    }
}

/// The arguments of a process, as far as a recorder reads them. A file of others may have megabytes that thousands of forks share, and each
/// row has its own.
fn arguments_of(process: &Process) -> Cow<'_, [String]> {
    let arguments = &process.arguments;
    if arguments.iter().map(String::len).sum::<usize>() <= ARGUMENTS_BYTES_MAX + CUT.len_utf8() {
        return Cow::Borrowed(arguments);
    }
    let mut left = ARGUMENTS_BYTES_MAX;
    let mut kept = Vec::new();
    for argument in &**arguments {
        if argument.len() > left {
            kept.push(cut(argument, left));
            break;
        }
        left -= argument.len();
        kept.push(argument.clone());
    }
    Cow::Owned(kept)
}

fn cut(text: &str, bytes: usize) -> String {
    format!("{}{CUT}", &text[..text.floor_char_boundary(bytes)])
}

pub(crate) fn build(rows: &[Process], clock: &Clock) -> Vec<ArrayRef> {
    let words = |process: &Process| process.listens.iter().map(SocketAddr::to_string).collect();
    let listens: Vec<Vec<String>> = rows.iter().map(words).collect();
    let arguments: Vec<Cow<'_, [String]>> = rows.iter().map(arguments_of).collect();
    let (resource, resource_json) = attributes::columns(rows.iter().map(|process| &process.resource.attributes));
    vec![
        array::number(rows.iter().map(|process| process.pid)),
        array::optional_number(rows.iter().map(|process| process.parent_pid)),
        array::text(rows.iter().map(|process| process.name.as_str())),
        array::optional_text(rows.iter().map(path_of).map(|path| (!path.is_empty()).then_some(path))),
        array::texts(arguments.iter().map(|arguments| &**arguments)),
        array::bool(rows.iter().map(|process| process.execed)),
        array::optional_int(rows.iter().map(|process| unix(clock, Some(process.start)))),
        array::optional_int(rows.iter().map(|process| unix(clock, process.end))),
        array::unsigned(rows.iter().map(|process| process.start.0)),
        array::optional_unsigned(rows.iter().map(|process| process.end.map(|end| end.0))),
        array::optional_int(rows.iter().map(|process| exit_code(process.exit))),
        array::optional_int(rows.iter().map(|process| exit_signal(process.exit))),
        array::texts(listens.iter().map(Vec::as_slice)),
        resource,
        resource_json,
    ]
}

/// Code of an exit, for a column.
pub(super) fn exit_code(exit: Option<Exit>) -> Option<i64> {
    exit.and_then(|exit| match exit {
        Exit::Code(code) => Some(i64::from(code)),
        Exit::Signal(_) => None,
    })
}

/// Signal of an exit, for a column.
pub(super) fn exit_signal(exit: Option<Exit>) -> Option<i64> {
    exit.and_then(|exit| match exit {
        Exit::Code(_) => None,
        Exit::Signal(signal) => Some(i64::from(signal)),
    })
}

/// The exit that these columns hold.
pub(super) fn exit_of(code: Option<i64>, signal: Option<i64>) -> Rows<Option<Exit>> {
    let status = |number: i64| i32::try_from(number).map_err(|_| BadRows(format!("the exit status {number} is out of range")));
    Ok(match (code, signal) {
        (Some(code), None) => Some(Exit::Code(status(code)?)),
        (None, Some(signal)) => Some(Exit::Signal(status(signal)?)),
        (None, None) => None,
        (Some(_), Some(_)) => return Err(BadRows("there is an exit code and a signal".into())),
    })
}

/// Counts what the texts, lists and attributes of processes take when they are read. `columns` are those of the rows.
pub(crate) fn count(needs: &mut Needs, texts: &mut KeptTexts, programs: &mut KeptPrograms, rows: &[Process], columns: &[ArrayRef]) {
    for process in rows {
        attributes::count(needs, texts, &process.resource.attributes);
        programs.executable(&process.executable, || Arc::clone(&process.executable));
        programs.arguments(process.arguments.iter().map(String::as_str), || Arc::clone(&process.arguments));
    }
    needs.keep(programs.take_uncounted());
    let is_copied = |name: &str| !["executable", "arguments"].contains(&name);
    let copied: Vec<ArrayRef> =
        TABLE.columns.iter().zip(columns).filter(|(column, _)| is_copied(column.name)).map(|(_, values)| Arc::clone(values)).collect();
    needs.keep(array::copied_bytes(&copied));
}

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, programs: &mut KeptPrograms, processes: &mut Vec<Process>) -> Rows<()> {
    let (pid, parent_pid, name) = (batch.number("pid")?, batch.number("parent_pid")?, batch.text("name")?);
    let (executable, arguments, execed) = (batch.shared_text("executable")?, batch.list("arguments")?, batch.bool("execed")?);
    let (start, end) = (batch.int("start_time_monotonic_nano")?, batch.int("end_time_monotonic_nano")?);
    let (code, signal) = (batch.added("exit_code", Batch::int)?, batch.added("exit_signal", Batch::int)?);
    let listens = batch.added("listens", Batch::list)?;
    let (maps, typed) = (batch.added("resource_attributes", Batch::map)?, batch.added("resource_attributes_json", Batch::shared_text)?);
    let address = |text: &String| text.parse().map_err(|_| BadRows(format!("{text} is not an address")));
    for row in batch.rows() {
        let status = |column: Option<&Int64Array>| column.and_then(|column| at(column, row, |row| column.value(row)));
        let path = at(executable, row, |row| executable.value(row)).unwrap_or_default();
        let words = strings_at("arguments", arguments, row)?;
        let words = words.iter().map(Option::unwrap_or_default);
        processes.push(Process {
            pid: pid.value(row),
            parent_pid: at(parent_pid, row, |row| parent_pid.value(row)),
            name: name.value(row).to_owned(),
            executable: programs.executable(path, || path.into()),
            arguments: programs.arguments(words.clone(), || words.map(str::to_owned).collect()),
            start: Monotonic(start.value(row).cast_unsigned()),
            end: unsigned_at(end, row).map(Monotonic),
            execed: execed.value(row),
            exit: exit_of(status(code), status(signal))?,
            listens: match listens {
                Some(listens) => texts_at(batch.budget(), "listens", listens, row)?.iter().map(address).collect::<Rows<_>>()?,
                None => Vec::new(),
            },
            resource: match (maps, typed) {
                (Some(maps), Some(typed)) => Resource { attributes: attributes_at(batch.budget(), texts, maps, typed, row)? },
                _ => Resource::default(),
            },
        });
        batch.budget().take(programs.take_uncounted())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use arrow_schema::Schema;
    use longpole_model::{Attribute, AttributeValue, Attributes};

    use super::*;
    use crate::memory::budget::Budget;
    use crate::segment::reread;

    fn process() -> Process {
        Process {
            pid: 7,
            parent_pid: None,
            name: "sh".into(),
            executable: "".into(),
            arguments: [].into(),
            start: Monotonic(1),
            end: None,
            execed: true,
            exit: Some(Exit::Code(3)),
            listens: vec!["127.0.0.1:80".parse().unwrap()],
            resource: Resource {
                attributes: Attributes(vec![Attribute { key: "service.name".into(), value: AttributeValue::Str("shop".into()) }]),
            },
        }
    }

    /// Each of 60,000 forks had a row with the 600 KB that all of them share: 36 GB were copied and hashed.
    #[test]
    fn longer_arguments_than_a_recorder_reads_are_cut() {
        let with = |arguments: &[&str]| Process { arguments: arguments.iter().map(|it| (*it).to_owned()).collect(), ..process() };
        let long = "x".repeat(ARGUMENTS_BYTES_MAX - 3);
        let whole = with(&["sh", &format!("{long}…")]);
        assert_eq!(*arguments_of(&whole), *whole.arguments, "as a recorder cuts it");
        let cut = with(&["sh", &long, "password", "y"]);
        assert_eq!(*arguments_of(&cut), ["sh".to_owned(), long, "p…".to_owned()]);
        let path = Process { executable: "/é".repeat(5_000).into(), ..process() };
        assert_eq!((path_of(&path).len(), path_of(&path).ends_with("/…")), (8 * 1024 - 1 + 3, true));
        assert_eq!(path_of(&Process { executable: "/bin/sh".into(), ..process() }), "/bin/sh");
    }

    #[test]
    fn a_table_of_the_second_version_has_no_exits() {
        let process = process();
        let columns = build(std::slice::from_ref(&process), &Clock::default());
        let fields = TABLE.schema().fields().to_vec();
        let older = fields.len() - 5;
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields[..older].to_vec())), columns[..older].to_vec()).unwrap();
        let mut found = Vec::new();
        read(
            &Batch::new(&TABLE, &reread(&TABLE, &batch), &Budget::of_file(0)),
            &mut KeptTexts::of_reader(),
            &mut KeptPrograms::default(),
            &mut found,
        )
        .unwrap();
        assert_eq!(found, [Process { exit: None, listens: Vec::new(), resource: Resource::default(), ..process }]);
    }
}
