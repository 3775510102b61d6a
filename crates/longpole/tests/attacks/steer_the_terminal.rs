//! Line 5: a name from a program or a file of a stranger steers the terminal: it moves the cursor, sets the title, forges a line, or
//! looks like another name. A recording in which every name does that, and every command that prints one.

use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::terminal::on_a_terminal;
use crate::support::{Sandbox, binary, longpole, role};

/// Tells the program that it is one.
const STEER: &str = "LONGPOLE_STORY_STEER";

/// What a name must not do: title, clear, colour, C1, carriage return, a line of its own, bell, delete, overrides of direction,
/// characters without width, tags, and a separator of lines.
const PAYLOAD: &str = "\x1b]0;owned\x07\x1b[2J\x1b[35mx\u{9b}2J\u{9d}0;t\u{9c}\r\nFORGED\x08\x7f\u{202e}\u{2066}\u{200b}\u{200f}\u{feff}\u{e0041}\u{2028}\u{ad}\u{fe0f}";

/// The same for formats whose names end with the line, and for names of files.
fn on_one_line() -> String {
    PAYLOAD.replace("\r\n", "")
}

/// Characters that may not arrive. A list of its own: the program's may have holes.
fn is_forbidden(c: char) -> bool {
    let n = u32::from(c);
    (n < 0x20 && c != '\n')
        || (0x7f..=0x9f).contains(&n)
        || [0xad, 0x61c, 0x180e, 0xfeff].contains(&n)
        || [0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x2069, 0xfe00..=0xfe0f, 0xfff9..=0xfffb, 0xe0000..=0xe007f]
            .iter()
            .any(|range| range.contains(&n))
}

/// Colours: the program's own, and those of its help and its usage errors.
const COLOURS: [&str; 10] = ["0", "1", "2", "33", "36", "4", "31", "32", "1;4", "1;31"];

/// What is wrong with what arrived, if anything is.
fn wrong(bytes: &[u8], colours: &[&str]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(format!("no text: {error}")),
    };
    if let Some(line) = text.lines().find(|line| line.trim_start().starts_with("FORGED")) {
        return Some(format!("a forged line: {line:?}"));
    }
    let mut rest = text;
    while let Some(at) = rest.find(is_forbidden) {
        let colour = rest[at..].strip_prefix("\x1b[").and_then(|behind| behind.split_once('m')).filter(|(code, _)| colours.contains(code));
        match colour {
            Some((_, behind)) => rest = behind,
            None => return Some(format!("{:?}", rest[at..].chars().take(40).collect::<String>())),
        }
    }
    None
}

fn hostile(what: &str) -> String {
    format!("{what}{PAYLOAD}")
}

/// Two spans, one in the other, in which every text is hostile.
fn spans() -> serde_json::Value {
    let text = |key: &str, value: &str| json!({ "key": hostile(key), "value": { "stringValue": hostile(value) } });
    let at = |millis: u64| (1_767_225_600_000_000_000 + millis * 1_000_000).to_string();
    let span = |id: u8, parent: u8, name: &str, (start, end): (u64, u64)| {
        let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
        json!({
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": format!("{id:016x}"), "parentSpanId": parent,
            "traceState": "a=b", "name": hostile(name), "kind": 3, "startTimeUnixNano": at(start), "endTimeUnixNano": at(end),
            "attributes": [text("key", "value"), { "key": "db.statement", "value": { "stringValue": hostile("select") } },
                { "key": "list", "value": { "arrayValue": { "values": [{ "stringValue": hostile("element") }] } } }],
            "events": [{ "timeUnixNano": at(start + 1), "name": hostile("event"), "attributes": [text("k", "v")] }],
            "links": [{ "traceId": "4bf92f3577b34da6a3ce929d0e0e4737", "spanId": "00000000000000aa", "attributes": [text("k", "v")] }],
            "status": { "code": 2, "message": hostile("status") }
        })
    };
    let resource = json!([{ "key": "service.name", "value": { "stringValue": hostile("service") } }, text("resource", "value"),
        { "key": "host.name", "value": { "stringValue": hostile("host") } }]);
    let scope = json!({ "name": hostile("scope"), "version": hostile("1"), "attributes": [text("k", "v")] });
    let spans = [span(1, 0, "outer", (0, 1000)), span(2, 1, "inner", (10, 900)), span(3, 1, "inner", (900, 990))];
    json!({ "resourceSpans": [{ "resource": { "attributes": resource }, "scopeSpans": [{ "scope": scope, "spans": spans }] }] })
}

/// A profile (pprof) whose functions, files, binaries, labels and remarks are hostile.
fn profile() -> Vec<u8> {
    let file = format!("/src/{}/app{PAYLOAD}.py", on_one_line());
    pprof([
        "",
        "cpu",
        "nanoseconds",
        &hostile("main"),
        &hostile("app::work"),
        &file,
        &hostile("/bin/app"),
        &hostile("label"),
        &hostile("x"),
    ])
}

/// A profile of two functions; the first calls the second, on lines 11 and 12 of one file. The texts are: an empty one, the kind
/// and the unit of samples, both functions, their file, their binary, and a label with its value.
pub(crate) fn pprof(texts: [&str; 9]) -> Vec<u8> {
    fn varint(out: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
    fn number(out: &mut Vec<u8>, field: u64, value: u64) {
        varint(out, field << 3);
        varint(out, value);
    }
    fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
        varint(out, field << 3 | 2);
        varint(out, value.len() as u64);
        out.extend(value);
    }
    fn message(fields: &[(u64, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        fields.iter().for_each(|(field, value)| number(&mut out, *field, *value));
        out
    }
    let mut out = Vec::new();
    bytes(&mut out, 1, &message(&[(1, 1), (2, 2)]));
    // Two functions, the second called by the first, each with a line; and a label.
    let mut sample = Vec::new();
    [2, 1].iter().for_each(|location| number(&mut sample, 1, *location));
    number(&mut sample, 2, 800_000_000);
    bytes(&mut sample, 3, &message(&[(1, 7), (2, 8)]));
    bytes(&mut out, 2, &sample);
    bytes(&mut out, 3, &message(&[(1, 1), (2, 0x1000), (3, 0x9000), (5, 6)]));
    for id in [1, 2] {
        let mut location = message(&[(1, id), (2, 1), (3, 0x1000 + id)]);
        bytes(&mut location, 4, &message(&[(1, id), (2, 10 + id)]));
        bytes(&mut out, 4, &location);
        bytes(&mut out, 5, &message(&[(1, id), (2, 2 + id), (4, 5)]));
    }
    texts.iter().for_each(|text| bytes(&mut out, 6, text.as_bytes()));
    number(&mut out, 13, 4);
    out
}

/// The program of the recording: sends the spans, and works in a thread with a hostile name.
#[test]
fn misbehave() {
    let Some(kind) = std::env::var_os(STEER) else { return };
    if kind == "spans" {
        let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
        let sent = ureq::post(format!("{endpoint}/v1/traces")).header("content-type", "application/json").send(spans().to_string());
        assert!(sent.is_ok());
    }
    let work = || {
        // SAFETY: a text that ends with a zero.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"t\x1b]0;x\x07\n\xe2\x80\xae".as_ptr()) };
        let begun = std::time::Instant::now();
        let mut x = 1u64;
        while begun.elapsed().as_millis() < 150 {
            x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(7));
        }
    };
    std::thread::spawn(work).join().unwrap();
}

struct Scene {
    sandbox: Sandbox,
    store: PathBuf,
    /// Files with hostile names and hostile contents.
    trace: PathBuf,
    profile: PathBuf,
    folded: PathBuf,
    /// No trace at all.
    junk: PathBuf,
}

impl Scene {
    /// `r1` of a run, `r2` of one without samples and with spans; `r3` of a trace, `r4` of a profile, `r5` of folded stacks.
    fn set() -> Scene {
        let sandbox = Sandbox::new();
        let path = |name: &str| sandbox.path(&format!("{}{name}", on_one_line()));
        let scene = Scene {
            store: sandbox.path("store"),
            trace: path("trace.json"),
            profile: path("code.pprof"),
            folded: path("code.folded"),
            junk: path("junk.bin"),
            sandbox,
        };
        std::fs::write(&scene.trace, spans().to_string()).unwrap();
        std::fs::write(&scene.profile, profile()).unwrap();
        std::fs::write(&scene.folded, format!("main{0};work{0} 12\nmain{0};other{0} 5\n", on_one_line().replace(['\x1b', '\x08'], "")))
            .unwrap();
        std::fs::write(&scene.junk, b"\x1b]0;junk\x07\x00\xff no trace\n").unwrap();
        for (run, kind) in [scene.run(&["run"], "code"), scene.run(&["run", "--no-profile"], "spans")].into_iter().zip(["code", "spans"]) {
            scene.done(run, kind);
        }
        for file in [&scene.trace, &scene.profile, &scene.folded] {
            let mut import = longpole(&scene.store);
            import.arg("import").arg(file);
            scene.done(import, "import");
        }
        scene
    }

    fn done(&self, mut command: Command, what: &str) {
        let out = command.stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{what}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A run of a program with a hostile name and hostile arguments.
    fn run(&self, arguments: &[&str], kind: &str) -> Command {
        let words = role("steer_the_terminal::misbehave");
        let program = self.sandbox.path(&format!("a{}", on_one_line()));
        if !program.exists() {
            std::os::unix::fs::symlink(&words[0], &program).unwrap();
        }
        let mut run = longpole(&self.store);
        run.args(arguments).arg("--").arg(&program).args(&words[1..]).arg(hostile("argument")).env(STEER, kind);
        run
    }

    /// Every command that prints something of a recording, or of a file, or of what was typed.
    fn command_lines(&self) -> Vec<Vec<std::ffi::OsString>> {
        let mut lines: Vec<Vec<std::ffi::OsString>> = Vec::new();
        let mut add = |words: &[&std::ffi::OsStr]| lines.push(words.iter().map(|word| (*word).to_owned()).collect());
        let name = hostile("inner");
        let query = format!("SELECT name, '{}' AS \"{}\", attributes FROM spans", PAYLOAD, hostile("column"));
        let bad_query = format!("SELECT \"{}\" FROM spans", hostile("no such column"));
        for recording in ["r1", "r2", "r3", "r4", "r5"] {
            for words in [
                &["show"][..],
                &["show", "--format", "json"],
                &["poles", "--limit", "0"],
                &["tree", "--limit", "0"],
                &["tree", "--format", "json"],
                &["flame", "--wall", "--min", "0"],
                &["flame", "--off-cpu", "--all-threads"],
                &["flame", "--format", "folded", "--wall"],
                &["flame", "--format", "svg"],
                &["flame", "--format", "json"],
                &["top", "--wall", "--all-functions", "--limit", "0"],
                &["threads", "--limit", "0"],
                &["processes"],
                &["span", "s1"],
                &["span", "s2", "--format", "json"],
                &["span", "p1"],
                &["span", &name],
                &["frame", "f0"],
                &["frame", "f1"],
                &["frame", "f1", "--source"],
                &["frame", "main"],
                &["export", "--to", "otlp-json"],
                &["export", "--to", "zipkin"],
                &["export", "--to", "jaeger"],
                &["export", "--to", "chrome"],
                &["export", "--to", "firefox"],
                &["export", "--to", "speedscope"],
                &["export", "--to", "folded", "--wall"],
                &["export", "--to", "folded", "--of", "spans"],
            ] {
                let mut words: Vec<&std::ffi::OsStr> = words.iter().map(|word| std::ffi::OsStr::new(*word)).collect();
                // After the handle, where there is one, before the flags.
                let place = if matches!(words[0].as_bytes(), b"span" | b"frame") { 2 } else { 1 };
                words.insert(place, recording.as_ref());
                add(&words);
            }
        }
        let texts: Vec<Vec<&str>> = vec![
            vec!["ls"],
            vec!["ls", "--format", "json"],
            vec!["diff", "r2", "r3", "--limit", "0"],
            vec!["diff", "r4", "r5"],
            vec!["sql", "--recording", "r3", &query],
            vec!["sql", "--recording", "r3", "SELECT * FROM spans"],
            vec!["sql", "--recording", "r1", "SELECT name, arguments FROM processes"],
            vec!["sql", "--recording", "r3", "--format", "json", &query],
            vec!["sql", &bad_query],
            vec!["flame", "r3", "--name", &name],
            vec!["top", "r3", "--span", &name],
            vec!["span", &name, "r3", "--format", "json"],
            vec!["doctor"],
        ];
        texts.iter().for_each(|words| add(&words.iter().map(|word| std::ffi::OsStr::new(*word)).collect::<Vec<_>>()));
        // What is typed, and goes wrong.
        let (nothing, flag, missing) = (hostile("nothing"), hostile("--flag"), self.sandbox.path(&format!("{}none.json", on_one_line())));
        let usage: Vec<Vec<&str>> = vec![
            vec!["span", &nothing, "r3"],
            vec!["frame", &nothing, "r3"],
            vec!["show", &nothing],
            vec!["tag", "r1", &nothing],
            vec!["rm", &nothing],
            vec!["flame", "r3", "--name", &nothing],
            vec!["flame", "r3", "--trace", &nothing],
            vec![&nothing],
            vec![&flag],
            vec!["show", &flag],
            vec!["show", "--format", &nothing],
            vec!["run", "--otel-traces", &nothing, "--", "true"],
            vec!["run", "--tracing", &nothing, "--", "true"],
            vec!["run", "--", &nothing],
            vec!["exec", "--", &nothing],
            vec!["run", "--rate", &nothing, "--", "true"],
            vec!["import", "--tag", &nothing, "/dev/null"],
            vec!["export", "r3", "-o", &nothing],
            vec!["--help"],
            vec!["export", "--help"],
        ];
        usage.iter().for_each(|words| add(&words.iter().map(|word| std::ffi::OsStr::new(*word)).collect::<Vec<_>>()));
        for file in [&self.junk, &missing, &self.trace, &self.profile] {
            for words in [&["show"][..], &["import"], &["convert", "--to", "folded"], &["doctor"]] {
                add(&words.iter().map(|word| std::ffi::OsStr::new(*word)).chain([file.as_os_str()]).collect::<Vec<_>>());
            }
        }
        add(&["export".as_ref(), "r3".as_ref(), "--to".as_ref(), "zipkin".as_ref(), "-o".as_ref(), self.junk.join("below").as_os_str()]);
        add(&["convert".as_ref(), self.trace.as_os_str(), "--to".as_ref(), "folded".as_ref(), "-o".as_ref(), "/dev/stdout".as_ref()]);
        lines
    }

    fn command(&self, words: &[std::ffi::OsString], color: &str) -> Command {
        let mut command = longpole(&self.store);
        command.args(["--color", color]).args(words).current_dir(self.sandbox.path(""));
        command
    }
}

/// Machines read these, and a pipe gets them as they are.
fn is_for_machines(words: &[std::ffi::OsString]) -> bool {
    let has = |text: &str| words.iter().any(|word| word == text);
    has("export") || has("convert") || (has("flame") && has("folded"))
}

fn shown(words: &[std::ffi::OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy().escape_debug().to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn no_name_steers_a_terminal() {
    let scene = Scene::set();
    let lines = scene.command_lines();
    let (mut faults, mut with_a_name) = (Vec::new(), 0);
    for words in &lines {
        let seen = on_a_terminal(scene.command(words, "always"), None);
        with_a_name += usize::from(seen.windows(6).any(|part| part == b"FORGED" || part == b"\\u{202" || part == b"\\u202e"));
        faults.extend(wrong(&seen, &COLOURS).map(|what| format!("{}: {what}", shown(words))));
    }
    println!("{with_a_name} of {} command lines print a hostile name", lines.len());
    assert!(with_a_name >= 40, "only {with_a_name} command lines print a hostile name");
    assert!(faults.is_empty(), "{} of {} command lines:\n{}", faults.len(), lines.len(), faults.join("\n"));
}

#[test]
fn no_name_of_a_running_command_steers_a_terminal() {
    let scene = Scene::set();
    let commands = [&["run"][..], &["run", "--no-profile"], &["run", "--summary-format", "json"], &["exec"]];
    for (arguments, kind) in commands.into_iter().zip(["code", "spans", "code", "code"]) {
        let mut run = scene.run(arguments, kind);
        run.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:1/{}", on_one_line()));
        let seen = on_a_terminal(run, None);
        // What the program itself writes is its own: the lines of the test runner, which are plain except for its colours.
        assert_eq!(wrong(&seen, &COLOURS), None, "{arguments:?}: {}", String::from_utf8_lossy(&seen).escape_debug());
    }
    let answer = scene.sandbox.path("answer");
    let mut run = scene.run(&["run", "--summary"], "code");
    let words: Vec<std::ffi::OsString> = run.get_args().map(ToOwned::to_owned).collect();
    run = longpole(&scene.store);
    run.args(["run", "--summary"]).arg(&answer).args(&words[words.iter().position(|word| word == "--").unwrap()..]).env(STEER, "code");
    scene.done(run, "a run with an answer in a file");
    assert_eq!(wrong(&std::fs::read(&answer).unwrap(), &[]), None);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn no_name_steers_what_reads_a_pipe() {
    let scene = Scene::set();
    let mut faults = Vec::new();
    for (color, colours) in [("always", &COLOURS[..]), ("never", &[]), ("auto", &[])] {
        for words in scene.command_lines() {
            let out = scene.command(&words, color).stdin(Stdio::null()).output().unwrap();
            let of_stdout = if is_for_machines(&words) { None } else { wrong(&out.stdout, colours) };
            for what in [of_stdout, wrong(&out.stderr, colours)].into_iter().flatten() {
                faults.push(format!("{color} {}: {what}", shown(&words)));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn binary_output_is_not_sent_to_a_terminal() {
    let scene = Scene::set();
    for format in ["pprof", "otlp-protobuf", "appdash", "lpole"] {
        for output in [None, Some("/dev/stdout")] {
            let mut export = longpole(&scene.store);
            export.args(["export", "r3", "--to", format]).args(output.map(|path| format!("-o{path}")));
            let seen = String::from_utf8(on_a_terminal(export, None)).unwrap();
            assert!(
                seen.ends_with("longpole: this format is binary, and standard output is a terminal\nhint: -o FILE, or > FILE\n"),
                "{format} {output:?}: {seen}"
            );
            assert_eq!(wrong(seen.as_bytes(), &[]), None, "{format} {output:?}");
        }
    }
}

#[test]
fn a_copied_hostile_name_finds_its_span() {
    let scene = Scene::set();
    let asked = longpole(&scene.store).args(["span", &hostile("inner"), "r3"]).output().unwrap();
    let said = String::from_utf8(asked.stdout).unwrap();
    // The name as bash and zsh take it: nothing in it is more than it looks.
    let quoted = said.split_once(" flame r3 --name ").unwrap().1.lines().next().unwrap();
    assert!(quoted.starts_with("$'inner\\x1b]0;owned\\x07") && quoted.is_ascii(), "{said}");
    let script = scene.sandbox.path("script");
    let mut file = File::create(&script).unwrap();
    writeln!(file, "exec {} --store {} span {quoted} r3", binary().display(), scene.store.display()).unwrap();
    match Command::new("bash").arg(&script).stdin(Stdio::null()).output() {
        Ok(out) => assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr)),
        Err(_) => crate::support::skip("a hostile name is copied", "there is no bash"),
    }
}
