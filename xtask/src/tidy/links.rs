//! Comments and pages point to files that exist.

use super::source::Source;
use super::{File, House};

/// A word of a comment that begins with one of these is a path.
const FOLDERS: [&str; 7] = ["docs/", "crates/", "examples/", "fixtures/", "xtask/", "fuzz/", "bench/"];

pub(super) fn links(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in &house.files {
        if file.path.ends_with(".rs") {
            comments(house, file, &mut found);
        }
        if file.path.ends_with(".md") {
            page(house, file, &mut found);
        }
    }
    found
}

fn comments(house: &House, file: &File, found: &mut Vec<String>) {
    for (first, comment) in Source::new(&file.text).comments {
        for (index, line) in comment.lines().enumerate() {
            for word in line.split(|c: char| c.is_whitespace() || "`()[],;\"'".contains(c)) {
                let word = word.trim_end_matches(['.', ':']);
                let is_path = FOLDERS.iter().any(|dir| word.starts_with(dir));
                let is_file = word.rsplit('/').next().is_some_and(|name| name.contains('.'));
                if is_path && is_file && !word.contains(['*', '<', '{', '…']) && !house.root.join(word).exists() {
                    found.push(file.finding(first + index, &format!("points to {word}, which does not exist")));
                }
            }
        }
    }
}

/// The relative links of a page.
fn page(house: &House, file: &File, found: &mut Vec<String>) {
    let here = house.root.join(&file.path);
    let dir = here.parent().unwrap_or(&house.root);
    for (index, line) in file.text.lines().enumerate() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:") || target.contains(' ');
            if !outside && !dir.join(target).exists() {
                found.push(file.finding(index + 1, &format!("links to {target}, which does not exist")));
            }
        }
    }
}
