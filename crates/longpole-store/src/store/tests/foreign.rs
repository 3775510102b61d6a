//! Folders and databases that are not ours, and stores that are closed to others.

use super::*;

/// Path and mode of everything below.
fn modes(root: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        found.push((folder.clone(), fs::metadata(&folder).unwrap().mode() & 0o7777));
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let data = entry.metadata().unwrap();
            if data.is_dir() { folders.push(entry.path()) } else { found.push((entry.path(), data.mode() & 0o7777)) }
        }
    }
    found.sort();
    found
}

fn put(path: &Path, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "of its user").unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_with_files_of_others_is_no_store_and_keeps_its_modes() {
    for name in ["bin/tool", "tool", "recordings/song.ogg", "recordings/7", "cache.txt"] {
        let directory = Directory::new();
        put(&directory.path().join(name), 0o755);
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let before = modes(directory.path());
        let error = Store::open(directory.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs);
        let first = if name == "bin/tool" { "bin" } else { name };
        let expected = format!("it is not a longpole store and holds other files, such as {first}; name an empty or a new directory");
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!(modes(directory.path()), before, "{name}");
    }
}

#[test]
fn a_folder_with_nothing_but_names_of_ours_becomes_a_store() {
    let directory = Directory::new();
    fs::create_dir_all(directory.path().join("recordings/r7")).unwrap();
    put(&directory.path().join(".gitignore"), 0o644);
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let store = Store::open(directory.path()).unwrap();
    assert!(store.was_open() && !Store::open(directory.path()).unwrap().was_open());
    assert_eq!(fs::metadata(directory.path().join(".gitignore")).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn closing_a_store_leaves_what_others_put_beside_it() {
    let directory = Directory::new();
    drop(sealed(directory.path(), &ended()));
    let root = directory.path();
    for (name, mode) in [("bin/tool", 0o755), ("recordings/notes/text", 0o644), ("recordings/r1/segments/more", 0o644)] {
        put(&root.join(name), mode);
    }
    for open in [root.to_owned(), root.join("recordings"), root.join("recordings/r1")] {
        fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(root.join("catalog.sqlite"), Permissions::from_mode(0o644)).unwrap();
    assert!(Store::open(root).unwrap().was_open());
    for (path, mode) in modes(root) {
        let is_theirs = path.starts_with(root.join("bin")) || path.starts_with(root.join("recordings/notes"));
        assert_eq!(mode & 0o077 != 0, is_theirs, "{} {mode:o}", path.display());
    }
    assert_eq!(fs::metadata(root.join("bin/tool")).unwrap().mode() & 0o777, 0o755);
}

#[test]
fn a_catalog_of_something_else_closes_nothing() {
    let directory = Directory::new();
    put(&directory.path().join("catalog.sqlite"), 0o644);
    fs::write(directory.path().join("catalog.sqlite"), "not a database, and long enough to be read: ".repeat(20)).unwrap();
    put(&directory.path().join("cache/page"), 0o644);
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let is_open = |modes: Vec<(PathBuf, u32)>| modes.into_iter().filter(|(path, _)| !path.ends_with("recordings")).collect::<Vec<_>>();
    let before = is_open(modes(directory.path()));
    assert!(Store::open(directory.path()).is_err());
    assert_eq!(is_open(modes(directory.path())), before);
}

#[test]
fn a_database_of_another_program_is_refused_and_not_changed() {
    let check = |schema: &str, is_refused: bool| {
        let directory = Directory::new();
        let catalog = directory.path().join("catalog.sqlite");
        let connection = rusqlite::Connection::open(&catalog).unwrap();
        connection.execute_batch(schema).unwrap();
        drop(connection);
        let before = fs::read(&catalog).unwrap();
        match Store::open(directory.path()) {
            Ok(_) => assert!(!is_refused, "{schema}"),
            Err(error) => {
                assert!(is_refused && error.kind() == ErrorKind::NotOurs, "{schema}: {error}");
                assert!(error.to_string().contains("the database of another program"), "{error}");
                assert_eq!(fs::read(&catalog).unwrap(), before, "{schema}");
            }
        }
    };
    check("CREATE TABLE books (title TEXT)", true);
    check("PRAGMA application_id = 7", true);
    check("CREATE TABLE books (title TEXT); PRAGMA user_version = 1", true);
    check("CREATE TABLE books (title TEXT); PRAGMA user_version = 2", true);
    check("CREATE TABLE recordings (title TEXT)", true);
    check("VACUUM", false);
}

#[test]
fn a_catalog_whose_tables_are_not_what_longpole_makes_is_refused() {
    let directory = Directory::new();
    sealed(directory.path(), &ended());
    let catalog = directory.path().join("catalog.sqlite");
    let change = |statement: &str| rusqlite::Connection::open(&catalog).unwrap().execute_batch(statement).unwrap();
    // What SQLite itself puts there.
    change("ANALYZE; VACUUM");
    drop(Store::open(directory.path()).unwrap());
    // In memory 800 MB for each row, in the file nothing.
    let bomb = "GENERATED ALWAYS AS (hex(zeroblob(400000000)))";
    for (make, undo, name) in [
        (format!("ALTER TABLE tags ADD COLUMN note TEXT {bomb}"), "ALTER TABLE tags DROP COLUMN note", "tags"),
        ("CREATE INDEX by_end ON recordings (hex(state))".to_owned(), "DROP INDEX by_end", "by_end"),
        ("CREATE TRIGGER gone AFTER INSERT ON tags BEGIN DELETE FROM recordings; END".to_owned(), "DROP TRIGGER gone", "gone"),
        ("CREATE TABLE more (number REFERENCES recordings (number) ON DELETE CASCADE)".to_owned(), "DROP TABLE more", "more"),
    ] {
        change(&make);
        let error = Store::open(directory.path()).unwrap_err();
        let expected = format!(
            "its {name:?} differs from what longpole creates, and reading it could have any effect; name another store: --store DIR"
        );
        assert!(error.kind() == ErrorKind::NotOurs && error.to_string().ends_with(&expected), "{make}: {error}");
        change(undo);
        drop(Store::open(directory.path()).unwrap());
    }
    // A row that is too long is an error, and takes no memory.
    change("PRAGMA ignore_check_constraints = ON; UPDATE recordings SET answer_json = hex(zeroblob(40000000))");
    let error = Store::open(directory.path()).unwrap().list().unwrap_err();
    assert!(error.to_string().starts_with("read the catalog "), "{error}");
}
