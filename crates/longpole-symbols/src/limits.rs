//! Every maximum obeyed while reading foreign binaries, with its reason.

/// Bytes read from a file, as a multiple of its length. Each part is read once, and few parts overlap in a sane file; a
/// file whose section headers all name the whole file would be read some sixteen times over.
pub(crate) const READ_FACTOR: u64 = 3;

/// How much longer a file may be than what it takes on its disk, as a factor and beside that. File systems compress, and linkers leave
/// small holes; a file that is a hole costs nobody anything. What lies behind is not read.
pub(crate) const SPARSE_FACTOR: u64 = 16;
pub(crate) const SPARSE_BYTES: u64 = 16 << 20;

/// Bytes that the sections of a file may have together after decompression, as a multiple of the file's length. Debug
/// information compresses to a half or a fifth; zlib can reach a thousandth, which is what a bomb does.
pub(crate) const DECOMPRESSION_FACTOR: u64 = 32;

/// Steps (entries, attributes, ranges, rows) that a byte of debug information may ask for. An honest file asks for about
/// one: each of these is written down once and takes a byte at least. A list that is referred to again and again asks
/// for more, which is how a small file could keep us busy for hours.
pub(crate) const WORK_PER_BYTE: u64 = 4;

/// Steps beyond that for each address looked up: its names, and the list of the units that claim it.
pub(crate) const WORK_PER_ADDRESS: u64 = 4096;

/// Units that may claim one address. Each address lies in one; linkers leave some claims of what they discarded.
pub(crate) const CLAIMS_MAX: u8 = 16;

/// Units, and tables of abbreviations, that are kept at hand. One takes a kilobyte or two, an empty one in a file a dozen
/// bytes; a file of gigabytes has some tens of thousands, and looks a name up in few of them.
pub(crate) const OPEN_UNITS_MAX: usize = 16 * 1024;

/// Inlined calls inside each other at one address. Compilers stop at some tens; what lies deeper is left out.
pub(crate) const INLINE_DEPTH_MAX: usize = 256;

/// References followed from an entry to the one that holds its name: inlined call, abstract function, declaration.
pub(crate) const NAME_HOPS_MAX: u32 = 8;

/// Bytes of a source file's path, and of each part it is put together from. The system opens none that is longer; what
/// lies behind is left out, because each address has its path in the tables of a recording.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// Bytes of the name of a mapped file: what Linux allows. An unnamed address has it in its own name.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 255;

/// Bytes of a mangled name that is demangled, of the result, and of a bare name. Demanglers expand back references, and a few of a
/// name's bytes can stand for megabytes; templates of real programs reach some thousands.
pub(crate) const NAME_BYTES_MAX: usize = 16 * 1024;

/// Nanoseconds that count as a step where a library demangles a name.
pub(crate) const STEP_NANOS: u32 = 16;

/// Steps that the names of a recording may take together: those of 200,000 functions, or some seconds. A byte of a demangled name is a step,
/// too, so that the names take no more memory than this.
pub(crate) const DEMANGLE_STEPS_MAX: u64 = 1 << 27;

/// The beginning of a text, cut before the character that does not fit.
pub(crate) fn clipped(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
