//! Line 2: a catalog or a store of somebody else's makes `rm` and `prune` delete what is not a recording.
//! Guarantees: where a recording lies follows from its number, and no link below the store is followed; a store that another user owns or
//! can change is refused with what to do about it, and a command to record runs anyway; a damaged row is
//! reported and hides no other. A folder that is no store keeps its content and its modes, and what a command leaves in a shared folder does
//! not hold up the next.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Sandbox, binary, clean, json, longpole, plain_user, skip};

/// A store with two recordings, of `true` and of `false`.
fn store_of_two(sandbox: &Sandbox) -> PathBuf {
    let store = sandbox.path("store");
    for command in ["true", "false"] {
        run(longpole(&store).args(["run", "--summary", "none", "--", command]));
    }
    store
}

/// A folder that is not longpole's, with a file in it.
fn precious(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.path("precious");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("thesis"), "years of work").unwrap();
    folder
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn change(store: &Path, statement: &str) {
    rusqlite::Connection::open(store.join("catalog.sqlite")).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn a_row_that_names_another_directory_deletes_nothing_there() {
    for remove in [&["rm", "r1"][..], &["prune", "--keep", "0"]] {
        let sandbox = Sandbox::new();
        let (store, precious) = (store_of_two(&sandbox), precious(&sandbox));
        change(&store, &format!("UPDATE recordings SET directory = '{}' WHERE number = 1", precious.display()));
        let listed = run(longpole(&store).args(["ls", "--format", "json"]));
        assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("\"r2\""), "{listed:?}");
        assert!(said(&listed).contains("the directory") && said(&listed).contains("r1"), "{listed:?}");
        let shown = run(longpole(&store).args(["show", "r1"]));
        assert!(!shown.status.success() && said(&shown).contains("is not valid"), "{shown:?}");
        run(longpole(&store).args(remove));
        assert!(precious.join("thesis").exists(), "{remove:?} removed what a row names");
    }
}

#[test]
fn a_damaged_row_is_reported_and_can_be_removed() {
    let sandbox = Sandbox::new();
    let store = store_of_two(&sandbox);
    change(&store, "UPDATE recordings SET command_json = 'DROP TABLE recordings; --', answer_json = '{\"a\":' WHERE number = 1");
    let listed = run(longpole(&store).args(["ls", "--format", "json"]));
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("\"r2\""), "{listed:?}");
    assert!(said(&listed).contains("the command of r1 is not valid"), "{listed:?}");
    // The page has its list from the same document.
    let document: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(document["damaged"][0].as_str().unwrap().contains("the command of r1 is not valid"), "{document}");
    let removed = run(longpole(&store).args(["rm", "r1"]));
    assert!(removed.status.success(), "{removed:?}");
    assert!(!store.join("recordings/r1").exists());
    let listed = run(longpole(&store).args(["ls", "--format", "json"]));
    assert_eq!(said(&listed), "");
}

#[test]
fn no_link_below_the_store_is_followed() {
    // What stands in whose place, and what somebody does then.
    for (place, arguments) in [
        ("recordings", &["rm", "r1"][..]),
        ("recordings", &["prune", "--keep", "0"]),
        ("recordings/r1", &["rm", "r1"]),
        ("recordings/r1", &["prune", "--keep", "0"]),
        ("recordings/r1", &["show", "r1"]),
        ("recordings/r1/wal", &["show", "r1"]),
        ("catalog.sqlite", &["prune", "--keep", "0"]),
    ] {
        let sandbox = Sandbox::new();
        let (store, precious) = (store_of_two(&sandbox), precious(&sandbox));
        let place = store.join(place);
        let aside = sandbox.path("aside");
        if place.exists() {
            std::fs::rename(&place, &aside).unwrap();
        }
        if place.ends_with("recordings") {
            std::fs::create_dir(precious.join("r1")).unwrap();
            std::fs::rename(precious.join("thesis"), precious.join("r1/thesis")).unwrap();
        }
        symlink(if place.ends_with("catalog.sqlite") { &aside } else { &precious }, &place).unwrap();
        let out = run(longpole(&store).args(arguments));
        let left = [precious.join("thesis"), precious.join("r1/thesis")].iter().any(|thesis| thesis.exists());
        assert!(left, "{arguments:?} with a link at {}: {out:?}", place.display());
        if place.ends_with("catalog.sqlite") {
            assert!(!out.status.success() && store.join("recordings/r1").exists(), "a linked catalog is used: {out:?}");
        }
    }
}

#[test]
fn a_world_writable_store_is_refused_and_the_command_runs() {
    for open in ["", "catalog.sqlite", "recordings"] {
        let sandbox = Sandbox::new();
        let store = store_of_two(&sandbox);
        let open = store.join(open);
        let mode = if open.is_dir() { 0o777 } else { 0o666 };
        std::fs::set_permissions(&open, PermissionsExt::from_mode(mode)).unwrap();
        for arguments in [&["rm", "r1"][..], &["prune", "--keep", "0"], &["ls"], &["show", "r1"]] {
            let out = run(longpole(&store).args(arguments));
            assert_eq!(out.status.code(), Some(4), "{arguments:?}: {out:?}");
            assert!(said(&out).contains("every user can write to it; chmod o-w"), "{out:?}");
        }
        assert!(store.join("recordings/r1").exists());
        let ran = run(longpole(&store).args(["run", "--", "sh", "-c", "echo output; exit 7"]));
        assert_eq!((&ran.stdout[..], ran.status.code()), (&b"output\n"[..], Some(7)), "{ran:?}");
        assert!(said(&ran).contains("nothing is recorded") && said(&ran).contains("every user can write to it"), "{ran:?}");
    }
}

#[test]
fn root_follows_nothing_in_the_store_of_another_user() {
    let what = "root_follows_nothing_in_the_store_of_another_user";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, what) else { return };
    let is_root = std::os::unix::fs::MetadataExt::uid(&sandbox.path("bin").metadata().unwrap()) == 0;
    if !is_root {
        return skip(what, "two users are needed, and this is not root");
    }
    let precious = precious(&sandbox);
    std::fs::set_permissions(&precious, PermissionsExt::from_mode(0o700)).unwrap();
    let home = sandbox.path("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(65_534), Some(65_534)).unwrap();
    let store = home.join("store");
    let made = run(user.command(&user.longpole()).arg("--store").arg(&store).args(["run", "--summary", "none", "--", "true"]));
    assert!(made.status.success(), "{made:?}");
    // The user turns the recording into a link, and waits for root to clean up.
    std::fs::remove_dir_all(store.join("recordings/r1")).unwrap();
    symlink(&precious, store.join("recordings/r1")).unwrap();
    std::os::unix::fs::lchown(store.join("recordings/r1"), Some(65_534), Some(65_534)).unwrap();
    for arguments in [&["rm", "r1"][..], &["prune", "--keep", "0"], &["show", "r1"], &["ls"]] {
        let out = run(longpole(&store).args(arguments));
        assert_eq!(out.status.code(), Some(4), "{arguments:?}: {out:?}");
        assert!(said(&out).contains("belongs to") && said(&out).contains("run longpole as that user"), "{out:?}");
    }
    // Nor in a store of root's own below a folder that the user can exchange.
    let below = home.join("below");
    let out = run(longpole(&below).args(["run", "--", "true"]));
    assert!(out.status.success() && said(&out).contains("belongs to"), "{out:?}");
    assert!(precious.join("thesis").exists() && !below.exists());
}

/// longpole without anything that names a store, and this temporary folder.
fn homeless(temporary: &Path) -> Command {
    let mut command = Command::new(binary());
    clean(&mut command);
    command.env_remove("XDG_DATA_HOME").env("TMPDIR", temporary);
    command
}

#[test]
fn directories_of_others_in_the_temporary_one_are_no_stores() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.path("tmp");
    let trap = temporary.join("longpole");
    std::fs::create_dir_all(&trap).unwrap();
    std::fs::set_permissions(&trap, PermissionsExt::from_mode(0o777)).unwrap();
    let out = run(homeless(&temporary).env_remove("HOME").arg("ls"));
    assert_eq!(std::fs::read_dir(&trap).unwrap().count(), 0, "it is used: {out:?}");
    assert!(out.status.success() || said(&out).contains("--store DIR"), "{out:?}");
}

#[test]
fn an_unsafe_home_is_replaced_by_a_new_directory() {
    let sandbox = Sandbox::new();
    let (temporary, home) = (sandbox.path("tmp"), sandbox.path("home"));
    for (folder, mode) in [(&temporary, 0o1777), (&home, 0o777)] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
    }
    let out = run(homeless(&temporary).env("HOME", &home).args(["run", "--summary", "none", "--", "sh", "-c", "exit 7"]));
    assert_eq!(out.status.code(), Some(7), "{out:?}");
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "{out:?}");
    let said = said(&out);
    let store = said.split("this recording is kept in ").nth(1).unwrap_or_else(|| panic!("{said}")).trim();
    assert_eq!(Path::new(store).metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let shown = json(longpole(Path::new(store)).args(["show", "last", "--format", "json"]));
    assert_eq!(shown["exit"]["code"], 7, "{shown}");
}

#[test]
fn a_directory_that_is_no_store_keeps_its_modes() {
    let sandbox = Sandbox::new();
    let project = sandbox.path("project");
    std::fs::create_dir_all(project.join("bin")).unwrap();
    let tool = project.join("bin/tool");
    std::fs::write(&tool, "#!/bin/sh\necho ran\n").unwrap();
    let folders = [project.clone(), project.join("bin"), tool.clone()];
    for path in &folders {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let modes = || folders.each_ref().map(|path| path.metadata().unwrap().permissions().mode() & 0o7777);
    for arguments in [&["ls"][..], &["show", "last"], &["prune", "--keep", "0"], &["rm", "r1"]] {
        let out = run(longpole(&project).args(arguments));
        assert_eq!(out.status.code(), Some(4), "{arguments:?}: {out:?}");
        assert!(said(&out).contains("it is not a longpole store and holds other files, such as bin"), "{out:?}");
        assert_eq!(modes(), [0o755; 3], "{arguments:?}");
    }
    let mut named = Command::new(binary());
    clean(&mut named);
    let out = run(named.env("LONGPOLE_STORE", ".").current_dir(&project).args(["run", "--", "bin/tool"]));
    assert_eq!((&out.stdout[..], out.status.code()), (&b"ran\n"[..], Some(0)), "{out:?}");
    assert!(said(&out).contains("nothing is recorded"), "{out:?}");
    assert_eq!(modes(), [0o755; 3]);
    assert_eq!(std::fs::read_dir(&project).unwrap().count(), 1, "something was made in it");
    // One that is a store, and has something beside it, is closed itself; the program stays what it is.
    let store = store_of_two(&sandbox);
    std::fs::rename(project.join("bin"), store.join("bin")).unwrap();
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o755)).unwrap();
    let out = run(longpole(&store).arg("ls"));
    assert!(out.status.success() && said(&out).contains("private: other users could read it"), "{out:?}");
    assert_eq!(store.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(store.join("bin/tool").metadata().unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_named_pipe_as_lock_file_delays_no_command() {
    let sandbox = Sandbox::new();
    let (temporary, store, file) = (sandbox.path("tmp"), sandbox.path("store"), sandbox.path("a.folded"));
    std::fs::write(&file, "main;work 12\n").unwrap();
    for folder in ["longpole-journals-x", "longpole-open-x"] {
        std::fs::create_dir_all(temporary.join(folder)).unwrap();
        std::fs::set_permissions(temporary.join(folder), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(Command::new("mkfifo").arg(temporary.join(folder).join("in-use")).status().unwrap().success());
    }
    let file = file.display().to_string();
    for arguments in [&["run", "--summary", "none", "--", "echo", "ran"][..], &["prune", "--keep", "9"], &["show", &file]] {
        let longpole = longpole(&store);
        // Only where it hangs; KILL, because it takes no notice of TERM there.
        let mut bounded = Command::new("timeout");
        bounded.args(["-s", "KILL", "60"]).arg(longpole.get_program()).args(longpole.get_args()).args(arguments);
        clean(&mut bounded);
        let out = run(bounded.env("TMPDIR", &temporary));
        assert!(out.status.success(), "{arguments:?}: {out:?}");
        assert!(arguments[0] != "run" || out.stdout == b"ran\n", "{out:?}");
    }
}
