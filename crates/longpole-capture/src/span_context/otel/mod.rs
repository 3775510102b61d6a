//! What programs with any OpenTelemetry SDK publish: the resource of a process (OTEP 4719) and the current span of a thread (OTEP 4947).
//! `docs/formats/span-context.md` lists the revisions, and what a sampler can reach of them.
//!
//! ```text
//! /proc/PID/maps ── OTEL_CTX ──► header ──► ProcessContext ──► resource of the process
//!                                                    └ threadlocal.schema_version: its threads publish
//! binaries ── otel_thread_ctx_v1 in .dynsym ──► offset from the thread pointer ──► pointer ──► record, in the copied stack
//! ```
//!
//! The kernel does not report when a program publishes, so its mappings are listed at growing intervals.

pub mod process;
pub mod thread;

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use longpole_model::{Loss, LossKind, Monotonic, Observation};
use longpole_symbols::unwind::{Code, ThreadVariable};

use self::process::{HeaderReading, Unreadable};
use crate::perf::record::{Body, MapRecord, Record};
use crate::sink::ObservationWriter;
use crate::sys::remote_memory::read_present;
use longpole_model::fast_hash::FastMap;

/// The age of a program at which its mappings are first listed: most programs of a build have ended by then.
const FIRST_LOOK_NANOS: u64 = 50_000_000;

/// The same for a program with the thread variable, which will publish.
const FIRST_LOOK_SOON_NANOS: u64 = 1_000_000;

/// Longest pause between two listings; until then each pause is as long as the program is old.
const PAUSE_MAX_NANOS: u64 = 10_000_000_000;

/// Most listings at a time: 100 µs each, if there are many mappings.
const LOOKS_AT_ONCE: usize = 16;

/// A program in a process.
#[derive(Debug, Default)]
struct ContextProgram {
    /// Its exec, or the fork of its process.
    since: u64,
    due: u64,
    /// The address of the header of its process context, once found.
    header: Option<u64>,
    /// When the known context was published; 0 = none is known.
    published_at: u64,
    /// Whether its threads publish in a known way.
    has_threads: bool,
    /// Where its threads publish.
    variable: Option<Variable>,
    /// Whether it was reported as unreadable.
    is_told: bool,
}

/// Where a thread has `otel_thread_ctx_v1`.
#[derive(Debug, Clone, Copy)]
enum Variable {
    /// This far from the thread pointer.
    Offset(i64),
    /// As far from it as the word at this address says.
    Word(u64),
}

/// All programs of a recording.
#[derive(Debug, Default)]
pub(crate) struct Published {
    programs: FastMap<u32, ContextProgram>,
    dues: BTreeSet<(u64, u32)>,
    unreadable: Vec<Unreadable>,
    dropped: u64,
}

impl Published {
    /// A record of the tracker has arrived, possibly out of order.
    pub(crate) fn arrived(&mut self, record: &Record<'_>) {
        match record.body {
            Body::Comm { exec: true, .. } => self.begins(record.pid, record.time, None),
            // It has a copy of its parent's memory, except the mapping of the process context.
            Body::Fork { pid, parent_pid, .. } if pid != parent_pid => {
                let variable = self.programs.get(&parent_pid).and_then(|parent| parent.variable);
                self.begins(pid, record.time, variable);
            }
            Body::Exit { pid, tid } if pid == tid => self.forget(pid),
            _ => {}
        }
    }

    /// A process was running when the recording began.
    pub(crate) fn found(&mut self, pid: u32, now: u64) {
        self.begins(pid, now, None);
        self.expect(pid, now);
    }

    fn begins(&mut self, pid: u32, time: u64, variable: Option<Variable>) {
        if self.programs.get(&pid).is_some_and(|known| known.since >= time) {
            return;
        }
        self.forget(pid);
        self.programs.insert(pid, ContextProgram { since: time, variable, ..ContextProgram::default() });
        self.expect(pid, time + if variable.is_some() { FIRST_LOOK_SOON_NANOS } else { FIRST_LOOK_NANOS });
    }

    fn forget(&mut self, pid: u32) {
        if let Some(known) = self.programs.remove(&pid) {
            self.dues.remove(&(known.due, pid));
        }
    }

    fn expect(&mut self, pid: u32, due: u64) {
        if let Some(program) = self.programs.get_mut(&pid) {
            self.dues.remove(&(program.due, pid));
            program.due = due;
            self.dues.insert((due, pid));
        }
    }

    /// The code of a mapping was read.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: &Code) {
        let Code::Mapped { binary: Some(binary), .. } = code else { return };
        let Some(found) = binary.thread_context() else { return };
        let Some(program) = self.programs.get_mut(&pid).filter(|program| program.since <= time && program.variable.is_none()) else {
            return;
        };
        let is_program = std::fs::metadata(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ino() == map.inode);
        program.variable = match found {
            ThreadVariable { in_program, .. } if is_program => Some(Variable::Offset(*in_program)),
            ThreadVariable { word: Some(word), .. } => {
                binary.address_in_process(*word, map.start, map.file_offset).map(|address| Variable::Word(address.0))
            }
            _ => {
                self.unreadable.push(Unreadable::Storage);
                None
            }
        };
        if program.variable.is_some() && !program.has_threads {
            self.expect(pid, time + FIRST_LOOK_SOON_NANOS);
        }
    }

    /// How far from the thread pointer the threads of this process have the variable; `None` unless they publish in a known way.
    pub(crate) fn thread_offset(&self, pid: u32, time: u64) -> Option<i64> {
        let program = self.programs.get(&pid).filter(|program| program.has_threads && program.since <= time)?;
        match program.variable? {
            Variable::Offset(offset) => Some(offset),
            Variable::Word(_) => None,
        }
    }

    /// When the next listing is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// Makes the listings that are due.
    pub(crate) fn look(&mut self, now: u64, out: &mut ObservationWriter) {
        for _ in 0..LOOKS_AT_ONCE {
            let Some((due, pid)) = self.dues.first().copied().filter(|(due, _)| *due <= now) else { return };
            self.dues.remove(&(due, pid));
            let Some(program) = self.programs.get_mut(&pid) else { continue };
            let age = now.saturating_sub(program.since);
            let pause = age.clamp(FIRST_LOOK_SOON_NANOS, PAUSE_MAX_NANOS);
            program.due = now + pause;
            self.dues.insert((program.due, pid));
            let outcome = program.look(pid, |attributes| {
                out.give(Observation::ProcessResource { pid, time: Monotonic(now), attributes });
            });
            match outcome {
                Ok(dropped) => self.dropped += dropped,
                // It will not change, so it is reported once.
                Err(reason) if !std::mem::replace(&mut program.is_told, true) => self.unreadable.push(reason),
                Err(_) => {}
            }
        }
    }

    /// What is missing and not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut tell = |count, detail: String| {
            if count > 0 {
                Loss::new(LossKind::ContextNotSeen, count, detail).merge_into(&mut losses);
            }
        };
        tell(std::mem::take(&mut self.dropped), "attributes of process contexts (OTEP 4719) that are neither text nor number".to_owned());
        for reason in self.unreadable.drain(..) {
            tell(1, format!("process context (OTEP 4719): {reason}"));
        }
        losses
    }
}

impl ContextProgram {
    /// Reads the context; passes on the attributes of the process if they are new, and returns how many could not be read.
    fn look(&mut self, pid: u32, mut resource: impl FnMut(longpole_model::Attributes)) -> Result<u64, Unreadable> {
        if self.header.is_none() {
            self.header = process::find(pid);
        }
        let Some(header) = self.header else { return Ok(0) };
        let mut dropped = 0;
        match process::read(header, self.published_at, |address, into| {
            read_present(pid, address, into).is_ok_and(|read| read == into.len())
        }) {
            Ok(HeaderReading::Same) => {}
            Ok(HeaderReading::Changing) => return Ok(0),
            Ok(HeaderReading::Gone) => {
                self.header = None;
                return Ok(0);
            }
            Ok(HeaderReading::New { published_at, context }) => {
                self.published_at = published_at;
                self.has_threads = context.has_threads();
                dropped = context.dropped;
                resource(context.resource);
            }
            Err(reason) => return Err(reason),
        }
        if let Some(Variable::Word(address)) = self.variable {
            let mut word = [0; 8];
            if read_present(pid, address, &mut word).is_ok_and(|read| read == word.len()) {
                // If this is no small number, the variable is elsewhere, and nothing leads there from the stack.
                self.variable = thread::offset_of_word(u64::from_ne_bytes(word)).map(Variable::Offset);
                return if self.variable.is_some() { Ok(dropped) } else { Err(Unreadable::Storage) };
            }
        }
        Ok(dropped)
    }
}
