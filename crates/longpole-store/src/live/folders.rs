//! The folders of a store that a server keeps, and what lies in them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::generation::Generations;
use super::kept_parts::PartsAccount;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::{self, Segment};
use super::{NODES, TENANT};
use crate::error::StoreError;
use crate::files;
use crate::layout::LOCK;

/// Where a server has what.
#[derive(Debug)]
pub(super) struct Folders {
    pub(super) node: String,
    pub(super) wal: PathBuf,
    /// Other nodes, whose logs this server takes over: another machine had the store, or it was put together from several.
    pub(super) others: Vec<NodeLogs>,
    pub(super) manifest: PathBuf,
    pub(super) segments: PathBuf,
    /// What is kept in memory of the segments.
    pub(super) parts: Arc<PartsAccount>,
}

/// The logs of a node.
#[derive(Debug, Clone)]
pub(super) struct NodeLogs {
    pub(super) node: String,
    pub(super) wal: PathBuf,
}

impl Folders {
    /// Opens the folders of a store, or makes them, and locks them.
    pub(super) fn open(root: &Path) -> Result<(Folders, Vec<File>), StoreError> {
        let nodes = make_dirs(root, &[NODES])?;
        let mut names = nodes_in(&nodes)?;
        if names.is_empty() {
            let mut random = [0; 4];
            let failed = |error: getrandom_03::Error| StoreError::io("create", &nodes)(io::Error::other(error.to_string()));
            getrandom_03::fill(&mut random).map_err(failed)?;
            names.push(format!("{:08x}", u32::from_le_bytes(random)));
        }
        let (mut locks, mut logs) = (Vec::new(), Vec::new());
        for node in names {
            let path = make_dirs(&nodes, &[&node])?.join(LOCK);
            let lock = files::open_lock(&path).map_err(StoreError::io("open", &path))?;
            match lock.try_lock() {
                Ok(()) => locks.push(lock),
                // A store has one server, whichever node it uses.
                Err(TryLockError::WouldBlock) => return Err(StoreError::Served { root: root.to_owned() }),
                Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
            }
            let wal = make_dirs(&nodes, &[&node, "wal", TENANT])?;
            logs.push(NodeLogs { node, wal });
        }
        let NodeLogs { node, wal } = logs.remove(0);
        let manifest = make_dirs(root, &["tenants", TENANT, "manifest"])?;
        let segments = make_dirs(root, &["tenants", TENANT, "segments"])?;
        Ok((Folders { node, wal, others: logs, manifest, segments, parts: Arc::default() }, locks))
    }

    pub(super) fn segment(&self, entry: &SegmentEntry) -> Segment {
        Segment::new(self.segments.join(entry.folder()), entry.clone(), &self.parts)
    }

    /// The list of segments. A segment that a whole list does not name, and that a server was making when it ended, is removed; everything else
    /// there stays. A list that is lost or damaged is made anew from the segments themselves, and nothing is removed.
    pub(super) fn list(&self, found: &[(String, PathBuf)], problems: &mut Vec<String>) -> Result<Manifest, StoreError> {
        // What the newest version makes superfluous goes soon: a power cut must not bring an earlier one back.
        files::sync_dir(&self.manifest).map_err(StoreError::io("sync", &self.manifest))?;
        let reason = match Manifest::newest(&self.manifest) {
            Ok(manifest) if manifest.version > 0 => {
                self.remove_unfinished(&manifest, found, problems)?;
                return Ok(manifest);
            }
            // A new store: from now on a list is there, or it is lost.
            Ok(_) if found.is_empty() => return Manifest::replace(&self.manifest, Vec::new(), BTreeMap::new()),
            Ok(_) => "it is gone".to_owned(),
            Err(StoreError::Corrupt { path, reason }) => format!("{}: {reason}", path.display()),
            // A version that the newest one builds on.
            Err(StoreError::Io { path, source, .. }) if source.kind() == io::ErrorKind::NotFound => format!("{} is gone", path.display()),
            Err(error) => return Err(error),
        };
        let (mut entries, mut unread) = (Vec::new(), 0);
        for (hour, folder) in found {
            match segment::entry_of(hour, folder) {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    unread += 1;
                    problems.push(format!("a segment stays as it is: failed to {error}"));
                }
            }
        }
        problems.push(format!(
            "the list of segments is damaged ({reason}): longpole made it anew from {} segments and left out {unread}; a span that was being moved \
             may count twice",
            entries.len()
        ));
        // What a segment holds stands in no log any more, also if nobody can read the segment: no later one may get its number.
        let mut watermarks: BTreeMap<String, u64> = BTreeMap::new();
        let names = found.iter().filter_map(|(_, folder)| folder.file_name()?.to_str());
        for (node, number) in names.filter_map(SegmentEntry::made_by) {
            let mark = watermarks.entry(node.to_owned()).or_default();
            *mark = (*mark).max(number.saturating_add(1));
        }
        if unread > 0 {
            // The logs of what cannot be read may still be there.
            watermarks.remove(&self.node);
        }
        Manifest::replace(&self.manifest, entries, watermarks)
    }

    /// The folders of segments that are there, with their hours. Links are not followed.
    pub(super) fn segment_folders(&self) -> Result<Vec<(String, PathBuf)>, StoreError> {
        let folders = |path: &Path| -> Result<Vec<PathBuf>, StoreError> {
            let mut folders = Vec::new();
            for entry in fs::read_dir(path).map_err(StoreError::io("list", path))? {
                let entry = entry.map_err(StoreError::io("list", path))?;
                if entry.file_type().map_err(StoreError::io("list", path))?.is_dir() {
                    folders.push(entry.path());
                }
            }
            folders.sort_unstable();
            Ok(folders)
        };
        let mut found = Vec::new();
        for hour in folders(&self.segments)? {
            let name = hour.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.extend(folders(&hour)?.into_iter().map(|segment| (name.clone(), segment)));
        }
        Ok(found)
    }

    /// Removes the segments that were being made: their logs are there. What else the list does not name may be anybody's.
    fn remove_unfinished(&self, manifest: &Manifest, found: &[(String, PathBuf)], problems: &mut Vec<String>) -> Result<(), StoreError> {
        let known: BTreeSet<PathBuf> = manifest.entries.iter().map(|entry| self.segments.join(entry.folder())).collect();
        let nodes: BTreeSet<&str> =
            std::iter::once(&self.node).chain(self.others.iter().map(|other| &other.node)).map(String::as_str).collect();
        for (_, folder) in found.iter().filter(|(_, folder)| !known.contains(folder)) {
            let id = folder.file_name().and_then(OsStr::to_str);
            if id.is_some_and(|id| manifest.removed.contains(id)) {
                // The server ended before its folder was gone.
                files::remove_all(folder).map_err(StoreError::io("remove", folder))?;
                continue;
            }
            let made_by =
                folder.file_name().and_then(OsStr::to_str).and_then(SegmentEntry::made_by).filter(|(node, _)| nodes.contains(node));
            match made_by.map(|(node, number)| (node, number, manifest.watermarks.get(node))) {
                Some((_, number, Some(watermark))) if number >= *watermark => {
                    files::remove_all(folder).map_err(StoreError::io("remove", folder))?;
                }
                // The first segment of a node, which ended before a list named it. If its logs are not all there, the list was lost since.
                Some((node, number, None)) => {
                    if self.has_logs_until(node, number)? {
                        files::remove_all(folder).map_err(StoreError::io("remove", folder))?;
                    }
                }
                _ => problems.push(format!("{} is in no list of segments: its spans are not read, and it stays", folder.display())),
            }
        }
        Ok(())
    }

    /// Whether a node has all its logs from the first to this one.
    fn has_logs_until(&self, node: &str, last: u64) -> Result<bool, StoreError> {
        let other = self.others.iter().find(|other| other.node == node).map(|other| &other.wal);
        let Some(wal) = other.or_else(|| (node == self.node).then_some(&self.wal)) else { return Ok(false) };
        let numbers = Generations::new(wal).numbers()?;
        let until = numbers.partition_point(|number| *number <= last) as u64;
        Ok(until == last.saturating_add(1))
    }

    /// Lines about what lies among the logs and is not read.
    pub(super) fn strays(&self) -> Result<Vec<String>, StoreError> {
        let mut lines = Vec::new();
        for wal in [&self.wal].into_iter().chain(self.others.iter().map(|other| &other.wal)) {
            let strays = Generations::new(wal).strays()?;
            lines.extend(strays.iter().map(|path| format!("{} has no name of a log: its spans are not read", path.display())));
        }
        Ok(lines)
    }
}

/// Makes folders below one that is there, and names the one that fails.
fn make_dirs(below: &Path, names: &[&str]) -> Result<PathBuf, StoreError> {
    let parts: Vec<&OsStr> = names.iter().map(OsStr::new).collect();
    files::make_dirs(below, &parts).map_err(|error| {
        let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
        let paths = (1..=names.len()).map(|count| names[..count].iter().fold(below.to_owned(), |path, name| path.join(name)));
        let failed = paths.into_iter().find(|path| !is_folder(path)).unwrap_or_else(|| below.to_owned());
        StoreError::io("create", failed)(error)
    })
}

/// The nodes whose folders are there, in order: a store has one for each machine that has served it.
fn nodes_in(nodes: &Path) -> Result<Vec<String>, StoreError> {
    let is_name = |name: &str| name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut found = Vec::new();
    for entry in fs::read_dir(nodes).map_err(StoreError::io("list", nodes))? {
        let name = entry.map_err(StoreError::io("list", nodes))?.file_name();
        found.extend(name.to_str().filter(|name| is_name(name)).map(str::to_owned));
    }
    found.sort_unstable();
    Ok(found)
}
