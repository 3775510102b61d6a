//! The functions of return addresses: which file they are in, and what its table of symbols calls them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::elf::Elf;
use super::mappings::{self, CodeMapping};

/// Return addresses of stacks by their number, innermost first.
pub(super) type Stacks = BTreeMap<u32, Vec<usize>>;

/// Functions of files, also from earlier profiles, by path: a program has a few thousand places that allocate.
#[derive(Default)]
pub(crate) struct KnownFunctions(HashMap<String, KnownFile>);

#[derive(Default)]
struct KnownFile {
    /// In hex; empty if it has none.
    build_id: String,
    /// Functions by offset in the file; `None` if the file does not say.
    functions: HashMap<u64, Option<Arc<NamedFunction>>>,
}

/// A function.
pub(super) struct NamedFunction {
    /// As people write it.
    pub(super) name: String,
    /// As it stands in the table.
    pub(super) symbol: String,
}

/// The files of a profile, and the places in them.
#[derive(Default)]
pub(super) struct Resolved {
    pub(super) files: Vec<ResolvedFile>,
    pub(super) places: BTreeMap<usize, CodePlace>,
}

pub(super) struct ResolvedFile {
    pub(super) mapping: CodeMapping,
    /// In hex; empty if it has none.
    pub(super) build_id: String,
}

/// Where a return address is.
#[derive(Default)]
pub(super) struct CodePlace {
    /// Index of the file; `None` if no file is mapped there, as with code that the program made.
    pub(super) file: Option<usize>,
    pub(super) function: Option<Arc<NamedFunction>>,
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
            resolved.places.insert(address, CodePlace::default());
        }
    }
    if let Some(mapping) = maps.next() {
        resolved.add_file(mapping, &within, known);
    }
    resolved
}

impl Resolved {
    fn add_file(&mut self, mapping: CodeMapping, addresses: &[usize], known: &mut KnownFunctions) {
        if addresses.is_empty() {
            return;
        }
        let offset_of = |address: usize| (call_of(address) - mapping.start) as u64 + mapping.offset;
        let file = known.0.entry(mapping.path.clone()).or_default();
        let offsets = addresses.iter().map(|address| offset_of(*address));
        let unknown: Vec<u64> = offsets.filter(|offset| !file.functions.contains_key(offset)).collect();
        if !unknown.is_empty() {
            file.read(&mapping, unknown);
        }
        for address in addresses {
            let function = file.functions.get(&offset_of(*address)).cloned().flatten();
            self.places.insert(*address, CodePlace { file: Some(self.files.len()), function });
        }
        self.files.push(ResolvedFile { build_id: file.build_id.clone(), mapping });
    }
}

impl KnownFile {
    fn read(&mut self, mapping: &CodeMapping, offsets: Vec<u64>) {
        let file = mapping.open();
        let elf = file.as_ref().and_then(Elf::open);
        let symbols = elf.as_ref().map_or_else(|| vec![None; offsets.len()], |elf| elf.functions(&offsets));
        let function = |symbol: String| Arc::new(NamedFunction { name: format!("{:#}", rustc_demangle::demangle(&symbol)), symbol });
        self.functions.extend(offsets.into_iter().zip(symbols.into_iter().map(|symbol| symbol.map(function))));
        self.build_id = elf.iter().flat_map(|elf| &elf.build_id).map(|byte| format!("{byte:02x}")).collect();
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
            let function = place.function.as_ref().unwrap();
            assert_eq!(function.name, "longpole_sdk::heap::profile::functions::is_of_the_allocator");
            assert!(function.symbol.starts_with('_'));
            let path = &resolved.files[place.file.unwrap()].mapping.path;
            assert_eq!(std::path::Path::new(path), std::env::current_exe().unwrap());
            assert!([0x10, usize::MAX].iter().all(|address| resolved.places[address].file.is_none()));
        }
        assert_eq!(known.0.values().map(|file| file.functions.len()).sum::<usize>(), 1);
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
