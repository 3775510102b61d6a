//! A snapshot of a tree of processes that runs already.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::procfs::stat::Stat;
use crate::refusal::Refused;

/// Most processes of a tree: no command has more.
const PROCESSES_MAX: usize = 4_096;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessSnapshot {
    pub(crate) pid: u32,
    /// `None` for the root of the tree.
    pub(crate) parent: Option<u32>,
    pub(crate) name: String,
    pub(crate) threads: Vec<ThreadSnapshot>,
    pub(crate) maps: Vec<MappedCode>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadSnapshot {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// Whether it sleeps.
    pub(crate) blocked: bool,
}

/// Executable memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedCode {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file_offset: u64,
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) path: Vec<u8>,
}

/// Whether `/proc` belongs to another pid namespace than ours (after `unshare -pf`, `nsenter -p`): then our process ids mean other processes
/// there (pid_namespaces(7)).
pub fn is_proc_of_others() -> bool {
    static IS_IT: OnceLock<bool> = OnceLock::new();
    *IS_IT.get_or_init(|| fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() != std::process::id().to_string().as_str()))
}

/// Checks that `/proc` is about our pid namespace.
pub(crate) fn check_proc() -> Result<(), Refused> {
    if is_proc_of_others() { Err(Refused::OtherPidNamespace) } else { Ok(()) }
}

/// The children of each process.
fn children_of_all() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in pids() {
        if let Some(stat) = Stat::of_process(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    children
}

/// The ids of a process and of its descendants, without a look at their memory.
pub(crate) fn ids_of_tree(root: u32) -> Vec<u32> {
    let mut children = children_of_all();
    let mut ids = vec![root];
    let mut next = 0;
    while let Some(pid) = ids.get(next).copied() {
        next += 1;
        ids.extend(children.remove(&pid).unwrap_or_default());
        ids.truncate(PROCESSES_MAX);
    }
    ids
}

/// The process and its descendants, parents before children. Empty if it does not exist.
pub(crate) fn tree_of(root: u32) -> Vec<ProcessSnapshot> {
    let mut children = children_of_all();
    let mut out: Vec<ProcessSnapshot> = ProcessSnapshot::read(root, None).into_iter().collect();
    let mut next = 0;
    while let Some(pid) = out.get(next).map(|process| process.pid) {
        next += 1;
        for child in children.remove(&pid).unwrap_or_default() {
            if out.len() < PROCESSES_MAX {
                out.extend(ProcessSnapshot::read(child, Some(pid)));
            }
        }
    }
    out
}

/// All processes of the machine, without what they map.
pub(crate) fn all_processes() -> Vec<ProcessSnapshot> {
    pids().filter_map(ProcessSnapshot::without_code).collect()
}

/// The ids of all processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

impl ProcessSnapshot {
    /// A process with its parent, whatever that is, and without what it maps.
    fn without_code(pid: u32) -> Option<ProcessSnapshot> {
        let stat = Stat::of_process(pid)?;
        let threads = threads_of(pid);
        let parent = (stat.parent != 0).then_some(stat.parent);
        (!threads.is_empty()).then(|| ProcessSnapshot { pid, parent, name: stat.name, threads, maps: Vec::new() })
    }

    /// A process of a tree, with what it maps.
    fn read(pid: u32, parent: Option<u32>) -> Option<ProcessSnapshot> {
        let found = ProcessSnapshot::without_code(pid)?;
        Some(ProcessSnapshot { parent, maps: maps_of(pid), ..found })
    }
}

/// The executable memory of a process.
pub(crate) fn maps_of(pid: u32) -> Vec<MappedCode> {
    fs::read(format!("/proc/{pid}/maps")).map(|text| maps(&text)).unwrap_or_default()
}

/// The threads of a process.
pub(crate) fn threads_of(pid: u32) -> Vec<ThreadSnapshot> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = |entry: fs::DirEntry| {
        let tid: u32 = std::str::from_utf8(entry.file_name().as_bytes()).ok()?.parse().ok()?;
        let stat = Stat::of_thread(pid, tid)?;
        Some(ThreadSnapshot { tid, name: stat.name, blocked: stat.is_asleep })
    };
    entries.filter_map(thread).collect()
}

/// The executable lines of a `maps` file (proc_pid_maps(5)): `START-END r-xp OFFSET MAJOR:MINOR INODE PATH`.
fn maps(text: &[u8]) -> Vec<MappedCode> {
    text.split(|byte| *byte == b'\n').filter_map(mapped).collect()
}

fn mapped(line: &[u8]) -> Option<MappedCode> {
    let mut rest = line;
    let mut word = || {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let end = rest[start..].iter().position(|byte| *byte == b' ').map_or(rest.len(), |length| start + length);
        let word = std::str::from_utf8(&rest[start..end]).ok()?;
        rest = &rest[end..];
        Some(word)
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let protection = word()?;
    let file_offset = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok()?;
    let path = rest.iter().position(|byte| *byte != b' ').map_or(&b""[..], |at| &rest[at..]);
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    (protection.as_bytes().get(2) == Some(&b'x')).then_some(())?;
    Some(MappedCode {
        start: hex(start)?,
        end: hex(end)?,
        file_offset,
        device: (number(major)?, number(minor)?),
        inode,
        path: if path.is_empty() { b"//anon".to_vec() } else { path.to_vec() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_mappings_are_read() {
        let text = b"55d0-55e0 r-xp 00001000 fd:01 123   /opt/my program\n55e0-55f0 rw-p 00000000 00:00 0 [heap]\n7f00-7f10 r-xp 0 00:00 0\nnonsense\n";
        let found = maps(text);
        assert_eq!(found.len(), 2);
        let first = MappedCode {
            start: 0x55d0,
            end: 0x55e0,
            file_offset: 0x1000,
            device: (0xfd, 1),
            inode: 123,
            path: b"/opt/my program".to_vec(),
        };
        assert_eq!(found[0], first);
        assert_eq!((found[1].start, &found[1].path[..]), (0x7f00, &b"//anon"[..]));
    }

    #[test]
    fn this_process_is_a_tree_of_its_own() {
        let own = tree_of(std::process::id());
        assert_eq!((own[0].pid, own[0].parent), (std::process::id(), None));
        assert!(own[0].threads.iter().any(|thread| thread.tid == std::process::id()) && !own[0].maps.is_empty());
        assert!(tree_of(u32::MAX).is_empty());
    }
}
