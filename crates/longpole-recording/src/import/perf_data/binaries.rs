//! Binaries that a recording of perf names: the copies that perf keeps, then those of this machine that are the ones that ran.
//!
//! They may lie in a file system that does not answer, so another thread reads them ([`longpole_symbols::hang_timeout`]).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longpole_model::{Loss, LossKind, Mapping, MappingId, Observation};
use longpole_store::Assembler;
use longpole_symbols::hang_timeout::{PatientReader, Waited};
use longpole_symbols::unwind::{Binary, Code, UnwindBudget};
use longpole_symbols::{FileId, Files, HostFiles, ReadSeek};
use longpole_wire::perf_data::Map;

/// How long reading may take in all: the file decides how many binaries of this machine it names.
const READING_MAX: Duration = Duration::from_secs(60);

/// The end of the path of a binary without a build id that was not read: whatever lies there would be taken for it.
const NOT_READ: &str = " (not readable)";

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

    fn id(&self, path: &Path) -> io::Result<FileId> {
        HostFiles.id(path)
    }
}

/// `~/.debug/.build-id/ab/cdef…/elf`, where `perf record` puts what it saw mapped.
fn copy_of(mapping: &Mapping) -> Option<PathBuf> {
    let (first, rest) = mapping.build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = if mapping.path == "[vdso]" { "vdso" } else { "elf" };
    Some(PathBuf::from(std::env::var_os("HOME")?).join(format!(".debug/.build-id/{first:02x}/{rest}/{name}")))
}

/// Why the thread that reads did not say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unread {
    /// A file system did not answer.
    Hung,
    /// Reading took too long in all.
    Late,
    /// A bug.
    Failed,
}

/// A binary, and its file, unless it is the vdso.
type FoundBinary = (Option<FileId>, Arc<Binary>);

/// The binaries that were mapped.
pub(super) struct Binaries {
    /// What the file knows of them, by path.
    pub(super) build_ids: HashMap<String, Vec<u8>>,
    known: HashMap<(String, Vec<u8>, u64), Code>,
    /// Each file once, whatever paths lead to it; `None` if it is of no use.
    read: HashMap<FileId, Option<Arc<Binary>>>,
    /// The mapping of each of these files and builds: it is named once.
    of_file: HashMap<(FileId, Vec<u8>), Code>,
    unwind: UnwindBudget,
    reader: PatientReader<Box<dyn Files>>,
    /// What is left of the time for reading.
    time_left: Duration,
    /// How many were not read, and why.
    unread: BTreeMap<Unread, u64>,
    next: u32,
}

impl Binaries {
    pub(super) fn new(build_ids: HashMap<String, Vec<u8>>) -> Binaries {
        Binaries::of(build_ids, PatientReader::new(Arc::new(PerfFiles), |files| files))
    }

    fn of(build_ids: HashMap<String, Vec<u8>>, reader: PatientReader<Box<dyn Files>>) -> Binaries {
        Binaries {
            build_ids,
            known: HashMap::new(),
            read: HashMap::new(),
            of_file: HashMap::new(),
            unwind: UnwindBudget::default(),
            reader,
            time_left: READING_MAX,
            unread: BTreeMap::new(),
            next: 0,
        }
    }

    /// What the limits left out, and what was not read.
    pub(super) fn losses(&self) -> impl Iterator<Item = Loss> {
        let why = |unread: &Unread| match unread {
            Unread::Hung => "their file system, or that of earlier binaries, did not answer".to_owned(),
            Unread::Late => format!("reading all of them would take longer than {} s", READING_MAX.as_secs()),
            Unread::Failed => "of a bug in longpole".to_owned(),
        };
        let detail = move |unread: &Unread| format!("binaries not read to unwind stacks, because {}", why(unread));
        let unread = self.unread.iter().map(move |(why, count)| Loss::new(LossKind::SymbolsUnreadable, *count, detail(why)));
        self.unwind.loss().into_iter().chain(unread)
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
        let suffix = if mapping.build_id.is_empty() && path != "[vdso]" { self.suffix(path, map, same_host) } else { Ok("") };
        let found = suffix.and_then(|suffix| {
            mapping.path.push_str(suffix);
            self.binary(&mapping)
        });
        let found = found.unwrap_or_else(|why| {
            *self.unread.entry(why).or_default() += 1;
            if mapping.build_id.is_empty() {
                mapping.path.push_str(NOT_READ);
            }
            None
        });
        let (file, binary) = found.unzip();
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

    /// What the path of a binary without a build id ends in.
    fn suffix(&mut self, path: &str, map: &Map<'_>, same_host: bool) -> Result<&'static str, Unread> {
        let id = self.id(Path::new(path))?;
        Ok(if id.is_some_and(|id| !is_the_file(id, map, same_host)) { " (replaced)" } else { "" })
    }

    /// The binary of a mapping: perf's copy, or the file at its path if that is the one that ran.
    fn binary(&mut self, mapping: &Mapping) -> Result<Option<FoundBinary>, Unread> {
        let places = [copy_of(mapping), Some(PathBuf::from(&mapping.path))];
        for path in places.into_iter().flatten() {
            // The vdso is no file.
            let id = self.id(&path)?;
            let binary = self.read(id, path)?;
            if let Some(binary) = binary.filter(|binary| mapping.build_id.is_empty() || binary.build_id() == mapping.build_id) {
                return Ok(Some((id, binary)));
            }
        }
        Ok(None)
    }

    fn read(&mut self, id: Option<FileId>, path: PathBuf) -> Result<Option<Arc<Binary>>, Unread> {
        if let Some(known) = id.and_then(|id| self.read.get(&id)) {
            return Ok(known.clone());
        }
        let binary = self.on_disk(move |files| files.open(&path).ok().and_then(|file| Binary::read(file).ok()))?;
        let binary = binary.filter(|binary| self.unwind.has_room(binary)).map(Arc::new);
        self.read.extend(id.map(|id| (id, binary.clone())));
        Ok(binary)
    }

    /// The file at a path, if there is one.
    fn id(&mut self, path: &Path) -> Result<Option<FileId>, Unread> {
        let path = path.to_owned();
        self.on_disk(move |files| files.id(&path).ok())
    }

    /// Reads on the other thread.
    fn on_disk<T: Send + 'static>(&mut self, read: impl FnOnce(&dyn Files) -> T + Send + 'static) -> Result<T, Unread> {
        if self.time_left.is_zero() {
            return Err(Unread::Late);
        }
        let begun = Instant::now();
        let waited = self.reader.read(move |files| read(&**files), || begun.elapsed() >= self.time_left);
        self.time_left = self.time_left.saturating_sub(begun.elapsed());
        match waited {
            Waited::Done(outcome) => Ok(outcome),
            Waited::Failed => Err(Unread::Failed),
            Waited::Hung if self.time_left.is_zero() => Err(Unread::Late),
            Waited::Hung => Err(Unread::Hung),
        }
    }
}

/// Whether a file is the one that was mapped, by its inode.
fn is_the_file(id: FileId, map: &Map<'_>, same_host: bool) -> bool {
    same_host && map.inode > 0 && id.inode == map.inode
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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
        let first = binaries.binary(&mapping(path.clone())).unwrap().unwrap().1;
        for spelling in [path.replace('/', "/./"), path.replacen('/', "//", 9)[1..].to_owned(), format!("/proc/self/root{path}")] {
            assert!(Arc::ptr_eq(&first, &binaries.binary(&mapping(spelling)).unwrap().unwrap().1));
        }
        assert_eq!(binaries.read.len(), 1);
    }

    #[test]
    fn a_file_is_one_mapping_whatever_paths_lead_to_it() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let build_id = binaries().binary(&mapping(path.clone())).unwrap().unwrap().1.build_id().to_vec();
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
        assert!(binaries.binary(&other).unwrap().is_none() && binaries.binary(&mapping("/no/such/file".to_owned())).unwrap().is_none());
        assert!(binaries.binary(&mapping("[vdso]".to_owned())).unwrap().is_some());
    }

    #[test]
    fn a_binary_without_room_is_not_unwound() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut binaries = Binaries { unwind: UnwindBudget::of(0), ..binaries() };
        assert!(binaries.binary(&mapping(path)).unwrap().is_none());
        assert_eq!(binaries.losses().map(|loss| loss.count).collect::<Vec<_>>(), [1]);
    }

    /// Files that do not answer below `/hung`.
    struct Hung(Arc<Mutex<()>>);

    impl Files for Hung {
        fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
            HostFiles.open(path)
        }

        fn id(&self, path: &Path) -> io::Result<FileId> {
            if path.starts_with("/hung") {
                drop(self.0.lock());
            }
            HostFiles.id(path)
        }
    }

    #[test]
    fn a_file_system_that_does_not_answer_holds_no_import() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let build_id = binaries().binary(&mapping(path.clone())).unwrap().unwrap().1.build_id().to_vec();
        let answers = Arc::new(Mutex::new(()));
        let hangs = answers.lock().unwrap();
        let files = Arc::new(Hung(Arc::clone(&answers)));
        let reader = PatientReader::new(files, |files| files).with_silence_max(Duration::from_millis(500));
        let mut binaries = Binaries::of(HashMap::new(), reader);
        let mut assembler = Assembler::new(super::super::unseen_run(Vec::new()));
        let mut is_read = |path: &str, build_id: &[u8]| {
            let map = Map { path: b"", build_id, start: 0, bytes: 1, file_offset: 0, inode: 0, is_kernel: false };
            matches!(binaries.code(path, &map, &mut assembler, false), Code::Mapped { binary: Some(_), .. })
        };
        assert!(is_read(&path, &build_id) && !is_read("/hung/a", &build_id) && !is_read("/hung/b", &[]) && !is_read("/hung/c", &build_id));
        // Another name of the same file: after three that did not answer, nothing is read.
        assert!(!is_read(&path.replace('/', "/./"), &build_id));
        drop(hangs);
        let losses: Vec<(u64, bool)> = binaries.losses().map(|loss| (loss.count, loss.detail.ends_with("did not answer"))).collect();
        assert_eq!(losses, [(4, true)]);
        let paths: Vec<String> = assembler.finish().mappings.into_iter().map(|mapping| mapping.path).collect();
        assert_eq!(paths[2], "/hung/b (not readable)");
    }

    #[test]
    fn reading_ends_when_its_time_is_over() {
        let path = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let mut binaries = Binaries { time_left: Duration::ZERO, ..binaries() };
        assert_eq!(binaries.binary(&mapping(path)).unwrap_err(), Unread::Late);
    }
}
