//! Which files are needed to name the code of a binary, and whether what lies there is what was mapped.
//!
//! ```text
//! /opt/shop/bin/shop                          the binary: symbol tables, and DWARF unless it was split off
//! /usr/lib/debug/.build-id/ab/cdef….debug     where distributions put what they split off, by build id
//! /opt/shop/bin/shop.debug, .debug/shop.debug where objcopy's users do, by .gnu_debuglink
//!   └─ .gnu_debugaltlink                      what several debug files share, where dwz made them smaller
//! ```

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use longpole_model::stack::Mapping;
use object::ReadRef;

use crate::files::{Files, ReadSeek, VDSO};
use crate::object::{Binary, Metered, Parts};
use crate::reason::Reason;

/// Where distributions keep debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// Opens a file.
fn open(files: &dyn Files, path: &Path) -> Result<Parts, Reason> {
    measured(files.open(path))
}

/// Opens the file of a mapping.
pub(crate) fn open_mapped(files: &dyn Files, mapping: &Mapping) -> Result<Parts, Reason> {
    let path = &mapping.path;
    let is_no_file =
        !path.starts_with('/') && path != VDSO || ["//", "/dev/", "/memfd:", "/SYSV"].iter().any(|prefix| path.starts_with(prefix));
    match measured(files.open_mapped(mapping)) {
        Err(Reason::Missing) if is_no_file => Err(Reason::NotAFile),
        // So the kernel marks a file that was unlinked. A file may also have such a name.
        Err(Reason::Missing) if path.ends_with(" (deleted)") => Err(Reason::Deleted),
        opened => opened,
    }
}

fn measured(opened: io::Result<Box<dyn ReadSeek>>) -> Result<Parts, Reason> {
    opened.and_then(Metered::new).map(Parts::new).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Reason::Missing,
        _ => Reason::Unreadable { error: error.to_string() },
    })
}

/// Reads the headers, and makes sure that this is the file that was mapped, as far as build ids say.
pub(crate) fn parse<'d>(parts: &'d Parts, build_id: &[u8]) -> Result<Binary<'d>, Reason> {
    let binary = Binary::parse(parts)?;
    if !build_id.is_empty() && binary.build_id() != build_id {
        return Err(Reason::BuildIdDiffers);
    }
    Ok(binary)
}

/// Finds the file with the debug information that was split off a binary: by build id, then by the name in the binary.
pub(crate) fn open_debug_file(files: &dyn Files, path: &str, binary: Option<&Binary<'_>>, build_id: &[u8]) -> Option<Parts> {
    if let Some(parts) = open_by_build_id(files, build_id) {
        return Some(parts);
    }
    let (name, checksum) = binary?.debug_link()?;
    let (name, path) = (as_path(name)?, Path::new(path));
    // The binary may name itself; a path would lead anywhere.
    let name = Path::new(name.file_name()?);
    let folder = path.parent()?;
    let beside_system = Path::new(DEBUG_ROOT).join(folder.strip_prefix("/").unwrap_or(folder));
    [folder.join(name), folder.join(".debug").join(name), beside_system.join(name)].iter().filter(|found| *found != path).find_map(
        |found| {
            let parts = open(files, found).ok()?;
            is_of(&parts, build_id, checksum).then_some(parts)
        },
    )
}

/// Finds the file that several debug files share.
pub(crate) fn open_supplement(files: &dyn Files, debug_path: &Path, debug: &Binary<'_>) -> Option<Parts> {
    let (name, build_id) = debug.debug_alt_link()?;
    let by_name = debug_path.parent().zip(as_path(name)).and_then(|(folder, name)| open(files, &folder.join(name)).ok());
    let is_right = |parts: &Parts| !build_id.is_empty() && Binary::parse(parts).is_ok_and(|found| found.build_id() == build_id);
    by_name.filter(is_right).or_else(|| open_by_build_id(files, build_id))
}

/// Where a debug file of this build id is kept, `None` where the id is too short to be one.
pub(crate) fn debug_path(build_id: &[u8]) -> Option<PathBuf> {
    use std::fmt::Write;
    let (first, rest) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let mut path = format!("{DEBUG_ROOT}/.build-id/{first:02x}/");
    for byte in rest {
        let _ = write!(path, "{byte:02x}");
    }
    path.push_str(".debug");
    Some(PathBuf::from(path))
}

fn open_by_build_id(files: &dyn Files, build_id: &[u8]) -> Option<Parts> {
    let parts = open(files, &debug_path(build_id)?).ok()?;
    let right = Binary::parse(&parts).is_ok_and(|found| found.build_id() == build_id);
    right.then_some(parts)
}

/// A debug file belongs to a binary if they share the build id; where there is none, if it has the checksum that the
/// binary expects.
fn is_of(parts: &Parts, build_id: &[u8], checksum: u32) -> bool {
    let Ok(found) = Binary::parse(parts) else { return false };
    if !build_id.is_empty() && !found.build_id().is_empty() {
        return found.build_id() == build_id;
    }
    let whole = parts.len().and_then(|length| parts.read_bytes_at(0, length));
    // The checksum of `.gnu_debuglink` is that of zip and Ethernet.
    whole.is_ok_and(|bytes| crc32fast::hash(bytes) == checksum)
}

#[cfg(unix)]
fn as_path(name: &[u8]) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Some(Path::new(OsStr::from_bytes(name)))
}

#[cfg(not(unix))]
fn as_path(name: &[u8]) -> Option<&Path> {
    Some(Path::new(OsStr::new(std::str::from_utf8(name).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_are_kept_by_build_id() {
        assert_eq!(debug_path(&[0xab, 0xcd, 0x0e]).unwrap(), Path::new("/usr/lib/debug/.build-id/ab/cd0e.debug"));
        assert_eq!(debug_path(&[0xab]), None);
        assert_eq!(debug_path(&[]), None);
    }
}
