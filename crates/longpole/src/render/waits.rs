//! Waits, the threads or processes they were for, and what these did meanwhile.

use longpole_model::units::{TimeUnit, counted, duration, percent};
use longpole_recording::view;

use crate::terminal::{Style, fit, fold, function_words, right, width};

/// Functions listed of a called process, or of a thread that another waited for.
const OTHERS_FRAMES_SHOWN: usize = 5;

/// Waits shorter than this part of the longest are only counted.
const SHORT_PART: i64 = 1000;

/// Stands above waits that did not hold up what the process did.
const OTHER_THREADS: &str = "other threads also waited; time in which several waited at once counts once:";

/// Waits and what they were for, with an empty line at the end; nothing without waits. `of` says which waits, behind the title.
pub(crate) fn waits_section(waits: &[view::WaitView], of: &str, style: Style) -> Vec<String> {
    if waits.is_empty() {
        return Vec::new();
    }
    let of = if of.is_empty() { String::new() } else { format!("  {}", style.faint(of)) };
    let mut out = vec![format!("{}{of}", style.strong("WAITS"))];
    let longest = waits.iter().map(|wait| wait.nanos).max().unwrap_or_default();
    let unit = TimeUnit::of(longest);
    let (shown, short): (Vec<_>, Vec<_>) = waits.iter().partition(|wait| wait.nanos >= longest / SHORT_PART);
    let mut of_others = false;
    for wait in shown {
        if wait.in_other_threads && !of_others {
            of_others = true;
            out.push(style.faint(&format!("  {:9}  {OTHER_THREADS}", "")));
        }
        out.extend(wait_lines(wait, unit, style));
        if let Some(blocked) = &wait.blocked_by {
            out.push(style.faint(&format!("  {:9}  {}", "", fit(&blocked.text, style.width() - 13))));
        }
    }
    if !short.is_empty() {
        out.push(style.faint(&format!("  {:9}  … {} more, each shorter than a thousandth of the longest", "", short.len())));
    }
    out.push(String::new());
    // What held up one that is hardly there says nothing of the others.
    let told = waits.iter().filter(|wait| wait.nanos >= longest / SHORT_PART).find(|wait| wait.blocked_by.is_some());
    let blockers = told.map_or_else(Vec::new, |wait| blocker_lines(wait, style));
    if let Some(wait) = told.filter(|_| !blockers.is_empty()) {
        out.push(blocker_title(wait, style));
        out.extend(blockers);
        out.push(String::new());
    }
    out
}

/// Time, system call, function and place of a wait; several places are listed below.
pub(crate) fn wait_lines(wait: &view::WaitView, unit: TimeUnit, style: Style) -> Vec<String> {
    let call = wait.syscall.clone().unwrap_or_else(|| wait.kind.words().to_owned());
    let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
    let several = wait.places.len() > 1;
    let place = match (name(&wait.file), wait.line) {
        _ if several => String::new(),
        (file, 0) if file.is_empty() => String::new(),
        (_, 0) => String::new(),
        (file, line) => format!("  {file}:{line}"),
    };
    let threads = if wait.threads > 1 { format!("  ({} threads)", wait.threads) } else { String::new() };
    let room = (style.width() - 36).saturating_sub(width(&place) + width(&threads));
    let whose = wait.function.as_deref().map(|function| format!("  in {}{place}", fit(function, room))).unwrap_or_default();
    let mut out = vec![format!("  {}  {call:16}{whose}{threads}", right(&unit.show(wait.nanos), 9))];
    if several {
        let line = |place: &view::PlaceView| {
            let (share, at) = (right(&percent(place.nanos, wait.nanos), 4), format!("{}:{}", name(&place.file), place.line));
            format!("  {}  {:16}  {share} at {}", right(&unit.show(place.nanos), 9), "", fit(&at, style.width() - 42))
        };
        out.extend(wait.places.iter().map(line));
    }
    out
}

/// The process that answers a call, and what it did meanwhile if it sent no span.
pub(crate) fn callee_lines(callee: &view::CalleeView, style: Style) -> Vec<String> {
    let Some(first) = callee.processes.first() else {
        return vec![format!("  {}: no process of this run listens there", callee.address)];
    };
    let more = match callee.processes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let spans = if callee.answers { "; it answers with a span" } else { "; it sent no span; meanwhile, it did:" };
    let mut out = vec![format!("  {}, in process {} (pid {}){more}{spans}", callee.address, fit(&first.name, 30), first.pid)];
    if callee.answers {
        return out;
    }
    out.extend(meanwhile_lines(&callee.waits, (callee.samples, callee.weight_nanos), &callee.top_frames, style));
    out
}

/// What another thread or process did: its waits, samples and functions.
fn meanwhile_lines(waits: &[view::WaitView], on_cpu: (u64, i64), frames: &[view::TopFrameView], style: Style) -> Vec<String> {
    let (samples, weight_nanos) = on_cpu;
    let unit = TimeUnit::of(waits.iter().map(|wait| wait.nanos).chain([weight_nanos]).max().unwrap_or_default());
    let mut out: Vec<String> = waits.iter().take(OTHERS_FRAMES_SHOWN).flat_map(|wait| wait_lines(wait, unit, style)).collect();
    if samples > 0 {
        out.push(format!("  {}  {:16}  {}", right(&unit.show(weight_nanos), 9), "on-CPU", counted(samples, "sample", "samples")));
    }
    for frame in frames.iter().take(OTHERS_FRAMES_SHOWN).filter(|frame| frame.self_nanos > 0) {
        let function = fit(&function_words(&frame.function, frame.runtime), style.width() - 36);
        out.push(format!("  {}  {:16}  in {} {function}", right(&unit.show(frame.self_nanos), 9), "", style.handle(&frame.handle)));
    }
    out
}

/// Columns of the function that waits, in a sentence.
const WAITER_WIDTH: usize = 30;

/// The threads that a wait was for, and what each did meanwhile.
fn blocker_lines(wait: &view::WaitView, style: Style) -> Vec<String> {
    let Some(blocked) = &wait.blocked_by else { return Vec::new() };
    let waiter = match (wait.threads, &wait.function) {
        (2.., _) => format!("{} threads together", wait.threads),
        (_, Some(function)) => fit(function, WAITER_WIDTH),
        (_, None) => "the thread".to_owned(),
    };
    let mut out = Vec::new();
    for thread in &blocked.threads {
        let name = thread.name.as_ref().map(|name| format!("{} ", fit(name, 30))).unwrap_or_default();
        let known = match (blocked.relation, thread.evidence) {
            (view::RelationView::Ends, view::BlockerEvidenceView::Futex) => "which it joined",
            (_, view::BlockerEvidenceView::Futex) => "the lock's owner",
            (_, view::BlockerEvidenceView::Inferred) => "inferred from what ran when the wait ended",
        };
        let did = meanwhile_lines(&thread.waits, (thread.samples, thread.weight_nanos), &thread.top_frames, style);
        let meanwhile = if did.is_empty() { "longpole did not record what that thread did" } else { "meanwhile, that thread did:" };
        let text = format!("{waiter} waited {} for thread {name}(tid {}), {known}; {meanwhile}", duration(thread.nanos), thread.tid);
        out.extend(
            fold(&text, style.width() - 4).iter().enumerate().map(|(i, part)| format!("{}{part}", if i == 0 { "  " } else { "    " })),
        );
        out.extend(did);
    }
    if let Some(one_of) = blocked.one_of {
        out.push(format!("  one of {} threads, for {}; which one is unknown", one_of.threads, duration(one_of.nanos)));
    }
    out
}

/// Which threads these are, and the function that waited for them: `LOCK HOLDERS  while get_block waited`.
fn blocker_title(wait: &view::WaitView, style: Style) -> String {
    let title = match wait.blocked_by.as_ref().map(|blocked| blocked.relation) {
        Some(view::RelationView::Holds) => "LOCK HOLDERS",
        Some(view::RelationView::Ends) => "JOINED THREADS",
        Some(view::RelationView::Wakes) | None => "WAKING THREADS",
    };
    let function = wait.function.as_deref().map(|function| format!("  while {} waited", fit(function, 60)));
    format!("{}{}", style.strong(title), style.faint(&function.unwrap_or_default()))
}
