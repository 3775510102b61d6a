//! The messages of the last commits against the rules of `STYLE.md`. It warns and never fails: nobody rewrites history for a message.

use std::process::Command;

use anyhow::{Context, Result};

use crate::paths::root;

/// More than anybody lands at once.
const COMMITS: usize = 40;

const SUBJECT_MAX: usize = 72;

/// A change of fewer lines needs no body.
const TRIVIAL_LINES: u64 = 10;

/// Prints what is wrong with the messages of the last commits.
pub(crate) fn warn() -> Result<()> {
    // Fields by a byte that no message holds, commits by another; then the size of the change.
    let format = "--format=%x01%h%x00%s%x00%b%x00";
    let out = Command::new("git")
        .args(["log", "--no-merges", "--shortstat", &format!("--max-count={COMMITS}"), format])
        .current_dir(root())
        .output()
        .context("failed to run git log")?;
    for commit in String::from_utf8_lossy(&out.stdout).split('\u{1}').skip(1) {
        let fields: Vec<&str> = commit.split('\0').collect();
        if let [hash, subject, body, size] = fields[..] {
            for why in wrong(subject, body, lines(size)) {
                eprintln!("commits: {hash} {subject}: {why}");
            }
        }
    }
    Ok(())
}

/// The changed lines that ` 3 files changed, 12 insertions(+), 4 deletions(-)` adds up to.
fn lines(size: &str) -> u64 {
    let counts = size.trim().split(", ").skip(1).filter_map(|part| part.split_once(' '));
    counts.filter_map(|(count, _)| count.parse::<u64>().ok()).sum()
}

fn wrong(subject: &str, body: &str, lines: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let length = subject.chars().count();
    if length > SUBJECT_MAX {
        wrong.push(format!("{length} characters, {SUBJECT_MAX} at most"));
    }
    let room = subject.split_once(": ").map(|(room, _)| room);
    if room.is_none_or(|room| room.is_empty() || room.chars().any(|c| !(c.is_ascii_lowercase() || " ,-".contains(c)))) {
        wrong.push("does not begin with a room, as in `wire: count times that were moved`".to_owned());
    }
    if subject.contains(';') {
        wrong.push("holds two thoughts; make it two commits".to_owned());
    }
    if subject.ends_with('.') {
        wrong.push("ends with a full stop".to_owned());
    }
    if body.trim().is_empty() && lines >= TRIVIAL_LINES {
        wrong.push(format!("{lines} lines and no body: say what was before, why it was wrong, how you checked"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_message() {
        assert_eq!(wrong("server, capture: refuse strangers", "", 3), Vec::<String>::new());
        assert_eq!(wrong("wire: find keys", "They were lost.", 300), Vec::<String>::new());
        assert_eq!(wrong("Mend it.", "", 10).len(), 3);
        assert_eq!(wrong("wire: find keys; drop values", "", 1), ["holds two thoughts; make it two commits"]);
        assert_eq!(wrong(&format!("wire: {}", "é".repeat(67)), "", 1), ["73 characters, 72 at most"]);
    }

    #[test]
    fn a_change_has_a_size() {
        assert_eq!(lines("\n 3 files changed, 12 insertions(+), 4 deletions(-)\n"), 16);
        assert_eq!(lines(" 1 file changed, 1 insertion(+)"), 1);
        assert_eq!(lines(""), 0);
    }
}
