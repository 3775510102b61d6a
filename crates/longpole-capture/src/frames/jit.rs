//! Code without a binary: the program that compiled it, and its names from `/tmp/perf-PID.map` or a `jit-PID.dump`
//! (`tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt` of Linux).
//!
//! ```text
//! first code without a file ─► where would its map be?       (while the process lives: its root, its own pid, its user)
//! it maps a page of its dump ─► the dump is opened           (the page is there to show tools where the dump is)
//! process ends, executes, or the recording ends ─► both are read, locations get names
//! ```
//!
//! Forked processes share the dump of their parent. It is read once for all of them, when the last one has ended: the dump of a server has
//! hundreds of megabytes, and the server may have hundreds of workers.
//!
//! A dump has more than a map: when code was where, and its lines. So it wins if both have a name.
//!
//! A directory of another mount namespace is kept open, because it cannot be found again when the process has ended. A map counts only if
//! the process's own user wrote it since the process was seen: anybody can put a file into `/tmp`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longpole_model::stack::Runtime;
use longpole_model::{AbsAddr, Loss, LossKind, Monotonic};
use longpole_symbols::jitdump::{self, JitDump, Stretch};
use longpole_symbols::perf_map::{self, Described};

use crate::frames::maps::open_mapped;
use crate::frames::stacks::{Name, ProgramId, Stacks};
use crate::perf::record::MapRecord;
use crate::procfs::stat::runs;
use crate::regular_file::{self, Symlinks};
use crate::sink::ObservationWriter;
use crate::sys::clock::monotonic_nanos;
use longpole_model::fast_hash::FastMap;

/// Most bytes read of a map: a large program writes some tens of megabytes.
const MAP_BYTES_MAX: u64 = 256 << 20;

/// Most directories of other mount namespaces kept open.
const DIRECTORIES_MAX: usize = 64;

/// Most dumps kept open.
const DUMPS_MAX: usize = 64;

/// Most bytes of maps and dumps read in a recording: 10 s of reading.
const READ_BYTES_MAX: u64 = 4 << 30;

/// Most bytes of names from maps that wait until a dump is read, which has most of them as well.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// How much older than the first sight of its process a map may be: it may be written meanwhile.
const MAP_AGE_MAX: Duration = Duration::from_secs(2);

/// PROT_EXEC of mmap(2).
const PROTECTION_EXECUTE: u32 = 4;

/// Where a process would leave its map.
#[derive(Debug)]
struct Home {
    /// `/tmp`, or that of another root.
    directory: Directory,
    /// Its id in its own pid namespace.
    own_pid: u32,
    uid: u32,
    since: SystemTime,
}

#[derive(Debug)]
enum Directory {
    Ours,
    Open(File),
}

impl Directory {
    fn path(&self) -> PathBuf {
        match self {
            Directory::Ours => PathBuf::from("/tmp"),
            Directory::Open(directory) => PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())),
        }
    }
}

/// A file to which a process writes what it compiles.
#[derive(Debug)]
struct Dump {
    path: String,
    file: File,
}

/// A process between two execs.
#[derive(Debug, Default)]
struct JitProgram {
    id: ProgramId,
    /// Its runtime, by the binaries it maps.
    runtime: Option<Runtime>,
    /// Whether it has written a map or a dump; unknown as long as nobody asked.
    has_map: Option<bool>,
    /// Samples with code without a binary, whose functions are unknown.
    samples: u64,
}

/// A program that has ended.
#[derive(Debug)]
struct Over {
    pid: u32,
    program: JitProgram,
    /// Addresses of its code without a binary, ascending.
    addresses: Vec<u64>,
    /// The name of each of them in its map.
    by_map: Vec<Option<Arc<str>>>,
    by_map_bytes: usize,
}

/// Bytes of names. Those of one line are one, and mostly neighbours.
fn bytes_of(names: &[Option<Arc<str>>]) -> usize {
    let mut bytes = 0;
    let mut last = None;
    for name in names.iter().flatten() {
        if last.is_none_or(|last| !Arc::ptr_eq(last, name)) {
            bytes += name.len();
        }
        last = Some(name);
    }
    bytes
}

/// The programs of a recording.
pub(crate) struct Jit {
    programs: FastMap<u32, JitProgram>,
    next: u32,
    /// By pid. Kept after the process has ended, until that record has its turn.
    homes: FastMap<u32, Home>,
    directories: usize,
    /// By pid, with the time of the mapping. A forked process has the dumps of its parent.
    dumps: FastMap<u32, Vec<(u64, Arc<Dump>)>>,
    /// Programs that have ended, whose dump another process still has.
    shared: Vec<(Arc<Dump>, Vec<Over>)>,
    /// Bytes of maps and dumps that may still be read.
    bytes_left: u64,
    /// Faults of dumps, not yet reported.
    faults: Vec<Loss>,
    /// Whether to remove maps, because this recording caused them.
    remove: bool,
    /// Samples with code without a name, by runtime, not yet reported.
    nameless: FastMap<u32, u64>,
}

impl Jit {
    /// With `remove`, maps are deleted once read.
    pub(crate) fn new(remove: bool) -> Jit {
        // Program 0 stands for unknown processes.
        Jit {
            programs: FastMap::default(),
            next: 1,
            homes: FastMap::default(),
            directories: 0,
            dumps: FastMap::default(),
            shared: Vec::new(),
            bytes_left: READ_BYTES_MAX,
            faults: Vec::new(),
            remove,
            nameless: FastMap::default(),
        }
    }

    /// A record of a mapping has arrived: finds out where the process would put its map, while it lives, and opens its dump.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, map: &MapRecord<'_>) {
        let is_code = map.protection & PROTECTION_EXECUTE != 0;
        if is_code && is_dump(map.path) {
            return self.found_dump(pid, time, map);
        }
        if map.inode != 0 || !is_code || map.path.starts_with(b"[") || self.homes.contains_key(&pid) {
            return;
        }
        if let Some(home) = Home::find(pid, self.directories < DIRECTORIES_MAX) {
            self.directories += usize::from(matches!(home.directory, Directory::Open(_)));
            self.homes.insert(pid, home);
        }
    }

    fn found_dump(&mut self, pid: u32, time: u64, map: &MapRecord<'_>) {
        let path = String::from_utf8_lossy(map.path).into_owned();
        if self.dumps.get(&pid).is_some_and(|own| own.iter().any(|(_, dump)| dump.path == path)) {
            return;
        }
        let open: usize = self.dumps.values().map(Vec::len).sum();
        if open >= DUMPS_MAX {
            let detail = "symbol files of JIT-compiled code (jit-PID.dump): more than longpole keeps open at a time";
            return Loss::new(LossKind::SymbolsUnreadable, 1, detail).merge_into(&mut self.faults);
        }
        match open_mapped(pid, map) {
            Ok((file, _)) => self.dumps.entry(pid).or_default().push((time, Arc::new(Dump { path, file }))),
            // Too late, or not its own: its code has no names.
            Err(absent) => Loss::new(LossKind::SymbolsUnreadable, 1, path + absent.suffix()).merge_into(&mut self.faults),
        }
    }

    /// A process was forked: it runs the code of its parent.
    pub(crate) fn forked(&mut self, pid: u32, parent: u32) {
        if let Some(dumps) = self.dumps.get(&parent) {
            self.dumps.insert(pid, dumps.clone());
        }
    }

    /// A binary is mapped: some show the runtime of the program.
    pub(crate) fn binary(&mut self, pid: u32, path: &[u8]) {
        let runtime = match path.rsplit(|byte| *byte == b'/').next().unwrap_or_default() {
            b"libjvm.so" => Runtime::Jvm,
            name if name == b"node" || name == b"nodejs" || name.starts_with(b"libnode.so") => Runtime::Node,
            _ => return,
        };
        self.program_mut(pid).runtime = Some(runtime);
    }

    fn program_mut(&mut self, pid: u32) -> &mut JitProgram {
        let next = &mut self.next;
        self.programs.entry(pid).or_insert_with(|| {
            let id = ProgramId(*next);
            *next += 1;
            JitProgram { id, ..JitProgram::default() }
        })
    }

    /// The program that a process runs now.
    pub(crate) fn program(&mut self, pid: u32) -> ProgramId {
        self.program_mut(pid).id
    }

    /// Whether compiled code of a process will get names, because it has written a map or a dump.
    pub(crate) fn has_map(&mut self, pid: u32) -> bool {
        let (homes, dumps) = (&self.homes, &self.dumps);
        let is_there = || Some(homes.get(&pid)?.open().is_some());
        let known = self.programs.get(&pid).and_then(|program| program.has_map);
        if let Some(has_map) = known.or_else(is_there) {
            self.program_mut(pid).has_map = Some(has_map);
            return has_map || self.dumps.contains_key(&pid);
        }
        dumps.contains_key(&pid)
    }

    /// A sample has code of no binary, whose function is unknown.
    pub(crate) fn count(&mut self, pid: u32) {
        self.program_mut(pid).samples += 1;
    }

    /// A process executes a program, or has ended: the code that it ran before gets its names.
    pub(crate) fn over(&mut self, pid: u32, time: u64, stacks: &mut Stacks, out: &mut ObservationWriter) {
        // Dumps of the program that follows may be here already.
        let mut dump = None;
        if let Some(dumps) = self.dumps.get_mut(&pid) {
            dump = dumps.iter().rfind(|(at, _)| *at <= time).map(|(_, dump)| Arc::clone(dump));
            dumps.retain(|(at, _)| *at > time);
            if dumps.is_empty() {
                self.dumps.remove(&pid);
            }
        }
        if let Some(program) = self.programs.remove(&pid) {
            let addresses = stacks.unmapped(program.id);
            let map = if addresses.is_empty() { Vec::new() } else { self.map(pid) };
            let by_map = perf_map::names(&map, &addresses);
            let by_map_bytes = bytes_of(&by_map);
            let mut over = Over { pid, program, addresses, by_map, by_map_bytes };
            if dump.is_some() && by_map_bytes + self.waiting_bytes() > WAITING_BYTES_MAX {
                over.by_map.fill(None);
                over.by_map_bytes = 0;
                let detail = format!("names in /tmp/perf-PID.map beside a jit-PID.dump: more than {} MiB", WAITING_BYTES_MAX >> 20);
                Loss::new(LossKind::SymbolsUnreadable, 1, detail).merge_into(&mut self.faults);
            }
            match dump {
                Some(dump) => match self.shared.iter_mut().find(|(shared, _)| Arc::ptr_eq(shared, &dump)) {
                    Some((_, list)) => list.push(over),
                    None => self.shared.push((dump, vec![over])),
                },
                None => self.name(over, &[], &[], (stacks, out)),
            }
        }
        // Dumps that no other process has.
        while let Some(at) = self.shared.iter().position(|(dump, _)| Arc::strong_count(dump) == 1) {
            self.name_by_dump(at, (stacks, out));
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.shared.iter().flat_map(|(_, list)| list).map(|over| over.by_map_bytes).sum()
    }

    /// The bytes of the map of a process.
    fn map(&mut self, pid: u32) -> Vec<u8> {
        let Some(file) = self.homes.get(&pid).and_then(Home::open) else { return Vec::new() };
        if !self.may_read(&file) {
            return Vec::new();
        }
        let mut bytes = Vec::new();
        // The bytes before an error are of use.
        file.take(MAP_BYTES_MAX).read_to_end(&mut bytes).ok();
        bytes
    }

    /// Whether a file may still be read; counts its bytes.
    fn may_read(&mut self, file: &File) -> bool {
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let left = self.bytes_left.checked_sub(bytes);
        if left.is_none() {
            let detail = format!("symbol files of JIT-compiled code: more than {} GiB", READ_BYTES_MAX >> 30);
            Loss::new(LossKind::SymbolsUnreadable, 1, detail).merge_into(&mut self.faults);
        }
        self.bytes_left = left.unwrap_or(self.bytes_left);
        left.is_some()
    }

    /// Names the programs that share a dump.
    fn name_by_dump(&mut self, at: usize, (stacks, out): (&mut Stacks, &mut ObservationWriter)) {
        let (dump, list) = self.shared.swap_remove(at);
        let mut addresses: Vec<u64> = list.iter().flat_map(|over| &over.addresses).copied().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let may_read = !addresses.is_empty() && self.may_read(&dump.file);
        let JitDump { code, fault } = if may_read { dump.read(&addresses) } else { JitDump::default() };
        if let Some(fault) = fault
            // A process that lives may be in the middle of writing a record.
            && (!fault.is_end || !list.iter().any(|over| runs(over.pid)))
        {
            Loss::new(LossKind::SymbolsUnreadable, 1, format!("{fault}: {}", dump.path)).merge_into(&mut self.faults);
        }
        for over in list {
            self.name(over, &addresses, &code, (stacks, out));
        }
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32, time: u64, stacks: &mut Stacks, out: &mut ObservationWriter) {
        self.over(pid, time, stacks, out);
        let Some(home) = self.homes.remove(&pid) else { return };
        if self.remove {
            home.remove();
        }
        self.directories -= usize::from(matches!(home.directory, Directory::Open(_)));
    }

    /// The recording ends.
    pub(crate) fn finish(&mut self, stacks: &mut Stacks, out: &mut ObservationWriter) {
        let mut pids: Vec<u32> = self.programs.keys().chain(self.homes.keys()).copied().collect();
        pids.sort_unstable();
        pids.dedup();
        let remove = self.remove;
        for pid in pids {
            // A process that still runs goes on writing.
            self.remove = remove && !runs(pid);
            self.ended(pid, u64::MAX, stacks, out);
        }
        self.remove = remove;
        while !self.shared.is_empty() {
            self.name_by_dump(0, (stacks, out));
        }
    }

    /// Writes the names of the code that a program ran: from its dump, with this code at these addresses, or else from its map.
    fn name(&mut self, over: Over, dumped: &[u64], code: &[Vec<Stretch>], (stacks, out): (&mut Stacks, &mut ObservationWriter)) {
        let Over { program, addresses, by_map, .. } = over;
        if addresses.is_empty() {
            return;
        }
        let stretches =
            |address: u64| dumped.binary_search(&address).ok().and_then(|at| code.get(at)).map(Vec::as_slice).unwrap_or_default();
        let as_name = |Described { runtime, function, file, line }| Name {
            runtime: runtime.or(program.runtime).unwrap_or(Runtime::Other),
            function,
            file,
            line,
        };
        let by_time = |address: AbsAddr| {
            let stretches = stretches(address.0);
            if stretches.is_empty() {
                let name = addresses.binary_search(&address.0).ok().and_then(|at| by_map[at].as_deref());
                return name.map(|name| (Monotonic(0), Some(as_name(perf_map::describe(name))))).into_iter().collect();
            }
            stretches.iter().map(|it| (Monotonic(it.since), it.code.as_deref().cloned().map(as_name))).collect()
        };
        stacks.name_unmapped_by_time(program.id, by_time, out);
        // A map that names nothing counts as none. A map leaves out stubs, one sample in a hundred.
        if by_map.iter().all(Option::is_none) && addresses.iter().all(|address| stretches(*address).is_empty()) && program.samples > 0 {
            *self.nameless.entry(program.runtime.unwrap_or(Runtime::Other) as u32).or_insert(0) += program.samples;
        }
    }

    /// What has no names and is not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let mut losses = std::mem::take(&mut self.faults);
        for runtime in Runtime::ALL {
            let Some(count) = self.nameless.remove(&(runtime as u32)) else { continue };
            let detail = match runtime {
                Runtime::Node => "functions of JavaScript; node writes their names only on request: pass --jit node to longpole run",
                Runtime::Jvm => "methods of Java; the virtual machine writes their names only on request: pass --jit java to longpole run",
                Runtime::Python | Runtime::Other | Runtime::Kernel => {
                    "code that was compiled while the program ran, without a name in /tmp/perf-PID.map or in a jit-PID.dump that the program mapped"
                }
            };
            losses.push(Loss::new(LossKind::FunctionsNotSeen, count, detail));
        }
        losses
    }
}

/// Whether a path is that of a dump: `jit-PID.dump`, in any directory.
fn is_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let pid = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    path.starts_with(b"/") && pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

impl Dump {
    fn read(&self, addresses: &[u64]) -> JitDump {
        jitdump::read(&self.file, addresses, Some(monotonic_nanos()))
    }
}

impl Home {
    /// The place of a process that lives; `may_open` says whether another directory may be kept open.
    fn find(pid: u32, may_open: bool) -> Option<Home> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let uid = fs::metadata(&process).ok()?.uid();
        let status = fs::read_to_string(process.join("status")).ok()?;
        let own_pid = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().next_back()?.parse().ok()?;
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let theirs = process.join("root/tmp");
        let is_ours = match (fs::metadata(&theirs), fs::metadata("/tmp")) {
            (Ok(theirs), Ok(ours)) => same(theirs, ours),
            // Not readable, or gone already: our own is the likeliest place.
            _ => true,
        };
        let directory = if is_ours {
            Directory::Ours
        } else if may_open {
            Directory::Open(OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_PATH).open(&theirs).ok()?)
        } else {
            return None;
        };
        let since = SystemTime::now().checked_sub(MAP_AGE_MAX)?;
        Some(Home { directory, own_pid, uid, since })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(format!("perf-{}.map", self.own_pid))
    }

    /// Its map, if its own user wrote it.
    fn open(&self) -> Option<File> {
        let (file, metadata) = regular_file::open(&self.path(), Symlinks::Refused).ok()??;
        let is_new = metadata.modified().is_ok_and(|written| written >= self.since);
        (metadata.uid() == self.uid && is_new).then_some(file)
    }

    fn remove(&self) {
        if self.open().is_some() {
            // Another process may have removed it.
            fs::remove_file(self.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::Observation;

    use super::*;
    use crate::frames::stacks::FrameLocation;
    use crate::sink::testing;

    fn own_home() -> Home {
        Home::find(std::process::id(), true).unwrap()
    }

    #[test]
    fn a_map_counts_if_it_is_new_and_the_process_s_own() {
        let mut home = own_home();
        assert_eq!(home.own_pid, std::process::id());
        // Beside the real one, which a runtime within the tests could write.
        home.own_pid += 500_000_000;
        let read = |home: &Home| {
            let mut text = String::new();
            home.open()?.read_to_string(&mut text).ok().map(|_| text)
        };
        assert!(read(&home).is_none(), "none is there");
        fs::write(home.path(), "1000 10 f\n").unwrap();
        assert_eq!(read(&home).as_deref(), Some("1000 10 f\n"));
        home.uid += 1;
        assert!(read(&home).is_none(), "somebody else's");
        home.uid -= 1;
        home.since = SystemTime::now() + Duration::from_secs(60);
        home.remove();
        assert!(home.path().exists(), "of an earlier process of the same id");
        home.since = SystemTime::UNIX_EPOCH;
        home.remove();
        assert!(!home.path().exists());
        std::os::unix::fs::symlink("/etc/passwd", home.path()).unwrap();
        assert!(read(&home).is_none(), "a link leads anywhere");
        fs::remove_file(home.path()).unwrap();
    }

    #[test]
    fn another_program_of_a_process_has_another_number() {
        let mut jit = Jit::new(false);
        let (mut stacks, mut out) = (Stacks::default(), ObservationWriter::new(Box::new(Vec::new())));
        let first = jit.program(5_000_000);
        assert_eq!(jit.program(5_000_000), first);
        jit.over(5_000_000, 0, &mut stacks, &mut out);
        assert_ne!(jit.program(5_000_000), first);
    }

    /// A dump with one function of 4096 bytes at 0x1000, which came first.
    fn dump() -> Arc<Dump> {
        let path = std::env::temp_dir().join(format!("jit-{}-{}.dump", std::process::id(), monotonic_nanos()));
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let long = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let header = [words(&[0x4a69_5444, 1, 40, 62, 0, 7]), long(&[1, 0])].concat();
        let load = [words(&[0, 64]), long(&[1]), words(&[7, 7]), long(&[0x1000, 0x1000, 4096, 0]), b"compiled".to_vec()].concat();
        // Its name ends with the record.
        fs::write(&path, [header, load].concat()).unwrap();
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        Arc::new(Dump { path: "jit-7.dump".to_owned(), file })
    }

    #[test]
    fn a_dump_is_read_once_for_all_who_share_it() {
        let pids = 5_000_000..5_000_100;
        let (mut out, seen) = testing::out(false);
        let (mut jit, mut stacks) = (Jit::new(false), Stacks::default());
        let dump = dump();
        let length = dump.file.metadata().unwrap().len();
        jit.dumps.insert(pids.start, vec![(0, dump)]);
        for pid in pids.clone() {
            jit.forked(pid, pids.start);
            let program = jit.program(pid);
            stacks.location(FrameLocation::Unmapped { program, address: AbsAddr(0x1000 + u64::from(pid % 100)) }, &mut out).unwrap();
        }
        let named = || seen.lock().unwrap().iter().filter(|observed| matches!(observed, Observation::Named { .. })).count();
        for pid in pids.clone().rev() {
            assert_eq!((named(), jit.bytes_left), (0, READ_BYTES_MAX), "{pid}");
            jit.ended(pid, 1, &mut stacks, &mut out);
        }
        assert_eq!((named(), jit.bytes_left, jit.losses()), (100, READ_BYTES_MAX - length, Vec::new()));
    }

    #[test]
    fn names_that_wait_for_a_dump_have_a_limit() {
        let (mut out, seen) = testing::out(false);
        let (mut jit, mut stacks) = (Jit::new(false), Stacks::default());
        // Both processes have the dump of a third one, which knows none of their code, and the second one has no room for its map.
        for (pid, taken) in [(5_000_200, 0), (5_000_201, WAITING_BYTES_MAX)] {
            let home = Home { own_pid: 500_000_000 + pid, since: SystemTime::UNIX_EPOCH, ..own_home() };
            fs::write(home.path(), "9000 10 interpreted\n").unwrap();
            jit.homes.insert(pid, home);
            jit.dumps.entry(5_000_199).or_insert_with(|| vec![(0, dump())]);
            jit.forked(pid, 5_000_199);
            let program = jit.program(pid);
            stacks.location(FrameLocation::Unmapped { program, address: AbsAddr(0x9000) }, &mut out).unwrap();
            jit.shared.iter_mut().flat_map(|(_, list)| list).for_each(|over| over.by_map_bytes += taken);
            jit.over(pid, 1, &mut stacks, &mut out);
            jit.homes[&pid].remove();
        }
        jit.finish(&mut stacks, &mut out);
        let named = seen.lock().unwrap().iter().filter(|observed| matches!(observed, Observation::Named { .. })).count();
        let detail = "names in /tmp/perf-PID.map beside a jit-PID.dump: more than 64 MiB";
        assert_eq!(named, 1);
        assert!(jit.losses().contains(&Loss::new(LossKind::SymbolsUnreadable, 1, detail)));
    }

    #[test]
    fn files_beyond_the_limit_are_not_read_and_counted() {
        let (mut out, seen) = testing::out(false);
        let (mut jit, mut stacks) = (Jit::new(false), Stacks::default());
        jit.bytes_left = 1;
        jit.dumps.insert(5_000_000, vec![(0, dump())]);
        let program = jit.program(5_000_000);
        stacks.location(FrameLocation::Unmapped { program, address: AbsAddr(0x1000) }, &mut out).unwrap();
        jit.finish(&mut stacks, &mut out);
        assert!(!seen.lock().unwrap().iter().any(|observed| matches!(observed, Observation::Named { .. })));
        let losses = jit.losses();
        assert_eq!(losses, [Loss::new(LossKind::SymbolsUnreadable, 1, "symbol files of JIT-compiled code: more than 4 GiB")]);
    }
}
