//! Entries of journals → stretches in which a span, or none, was the current one of a thread.
//!
//! ```text
//! entries     A           –      B ┄┄ some were lost ┄┄ C
//! read             ▲                  ▲                      ▲              ▲
//! stretches   |─A─────────|──–───|─B──|                 |─C─────────────|        the thread ended
//! ```
//!
//! The last entry before a gap held until the journal was last read, and for nobody knows how long after.

use std::collections::HashMap;

use longpole_model::process::Thread;
use longpole_model::time::Monotonic;
use longpole_model::{CurrentSpan, JournalEntry};

/// The last entry of a journal.
#[derive(Debug)]
struct Last {
    entry: JournalEntry,
    /// Until when it is known to hold.
    until: Monotonic,
}

/// The current spans of a recording, as far as its journals have come.
#[derive(Debug, Default)]
pub(super) struct CurrentSpansBuilder {
    stretches: Vec<CurrentSpan>,
    /// By thread.
    last: HashMap<(u32, u32), Last>,
    /// When programs were executed: nothing of what a thread said before holds after.
    execs: HashMap<u32, Vec<Monotonic>>,
}

impl CurrentSpansBuilder {
    /// Takes what was read of a journal.
    pub(super) fn read(&mut self, (pid, tid): (u32, u32), follows: bool, entries: Vec<JournalEntry>, until: Monotonic) {
        let mut last = self.last.remove(&(pid, tid));
        if !follows && let Some(Last { entry, until }) = last.take() {
            self.push((pid, tid), entry, until);
        }
        for entry in entries {
            match &last {
                Some(before) if before.entry.span == entry.span => {}
                Some(before) => {
                    self.push((pid, tid), before.entry, entry.time);
                    last = Some(Last { entry, until });
                }
                None => last = Some(Last { entry, until }),
            }
        }
        if let Some(mut last) = last {
            last.until = until;
            self.last.insert((pid, tid), last);
        }
    }

    /// A process executed a program.
    pub(super) fn exec(&mut self, pid: u32, time: Monotonic) {
        self.execs.entry(pid).or_default().push(time);
    }

    fn push(&mut self, (pid, tid): (u32, u32), entry: JournalEntry, end: Monotonic) {
        if entry.time < end {
            self.stretches.push(CurrentSpan { pid, tid, start: entry.time, end, span: entry.span, is_sent: entry.is_sent });
        }
    }

    /// The stretches by start, none longer than its thread and its program.
    pub(super) fn finish(mut self, threads: &[Thread]) -> Vec<CurrentSpan> {
        for (thread, Last { entry, until }) in std::mem::take(&mut self.last) {
            self.push(thread, entry, until);
        }
        let mut ends: HashMap<(u32, u32), Vec<Monotonic>> = HashMap::new();
        for thread in threads {
            let execs = self.execs.get(&thread.pid).into_iter().flatten().copied();
            ends.entry((thread.pid, thread.tid)).or_default().extend(execs.chain(thread.end));
        }
        ends.values_mut().for_each(|ends| ends.sort_unstable());
        for stretch in &mut self.stretches {
            let ends = ends.get(&(stretch.pid, stretch.tid)).map_or(&[][..], Vec::as_slice);
            if let Some(end) = ends.get(ends.partition_point(|end| *end <= stretch.start)) {
                stretch.end = stretch.end.min(*end);
            }
        }
        self.stretches.sort_unstable_by_key(|stretch| (stretch.start, stretch.pid, stretch.tid));
        self.stretches
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::{SpanId, TraceId};

    use super::*;

    /// Entries such as `5a` (span a from 5 on) and `7-` (none from 7 on), read at a time.
    fn read(builder: &mut CurrentSpansBuilder, tid: u32, follows: bool, entries: &str, until: u64) {
        let entry = |word: &str| {
            let (time, name) = word.split_at(word.len() - 1);
            let byte = name.as_bytes()[0];
            let span = (name != "-").then(|| TraceId::new([1; 16]).zip(SpanId::new([byte; 8])).unwrap());
            JournalEntry { time: Monotonic(time.parse().unwrap()), span, is_sent: span.is_some() }
        };
        builder.read((1, tid), follows, entries.split_whitespace().map(entry).collect(), Monotonic(until));
    }

    fn check(builder: CurrentSpansBuilder, threads: &[(u32, Option<u64>)], expected: &str) {
        let thread = |&(tid, end): &(u32, Option<u64>)| Thread {
            pid: 1,
            tid,
            name: String::new(),
            start: Monotonic(0),
            end: end.map(Monotonic),
            totals: None,
            ident: None,
        };
        let threads: Vec<Thread> = threads.iter().map(thread).collect();
        let shown = |it: CurrentSpan| {
            let name = it.span.map_or('-', |(_, span_id)| char::from(span_id.bytes()[0]));
            format!("{}:{}..{}{name}", it.tid, it.start.0, it.end.0)
        };
        let found: Vec<String> = builder.finish(&threads).into_iter().map(shown).collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn entries_become_stretches_without_a_gap() {
        let mut builder = CurrentSpansBuilder::default();
        read(&mut builder, 7, false, "5a 9- 12b", 20);
        read(&mut builder, 8, false, "6c", 20);
        read(&mut builder, 7, true, "", 30);
        read(&mut builder, 7, true, "35b 40-", 45);
        read(&mut builder, 8, true, "", 45);
        check(builder, &[(7, None), (8, Some(33))], "7:5..9a 8:6..33c 7:9..12- 7:12..40b 7:40..45-");
    }

    #[test]
    fn nothing_is_known_of_a_gap() {
        let mut builder = CurrentSpansBuilder::default();
        read(&mut builder, 7, false, "5a", 10);
        read(&mut builder, 7, false, "30b", 40);
        check(builder, &[(7, None)], "7:5..10a 7:30..40b");
    }

    #[test]
    fn a_program_and_a_thread_that_end_end_what_they_said() {
        let mut builder = CurrentSpansBuilder::default();
        read(&mut builder, 1, false, "5a", 50);
        builder.exec(1, Monotonic(3));
        builder.exec(1, Monotonic(20));
        read(&mut builder, 1, false, "60b 70-", 100);
        check(builder, &[(1, Some(90))], "1:5..20a 1:60..70b 1:70..90-");
    }

    #[test]
    fn times_out_of_order_make_no_stretch() {
        let mut builder = CurrentSpansBuilder::default();
        read(&mut builder, 7, false, "9a 5b 7-", 6);
        check(builder, &[], "7:5..7b");
    }
}
