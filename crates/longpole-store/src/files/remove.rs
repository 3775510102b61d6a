//! Removing a folder with all that is in it, however deep.
//!
//! A folder that is not empty gives its folders to the top first, so two folders are open at a time and no path grows long:
//!
//! ```text
//! top ── a ── b ── c        top ─┬─ a            top ─┬─ b
//!                      ──►       └─ 0 (was b)    ──►  …
//! ```

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{open_dir, open_dir_in};

/// Removes what is at this path, if anything is: a folder with all that is in it, of a link the link.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_folder(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        // Somebody else was quicker.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    let top = open_dir(path)?;
    let mut next = 0;
    loop {
        let folders = remove_files(&top)?;
        if folders.is_empty() {
            return fs::remove_dir(path);
        }
        for folder in folders {
            if !remove_empty(&top, &folder)? {
                empty(&top, &folder, &mut next)?;
            }
        }
    }
}

/// Removes a folder of the top, and gives its folders to the top.
fn empty(top: &File, name: &CStr, next: &mut u64) -> io::Result<()> {
    let folder = open_dir_in(top, OsStr::from_bytes(name.to_bytes()))?;
    for inner in remove_files(&folder)? {
        while !remove_empty(&folder, &inner)? {
            let free = CString::new(next.to_string()).unwrap_or_default();
            *next += 1;
            match rustix::fs::renameat(&folder, &inner, top, &free) {
                // Something of this name is at the top.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                moved => {
                    moved?;
                    break;
                }
            }
        }
    }
    remove_empty(top, name).map(drop)
}

/// Removes all of a folder but the folders in it, which are returned.
fn remove_files(folder: &File) -> io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    let listed = rustix::fs::openat(folder, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in Dir::new(listed)? {
        let name = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) if is_folder(folder, &name) => folders.push(name),
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(folders)
}

fn is_folder(folder: &File, name: &CStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Whether the folder of this name is gone; it is not if something is in it.
fn remove_empty(folder: &File, name: &CStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Directory;

    #[test]
    fn a_folder_of_any_depth_is_removed_and_no_link_is_followed() {
        let directory = Directory::new();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("precious")).unwrap();
        fs::write(at("precious/file"), "kept").unwrap();
        fs::create_dir(at("top")).unwrap();
        // Names that the removal would give, too.
        for name in ["0", "1"] {
            fs::create_dir_all(at("top").join(name).join("in/side")).unwrap();
            fs::write(at("top").join(name).join("2"), "file").unwrap();
        }
        fs::write(at("top/2"), "file").unwrap();
        symlink(at("precious"), at("top/0/in/link")).unwrap();
        let mut folder = open_dir(&at("top")).unwrap();
        // More than a path can name, and more than may be open at once.
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&folder, c"deep", 0o700.into()).unwrap();
            symlink_in(&folder, &at("precious"));
            folder = open_dir_in(&folder, OsStr::new("deep")).unwrap();
        }
        drop(folder);
        remove_all(&at("top")).unwrap();
        assert!(fs::symlink_metadata(at("top")).is_err());
        assert_eq!(fs::read_to_string(at("precious/file")).unwrap(), "kept");
        remove_all(&at("top")).unwrap();
    }

    fn symlink_in(folder: &File, target: &Path) {
        rustix::fs::symlinkat(target, folder, c"link").unwrap();
    }
}
