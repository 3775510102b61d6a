//! The functions of return addresses: which file they are in, and what its table of symbols calls them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::elf::Elf;
use super::mappings::{self, Mapping};

/// Return addresses of stacks by their number, innermost first.
pub(super) type Stacks = BTreeMap<u32, Vec<usize>>;

/// What is known of a place in a file, also from earlier profiles: a program has a few thousand places that allocate.
#[derive(Default)]
pub(crate) struct KnownFunctions {
    /// Names by path and offset in the file; `None` if the file does not say.
    names: HashMap<(String, u64), Option<String>>,
    build_ids: HashMap<String, String>,
}

/// The files of a profile, and the places in them.
#[derive(Default)]
pub(super) struct Resolved {
    pub(super) files: Vec<ResolvedFile>,
    pub(super) places: BTreeMap<usize, Place>,
}

pub(super) struct ResolvedFile {
    pub(super) mapping: Mapping,
    /// In hex; empty if it has none.
    pub(super) build_id: String,
}

/// Where a return address is.
pub(super) struct Place {
    /// Index of the file; `None` if no file is mapped there, as with code that the program made.
    pub(super) file: Option<usize>,
    /// As people write it.
    pub(super) function: Option<String>,
    /// As it stands in the table.
    pub(super) symbol: Option<String>,
}

/// The instruction that called, by the address where it returns to: that one may belong to the next function, if the callee never returns.
pub(super) fn call_of(return_address: usize) -> usize {
    return_address.saturating_sub(1)
}

pub(super) fn resolve(stacks: &Stacks, known: &mut KnownFunctions) -> Resolved {
    let addresses: BTreeSet<usize> = stacks.values().flatten().copied().collect();
    // Without the list, the profile has addresses.
    let maps = mappings::read().unwrap_or_default();
    let mut resolved = Resolved::default();
    let mut maps = maps.into_iter().peekable();
    let mut within: Vec<usize> = Vec::new();
    for address in addresses {
        let call = call_of(address);
        while let Some(mapping) = maps.next_if(|mapping| mapping.end <= call) {
            resolved.add_file(mapping, &std::mem::take(&mut within), known);
        }
        if maps.peek().is_some_and(|mapping| mapping.holds(call)) {
            within.push(address);
        } else {
            resolved.places.insert(address, Place { file: None, function: None, symbol: None });
        }
    }
    if let Some(mapping) = maps.next() {
        resolved.add_file(mapping, &within, known);
    }
    resolved
}

impl Resolved {
    fn add_file(&mut self, mapping: Mapping, addresses: &[usize], known: &mut KnownFunctions) {
        if addresses.is_empty() {
            return;
        }
        let path = mapping.path.clone();
        let offset_of = |address: usize| (call_of(address) - mapping.start) as u64 + mapping.offset;
        let unknown: Vec<u64> = addresses
            .iter()
            .map(|address| offset_of(*address))
            .filter(|offset| !known.names.contains_key(&(path.clone(), *offset)))
            .collect();
        if !unknown.is_empty() {
            let file = mapping.open();
            let elf = file.as_ref().and_then(Elf::open);
            let names = elf.as_ref().map_or_else(|| vec![None; unknown.len()], |elf| elf.functions(&unknown));
            known.names.extend(unknown.into_iter().map(|offset| (path.clone(), offset)).zip(names));
            let build_id: String = elf.iter().flat_map(|elf| &elf.build_id).map(|byte| format!("{byte:02x}")).collect();
            known.build_ids.insert(path.clone(), build_id);
        }
        for address in addresses {
            let symbol = known.names.get(&(path.clone(), offset_of(*address))).cloned().flatten();
            let function = symbol.as_deref().map(|symbol| format!("{:#}", rustc_demangle::demangle(symbol)));
            self.places.insert(*address, Place { file: Some(self.files.len()), function, symbol });
        }
        self.files.push(ResolvedFile { build_id: known.build_ids.get(&path).cloned().unwrap_or_default(), mapping });
    }
}

/// Whether a function is a part of allocating, and not of what allocates: the compiler's entry to the global allocator, and ours.
pub(super) fn is_of_the_allocator(function: &str) -> bool {
    const ENTRIES: [&str; 4] = ["__rust_", "__rg_", "__rustc::__rust_", "__rustc::__rg_"];
    ENTRIES.iter().any(|entry| function.starts_with(entry)) || function.contains("longpole_sdk::heap::allocator::Allocator")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no maps")]
    fn a_function_of_this_program_and_none_are_resolved() {
        let here = is_of_the_allocator as *const () as usize + 1;
        let mut known = KnownFunctions::default();
        for _ in 0..2 {
            let resolved = resolve(&Stacks::from([(1, vec![here, 0x10]), (2, vec![usize::MAX, here])]), &mut known);
            let place = &resolved.places[&here];
            assert_eq!(place.function.as_deref(), Some("longpole_sdk::heap::profile::functions::is_of_the_allocator"));
            assert!(place.symbol.as_ref().unwrap().starts_with('_'));
            let path = &resolved.files[place.file.unwrap()].mapping.path;
            assert_eq!(std::path::Path::new(path), std::env::current_exe().unwrap());
            assert!([0x10, usize::MAX].iter().all(|address| resolved.places[address].file.is_none()));
        }
        assert_eq!(known.names.len(), 1);
    }

    #[test]
    fn the_allocator_is_no_caller() {
        for function in
            ["__rustc::__rust_alloc", "__rg_alloc", "<longpole_sdk::heap::allocator::Allocator as core::alloc::global::GlobalAlloc>::alloc"]
        {
            assert!(is_of_the_allocator(function));
        }
        assert!(!is_of_the_allocator("alloc::raw_vec::finish_grow") && !is_of_the_allocator("shop::cart::add"));
    }
}
