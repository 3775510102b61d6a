//! What stories share: a sandbox of their own, the binary, the example, a second role of this test binary, a plain user.

pub(crate) mod appdash;
pub(crate) mod c;
pub(crate) mod collector;
pub(crate) mod http;
pub(crate) mod program;
pub(crate) mod pulumi;
pub(crate) mod served;
pub(crate) mod target;
pub(crate) mod tee;
pub(crate) mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

pub(crate) use longpole_testing::skip;
use serde_json::Value;

/// A folder that is gone when the story ends.
pub(crate) struct Sandbox {
    dir: PathBuf,
}

impl Sandbox {
    /// A new, empty folder that other users can look into.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("longpole-story-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Sandbox { dir }
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Drop for Sandbox {
    /// Removes the folder, or moves it to where `LONGPOLE_KEEP_STORES` says, for `cargo xtask compare`.
    fn drop(&mut self) {
        let kept = std::env::var_os("LONGPOLE_KEEP_STORES").map(PathBuf::from);
        let is_kept = kept.is_some_and(|folder| {
            let story = std::thread::current().name().unwrap_or_default().replace("::", ".");
            let number = self.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // Another file system refuses the move; `cargo xtask compare` needs no more than most stores.
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::rename(&self.dir, folder.join(format!("{story}.{number}")))).is_ok()
        });
        if !is_kept {
            std::fs::remove_dir_all(&self.dir).ok();
        }
    }
}

/// Five minutes before the first call, in nanoseconds since 1970: a search without a time goes back only some days.
pub(crate) fn recent_nanos() -> u64 {
    static RECENT: LazyLock<u64> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        (now.as_secs() - 300) * 1_000_000_000
    });
    *RECENT
}

/// The same later or earlier by a number of seconds, as RFC 3339 writes it.
pub(crate) fn recent_rfc3339(seconds: i64) -> String {
    let recent = jiff::Timestamp::from_nanosecond(recent_nanos().into()).unwrap();
    (recent + jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// The binary under test: the one just built, or the one that `cargo xtask attack --binary` names.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("LONGPOLE_STORY_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_longpole").into(), PathBuf::from)
}

/// The binary under test with a store of the story's own, in an environment without anything of the developer's.
pub(crate) fn longpole(store: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("--store").arg(store);
    clean(&mut command);
    command
}

/// The same for what may hang: then it is killed.
pub(crate) fn bounded(store: &Path) -> Command {
    let longpole = longpole(store);
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120"]).arg(longpole.get_program()).args(longpole.get_args());
    clean(&mut command);
    command
}

/// Takes what the developer's environment says to OpenTelemetry and to longpole out of a command's.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in std::env::vars() {
        if name.starts_with("OTEL_") || (name.starts_with("LONGPOLE_") && !name.starts_with("LONGPOLE_STORY_")) || name == "TRACEPARENT" {
            command.env_remove(name);
        }
    }
}

/// The arguments that make this test binary play the role of a test function: its program, not its test.
pub(crate) fn role(function: &str) -> Vec<String> {
    let me = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    vec![me, "--exact".to_owned(), function.to_owned(), "--nocapture".to_owned(), "--test-threads=1".to_owned()]
}

/// A binary of `examples`, beside the binary under test; built where it is not there yet.
pub(crate) fn example(name: &str) -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "deploy-example", "-p", "shop-example"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "the examples do not build");
    });
    let path = Path::new(env!("CARGO_BIN_EXE_longpole")).with_file_name(name);
    assert!(path.exists(), "{} is not there after building the example", path.display());
    path
}

/// Runs a command that must succeed, and parses what it prints.
pub(crate) fn json(command: &mut Command) -> Value {
    let out = command.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{command:?} printed no JSON ({error}): {}", String::from_utf8_lossy(&out.stdout)))
}

/// The rows of an answer, each in the order of its columns.
pub(crate) fn rows(answer: &Value) -> impl Iterator<Item = Vec<Value>> {
    assert_eq!(answer["truncated"], false);
    let columns = answer["columns"].as_array().unwrap();
    answer["rows"].as_array().unwrap().iter().map(|row| columns.iter().map(|it| row[it["name"].as_str().unwrap()].clone()).collect())
}

/// Asks about the last recording of a store.
pub(crate) fn ask(store: &Path) -> impl FnMut(&str) -> Value {
    let store = store.to_owned();
    ask_with(move || longpole(&store))
}

/// Runs SQL with this command, which names its store.
pub(crate) fn ask_with(longpole: impl Fn() -> Command) -> impl FnMut(&str) -> Value {
    move |query| json(longpole().args(["sql", query, "--format", "json"]))
}

/// Whether processes can be sampled here; if not, the story is listed as skipped.
pub(crate) fn can_sample(story: &str) -> bool {
    let view = json(longpole(Path::new("/nonexistent/longpole")).args(["doctor", "--format", "json"]));
    let profiling = view["checks"].as_array().unwrap().iter().find(|check| check["name"] == "profiling").unwrap().clone();
    if profiling["state"] != "ok" {
        skip(story, profiling["text"].as_str().unwrap());
    }
    profiling["state"] == "ok"
}

/// Whether a program is installed here; if not, the story is listed as skipped.
pub(crate) fn has_program(story: &str, program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skip(story, &format!("there is no {program}"));
    }
    is_there
}

/// Somebody without privilege: another user id, no capability, binaries outside of any home.
pub(crate) struct PlainUser {
    bin: PathBuf,
    /// Whether this process is root and becomes `nobody`; otherwise it is a plain user already.
    pub(crate) becomes: bool,
}

/// Whether these stories run as root.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0).unwrap()
}

/// A plain user for this story, or a noted skip where root cannot become one.
pub(crate) fn plain_user(sandbox: &Sandbox, story: &str) -> Option<PlainUser> {
    let is_root = is_root();
    if is_root && Command::new("setpriv").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        skip(story, "setpriv is not there, so root cannot become a plain user");
        return None;
    }
    let bin = sandbox.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (folder, mode) in [(&sandbox.dir, 0o1777), (&bin, 0o755)] {
        std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    copy_program(&binary(), &bin.join("longpole"));
    Some(PlainUser { bin, becomes: is_root })
}

/// Copies a program, by a process of its own: what another thread starts meanwhile would hold our descriptor, and the kernel executes no file
/// that somebody can write to.
fn copy_program(from: &Path, to: &Path) {
    assert!(
        Command::new("install").args(["-m", "755"]).arg(from).arg(to).status().unwrap().success(),
        "copy {} to {}",
        from.display(),
        to.display()
    );
}

impl PlainUser {
    /// The binary under test, where this user can read it.
    pub(crate) fn longpole(&self) -> PathBuf {
        self.bin.join("longpole")
    }

    /// It with a store of this user's: nobody else, root included, is let into it.
    pub(crate) fn with_store(&self, store: &Path) -> Command {
        let mut command = self.command(&self.longpole());
        command.arg("--store").arg(store);
        command
    }

    /// Copies a program to where this user can read it.
    pub(crate) fn install(&self, program: &Path) -> PathBuf {
        let target = self.bin.join(program.file_name().unwrap());
        if !target.exists() {
            copy_program(program, &target);
        }
        target
    }

    /// A command as this user: uid and gid 65534, no groups, no capabilities.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = if self.becomes {
            let mut setpriv = Command::new("setpriv");
            setpriv
                .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"])
                .arg(program);
            setpriv
        } else {
            Command::new(program)
        };
        clean(&mut command);
        command.current_dir("/");
        command
    }
}

/// The time on the path of all that a view of poles names, the rest included.
pub(crate) fn time_on_path(view: &Value) -> i64 {
    let of_poles = view["poles"].as_array().unwrap().iter().map(|pole| pole["on_path_nanos"].as_i64().unwrap());
    let rest = [&view["truncated"]["on_path_nanos"], &view["between_nanos"], &view["idle_nanos"]];
    of_poles.sum::<i64>() + rest.map(|nanos| nanos.as_i64().unwrap()).iter().sum::<i64>()
}
