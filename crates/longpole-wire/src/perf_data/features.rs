//! What a file says about its recording: machine, command, build ids, clocks.

use std::collections::HashMap;

use super::attr::Event;
use super::fields::{Fields, text};

/// Numbers of the features that are read.
mod number {
    pub(super) const BUILD_ID: u64 = 2;
    pub(super) const HOSTNAME: u64 = 3;
    pub(super) const OS_RELEASE: u64 = 4;
    pub(super) const VERSION: u64 = 5;
    pub(super) const ARCH: u64 = 6;
    pub(super) const CPUS: u64 = 7;
    pub(super) const COMMAND: u64 = 11;
    pub(super) const EVENT_DESCRIPTIONS: u64 = 12;
    pub(super) const CLOCK_DATA: u64 = 29;
}

/// Bytes of a build id where the record does not say how many.
const BUILD_ID_BYTES: usize = 20;

/// Flag of a build id's record: its size stands behind it.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// A binary that samples lie in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId {
    /// Path as in its mapping, `[kernel.kallsyms]` for the kernel.
    pub path: String,
    /// Its GNU build id.
    pub build_id: Vec<u8>,
}

/// What the file says; empty where it does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    /// Name of the machine.
    pub host: String,
    /// Release of its kernel.
    pub release: String,
    /// Kind of its processors, as `uname -m` has it.
    pub machine: String,
    /// Version of perf.
    pub version: String,
    /// CPUs online.
    pub cpus: u32,
    /// perf itself with its arguments.
    pub command: Vec<String>,
    /// Build ids of the binaries that samples lie in.
    pub build_ids: Vec<BuildId>,
    /// One moment by two clocks: nanoseconds since 1970, and by the clock of the records.
    pub clock: Option<(u64, u64)>,
    /// Names of events, each with the ids its records may have.
    pub(super) event_names: Vec<(String, Vec<u64>)>,
}

impl Features {
    /// Whether a feature is of any use here.
    pub(super) fn is_read(feature: u64) -> bool {
        use number::{ARCH, BUILD_ID, CLOCK_DATA, COMMAND, CPUS, EVENT_DESCRIPTIONS, HOSTNAME, OS_RELEASE, VERSION};
        [BUILD_ID, HOSTNAME, OS_RELEASE, VERSION, ARCH, CPUS, COMMAND, EVENT_DESCRIPTIONS, CLOCK_DATA].contains(&feature)
    }

    /// Takes a feature. One that cannot be understood is passed over: samples can be shown without.
    pub(super) fn take(&mut self, feature: u64, bytes: &[u8]) {
        let mut fields = Fields(bytes);
        match feature {
            number::HOSTNAME => self.host = fields.text().unwrap_or_default(),
            number::OS_RELEASE => self.release = fields.text().unwrap_or_default(),
            number::VERSION => self.version = fields.text().unwrap_or_default(),
            number::ARCH => self.machine = fields.text().unwrap_or_default(),
            number::CPUS => self.cpus = fields.u32().unwrap_or(0),
            number::COMMAND => {
                let count = fields.u32().unwrap_or(0);
                self.command = (0..count).map_while(|_| fields.text()).collect();
            }
            number::BUILD_ID => {
                while let Some(build_id) = next_build_id(&mut fields) {
                    self.build_ids.push(build_id);
                }
            }
            number::EVENT_DESCRIPTIONS => self.event_names = event_names(fields).unwrap_or_default(),
            number::CLOCK_DATA => self.clock = clock_data(fields),
            _ => {}
        }
    }

    /// Gives events their names.
    pub(super) fn name(&mut self, events: &mut [Event]) {
        // The first event of each id: eight million names for four thousand events are a look for each.
        let mut of_id: HashMap<u64, usize> = HashMap::new();
        for (place, event) in events.iter().enumerate() {
            if let Some(id) = event.ids.first() {
                of_id.entry(*id).or_insert(place);
            }
        }
        for (name, ids) in self.event_names.drain(..) {
            let place = ids.iter().filter_map(|id| of_id.get(id)).min();
            if let Some(event) = place.and_then(|place| events.get_mut(*place)) {
                event.name = name;
            }
        }
    }
}

/// One record of build ids: header, pid, build id in 24 bytes, path.
fn next_build_id(fields: &mut Fields<'_>) -> Option<BuildId> {
    let (_kind, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
    let mut record = Fields(fields.take(u64::from(size).checked_sub(8)?)?);
    build_id(&mut record, misc)
}

/// The body of such a record, which also comes by itself where there is no header.
pub(super) fn build_id(record: &mut Fields<'_>, misc: u16) -> Option<BuildId> {
    let (_pid, id) = (record.u32()?, record.take(24)?);
    let bytes = if misc & MISC_BUILD_ID_SIZE == 0 { BUILD_ID_BYTES } else { usize::from(id[20]).min(BUILD_ID_BYTES) };
    Some(BuildId { path: text(record.0), build_id: id[..bytes].to_vec() })
}

/// Version and number of a clock, then one moment by the wall clock and by that one.
fn clock_data(mut fields: Fields<'_>) -> Option<(u64, u64)> {
    let (_version, _clock) = (fields.u32()?, fields.u32()?);
    Some((fields.u64()?, fields.u64()?))
}

fn event_names(mut fields: Fields<'_>) -> Option<Vec<(String, Vec<u64>)>> {
    let (count, attr_bytes) = (fields.u32()?, fields.u32()?);
    let mut names = Vec::new();
    for _ in 0..count {
        fields.take(attr_bytes.into())?;
        let ids = fields.u32()?;
        let name = fields.text()?;
        names.push((name, super::fields::numbers(fields.words(ids.into())?).collect()));
    }
    Some(names)
}
