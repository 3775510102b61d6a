//! Where the objects of a virtual machine have what: it says so itself, for debuggers.
//!
//! `gHotSpotVMStructs` is a pointer to a table of fields, and five numbers say where in a row its columns are:
//!
//! ```text
//! type name   field name    type of the field   is static   offset   address
//! CodeBlob    _frame_size   int                 0           28       0
//! CodeCache   _heaps        GrowableArray<…>*   1           0        0x7f522d91c600
//! ```
//!
//! `gHotSpotVMTypes` has the size of each type. A row without a type name is the last.

use std::collections::HashMap;

use super::process_bytes::Pages;
use crate::memory::{Memory, int, word};

/// The symbols of the tables and of their columns.
pub const SYMBOLS: [&str; 12] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryTypeStringOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
];

/// The addresses of [`SYMBOLS`], as the file states them or in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSpotSymbols(pub [u64; SYMBOLS.len()]);

/// Most rows of a table: Java 17 has 1,500.
const ROWS_MAX: usize = 16_384;

/// Most bytes of a row.
const ROW_BYTES_MAX: u64 = 256;

/// Largest offset in an object, and largest header of one.
const OFFSET_MAX: u64 = 64 << 10;

/// Types whose fields are wanted.
const TYPES: [&str; 17] = [
    "Abstract_VM_Version",
    "CodeBlob",
    "CodeCache",
    "CodeHeap",
    "CompiledMethod",
    "ConstMethod",
    "ConstantPool",
    "GenericGrowableArray",
    "GrowableArray<int>",
    "GrowableArrayBase",
    "InstanceKlass",
    "Klass",
    "Method",
    "StubRoutines",
    "Symbol",
    "VirtualSpace",
    "nmethod",
];

/// Types whose sizes are wanted.
const SIZED: [&str; 6] = ["CodeBlob", "ConstMethod", "ConstantPool", "HeapBlock", "nmethod", "CompiledMethod"];

/// The first version whose compressed numbers have no byte that is zero.
const NO_ZEROES_SINCE: i32 = 20;

/// Where the code of a blob begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeBegin {
    /// A pointer (to Java 23).
    Pointer(u64),
    /// An `int`, counted from the blob.
    Offset(u64),
}

/// Where the scopes of compiled code lie: which methods are inlined where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scopes {
    /// In the blob: metadata, scopes (a pointer), places, dependencies. To Java 22.
    Inside { metadata: u64, scopes: u64, places: u64, places_end: u64 },
    /// In memory of their own: a pointer, with the size, the places and then the scopes; metadata in the blob, or behind the relocations in
    /// memory of their own.
    Outside { data: u64, data_bytes: u64, places: u64, scopes: u64, metadata: Metadata },
}

/// Where the pointers to methods lie that compiled code refers to by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metadata {
    Inside {
        offset: u64,
    },
    /// A pointer, and how many bytes are in front (Java 25).
    Outside {
        data: u64,
        relocations: u64,
    },
}

/// Offsets in objects, and addresses of what there is once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JvmLayout {
    /// Address of the pointer to the list of heaps.
    pub(super) heaps: u64,
    pub(super) array_length: u64,
    pub(super) array_data: u64,
    pub(super) heap_memory: u64,
    pub(super) heap_segments: u64,
    pub(super) heap_log2_segment: u64,
    pub(super) space_low: u64,
    pub(super) space_high: u64,
    pub(super) block_bytes: u64,
    /// Bytes of the largest blob's header.
    pub(super) blob_bytes: u64,
    pub(super) blob_name: u64,
    pub(super) blob_size: u64,
    pub(super) blob_frame_words: u64,
    pub(super) blob_frame_complete: u64,
    /// Whether that is a number of 16 bits.
    pub(super) is_frame_complete_short: bool,
    pub(super) blob_code: CodeBegin,
    pub(super) compiled_method: u64,
    pub(super) method_const: u64,
    pub(super) const_bytes: u64,
    pub(super) const_pool: u64,
    pub(super) const_words: u64,
    pub(super) const_flags: u64,
    pub(super) const_code_bytes: u64,
    pub(super) const_name: u64,
    pub(super) pool_bytes: u64,
    pub(super) pool_holder: u64,
    pub(super) pool_length: u64,
    pub(super) pool_source_file: Option<u64>,
    pub(super) class_pool: u64,
    pub(super) class_name: u64,
    pub(super) symbol_length: u64,
    pub(super) symbol_text: u64,
    /// Address of the pointer to where `call_stub` goes on after a call.
    pub(super) call_stub_return: u64,
    pub(super) scopes: Option<Scopes>,
    pub(super) has_zeroes: bool,
}

struct Field {
    kind: String,
    offset: u64,
    address: u64,
}

struct Tables {
    fields: HashMap<(&'static str, String), Field>,
    sizes: HashMap<&'static str, u64>,
}

impl Tables {
    fn read(memory: &dyn Memory, symbols: &HotSpotSymbols) -> Option<(Tables, i32)> {
        let mut pages = Pages::new(memory);
        let mut numbers = [0; SYMBOLS.len()];
        for (number, address) in numbers.iter_mut().zip(symbols.0) {
            *number = pages.word(address)?;
        }
        let [
            fields_at,
            row_bytes,
            type_at,
            field_at,
            kind_at,
            static_at,
            offset_at,
            address_at,
            types_at,
            size_row_bytes,
            name_at,
            size_at,
        ] = numbers;
        if !(8..=ROW_BYTES_MAX).contains(&row_bytes) || !(8..=ROW_BYTES_MAX).contains(&size_row_bytes) {
            return None;
        }
        let mut tables = Tables { fields: HashMap::new(), sizes: HashMap::new() };
        let mut version = 0;
        let mut at = fields_at;
        for _ in 0..ROWS_MAX {
            let row = pages.object(at, row_bytes)?;
            at = at.checked_add(row_bytes)?;
            let name = match word(&row, type_at)? {
                0 => break,
                name => pages.text(name),
            };
            let Some(owner) = TYPES.into_iter().find(|wanted| name.as_deref() == Some(*wanted)) else { continue };
            let Some(field) = pages.text(word(&row, field_at)?) else { continue };
            let kind = match word(&row, kind_at)? {
                0 => String::new(),
                kind => pages.text(kind).unwrap_or_default(),
            };
            let is_static = usize::try_from(static_at).ok().and_then(|at| row.get(at)).is_some_and(|byte| *byte != 0);
            let (offset, address) = (word(&row, offset_at)?, word(&row, address_at)?);
            if is_static && (owner, field.as_str()) == ("Abstract_VM_Version", "_vm_major_version") {
                version = int(&pages.object(address, 4)?, 0)?;
            }
            // The first row counts.
            tables.fields.entry((owner, field)).or_insert(Field { kind, offset, address: if is_static { address } else { 0 } });
        }
        let mut at = types_at;
        for _ in 0..ROWS_MAX {
            let row = pages.object(at, size_row_bytes)?;
            at = at.checked_add(size_row_bytes)?;
            let name = match word(&row, name_at)? {
                0 => break,
                name => pages.text(name),
            };
            if let Some(wanted) = SIZED.into_iter().find(|wanted| name.as_deref() == Some(*wanted)) {
                tables.sizes.insert(wanted, word(&row, size_at)?);
            }
        }
        Some((tables, version))
    }

    fn field(&self, owner: &'static str, field: &str) -> Option<&Field> {
        self.fields.get(&(owner, field.to_owned()))
    }

    fn offset(&self, owner: &'static str, field: &str) -> Option<u64> {
        self.field(owner, field).map(|field| field.offset).filter(|offset| *offset <= OFFSET_MAX)
    }

    fn address(&self, owner: &'static str, field: &str) -> Option<u64> {
        self.field(owner, field).map(|field| field.address).filter(|address| *address != 0)
    }

    fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name).copied().filter(|bytes| (1..=OFFSET_MAX).contains(bytes))
    }

    fn scopes(&self) -> Option<Scopes> {
        let of = |field| self.offset("nmethod", field);
        if let Some(data) = of("_immutable_data") {
            let metadata = match of("_metadata_offset") {
                Some(offset) => Metadata::Inside { offset },
                None => {
                    let (data, relocations) = (self.offset("CodeBlob", "_mutable_data")?, self.offset("CodeBlob", "_relocation_size")?);
                    Metadata::Outside { data, relocations }
                }
            };
            let data_bytes = of("_immutable_data_size")?;
            return Some(Scopes::Outside {
                data,
                data_bytes,
                places: of("_scopes_pcs_offset")?,
                scopes: of("_scopes_data_offset")?,
                metadata,
            });
        }
        Some(Scopes::Inside {
            metadata: of("_metadata_offset")?,
            scopes: self.offset("CompiledMethod", "_scopes_data_begin")?,
            places: of("_scopes_pcs_offset")?,
            places_end: of("_dependencies_offset")?,
        })
    }
}

impl JvmLayout {
    /// What the tables of a machine say; `None` where they are not there (yet), or something in them is missing.
    pub(super) fn read(memory: &dyn Memory, symbols: &HotSpotSymbols) -> Option<JvmLayout> {
        let (tables, version) = Tables::read(memory, symbols)?;
        let offset = |owner, field| tables.offset(owner, field);
        let blob_bytes =
            SIZED.into_iter().filter(|name| *name == "nmethod" || *name == "CodeBlob").filter_map(|name| tables.size(name)).max()?;
        let complete = tables.field("CodeBlob", "_frame_complete_offset")?;
        Some(JvmLayout {
            heaps: tables.address("CodeCache", "_heaps")?,
            array_length: offset("GrowableArrayBase", "_len").or_else(|| offset("GenericGrowableArray", "_len"))?,
            array_data: offset("GrowableArray<int>", "_data")?,
            heap_memory: offset("CodeHeap", "_memory")?,
            heap_segments: offset("CodeHeap", "_segmap")?,
            heap_log2_segment: offset("CodeHeap", "_log2_segment_size")?,
            space_low: offset("VirtualSpace", "_low_boundary")?,
            space_high: offset("VirtualSpace", "_high_boundary")?,
            block_bytes: tables.size("HeapBlock")?,
            blob_bytes,
            blob_name: offset("CodeBlob", "_name")?,
            blob_size: offset("CodeBlob", "_size")?,
            blob_frame_words: offset("CodeBlob", "_frame_size")?,
            blob_frame_complete: complete.offset,
            is_frame_complete_short: complete.kind == "int16_t",
            blob_code: match offset("CodeBlob", "_code_begin") {
                Some(pointer) => CodeBegin::Pointer(pointer),
                None => CodeBegin::Offset(offset("CodeBlob", "_code_offset")?),
            },
            compiled_method: offset("nmethod", "_method").or_else(|| offset("CompiledMethod", "_method"))?,
            method_const: offset("Method", "_constMethod")?,
            const_bytes: tables.size("ConstMethod")?,
            const_pool: offset("ConstMethod", "_constants")?,
            const_words: offset("ConstMethod", "_constMethod_size")?,
            const_flags: offset("ConstMethod", "_flags").or_else(|| offset("ConstMethod", "_flags._flags"))?,
            const_code_bytes: offset("ConstMethod", "_code_size")?,
            const_name: offset("ConstMethod", "_name_index")?,
            pool_bytes: tables.size("ConstantPool")?,
            pool_holder: offset("ConstantPool", "_pool_holder")?,
            pool_length: offset("ConstantPool", "_length")?,
            pool_source_file: offset("ConstantPool", "_source_file_name_index"),
            class_pool: offset("InstanceKlass", "_constants")?,
            class_name: offset("Klass", "_name")?,
            symbol_length: offset("Symbol", "_length")?,
            symbol_text: offset("Symbol", "_body").or_else(|| offset("Symbol", "_body[0]"))?,
            call_stub_return: tables.address("StubRoutines", "_call_stub_return_address")?,
            scopes: tables.scopes(),
            has_zeroes: version < NO_ZEROES_SINCE,
        })
    }
}
