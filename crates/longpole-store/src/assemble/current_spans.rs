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
        // The ends of programs and those of threads stand apart: a process may have a hundred thousand of each.
        let mut ends: HashMap<(u32, u32), Vec<Monotonic>> = HashMap::new();
        for thread in threads {
            ends.entry((thread.pid, thread.tid)).or_default().extend(thread.end);
        }
        ends.values_mut().chain(self.execs.values_mut()).for_each(|ends| ends.sort_unstable());
        let next = |ends: &[Monotonic], start| ends.get(ends.partition_point(|end| *end <= start)).copied();
        for stretch in &mut self.stretches {
            // A thread that nobody saw has no program either.
            let Some(of_thread) = ends.get(&(stretch.pid, stretch.tid)) else { continue };
            let of_program = self.execs.get(&stretch.pid).map_or(&[][..], Vec::as_slice);
            for end in [next(of_thread, stretch.start), next(of_program, stretch.start)].into_iter().flatten() {
                stretch.end = stretch.end.min(end);
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
    fn threads_do_not_each_keep_the_programs_of_their_process() {
        let mut builder = CurrentSpansBuilder::default();
        for tid in 0..20_000 {
            read(&mut builder, tid, false, "5a", 50);
        }
        for time in 0..20_000 {
            builder.exec(1, Monotonic(10 + time));
        }
        let start = std::time::Instant::now();
        let threads = (0..20_000).map(|tid| Thread {
            pid: 1,
            tid,
            name: String::new(),
            start: Monotonic(0),
            end: (tid == 7).then_some(Monotonic(8)),
            totals: None,
            ident: None,
        });
        let found = builder.finish(&threads.collect::<Vec<_>>());
        assert!(found.iter().all(|it| it.end == Monotonic(if it.tid == 7 { 8 } else { 10 })));
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[test]
    fn times_out_of_order_make_no_stretch() {
        let mut builder = CurrentSpansBuilder::default();
        read(&mut builder, 7, false, "9a 5b 7-", 6);
        check(builder, &[], "7:5..7b");
    }
}
