//! Names of the kernel's functions, from the list that a running kernel makes of them.
//!
//! `/proc/kallsyms` has a line for each symbol: its address, hexadecimal; its type, as `nm` has it; its name; and the module it belongs
//! to, if it does. The kernel's own come in the order of their addresses, those of modules behind them, one module after the other.
//! A symbol has no size: a function reaches up to the next. A reader without the privilege gets zeros.
//!
//! ```text
//! ffffffff81000000 T _text
//! ffffffff8126f0a0 T ksys_read
//! ffffffffc04a1010 t nf_hook_entry    [nf_tables]        with a tab in front of the module
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;

/// Most bytes of a name: the kernel's own limit is 512.
const NAME_BYTES_MAX: usize = 1024;

/// Most functions: a kernel with every driver loaded has some 200,000.
const FUNCTIONS_MAX: usize = 4 << 20;

/// How far a function may reach: the largest of a kernel have some ten thousand bytes. Beyond lies memory that the list does not cover.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// The kernel's functions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSymbols {
    /// By address, ascending, each once.
    functions: Vec<Function>,
    /// Their names, one behind the other.
    names: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function {
    start: u64,
    /// Where its name starts and how long it is.
    name: (u32, u16),
}

impl Function {
    fn from_bytes(entry: &[u8; ENTRY_BYTES]) -> Option<Function> {
        let (start, rest) = entry.split_first_chunk::<8>()?;
        let (at, rest) = rest.split_first_chunk::<4>()?;
        let (length, _) = rest.split_first_chunk::<2>()?;
        Some(Function { start: u64::from_le_bytes(*start), name: (u32::from_le_bytes(*at), u16::from_le_bytes(*length)) })
    }
}

/// What [`KernelSymbols::to_bytes`] begins with; the last byte is the version.
const MAGIC: [u8; 8] = *b"LPKERNL\x01";

/// Bytes of a function in what [`KernelSymbols::to_bytes`] makes.
const ENTRY_BYTES: usize = 16;

/// Bytes before the functions: magic and count.
const HEAD_BYTES: usize = 16;

/// Modules, as the kernel calls them, whose functions come and go while it runs.
const PASSING: [&str; 3] = [" [bpf]", " [__builtin__ftrace]", " [__builtin__kprobes]"];

impl KernelSymbols {
    /// All that stay as long as the kernel runs, for [`KernelSymbolsCopy`] of the same longpole.
    ///
    /// Little-endian: magic; how many functions (u64); of each its start (u64), where its name starts (u32) and how long it is (u16),
    /// two zeroes; the names.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut entries, mut names, mut count) = (Vec::new(), String::new(), 0u64);
        for function in &self.functions {
            let name = self.text(*function).unwrap_or_default();
            if PASSING.iter().any(|module| name.ends_with(module)) {
                continue;
            }
            entries.extend(function.start.to_le_bytes());
            // The names are no longer than before, when their starts had 32 bits.
            let Ok(name_start) = u32::try_from(names.len()) else { break };
            entries.extend(name_start.to_le_bytes());
            entries.extend(function.name.1.to_le_bytes());
            entries.extend([0; 2]);
            names.push_str(name);
            count += 1;
        }
        [&MAGIC[..], &count.to_le_bytes(), &entries, names.as_bytes()].concat()
    }

    fn text(&self, function: Function) -> Option<&str> {
        let (at, bytes) = function.name;
        self.names.get(at as usize..at as usize + usize::from(bytes))
    }

    /// Reads a list. What is no line of it is left out.
    pub fn parse(list: &[u8]) -> KernelSymbols {
        let mut lines: Vec<(u64, &[u8])> = list.split(|byte| *byte == b'\n').filter_map(line).take(FUNCTIONS_MAX).collect();
        lines.sort_by_key(|(start, name)| (*start, readability(name)));
        lines.dedup_by_key(|(start, _)| *start);
        let mut symbols = KernelSymbols::default();
        for (start, name) in lines {
            let name = String::from_utf8_lossy(name).replace('\t', " ");
            let (Ok(at), Ok(bytes)) = (u32::try_from(symbols.names.len()), u16::try_from(name.len())) else { break };
            symbols.names.push_str(&name);
            symbols.functions.push(Function { start, name: (at, bytes) });
        }
        symbols
    }

    /// Whether there is no function: so it is where addresses are hidden.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function at an address, with its module in brackets.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = *self.functions.get(after.checked_sub(1)?)?;
        self.text(function).filter(|_| address - function.start < FUNCTION_BYTES_MAX)
    }
}

/// Bytes of the copy that a lookup reads at a time.
const PAGE_BYTES: usize = 4096;

/// A copy that [`KernelSymbols::to_bytes`] made, searched where it is: a lookup reads about ten pages of two megabytes, and the next lookup needs
/// most of them as well.
pub struct KernelSymbolsCopy<R> {
    /// Reads bytes from an offset on, and returns how many.
    read_at: R,
    functions: u64,
    pages: HashMap<u64, Vec<u8>>,
}

impl<R: FnMut(u64, &mut [u8]) -> io::Result<usize>> KernelSymbolsCopy<R> {
    /// Opens a copy of `bytes` bytes; `None` if it is something else, or cut off.
    pub fn open(read_at: R, bytes: u64) -> Option<KernelSymbolsCopy<R>> {
        let mut copy = KernelSymbolsCopy { read_at, functions: 0, pages: HashMap::new() };
        let head = copy.bytes(0, HEAD_BYTES)?;
        let (count, _) = head.strip_prefix(&MAGIC)?.split_first_chunk::<8>()?;
        copy.functions = Some(u64::from_le_bytes(*count)).filter(|count| *count <= FUNCTIONS_MAX as u64)?;
        let (last, length) = copy.functions.checked_sub(1).and_then(|last| copy.entry(last)).map_or((0, 0), |last| last.name);
        let end = copy.names_at() + u64::from(last) + u64::from(length);
        (end == bytes).then_some(copy)
    }

    /// The function at an address, with its module in brackets.
    pub fn name(&mut self, address: u64) -> Option<String> {
        // The first function behind the address.
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.start <= address { low = middle + 1 } else { high = middle }
        }
        let function = self.entry(low.checked_sub(1)?)?;
        let (at, length) = function.name;
        let name = self.bytes(self.names_at() + u64::from(at), length.into())?;
        // A damaged copy may be in any order.
        let is_inside = address.checked_sub(function.start).is_some_and(|inside| inside < FUNCTION_BYTES_MAX);
        String::from_utf8(name).ok().filter(|_| is_inside)
    }

    fn names_at(&self) -> u64 {
        HEAD_BYTES as u64 + self.functions * ENTRY_BYTES as u64
    }

    fn entry(&mut self, number: u64) -> Option<Function> {
        let bytes = self.bytes(HEAD_BYTES as u64 + number * ENTRY_BYTES as u64, ENTRY_BYTES)?;
        Function::from_bytes(bytes.first_chunk()?)
    }

    fn bytes(&mut self, offset: u64, count: usize) -> Option<Vec<u8>> {
        let end = offset + count as u64;
        let mut out = Vec::with_capacity(count);
        while offset + (out.len() as u64) < end {
            let at = offset + out.len() as u64;
            let page = self.page(at / PAGE_BYTES as u64)?;
            let from = usize::try_from(at % PAGE_BYTES as u64).ok()?;
            let rest = page.get(from..).filter(|rest| !rest.is_empty())?;
            out.extend(&rest[..rest.len().min(count - out.len())]);
        }
        Some(out)
    }

    /// Reads a page, which is shorter at the end.
    fn page(&mut self, number: u64) -> Option<&[u8]> {
        match self.pages.entry(number) {
            Entry::Occupied(page) => Some(page.into_mut()),
            Entry::Vacant(place) => {
                let mut page = vec![0; PAGE_BYTES];
                let mut filled = 0;
                while let Some(rest) = page.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                    match (self.read_at)(number * PAGE_BYTES as u64 + filled as u64, rest) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => return None,
                    }
                }
                page.truncate(filled);
                Some(place.insert(page))
            }
        }
    }
}

/// The address and name of a function; `None` for data, for what is hidden, and for what is no line.
fn line(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let start = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok().filter(|start| *start > 0)?;
    let is_code = matches!(words.next()?, b"t" | b"T" | b"w" | b"W");
    let name = words.next()?.trim_ascii();
    // Marks in front of a function, in the bytes that are there to be patched: nothing runs there.
    let is_mark = name.starts_with(b"__pfx_") || name.starts_with(b"__cfi_");
    (is_code && !is_mark && !name.is_empty() && name.len() <= NAME_BYTES_MAX).then_some((start, name))
}

/// The name to show where one place has several: `ksys_read` rather than `__ksys_read`.
fn readability(name: &[u8]) -> impl Ord + use<> {
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    // Marks of the linker script have one underscore and stand where a function does: `_stext`.
    (underscores, name.len(), Reverse(name.first().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &[u8] = b"ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000000 T __startup_64
ffffffff81000090 t __pfx_do_read
ffffffff810000a0 t do_read
no line
ffffffff810000f0 D jiffies
ffffffff81000200 W weak_one
ffffffffc0000010 t hook\t[nf_tables]
";

    #[test]
    fn a_function_reaches_up_to_the_next_and_not_endlessly() {
        let symbols = KernelSymbols::parse(LIST);
        let name = |address| symbols.name(address).unwrap_or("-");
        assert_eq!(
            [0xffff_ffff_80ff_ffff, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_0098, 0xffff_ffff_8100_00ff].map(name),
            ["-", "startup_64", "startup_64", "do_read"]
        );
        assert_eq!([0xffff_ffff_8100_0200, 0xffff_ffff_9000_0000, 0xffff_ffff_c000_0020].map(name), ["weak_one", "-", "hook [nf_tables]"]);
        assert_eq!([0, u64::MAX].map(name), ["-", "-"]);
    }

    #[test]
    fn a_list_with_hidden_addresses_names_nothing() {
        let hidden = b"0000000000000000 T _text\n0000000000000000 t do_read\n";
        assert!(KernelSymbols::parse(hidden).is_empty());
        assert_eq!(KernelSymbols::parse(hidden).name(0), None);
    }

    #[test]
    fn a_copy_lacks_only_functions_that_come_and_go() {
        let text = [LIST, b"ffffffffc0000100 t bpf_prog_1\t[bpf]\n"].concat();
        let symbols = KernelSymbols::parse(&text);
        assert_eq!(symbols.name(0xffff_ffff_c000_0108), Some("bpf_prog_1 [bpf]"));
        let bytes = symbols.to_bytes();
        assert_eq!(bytes, KernelSymbols::parse(LIST).to_bytes());
        let mut copy = copy_of(&bytes).unwrap();
        assert_eq!(copy.name(0xffff_ffff_8100_00ff).as_deref(), Some("do_read"));
        assert_eq!(copy.name(0xffff_ffff_c000_0108).as_deref(), Some("hook [nf_tables]"));
    }

    type ReadAt<'a> = Box<dyn FnMut(u64, &mut [u8]) -> io::Result<usize> + 'a>;

    fn copy_of(bytes: &[u8]) -> Option<KernelSymbolsCopy<ReadAt<'_>>> {
        let read_at = move |offset: u64, into: &mut [u8]| {
            let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        };
        KernelSymbolsCopy::open(Box::new(read_at), bytes.len() as u64)
    }

    #[test]
    fn a_copy_yields_the_names_of_its_list_from_few_pages() {
        let line = |number: u64| format!("{:016x} t function_{number}\n", 0xffff_ffff_8100_0000 + number * 64);
        let list: String = (0..50_000).map(line).collect();
        let symbols = KernelSymbols::parse(list.as_bytes());
        let bytes = symbols.to_bytes();
        let mut copy = copy_of(&bytes).unwrap();
        for address in [0, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_0077, 0xffff_ffff_8130_0001, 0xffff_ffff_8130_d3ff, u64::MAX] {
            assert_eq!(copy.name(address).as_deref(), symbols.name(address), "{address:x}");
        }
        assert!(copy.pages.len() < 40, "{} pages of {}", copy.pages.len(), bytes.len() / PAGE_BYTES);
    }

    #[test]
    fn a_damaged_copy_is_refused_or_yields_other_names() {
        let bytes = KernelSymbols::parse(LIST).to_bytes();
        for length in 0..bytes.len() {
            assert!(copy_of(&bytes[..length]).is_none(), "{length}");
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x41;
            if let Some(mut copy) = copy_of(&damaged) {
                copy.name(0xffff_ffff_8100_0098);
            }
        }
        assert_eq!(copy_of(&KernelSymbols::default().to_bytes()).unwrap().name(7), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_found(entries in prop::collection::btree_map(1u64..1 << 40, "[a-z_]{1,20}x", 1..30), within in 0u64..64) {
            let text: String = entries.iter().map(|(start, name)| format!("{start:016x} t {name}\n")).collect();
            let symbols = KernelSymbols::parse(text.as_bytes());
            for (start, name) in entries.iter().filter(|(_, name)| !name.starts_with("__pfx_") && !name.starts_with("__cfi_")) {
                let is_last = entries.range(start + 1..start + within + 1).next().is_none();
                prop_assert!(!is_last || symbols.name(start + within) == Some(name));
            }
        }
    }
}
