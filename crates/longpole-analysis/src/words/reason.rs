//! Why a pole is long, in words.

use longpole_model::units::{TimeUnit, counted, duration, range};

use crate::code::functions::Function;
use crate::report::held_lock::HeldLock;
use crate::report::names::{FunctionNames, NamedWait};
use crate::report::reason::{Cause, HotFunction, Longest, NodeOfPole, OffCpu, OffCpuState, OnCpuShare, Reason, WaitShare};
use crate::schedule::poles::Outlier;
use crate::words::file::telling_file;
use crate::words::phrase::Words;
use crate::words::wait::wait;

/// Characters of a command line.
const COMMAND_CHARS_MAX: usize = 40;

/// Why a pole is long: `2 in sequence; 95% on-CPU, most of it (402.4ms total) in index_words (mostly in hash_one)`.
pub fn reason(fact: &Reason<'_>) -> Words {
    let mut words = Words::default();
    let in_sequence = fact.in_sequence.map(|nodes| format!("{nodes} in sequence"));
    let process = fact.outlier_process.as_ref().map(node);
    let outlier = fact.outlier.map(|it| outlier(it, fact.nodes));
    let nodes: Vec<String> = process.into_iter().chain(outlier).chain(in_sequence).collect();
    if !nodes.is_empty() {
        words = words.text(format!("{}; ", nodes.join(", ")));
    }
    if let Some(it) = &fact.longest {
        words = words.text(format!("{}; ", longest(it)));
    }
    if let Some(time) = fact.of_own {
        words = words.text(format!("own time {}: ", duration(time.0)));
    }
    if fact.is_estimate {
        words = words.text("≈ ");
    }
    let words = words.words(cause(&fact.cause, fact.part));
    match &fact.held_lock {
        Some(held) => words.text("; ").words(held_lock(held)),
        None => words,
    }
}

/// `for 1.00s it held a lock that 3 threads waited for, in worker`.
fn held_lock(held: &HeldLock<'_>) -> Words {
    let threads = if held.threads == 1 { "another thread".to_owned() } else { format!("{} threads", held.threads) };
    let words = Words::plain(format!("for {} it held a lock that {threads} waited for", duration(held.nanos.0)));
    match held.function {
        Some(function) => words.text(", in ").waiting_function(function),
        None => words,
    }
}

/// `the longest of 31 of this name (the next takes 31.2ms)`; `the longest span of this name and the 8 spans inside it (the next longest takes 13.1ms)` if the
/// others of the pole's `nodes` are inside it.
fn outlier(Outlier { of, next }: Outlier, nodes: usize) -> String {
    let next = duration(next.0);
    match nodes {
        0 | 1 => format!("the longest of {of} of this name (the next takes {next})"),
        _ => format!(
            "the longest span of this name and the {} inside it (the next longest takes {next})",
            counted((nodes - 1) as u64, "span", "spans")
        ),
    }
}

/// `s9 (cc1 … m2.c) by itself is on the path for 2.09s and saves 1.65s`, `only s2 (sort big.txt) is on the path`.
fn longest(it: &Longest<'_>) -> String {
    let who = node(&it.node);
    let saves = it.saves.map(|saves| range(TimeUnit::of(saves.high.0), [saves.low.0, saves.high.0]));
    if it.is_only {
        let saves = saves.map_or_else(String::new, |saves| format!(" and saves {saves} by itself"));
        return format!("only {who} is on the path{saves}");
    }
    let saves = saves.map_or_else(String::new, |saves| format!(" and saves {saves}"));
    format!("{who} by itself is on the path for {}{saves}", duration(it.nanos.0))
}

/// `s9 (cc1 … m2.c)`.
fn node(node: &NodeOfPole<'_>) -> String {
    format!("{}{}", node.handle, command(node.arguments, &node.own_arguments))
}

/// The arguments that tell a process from others of its program, by their places: `cc1 … m2.c …`. Without any, the start of the command line.
fn command(arguments: &[String], own: &[usize]) -> String {
    let [program, rest @ ..] = arguments else { return String::new() };
    if rest.is_empty() {
        return String::new();
    }
    let program = program.rsplit('/').next().unwrap_or(program);
    let mut line = program.to_owned();
    let places: Vec<usize> = if own.is_empty() { (1..arguments.len()).collect() } else { own.to_vec() };
    let mut shown = 0;
    for place in places {
        let is_again = !own.is_empty() && arguments[1..place].contains(&arguments[place]);
        if is_again || line.chars().count() > COMMAND_CHARS_MAX {
            continue;
        }
        line.push_str(if place > shown + 1 { " … " } else { " " });
        line.push_str(&arguments[place]);
        shown = place;
    }
    if let Some((end, _)) = line.char_indices().nth(COMMAND_CHARS_MAX) {
        line.truncate(end);
        line.push('…');
    } else if shown + 1 < arguments.len() {
        line.push_str(" …");
    }
    format!(" ({line})")
}

fn cause(cause: &Cause<'_>, part: Option<&Function>) -> Words {
    match *cause {
        Cause::NoSamples { are_untimed, wait } => {
            let missing = if are_untimed { "samples without times" } else { "no samples" };
            match wait {
                None => Words::plain(missing),
                Some(wait) => share_of_wait(wait).text(format!("; {missing} for the rest")),
            }
        }
        Cause::HardlyAnyOwnTime => Words::plain("hardly any time of its own"),
        Cause::TooShort => Words::plain("too short for the sampling rate"),
        Cause::ComputesSomewhere(share) => on_cpu(share).text(", too few samples to say where"),
        Cause::Computes { share, hot, wait } => {
            let words = on_cpu(share);
            // The name of the pole is the place.
            let words = match hot {
                Some(HotFunction { names, .. }) if part.is_some_and(|part| part.function == names.function) => match names.mostly_in {
                    Some(it) => words.text(", mostly in ").words(function_in_file(it.function, it.file)),
                    None => words,
                },
                Some(hot) => words.text(", ").words(most_of_it(hot, share.runnable_percent.is_some())),
                None => words.text(", spread over many functions"),
            };
            match wait {
                Some(wait) => words.text("; ").words(share_of_wait(wait)),
                None => words,
            }
        }
        Cause::ComputesAndWaits { percent, hot, rest } => {
            let words = on_cpu(OnCpuShare { percent, runnable_percent: None });
            let words = match hot {
                Some(hot) => words.text(", ").words(most_of_it(hot, false)),
                None => words,
            };
            words.text("; ").words(off_cpu(without(rest, part)))
        }
        Cause::Waits(rest) => off_cpu(without(rest, part)),
        Cause::HardlyComputes { rest, next, percent, after_event } => {
            let mut words = off_cpu(rest);
            if let Some((percent, state)) = next {
                words = words.text(", ").words(off_cpu(OffCpu::State { percent, state }));
            }
            if percent > 0 {
                words = words.text(", ").words(on_cpu(OnCpuShare { percent, runnable_percent: None }));
            }
            match after_event {
                Some(event) => words.text(format!(", after “{event}”")),
                None => words,
            }
        }
    }
}

/// `95% on-CPU`, `78% on-CPU and 12% runnable`.
fn on_cpu(share: OnCpuShare) -> Words {
    let words = Words::plain(format!("{}% on-CPU", share.percent));
    match share.runnable_percent {
        Some(percent) => words.text(format!(" and {percent}% runnable")),
        None => words,
    }
}

/// `most of it (402.4ms total) in index_words (mostly in hash_one)`; of the CPU time, if other time is named before.
fn most_of_it(hot: HotFunction<'_>, of_cpu: bool) -> Words {
    let it = if of_cpu { "the CPU time" } else { "it" };
    let callees = if hot.has_callees { " total" } else { "" };
    Words::plain(format!("most of {it} ({}{callees}) in ", duration(hot.nanos.0))).words(function_names(hot.names))
}

/// `index_words (mostly in hash_one)`.
pub(super) fn function_names(names: FunctionNames<'_>) -> Words {
    let words = function_in_file(names.function, names.file);
    match names.mostly_in {
        Some(it) => words.text(" (mostly in ").words(function_in_file(it.function, it.file)).text(")"),
        None => words,
    }
}

/// `hash_one`, `<module> in json/__init__.py`.
fn function_in_file(function: &str, file: &str) -> Words {
    let words = Words::default().function(function);
    match telling_file(function, file) {
        Some(file) => words.text(format!(" in {file}")),
        None => words,
    }
}

/// The same without the function that the pole is named by.
fn without<'a>(rest: OffCpu<'a>, part: Option<&Function>) -> OffCpu<'a> {
    match rest {
        OffCpu::Wait(WaitShare { percent, wait }) if part.is_some_and(|part| wait.function == Some(part.function.as_str())) => {
            OffCpu::Wait(WaitShare { percent, wait: NamedWait { function: None, ..wait } })
        }
        rest => rest,
    }
}

/// What a pole that is hardly on a CPU does instead, without its share: `asleep, in look_up`. `None` for one that computes, or if nothing is known.
pub fn wait_of(fact: &Reason<'_>) -> Option<Words> {
    match fact.cause {
        Cause::NoSamples { wait: Some(WaitShare { wait: it, .. }), .. } => Some(wait(it)),
        Cause::Waits(rest) | Cause::HardlyComputes { rest, .. } => Some(match rest {
            OffCpu::Wait(WaitShare { wait: it, .. }) | OffCpu::ShortWaits { wait: it, .. } => wait(it),
            OffCpu::State { state: OffCpuState::Unaccounted, .. } => return None,
            OffCpu::State { state, .. } => Words::plain(off_cpu_state(state)),
        }),
        _ => None,
    }
}

fn off_cpu_state(state: OffCpuState) -> &'static str {
    match state {
        OffCpuState::Unaccounted => "unaccounted",
        OffCpuState::Awaiting => "awaiting (async: no thread worked on it)",
        OffCpuState::Remote => "remote",
        OffCpuState::BlockedUnseen => "blocked (not sampled)",
        OffCpuState::Blocked => "blocked",
        OffCpuState::Runnable => "runnable",
    }
}

fn off_cpu(rest: OffCpu<'_>) -> Words {
    match rest {
        OffCpu::Wait(share) => share_of_wait(share),
        OffCpu::ShortWaits { percent, of_kind, all, wait: kind } => {
            Words::plain(format!("{percent}% blocked in waits under 5ms: {of_kind} of {all} sampled were ")).words(wait(kind))
        }
        OffCpu::State { percent, state } => Words::plain(format!("{percent}% {}", off_cpu_state(state))),
    }
}

/// `99% blocked on the network, in recv`.
fn share_of_wait(share: WaitShare<'_>) -> Words {
    Words::plain(format!("{}% ", share.percent)).words(wait(share.wait))
}

#[cfg(test)]
mod tests {
    use longpole_model::{Id, Nanos, NodeId, WaitKind};

    use super::*;
    use crate::report::handle::Handle;
    use crate::report::names::LibraryFunction;
    use crate::schedule::saving::Saving;
    use crate::time::blockers::Relation;
    use crate::words::phrase::tests::NARROW;

    const INDEX: HotFunction<'static> = HotFunction {
        nanos: Nanos(402_400_000),
        has_callees: true,
        names: FunctionNames {
            function: "shop::search::index::index_words",
            file: "src/index.rs",
            mostly_in: Some(LibraryFunction { function: "core::hash::hash_one", file: "hash.rs" }),
        },
    };

    const FLUSH: NamedWait<'static> = NamedWait { kind: WaitKind::Disk, relation: None, function: Some("shop::store::journal::flush") };

    fn share(percent: i64) -> OnCpuShare {
        OnCpuShare { percent, runnable_percent: None }
    }

    /// A pole of one node, and nothing else is known about it.
    fn alone(cause: Cause<'_>) -> Reason<'_> {
        Reason::of(1, cause)
    }

    /// The whole sentence, and the one for 50 columns.
    fn check(cause: Cause<'_>, whole: &str, cut: &str) {
        let words = reason(&alone(cause));
        assert_eq!((words.to_string().as_str(), words.fit(50, NARROW).as_str()), (whole, cut));
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let wait = Some(WaitShare { percent: 20, wait: FLUSH });
        check(Cause::NoSamples { are_untimed: false, wait: None }, "no samples", "no samples");
        check(
            Cause::NoSamples { are_untimed: true, wait },
            "20% blocked on the disk, in shop::store::journal::flush; samples without times for the rest",
            "20% blocked on the disk, in …journal::flush; samples without times for the rest",
        );
        check(Cause::HardlyAnyOwnTime, "hardly any time of its own", "hardly any time of its own");
        check(Cause::TooShort, "too short for the sampling rate", "too short for the sampling rate");
        let somewhere = "47% on-CPU and 30% runnable, too few samples to say where";
        check(Cause::ComputesSomewhere(OnCpuShare { percent: 47, runnable_percent: Some(30) }), somewhere, somewhere);
        check(
            Cause::Computes { share: share(95), hot: Some(INDEX), wait: None },
            "95% on-CPU, most of it (402.4ms total) in shop::search::index::index_words (mostly in core::hash::hash_one)",
            "95% on-CPU, most of it (402.4ms total) in …index_words (mostly in core::hash::hash_one)",
        );
        check(
            Cause::Computes { share: OnCpuShare { percent: 8, runnable_percent: Some(87) }, hot: Some(INDEX), wait: None },
            "8% on-CPU and 87% runnable, most of the CPU time (402.4ms total) in shop::search::index::index_words (mostly in core::hash::hash_one)",
            "8% on-CPU and 87% runnable, most of the CPU time (402.4ms total) in …index_words (mostly in core::hash::hash_one)",
        );
        check(
            Cause::Computes { share: share(75), hot: None, wait },
            "75% on-CPU, spread over many functions; 20% blocked on the disk, in shop::store::journal::flush",
            "75% on-CPU, spread over many functions; 20% blocked on the disk, in …journal::flush",
        );
        check(
            Cause::ComputesAndWaits { percent: 40, hot: Some(INDEX), rest: OffCpu::Wait(WaitShare { percent: 60, wait: FLUSH }) },
            "40% on-CPU, most of it (402.4ms total) in shop::search::index::index_words (mostly in core::hash::hash_one); 60% blocked on the disk, in shop::store::journal::flush",
            "40% on-CPU, most of it (402.4ms total) in …index_words (mostly in core::hash::hash_one); 60% blocked on the disk, in …journal::flush",
        );
        let module = |file| HotFunction {
            names: FunctionNames {
                function: "<module>",
                file,
                mostly_in: Some(LibraryFunction { function: "<module>", file: "/usr/lib/python3.11/json/__init__.py" }),
            },
            ..INDEX
        };
        check(
            Cause::Computes { share: share(95), hot: Some(module("/srv/prog.py")), wait: None },
            "95% on-CPU, most of it (402.4ms total) in <module> in prog.py (mostly in <module> in json/__init__.py)",
            "95% on-CPU, most of it (402.4ms total) in <module> in prog.py (mostly in <module> in json/__init__.py)",
        );
        check(
            Cause::Waits(OffCpu::ShortWaits { percent: 61, of_kind: 3, all: 4, wait: FLUSH }),
            "61% blocked in waits under 5ms: 3 of 4 sampled were blocked on the disk, in shop::store::journal::flush",
            "61% blocked in waits under 5ms: 3 of 4 sampled were blocked on the disk, in …journal::flush",
        );
    }

    #[test]
    fn what_a_pole_waits_for_has_no_share() {
        let of = |cause| wait_of(&alone(cause));
        let waits = Cause::Waits(OffCpu::Wait(WaitShare { percent: 88, wait: FLUSH }));
        assert_eq!(of(waits).map(|words| words.to_string()).as_deref(), Some("blocked on the disk, in shop::store::journal::flush"));
        let state = |state| Cause::HardlyComputes { rest: OffCpu::State { percent: 90, state }, next: None, percent: 3, after_event: None };
        assert_eq!(of(state(OffCpuState::Remote)).map(|words| words.to_string()).as_deref(), Some("remote"));
        assert_eq!([state(OffCpuState::Unaccounted), Cause::Computes { share: share(95), hot: None, wait: None }].map(of), [None, None]);
    }

    #[test]
    fn each_state_on_no_cpu_has_its_word() {
        let words = |state| off_cpu(OffCpu::State { percent: 9, state }).to_string();
        use OffCpuState::{Awaiting, Blocked, BlockedUnseen, Remote, Runnable, Unaccounted};
        assert_eq!(
            [Unaccounted, Awaiting, Remote, BlockedUnseen, Blocked, Runnable].map(words),
            [
                "9% unaccounted",
                "9% awaiting (async: no thread worked on it)",
                "9% remote",
                "9% blocked (not sampled)",
                "9% blocked",
                "9% runnable",
            ]
        );
        let rest = OffCpu::State { percent: 92, state: Remote };
        let hardly = |percent, after_event| cause(&Cause::HardlyComputes { rest, next: None, percent, after_event }, None).to_string();
        assert_eq!(hardly(0, None), "92% remote");
        assert_eq!(hardly(3, Some("got the lock")), "92% remote, 3% on-CPU, after “got the lock”");
        let blocked = OffCpu::State { percent: 58, state: Blocked };
        let both = Cause::HardlyComputes { rest: blocked, next: Some((26, Runnable)), percent: 15, after_event: None };
        assert_eq!(cause(&both, None).to_string(), "58% blocked, 26% runnable, 15% on-CPU");
    }

    #[test]
    fn a_thread_that_was_woken_waited_for_another_one() {
        let wait = NamedWait { kind: WaitKind::Lock, relation: Some(Relation::Wakes), function: None };
        assert_eq!(share_of_wait(WaitShare { percent: 98, wait }).to_string(), "98% waiting for another thread");
    }

    #[test]
    fn shares_of_its_own_time_and_a_sequence_stand_in_front() {
        let cause = Cause::ComputesSomewhere(share(75));
        let fact = Reason { in_sequence: Some(12), of_own: Some(Nanos(40_000_000)), is_estimate: true, ..Reason::of(12, cause) };
        assert_eq!(reason(&fact).to_string(), "12 in sequence; own time 40.0ms: ≈ 75% on-CPU, too few samples to say where");
        let short = alone(Cause::TooShort);
        let outlier = Some(Outlier { of: 5, next: Nanos(31_200_000) });
        let said = |nodes| reason(&Reason { nodes, outlier, ..short.clone() }).to_string();
        assert_eq!(said(1), "the longest of 5 of this name (the next takes 31.2ms); too short for the sampling rate");
        let arguments = ["cc1", "big.c", "-O2"].map(str::to_owned);
        let process = NodeOfPole { handle: Handle::Node(NodeId::at(5)), arguments: &arguments, own_arguments: vec![1] };
        let one = reason(&Reason { outlier, outlier_process: Some(process), ..short.clone() }).to_string();
        assert!(one.starts_with("s6 (cc1 big.c …), the longest of 5 of this name"), "{one}");
        assert_eq!(
            said(11),
            "the longest span of this name and the 10 spans inside it (the next longest takes 31.2ms); too short for the sampling rate"
        );
    }

    #[test]
    fn the_node_that_is_most_of_a_pole_has_its_handle_and_its_arguments() {
        let arguments = ["/usr/lib/cc1", "-quiet", "m2.c", "-dumpbase", "m2.c", "-O2", "-o", "/tmp/ccp3rzM8.s"].map(str::to_owned);
        let handle = Handle::Node(NodeId::at(240));
        let most = |arguments, own: &[usize], saves: Option<[i64; 2]>| Longest {
            node: NodeOfPole { handle, arguments, own_arguments: own.to_vec() },
            nanos: Nanos(1_510_000_000),
            is_only: false,
            saves: saves.map(|[low, high]| Saving { low: Nanos(low), high: Nanos(high) }),
        };
        assert_eq!(longest(&most(&[], &[], None)), "s241 by itself is on the path for 1.51s");
        assert_eq!(
            longest(&most(&arguments, &[2, 4, 7], Some([1_200_000_000; 2]))),
            "s241 (cc1 … m2.c … /tmp/ccp3rzM8.s) by itself is on the path for 1.51s and saves 1.20s"
        );
        let one = Longest { is_only: true, ..most(&arguments[..3], &[2], None) };
        assert_eq!(longest(&one), "only s241 (cc1 … m2.c) is on the path");
        let one = Longest { saves: Some(Saving { low: Nanos(0), high: Nanos(49_000_000) }), ..one };
        assert_eq!(longest(&one), "only s241 (cc1 … m2.c) is on the path and saves 0.0ms–49.0ms by itself");
        assert_eq!(command(&arguments[..4], &[2]), " (cc1 … m2.c …)");
        assert_eq!(command(&arguments, &[]), " (cc1 -quiet m2.c -dumpbase m2.c -O2 -o /t…)");
        let sort = ["/usr/bin/sort", "-R"].map(str::to_owned);
        assert_eq!([command(&sort, &[]), command(&sort, &[1]), command(&sort[..1], &[])], [" (sort -R)", " (sort -R)", ""]);
    }
}
