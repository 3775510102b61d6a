//! Commands to try next.

use longpole_model::units::{count, counted};
use longpole_recording::view;

use super::LABEL_WIDTH;
use crate::next_command::{own_name, quoted};
use crate::terminal::{self, Style};

/// Whether the recording has nothing but the command's own wall and CPU time.
pub(super) fn knows_only_the_command(view: &view::SummaryView) -> bool {
    view.of == view::SummarisedView::CommandAlone
}

pub(crate) fn next_lines(view: &view::SummaryView, style: Style) -> Vec<String> {
    let (own, recording) = (own_name(), quoted(&view.recording));
    let mut next = Vec::new();
    if is_on_a_server(&view.recording) {
        // Its samples are there, and so is the page that shows them.
    } else if view.attached.is_some() {
        next.push(format!("{own} top {recording} --wall"));
        next.push(format!("{own} flame {recording} --wall"));
        next.push(format!("{own} threads {recording}"));
    } else if !view.functions.is_empty() {
        next.push(format!("{own} top {recording}"));
        next.push(format!("{own} flame {recording}"));
    } else if let Some(pole) = view.poles.first().filter(|_| !knows_only_the_command(view)) {
        // A process has no attributes and no events; its code is what there is to see.
        if let Some(function) = pole.part.as_ref().and_then(function_to_type).filter(|_| view.spans == 0) {
            next.push(format!("{own} frame {function} {recording}"));
        } else if view.spans == 0 && pole.samples > 0 && pole.reason.code != view::ReasonCodeView::Waits {
            next.push(format!("{own} top {recording} --span {}", pole.handle));
        } else {
            next.push(format!("{own} span {} {recording}", pole.handle));
        }
        // If it waits, its samples show little.
        if pole.reason.code == view::ReasonCodeView::Waits && pole.states.blocked_nanos.sum() > 0 {
            next.push(format!("{own} flame {recording} --off-cpu --span {}", pole.handle));
        } else if pole.samples > 0 {
            next.push(format!("{own} flame {recording} --span {}", pole.handle));
        }
        if !view.usage.is_empty() {
            next.push(format!("{own} processes {recording}"));
        }
    } else if view.samples > 0 {
        next.push(format!("{own} flame {recording}"));
    }
    next.push(format!("{own} open {recording}"));
    // On one line if they fit, else on a line each.
    let width = 7 + next.iter().map(|command| terminal::width(command) + 3).sum::<usize>();
    let next: Vec<String> = next.iter().map(|command| style.handle(command)).collect();
    let lines = if width <= style.width() { vec![next.join("   ")] } else { next };
    let label = |index: usize| if index == 0 { style.faint("next") + "      " } else { " ".repeat(LABEL_WIDTH) };
    lines.iter().enumerate().map(|(index, line)| label(index) + line).collect()
}

/// Whether this is the address of a recording that was sent to a server; traces there are read whole.
fn is_on_a_server(recording: &str) -> bool {
    let name = recording.strip_prefix("http").and_then(|address| address.rsplit_once("/r/r"));
    name.is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What `frame` takes for the function of a part: its name, as the answer has it, or its handle if the name would need quotes.
fn function_to_type(part: &view::PartView) -> Option<&str> {
    let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_:.".contains(c)) && !name.contains("main");
    part.function.as_deref().filter(is_plain).or(part.handle.as_deref())
}

/// What a view of a part shows, and how to see the whole operation. `command` is the view's own, such as `flame`.
pub(crate) fn part_line(command: &str, recording: &str, part_of: &view::PartOfView, time: view::FlameTimeView) -> String {
    let whole = match &part_of.handle {
        Some(handle) => format!("--span {handle}"),
        None => format!("--name {}", quoted(&part_of.name)),
    };
    let flag = match time {
        view::FlameTimeView::OnCpu => "",
        view::FlameTimeView::OffCpu => " --off-cpu",
        view::FlameTimeView::Wall => " --wall",
    };
    let name = terminal::fit(&part_of.name, PART_OF_WIDTH);
    format!("only while it was on the critical path; all of {name}: {} {command} {} {whole}{flag}", own_name(), quoted(recording))
}

/// Columns of the name of an operation that a view shows a part of.
const PART_OF_WIDTH: usize = 20;

/// How to see all spans of the same name.
pub(crate) fn same_name_line(recording: &str, all: &view::SameNameView) -> String {
    let who = if all.spans == 2 { "Both".to_owned() } else { format!("All {}", count(all.spans)) };
    format!(
        "{who} of this name have {}: {} flame {} --name {}",
        counted(all.samples, "sample", "samples"),
        own_name(),
        quoted(recording),
        quoted(&all.name)
    )
}
