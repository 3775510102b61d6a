//! One module convention, and files that a reader can hold.

use super::House;

/// A file of more lines holds more than one thing, as a rule.
const LINES_MAX: usize = 800;

/// Longer files that do hold one thing, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// A module with children is `foo/mod.rs`: no `foo.rs` beside a folder `foo`.
pub(super) fn conventions(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in house.rust() {
        let folder = file.path.strip_suffix(".rs").map(|module| format!("{module}/"));
        if folder.is_some_and(|folder| house.rust().any(|other| other.path.starts_with(&folder))) {
            found.push(file.finding(1, "stands beside a folder of its name; make it the folder's mod.rs"));
        }
    }
    found
}

/// No source file of Rust above 800 lines, unless it is listed.
pub(super) fn lengths(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in house.rust() {
        let lines = file.text.lines().count();
        let is_listed = LONG_FILES.iter().any(|(path, _reason)| *path == file.path);
        if lines > LINES_MAX && !is_listed {
            found.push(file.finding(lines, &format!("longer than {LINES_MAX} lines")));
        } else if lines <= LINES_MAX && is_listed {
            found.push(file.finding(lines, "short again; remove it from LONG_FILES"));
        }
    }
    found
}
