//! Names of the addresses that an agent samples, within a budget of time.
//!
//! Files of any user of the host decide how much work their names are. Naming may take one part in [`BUDGET_PART`] of the time, and one binary no more
//! than [`BINARY_MAX`]: one that takes longer is never named again. What there was no time for has its turn in a later window.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longpole_model::stack::{Frame, Location, LocationKind, Mapping, MappingId};
use longpole_model::{Id, LocationId, Loss, VirtOffset};
use longpole_symbols::{Files, hang_timeout};

use super::seen::{Seen, Window, lock};
use super::service::clipped;

/// Naming takes one part in this many of the time.
const BUDGET_PART: u32 = 20;

/// Time that is there at the start, when nothing is named yet, and the most that is saved up.
const BUDGET_MAX: Duration = Duration::from_secs(20);

/// How long one binary may take.
const BINARY_MAX: Duration = Duration::from_secs(5);

/// Why addresses of a slow binary have no names.
const SLOW: &str = "its names take too long";

/// Most frames that are inlined into one.
const FRAMES_MAX: usize = 64;

/// Most slow binaries to remember.
const SLOW_MAX: usize = 4_096;

/// Binaries whose names took too long, by path and build id, and the time that naming may still take.
#[derive(Debug)]
pub struct SlowBinaries {
    known: HashSet<(String, Vec<u8>)>,
    budget: Duration,
    since: Instant,
}

impl Default for SlowBinaries {
    fn default() -> Self {
        SlowBinaries { known: HashSet::new(), budget: BUDGET_MAX, since: Instant::now() }
    }
}

impl SlowBinaries {
    /// The time that naming may take now.
    fn budget(&mut self) -> Duration {
        let now = Instant::now();
        self.budget = (self.budget + now.saturating_duration_since(self.since) / BUDGET_PART).min(BUDGET_MAX);
        self.since = now;
        self.budget
    }

    fn spend(&mut self, mapping: &Mapping, took: Duration) {
        self.budget = self.budget.saturating_sub(took);
        if took >= BINARY_MAX && self.known.len() < SLOW_MAX {
            self.known.insert((mapping.path.clone(), mapping.build_id.clone()));
        }
    }

    fn has(&self, mapping: &Mapping) -> bool {
        self.known.contains(&(mapping.path.clone(), mapping.build_id.clone()))
    }
}

/// Frames of locations that have been named.
#[derive(Debug, Default)]
pub(super) struct LocationNames {
    /// By number; `None` where nobody needed them yet.
    frames: Vec<Option<Arc<[Frame]>>>,
    bytes: usize,
}

impl LocationNames {
    /// Bytes of all names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The frames of a location, if it has been named.
    pub(super) fn of(&self, id: LocationId) -> Option<&[Frame]> {
        self.frames.get(id.place())?.as_deref()
    }

    /// Names the locations of the stacks of a window that have no names yet, while the recorder goes on.
    pub(super) fn name(
        &mut self,
        seen: &Mutex<Seen>,
        window: &Window,
        files: Arc<dyn Files + Send + Sync>,
        slow: &mut SlowBinaries,
    ) -> Vec<Loss> {
        let mut losses = Vec::new();
        for (mapping, ids, addresses) in self.unnamed(seen, window) {
            let resolved = if slow.has(&mapping) {
                hang_timeout::without_names(&mapping, &addresses, SLOW)
            } else {
                // The rest has its turn later.
                if slow.budget() < BINARY_MAX {
                    break;
                }
                let begun = Instant::now();
                let resolved = hang_timeout::resolve_quickly(Arc::clone(&files), &mapping, &addresses, BINARY_MAX);
                slow.spend(&mapping, begun.elapsed());
                losses.extend(resolved.loss(&mapping));
                resolved
            };
            ids.into_iter().zip(resolved.frames).for_each(|(id, frames)| self.keep(id, frames));
        }
        losses
    }

    fn keep(&mut self, id: LocationId, frames: Vec<Frame>) {
        let frames: Arc<[Frame]> = frames
            .into_iter()
            .take(FRAMES_MAX)
            .map(|frame| Frame { function: clipped(&frame.function), file: clipped(&frame.file), ..frame })
            .collect();
        self.bytes += frames.iter().map(|frame| size_of::<Frame>() + frame.function.len() + frame.file.len()).sum::<usize>();
        if let Some(known) = self.frames.get_mut(id.place()) {
            *known = Some(frames);
        }
    }

    /// The locations without names and their addresses, by binary, those with most locations first.
    fn unnamed(&mut self, seen: &Mutex<Seen>, window: &Window) -> Vec<(Mapping, Vec<LocationId>, Vec<VirtOffset>)> {
        let seen = lock(seen);
        self.frames.resize(seen.locations.len(), None);
        let used = window.sums.keys().filter_map(|key| seen.stacks.get(key.stack.place())).flatten().copied();
        let unnamed: HashSet<LocationId> = used.filter(|id| matches!(self.frames.get(id.place()), Some(None))).collect();
        let mut by_mapping: BTreeMap<MappingId, (Vec<LocationId>, Vec<VirtOffset>)> = BTreeMap::new();
        for id in unnamed {
            if let Some(Location { kind: LocationKind::Code { mapping, address }, .. }) = seen.locations.get(id.place()) {
                let (ids, addresses) = by_mapping.entry(*mapping).or_default();
                ids.push(id);
                addresses.push(*address);
            }
        }
        let mut all: Vec<_> = by_mapping
            .into_iter()
            .filter_map(|(mapping, (ids, addresses))| Some((seen.mappings.get(mapping.place())?.clone(), ids, addresses)))
            .collect();
        all.sort_by_key(|(_, ids, _)| std::cmp::Reverse(ids.len()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_takes_too_long_is_not_named_again() {
        let mapping = |path: &str| Mapping { id: MappingId(0), path: path.to_owned(), build_id: vec![1] };
        let mut slow = SlowBinaries::default();
        slow.spend(&mapping("/bin/quick"), Duration::from_secs(1));
        slow.spend(&mapping("/bin/slow"), BINARY_MAX);
        assert_eq!(["/bin/quick", "/bin/slow"].map(|path| slow.has(&mapping(path))), [false, true]);
        assert!(slow.budget() <= BUDGET_MAX - Duration::from_secs(5));
    }
}
