//! Which span is current on this thread, where a profiler can read it: the context record, which says so of now, and the journal,
//! which says since when. The byte contract of both is `docs/formats/span-context.md`; what decides the current span is in
//! `span_stack.rs`.
//!
//! Other profilers find the record by the name that OTEP 4947 gives it, and whose process it is by the mapping of OTEP 4719.
//!
//! This is the only file of the crate with `unsafe`: the record of the main thread is reached through a pointer, the journal lies
//! in a mapped file, a name that other profilers know needs a few instructions of its own, and the few calls to libc that std has no
//! words for are here too (thread id, clock, fork handler, signal mask, named memory).
//!
//! Elsewhere than on Linux nothing reads them, and nothing is published.

#![cfg_attr(target_os = "linux", allow(unsafe_code))]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::Cell;
    use std::ffi::OsString;
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::mem::{align_of, offset_of, size_of};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};
    use std::ptr;
    use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
    use std::sync::{Mutex, Once, OnceLock};

    use crate::context::{ContextWords, forget_seed};
    use crate::diagnostic::tell;

    /// `LONGPOLE-CTX1` between bytes that are not ASCII.
    const MAGIC: [u8; 16] = *b"\x9cLONGPOLE-CTX1\xf3\xa7";
    const VERSION: u32 = 1;

    const MAGIC_WORDS: [u64; 2] = in_words(MAGIC);

    /// A magic in two words of the host's order, as they lie in memory.
    const fn in_words(magic: [u8; 16]) -> [u64; 2] {
        let (mut low, mut high) = ([0; 8], [0; 8]);
        let mut i = 0;
        while i < 8 {
            low[i] = magic[i];
            high[i] = magic[i + 8];
            i += 1;
        }
        [u64::from_ne_bytes(low), u64::from_ne_bytes(high)]
    }

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
            self.write_around(context, || ());
        }

        /// The same, and does something while the record says that it is being written.
        #[inline(always)]
        fn write_around<T>(&self, context: ContextWords, meanwhile: impl FnOnce() -> T) -> T {
            let sequence = self.sequence.load(Relaxed);
            self.sequence.store(sequence.wrapping_add(1), Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.tail.store(0, Relaxed);
            compiler_fence(Ordering::SeqCst);
            let result = meanwhile();
            compiler_fence(Ordering::SeqCst);
            self.trace_id[0].store(context.trace_id[0], Relaxed);
            self.trace_id[1].store(context.trace_id[1], Relaxed);
            self.span_id.store(context.span_id, Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.tail.store(context.record_tail(), Relaxed);
            compiler_fence(Ordering::SeqCst);
            self.sequence.store(sequence.wrapping_add(2), Relaxed);
            result
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
            self.record.sign();
            self.use_record(&self.record);
            &self.record
        }
    }

    // `otel_thread_ctx_v1` of OTEP 4947: thread-local, a pointer to the part of the record in use that other profilers know, null
    // where there is none. Rust has no stable word for a thread-local symbol with a name of its own. Weak, because another SDK in the
    // same program may define it, too. In a program it is found by others only if the linker was told to export it.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    std::arch::global_asm!(
        ".pushsection .tbss.otel_thread_ctx_v1,\"awT\",@nobits",
        ".balign 8",
        ".weak otel_thread_ctx_v1",
        ".type otel_thread_ctx_v1, @object",
        ".size otel_thread_ctx_v1, 8",
        "otel_thread_ctx_v1:",
        ".zero 8",
        ".popsection",
    );

    /// Points `otel_thread_ctx_v1` of this thread at a record. Once for each thread: what is current is then in the record.
    fn tell_other_profilers(record: *const Record) {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let shown = if record.is_null() { ptr::null() } else { record.wrapping_byte_add(offset_of!(Record, trace_id)).cast() };
            // SAFETY: the variable is this thread's own and lives as long as the thread. Nothing in this program reads what it
            // points to; whoever stops the thread finds it null or at a record that is in use.
            unsafe { *name_for_others() = shown };
            compiler_fence(Ordering::SeqCst);
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = record;
    }

    /// Where `otel_thread_ctx_v1` of this thread lies: the sequence of instructions for a descriptor of thread-local storage that
    /// linkers know, and make shorter in a program.
    #[cfg(target_arch = "x86_64")]
    fn name_for_others() -> *mut *const u8 {
        let at: *mut *const u8;
        // SAFETY: the resolver takes and gives back `rax` and keeps all other registers; `fs:0` holds the thread pointer itself.
        unsafe {
            std::arch::asm!(
                "leaq otel_thread_ctx_v1@tlsdesc(%rip), %rax",
                "call *otel_thread_ctx_v1@tlscall(%rax)",
                "addq %fs:0, %rax",
                out("rax") at,
                options(att_syntax)
            );
        }
        at
    }

    /// The same for this machine.
    #[cfg(target_arch = "aarch64")]
    fn name_for_others() -> *mut *const u8 {
        let at: *mut *const u8;
        // SAFETY: the resolver takes and gives back `x0`, uses `x1` and the link register, and keeps all others.
        unsafe {
            std::arch::asm!(
                "adrp x0, :tlsdesc:otel_thread_ctx_v1",
                "ldr x1, [x0, :tlsdesc_lo12:otel_thread_ctx_v1]",
                "add x0, x0, :tlsdesc_lo12:otel_thread_ctx_v1",
                ".tlsdesccall otel_thread_ctx_v1",
                "blr x1",
                "mrs x1, tpidr_el0",
                "add x0, x1, x0",
                out("x0") at,
                out("x1") _,
                out("x30") _,
            );
        }
        at
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
    pub(crate) fn publish_in_record(context: ContextWords) {
        SLOT.with(|slot| slot.record().write(context));
    }

    /// First bytes of a journal.
    const JOURNAL_MAGIC_WORDS: [u64; 2] = in_words(*b"\x9cLONGPOLE-JRN1\xf3\xa7");
    const JOURNAL_VERSION: u32 = 1;

    /// Entries of a journal: a twelfth of a second at 100,000 a second, in 320 KiB.
    const CAPACITY: usize = 8192;

    /// Memory of a journal is asked for in steps of this, or of a page where that is more: a thread with few spans takes little.
    const STEP_BYTES: usize = 16 << 10;

    /// Feature of a journal: spans that are not sent have a mark before them.
    const HAS_MARKS: u64 = 1;

    /// The thread lives, or was killed.
    const OPEN: u32 = 0;
    /// The thread has ended.
    const ENDED: u32 = 1;
    /// There was no memory for more; the thread goes on without.
    const OUT_OF_MEMORY: u32 = 2;

    /// In place of a journal where there is none and none is to be tried.
    const NO_JOURNAL: *const Journal = ptr::without_provenance(1);

    /// A journal file as it lies in memory. Only its own thread writes; other processes read what the fields say, in the order in
    /// which they were stored.
    #[repr(C)]
    struct Journal {
        magic: [AtomicU64; 2],
        version: AtomicU32,
        process_id: AtomicU32,
        thread_id: AtomicU32,
        entry_bytes: AtomicU32,
        capacity: AtomicU32,
        state: AtomicU32,
        written: AtomicU64,
        anchor_monotonic: AtomicU64,
        anchor_unix: AtomicU64,
        pid_namespace: AtomicU64,
        time_namespace: AtomicU64,
        features: AtomicU64,
        reserved: [AtomicU64; 5],
        entries: [Entry; CAPACITY],
    }

    /// From this moment on this span is current, or none.
    #[repr(C)]
    struct Entry {
        number: AtomicU64,
        time: AtomicU64,
        trace_id: [AtomicU64; 2],
        span_id: AtomicU64,
    }

    const JOURNAL_BYTES: usize = size_of::<Journal>();
    const ENTRIES_AT: usize = offset_of!(Journal, entries);

    const _: () = assert!(ENTRIES_AT == 128 && size_of::<Entry>() == 40 && CAPACITY.is_power_of_two());
    const _: () =
        assert!(offset_of!(Journal, state) == 36 && offset_of!(Journal, written) == 40 && offset_of!(Journal, time_namespace) == 72);

    impl Journal {
        /// Appends an entry; the oldest goes where there is no room.
        #[inline(always)]
        fn append(&self, time: u64, context: ContextWords) {
            let number = self.written.load(Relaxed).wrapping_add(1);
            let entry = &self.entries[self.next()];
            // What was written before is seen before this entry changes: a reader that counts can tell which it may trust.
            fence(Release);
            entry.time.store(time, Relaxed);
            entry.trace_id[0].store(context.trace_id[0], Relaxed);
            entry.trace_id[1].store(context.trace_id[1], Relaxed);
            entry.span_id.store(context.span_id, Relaxed);
            entry.number.store(number, Release);
            self.written.store(number, Release);
        }

        /// Place of the next entry.
        #[inline(always)]
        fn next(&self) -> usize {
            self.written.load(Relaxed) as usize & (CAPACITY - 1)
        }

        /// Says whose it is. The magic comes last: until then it is no journal.
        fn sign(&self, thread_id: u32) {
            self.version.store(JOURNAL_VERSION, Relaxed);
            self.process_id.store(std::process::id(), Relaxed);
            self.thread_id.store(thread_id, Relaxed);
            self.entry_bytes.store(size_of::<Entry>() as u32, Relaxed);
            self.capacity.store(CAPACITY as u32, Relaxed);
            self.state.store(OPEN, Relaxed);
            let before = monotonic_nanos();
            self.anchor_unix.store(nanos_of(libc::CLOCK_REALTIME), Relaxed);
            self.anchor_monotonic.store(before + (monotonic_nanos() - before) / 2, Relaxed);
            self.pid_namespace.store(namespace("pid"), Relaxed);
            self.time_namespace.store(namespace("time"), Relaxed);
            self.features.store(HAS_MARKS, Relaxed);
            self.magic[0].store(JOURNAL_MAGIC_WORDS[0], Release);
            self.magic[1].store(JOURNAL_MAGIC_WORDS[1], Release);
        }
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
            let Some(directory) = journal_directory() else { return };
            // A thread that is about to end can say no more when it does.
            if END_OF_THREAD.try_with(|_| ()).is_err() {
                return;
            }
            let thread_id = self.record().thread_id.load(Relaxed);
            let name = format!("{}-{thread_id}-{:x}", std::process::id(), monotonic_nanos());
            match map_journal(&directory.join(name)) {
                Ok((journal, backed)) => {
                    self.backed.set(backed);
                    self.journal.set(journal);
                    // SAFETY: as in `append`; it has just been mapped.
                    unsafe { &*journal }.sign(thread_id);
                    self.append(journal, monotonic_nanos(), context);
                }
                // Whoever read them has ended, and took the directory along.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tell_no_journal(&format!("{}: {error}", directory.display())),
            }
        }

        /// Asks for memory for more entries. Where there is none the journal ends: to write without would kill the program.
        #[cold]
        #[inline(never)]
        fn back_more(&self) -> bool {
            let backed = ENTRIES_AT + self.backed.get() * size_of::<Entry>();
            match back(self.journal.get(), backed) {
                Ok(backed) => {
                    self.backed.set(backed);
                    true
                }
                Err(error) => {
                    self.end_journal(Some(OUT_OF_MEMORY), NO_JOURNAL);
                    tell_no_journal(&format!("no room for more of it: {error}"));
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
            unsafe { libc::munmap(journal.cast_mut().cast(), JOURNAL_BYTES) };
        }
    }

    struct EndOfThread;

    impl Drop for EndOfThread {
        fn drop(&mut self) {
            SLOT.with(|slot| slot.end_journal(Some(ENDED), NO_JOURNAL));
        }
    }

    /// Makes the file and maps it; says for how many entries there is memory.
    fn map_journal(path: &Path) -> io::Result<(*const Journal, usize)> {
        if !file_may_have(JOURNAL_BYTES) {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(JOURNAL_BYTES as u64)?;
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: maps a file of this length where the kernel likes; nothing else lies there.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), JOURNAL_BYTES, prot, flags, file.as_raw_fd(), 0) };
        let journal: *const Journal = mapped.cast_const().cast();
        let backed = match mapped {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            _ => back(journal, 0).or_else(|error| back_whole(&file, error)).inspect_err(|_| {
                // SAFETY: the mapping is of this length, and nobody has seen it.
                unsafe { libc::munmap(mapped, JOURNAL_BYTES) };
            }),
        };
        if backed.is_err() {
            // It came to nothing. Where it cannot go, it goes with its directory.
            let _ = fs::remove_file(path);
        }
        Ok((journal, backed?))
    }

    /// Whether a file may be so large: where it may not (`ulimit -f`), who makes it so gets a signal that ends the program.
    fn file_may_have(bytes: usize) -> bool {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is a valid place for the answer.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
        is_known && limit.rlim_cur >= bytes as libc::rlim_t
    }

    /// Has the kernel put memory behind the next step of a mapped journal, or say that it has none. Says for how many entries there
    /// is memory then.
    fn back(journal: *const Journal, from: usize) -> io::Result<usize> {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(STEP_BYTES).max(1);
        let from = from / page * page;
        let to = (from + STEP_BYTES.max(page)).min(JOURNAL_BYTES.next_multiple_of(page));
        let start: *mut libc::c_void = journal.cast_mut().wrapping_byte_add(from).cast();
        // SAFETY: the range lies in the mapping, whose last page is whole; its contents stay as they are.
        if unsafe { libc::madvise(start, to - from, libc::MADV_POPULATE_WRITE) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(((to - ENTRIES_AT) / size_of::<Entry>()).min(CAPACITY))
    }

    /// Before Linux 5.14 memory cannot be asked for in steps: all of it at once, then.
    fn back_whole(file: &File, error: io::Error) -> io::Result<usize> {
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(error);
        }
        // SAFETY: takes a descriptor that is open and two numbers.
        match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, JOURNAL_BYTES as libc::off_t) } {
            0 => Ok(CAPACITY),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Where journals are to be put; `None` where nobody reads them.
    fn journal_directory() -> Option<&'static Path> {
        static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
        // In a forked child somebody may have been at it who is not there any more.
        let directory = if is_forked_child() { DIRECTORY.get()? } else { DIRECTORY.get_or_init(read_journal_directory) };
        directory.as_deref()
    }

    /// Whether this program has more rights than whoever started it (set-user-id, capabilities of its file): then the environment is not its
    /// user's word, as for the C library's own variables.
    pub(crate) fn has_more_rights_than_its_caller() -> bool {
        // SAFETY: takes a number and reads what the kernel handed to this process.
        unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
    }

    fn read_journal_directory() -> Option<PathBuf> {
        if has_more_rights_than_its_caller() {
            return None;
        }
        let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_true = |value: OsString| value.to_string_lossy().trim().eq_ignore_ascii_case("true");
        let directory = PathBuf::from(value("LONGPOLE_JOURNAL_DIR")?);
        (directory.is_absolute() && !value("OTEL_SDK_DISABLED").is_some_and(is_true)).then_some(directory)
    }

    /// Says once that the profiler will know less.
    fn tell_no_journal(why: &str) {
        static TOLD: AtomicBool = AtomicBool::new(false);
        if !TOLD.swap(true, Relaxed) && !is_forked_child() {
            tell(&format!("a thread has no journal of its spans: {why}; a profiler sees fewer of them exactly"));
        }
    }

    #[inline]
    fn monotonic_nanos() -> u64 {
        nanos_of(libc::CLOCK_MONOTONIC)
    }

    #[inline]
    fn nanos_of(clock: libc::clockid_t) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call fills the structure it is given, and these clocks are always there.
        unsafe { libc::clock_gettime(clock, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Number of a namespace of this process; 0 where the kernel has none, or does not say.
    fn namespace(kind: &str) -> u64 {
        fs::metadata(format!("/proc/self/ns/{kind}")).map_or(0, |meta| meta.ino())
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
            SLOT.with(|slot| slot.use_record(record));
            crate::span_stack::republish();
            Self { record }
        }
    }

    impl Drop for MainFrame<'_> {
        fn drop(&mut self) {
            // A blank record is a dead one: a later sample of this thread must not find it in what was its frame.
            self.record.set_magic([0, 0]);
            SLOT.with(|slot| slot.use_record(ptr::null()));
            crate::span_stack::republish();
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
            // The environment cannot be read in a forked child.
            journal_directory();
            // SAFETY: the handler has the signature asked for, lives as long as the program, and does only what is allowed
            // between fork and exec: a system call and stores to memory of its own thread and to an atomic. Failure (out of
            // memory) leaves forked children with their parent's thread id in the record, which readers ignore.
            unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
        });
    }

    /// The one thread of a forked child owns a copy of the record of the thread that forked, and shares its journal, which it must
    /// not write: it gets one of its own.
    extern "C" fn in_forked_child() {
        FORKED.store(true, Relaxed);
        // The mapping stayed behind with the parent.
        PROCESS_HEADER.store(ptr::null_mut(), Relaxed);
        SLOT.with(|slot| {
            if !slot.in_use.get().is_null() {
                slot.record().thread_id.store(gettid(), Relaxed);
            }
            slot.end_journal(None, ptr::null());
        });
        forget_seed();
    }

    /// Has the C library call us when this process ends by `exit` or by returning from `main`.
    pub(crate) fn watch_exit() {
        WATCHING_EXIT.call_once(|| {
            watch_forks();
            EXITING_PROCESS.store(std::process::id(), Relaxed);
            // SAFETY: the handler has the signature asked for and lives as long as the program. Failure (out of memory) loses what
            // nobody flushed.
            unsafe { libc::atexit(at_exit) };
        });
    }

    static WATCHING_EXIT: Once = Once::new();

    /// Whose end is ours: a child that was made by a system call of its own has the handler, too, and none of the threads.
    static EXITING_PROCESS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn at_exit() {
        if is_forked_child() || EXITING_PROCESS.load(Relaxed) != std::process::id() {
            return;
        }
        // A panic would abort a program that is about to end well.
        let _ = std::panic::catch_unwind(crate::at_exit::end_all);
    }

    /// Writes to stderr, all of it or what it takes.
    pub(crate) fn write_stderr(mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // SAFETY: the pointer and the length are those of the slice.
            let written = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => bytes = &bytes[written.min(bytes.len())..],
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    /// What OTEP 4719 has of a process in a mapping that other processes find by its name.
    #[repr(C)]
    struct ProcessHeader {
        signature: AtomicU64,
        version: AtomicU32,
        payload_bytes: AtomicU32,
        /// CLOCK_BOOTTIME; 0 while it is being changed.
        published_at: AtomicU64,
        payload: AtomicU64,
    }

    const _: () = assert!(size_of::<ProcessHeader>() == 32 && offset_of!(ProcessHeader, published_at) == 16);

    const PROCESS_SIGNATURE: [u8; 8] = *b"OTEL_CTX";
    const PROCESS_VERSION: u32 = 2;

    /// Name of the mapping.
    const PROCESS_NAME: &std::ffi::CStr = c"OTEL_CTX";

    /// The mapping of this process; null until there is one. There must not be two.
    static PROCESS_HEADER: AtomicPtr<ProcessHeader> = AtomicPtr::new(ptr::null_mut());

    /// Publishes what this process is, an encoded `ProcessContext`, in place of what was published before. What cannot be had leaves
    /// other profilers without it.
    pub(crate) fn publish_process(payload: Vec<u8>) {
        /// What the header points to.
        static PAYLOAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        watch_forks();
        // In a forked child somebody may have had it who is not there any more; and who comes second says the same.
        let (Ok(mut kept), Ok(payload_bytes)) = (PAYLOAD.try_lock(), u32::try_from(payload.len())) else { return };
        let mut header = PROCESS_HEADER.load(Relaxed);
        if header.is_null() {
            let Some(mapped) = map_process_header() else { return };
            header = mapped;
            PROCESS_HEADER.store(header, Relaxed);
        }
        // SAFETY: the mapping holds a header at its start, is never taken away, and all of it is atomics; a forked child, which
        // does not have it, has forgotten the pointer.
        let shown = unsafe { &*header };
        let before = shown.published_at.swap(0, Relaxed);
        fence(SeqCst);
        shown.signature.store(u64::from_ne_bytes(PROCESS_SIGNATURE), Relaxed);
        shown.version.store(PROCESS_VERSION, Relaxed);
        shown.payload_bytes.store(payload_bytes, Relaxed);
        shown.payload.store(payload.as_ptr().addr() as u64, Relaxed);
        fence(SeqCst);
        shown.published_at.store(nanos_of(libc::CLOCK_BOOTTIME).max(before + 1), Relaxed);
        // The call tells those who watch for it; that the mapping cannot be named is no fault where it has a file's name.
        name_process_header(header);
        // What was there before may go: who was reading it sees that the time is another one.
        *kept = payload;
    }

    /// Memory for the header: of a file without a place, whose name shows, or, where there may be none, without a file.
    fn map_process_header() -> Option<*mut ProcessHeader> {
        let bytes = size_of::<ProcessHeader>();
        let (prot, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let file = [libc::MFD_NOEXEC_SEAL, 0].into_iter().find_map(|more| {
            // SAFETY: takes a text that ends with zero, and flags; gives a descriptor that is ours, or -1.
            let descriptor = unsafe { libc::memfd_create(PROCESS_NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | more) };
            // SAFETY: as above.
            (descriptor >= 0).then(|| unsafe { File::from(OwnedFd::from_raw_fd(descriptor)) })
        });
        let file = file.filter(|file| file_may_have(bytes) && file.set_len(bytes as u64).is_ok());
        let (descriptor, flags) = file.as_ref().map_or((-1, private | libc::MAP_ANONYMOUS), |file| (file.as_raw_fd(), private));
        // SAFETY: maps new memory where the kernel likes; nothing else lies there.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, prot, flags, descriptor, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the range is the mapping; a forked child is not to have it.
        let is_kept_from_children = unsafe { libc::madvise(mapped, bytes, libc::MADV_DONTFORK) } == 0;
        let is_found = file.is_some() || name_process_header(mapped.cast());
        if is_kept_from_children && is_found {
            return Some(mapped.cast());
        }
        // SAFETY: the mapping is of this length, and nobody has seen it.
        unsafe { libc::munmap(mapped, bytes) };
        None
    }

    /// Gives the mapping its name, which some kernels cannot.
    fn name_process_header(header: *mut ProcessHeader) -> bool {
        let (start, bytes) = (header.addr(), size_of::<ProcessHeader>());
        // SAFETY: names a range of this process, which changes nothing of what lies there; the text ends with zero.
        unsafe { libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start, bytes, PROCESS_NAME.as_ptr()) == 0 }
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

        /// The hex dump of a worked example of the format: 1 is the record's, 2 the journal's.
        fn worked_example(number: usize) -> Vec<u8> {
            let page = include_str!("../../../../docs/formats/span-context.md");
            let dump = page.split("```text\n").nth(number).and_then(|rest| rest.split("```").next()).unwrap();
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
            assert_eq!(record.bytes(), worked_example(1));
        }

        #[test]
        #[cfg(target_endian = "little")]
        fn the_journal_is_the_worked_example_of_the_format_byte_for_byte() {
            let path = std::env::temp_dir().join(format!("longpole-journal-example-{}", std::process::id()));
            let (mapped, backed) = map_journal(&path).unwrap();
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
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            assert_eq!(bytes.len(), JOURNAL_BYTES);
            assert_eq!(bytes[..ENTRIES_AT + 2 * 40], worked_example(2));
        }

        #[test]
        fn a_full_journal_goes_on_at_its_beginning() {
            let path = std::env::temp_dir().join(format!("longpole-journal-full-{}", std::process::id()));
            let (journal, mut backed) = map_journal(&path).unwrap();
            let first_step = backed;
            while backed < CAPACITY {
                backed = back(journal, ENTRIES_AT + backed * 40).unwrap();
            }
            assert!(first_step <= CAPACITY);
            // SAFETY: it has just been mapped, and stays until the process ends.
            let journal = unsafe { &*journal };
            for time in 1..=CAPACITY as u64 + 3 {
                journal.append(time, ContextWords::NONE);
            }
            fs::remove_file(&path).unwrap();
            let numbers: Vec<u64> = journal.entries.iter().take(5).map(|entry| entry.number.load(Relaxed)).collect();
            assert_eq!(numbers, [8193, 8194, 8195, 4, 5]);
            assert_eq!(journal.written.load(Relaxed), 8195);
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
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
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

    pub(crate) fn publish_in_record(_context: ContextWords) {}

    pub(crate) fn thread_id() -> Option<u32> {
        None
    }

    pub(crate) fn with_main_record<T>(body: impl FnOnce() -> T) -> T {
        body()
    }

    pub(crate) fn is_forked_child() -> bool {
        false
    }

    pub(crate) fn has_more_rights_than_its_caller() -> bool {
        false
    }

    pub(crate) fn watch_forks() {}

    /// Elsewhere what is not flushed by a guard is lost.
    pub(crate) fn watch_exit() {}

    pub(crate) fn write_stderr(bytes: &[u8]) {
        use std::io::Write;
        let _ = std::io::stderr().lock().write_all(bytes);
    }

    pub(crate) fn publish_process(_payload: Vec<u8>) {}

    pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
        start()
    }
}
