//! What is read of a binary once, so that stacks can be unwound through it wherever it is mapped.

use std::fmt;
use std::io::{Read, Seek};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use framehop::{ExplicitModuleSectionInfo, Module};
use gimli::{UnwindContext, UnwindSection as _, UnwindTableRow};
use longpole_model::AbsAddr;
use object::elf::PF_X;
use object::read::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache};
use object::{Architecture, BinaryFormat, SegmentFlags};

use crate::eh_frame::{Bytes, EhFrame, EndianSlice, LongEntries, Section, checked, is_good_debug_frame};
use crate::go::GoProgram;
use crate::hotspot::HotSpotSymbols;
use crate::javascript::HeapLayout;
use crate::object::Metered;
use crate::probe::go::go_program;
use crate::probe::hotspot::hotspot_symbols;
use crate::probe::otel_thread::{ThreadVariable, may_publish_context, thread_variable};
use crate::probe::python::python_symbols;
use crate::probe::realigning;
use crate::probe::signal_return::signal_returns;
use crate::probe::v8;
use crate::python::PythonSymbols;

/// Largest section that is taken into memory: the `.eh_frame` of the largest browsers is below 30 MB.
const SECTION_BYTES_MAX: u64 = 64 << 20;

/// Bytes that are read of a binary: its unwind information, and the names of some hundred thousand symbols of an interpreter, 256 bytes each.
/// A file can have holes, and be much longer than what it takes on a disk.
const READ_BYTES_MAX: u64 = 256 << 20;

/// Largest build id: linkers make 8 to 32 bytes. A longer one counts as none: each mapping of the recording keeps its own, and a file with a hole
/// can have one of 200 MiB.
const BUILD_ID_BYTES_MAX: usize = 64;

/// Places at which a binary without `.eh_frame` is unwound by its `.debug_frame`: framehop builds an index for each. Programs of Go are at one.
const DEBUG_FRAME_PLACES_MAX: u8 = 16;

/// Largest `.debug_frame`, unpacked, that is worth its index: it is used only where there is no `.eh_frame` (Go), and the
/// index is built while the program already runs.
const DEBUG_FRAME_BYTES_MAX: u64 = 16 << 20;

/// Bytes of code at the entry of a program that may call on: it sets up the stack, calls once, and is written by hand, often
/// without unwind information.
const ENTRY_BYTES: u64 = 64;

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
pub(super) struct Segment {
    pub(super) file: Range<u64>,
    pub(super) address: u64,
    pub(super) executable: bool,
}

/// What of one binary is needed to unwind through it and to name its addresses. Cheap to share by [`Arc`].
pub struct Binary {
    build_id: Vec<u8>,
    pub(super) segments: Vec<Segment>,
    base: u64,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    debug_frame: Option<Bytes>,
    pub(super) long_entries: LongEntries,
    /// Where handlers of signals return to, by the addresses the file states: the code that asks the kernel to go on where
    /// the signal came.
    signal_returns: Vec<Range<u64>>,
    /// Functions that align the stack and keep in a register where it was.
    realigning: Vec<Range<u64>>,
    /// What is called before all else and at the end: two pieces of code that are written by hand, without unwind information.
    init: [Range<u64>; 2],
    /// Where the program starts: code that nothing calls.
    entry: u64,
    python: Option<PythonSymbols>,
    javascript: Option<Arc<HeapLayout>>,
    go: Option<Arc<GoProgram>>,
    hotspot: Option<HotSpotSymbols>,
    thread_context: Option<ThreadVariable>,
    may_publish_context: bool,
    // The last module made of this binary. A binary that is not position independent lies at the same addresses in every
    // process; then its index (of a `.debug_frame`) is built once.
    last_module: Mutex<Option<Module<Bytes>>>,
    /// Places at which its `.debug_frame` may still be used.
    debug_frame_places: AtomicU8,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").field("build_id", &self.build_id).field("segments", &self.segments).finish_non_exhaustive()
    }
}

impl Binary {
    /// Where the function begins that holds this address, by the addresses the file states.
    pub(super) fn function_start(&self, address: u64) -> Option<u64> {
        self.entry_of(address, |_, _, entry| Some(entry.initial_address()))
    }

    /// Steps that a frame at this address costs at most, beside its expressions.
    pub(super) fn steps(&self, stated: u64) -> u64 {
        self.long_entries.steps(stated)
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

    /// Takes from the row of the unwind information that holds at this address what is wanted of it.
    pub(super) fn row<T>(&self, address: u64, take: impl FnOnce(&UnwindTableRow<usize>) -> Option<T>) -> Option<T> {
        self.row_with_section(address, |row, _, _| take(row))
    }

    /// The same, with what it takes to read an expression of the row.
    pub(super) fn row_with_section<T>(
        &self,
        address: u64,
        take: impl FnOnce(&UnwindTableRow<usize>, &EhFrame<'_>, gimli::Encoding) -> Option<T>,
    ) -> Option<T> {
        self.entry_of(address, |section, bases, entry| {
            let mut context = UnwindContext::new();
            let row = entry.unwind_info_for_address(section, bases, &mut context, address).ok()?;
            take(row, section, entry.cie().encoding())
        })
    }

    /// Reads headers, build id and unwind sections; only those ranges of the file are read.
    ///
    /// # Errors
    ///
    /// The file is no ELF file, or a damaged one, or holds code for another machine.
    pub fn read<R: Read + Seek>(reader: R) -> Result<Binary, BinaryError> {
        Binary::read_within(reader, SECTION_BYTES_MAX)
    }

    /// The same without unwind information, if its sections have more than this number of bytes.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read).
    pub fn read_within<R: Read + Seek>(reader: R, section_bytes_max: u64) -> Result<Binary, BinaryError> {
        let section_bytes_max = section_bytes_max.min(SECTION_BYTES_MAX);
        let cache = ReadCache::new(Metered::limited(reader, READ_BYTES_MAX));
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
            if section.size() > section_bytes_max {
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
        let (eh_frame, eh_frame_hdr) = section(".eh_frame").and_then(|entries| checked(entries, section(".eh_frame_hdr"))).unzip();
        let has_eh_frame = file.section_by_name(".eh_frame").is_some_and(|section| section.size() > 0);
        let debug_frame = match eh_frame {
            Some(_) => None,
            None if has_eh_frame => None,
            None => file
                .section_by_name(".debug_frame")
                .and_then(|s| s.compressed_data().ok())
                .filter(|data| {
                    data.uncompressed_size <= DEBUG_FRAME_BYTES_MAX.min(section_bytes_max)
                        && data.data.len() as u64 <= DEBUG_FRAME_BYTES_MAX
                })
                .and_then(|data| data.decompress().ok())
                .filter(|bytes| !bytes.is_empty() && is_good_debug_frame(bytes))
                .map(|bytes| Bytes::from(bytes.as_ref())),
        };
        let long_entries = match (&eh_frame, &debug_frame) {
            (Some(section), _) => LongEntries::of_eh_frame(section),
            (None, Some(bytes)) => LongEntries::of_debug_frame(bytes),
            (None, None) => LongEntries::default(),
        };
        Ok(Binary {
            build_id: file.build_id().ok().flatten().filter(|id| id.len() <= BUILD_ID_BYTES_MAX).unwrap_or_default().to_vec(),
            base: segments.iter().map(|s| s.address).min().unwrap_or(0),
            segments,
            text: range(".text"),
            got: range(".got"),
            eh_frame_hdr,
            signal_returns: eh_frame.as_ref().map(signal_returns).unwrap_or_default(),
            realigning: eh_frame.as_ref().map(|section| realigning::functions(&file, section)).unwrap_or_default(),
            init: [".init", ".fini"].map(|name| range(name).unwrap_or_default()),
            entry: file.entry(),
            python: python_symbols(&file),
            javascript: v8::layout(&file).map(Arc::new),
            go: go_program(&file).map(Arc::new),
            hotspot: hotspot_symbols(&file),
            thread_context: thread_variable(&file),
            may_publish_context: may_publish_context(&file),
            eh_frame,
            debug_frame,
            long_entries,
            last_module: Mutex::new(None),
            debug_frame_places: AtomicU8::new(DEBUG_FRAME_PLACES_MAX),
        })
    }

    /// Bytes that are kept of the file.
    pub fn kept_bytes(&self) -> u64 {
        let sections = [&self.eh_frame, &self.eh_frame_hdr].into_iter().flatten().map(|section| section.bytes.len() as u64);
        let packages = self.go.as_ref().and_then(|go| go.symbols.as_ref()).map_or(0, |symbols| symbols.packages.bytes());
        let segments = size_of_val(&*self.segments) as u64;
        sections.sum::<u64>() + segments + packages + self.debug_frame.as_ref().map_or(0, |bytes| bytes.len() as u64)
    }

    /// GNU build id, empty where there is none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Where it holds an interpreter of Python, if it does.
    pub fn python(&self) -> Option<&PythonSymbols> {
        self.python.as_ref()
    }

    /// The layout of V8's objects, if it holds V8.
    pub fn javascript(&self) -> Option<&Arc<HeapLayout>> {
        self.javascript.as_ref()
    }

    /// What it says of its goroutines, if Go built it.
    pub fn go(&self) -> Option<&Arc<GoProgram>> {
        self.go.as_ref()
    }

    /// Where it holds the tables of a Java virtual machine, if it does.
    pub fn hotspot(&self) -> Option<&HotSpotSymbols> {
        self.hotspot.as_ref()
    }

    /// Where each thread has the variable of OpenTelemetry's thread context, if the binary defines it.
    pub fn thread_context(&self) -> Option<&ThreadVariable> {
        self.thread_context.as_ref()
    }

    /// Whether a thread may have a context record because of this binary.
    pub fn may_publish_context(&self) -> bool {
        self.may_publish_context
    }

    /// Whether the kernel starts the program or its loader there.
    pub(super) fn is_entry(&self, stated: u64) -> bool {
        self.entry != 0 && stated.wrapping_sub(self.entry) < ENTRY_BYTES
    }

    /// Whether a signal handler returns there.
    pub(super) fn is_signal_return(&self, stated: u64) -> bool {
        self.signal_returns.iter().any(|range| range.contains(&stated))
    }

    /// Whether it is code of `.init` or `.fini`.
    pub(super) fn is_init(&self, stated: u64) -> bool {
        self.init.iter().any(|range| range.contains(&stated))
    }

    /// Whether it is in a function that aligns the stack and keeps in rbx where it was.
    pub(super) fn realigns_stack(&self, stated: u64) -> bool {
        self.realigning.iter().any(|range| range.contains(&stated))
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
    pub(super) fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
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

    pub(super) fn module(&self, range: Range<u64>, bias: u64) -> Module<Bytes> {
        let mut last = self.last_module.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base.wrapping_add(bias);
        if let Some(module) = last.as_ref().filter(|m| m.avma_range() == range && m.base_avma() == base) {
            return module.clone();
        }
        let take = |left: u8| left.checked_sub(1);
        let debug_frame =
            self.debug_frame.clone().filter(|_| self.debug_frame_places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok());
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
                debug_frame,
                ..Default::default()
            },
        );
        *last = Some(module.clone());
        module
    }
}
