//! The long poles of many traces together.

use longpole_model::units::{count, counted, duration, percent};
use longpole_recording::view::{OperationPolesView, QuantilesView, SharedPoleView, SharedPolesView};

use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, column_widths, fit, pad, right, width};

/// Traces that have a 99th percentile.
const TRACES_OF_A_P99: usize = 100;

/// How much more of the slowest traces a pole must have than of the others, to be why they are slow.
const APART_MIN: f64 = 0.1;

/// Poles of the first operation, and other operations, that are listed.
const POLES_SHOWN: usize = 12;
const OTHERS_SHOWN: usize = 5;

/// A pole with a smaller part of the time is not listed, in per cent.
const SHARE_MIN: i64 = 1;

/// Columns of names that are always there.
const NAMES_WIDTH_MIN: usize = 20;

/// What to fix first in the operation with most time, and the others. `service` is the one whose traces they are, if the search names one; `address`
/// names the page of a trace; `alone` is the command that prints the poles of one operation.
pub(crate) fn shared_poles(
    view: &SharedPolesView,
    service: Option<&str>,
    address: impl Fn(&str) -> String,
    alone: impl Fn(&str, &str) -> String,
    style: Style,
) -> Screen {
    let mut out = Screen::default();
    let Some((first, others)) = view.operations.split_first() else {
        out.line(left_out(view));
        return out;
    };
    head(view, first).into_iter().for_each(|line| out.line(style.strong(&line)));
    slowest(first).into_iter().chain(service.and_then(|service| in_service(first, service))).for_each(|line| out.line(line));
    out.line("");
    table(first, style).into_iter().for_each(|line| out.line(line));
    if !others.is_empty() {
        out.line("");
        others_table(first, others, style).into_iter().for_each(|line| out.line(line));
    }
    if view.left_out > 0 {
        out.line(style.faint(&left_out(view)));
    }
    out.line("");
    let example = first.poles.first().map_or(&first.longest, |pole| &pole.most_in);
    out.line(format!("next      {} show {}", own_name(), quoted(&address(&example.trace_id))));
    // A name without its numbers finds nothing.
    if let Some(other) = others.iter().find(|other| !other.name.contains('#')) {
        out.line(format!("          {}", alone(&other.service, &other.name)));
    }
    out
}

fn counted_traces(traces: usize) -> String {
    counted(traces as u64, "trace", "traces")
}

fn left_out(view: &SharedPolesView) -> String {
    format!("{} left out, because longpole reads traces of at most 20,000 spans together", counted_traces(view.left_out))
}

/// `POST /checkout · shop`
fn named(service: &str, name: &str) -> String {
    if service.is_empty() { name.to_owned() } else { format!("{name} · {service}") }
}

/// The name of a pole, with its service where that is another one than the operation's.
fn pole_name(pole: &SharedPoleView, of: &OperationPolesView) -> String {
    let name = pole.part.as_ref().map_or_else(|| pole.name.clone(), |part| format!("{} › {part}", pole.name));
    named(if pole.service == of.service { "" } else { &pole.service }, &name)
}

/// The answer in a sentence: which pole, and what half of the requests and the slow ones gain.
fn head(view: &SharedPolesView, of: &OperationPolesView) -> Vec<String> {
    let takes = &of.takes;
    let name = named(&of.service, &of.name);
    let traces = match view.truncated {
        true => format!("{} of the newest {} (--limit reads more)", count(of.traces as u64), counted_traces(view.traces)),
        false => counted_traces(of.traces),
    };
    let (most, total) = (p99_name(of), duration(of.total_nanos));
    let all = format!("{traces}, median {}, {most} {}, {total} in all", duration(takes.median_nanos), duration(takes.p99_nanos));
    let Some(first) = of.poles.first() else { return vec![format!("{name}: {all}")] };
    let gain = match (gain(takes, first, |of| of.median_nanos), gain(takes, first, |of| of.p99_nanos)) {
        (None, None) => "No pole saves anything alone".to_owned(),
        (median, p99) => {
            let median = median.unwrap_or_else(|| duration(takes.median_nanos));
            let p99 = p99.unwrap_or_else(|| duration(takes.p99_nanos));
            format!("Fix {} first: without it, median {median}, {most} {p99}", pole_name(first, of))
        }
    };
    vec![format!("{name}: {all}"), gain]
}

/// What the 99th percentile is called: of fewer than a hundred traces it is the longest.
fn p99_name(of: &OperationPolesView) -> &'static str {
    if of.traces < TRACES_OF_A_P99 { "longest" } else { "p99" }
}

/// Why the slow ones are slow, where one pole tells.
fn slowest(of: &OperationPolesView) -> Option<String> {
    let apart = |pole: &SharedPoleView| pole.share_of_slowest.zip(pole.share_of_others).map_or(0.0, |(slowest, others)| slowest - others);
    let pole = of.poles.iter().max_by(|a, b| apart(a).total_cmp(&apart(b))).filter(|pole| apart(pole) >= APART_MIN)?;
    let (slowest, others) = (share(pole.share_of_slowest?), share(pole.share_of_others?));
    Some(format!("The slowest 5% are slow because of {}: {slowest} of their time, {others} in the others.", pole_name(pole, of)))
}

/// What the poles of one service have of traces that begin in another one.
fn in_service(of: &OperationPolesView, service: &str) -> Option<String> {
    if service == of.service {
        return None;
    }
    let of_service = || of.poles.iter().filter(|pole| pole.service == service);
    let on_path = of_service().map(|pole| pole.on_path_nanos).fold(0, i64::saturating_add);
    let most = match of_service().next() {
        Some(pole) => {
            format!(", first {}: without it, median {}, {} {}", pole.name, without(pole, MEDIAN), p99_name(of), without(pole, P99))
        }
        None => String::new(),
    };
    Some(format!("In {service} itself: {} of the critical paths{most}.", percent(on_path, of.total_nanos)))
}

type Quantile = fn(&QuantilesView) -> i64;

const MEDIAN: Quantile = |of| of.median_nanos;
const P99: Quantile = |of| of.p99_nanos;

/// How long the traces would take without a pole.
fn without(pole: &SharedPoleView, quantile: Quantile) -> String {
    ends(quantile(&pole.without_at_best), quantile(&pole.without))
}

/// How long the traces would take, if that is less: `46ms`, `46ms–60ms`.
fn gain(takes: &QuantilesView, pole: &SharedPoleView, quantile: impl Fn(&QuantilesView) -> i64) -> Option<String> {
    let [least, best] = [&pole.without, &pole.without_at_best].map(&quantile);
    (duration(best) != duration(quantile(takes))).then(|| ends(best, least))
}

fn ends(low: i64, high: i64) -> String {
    let [low, high] = [low, high].map(duration);
    if low == high { low } else { format!("{low}–{high}") }
}

/// The poles, each with what the traces would take without it.
fn table(of: &OperationPolesView, style: Style) -> Vec<String> {
    let has_slowest = of.poles.iter().any(|pole| pole.share_of_slowest.is_some());
    let heads = ["share", "traces", "median", "p95", p99_name(of), if has_slowest { "of slowest 5%" } else { "" }];
    let whole = of.total_nanos;
    let listed: Vec<&SharedPoleView> =
        of.poles.iter().filter(|pole| i128::from(pole.on_path_nanos) * 100 >= i128::from(whole) * i128::from(SHARE_MIN)).collect();
    let shown = &listed[..listed.len().min(POLES_SHOWN)];
    let as_it_is = [
        "100%".to_owned(),
        count(of.traces as u64),
        duration(of.takes.median_nanos),
        duration(of.takes.p95_nanos),
        duration(of.takes.p99_nanos),
        if has_slowest { "100%".to_owned() } else { String::new() },
    ];
    let cells = shown.iter().map(|pole| {
        [
            percent(pole.on_path_nanos, whole),
            count(pole.traces as u64),
            without(pole, MEDIAN),
            without(pole, |of| of.p95_nanos),
            without(pole, P99),
            pole.share_of_slowest.map_or_else(String::new, share),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(as_it_is).chain(cells).collect();
    let widths = column_widths(&heads, &rows);
    let fixed: usize = widths.iter().map(|width| width + 2).sum();
    let names: Vec<String> = std::iter::once("as it is".to_owned()).chain(shown.iter().map(|pole| pole_name(pole, of))).collect();
    let longest = names.iter().map(|name| width(name)).max().unwrap_or_default().max(NAMES_WIDTH_MIN);
    let name_width = longest.min(style.width().saturating_sub(fixed).max(NAMES_WIDTH_MIN));
    let columns = |row: [&str; 6]| (0..6).map(|column| format!("  {}", right(row[column], widths[column]))).collect::<String>();
    let mut lines = vec![style.strong(format!("{}{}", pad("WITHOUT THIS POLE", name_width), columns(heads)).trim_end())];
    for (place, (name, row)) in names.iter().zip(&rows).enumerate() {
        let text = format!("{}{}", pad(&fit(name, name_width), name_width), columns(row.each_ref().map(String::as_str)));
        lines.push(if place == 0 { style.faint(text.trim_end()) } else { text.trim_end().to_owned() });
    }
    let more = of.poles.len() - shown.len() + of.omitted;
    if more > 0 {
        lines.push(style.faint(&format!("… {} with less (--format json)", counted(more as u64, "more pole", "more poles"))));
    }
    let all = counted_traces(of.traces);
    lines.push(style.faint(&format!("share: part of the critical paths of all {all}; traces: in how many it is on the path;")));
    lines.push(style.faint(&format!("then what all {all} would take if the pole's own time were zero")));
    if shown.iter().any(|pole| without(pole, MEDIAN).contains('–')) {
        lines.push(style.faint("a range: longpole infers which calls wait for which; the upper end holds if they are independent"));
    }
    lines
}

fn share(of: f64) -> String {
    percent((of.clamp(0.0, 1.0) * 10_000.0) as i64, 10_000)
}

/// The other operations, each with its first pole.
fn others_table(first: &OperationPolesView, others: &[OperationPolesView], style: Style) -> Vec<String> {
    let heads = ["traces", "median", "p99", "total"];
    let cells = |of: &OperationPolesView| {
        [count(of.traces as u64), duration(of.takes.median_nanos), duration(of.takes.p99_nanos), duration(of.total_nanos)]
    };
    let shown = &others[..others.len().min(OTHERS_SHOWN)];
    let rows: Vec<[String; 4]> = shown.iter().map(cells).collect();
    let widths = column_widths(&heads, &rows);
    let names: Vec<String> = shown.iter().map(|of| named(&of.service, &of.name)).collect();
    let fixed: usize = widths.iter().map(|width| width + 2).sum();
    let longest = names.iter().map(|name| width(name)).max().unwrap_or_default().max(NAMES_WIDTH_MIN);
    let name_width = longest.min((style.width().saturating_sub(fixed) / 2).max(NAMES_WIDTH_MIN));
    let columns = |row: [&str; 4]| (0..4).map(|column| format!("  {}", right(row[column], widths[column]))).collect::<String>();
    let pole_width = style.width().saturating_sub(name_width + fixed + 2).max(NAMES_WIDTH_MIN);
    let mut lines = vec![style.strong(&format!("{}{}  fix first", pad("OTHER OPERATIONS", name_width), columns(heads)))];
    for ((of, name), row) in shown.iter().zip(&names).zip(&rows) {
        let pole = of.poles.first().map(|pole| fit(&pole_name(pole, of), pole_width)).unwrap_or_default();
        let text = format!("{}{}  {pole}", pad(&fit(name, name_width), name_width), columns(row.each_ref().map(String::as_str)));
        lines.push(text.trim_end().to_owned());
    }
    let more = others.len() - shown.len();
    if more > 0 {
        let total: i64 = others.iter().map(|of| of.total_nanos).fold(first.total_nanos, i64::saturating_add);
        let rest: i64 = others[shown.len()..].iter().map(|of| of.total_nanos).fold(0, i64::saturating_add);
        lines.push(style.faint(&format!(
            "… {} with {} of all time",
            counted(more as u64, "more operation", "more operations"),
            percent(rest, total)
        )));
    }
    lines
}
