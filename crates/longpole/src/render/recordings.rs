//! The list of recordings, each with its answer.

use longpole_model::units::{TimeUnit, count, duration, range};
use longpole_recording::view::{self, RecordingStateView};

use super::command::fit_command;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, column_widths, cut, pad, right};

/// Recordings, newest first.
pub(crate) fn recordings(view: &view::RecordingsView, style: Style) -> Screen {
    let heads = ["", "started", "wall", "exit", "spans", "command", "saves"];
    let rows: Vec<[String; COLUMNS]> = view
        .recordings
        .iter()
        .map(|row| {
            let saves = match (&row.answer, row.state) {
                (Some(answer), RecordingStateView::Sealed | RecordingStateView::Killed) => saves_words(answer),
                _ => String::new(),
            };
            [
                row.recording.clone(),
                when(&row.start_unix_nano),
                duration(row.wall_nanos),
                exit_cell(row.exit.as_ref()),
                count(row.spans),
                fit_command(&row.command, COMMAND_WIDTH),
                saves,
            ]
        })
        .collect();
    let widths = column_widths(&heads, &rows);
    let cell = |column: usize, text: &str| match column {
        2 | 4 | 6 => right(text, widths[column]),
        _ => pad(text, widths[column]),
    };
    let answer_width = style.width().saturating_sub(widths.iter().map(|width| width + 2).sum()).max(ANSWER_WIDTH_MIN);
    let head: String = heads.iter().enumerate().map(|(column, head)| cell(column, head) + "  ").collect();
    let mut out = Screen::of(style.strong(&(head + "first long pole")));
    for (row, texts) in view.recordings.iter().zip(&rows) {
        let cells: Vec<String> = texts.iter().enumerate().map(|(column, text)| cell(column, text)).collect();
        let rest = cells[2..].join("  ");
        let answer = cut(&answer_cell(row), answer_width);
        out.line(format!("{}  {}  {rest}  {answer}", style.handle(&cells[0]), style.faint(&cells[1])).trim_end());
    }
    out
}

/// The first pole of a recording, or why there is none, after its tags.
fn answer_cell(row: &view::RecordingView) -> String {
    let answer = match (&row.answer, row.state) {
        (None, RecordingStateView::Recording) => "still recording".to_owned(),
        (_, RecordingStateView::Ended) => {
            let cause = row.not_sealed_cause.as_ref().or(row.not_sealed.as_ref());
            format!("not finished: {}", cause.map_or("", String::as_str))
        }
        (None, RecordingStateView::Killed) => "longpole killed: see show".to_owned(),
        (answer, state) => {
            let killed = if state == RecordingStateView::Killed { "longpole killed; " } else { "" };
            killed.to_owned() + &answer.as_ref().map(answer_words).unwrap_or_default()
        }
    };
    let tags: String = row.tags.iter().map(|tag| format!("[{tag}] ")).collect();
    tags + &answer
}

/// Columns before that of the answer.
const COLUMNS: usize = 7;

/// Columns of the command, at most.
const COMMAND_WIDTH: usize = 20;

/// Columns of the answer that are always there.
const ANSWER_WIDTH_MIN: usize = 12;

/// `1`, `signal 15`, or nothing if unknown.
fn exit_cell(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => String::new(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("signal {signal}"),
        Some(view::ExitView { code, .. }) => code.unwrap_or_default().to_string(),
    }
}

/// How much the first pole saves.
fn saves_words(answer: &view::AnswerView) -> String {
    range(TimeUnit::of(answer.saves_if_zero_nanos[1]), answer.saves_if_zero_nanos)
}

/// The first pole as the answer calls it, `create bucket › upload`; one that is no part, with what it waits for or the function that computes.
fn answer_words(answer: &view::AnswerView) -> String {
    let name = match &answer.context {
        Some(context) if !answer.name.contains(context) => format!("{context} › {}", answer.name),
        _ => answer.name.clone(),
    };
    match (&answer.part, &answer.wait, &answer.function) {
        (Some(part), ..) => format!("{name} › {part}"),
        (None, Some(wait), _) => format!("{name}: {wait}"),
        (None, None, Some(function)) => format!("{name}, in {function}"),
        (None, None, None) => name,
    }
}

/// Local date and time of a Unix time in nanoseconds: `Nov 27 07:39`, or `Nov 27  2025` of another year, as `ls -l` has it.
pub(super) fn when(unix_nanos: &str) -> String {
    let nanos: i128 = unix_nanos.parse().unwrap_or_default();
    jiff::Timestamp::from_nanosecond(nanos)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()))
        .map(|at| at.strftime(if at.year() == jiff::Zoned::now().year() { "%b %e %H:%M" } else { "%b %e  %Y" }).to_string())
        .unwrap_or_default()
}
