//! Binaries that a recording of perf names: the copies that perf keeps, then those of this machine that are the ones that ran.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longpole_model::{Mapping, MappingId, Observation};
use longpole_store::Assembler;
use longpole_symbols::unwind::{Binary, Code, UnwindBudget};
use longpole_symbols::{Files, HostFiles, ReadSeek};
use longpole_wire::perf_data::Map;

/// Files of this machine, perf's own copies first.
pub(super) struct PerfFiles;

impl Files for PerfFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        HostFiles.open(path)
    }

    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        let copy = copy_of(mapping).and_then(|copy| HostFiles.open(&copy).ok());
        copy.map_or_else(|| HostFiles.open_mapped(mapping), Ok)
    }
}

/// `~/.debug/.build-id/ab/cdef…/elf`, where `perf record` puts what it saw mapped.
fn copy_of(mapping: &Mapping) -> Option<PathBuf> {
    let (first, rest) = mapping.build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = if mapping.path == "[vdso]" { "vdso" } else { "elf" };
    Some(PathBuf::from(std::env::var_os("HOME")?).join(format!(".debug/.build-id/{first:02x}/{rest}/{name}")))
}

/// A file of this machine: its device and its inode.
type FileId = (u64, u64);

/// The binaries that were mapped.
pub(super) struct Binaries {
    /// What the file knows of them, by path.
    pub(super) build_ids: HashMap<String, Vec<u8>>,
    known: HashMap<(String, Vec<u8>, u64), Code>,
    /// Each file once, whatever paths lead to it; `None` if it is of no use.
    read: HashMap<FileId, Option<Arc<Binary>>>,
    /// The mapping of each of these files and builds: it is named once.
    of_file: HashMap<(FileId, Vec<u8>), Code>,
    pub(super) unwind: UnwindBudget,
    next: u32,
}

impl Binaries {
    pub(super) fn new(build_ids: HashMap<String, Vec<u8>>) -> Binaries {
        Binaries {
            build_ids,
            known: HashMap::new(),
            read: HashMap::new(),
            of_file: HashMap::new(),
            unwind: UnwindBudget::default(),
            next: 0,
        }
    }

    /// What lies in a mapping. Defines it where it is new.
    pub(super) fn code(&mut self, path: &str, map: &Map<'_>, assembler: &mut Assembler, same_host: bool) -> Code {
        let is_memory = ["//anon", "/dev/", "/memfd:", "/SYSV", "/anon_hugepage"].iter().any(|prefix| path.starts_with(prefix));
        if path != "[vdso]" && (!path.starts_with('/') || is_memory) {
            return Code::Anonymous;
        }
        let build_id = if map.build_id.is_empty() { self.build_ids.get(path).cloned().unwrap_or_default() } else { map.build_id.to_vec() };
        let key = (path.to_owned(), build_id.clone(), if build_id.is_empty() { map.inode } else { 0 });
        if let Some(code) = self.known.get(&key) {
            return code.clone();
        }
        let mut mapping = Mapping { id: MappingId(self.next), path: path.to_owned(), build_id };
        // Without a build id whatever lies there would be taken for it.
        if mapping.build_id.is_empty() && path != "[vdso]" && Path::new(path).exists() && !is_the_file(path, map, same_host) {
            mapping.path.push_str(" (replaced)");
        }
        let (file, binary) = self.binary(&mapping).unzip();
        let file = file.flatten().map(|file| (file, mapping.build_id.clone()));
        let code = match file.as_ref().and_then(|file| self.of_file.get(file)) {
            Some(code) => code.clone(),
            None => {
                self.next += 1;
                let code = Code::Mapped { mapping: mapping.id, binary };
                assembler.observe(Observation::Mapping(mapping));
                self.of_file.extend(file.map(|file| (file, code.clone())));
                code
            }
        };
        self.known.insert(key, code.clone());
        code
    }

    /// The binary of a mapping: perf's copy, or the file at its path if that is the one that ran.
    fn binary(&mut self, mapping: &Mapping) -> Option<(Option<FileId>, Arc<Binary>)> {
        let places = [copy_of(mapping), Some(PathBuf::from(&mapping.path))];
        let mut binaries = places.into_iter().flatten().filter_map(|path| {
            // The vdso is no file.
            let id = std::fs::metadata(&path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
            Some((id, self.read(id, &path)?))
        });
        binaries.find(|(_, binary)| mapping.build_id.is_empty() || binary.build_id() == mapping.build_id)
    }

    fn read(&mut self, id: Option<FileId>, path: &Path) -> Option<Arc<Binary>> {
        if let Some(known) = id.and_then(|id| self.read.get(&id)) {
            return known.clone();
        }
        let binary = HostFiles.open(path).ok().and_then(|file| Binary::read(file).ok());
        let binary = binary.filter(|binary| self.unwind.has_room(binary)).map(Arc::new);
        self.read.extend(id.map(|id| (id, binary.clone())));
        binary
    }
}

/// Whether the file at a path is the one that was mapped, by its inode.
fn is_the_file(path: &str, map: &Map<'_>, same_host: bool) -> bool {
    same_host && map.inode > 0 && std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == map.inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binaries() -> Binaries {
        Binaries::new(HashMap::new())
    }

    /// This program, as perf would have it at this path.
    fn mapping(path: String) -> Mapping {
        Mapping { id: MappingId(0), path, build_id: Vec::new() }
    }

    #[test]
    fn a_file_is_read_once_whatever_paths_lead_to_it() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut binaries = binaries();
        let first = binaries.binary(&mapping(path.clone())).unwrap().1;
        for spelling in [path.replace('/', "/./"), path.replacen('/', "//", 9)[1..].to_owned(), format!("/proc/self/root{path}")] {
            assert!(Arc::ptr_eq(&first, &binaries.binary(&mapping(spelling)).unwrap().1));
        }
        assert_eq!(binaries.read.len(), 1);
    }

    #[test]
    fn a_file_is_one_mapping_whatever_paths_lead_to_it() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let build_id = binaries().binary(&mapping(path.clone())).unwrap().1.build_id().to_vec();
        let mut assembler = Assembler::new(super::super::unseen_run(Vec::new()));
        let mut binaries = binaries();
        let mut number = |path: &str, build_id: &[u8]| {
            let map = Map { path: b"", build_id, start: 0, bytes: 1, file_offset: 0, inode: 0, is_kernel: false };
            match binaries.code(path, &map, &mut assembler, false) {
                Code::Mapped { mapping, .. } => mapping.0,
                Code::Anonymous => panic!("{path}"),
            }
        };
        assert!(!build_id.is_empty(), "cargo's linker writes build ids");
        for (path, id) in [(&*path, 0), (&path.replace('/', "/./"), 0), ("/no/such/file", 1), (&path[..], 0), ("/none/either", 2)] {
            assert_eq!(number(path, &build_id), id, "{path}");
        }
        // There is no file of another build here.
        assert_eq!((number(&path, &[7; 20]), number(&path.replace('/', "/./"), &[7; 20])), (3, 4));
        assert_eq!(assembler.finish().mappings.len(), 5);
    }

    #[test]
    fn a_file_of_another_build_is_none_and_one_without_a_file_neither() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut binaries = binaries();
        let other = Mapping { build_id: vec![7; 20], ..mapping(path) };
        assert!(binaries.binary(&other).is_none() && binaries.binary(&mapping("/no/such/file".to_owned())).is_none());
        assert!(binaries.binary(&mapping("[vdso]".to_owned())).is_some());
    }

    #[test]
    fn a_binary_without_room_is_not_unwound() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut binaries = Binaries { unwind: UnwindBudget::of(0), ..binaries() };
        assert!(binaries.binary(&mapping(path)).is_none());
        assert_eq!(binaries.unwind.loss().map(|loss| loss.count), Some(1));
    }
}
