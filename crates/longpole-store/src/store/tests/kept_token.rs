use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Directory, Store};

#[test]
fn a_token_stays_as_long_as_nobody_else_could_read_it() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let first = store.kept_token(|| "1".repeat(32)).unwrap();
    assert_eq!((first.clone(), store.kept_token(|| "2".repeat(32)).unwrap()), ("1".repeat(32), first));
    let path = store.cache().join("page-token");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // What others could read is a secret no more.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(store.kept_token(|| "3".repeat(32)).unwrap(), "3".repeat(32));
    fs::write(&path, "short").unwrap();
    assert_eq!(store.kept_token(|| "4".repeat(32)).unwrap(), "4".repeat(32));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert_eq!(store.kept_token(|| "5".repeat(32)).unwrap(), "5".repeat(32), "a link is not followed");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}
