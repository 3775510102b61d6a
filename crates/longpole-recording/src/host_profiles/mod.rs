//! What an agent sees of the processes of a host becomes profiles: window after window, each with its own values.
//!
//! ```text
//! recorder ── observations ──► HostSink ┐
//!                                       ├─ Seen: tables of stacks, sums of this window, processes, memory
//! agent ── each window ──► HostProfiles ┘─► names of new addresses ─► ProfileBatch: CPU by service, memory by process
//! ```
//!
//! Names of addresses are kept from window to window, and so are the tables of stacks, which grow as long as the recorder runs:
//! [`HostProfiles::is_large`] says when to begin again with another recorder.

mod names;
pub mod pushes;
mod seen;
mod service;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use longpole_model::profile::{LinkScope, ProfileBatch, ProfileSeries, ProfileType, ProfileValue, ProfiledSpan, SERVICE_LABEL};
use longpole_model::sink::SinkError;
use longpole_model::stack::{Frame, Location, LocationKind, Mapping, MappingId, Stack};
use longpole_model::{ContextRecord, Id, LocationId, Loss, Observation, ObservationSink, Runtime, StackId, Text, Timestamp};
use longpole_symbols::Files;
use longpole_wire::redact::Redactor;

use self::names::LocationNames;
pub use self::names::SlowBinaries;
use self::seen::{Seen, SumKey, Window, lock};
pub use self::service::ProcessIdentity;

/// Stacks and locations of a recorder after which another one is to take over: some ten megabytes.
const LARGE_STACKS: usize = 100_000;
const LARGE_LOCATIONS: usize = 200_000;

/// A process that lives shorter has no series of its memory: each has labels of its own.
const MEMORY_AGE_NANOS: u64 = 60_000_000_000;

/// Bytes of names after which another recorder takes over.
const LARGE_NAMES_BYTES: usize = 32 << 20;

/// Most series of a window. Processes name their services themselves; beyond it they count for one.
const SERIES_MAX: usize = 4_096;
const TOO_MANY: &str = "longpole_overflow";

/// The function of kernel code without a name.
const KERNEL: &str = "[kernel]";

/// The function of code whose names are not read yet: the files of a host take time.
const NOT_NAMED: &str = "[not named yet]";

/// The function of code in no binary.
const UNMAPPED: &str = "[unmapped]";

/// Takes what a recorder of a host observes.
#[derive(Debug)]
pub struct HostSink(Arc<Mutex<Seen>>);

impl ObservationSink for HostSink {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        lock(&self.0).observe(observation);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The profiles of one window of a host.
#[derive(Debug, Default)]
pub struct HostWindow {
    /// Its profiles; the time of all values is the begin of the window.
    pub batch: ProfileBatch,
    /// What is missing.
    pub losses: Vec<Loss>,
}

/// Makes profiles of what one recorder observes.
#[derive(Debug)]
pub struct HostProfiles {
    seen: Arc<Mutex<Seen>>,
    /// Labels of every series: the host, and what the user adds.
    labels: Vec<(Text, Text)>,
    names: LocationNames,
    identities: HashMap<u32, (u64, ProcessIdentity)>,
    redactor: Redactor,
}

impl HostProfiles {
    /// With the labels that every series has. The sink is for the recorder.
    pub fn new(labels: Vec<(Text, Text)>) -> (HostProfiles, HostSink) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let sink = HostSink(Arc::clone(&seen));
        (HostProfiles { seen, labels, names: LocationNames::default(), identities: HashMap::new(), redactor: Redactor::default() }, sink)
    }

    /// Whether its tables have grown so that another recorder is to take over.
    pub fn is_large(&self) -> bool {
        let seen = lock(&self.seen);
        seen.stacks.len() >= LARGE_STACKS || seen.locations.len() >= LARGE_LOCATIONS || self.names.bytes() >= LARGE_NAMES_BYTES
    }

    /// Ends the window. `files` opens binaries; `slow` are those whose names took too long, also for an earlier recorder; `identity` reads what a
    /// process says of itself, once for each program that it executes.
    pub fn window(
        &mut self,
        interval: &Range<Timestamp>,
        files: Arc<dyn Files + Send + Sync>,
        slow: &mut SlowBinaries,
        identity: &dyn Fn(u32) -> ProcessIdentity,
    ) -> HostWindow {
        let window = lock(&self.seen).take_window();
        let mut losses = self.names.name(&self.seen, &window, files, slow);
        losses.extend(window.losses.iter().cloned());
        let lives =
            |pid: u32| window.processes.get(&pid).is_some_and(|process| window.now.saturating_sub(process.since) >= MEMORY_AGE_NANOS);
        let in_memory: Vec<(u32, u64)> = window.memory.iter().map(|(pid, bytes)| (*pid, *bytes)).filter(|(pid, _)| lives(*pid)).collect();
        let pids: BTreeSet<u32> = window.sums.keys().map(|key| key.pid).chain(in_memory.iter().map(|(pid, _)| *pid)).collect();
        // A process can take its time to say who it is; the recorder goes on meanwhile.
        let identities: HashMap<u32, ProcessIdentity> = pids.into_iter().map(|pid| (pid, self.identity(&window, pid, identity))).collect();
        let seen = lock(&self.seen);
        self.identities.retain(|pid, (since, _)| seen.runs(*pid, *since) || window.processes.contains_key(pid));
        let (batch, places) = (ProfileBatch::default(), BatchPlaces::default());
        let mut making = Making { labels: &self.labels, names: &self.names, seen: &seen, batch, places };
        for (key, nanos) in &window.sums {
            making.cpu(key, *nanos, &identities[&key.pid], interval.start);
        }
        for (pid, memory) in in_memory {
            making.memory(pid, memory, &identities[&pid], interval.start);
        }
        HostWindow { batch: making.batch, losses }
    }

    /// The identity of a process: read once for each program that it executes.
    fn identity(&mut self, window: &Window, pid: u32, read: &dyn Fn(u32) -> ProcessIdentity) -> ProcessIdentity {
        let process = window.processes.get(&pid);
        let since = process.map_or(0, |process| process.since);
        match self.identities.get(&pid) {
            Some((of, identity)) if *of == since => identity.clone(),
            _ => {
                let seen = process.map(|process| (process.program.clone(), process.service.clone()));
                let identity = read(pid).or_of(seen, &mut self.redactor);
                self.identities.insert(pid, (since, identity.clone()));
                identity
            }
        }
    }
}

/// Places in a batch of what the recorder numbers.
#[derive(Debug, Default)]
struct BatchPlaces {
    series: HashMap<ProfileSeries, u32>,
    stacks: HashMap<StackId, StackId>,
    locations: HashMap<LocationId, LocationId>,
    mappings: HashMap<MappingId, MappingId>,
    /// Stacks of one function that is no code, by its name.
    made_up: HashMap<Text, StackId>,
}

/// A batch under construction.
struct Making<'a> {
    labels: &'a [(Text, Text)],
    names: &'a LocationNames,
    seen: &'a Seen,
    batch: ProfileBatch,
    places: BatchPlaces,
}

impl Making<'_> {
    fn cpu(&mut self, key: &SumKey, nanos: u64, identity: &ProcessIdentity, time: Timestamp) {
        let profile_type = ProfileType::of_parts(["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"]);
        let series = self.series(profile_type, identity, None);
        let Some(stack) = self.stack(key.stack) else { return };
        let span = match key.context {
            ContextRecord::Span { trace_id, span_id } => {
                Some(ProfiledSpan { trace_id: Some(trace_id), span_id: Some(span_id), scope: LinkScope::Span })
            }
            ContextRecord::Absent | ContextRecord::NoSpan | ContextRecord::Torn => None,
        };
        self.batch.values.push(ProfileValue { series, time, stack, value: i64::try_from(nanos).unwrap_or(i64::MAX), span });
    }

    fn memory(&mut self, pid: u32, bytes: u64, identity: &ProcessIdentity, time: Timestamp) {
        let profile_type = ProfileType::of_parts(["process_memory", "resident", "bytes", "resident", "bytes"]);
        let series = self.series(profile_type, identity, Some(pid));
        let stack = self.made_up(identity.program.clone());
        self.batch.values.push(ProfileValue { series, time, stack, value: i64::try_from(bytes).unwrap_or(i64::MAX), span: None });
    }

    /// The number of a series. Where there are too many, a process without one counts for all such processes.
    fn series(&mut self, profile_type: ProfileType, identity: &ProcessIdentity, pid: Option<u32>) -> u32 {
        let mut labels = self.labels.to_vec();
        labels.push((SERVICE_LABEL.into(), identity.service.clone()));
        labels.extend(identity.container.iter().map(|container| ("container".into(), container.clone())));
        labels.extend(pid.map(|pid| ("pid".into(), Text::from(pid.to_string().as_str()))));
        labels.sort();
        let mut series = ProfileSeries { profile_type, labels };
        if self.batch.series.len() >= SERIES_MAX && !self.places.series.contains_key(&series) {
            series.labels = self.labels.to_vec();
            series.labels.push((SERVICE_LABEL.into(), TOO_MANY.into()));
            series.labels.sort();
        }
        let next = u32::try_from(self.batch.series.len()).unwrap_or(u32::MAX);
        let place = *self.places.series.entry(series.clone()).or_insert(next);
        if place == next {
            self.batch.series.push(series);
        }
        place
    }

    /// The number of a stack in the batch; `None` for a stack that the recorder did not define.
    fn stack(&mut self, id: StackId) -> Option<StackId> {
        if let Some(known) = self.places.stacks.get(&id) {
            return Some(*known);
        }
        let locations = self.seen.stacks.get(id.0 as usize)?;
        let locations = locations.iter().filter_map(|id| self.location(*id)).collect();
        let number = StackId::at(self.batch.stacks.len());
        self.batch.stacks.push(Stack { id: number, locations });
        self.places.stacks.insert(id, number);
        Some(number)
    }

    fn location(&mut self, id: LocationId) -> Option<LocationId> {
        if let Some(known) = self.places.locations.get(&id) {
            return Some(*known);
        }
        let location = self.seen.locations.get(id.0 as usize)?;
        let frames = self.names.of(id);
        let number = LocationId::at(self.batch.locations.len());
        let (kind, frames) = match &location.kind {
            // An address says nothing to a reader, and each would be a function of its own.
            LocationKind::Unmapped { address } => {
                let name = if is_of_kernel(address.0) { KERNEL } else { UNMAPPED };
                (LocationKind::Unmapped { address: *address }, vec![function(name.into())])
            }
            LocationKind::Code { mapping, address } => {
                let mapping = self.mapping(*mapping);
                (
                    LocationKind::Code { mapping, address: *address },
                    frames.map_or_else(|| vec![function(NOT_NAMED.into())], <[Frame]>::to_vec),
                )
            }
            LocationKind::Cut { reason } => (location.kind.clone(), vec![function(format!("[{reason}]").as_str().into())]),
            other => (other.clone(), frames.map_or_else(|| location.frames.clone(), <[Frame]>::to_vec)),
        };
        self.batch.locations.push(Location { id: number, kind, frames });
        self.places.locations.insert(id, number);
        Some(number)
    }

    fn mapping(&mut self, id: MappingId) -> MappingId {
        if let Some(known) = self.places.mappings.get(&id) {
            return *known;
        }
        let number = MappingId::at(self.batch.mappings.len());
        let (path, build_id) =
            self.seen.mappings.get(id.0 as usize).map_or_else(Default::default, |it| (it.path.clone(), it.build_id.clone()));
        self.batch.mappings.push(Mapping { id: number, path, build_id });
        self.places.mappings.insert(id, number);
        number
    }

    /// A stack of one function that is no code.
    fn made_up(&mut self, name: Text) -> StackId {
        if let Some(known) = self.places.made_up.get(&name) {
            return *known;
        }
        let location = LocationId::at(self.batch.locations.len());
        let kind = LocationKind::Named { runtime: Runtime::Other, address: None };
        self.batch.locations.push(Location { id: location, kind, frames: vec![function(name.clone())] });
        let stack = StackId::at(self.batch.stacks.len());
        self.batch.stacks.push(Stack { id: stack, locations: vec![location] });
        self.places.made_up.insert(name, stack);
        stack
    }
}

fn function(name: Text) -> Frame {
    Frame { function: name, file: Text::new(), line: 0, reason: None }
}

/// The upper half of the addresses is the kernel's, on x86-64 and on AArch64.
fn is_of_kernel(address: u64) -> bool {
    address >> 63 == 1
}

#[cfg(test)]
mod tests;
