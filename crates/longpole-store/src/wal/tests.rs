use std::fs;
use std::path::Path;
use std::process::Command;

use longpole_model::sink::ObservationSink;
use longpole_model::time::Monotonic;
use longpole_model::{CaptureMode, Exit, Loss, LossKind, Observation, Run, Timestamp};
use proptest::prelude::*;

use super::frame::{FILE_HEADER_BYTES, FRAME_BYTES_MAX, MAGIC, kind};
use super::observation_codec::decode_all;
use super::observation_sink::WAITING_BYTES_MAX;
use super::*;
use crate::error_kind::ErrorKind;
use crate::format::WAL_VERSION;
use crate::testing::{self, Directory};

fn frames(path: &Path) -> Vec<Frame> {
    Replay::open(path, &unknown(), AtEnd::Sealing).unwrap().map(Result::unwrap).collect()
}

/// The run, where the log does not describe it.
fn unknown() -> Run {
    Run { command: vec!["unknown".into()], ..testing::begun() }
}

fn not_described() -> Frame {
    let detail = "the log has no description of the run; its command and start come from the catalog";
    Frame::Loss(Loss::new(LossKind::WalDamaged, 1, detail))
}

fn damaged(places: u64, offset: u64, bytes: u64) -> Frame {
    let detail = format!("{bytes} bytes of the log are damaged, the first at offset {offset}; longpole recovered the data after them");
    Frame::Loss(Loss::new(LossKind::WalDamaged, places, detail))
}

fn torn(offset: u64, bytes: u64) -> Frame {
    let detail = format!("the last {bytes} bytes, from offset {offset}, are not a whole frame");
    Frame::Loss(Loss::new(LossKind::WalTorn, 1, detail))
}

fn exited(pid: u32) -> Observation {
    Observation::ProcessExited { pid, time: Monotonic(u64::from(pid)) }
}

/// A log with one frame of each kind, and where each begins; the last entry is the end.
fn log_of_every_kind(path: &Path) -> (Vec<Frame>, Vec<u64>) {
    let wal = WalWriter::create(path, &testing::begun(), SyncPolicy::None).unwrap();
    let length = || fs::metadata(path).unwrap().len();
    let mut begins = vec![FILE_HEADER_BYTES as u64, length()];
    wal.append_otlp_protobuf(Some(41), b"protobuf").unwrap();
    begins.push(length());
    wal.append_otlp_json(None, b"{}").unwrap();
    begins.push(length());
    let mut sink = wal.observation_sink();
    sink.observe(exited(7)).unwrap();
    sink.observe(exited(8)).unwrap();
    sink.flush().unwrap();
    begins.push(length());
    let loss = Loss::new(LossKind::RequestsRefused, 2, "not OTLP");
    wal.append_loss(&loss).unwrap();
    begins.push(length());
    wal.append_trace_file(Some(41), b"file").unwrap();
    begins.push(length());
    let frames = vec![
        Frame::Run(testing::begun()),
        Frame::OtlpProtobuf { peer_pid: Some(41), body: b"protobuf".to_vec() },
        Frame::OtlpJson { peer_pid: None, body: b"{}".to_vec() },
        Frame::Observations(vec![exited(7), exited(8)]),
        Frame::Loss(loss),
        Frame::TraceFile { command: Some(41), body: b"file".to_vec() },
    ];
    (frames, begins)
}

#[test]
fn what_comes_after_the_end_is_kept_out() {
    let directory = Directory::new();
    let wal = WalWriter::create(&directory.path().join("log"), &testing::begun(), SyncPolicy::None).unwrap();
    let mut sink = wal.observation_sink();
    wal.close();
    assert!(wal.append_loss(&Loss::new(LossKind::SamplesLost, 1, "")).unwrap_err().to_string().ends_with("the recording is over"));
    sink.observe(Observation::Loss(Loss::new(LossKind::SamplesLost, 1, ""))).unwrap();
    assert!(sink.flush().unwrap_err().0.ends_with("the recording is over"));
}

#[test]
fn a_log_replays_what_was_appended_in_order() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, _) = log_of_every_kind(&path);
    assert_eq!(frames(&path), sent);
}

#[test]
fn a_secret_comes_into_the_log_by_no_door() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (secret, name) = ("9f86d081884c7d659a2feaa0c55ad015", "000000000000000000f067aa0ba902b7");
    let wal = WalWriter::create(&path, &testing::begun(), SyncPolicy::None).unwrap();
    // What waits in a sink is hidden as well, if it is appended later.
    let mut sink = wal.observation_sink();
    let executed = |id: &str| Observation::ProcessExec {
        pid: 7,
        time: Monotonic(7),
        name: "python3".into(),
        executable: "/usr/bin/python3".into(),
        arguments: vec!["-c".into(), format!("print('{id}')"), id.to_owned()],
    };
    sink.observe(executed(secret)).unwrap();
    wal.hide(secret, name);
    wal.hide("7", "8");
    wal.append_otlp_protobuf(Some(7), format!("\x0a\x20{secret}\x12").as_bytes()).unwrap();
    wal.append_otlp_json(None, format!("[\"{secret}\"]").as_bytes()).unwrap();
    wal.append_span_events(secret.as_bytes()).unwrap();
    wal.append_loss(&Loss::new(LossKind::RequestsRefused, 1, format!("not {secret}"))).unwrap();
    wal.append_observation(&executed(secret)).unwrap();
    sink.flush().unwrap();
    assert!(!String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(secret));
    assert_eq!(
        frames(&path)[1..],
        [
            Frame::OtlpProtobuf { peer_pid: Some(7), body: format!("\x0a\x20{name}\x12").into_bytes() },
            Frame::OtlpJson { peer_pid: None, body: format!("[\"{name}\"]").into_bytes() },
            Frame::SpanEvents(name.as_bytes().to_vec()),
            Frame::Loss(Loss::new(LossKind::RequestsRefused, 1, format!("not {name}"))),
            Frame::Observations(vec![executed(name)]),
            Frame::Observations(vec![executed(name)]),
        ]
    );
}

#[test]
fn a_log_cut_anywhere_replays_its_whole_frames_and_says_what_is_torn() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, begins) = log_of_every_kind(&path);
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let is_headless = length < FILE_HEADER_BYTES;
        let begins = if is_headless { &[0][..] } else { &begins[..] };
        let length = length as u64;
        let kept = begins.iter().filter(|begin| **begin <= length).count() - 1;
        let mut expected = sent[..kept].to_vec();
        if kept == 0 {
            // A power cut can leave a log without its first frame, even without a byte.
            expected = vec![Frame::Run(unknown()), not_described()];
        }
        if begins[kept] != length {
            expected.push(torn(begins[kept], length - begins[kept]));
        }
        assert_eq!(frames(&path), expected, "cut at {length}");
        let living: Vec<_> = Replay::open(&path, &unknown(), AtEnd::Living).unwrap().map(Result::unwrap).collect();
        if !is_headless {
            assert_eq!(living, sent[..kept], "a frame under way is not torn; cut at {length}");
        }
    }
}

/// The frames of a log whose frame number `frame` is damaged, in which nothing else is.
fn without(sent: &[Frame], begins: &[u64], frame: usize) -> Vec<Frame> {
    let mut expected = sent.to_vec();
    expected.remove(frame);
    if frame == 0 {
        expected.insert(0, Frame::Run(unknown()));
        expected.push(not_described());
    }
    let (begin, bytes) = (begins[frame], begins[frame + 1] - begins[frame]);
    expected.push(if frame == sent.len() - 1 { torn(begin, bytes) } else { damaged(1, begin, bytes) });
    expected
}

#[test]
fn a_damaged_byte_costs_its_frame_and_no_other() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, begins) = log_of_every_kind(&path);
    let whole = fs::read(&path).unwrap();
    for frame in 0..sent.len() {
        for at in begins[frame]..begins[frame + 1] {
            for flip in [1, 0x40, 0xff] {
                let mut bytes = whole.clone();
                bytes[at as usize] ^= flip;
                fs::write(&path, &bytes).unwrap();
                assert_eq!(frames(&path), without(&sent, &begins, frame), "byte {at} of frame {frame}, flipped by {flip}");
            }
        }
        // Zeros in its place, as of a page that never reached the disk.
        let mut bytes = whole.clone();
        bytes[begins[frame] as usize..begins[frame + 1] as usize].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(frames(&path), without(&sent, &begins, frame), "zeros for frame {frame}");
    }
}

#[test]
fn a_log_whose_beginning_is_damaged_is_read_from_its_second_frame() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (mut sent, begins) = log_of_every_kind(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..20].fill(0);
    fs::write(&path, &bytes).unwrap();
    sent[0] = Frame::Run(unknown());
    sent.extend([not_described(), damaged(1, 0, begins[1])]);
    assert_eq!(frames(&path), sent);
}

#[test]
fn the_log_of_a_killed_recorder_says_what_may_be_missing() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    log_of_every_kind(&path);
    let whole = fs::read(&path).unwrap();
    let said = |bytes: &[u8], since| {
        fs::write(&path, bytes).unwrap();
        let last = Replay::open(&path, &unknown(), AtEnd::Killed(since)).unwrap().last().unwrap().unwrap();
        let Frame::Loss(Loss { kind: LossKind::RecorderKilled, detail, .. }) = last else { panic!("{last:?}") };
        detail
    };
    let all = "the recording contains every acknowledged span, but does not count refused or dropped ones";
    assert!(said(&whole, Since::SameBoot).contains(all));
    for since in [Since::SameBoot, Since::OtherBoot, Since::Unknown] {
        assert!(!said(&whole[..whole.len() - 1], since).contains(all), "{since:?}");
    }
    assert!(said(&whole, Since::OtherBoot).contains("the last acknowledged data may be missing"));
    assert!(!said(&whole, Since::Unknown).contains(all));
}

#[test]
fn a_log_that_pretends_long_frames_everywhere_is_given_up_in_time() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    log_of_every_kind(&path);
    let mut bytes = fs::read(&path).unwrap();
    let pretended = 3_u32 << 20;
    for _ in 0..500_000 {
        bytes.extend_from_slice(&pretended.to_le_bytes());
        bytes.extend_from_slice(&[1, 2, 3, 4, kind::OTLP_PROTOBUF]);
    }
    fs::write(&path, &bytes).unwrap();
    // Every checksum would be 1.5 TB.
    let mut all = frames(&path);
    assert!(all.len() < 20);
    let Some(Frame::Loss(loss)) = all.pop() else { panic!() };
    assert_eq!(loss.kind, LossKind::WalTorn);
    let Some(Frame::Loss(loss)) = all.pop() else { panic!() };
    assert!(loss.detail.contains("stopped searching"), "{loss:?}");
}

#[test]
fn zeros_behind_the_last_frame_are_torn() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (mut sent, begins) = log_of_every_kind(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes.resize(bytes.len() + 10_000, 0);
    fs::write(&path, &bytes).unwrap();
    sent.push(torn(*begins.last().unwrap(), 10_000));
    assert_eq!(frames(&path), sent);
}

#[test]
fn a_log_of_the_future_is_refused_by_its_version() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    log_of_every_kind(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 9;
    fs::write(&path, &bytes).unwrap();
    let error = Replay::open(&path, &unknown(), AtEnd::Sealing).unwrap_err();
    let expected = format!(
        "read the write-ahead log {}: it has format 9, and this longpole reads up to 8; a newer longpole can read it",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    fs::write(&path, b"SQLite format 3\0").unwrap();
    assert!(matches!(Replay::open(&path, &unknown(), AtEnd::Sealing), Err(WalError::NotALog { .. })));
}

#[test]
fn a_payload_beyond_the_limit_is_refused() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let wal = WalWriter::create(&path, &testing::begun(), SyncPolicy::None).unwrap();
    // Untouched zeros take no memory.
    let error = wal.append_otlp_protobuf(None, &vec![0; FRAME_BYTES_MAX]).unwrap_err();
    assert!(matches!(error, WalError::TooLarge { bytes, .. } if bytes == FRAME_BYTES_MAX + 4), "{error}");
    assert_eq!(frames(&path), [Frame::Run(testing::begun())]);
}

#[test]
fn a_log_that_has_reached_its_limit_takes_last_words_only() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let wal = WalWriter::create(&path, &testing::begun(), SyncPolicy::None).unwrap();
    wal.set_limit(10_000);
    assert_eq!(wal.reached_limit(), None);
    let refused = (0..).find_map(|_| wal.append_otlp_protobuf(None, &[0; 900]).err()).unwrap();
    assert!(matches!(refused, WalError::Full { limit: 10_000, .. }), "{refused}");
    assert!((9_000..=10_000).contains(&fs::metadata(&path).unwrap().len()));
    assert_eq!(wal.reached_limit(), Some(10_000));
    wal.begin_end();
    assert!(wal.append_otlp_protobuf(None, &[0; 900]).is_err());
    let loss = Loss::new(LossKind::NotWritten, 1, "x".repeat(1_000));
    wal.append_loss(&loss).unwrap();
    assert_eq!(frames(&path).last(), Some(&Frame::Loss(loss)));
}

#[test]
fn many_threads_append_whole_frames() {
    for sync in [SyncPolicy::None, SyncPolicy::Batch] {
        let directory = Directory::new();
        let path = directory.path().join("log");
        let wal = WalWriter::create(&path, &testing::begun(), sync).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let wal = wal.clone();
                scope.spawn(move || {
                    for number in 0..25 {
                        wal.append_otlp_protobuf(None, &vec![thread; number * 100]).unwrap();
                    }
                });
            }
        });
        let mut lengths = [0; 4];
        for frame in frames(&path).into_iter().skip(1) {
            let Frame::OtlpProtobuf { body, .. } = frame else { panic!("{frame:?}") };
            if let Some(&thread) = body.first() {
                assert_eq!(body, vec![thread; body.len()]);
                lengths[usize::from(thread)] += body.len();
            }
        }
        assert_eq!(lengths, [30_000; 4]);
    }
}

/// What three appends to a pipe, which takes what is written and cannot be synced, came to, and what they wrote.
fn append_to_a_pipe(sync: SyncPolicy) -> (Vec<Result<(), WalError>>, usize) {
    let (mut reads, writes) = std::io::pipe().unwrap();
    let file = fs::File::from(std::os::fd::OwnedFd::from(writes));
    let wal = WalWriter::of_file(Path::new("/a/pipe"), file, sync, 0);
    let appended = (0..3).map(|_| wal.append_loss(&Loss::new(LossKind::SamplesLost, 1, ""))).collect();
    drop(wal);
    let mut written = Vec::new();
    std::io::Read::read_to_end(&mut reads, &mut written).unwrap();
    (appended, written.len())
}

#[test]
fn nothing_is_acknowledged_behind_a_failed_sync() {
    let (appended, whole) = append_to_a_pipe(SyncPolicy::None);
    assert!(appended.iter().all(Result::is_ok), "{appended:?}");
    // Another sync might succeed, and what the first one lost would be missing all the same.
    let (appended, written) = append_to_a_pipe(SyncPolicy::Batch);
    assert!(matches!(appended[0], Err(WalError::Io { action: "sync", .. })), "{appended:?}");
    assert!(appended[1..].iter().all(|it| matches!(it, Err(WalError::NotSynced { .. }))), "{appended:?}");
    assert_eq!(written, whole / 3, "a frame that cannot be acknowledged was written");
}

#[test]
fn a_device_that_is_full_is_an_error_and_what_cannot_be_undone_ends_the_log() {
    let path = Path::new("/dev/full");
    let Ok(file) = fs::OpenOptions::new().append(true).open(path) else { return };
    let wal = WalWriter::of_file(path, file, SyncPolicy::None, 0);
    let error = wal.append_loss(&Loss::new(LossKind::SamplesLost, 1, "")).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("append to the write-ahead log /dev/full", ErrorKind::Environment));
    // A device cannot be cut back to the last whole frame.
    assert!(matches!(wal.append_loss(&Loss::new(LossKind::SamplesLost, 1, "")), Err(WalError::Broken { .. })));
    let mut sink = wal.observation_sink();
    sink.observe(exited(1)).unwrap();
    assert!(sink.flush().unwrap_err().0.contains("broken frame"));
    assert_eq!(wal.lost(), 0, "it may still be written");
    drop(sink);
    assert_eq!(wal.lost(), 1);
}

const ROLE_DIRECTORY: &str = "LONGPOLE_TEST_FULL_DISK";

/// The second role of this test binary: appends under the file size limit that the test below sets.
#[test]
#[ignore = "a role of the test below"]
fn role_append_until_the_disk_is_full() {
    let Some(directory) = std::env::var_os(ROLE_DIRECTORY) else { return };
    let path = Path::new(&directory).join("log");
    let wal = WalWriter::create(&path, &testing::begun(), SyncPolicy::None).unwrap();
    let mut sink = wal.observation_sink();
    let mut kept = 0;
    let refused = loop {
        match wal.append_otlp_protobuf(None, &[kept; 900]) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, WalError::Io { action: "append to", .. }), "{refused:?}");
    // The frame that was written in part is gone, so that a smaller one finds its place.
    wal.append_otlp_protobuf(None, b"small").unwrap();
    // Observations wait while there is no room, up to a limit.
    let named = || Observation::ThreadNamed { pid: 1, tid: 1, name: "x".repeat(1000) };
    let mut waiting = 0;
    while sink.observe(named()).is_ok() {
        waiting += 1;
    }
    assert!((WAITING_BYTES_MAX / 1100..=WAITING_BYTES_MAX / 1000 + 1).contains(&waiting), "{waiting}");
    assert!(sink.observe(named()).is_err() && sink.flush().is_err() && sink.observe(named()).is_err());
    assert_eq!(decode_all::<Observation>(&sink.waiting).unwrap().len(), waiting);
    let bodies: Vec<Frame> = frames(&path).into_iter().skip(1).collect();
    assert_eq!(bodies.len(), usize::from(kept) + 1);
    assert_eq!(bodies.last(), Some(&Frame::OtlpProtobuf { peer_pid: None, body: b"small".to_vec() }));
    fs::write(Path::new(&directory).join("done"), "").unwrap();
}

#[test]
fn a_full_disk_refuses_a_frame_and_tears_nothing() {
    let directory = Directory::new();
    // 16 blocks of 512 bytes; ignoring SIGXFSZ makes the kernel write what fits, then answer EFBIG, as a full disk does.
    let script = "ulimit -f 16 && trap '' XFSZ && exec \"$0\" --exact wal::tests::role_append_until_the_disk_is_full --ignored";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE_DIRECTORY, directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(directory.path().join("done").exists());
}

proptest! {
    #[test]
    fn observations_replay_equal_however_they_are_split(
        sent in prop::collection::vec(testing::observation(), 0..60),
        flushes in prop::collection::vec(any::<bool>(), 60),
    ) {
        let directory = Directory::new();
        let path = directory.path().join("log");
        let wal = WalWriter::create(&path, &testing::begun(), SyncPolicy::None).unwrap();
        let mut sink = wal.observation_sink();
        for (observation, flush) in sent.iter().zip(flushes) {
            sink.observe(observation.clone()).unwrap();
            if flush {
                sink.flush().unwrap();
            }
        }
        sink.flush().unwrap();
        let mut replayed = Vec::new();
        for frame in frames(&path).into_iter().skip(1) {
            let Frame::Observations(batch) = frame else { panic!("{frame:?}") };
            replayed.extend(batch);
        }
        prop_assert_eq!(replayed, sent);
    }

    #[test]
    fn arbitrary_bytes_are_replayed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let directory = Directory::new();
        let path = directory.path().join("log");
        let mut log = MAGIC.to_vec();
        log.extend_from_slice(&WAL_VERSION.to_le_bytes());
        log.extend_from_slice(&bytes);
        fs::write(&path, log).unwrap();
        let _ = Replay::open(&path, &unknown(), AtEnd::Sealing).unwrap().count();
    }
}

/// What the worked example of the documentation holds.
fn example() -> (Run, Vec<Observation>) {
    let run = Run {
        command: vec!["true".into()],
        working_directory: "/src".into(),
        host: "box".into(),
        version: "0.1.0".into(),
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(),
        root_span_id: "00f067aa0ba902b7".parse().unwrap(),
        start: Timestamp(1_000),
        mode: CaptureMode::User { why_not_kernel: String::new() },
        ..testing::begun()
    };
    let ended = Observation::RunEnded { end: Timestamp(2_000), exit: Exit::Code(0), cpu_nanos: Some(300) };
    (run, vec![Observation::ProcessStarted { pid: 4711, parent_pid: None, time: Monotonic(5_000) }, ended])
}

#[test]
fn the_worked_example_of_the_documentation_is_what_is_written() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (run, observations) = example();
    let wal = WalWriter::create(&path, &run, SyncPolicy::None).unwrap();
    wal.append_otlp_protobuf(Some(4711), b"\x0a\x00").unwrap();
    let mut sink = wal.observation_sink();
    for observation in observations {
        sink.observe(observation).unwrap();
    }
    sink.flush().unwrap();

    let page = include_str!("../../../../docs/formats/recording.md");
    let block = page.split("```text\n00000000").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let block = format!("00000000{block}");
    // Each line: offset, two spaces, the bytes in hex, two spaces, what they mean.
    let documented: Vec<u8> = block
        .lines()
        .flat_map(|line| line.split("  ").nth(1).unwrap_or_default().split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()))
        .collect();
    assert_eq!(fs::read(&path).unwrap(), documented);
    for line in block.lines() {
        let offset = usize::from_str_radix(&line[..8], 16).unwrap();
        let shown = line.split("  ").nth(1).unwrap();
        assert!(offset + shown.split(' ').count() <= documented.len(), "{line}");
        assert_eq!(u8::from_str_radix(&shown[..2], 16).unwrap(), documented[offset], "{line}");
    }
}
