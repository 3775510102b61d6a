//! Binaries that a recording of perf names: the copies that perf keeps, then those of this machine that are the ones that ran.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longpole_model::{Mapping, MappingId, Observation};
use longpole_store::Assembler;
use longpole_symbols::unwind::{Binary, Code};
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

/// The binaries that were mapped.
pub(super) struct Binaries {
    /// What the file knows of them, by path.
    pub(super) build_ids: HashMap<String, Vec<u8>>,
    known: HashMap<(String, Vec<u8>, u64), Code>,
    next: u32,
}

impl Binaries {
    pub(super) fn new(build_ids: HashMap<String, Vec<u8>>) -> Binaries {
        Binaries { build_ids, known: HashMap::new(), next: 0 }
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
        let id = MappingId(self.next);
        self.next += 1;
        let mut mapping = Mapping { id, path: path.to_owned(), build_id };
        // Without a build id whatever lies there would be taken for it.
        if mapping.build_id.is_empty() && path != "[vdso]" && Path::new(path).exists() && !is_the_file(path, map, same_host) {
            mapping.path.push_str(" (replaced)");
        }
        let binary = PerfFiles.open_mapped(&mapping).ok().and_then(|file| Binary::read(file).ok());
        let binary = binary.filter(|binary| mapping.build_id.is_empty() || binary.build_id() == mapping.build_id);
        assembler.observe(Observation::Mapping(mapping));
        let code = Code::Mapped { mapping: id, binary: binary.map(Arc::new) };
        self.known.insert(key, code.clone());
        code
    }
}

/// Whether the file at a path is the one that was mapped, by its inode.
fn is_the_file(path: &str, map: &Map<'_>, same_host: bool) -> bool {
    same_host && map.inode > 0 && std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == map.inode)
}
