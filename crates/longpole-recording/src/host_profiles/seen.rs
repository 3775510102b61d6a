//! What a recorder of a host has told so far.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use longpole_model::stack::{Frame, Location, LocationKind, Mapping};
use longpole_model::{ContextRecord, LocationId, Loss, Observation, StackId, Text};

use super::service::{clipped, program_of};

/// The process that starts all threads of the kernel; inside of a container, any.
const KTHREADD: u32 = 2;

/// Most losses of a window.
const LOSSES_MAX: usize = 256;

/// What samples have in common that are one value of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SumKey {
    pub(super) pid: u32,
    pub(super) stack: StackId,
    pub(super) context: ContextRecord,
}

/// A process. A fork copies it, and a process can fork any number of them.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenProcess {
    /// Its start, or its last exec, by the monotonic clock.
    pub(super) since: u64,
    /// What it executes; empty if nobody has seen that.
    pub(super) program: Text,
    /// `service.name`, if the process says it by its process context.
    pub(super) service: Option<Text>,
    /// Whether it may be a thread of the kernel.
    pub(super) is_kernels: bool,
    pub(super) has_ended: bool,
}

/// Everything so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    pub(super) stacks: Vec<Box<[LocationId]>>,
    sums: HashMap<SumKey, u64>,
    /// Processes with a sample in this window.
    sampled: HashSet<u32>,
    processes: HashMap<u32, SeenProcess>,
    memory: HashMap<u32, u64>,
    losses: Vec<Loss>,
    now: u64,
}

/// What came in one window.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) sums: HashMap<SumKey, u64>,
    /// Those with samples, or with memory in use.
    pub(super) processes: HashMap<u32, SeenProcess>,
    pub(super) memory: HashMap<u32, u64>,
    pub(super) losses: Vec<Loss>,
    /// The last reading of the monotonic clock.
    pub(super) now: u64,
}

/// Everything so far, for reading or writing.
pub(super) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    pub(super) fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Clock(anchor) => self.now = anchor.monotonic.0,
            Observation::Mapping(mapping) => self.mappings.push(mapping),
            Observation::Location { id, kind } => self.locate(id, Location { id, kind, frames: Vec::new() }),
            Observation::Named { id, runtime, address, function, file, line } => {
                let frame = Frame { function: clipped(&function), file: clipped(&file), line, reason: None };
                self.locate(id, Location { id, kind: LocationKind::Named { runtime, address }, frames: vec![frame] });
            }
            // From now on other code lies there: earlier windows are gone.
            Observation::Replaced { id, by, .. } => {
                if let Some(other) = self.locations.get(by.0 as usize).cloned() {
                    self.locate(id, Location { id, ..other });
                }
            }
            Observation::Stack { id, locations } if id.0 as usize == self.stacks.len() => self.stacks.push(locations.into()),
            Observation::Sample(sample) => {
                let context = match sample.context {
                    span @ ContextRecord::Span { .. } => span,
                    ContextRecord::Absent | ContextRecord::NoSpan | ContextRecord::Torn => ContextRecord::Absent,
                };
                self.sampled.insert(sample.pid);
                let sum = self.sums.entry(SumKey { pid: sample.pid, stack: sample.stack, context }).or_default();
                *sum = sum.saturating_add(sample.weight_nanos);
            }
            Observation::ProcessStarted { pid, parent_pid, time } => {
                // Until its exec it runs the program of its parent.
                let parent = parent_pid.and_then(|parent| self.processes.get(&parent)).cloned().unwrap_or_default();
                let is_kernels = pid == KTHREADD || parent_pid == Some(KTHREADD);
                self.processes.insert(pid, SeenProcess { since: time.0, has_ended: false, is_kernels, ..parent });
            }
            Observation::ProcessExec { pid, time, name, executable, arguments } => {
                let since = self.processes.get(&pid).map_or(time.0, |process| process.since.max(time.0));
                let is_kernels = self.processes.get(&pid).is_some_and(|process| process.is_kernels);
                let program = program_of(&name, &executable, &arguments, is_kernels);
                self.processes.insert(pid, SeenProcess { since, program, is_kernels, ..SeenProcess::default() });
            }
            Observation::ProcessResource { pid, attributes, .. } => {
                if let (Some(process), Some(service)) = (self.processes.get_mut(&pid), attributes.get_str("service.name")) {
                    process.service = Some(clipped(service));
                }
            }
            Observation::ProcessExited { pid, .. } => {
                self.memory.remove(&pid);
                if self.sampled.contains(&pid) {
                    self.processes.entry(pid).and_modify(|process| process.has_ended = true);
                } else {
                    self.processes.remove(&pid);
                }
            }
            Observation::ProcessUsage(usage) => {
                if let Some(memory) = usage.memory {
                    self.memory.insert(usage.pid, memory.resident_bytes);
                }
            }
            Observation::Loss(loss) if self.losses.len() < LOSSES_MAX => loss.merge_into(&mut self.losses),
            _ => {}
        }
    }

    fn locate(&mut self, id: LocationId, location: Location) {
        let place = id.0 as usize;
        if place == self.locations.len() {
            self.locations.push(location);
        } else if let Some(known) = self.locations.get_mut(place) {
            *known = location;
        }
    }

    /// Whether a process still runs what it has executed at this time.
    pub(super) fn runs(&self, pid: u32, since: u64) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.since == since)
    }

    /// Takes what came since the last window.
    pub(super) fn take_window(&mut self) -> Window {
        let sampled = std::mem::take(&mut self.sampled);
        let wanted = self.processes.iter().filter(|(pid, _)| sampled.contains(pid) || self.memory.contains_key(pid));
        let window = Window {
            processes: wanted.map(|(pid, process)| (*pid, process.clone())).collect(),
            sums: std::mem::take(&mut self.sums),
            memory: self.memory.clone(),
            losses: std::mem::take(&mut self.losses),
            now: self.now,
        };
        self.processes.retain(|_, process| !process.has_ended);
        window
    }
}
