//! Threads and frames.

use super::copies::{Copies, int, word};
use super::layout::{Current, DEBUG_OFFSETS_BYTES, Entry, Instruction, Layout, Version};
use super::read_error::ReadError;
use crate::memory::Memory;

/// Most interpreters of a process: the main one, and those of servers that keep one for each application.
const INTERPRETERS_MAX: usize = 64;

/// Most threads that are read.
const THREADS_MAX: usize = 1024;

/// Most frames of a thread: CPython itself stops at a thousand by default.
const FRAMES_MAX: usize = 1024;

/// Most frames, shims and threads of one look: what refers to itself must not keep us busy.
const STEPS_MAX: u32 = 1 << 16;

/// A thread that ran in the same calls for two looks is only glanced at: whether its innermost frames are still the same ones.
const LOOKS_UNTIL_STILL: u32 = 2;

/// Frames that a glance sees.
const GLANCED_AT: usize = 4;

/// How far below a frame its caller's may lie, if they are on the same stack of frames.
const FRAME_BYTES_MAX: u64 = 1024;

/// One glance in eight is a whole look all the same: a thread may have come back to where it was by another way.
const WHOLE_LOOK_EVERY: u64 = 8;

/// A frame, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRead {
    /// Where it lies.
    pub address: u64,
    /// Its code object.
    pub code: u64,
    /// Bytes from the first instruction of its code to the one it is at; below 0 before the first.
    pub instruction: i64,
    /// Whether the evaluating function was called for it. Frames up to and with the next one that says so ran in the same call.
    pub begins_call: bool,
}

/// A thread, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadRead {
    /// Its `PyThreadState`.
    pub state: u64,
    /// `pthread_self()`.
    pub pthread: u64,
    /// Its id, as the process knows it, from 3.11.
    pub native: Option<u64>,
    /// Its frames, leaf first.
    pub frames: Vec<FrameRead>,
    /// Whether nothing seems to have changed since the last look, the instruction that the first one is at included; then `frames` are those
    /// of that look.
    pub is_still: bool,
    /// How many of the last frames were there at the last look: their code objects have been kept alive by them.
    pub kept: usize,
    /// Whether the last frame is the root.
    pub is_whole: bool,
}

struct KnownThread {
    /// As found at the last look.
    read: ThreadRead,
    current: u64,
    cframe: u64,
    looks_still: u32,
}

impl KnownThread {
    /// How many frames a glance sees: of one that runs, functions that others call too are not enough to know it by.
    fn glanced_at(&self) -> usize {
        if self.read.is_still { 1 } else { GLANCED_AT }
    }
}

/// Reads one interpreter again and again.
pub struct Interpreter {
    layout: Layout,
    runtime: u64,
    interpreters: Vec<u64>,
    threads: Vec<KnownThread>,
    looks: u64,
    /// Steps taken in this look.
    steps: u32,
    /// Threads whose frames did not hold together, in all looks.
    torn: u64,
    pub(super) copies: Copies,
}

impl std::fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreter").field("version", &self.layout.version).field("runtime", &self.runtime).finish_non_exhaustive()
    }
}

impl Interpreter {
    /// The interpreter whose `_PyRuntime` lies at this address. It may not have begun yet.
    ///
    /// # Errors
    ///
    /// [`ReadError::UnknownVersion`], and [`ReadError::UnknownLayout`] where a CPython that holds a table of its layout (3.13) holds none here;
    /// [`ReadError::Gone`] and [`ReadError::Closed`] where the memory cannot be read.
    pub fn attach(memory: &dyn Memory, runtime: u64, version: Version) -> Result<Interpreter, ReadError> {
        let mut layout = Layout::of(version).ok_or(ReadError::UnknownVersion(version))?;
        let mut copies = Copies::default();
        if layout.has_table() {
            let table = copies.get(memory, runtime, DEBUG_OFFSETS_BYTES as u64)?;
            layout = layout.told(table).ok_or(ReadError::UnknownLayout(version))?;
        }
        Ok(Interpreter { layout, runtime, interpreters: Vec::new(), threads: Vec::new(), looks: 0, steps: 0, torn: 0, copies })
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether each frame has a call of the evaluating function of its own (to 3.10).
    pub fn has_a_call_for_each_frame(&self) -> bool {
        self.layout.entry == Entry::Each
    }

    /// How often frames of a thread did not hold together.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Takes one look: all threads, in no order. A thread whose frames did not hold together is left out.
    ///
    /// # Errors
    ///
    /// [`ReadError::Gone`] and [`ReadError::Closed`] where the memory cannot be read, [`ReadError::Torn`] where the list of threads changed meanwhile.
    pub fn read(&mut self, memory: &dyn Memory, threads: &mut Vec<ThreadRead>) -> Result<(), ReadError> {
        threads.clear();
        self.looks += 1;
        self.steps = 0;
        self.copies.begin();
        self.expect();
        self.copies.fetch(memory)?;
        let mut known: Vec<Option<KnownThread>> = std::mem::take(&mut self.threads).into_iter().map(Some).collect();
        self.interpreters.clear();
        let mut interpreter = self.copies.word(memory, self.runtime.wrapping_add(self.layout.runtime_interpreters))?;
        while interpreter != 0 && self.interpreters.len() < INTERPRETERS_MAX {
            self.interpreters.push(interpreter);
            self.read_threads(memory, interpreter, &mut known, threads)?;
            interpreter = self.copies.word(memory, interpreter.wrapping_add(self.layout.interpreter_next))?;
        }
        Ok(())
    }

    /// Expects that everything is where it was at the last look. The order is that in which it is copied: first what points.
    fn expect(&mut self) {
        let layout = &self.layout;
        self.copies.expect(self.runtime.wrapping_add(layout.runtime_interpreters), 8);
        for interpreter in &self.interpreters {
            self.copies.expect(interpreter.wrapping_add(layout.interpreter_threads), 8);
            self.copies.expect(interpreter.wrapping_add(layout.interpreter_next), 8);
        }
        for thread in &self.threads {
            self.copies.expect(thread.read.state, layout.thread_bytes());
            if let Current::ByCFrame { frame, .. } = layout.current
                && thread.cframe != 0
            {
                self.copies.expect(thread.cframe.wrapping_add(frame), 8);
            }
            if thread.current != 0 && thread.read.frames.first().is_none_or(|frame| frame.address != thread.current) {
                self.copies.expect(thread.current, layout.frame_bytes());
            }
            for frame in thread.read.frames.iter().take(thread.glanced_at()) {
                self.copies.expect(frame.address, layout.frame_bytes());
            }
        }
    }

    fn read_threads(
        &mut self,
        memory: &dyn Memory,
        interpreter: u64,
        known: &mut [Option<KnownThread>],
        threads: &mut Vec<ThreadRead>,
    ) -> Result<(), ReadError> {
        let layout = self.layout;
        let mut state = self.copies.word(memory, interpreter.wrapping_add(layout.interpreter_threads))?;
        while state != 0 && self.threads.len() < THREADS_MAX {
            let object = self.copies.get(memory, state, layout.thread_bytes())?;
            let next = word(object, layout.thread_next);
            let pthread = word(object, layout.thread_pthread);
            let native = layout.thread_native.map(|offset| word(object, offset));
            let (cframe, current) = match layout.current {
                Current::Direct { frame } => (0, Ok(word(object, frame))),
                Current::ByCFrame { cframe, frame } => {
                    let cframe = word(object, cframe);
                    let current = if cframe == 0 { Ok(0) } else { self.copies.word(memory, cframe.wrapping_add(frame)) };
                    (cframe, current)
                }
            };
            // Most often the threads are those of the last look, in the same order. The same state may serve another thread later.
            let is_same = |thread: &Option<KnownThread>| {
                thread.as_ref().is_some_and(|KnownThread { read, .. }| (read.state, read.pthread, read.native) == (state, pthread, native))
            };
            let here = Some(self.threads.len()).filter(|place| known.get(*place).is_some_and(is_same));
            let before = here.or_else(|| known.iter().position(is_same)).and_then(|place| known[place].take());
            let mut thread = before.unwrap_or(KnownThread {
                read: ThreadRead { state, pthread, native, ..ThreadRead::default() },
                current: 0,
                cframe,
                looks_still: 0,
            });
            thread.cframe = cframe;
            match current.and_then(|current| self.read_thread(memory, current, &mut thread)) {
                Ok(()) => threads.push(thread.read.clone()),
                Err(ReadError::Torn) if self.steps < STEPS_MAX => {
                    self.torn += 1;
                    thread.looks_still = 0;
                }
                Err(error) => return Err(error),
            }
            self.threads.push(thread);
            state = next;
        }
        Ok(())
    }

    /// A look is over, the code of its frames included: its memory is given back if it took more than usual.
    pub fn end_look(&mut self) {
        self.copies.end();
    }

    /// The frames of a thread whose innermost one is `current`.
    fn read_thread(&mut self, memory: &dyn Memory, current: u64, thread: &mut KnownThread) -> Result<(), ReadError> {
        let may_be_still = thread.current == current && thread.looks_still >= LOOKS_UNTIL_STILL;
        if may_be_still
            && !self.looks.is_multiple_of(WHOLE_LOOK_EVERY)
            && let Some(leaf) = self.glance(memory, current, &thread.read.frames)?
        {
            thread.read.is_still = thread.read.frames.first().copied() == leaf;
            thread.read.kept = thread.read.frames.len();
            leaf.into_iter().for_each(|leaf| thread.read.frames[0] = leaf);
            return Ok(());
        }
        for frame in thread.read.frames.iter().skip(thread.glanced_at()) {
            self.copies.expect(frame.address, self.layout.frame_bytes());
        }
        self.copies.fetch(memory)?;
        let mut frames = Vec::with_capacity(thread.read.frames.len() + 4);
        let is_whole = self.read_frames(memory, current, &mut frames)?;
        let is_same = thread.current == current && are_same(&frames, &thread.read.frames);
        let is_still = is_same && frames.first() == thread.read.frames.first();
        let is_kept = |(now, before): &(&FrameRead, &FrameRead)| (now.address, now.code) == (before.address, before.code);
        thread.read.kept = frames.iter().rev().zip(thread.read.frames.iter().rev()).take_while(is_kept).count();
        // Whoever reads the code of these frames asks for it.
        let new = frames.len() - thread.read.kept;
        for frame in &frames[..new] {
            self.copies.expect(frame.code, self.layout.code_bytes());
        }
        self.copies.fetch(memory)?;
        thread.looks_still = if is_same { thread.looks_still.saturating_add(1) } else { 0 };
        thread.current = current;
        thread.read.frames = frames;
        thread.read.is_still = is_still;
        thread.read.is_whole = is_whole;
        Ok(())
    }

    /// Whether the frames are these still, as far as they were expected. Brings the innermost one as it is now, if there is one, or `None` where
    /// they are others.
    fn glance(&mut self, memory: &dyn Memory, current: u64, before: &[FrameRead]) -> Result<Option<Option<FrameRead>>, ReadError> {
        let mut seen: Vec<FrameRead> = Vec::new();
        let mut address = current;
        while address != 0 && seen.len() <= before.len() && (seen.is_empty() || self.copies.has(address, self.layout.frame_bytes())) {
            let (frame, previous) = self.frame(memory, address)?;
            seen.extend(frame.map(|frame| FrameRead { begins_call: before.get(seen.len()).is_some_and(|it| it.begins_call), ..frame }));
            address = previous;
        }
        let is_same = seen.len() <= before.len() && are_same(&seen, &before[..seen.len()]) && (address != 0 || seen.len() == before.len());
        Ok(is_same.then(|| seen.first().copied()))
    }

    /// Follows the frames to the root; whether it was reached.
    fn read_frames(&mut self, memory: &dyn Memory, mut address: u64, frames: &mut Vec<FrameRead>) -> Result<bool, ReadError> {
        let mut steps = 0;
        let mut inner = None;
        while address != 0 {
            // A shim stands between two calls, so there are never more of them than of frames.
            steps += 1;
            if frames.len() >= FRAMES_MAX || steps > 2 * FRAMES_MAX {
                return Ok(false);
            }
            if inner.is_some_and(|inner: u64| inner.checked_sub(address).is_some_and(|bytes| bytes <= FRAME_BYTES_MAX)) {
                self.copies.fetch_with_those_below(memory, address, self.layout.frame_bytes())?;
            }
            inner = Some(address);
            let (frame, previous) = self.frame(memory, address)?;
            match frame {
                Some(frame) => frames.push(frame),
                // A shim: it was made by the call that the frame inside of it began.
                None => {
                    if let Some(inner) = frames.last_mut() {
                        inner.begins_call = true;
                    }
                }
            }
            address = previous;
        }
        if let Some(root) = frames.last_mut() {
            root.begins_call = true;
        }
        Ok(true)
    }

    /// One frame, `None` for a shim, and the address of its caller's.
    fn frame(&mut self, memory: &dyn Memory, address: u64) -> Result<(Option<FrameRead>, u64), ReadError> {
        self.steps += 1;
        if !address.is_multiple_of(8) || self.steps > STEPS_MAX {
            return Err(ReadError::Torn);
        }
        let layout = self.layout;
        let object = self.copies.get(memory, address, layout.frame_bytes())?;
        parse_frame(&layout, address, object)
    }
}

/// One frame, `None` for a shim, and the address of its caller's.
pub(super) fn parse_frame(layout: &Layout, address: u64, object: &[u8]) -> Result<(Option<FrameRead>, u64), ReadError> {
    let previous = word(object, layout.frame_previous);
    let code = word(object, layout.frame_code);
    let byte = |offset: u64| usize::try_from(offset).ok().and_then(|at| object.get(at)).copied().unwrap_or(0);
    let begins_call = match layout.entry {
        Entry::Each => true,
        Entry::Flag { offset } => byte(offset) != 0,
        Entry::Shim { offset, owner } if byte(offset) == owner => return Ok((None, previous)),
        Entry::Shim { .. } => false,
    };
    let instruction = match layout.instruction {
        Instruction::Number { offset, bytes } => i64::from(int(object, offset)) * bytes,
        Instruction::Address { offset } => {
            let first = code.wrapping_add(layout.code_instructions);
            word(object, offset).wrapping_sub(first).cast_signed()
        }
    };
    if code == 0 || !code.is_multiple_of(8) {
        return Err(ReadError::Torn);
    }
    Ok((Some(FrameRead { address, code, instruction, begins_call }), previous))
}

/// Whether these are the same calls: of the innermost frame the instruction may be another.
fn are_same(frames: &[FrameRead], before: &[FrameRead]) -> bool {
    let is_same = |(place, (now, before)): (usize, (&FrameRead, &FrameRead))| {
        let instruction = if place == 0 { before.instruction } else { now.instruction };
        FrameRead { instruction, ..*now } == *before
    };
    frames.len() == before.len() && frames.iter().zip(before).enumerate().all(is_same)
}
