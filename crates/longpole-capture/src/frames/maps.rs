//! The binaries that processes map: each is opened when the kernel reports its mapping, and read for unwinding.
//!
//! A file is opened as soon as its mapping is reported, not when it is needed: by then the process may have ended, its mount namespace may be
//! gone, or the file deleted. It stays open until the end of the recording, for symbolization.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Cursor};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longpole_model::{Loss, LossKind, Mapping, MappingId, Observation};
use longpole_symbols::unwind::{Binary, Code, UnwindBudget};

use crate::perf::record::MapRecord;
use crate::regular_file::{self, Symlinks};
use crate::sink::ObservationWriter;
use crate::sys::limits::open_files_limit;

/// One part in this many of the descriptors is left for connections and other files.
const OPEN_SHARE: usize = 4;

/// Most distinct files: a program that maps more makes them itself.
const FILES_MAX: usize = 16_384;

/// Most binaries that get a number, and bytes of their paths. Code of further ones is code of no file: a program that maps more makes, maps and
/// removes them itself, and each number is kept to the end, here and in the log.
const NUMBERS_MAX: u32 = 65_536;
const PATHS_BYTES_MAX: usize = 64 << 20;

/// Largest `[vdso]` (vdso(7)): it has a few pages.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// What the kernel appends to the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// A binary of the recording that is still open: the bytes that ran, whatever is at its path now.
#[derive(Debug)]
pub struct OpenBinary {
    /// Its id in the recording.
    pub mapping: MappingId,
    /// The file, open for reading.
    pub file: File,
}

/// The binaries of a recording that are still open.
#[derive(Debug, Default)]
pub struct OpenBinaries(Mutex<Vec<OpenBinary>>);

impl OpenBinaries {
    fn lock(&self) -> MutexGuard<'_, Vec<OpenBinary>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, binary: OpenBinary, most: usize) {
        let mut all = self.lock();
        if all.len() < most {
            all.push(binary);
        }
    }

    /// Another descriptor of a binary's file, if it is open.
    pub fn file(&self, mapping: MappingId) -> Option<File> {
        self.lock().iter().find(|binary| binary.mapping == mapping).and_then(|binary| binary.file.try_clone().ok())
    }

    /// Takes all of them.
    pub fn take(&self) -> Vec<OpenBinary> {
        std::mem::take(&mut *self.lock())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    device: (u32, u32),
    inode: u64,
    generation: u64,
    path: Vec<u8>,
}

/// When a file was last written, and its size: a different stamp means different content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stamp {
    modified: (i64, i64),
    bytes: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp { modified: (metadata.mtime(), metadata.mtime_nsec()), bytes: metadata.len() }
    }
}

/// The identity of a binary, in whichever process and by whichever inode it is mapped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Content {
    path: Vec<u8>,
    build_id: Vec<u8>,
    /// Without a build id: the inode, and when it was written.
    otherwise: Option<(u64, Option<Stamp>)>,
}

struct Known {
    code: Code,
    stamp: Option<Stamp>,
}

/// Why there is no file for a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is deleted.
    Deleted,
    /// Another file is there now.
    Replaced,
    /// It may be executed and not read.
    Forbidden,
}

impl Absent {
    /// The suffix of the path, in the kernel's style, so that nobody looks for symbols there.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Absent::Deleted => " (deleted)",
            Absent::Replaced => " (replaced)",
            Absent::Forbidden => " (not readable)",
        }
    }
}

/// The files of a recording.
pub(crate) struct Binaries {
    known: HashMap<FileKey, Known>,
    numbers: HashMap<Content, MappingId>,
    next: u32,
    paths_bytes: usize,
    unwind: UnwindBudget,
    /// Mappings without a number, beyond the limits.
    unnumbered: u64,
    open: Arc<OpenBinaries>,
    open_max: usize,
    vdso: Option<Code>,
}

impl Binaries {
    /// None yet, with this room for their unwind information.
    pub(crate) fn within(open_max: usize, unwind_bytes_max: Option<u64>) -> Binaries {
        Binaries { unwind: unwind_bytes_max.map_or_else(UnwindBudget::default, UnwindBudget::of), ..Binaries::new(open_max) }
    }

    /// None yet.
    pub(crate) fn new(open_max: usize) -> Binaries {
        let open_max = open_max.min(open_files_limit() / OPEN_SHARE);
        Binaries {
            known: HashMap::new(),
            numbers: HashMap::new(),
            next: 0,
            paths_bytes: 0,
            unwind: UnwindBudget::default(),
            unnumbered: 0,
            open: Arc::default(),
            open_max,
            vdso: None,
        }
    }

    /// The code in a mapping of a process. Writes the definition of the mapping if it is new.
    pub(crate) fn load(&mut self, pid: u32, map: &MapRecord<'_>, out: &mut ObservationWriter) -> Code {
        if map.path == b"[vdso]" {
            if self.vdso.is_none() {
                self.vdso = self.load_vdso(out);
            }
            return self.vdso.clone().unwrap_or(Code::Anonymous);
        }
        if !map.path.starts_with(b"/") || map.path.starts_with(b"//anon") {
            return Code::Anonymous;
        }
        let key = FileKey { device: map.device, inode: map.inode, generation: map.inode_generation, path: map.path.to_vec() };
        let known = self.known.get(&key);
        // A file that was overwritten in place keeps its inode.
        if let Some(known) = known
            && (known.stamp.is_none() || current_stamp(pid, map).is_none_or(|now| Some(now) == known.stamp))
        {
            return known.code.clone();
        }
        let Some(known) = self.load_file(pid, map, out) else { return Code::Anonymous };
        let code = known.code.clone();
        if self.known.len() >= FILES_MAX {
            self.known.clear();
        }
        self.known.insert(key, known);
        code
    }

    /// Opens and reads a file; `None` if there is no number left for it, or the sink could not keep its definition.
    fn load_file(&mut self, pid: u32, map: &MapRecord<'_>, out: &mut ObservationWriter) -> Option<Known> {
        let (file, stamp, suffix) = match open_mapped(pid, map) {
            Ok((file, metadata)) => (Some(file), Some(Stamp::of(&metadata)), ""),
            Err(absent) => (None, None, absent.suffix()),
        };
        let most = self.unwind.section_bytes_max();
        let mut binary = file.as_ref().and_then(|file| Binary::read_within(file, most).ok()).map(Arc::new);
        if binary.is_none() && is_memory(map.path) {
            return Some(Known { code: Code::Anonymous, stamp });
        }
        let build_id = binary.as_ref().map(|b| b.build_id().to_vec()).unwrap_or_default();
        let otherwise = build_id.is_empty().then_some((map.inode, stamp));
        let path = map.path.strip_suffix(DELETED).unwrap_or(map.path);
        let key = Content { path: path.to_vec(), build_id: build_id.clone(), otherwise };
        let mapping = match self.numbers.get(&key) {
            Some(mapping) => *mapping,
            None => {
                let mapping = self.define(String::from_utf8_lossy(path).into_owned() + suffix, build_id, out)?;
                if let Some(file) = file
                    && binary.is_some()
                {
                    self.open.keep(OpenBinary { mapping, file }, self.open_max);
                }
                self.numbers.insert(key, mapping);
                mapping
            }
        };
        binary = binary.filter(|binary| self.unwind.has_room(binary));
        Some(Known { code: Code::Mapped { mapping, binary }, stamp })
    }

    /// The code that the kernel maps into every process, read from our own memory: no file holds it.
    fn load_vdso(&mut self, out: &mut ObservationWriter) -> Option<Code> {
        let binary = read_vdso().ok().and_then(|bytes| Binary::read(Cursor::new(bytes)).ok()).map(Arc::new);
        let build_id = binary.as_ref().map(|b| b.build_id().to_vec()).unwrap_or_default();
        let mapping = self.define("[vdso]".to_owned(), build_id, out)?;
        Some(Code::Mapped { mapping, binary })
    }

    /// Assigns an id to a binary; `None` if none is left, or the sink could not keep its definition.
    fn define(&mut self, path: String, build_id: Vec<u8>, out: &mut ObservationWriter) -> Option<MappingId> {
        if self.next >= NUMBERS_MAX || self.paths_bytes >= PATHS_BYTES_MAX {
            self.unnumbered += 1;
            return None;
        }
        self.paths_bytes += path.len();
        let id = MappingId(self.next);
        out.give(Observation::Mapping(Mapping { id, path, build_id })).then(|| {
            self.next += 1;
            id
        })
    }

    /// What the limits left out.
    pub(crate) fn losses(&self) -> impl Iterator<Item = Loss> + use<> {
        let unnumbered = (self.unnumbered > 0).then(|| {
            let detail = "mappings of files beyond 65,536 files or 64 MiB of paths".to_owned();
            Loss::new(LossKind::SymbolsUnreadable, self.unnumbered, detail)
        });
        unnumbered.into_iter().chain(self.unwind.loss())
    }

    /// The open files, for symbolization.
    pub(crate) fn open(&self) -> &Arc<OpenBinaries> {
        &self.open
    }
}

/// Paths of memory that looks like a file. It holds compiled code, unless it reads as a binary.
fn is_memory(path: &[u8]) -> bool {
    [&b"/dev/"[..], b"/memfd:", b"/SYSV", b"/anon_hugepage"].iter().any(|prefix| path.starts_with(prefix))
}

fn read_vdso() -> io::Result<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let absent = || io::Error::from(io::ErrorKind::NotFound);
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).ok_or_else(absent)?;
    let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).ok_or_else(absent)?;
    let number = |text| u64::from_str_radix(text, 16).map_err(io::Error::other);
    let (start, end) = (number(start)?, number(end)?);
    let bytes = end.checked_sub(start).filter(|bytes| *bytes <= VDSO_BYTES_MAX).ok_or_else(absent)?;
    let mut contents = vec![0; bytes as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut contents, start)?;
    Ok(contents)
}

/// Paths at which the file of a mapping may be found, best first.
///
/// `map_files` is the mapping itself, even if the file is deleted, but needs privilege. `root` is the path as the process sees it, `exe` the
/// program even if it is deleted. The path as we see it comes last.
fn candidates(pid: u32, map: &MapRecord<'_>) -> impl Iterator<Item = PathBuf> {
    let end = map.start.saturating_add(map.bytes);
    let path = map.path.strip_suffix(DELETED).unwrap_or(map.path);
    let path = Path::new(OsStr::from_bytes(path)).to_owned();
    let mut in_root = PathBuf::from(format!("/proc/{pid}/root"));
    in_root.as_mut_os_string().push(&path);
    let direct = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", map.start, end));
    [direct, in_root, PathBuf::from(format!("/proc/{pid}/exe")), path].into_iter()
}

/// Whether this is the file that was mapped; `None` if unknown: some file systems (overlay, btrfs) show another device than the kernel
/// reports.
fn is_the_file(metadata: &Metadata, map: &MapRecord<'_>) -> Option<bool> {
    let device = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    match (device == map.device, metadata.ino() == map.inode) {
        (true, same) => Some(same),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

fn current_stamp(pid: u32, map: &MapRecord<'_>) -> Option<Stamp> {
    let mut all = candidates(pid, map).filter_map(|path| std::fs::metadata(path).ok());
    all.find(|metadata| is_the_file(metadata, map) == Some(true)).map(|metadata| Stamp::of(&metadata))
}

/// Whether a process can have mapped a file, by its owner. If root records a program of another user, a link instead of a mapped file must
/// not make root read what that user may not.
fn can_map(pid: u32, metadata: &Metadata) -> bool {
    const GROUP_READS: u32 = 0o040;
    const OTHERS_READ: u32 = 0o004;
    let of_process =
        |process: Metadata| process.uid() == metadata.uid() || metadata.mode() & GROUP_READS != 0 && process.gid() == metadata.gid();
    metadata.mode() & OTHERS_READ != 0 || std::fs::metadata(format!("/proc/{pid}")).is_ok_and(of_process)
}

/// Opens the file of a mapping.
///
/// # Errors
///
/// Why it is not available.
pub(crate) fn open_mapped(pid: u32, map: &MapRecord<'_>) -> Result<(File, Metadata), Absent> {
    let mut unsure = None;
    let mut absent = Absent::Deleted;
    let forbidden = |error: &io::Error, path: &Path| error.kind() == io::ErrorKind::PermissionDenied && !path.starts_with("/proc");
    for path in candidates(pid, map) {
        let found = match regular_file::find(&path, Symlinks::Followed) {
            Ok(Some(found)) => found,
            // Something else is at the path by now.
            Ok(None) => continue,
            Err(error) => {
                if forbidden(&error, &path) && absent == Absent::Deleted {
                    absent = Absent::Forbidden;
                }
                continue;
            }
        };
        let is_the_file = is_the_file(&found.metadata, map);
        match is_the_file {
            Some(false) => {
                absent = Absent::Replaced;
                continue;
            }
            // The program of a process is none of its libraries.
            None if path.ends_with("exe") || unsure.is_some() || !can_map(pid, &found.metadata) => continue,
            Some(true) | None => {}
        }
        match found.open() {
            Ok(opened) if is_the_file == Some(true) => return Ok(opened),
            Ok(opened) => unsure = Some(opened),
            Err(error) => {
                if forbidden(&error, &path) && absent == Absent::Deleted {
                    absent = Absent::Forbidden;
                }
            }
        }
    }
    match unsure {
        Some(found) if absent != Absent::Replaced => Ok(found),
        _ => Err(absent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_of<'a>(path: &'a [u8], metadata: &Metadata) -> MapRecord<'a> {
        MapRecord {
            start: 0x1000,
            bytes: 0x1000,
            file_offset: 0,
            device: (libc::major(metadata.dev()), libc::minor(metadata.dev())),
            inode: metadata.ino(),
            inode_generation: 0,
            protection: 5,
            path,
        }
    }

    fn out() -> ObservationWriter {
        ObservationWriter::new(Box::new(Vec::new()))
    }

    #[test]
    fn files_beyond_the_limits_are_code_of_no_file() {
        let mut binaries = Binaries::new(256);
        let mut out = out();
        let long = |number: usize| format!("/{number}{}", "a".repeat(4000));
        let defined = (0..100_000).take_while(|number| binaries.define(long(*number), Vec::new(), &mut out).is_some()).count();
        assert!((16_000..17_000).contains(&defined), "{defined}");
        let mut binaries = Binaries::new(256);
        let defined = (0..100_000).take_while(|number| binaries.define(number.to_string(), Vec::new(), &mut out).is_some()).count();
        assert_eq!(defined, NUMBERS_MAX as usize);
    }

    #[test]
    fn a_binary_without_room_has_an_id_and_no_unwind_information() {
        let path = std::env::current_exe().unwrap();
        let map = map_of(path.as_os_str().as_bytes(), &path.metadata().unwrap());
        let mut binaries = Binaries { unwind: UnwindBudget::of(0), ..Binaries::new(256) };
        let code = binaries.load(std::process::id(), &map, &mut out());
        assert!(matches!(code, Code::Mapped { mapping: MappingId(0), binary: None }), "{code:?}");
        assert_eq!(binaries.losses().map(|loss| loss.count).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn our_own_program_is_found_and_read_once() {
        let path = std::env::current_exe().unwrap();
        let bytes = path.as_os_str().as_bytes();
        let map = map_of(bytes, &path.metadata().unwrap());
        let mut binaries = Binaries::new(256);
        let mut out = out();
        let first = binaries.load(std::process::id(), &map, &mut out);
        let Code::Mapped { mapping, binary: Some(first) } = first else { panic!("{first:?}") };
        let Code::Mapped { binary: Some(second), .. } = binaries.load(std::process::id(), &map, &mut out) else { panic!() };
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(mapping, MappingId(0));
        assert_eq!(binaries.open().take().len(), 1);
    }

    #[test]
    fn the_vdso_is_read_from_our_own_memory() {
        let mut binaries = Binaries::new(256);
        let map = MapRecord { path: b"[vdso]", ..map_of(b"", &Path::new("/").metadata().unwrap()) };
        let code = binaries.load(1, &map, &mut out());
        assert!(matches!(code, Code::Mapped { binary: Some(_), .. }), "{code:?}");
    }

    #[test]
    fn a_file_that_replaced_the_mapped_one_is_not_read() {
        let directory = std::env::temp_dir().join(format!("longpole-maps-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("program");
        std::fs::write(&path, b"one").unwrap();
        let mapped = map_of(b"", &path.metadata().unwrap());
        std::fs::write(directory.join("other"), b"two").unwrap();
        std::fs::rename(directory.join("other"), &path).unwrap();
        let bytes = path.as_os_str().as_bytes();
        let map = MapRecord { path: bytes, ..mapped };
        assert_eq!(open_mapped(u32::MAX, &map).unwrap_err(), Absent::Replaced);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(open_mapped(u32::MAX, &map).unwrap_err(), Absent::Deleted);
        std::fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn a_file_that_the_process_may_not_read_is_not_the_mapped_one() {
        use std::os::unix::fs::PermissionsExt;

        let directory = std::env::temp_dir().join(format!("longpole-can-map-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("file");
        std::fs::write(&path, b"secret").unwrap();
        let can_map = |pid: u32, mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            can_map(pid, &path.metadata().unwrap())
        };
        assert!(can_map(u32::MAX, 0o644) && can_map(std::process::id(), 0o600));
        // The owner of a process that is gone is unknown.
        assert!(!can_map(u32::MAX, 0o600) && !can_map(u32::MAX, 0o640));
        // The file at the path, on a file system that shows another device.
        let odd = MapRecord { inode: 1, device: (0, 1), path: path.as_os_str().as_bytes(), ..map_of(b"", &path.metadata().unwrap()) };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(open_mapped(u32::MAX, &odd).unwrap_err(), Absent::Deleted);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(open_mapped(u32::MAX, &odd).is_ok());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_unreadable_binary_still_has_an_id() {
        let mut binaries = Binaries::new(256);
        let map = MapRecord { inode: 1, device: (0, 1), path: b"/no/such/library.so", ..map_of(b"", &Path::new("/").metadata().unwrap()) };
        let code = binaries.load(u32::MAX, &map, &mut out());
        assert!(matches!(code, Code::Mapped { mapping: MappingId(0), binary: None }), "{code:?}");
        let anonymous = MapRecord { path: b"//anon", ..map };
        assert!(matches!(binaries.load(1, &anonymous, &mut out()), Code::Anonymous));
    }
}
