//! Names of files go to terminals, archives and other systems: printable ASCII.

use std::process::Command;

use super::House;

/// The files that git tracks; outside of a repository there are none.
pub(super) fn file_names(house: &House) -> Vec<String> {
    let Ok(out) = Command::new("git").current_dir(&house.root).args(["ls-files", "-z"]).output() else { return Vec::new() };
    let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let names = out.stdout.split(|byte| *byte == 0).filter(|name| !is_plain(name));
    names.map(|name| format!("{}: its name is not printable ASCII", name.escape_ascii())).collect()
}
