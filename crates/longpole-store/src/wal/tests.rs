use std::fs;
use std::process::Command;

use longpole_model::sink::ObservationSink;
use longpole_model::time::Monotonic;
use longpole_model::{CaptureMode, Exit, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::testing::{self, Directory};

fn frames(path: &Path) -> Vec<Frame> {
    Replay::open(path, false, None).unwrap().map(Result::unwrap).collect()
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
    let frames = vec![
        Frame::Run(testing::begun()),
        Frame::OtlpProtobuf { peer_pid: Some(41), body: b"protobuf".to_vec() },
        Frame::OtlpJson { peer_pid: None, body: b"{}".to_vec() },
        Frame::Observations(vec![exited(7), exited(8)]),
        Frame::Loss(loss),
    ];
    (frames, begins)
}

#[test]
fn a_log_replays_what_was_appended_in_order() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, _) = log_of_every_kind(&path);
    assert_eq!(frames(&path), sent);
}

#[test]
fn a_log_cut_anywhere_replays_its_whole_frames_and_says_what_is_torn() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, begins) = log_of_every_kind(&path);
    let whole = fs::read(&path).unwrap();
    for length in FILE_HEADER_BYTES..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let length = length as u64;
        let kept = begins.iter().filter(|begin| **begin <= length).count() - 1;
        let mut expected = sent[..kept].to_vec();
        if begins[kept] != length {
            expected.push(torn(begins[kept], length - begins[kept]));
        }
        assert_eq!(frames(&path), expected, "cut at {length}");
        let living: Vec<_> = Replay::open(&path, true, None).unwrap().map(Result::unwrap).collect();
        assert_eq!(living, sent[..kept], "a frame under way is not torn; cut at {length}");
    }
    for length in 0..FILE_HEADER_BYTES {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(Replay::open(&path, false, None), Err(WalError::NotALog { .. })), "cut at {length}");
    }
}

#[test]
fn a_damaged_byte_is_torn_in_the_last_frame_and_refused_with_its_offset_before() {
    let directory = Directory::new();
    let path = directory.path().join("log");
    let (sent, begins) = log_of_every_kind(&path);
    let whole = fs::read(&path).unwrap();
    for frame in 0..sent.len() {
        let (begin, end) = (begins[frame], begins[frame + 1]);
        // Checksum, kind, first and last byte of the payload; a damaged length is another story.
        for at in [begin + 4, begin + 8, begin + 9, end - 1] {
            let mut bytes = whole.clone();
            bytes[at as usize] ^= 0x40;
            fs::write(&path, &bytes).unwrap();
            let mut replay = Replay::open(&path, false, None).unwrap();
            let before: Vec<Frame> = replay.by_ref().take(frame).map(Result::unwrap).collect();
            assert_eq!(before, sent[..frame]);
            match replay.next() {
                Some(Ok(found)) if frame == sent.len() - 1 => assert_eq!(found, torn(begin, end - begin)),
                Some(Err(WalError::Damaged { offset, .. })) => assert_eq!(offset, begin),
                other => panic!("byte {at} of frame {frame}: {other:?}"),
            }
            assert!(replay.next().is_none(), "nothing behind it is trusted");
        }
    }
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
    let error = Replay::open(&path, false, None).unwrap_err();
    let expected = format!(
        "read the write-ahead log {}: it has format 9, and this longpole reads up to 6; a newer longpole can read it",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    fs::write(&path, b"SQLite format 3\0").unwrap();
    assert!(matches!(Replay::open(&path, false, None), Err(WalError::NotALog { .. })));
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

#[test]
fn a_device_that_is_full_is_an_error_and_what_cannot_be_undone_ends_the_log() {
    let path = PathBuf::from("/dev/full");
    let Ok(file) = OpenOptions::new().append(true).open(&path) else { return };
    let tail = Mutex::new(Tail { end: 0, broken: false });
    let shared = Shared { path, file, sync: SyncPolicy::None, tail, synced: Mutex::new(0), lost: AtomicU64::new(0) };
    let wal = WalWriter { shared: Arc::new(shared) };
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
    assert_eq!(codec::observations(&sink.waiting).unwrap().len(), waiting);
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
        let _ = Replay::open(&path, false, None).unwrap().count();
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
