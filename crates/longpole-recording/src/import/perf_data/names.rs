//! Names that no binary holds: the kernel's, and those of code that was made while a program ran.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longpole_store::outside::{self, Links};
use longpole_store::users::Owner;
use longpole_symbols::kernel::KernelSymbols;

/// Where this kernel tells its symbols, and most bytes of that: with every driver loaded it has 15 MB.
const KERNEL_LIST: &str = "/proc/kallsyms";
const KERNEL_LIST_BYTES_MAX: u64 = 256 << 20;

/// Most bytes of a file of names of code made while a program ran: Java's have some 10 MB.
const PERF_MAP_BYTES_MAX: u64 = 256 << 20;

/// The names that a program left for perf.
pub(super) enum PerfMap {
    Read(Vec<u8>),
    Absent,
    /// Anybody may have put it there.
    Refused,
}

/// Reads such a file by the rule of perf itself: it counts if it belongs to whoever reads it, or to root. The user who ran the program is
/// not known any more, and its number may be that of another process by now.
pub(super) fn perf_map_of(path: &Path) -> PerfMap {
    let file = match outside::open(path, Links::Refused) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return PerfMap::Absent,
        Err(_) => return PerfMap::Refused,
    };
    if !file.metadata().is_ok_and(|about| Owner::current().relies_on(about.uid())) {
        return PerfMap::Refused;
    }
    let mut bytes = Vec::new();
    // What was read before an error is of use.
    file.take(PERF_MAP_BYTES_MAX).read_to_end(&mut bytes).ok();
    PerfMap::Read(bytes)
}

/// The symbols of the kernel that runs here, if it is this one and lies at the same place.
pub(super) fn own_kernel(build_id: &[u8], text: u64, same_release: bool) -> Option<KernelSymbols> {
    let notes = std::fs::read("/sys/kernel/notes").unwrap_or_default();
    // A stream says no build ids.
    let is_same = if build_id.is_empty() { same_release } else { notes.windows(build_id.len()).any(|window| window == build_id) };
    if !is_same {
        return None;
    }
    let mut list = Vec::new();
    let file = File::open(KERNEL_LIST).ok()?;
    file.take(KERNEL_LIST_BYTES_MAX).read_to_end(&mut list).ok()?;
    let start = format!("{text:016x} ");
    let begins = |line: &[u8]| line.starts_with(start.as_bytes()) && (line.ends_with(b" _text") || line.ends_with(b" _stext"));
    let is_there = list.split(|byte| *byte == b'\n').any(begins);
    is_there.then(|| KernelSymbols::parse(&list))
}
