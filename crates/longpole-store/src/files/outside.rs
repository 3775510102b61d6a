//! Files outside of a store, at paths where others may have a hand in. What is read must not make us wait, and what is written must not
//! go where another user points.
//!
//! ```text
//! at the path          to be read                   to be written
//! nothing              an error                     it is made
//! a plain file         it is read                   it is emptied and written
//! a link               followed, if that is wanted  followed, if it is ours or root's and nobody else can exchange it
//! a pipe or a device   an error                     written, with the same condition
//! ```
//!
//! For what is written, each link on the way is judged like one at the end: those in the path that is typed, and those that they lead to.
//! Folders are not judged. Each is opened from the one above and through no link, so whoever exchanges one gains nothing.
//!
//! ```text
//! out.json ─► /shared/latest ─► /home/alice/precious       the first link is alice's, the second is not: refused
//! /shared/out/x.json, /shared/out ─► /home/alice           refused, where the link is another's or another can exchange it
//! /var/run/x.json, /var/run ─► /run                        written: root's link in root's folder
//! /dev/stdout ─► /proc/self/fd/1 ─► whatever is open       written: the kernel follows its own links
//! ```

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::files::users::{self, GroupWriters, Owner};
use crate::files::{self, Entry};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Whether a path may be a link to the file that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It may.
    Followed,
    /// It may not.
    Refused,
}

/// File systems whose files the kernel makes up, by their numbers in `<linux/magic.h>`: proc, sysfs, tracefs, debugfs. Some of those files
/// end never, wait for news, or do something when they are read; all look like plain ones.
const OF_THE_KERNEL: [u64; 4] = [0x9fa0, 0x6265_6572, 0x7472_6163, 0x6462_6720];

fn is_of_the_kernel(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| OF_THE_KERNEL.contains(&(found.f_type as u64)))
}

/// Opens a plain file to be read. All else is an error: neither the writer of a pipe nor a program that holds a lease of the file is waited
/// for, and no device is opened, which can do something, such as wind a tape, even where somebody exchanges them while this looks.
///
/// # Errors
///
/// If nothing is there, if it is no plain file, or if the user may not read it.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    // What stands there is found without opening it, and then this very file is opened.
    let no_link = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let open = |path: &Path, flags: OFlags| OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let found = open(path, OFlags::PATH | no_link)?;
    if !found.metadata()?.is_file() {
        return Err(files::not_plain());
    }
    if is_of_the_kernel(&found) {
        return Err(io::Error::other("it is a file that the kernel generates, as in /proc"));
    }
    open(Path::new(&format!("/proc/self/fd/{}", found.as_raw_fd())), OFlags::NONBLOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "another program holds a lease of it"),
        _ => error,
    })
}

/// Whether only this user and root can write to a file, so that nobody else decides what it says.
///
/// # Errors
///
/// If the file system does not tell.
pub fn is_only_ours(file: &File) -> io::Result<bool> {
    let (own, about) = (Owner::current(), file.metadata()?);
    Ok(about.uid() == own.uid && !others_write(file, &about, own)?)
}

/// Whether others than this user and root may write to an open file or folder.
fn others_write(file: &File, about: &Metadata, own: Owner) -> io::Result<bool> {
    let (everybody, group) = (about.mode() & OTHERS_WRITE != 0, about.mode() & GROUP_WRITES != 0);
    let by_group = || Ok::<_, io::Error>(users::group_writers(about.gid(), files::access_list_of(file)?.as_deref(), own));
    Ok(everybody || group && by_group()? != GroupWriters::Nobody)
}

/// The bytes of a plain file, through links. One that is larger than this is an error.
///
/// # Errors
///
/// As [`open`], and if it is larger than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(open(path, Links::Followed)?, bytes_max)
}

/// The bytes of a file that [`open`] opened.
///
/// # Errors
///
/// If it cannot be read, or is larger than `bytes_max`.
pub fn read_opened(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// Maximum number of links on the way to a file that is written; Linux itself follows 40.
const LINKS_MAX: usize = 40;

/// Why nothing can be written to a path.
#[derive(Debug, thiserror::Error)]
pub enum NotCreated {
    /// Something that leads elsewhere belongs to another user.
    #[error("{it} is {what} of another user (uid {uid})")]
    OfAnother {
        /// `it`, or the path of a link on the way.
        it: String,
        /// A link, a pipe.
        what: &'static str,
        /// The user.
        uid: u32,
    },
    /// Something that leads elsewhere can be made to lead elsewhere again.
    #[error("{it} is {what} in a directory where other users can replace it")]
    Exchangeable {
        /// `it`, or the path of a link on the way.
        it: String,
        /// A link, a pipe.
        what: &'static str,
    },
    /// The system refuses it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Opens a file to be written from its beginning; makes it, with this mode, where it is not there. A file that is there keeps its mode.
///
/// # Errors
///
/// [`NotCreated::OfAnother`] or [`NotCreated::Exchangeable`] if another user decides where the path leads, [`NotCreated::Io`] if the system
/// refuses the file.
pub fn create(path: &Path, mode: u32) -> Result<File, NotCreated> {
    Ok(Place::find(path)?.create(mode)?)
}

/// What a path leads to that is to be written: a name in a folder that is open.
#[derive(Debug)]
pub struct Place {
    folder: File,
    name: OsString,
    kind: TargetKind,
    /// Whether the path itself is a link.
    linked: bool,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    /// A plain file, or nothing yet.
    File,
    /// A pipe or a device that may be written to.
    Special,
    /// A link of /proc to what a process has open. Its text is no path.
    Open,
}

impl Place {
    /// Goes the way of a path, step by step.
    ///
    /// # Errors
    ///
    /// [`NotCreated::OfAnother`] or [`NotCreated::Exchangeable`] if another user decides where the path leads, [`NotCreated::Io`] if the
    /// system refuses a step.
    pub fn find(path: &Path) -> Result<Place, NotCreated> {
        let mut folder = files::open_dir(Path::new(if path.is_absolute() { "/" } else { "." }))?;
        // What the folder is called, for errors.
        let mut way = PathBuf::from(if path.is_absolute() { "/" } else { "" });
        // The next name stands last.
        let mut names = names_backwards(path);
        let (mut links, mut linked) = (0, false);
        while let Some(name) = names.pop() {
            let is_last = names.is_empty();
            let found = match files::entry(&folder, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && is_last => {
                    return Ok(Place { folder, name, kind: TargetKind::File, linked });
                }
                found => found?,
            };
            let called = || if is_last && !linked { "it".to_owned() } else { way.join(&name).display().to_string() };
            match found.kind {
                FileType::Symlink => {
                    check(&folder, &found, "a link", called)?;
                    links += 1;
                    linked |= is_last;
                    if links > LINKS_MAX {
                        return Err(io::Error::from(Errno::LOOP).into());
                    }
                    if files::is_of_proc(&folder)? {
                        if is_last {
                            return Ok(Place { folder, name, kind: TargetKind::Open, linked });
                        }
                        folder = files::open_dir_through_link(&folder, &name)?;
                        way.push(name);
                        continue;
                    }
                    let target = PathBuf::from(OsString::from_vec(files::read_link(&folder, &name)?));
                    if target.is_absolute() {
                        folder = files::open_dir(Path::new("/"))?;
                        way = PathBuf::from("/");
                    }
                    names.extend(names_backwards(&target));
                }
                FileType::Directory if is_last => return Err(io::Error::from(Errno::ISDIR).into()),
                FileType::Directory => {
                    folder = files::open_dir_in(&folder, &name)?;
                    way.push(name);
                }
                _ if !is_last => return Err(io::Error::from(Errno::NOTDIR).into()),
                FileType::RegularFile => return Ok(Place { folder, name, kind: TargetKind::File, linked }),
                _ => {
                    check(&folder, &found, "a pipe or a device", called)?;
                    return Ok(Place { folder, name, kind: TargetKind::Special, linked });
                }
            }
        }
        Err(io::Error::from(Errno::NOENT).into())
    }

    /// Whether the path is the name of a plain file, or of nothing yet.
    pub fn is_plain(&self) -> bool {
        self.kind == TargetKind::File && !self.linked
    }

    /// Opens it to be written from its beginning.
    ///
    /// # Errors
    ///
    /// If the system refuses the file, or if something else stands there now.
    pub fn create(&self, mode: u32) -> io::Result<File> {
        match self.kind {
            // What came there since is neither followed nor waited for, and emptied only where it is a file.
            TargetKind::File => {
                let file = files::plain(files::open_or_create_in(&self.folder, &self.name, mode)?)?;
                // Somebody else's file in somebody else's own folder is what the path means. In a folder that is not theirs, they put it there to
                // read what we write.
                let (own, uid) = (Owner::current(), file.metadata()?.uid());
                if !own.relies_on(uid) && self.folder.metadata()?.uid() != uid {
                    return Err(io::Error::other(format!("it is a file of another user (uid {uid})")));
                }
                file.set_len(0)?;
                Ok(file)
            }
            // A pipe of our own waits for its reader, as its user wants it.
            TargetKind::Special => files::open_to_write_in(&self.folder, &self.name),
            TargetKind::Open => files::open_to_write_through_link(&self.folder, &self.name),
        }
    }

    /// A new file that takes the place of this one once it is whole.
    ///
    /// # Errors
    ///
    /// If the system refuses a new file in the folder.
    pub fn replace(self, mode: u32) -> io::Result<Replacement> {
        let mut partial = self.name.clone();
        partial.push(format!(".{}.partial", std::process::id()));
        // What a process of this number left there, or a link that somebody else put there, is not written through.
        files::remove_in(&self.folder, &partial).ok();
        let file = files::create_new_in(&self.folder, &partial, mode)?;
        Ok(Replacement { place: self, partial, file })
    }
}

/// The names of a path, its last one first. A slash at its end asks for a folder.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.ends_with(b"/").then(|| ".".into());
    let names = bytes.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
    end.into_iter().chain(names.map(|name| OsString::from_vec(name.to_vec()))).collect()
}

/// A file beside the one that it will replace. Without [`Replacement::finish`] it goes, and the other one stays.
#[derive(Debug)]
pub struct Replacement {
    place: Place,
    partial: OsString,
    file: File,
}

impl Replacement {
    /// Puts it in the place of the other one.
    ///
    /// # Errors
    ///
    /// If the data cannot reach the disk, or the system refuses the rename.
    pub fn finish(self) -> io::Result<()> {
        let Place { folder, name, .. } = &self.place;
        files::rename_in(folder, &self.partial, name)?;
        // Where others can write to the folder, they may have put something else at the name that was moved.
        let (there, own) = (files::entry(folder, name)?, self.file.metadata()?);
        if there.identity != (own.dev(), own.ino()) {
            // Whoever wrote to this name the next time would write through it.
            files::remove_in(folder, name).ok();
            return Err(io::Error::other("it was replaced while longpole wrote it"));
        }
        Ok(())
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Where it was put in its place, nothing has this name.
        files::remove_in(&self.place.folder, &self.partial).ok();
    }
}

/// Folders of the machine itself, in which none but root can put a link.
const FOLDERS_OF_ROOT: [&str; 5] = ["/", "/var", "/run", "/etc", "/usr"];

/// Folders of root that all write to.
const FOLDERS_OF_ALL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Refuses to write through a link, or into a pipe, that another user put in its place, or can exchange for another between the look and
/// the opening. What root put there is used, and what stands in /dev, such as /dev/stdout: in a user namespace nobody seems to own it.
fn check(folder: &File, found: &Entry, what: &'static str, it: impl FnOnce() -> String) -> Result<(), NotCreated> {
    if files::is_at(folder, Path::new("/dev")) {
        return Ok(());
    }
    let (own, outside, above) = (Owner::current(), users::unmapped_uid(), folder.metadata()?);
    let (others_write, sticky) = (others_write(folder, &above, own)?, above.mode() & STICKY != 0);
    // In a user namespace the machine's root is one whom that does not know: /var/run is a link of nobody's in a folder of nobody's. So are
    // all other users, whose folders are elsewhere.
    let is_any_of = |folders: &[&str]| folders.iter().any(|path| files::is_at(folder, Path::new(path)));
    // Nobody makes a link in /proc, and /proc/self, which /dev/stdout goes through, is the machine's root's in every namespace.
    let is_folder_of_root = Some(above.uid()) == outside && is_any_of(&FOLDERS_OF_ROOT) || files::is_of_proc(folder)?;
    let is_of_system = Some(found.uid) == outside && !others_write && is_folder_of_root;
    if !own.relies_on(found.uid) && !is_of_system {
        return Err(NotCreated::OfAnother { it: it(), what, uid: found.uid });
    }
    let is_above_of_root = is_folder_of_root || Some(above.uid()) == outside && is_any_of(&FOLDERS_OF_ALL);
    let is_above_of_another = !own.relies_on(above.uid()) && !is_above_of_root;
    if is_above_of_another || others_write && !sticky {
        return Err(NotCreated::Exchangeable { it: it(), what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;
    use crate::testing::{Directory, give_rights};

    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn what_is_no_plain_file_is_not_read_and_not_waited_for() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        pipe(&at("pipe"));
        for name in ["file", "pipe"] {
            symlink(at(name), at(&format!("link to {name}"))).unwrap();
        }
        assert_eq!(read(&at("file"), 4).unwrap(), b"text");
        assert_eq!(read(&at("link to file"), 4).unwrap(), b"text");
        assert_eq!(read(&at("file"), 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        assert!(open(&at("file"), Links::Refused).is_ok());
        assert_eq!(open(&at("link to file"), Links::Refused).unwrap_err().to_string(), "it is not a regular file");
        for links in [Links::Followed, Links::Refused] {
            assert_eq!(
                open(Path::new("/proc/version"), links).unwrap_err().to_string(),
                "it is a file that the kernel generates, as in /proc"
            );
        }
        for path in [at("pipe"), at("link to pipe"), directory.path().to_owned(), "/dev/zero".into()] {
            for links in [Links::Followed, Links::Refused] {
                assert_eq!(open(&path, links).unwrap_err().to_string(), "it is not a regular file", "{}", path.display());
            }
        }
        // Where it was exchanged after the look.
        assert!(open(&at("link to pipe"), Links::Followed).is_err());
    }

    /// `folder` is ours, `open` everybody can write to, `sticky` is as /tmp is.
    #[test]
    fn a_path_leads_where_the_kernel_leads_it_and_through_nothing_that_others_can_exchange() {
        let directory = Directory::new();
        let base = fs::canonicalize(directory.path()).unwrap();
        for (name, mode) in [("folder", 0o755), ("folder/deep", 0o700), ("open", 0o777), ("open/deep", 0o755), ("sticky", 0o1777)] {
            fs::create_dir(base.join(name)).unwrap();
            fs::set_permissions(base.join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        fs::write(base.join("folder/file"), "").unwrap();
        pipe(&base.join("open/pipe"));
        let absolute = base.join("folder/deep").into_os_string().into_string().unwrap();
        let slashes = format!("/{absolute}//");
        for (link, target) in [
            ("to-folder", "folder"),
            ("chain", "to-folder/../to-folder/./deep"),
            ("absolute", absolute.as_str()),
            ("slashes", slashes.as_str()),
            ("to-new", "absolute/new"),
            ("loop", "loop"),
            ("to-open", "open/link"),
            ("to-sticky", "sticky/link"),
            ("to-file", "folder/file"),
            ("folder/deep/up", "../.."),
            ("open/link", "../folder"),
            ("sticky/link", "../folder"),
        ] {
            symlink(target, base.join(link)).unwrap();
        }
        // The loop goes on with one that it follows; the last leads to the folder.
        for number in 0..=LINKS_MAX {
            let next = if number == LINKS_MAX { "folder".to_owned() } else { format!("link-{}", number + 1) };
            symlink(next, base.join(format!("link-{number}"))).unwrap();
        }
        let at = |path: &str| base.join(path).display().to_string();
        let exchangeable = |link: &str| format!("{link} is a link in a directory where other users can replace it");
        for (path, expected) in [
            ("x", Ok("x")),
            ("folder/file", Ok("folder/file")),
            ("./folder/../x", Ok("x")),
            ("open/x", Ok("open/x")),
            ("open/deep/x", Ok("open/deep/x")),
            ("sticky/x", Ok("sticky/x")),
            ("to-folder/x", Ok("folder/x")),
            ("to-file", Ok("folder/file")),
            ("chain/x", Ok("folder/deep/x")),
            ("chain/../x", Ok("folder/x")),
            ("absolute/x", Ok("folder/deep/x")),
            ("slashes/x", Ok("folder/deep/x")),
            ("absolute/up/x", Ok("x")),
            ("to-new", Ok("folder/deep/new")),
            ("to-sticky/x", Ok("folder/x")),
            ("sticky/link/x", Ok("folder/x")),
            ("link-1/x", Ok("folder/x")),
            ("open/link", Err(exchangeable("it"))),
            ("open/link/x", Err(exchangeable(&at("open/link")))),
            ("to-open/x", Err(exchangeable(&at("open/link")))),
            ("to-folder/../open/link/x", Err(exchangeable(&at("folder/../open/link")))),
            ("open/pipe", Err("it is a pipe or a device in a directory where other users can replace it".to_owned())),
            ("link-0/x", Err(io::Error::from(Errno::LOOP).to_string())),
            ("loop", Err(io::Error::from(Errno::LOOP).to_string())),
            ("folder", Err(io::Error::from(Errno::ISDIR).to_string())),
            ("to-folder", Err(io::Error::from(Errno::ISDIR).to_string())),
            ("x/", Err(io::Error::from(Errno::NOENT).to_string())),
            ("folder/file/", Err(io::Error::from(Errno::NOTDIR).to_string())),
            ("folder/file/x", Err(io::Error::from(Errno::NOTDIR).to_string())),
            ("nothing/x", Err(io::Error::from(Errno::NOENT).to_string())),
        ] {
            let created = create(Path::new(&at(path)), 0o600).map_err(|error| error.to_string());
            let created = created.map(|file| fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap());
            assert_eq!(created, expected.map(|path| base.join(path)), "{path}");
            fs::remove_file(base.join("x")).ok();
        }
    }

    #[test]
    fn what_a_process_has_open_is_written_by_its_number() {
        let directory = Directory::new();
        let path = directory.path().join("file");
        let written = |place: &str, text: &[u8]| create(Path::new(place), 0o600).unwrap().write_all(text).unwrap();
        let (file, folder) = (File::create(&path).unwrap(), files::open_dir(directory.path()).unwrap());
        written(&format!("/proc/self/fd/{}", file.as_raw_fd()), b"by its number");
        assert_eq!(fs::read_to_string(&path).unwrap(), "by its number");
        written(&format!("/dev/fd/{}", file.as_raw_fd()), b"anew");
        assert_eq!(fs::read_to_string(&path).unwrap(), "anew");
        written(&format!("/proc/thread-self/fd/{}/file", folder.as_raw_fd()), b"below");
        assert_eq!(fs::read_to_string(&path).unwrap(), "below");
        // The text of the link is `pipe:[…]`.
        let (mut reader, writer) = io::pipe().unwrap();
        written(&format!("/dev/fd/{}", writer.as_raw_fd()), b"through");
        drop(writer);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "through");
        assert!(!Place::find(Path::new("/dev/stdout")).unwrap().is_plain());
        assert!(create(Path::new(""), 0o600).is_err() && create(Path::new("/"), 0o600).is_err());
    }

    #[test]
    fn a_replacement_that_is_not_finished_leaves_the_old_file() {
        let directory = Directory::new();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        for (finishes, expected) in [(false, "old"), (true, "new")] {
            let mut new = Place::find(&path).unwrap().replace(0o600).unwrap();
            new.write_all(b"new").unwrap();
            if finishes {
                new.finish().unwrap();
            } else {
                drop(new);
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_file_is_written_through_links_that_nobody_else_can_exchange() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        let write = |name: &str| create(&at(name), 0o600).map(|mut file| io::Write::write_all(&mut file, b"new").unwrap());
        fs::write(at("file"), "longer than new").unwrap();
        fs::set_permissions(at("file"), PermissionsExt::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        for name in ["file", "link", "made"] {
            write(name).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "new", "{name}");
        }
        let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o777;
        assert_eq!((mode("file"), mode("made")), (0o640, 0o600));
        pipe(&at("pipe"));
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
        for (name, what) in [("link", "a link"), ("pipe", "a pipe or a device")] {
            let refused = write(name).unwrap_err().to_string();
            assert_eq!(refused, format!("it is {what} in a directory where other users can replace it"));
        }
        // The same by an access control list.
        if give_rights(directory.path(), 65_534, 5) {
            write("link").unwrap();
            give_rights(directory.path(), 65_534, 7);
            assert!(matches!(write("link"), Err(NotCreated::Exchangeable { .. })));
        }
        write("file").unwrap();
        // Only root can give a file away; another user does it by making it.
        fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        if std::os::unix::fs::chown(at("file"), Some(65_534), None).is_ok() {
            assert_eq!(write("file").unwrap_err().to_string(), "it is a file of another user (uid 65534)");
            assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
            // Whose folder it is, too.
            std::os::unix::fs::chown(directory.path(), Some(65_534), None).unwrap();
            write("file").unwrap();
        }
        let device = create(Path::new("/dev/null"), 0o600);
        assert!(device.is_ok(), "{device:?}");
    }
}
