//! The table of the long poles.

use longpole_analysis::pulumi::urn::name_of_title;
use longpole_analysis::tree::labels::method_of_call;
use longpole_analysis::words::{self, Words};
use longpole_model::units::{TimeUnit, range};
use longpole_recording::view;

use super::line;
use super::service::named_service;
use crate::terminal::screen::Screen;
use crate::terminal::{self, MEASURE, Style, fit, fold, pad, right};

/// Poles in the answer; `longpole poles` has the rest.
const POLES_SHOWN: usize = 6;

/// A pole matters if it is on the path for this part of the run, or would save as much.
const POLE_PART: i64 = 200;

/// Columns of the name of what limits a saving.
const LIMIT_WIDTH: usize = 28;

/// Columns of a pole's service.
const SERVICE_WIDTH: usize = 16;

/// The reason why there is no pole.
pub(crate) fn none(of: view::SummarisedView) -> &'static str {
    match of {
        view::SummarisedView::Attached => {
            "No long poles: the processes were still running, so there is no end to bring forward. `top --wall` and `threads` show what they did."
        }
        view::SummarisedView::Profile => "No long poles: the file is a profile without spans or processes. `top` lists its functions.",
        _ => "No long poles: no span or process spent time of its own on the critical path.",
    }
}

/// Number of poles in the answer: up to the last that matters.
pub(crate) fn poles_shown(view: &view::SummaryView) -> usize {
    let matters = |pole: &view::PoleView| pole.on_path_nanos.max(pole.saves_if_zero_nanos[1]) >= view.wall_nanos / POLE_PART;
    view.poles.iter().take(POLES_SHOWN).rposition(matters).map_or(1, |last| last + 1).min(view.poles.len())
}

/// Numbers of a pole: on the path, saved if it took no time, if it took half, and together with all poles above it.
const COLUMNS: usize = 4;

/// The first `shown` poles as a table: a line of numbers each, and the reason below.
pub(crate) fn pole_table(out: &mut Screen, poles: &[view::PoleView], shown: usize, style: Style) {
    let poles = &poles[..shown];
    let unit = |values: &mut dyn Iterator<Item = i64>| TimeUnit::of(values.max().unwrap_or_default());
    let with_those_before = |p: &view::PoleView| p.saves_with_those_before_nanos.unwrap_or(p.saves_if_zero_nanos);
    let unit = unit(&mut poles.iter().flat_map(|p| [p.on_path_nanos, with_those_before(p)[1]]));
    let cells: Vec<[String; COLUMNS]> = poles
        .iter()
        .map(|p| {
            let together = p.saves_with_those_before_nanos.map(|nanos| range(unit, nanos)).unwrap_or_default();
            [unit.show(p.on_path_nanos), range(unit, p.saves_if_zero_nanos), range(unit, p.saves_if_half_nanos), together]
        })
        .collect();
    let heads = ["on path", "saves", "2× faster", "+ all above"];
    let widths: Vec<usize> = (0..COLUMNS)
        .map(|i| cells.iter().map(|row| terminal::width(&row[i])).chain([terminal::width(heads[i])]).max().unwrap_or_default())
        .collect();
    let handle_width = poles.iter().map(|p| p.handle.len()).max().unwrap_or(2);
    let fixed = handle_width + 3 + widths.iter().map(|w| w + 3).sum::<usize>();
    // The service says something only if there are several.
    let says_service = poles.iter().any(|p| named_service(&p.service) != named_service(&poles[0].service));
    let with_service = |p: &view::PoleView, name: String| match named_service(&p.service) {
        service if says_service && !service.is_empty() => format!("{name} · {}", fit(service, SERVICE_WIDTH)),
        _ => name,
    };
    let longest = poles.iter().map(|p| terminal::width(&with_service(p, pole_name(p)))).max().unwrap_or_default();
    let name_width = longest.min(style.width().saturating_sub(fixed)).max(NAME_WIDTH_MIN);
    let name = |p: &view::PoleView| {
        let whole = with_service(p, pole_name(p));
        if terminal::width(&whole) <= name_width { whole } else { with_service(p, short_pole_name(p)) }
    };
    let mut head = pad("LONG POLES", handle_width + 3 + name_width);
    heads.iter().zip(&widths).for_each(|(text, width)| head.extend(["   ", &right(text, *width)]));
    line(out, &style.strong(&head));
    let indent = handle_width + 3;
    for (index, (pole, row)) in poles.iter().zip(&cells).enumerate() {
        let text = format!(
            "{} {} {}   {}   {}   {}   {}",
            style.handle(&pad(&pole.handle, handle_width)),
            evidence_mark(pole),
            pad(&name(pole), name_width),
            right(&row[0], widths[0]),
            style.strong(&right(&row[1], widths[1])),
            right(&row[2], widths[2]),
            right(&row[3], widths[3]),
        );
        line(out, &text);
        let limit = pole.limited_by.as_ref();
        let limit = limit.map(|limit| limit_words(limit, is_certain(pole)));
        let limit = limit.or_else(|| saves_after(poles, index, unit));
        let room = style.width() - indent;
        let beside = limit.as_ref().map_or(0, |limit| "; ".len() + terminal::width(limit));
        // The blocker stands behind the reason if both fit, else on its own line.
        let blocked = pole.blocked_by.as_ref().map(|blocked| blocked.text.as_str());
        let (why, blocked) = match blocked.map(|text| why(pole, poles).text(format!("; {text}"))) {
            Some(with_blocked) if with_blocked.width(MEASURE) <= room => (with_blocked, None),
            _ => (why(pole, poles), blocked),
        };
        let mut below = |text: &str| line(out, &style.faint(&format!("{}{text}", " ".repeat(indent))));
        match limit {
            // On one line if both fit.
            Some(limit) if why.least_width(MEASURE) + beside <= room => {
                below(&fit(&format!("{}; {limit}", why.fit(room - beside, MEASURE)), room));
            }
            limit => {
                let short = why.fit(room, MEASURE);
                // Two lines have room for whole names.
                let parts = if terminal::width(&short) <= room { vec![short] } else { fold(&why.to_string(), room) };
                parts.iter().for_each(|part| below(part));
                limit.iter().for_each(|limit| below(limit));
            }
        }
        if let Some(text) = blocked {
            below(&fit(text, room));
        }
        // If it waits for a process without spans, that process is what to fix.
        if let Some(text) = pole.callee.as_ref().and_then(|callee| callee.text.as_ref()).filter(|_| pole.states.blocked_nanos.network > 0) {
            below(&fit(&words::other_side(text), room));
        }
    }
}

fn limit_words(limit: &view::LimitView, is_certain: bool) -> String {
    let short = |name: &str| fit(name, LIMIT_WIDTH);
    let (name, within) = (short(&limit.name), limit.within.as_ref().map(|within| (short(&within.name), &within.handle)));
    words::limit((&name, &limit.handle), within.as_ref().map(|(name, handle)| (name.as_str(), handle.as_str())), is_certain)
}

/// Columns before what the table leaves out.
const REST_INDENT: usize = 7;

/// What the table leaves out of the path, so that nothing of the run is missing: other poles, and the time in none, if it matters.
pub(crate) fn path_rest(out: &mut Screen, more: view::PolesTruncated, all: &str, (between, idle, wall): (i64, i64, i64), style: Style) {
    if more.poles > 0 {
        line(out, &style.faint(&format!("     … {} ({all})", words::more_poles(more.poles, more.on_path_nanos))));
    }
    let between = (between > wall / POLE_PART).then(|| words::between_poles(between));
    let idle = (idle > wall / POLE_PART).then(|| words::idle_on_path(idle));
    for text in between.into_iter().chain(idle) {
        let parts = fold(&text, style.width().saturating_sub(REST_INDENT));
        for (index, part) in parts.iter().enumerate() {
            let mark = if index == 0 { '…' } else { ' ' };
            line(out, &style.faint(&format!("     {mark} {part}")));
        }
    }
}

/// What the marks and the first saving of these poles mean, for a reader at a terminal.
pub(crate) fn legend(out: &mut Screen, poles: &[view::PoleView], style: Style) {
    if !style.is_terminal() || poles.is_empty() {
        return;
    }
    let mut marks = Vec::new();
    let of = |evidence| poles.iter().any(|pole| pole.evidence == evidence);
    if of(view::EvidenceView::Declared) {
        marks.push("◆ dependencies are certain");
    }
    if of(view::EvidenceView::Inferred) {
        marks.push(if marks.is_empty() { "◇ dependencies are inferred" } else { "◇ inferred" });
    }
    if poles.iter().any(is_estimate) {
        marks.push("≈ estimated");
    }
    let text = format!("{}; saves: how much sooner the run would end if it took no time", marks.join(", "));
    fold(&text, style.width() - LEGEND_INDENT).iter().for_each(|part| line(out, &style.faint(&format!("{:LEGEND_INDENT$}{part}", ""))));
}

/// Columns before the legend: those of handle and mark.
const LEGEND_INDENT: usize = 5;

/// Whether its shares are estimates.
fn is_estimate(pole: &view::PoleView) -> bool {
    !pole.states.exact && pole.reason.code.has_shares()
}

/// Why a pole is long: `contains p4; ≈ 95% on-CPU, most of it (1.11s) in compress_bundle`. It names no pole that is not `listed`.
fn why(pole: &view::PoleView, listed: &[view::PoleView]) -> Words {
    let place = pole.part.as_ref().and_then(|part| Some((part.file.as_deref()?, part.line?)));
    let contains = pole.contains.as_deref().filter(|inner| listed.iter().any(|pole| pole.handle == *inner));
    words::pole(contains.map(|inner| (inner, pole.contains_all)), place, pole.reason.words())
}

/// Least columns of the names, for the head of the table.
const NAME_WIDTH_MIN: usize = 24;

/// ◆ its dependencies are declared, ◇ inferred from order.
fn evidence_mark(pole: &view::PoleView) -> &'static str {
    if is_certain(pole) { "◆" } else { "◇" }
}

fn is_certain(pole: &view::PoleView) -> bool {
    pole.evidence == view::EvidenceView::Declared
}

/// What a pole adds to the saving of those above it, if that is a multiple of its own saving, or a small part of it: until these are fixed, it is on
/// the path beside others, or saves what they save too.
fn saves_after(poles: &[view::PoleView], index: usize, unit: TimeUnit) -> Option<String> {
    let pole = &poles[index];
    let above = poles[index.checked_sub(1)?].saves_with_those_before_nanos?[1];
    let more = pole.saves_with_those_before_nanos?[1].saturating_sub(above);
    let alone = pole.saves_if_zero_nanos[1];
    if more > alone.saturating_mul(MORE_FACTOR) {
        return Some(words::saves_after(unit, more, pole.on_path_nanos));
    }
    // A pole that contains others saves what they save, which is nothing to say.
    let contains_none = poles[..=index].iter().all(|pole| pole.contains.is_none());
    (contains_none && more.saturating_mul(MORE_FACTOR) < alone).then(|| words::saves_less_after(unit, more.max(0)))
}

/// A pole that adds this many times its own saving to that of those above it, or less than this part of it, is worth a word.
const MORE_FACTOR: i64 = 4;

/// [`pole_name`] in fewer columns: the method of a gRPC call without its service, the name of a resource without its type, and a function without
/// its modules.
fn short_pole_name(pole: &view::PoleView) -> String {
    let context = pole.context.as_deref();
    let resource = context.filter(|_| pole.resource.is_some()).map(name_of_title);
    let part =
        pole.part.as_ref().map(|part| part.function.as_deref().map_or(part.text.as_str(), |function| short_part(&part.text, function)));
    words::name_of_pole(resource.or(context), method_of_call(&pole.name).unwrap_or(&pole.name), pole.count, part)
}

/// The text of a part without the modules of its function: `crunch (sleep)` of `shop::work::crunch (sleep)`.
fn short_part<'a>(text: &'a str, function: &str) -> &'a str {
    let path = function.split(['<', '(', '{']).next().unwrap_or_default().trim_end_matches("::");
    path.rfind("::").and_then(|at| text.get(at + "::".len()..)).filter(|short| !short.is_empty()).unwrap_or(text)
}

/// `create web-bundle › bundle ×3 › hash`: the piece of work, the operation, how often, the function. Omits the piece of work if the name contains
/// it.
fn pole_name(pole: &view::PoleView) -> String {
    words::name_of_pole(pole.context.as_deref(), &pole.name, pole.count, pole.part.as_ref().map(|part| part.text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::short_part;

    #[test]
    fn a_function_is_shortened_by_its_modules() {
        let short = |function: &str| short_part(&format!("{function} (disk)"), function).to_owned();
        assert_eq!(short("shop::work::crunch"), "crunch (disk)");
        assert_eq!(short("crunch"), "crunch (disk)");
        assert_eq!(short("core::iter::map<a::b>::fold"), "map<a::b>::fold (disk)");
        assert_eq!(short("<a::B as C>::run"), "<a::B as C>::run (disk)");
        assert_eq!(short("shop::main::{{closure}}"), "main::{{closure}} (disk)");
    }
}
