//! Which binary lies where in a process.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use framehop::{MayAllocateDuringUnwind, Unwinder as _, UnwinderNative};
use longpole_model::{AbsAddr, MappingId, VirtOffset};

use super::binary::Binary;
use crate::eh_frame::Bytes;
use crate::made_code::MadeId;

/// Counts what framehop's counter counts: address spaces made, modules added and removed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// How many changes framehop has counted so far.
pub(super) fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Most regions of one process. Large programs have some hundreds; the kernel does not report what is unmapped, so that memory which is
/// mapped and unmapped again and again leaves a region at each place.
const REGIONS_MAX: usize = 8192;

/// Most regions of all processes together. A process that maps anything copies those of its parent.
const REGIONS_ALL_MAX: usize = 1 << 20;

/// Regions that there are.
static REGIONS: AtomicUsize = AtomicUsize::new(0);

/// What lies in an executable mapping.
#[derive(Debug, Clone)]
pub enum Code {
    /// A binary. Without its contents, addresses are offsets in the file.
    Mapped {
        /// Its number in the recording.
        mapping: MappingId,
        /// Its contents, where they could be read.
        binary: Option<Arc<Binary>>,
    },
    /// Memory that belongs to no file: code made while the program runs.
    Anonymous,
}

#[derive(Debug, Clone)]
pub(super) struct Region {
    range: Range<u64>,
    pub(super) code: Code,
    /// Subtracted from an address to get the one the file states.
    bias: u64,
}

/// Where an address lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a binary.
    Code {
        /// Which.
        mapping: MappingId,
        /// The address the file states for it.
        address: VirtOffset,
    },
    /// In executable memory of no file.
    Anonymous,
    /// There too, in a function with a name. Functions that are inlined there have the same address.
    Made(MadeId),
    /// In no executable memory that is known.
    Unknown,
}

/// The executable mappings of one process. A clone is what `fork` makes.
///
/// A program with thousands of mappings loses the anonymous ones, and a copy beyond the limit of all processes begins empty: an address in one
/// of them lies outside of all that is known.
pub struct AddressSpace {
    /// Sorted by start, disjoint.
    regions: Vec<Region>,
    may_publish_context: bool,
    pub(super) unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
}

impl Default for AddressSpace {
    fn default() -> Self {
        CHANGES.fetch_add(1, Ordering::Relaxed);
        AddressSpace { regions: Vec::new(), may_publish_context: false, unwinder: UnwinderNative::new() }
    }
}

impl Clone for AddressSpace {
    fn clone(&self) -> Self {
        self.copied(REGIONS_ALL_MAX)
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        REGIONS.fetch_sub(self.regions.len(), Ordering::Relaxed);
    }
}

impl fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressSpace").field("regions", &self.regions).finish_non_exhaustive()
    }
}

impl AddressSpace {
    /// An address space without code.
    pub fn new() -> Self {
        AddressSpace::default()
    }

    /// Whether [`map`](Self::map) with these arguments would change nothing: the kernel reports a mapping again when its
    /// protection is changed.
    pub fn has(&self, range: Range<AbsAddr>, code: &Code) -> bool {
        self.region(range.start).is_some_and(|r| match (&r.code, code) {
            (Code::Mapped { mapping: a, .. }, Code::Mapped { mapping: b, .. }) => r.range == (range.start.0..range.end.0) && a == b,
            // Neighbours are joined.
            (Code::Anonymous, Code::Anonymous) => range.end.0 <= r.range.end,
            _ => false,
        })
    }

    /// The same regions, if there may be as many more; else none.
    fn copied(&self, all_max: usize) -> Self {
        let mut copy = AddressSpace::default();
        copy.may_publish_context = self.may_publish_context;
        if REGIONS.fetch_add(self.regions.len(), Ordering::Relaxed) + self.regions.len() <= all_max {
            copy.regions.clone_from(&self.regions);
            copy.unwinder = self.unwinder.clone();
        } else {
            REGIONS.fetch_sub(self.regions.len(), Ordering::Relaxed);
        }
        copy
    }

    /// Makes room for a region; whether there is some.
    fn has_room(&mut self) -> bool {
        if self.regions.len() >= REGIONS_MAX {
            let before = self.regions.len();
            self.regions.retain(|region| matches!(region.code, Code::Mapped { .. }));
            REGIONS.fetch_sub(before - self.regions.len(), Ordering::Relaxed);
        }
        self.regions.len() < REGIONS_MAX
    }

    /// Adds an executable mapping; what it covers of earlier ones is gone.
    pub fn map(&mut self, range: Range<AbsAddr>, file_offset: u64, code: Code) {
        let range = range.start.0..range.end.0;
        if range.is_empty() {
            return;
        }
        let first = self.regions.partition_point(|r| r.range.end <= range.start);
        let last = self.regions.partition_point(|r| r.range.start < range.end);
        let covered: Vec<Region> = self.regions.drain(first..last.max(first)).collect();
        REGIONS.fetch_sub(covered.len(), Ordering::Relaxed);
        for old in &covered {
            self.unwinder.remove_module(old.range.start);
            CHANGES.fetch_add(1, Ordering::Relaxed);
        }
        for old in covered {
            for rest in [old.range.start..range.start.min(old.range.end), range.end.max(old.range.start)..old.range.end] {
                if !rest.is_empty() {
                    self.insert(Region { range: rest, ..old.clone() });
                }
            }
        }
        let bias = match &code {
            // Where the file could not be read, or its headers disagree with what is mapped, the offset in the file stands for the address.
            Code::Mapped { binary, .. } => {
                let stated = binary.as_ref().and_then(|b| b.bias(range.start, file_offset));
                stated.unwrap_or_else(|| range.start.wrapping_sub(file_offset))
            }
            Code::Anonymous => 0,
        };
        self.insert(Region { range, code, bias });
    }

    fn insert(&mut self, mut region: Region) {
        if !self.has_room() {
            return;
        }
        self.may_publish_context |= match &region.code {
            Code::Mapped { binary, .. } => binary.as_ref().is_none_or(|binary| binary.may_publish_context()),
            Code::Anonymous => false,
        };
        let mut at = self.regions.partition_point(|r| r.range.start < region.range.start);
        if matches!(region.code, Code::Anonymous) {
            let joins = |other: Option<&Region>, place: u64| {
                other.is_some_and(|other| matches!(other.code, Code::Anonymous) && (other.range.start == place || other.range.end == place))
            };
            if joins(self.regions.get(at), region.range.end) {
                region.range.end = self.regions.remove(at).range.end;
                REGIONS.fetch_sub(1, Ordering::Relaxed);
            }
            if at > 0 && joins(self.regions.get(at - 1), region.range.start) {
                at -= 1;
                region.range.start = self.regions.remove(at).range.start;
                REGIONS.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if let Code::Mapped { binary: Some(binary), .. } = &region.code {
            self.unwinder.add_module(binary.module(region.range.clone(), region.bias));
            CHANGES.fetch_add(1, Ordering::Relaxed);
        }
        self.regions.insert(at, region);
        REGIONS.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether threads may have a context record: a binary has said so, or one could not be read.
    pub fn may_publish_context(&self) -> bool {
        self.may_publish_context
    }

    /// Where an address lies. Give the address to look up, not a return address.
    pub fn locate(&self, address: AbsAddr) -> Place {
        place(self.region(address), address)
    }

    /// Whether a function begins there, or the program a few instructions before.
    pub(super) fn begins_near(&self, address: AbsAddr) -> bool {
        self.region(address).is_some_and(|region| region.is_entry(address) || region.function_start(address) == Some(address.0))
    }

    pub(super) fn region(&self, address: AbsAddr) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.range.start <= address.0);
        after.checked_sub(1).map(|i| &self.regions[i]).filter(|r| address.0 < r.range.end)
    }
}

impl Region {
    pub(super) fn place(&self, address: AbsAddr) -> Place {
        match &self.code {
            Code::Mapped { mapping, .. } => Place::Code { mapping: *mapping, address: VirtOffset(self.stated(address)) },
            Code::Anonymous => Place::Anonymous,
        }
    }

    /// Where the function begins that holds this address, as the unwind information has it.
    pub(super) fn function_start(&self, address: AbsAddr) -> Option<u64> {
        Some(self.binary()?.function_start(self.stated(address))?.wrapping_add(self.bias))
    }

    /// Steps that a frame here costs at most, beside its expressions.
    pub(super) fn steps(&self, address: AbsAddr) -> u64 {
        self.binary().map_or(0, |binary| binary.steps(self.stated(address)))
    }

    /// Whether this is where the kernel started the program or its loader, so that there is no caller.
    pub(super) fn is_entry(&self, address: AbsAddr) -> bool {
        self.binary().is_some_and(|binary| binary.is_entry(self.stated(address)))
    }

    pub(super) fn is_signal_return(&self, address: AbsAddr) -> bool {
        self.binary().is_some_and(|binary| binary.is_signal_return(self.stated(address)))
    }

    pub(super) fn is_init(&self, address: AbsAddr) -> bool {
        self.binary().is_some_and(|binary| binary.is_init(self.stated(address)))
    }

    /// The address as the file states it.
    pub(super) fn stated(&self, address: AbsAddr) -> u64 {
        address.0.wrapping_sub(self.bias)
    }

    pub(super) fn binary(&self) -> Option<&Binary> {
        match &self.code {
            Code::Mapped { binary, .. } => binary.as_deref(),
            Code::Anonymous => None,
        }
    }
}

pub(super) fn place(region: Option<&Region>, address: AbsAddr) -> Place {
    region.map_or(Place::Unknown, |region| region.place(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_contents_a_binary_is_addressed_by_offsets_of_its_file() {
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x5000)..AbsAddr(0x6000), 0x2000, Code::Mapped { mapping: MappingId(0), binary: None });
        assert_eq!(space.locate(AbsAddr(0x5123)), Place::Code { mapping: MappingId(0), address: VirtOffset(0x2123) });
    }

    #[test]
    fn the_regions_of_a_process_and_those_of_all_have_a_limit() {
        let mapped = Code::Mapped { mapping: MappingId(1), binary: None };
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x1000)..AbsAddr(0x2000), 0, mapped);
        let start = std::time::Instant::now();
        for place in 1..100_000 {
            space.map(AbsAddr(place * 0x10_000)..AbsAddr(place * 0x10_000 + 0x1000), 0, Code::Anonymous);
            assert!(space.regions.len() <= REGIONS_MAX);
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!(space.locate(AbsAddr(99_999 * 0x10_000)), Place::Anonymous, "the last one is there");
        let code = Place::Code { mapping: MappingId(1), address: VirtOffset(0x10) };
        assert_eq!((space.locate(AbsAddr(0x1010)), space.clone().locate(AbsAddr(0x1010))), (code, code));
        assert_eq!(space.copied(space.regions.len() - 1).locate(AbsAddr(0x1010)), Place::Unknown);
    }

    #[test]
    fn anonymous_neighbours_are_one_region() {
        let mut space = AddressSpace::new();
        for place in [0x1000, 0x3000, 0x2000] {
            space.map(AbsAddr(place)..AbsAddr(place + 0x1000), 0, Code::Anonymous);
        }
        assert_eq!(space.regions.len(), 1);
        assert!(space.has(AbsAddr(0x2000)..AbsAddr(0x3000), &Code::Anonymous));
        assert!(!space.has(AbsAddr(0x3000)..AbsAddr(0x5000), &Code::Anonymous));
    }

    #[test]
    fn a_later_mapping_covers_what_it_overlaps() {
        let mapped = |number| Code::Mapped { mapping: MappingId(number), binary: None };
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x1000)..AbsAddr(0x9000), 0, mapped(1));
        space.map(AbsAddr(0x3000)..AbsAddr(0x5000), 0, Code::Anonymous);
        space.map(AbsAddr(0x8000)..AbsAddr(0xa000), 0, mapped(2));
        space.map(AbsAddr(0x4000)..AbsAddr(0x4000), 0, mapped(3));
        let at = |address| space.locate(AbsAddr(address));
        let code = |number, address| Place::Code { mapping: MappingId(number), address: VirtOffset(address) };
        assert_eq!(at(0x2fff), code(1, 0x1fff));
        assert_eq!(at(0x3000), Place::Anonymous);
        assert_eq!(at(0x5000), code(1, 0x4000), "what is left behind it keeps its addresses");
        assert_eq!(at(0x8000), code(2, 0));
        assert_eq!(at(0xa000), Place::Unknown);
        assert!(space.has(AbsAddr(0x3000)..AbsAddr(0x5000), &Code::Anonymous));
        assert!(!space.has(AbsAddr(0x3000)..AbsAddr(0x5000), &mapped(1)));
        let child = space.clone();
        space.map(AbsAddr(0)..AbsAddr(0x10000), 0, mapped(4));
        assert_eq!(child.locate(AbsAddr(0x3000)), Place::Anonymous, "a fork keeps its own");
    }
}
