use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use longpole_model::{Nanos, NodeId, Resource, Span, SpanId, Timestamp};
use longpole_wire::FileError;

use super::spans::SHARED_MAX;
use super::unseen::ASSUMED_WEIGHT_NANOS;
use super::*;

/// A file of this content, gone with the guard.
struct Given(PathBuf);

impl Given {
    fn new(name: &str, bytes: &[u8]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longpole-import-{}-{number}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Given(path)
    }

    fn read(&self) -> Result<Recording, ImportError> {
        read(&self.0).map(Contents::recording)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A line of one span: id, parent (0: none), start and end in milliseconds, more attributes as JSON.
fn line(id: u64, parent: u64, start: u64, end: u64, attributes: &str) -> String {
    let parent = if parent == 0 { String::new() } else { format!(r#""parentSpanId":"{parent:016x}","#) };
    format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"scopeSpans":[{{"spans":[{{"traceId":"0000000000000000000000000000000a","spanId":"{id:016x}",{parent}"name":"step {id}","startTimeUnixNano":"{start}000000","endTimeUnixNano":"{end}000000","attributes":[{attributes}]}}]}}]}}]}}"#
    ) + "\n"
}

fn losses(recording: &Recording) -> Vec<String> {
    recording.losses.iter().map(|loss| format!("{} ×{}: {}", loss.kind, loss.count, loss.detail)).collect()
}

#[test]
fn a_file_is_a_run_from_its_first_start_to_its_last_end() {
    let file = Given::new("up.json", (line(1, 0, 5, 9, "") + &line(2, 1, 6, 20, "")).as_bytes());
    let recording = file.read().unwrap();
    assert_eq!((recording.run.start, recording.run.end), (Timestamp(5_000_000), Some(Timestamp(20_000_000))));
    assert_eq!(recording.run.command, ["import", &file.0.to_string_lossy()]);
    assert_eq!((recording.run.exit, recording.processes.len(), recording.losses.len()), (None, 0, 0));
    assert!(Arc::ptr_eq(&recording.spans[0].resource, &recording.spans[1].resource), "the resource is there twice");
    assert_eq!(report(recording).wall(), Nanos(15_000_000));
}

#[test]
fn the_name_of_a_file_may_hold_a_credential() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let recording = Given::new(&format!("{token}.json"), line(1, 0, 5, 9, "").as_bytes()).read().unwrap();
    assert!(!recording.run.command.concat().contains(&token), "{:?}", recording.run.command);
}

#[test]
fn a_span_without_a_start_does_not_make_the_run_begin_in_1970() {
    let now = 1_767_225_600_000;
    let file = Given::new("x.json", (line(1, 0, now, now + 9, "") + &line(2, 1, 0, now + 12, "")).as_bytes());
    let recording = file.read().unwrap();
    assert_eq!(
        (recording.run.start.unix_nanos(), recording.run.end.unwrap().unix_nanos()),
        (1_767_225_600_000_000_000, 1_767_225_600_012_000_000)
    );
    let report = report(recording);
    assert_eq!(report.wall(), Nanos(12_000_000));
    assert!(report.forest().notes.iter().any(|note| (note.code(), note.count()) == ("times_outside_run", 1)));
}

#[test]
fn the_one_parent_that_is_not_in_the_file_is_the_run() {
    let file = Given::new("x.json", (line(1, 7, 0, 9, "") + &line(2, 7, 1, 3, "") + &line(3, 2, 1, 2, "")).as_bytes());
    let report = report(file.read().unwrap());
    assert!(!report.forest().nodes.iter().any(|node| node.orphan));
    let file = Given::new("x.json", (line(1, 7, 0, 9, "") + &line(2, 8, 1, 3, "")).as_bytes());
    let recording = file.read().unwrap();
    assert_eq!(recording.run.root_span_id, SpanId::MAX, "of two, neither is it");
}

#[test]
fn a_cut_file_is_read_up_to_the_cut_which_is_a_loss() {
    let whole = line(1, 0, 0, 9, "") + &line(2, 1, 1, 3, "");
    let file = Given::new("x.jsonl", &whole.as_bytes()[..whole.len() - 30]);
    let recording = file.read().unwrap();
    assert_eq!(recording.spans.len(), 1);
    let said = losses(&recording);
    assert!(said.len() == 1 && said[0].starts_with("file_cut ×1") && said[0].contains(&(whole.len() - 30).to_string()), "{said:?}");
}

#[test]
fn a_gzipped_file_is_read_as_what_it_holds() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, line(1, 0, 0, 9, "").as_bytes()).unwrap();
    let file = Given::new("x.json.gz", &gzip.finish().unwrap());
    assert_eq!(file.read().unwrap().spans.len(), 1);
}

#[test]
fn credentials_do_not_come_in() {
    let secret = r#"{"key":"db.password","value":{"stringValue":"hunter2"}}"#;
    let file = Given::new("x.json", line(1, 0, 0, 9, secret).as_bytes());
    let recording = file.read().unwrap();
    assert_eq!(recording.spans[0].attributes.get_str("db.password"), Some("[redacted]"));
    assert!(losses(&recording)[0].starts_with("values_redacted ×1"), "{:?}", losses(&recording));
}

#[test]
fn what_is_no_trace_is_named() {
    for (bytes, word) in [(&b"hello\n"[..], "plain text"), (b"", "empty"), (b"{\"traceEvents\":[]}", "Chrome")] {
        let error = Given::new("x", bytes).read().unwrap_err();
        let text = std::error::Error::source(&error).unwrap().to_string();
        assert!(matches!(error, ImportError::Unknown { .. }) && text.contains(word) && text.contains("appdash"), "{text}");
    }
    assert!(matches!(read(Path::new("/no/such/file")), Err(ImportError::Io { .. })));
}

#[test]
fn times_beyond_what_can_be_counted_do_not_make_the_run_long() {
    let clamped = r#"{"key":"longpole.time_clamped","value":{"boolValue":true}}"#;
    let file = Given::new("x.json", (line(1, 0, 0, 9_000_000_000_000, clamped) + &line(2, 1, 1, 3, "")).as_bytes());
    assert_eq!(report(file.read().unwrap()).wall(), Nanos(2_000_000));
}

#[test]
fn what_is_kept_without_being_whole_in_memory_is_whole_in_the_store_and_has_the_same_answer() {
    let number = r#"{"key":"number","value":{"intValue":"7"}}"#;
    let lines: Vec<String> = (2..40).map(|id| line(id, id / 3, 10 * id, 10 * id + 15 + id % 7, number)).collect();
    let linked = line(40, 1, 500, 590, "").replace(
        r#""attributes":[]}]}]}]}"#,
        r#""links":[{"traceId":"0000000000000000000000000000000a","spanId":"0000000000000007"}]}]}]}]}"#,
    );
    assert!(linked.contains("links"));
    let again = line(5, 1, 50, 51, "");
    let file = Given::new("x.json", (line(1, 0, 0, 600, number) + &lines.concat() + &linked + &again).as_bytes());
    let root = std::env::temp_dir().join(format!("longpole-import-{}-store", std::process::id()));
    let store = Store::open(&root).unwrap();
    let (name, kept) = keep(&store, read(&file.0).unwrap()).unwrap();
    let stored = store.recording(name).unwrap().read().unwrap();
    std::fs::remove_dir_all(&root).ok();

    let whole = file.read().unwrap();
    let by_start = |spans: &[Span]| {
        let mut spans = spans.to_vec();
        spans.sort_by_key(|span| (span.start, span.span_id.bytes()));
        spans
    };
    assert_eq!((whole.spans.len(), by_start(&whole.spans)), (40, by_start(&stored.spans)));
    let said = |report: &Report| serde_json::to_value(crate::view::SummaryView::new(name, report)).unwrap();
    assert_eq!(said(&kept), said(&report(whole)));
}

const PERF_DATA: &[u8] = include_bytes!("../../../../fixtures/perf/dwarf.data");

fn perf_data(bytes: &[u8]) -> Result<Recording, FileError> {
    perf_data::recording(Path::new("perf.data"), Cursor::new(bytes), &Limits::default(), Timestamp(5_000_000_000))
}

#[test]
fn a_recording_of_perf_is_a_run_of_its_command() {
    let recording = perf_data(PERF_DATA).unwrap();
    assert_eq!(recording.run.command, ["./burn", "30000000"]);
    assert_eq!((recording.samples.len(), recording.run.rate_hz, recording.run.mode.as_str()), (22, 199, "perf"));
    let [burn] = &recording.processes[..] else { panic!("{:?}", recording.processes) };
    assert_eq!((&burn.name[..], &burn.executable[..], burn.parent_pid), ("burn", "/tmp/fix/burn", None));
    assert_eq!((recording.run.root_pid, recording.threads.len(), burn.end.is_some()), (Some(burn.pid), 2, true));
    assert!(recording.mappings.iter().any(|mapping| mapping.path == "/tmp/fix/burn" && mapping.build_id.len() == 20));
    // Every sample has the leaf that the kernel saw, whatever can be unwound here.
    assert!(recording.samples.iter().all(|sample| !recording.stacks[sample.stack.0 as usize].locations.is_empty()));
    assert!(report(recording).wall() > Nanos::ZERO);
}

/// What `perf record -o -` writes: its head, and these records with their kinds.
fn perf_stream(records: &[(u32, u16, Vec<u8>)]) -> Vec<u8> {
    // The CPU clock, each 1,000,000 ns: samples and other records with an address, a thread and a time.
    let attributes = [88 << 32 | 1, 0, 1_000_000, 0b111, 0, 1 << 18, 0, 0, 0, 0, 0_u64].map(u64::to_le_bytes).concat();
    let mut bytes = [b"PERFILE2".as_slice(), &16_u64.to_le_bytes()].concat();
    for (kind, mark, body) in std::iter::once(&(64, 0, attributes)).chain(records) {
        let size = u16::try_from(8 + body.len()).unwrap();
        bytes.extend([&kind.to_le_bytes()[..], &mark.to_le_bytes(), &size.to_le_bytes(), body].concat());
    }
    bytes
}

/// Each fork had a copy of the path, and a record has up to 65 KB: 50,000 forks took 3 GB.
#[test]
fn forks_in_a_recording_of_perf_share_the_path_of_their_program() {
    let ids = |ids: &[u32], time: u64| [ids.iter().flat_map(|id| id.to_le_bytes()).collect(), time.to_le_bytes().to_vec()].concat();
    let name = [ids(&[10, 10], 0)[..8].to_vec(), b"a\0\0\0\0\0\0\0".to_vec(), ids(&[10, 10], 1_000)].concat();
    let path = format!("/password=hunter2 /{}\0", "x".repeat(60_000 - 19));
    let map = [ids(&[10, 10], 0x1000), ids(&[], 0x1000), ids(&[], 0), path.into_bytes(), ids(&[10, 10], 1_001)].concat();
    let forks = (100..50_100_u64).map(|pid| {
        let fork = [pid as u32, 10, pid as u32, 10];
        (7, 0, [ids(&fork, 2_000 + pid), ids(&[10, 10], 2_000 + pid)].concat())
    });
    let sample = |time: u64| (9, 2, [ids(&[], 0x1100), ids(&[10, 10], time)].concat());
    let records: Vec<_> = [(3, 1 << 13, name), (1, 2, map), sample(1_002)].into_iter().chain(forks).chain([sample(10_000_000)]).collect();
    let recording = perf_data(&perf_stream(&records)).unwrap();
    assert_eq!(recording.processes.len(), 50_001);
    let path = &recording.processes[0].executable;
    assert!(path.starts_with("/password=[redacted] /x") && path.len() <= 4_096 + "[redacted]".len(), "{path}");
    assert!(recording.processes.iter().all(|process| Arc::ptr_eq(&process.executable, path)));
    assert!(losses(&recording).iter().any(|loss| loss.starts_with("values_redacted ×1:")), "{:?}", losses(&recording));
}

#[test]
fn a_damaged_recording_of_perf_is_an_error_or_less_of_a_recording() {
    for at in (0..PERF_DATA.len()).step_by(1499) {
        let mut bytes = PERF_DATA.to_vec();
        bytes[at] ^= 0xff;
        if let Ok(recording) = perf_data(&bytes) {
            report(recording);
        }
    }
}

#[test]
fn samples_of_a_profile_without_times_belong_to_no_moment() {
    let recording = Given::new("x.folded", b"main;work 3\nmain 1\n").read().unwrap();
    assert_eq!((recording.samples.len(), recording.clock.anchors().len(), recording.run.mode.as_str()), (4, 0, "imported"));
    assert!(recording.samples.iter().all(|sample| sample.weight_nanos == ASSUMED_WEIGHT_NANOS));
    let report = report(recording);
    assert!(report.poles().is_empty() && report.own_samples(NodeId::RUN).is_empty());
    // More samples than anybody can hold are one for each stack, with all their time.
    let recording = Given::new("y.folded", b"main;work 3000000000\nmain 1000\n").read().unwrap();
    let weights: Vec<u64> = recording.samples.iter().map(|sample| sample.weight_nanos).collect();
    assert_eq!(weights, [3_000_000_000 * ASSUMED_WEIGHT_NANOS, 1000 * ASSUMED_WEIGHT_NANOS]);
    assert!(recording.losses.iter().any(|loss| loss.detail.contains("more samples than")), "{:?}", losses(&recording));
}

#[test]
fn what_unpacks_to_far_more_than_it_is_is_refused_with_a_way_out() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(br#"{"resourceSpans":["#).unwrap();
    for _ in 0..80 {
        gzip.write_all(&[b' '; 1 << 20]).unwrap();
    }
    gzip.write_all(b"]}").unwrap();
    let packed = gzip.finish().unwrap();
    let Err(ImportError::Unreadable { source: FileError::Read(error), .. }) = Given::new("blanks.gz", &packed).read() else {
        panic!("it was read")
    };
    let most = format!("expand to more than {} bytes", packed.len() * 100);
    assert!(error.to_string().contains(&most) && error.to_string().contains("gunzip"), "{error}");
}

#[test]
fn what_is_no_file_is_named() {
    let refused = |path: &str| match read(Path::new(path)) {
        Err(ImportError::Io { source, .. }) => source.to_string(),
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(refused("/dev/zero"), "it is a device, not a file");
    assert_eq!(refused("/"), "it is a directory, not a file");
}

/// The file is opened once: another user can exchange it at its path, and a pipe does not give its bytes a second time.
#[test]
fn a_packed_recording_is_read_from_what_was_opened_first() {
    let bytes = include_bytes!("../../../../fixtures/recordings/version-5.lpole");
    let whole = Given::new("r1.lpole", bytes).read().unwrap();
    let (end, mut writer) = io::pipe().unwrap();
    let writes = std::thread::spawn(move || io::Write::write_all(&mut writer, bytes).unwrap());
    let piped = read(Path::new(&format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&end)))).unwrap().recording();
    writes.join().unwrap();
    assert_eq!(piped, whole);
}

#[test]
fn emitters_that_take_turns_are_each_kept_once() {
    // More of them than are looked through by their value.
    let (emitters, spans) = (SHARED_MAX + 6, 5 * (SHARED_MAX + 6));
    let tags = vec![r#"{"key":"k","type":"string","value":"v"}"#; 200].join(",");
    let processes: Vec<String> = (0..emitters).map(|p| format!(r#""p{p}":{{"serviceName":"s{p}","tags":[{tags}]}}"#)).collect();
    let span = |number: usize| {
        // Some spans call a tag their resource's.
        let own = if number.is_multiple_of(7) { r#","tags":[{"key":"otel.resource.own","type":"string","value":"x"}]"# } else { "" };
        format!(
            r#"{{"traceID":"0af7651916cd43dd8448eb211c80319c","spanID":"{:016x}","operationName":"o","startTime":{number},"duration":1,"processID":"p{}"{own}}}"#,
            number + 1,
            number % emitters
        )
    };
    let spans: Vec<String> = (0..spans).map(span).collect();
    let document = format!(
        r#"{{"data":[{{"traceID":"0af7651916cd43dd8448eb211c80319c","spans":[{}],"processes":{{{}}}}}]}}"#,
        spans.join(","),
        processes.join(",")
    );
    let recording = Given::new("turns.json", document.as_bytes()).read().unwrap();
    let places: std::collections::HashSet<*const Resource> = recording.spans.iter().map(|span| Arc::as_ptr(&span.resource)).collect();
    assert_eq!((recording.spans.len(), places.len()), (spans.len(), emitters));
    let own = recording.spans.iter().filter(|span| span.attributes.get_str("otel.resource.own") == Some("x")).count();
    assert_eq!(own, spans.len().div_ceil(7));
    let named = |span: &Span| span.resource.attributes.get_str("service.name").unwrap().to_owned();
    assert!(
        recording
            .spans
            .iter()
            .all(|span| named(span) == format!("s{}", (u64::from_be_bytes(span.span_id.bytes()) as usize - 1) % emitters))
    );
}

/// A message of protobuf inside another one: both short.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, content.len() as u8][..], content].concat()
}

#[test]
fn samples_of_less_than_nothing_are_counted() {
    let texts = [&b""[..], b"cpu", b"nanoseconds", b"main"].map(|text| field(6, text)).concat();
    // 10, and the largest number there is, which is one below zero.
    let ten = field(2, &[field(1, &[1]), field(2, &[10])].concat());
    let below = field(2, &[field(1, &[1]), field(2, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])].concat());
    let rest = [field(1, &[8, 1, 16, 2]), field(5, &[8, 1, 16, 3]), field(4, &[&[8, 1][..], &field(4, &[8, 1])].concat())].concat();
    let of = |samples: &[u8]| Given::new("diff.pprof", &[&texts, &rest, samples].concat()).read().unwrap();
    let said = losses(&of(&[ten.clone(), below].concat()));
    assert!(said.iter().any(|loss| loss.contains("samples with negative values")), "{said:?}");
    let said = losses(&of(&[ten.clone(), ten].concat()));
    assert!(!said.iter().any(|loss| loss.contains("negative values")), "{said:?}");
}

#[test]
fn a_span_that_stands_in_two_files_is_one_span() {
    let one = Given::new("a.json", (line(1, 9, 5, 9, "") + &line(2, 1, 6, 20, "")).as_bytes());
    let other = Given::new("b.json", (line(2, 1, 6, 20, "") + &line(3, 1, 8, 30, "")).as_bytes());
    let merged = Given::new("c.json", &[std::fs::read(&one.0).unwrap(), std::fs::read(&other.0).unwrap()].concat());
    let profile = Given::new("p.folded", b"main;work 3\n");
    let joined = |files: &[&Given]| {
        let of = |file: &&Given| (file.0.clone(), read(&file.0).unwrap());
        let mut recording = together(files.iter().map(of).collect()).unwrap().recording();
        recording.run.command.clear();
        recording
    };
    let (found, expected) = (joined(&[&one, &other, &profile]), joined(&[&merged, &profile]));
    let ids: Vec<u8> = found.spans.iter().map(|span| span.span_id.bytes()[7]).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!((&found.run, &found.spans, &found.losses), (&expected.run, &expected.spans, &expected.losses));
    assert!(losses(&found).iter().any(|loss| loss.starts_with("spans_duplicate ×1: ")), "{:?}", losses(&found));
    let twice = joined(&[&one, &one, &profile]);
    assert_eq!((twice.spans.len(), twice.run.end), (2, Some(Timestamp(20_000_000))));
    let without_profile = joined(&[&one, &other]);
    assert_eq!((&without_profile.spans, without_profile.run.end), (&found.spans, found.run.end));
}

#[test]
fn folded_stacks_without_a_number_of_samples_are_nanoseconds() {
    let read = |bytes: &[u8]| {
        let recording = Given::new("profile.folded", bytes).read().unwrap();
        let nanos: u64 = recording.samples.iter().map(|sample| sample.weight_nanos).sum();
        (nanos, losses(&recording).into_iter().find(|loss| loss.starts_with("weights_assumed")).unwrap())
    };
    let (nanos, said) = read(b"main;hash 60000000\nmain 151000\n");
    assert_eq!(nanos, 60_151_000);
    assert!(said.contains("they count as nanoseconds"), "{said}");
    let (nanos, said) = read(b"main;hash 600000\nmain 15\n");
    assert_eq!(nanos, 600_015_000_000);
    assert!(said.contains("each counts as 1 ms"), "{said}");
}
