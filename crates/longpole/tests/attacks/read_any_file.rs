//! Line 10: a recording names a file, a key or one that never ends, and a view reads it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::steer_the_terminal::pprof;
use crate::support::{Sandbox, json, longpole, skip};

/// What stands on the lines that the recording names.
const SECRET: &str = "SECRET-OF-THE-KEY";

/// Longer than any limit of the program, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    sandbox: Sandbox,
    store: PathBuf,
    /// Where the user stands.
    work: PathBuf,
}

impl Scene {
    fn set() -> Scene {
        let sandbox = Sandbox::new();
        let (store, work) = (sandbox.path("store"), sandbox.path("work"));
        let text = format!("{SECRET}\n").repeat(20);
        for file in ["work/src/app.py", "work/.ssh/id_rsa", "keys/id_rsa"] {
            let path = sandbox.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &text).unwrap();
        }
        Scene { sandbox, store, work }
    }

    /// Another user's file whose functions claim to be in this file.
    fn recording_of(&self, file: &Path) -> PathBuf {
        let file = file.to_str().unwrap();
        let profile = pprof(["", "cpu", "nanoseconds", "main", "work", file, "/bin/app", "thread", "1"]);
        let path = self.sandbox.path("profile.pprof");
        std::fs::write(&path, profile).unwrap();
        path
    }

    fn longpole(&self, words: &[&str]) -> Command {
        let mut command = longpole(&self.store);
        command.args(words).current_dir(&self.work).stdin(Stdio::null());
        command
    }

    /// What `frame --source` says of a file that a recording names, in place and imported, with these extra arguments. It must not
    /// take forever.
    fn source(&self, file: &Path, words: &[&str]) -> Vec<String> {
        let recording = self.recording_of(file);
        let recording = recording.to_str().unwrap();
        assert!(self.longpole(&["import", recording]).output().unwrap().status.success());
        ["last", recording]
            .into_iter()
            .map(|recording| {
                let mut command = self.longpole(&["frame", "work", recording, "--source"]);
                in_time(command.args(words))
            })
            .collect()
    }
}

/// What a command prints, if it ends.
fn in_time(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let _ = out.read_to_string(&mut said);
        let _ = errors.read_to_string(&mut said);
        let _ = done.send(said);
    });
    let said = ended.recv_timeout(PATIENCE);
    child.kill().ok();
    child.wait().ok();
    said.unwrap_or_else(|_| panic!("{command:?} does not end"))
}

#[test]
fn a_recording_of_another_user_shows_no_private_key() {
    let scene = Scene::set();
    let key = scene.sandbox.path("keys/id_rsa");
    symlink(&key, scene.work.join("src/link.py")).unwrap();
    symlink(scene.sandbox.path("keys"), scene.work.join("linked")).unwrap();
    std::fs::hard_link(&key, scene.work.join("src/hard.py")).unwrap();
    let named = [
        key.clone(),
        scene.work.join("../keys/id_rsa"),
        PathBuf::from("../keys/id_rsa"),
        scene.work.join("src/link.py"),
        scene.work.join("linked/id_rsa"),
        scene.work.join("src/hard.py"),
        scene.work.join(".ssh/id_rsa"),
        PathBuf::from(".ssh/id_rsa"),
    ];
    for file in named {
        for words in [&[][..], &["--format", "json"], &["--format", "json", "--source-text"]] {
            for said in scene.source(&file, words) {
                assert!(!said.contains(SECRET), "{} {words:?}: {said}", file.display());
                let is_numbers = words == ["--format", "json"];
                assert!(is_numbers || said.contains("was made elsewhere"), "{} {words:?}: {said}", file.display());
                assert!(is_numbers || (said.contains("the recording names ") && said.contains("--allow-source DIR")), "{said}");
            }
        }
    }
    // Allowed files and those in the working directory are read.
    let allowed = ["--allow-source", "../keys"];
    assert!(scene.source(&key, &allowed).iter().all(|said| said.contains(SECRET)));
    assert!(scene.source(&scene.work.join("src/app.py"), &[]).iter().all(|said| said.contains(SECRET)));
    assert!(scene.source(Path::new("src/app.py"), &[]).iter().all(|said| said.contains(SECRET)));
    let nowhere = scene.source(&key, &["--allow-source", "/nowhere/at/all"]);
    assert!(nowhere.iter().all(|said| said.contains("failed to allow source files below /nowhere/at/all")), "{nowhere:?}");
}

#[test]
fn json_holds_source_text_only_on_request() {
    let scene = Scene::set();
    let file = scene.work.join("src/app.py");
    for said in scene.source(&file, &["--format", "json"]) {
        let view: Value = serde_json::from_str(&said).unwrap();
        assert!(!said.contains(SECRET) && view["state"] == "left_out", "{said}");
        assert_eq!((&view["lines"][0]["line"], &view["lines"][0]["text"]), (&12.into(), &Value::Null), "the numbers are there: {said}");
    }
    for said in scene.source(&file, &["--format", "json", "--source-text"]) {
        let view: Value = serde_json::from_str(&said).unwrap();
        let texts: Vec<&Value> = view["lines"].as_array().unwrap().iter().map(|line| &line["text"]).collect();
        assert!(texts.len() >= 3 && texts.iter().all(|text| *text == SECRET), "{said}");
    }
    let out = scene.sandbox.path("out");
    for format in ["speedscope", "firefox", "chrome", "folded", "lpole", "pprof"] {
        assert!(scene.longpole(&["export", "--to", format, "-o", out.to_str().unwrap()]).status().unwrap().success());
        let bytes = std::fs::read(&out).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{format}");
    }
}

#[test]
fn only_regular_files_are_read_and_nothing_hangs() {
    let scene = Scene::set();
    let pipe = scene.work.join("src/pipe.py");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("/proc/kmsg", scene.work.join("src/kmsg.py")).unwrap();
    let large = scene.work.join("src/large.py");
    std::fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let named = ["/proc/kmsg", "/proc/self/environ", "/dev/zero", "/dev/stdin", "/sys/kernel/debug/tracing/trace_pipe"];
    let named = named.iter().map(PathBuf::from).chain([pipe, scene.work.join("src/kmsg.py"), large, scene.work.join("src")]);
    for file in named {
        for said in scene.source(&file, &[]) {
            assert!(!said.contains("PATH="), "{}: {said}", file.display());
        }
        // Consent does not change that.
        for said in scene.source(&file, &["--allow-source", "/", "--format", "json", "--source-text"]) {
            let view: Value = serde_json::from_str(&said).unwrap();
            assert!(matches!(view["state"].as_str(), Some("refused" | "missing")), "{}: {said}", file.display());
            assert!(view["lines"].as_array().unwrap().iter().all(|line| line["text"].is_null()), "{}: {said}", file.display());
        }
    }
}

/// A program whose waits are seen without samples, too.
const PROGRAM: &str = "import time\n\ndef nap():\n    time.sleep(0.3) # SECRET-OF-THE-KEY\n\nfor _ in range(3):\n    nap()\n";

#[test]
fn a_recording_cannot_claim_to_be_of_this_machine() {
    const ATTACK: &str = "a recording says that it was made here";
    let scene = Scene::set();
    let program = scene.sandbox.path("keys/program.py");
    std::fs::write(&program, PROGRAM).unwrap();
    let mut run = scene.longpole(&["run", "--summary", "none", "--", "python3"]);
    if !run.arg(&program).status().is_ok_and(|status| status.success()) {
        return skip(ATTACK, "there is no Python");
    }
    let shows = |command: &mut Command| in_time(command).contains(SECRET);
    let words = ["frame", "nap", "--source"];
    if !shows(&mut scene.longpole(&words)) {
        return skip(ATTACK, "functions of Python are not seen here");
    }
    // What was recorded here is the user's own, wherever its files lie. The same recording from a file names this machine, the same
    // user and the same paths, as a forged one would.
    let packed = scene.sandbox.path("packed.lpole");
    assert!(scene.longpole(&["export", "-o", packed.to_str().unwrap()]).status().unwrap().success());
    let packed = packed.to_str().unwrap();
    assert!(scene.longpole(&["import", packed]).stdout(Stdio::null()).status().unwrap().success());
    assert!(!shows(&mut scene.longpole(&words)), "an imported recording is taken for one that was made here");
    assert!(!shows(&mut scene.longpole(&["frame", "nap", packed, "--source"])));
    let keys = scene.sandbox.path("keys");
    assert!(shows(&mut scene.longpole(&["frame", "nap", packed, "--source", "--allow-source", keys.to_str().unwrap()])));
    assert!(shows(&mut scene.longpole(&["frame", "nap", "r1", "--source"])), "the user's own is read no more");
}

/// The page on a file or a recording, until it is dropped.
struct Page {
    process: Child,
    root: String,
    token: String,
}

impl Page {
    fn open(scene: &Scene, words: &[&str]) -> Page {
        let mut process = scene.longpole(&["open", "--no-browser"]).args(words).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(process.stdout.take().unwrap()).lines().next().expect("`open` prints its address").unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).unwrap();
        let (root, rest) = url.split_once("/r/").unwrap();
        Page { root: root.to_owned(), token: rest.split_once("token=").unwrap().1.to_owned(), process }
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = ureq::get(format!("{}{path}?token={}", self.root, self.token)).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn the_page_reads_the_same_files_as_the_terminal() {
    let scene = Scene::set();
    let (key, own) = (scene.sandbox.path("keys/id_rsa"), scene.work.join("src/app.py"));
    for (file, words, state) in [(&key, &[][..], "refused"), (&key, &["--allow-source", "../keys"], "read"), (&own, &[], "read")] {
        let recording = scene.recording_of(file);
        let recording = recording.to_str().unwrap();
        assert!(scene.longpole(&["import", recording]).output().unwrap().status.success());
        let top = json(&mut scene.longpole(&["top", "--format", "json", "--all-functions", "--wall"]));
        let handle = top["functions"][0]["handle"].as_str().unwrap().to_owned();
        let name = json(&mut scene.longpole(&["ls", "--format", "json"]))["recordings"][0]["recording"].as_str().unwrap().to_owned();
        for (what, name) in [("last", &*name), (recording, "r1")] {
            let page = Page::open(&scene, &[&[what], words].concat());
            let source = page.get(&format!("/api/recordings/{name}/frames/{handle}/source"));
            let is_read = source.to_string().contains(SECRET);
            assert_eq!(is_read, state != "refused", "{source}");
            assert_eq!(source["state"], state, "{source}");
            assert!(is_read || source["detail"].as_str().unwrap().contains("--allow-source DIR"), "{source}");
        }
    }
}
