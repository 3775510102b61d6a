//! Names of the kernel's functions, from the list that a running kernel makes of them.
//!
//! `/proc/kallsyms` has a line for each symbol: its address, hexadecimal; its type, as `nm` has it; its name; and the module it belongs
//! to, if it does. The kernel's own come in the order of their addresses, those of modules behind them, one module after the other.
//! A symbol has no size: a function reaches up to the next. Who may not know addresses reads zeros.
//!
//! ```text
//! ffffffff81000000 T _text
//! ffffffff8126f0a0 T ksys_read
//! ffffffffc04a1010 t nf_hook_entry    [nf_tables]        with a tab in front of the module
//! ```

use std::cmp::Reverse;

/// Most bytes of a name: the kernel's own limit is 512.
const NAME_BYTES_MAX: usize = 1024;

/// Most functions: a kernel with every driver loaded has some 200,000.
const FUNCTIONS_MAX: usize = 4 << 20;

/// How far a function may reach: the largest of a kernel have some ten thousand bytes. Beyond lies memory of which the list says nothing.
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

/// What [`KernelSymbols::to_bytes`] begins with; the last byte is the version.
const MAGIC: [u8; 8] = *b"LPKERNL\x01";

/// Bytes of a function in what [`KernelSymbols::to_bytes`] makes.
const ENTRY_BYTES: usize = 16;

/// Modules, as the kernel calls them, whose functions come and go while it runs.
const PASSING: [&str; 3] = [" [bpf]", " [__builtin__ftrace]", " [__builtin__kprobes]"];

impl KernelSymbols {
    /// All that stay as long as the kernel runs, to be read again by [`from_bytes`](Self::from_bytes) of the same longpole.
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
            // The names are no longer than before.
            entries.extend((names.len() as u32).to_le_bytes());
            entries.extend(function.name.1.to_le_bytes());
            entries.extend([0; 2]);
            names.push_str(name);
            count += 1;
        }
        [&MAGIC[..], &count.to_le_bytes(), &entries, names.as_bytes()].concat()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) made; `None` where it is something else, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<KernelSymbols> {
        let (count, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count <= FUNCTIONS_MAX)?;
        let (entries, names) = rest.split_at_checked(count.checked_mul(ENTRY_BYTES)?)?;
        let names = String::from_utf8(names.to_vec()).ok()?;
        let mut functions: Vec<Function> = Vec::with_capacity(count);
        for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
            let (start, rest) = entry.split_first_chunk::<8>()?;
            let (at, rest) = rest.split_first_chunk::<4>()?;
            let (length, _) = rest.split_first_chunk::<2>()?;
            let function = Function { start: u64::from_le_bytes(*start), name: (u32::from_le_bytes(*at), u16::from_le_bytes(*length)) };
            if functions.last().is_some_and(|last| last.start >= function.start) {
                return None;
            }
            functions.push(function);
        }
        Some(KernelSymbols { functions, names })
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

/// Of several names of one place the one to show: `ksys_read` rather than `__ksys_read`.
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
    fn what_stays_is_kept_as_bytes_and_nothing_else_is_taken_for_it() {
        let text = [LIST, b"ffffffffc0000100 t bpf_prog_1\t[bpf]\n"].concat();
        let symbols = KernelSymbols::parse(&text);
        assert_eq!(symbols.name(0xffff_ffff_c000_0108), Some("bpf_prog_1 [bpf]"));
        let bytes = symbols.to_bytes();
        assert_eq!(KernelSymbols::from_bytes(&bytes), Some(KernelSymbols::parse(LIST)));
        for length in 0..bytes.len() - 60 {
            assert_eq!(KernelSymbols::from_bytes(&bytes[..length]), None, "{length}");
        }
        // Whatever a byte becomes, no name is looked for outside.
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x41;
            if let Some(symbols) = KernelSymbols::from_bytes(&damaged) {
                symbols.name(0xffff_ffff_8100_0098);
            }
        }
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
