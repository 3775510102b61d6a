//! Line 1: another user reads what was recorded.
//! Guarantees: whatever the umask is, only its user can open a recording, a packed one, and the copy that `open FILE` makes; such a copy
//! does not outlive the next look after a `kill -9`; a store that an older longpole left open is closed, and a line says so.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Sandbox, bounded, clean, is_root, longpole, skip};

/// Everything below that others than its user may open, with its mode.
fn open_to_others(path: &Path) -> Vec<String> {
    let mut open = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::iter::once(folder.clone()).chain(std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path())) {
            // What is gone meanwhile is closed.
            let Ok(data) = entry.symlink_metadata() else { continue };
            if data.is_dir() && entry != folder {
                folders.push(entry);
            } else if data.mode() & 0o077 != 0 {
                open.push(format!("{} {:o}", entry.display(), data.mode() & 0o7777));
            }
        }
    }
    open.sort();
    open
}

/// longpole on this store, under a umask that closes nothing.
fn careless(store: &Path) -> Command {
    let longpole = longpole(store);
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000 && exec \"$0\" \"$@\""]).arg(longpole.get_program()).args(longpole.get_args());
    clean(&mut shell);
    shell.stdin(Stdio::null());
    shell
}

fn done(command: &mut Command) -> (String, String) {
    let out = command.output().unwrap();
    let said = (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned());
    assert!(out.status.success(), "{command:?}: {said:?}");
    said
}

#[test]
fn recordings_are_private_from_the_start() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // The command itself lists what of the store is open, its log among it; then an import, a look, and a pack.
    let (found, _) = done(careless(&store).args(["run", "--", "find"]).arg(&store).args(["-perm", "/077"]));
    assert_eq!(found, "");
    done(careless(&store).args(["show", "last"]));
    done(careless(&store).args(["tag", "last", "kept"]));
    let packed = sandbox.path("r1.lpole");
    done(careless(&store).args(["export", "last", "-o"]).arg(&packed));
    assert_eq!(packed.metadata().unwrap().mode() & 0o777, 0o600);
    done(careless(&store).arg("import").arg(&packed));
    assert_eq!(open_to_others(&store), [""; 0]);
}

#[test]
fn an_open_store_is_closed_and_reported_once() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    done(longpole(&store).args(["run", "--summary", "none", "--", "true"]));
    done(Command::new("chmod").args(["-R", "go+rX"]).arg(&store));
    assert!(!open_to_others(&store).is_empty());
    let (_, said) = done(longpole(&store).arg("ls"));
    assert_eq!(said, format!("longpole: made the store {} private: other users could read it\n", store.display()));
    assert_eq!(open_to_others(&store), [""; 0]);
    let (_, said) = done(longpole(&store).arg("ls"));
    assert_eq!(said, "");
}

#[test]
fn summaries_and_copies_of_spans_are_private() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.path(name).display().to_string();
    let (summary, json) = (at("summary"), at("summary.json"));
    let (lines, appdash) = (format!("file://{}", at("lines.json")), format!("file://{}", at("up.trace")));
    for arguments in
        [&["--summary", &summary, "--otel-traces", &lines][..], &["--summary", &json, "--summary-format", "json", "--tracing", &appdash]]
    {
        let mut command = careless(&sandbox.path("store"));
        command.args(["run", "--no-profile"]).args(arguments).args(["--", "true", "private-argument"]);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{out:?}");
    }
    for (name, holds) in [("summary", true), ("summary.json", true), ("lines.json", false), ("up.trace", false)] {
        let data = sandbox.path(name).metadata().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(data.mode() & 0o7777, 0o600, "{name}");
        assert!(!holds || std::fs::read_to_string(sandbox.path(name)).unwrap().contains("private-argument"), "{name}");
    }
    // Existing directories keep the mode that their user chose.
    std::fs::set_permissions(&summary, PermissionsExt::from_mode(0o644)).unwrap();
    done(careless(&sandbox.path("store")).args(["run", "--no-profile", "--summary", &summary, "--", "true", "again"]));
    assert_eq!(std::fs::metadata(&summary).unwrap().mode() & 0o7777, 0o644);
    assert!(std::fs::read_to_string(&summary).unwrap().contains("again"));
}

#[test]
fn packing_follows_own_links_and_writes_to_standard_output() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    done(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]));
    let (link, target) = (sandbox.path("x.lpole"), sandbox.path("mine"));
    symlink("mine", &link).unwrap();
    done(careless(&store).args(["export", "last", "-o"]).arg(&link));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(target.metadata().unwrap().mode() & 0o7777, 0o600);
    let out = careless(&store).args(["export", "last", "--to", "lpole", "-o", "/dev/stdout"]).output().unwrap();
    assert!(out.status.success() && out.stdout.len() as u64 == target.metadata().unwrap().len(), "{:?}", out.status);
}

#[test]
fn packing_follows_no_links_of_other_users() {
    let what = "packing_follows_no_links_of_other_users";
    let sandbox = Sandbox::new();
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip(what, "two users are needed, and this is not root");
    }
    let store = sandbox.path("store");
    done(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]));
    // A folder without the sticky bit, where the kernel itself does not refuse to follow.
    let open = sandbox.path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let (theirs, link, pipe) = (open.join("theirs"), open.join("x.lpole"), open.join("pipe.lpole"));
    std::fs::write(&theirs, "").unwrap();
    std::fs::set_permissions(&theirs, PermissionsExt::from_mode(0o666)).unwrap();
    symlink("theirs", &link).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&theirs, &link, &pipe] {
        lchown(path, Some(65_534), Some(65_534)).unwrap();
    }
    for (path, kind) in [(&link, "a link"), (&pipe, "a pipe or a device")] {
        let out = longpole(&store).args(["export", "last", "-o"]).arg(path).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(4), "{out:?}");
        assert!(said.contains(&format!("it is {kind} of another user (uid 65534)")), "{said}");
    }
    // Files for other tools follow the umask, and go through nothing of theirs either.
    for path in [&link, &pipe] {
        let out = bounded(&store).args(["export", "last", "--to", "otlp-json", "-o"]).arg(path).output().unwrap();
        assert_eq!(out.status.code(), Some(4), "{out:?}");
    }
    // One of ours they can exchange at any time.
    lchown(&link, Some(0), Some(0)).unwrap();
    for format in ["lpole", "otlp-json"] {
        let out = longpole(&store).args(["export", "last", "--to", format, "-o"]).arg(&link).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(4) && said.contains("in a directory where other users can replace it"), "{said}");
    }
    assert_eq!(theirs.metadata().unwrap().len(), 0);
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
    // A plain file of theirs makes place for one of ours.
    done(longpole(&store).args(["export", "last", "--to", "lpole", "-o"]).arg(&theirs));
    let data = theirs.metadata().unwrap();
    assert_eq!((data.uid(), data.mode() & 0o7777), (0, 0o600));
}

/// A link of the user's that leads to one of another user's, and a folder on the way that another user exchanged for a link.
#[test]
fn output_paths_follow_no_links_of_other_users() {
    let what = "output_paths_follow_no_links_of_other_users";
    let sandbox = Sandbox::new();
    if !is_root() {
        return skip(what, "two users are needed, and this is not root");
    }
    let store = sandbox.path("store");
    done(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]));
    let (home, shared) = (sandbox.path("home"), sandbox.path("shared"));
    for (folder, mode) in [(&home, 0o755), (&shared, 0o777)] {
        std::fs::create_dir(folder).unwrap();
        std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
    }
    let precious = home.join("precious");
    for (link, target, uid) in [
        (shared.join("latest"), precious.clone(), 65_534),
        (shared.join("out"), home.clone(), 65_534),
        (home.join("own.json"), shared.join("latest"), 0),
        (home.join("deep.json"), shared.join("out/precious"), 0),
    ] {
        symlink(target, &link).unwrap();
        lchown(&link, Some(uid), Some(uid)).unwrap();
    }
    for path in [home.join("own.json"), home.join("deep.json"), shared.join("out/precious"), shared.join("./out/../home/precious")] {
        std::fs::write(&precious, "kept").unwrap();
        let (path, copies) = (path.display().to_string(), format!("file:{}", path.display()));
        for words in [
            &["run", "--no-profile", "--summary", &path, "--", "true"][..],
            &["run", "--no-profile", "--otel-traces", &copies, "--", "true"],
            &["run", "--no-profile", "--tracing", &copies, "--", "true"],
            &["export", "last", "--to", "otlp-json", "-o", &path],
            &["export", "last", "--to", "lpole", "-o", &path],
            &["flame", "last", "--format", "svg", "-o", &path],
        ] {
            let out = bounded(&store).args(words).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains("is a link of another user (uid 65534)"), "{words:?}: {said}");
            assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept", "{words:?}");
        }
    }
    assert_eq!(entries(&home).len(), 3, "something was made there");
    // Where it is a folder, whose ever it is, it is written to; and so is what links of ours lead to, typed from where we are.
    std::fs::remove_file(shared.join("out")).unwrap();
    std::fs::create_dir(shared.join("out")).unwrap();
    chown(shared.join("out"), Some(65_534), Some(65_534)).unwrap();
    symlink("home", sandbox.path("link")).unwrap();
    for path in ["shared/out/x.json", "link/x.json", "./x.json"] {
        done(longpole(&store).args(["export", "last", "--to", "otlp-json", "-o", path]).current_dir(sandbox.path("")));
        assert!(std::fs::read(sandbox.path(path)).unwrap().starts_with(b"{"), "{path}");
    }
}

/// What lies in this folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// A page that ends with its attack, however that ends.
struct Serving(Child);

impl Serving {
    fn kill(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn the_copy_of_a_private_file_is_private_and_removed_after_a_kill() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.path("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let private = sandbox.path("secret.folded");
    std::fs::write(&private, "main;secret_function 12\n").unwrap();
    std::fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).unwrap();
    let open = || {
        let mut command = careless(&sandbox.path("store"));
        command.args(["open", "--no-browser"]).arg(&private).env("TMPDIR", &temporary).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The page is up, so the copy is there.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("http://127.0.0.1:"), "{line}");
        Serving(child)
    };
    let mut first = open();
    let of_first = entries(&temporary);
    assert!(!of_first.is_empty());
    assert_eq!(of_first.iter().flat_map(|entry| open_to_others(entry)).collect::<Vec<_>>(), [""; 0]);
    first.kill();
    let mut second = open();
    assert!(of_first.iter().all(|entry| !entry.exists()), "{of_first:?} outlives the process that was killed");
    // That of a process that lives is left alone, also by a cleaning.
    let of_second = entries(&temporary);
    done(longpole(&sandbox.path("store")).args(["prune", "--keep", "9"]).env("TMPDIR", &temporary));
    assert_eq!(entries(&temporary), of_second);
    second.kill();
    done(longpole(&sandbox.path("store")).args(["prune", "--keep", "9"]).env("TMPDIR", &temporary));
    assert!(entries(&temporary).is_empty(), "{:?}", entries(&temporary));
}

/// In a user namespace all other users have one number, and the machine's root has it as well.
#[test]
fn a_user_namespace_does_not_open_links_of_others() {
    let what = "a_user_namespace_does_not_open_links_of_others";
    let sandbox = Sandbox::new();
    if !is_root() {
        return skip(what, "two users are needed, and this is not root");
    }
    let namespace = || {
        let mut command = Command::new("unshare");
        command.arg("--map-root-user");
        command
    };
    if !namespace().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip(what, "unshare cannot make a user namespace");
    }
    let store = sandbox.path("store");
    done(longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]));
    let (theirs, precious) = (sandbox.path("theirs"), sandbox.path("precious"));
    std::fs::create_dir(&theirs).unwrap();
    std::fs::set_permissions(&theirs, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(&precious, "kept").unwrap();
    symlink(&precious, theirs.join("latest")).unwrap();
    for path in [&theirs, &theirs.join("latest")] {
        lchown(path, Some(1002), Some(1002)).unwrap();
    }
    let export = |path: &Path| {
        let inner = longpole(&store);
        let mut command = namespace();
        command.arg(inner.get_program()).args(inner.get_args()).args(["export", "last", "--to", "otlp-json", "-o"]).arg(path);
        inner.get_envs().for_each(|(name, value)| _ = value.map(|value| command.env(name, value)));
        command.output().unwrap()
    };
    let out = export(&theirs.join("latest"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && said.contains("is a link of another user"), "{said}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    // /proc/self, which /dev/stdout goes through, is nobody's there as well, and nobody can put anything else in its place.
    for path in [sandbox.path("own.json"), "/dev/stdout".into(), "/proc/self/fd/1".into()] {
        let out = export(&path);
        assert!(out.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.stdout.is_empty(), path.ends_with("own.json"), "{}", path.display());
    }
}
