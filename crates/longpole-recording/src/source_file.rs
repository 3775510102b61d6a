//! Reads the source file that a recording names, where it may be read.
//!
//! A recording names files as it likes. One that was made here names what ran here; one of somebody else may name a key, a device, or a
//! file of the kernel that never ends. What may be read:
//!
//! ```text
//!                         made here    of others
//! below --allow-source    yes          yes
//! below the working dir   yes          yes, but what is hidden (.ssh, .env) or has a second name (a hard link)
//! elsewhere               yes          no
//! /proc, /sys, /dev       no           no
//! ```
//!
//! And of all of these only regular files of a limited size, in a limited time. Paths are judged when links and `..` in them are
//! resolved, and a file is judged again when it is open, so that nobody can exchange it in between.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use longpole_model::{CaptureMode, Run};
use longpole_store::StoredRecording;
use longpole_store::outside::{self, Links};

/// Bytes of a source file; generated ones have a few megabytes.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

/// Lines of it: each takes some bytes of memory beside its own.
const SOURCE_LINES_MAX: usize = 500_000;

/// How long a file may take: a file system of the network, or of a program (FUSE), may never answer.
const READ_TIME_MAX: Duration = Duration::from_secs(3);

/// Reads under way; those that never end count as long as this process lives.
const READS_MAX: usize = 8;

/// What the kernel makes up: files there may wait for ever, end never, or do something when they are read.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Says in the folder of a recording that it came from a file. It is no part of a packed recording, so no file can bring it or lack it.
const FOREIGN_MARK: &str = "imported";

/// The maker of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This store's own recorder, on this machine.
    Own,
    /// Anybody: it came from a file, or from another machine.
    Others,
}

impl Origin {
    /// The origin of a recording of the store. The recording's own content can only make it one of others.
    pub fn of(stored: &StoredRecording, run: &Run) -> Self {
        let is_unmarked = matches!(
            fs::symlink_metadata(stored.directory.join(FOREIGN_MARK)),
            Err(error) if error.kind() == io::ErrorKind::NotFound
        );
        let is_of_here = run.mode != CaptureMode::Imported && run.host == this_host();
        if is_unmarked && is_of_here { Origin::Own } else { Origin::Others }
    }
}

/// Notes that the recording of this folder comes from a file.
pub(crate) fn mark_foreign(directory: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(FOREIGN_MARK)).map(|_| ())
}

/// The name of this machine, as recorders write it.
fn this_host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// From where the user lets recordings of others have source files.
#[derive(Debug, Clone, Default)]
pub struct SourceConsent {
    working_directory: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

impl SourceConsent {
    /// The working directory, and the folders that the user names, which must be there. Nobody means the whole machine who works in `/`.
    pub fn new(working_directory: &Path, folders: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let real = |folder: &PathBuf| match folder.canonicalize() {
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => Err((folder.clone(), io::ErrorKind::NotADirectory.into())),
            Err(error) => Err((folder.clone(), error)),
        };
        let working_directory = working_directory.canonicalize().ok().filter(|folder| folder.parent().is_some());
        Ok(SourceConsent { working_directory, folders: folders.iter().map(real).collect::<Result<_, _>>()? })
    }
}

/// What of the source files that a recording names may be read.
#[derive(Debug, Clone)]
pub struct SourceAccess {
    /// Whose it is.
    pub origin: Origin,
    /// What the user allows.
    pub consent: SourceConsent,
}

/// Why a file is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// The user said so, or recorded it.
    Said,
    /// It lies below the working directory.
    Assumed,
}

impl SourceAccess {
    /// Judges a path without links.
    fn judge(&self, real: &Path) -> Result<Allowed, String> {
        if OF_THE_KERNEL.iter().any(|root| real.starts_with(root)) {
            return Err(format!("the recording names {}; longpole reads nothing below /proc, /sys and /dev", real.display()));
        }
        if self.origin == Origin::Own || self.consent.folders.iter().any(|folder| real.starts_with(folder)) {
            return Ok(Allowed::Said);
        }
        let below = self.consent.working_directory.as_ref().and_then(|folder| real.strip_prefix(folder).ok());
        let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        match below {
            Some(below) if !below.components().any(is_hidden) => Ok(Allowed::Assumed),
            Some(_) => Err(not_below(real, "longpole reads no hidden files")),
            None => Err(not_below(real, "longpole reads only files below the working directory")),
        }
    }
}

fn not_below(real: &Path, why: &str) -> String {
    let path = real.display();
    format!(
        "the recording names {path} and was made elsewhere, so {why}; `frame` and `open` also read files below DIR with --allow-source DIR"
    )
}

/// A source file that was found.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<String>,
    /// When it was changed last, if the file system says so.
    pub(crate) changed: Option<SystemTime>,
    /// When the function's binary was changed last.
    pub(crate) binary_changed: Option<SystemTime>,
}

/// Why there is no source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// No such file, or the system refuses it and says why.
    Missing(String),
    /// We refuse it, and say why.
    Refused(String),
}

/// The first of these paths that is a file which may be read, with the time at which the binary was changed; or why there is none.
pub(crate) fn read(candidates: Vec<PathBuf>, binary: Option<PathBuf>, access: &SourceAccess) -> Result<SourceFile, Unread> {
    static READS: AtomicUsize = AtomicUsize::new(0);
    let access = access.clone();
    let said = candidates.first().map(|path| path.display().to_string()).unwrap_or_default();
    if READS.fetch_add(1, Ordering::Relaxed) >= READS_MAX {
        READS.fetch_sub(1, Ordering::Relaxed);
        return Err(Unread::Refused(format!("{said} is not read: longpole is still reading {READS_MAX} other files")));
    }
    let (done, result) = mpsc::channel();
    let work = move || {
        let mut file = read_first(&candidates, &access);
        if let Ok(file) = &mut file {
            file.binary_changed = binary.and_then(|path| path.metadata().ok()?.modified().ok());
        }
        READS.fetch_sub(1, Ordering::Relaxed);
        // Nobody waits for it any more where it took too long.
        let _ = done.send(file);
    };
    if let Err(error) = thread::Builder::new().name("source".to_owned()).spawn(work) {
        READS.fetch_sub(1, Ordering::Relaxed);
        return Err(Unread::Missing(error.to_string()));
    }
    let late = |_| Err(Unread::Refused(format!("{said} could not be read within {} s", READ_TIME_MAX.as_secs())));
    result.recv_timeout(READ_TIME_MAX).unwrap_or_else(late)
}

fn read_first(candidates: &[PathBuf], access: &SourceAccess) -> Result<SourceFile, Unread> {
    let mut why = Unread::Missing(String::new());
    for path in candidates {
        match read_one(path, access) {
            Ok(Some(file)) => return Ok(file),
            Ok(None) => {}
            Err(error @ Unread::Refused(_)) => why = error,
            Err(error @ Unread::Missing(_)) if !matches!(why, Unread::Refused(_)) => why = error,
            Err(Unread::Missing(_)) => {}
        }
    }
    Err(why)
}

/// `None` where there is no file.
fn read_one(path: &Path, access: &SourceAccess) -> Result<Option<SourceFile>, Unread> {
    let failed = |error: io::Error| Unread::Missing(format!("{}: {error}", path.display()));
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let allowed = access.judge(&real).map_err(Unread::Refused)?;
    let refused = |what: &str| Unread::Refused(format!("{} is not read: {what}", real.display()));
    match real.metadata().map_err(failed)? {
        about if about.is_file() => {}
        about if about.is_dir() => return Ok(None),
        _ => return Err(refused("it is not a regular file")),
    }
    let file = outside::open(&real, Links::Refused).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    // What was opened is what was judged, unless somebody exchanged a folder of the path meanwhile.
    if fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).is_ok_and(|opened| opened != real) {
        return Err(refused("it was replaced while longpole opened it"));
    }
    let is_of_kernel = |root: &&str| fs::metadata(root).is_ok_and(|root| root.dev() == about.dev());
    if OF_THE_KERNEL[..2].iter().any(is_of_kernel) {
        return Err(refused("the kernel generates it"));
    }
    if allowed == Allowed::Assumed && about.nlink() > 1 {
        return Err(Unread::Refused(not_below(&real, "longpole reads no files with a second name (a hard link)")));
    }
    if about.len() > SOURCE_BYTES_MAX {
        return Err(refused(&format!("it is larger than {} MiB", SOURCE_BYTES_MAX >> 20)));
    }
    let changed = about.modified().ok();
    let mut bytes = Vec::new();
    // No more than it says that it has: files of the kernel, which say 0, are not read at all.
    file.take(about.len()).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.iter().filter(|byte| **byte == b'\n').count() > SOURCE_LINES_MAX {
        return Err(refused(&format!("it has more than {SOURCE_LINES_MAX} lines")));
    }
    let lines = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    Ok(Some(SourceFile { path: path.to_owned(), lines, changed, binary_changed: None }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a working directory, a folder beside it, and what an attacker would like to have read.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("longpole-source-{}-{name}", std::process::id()));
            for folder in ["work/.ssh", "work/src", "beside"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            for file in ["work/src/a.rs", "work/.ssh/key", "beside/key"] {
                fs::write(root.join(file), "one\ntwo\n").unwrap();
            }
            Place(root.canonicalize().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn access(&self, origin: Origin, folders: &[&str]) -> SourceAccess {
            let folders: Vec<PathBuf> = folders.iter().map(|name| self.path(name)).collect();
            SourceAccess { origin, consent: SourceConsent::new(&self.path("work"), &folders).unwrap() }
        }

        fn read(&self, name: &str, access: &SourceAccess) -> Result<usize, Unread> {
            read(vec![self.path(name)], None, access).map(|file| file.lines.len())
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn refusal(result: Result<usize, Unread>) -> String {
        match result {
            Err(Unread::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn recordings_of_others_have_the_working_directory_and_what_is_allowed() {
        let place = Place::new("others");
        let others = place.access(Origin::Others, &[]);
        assert_eq!(place.read("work/src/a.rs", &others), Ok(2));
        assert_eq!(place.read("work/../beside/../work/src/a.rs", &others), Ok(2));
        assert_eq!(place.read("work/src/none.rs", &others), Err(Unread::Missing(String::new())));
        symlink(place.path("beside/key"), place.path("work/src/link.rs")).unwrap();
        symlink(place.path("beside"), place.path("work/linked")).unwrap();
        for name in ["beside/key", "work/../beside/key", "work/src/link.rs", "work/linked/key"] {
            assert!(refusal(place.read(name, &others)).contains("beside/key and was made elsewhere"), "{name}");
            assert_eq!(place.read(name, &place.access(Origin::Others, &["beside"])), Ok(2), "{name}");
            assert_eq!(place.read(name, &place.access(Origin::Own, &[])), Ok(2), "{name}");
        }
        fs::hard_link(place.path("beside/key"), place.path("work/src/hard.rs")).unwrap();
        for (name, why) in [("work/.ssh/key", "hidden files"), ("work/src/hard.rs", "a hard link")] {
            assert!(refusal(place.read(name, &others)).contains(why), "{name}");
            assert_eq!(place.read(name, &place.access(Origin::Others, &["work"])), Ok(2), "{name}");
        }
    }

    #[test]
    fn nobody_has_what_is_no_regular_file_of_a_disk() {
        let place = Place::new("kinds");
        let own = place.access(Origin::Own, &[]);
        symlink("/proc/kmsg", place.path("work/kmsg")).unwrap();
        for name in ["/proc/kmsg", "/proc/self/environ", "/dev/zero", "/sys/kernel/notes", "work/kmsg"] {
            if Path::new(name).exists() || name == "work/kmsg" {
                assert!(refusal(place.read(name, &own)).contains("reads nothing below /proc"), "{name}");
            }
        }
        assert_eq!(place.read("work/src", &own), Err(Unread::Missing(String::new())), "a folder is no file");
        fs::File::create(place.path("work/large")).unwrap().set_len(SOURCE_BYTES_MAX + 1).unwrap();
        assert!(refusal(place.read("work/large", &own)).contains("larger than 16 MiB"));
    }

    #[test]
    fn who_works_in_the_root_of_the_machine_does_not_allow_all_of_it() {
        let place = Place::new("root");
        let access = SourceAccess { origin: Origin::Others, consent: SourceConsent::new(Path::new("/"), &[]).unwrap() };
        assert!(refusal(place.read("work/src/a.rs", &access)).contains("--allow-source DIR"));
        let none = SourceConsent::new(Path::new("/"), &[place.path("none")]).unwrap_err();
        assert_eq!((none.0, none.1.kind()), (place.path("none"), io::ErrorKind::NotFound));
    }
}
