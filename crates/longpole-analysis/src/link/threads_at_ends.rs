//! Spans → threads, where nobody names them: the thread that was on a CPU at both ends of a span.
//!
//! ```text
//! span       |=====================|        who starts a span and who ends it reads the clock, and is on a CPU then
//! thread 7  ===|··· lock ·······|====       on a CPU at both ends: the span is on it
//! thread 8   ··|====== holds ===|···|==     at neither
//! thread 9  ====|········· reads ······     at the start only
//! ```
//!
//! If there are several candidates, none counts. Tasks that go from thread to thread end elsewhere, so only languages count whose spans mostly stay on
//! their threads.

use std::collections::{HashMap, HashSet};

use longpole_model::{CaptureMode, LossKind, Recording, Span, Timestamp};

use crate::running::Running;

/// Languages in which the thread that starts a span mostly ends it.
const LANGUAGES: [&str; 5] = ["python", "java", "ruby", "php", "cpp"];

/// How far apart the clock of a program and the one of the switch records may be: some SDKs cut times to microseconds.
const SLACK_NANOS: i64 = 5_000;

/// Threads on CPUs at one end of a span among which its own is searched.
const CANDIDATES_MAX: usize = 64;

/// When the threads of the processes were on CPUs whose spans do not name them.
#[derive(Debug)]
pub(crate) struct ThreadsAtEnds {
    of_process: HashMap<u32, Running>,
    /// What the times of the slices count from.
    origin: Timestamp,
}

impl ThreadsAtEnds {
    pub(crate) fn of(recording: &Recording) -> ThreadsAtEnds {
        let origin = recording.clock.anchors().first().map_or(Timestamp(0), |anchor| anchor.unix);
        let is_whole = !recording.losses.iter().any(|loss| loss.kind == LossKind::SamplesLost && loss.count > 0);
        if !is_whole || recording.run.mode == CaptureMode::Imported {
            return ThreadsAtEnds { of_process: HashMap::new(), origin };
        }
        // A journal says more.
        let journaled: HashSet<u32> = recording.current_spans.iter().map(|current| current.pid).collect();
        let spans = recording.spans.iter().filter(|span| LANGUAGES.contains(&language(span)));
        let pids: HashSet<u32> = spans.filter_map(|span| span.pid).filter(|pid| !journaled.contains(pid)).collect();
        let at = |at| recording.clock.to_unix(at).map(|at| at.nanos_since(origin));
        let mut slices: HashMap<u32, Vec<(i64, i64, u32)>> = HashMap::new();
        for slice in recording.cpu_slices.iter().filter(|slice| pids.contains(&slice.pid)) {
            if let Some((from, to)) = at(slice.start).zip(at(slice.end)) {
                slices.entry(slice.pid).or_default().push((from, to, slice.tid));
            }
        }
        let of_process = slices.into_iter().map(|(pid, slices)| (pid, Running::new(slices.into_iter()))).collect();
        ThreadsAtEnds { of_process, origin }
    }

    /// The only thread that was on a CPU at both ends of a span.
    pub(crate) fn thread(&self, span: &Span) -> Option<u32> {
        let running = self.of_process.get(&span.pid?)?;
        let at = |end: Timestamp| {
            let at = end.nanos_since(self.origin);
            running.few_within(at.saturating_sub(SLACK_NANOS), at.saturating_add(SLACK_NANOS), CANDIDATES_MAX + 1)
        };
        let (starts, ends) = (at(span.start), at(span.end));
        let is_few = starts.len() <= CANDIDATES_MAX && ends.len() <= CANDIDATES_MAX;
        let mut both = starts.iter().copied().filter(|tid| ends.binary_search(tid).is_ok());
        both.next().filter(|_| is_few && both.next().is_none())
    }
}

fn language(span: &Span) -> &str {
    span.resource.attributes.get_str("telemetry.sdk.language").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_model::{AttributeValue, Resource, SampleLink, text};

    use crate::link::{samples, waits};

    /// Two requests at once on the threads 7 and 8, and a helper without spans, thread 9.
    const TEXT: &str = "\
run x 0..100ms
  a 10..60ms web pid 1
  b 12..90ms web pid 1
thread x 0..100ms pid 1 tid 1
thread t 9..61ms pid 1 tid 7
thread t 9..91ms pid 1 tid 8
thread h 9..91ms pid 1 tid 9
cpu 9..11ms pid 1 tid 7
cpu 11..13ms pid 1 tid 8
cpu 59..61ms pid 1 tid 7
cpu 60..91ms pid 1 tid 8
cpu 20..80ms pid 1 tid 9
sample 70ms pid 1 tid 8 main;update
sample 71ms pid 1 tid 9 main;help
wait 11..59ms pid 1 tid 7 sleep main;query
wait 13..60ms pid 1 tid 8 lock main;update;lock
";

    /// The spans of the waits and of the samples, as `b inferred`.
    fn links(said: &str, language: &str) -> Vec<String> {
        let mut recording = text::parse(said).unwrap();
        let mut resource = Resource::default();
        resource.attributes.push("telemetry.sdk.language", AttributeValue::Str(language.into()));
        let resource = Arc::new(resource);
        recording.spans.iter_mut().for_each(|span| span.resource = Arc::clone(&resource));
        let name = |link: &SampleLink| {
            let span = link.span.and_then(|(_, id)| recording.spans.iter().find(|span| span.span_id == id));
            format!("{} {}", span.map_or("-", |span| span.name.as_str()), link.evidence.as_str())
        };
        waits::link(&recording).iter().chain(&samples::link(&recording)).map(name).collect()
    }

    #[test]
    fn a_span_is_on_the_thread_that_was_on_a_cpu_at_both_ends() {
        assert_eq!(links(TEXT, "python"), ["a inferred", "b inferred", "b inferred", "b inferred"]);
        // Tasks of Go go from thread to thread.
        assert_eq!(links(TEXT, "go")[..2], ["- none", "- none"]);
        // Two were on CPUs at both ends of `b`: it can be on any, and the wait of thread 8 is nobody's.
        let two = TEXT.replace("cpu 20..80ms pid 1 tid 9", "cpu 11..92ms pid 1 tid 9");
        assert_eq!(links(&two, "python")[..2], ["a inferred", "- none"]);
    }

    #[test]
    fn a_thread_of_one_span_does_not_work_for_another_one() {
        let both_open = TEXT.replace("sample 70ms pid 1 tid 8", "sample 59500us pid 1 tid 7").replace("sample 71ms", "sample 59600us");
        // The helper may work for both.
        assert_eq!(links(&both_open, "python")[2..], ["a inferred", "- ambiguous"]);
    }
}
