//! Each process with what it used and how it ended.

use longpole_model::units::{self, TimeUnit, count};
use longpole_recording::view;

use super::command::exit_words;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, cut, pad, right};

/// Deepest indentation that still leaves room for names.
const INDENT_MAX: usize = 8;

/// Width of names with their pids.
const NAME_WIDTH: usize = 30;

/// If the last reading of a process was this long before its end, its figures are marked as lower bounds.
const LATE_NANOS: i64 = 20_000_000;

pub(crate) fn processes(view: &view::ProcessesView, style: Style) -> Screen {
    if view.processes.is_empty() {
        return Screen::of(format!("{} has no processes: only recordings with a profile have them", view.recording));
    }
    let unit = TimeUnit::of(view.processes.iter().map(|process| process.duration_nanos).max().unwrap_or_default());
    let mut out = Screen::of(style.strong(&format!(
        "{}  {}  {}  {}  {}  {}  {}  exit",
        pad("PROCESS", NAME_WIDTH),
        right("lifetime", 9),
        right("CPU", 9),
        right("peak", 8),
        right("read", 8),
        right("written", 8),
        right("faults", 7),
    )));
    let mut marks = Marks::default();
    // The last process on each level.
    let mut above: Vec<&view::ProcessRowView> = Vec::new();
    for process in &view.processes {
        out.line(row(process, unit, &mut marks, style));
        above.truncate(process.depth as usize);
        // A fork that executed nothing has the arguments of its parent.
        let is_copy = above.last().is_some_and(|parent| parent.arguments == process.arguments);
        above.push(process);
        let arguments = process.arguments.get(1..).unwrap_or_default().join(" ");
        if !arguments.is_empty() && !is_copy {
            let indent = indent(process) + 2;
            out.line(style.faint(&format!("{}{}", " ".repeat(indent), cut(&arguments, style.width().saturating_sub(indent)))));
        }
    }
    let shown = view.processes.iter().filter_map(|process| process.usage.as_ref()?.peak_resident_bytes).max().unwrap_or(0);
    // A process may take a little more at its very end.
    if let Some(peak) = view.peak_resident_bytes.filter(|peak| *peak > shown.saturating_add(shown / 10)) {
        out.line(style.faint(&format!("one process peaked at {} when longpole did not read it", units::bytes(peak))));
    }
    if view.processes.iter().all(|process| process.usage.is_none()) {
        out.line(style.faint("–  unknown: the recording has no process readings, because an older longpole made it or it was imported"));
        return out;
    }
    out.append(&marks.explained(style));
    out
}

/// Marks in the table to explain below it.
#[derive(Default)]
struct Marks {
    late: bool,
    unseen: bool,
    faults: bool,
}

impl Marks {
    fn explained(&self, style: Style) -> Screen {
        let lines = [
            (self.late, "≥  at least: longpole last read it more than 20 ms before its end"),
            (self.unseen, "–  unknown: the process ended before longpole read it, or belongs to another user"),
            (self.faults, "faults: page faults that waited for storage"),
        ];
        lines.iter().filter(|(said, _)| *said).map(|(_, line)| style.faint(line)).collect()
    }
}

fn indent(process: &view::ProcessRowView) -> usize {
    (process.depth as usize).min(INDENT_MAX) * 2
}

fn row(process: &view::ProcessRowView, unit: TimeUnit, marks: &mut Marks, style: Style) -> String {
    let usage = process.usage.as_ref();
    let late = usage.and_then(|usage| usage.read_before_end_nanos).is_some_and(|nanos| nanos > LATE_NANOS);
    let mut bytes = |figure: Option<u64>, is_exact: bool| {
        let late = late && !is_exact;
        marks.unseen |= figure.is_none();
        marks.late |= late && figure.is_some();
        figure.map_or_else(|| "–".to_owned(), |bytes| format!("{}{}", if late { "≥" } else { "" }, units::bytes(bytes)))
    };
    let peak = bytes(
        usage.and_then(|usage| usage.peak_resident_bytes),
        usage.is_some_and(|usage| usage.peak_from == Some(view::PeakFromView::Exit)),
    );
    let (read, written) =
        (bytes(usage.and_then(|usage| usage.read_bytes), false), bytes(usage.and_then(|usage| usage.written_bytes), false));
    let faults = usage.and_then(|usage| usage.major_faults);
    marks.faults |= faults.is_some();
    let pid = format!(" {}", process.pid);
    let indent = indent(process);
    let name = pad(&format!("{}{}", " ".repeat(indent), process.name), NAME_WIDTH.saturating_sub(pid.len())).trim_end().to_owned();
    let exit = match (&process.exit, process.outlived) {
        (Some(exit), _) => exit_words(Some(exit)).trim_start_matches("exit ").to_owned(),
        (None, true) => "runs on".to_owned(),
        (None, false) => "unknown".to_owned(),
    };
    let cpu = process.cpu_nanos;
    format!(
        "{}  {}  {}  {}  {}  {}  {}  {exit}{}",
        pad(&format!("{name}{pid}"), NAME_WIDTH),
        right(&unit.show(process.duration_nanos), 9),
        right(&cpu.map_or_else(|| "–".to_owned(), |cpu| unit.show(i64::try_from(cpu).unwrap_or(i64::MAX))), 9),
        right(&peak, 8),
        right(&read, 8),
        right(&written, 8),
        right(&faults.map_or_else(|| "–".to_owned(), count), 7),
        if usage.is_some_and(|usage| usage.grows.is_some()) { style.warning("  keeps growing") } else { String::new() },
    )
}
