//! What a thread publishes: its record and its journal, and where they are.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::mem::size_of;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::journal::{self, ENDED, ENTRIES_AT, JOURNAL_BYTES, Journal, JournalEntry, NO_JOURNAL, OUT_OF_MEMORY};
use super::otel_symbol::tell_other_profilers;
use super::record::{MAGIC_WORDS, Record};
use crate::span_context::{ContextWords, forget_seed};
use crate::sys::{gettid, monotonic_nanos};
use crate::{forks, span_stack, sys};

/// What a thread has of ours in its static thread-local storage. glibc and musl put that storage at the top of the stack
/// mapping of every thread but the main one, which is how the record gets into a copy of the stack:
///
/// ```text
///   low                                                                      high
///   ├─ guard ─┤ …free… │ frames, innermost first │ static TLS (record) │ TCB ─┤
///                      ↑ stack pointer; the kernel copies from here ─────────→
/// ```
struct ThreadSlot {
    record: Record,
    /// The record in use: this one, or, on the main thread inside `run`, the one in a frame of `main`. Null until the
    /// thread has something to say, so that one check covers both questions.
    in_use: Cell<*const Record>,
    /// The same, where the thread has no journal and none is to be tried; else null: one check then tells all.
    alone: Cell<*const Record>,
    /// The journal: null until the thread enters its first span, [`NO_JOURNAL`] where it has none.
    journal: Cell<*const Journal>,
    /// Entries of the journal that there is memory for.
    backed: Cell<usize>,
}

thread_local! {
    static SLOT: ThreadSlot = const {
        ThreadSlot {
            record: Record::with_magic(MAGIC_WORDS),
            in_use: Cell::new(ptr::null()),
            alone: Cell::new(ptr::null()),
            journal: Cell::new(ptr::null()),
            backed: Cell::new(0),
        }
    };
    /// Ends the journal with its thread. Apart from the slot, which must not have a destructor: reaching it would cost a check.
    static END_OF_THREAD: EndOfThread = const { EndOfThread };
}

impl ThreadSlot {
    #[inline(always)]
    fn record(&self) -> &Record {
        let record = self.in_use.get();
        if record.is_null() {
            return self.first_use();
        }
        // SAFETY: the pointer is to the record of this slot, which the thread has as long as itself, or to one in a frame of
        // `with_main_record` on this very thread, whose guard resets the pointer before the frame ends, also while
        // unwinding. The pointer never leaves the slot.
        unsafe { &*record }
    }

    fn use_record(&self, record: *const Record) {
        self.in_use.set(record);
        tell_other_profilers(record);
        self.settle();
    }

    #[cold]
    #[inline(never)]
    fn first_use(&self) -> &Record {
        watch_forks();
        self.record.sign(gettid());
        self.use_record(&self.record);
        &self.record
    }
}

/// Publishes the current span of this thread.
#[inline(always)]
pub(crate) fn publish(context: ContextWords) {
    SLOT.with(|slot| {
        let alone = slot.alone.get();
        if alone.is_null() {
            slot.publish_both(context);
        } else {
            // SAFETY: it is the pointer of `record`, and goes with it.
            unsafe { &*alone }.write(context);
        }
    });
}

/// The same in the record only: the journal knows.
fn publish_in_record(context: ContextWords) {
    SLOT.with(|slot| slot.record().write(context));
}

impl ThreadSlot {
    /// Publishes in the record and in the journal, or, where it is not known yet whether there is to be one, finds that out.
    #[inline(never)]
    fn publish_both(&self, context: ContextWords) {
        let journal = self.journal.get();
        if journal.addr() > NO_JOURNAL.addr() {
            // The clock is read while the record is torn: whoever finds it whole finds what the journal says of that moment.
            let time = self.record().write_around(context, monotonic_nanos);
            self.append(journal, time, context);
            return;
        }
        self.record().write(context);
        if journal.is_null() && context != ContextWords::NONE {
            self.begin_journal(context);
        }
        self.settle();
    }

    /// After the record in use or the journal has changed.
    fn settle(&self) {
        let has_none = self.journal.get().addr() == NO_JOURNAL.addr();
        self.alone.set(if has_none { self.in_use.get() } else { ptr::null() });
    }

    #[inline(always)]
    fn append(&self, journal: *const Journal, time: u64, context: ContextWords) {
        // SAFETY: the pointer is to a mapping of this thread that is whole, aligned to a page, and stays until `end_journal`,
        // which takes the pointer away first. All of it is atomics, which any bytes are.
        let journal = unsafe { &*journal };
        if context.is_unsent() && !self.append_mark(journal, time, context) {
            return;
        }
        if journal.next() >= self.backed.get() && !self.back_more() {
            return;
        }
        journal.append(time, context);
    }

    /// Says that the span of the next entry is not sent.
    #[cold]
    #[inline(never)]
    fn append_mark(&self, journal: &Journal, time: u64, context: ContextWords) -> bool {
        if journal.next() >= self.backed.get() && !self.back_more() {
            return false;
        }
        journal.append(time, ContextWords { span_id: 0, ..context });
        true
    }

    /// Makes the journal of this thread, where somebody reads journals. What fails here fails once: the thread goes on without.
    #[cold]
    #[inline(never)]
    fn begin_journal(&self, context: ContextWords) {
        self.journal.set(NO_JOURNAL);
        let Some(directory) = journal::directory() else { return };
        // A thread that is about to end can say no more when it does.
        if END_OF_THREAD.try_with(|_| ()).is_err() {
            return;
        }
        let thread_id = self.record().thread_id.load(Relaxed);
        let name = format!("{}-{thread_id}-{:x}", std::process::id(), monotonic_nanos());
        match journal::map(&directory.join(name)) {
            Ok((journal, backed)) => {
                self.backed.set(backed);
                self.journal.set(journal);
                // SAFETY: as in `append`; it has just been mapped.
                unsafe { &*journal }.sign(thread_id);
                self.append(journal, monotonic_nanos(), context);
            }
            // Whoever read them has ended, and took the directory along.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => journal::tell_none(&format!("{}: {error}", directory.display())),
        }
    }

    /// Asks for memory for more entries. Where there is none the journal ends: to write without would kill the program.
    #[cold]
    #[inline(never)]
    fn back_more(&self) -> bool {
        let backed = ENTRIES_AT + self.backed.get() * size_of::<JournalEntry>();
        match journal::back(self.journal.get(), backed) {
            Ok(backed) => {
                self.backed.set(backed);
                true
            }
            Err(error) => {
                self.end_journal(Some(OUT_OF_MEMORY), NO_JOURNAL);
                journal::tell_none(&format!("no room for more of it: {error}"));
                false
            }
        }
    }

    /// Takes the journal out of use, saying why, and puts `then` in its place.
    fn end_journal(&self, state: Option<u32>, then: *const Journal) {
        let journal = self.journal.replace(then);
        self.backed.set(0);
        self.settle();
        if journal.addr() <= NO_JOURNAL.addr() {
            return;
        }
        if let Some(state) = state {
            // SAFETY: as in `append`; the pointer is gone from the slot, and the mapping goes below.
            unsafe { &*journal }.state.store(state, Release);
        }
        // SAFETY: the mapping is of this length and nobody refers to it any more.
        unsafe { sys::unmap(journal.cast_mut().cast(), JOURNAL_BYTES) };
    }
}

struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        SLOT.with(|slot| slot.end_journal(Some(ENDED), NO_JOURNAL));
    }
}

/// What this thread published last. Takes no lock and no memory, and works at any moment in the life of a thread: the allocator calls it.
#[cfg(all(feature = "heap", target_os = "linux", not(target_arch = "arm")))]
pub(crate) fn published() -> ContextWords {
    SLOT.with(|slot| {
        let record = slot.in_use.get();
        // SAFETY: as in `ThreadSlot::record`.
        if record.is_null() { ContextWords::NONE } else { unsafe { &*record }.read() }
    })
}

/// The kernel's id of this thread, which the record holds anyway, so it costs a system call once per thread.
pub(crate) fn thread_id() -> Option<u32> {
    Some(SLOT.with(|slot| slot.record().thread_id.load(Relaxed)))
}

/// Runs `body` with the record of the main thread in this function's frame, where stack copies end in it. On another thread
/// the record is in reach already, and inside of an outer call it is too: `body` just runs, for a reader that knows where a
/// thread's record is does not look for another.
#[inline(never)]
pub(crate) fn with_main_record<T>(body: impl FnOnce() -> T) -> T {
    if gettid() != std::process::id() || is_in_main_frame() {
        return body();
    }
    let record = Record::blank();
    let _guard = MainFrame::install(&record);
    body()
}

fn is_in_main_frame() -> bool {
    SLOT.with(|slot| !slot.in_use.get().is_null() && !ptr::eq(slot.in_use.get(), &slot.record))
}

/// Says again what is current, after the record has changed its place.
fn republish() {
    publish_in_record(span_stack::innermost());
}

/// Takes the record out of use before its frame ends.
struct MainFrame<'a> {
    record: &'a Record,
}

impl<'a> MainFrame<'a> {
    fn install(record: &'a Record) -> Self {
        watch_forks();
        record.sign(gettid());
        record.set_magic(MAGIC_WORDS);
        SLOT.with(|slot| slot.use_record(record));
        republish();
        Self { record }
    }
}

impl Drop for MainFrame<'_> {
    fn drop(&mut self) {
        // A blank record is a dead one: a later sample of this thread must not find it in what was its frame.
        self.record.set_magic([0, 0]);
        SLOT.with(|slot| slot.use_record(ptr::null()));
        republish();
    }
}

/// Sees to it that what a thread publishes is right in the child of a fork, too.
pub(crate) fn watch_forks() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        forks::watch();
        // The environment cannot be read in a forked child.
        journal::directory();
        // Where this fails the child's record has its parent's thread id, which readers ignore.
        sys::call_in_forked_children(in_forked_child);
    });
}

/// The one thread of a forked child owns a copy of the record of the thread that forked, and shares its journal, which it must
/// not write: it gets one of its own.
extern "C" fn in_forked_child() {
    SLOT.with(|slot| {
        if !slot.in_use.get().is_null() {
            slot.record().thread_id.store(gettid(), Relaxed);
        }
        slot.end_journal(None, ptr::null());
    });
    forget_seed();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span_context::SpanContext;
    use crate::thread_context::journal::CAPACITY;
    use crate::thread_context::otel_symbol::name_for_others;
    use crate::thread_context::tests::worked_example;

    #[test]
    #[cfg(target_endian = "little")]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn the_journal_is_the_worked_example_of_the_format_byte_for_byte() {
        let path = std::env::temp_dir().join(format!("longpole-journal-example-{}", std::process::id()));
        let (mapped, backed) = journal::map(&path).unwrap();
        assert!(backed >= 2, "{backed}");
        // SAFETY: it has just been mapped, and stays until the process ends.
        let journal = unsafe { &*mapped };
        journal.sign(4712);
        journal.process_id.store(4711, Relaxed);
        journal.anchor_monotonic.store(5_000_000_000, Relaxed);
        journal.anchor_unix.store(1_700_000_000_000_000_000, Relaxed);
        journal.pid_namespace.store(0xeffffffc, Relaxed);
        journal.time_namespace.store(0xeffffffa, Relaxed);
        let context = SpanContext::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        journal.append(5_000_001_000, ContextWords::new(&context));
        journal.append(5_000_301_000, ContextWords::NONE);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), JOURNAL_BYTES);
        assert_eq!(bytes[..ENTRIES_AT + 2 * 40], worked_example(2));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn a_full_journal_goes_on_at_its_beginning() {
        let path = std::env::temp_dir().join(format!("longpole-journal-full-{}", std::process::id()));
        let (journal, mut backed) = journal::map(&path).unwrap();
        let first_step = backed;
        while backed < CAPACITY {
            backed = journal::back(journal, ENTRIES_AT + backed * 40).unwrap();
        }
        assert!(first_step <= CAPACITY);
        // SAFETY: it has just been mapped, and stays until the process ends.
        let journal = unsafe { &*journal };
        for time in 1..=CAPACITY as u64 + 3 {
            journal.append(time, ContextWords::NONE);
        }
        std::fs::remove_file(&path).unwrap();
        let numbers: Vec<u64> = journal.entries.iter().take(5).map(|entry| entry.number.load(Relaxed)).collect();
        assert_eq!(numbers, [8193, 8194, 8195, 4, 5]);
        assert_eq!(journal.written.load(Relaxed), 8195);
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[cfg_attr(miri, ignore = "the first use calls pthread_atfork and runs assembly")]
    fn other_profilers_are_shown_the_record_that_is_in_use() {
        let shown = || {
            // SAFETY: the variable is this thread's own.
            unsafe { *name_for_others() }.addr()
        };
        let in_use = || SLOT.with(|slot| slot.in_use.get().addr());
        std::thread::spawn(move || {
            assert_eq!(shown(), 0, "nothing to say yet");
            publish(ContextWords::NONE);
            assert_eq!(shown(), in_use() + 32);
        })
        .join()
        .unwrap();
    }

    #[test]
    #[cfg_attr(miri, ignore = "the first use calls pthread_atfork and runs assembly")]
    fn a_record_in_use_carries_the_id_of_its_thread() {
        publish(ContextWords::NONE);
        assert_eq!(thread_id(), Some(gettid()));
        let other = std::thread::spawn(thread_id).join().unwrap();
        assert_ne!(other, thread_id());
    }
}
