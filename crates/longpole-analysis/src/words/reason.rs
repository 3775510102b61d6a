//! Why a pole is long, in words.

use longpole_model::units::duration;

use crate::code::functions::Function;
use crate::report::names::{FunctionNames, NamedWait};
use crate::report::reason::{Cause, HotFunction, OffCpu, OffCpuState, OnCpuShare, Reason, WaitShare};
use crate::schedule::poles::Outlier;
use crate::words::phrase::Words;
use crate::words::wait::wait;

/// Characters of a command line.
const COMMAND_CHARS_MAX: usize = 40;

/// Why a pole is long: `2 in sequence; 95% on-CPU, most of it (402.4ms) in index_words (mostly in hash_one)`.
pub fn reason(fact: &Reason<'_>) -> Words {
    let mut words = Words::default();
    let in_sequence = fact.in_sequence.map(|nodes| format!("{nodes} in sequence"));
    let longest = fact
        .longest
        .map(|longest| format!("{}{} alone is on the path for {}", longest.handle, command(longest.arguments), duration(longest.nanos.0)));
    let outlier = fact.outlier.map(|Outlier { of, next }| format!("the longest of {of}, the next takes {}", duration(next.0)));
    let nodes: Vec<String> = outlier.into_iter().chain(in_sequence).chain(longest).collect();
    if !nodes.is_empty() {
        words = words.text(format!("{}; ", nodes.join(", ")));
    }
    if let Some(time) = fact.of_own {
        words = words.text(format!("own time {}: ", duration(time.0)));
    }
    words.words(cause(&fact.cause, fact.part))
}

/// The start of a command line with arguments: it tells processes of one program apart.
fn command(arguments: &[String]) -> String {
    let [program, rest @ ..] = arguments else { return String::new() };
    if rest.is_empty() {
        return String::new();
    }
    let program = program.rsplit('/').next().unwrap_or(program);
    let mut line = std::iter::once(program).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(COMMAND_CHARS_MAX) {
        line.truncate(end);
        line.push('…');
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
                    Some(library) => words.text(", mostly in ").function(library),
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
        Cause::HardlyComputes { rest, percent, after_event } => {
            let mut words = off_cpu(rest);
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

/// `95% on-CPU`, `78% on-CPU and 12% runnable`, `8% on-CPU and 87% runnable while others had the CPUs`.
fn on_cpu(share: OnCpuShare) -> Words {
    let words = Words::plain(format!("{}% on-CPU", share.percent));
    match share.runnable_percent {
        Some(percent) if percent > share.percent => words.text(format!(" and {percent}% runnable while others had the CPUs")),
        Some(percent) => words.text(format!(" and {percent}% runnable")),
        None => words,
    }
}

/// `most of it (402.4ms) in index_words (mostly in hash_one)`; of the CPU time, if other time is named before.
fn most_of_it(hot: HotFunction<'_>, of_cpu: bool) -> Words {
    let it = if of_cpu { "the CPU time" } else { "it" };
    Words::plain(format!("most of {it} ({}) in ", duration(hot.nanos.0))).words(function_names(hot.names))
}

/// `index_words (mostly in hash_one)`.
pub(super) fn function_names(names: FunctionNames<'_>) -> Words {
    let words = Words::default().function(names.function);
    match names.mostly_in {
        Some(library) => words.text(" (mostly in ").function(library).text(")"),
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

fn off_cpu(rest: OffCpu<'_>) -> Words {
    match rest {
        OffCpu::Wait(share) => share_of_wait(share),
        OffCpu::ShortWaits { percent, of_kind, all, wait: kind } => {
            Words::plain(format!("{percent}% blocked in waits under 5ms: {of_kind} of {all} sampled were ")).words(wait(kind))
        }
        OffCpu::State { percent, state } => {
            let word = match state {
                OffCpuState::Unaccounted => "unaccounted",
                OffCpuState::Awaiting => "awaiting (async: no thread worked on it)",
                OffCpuState::Remote => "remote",
                OffCpuState::BlockedUnseen => "blocked (not sampled)",
                OffCpuState::Blocked => "blocked",
                OffCpuState::Runnable => "runnable while others had the CPUs",
            };
            Words::plain(format!("{percent}% {word}"))
        }
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
    use crate::report::reason::Longest;
    use crate::time::blockers::Relation;
    use crate::words::phrase::tests::NARROW;

    const INDEX: HotFunction<'static> = HotFunction {
        nanos: Nanos(402_400_000),
        names: FunctionNames { function: "shop::search::index::index_words", mostly_in: Some("core::hash::hash_one") },
    };

    const FLUSH: NamedWait<'static> = NamedWait { kind: WaitKind::Disk, relation: None, function: Some("shop::store::journal::flush") };

    fn share(percent: i64) -> OnCpuShare {
        OnCpuShare { percent, runnable_percent: None }
    }

    /// The whole sentence, and the one for 50 columns.
    fn check(cause: Cause<'_>, whole: &str, cut: &str) {
        let words = reason(&Reason { in_sequence: None, outlier: None, longest: None, part: None, of_own: None, cause });
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
            "95% on-CPU, most of it (402.4ms) in shop::search::index::index_words (mostly in core::hash::hash_one)",
            "95% on-CPU, most of it (402.4ms) in …index_words (mostly in core::hash::hash_one)",
        );
        check(
            Cause::Computes { share: OnCpuShare { percent: 8, runnable_percent: Some(87) }, hot: Some(INDEX), wait: None },
            "8% on-CPU and 87% runnable while others had the CPUs, most of the CPU time (402.4ms) in shop::search::index::index_words (mostly in core::hash::hash_one)",
            "8% on-CPU and 87% runnable while others had the CPUs, most of the CPU time (402.4ms) in …index_words (mostly in core::hash::hash_one)",
        );
        check(
            Cause::Computes { share: share(75), hot: None, wait },
            "75% on-CPU, spread over many functions; 20% blocked on the disk, in shop::store::journal::flush",
            "75% on-CPU, spread over many functions; 20% blocked on the disk, in …journal::flush",
        );
        check(
            Cause::ComputesAndWaits { percent: 40, hot: Some(INDEX), rest: OffCpu::Wait(WaitShare { percent: 60, wait: FLUSH }) },
            "40% on-CPU, most of it (402.4ms) in shop::search::index::index_words (mostly in core::hash::hash_one); 60% blocked on the disk, in shop::store::journal::flush",
            "40% on-CPU, most of it (402.4ms) in …index_words (mostly in core::hash::hash_one); 60% blocked on the disk, in …journal::flush",
        );
        check(
            Cause::Waits(OffCpu::ShortWaits { percent: 61, of_kind: 3, all: 4, wait: FLUSH }),
            "61% blocked in waits under 5ms: 3 of 4 sampled were blocked on the disk, in shop::store::journal::flush",
            "61% blocked in waits under 5ms: 3 of 4 sampled were blocked on the disk, in …journal::flush",
        );
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
                "9% runnable while others had the CPUs",
            ]
        );
        let rest = OffCpu::State { percent: 92, state: Remote };
        let hardly = |percent, after_event| cause(&Cause::HardlyComputes { rest, percent, after_event }, None).to_string();
        assert_eq!(hardly(0, None), "92% remote");
        assert_eq!(hardly(3, Some("got the lock")), "92% remote, 3% on-CPU, after “got the lock”");
    }

    #[test]
    fn a_thread_that_was_woken_waited_for_another_one() {
        let wait = NamedWait { kind: WaitKind::Lock, relation: Some(Relation::Wakes), function: None };
        assert_eq!(share_of_wait(WaitShare { percent: 98, wait }).to_string(), "98% waiting for another thread");
    }

    #[test]
    fn shares_of_its_own_time_and_a_sequence_stand_in_front() {
        let cause = Cause::ComputesSomewhere(share(75));
        let fact = Reason { in_sequence: Some(12), outlier: None, longest: None, part: None, of_own: Some(Nanos(40_000_000)), cause };
        assert_eq!(reason(&fact).to_string(), "12 in sequence; own time 40.0ms: 75% on-CPU, too few samples to say where");
        let longest = Some(Longest { handle: Handle::Node(NodeId::at(240)), arguments: &[], nanos: Nanos(1_510_000_000) });
        let said = |in_sequence| {
            reason(&Reason { in_sequence, outlier: None, longest, part: None, of_own: None, cause: Cause::TooShort }).to_string()
        };
        assert_eq!(said(None), "s241 alone is on the path for 1.51s; too short for the sampling rate");
        assert_eq!(said(Some(21)), "21 in sequence, s241 alone is on the path for 1.51s; too short for the sampling rate");
        let commands = ["/usr/bin/sort", "-R"].map(str::to_owned);
        assert_eq!((command(&commands), command(&commands[..1])), (" (sort -R)".to_owned(), String::new()));
        let outlier = Some(Outlier { of: 31, next: Nanos(31_200_000) });
        let fact = Reason { in_sequence: None, outlier, longest: None, part: None, of_own: None, cause: Cause::TooShort };
        assert_eq!(reason(&fact).to_string(), "the longest of 31, the next takes 31.2ms; too short for the sampling rate");
    }
}
