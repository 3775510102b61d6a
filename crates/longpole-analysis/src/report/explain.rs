//! The words of the answers: why a pole is long, what somebody waited for, who was waited for.
//!
//! Plain inputs in, lower-case fragments out. The caller has decided on the facts; this file only words them.

use longpole_model::WaitKind;
use longpole_model::units::duration;

use crate::time::blockers::Relation;
use crate::time::wait_groups::WaitSum;

/// The function that holds most of some samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hot<'a> {
    /// CPU time in nanoseconds that the samples in it stand for.
    pub(crate) nanos: i64,
    /// Its name.
    pub(crate) function: &'a str,
    /// The function of a library that most of it is in.
    pub(crate) mostly_in: Option<&'a str>,
}

/// What a pole did while it was on no CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffCpu {
    Unaccounted,
    Awaiting,
    Remote,
    BlockedUnseen,
    Blocked,
    Runnable,
}

/// A thread that was waited for, as the one that waited sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadName<'a> {
    Itself,
    Named(&'a str),
    Main,
    Number(u32),
}

/// A function without the types that it was made for: `write<core::hash::sip::Sip13Rounds>` is `write`.
pub(crate) fn without_types(function: &str) -> &str {
    match function.find('<') {
        Some(at) if at > 0 && function.ends_with('>') && !function[..at].ends_with("::") => &function[..at],
        _ => function,
    }
}

/// `index_words (mostly in hash_one)`.
fn named(function: &str, mostly_in: Option<&str>) -> String {
    let mostly = mostly_in.map(|function| format!(" (mostly in {function})")).unwrap_or_default();
    format!("{function}{mostly}")
}

/// `most of it (402.4ms) in index_words (mostly in hash_one)`.
fn most_of_it(hot: Hot<'_>) -> String {
    format!("most of it ({}) in {}", duration(hot.nanos), named(hot.function, hot.mostly_in))
}

fn in_function(function: Option<&str>) -> String {
    function.map(|function| format!(", in {function}")).unwrap_or_default()
}

/// `95% on-CPU and 12% runnable`.
fn on_cpu(percent: i64, runnable: Option<i64>) -> String {
    let lacking = runnable.map(|percent| format!(" and {percent}% runnable")).unwrap_or_default();
    format!("{percent}% on-CPU{lacking}")
}

/// A pole without samples on the path; `waits` is what it waited for all the same.
pub(crate) fn no_samples(are_untimed: bool, waits: Option<&str>) -> String {
    let missing = if are_untimed { "samples without times" } else { "no samples" };
    waits.map_or_else(|| missing.to_owned(), |words| format!("{words}; {missing} for the rest"))
}

/// A pole with too few samples, because its own time is short.
pub(crate) fn too_short(has_hardly_any_own_time: bool) -> &'static str {
    if has_hardly_any_own_time { "hardly any time of its own" } else { "too short for the sampling rate" }
}

/// A pole that computes, with too few samples.
pub(crate) fn computes_somewhere(busy_percent: i64, runnable: Option<i64>) -> String {
    format!("{}, too few samples to say where", on_cpu(busy_percent, runnable))
}

/// A pole that computes, in a function or in many; `waits` is what it waits for beside.
pub(crate) fn computes(busy_percent: i64, runnable: Option<i64>, hot: Option<Hot<'_>>, waits: Option<&str>) -> String {
    let place = hot.map_or_else(|| "spread over many functions".to_owned(), most_of_it);
    let beside = waits.map(|words| format!("; {words}")).unwrap_or_default();
    format!("{}, {place}{beside}", on_cpu(busy_percent, runnable))
}

/// A pole that computes for a part of its time and does something else, `rest`, in the other.
pub(crate) fn computes_and(busy_percent: i64, hot: Option<Hot<'_>>, rest: &str) -> String {
    let most = hot.map(|hot| format!(", {}", most_of_it(hot))).unwrap_or_default();
    format!("{}{most}; {rest}", on_cpu(busy_percent, None))
}

/// A pole that hardly computes, and the event of its span after which it waited.
pub(crate) fn hardly_computes(rest: &str, busy_percent: i64, after: Option<&str>) -> String {
    let after = after.map(|event| format!(", after “{event}”")).unwrap_or_default();
    let on_cpu = if busy_percent > 0 { format!(", {}", on_cpu(busy_percent, None)) } else { String::new() };
    format!("{rest}{on_cpu}{after}")
}

/// Shares of the own time of a pole that is mostly what it calls.
pub(crate) fn of_own_time(own_nanos: i64, text: &str) -> String {
    format!("of its own {}: {text}", duration(own_nanos))
}

/// A pole of several nodes, one after the other.
pub(crate) fn in_sequence(nodes: usize, text: &str) -> String {
    format!("{nodes} in sequence; {text}")
}

/// A share of time on no CPU.
pub(crate) fn off_cpu(percent: i64, state: OffCpu) -> String {
    let word = match state {
        OffCpu::Unaccounted => "unaccounted",
        OffCpu::Awaiting => "awaiting",
        OffCpu::Remote => "remote",
        OffCpu::BlockedUnseen => "blocked in waits that were not sampled",
        OffCpu::Blocked => "blocked",
        OffCpu::Runnable => "runnable while others had the CPUs",
    };
    format!("{percent}% {word}")
}

/// A share of time in a wait, and the function that waits.
pub(crate) fn wait(percent: i64, word: &str, function: Option<&str>) -> String {
    format!("{percent}% {word}{}", in_function(function))
}

/// A share of time in short waits: how many of all sampled ones were of one kind.
pub(crate) fn short_waits(percent: i64, of_kind: usize, all: usize, word: &str, function: Option<&str>) -> String {
    format!("{percent}% blocked in waits under 5ms: {of_kind} of {all} sampled were {word}{}", in_function(function))
}

/// One of several threads was waited for.
pub(crate) fn one_of(relation: Relation, threads: u32) -> String {
    match relation {
        Relation::Holds => format!("held by one of {threads} threads that ran when it was given back"),
        Relation::Ends => format!("{threads} threads ended then"),
        Relation::Wakes => format!("woken by one of {threads} threads that ran then"),
    }
}

/// The words for the first thread that was waited for, and how many there were beside it.
pub(crate) fn and_more(first: String, more: usize) -> String {
    if more == 0 { first } else { format!("{first}; and {more} more") }
}

/// A thread that was waited for, and what it did: `held by thread flush: asleep, in write_all`.
pub(crate) fn blocker(relation: Relation, name: ThreadName<'_>, is_inferred: bool, activity: Option<&str>) -> String {
    let who = match name {
        ThreadName::Itself => "the same thread".to_owned(),
        ThreadName::Named(name) => format!("thread {name}"),
        ThreadName::Main => "the main thread".to_owned(),
        ThreadName::Number(tid) => format!("thread {tid}"),
    };
    let known = if is_inferred { " (inferred)" } else { "" };
    let what = activity.map(|what| format!(": {what}")).unwrap_or_default();
    match relation {
        Relation::Holds => format!("held by {who}{known}{what}"),
        Relation::Ends => format!("until {who} ends{known}{what}"),
        Relation::Wakes => format!("woken by {who}{known}{what}"),
    }
}

/// What somebody did who mostly waited: `asleep, in look_up`.
pub(crate) fn waited(word: &str, function: Option<&str>) -> String {
    format!("{word}{}", in_function(function))
}

/// What somebody did who mostly computed, in a function and what that is mostly in.
pub(crate) fn computed(function: Option<(&str, Option<&str>)>) -> String {
    match function {
        Some((function, mostly_in)) => format!("on-CPU, most of it in {}", named(function, mostly_in)),
        None => "on-CPU".to_owned(),
    }
}

/// The process that answers a call, and what it did: `in process bank (pid 12): asleep, in look_up`.
pub(crate) fn callee(name: &str, pid: u32, activity: Option<&str>) -> String {
    let what = activity.map(|what| format!(": {what}")).unwrap_or_default();
    format!("in process {name} (pid {pid}){what}")
}

impl WaitSum<'_> {
    /// How a person says it.
    pub fn word(&self) -> &'static str {
        match self.relation {
            Some(Relation::Wakes) => "waiting for another thread",
            _ => wait_word(self.wait.kind),
        }
    }
}

/// How a person says what is waited for.
pub fn wait_word(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "blocked on a lock",
        WaitKind::Join => "waiting for a thread to end",
        WaitKind::Disk => "blocked on the disk",
        WaitKind::Network => "blocked on the network",
        WaitKind::Sleep => "asleep",
        WaitKind::PageFault => "blocked on a page fault",
        WaitKind::Child => "waiting for a child process",
        WaitKind::Pipe => "blocked on a pipe",
        WaitKind::Other => "blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_its_types() {
        let names = ["write<core::hash::Sip>", "<T as U>::go", "a::<impl B>", "plain", "odd<x>y"];
        assert_eq!(names.map(without_types), ["write", "<T as U>::go", "a::<impl B>", "plain", "odd<x>y"]);
    }

    #[test]
    fn threads_are_named_as_the_waiting_one_sees_them() {
        let words = |name| blocker(Relation::Holds, name, false, None);
        let names = [ThreadName::Itself, ThreadName::Named("flush"), ThreadName::Main, ThreadName::Number(9)];
        assert_eq!(names.map(words), ["held by the same thread", "held by thread flush", "held by the main thread", "held by thread 9"]);
        let ends = blocker(Relation::Ends, ThreadName::Named("w"), true, Some("asleep, in nap"));
        assert_eq!(ends, "until thread w ends (inferred): asleep, in nap");
        assert_eq!(and_more(one_of(Relation::Wakes, 3), 2), "woken by one of 3 threads that ran then; and 2 more");
    }
}
