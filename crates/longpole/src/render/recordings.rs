//! The list of recordings, each with its answer.

use longpole_model::units::{TimeUnit, count, duration, range};
use longpole_recording::view;

use super::command::fit_command;
use crate::terminal::screen::Screen;
use crate::terminal::{Style, cut, pad, right};

/// Recordings, newest first.
pub(crate) fn recordings(view: &view::RecordingsView, style: Style) -> Screen {
    let head =
        format!("{:4}  {:11}  {:>8}  {:9}  {:>6}  {:COMMAND_WIDTH$}  first long pole", "", "started", "wall", "end", "spans", "command");
    let mut out = Screen::of(style.strong(&head));
    for row in &view.recordings {
        let answer = match (&row.answer, row.state) {
            (None, view::RecordingStateView::Recording) => "still recording".to_owned(),
            (_, view::RecordingStateView::Ended) => {
                let cause = row.not_sealed_cause.as_ref().or(row.not_sealed.as_ref());
                format!("not finished: {}", cause.map_or("", String::as_str))
            }
            (None, view::RecordingStateView::Killed) => "longpole killed: see show".to_owned(),
            (answer, state) => {
                let killed = if state == view::RecordingStateView::Killed { "longpole killed; " } else { "" };
                killed.to_owned() + &answer.as_ref().map(answer_words).unwrap_or_default()
            }
        };
        let tags: String = row.tags.iter().map(|tag| format!("[{tag}] ")).collect();
        let answer = tags + &answer;
        out.line(format!(
            "{}  {}  {}  {}  {}  {}  {}",
            style.handle(&pad(&row.recording, 4)),
            style.faint(&when(&row.start_unix_nano)),
            right(&duration(row.wall_nanos), 8),
            pad(&end_words(row.exit.as_ref()), 9),
            right(&count(row.spans), 6),
            pad(&fit_command(&row.command, COMMAND_WIDTH), COMMAND_WIDTH),
            cut(&answer, style.width().saturating_sub(COLUMNS_WIDTH).max(ANSWER_WIDTH_MIN))
        ));
    }
    out
}

/// Width of the command in the list.
const COMMAND_WIDTH: usize = 24;

/// Columns of the answer that are always there.
const ANSWER_WIDTH_MIN: usize = 12;

/// What the other columns and the gaps between them take.
const COLUMNS_WIDTH: usize = 4 + 11 + 8 + 9 + 6 + COMMAND_WIDTH + 6 * 2;

/// `exit 1`, `signal 15`, or nothing if unknown.
fn end_words(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => String::new(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("signal {signal}"),
        Some(view::ExitView { code, .. }) => format!("exit {}", code.unwrap_or_default()),
    }
}

/// The stored answer in a few words.
fn answer_words(answer: &view::AnswerView) -> String {
    let saves = range(TimeUnit::of(answer.saves_if_zero_nanos[1]), answer.saves_if_zero_nanos);
    let name = match &answer.context {
        Some(context) if answer.name.contains(context) => context.clone(),
        Some(context) => format!("{context} › {}", answer.name),
        None => answer.name.clone(),
    };
    let function = answer.function.as_ref().map(|function| format!(", in {function}")).unwrap_or_default();
    format!("saves {saves}: {name}{function}")
}

/// Local date and time of a Unix time in nanoseconds.
fn when(unix_nanos: &str) -> String {
    let nanos: i128 = unix_nanos.parse().unwrap_or_default();
    jiff::Timestamp::from_nanosecond(nanos)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
