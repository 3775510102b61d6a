//! Functions as rows of tables.

use longpole_model::SumNanos;
use longpole_model::units::{TimeUnit, percent};
use longpole_recording::view;

use crate::terminal::{Style, fit, function_words, right, width};

/// What the mark in front of a function means, below a list with functions of the kernel.
pub(crate) fn kernel_line(mut runtimes: impl Iterator<Item = Option<view::RuntimeView>>, style: Style) -> Option<String> {
    runtimes.any(|runtime| runtime == Some(view::RuntimeView::Kernel)).then(|| style.faint("[k]: a function of the kernel"))
}

/// Printed if there are no samples.
pub(crate) fn no_samples(unsampled: view::Unsampled) -> &'static str {
    match unsampled {
        view::Unsampled::OnlySpans => "No samples: it has only spans. Record the command with `longpole run` to see its code.",
        view::Unsampled::Off => "No samples: profiling was off (--no-profile).",
        view::Unsampled::Here => {
            "No on-CPU samples here: this time was spent waiting (--off-cpu), was too short to sample, or belongs to a process that was not sampled."
        }
    }
}

/// Functions as rows of a table, with its head; shares are of `weight_nanos`, and the functions are sorted by total or by self time.
pub(crate) fn function_rows(functions: &[view::TopFrameView], weight_nanos: i64, by_total: bool, style: Style) -> Vec<String> {
    let unit = TimeUnit::of(functions.iter().map(|function| function.total_nanos).max().unwrap_or_default());
    let mark = |head: &str, is_sorted| if is_sorted { format!("{head}{SORTED}") } else { head.to_owned() };
    let (own, total) = (mark("self", !by_total), mark("total", by_total));
    let head = style.faint(&format!("{}  {}  {}  function", right(&own, 9), right("share", 5), right(&total, 9)));
    let row = |function: &view::TopFrameView| {
        let place = place(&function.file, function.line);
        let room = style.width().saturating_sub(30 + function.handle.len() + width(&place)).max(20);
        format!(
            "{}  {}  {}  {} {}{}",
            right(&unit.show(function.self_nanos), 9),
            right(&percent(function.self_nanos, weight_nanos), 5),
            right(&unit.show(function.total_nanos), 9),
            style.handle(&function.handle),
            fit(&function_words(&function.function, function.runtime), room),
            style.faint(&place)
        )
    };
    [head].into_iter().chain(functions.iter().map(row)).collect()
}

pub(crate) fn place(file: &str, line: u32) -> String {
    if file.is_empty() { String::new() } else { format!("  {}:{line}", file.rsplit('/').next().unwrap_or_default()) }
}

/// Marks the head of the column that a table is sorted by, largest first.
const SORTED: &str = " ▼";

/// Functions as rows of a table, with its head, by self time, then by total.
pub(crate) fn frame_rows(frames: &[view::TopFrameView], style: Style) -> Vec<String> {
    if frames.is_empty() {
        return Vec::new();
    }
    let unit = TimeUnit::of(frames.iter().map(|f| f.total_nanos).max().unwrap_or_default());
    let own = format!("self{SORTED}");
    let mut out = vec![style.faint(&format!("  {}  {}  function", right(&own, 9), right("total", 9)))];
    // The first of them is the one to name, which may have little time of its own.
    let mut frames: Vec<&view::TopFrameView> = frames.iter().collect();
    frames.sort_by_key(|frame| std::cmp::Reverse((frame.self_nanos, frame.total_nanos)));
    for frame in frames {
        // A recursive function is on several lines at once.
        let are_apart = frame.lines.iter().map(|line| line.total_nanos).sum_nanos::<i64>() <= frame.total_nanos;
        let lines: Vec<String> = match &frame.lines[..] {
            // If one line has nearly all the time, it is enough.
            [most, second, ..]
                if frame.whose == view::WhoseView::Program && second.total_nanos.saturating_mul(5) >= most.total_nanos && are_apart =>
            {
                frame.lines.iter().map(|line| format!("{} ({})", line.line, percent(line.total_nanos, frame.total_nanos))).collect()
            }
            _ => vec![frame.line.to_string()],
        };
        let file = frame.file.rsplit('/').next().unwrap_or_default();
        let place = if file.is_empty() { String::new() } else { format!("  {file}:{}", lines.join(", ")) };
        let room = style.width().saturating_sub(26 + frame.handle.len() + width(&place)).max(20);
        out.push(format!(
            "  {}  {}  {} {}{}",
            right(&unit.show(frame.self_nanos), 9),
            right(&unit.show(frame.total_nanos), 9),
            style.handle(&frame.handle),
            fit(&function_words(&frame.function, frame.runtime), room),
            style.faint(&place)
        ));
    }
    out
}
