//! Blockers and callees, in words.

use crate::report::blocker_summary::{BlockedBySummary, BlockerSummary, CalleeSummary, MainActivity, ThreadName};
use crate::time::blockers::{BlockerEvidence, Relation};
use crate::words::phrase::Words;
use crate::words::reason::function_names;
use crate::words::wait::wait;

/// The thread that waits were for most: `held by thread flush: asleep, in write_all; and 2 more`.
pub fn blocked_by(fact: &BlockedBySummary<'_>) -> Words {
    match *fact {
        BlockedBySummary::OneOf(relation, threads) => Words::plain(match relation {
            Relation::Holds => format!("held by one of {threads} threads that ran when the lock was released"),
            Relation::Ends => format!("until one of {threads} threads ends"),
            Relation::Wakes => format!("woken by one of {threads} threads that ran then"),
        }),
        BlockedBySummary::Thread { blocker: first, others: 0 } => blocker(&first),
        BlockedBySummary::Thread { blocker: first, others } => blocker(&first).text(format!("; and {others} more")),
    }
}

/// A thread: `thread flush`.
pub fn thread(name: ThreadName<'_>) -> String {
    match name {
        ThreadName::Itself => "the same thread".to_owned(),
        ThreadName::Named(name) => format!("thread {name}"),
        ThreadName::Main => "the main thread".to_owned(),
        ThreadName::Number(tid) => format!("thread {tid}"),
    }
}

/// A thread that was waited for: `held by thread flush: asleep, in write_all`.
pub fn blocker(fact: &BlockerSummary<'_>) -> Words {
    let who = thread(fact.thread);
    let words = Words::plain(match fact.relation {
        Relation::Holds => format!("held by {who}"),
        Relation::Ends => format!("until {who} ends"),
        Relation::Wakes => format!("woken by {who}"),
    });
    let words = match fact.evidence {
        BlockerEvidence::Inferred => words.text(" (inferred)"),
        BlockerEvidence::Futex => words,
    };
    words.words(meanwhile(fact.activity))
}

/// The process that answers a call: `in process bank (pid 12): asleep, in look_up`.
pub fn callee(fact: &CalleeSummary<'_>) -> Words {
    Words::plain(format!("in process {} (pid {})", fact.program, fact.pid)).words(meanwhile(fact.activity))
}

/// `: asleep, in look_up`.
fn meanwhile(activity: Option<MainActivity<'_>>) -> Words {
    match activity {
        None => Words::default(),
        Some(MainActivity::Waited(it)) => Words::plain(": ").words(wait(it)),
        Some(MainActivity::Computed(None)) => Words::plain(": on-CPU"),
        Some(MainActivity::Computed(Some(names))) => Words::plain(": on-CPU, most of it in ").words(function_names(names)),
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::WaitKind;

    use super::*;
    use crate::report::names::{FunctionNames, LibraryFunction, NamedWait};
    use crate::words::phrase::tests::NARROW;

    fn held_by(thread: ThreadName<'_>) -> BlockerSummary<'_> {
        BlockerSummary { relation: Relation::Holds, thread, evidence: BlockerEvidence::Futex, activity: None }
    }

    const NAP: MainActivity<'static> =
        MainActivity::Waited(NamedWait { kind: WaitKind::Sleep, relation: None, function: Some("shop::search::index::nap") });

    #[test]
    fn a_thread_is_named_as_the_waiting_one_sees_it() {
        let names = [ThreadName::Itself, ThreadName::Named("flush"), ThreadName::Main, ThreadName::Number(9)];
        let words = names.map(|name| blocker(&held_by(name)).to_string());
        assert_eq!(words, ["held by the same thread", "held by thread flush", "held by the main thread", "held by thread 9"]);
    }

    #[test]
    fn a_blocker_has_its_relation_and_its_activity() {
        let held = held_by(ThreadName::Named("w"));
        let inferred = BlockerSummary { relation: Relation::Ends, evidence: BlockerEvidence::Inferred, activity: Some(NAP), ..held };
        let words = blocker(&inferred);
        assert_eq!(words.to_string(), "until thread w ends (inferred): asleep, in shop::search::index::nap");
        assert_eq!(words.fit(60, NARROW), "until thread w ends (inferred): asleep, in …index::nap");
        let computes = |names| MainActivity::Computed(names);
        let woken = |activity| blocker(&BlockerSummary { relation: Relation::Wakes, activity: Some(activity), ..held }).to_string();
        assert_eq!(woken(computes(None)), "woken by thread w: on-CPU");
        let names = FunctionNames { function: "hash", file: "", mostly_in: Some(LibraryFunction { function: "sip", file: "" }) };
        assert_eq!(woken(computes(Some(names))), "woken by thread w: on-CPU, most of it in hash (mostly in sip)");
    }

    #[test]
    fn the_first_blocker_stands_for_all_of_them() {
        let words = |fact| blocked_by(&fact).to_string();
        let relations = [Relation::Holds, Relation::Ends, Relation::Wakes];
        assert_eq!(
            relations.map(|relation| words(BlockedBySummary::OneOf(relation, 3))),
            [
                "held by one of 3 threads that ran when the lock was released",
                "until one of 3 threads ends",
                "woken by one of 3 threads that ran then"
            ]
        );
        let first = |others| BlockedBySummary::Thread { blocker: held_by(ThreadName::Main), others };
        assert_eq!([words(first(0)), words(first(2))], ["held by the main thread", "held by the main thread; and 2 more"]);
    }

    #[test]
    fn a_process_that_answers_is_named() {
        let fact = CalleeSummary { program: "bank", pid: 12, activity: Some(NAP) };
        assert_eq!(callee(&fact).to_string(), "in process bank (pid 12): asleep, in shop::search::index::nap");
        assert_eq!(callee(&CalleeSummary { activity: None, ..fact }).to_string(), "in process bank (pid 12)");
    }
}
