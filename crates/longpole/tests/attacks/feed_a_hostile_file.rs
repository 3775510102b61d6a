//! Line 7: a file of others panics, lies, or takes all memory.
//!
//! `cargo test` takes a few files of each format the whole way through the binary. For longer, and of one format:
//!
//! ```text
//! LONGPOLE_STORY_FUZZ_MINUTES=60 LONGPOLE_STORY_FUZZ_FORMAT=pprof cargo test -p longpole --test attacks -- --ignored nearly_right
//! ```

#[path = "../../../longpole-recording/tests/whole_way/mutate.rs"]
mod mutate;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use longpole_testing::random::Random;
use mutate::{mutate, seeds};

use crate::support::{self, Sandbox, json, longpole};

/// More than any file of a few megabytes may take.
const MEMORY_MAX_BYTES: u64 = 2 << 30;

/// Longer than any of them takes, on a machine with other work.
const SECONDS_MAX: &str = "120";

/// Commands on a file, with `FILE` for it.
const COMMANDS: &[&[&str]] = &[
    &["show", "FILE"],
    &["show", "FILE", "--format", "json"],
    &["poles", "FILE"],
    &["tree", "FILE"],
    &["span", "s1", "FILE"],
    &["span", "s2", "FILE"],
    &["span", "p1", "FILE"],
    &["span", "job", "FILE"],
    &["top", "FILE"],
    &["top", "--total", "--wall", "--all-functions", "FILE"],
    &["flame", "FILE"],
    &["flame", "--wall", "FILE"],
    &["flame", "--off-cpu", "FILE"],
    &["flame", "--format", "svg", "FILE"],
    &["flame", "--span", "s1", "FILE"],
    &["frame", "f1", "FILE"],
    &["frame", "f2", "FILE"],
    &["threads", "FILE"],
    &["processes", "FILE"],
    &["diff", "FILE", "FILE"],
    &["convert", "FILE", "--to", "otlp-json"],
    &["convert", "FILE", "--to", "otlp-protobuf"],
    &["convert", "FILE", "--to", "zipkin"],
    &["convert", "FILE", "--to", "jaeger"],
    &["convert", "FILE", "--to", "appdash"],
    &["convert", "FILE", "--to", "chrome"],
    &["convert", "FILE", "--to", "firefox"],
    &["convert", "FILE", "--to", "speedscope"],
    &["convert", "FILE", "--to", "pprof"],
    &["convert", "FILE", "--to", "folded"],
    &["convert", "FILE", "--to", "folded", "--of", "spans"],
];

/// The same of what was imported.
const KEPT: &[&[&str]] = &[
    &["show"],
    &["ls"],
    &["poles"],
    &["tree"],
    &["span", "s1"],
    &["top"],
    &["flame"],
    &["threads"],
    &["processes"],
    &["diff", "last", "last"],
    &["export", "last", "--to", "firefox"],
    &["export", "last", "--to", "lpole"],
    &["sql", "SELECT * FROM spans"],
    &["sql", "SELECT * FROM samples"],
    &["sql", "SELECT * FROM runs"],
];

/// What a run of the binary came to.
struct Outcome {
    status: ExitStatus,
    err: String,
    peak_bytes: u64,
}

impl Outcome {
    /// Neither a panic, nor a signal, nor the end of memory, nor the end of patience.
    fn is_orderly(&self) -> bool {
        !self.err.contains("panicked") && self.status.signal().is_none() && !matches!(self.status.code(), Some(101 | 124 | 134 | 137))
    }
}

/// Runs the binary with limited time and memory.
fn run(store: &Path, arguments: &[&str]) -> Outcome {
    let mut longpole = support::longpole(store);
    longpole.args(arguments);
    let mut limited = Command::new("sh");
    // Address space is more than memory: the allocator reserves a gigabyte.
    limited.args(["-c", "ulimit -v 8000000; exec timeout \"$@\"", "sh", SECONDS_MAX]);
    limited.arg(longpole.get_program()).args(longpole.get_args());
    support::clean(&mut limited);
    let err = tempfile(store, "err");
    limited.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&err).unwrap());
    #[expect(clippy::zombie_processes, reason = "wait4 waits, and says how much memory it took")]
    let child = limited.spawn().unwrap();
    // SAFETY: numbers only, and zero is one.
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    // SAFETY: both are ours, and the child is waited for by nobody else.
    let waited = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, child.id() as i32);
    let err = String::from_utf8_lossy(&std::fs::read(err).unwrap()).into_owned();
    Outcome { status: ExitStatus::from_raw(status), err, peak_bytes: (usage.ru_maxrss as u64) << 10 }
}

fn tempfile(store: &Path, name: &str) -> PathBuf {
    let folder = store.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    folder.join(name)
}

fn file(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> String {
    let path = sandbox.path(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_pipe_or_device_as_program_does_not_delay_the_doctor() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.path("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_str(), "/dev/zero"] {
        let out = support::bounded(&sandbox.path("store")).args(["doctor", path]).output().unwrap();
        assert!(out.status.code().is_some(), "{path}: {}", out.status);
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(said.contains("cannot be read: it is not a regular file"), "{path}: {said}");
    }
}

/// A file can also hold it up for as long as it is, and so can what it asks for its version.
#[test]
fn the_doctor_ends_on_sigterm() {
    let sandbox = Sandbox::new();
    let bin = sandbox.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let doctor = |python: &str, node: &str| {
        for (name, script) in [("python3", python), ("node", node)] {
            let path = bin.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        support::bounded(&sandbox.path("store")).arg("doctor").env("PATH", path).output().unwrap()
    };
    let version = "echo Python 3.12.0";
    // The first runs after trials of a process, the second after one more.
    let ask = "kill -s TERM $PPID";
    for (python, node) in [(format!("{ask}; {version}").as_str(), ":"), (version, ask)] {
        let out = doctor(python, node);
        let said = String::from_utf8_lossy(&out.stdout);
        // What bounds it ends as it does.
        let ended = out.status.signal().or(out.status.code().map(|code| code - 128));
        assert!(ended == Some(libc::SIGTERM) && said.is_empty(), "{python}, {node}: {}: {said}", out.status);
    }
    assert_eq!(doctor(version, "echo v22").status.code(), Some(0));
}

/// Opening a file with a lease of another program waits for up to 45 seconds (`/proc/sys/fs/lease-break-time`). Every user may
/// hold one on each of their own files.
#[test]
fn a_file_lease_delays_no_reader() {
    use std::os::fd::AsRawFd;

    let sandbox = Sandbox::new();
    let path = file(&sandbox, "leased.json", b"[]");
    // <linux/fcntl.h>
    const F_SETSIG: i32 = 10;
    let leased = File::options().write(true).open(&path).unwrap();
    // SAFETY: numbers only. The kernel tells of whoever wants the file by SIGURG, which is ignored, instead of SIGIO, which ends us.
    let outcome = unsafe {
        libc::fcntl(leased.as_raw_fd(), F_SETSIG, libc::SIGURG);
        libc::fcntl(leased.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK)
    };
    if outcome != 0 {
        return support::skip("a_file_lease_delays_no_reader", "this file system has no leases");
    }
    for command in [["show"], ["import"], ["doctor"]] {
        let begun = Instant::now();
        let out = support::longpole(&sandbox.path("store")).args(command).arg(&path).output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("another program holds a lease of it"), "{command:?}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{command:?}: {:?}", begun.elapsed());
    }
}

/// Whether every command on this file ends as it should.
fn every_command(store: &Path, file: &str, commands: &[&[&str]]) {
    for command in commands {
        let arguments: Vec<&str> = command.iter().map(|word| if *word == "FILE" { file } else { *word }).collect();
        let outcome = run(store, &arguments);
        assert!(outcome.is_orderly(), "{arguments:?} of {file}: {:?} {}", outcome.status, outcome.err);
    }
}

#[test]
fn sums_of_the_longest_samples_saturate() {
    let sandbox = Sandbox::new();
    let folded =
        file(&sandbox, "stacks", b"main;work;hash 9223372036854775807\nmain;work;read 9223372036854775807\nmain 9223372036854775807\n");
    every_command(&sandbox.path("store"), &folded, COMMANDS);
}

#[test]
fn sums_of_the_longest_spans_saturate() {
    let sandbox = Sandbox::new();
    let span = |id: u32, parent: u32, name: &str, start: u64| {
        format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"{id:016x}","parentSpanId":"{parent:016x}","name":"{name}","startTimeUnixNano":"{start}","endTimeUnixNano":"18446744073709551615"}}"#
        )
    };
    let spans = [span(1, 0, "root", 0), span(2, 1, "job", 1), span(3, 1, "job", 2), span(4, 2, "job", 3), span(5, 2, "job", 0)].join(",");
    let trace = file(&sandbox, "trace.json", format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#).as_bytes());
    let store = sandbox.path("store");
    every_command(&store, &trace, COMMANDS);
    every_command(&store, &trace, &[&["import", "FILE"]]);
    every_command(&store, &trace, KEPT);
}

/// Files that made it panic: periods of all the time there is, switches beyond the end of time, sums of them.
#[test]
fn earlier_findings_are_shown_or_refused() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/whole_way");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        return support::skip("what was found before", &format!("{} cannot be read by this user", folder.display()));
    };
    for entry in entries {
        let found = file(&sandbox, "found", &std::fs::read(entry.unwrap().path()).unwrap());
        every_command(&store, &found, &[&["show", "FILE"], &["flame", "--wall", "FILE"], &["import", "FILE"]]);
        every_command(&store, &found, &KEPT[..2]);
    }
}

/// Compresses as anybody can.
/// Clocks that are a day off, spans without a start, times in seconds, of 2262: none ends a command by a panic, nor makes its table endless.
#[test]
fn spans_of_any_time_are_shown() {
    const BASE: u64 = 1_767_225_600_000_000_000;
    const DAY: u64 = 86_400_000_000_000;
    const ODD: [u64; 13] = [
        0,
        1,
        2,
        1_767_225_600,
        BASE - DAY,
        BASE - DAY - 1,
        BASE + DAY,
        BASE + DAY + 5,
        365 * DAY,
        1 << 62,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut random = Random(1);
    for round in 0..40 {
        let mut time = |around: u64| match random.below(2) {
            0 => around.saturating_add(random.below(1_000_000_000) as u64),
            _ => ODD[random.below(ODD.len())],
        };
        let mut spans = Vec::new();
        for number in 1..=4 {
            let start = time(BASE);
            let end = time(start);
            let parent = if number > 2 { r#","parentSpanId":"0000000000000001""# } else { "" };
            spans.push(format!(
                r#"{{"traceId":"{:032x}","spanId":"{number:016x}"{parent},"name":"n{number}","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"}}"#,
                7
            ));
        }
        let text = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","));
        let path = file(&sandbox, &format!("{round}.json"), text.as_bytes());
        let out = path.clone() + ".out";
        every_command(&store, &path, &[&["show", "FILE"], &["tree", "FILE"], &["convert", "FILE", "--to", "chrome", "-o", &out]]);
    }
}

fn gzip(sandbox: &Sandbox, name: &str, write: impl FnOnce(&mut dyn Write)) -> String {
    let path = sandbox.path(name);
    let mut child = Command::new("gzip").arg("-1").stdin(Stdio::piped()).stdout(File::create(&path).unwrap()).spawn().unwrap();
    let mut pipe = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    write(&mut pipe);
    pipe.flush().unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    path.to_string_lossy().into_owned()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn numbers(fields: &[(u64, u64)]) -> Vec<u8> {
    fields.iter().flat_map(|(number, value)| [varint(number << 3), varint(*value)].concat()).collect()
}

/// A profile of pprof with one function, one location and what else is written.
fn pprof(out: &mut dyn Write, name: &str) {
    for text in ["", "cpu", "nanoseconds", name] {
        out.write_all(&field(6, text.as_bytes())).unwrap();
    }
    out.write_all(&field(1, &numbers(&[(1, 1), (2, 2)]))).unwrap();
    out.write_all(&field(5, &numbers(&[(1, 1), (2, 3), (4, 3)]))).unwrap();
    location(out, 1);
}

fn location(out: &mut dyn Write, number: u64) {
    out.write_all(&field(4, &[numbers(&[(1, number)]), field(4, &numbers(&[(1, 1)]))].concat())).unwrap();
}

fn sample(out: &mut dyn Write, locations: &[u8]) {
    out.write_all(&field(2, &[field(1, locations), field(2, &[10])].concat())).unwrap();
}

/// The file is shown or refused, in a part of the memory.
fn takes_little(sandbox: &Sandbox, file: &str) -> Outcome {
    let outcome = run(&sandbox.path("store"), &["show", file]);
    let bytes = std::fs::metadata(file).unwrap().len();
    assert!(outcome.is_orderly(), "{file} of {bytes} bytes: {:?} {}", outcome.status, outcome.err);
    assert!(outcome.peak_bytes < MEMORY_MAX_BYTES, "{file} of {bytes} bytes took {} MB", outcome.peak_bytes >> 20);
    outcome
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn a_name_of_100_kb_that_all_frames_have_does_not_fill_the_memory() {
    let sandbox = Sandbox::new();
    let bomb = gzip(&sandbox, "names.gz", |out| {
        pprof(out, &"x".repeat(100_000));
        (2..100_000).for_each(|number| location(out, number));
        sample(out, &[1]);
    });
    let refused = takes_little(&sandbox, &bomb);
    assert!(refused.err.contains("bytes of names"), "{}", refused.err);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn ten_million_samples_in_100_kb_do_not_fill_the_memory() {
    let sandbox = Sandbox::new();
    let bomb = gzip(&sandbox, "samples.gz", |out| {
        pprof(out, "main");
        (0..10_000_000).for_each(|_| sample(out, &[1]));
    });
    let refused = takes_little(&sandbox, &bomb);
    assert!(refused.err.contains("gunzip") || refused.err.contains("samples"), "{}", refused.err);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn a_stack_of_fifty_million_frames_keeps_its_innermost() {
    let sandbox = Sandbox::new();
    let deep = gzip(&sandbox, "deep.gz", |out| {
        pprof(out, "main");
        sample(out, &vec![1; 50_000_000]);
    });
    takes_little(&sandbox, &deep);
    // Unpacked, and so trusted to be as large as it is.
    let unpack = Command::new("gunzip").arg("-kf").arg(&deep).status().unwrap();
    assert!(unpack.success());
    let shown = takes_little(&sandbox, deep.trim_end_matches(".gz"));
    assert!(shown.status.success(), "{}", shown.err);
    let folded = file(&sandbox, "folded", format!("main;work 1\nmain;rest 2\n{}b 1\n", "a;".repeat(100_000_000)).as_bytes());
    let shown = takes_little(&sandbox, &folded);
    assert!(shown.status.success(), "{}", shown.err);
}

/// A few kilobytes of gzip, in which one object is referenced many times.
/// As JSON, in the row of the catalog, it would have 72 MB.
#[test]
fn twelve_mb_of_control_characters_are_imported_and_listed() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let span = [field(1, &[1; 16]), field(2, &[1; 8]), field(5, &vec![1; 12_000_000])];
    let times = [[7 << 3 | 1].as_slice(), &1_000_000_000u64.to_le_bytes(), &[8 << 3 | 1], &2_000_000_000u64.to_le_bytes()].concat();
    let span = [span.concat(), times].concat();
    let file = file(&sandbox, "name.pb", &field(1, &field(2, &field(2, &span))));
    let imported = longpole(&store).args(["import", &file]).output().unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let listed = json(longpole(&store).args(["ls", "--format", "json"]));
    let name = listed["recordings"][0]["answer"]["name"].as_str().unwrap_or_else(|| panic!("{listed}"));
    assert!(name.len() < 600 && name.ends_with('…'), "{}", name.len());
}

#[test]
fn repeated_references_are_resolved_once() {
    let sandbox = Sandbox::new();
    let number_of = |text: u64| text + 3;
    let long = "x".repeat(8 << 20);
    type Make<'a> = &'a dyn Fn(&mut dyn Write);
    let inlined: Make<'_> = &|out| {
        pprof(out, "main");
        let lines: Vec<u8> = (1..=20_000).flat_map(|line| field(4, &numbers(&[(1, 1), (2, line)]))).collect();
        out.write_all(&field(4, &[numbers(&[(1, 2)]), lines].concat())).unwrap();
        sample(out, &[2; 4096]);
    };
    let types: Make<'_> = &|out| {
        pprof(out, &long);
        (0..63).for_each(|_| out.write_all(&field(1, &numbers(&[(1, number_of(0)), (2, number_of(0))]))).unwrap());
        out.write_all(&field(2, &[field(1, &[1]), field(2, &[10; 64])].concat())).unwrap();
    };
    let build_ids: Make<'_> = &|out| {
        pprof(out, &"a".repeat(8 << 20));
        (1..1_500).for_each(|id| out.write_all(&field(3, &numbers(&[(1, id), (5, 1), (6, number_of(0))]))).unwrap());
        sample(out, &[1]);
    };
    let labels: Make<'_> = &|out| {
        pprof(out, "main");
        out.write_all(&field(6, long.as_bytes())).unwrap();
        let labels = field(3, &numbers(&[(1, number_of(1)), (2, number_of(1))])).repeat(200_000);
        out.write_all(&field(2, &[field(1, &[1]), field(2, &[10]), labels].concat())).unwrap();
    };
    for (name, make) in [("inlined", inlined), ("types", types), ("build-ids", build_ids), ("labels", labels)] {
        let bomb = gzip(&sandbox, &format!("{name}.gz"), make);
        takes_little(&sandbox, &bomb);
    }
}

/// A name stands once in a profile, and in each frame of what it is written as.
#[test]
fn a_long_name_in_a_deep_stack_exports_in_bounded_size() {
    let sandbox = Sandbox::new();
    let deep = gzip(&sandbox, "deep.gz", |out| {
        pprof(out, &"x".repeat(200_000));
        (4091..=4096).for_each(|depth| sample(out, &vec![1; depth]));
    });
    let picture = sandbox.path("x.svg");
    let picture = picture.to_str().unwrap();
    for command in [
        &["convert", &deep, "--to", "folded"][..],
        &["convert", &deep, "--to", "chrome"],
        &["convert", &deep, "--to", "firefox"],
        &["convert", &deep, "--to", "speedscope"],
        &["flame", &deep, "-o", picture],
    ] {
        let outcome = run(&sandbox.path("store"), command);
        assert!(outcome.is_orderly() && outcome.status.success(), "{command:?}: {:?} {}", outcome.status, outcome.err);
        assert!(outcome.peak_bytes < MEMORY_MAX_BYTES / 4, "{command:?} took {} MB", outcome.peak_bytes >> 20);
    }
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn a_gigabyte_of_blanks_in_one_megabyte_is_refused_with_a_way_out() {
    let sandbox = Sandbox::new();
    let bomb = gzip(&sandbox, "blanks.gz", |out| {
        out.write_all(br#"{"resourceSpans":["#).unwrap();
        for _ in 0..900 {
            out.write_all(&[b' '; 1 << 20]).unwrap();
        }
        out.write_all(b"]}").unwrap();
    });
    let refused = takes_little(&sandbox, &bomb);
    assert!(!refused.status.success() && refused.err.contains("gunzip"), "{}", refused.err);
}

#[test]
fn inputs_that_are_no_files_are_refused_at_once() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let pipe = sandbox.path("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let folder = sandbox.path("folder");
    std::fs::create_dir_all(&folder).unwrap();
    for (path, what) in [(pipe.as_path(), "pipe"), (folder.as_path(), "directory"), (Path::new("/dev/zero"), "device")] {
        for command in ["show", "import"] {
            let begin = Instant::now();
            let outcome = run(&store, &[command, path.to_str().unwrap()]);
            assert!(begin.elapsed() < Duration::from_secs(30), "{command} {}: it hung", path.display());
            assert!(outcome.is_orderly() && !outcome.status.success(), "{command} {}: {}", path.display(), outcome.err);
            assert!(outcome.err.contains(what), "{command} {}: {}", path.display(), outcome.err);
        }
    }
    for path in ["/proc/self/maps", "/proc/self/status", "/proc/cpuinfo"] {
        let outcome = run(&store, &["show", path]);
        assert!(outcome.is_orderly(), "{path}: {}", outcome.err);
    }
}

/// What `perf record -o -` writes of one sample, on this machine, of code that lies in no file.
fn perf_data_of(pid: u32, address: u64) -> Vec<u8> {
    let record = |kind: u32, misc: u16, body: &[u8]| {
        let size = 8 + body.len() as u16;
        [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
    };
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let mut name = host.trim_end().as_bytes().to_vec();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let feature = [&3u64.to_le_bytes()[..], &(name.len() as u32).to_le_bytes(), &name, &[0; 4]].concat();
    // Type and size, config, period, what a sample holds: where, who, when.
    let attr = words(&[88 << 32 | 1, 0, 1_000_000, 0b111, 0, 0, 0, 0, 0, 0, 0]);
    let sample = words(&[address, u64::from(pid) << 32 | u64::from(pid), 1_000]);
    [&b"PERFILE2"[..], &words(&[16]), &record(64, 0, &attr), &record(80, 0, &feature), &record(9, 2, &sample)].concat()
}

/// A path that is free again when the attack ends.
struct Gone(PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// Names of compiled code lie in /tmp, where anybody can put some for a process of another user.
#[test]
fn imports_read_no_files_that_they_name() {
    let sandbox = Sandbox::new();
    // No kernel gives out such a number.
    let pid = 2_000_000_000 + std::process::id();
    let map = Gone(PathBuf::from(format!("/tmp/perf-{pid}.map")));
    let data = file(&sandbox, "perf.data", &perf_data_of(pid, 0x7000_1010));
    let said = |command: &[&str]| {
        let out = support::longpole(&sandbox.path("store")).args(command).output().unwrap();
        assert!(out.status.success(), "{command:?}: {out:?}");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let names = "70001000 1000 what_the_map_says\n";
    let look = |is_named: bool, is_lost: bool, why: &str| {
        let stacks = said(&["convert", &data, "--to", "folded"]);
        assert_eq!(stacks.contains("what_the_map_says"), is_named, "{why}: {stacks}");
        let shown = said(&["show", &data, "--format", "json"]);
        assert_eq!(shown.contains("(/tmp/perf-PID.map) that are not regular files, or belong"), is_lost, "{why}: {shown}");
    };
    look(false, false, "there is none");
    std::fs::write(&map.0, names).unwrap();
    look(true, false, "it is our own");
    if support::is_root() {
        std::os::unix::fs::chown(&map.0, Some(65_534), Some(65_534)).unwrap();
        look(false, true, "it is of another user");
    }
    std::fs::remove_file(&map.0).unwrap();
    let own = file(&sandbox, "names", names.as_bytes());
    std::os::unix::fs::symlink(&own, &map.0).unwrap();
    look(false, true, "a link leads anywhere");
    std::fs::remove_file(&map.0).unwrap();
    assert!(Command::new("mkfifo").arg(&map.0).status().unwrap().success());
    let shown = run(&sandbox.path("store"), &["show", &data]);
    assert!(shown.is_orderly() && shown.status.success(), "{:?} {}", shown.status, shown.err);
    look(false, true, "nobody writes to a pipe");
}

/// A pipe of the shell has a writer, and is read.
#[test]
fn a_file_piped_by_a_shell_is_read() {
    let sandbox = Sandbox::new();
    let folded = file(&sandbox, "stacks", b"main;work 3\nmain;rest 2\n");
    let longpole = support::longpole(&sandbox.path("store"));
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat \"$0\" | \"$1\" --store \"$2\" show /dev/stdin"]);
    shell.arg(&folded).arg(longpole.get_program()).arg(sandbox.path("store"));
    support::clean(&mut shell);
    let shown = shell.output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("work"));
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn a_file_of_a_terabyte_of_holes_is_refused() {
    let sandbox = Sandbox::new();
    let heads: [(&str, &[u8]); 4] = [
        ("zeroes", b"\0"),
        ("perf.data", b"PERFILE2\x68\0\0\0\0\0\0\0"),
        ("trace.json", b"{\"resourceSpans\":[\n"),
        ("stacks", b"main;work 3\nmain;rest 2\n"),
    ];
    for (name, head) in heads {
        let path = sandbox.path(name);
        let hole = File::create(&path).unwrap();
        hole.write_all_at(head, 0).unwrap();
        if let Err(error) = hole.set_len(1 << 40) {
            return support::skip("a file of a terabyte of holes", &error.to_string());
        }
        let refused = run(&sandbox.path("store"), &["show", path.to_str().unwrap()]);
        assert!(refused.is_orderly() && !refused.status.success(), "{name}: {:?} {}", refused.status, refused.err);
        // Up to a gigabyte of one document is read before it is too large.
        assert!(refused.peak_bytes < 2 * MEMORY_MAX_BYTES, "{name} took {} MB", refused.peak_bytes >> 20);
    }
}

/// Files that are nearly right, through the binary: `show` of each, and some other commands.
fn nearly_right(until: impl Fn(u64) -> bool, format: Option<&str>) {
    if std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).is_err() {
        return support::skip("nearly right files", "this user cannot read the fixtures");
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let seeds = seeds(format);
    let mut runs = 0;
    for number in 1.. {
        if !until(number) {
            break;
        }
        let seed = &seeds[number as usize % seeds.len()];
        let path = file(&sandbox, &format!("{}-{number}", seed.name), &mutate(seed, &mut Random(number)));
        let mut random = Random(!number);
        every_command(&store, &path, &COMMANDS[..1]);
        let mut some = |of: &[&'static [&'static str]]| [of[random.below(of.len())], of[random.below(of.len())]];
        every_command(&store, &path, &some(COMMANDS));
        runs += 3;
        if number % 4 == 0 {
            every_command(&store, &path, &[&["import", "FILE"]]);
            every_command(&store, &path, &some(KEPT));
            runs += 3;
        }
        std::fs::remove_file(&path).unwrap();
    }
    eprintln!("{}: {runs} runs", format.unwrap_or("all formats"));
}

#[test]
fn nearly_right_files_are_shown_or_refused() {
    nearly_right(|number| number <= 17, None);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn nearly_right_files_are_shown_or_refused_for_long() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let minutes: f64 = variable("LONGPOLE_STORY_FUZZ_MINUTES").map_or(0.5, |minutes| minutes.parse().unwrap());
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    nearly_right(|_| Instant::now() < until, variable("LONGPOLE_STORY_FUZZ_FORMAT").as_deref());
}
