use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::{Directory, ended, sealed};
use crate::error::StoreError;

fn append(path: &Path) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"x").unwrap();
}

#[test]
fn a_view_is_kept_for_its_maker_and_these_tables() {
    let directory = Directory::new();
    let stored = sealed(directory.path(), &ended());
    assert_eq!(stored.kept_view("summary", "me").unwrap(), None);
    let body = b"{\"a\":1}\n\n{}";
    stored.keep_view("summary", "other", b"old").unwrap();
    stored.keep_view("summary", "me", body).unwrap();
    assert_eq!(stored.kept_view("summary", "me").unwrap().as_deref(), Some(&body[..]));
    assert_eq!(stored.kept_view("summary", "other").unwrap(), None);
    assert_eq!(stored.kept_view("poles", "me").unwrap(), None);
    // Damage is none that anybody needs to know: it is computed again.
    append(&stored.view_file("summary"));
    assert_eq!(stored.kept_view("summary", "me").unwrap(), None);
}

#[test]
fn a_kept_view_does_not_hide_a_damaged_table() {
    let directory = Directory::new();
    let stored = sealed(directory.path(), &ended());
    stored.keep_view("summary", "me", b"{}").unwrap();
    let (_, table) = stored.table_files().unwrap().remove(0);
    append(&table);
    assert!(matches!(stored.kept_view("summary", "me"), Err(StoreError::Corrupt { .. })));
}
