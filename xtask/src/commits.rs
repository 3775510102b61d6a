//! The messages of the last commits, held against how we write them. It warns and never fails: what is in the history stays there.

use std::process::Command;

use anyhow::{Context, Result};

use crate::paths::root;

/// As many as somebody lands at once.
const COMMITS: usize = 40;

const SUBJECT_MAX: usize = 72;

/// A change of fewer lines may go without a body.
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
        wrong.push("begins with no room, as in `wire: times that were moved are counted`".to_owned());
    }
    if subject.ends_with('.') {
        wrong.push("ends with a full stop".to_owned());
    }
    if body.trim().is_empty() && lines >= TRIVIAL_LINES {
        wrong.push(format!("{lines} lines and no body: what happened before, why it was wrong, how it was checked"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_message() {
        assert_eq!(wrong("server, capture: nobody is let in", "", 3), Vec::<String>::new());
        assert_eq!(wrong("wire: keys are seen", "They were not.", 300), Vec::<String>::new());
        assert_eq!(wrong("Mend it.", "", 10).len(), 3);
        assert_eq!(wrong(&format!("wire: {}", "é".repeat(67)), "", 1), ["73 characters, 72 at most"]);
    }

    #[test]
    fn a_change_has_a_size() {
        assert_eq!(lines("\n 3 files changed, 12 insertions(+), 4 deletions(-)\n"), 16);
        assert_eq!(lines(" 1 file changed, 1 insertion(+)"), 1);
        assert_eq!(lines(""), 0);
    }
}
