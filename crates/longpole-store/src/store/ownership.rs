//! Whose a store is. Names, sizes and states in it decide what is opened, moved and removed, so a store that somebody else can change
//! is refused, as SSH refuses keys: root who cleans up in a user's store must not remove what that user made it point at.
//!
//! ```text
//! /  home  alice  .local  share  longpole  recordings  r7          whose may it be             who may write it
//! └────────── above ──────────┘                                    us, root, outside¹          also all, where it is sticky
//!                               └─ root ─┴── entries ──────┘       us, root                    nobody else
//! ```
//!
//! ¹ In a user namespace: an owner whom the namespace does not know, such as the machine's root. One number stands for all of them. Where
//!   it is ours as well, the number of an entry does not say whose it is, and longpole queries the kernel in another way.
//!
//! What others can only read, as longpole made it before, is closed to them.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::error::StoreError;
use crate::files::users::{self, GroupWriters, Owner};
use crate::files::{self, FILE_MODE, FOLDER_MODE};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
const NOT_ITS_USER: u32 = 0o077;

/// Maximum number of links in a path that a user typed; Linux itself follows 40.
const LINKS_MAX: usize = 40;

/// The owner and the mode of a thing, and what it is called.
struct Examined<'a> {
    path: &'a Path,
    /// Where it is a folder that is open: what stands at the path can be another one by now.
    folder: Option<&'a File>,
    uid: u32,
    gid: u32,
    mode: u32,
}

impl<'a> Examined<'a> {
    fn new(path: &'a Path, data: &Metadata) -> Self {
        Examined { path, folder: None, uid: data.uid(), gid: data.gid(), mode: data.mode() }
    }

    fn folder(path: &'a Path, folder: &'a File) -> io::Result<Self> {
        Ok(Examined { folder: Some(folder), ..Examined::new(path, &folder.metadata()?) })
    }

    fn refuse(&self, reason: String, remedy: impl Into<String>) -> StoreError {
        StoreError::NotOurs { path: self.path.to_owned(), reason, remedy: remedy.into() }
    }

    /// Another user owns it.
    fn of_another(&self, we: Owner) -> StoreError {
        let owner = users::words_of(self.uid);
        let reason = format!("it belongs to {owner}, and longpole runs as {}", users::words_of(we.uid));
        self.refuse(reason, "run longpole as that user, or name another store: --store DIR")
    }

    /// Its owner has our number, and is not us: the number stands for everybody whom our user namespace does not know.
    fn of_somebody(&self) -> StoreError {
        let uid = self.uid;
        let reason =
            format!("it belongs to a user who is not mapped in this user namespace and appears as uid {uid}, as longpole's own user does");
        self.refuse(reason, "run longpole as its user, or name another store: --store DIR")
    }

    /// Refuses what others than its user can write.
    fn check_writers(&self, we: Owner) -> Result<(), StoreError> {
        let path = self.path.display();
        let elsewhere = "or name another store: --store DIR";
        if self.mode & OTHERS_WRITE != 0 {
            return Err(self.refuse("every user can write to it".to_owned(), format!("chmod o-w {path}, {elsewhere}")));
        }
        if self.mode & GROUP_WRITES == 0 {
            return Ok(());
        }
        let list = self.folder.map_or_else(|| files::access_list(self.path), files::access_list_of);
        let list = list.map_err(StoreError::io("read the access control list of", self.path))?;
        let (reason, remedy) = match users::group_writers(self.gid, list.as_deref(), we) {
            GroupWriters::Nobody => return Ok(()),
            GroupWriters::Group => (format!("its group {} can write to it", self.gid), "chmod g-w"),
            GroupWriters::AccessList => ("its access control list lets others write to it".to_owned(), "setfacl -b"),
        };
        Err(self.refuse(reason, format!("{remedy} {path}, {elsewhere}")))
    }
}

/// Owners that longpole trusts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnershipCheck {
    we: Owner,
    outside: Option<u32>,
}

impl OwnershipCheck {
    pub(crate) fn new() -> Self {
        OwnershipCheck { we: Owner::current(), outside: users::unmapped_uid() }
    }

    /// Whether this is our number, or root's. One that stands for everybody outside is neither, also where it is ours.
    fn is_ours(&self, uid: u32) -> bool {
        uid == 0 || uid == self.we.uid && Some(uid) != self.outside
    }

    /// A folder that a store lies below, or a link on the way.
    fn check_above(&self, found: &Examined<'_>) -> Result<(), StoreError> {
        if !self.is_ours(found.uid) && Some(found.uid) != self.outside {
            return Err(found.of_another(self.we));
        }
        // Whoever may write to a sticky folder can neither move nor remove what is another's.
        if found.mode & STICKY != 0 { Ok(()) } else { found.check_writers(self.we) }
    }

    /// The folders above a path that is typed: on the way through its links, and where it is in truth. Returns the latter, which has no
    /// link in it.
    fn check_way(&self, path: &Path) -> Result<PathBuf, StoreError> {
        let mut way = path.to_owned();
        for _ in 0..LINKS_MAX {
            let mut link = None;
            for above in way.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev().chain([way.as_path()]) {
                let data = match fs::symlink_metadata(above) {
                    Ok(data) => data,
                    // The rest is made by us.
                    Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(way.clone()),
                    Err(error) => return Err(StoreError::io("open", above)(error)),
                };
                if data.is_symlink() {
                    if !self.is_ours(data.uid()) && Some(data.uid()) != self.outside {
                        return Err(Examined::new(above, &data).of_another(self.we));
                    }
                    let target = fs::read_link(above).map_err(StoreError::io("open", above))?;
                    let rest = way.strip_prefix(above).unwrap_or(Path::new(""));
                    let parent = above.parent().unwrap_or(Path::new("/"));
                    link = Some(parent.join(target).join(rest));
                    break;
                }
                if above != way {
                    self.check_above(&Examined::new(above, &data))?;
                }
            }
            match link {
                Some(target) => way = target,
                None => return Ok(way.clone()),
            }
        }
        Err(StoreError::io("open", path)(io::Error::other("too many levels of symbolic links")))
    }

    /// Makes sure of the root of a store, which is made where it is not there, and of the folder in it. `check` looks at the root before
    /// anything is made in it. Returns where the root is in truth, and whether others could read it until now.
    pub(crate) fn open_root(
        &self,
        root: &Path,
        inside: &str,
        check: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(PathBuf, bool), StoreError> {
        let typed = std::path::absolute(root).map_err(StoreError::io("find", root))?;
        let way = self.check_way(&typed)?;
        let opened = self.walk(&way, &typed.join(inside))?.metadata().map_err(StoreError::io("open", &typed))?;
        let root = fs::canonicalize(&way).map_err(StoreError::io("open", &typed))?;
        let named = fs::symlink_metadata(&root).map_err(StoreError::io("open", &root))?;
        if (named.dev(), named.ino()) != (opened.dev(), opened.ino()) {
            return Err(StoreError::io("open", root)(io::Error::other("it was replaced while longpole opened it")));
        }
        let was_open = self.check_entry(&root)?;
        check(&root)?;
        let path = root.join(inside);
        match files::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(StoreError::io("create", path)(error)),
            _ => {}
        }
        self.check_entry(&path)?;
        Ok((root, was_open))
    }

    /// Opens the last folder of a way without links, and makes what is missing of it.
    ///
    /// Step by step, because a path that was checked can lead elsewhere by now: in a sticky folder any user can create a missing name, a link for
    /// one. Here each folder is opened from the one above, which was checked, and through no link. Nobody else
    /// can exchange a folder of ours in one that was checked, so the path stays what it is from then on.
    fn walk(&self, way: &Path, wanted: &Path) -> Result<File, StoreError> {
        let mut path = PathBuf::from("/");
        let mut folder = files::open_dir(&path).map_err(StoreError::io("open", &path))?;
        for part in way.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir)) {
            let above = Examined::folder(&path, &folder).map_err(StoreError::io("open", &path))?;
            self.check_above(&above)?;
            path.push(part);
            folder = files::open_or_create_dir(&folder, part.as_os_str()).map_err(StoreError::io("create", wanted))?;
        }
        Ok(folder)
    }

    /// A folder or a plain file of a store: ours, changed by nobody else, and no link. Whether others could read it.
    pub(crate) fn check_entry(&self, path: &Path) -> Result<bool, StoreError> {
        let data = fs::symlink_metadata(path).map_err(StoreError::io("open", path))?;
        if !data.is_dir() && !data.is_file() {
            let kind = if data.is_symlink() { "a symbolic link" } else { "neither a file nor a directory" };
            return Err(StoreError::Corrupt {
                path: path.to_owned(),
                reason: format!("it is {kind}, which longpole does not follow in a store"),
            });
        }
        let found = Examined::new(path, &data);
        let may_be_ours = found.uid == self.we.uid;
        if !(self.is_ours(found.uid) || may_be_ours && files::is_owned(path, &data)) {
            return Err(if may_be_ours { found.of_somebody() } else { found.of_another(self.we) });
        }
        found.check_writers(self.we)?;
        Ok(found.mode & NOT_ITS_USER != 0)
    }

    /// The same, where it is there.
    pub(crate) fn check_entry_if_there(&self, path: &Path) -> Result<bool, StoreError> {
        match self.check_entry(path) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            checked => checked,
        }
    }

    /// Closes these to others, in this order: folders with all that is in them. Missing names, links and what belongs to root stay as they are.
    pub(crate) fn close(&self, paths: &[PathBuf]) -> Result<(), StoreError> {
        for path in paths {
            match fs::symlink_metadata(path) {
                Ok(data) if data.is_dir() => self.close_folder(path)?,
                Ok(data) if data.is_file() => self.set_mode(path, &data, FILE_MODE)?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("open", path)(error)),
            }
        }
        Ok(())
    }

    /// Closes one folder to others, and nothing that is in it.
    pub(crate) fn close_only(&self, folder: &Path) -> Result<(), StoreError> {
        match fs::symlink_metadata(folder) {
            Ok(data) if data.is_dir() => self.set_mode(folder, &data, FOLDER_MODE),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("open", folder)(error)),
            _ => Ok(()),
        }
    }

    /// A folder last after what is in it: where this is interrupted it is done again.
    fn close_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let mut folders = vec![folder.to_owned()];
        let mut at = 0;
        while let Some(folder) = folders.get(at).cloned() {
            at += 1;
            for entry in fs::read_dir(&folder).map_err(StoreError::io("list", &folder))?.flatten() {
                let Ok(data) = entry.metadata() else { continue };
                if data.is_dir() {
                    folders.push(entry.path());
                } else if data.is_file() {
                    self.set_mode(&entry.path(), &data, FILE_MODE)?;
                }
            }
        }
        folders.iter().rev().try_for_each(|folder| self.close_only(folder))
    }

    fn set_mode(&self, path: &Path, data: &Metadata, mode: u32) -> Result<(), StoreError> {
        if data.uid() != self.we.uid || data.mode() & NOT_ITS_USER == 0 {
            return Ok(());
        }
        match fs::set_permissions(path, Permissions::from_mode(mode)) {
            // Somebody else's who has our number.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && Some(data.uid()) == self.outside => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("close to other users", path)(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::{Directory, give_rights};

    #[test]
    fn nothing_is_made_behind_a_link_that_came_after_the_check() {
        let directory = Directory::new();
        let base = fs::canonicalize(directory.path()).unwrap();
        let precious = base.join("precious");
        fs::create_dir(&precious).unwrap();
        let ownership = OwnershipCheck::new();
        // Checked while nothing was there; then another user is quicker.
        let way = ownership.check_way(&base.join("ci/store")).unwrap();
        assert_eq!(way, base.join("ci/store"));
        symlink(&precious, base.join("ci")).unwrap();
        assert!(ownership.walk(&way, &way).is_err());
        fs::remove_file(base.join("ci")).unwrap();
        fs::create_dir(base.join("ci")).unwrap();
        symlink(&precious, base.join("ci/store")).unwrap();
        assert!(ownership.walk(&way, &way).is_err());
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 0);
        // Nor in a folder that others can write to by then.
        fs::remove_file(base.join("ci/store")).unwrap();
        fs::set_permissions(base.join("ci"), Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(ownership.walk(&way, &way), Err(StoreError::NotOurs { .. })));
        assert_eq!(fs::read_dir(base.join("ci")).unwrap().count(), 0);
    }

    #[test]
    fn a_list_that_lets_others_write_is_no_private_group() {
        let directory = Directory::new();
        let base = fs::canonicalize(directory.path()).unwrap();
        let we = Owner::current().uid;
        for (name, uid, rights) in [("team", 65_534, 7), ("readers", 65_534, 5), ("own", we, 7)] {
            fs::create_dir(base.join(name)).unwrap();
            if !give_rights(&base.join(name), uid, rights) {
                return;
            }
        }
        let ownership = OwnershipCheck::new();
        let open = |store: &str| ownership.open_root(&base.join(store), "inside", |_| Ok(()));
        for refused in ["team/store", "team"] {
            let expected = format!("its access control list lets others write to it; setfacl -b {}/team, or name", base.display());
            let error = open(refused).unwrap_err().to_string();
            assert!(error.contains(&expected), "{error}");
        }
        open("readers/store").unwrap();
        open("own/store").unwrap();
    }

    #[test]
    fn a_root_is_made_through_links_of_its_user() {
        let directory = Directory::new();
        let base = fs::canonicalize(directory.path()).unwrap();
        symlink("real", base.join("link")).unwrap();
        let (root, was_open) = OwnershipCheck::new().open_root(&base.join("./link/x/../deep"), "inside", |_| Ok(())).unwrap();
        assert_eq!((root, was_open), (base.join("real/deep"), false));
        assert_eq!(fs::metadata(base.join("real/deep/inside")).unwrap().mode() & 0o7777, 0o700);
    }

    #[test]
    fn where_all_users_have_our_number_the_kernel_says_what_is_ours() {
        let directory = Directory::new();
        let base = fs::canonicalize(directory.path()).unwrap();
        let we = Owner::current();
        let ownership = OwnershipCheck { we, outside: Some(we.uid) };
        let (root, _) = ownership.open_root(&base.join("store"), "inside", |_| Ok(())).unwrap();
        fs::write(root.join("file"), "").unwrap();
        fs::set_permissions(root.join("file"), Permissions::from_mode(0o600)).unwrap();
        assert!(!ownership.check_entry(&root.join("file")).unwrap());
        // A folder of somebody else who seems to have our number. Root may open it as its owner may.
        let slash = fs::metadata("/").unwrap();
        if we.uid != 0 && slash.uid() != we.uid {
            let ownership = OwnershipCheck { we: Owner { uid: slash.uid(), ..we }, outside: Some(slash.uid()) };
            assert!(!files::is_owned(Path::new("/"), &slash));
            assert!(slash.uid() == 0 || ownership.check_entry(Path::new("/")).is_err());
        }
    }
}
