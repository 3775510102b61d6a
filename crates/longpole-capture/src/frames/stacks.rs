//! Assigns ids to locations and stacks, and writes the definition of each before its first use.
//!
//! Stacks are kept as a tree from root to leaf, so that stacks share the frames they have in common:
//!
//! ```text
//! main ── run ──┬── hash_block ── memcpy     a distinct stack costs its new nodes only:
//!               └── compress                 16 bytes each, times at most two for the table's free places
//! ```
//!
//! Both tables are bounded. A full one is emptied: a stack that comes again gets a second id, which readers allow.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use longpole_model::stack::LocationKind;
use longpole_model::{AbsAddr, LocationId, MappingId, Monotonic, Observation, Runtime, StackId, VirtOffset};
use longpole_symbols::unwind::StackEnd;

use crate::sink::ObservationWriter;
use longpole_model::fast_hash::FastMap;

/// Most nodes of the tree: 34 MB.
const NODES_MAX: usize = 1 << 20;

/// Most names of code without a binary, one for each function and line: 40 MB of usual names. A program can give each of its functions a name
/// and a file of 4,096 bytes.
const NAMES_MAX: usize = 1 << 18;
const NAMES_BYTES_MAX: usize = 128 << 20;

/// Most locations: 48 MB; a program with more distinct addresses runs garbage.
const LOCATIONS_MAX: usize = 1 << 20;

/// Why a stack ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Truncation {
    /// The unwinder could not go on.
    Walk(StackEnd),
    /// The sample has no registers of user space.
    NoRegisters,
    /// 32-bit code.
    Code32,
    /// The kernel reports no more of its own stack. The stack of user space follows.
    KernelDeep,
    /// The functions that an interpreter ran here are unknown.
    MissingFunctions(MissingFunctions),
}

/// Why functions that an interpreter ran are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MissingFunctions {
    /// No reading of the interpreter is near enough in time.
    NotNear,
    /// The innermost function is known; its callers are not.
    Callers,
    /// The interpreter has no such thread.
    NoThread,
    /// The interpreter could not be read; the losses say why.
    Unreadable,
    /// There are more frames than are read.
    TooDeep,
    /// There are more names than are kept.
    TooManyNames,
}

impl MissingFunctions {
    /// Which functions are missing, and why.
    fn words(self) -> (&'static str, Option<&'static str>) {
        const NOT_NEAR: &str = "longpole read the interpreter's stack too long before or after the sample";
        let (functions, why) = match self {
            MissingFunctions::NotNear => ("Python functions", NOT_NEAR),
            MissingFunctions::Callers => ("callers of a Python function", NOT_NEAR),
            MissingFunctions::NoThread => ("Python functions", "the thread was just starting or ending"),
            MissingFunctions::Unreadable => ("Python functions", "longpole could not read the interpreter"),
            MissingFunctions::TooDeep => ("callers of Python functions", "the stack has more frames than longpole reads"),
            MissingFunctions::TooManyNames => return ("more function names than longpole keeps", None),
        };
        (functions, Some(why))
    }
}

impl fmt::Display for MissingFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            (functions, Some(why)) => write!(f, "{functions}; {why}"),
            (functions, None) => f.write_str(functions),
        }
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truncation::Walk(end) => end.fmt(f),
            Truncation::NoRegisters => f.write_str("the sample has no registers of user space"),
            Truncation::Code32 => f.write_str("longpole does not unwind stacks of 32-bit code"),
            Truncation::KernelDeep => f.write_str("more functions of the kernel than kernel.perf_event_max_stack"),
            // The name of a frame, where no title says that they are missing.
            Truncation::MissingFunctions(reason) => match reason.words() {
                (functions, Some(why)) => write!(f, "missing {functions}: {why}"),
                (functions, None) => f.write_str(functions),
            },
        }
    }
}

/// What a location is: a small key without text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FrameLocation {
    Code {
        mapping: MappingId,
        address: VirtOffset,
    },
    /// Code without a binary; the same address means other code in another program.
    Unmapped {
        program: ProgramId,
        address: AbsAddr,
    },
    /// A name from [`Stacks::name`].
    Named(NameId),
    Truncation(Truncation),
}

/// Number of a program in a process, from one exec to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ProgramId(pub(crate) u32);

/// Number of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u32);

/// A name of code without a binary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) runtime: Runtime,
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Name {
    fn told(&self, id: LocationId, address: Option<AbsAddr>) -> Observation {
        let Name { runtime, function, file, line } = self.clone();
        Observation::Named { id, runtime, address, function, file, line }
    }
}

struct Node {
    number: u32,
    /// The stack whose leaf this is, if any.
    stack: Option<StackId>,
}

/// The tables.
#[derive(Default)]
pub(crate) struct Stacks {
    locations: FastMap<FrameLocation, LocationId>,
    next_location: u32,
    /// By parent node and location.
    nodes: FastMap<(u32, u32), Node>,
    next_stack: u32,
    names: HashMap<Arc<Name>, NameId>,
    name_list: Vec<Arc<Name>>,
    /// Bytes of all names.
    names_bytes: usize,
    /// Locations of code without a binary, by program: they may get names when the program ends.
    unmapped: FastMap<u32, Vec<(AbsAddr, LocationId)>>,
}

impl Stacks {
    /// The location of code that has a name but no binary.
    pub(crate) fn name(&mut self, name: Name) -> FrameLocation {
        if let Some(id) = self.names.get(&name) {
            return FrameLocation::Named(*id);
        }
        let bytes = self.names_bytes + name.function.len() + name.file.len() + size_of::<Name>();
        if self.name_list.len() >= NAMES_MAX || bytes > NAMES_BYTES_MAX {
            return FrameLocation::Truncation(Truncation::MissingFunctions(MissingFunctions::TooManyNames));
        }
        self.names_bytes = bytes;
        let id = NameId(self.name_list.len() as u32);
        let name = Arc::new(name);
        self.name_list.push(Arc::clone(&name));
        self.names.insert(name, id);
        FrameLocation::Named(id)
    }

    /// Writes the names, as far as `name` knows them, of the code without a binary that this program ran.
    pub(crate) fn name_unmapped(&mut self, program: ProgramId, mut name: impl FnMut(AbsAddr) -> Option<Name>, out: &mut ObservationWriter) {
        for (address, id) in self.unmapped.remove(&program.0).unwrap_or_default() {
            if let Some(name) = name(address) {
                out.give(name.told(id, Some(address)));
            }
        }
    }

    /// The same where code at an address was replaced: `names` returns the first code, and later code with its time. `None` stands for
    /// code that was moved away.
    pub(crate) fn name_unmapped_by_time(
        &mut self,
        program: ProgramId,
        mut names: impl FnMut(AbsAddr) -> Vec<(Monotonic, Option<Name>)>,
        out: &mut ObservationWriter,
    ) {
        for (address, id) in self.unmapped.remove(&program.0).unwrap_or_default() {
            let mut stretches = names(address).into_iter();
            if let Some((_, Some(first))) = stretches.next() {
                out.give(first.told(id, Some(address)));
            }
            for (since, name) in stretches {
                let by = LocationId(self.next_location);
                let defined = match name {
                    Some(name) => name.told(by, Some(address)),
                    None => Observation::Location { id: by, kind: LocationKind::Unmapped { address } },
                };
                if out.give(defined) {
                    self.next_location += 1;
                    out.give(Observation::Replaced { id, since, by });
                }
            }
        }
    }

    /// The addresses of code without a binary that this program ran, ascending.
    pub(crate) fn unmapped(&self, program: ProgramId) -> Vec<u64> {
        let mut addresses: Vec<u64> = self.unmapped.get(&program.0).into_iter().flatten().map(|(address, _)| address.0).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// The id of a location; `None` if the sink could not keep its definition.
    pub(crate) fn location(&mut self, location: FrameLocation, out: &mut ObservationWriter) -> Option<LocationId> {
        if let Some(id) = self.locations.get(&location) {
            return Some(*id);
        }
        if self.locations.len() >= LOCATIONS_MAX {
            self.locations.clear();
            self.nodes.clear();
            self.unmapped.clear();
        }
        let id = LocationId(self.next_location);
        let defined = |kind| Observation::Location { id, kind };
        let definition = match location {
            FrameLocation::Code { mapping, address } => defined(LocationKind::Code { mapping, address }),
            FrameLocation::Unmapped { address, .. } => defined(LocationKind::Unmapped { address }),
            FrameLocation::Named(name) => self.name_list.get(name.0 as usize)?.told(id, None),
            FrameLocation::Truncation(cut) => defined(LocationKind::Cut { reason: cut.to_string() }),
        };
        if !out.give(definition) {
            return None;
        }
        self.next_location += 1;
        if let FrameLocation::Unmapped { program, address } = location {
            self.unmapped.entry(program.0).or_default().push((address, id));
        }
        self.locations.insert(location, id);
        Some(id)
    }

    /// The id of a stack, leaf first; `None` if the sink could not keep its definition.
    pub(crate) fn stack(&mut self, locations: &[LocationId], out: &mut ObservationWriter) -> Option<StackId> {
        if self.nodes.len() + locations.len() > NODES_MAX {
            self.nodes.clear();
        }
        // Node 0 is above all roots.
        let mut parent = 0;
        let mut leaf_key = (0, u32::MAX);
        for location in locations.iter().rev() {
            leaf_key = (parent, location.0);
            let number = self.nodes.len() as u32 + 1;
            parent = self.nodes.entry(leaf_key).or_insert(Node { number, stack: None }).number;
        }
        let number = self.nodes.len() as u32 + 1;
        let leaf = self.nodes.entry(leaf_key).or_insert(Node { number, stack: None });
        if let Some(id) = leaf.stack {
            return Some(id);
        }
        let id = StackId(self.next_stack);
        if !out.give(Observation::Stack { id, locations: locations.to_vec() }) {
            return None;
        }
        self.next_stack += 1;
        leaf.stack = Some(id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::testing::out;

    fn at(address: u64) -> FrameLocation {
        FrameLocation::Code { mapping: MappingId(0), address: VirtOffset(address) }
    }

    #[test]
    fn each_location_and_stack_is_defined_once_and_before_its_use() {
        let (mut out, seen) = out(false);
        let mut stacks = Stacks::default();
        let ids: Vec<LocationId> = [10, 20, 30].map(|a| stacks.location(at(a), &mut out).unwrap()).to_vec();
        let deep = stacks.stack(&ids, &mut out).unwrap();
        let shallow = stacks.stack(&ids[1..], &mut out).unwrap();
        let empty = stacks.stack(&[], &mut out).unwrap();
        assert_eq!((deep, shallow, empty), (StackId(0), StackId(1), StackId(2)));
        assert_eq!(stacks.stack(&ids, &mut out), Some(deep));
        assert_eq!(stacks.stack(&[], &mut out), Some(empty));
        assert_eq!(stacks.location(at(20), &mut out), Some(ids[1]));
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 6);
        assert_eq!(seen[3], Observation::Stack { id: deep, locations: ids });
    }

    #[test]
    fn a_definition_that_was_not_kept_is_written_again() {
        let (mut failing, _) = out(true);
        let mut stacks = Stacks::default();
        assert_eq!(stacks.location(at(10), &mut failing), None);
        assert_eq!((failing.not_kept, failing.not_kept_reason.as_deref()), (1, Some("disk full")));
        let (mut working, seen) = out(false);
        assert_eq!(stacks.location(at(10), &mut working), Some(LocationId(0)));
        assert_eq!(seen.lock().unwrap().len(), 1);
    }

    #[test]
    fn names_have_a_limit_by_number_and_by_bytes() {
        let kept = |file: &str| {
            let mut stacks = Stacks::default();
            let name = |line| Name { runtime: Runtime::Other, function: "f".to_owned(), file: file.to_owned(), line };
            let found = (0..).position(|line| !matches!(stacks.name(name(line)), FrameLocation::Named(_)));
            assert!(matches!(stacks.name(name(0)), FrameLocation::Named(NameId(0))), "a name that is known stays so");
            found.unwrap()
        };
        assert_eq!(kept("/srv/app.py"), NAMES_MAX);
        assert!((16_000..17_000).contains(&kept(&"x".repeat(8000))));
    }

    #[test]
    fn a_full_table_is_emptied_and_ids_go_on() {
        let (mut out, _) = out(false);
        let mut stacks = Stacks::default();
        let first = stacks.stack(&[LocationId(1)], &mut out).unwrap();
        for i in 0..NODES_MAX as u32 {
            stacks.stack(&[LocationId(i + 2)], &mut out);
        }
        assert!(stacks.nodes.len() <= NODES_MAX);
        let again = stacks.stack(&[LocationId(1)], &mut out).unwrap();
        assert!(again > first);
    }
}
