//! Line 12: a log damaged in its middle, cut off by a power failure, or without a bound.
//! Guarantees: damage costs the frames it hits and no others, and is counted; the rest of a log opens, and nothing that is
//! reported of it is untrue; a recorder that is killed at any moment, also while it seals, loses nothing that it had acknowledged; so does one whose files may
//! not grow; a recording does not grow beyond its limit, and the command goes on; removing parts of it meanwhile is reported, and with
//! `--strict` it fails; and what a command says a thousand times, or starts, does not make its recording one that nobody can read.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde_json::Value;

use crate::support::{Sandbox, can_sample, clean, json, longpole, role};

/// Requests of the program, of one span each.
const REQUESTS: u64 = 40;

/// Bytes of a span's name: a frame is a part of a page, and several pages are a part of the log.
const NAME_BYTES: usize = 700;

/// A recording whose recorder was killed when the program had sent all it had to send.
struct Killed {
    dir: PathBuf,
    store: PathBuf,
    acknowledged: BTreeSet<String>,
}

impl Killed {
    fn new(sandbox: &Sandbox) -> Killed {
        let (dir, store) = (sandbox.path("made"), sandbox.path("made/store"));
        std::fs::create_dir_all(&dir).unwrap();
        let mut command = longpole(&store);
        command.args(["run", "--no-profile", "--summary", "none", "--"]);
        let mut recorder = start(command, &dir);
        assert!(lines(&mut recorder).any(|line| line == "all sent"));
        kill(&mut recorder);
        let acknowledged = acknowledged(&dir);
        assert_eq!(acknowledged.len() as u64, REQUESTS);
        Killed { dir, store, acknowledged }
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(self.store.join("recordings/r1/wal/000001.wal")).unwrap()
    }

    /// What the store shows with this log, in a copy of it; after a power cut, if so.
    fn shown(&self, log: &[u8], is_other_boot: bool) -> (Value, BTreeSet<String>) {
        let copy = self.dir.join("copy");
        std::fs::remove_dir_all(&copy).ok();
        assert!(Command::new("cp").arg("-a").arg(&self.store).arg(&copy).status().unwrap().success());
        std::fs::write(copy.join("recordings/r1/wal/000001.wal"), log).unwrap();
        if is_other_boot {
            std::fs::write(copy.join("recordings/r1/lock"), "boot 00000000-0000-0000-0000-000000000000\n").unwrap();
            if log.is_empty() {
                std::fs::write(copy.join("recordings/r1/format"), "").unwrap();
            }
        }
        (json(longpole(&copy).args(["show", "r1", "--format", "json"])), kept(&copy))
    }
}

/// Starts the program below under this command.
fn start(mut command: Command, dir: &Path) -> Child {
    command.args(role("damage_a_log::emit")).env("LONGPOLE_STORY_DIR", dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What the program says. The test harness writes the name of the role on the same line.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok)
}

fn kill(recorder: &mut Child) {
    recorder.kill().unwrap();
    recorder.wait().unwrap();
}

fn acknowledged(dir: &Path) -> BTreeSet<String> {
    std::fs::read_to_string(dir.join("acknowledged")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The span ids in the last recording.
fn kept(store: &Path) -> BTreeSet<String> {
    let rows = json(longpole(store).args(["sql", "SELECT encode(span_id, 'hex') AS id FROM spans", "--format", "json"]));
    rows["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

fn note<'a>(shown: &'a Value, code: &str) -> Option<&'a str> {
    shown["quality"].as_array().unwrap().iter().find(|note| note["code"] == code)?["detail"].as_str()
}

/// The program: one request after the other, each span noted once it is acknowledged. It ends with its input.
#[test]
#[expect(clippy::exit, reason = "a program that ends as it would")]
fn emit() {
    let Some(dir) = std::env::var_os("LONGPOLE_STORY_DIR") else { return };
    // Where nothing is recorded there is no endpoint, and the program ends as it would.
    let Ok(endpoint) = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT") else { std::process::exit(7) };
    let mut noted = std::fs::File::create(Path::new(&dir).join("acknowledged")).unwrap();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(true).build().into();
    println!("begun");
    for number in 1..=REQUESTS {
        let span = Span {
            trace_id: vec![7; 16],
            span_id: number.to_be_bytes().to_vec(),
            name: format!("step {number} {}", "x".repeat(NAME_BYTES)),
            start_time_unix_nano: 1_700_000_000_000_000_000 + number,
            end_time_unix_nano: 1_700_000_000_000_000_900 + number,
            ..Span::default()
        };
        let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
        let request =
            ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() }] };
        let url = format!("{endpoint}/v1/traces");
        if agent.post(url).header("content-type", "application/x-protobuf").send(&request.encode_to_vec()[..]).is_ok() {
            writeln!(noted, "{number:016x}").unwrap();
        }
        println!("sent {number}");
    }
    println!("all sent");
    std::io::stdin().lines().for_each(drop);
    std::process::exit(7);
}

#[test]
fn damage_in_the_middle_costs_one_frame_and_is_counted() {
    let sandbox = Sandbox::new();
    let killed = Killed::new(&sandbox);
    let log = killed.log();
    for at in [log.len() / 4, log.len() / 2, log.len() * 3 / 4] {
        let mut damaged = log.clone();
        damaged[at] ^= 0x5a;
        let (shown, kept) = killed.shown(&damaged, false);
        assert_eq!(kept.len() as u64, REQUESTS - 1, "damaged at {at}: {shown}");
        assert!(kept.is_subset(&killed.acknowledged));
        let said = note(&shown, "wal_damaged").unwrap_or_else(|| panic!("damage at {at} is not said: {shown}"));
        assert!(said.contains("bytes of the log") && said.contains("offset"), "{said}");
        assert!(!shown.to_string().contains("contains every acknowledged span"), "{shown}");
    }
}

#[test]
fn damage_at_the_start_keeps_the_rest() {
    let sandbox = Sandbox::new();
    let killed = Killed::new(&sandbox);
    // The header of the file, the description of the run, and both.
    for damaged in [0..8, 30..31, 0..60] {
        let mut log = killed.log();
        log[damaged.clone()].fill(0xee);
        let (shown, kept) = killed.shown(&log, false);
        assert_eq!(kept, killed.acknowledged, "{damaged:?}: {shown}");
        assert!(note(&shown, "wal_damaged").is_some(), "{shown}");
        assert!(shown["command"].to_string().contains("damage_a_log"), "the catalog knows the command: {shown}");
    }
}

/// The log as a power cut can leave it: a part of it, zeros in its place, or pages that never reached the disk.
fn after_power_cuts(log: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut left = vec![Vec::new(), vec![0; log.len()]];
    for at in (0..log.len()).step_by(step) {
        left.push(log[..at].to_vec());
        let mut zeroed = log.to_vec();
        zeroed[at..].fill(0);
        left.push(zeroed);
        let mut hole = log.to_vec();
        let end = (at + 4096).min(log.len());
        hole[at..end].fill(0);
        left.push(hole);
    }
    left
}

fn power_cuts(step: usize) {
    let sandbox = Sandbox::new();
    let killed = Killed::new(&sandbox);
    for log in after_power_cuts(&killed.log(), step) {
        let (shown, kept) = killed.shown(&log, true);
        let why = note(&shown, "recorder_killed").unwrap_or_else(|| panic!("{shown}"));
        assert!(!why.contains("everything"), "{} of {} spans are there: {why}", kept.len(), killed.acknowledged.len());
        assert!(kept.is_subset(&killed.acknowledged), "{shown}");
    }
}

#[test]
fn after_a_power_cut_the_rest_opens_and_is_true() {
    power_cuts(12_000);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn after_a_power_cut_at_any_page_the_rest_opens_and_is_true() {
    power_cuts(1024);
}

#[test]
fn a_recording_stops_at_its_limit_and_the_command_goes_on() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("made");
    std::fs::create_dir_all(&dir).unwrap();
    let store = dir.join("store");
    let mut command = longpole(&store);
    command.args(["run", "--summary-format", "json", "--max-recording-bytes", "10kB", "--no-profile", "--"]);
    let mut recorder = start(command, &dir);
    assert!(lines(&mut recorder).any(|line| line == "all sent"));
    assert!(std::fs::metadata(store.join("recordings/r1/wal/000001.wal")).unwrap().len() <= 10_000);
    let out = recorder.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(7), "{said}");
    let acknowledged = acknowledged(&dir);
    assert!((1..REQUESTS as usize).contains(&acknowledged.len()), "{acknowledged:?}");
    assert_eq!(kept(&store), acknowledged);
    let limit = "reached its limit of 10000 bytes (--max-recording-bytes)";
    assert!(said.starts_with("longpole: failed to append to ") && said.lines().next().unwrap().contains(limit), "{said}");
    let shown = json(longpole(&store).args(["show", "last", "--format", "json"]));
    let refused = note(&shown, "requests_refused").unwrap();
    assert!(refused.contains(limit) && !refused.contains("try again"), "a client that sends again sends in vain: {shown}");
    assert_eq!(shown["exit"]["code"], 7, "how it ended is known: {shown}");
}

#[test]
fn an_unread_warning_delays_no_requests() {
    let sandbox = Sandbox::new();
    let dir = sandbox.path("made");
    std::fs::create_dir_all(&dir).unwrap();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let set_flags = |writer: &std::io::PipeWriter, flags: i32| {
        // SAFETY: flags of a pipe of ours.
        assert!(unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(writer), libc::F_SETFL, flags) } == 0);
    };
    set_flags(&writer, libc::O_NONBLOCK);
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    set_flags(&writer, 0);
    let mut command = longpole(&dir.join("store"));
    command.args(["run", "--summary", "none", "--max-recording-bytes", "10kB", "--no-profile", "--"]);
    command.args(role("damage_a_log::emit")).env("LONGPOLE_STORY_DIR", &dir);
    let mut recorder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    drop(command);
    let sent = lines(&mut recorder).position(|line| line == "all sent");
    assert!(sent.is_some(), "every request has its answer while standard error is full");
    drop(recorder.stdin.take());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut reader, &mut said).unwrap();
    assert!(said.contains("has reached its limit of 10000 bytes"), "{said}");
    assert_eq!(recorder.wait().unwrap().code(), Some(7));
}

#[test]
fn a_recording_too_large_for_memory_is_refused_with_its_size() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    assert!(longpole(&store).args(["run", "--summary", "none", "--", "true"]).stdin(Stdio::null()).status().unwrap().success());
    // A row is cheaper to make than the spans.
    let catalog = rusqlite::Connection::open(store.join("catalog.sqlite")).unwrap();
    catalog.execute("UPDATE recordings SET spans = 12800000000", []).unwrap();
    drop(catalog);
    let out = longpole(&store).args(["tree", "r1"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("r1 has 12800000000 spans") && said.contains("GiB are free"), "{said}");
    // What does not read it whole goes on, and so does the answer that was kept.
    assert!(longpole(&store).args(["show", "r1"]).stdin(Stdio::null()).output().unwrap().status.success());
    let rows = json(longpole(&store).args(["sql", "SELECT count(*) AS n FROM processes", "--format", "json"]));
    assert_eq!(rows["rows"].as_array().unwrap().len(), 1, "{rows}");
}

/// Moments at which something is killed.
const KILLS: u64 = 96;

/// So much work for no other purpose than that a moment passes: about 25 µs each in a test build.
fn pass(moments: u64) {
    for _ in 0..moments * 1_000 {
        std::hint::spin_loop();
    }
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn a_kill_at_any_moment_of_recording_and_sealing_loses_nothing_that_was_acknowledged() {
    let sandbox = Sandbox::new();
    for round in 0..KILLS {
        let dir = sandbox.path(&format!("round-{round}"));
        std::fs::create_dir_all(&dir).unwrap();
        let store = dir.join("store");
        let mut command = longpole(&store);
        command.args(["run", "--summary", "none", "--"]);
        let mut recorder = start(command, &dir);
        let mut said = lines(&mut recorder);
        assert!(said.any(|line| line.ends_with("begun")), "round {round}");
        if round % 2 == 0 {
            // While it records.
            let wanted = round * 37 % KILLS * REQUESTS / KILLS;
            (0..wanted).for_each(|_| drop(said.next()));
            pass(round);
            kill(&mut recorder);
        } else {
            // While it ends and seals.
            assert!(said.any(|line| line == "all sent"), "round {round}");
            drop(recorder.stdin.take());
            pass(round * 24);
            kill(&mut recorder);
            // And whoever seals it next.
            let mut show = longpole(&store).args(["show", "last"]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
            pass(round * 12);
            kill(&mut show);
        }
        drop(recorder.stdin.take());
        // The program goes on without its recorder, to its own end: only then its output closes.
        said.for_each(drop);
        let acknowledged = acknowledged(&dir);
        let shown = json(longpole(&store).args(["show", "last", "--format", "json"]));
        let kept = kept(&store);
        let lost: Vec<_> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "round {round}: acknowledged and lost: {lost:?}: {shown}");
        assert_eq!(note(&shown, "wal_damaged"), None, "round {round}: {shown}");
        if let Some(torn) = note(&shown, "wal_torn") {
            // A kill ends a write(2) that the kernel has in hand between two of its pages, and nowhere else.
            let numbers: Vec<u64> = torn.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
            assert_eq!(numbers.iter().sum::<u64>() % 4096, 0, "round {round}: {torn}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn whatever_file_cannot_grow_what_was_acknowledged_is_kept_and_the_command_ends_as_it_would() {
    let sandbox = Sandbox::new();
    // Blocks of 512 bytes. With the signal ignored, a write beyond that fails as on a full disk. The catalog has 48 of them.
    for blocks in (4..160).step_by(4) {
        let dir = sandbox.path(&format!("blocks-{blocks}"));
        std::fs::create_dir_all(&dir).unwrap();
        let store = dir.join("store");
        let longpole_run = longpole(&store);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -f {blocks} && trap '' XFSZ && exec \"$0\" \"$@\"")]);
        command.arg(longpole_run.get_program()).args(longpole_run.get_args());
        clean(&mut command);
        command.args(["run", "--summary", "none", "--"]);
        let recorder = start(command, &dir);
        let out = recorder.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(7), "{blocks} blocks: {said}");
        let acknowledged = acknowledged(&dir);
        if said.contains("nothing is recorded") {
            assert!(acknowledged.is_empty(), "{blocks} blocks: {said}");
            continue;
        }
        let shown = json(longpole(&store).args(["show", "last", "--format", "json"]));
        let kept = kept(&store);
        let lost: Vec<_> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "{blocks} blocks: acknowledged and lost: {lost:?}: {shown}");
        if (acknowledged.len() as u64) < REQUESTS {
            assert!(note(&shown, "requests_refused").is_some(), "{blocks} blocks: refused and not counted: {shown}");
        }
    }
}

/// Records a shell script that does something to the store, its first argument. Returns its exit code and the text in the terminal.
fn recorded(store: &Path, strict: bool, script: &str) -> (Option<i32>, String) {
    let mut run = longpole(store);
    run.args(["run", "--no-profile", "--summary-format", "json"]).args(strict.then_some("--strict"));
    let out = run.args(["--", "sh", "-c", script]).arg(store).stdin(Stdio::null()).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn removing_parts_of_a_recording_in_progress_is_reported() {
    let check = |script: &str, reason: &str, last: &str| {
        let mut seen = None;
        for (strict, code) in [(false, 0), (true, 125)] {
            let sandbox = Sandbox::new();
            let store = sandbox.path("store");
            let (ended, said) = recorded(&store, strict, script);
            assert_eq!(ended, Some(code), "{script}: {said}");
            assert!(said.contains(reason), "{script}: {said}");
            let line = said.lines().last().unwrap();
            assert!(
                line.starts_with("longpole: the command ran, but its recording is incomplete: ") && line.contains(last),
                "{script}: {said}"
            );
            seen = Some((sandbox, store));
        }
        seen.unwrap()
    };
    // What the recorder has open it still has.
    let (_kept, store) = check("rm $0/recordings/r1/wal/000001.wal", "wal_damaged", "000001.wal was removed while longpole wrote it");
    let shown = json(longpole(&store).args(["show", "r1", "--format", "json"]));
    assert_eq!((shown["exit"]["code"].as_i64(), note(&shown, "wal_damaged").is_some()), (Some(0), true), "{shown}");
    let (_kept, store) = check(": >$0/recordings/r1/wal/000001.wal", "wal_damaged", "bytes while longpole wrote it");
    let shown = json(longpole(&store).args(["show", "r1", "--format", "json"]));
    assert!(note(&shown, "wal_damaged").is_some(), "{shown}");
    let (_kept, store) = check("rm $0/recordings/r1/lock", "wal_damaged", "lock was removed while longpole held it");
    assert_eq!(json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0]["state"], "sealed");
    // Nobody can find it again.
    check("rm $0/catalog.sqlite*", "not_written", "catalog.sqlite: it was removed or replaced while longpole recorded");
    check(
        "mv $0/catalog.sqlite $0/other; cp $0/other $0/catalog.sqlite",
        "not_written",
        "it was removed or replaced while longpole recorded",
    );
    check("rm -r $0/recordings/r1", "wal_damaged", "failed to seal it, and its log is gone");
}

#[test]
fn a_recording_sealed_by_others_too_early_is_sealed_again() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // Another longpole takes the recorder for dead, and seals.
    let longpole_here = longpole(&store).get_program().to_owned();
    let script = format!("rm $0/recordings/r1/lock; {} --store $0 show r1; true later", longpole_here.to_string_lossy());
    let (code, said) = recorded(&store, true, &script);
    assert_eq!(code, Some(125), "{said}");
    let shown = json(longpole(&store).args(["show", "r1", "--format", "json"]));
    assert_eq!(shown["exit"]["code"], 0, "{shown}");
    assert!(note(&shown, "wal_damaged").is_some() && note(&shown, "recorder_killed").is_none(), "{shown}");
}

/// The text that an application with a large prompt puts into each of its spans.
const PROMPT_BYTES: usize = 65_000;

/// A program whose spans repeat one large text.
#[test]
fn emit_prompts() {
    if std::env::var_os("LONGPOLE_STORY_DIR").is_none() {
        return;
    }
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(true).build().into();
    let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap();
    for request in 1..=10_u64 {
        let span = |number: u64| Span {
            trace_id: vec![7; 16],
            span_id: (request * 100 + number).to_be_bytes().to_vec(),
            name: "chat".into(),
            start_time_unix_nano: 1_767_225_600_000_000_000,
            end_time_unix_nano: 1_767_225_600_000_000_000 + number,
            attributes: vec![KeyValue {
                key: "gen_ai.prompt".into(),
                value: Some(AnyValue { value: Some(any_value::Value::StringValue("You are helpful. ".repeat(PROMPT_BYTES / 17))) }),
                ..KeyValue::default()
            }],
            ..Span::default()
        };
        let spans = (0..20).map(span).collect();
        let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
        let body = ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] };
        let request = agent.post(format!("{endpoint}/v1/traces")).header("content-type", "application/x-protobuf");
        request.send(&body.encode_to_vec()[..]).unwrap();
    }
}

#[test]
fn a_text_repeated_by_every_span_is_held_once() {
    let sandbox = Sandbox::new();
    let (dir, store) = (sandbox.path("made"), sandbox.path("store"));
    std::fs::create_dir_all(&dir).unwrap();
    let mut run = longpole(&store);
    run.args(["run", "--no-profile", "--strict", "--summary", "none", "--"]).args(role("damage_a_log::emit_prompts"));
    assert!(run.env("LONGPOLE_STORY_DIR", &dir).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
    // What its rows take is known since they were written: a figure that its reader allows, whatever it is.
    let counted = std::fs::read_to_string(store.join("recordings/r1/segments/memory")).unwrap();
    let figure = |name: &str| counted.lines().find_map(|line| line.strip_suffix(name)?.trim().parse::<usize>().ok()).unwrap();
    assert!((PROMPT_BYTES - 17..20 * PROMPT_BYTES).contains(&figure("memory")), "{counted}");
    let shown = json(longpole(&store).args(["show", "r1", "--format", "json"]));
    assert_eq!(shown["exit"]["code"], 0, "{shown}");
    let file = sandbox.path("r1.lpole");
    let out = longpole(&store).args(["export", "r1", "-o"]).arg(&file).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    json(longpole(&store).arg("show").arg(&file).args(["--format", "json"]));
    let rows = json(longpole(&store).args([
        "sql",
        "SELECT count(*) AS n, min(length(attributes['gen_ai.prompt'])) AS bytes FROM spans WHERE name = 'chat'",
        "--format",
        "json",
    ]));
    let row = &rows["rows"][0];
    assert_eq!((row["n"].as_u64(), row["bytes"].as_u64()), (Some(200), Some((PROMPT_BYTES / 17 * 17) as u64)), "{rows}");
}

#[test]
fn long_command_lines_take_a_bounded_part_of_a_recording() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    if !can_sample("long_command_lines_take_a_bounded_part_of_a_recording") {
        return;
    }
    let mut run = longpole(&store);
    run.args(["run", "--summary", "none", "--", "sh", "-c", "seq 5000 | xargs -n 5000 sh -c 'sleep 1; :' words; true"]);
    assert!(run.stdin(Stdio::null()).status().unwrap().success());
    let rows = json(longpole(&store).args(["sql", "SELECT max(cardinality(arguments)) AS n FROM processes", "--format", "json"]));
    assert_eq!(rows["rows"][0]["n"].as_u64(), Some(1_024), "{rows}");
}

#[test]
fn an_unread_standard_error_does_not_delay_sealing() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let (mut reader, writer) = std::io::pipe().unwrap();
    // Opened anew, so that nobody else's end of it stops blocking.
    let own = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut filling = std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(own).unwrap();
    for size in [4096, 1] {
        while filling.write(&[b'x'; 4096][..size]).is_ok() {}
    }
    drop(filling);
    let mut command = longpole(&store);
    let mut run = command.args(["run", "--", "sh", "-c", "exit 7"]).stdin(Stdio::null()).stderr(writer).spawn().unwrap();
    // It holds an end of the pipe.
    drop(command);
    let state = || json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0]["state"].clone();
    while state() != "sealed" {
        assert_eq!(run.try_wait().unwrap(), None);
    }
    assert_eq!(run.try_wait().unwrap(), None, "only its words wait");
    let mut said = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut said).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(7));
    assert!(String::from_utf8_lossy(&said).contains("exit 7"), "the summary came when it was read");
}
