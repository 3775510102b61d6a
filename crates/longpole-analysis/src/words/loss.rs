//! A loss or note with its title and its count, in words.

use longpole_model::units::{count, counted};

/// A loss that is a part of the samples: `2 of 9 stacks are cut off`.
struct OfSamples {
    code: &'static str,
    /// What is counted: one, and several.
    noun: [&'static str; 2],
    /// What is wrong with one, and with several.
    verb: [&'static str; 2],
}

const STACK: [&str; 2] = ["stack", "stacks"];

/// Losses that are parts of the samples.
const OF_SAMPLES: [OfSamples; 4] = [
    OfSamples { code: "stacks_truncated", noun: STACK, verb: ["is cut off", "are cut off"] },
    OfSamples { code: "stacks_unwind_failed", noun: STACK, verb: ["was not unwound", "were not unwound"] },
    OfSamples {
        code: "context_torn",
        noun: ["sample", "samples"],
        verb: ["has a context record that was read during a write", "have context records that were read during a write"],
    },
    OfSamples {
        code: "functions_unnamed",
        noun: ["sample", "samples"],
        verb: ["is in a function without a name", "are in functions without a name"],
    },
];

/// What is missing or doubtful, by its code.
const TITLES: [(&str, &str); 63] = [
    ("samples_lost", "samples lost"),
    ("samples_throttled", "sampling rate lowered by the kernel"),
    ("stacks_truncated", "stacks cut off"),
    ("stacks_unwind_failed", "stacks not unwound"),
    ("functions_not_seen", "missing functions"),
    ("context_torn", "context records read during a write"),
    ("context_not_seen", "context records not read"),
    ("context_disagrees", "samples whose context record and journal name different spans"),
    ("journal_gaps", "journal entries overwritten before they were read"),
    ("journals_refused", "journals of threads read only in part or not at all"),
    ("waits_not_seen", "waits not sampled"),
    ("blocked_unseen", "blocked (not sampled)"),
    ("usage_not_seen", "incomplete usage figures"),
    ("symbols_unreadable", "no function names"),
    ("profiling_refused", "profiling was not allowed"),
    ("requests_refused", "requests refused or cut off"),
    ("scrapes_failed", "profiles that could not be fetched"),
    ("spans_invalid", "spans without a valid id"),
    ("references_invalid", "parents and links with an invalid id"),
    ("text_replaced", "strings that were not UTF-8"),
    ("attributes_cut", "attributes cut"),
    ("other_signals", "items not kept"),
    ("dropped_by_emitter", "items that the program reports it dropped"),
    ("spans_never_arrived", "spans that never arrived"),
    ("spans_unfinished", "spans without an end"),
    ("spans_duplicate", "spans received twice"),
    ("forward_failed", "spans and other items not forwarded to your endpoints and files"),
    ("recorder_killed", "longpole was killed"),
    ("wal_torn", "the write-ahead log ends in a torn frame"),
    ("wal_damaged", "damaged places in the write-ahead log"),
    ("not_written", "observations that could not be written"),
    ("clock_stepped", "the clock was set during the run"),
    ("drain_timed_out", "connections still open when the run ended"),
    ("environment", "settings in your environment that affect spans"),
    ("resources_unmatched", "Pulumi operations without a call among the spans"),
    ("resources_unfinished", "Pulumi operations that had not finished"),
    ("file_cut", "file damaged or cut off"),
    ("values_redacted", "credentials removed"),
    ("format_cannot_hold", "limits of the file's format"),
    ("samples_untimed", "samples without a time"),
    ("weights_assumed", "samples whose duration is assumed"),
    ("unfinished", "unfinished"),
    ("processes_untimed", "processes without a reading of the clock"),
    ("duplicate_ids", "spans whose id another span has too"),
    ("legacy_joined", "operations that two tracers recorded"),
    ("orphans", "spans whose parent is not in the recording"),
    ("roots_nested", "traces inside one operation of another trace"),
    ("runs_apart", "most of the time nothing ran"),
    ("times_outside_run", "spans with times more than a day outside the run"),
    ("forks_folded", "forks that ran no program of their own"),
    ("processes_unsure", "processes whose operation is unknown"),
    ("cycles", "spans that were their own ancestors"),
    ("ends_clamped", "spans that end before they start"),
    ("clock_skew", "spans that start before their parent"),
    ("clock_shifted", "spans moved because clocks disagree"),
    ("resources_unnamed", "Pulumi calls that name no resource"),
    ("limited_slots", "concurrency limits"),
    ("watched", "no samples"),
    ("kernel_time", "kernel time not sampled"),
    ("scripts_unnamed", "no function names"),
    ("unaccounted", "unaccounted time"),
    ("functions_unnamed", "functions without a name"),
    ("cpu_busy", "waits for a CPU"),
];

/// Notes about the run: their titles are no items that could be counted.
const ABOUT_THE_RUN: [&str; 18] = [
    "profiling_refused",
    "recorder_killed",
    "wal_torn",
    "clock_stepped",
    "unfinished",
    "kernel_time",
    "scripts_unnamed",
    "blocked_unseen",
    "unaccounted",
    "cpu_busy",
    "watched",
    "runs_apart",
    "environment",
    "file_cut",
    "samples_throttled",
    "symbols_unreadable",
    "limited_slots",
    "format_cannot_hold",
];

/// What is missing or doubtful: `spans whose parent is not in the recording`. A code of a newer longpole becomes words.
pub fn title(code: &str) -> String {
    let known = TITLES.iter().find(|(known, _)| *known == code);
    known.map_or_else(|| code.replace('_', " "), |(_, title)| (*title).to_owned())
}

/// The title after the number of its items: `3 spans received twice`; without it, if it is one or the note is about the run.
fn counted_title(code: &str, times: u64) -> String {
    match times {
        0 | 1 => title(code),
        _ if ABOUT_THE_RUN.contains(&code) => title(code),
        _ => format!("{} {}", count(times), title(code)),
    }
}

/// The counted title, and why and what that means. A detail that says of what kind the items are gives that to the title: `13 stacks lack Python
/// functions` and `the thread was just starting or ending`.
pub fn titled<'a>(code: &str, times: u64, detail: &'a str) -> (String, &'a str) {
    let kind_and_why = detail.split_once("; ").filter(|(kind, _)| !kind.contains(':'));
    match (code, kind_and_why) {
        ("functions_not_seen", Some((kind, why))) => (format!("{} {kind}", counted(times, "stack lacks", "stacks lack")), why),
        ("waits_not_seen", Some((kind, why))) if kind.starts_with("of ") => {
            let verb = if times == 1 { "was" } else { "were" };
            (format!("{} {kind} {verb} not sampled", counted(times, "wait", "waits")), why)
        }
        ("other_signals", Some((kind, why))) if kind.starts_with("values of ") => (format!("{kind} are not imported"), why),
        _ => (counted_title(code, times), detail),
    }
}

/// What is missing, how often, and the detail: `3 spans whose parent is not in the recording: they are shown below …`. `samples` is the number of
/// all; 0 if it is unknown.
pub fn loss(code: &str, times: u64, detail: &str, samples: u64) -> String {
    let (title, detail) = titled(code, times, detail);
    sentence(code, &title, times, detail, samples)
}

/// The same of what [`titled`] says.
pub fn sentence(code: &str, counted_title: &str, times: u64, detail: &str, samples: u64) -> String {
    // A recording that keeps only a part of its samples counts the losses of all.
    let of_samples = OF_SAMPLES.iter().find(|it| it.code == code).filter(|_| times <= samples);
    let title = match of_samples {
        Some(OfSamples { noun: [one, many], verb: [is, are], .. }) => {
            format!("{} of {} {}", count(times), counted(samples, one, many), if times == 1 { is } else { are })
        }
        None => counted_title.to_owned(),
    };
    if detail.is_empty() { title } else { format!("{title}: {detail}") }
}

#[cfg(test)]
mod tests {
    use longpole_model::LossKind;

    use super::*;

    #[test]
    fn a_loss_has_its_count_unless_it_is_one() {
        assert_eq!(loss("wal_torn", 1, "", 0), "the write-ahead log ends in a torn frame");
        assert_eq!(loss("orphans", 1, "no parent", 0), "spans whose parent is not in the recording: no parent");
        assert_eq!(loss("waits_not_seen", 2, "short", 0), "2 waits not sampled: short");
        assert_eq!(loss("spans_duplicate", 1_234, "", 0), "1,234 spans received twice");
        assert_eq!(loss("kernel_time", 3, "", 0), "kernel time not sampled");
        assert_eq!(loss("context_torn", 2, "", 9), "2 of 9 samples have context records that were read during a write");
        assert_eq!(loss("stacks_truncated", 2, "deep", 9), "2 of 9 stacks are cut off: deep");
        assert_eq!(loss("stacks_truncated", 1, "deep", 1), "1 of 1 stack is cut off: deep");
        assert_eq!(loss("stacks_truncated", 95, "deep", 10), "95 stacks cut off: deep", "10 of the samples were kept");
        assert_eq!(loss("of_tomorrow", 2, "new", 9), "2 of tomorrow: new");
    }

    #[test]
    fn a_kind_of_items_stands_in_the_title() {
        let python = "Python functions; the thread was just starting or ending";
        assert_eq!(loss("functions_not_seen", 13, python, 99), "13 stacks lack Python functions: the thread was just starting or ending");
        assert_eq!(titled("functions_not_seen", 1, python).0, "1 stack lacks Python functions");
        let other = "methods of Java: it is off; and closed";
        assert_eq!(loss("functions_not_seen", 2, other, 9), "2 missing functions: methods of Java: it is off; and closed");
        let waits = "of 5 to 20 ms; too short, or too many threads waited at once";
        assert_eq!(
            loss("waits_not_seen", 2, waits, 9),
            "2 waits of 5 to 20 ms were not sampled: too short, or too many threads waited at once"
        );
        assert_eq!(titled("waits_not_seen", 1, waits).0, "1 wait of 5 to 20 ms was not sampled");
    }

    #[test]
    fn what_a_profile_has_besides_is_named_and_not_counted() {
        let types = "values of alloc_objects/count; longpole shows one sample type of a file: cpu/nanoseconds";
        assert_eq!(
            loss("other_signals", 188, types, 9),
            "values of alloc_objects/count are not imported: longpole shows one sample type of a file: cpu/nanoseconds"
        );
        let points = "data points of metrics, which longpole does not keep";
        assert_eq!(loss("other_signals", 3, points, 9), "3 items not kept: data points of metrics, which longpole does not keep");
    }

    #[test]
    fn every_kind_of_loss_has_a_title() {
        for kind in LossKind::ALL {
            assert!(TITLES.iter().any(|(code, _)| *code == kind.as_str()), "{}", kind.as_str());
        }
        for code in ABOUT_THE_RUN.iter().chain(OF_SAMPLES.iter().map(|it| &it.code)) {
            assert!(TITLES.iter().any(|(known, _)| known == code), "{code}");
        }
    }
}
