//! Registers and stack bytes to a stack of addresses.
//!
//! You bring the binaries that a process has mapped ([`Binary`], read from any `Read + Seek`), the registers of a thread at
//! one instant and a copy of the bytes above its stack pointer. You get the addresses it would return to, leaf first, each
//! with the binary it lies in, and how the walk ended: at the root, or cut short and why ([`StackEnd`]).
//!
//! The walk itself is framehop's: call frame information of `.eh_frame` where a binary has it, frame pointers where not.
//! No file is opened here and no memory of another process is read.

mod aligned;

use std::fmt;
use std::io::{Read, Seek};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use framehop::{CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder as _, UnwinderNative};
use gimli::UnwindSection as _;
use longpole_model::{AbsAddr, CodeAddress, ContextRecord, MappingId, VirtOffset};
use object::elf::{self, PF_X};
use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};
use object::{Architecture, BinaryFormat, RelocationFlags, RelocationTarget, SectionKind, SegmentFlags, SymbolIndex};

use crate::python::{PythonSymbols, Version};

/// Largest section that is taken into memory: the `.eh_frame` of the largest browsers is below 30 MB.
const SECTION_BYTES_MAX: u64 = 256 << 20;

/// Largest `.debug_frame`, unpacked, that is worth its index: it is used only where there is no `.eh_frame` (Go), and the
/// index is built while the program already runs.
const DEBUG_FRAME_BYTES_MAX: u64 = 16 << 20;

/// Most frames of one stack. The smallest frame takes 8 bytes, so no copy of 16 KiB holds more.
const FRAMES_MAX: usize = 2048;

/// An address further above the copied bytes than this is not "deeper in the stack" but a register that was no frame
/// pointer: the default limit of a stack is 8 MiB, of a thread made by Rust 2 MiB.
const DEEPER_BYTES_MAX: u64 = 64 << 20;

/// framehop numbers the states of all address spaces of the program with 16 bits and finds rules in its cache by that
/// number, so a cache is thrown away before a number can come again.
const CHANGES_PER_CACHE: u64 = 60_000;

/// Counts what framehop's counter counts: address spaces made, modules added and removed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

type Bytes = Arc<[u8]>;
type EndianSlice<'b> = gimli::EndianSlice<'b, gimli::LittleEndian>;
type EhFrame<'b> = gimli::EhFrame<EndianSlice<'b>>;

/// Why a binary is of no use for unwinding, as a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BinaryError {
    /// The bytes are not an ELF file, or a damaged one.
    #[error("not a readable ELF file: {0}")]
    Malformed(String),
    /// It is code for another machine than this one (an emulated program, say).
    #[error("the code is for another machine ({0})")]
    OtherMachine(String),
}

/// One loadable segment: where bytes of the file lie in the address space the file states.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    file: Range<u64>,
    address: u64,
    executable: bool,
}

/// A section that is kept: where it lies and what is in it.
#[derive(Debug, Clone)]
struct Section {
    addresses: Range<u64>,
    bytes: Bytes,
}

/// What of one binary is needed to unwind through it and to name its addresses. Cheap to share by [`Arc`].
pub struct Binary {
    build_id: Vec<u8>,
    segments: Vec<Segment>,
    base: u64,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<Section>,
    eh_frame_hdr: Option<Section>,
    debug_frame: Option<Bytes>,
    /// Where handlers of signals return to, by the addresses the file states: the code that asks the kernel to go on where
    /// the signal came.
    signal_returns: Vec<Range<u64>>,
    /// Functions that align the stack and keep in a register where it was.
    aligned: Vec<Range<u64>>,
    /// What is called before all else and at the end: two pieces of code that are written by hand, without unwind information.
    init: [Range<u64>; 2],
    /// Where the program starts: code that nothing calls.
    entry: u64,
    python: Option<PythonSymbols>,
    thread_context: Option<ThreadVariable>,
    may_publish_context: bool,
    // The last module made of this binary. A binary that is not position independent lies at the same addresses in every
    // process; then its index (for those without `.eh_frame_hdr`) is built once.
    last_module: Mutex<Option<Module<Bytes>>>,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").field("build_id", &self.build_id).field("segments", &self.segments).finish_non_exhaustive()
    }
}

impl Binary {
    /// Where the function begins that holds this address, by the addresses the file states.
    fn function_start(&self, address: u64) -> Option<u64> {
        self.entry_of(address, |_, _, entry| Some(entry.initial_address()))
    }

    /// Takes from the entry of the unwind information that covers this address what is wanted of it.
    fn entry_of<T>(
        &self,
        address: u64,
        take: impl FnOnce(&EhFrame<'_>, &gimli::BaseAddresses, &gimli::FrameDescriptionEntry<EndianSlice<'_>>) -> Option<T>,
    ) -> Option<T> {
        let (table, frames) = (self.eh_frame_hdr.as_ref()?, self.eh_frame.as_ref()?);
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(table.addresses.start).set_eh_frame(frames.addresses.start);
        let parsed = gimli::EhFrameHdr::new(&table.bytes, gimli::LittleEndian).parse(&bases, 8).ok()?;
        let section = EhFrame::new(&frames.bytes, gimli::LittleEndian);
        let entry = parsed.table()?.fde_for_address(&section, &bases, address, EhFrame::cie_from_offset).ok()?;
        take(&section, &bases, &entry)
    }

    /// Reads headers, build id and unwind sections; only those ranges of the file are read.
    pub fn read<R: Read + Seek>(reader: R) -> Result<Binary, BinaryError> {
        let cache = ReadCache::new(reader);
        let file = object::File::parse(&cache).map_err(|e| BinaryError::Malformed(e.to_string().to_lowercase()))?;
        if file.format() != BinaryFormat::Elf {
            return Err(BinaryError::Malformed(format!("it is {:?}", file.format()).to_lowercase()));
        }
        let native = if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };
        if file.architecture() != native || !file.is_64() || !file.is_little_endian() {
            return Err(BinaryError::OtherMachine(format!("{:?}", file.architecture()).to_lowercase()));
        }
        let mut segments = Vec::new();
        for segment in file.segments() {
            let (offset, bytes) = segment.file_range();
            let executable = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
            segments.push(Segment { file: offset..offset.saturating_add(bytes), address: segment.address(), executable });
        }
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            if section.size() > SECTION_BYTES_MAX {
                return None;
            }
            let bytes: Bytes = section.data().ok()?.into();
            let addresses = section.address()..section.address().saturating_add(section.size());
            (!bytes.is_empty()).then_some(Section { addresses, bytes })
        };
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().saturating_add(section.size()))
        };
        let eh_frame = section(".eh_frame");
        let debug_frame = match eh_frame {
            Some(_) => None,
            None => file
                .section_by_name(".debug_frame")
                .and_then(|s| s.compressed_data().ok())
                .filter(|data| data.uncompressed_size <= DEBUG_FRAME_BYTES_MAX && data.data.len() as u64 <= DEBUG_FRAME_BYTES_MAX)
                .and_then(|data| data.decompress().ok())
                .filter(|bytes| !bytes.is_empty())
                .map(|bytes| Bytes::from(bytes.as_ref())),
        };
        Ok(Binary {
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            base: segments.iter().map(|s| s.address).min().unwrap_or(0),
            segments,
            text: range(".text"),
            got: range(".got"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            signal_returns: eh_frame.as_ref().map(signal_returns).unwrap_or_default(),
            aligned: eh_frame.as_ref().map(|section| aligned::functions(&file, section)).unwrap_or_default(),
            init: [".init", ".fini"].map(|name| range(name).unwrap_or_default()),
            entry: file.entry(),
            python: python_symbols(&file),
            thread_context: thread_variable(&file),
            may_publish_context: may_publish_context(&file),
            eh_frame,
            debug_frame,
            last_module: Mutex::new(None),
        })
    }

    /// GNU build id, empty where there is none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Where it holds an interpreter of Python, if it does.
    pub fn python(&self) -> Option<&PythonSymbols> {
        self.python.as_ref()
    }

    /// Where each thread has the variable of OpenTelemetry's thread context, if the binary defines it.
    pub fn thread_context(&self) -> Option<&ThreadVariable> {
        self.thread_context.as_ref()
    }

    /// Whether a thread may have a context record because of this binary.
    pub fn may_publish_context(&self) -> bool {
        self.may_publish_context
    }

    /// Where in the process an address that the file states lies, by a mapping that starts at `start` with the byte of the file at
    /// `file_offset`.
    pub fn address_in_process(&self, stated: u64, start: u64, file_offset: u64) -> Option<AbsAddr> {
        self.bias(start, file_offset).map(|bias| AbsAddr(stated.wrapping_add(bias)))
    }

    /// What must be subtracted (wrapping) from an address in the process to get the address the file states, for a mapping
    /// that starts at `start` with the byte of the file at `file_offset`. `None` where no segment of the file holds that byte.
    ///
    /// ```text
    /// file     |..headers..|=====text=====|          p_offset 0x1a40, p_vaddr 0x2a40
    /// pages    |     |     ^-- kernel maps from offset 0x1000, so 0x2000 is what `start` stands for
    /// ```
    fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        // The kernel maps whole pages, so the first byte mapped may lie before the segment; 64 KiB is the largest page.
        let holds = |s: &&Segment| (s.file.start & !0xffff) <= file_offset && file_offset < s.file.end;
        // Neighbouring segments may share a page of the file. Nearest start first, code before data.
        let nearest = |executable: bool| {
            self.segments.iter().filter(|s| s.executable == executable).filter(holds).min_by_key(|s| s.file.start.abs_diff(file_offset))
        };
        let segment = nearest(true).or_else(|| nearest(false))?;
        let stated = segment.address.wrapping_add(file_offset).wrapping_sub(segment.file.start);
        Some(start.wrapping_sub(stated))
    }

    fn module(&self, range: Range<u64>, bias: u64) -> Module<Bytes> {
        let mut last = self.last_module.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base.wrapping_add(bias);
        if let Some(module) = last.as_ref().filter(|m| m.avma_range() == range && m.base_avma() == base) {
            return module.clone();
        }
        let split = |section: &Option<Section>| match section {
            Some(section) => (Some(section.addresses.clone()), Some(Arc::clone(&section.bytes))),
            None => (None, None),
        };
        let (eh_frame_svma, eh_frame) = split(&self.eh_frame);
        let (eh_frame_hdr_svma, eh_frame_hdr) = split(&self.eh_frame_hdr);
        let module = Module::new(
            String::new(),
            range,
            base,
            ExplicitModuleSectionInfo {
                base_svma: self.base,
                text_svma: self.text.clone(),
                got_svma: self.got.clone(),
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                debug_frame: self.debug_frame.clone(),
                ..Default::default()
            },
        );
        *last = Some(module.clone());
        module
    }
}

/// Bytes of code at the entry of a program that may call on: it sets up the stack, calls once, and is written by hand, often
/// without unwind information.
const ENTRY_BYTES: u64 = 64;

/// Most functions of one kind: where handlers return to there is one in a C library, of those that align their stack nine in a loader.
const FUNCTIONS_MAX: usize = 16;

/// Largest `.eh_frame` that is looked through for them: a C library has 0.2 MB, a program with one built in some more.
const SIGNAL_SEARCH_BYTES_MAX: usize = 8 << 20;

/// Augmentations of call frame information that mark the frame of a signal, as compilers and assemblers spell them.
const SIGNAL_AUGMENTATIONS: [&[u8]; 2] = [b"zRS\0", b"zSR\0"];

/// Finds the code that handlers return to.
///
/// Only the C library has it, so a look for the bytes of the mark comes first: it spares all others the walk over thousands of entries.
fn signal_returns(eh_frame: &Section) -> Vec<Range<u64>> {
    // On other machines the kernel lays out the frame such that it reads as any other.
    if !cfg!(target_arch = "x86_64") || eh_frame.bytes.len() > SIGNAL_SEARCH_BYTES_MAX {
        return Vec::new();
    }
    if !eh_frame.bytes.windows(4).any(|four| four[0] == b'z' && SIGNAL_AUGMENTATIONS.contains(&four)) {
        return Vec::new();
    }
    functions_where(eh_frame, |_, _, entry| entry.cie().is_signal_trampoline())
}

/// The functions whose entry of the unwind information is such, by the addresses the file states: the first [`FUNCTIONS_MAX`].
fn functions_where(
    eh_frame: &Section,
    is_such: impl Fn(&EhFrame<'_>, &gimli::BaseAddresses, &gimli::FrameDescriptionEntry<EndianSlice<'_>>) -> bool,
) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let bases = gimli::BaseAddresses::default().set_eh_frame(eh_frame.addresses.start);
    let section = EhFrame::new(&eh_frame.bytes, gimli::LittleEndian);
    let mut entries = section.entries(&bases);
    while found.len() < FUNCTIONS_MAX
        && let Ok(Some(entry)) = entries.next()
    {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        if is_such(&section, &bases, &entry) {
            found.push(entry.initial_address()..entry.end_address());
        }
    }
    found
}

/// Largest table of names that is looked through for an interpreter: that of CPython has 50 KB.
const NAMES_BYTES_MAX: u64 = 1 << 20;

/// Where CPython keeps everything; it is exported for debuggers.
const PYTHON_RUNTIME: &str = "_PyRuntime";

/// The function that runs Python functions.
const PYTHON_EVAL: &str = "_PyEval_EvalFrameDefault";

/// Bytes of `PY_VERSION_HEX`, the value of `Py_Version`, which is a `long`.
const PYTHON_VERSION_BYTES: u64 = 8;

/// Finds the interpreter in a binary that has one.
///
/// Most have none, and their tables of symbols are long; so a look for the name itself comes first.
fn python_symbols<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<PythonSymbols> {
    if !has_dynamic_name(file, PYTHON_RUNTIME) {
        return None;
    }
    let mut found = PythonSymbols { runtime: 0, eval: Vec::new(), version: None };
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        match symbol.name() {
            Ok(PYTHON_RUNTIME) => found.runtime = symbol.address(),
            Ok("Py_Version") => found.version = python_version(file, symbol.address()),
            _ => {}
        }
    }
    // What the compiler moved elsewhere, `….cold`, is a symbol of its own, and a local one.
    for symbol in file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.is_definition()) {
        let is_eval = |name: &str| name.strip_prefix(PYTHON_EVAL).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let range = symbol.address()..symbol.address().saturating_add(symbol.size());
        if symbol.name().is_ok_and(is_eval) && !range.is_empty() && !found.eval.contains(&range) {
            found.eval.push(range);
        }
    }
    (found.runtime != 0 && !found.eval.is_empty()).then_some(found)
}

/// Whether the table of names holds this one: a look at its bytes, which is faster than going through the symbols.
fn has_dynamic_name<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, name: &str) -> bool {
    let section = file.section_by_name(".dynstr").filter(|names| names.size() <= NAMES_BYTES_MAX);
    let Some(names) = section.and_then(|section| section.data().ok()) else { return false };
    let wanted = name.as_bytes();
    let mut starts = names.iter().enumerate().filter(|(_, byte)| **byte == wanted[0]);
    starts.any(|(at, _)| names[at..].starts_with(wanted) && names.get(at + wanted.len()) == Some(&0))
}

/// The thread-local variable of OTEP 4947.
const THREAD_CONTEXT: &str = "otel_thread_ctx_v1";

/// Where a thread-local variable lies, as far as its binary says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadVariable {
    /// How far from the thread pointer, where the binary is the program itself.
    pub in_program: i64,
    /// Address, as the file states it, of a word that says so while the program runs: where the binary is a library whose storage is
    /// reserved in every thread, and small.
    pub word: Option<u64>,
}

/// Largest initial image of thread-local storage that is looked through.
const THREAD_IMAGE_BYTES_MAX: u64 = 1 << 20;

/// Whether the storage that each thread is given begins with a context record in it, as `docs/formats/span-context.md` asks for.
fn may_publish_context<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> bool {
    let holds = |section: object::Section<'d, '_, R>| {
        let is_large = section.size() > THREAD_IMAGE_BYTES_MAX;
        is_large || section.data().is_ok_and(|image| image.windows(ContextRecord::MAGIC.len()).any(|bytes| bytes == ContextRecord::MAGIC))
    };
    // One without a table of sections does not say.
    file.sections().next().is_none() || file.sections().filter(|section| section.kind() == SectionKind::Tls).any(holds)
}

fn thread_variable<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>) -> Option<ThreadVariable> {
    if !has_dynamic_name(file, THREAD_CONTEXT) {
        return None;
    }
    let symbol = file.dynamic_symbols().find(|symbol| !symbol.is_undefined() && symbol.name() == Ok(THREAD_CONTEXT))?;
    // What the segment of thread-local storage holds: its bytes, then its zeroes.
    let is_of_thread = |kind| matches!(kind, SectionKind::Tls | SectionKind::UninitializedTls);
    let sections = || file.sections().filter(|section| is_of_thread(section.kind()));
    let start = sections().map(|section| section.address()).min()?;
    let end = sections().map(|section| section.address().saturating_add(section.size())).max()?;
    let align = sections().map(|section| section.align()).max()?.max(1);
    let in_segment = symbol.address();
    let in_program = match file.architecture() {
        // Behind the two words that the thread pointer points to.
        Architecture::Aarch64 => 16u64.checked_next_multiple_of(align)?.checked_add(in_segment)?.cast_signed(),
        // Before it.
        _ => in_segment.wrapping_sub((end - start).checked_next_multiple_of(align)?).cast_signed(),
    };
    let is_it = |target, addend: i64| match target {
        RelocationTarget::Symbol(index) => index == symbol.index(),
        // Of the binary itself, by its place in the segment.
        _ => addend.cast_unsigned() == in_segment,
    };
    let mut words = file.dynamic_relocations()?.filter_map(|(at, relocation)| {
        let target = match relocation.target() {
            RelocationTarget::Symbol(SymbolIndex(0)) => RelocationTarget::Absolute,
            target => target,
        };
        let RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        let second = match r_type {
            // A function and its argument, which is the distance where the storage is reserved in every thread.
            elf::R_X86_64_TLSDESC if file.architecture() == Architecture::X86_64 => 8,
            elf::R_AARCH64_TLSDESC if file.architecture() == Architecture::Aarch64 => 8,
            elf::R_X86_64_TPOFF64 if file.architecture() == Architecture::X86_64 => 0,
            elf::R_AARCH64_TLS_TPREL if file.architecture() == Architecture::Aarch64 => 0,
            _ => return None,
        };
        is_it(target, relocation.addend()).then(|| at.wrapping_add(second))
    });
    Some(ThreadVariable { in_program, word: words.next() })
}

fn python_version<'d>(file: &object::File<'d, &'d ReadCache<impl Read + Seek>>, address: u64) -> Option<Version> {
    let section =
        file.sections().find(|section| (section.address()..section.address().saturating_add(section.size())).contains(&address))?;
    let value = section.data_range(address, PYTHON_VERSION_BYTES).ok()??;
    Some(Version::from_hex(u32::from_le_bytes(*value.first_chunk()?)))
}

/// What lies in an executable mapping.
#[derive(Debug, Clone)]
pub enum Code {
    /// A binary. Without its contents, addresses are told by their offset in the file.
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
struct Region {
    range: Range<u64>,
    code: Code,
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
    /// In no executable memory that is known.
    Unknown,
}

/// The executable mappings of one process. A clone is what `fork` makes.
#[derive(Clone)]
pub struct AddressSpace {
    /// Sorted by start, disjoint.
    regions: Vec<Region>,
    may_publish_context: bool,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
}

impl Default for AddressSpace {
    fn default() -> Self {
        CHANGES.fetch_add(1, Ordering::Relaxed);
        AddressSpace { regions: Vec::new(), may_publish_context: false, unwinder: UnwinderNative::new() }
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
        self.regions.iter().any(|r| {
            r.range == (range.start.0..range.end.0)
                && match (&r.code, code) {
                    (Code::Mapped { mapping: a, .. }, Code::Mapped { mapping: b, .. }) => a == b,
                    (Code::Anonymous, Code::Anonymous) => true,
                    _ => false,
                }
        })
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

    fn insert(&mut self, region: Region) {
        self.may_publish_context |= match &region.code {
            Code::Mapped { binary, .. } => binary.as_ref().is_none_or(|binary| binary.may_publish_context),
            Code::Anonymous => false,
        };
        let at = self.regions.partition_point(|r| r.range.start < region.range.start);
        if let Code::Mapped { binary: Some(binary), .. } = &region.code {
            self.unwinder.add_module(binary.module(region.range.clone(), region.bias));
            CHANGES.fetch_add(1, Ordering::Relaxed);
        }
        self.regions.insert(at, region);
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
    fn begins_near(&self, address: AbsAddr) -> bool {
        self.region(address).is_some_and(|region| region.is_entry(address) || region.function_start(address) == Some(address.0))
    }

    fn region(&self, address: AbsAddr) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.range.start <= address.0);
        after.checked_sub(1).map(|i| &self.regions[i]).filter(|r| address.0 < r.range.end)
    }
}

impl Region {
    fn place(&self, address: AbsAddr) -> Place {
        match &self.code {
            Code::Mapped { mapping, .. } => Place::Code { mapping: *mapping, address: VirtOffset(address.0.wrapping_sub(self.bias)) },
            Code::Anonymous => Place::Anonymous,
        }
    }

    /// Where the function begins that holds this address, as the unwind information has it.
    fn function_start(&self, address: AbsAddr) -> Option<u64> {
        Some(self.binary()?.function_start(address.0.wrapping_sub(self.bias))?.wrapping_add(self.bias))
    }

    /// Whether this is where the kernel started the program or its loader, so that there is no caller.
    fn is_entry(&self, address: AbsAddr) -> bool {
        let stated = address.0.wrapping_sub(self.bias);
        self.binary().is_some_and(|binary| stated.wrapping_sub(binary.entry) < ENTRY_BYTES && binary.entry != 0)
    }

    fn is_signal_return(&self, address: AbsAddr) -> bool {
        let stated = address.0.wrapping_sub(self.bias);
        self.binary().is_some_and(|binary| binary.signal_returns.iter().any(|range| range.contains(&stated)))
    }

    fn is_init(&self, address: AbsAddr) -> bool {
        let stated = address.0.wrapping_sub(self.bias);
        self.binary().is_some_and(|binary| binary.init.iter().any(|range| range.contains(&stated)))
    }

    fn binary(&self) -> Option<&Binary> {
        match &self.code {
            Code::Mapped { binary, .. } => binary.as_deref(),
            Code::Anonymous => None,
        }
    }
}

/// The registers an unwinder starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 on machines without one.
    pub lr: u64,
    /// rbx, in which few functions keep where the stack was before they aligned it; 0 on other machines, and where it is not known.
    pub bx: u64,
}

/// One entry of an unwound stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The address in the process.
    pub address: CodeAddress<AbsAddr>,
    /// Where the address to look up lies.
    pub place: Place,
    /// Where its part of the stack begins: at its stack pointer. It ends where that of the next frame begins.
    pub sp: u64,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackEnd {
    /// At the function that has no caller.
    Root,
    /// The stack is deeper than the bytes that were copied.
    Deeper {
        /// How many were copied.
        copied_bytes: u32,
    },
    /// The copy is shorter than asked, because memory was not there, and the walk left it.
    NotResident,
    /// The next frame would lie below the last one, or nowhere near the stack. A program that goes on on another stack (rustc does, where recursion is deep)
    /// ends so, too.
    Astray,
    /// The return address is in no code of the process.
    NotCode,
    /// A handler of signals that runs on a stack of its own, so what it interrupted was not copied.
    OtherStack,
    /// More frames than any real stack.
    TooMany,
    /// The unwind information led nowhere.
    BadInformation,
}

impl StackEnd {
    /// Whether only the number of copied bytes was too small.
    pub fn is_truncated(self) -> bool {
        matches!(self, StackEnd::Deeper { .. })
    }
}

impl fmt::Display for StackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackEnd::Root => f.write_str("complete"),
            StackEnd::Deeper { copied_bytes } if copied_bytes % 1024 == 0 => {
                write!(f, "stack is deeper than the {} KiB that were copied", copied_bytes / 1024)
            }
            StackEnd::Deeper { copied_bytes } => write!(f, "stack is deeper than the {copied_bytes} bytes that were copied"),
            StackEnd::NotResident => f.write_str("part of the stack could not be copied"),
            StackEnd::Astray => f.write_str("the next frame is not here: on another stack, or no unwind information and no frame pointer"),
            StackEnd::NotCode => f.write_str("the return address is not in code: no unwind information and no frame pointer"),
            StackEnd::OtherStack => f.write_str("the signal handler runs on a stack of its own"),
            StackEnd::TooMany => write!(f, "more than {FRAMES_MAX} frames"),
            StackEnd::BadInformation => f.write_str("the unwind information leads nowhere"),
        }
    }
}

/// Walks stacks. Keeps what it learned about addresses, so one of them serves all processes of a recording.
pub struct StackWalker {
    cache: CacheNative<MayAllocateDuringUnwind>,
    made_at: u64,
}

impl Default for StackWalker {
    fn default() -> Self {
        StackWalker { cache: CacheNative::default(), made_at: CHANGES.load(Ordering::Relaxed) }
    }
}

impl fmt::Debug for StackWalker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackWalker").finish_non_exhaustive()
    }
}

impl StackWalker {
    /// A walker that knows nothing yet.
    pub fn new() -> Self {
        StackWalker::default()
    }

    /// Walks one stack; `frames` is emptied and filled leaf first.
    ///
    /// `stack` holds the bytes at `registers.sp` and above that were really copied; `asked_bytes` is how many should have
    /// been, which tells a deep stack from missing memory.
    pub fn walk(
        &mut self,
        space: &AddressSpace,
        registers: &Registers,
        stack: &[u8],
        asked_bytes: u32,
        frames: &mut Vec<Frame>,
    ) -> StackEnd {
        frames.clear();
        if CHANGES.load(Ordering::Relaxed) - self.made_at >= CHANGES_PER_CACHE {
            *self = StackWalker::default();
        }
        // framehop interprets bytes of foreign files. It is careful, but sums that overflow are panics in builds with checks.
        match catch_unwind(AssertUnwindSafe(|| walk(space, registers, stack, asked_bytes, &mut self.cache, frames))) {
            Ok(end) => end,
            Err(_) => {
                *self = StackWalker::default();
                StackEnd::BadInformation
            }
        }
    }
}

/// Bytes in which the innermost function with a frame pointer is looked for, from where its frame begins.
const FRAME_POINTER_WITHIN: usize = 2048;

/// No address of any stack. Zero would be the end of a chain of frame pointers, and so a root.
const NO_FRAME_POINTER: u64 = 8;

/// Places that are tried as the innermost frame pointer.
const FRAME_POINTERS_MAX: usize = 6;

impl StackWalker {
    /// Walks the stack of a thread that sleeps, of which only instruction and stack pointer are known.
    ///
    /// A function with a frame pointer needs its value. It points to where the caller's was saved, below the return address:
    ///
    /// ```text
    /// sp  |..frames without..| saved fp | return address |..frame..| saved fp | return address |..
    ///                          ^ what is looked for
    /// ```
    ///
    /// The code in front of the true return address is a call, of the function whose frame it is, if it says which; `read` fills the
    /// bytes from the memory of the process, or says that it cannot. Where it names another function, an earlier call has left the
    /// pair behind. Where it does not say, the saved word mostly leads further up the stack, as in a chain of frame pointers; the
    /// outermost function with a frame pointer saved a word of any kind. The first place from which the walk comes to its root is
    /// taken, else the one from which it comes furthest.
    pub fn walk_asleep(
        &mut self,
        space: &AddressSpace,
        (ip, sp): (u64, u64),
        stack: &[u8],
        frames: &mut Vec<Frame>,
        mut read: impl FnMut(u64, &mut [u8]) -> bool,
    ) -> StackEnd {
        let asked = stack.len() as u32;
        let registers = |fp| Registers { ip, sp, fp, ..Registers::default() };
        let mut end = self.walk(space, &registers(NO_FRAME_POINTER), stack, asked, frames);
        let Some(innermost) = frames.last().copied().filter(|_| end != StackEnd::Root) else { return end };
        let callee = innermost.address.for_lookup();
        let callee = space.region(callee).and_then(|region| region.function_start(callee));
        let mut candidates: Vec<(u8, u64)> = frame_pointers(space, (sp, stack), innermost.sp)
            .filter_map(|(at, leads_up, returns)| match called(space, returns, &mut read) {
                Called::Function(start) if callee.is_some() => (callee == Some(start)).then_some((0, at)),
                Called::Nobody => None,
                _ if space.begins_near(AbsAddr(returns)) => Some((3, at)),
                _ => Some((if leads_up { 1 } else { 2 }, at)),
            })
            .collect();
        // Those whose code says so first. Last those at the beginning of a function or of the program: mostly pointers to it, and what
        // calls `main` is no function with a frame pointer.
        candidates.sort_unstable();
        let mut tried = Vec::new();
        for (_, fp) in candidates.into_iter().take(FRAME_POINTERS_MAX) {
            let this = self.walk(space, &registers(fp), stack, asked, &mut tried);
            if this == StackEnd::Root || tried.len() > frames.len() {
                end = this;
                std::mem::swap(frames, &mut tried);
            }
            if end == StackEnd::Root {
                break;
            }
        }
        end
    }
}

/// Whom the code in front of an address calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Called {
    /// The function that starts there.
    Function(u64),
    /// It is a call that does not say whose, or of a stub of the linker, which jumps to a function.
    Somebody,
    /// There is no call, so no return address either.
    Nobody,
    /// The code cannot be read.
    Unknown,
}

/// Bytes of the longest call whose length its first bytes tell: `call [register + register * scale + disp32]`.
const CALL_BYTES_MAX: usize = 7;

fn called(space: &AddressSpace, returns: u64, read: &mut impl FnMut(u64, &mut [u8]) -> bool) -> Called {
    let mut code = [0; CALL_BYTES_MAX];
    if !cfg!(target_arch = "x86_64") || !returns.checked_sub(CALL_BYTES_MAX as u64).is_some_and(|start| read(start, &mut code)) {
        return Called::Unknown;
    }
    let [_, c0, c1, d0, d1, d2, d3] = code;
    let operand = returns.wrapping_add_signed(i32::from_le_bytes([d0, d1, d2, d3]).into());
    let target = match (c0, c1) {
        // call rel32
        (_, 0xe8) => operand,
        // call [rip + rel32]: the global offset table
        (0xff, 0x15) => {
            let mut slot = [0; 8];
            if !read(operand, &mut slot) {
                return Called::Somebody;
            }
            u64::from_le_bytes(slot)
        }
        _ if calls_by_register(&code) => return Called::Somebody,
        _ => return Called::Nobody,
    };
    let start = space.region(AbsAddr(target)).and_then(|region| region.function_start(AbsAddr(target)));
    if start == Some(target) { Called::Function(target) } else { Called::Somebody }
}

/// Whether these bytes end in a call of what a register holds or points to: `ff /2`, in each of its lengths.
fn calls_by_register(code: &[u8; CALL_BYTES_MAX]) -> bool {
    // Bits of the second byte: how long the displacement is, 2 for a call, the register; register 4 stands for one byte more.
    let is_call = |bytes: usize, displacement: u8, has_scale: bool| {
        let at = CALL_BYTES_MAX - bytes;
        let (opcode, operand) = (code[at], code[at + 1]);
        let is_plain = displacement == 3 || has_scale == (operand & 7 == 4);
        opcode == 0xff && operand >> 6 == displacement && operand >> 3 & 7 == 2 && is_plain
    };
    is_call(2, 3, false)
        || is_call(2, 0, false)
        || is_call(3, 0, true)
        || is_call(3, 1, false)
        || is_call(4, 1, true)
        || is_call(6, 2, false)
        || is_call(7, 2, true)
}

/// Where a frame pointer may have been saved below a return address, from `above` on: the place, whether the saved word leads further
/// up, and the return address.
fn frame_pointers<'a>(space: &'a AddressSpace, (sp, stack): (u64, &'a [u8]), above: u64) -> impl Iterator<Item = (u64, bool, u64)> + 'a {
    let skipped = usize::try_from(above.saturating_sub(sp)).unwrap_or(usize::MAX).min(stack.len());
    let words = stack[skipped..stack.len().min(skipped.saturating_add(FRAME_POINTER_WITHIN))].chunks_exact(8);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let pairs = words.clone().zip(words.skip(1)).enumerate();
    pairs.filter_map(move |(place, (saved, returns))| {
        let at = sp.checked_add(skipped as u64)?.checked_add(place as u64 * 8)?;
        let leads_up = saved == 0 || (saved > at && saved - at < DEEPER_BYTES_MAX && saved % 8 == 0);
        (returns != 0 && space.region(AbsAddr(returns - 1)).is_some()).then_some((at, leads_up, returns))
    })
}

#[cfg(target_arch = "x86_64")]
fn native_registers(_space: &AddressSpace, registers: &Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.ip, registers.sp, registers.fp)
}

/// Return addresses may be signed in their upper bits; code lies below the highest known address.
#[cfg(target_arch = "aarch64")]
fn native_registers(space: &AddressSpace, registers: &Registers) -> framehop::UnwindRegsNative {
    let highest = space.unwinder.max_known_code_address().max(1 << 39);
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(highest);
    framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp)
}

fn walk(
    space: &AddressSpace,
    registers: &Registers,
    stack: &[u8],
    asked_bytes: u32,
    cache: &mut CacheNative<MayAllocateDuringUnwind>,
    frames: &mut Vec<Frame>,
) -> StackEnd {
    let mut read = |address: u64| {
        let at = usize::try_from(address.checked_sub(registers.sp).ok_or(())?).map_err(|_| ())?;
        let word = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
        Ok(u64::from_le_bytes(word.try_into().map_err(|_| ())?))
    };
    let mut native = native_registers(space, registers);
    let mut at = FrameAddress::from_instruction_pointer(registers.ip);
    let leaf = AbsAddr(registers.ip);
    let mut region = space.region(leaf);
    frames.push(Frame { address: CodeAddress::Instruction(leaf), place: place(region, leaf), sp: registers.sp });
    // While the kernel takes back what a handler interrupted, the instruction pointer is behind the call.
    let behind_call = AbsAddr(leaf.0.saturating_sub(1));
    let mut returns_from_signal = region.is_some_and(|region| region.is_signal_return(leaf) || region.is_signal_return(behind_call));
    loop {
        if returns_from_signal {
            let Some(interrupted) = interrupted_registers(native.sp(), &mut read) else {
                return StackEnd::Deeper { copied_bytes: asked_bytes };
            };
            let ip = AbsAddr(interrupted.ip);
            region = space.region(ip);
            frames.push(Frame { address: CodeAddress::Instruction(ip), place: place(region, ip), sp: interrupted.sp });
            let copied = registers.sp..registers.sp.saturating_add(stack.len() as u64);
            if !copied.contains(&interrupted.sp) {
                return StackEnd::OtherStack;
            }
            native = native_registers(space, &interrupted);
            at = FrameAddress::from_instruction_pointer(interrupted.ip);
        }
        let before = native;
        let unwound = match aligned::caller(space, region, (frames, frame_pointer(&native)), registers, &mut read) {
            Some(caller) => {
                native = native_registers(space, &caller);
                Ok(Some(caller.ip))
            }
            None => space.unwinder.unwind_frame(at, &mut native, cache, &mut read),
        };
        let caller = match unwound {
            Ok(Some(caller)) => caller,
            Ok(None) | Err(_) if let Some(caller) = beyond_word(space, (region, frames), &before, &mut read) => {
                native = native_registers(space, &caller);
                caller.ip
            }
            Ok(None) => return StackEnd::Root,
            Err(_) if is_entry(space, frames) => return StackEnd::Root,
            Err(error) => return end_of_error(error, registers.sp, stack.len(), asked_bytes),
        };
        let mut address = CodeAddress::Return(AbsAddr(caller));
        let mut caller = caller;
        let of = std::mem::replace(&mut region, space.region(address.for_lookup()));
        // framehop takes a function without unwind information for one that has saved nothing yet, if it is the innermost.
        if region.is_none()
            && let Some(linked) =
                beyond_word(space, (of, frames), &before, &mut read).or_else(|| by_frame_pointer(space, &before, &mut read))
        {
            native = native_registers(space, &linked);
            caller = linked.ip;
            address = CodeAddress::Return(AbsAddr(caller));
            region = space.region(address.for_lookup());
        }
        let Some(known) = region else {
            if is_entry(space, frames) {
                return StackEnd::Root;
            }
            // The kernel reports every executable mapping, so this is no return address but another word of the stack.
            return StackEnd::NotCode;
        };
        if frames.len() + 1 >= FRAMES_MAX {
            return StackEnd::TooMany;
        }
        returns_from_signal = known.is_signal_return(address.for_lookup());
        if returns_from_signal {
            // Nobody has called it: the kernel has a handler return to its first instruction.
            address = CodeAddress::Instruction(AbsAddr(caller));
        }
        frames.push(Frame { address, place: known.place(address.for_lookup()), sp: native.sp() });
        at = match FrameAddress::from_return_address(caller) {
            Some(next) => next,
            None => return StackEnd::Root,
        };
    }
}

fn place(region: Option<&Region>, address: AbsAddr) -> Place {
    region.map_or(Place::Unknown, |region| region.place(address))
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(native: &framehop::UnwindRegsNative) -> u64 {
    native.bp()
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(native: &framehop::UnwindRegsNative) -> u64 {
    native.fp()
}

/// The caller by the frame pointer, where that leads to a saved one and a return address into code.
fn by_frame_pointer(
    space: &AddressSpace,
    native: &framehop::UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let fp = frame_pointer(native);
    if fp < native.sp() || !fp.is_multiple_of(8) {
        return None;
    }
    let (saved, ip) = (read(fp).ok()?, read(fp.checked_add(8)?).ok()?);
    space.region(AbsAddr(ip.checked_sub(1)?))?;
    Some(Registers { ip, sp: fp.checked_add(16)?, fp: saved, ..Registers::default() })
}

/// The caller of a piece of code without unwind information that lowers the stack pointer by a word, calls on, and returns. What gives
/// it away is a return address where it then must be. There are two of the kind: what a binary has in `.init` and `.fini`, and code that
/// was made at run time and has no frame pointer: CPython has one for each function when it is asked to help perf.
#[cfg(target_arch = "x86_64")]
fn beyond_word(
    space: &AddressSpace,
    (region, frames): (Option<&Region>, &[Frame]),
    native: &framehop::UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let last = frames.last()?;
    let is_trampoline = frames.len() > 1 && last.place == Place::Anonymous;
    if !is_trampoline && !region.is_some_and(|region| region.is_init(last.address.for_lookup())) {
        return None;
    }
    let ip = read(native.sp().checked_add(8)?).ok()?;
    let is_code = matches!(space.region(AbsAddr(ip.checked_sub(1)?))?.code, Code::Mapped { .. });
    is_code.then_some(Registers { ip, sp: native.sp().checked_add(16)?, fp: native.bp(), ..Registers::default() })
}

#[cfg(not(target_arch = "x86_64"))]
fn beyond_word(
    _space: &AddressSpace,
    _of: (Option<&Region>, &[Frame]),
    _native: &framehop::UnwindRegsNative,
    _read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    None
}

fn is_entry(space: &AddressSpace, frames: &[Frame]) -> bool {
    frames.last().map(|frame| frame.address.for_lookup()).is_some_and(|at| space.region(at).is_some_and(|region| region.is_entry(at)))
}

/// The registers that the kernel saved on the stack for a handler, which lie just above its return address: a `ucontext`
/// whose machine context starts at byte 40 (r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip).
fn interrupted_registers(sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Registers> {
    let mut saved = |offset: u64| read(sp.checked_add(offset)?).ok();
    Some(Registers { ip: saved(168)?, sp: saved(160)?, fp: saved(120)?, bx: saved(128)?, lr: 0 })
}

fn end_of_error(error: framehop::Error, sp: u64, copied: usize, asked_bytes: u32) -> StackEnd {
    match error {
        framehop::Error::CouldNotReadStack(address) => {
            let top = sp.saturating_add(copied as u64);
            let near = address >= sp && address < top.saturating_add(DEEPER_BYTES_MAX);
            match (near, copied as u64 >= u64::from(asked_bytes)) {
                (true, true) => StackEnd::Deeper { copied_bytes: asked_bytes },
                (true, false) => StackEnd::NotResident,
                (false, _) => StackEnd::Astray,
            }
        }
        framehop::Error::FramepointerUnwindingMovedBackwards => StackEnd::Astray,
        framehop::Error::ReturnAddressIsNull => StackEnd::Root,
        framehop::Error::DidNotAdvance | framehop::Error::IntegerOverflow => StackEnd::BadInformation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Cursor;

    fn own_program() -> Vec<u8> {
        fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_binary_states_its_addresses_wherever_it_is_mapped() {
        let binary = Arc::new(Binary::read(Cursor::new(own_program())).unwrap());
        assert!(binary.eh_frame.is_some() && binary.eh_frame_hdr.is_some());
        let code = binary.segments.iter().find(|s| s.executable).unwrap().clone();
        let page_start = code.file.start & !0xfff;
        let mut space = AddressSpace::new();
        let start = 0x7f00_0000_0000;
        let code_of = |mapping| Code::Mapped { mapping, binary: Some(Arc::clone(&binary)) };
        space.map(AbsAddr(start)..AbsAddr(start + 0x10_0000), page_start, code_of(MappingId(3)));
        let into_segment = code.file.start - page_start + 0x40;
        let place = space.locate(AbsAddr(start + into_segment));
        assert_eq!(place, Place::Code { mapping: MappingId(3), address: VirtOffset(code.address + 0x40) });
        assert_eq!(space.locate(AbsAddr(start - 1)), Place::Unknown);
        assert_eq!(space.locate(AbsAddr(start + 0x10_0000)), Place::Unknown);
    }

    #[test]
    fn without_its_contents_a_binary_is_told_by_offsets_of_its_file() {
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x5000)..AbsAddr(0x6000), 0x2000, Code::Mapped { mapping: MappingId(0), binary: None });
        assert_eq!(space.locate(AbsAddr(0x5123)), Place::Code { mapping: MappingId(0), address: VirtOffset(0x2123) });
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

    /// Frames that are linked by frame pointers, in code without unwind information; the words of the stack from `SP` up.
    fn walk_words(words: &[u64], asked_bytes: u32) -> (Vec<u64>, StackEnd) {
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x40_0000)..AbsAddr(0x50_0000), 0, Code::Anonymous);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let registers = Registers { ip: 0x40_1000, sp: SP, fp: SP + 16, ..Registers::default() };
        let mut frames = Vec::new();
        let end = StackWalker::new().walk(&space, &registers, &bytes, asked_bytes, &mut frames);
        let addresses = frames.iter().map(|f| match f.address {
            CodeAddress::Instruction(at) | CodeAddress::Return(at) => at.0,
        });
        (addresses.collect(), end)
    }

    const SP: u64 = 0x7ffc_0000_0000;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn each_way_a_walk_can_end_is_told() {
        // A local, another, then saved frame pointer and return address, and so on.
        let linked = |last_fp, last_return| [1, 2, SP + 48, 0x40_2000, 3, 4, last_fp, last_return, 5];
        let walk = |words: &[u64], asked| walk_words(words, asked);
        assert_eq!(walk(&linked(0, 0x40_3000), 72), (vec![0x40_1000, 0x40_2000, 0x40_3000], StackEnd::Root));
        assert_eq!(walk(&linked(SP + 96, 0x40_3000), 72).1, StackEnd::Deeper { copied_bytes: 72 });
        assert_eq!(walk(&linked(SP + 96, 0x40_3000), 16 << 10).1, StackEnd::NotResident);
        assert_eq!(walk(&linked(0x1234_5678, 0x40_3000), 72).1, StackEnd::Astray);
        assert_eq!(walk(&linked(0x7ff0_0000_0000_0000, 0x40_3000), 72).1, StackEnd::Astray);
        assert_eq!(walk(&linked(0, 0x99_0000), 72), (vec![0x40_1000, 0x40_2000], StackEnd::NotCode));
        assert_eq!(walk(&[], 72).1, StackEnd::NotResident);
        for end in
            [StackEnd::Deeper { copied_bytes: 16 << 10 }, StackEnd::NotResident, StackEnd::Astray, StackEnd::NotCode, StackEnd::OtherStack]
        {
            assert!(end.to_string().starts_with(char::is_lowercase), "{end}");
        }
        assert_eq!(StackEnd::Deeper { copied_bytes: 16 << 10 }.to_string(), "stack is deeper than the 16 KiB that were copied");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_trampoline_without_a_frame_pointer_is_seen_through() {
        let mut space = AddressSpace::new();
        space.map(AbsAddr(0x40_0000)..AbsAddr(0x41_0000), 0, Code::Anonymous);
        space.map(AbsAddr(0x41_0000)..AbsAddr(0x50_0000), 0, Code::Mapped { mapping: MappingId(0), binary: None });
        // Locals, saved frame pointer and return address into the trampoline; its word; the return address into its caller; and there
        // locals, frame pointer and return address again.
        let walk = |saved_fp: u64| {
            let words = [1, 2, saved_fp, 0x40_2000, 7, 0x41_3000, 3, 4, 0, 0x41_4000];
            let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
            let registers = Registers { ip: 0x42_0000, sp: SP, fp: SP + 16, ..Registers::default() };
            let mut frames = Vec::new();
            let end = StackWalker::new().walk(&space, &registers, &bytes, 80, &mut frames);
            let places: Vec<u64> = frames.iter().map(|frame| frame.address.for_lookup().0).collect();
            (places, frames.last().unwrap().sp - SP, end)
        };
        // What is in the frame pointer is somebody's number, or nothing.
        for number in [0x1234, 0] {
            let (places, sp, _) = walk(number);
            assert_eq!((&places[..3], sp), (&[0x42_0000, 0x40_1fff, 0x41_2fff][..], 48), "{number:x}");
        }
    }

    #[test]
    fn what_is_no_binary_says_so() {
        let error = |bytes: &[u8]| Binary::read(Cursor::new(bytes.to_vec())).unwrap_err().to_string();
        assert!(error(b"").starts_with("not a readable ELF file"), "{}", error(b""));
        assert!(error(b"#!/bin/sh\n").starts_with("not a readable ELF file"));
        let mut other = own_program();
        // The machine: RISC-V.
        other[18] = 243;
        assert!(error(&other).starts_with("the code is for another machine (riscv"), "{}", error(&other));
    }

    #[test]
    fn damaged_binaries_are_survived_also_when_unwound_through() {
        // The program without its debug information is small enough to be damaged many times.
        let whole = own_program();
        let headers = whole.len() - 64 * 64;
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let mut bytes = whole.clone();
        let binary = Binary::read(Cursor::new(whole.clone())).unwrap();
        let eh_frame = binary.eh_frame.as_ref().unwrap().addresses.clone();
        let stack: Vec<u8> = (0..512u64).flat_map(|i| (0x40_0000 + (i * 0x1337) % 0x10_0000).to_le_bytes()).collect();
        let mut walker = StackWalker::new();
        let mut frames = Vec::new();
        for _ in 0..60 {
            let mut undo = Vec::new();
            for _ in 0..8 {
                // File header, program headers, section headers, unwind information.
                let at = match random() % 3 {
                    0 => random() as usize % 1024,
                    1 => headers + random() as usize % (whole.len() - headers),
                    _ => (eh_frame.start + random() % (eh_frame.end - eh_frame.start)) as usize % whole.len(),
                };
                undo.push((at, whole[at]));
                bytes[at] = random() as u8;
            }
            if let Ok(binary) = Binary::read(Cursor::new(&bytes)) {
                let mut space = AddressSpace::new();
                let code = Code::Mapped { mapping: MappingId(0), binary: Some(Arc::new(binary)) };
                space.map(AbsAddr(0x40_0000)..AbsAddr(0x50_0000), random() % 0x10_0000, code);
                for _ in 0..20 {
                    let (ip, fp, bx) = (0x40_0000 + random() % 0x10_0000, SP + random() % 5000, SP + random() % 5000);
                    let registers = Registers { ip, sp: SP, fp, lr: 0x40_0010, bx };
                    walker.walk(&space, &registers, &stack, 4096, &mut frames);
                    assert!(frames.len() <= FRAMES_MAX);
                }
            }
            for (at, byte) in undo {
                bytes[at] = byte;
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn calls_by_a_register_are_known_by_their_bytes() {
        let ends_in = |code: &[u8]| {
            let mut bytes = [0x90; CALL_BYTES_MAX];
            bytes[CALL_BYTES_MAX - code.len()..].copy_from_slice(code);
            calls_by_register(&bytes)
        };
        // call rax; call r12; call [rbx]; call [rbx + 8]; call [r12 + 8]; call [rbx + 0x1000]; call [rax + rcx * 8 + 0x1000]; call [rsp]
        let calls: [&[u8]; 8] = [
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x13],
            &[0xff, 0x53, 0x08],
            &[0x41, 0xff, 0x54, 0x24, 0x08],
            &[0xff, 0x93, 0, 0x10, 0, 0],
            &[0xff, 0x94, 0xc8, 0, 0x10, 0, 0],
            &[0xff, 0x14, 0x24],
        ];
        assert_eq!(calls.map(ends_in), [true; 8]);
        // jmp rax; push [rbx]; inc eax; nothing
        let others: [&[u8]; 4] = [&[0xff, 0xe0], &[0xff, 0x33], &[0xff, 0xc0], &[]];
        assert_eq!(others.map(ends_in), [false; 4]);
    }
}
