//! The list of a tenant's segments: numbered files, each made once and never changed.
//!
//! ```text
//! manifest/00000000000000000007.json
//! {"add":[{…}],"checkpoint":false,"crc32c":1234567890,"remove":["0-5f2c91aa-0000000003"],"version":7,"watermarks":{"5f2c91aa":4}}
//! ```
//!
//! `crc32c` is of the same text without it: a list that is damaged must not decide what is removed.
//!
//! Version n says what changed since n-1, or, as a checkpoint, everything. A version that exists is never overwritten: of two writers one gets
//! it, and the other reads it first. A node's watermark is the first of its logs that no segment holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longpole_model::Timestamp;
use serde_json::{Value, json};

use super::generation::NUMBER_MAX;
use super::profiles::overlaps;
use crate::error::StoreError;
use crate::files;
use crate::format::RECORDING_VERSION;

/// Each version of this multiple lists everything.
const CHECKPOINT_EVERY: u64 = 100;

/// Versions before the last checkpoint that stay, for a reader that is slow.
const KEPT_BEHIND_CHECKPOINT: u64 = CHECKPOINT_EVERY;

/// Services that an entry names; with more a search cannot skip it by its service.
pub(super) const SERVICES_MAX: usize = 64;

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentEntry {
    /// Unique in its tenant: level, node and number of its last log.
    pub(super) id: String,
    /// Hour in which its first spans were received, in UTC: `2026112812`. Names its folder.
    pub(super) hour: String,
    pub(super) spans: u64,
    pub(super) traces: u64,
    /// Bytes of its files.
    pub(super) bytes: u64,
    /// First start and last end of its spans.
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// When its first and its last spans were received.
    pub(super) received: [Timestamp; 2],
    /// Services of its spans; empty if there are more than [`SERVICES_MAX`].
    pub(super) services: Vec<String>,
    /// Version of its tables.
    pub(super) schema: u32,
    /// Values of profiles.
    pub(super) profile_values: u64,
    /// Times of the first and the last of them.
    pub(super) profile_times: Option<[Timestamp; 2]>,
}

impl SegmentEntry {
    fn json(&self) -> Value {
        let mut entry = json!({
            "id": self.id,
            "hour": self.hour,
            "spans": self.spans,
            "traces": self.traces,
            "bytes": self.bytes,
            "start_time_unix_nano": self.start.unix_nanos(),
            "end_time_unix_nano": self.end.unix_nanos(),
            "received_unix_nano": self.received.map(Timestamp::unix_nanos),
            "services": self.services,
            "schema": self.schema,
        });
        if let Some(times) = self.profile_times {
            entry["profile_values"] = self.profile_values.into();
            entry["profiles_unix_nano"] = json!(times.map(Timestamp::unix_nanos));
        }
        entry
    }

    fn of(value: &Value) -> Option<SegmentEntry> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let time = |value: &Value| value.as_i64().map(Timestamp);
        let entry = SegmentEntry {
            id: text("id")?,
            hour: text("hour")?,
            spans: value["spans"].as_u64()?,
            traces: value["traces"].as_u64()?,
            bytes: value["bytes"].as_u64()?,
            start: time(&value["start_time_unix_nano"])?,
            end: time(&value["end_time_unix_nano"])?,
            received: [time(&value["received_unix_nano"][0])?, time(&value["received_unix_nano"][1])?],
            services: value["services"].as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            schema: u32::try_from(value["schema"].as_u64()?).ok()?,
            // An older longpole kept no profiles.
            profile_values: value["profile_values"].as_u64().unwrap_or_default(),
            profile_times: match &value["profiles_unix_nano"] {
                Value::Null => None,
                times => Some([time(&times[0])?, time(&times[1])?]),
            },
        };
        entry.is_plain().then_some(entry)
    }

    /// Whether it has values of profiles between two times, the second of them too late.
    pub(super) fn has_profiles_between(&self, from: Timestamp, until: Timestamp) -> bool {
        self.profile_times.is_some_and(|times| overlaps(times, from, until))
    }

    /// Whether its names, which name folders, lead nowhere else.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_plain(&self.id) && is_plain(&self.hour)
    }

    /// The node that made it, and the number of its last log.
    pub(super) fn made_by(id: &str) -> Option<(&str, u64)> {
        let (rest, number) = id.rsplit_once('-')?;
        Some((rest.split_once('-')?.1, number.parse().ok().filter(|number| *number <= NUMBER_MAX)?))
    }

    /// Where its files are, below the folder of the segments.
    pub(super) fn folder(&self) -> PathBuf {
        Path::new(&self.hour).join(&self.id)
    }
}

/// What changes from one version to the next.
#[derive(Debug, Default)]
pub(super) struct ManifestChange {
    pub(super) add: Vec<SegmentEntry>,
    pub(super) remove: Vec<String>,
    /// The nodes whose logs before these numbers are not needed any more.
    pub(super) watermarks: Vec<(String, u64)>,
}

/// All segments, in one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) version: u64,
    pub(super) entries: Vec<SegmentEntry>,
    pub(super) watermarks: BTreeMap<String, u64>,
    /// What the versions from the last checkpoint on removed: their folders may still be there.
    pub(super) removed: BTreeSet<String>,
    /// Its file is there, and the disk may lack its name: a power cut brings an earlier version back.
    pub(super) unsynced: bool,
}

impl Manifest {
    /// The newest version in this folder; without one, an empty list.
    pub(super) fn newest(folder: &Path) -> Result<Manifest, StoreError> {
        let Some(newest) = newest_version(folder)? else { return Ok(Manifest::default()) };
        // Backwards to the last one that lists everything.
        let mut changes = Vec::new();
        let mut version = newest;
        loop {
            let path = folder.join(file_name(version));
            let bytes = files::read(&path).map_err(StoreError::io("read", &path))?;
            let corrupt = |reason: &str| StoreError::Corrupt { path: path.clone(), reason: reason.to_owned() };
            let mut value: Value = serde_json::from_slice(&bytes).map_err(|error| corrupt(&error.to_string()))?;
            let crc = value.as_object_mut().and_then(|object| object.remove("crc32c")).and_then(|crc| crc.as_u64());
            if crc != Some(u64::from(crc_of(&value))) {
                return Err(corrupt("its checksum is wrong"));
            }
            let is_checkpoint = value["checkpoint"].as_bool().ok_or_else(|| corrupt("it does not state whether it is a checkpoint"))?;
            if value["version"].as_u64() != Some(version) {
                return Err(corrupt("it states another version than its name"));
            }
            changes.push((path, value));
            if is_checkpoint || version == 1 {
                break;
            }
            version -= 1;
        }
        let mut manifest = Manifest::default();
        let newer = |entry: &&SegmentEntry| entry.schema > RECORDING_VERSION;
        for (path, value) in changes.into_iter().rev() {
            let corrupt =
                || StoreError::Corrupt { path: path.clone(), reason: "it is no list of segments that longpole writes".to_owned() };
            let change = change_of(&value).ok_or_else(corrupt)?;
            if let Some(entry) = change.add.iter().find(newer) {
                let (what, found) = ("list of segments", entry.schema);
                return Err(StoreError::Newer { what, path, found, known: RECORDING_VERSION });
            }
            manifest.apply(&change);
            if let Some(marks) = value["watermarks"].as_object() {
                let numbers = marks.iter().filter_map(|(node, number)| Some((node.clone(), number.as_u64()?)));
                manifest.watermarks.extend(numbers);
            }
        }
        manifest.version = newest;
        Ok(manifest)
    }

    fn apply(&mut self, change: &ManifestChange) {
        self.entries.retain(|entry| !change.remove.contains(&entry.id));
        self.removed.extend(change.remove.iter().cloned());
        self.entries.extend(change.add.iter().cloned());
        self.watermarks.extend(change.watermarks.iter().cloned());
    }

    /// Writes the next version and returns it. From then on it is what a reader of the folder finds; the disk has it unless it is
    /// [`unsynced`](Self::unsynced), and the error says why.
    pub(super) fn commit(&self, folder: &Path, change: &ManifestChange) -> Result<(Manifest, Result<(), StoreError>), StoreError> {
        let mut next = self.clone();
        next.version += 1;
        // After one that the disk may lack, a list that needs no other.
        let is_checkpoint = self.unsynced || next.version.is_multiple_of(CHECKPOINT_EVERY);
        if is_checkpoint {
            next.removed.clear();
        }
        next.apply(change);
        let synced = next.write(folder, change, is_checkpoint)?;
        next.unsynced = synced.is_err();
        Ok((next, synced))
    }

    /// Writes a list that was made anew as the version after the newest, whatever is in that.
    pub(super) fn replace(folder: &Path, entries: Vec<SegmentEntry>, watermarks: BTreeMap<String, u64>) -> Result<Manifest, StoreError> {
        let version = newest_version(folder)?.unwrap_or(0).saturating_add(1);
        let manifest = Manifest { version, entries, watermarks, ..Manifest::default() };
        manifest.write(folder, &ManifestChange::default(), true)??;
        Ok(manifest)
    }

    /// Writes this version. Its file is there then, and whether the disk has the file's name is the inner result.
    fn write(&self, folder: &Path, change: &ManifestChange, is_checkpoint: bool) -> Result<Result<(), StoreError>, StoreError> {
        let next = self;
        let all = ManifestChange { add: next.entries.clone(), remove: change.remove.clone(), ..ManifestChange::default() };
        let ManifestChange { add, remove, .. } = if is_checkpoint { &all } else { change };
        let mut value = json!({
            "version": next.version,
            "checkpoint": is_checkpoint,
            "add": add.iter().map(SegmentEntry::json).collect::<Vec<_>>(),
            "remove": remove,
            "watermarks": next.watermarks,
        });
        value["crc32c"] = crc_of(&value).into();
        let (path, temporary) = (folder.join(file_name(next.version)), folder.join("next"));
        let write = || -> io::Result<()> {
            files::remove_all(&temporary)?;
            let mut file = files::create_new(&temporary)?;
            io::Write::write_all(&mut file, &serde_json::to_vec(&value)?)?;
            file.sync_all()?;
            // A link is not made over a file that is there. A network may lose the answer to the first attempt, and refuse the second.
            fs::hard_link(&temporary, &path).or_else(|error| {
                let is_made = files::identity(&temporary).is_ok_and(|own| files::identity(&path).is_ok_and(|there| there == own));
                if is_made { Ok(()) } else { Err(error) }
            })
        };
        write().map_err(StoreError::io("write", &path))?;
        // The next version tries again.
        let _ = fs::remove_file(&temporary);
        let synced = files::sync_dir(folder).map_err(StoreError::io("sync the folder of", &path));
        if is_checkpoint && synced.is_ok() {
            // Whoever cannot remove them leaves them: they are small, and the next checkpoint tries again.
            for version in next.version.saturating_sub(2 * KEPT_BEHIND_CHECKPOINT)..next.version.saturating_sub(KEPT_BEHIND_CHECKPOINT) {
                let _ = fs::remove_file(folder.join(file_name(version)));
            }
        }
        Ok(synced)
    }
}

/// No list has a later version: it would take a billion years. A file that claims one is not ours.
const VERSION_MAX: u64 = u64::MAX / 2;

/// The number of the newest version in this folder.
fn newest_version(folder: &Path) -> Result<Option<u64>, StoreError> {
    let mut newest = None;
    for entry in fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
        let name = entry.map_err(StoreError::io("list", folder))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
        let is_ours = |number: &u64| *number <= VERSION_MAX && name.to_str() == Some(&file_name(*number));
        newest = newest.max(number.filter(is_ours));
    }
    Ok(newest)
}

/// The checksum of a version.
fn crc_of(value: &Value) -> u32 {
    crc32c::crc32c(value.to_string().as_bytes())
}

fn change_of(value: &Value) -> Option<ManifestChange> {
    let add = value["add"].as_array()?.iter().map(SegmentEntry::of).collect::<Option<_>>()?;
    let remove = value["remove"].as_array()?.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    Some(ManifestChange { add, remove, watermarks: Vec::new() })
}

fn file_name(version: u64) -> String {
    format!("{version:020}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Directory;

    fn entry(number: u64) -> SegmentEntry {
        SegmentEntry {
            id: format!("0-node-{number:010}"),
            hour: "2026112812".to_owned(),
            spans: number,
            traces: 1,
            bytes: 10,
            start: Timestamp(1),
            end: Timestamp(2),
            received: [Timestamp(3), Timestamp(4)],
            services: vec!["cart".to_owned()],
            schema: 6,
            profile_values: 0,
            profile_times: None,
        }
    }

    #[test]
    fn the_newest_version_is_what_was_committed_last() {
        let folder = Directory::new();
        let mut manifest = Manifest::newest(folder.path()).unwrap();
        for number in 1..=250 {
            let remove = if number > 20 { vec![entry(number - 20).id] } else { Vec::new() };
            let change = ManifestChange { add: vec![entry(number)], remove, watermarks: vec![("node".to_owned(), number)] };
            manifest = manifest.commit(folder.path(), &change).unwrap().0;
        }
        assert_eq!(Manifest::newest(folder.path()).unwrap(), manifest);
        assert_eq!((manifest.version, manifest.entries.len(), manifest.watermarks["node"]), (250, 20, 250));
        // A new reader needs no version from before the last checkpoint.
        assert!(!folder.path().join(file_name(99)).exists());
    }

    #[test]
    fn a_version_is_made_once() {
        let folder = Directory::new();
        let manifest = Manifest::default();
        manifest.commit(folder.path(), &ManifestChange::default()).unwrap().1.unwrap();
        assert!(manifest.commit(folder.path(), &ManifestChange::default()).is_err());
        assert_eq!(Manifest::newest(folder.path()).unwrap().version, 1);
    }

    #[test]
    fn a_changed_byte_is_found_and_the_list_can_be_made_anew() {
        let folder = Directory::new();
        let change = ManifestChange { add: vec![entry(1)], ..ManifestChange::default() };
        Manifest::default().commit(folder.path(), &change).unwrap().1.unwrap();
        let path = folder.path().join(file_name(1));
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(matches!(Manifest::newest(folder.path()), Err(StoreError::Corrupt { .. })), "byte {place}");
        }
        let anew = Manifest::replace(folder.path(), vec![entry(1)], BTreeMap::new()).unwrap();
        assert_eq!((anew.version, Manifest::newest(folder.path()).unwrap()), (2, anew));
    }

    #[test]
    fn a_list_of_a_newer_longpole_is_refused() {
        let folder = Directory::new();
        let newer = SegmentEntry { schema: 99, ..entry(1) };
        Manifest::default().commit(folder.path(), &ManifestChange { add: vec![newer], ..ManifestChange::default() }).unwrap().1.unwrap();
        let error = Manifest::newest(folder.path()).unwrap_err();
        assert!(error.to_string().contains("it has format 99") && error.to_string().contains("a newer longpole can read it"), "{error}");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let folder = Directory::new();
        let bad = SegmentEntry { hour: "../..".to_owned(), ..entry(1) };
        Manifest::default().commit(folder.path(), &ManifestChange { add: vec![bad], ..ManifestChange::default() }).unwrap().1.unwrap();
        assert!(matches!(Manifest::newest(folder.path()), Err(StoreError::Corrupt { .. })));
    }
}
