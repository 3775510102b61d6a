//! How each thread spent its time.

use longpole_model::SumNanos;
use longpole_model::units::{TimeUnit, count, counted, percent};
use longpole_recording::view;

use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, fold, pad, right, width};

/// Other threads listed that a thread waited for.
const OTHERS_SHOWN: usize = 3;

/// `93.1ms for a lock that flush 17 held`, by what the other thread did for it.
fn waited_for(thread: &view::ThreadView, other: &view::WaitedForView, unit: TimeUnit) -> String {
    let who = match &other.name {
        Some(name) => format!("{} {}", fit(name, 20), other.tid),
        None if other.tid == thread.pid => "the main thread".to_owned(),
        None => format!("thread {}", other.tid),
    };
    let nanos = unit.show(other.nanos);
    let inferred = if other.evidence == view::BlockerEvidenceView::Inferred { " (inferred)" } else { "" };
    match other.relation {
        view::RelationView::Holds => format!("{nanos} for a lock that {who} held{inferred}"),
        view::RelationView::Ends => format!("{nanos} until {who} ended{inferred}"),
        view::RelationView::Wakes => format!("{nanos} until {who} woke it{inferred}"),
    }
}

/// Printed if there are no threads; `is_profile` if the recording has samples.
pub(crate) fn none(recording: &str, is_profile: bool) -> Screen {
    let why = if is_profile { "its file names none" } else { "only recordings with a profile have them" };
    Screen::of(format!("{recording} has no threads: {why}"))
}

pub(crate) fn threads(view: &view::ThreadsView, limit: usize, style: Style) -> Screen {
    let is_whole = view.from_nanos.is_none();
    let mut out = Screen::default();
    if let (Some(from), Some(to)) = (view.from_nanos, view.to_nanos) {
        let unit = TimeUnit::of(to);
        let on_cpu = view.threads.iter().filter(|thread| thread.on_cpu_nanos > 0);
        let total = on_cpu.clone().map(|thread| thread.on_cpu_nanos).sum_nanos::<i64>();
        let threads = counted(on_cpu.count() as u64, "thread", "threads");
        out.line(format!("{} to {}: {threads} used {} of CPU time", unit.show(from), unit.show(to), unit.show(total)));
        out.line("");
    }
    // Poles are of the whole run.
    out.append(
        &thread_rows(&view.threads, ThreadList { limit, names_poles: is_whole, is_of_range: !is_whole, names_functions: true }, style)
            .into_iter()
            .collect(),
    );
    let unit = TimeUnit::of(view.threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let hidden: Vec<_> = view.threads.iter().filter(|thread| limit != 0 && thread.rank >= limit).collect();
    if !hidden.is_empty() {
        let on_cpu = unit.show(hidden.iter().map(|thread| thread.on_cpu_nanos).sum_nanos::<i64>());
        let in_poles = hidden.iter().filter(|thread| !thread.poles.is_empty()).count();
        let poles = match in_poles {
            _ if !is_whole => String::new(),
            0 => ", none of them in a long pole".to_owned(),
            _ => format!(", {in_poles} of them in long poles"),
        };
        out.line(style.faint(&format!("… {} more, together {on_cpu} on-CPU{poles} (--limit 0)", count(hidden.len() as u64))));
    }
    out
}

/// Columns of the name and the number of a thread, at most.
const NAME_WIDTH_MAX: usize = 40;

/// The head of the kinds of waits.
const KINDS_HEAD: &str = "blocked time by kind";

/// Poles of a thread in its row.
const POLES_SHOWN: usize = 3;

/// `p1 p3 p4 +2`.
fn poles_words(poles: &[String]) -> String {
    let shown = if poles.len() <= POLES_SHOWN + 1 { poles.len() } else { POLES_SHOWN };
    let more = (poles.len() > shown).then(|| format!("+{}", poles.len() - shown));
    poles[..shown].iter().cloned().chain(more).collect::<Vec<_>>().join(" ")
}

/// The column of poles, behind those of times.
const POLES: usize = 4;

/// A time that nothing tells.
const UNKNOWN: &str = "–";

/// A row of the table.
struct ThreadCells<'a> {
    thread: &'a view::ThreadView,
    /// Its name and number.
    name: String,
    /// Times, and the poles that have code in it.
    cells: [String; 5],
    blocked_nanos: i64,
}

impl<'a> ThreadCells<'a> {
    fn new(thread: &'a view::ThreadView, unit: TimeUnit, names_poles: bool) -> ThreadCells<'a> {
        let own = Some(&thread.name).filter(|name| !name.is_empty() && **name != thread.process);
        let name = match own.or(thread.entry.as_ref()) {
            Some(name) => format!("{} › {name}", thread.process),
            None => thread.process.clone(),
        };
        let id = format!(" {}", thread.tid);
        let name = format!("{}{id}", fit(&name, NAME_WIDTH_MAX.saturating_sub(id.len())));
        let blocked_nanos = thread.blocked_nanos.sum().saturating_add(thread.blocked_unseen_nanos);
        let mark = if thread.is_estimate { "≈ " } else { "" };
        let on_cpu = format!("{mark}{}", unit.show(thread.on_cpu_nanos));
        let is_unknown = |nanos: i64| thread.is_estimate && nanos == 0;
        let [lifetime, ready, blocked] = [thread.nanos, thread.ready_nanos, blocked_nanos]
            .map(|nanos| if is_unknown(nanos) { UNKNOWN.to_owned() } else { unit.show(nanos) });
        let poles = if names_poles { poles_words(&thread.poles) } else { String::new() };
        ThreadCells { thread, name, cells: [lifetime, on_cpu, ready, blocked, poles], blocked_nanos }
    }

    /// `sleep 80%, lock 15%`: all kinds, the longest first.
    fn kinds(&self) -> String {
        let all = self.blocked_nanos;
        let unseen = self.thread.blocked_unseen_nanos;
        let mut kinds: Vec<(&str, i64)> =
            self.thread.blocked_nanos.parts().into_iter().map(|(kind, nanos)| (kind.words(), nanos)).collect();
        kinds.push(("not sampled", unseen));
        kinds.retain(|(_, nanos)| *nanos >= all / 100 && *nanos > 0);
        kinds.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        kinds.iter().map(|(kind, nanos)| format!("{kind} {}", percent(*nanos, all))).collect::<Vec<_>>().join(", ")
    }
}

/// What a list of threads shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadList {
    /// At most this number, most relevant first; 0 for all.
    pub(crate) limit: usize,
    /// The poles that have code in each.
    pub(crate) names_poles: bool,
    /// Whether it is of a range of time.
    pub(crate) is_of_range: bool,
    /// The function that each ran most.
    pub(crate) names_functions: bool,
}

/// Threads below a head.
pub(crate) fn thread_rows(threads: &[view::ThreadView], list: ThreadList, style: Style) -> Vec<String> {
    let ThreadList { limit, names_poles, is_of_range, names_functions } = list;
    let unit = TimeUnit::of(threads.iter().map(|thread| thread.nanos.max(thread.on_cpu_nanos)).max().unwrap_or_default());
    let shown = threads.iter().filter(|thread| limit == 0 || thread.rank < limit);
    let rows: Vec<ThreadCells<'_>> = shown.map(|thread| ThreadCells::new(thread, unit, names_poles)).collect();
    let names_poles = rows.iter().any(|row| !row.cells[POLES].is_empty());
    let heads =
        [if is_of_range { "in range" } else { "lifetime" }, "on-CPU", "runnable", "blocked", if names_poles { "poles" } else { "" }];
    let widest = |head: &str, cell: &dyn Fn(&ThreadCells<'_>) -> usize| rows.iter().map(cell).max().unwrap_or_default().max(width(head));
    let name_width = widest("THREAD", &|row| width(&row.name));
    let widths: [usize; 5] = std::array::from_fn(|column| widest(heads[column], &|row| width(&row.cells[column])));
    let columns = |cells: [&str; 5]| {
        let cells = cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| *width > 0);
        // Numbers to the right, the list of poles to the left.
        let cell = |(column, (cell, width)): (usize, (&&str, usize))| if column < POLES { right(cell, width) } else { pad(cell, width) };
        cells.map(cell).collect::<Vec<_>>().join("  ")
    };
    let mut out = vec![style.strong(&format!("{}  {}  {KINDS_HEAD}", pad("THREAD", name_width), columns(heads)))];
    for row in &rows {
        let before = format!("{}  {}  ", pad(&row.name, name_width), columns(row.cells.each_ref().map(String::as_str)));
        let kinds = row.kinds();
        let are_beside = width(&before) + width(&kinds) <= style.width();
        out.push(if kinds.is_empty() || !are_beside { before.trim_end().to_owned() } else { format!("{before}{}", style.faint(&kinds)) });
        if !are_beside {
            // The kind that makes it a pole may be a small one: leave none out.
            out.extend(fold(&format!("blocked: {kinds}"), style.width() - 2).iter().map(|part| style.faint(&format!("  {part}"))));
        }
        // Leave out what is less than 1% of the longest.
        let thread = row.thread;
        // A thread that got a lock back held it itself.
        let most = thread.waited_for.first().map_or(0, |other| other.nanos);
        let is_worth = |other: &&view::WaitedForView| other.tid != thread.tid && other.nanos.saturating_mul(100) > most;
        let others = thread.waited_for.iter().filter(is_worth).take(OTHERS_SHOWN);
        let code =
            thread.function.iter().filter(|_| names_functions).map(|it| format!("{} on-CPU in {}", unit.show(it.nanos), it.function));
        let notes: Vec<String> = code.chain(others.map(|other| waited_for(thread, other, unit))).collect();
        if !notes.is_empty() {
            out.extend(fold(&notes.join(", "), style.width() - 2).iter().map(|part| style.faint(&format!("  {part}"))));
        }
    }
    out
}
