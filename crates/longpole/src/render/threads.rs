//! How each thread spent its time.

use longpole_model::SumNanos;
use longpole_model::units::{TimeUnit, count, percent};
use longpole_recording::view;

use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, fold, pad, right};

/// Other threads listed that a thread waited for.
const OTHERS_SHOWN: usize = 3;

/// Kinds of waits listed for a thread.
const KINDS_SHOWN: usize = 3;

/// `lock held by flush 93.1ms`, by what the other thread did for it.
fn waited_for(thread: &view::ThreadView, other: &view::WaitedForView, unit: TimeUnit) -> String {
    let who = match &other.name {
        Some(name) => fit(name, 20),
        None if other.tid == thread.pid => "the main thread".to_owned(),
        None => format!("thread {}", other.tid),
    };
    let nanos =
        format!("{}{}", unit.show(other.nanos), if other.evidence == view::BlockerEvidenceView::Inferred { " (inferred)" } else { "" });
    match other.relation {
        view::RelationView::Holds => format!("lock held by {who} {nanos}"),
        view::RelationView::Ends => format!("until {who} ended {nanos}"),
        view::RelationView::Wakes => format!("until woken by {who} {nanos}"),
    }
}

pub(crate) fn threads(view: &view::ThreadsView, limit: usize, style: Style) -> Screen {
    if view.threads.is_empty() {
        return Screen::of(format!("{} has no threads: longpole records them with the profile", view.recording));
    }
    let mut out: Screen = thread_rows(&view.threads, limit, true, style).into_iter().collect();
    let unit = TimeUnit::of(view.threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let hidden: Vec<_> = view.threads.iter().filter(|thread| limit != 0 && thread.rank >= limit).collect();
    if !hidden.is_empty() {
        let on_cpu = unit.show(hidden.iter().map(|thread| thread.on_cpu_nanos).sum_nanos::<i64>());
        let in_poles = hidden.iter().filter(|thread| thread.pole.is_some()).count();
        let poles = if in_poles > 0 { format!("{in_poles} of them in long poles") } else { "none of them in a long pole".to_owned() };
        out.line(style.faint(&format!("… {} more, together {on_cpu} on-CPU, {poles} (--limit 0)", count(hidden.len() as u64))));
    }
    out
}

/// At most `limit` threads (0: all), most relevant first, below a head; with the pole that each works in if `names_poles`.
pub(crate) fn thread_rows(threads: &[view::ThreadView], limit: usize, names_poles: bool, style: Style) -> Vec<String> {
    let unit = TimeUnit::of(threads.iter().map(|thread| thread.nanos).max().unwrap_or_default());
    let mut out = vec![style.strong(&format!(
        "{}  {}  {}  {}  {}  blocked on",
        pad("THREAD", 30),
        right("lived", 9),
        right("on-CPU", 9),
        right("runnable", 9),
        right("blocked", 9)
    ))];
    for thread in threads.iter().filter(|thread| limit == 0 || thread.rank < limit) {
        let own = Some(&thread.name).filter(|name| !name.is_empty() && **name != thread.process);
        let name = match own.or(thread.entry.as_ref()) {
            Some(name) => format!("{} › {name}", thread.process),
            None => thread.process.clone(),
        };
        let blocked = thread.blocked_nanos.sum().saturating_add(thread.blocked_unseen_nanos);
        let parts = thread.blocked_nanos.parts();
        let others: i64 = parts.iter().skip(KINDS_SHOWN).map(|(_, nanos)| nanos).sum_nanos();
        let shown = parts
            .into_iter()
            .take(KINDS_SHOWN)
            .map(|(kind, nanos)| (kind.words(), nanos))
            .chain([("others", others), ("not sampled", thread.blocked_unseen_nanos)]);
        let kinds: Vec<String> = shown
            .filter(|(_, nanos)| *nanos >= blocked / 100 && *nanos > 0)
            .map(|(kind, nanos)| format!("{kind} {}", percent(nanos, blocked)))
            .collect();
        let works = thread.pole.as_ref().filter(|_| names_poles).map(|pole| format!("works in {pole}")).unwrap_or_default();
        let id = format!(" {}", thread.tid);
        let named = format!("{}{id}", fit(&name, 30_usize.saturating_sub(id.len())));
        out.push(format!(
            "{}  {}  {}  {}  {}  {}",
            pad(&named, 30),
            right(&unit.show(thread.nanos), 9),
            right(&unit.show(thread.on_cpu_nanos), 9),
            right(&unit.show(thread.ready_nanos), 9),
            right(&unit.show(blocked), 9),
            style.faint(&[kinds.join(", "), works].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "))
        ));
        // Leave out what is less than 1% of the longest.
        let most = thread.waited_for.first().map_or(0, |other| other.nanos);
        let others = thread.waited_for.iter().take(OTHERS_SHOWN).filter(|other| other.nanos.saturating_mul(100) > most);
        let others: Vec<String> = others.map(|other| waited_for(thread, other, unit)).collect();
        if !others.is_empty() {
            out.extend(fold(&others.join(", "), style.width() - 2).iter().map(|part| style.faint(&format!("  {part}"))));
        }
    }
    out
}
