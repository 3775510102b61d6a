//! The context record: which span is current on this thread, where a profiler can read it. The byte contract is
//! `docs/formats/span-context.md`; what decides the current span is in `entered.rs`.
//!
//! This is the only file of the crate with `unsafe`: the record of the main thread is reached through a pointer, and the few
//! calls to libc that std has no words for are here too (thread id, fork handler, signal mask).
//!
//! Elsewhere than on Linux nothing reads the record, and nothing is published.

#![cfg_attr(target_os = "linux", allow(unsafe_code))]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::Cell;
    use std::mem::{align_of, offset_of, size_of};
    use std::ptr;
    use std::sync::Once;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

    use crate::context::{ContextWords, forget_seed};

    /// `LONGPOLE-CTX1` between bytes that are not ASCII.
    const MAGIC: [u8; 16] = *b"\x9cLONGPOLE-CTX1\xf3\xa7";
    const VERSION: u32 = 1;

    /// The magic in two words of the host's order, as they lie in memory.
    const MAGIC_WORDS: [u64; 2] = {
        let (mut low, mut high) = ([0; 8], [0; 8]);
        let mut i = 0;
        while i < 8 {
            low[i] = MAGIC[i];
            high[i] = MAGIC[i + 8];
            i += 1;
        }
        [u64::from_ne_bytes(low), u64::from_ne_bytes(high)]
    };

    /// The record. Only its own thread touches it, yet the fields are atomics: the reader looks at the memory between any two
    /// instructions of that thread, so each store must happen, once, and in this order. A relaxed store is a plain `mov`.
    #[repr(C, align(16))]
    pub(super) struct Record {
        magic: [AtomicU64; 2],
        version: AtomicU32,
        thread_id: AtomicU32,
        sequence: AtomicU64,
        trace_id: [AtomicU64; 2],
        span_id: AtomicU64,
        /// `valid`, `flags`, attribute size and padding, stored as one word: they change together.
        tail: AtomicU64,
    }

    const _: () = assert!(size_of::<Record>() == 64 && align_of::<Record>() == 16);
    const _: () = assert!(offset_of!(Record, version) == 16 && offset_of!(Record, thread_id) == 20 && offset_of!(Record, sequence) == 24);
    const _: () = assert!(offset_of!(Record, trace_id) == 32 && offset_of!(Record, span_id) == 48 && offset_of!(Record, tail) == 56);

    impl Record {
        /// A record that no reader recognises: it must not be one before it is where it stays, because a moved record leaves a
        /// copy behind on the stack.
        const fn blank() -> Self {
            Self::with_magic([0, 0])
        }

        const fn with_magic(magic: [u64; 2]) -> Self {
            Self {
                magic: [AtomicU64::new(magic[0]), AtomicU64::new(magic[1])],
                version: AtomicU32::new(VERSION),
                thread_id: AtomicU32::new(0),
                sequence: AtomicU64::new(0),
                trace_id: [const { AtomicU64::new(0) }; 2],
                span_id: AtomicU64::new(0),
                tail: AtomicU64::new(0),
            }
        }

        /// Writes the owner's id into a record that is used for the first time.
        fn sign(&self) {
            watch_forks();
            self.thread_id.store(gettid(), Relaxed);
            compiler_fence(Ordering::SeqCst);
        }

        /// Makes a blank record one that readers recognise, or blank again.
        fn set_magic(&self, magic: [u64; 2]) {
            self.magic[0].store(magic[0], Relaxed);
            self.magic[1].store(magic[1], Relaxed);
            compiler_fence(Ordering::SeqCst);
        }

        /// Says what is current, in the order the format asks for.
        #[inline(always)]
        fn write(&self, context: ContextWords) {
            let sequence = self.sequence.load(Relaxed);
            self.sequence.store(sequence.wrapping_add(1), Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.tail.store(0, Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.trace_id[0].store(context.trace_id[0], Relaxed);
            self.trace_id[1].store(context.trace_id[1], Relaxed);
            self.span_id.store(context.span_id, Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.tail.store(context.tail, Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.sequence.store(sequence.wrapping_add(2), Relaxed);
        }
    }

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
    }

    thread_local! {
        static SLOT: ThreadSlot = const { ThreadSlot { record: Record::with_magic(MAGIC_WORDS), in_use: Cell::new(ptr::null()) } };
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

        #[cold]
        #[inline(never)]
        fn first_use(&self) -> &Record {
            self.record.sign();
            self.in_use.set(&self.record);
            &self.record
        }
    }

    /// Publishes the current span of this thread.
    #[inline(always)]
    pub(crate) fn publish(context: ContextWords) {
        SLOT.with(|slot| slot.record().write(context));
    }

    /// The kernel's id of this thread, which the record holds anyway, so it costs a system call once per thread.
    pub(crate) fn thread_id() -> Option<u32> {
        Some(SLOT.with(|slot| slot.record().thread_id.load(Relaxed)))
    }

    fn gettid() -> u32 {
        // SAFETY: gettid takes nothing and cannot fail; the system call is used because older C libraries have no wrapper.
        let id = unsafe { libc::syscall(libc::SYS_gettid) };
        u32::try_from(id).unwrap_or(0)
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

    /// Takes the record out of use before its frame ends.
    struct MainFrame<'a> {
        record: &'a Record,
    }

    impl<'a> MainFrame<'a> {
        fn install(record: &'a Record) -> Self {
            record.sign();
            record.set_magic(MAGIC_WORDS);
            SLOT.with(|slot| slot.in_use.set(record));
            crate::entered::republish();
            Self { record }
        }
    }

    impl Drop for MainFrame<'_> {
        fn drop(&mut self) {
            // A blank record is a dead one: a later sample of this thread must not find it in what was its frame.
            self.record.set_magic([0, 0]);
            SLOT.with(|slot| slot.in_use.set(ptr::null()));
            crate::entered::republish();
        }
    }

    static FORKED: AtomicBool = AtomicBool::new(false);
    static WATCHING_FORKS: Once = Once::new();

    /// Whether this process was forked off the one that the exporter's thread runs in. Nothing may wait for that thread then, nor
    /// take a lock that it may have held.
    #[inline]
    pub(crate) fn is_forked_child() -> bool {
        FORKED.load(Relaxed)
    }

    /// Has the C library call us in the child of each fork of this process. A child that execs at once loses nothing by it.
    pub(crate) fn watch_forks() {
        WATCHING_FORKS.call_once(|| {
            // SAFETY: the handler has the signature asked for, lives as long as the program, and does only what is allowed
            // between fork and exec: a system call and stores to memory of its own thread and to an atomic. Failure (out of
            // memory) leaves forked children with their parent's thread id in the record, which readers ignore.
            unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
        });
    }

    /// The one thread of a forked child owns a copy of the record of the thread that forked.
    extern "C" fn in_forked_child() {
        FORKED.store(true, Relaxed);
        SLOT.with(|slot| {
            if !slot.in_use.get().is_null() {
                slot.record().thread_id.store(gettid(), Relaxed);
            }
        });
        forget_seed();
    }

    /// Runs `start`, which starts a thread, so that the thread takes none of the program's signals: a program that waits for
    /// signals on a thread of its own must not lose them to ours. Faults stay deliverable.
    pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
        // SAFETY: both sets are initialised by the calls before they are read, the pointers are to locals that outlive the
        // calls, and the mask that was found is put back.
        unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&mut all);
            for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS] {
                libc::sigdelset(&mut all, fault);
            }
            let changed = libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) == 0;
            let result = start();
            if changed {
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            }
            result
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::context::SpanContext;

        impl Record {
            /// The bytes as a reader sees them.
            fn bytes(&self) -> Vec<u8> {
                let words = [&self.magic[0], &self.magic[1]];
                let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
                bytes.extend(self.version.load(Relaxed).to_ne_bytes());
                bytes.extend(self.thread_id.load(Relaxed).to_ne_bytes());
                for word in [&self.sequence, &self.trace_id[0], &self.trace_id[1], &self.span_id, &self.tail] {
                    bytes.extend(word.load(Relaxed).to_ne_bytes());
                }
                bytes
            }
        }

        /// The hex dump of the format's worked example.
        fn worked_example() -> Vec<u8> {
            let page = include_str!("../../../docs/formats/span-context.md");
            let dump = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
            dump.lines().flat_map(|line| line[4..52].split_whitespace()).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
        }

        #[test]
        #[cfg(target_endian = "little")]
        fn the_record_is_the_worked_example_of_the_format_byte_for_byte() {
            let record = Record::with_magic(MAGIC_WORDS);
            record.thread_id.store(4711, Relaxed);
            record.sequence.store(40, Relaxed);
            let context = SpanContext::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
            record.write(ContextWords::new(&context));
            assert_eq!(record.bytes(), worked_example());
        }

        #[test]
        fn no_span_is_all_zero_behind_an_even_sequence() {
            let record = Record::with_magic(MAGIC_WORDS);
            let context = SpanContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 };
            record.write(ContextWords::new(&context));
            record.write(ContextWords::NONE);
            let bytes = record.bytes();
            assert_eq!(bytes[24..32], 4u64.to_ne_bytes());
            assert_eq!(bytes[32..64], [0; 32]);
        }

        #[test]
        fn a_record_in_use_carries_the_id_of_its_thread() {
            publish(ContextWords::NONE);
            assert_eq!(thread_id(), Some(gettid()));
            let other = std::thread::spawn(thread_id).join().unwrap();
            assert_ne!(other, thread_id());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::context::ContextWords;

    pub(crate) fn publish(_context: ContextWords) {}

    pub(crate) fn thread_id() -> Option<u32> {
        None
    }

    pub(crate) fn with_main_record<T>(body: impl FnOnce() -> T) -> T {
        body()
    }

    pub(crate) fn is_forked_child() -> bool {
        false
    }

    pub(crate) fn watch_forks() {}

    pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
        start()
    }
}
