//! Adds the functions of JavaScript that an unmodified Node runs to the stacks of its samples.
//!
//! ```text
//! native, leaf first                       frame                   shown
//! sha512_block_data_order                                          sha512_block_data_order
//! PBKDF2, …                                                        PBKDF2, …
//! Builtins_CallApiCallback                 marker                  Builtins_CallApiCallback
//! Builtins_InterpreterEntryTrampoline      function, context  ──►  hashPassword   password.js:3
//! compiled code of no file                 function, context  ──►  run            password.js:9
//! Builtins_JSEntry                         marker                  Builtins_JSEntry
//! ```
//!
//! A frame of JavaScript has its function on the stack, which is copied with the sample; names are read some milliseconds later, from the memory
//! of the process. Node needs no option and is never stopped. Functions that are new take at most a sixteenth of a CPU.

use std::sync::Arc;

use longpole_model::fast_hash::FastMap;
use longpole_model::stack::Runtime;
use longpole_model::{Loss, LossKind, MappingId};
use longpole_symbols::javascript::{FrameFunction, Functions, HeapLayout, LookUp, Missing, ScriptFunction};
use longpole_symbols::memory::CLOSED_BY;
use longpole_symbols::unwind::{Code, Frame, Place};

use crate::cpu_budget::CpuBudget;
use crate::execs::Execs;
use crate::frames::python::NativeStack;
use crate::frames::stacks::{FrameLocation, Name, Stacks};
use crate::sys::clock::{monotonic_nanos, thread_cpu_nanos};
use crate::sys::remote_memory::ProcessMemory;

/// Which part of a CPU reading new functions may take.
const READING_PART: i64 = 16;

/// CPU time that it may take in a burst: a program that starts has hundreds of functions to read.
const READING_NANOS_AT_ONCE: i64 = 40_000_000;

/// Most functions of a sample: deeper stacks are mostly one function that calls itself, and each function counts once.
const FUNCTIONS_OF_SAMPLE_MAX: usize = 256;

/// Most names to remember by function, and most bytes of them: a program can give each of its functions a name of 768 bytes and a file of 3,072.
const NAMES_AT_HAND_MAX: usize = 1 << 16;
const NAMES_AT_HAND_BYTES_MAX: usize = 32 << 20;

/// For how long code that a function ran stands for it, if the collector has moved the function since.
const CODE_KEPT_NANOS: u64 = 1_000_000_000;

/// Most pieces of code to remember by process.
const CODES_MAX: usize = 1 << 16;

/// Most programs of a process that have begun before their exec had its turn.
const PROGRAMS_MAX: usize = 8;

/// A program with V8, from one exec to the next.
struct Program {
    since: u64,
    layout: Arc<HeapLayout>,
    functions: Functions,
    /// The functions that ran lately, with the time, by their code: the address that the frame returns to, and its bytecode if interpreted.
    codes: FastMap<(u64, u64), (FrameLocation, u64)>,
}

impl Program {
    fn new(since: u64, layout: Arc<HeapLayout>) -> Program {
        Program { since, layout, functions: Functions::default(), codes: FastMap::default() }
    }
}

/// The frames of a stack that run functions of JavaScript, by their stack pointers, ascending.
#[derive(Debug, Default)]
pub(crate) struct Named {
    frames: Vec<(u64, FrameLocation)>,
    /// Whether the process has V8.
    pub(crate) has_layout: bool,
}

impl Named {
    /// The function that this frame runs.
    pub(crate) fn of(&self, frame: &Frame) -> Option<FrameLocation> {
        if self.frames.is_empty() {
            return None;
        }
        let at = self.frames.binary_search_by_key(&frame.sp, |(sp, _)| *sp).ok()?;
        Some(self.frames[at].1)
    }
}

/// The programs with V8 of a recording.
pub(crate) struct JavaScripts {
    /// By pid, in the order of their beginnings.
    programs: FastMap<u32, Vec<Program>>,
    /// Mappings with V8's own code.
    binaries: FastMap<u32, ()>,
    names: NamesAtHand,
    budget: CpuBudget,
    /// Samples with unknown functions, by reason, not yet reported.
    not_seen: FastMap<Missing, u64>,
    // Kept for their memory.
    named: Named,
    pointers: Vec<u64>,
    of_frames: Vec<(usize, FrameFunction)>,
}

impl JavaScripts {
    pub(crate) fn new() -> JavaScripts {
        JavaScripts {
            programs: FastMap::default(),
            binaries: FastMap::default(),
            names: NamesAtHand::default(),
            budget: CpuBudget::new(READING_PART, READING_NANOS_AT_ONCE),
            not_seen: FastMap::default(),
            named: Named::default(),
            pointers: Vec::new(),
            of_frames: Vec::new(),
        }
    }

    /// The code of a mapping was read.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, code: &Code, execs: &Execs) {
        let Code::Mapped { mapping: MappingId(mapping), binary: Some(binary) } = code else { return };
        let Some(layout) = binary.javascript() else { return };
        self.binaries.insert(*mapping, ());
        let programs = self.programs.entry(pid).or_default();
        // Node has its code in several mappings.
        if programs.last().is_none_or(|last| last.since < execs.last(pid)) && programs.len() < PROGRAMS_MAX {
            programs.push(Program::new(time, Arc::clone(layout)));
        }
    }

    /// A process was forked: it has a copy of its parent's memory.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32, time: u64) {
        if let Some(program) = self.program(parent, time) {
            let layout = Arc::clone(&program.layout);
            self.programs.entry(pid).or_default().insert(0, Program::new(time, layout));
        }
    }

    /// A process executes a program, or has ended.
    pub(crate) fn over(&mut self, pid: u32, time: u64) {
        if let Some(programs) = self.programs.get_mut(&pid) {
            programs.retain(|program| program.since > time);
            if programs.is_empty() {
                self.programs.remove(&pid);
            }
        }
    }

    /// Whether a process has V8.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.programs.contains_key(&pid)
    }

    fn program(&mut self, pid: u32, time: u64) -> Option<&mut Program> {
        self.programs.get_mut(&pid)?.iter_mut().rfind(|program| program.since <= time)
    }

    /// Names the frames of a native stack that run functions of JavaScript. With `has_map` compiled code has names elsewhere.
    pub(crate) fn name(&mut self, (pid, time): (u32, u64), native: &NativeStack<'_>, has_map: bool, stacks: &mut Stacks) -> &Named {
        self.named.frames.clear();
        self.named.has_layout = false;
        if self.programs.is_empty() {
            return &self.named;
        }
        let binaries = &self.binaries;
        let Some(program) = self.programs.get_mut(&pid).and_then(|all| all.iter_mut().rfind(|program| program.since <= time)) else {
            return &self.named;
        };
        self.named.has_layout = true;
        let may_run = |frame: &Frame| match frame.place {
            Place::Code { mapping, .. } => binaries.contains_key(&mapping.0),
            Place::Anonymous => !has_map,
            Place::Unknown | Place::Made(_) => false,
        };
        // A frame with a frame pointer of its own ends two words above it; all others show that of a caller.
        let owns_frame = |frame: &Frame, caller: &Frame| frame.sp <= frame.fp && frame.fp.checked_add(16) == Some(caller.sp);
        self.of_frames.clear();
        for (at, pair) in native.frames.windows(2).enumerate() {
            let [frame, caller] = pair else { continue };
            if may_run(frame)
                && owns_frame(frame, caller)
                && let Some(function) = program.layout.function_of_frame(frame.fp, |at| native.word(at))
            {
                self.of_frames.push((at, function));
            }
        }
        if self.of_frames.is_empty() {
            return &self.named;
        }
        self.pointers.clear();
        self.pointers.extend(self.of_frames.iter().map(|(_, function)| function.pointer));
        self.pointers.sort_unstable();
        self.pointers.dedup();
        self.pointers.truncate(FUNCTIONS_OF_SAMPLE_MAX);
        let budget = &mut self.budget;
        let within_budget = |read: &mut dyn FnMut() -> LookUp| {
            if !budget.has_some(monotonic_nanos()) {
                return LookUp::Missing(Missing::Busy);
            }
            let before = thread_cpu_nanos();
            let found = read();
            budget.spend(thread_cpu_nanos().saturating_sub(before));
            found
        };
        let memory = ProcessMemory { pid };
        let found = program.functions.look_up(&memory, &program.layout, &self.pointers, within_budget);
        let mut missed = None;
        if program.codes.len() >= CODES_MAX {
            program.codes.clear();
        }
        for (at, FrameFunction { pointer, bytecode }) in &self.of_frames {
            let frame = &native.frames[*at];
            let code = (frame.address.for_lookup().0, *bytecode);
            let found = self.pointers.binary_search(pointer).ok().and_then(|at| found.get(at));
            match found {
                Some(LookUp::Function(function)) => {
                    let location = self.names.location(function, stacks);
                    program.codes.insert(code, (location, time));
                    self.named.frames.push((frame.sp, location));
                }
                Some(LookUp::Builtin) => {}
                Some(LookUp::Missing(reason)) => match program.codes.get(&code) {
                    Some((location, seen)) if time.saturating_sub(*seen) <= CODE_KEPT_NANOS => {
                        self.named.frames.push((frame.sp, *location));
                    }
                    _ => missed = Some(*reason),
                },
                None => {}
            }
        }
        if let Some(reason) = missed {
            *self.not_seen.entry(reason).or_insert(0) += 1;
        }
        // The frames came leaf first, so their stack pointers ascend, unless the program has changed its stack.
        if !self.named.frames.is_sorted_by_key(|(sp, _)| *sp) {
            self.named.frames.sort_unstable_by_key(|(sp, _)| *sp);
        }
        &self.named
    }

    /// What is missing and not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let mut missed: Vec<(Missing, u64)> = self.not_seen.drain().collect();
        missed.sort_unstable();
        let loss = |(reason, count)| {
            let why = match reason {
                Missing::Moved => "node's collector had moved them before longpole read their names".to_owned(),
                Missing::Gone => "the process had ended before longpole read their names".to_owned(),
                Missing::Closed => format!("longpole may not read node's memory: {CLOSED_BY}"),
                Missing::Busy => "there were more new ones than longpole reads in a sixteenth of a CPU".to_owned(),
            };
            Loss::new(LossKind::FunctionsNotSeen, count, format!("functions of JavaScript; {why}"))
        };
        missed.into_iter().map(loss).collect()
    }
}

/// The locations of functions that ran lately.
#[derive(Default)]
struct NamesAtHand {
    by_function: FastMap<Arc<ScriptFunction>, FrameLocation>,
    bytes: usize,
}

impl NamesAtHand {
    fn location(&mut self, function: &Arc<ScriptFunction>, stacks: &mut Stacks) -> FrameLocation {
        if let Some(location) = self.by_function.get(function) {
            return *location;
        }
        let ScriptFunction { name, file, line } = function.as_ref().clone();
        let bytes = name.len() + file.len();
        let shown = if name.is_empty() { "(anonymous)".to_owned() } else { name };
        let location = stacks.name(Name { runtime: Runtime::Node, function: shown, file, line });
        if self.by_function.len() >= NAMES_AT_HAND_MAX || self.bytes + bytes > NAMES_AT_HAND_BYTES_MAX {
            self.by_function.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.by_function.insert(Arc::clone(function), location);
        location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_long_names_are_forgotten_in_time() {
        let (mut names, mut stacks) = (NamesAtHand::default(), Stacks::default());
        let file = "x".repeat(4000);
        for line in 0..20_000 {
            names.location(&Arc::new(ScriptFunction { name: String::new(), file: file.clone(), line }), &mut stacks);
            assert!(names.by_function.len() * file.len() <= NAMES_AT_HAND_BYTES_MAX);
        }
        assert_eq!(names.bytes, names.by_function.len() * file.len());
    }
}
