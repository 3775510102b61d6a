//! Large files do not come into the repository by accident: each clone has them for ever.

use std::path::Path;
use std::process::Command;

use super::House;

/// Largest file that git may track: four times the largest picture and three times the largest fixture.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The folder of files from the wild, which are as large as they are.
const FIXTURES: &str = "fixtures/";

/// The files that git tracks; outside of a repository there are none.
pub(super) fn file_sizes(house: &House) -> Vec<String> {
    let Ok(out) = Command::new("git").current_dir(&house.root).args(["ls-files", "-z"]).output() else { return Vec::new() };
    let names = String::from_utf8_lossy(&out.stdout);
    names.split('\0').filter(|name| !name.starts_with(FIXTURES)).filter_map(|name| too_large(&house.root, name)).collect()
}

fn too_large(root: &Path, name: &str) -> Option<String> {
    let bytes = root.join(name).symlink_metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    (bytes > FILE_BYTES_MAX)
        .then(|| format!("{name}: it has {bytes} bytes, and a tracked file outside {FIXTURES} at most {FILE_BYTES_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_refused_unless_it_is_a_fixture() {
        let root = std::env::temp_dir().join(format!("longpole-tidy-{}", std::process::id()));
        std::fs::create_dir_all(root.join(FIXTURES)).unwrap();
        let git = |arguments: &[&str]| Command::new("git").current_dir(&root).args(arguments).status().unwrap();
        assert!(git(&["init", "-q"]).success());
        for (name, bytes) in [("small", FILE_BYTES_MAX), ("large", FILE_BYTES_MAX + 1), ("fixtures/large", FILE_BYTES_MAX + 1)] {
            std::fs::File::create(root.join(name)).unwrap().set_len(bytes).unwrap();
        }
        assert!(git(&["add", "."]).success());
        // Only what git tracks counts.
        std::fs::File::create(root.join("untracked")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        let found = file_sizes(&House { root: root.clone(), files: Vec::new() });
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, ["large: it has 1048577 bytes, and a tracked file outside fixtures/ at most 1048576"]);
    }
}
