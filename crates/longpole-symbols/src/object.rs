//! ELF: build id, where code lies, symbol tables, sections.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

use gimli::UnwindSection as _;
use longpole_model::Text;
use object::read::elf::{FileHeader, Rela};
use object::{
    CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadCache, ReadRef, SymbolIndex, SymbolKind,
};

use crate::eh_frame;
use crate::files::ReadSeek;
use crate::limits::{DECOMPRESSION_FACTOR, READ_FACTOR, SPARSE_BYTES, SPARSE_FACTOR};
use crate::reason::Reason;

/// The parts of an open file that have been read so far.
pub(crate) type Parts = ReadCache<Metered>;

/// A file that can be read a limited number of times over.
pub(crate) struct Metered<F = Box<dyn ReadSeek>> {
    file: F,
    /// Where the file ends, as far as it is read.
    length: u64,
    left_bytes: u64,
}

impl Metered {
    /// Measures the file, and limits what is read of it.
    pub(crate) fn new(mut file: Box<dyn ReadSeek>) -> io::Result<Self> {
        let allowed = file.allocated_bytes().map(|bytes| bytes.saturating_mul(SPARSE_FACTOR).saturating_add(SPARSE_BYTES));
        let length = file.seek(SeekFrom::End(0))?.min(allowed.unwrap_or(u64::MAX));
        // Small reads fetch names in steps of 256 bytes, so that a small file needs some room above its length.
        let left_bytes = length.saturating_mul(READ_FACTOR).saturating_add(1 << 20);
        Ok(Metered { file, length, left_bytes })
    }
}

impl<F> Metered<F> {
    /// Limits what is read of a file.
    pub(crate) fn limited(file: F, left_bytes: u64) -> Self {
        Metered { file, length: u64::MAX, left_bytes }
    }
}

impl<F: Read> Read for Metered<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len() as u64;
        if wanted > self.left_bytes {
            return Err(io::Error::other("the file's headers lead to more bytes than its size accounts for"));
        }
        let read = self.file.read(buffer)?;
        self.left_bytes -= read as u64;
        Ok(read)
    }
}

impl<F: Seek> Seek for Metered<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.file.seek(to)?;
        Ok(if matches!(to, SeekFrom::End(_)) { at.min(self.length) } else { at })
    }
}

/// An ELF file: the mapped binary, or the file with its debug information.
pub(crate) struct Binary<'d> {
    file: object::File<'d, &'d Parts>,
    /// Bytes that its sections may still have after decompression.
    inflatable: Cell<u64>,
}

/// A function of a symbol table.
#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    /// Its name, mangled, without the version that the linker appends; the same text for all addresses of a function.
    pub(crate) name: Text,
}

/// Which symbol table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Table {
    /// `.symtab`: every function, absent from stripped files.
    Full,
    /// `.dynsym`: what the dynamic linker needs.
    Dynamic,
}

impl<'d> Binary<'d> {
    /// Reads the headers.
    pub(crate) fn parse(parts: &'d Parts) -> Result<Self, Reason> {
        let length = parts.len().map_err(|()| Reason::MalformedElf)?;
        if parts.read_bytes_at(0, 4) != Ok(b"\x7fELF") {
            return Err(Reason::NotElf);
        }
        let file = object::File::parse(parts).map_err(|_| Reason::MalformedElf)?;
        Ok(Binary { file, inflatable: Cell::new(length.saturating_mul(DECOMPRESSION_FACTOR)) })
    }

    /// GNU build id, empty where the file has none.
    pub(crate) fn build_id(&self) -> &'d [u8] {
        self.file.build_id().ok().flatten().unwrap_or_default()
    }

    /// Name and checksum of the file that holds the debug information of this one.
    pub(crate) fn debug_link(&self) -> Option<(&'d [u8], u32)> {
        self.file.gnu_debuglink().ok()?
    }

    /// Path and build id of the file that holds what several debug files share.
    pub(crate) fn debug_alt_link(&self) -> Option<(&'d [u8], &'d [u8])> {
        self.file.gnu_debugaltlink().ok()?
    }

    /// Lowest address of code: what the linker discarded is described below it.
    pub(crate) fn code_start(&self) -> u64 {
        let executable = |segment: &object::Segment<'d, '_, &'d Parts>| segment.permissions().executable();
        self.file.segments().filter(executable).map(|segment| segment.address()).min().unwrap_or(0)
    }

    /// Whether the file has DWARF.
    pub(crate) fn has_dwarf(&self) -> bool {
        self.file.section_by_name(".debug_info").is_some()
    }

    /// Size of its DWARF in the file.
    pub(crate) fn dwarf_bytes(&self) -> u64 {
        let of_dwarf = |section: &object::Section<'d, '_, &'d Parts>| section.name().is_ok_and(|name| name.starts_with(".debug_"));
        self.file.sections().filter(of_dwarf).map(|section| section.size()).fold(0, u64::saturating_add)
    }

    /// Byte order of the file.
    pub(crate) fn endian(&self) -> gimli::RunTimeEndian {
        if self.file.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big }
    }

    /// The content of a section, decompressed; empty where there is none.
    pub(crate) fn section(&self, name: &str) -> Result<Cow<'d, [u8]>, Reason> {
        let Some(section) = self.file.section_by_name(name) else {
            return Ok(Cow::Borrowed(&[]));
        };
        let content = section.compressed_data().map_err(|_| Reason::MalformedElf)?;
        if content.format != CompressionFormat::None {
            let left = self.inflatable.get().checked_sub(content.uncompressed_size).ok_or(Reason::MalformedElf)?;
            self.inflatable.set(left);
        }
        content.decompress().map_err(|_| Reason::MalformedElf)
    }

    /// Where the functions begin that hold these addresses, as far as the unwind information tells: it has an entry for each function,
    /// and stripping leaves it alone.
    pub(crate) fn function_starts(&self, addresses: &[u64]) -> Vec<Option<u64>> {
        self.starts_by_unwind_information(addresses).unwrap_or_else(|| vec![None; addresses.len()])
    }

    fn starts_by_unwind_information(&self, addresses: &[u64]) -> Option<Vec<Option<u64>>> {
        let content = |name: &str| {
            let address = self.file.section_by_name(name)?.address();
            self.section(name).ok().map(|bytes| (address, bytes))
        };
        let ((table_at, table), (entries_at, entries)) = (content(".eh_frame_hdr")?, content(".eh_frame")?);
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(table_at).set_eh_frame(entries_at);
        if !self.file.is_little_endian() || !eh_frame::are_good((entries_at, &entries), (table_at, &table)) {
            return None;
        }
        let address_bytes = if self.file.is_64() { 8 } else { 4 };
        let parsed = gimli::EhFrameHdr::new(&table, self.endian()).parse(&bases, address_bytes).ok()?;
        let (table, section) = (parsed.table()?, gimli::EhFrame::new(&entries, self.endian()));
        let start = |address: &u64| {
            let entry = table.fde_for_address(&section, &bases, *address, gimli::EhFrame::cie_from_offset).ok()?;
            Some(entry.initial_address())
        };
        Some(addresses.iter().map(start).collect())
    }

    /// Whether the table names any function.
    pub(crate) fn has_functions(&self, table: Table) -> bool {
        let table = match table {
            Table::Full => self.file.symbol_table(),
            Table::Dynamic => self.file.dynamic_symbol_table(),
        };
        table.is_some_and(|table| table.symbols().any(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition()))
    }

    /// Names the addresses, which are sorted, by one pass over a symbol table; those that have a name already are left
    /// alone.
    ///
    /// An address belongs to the innermost function whose extent holds it. Functions written in assembler often have no
    /// size: they reach up to the next function.
    pub(crate) fn name_all(&self, table: Table, addresses: &[u64], names: &mut [Option<Symbol>]) {
        let table = match table {
            Table::Full => self.file.symbol_table(),
            Table::Dynamic => self.file.dynamic_symbol_table(),
        };
        let Some(table) = table else { return };
        // Functions with at least one of the addresses inside.
        let mut covering = Vec::new();
        // For each address the function that starts last of those between the address before and this one, if any.
        let mut nearest: Vec<Option<Candidate>> = vec![None; addresses.len()];
        for symbol in table.symbols().filter(is_function) {
            let candidate = Candidate { start: symbol.address(), size: symbol.size(), index: symbol.index() };
            let first = addresses.partition_point(|address| *address < candidate.start);
            let Some(slot) = nearest.get_mut(first) else { continue };
            if slot.is_none_or(|last| (candidate.start, candidate.size > 0) > (last.start, last.size > 0)) {
                *slot = Some(candidate);
            }
            if candidate.covers(addresses[first]) {
                covering.push(candidate);
            }
        }
        covering.sort_unstable_by_key(|candidate| (candidate.start, candidate.index.0));

        // Those that have started, by start. One that has ended is of no use to later addresses either, so that the last
        // one, once it has not ended, is the innermost.
        let mut open: Vec<Candidate> = Vec::new();
        let mut covering = covering.into_iter().peekable();
        let mut known: HashMap<SymbolIndex, Option<Text>> = HashMap::new();
        let mut last = None;
        for ((&address, between), name) in addresses.iter().zip(nearest).zip(names) {
            while let Some(started) = covering.next_if(|candidate| candidate.start <= address) {
                open.push(started);
            }
            while open.pop_if(|candidate| !candidate.covers(address)).is_some() {}
            last = between.or(last);
            if name.is_some() {
                continue;
            }
            let found = match (open.last(), last) {
                (Some(innermost), _) => {
                    let aliases =
                        open.iter().rev().take(ALIASES_MAX).filter(|alias| alias.start == innermost.start && alias.covers(address));
                    aliases.max_by_key(|alias| readability(&table, alias.index)).copied()
                }
                (None, last) => last.filter(|last| last.size == 0 && self.reaches(&table, last, address)),
            };
            let shared = |found: Candidate| {
                let name = known.entry(found.index).or_insert_with(|| symbol_name(&table, found.index).map(Text::from));
                name.clone()
            };
            *name = found.and_then(shared).map(|name| Symbol { name });
        }
    }

    /// Whether a function without a size may reach to the address: as far as its section goes.
    fn reaches(&self, table: &SymbolTable<'d, '_>, function: &Candidate, address: u64) -> bool {
        let section = table.symbol_by_index(function.index).ok().and_then(|symbol| symbol.section_index());
        let section = section.and_then(|index| self.file.section_by_index(index).ok());
        section.is_some_and(|section| address.wrapping_sub(section.address()) < section.size())
    }

    /// Names the addresses that lie in the procedure linkage table, as `name@plt`. Its entries are of one size and stand in
    /// the order of their relocations.
    pub(crate) fn name_linkage_table(&self, addresses: &[u64], names: &mut [Option<Symbol>]) {
        let object::File::Elf64(file) = &self.file else { return };
        let Some(relocations) = self.file.section_by_name(".rela.plt").and_then(|section| section.data().ok()) else { return };
        let Ok(relocations) = object::slice_from_all_bytes::<object::elf::Rela64<object::Endianness>>(relocations) else { return };
        let Some(symbols) = self.file.dynamic_symbol_table() else { return };
        let (endian, is_mips64el) = (file.endian(), file.elf_header().is_mips64el(file.endian()));
        let header_bytes = if self.file.architecture() == object::Architecture::Aarch64 { 32 } else { 16 };
        for (section, header_bytes) in [(".plt.sec", 0), (".plt", header_bytes)] {
            let Some(section) = self.file.section_by_name(section) else { continue };
            let entries = section.address().saturating_add(header_bytes)..section.address().saturating_add(section.size());
            for (address, name) in addresses.iter().zip(&mut *names) {
                if name.is_some() || !entries.contains(address) {
                    continue;
                }
                let index = usize::try_from((address - entries.start) / PLT_ENTRY_BYTES).unwrap_or(usize::MAX);
                let target = relocations.get(index).and_then(|relocation| relocation.symbol(endian, is_mips64el));
                *name = target.and_then(|target| symbol_name(&symbols, target)).map(|name| Symbol { name: format!("{name}@plt").into() });
            }
        }
    }
}

/// Size of an entry of the procedure linkage table, on x86-64 and on aarch64.
const PLT_ENTRY_BYTES: u64 = 16;

/// A function that may name an address.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: u64,
    size: u64,
    index: SymbolIndex,
}

impl Candidate {
    fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| offset < self.size)
    }
}

/// Names of one function that are compared for the nicest. glibc has functions of half a dozen names.
const ALIASES_MAX: usize = 16;

type SymbolTable<'d, 'f> = object::SymbolTable<'d, 'f, &'d Parts>;

fn is_function<'d>(symbol: &object::Symbol<'d, '_, &'d Parts>) -> bool {
    if !symbol.is_definition() {
        return false;
    }
    match symbol.kind() {
        SymbolKind::Text => true,
        // Assembler code that does not declare a type. Local ones without a size are labels inside functions, and marks
        // that say whether code or data follows.
        SymbolKind::Unknown => symbol.section_index().is_some() && (symbol.is_global() || symbol.size() > 0),
        _ => false,
    }
}

/// `read` is nicer than `__read`, a name of the interface nicer than one of the insides, a short one nicer than a long.
fn readability<'d>(table: &SymbolTable<'d, '_>, index: SymbolIndex) -> impl Ord + use<> {
    let name = symbol_name(table, index).unwrap_or_default();
    let global = table.symbol_by_index(index).is_ok_and(|symbol| symbol.is_global());
    let mangled = name.starts_with("_Z") || name.starts_with("_R");
    let underscores = if mangled { 0 } else { name.len() - name.trim_start_matches('_').len() };
    (!name.is_empty(), Reverse(underscores), global, Reverse(name.len()), Reverse(name))
}

fn symbol_name<'d>(table: &SymbolTable<'d, '_>, index: SymbolIndex) -> Option<String> {
    let symbol = table.symbol_by_index(index).ok()?;
    let name = String::from_utf8_lossy(symbol.name_bytes().ok()?);
    // `memcpy@@GLIBC_2.14`
    let name = match name.find('@') {
        None | Some(0) => &name,
        Some(version) => &name[..version],
    };
    (!name.is_empty()).then(|| name.to_owned())
}
