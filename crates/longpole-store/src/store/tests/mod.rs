use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use longpole_model::sink::ObservationSink;
use longpole_model::stack::{Location, LocationId, LocationKind};
use longpole_model::{AbsAddr, AttributeValue, Attributes, Clock, Exit, Loss, LossKind, Observation, Recording, Span, SpanId, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::archive;
use crate::error_kind::ErrorKind;
use crate::format::RECORDING_VERSION;
use crate::memory::needs::Figures;
use crate::segment::{Checksum, Checksums, Tables, recording};
use crate::span_order;
use crate::testing::{self, Directory};
use crate::wal::Frame;

mod foreign;
mod kept_token;
mod kept_view;

/// A sealed run of one span.
fn ended() -> Recording {
    let mut recording = crate::Assembler::new(testing::begun()).finish();
    recording.run.end = Some(Timestamp(5_000));
    recording.run.exit = Some(Exit::Code(3));
    recording.spans.push(testing::span(1, 1, 0, 0));
    recording
}

fn summary(recording: &Recording) -> SummaryRow {
    SummaryRow::of_recording(recording, Some(r#"{"name":"verify"}"#.into()))
}

/// What reading gives back: the same, with spans in the order of their rows.
fn as_read(mut recording: Recording) -> Recording {
    let rows = span_order::rows(&recording.spans);
    recording.spans = rows.iter().map(|row| recording.spans[row.index as usize].clone()).collect();
    recording
}

fn names(store: &Store) -> Vec<(String, &'static str)> {
    store.list().unwrap().recordings.iter().map(|it| (it.name.to_string(), it.state.as_str())).collect()
}

fn last(store: &Store) -> StoredRecording {
    store.recording(store.resolve("last").unwrap()).unwrap()
}

#[test]
fn a_recording_is_begun_sealed_and_read() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.list().unwrap().recordings.len(), 0);
    assert_eq!(store.resolve("last").unwrap_err().kind(), ErrorKind::NotFound);

    let writer = store.create(&testing::begun()).unwrap();
    assert_eq!(writer.name().to_string(), "r1");
    let living = last(&store);
    assert_eq!((living.state, living.summary.command.as_slice()), (RecordingState::Recording, &testing::begun().command[..]));
    assert_eq!(living.read().unwrap_err().to_string(), "read the recording r1: it is not sealed");
    writer.wal().append_otlp_json(None, b"{}").unwrap();
    assert_eq!(living.replay().unwrap().count(), 2);

    let recording = ended();
    writer.write_segments(&recording, &summary(&recording)).unwrap();
    drop(writer);
    let sealed = last(&store);
    assert_eq!(sealed.state, RecordingState::Sealed { recorder_killed: false });
    assert_eq!(sealed.summary, summary(&recording));
    assert_eq!(sealed.summary.wall_nanos, Some(4_000));
    assert_eq!(sealed.read().unwrap(), recording);
    let files = sealed.table_files().unwrap();
    assert!(files.iter().all(|(table, path)| path.ends_with(format!("segments/{table}.parquet")) && path.exists()));
    // The log stays until the kernel has written the segments.
    assert!(sealed.directory.join("wal").exists());
    age_log(&sealed);
    assert!(!last(&store).directory.join("wal").exists());
}

/// Makes the log as old as one whose recording the kernel has written.
fn age_log(stored: &StoredRecording) {
    let log = fs::File::options().append(true).open(layout::wal_file(&stored.directory)).unwrap();
    log.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3_600)).unwrap();
}

/// A power cut leaves files of segments without content, or none of them, beside a catalog that says sealed.
#[test]
fn segments_that_a_power_cut_took_back_are_made_again_from_the_log() {
    for damage in [|path: &Path| fs::write(path.join("spans.parquet"), b"").unwrap(), |path: &Path| fs::remove_dir_all(path).unwrap()] {
        let directory = Directory::new();
        let store = Store::open(directory.path()).unwrap();
        let writer = store.create(&testing::begun()).unwrap();
        let recording = ended();
        writer.write_segments(&recording, &summary(&recording)).unwrap();
        drop(writer);
        damage(&layout::segments(&last(&store).directory));
        age_log(&last(&store));
        let found = last(&store);
        assert!(found.has_log() && found.read().is_err());
        found.write_segments(&recording, &summary(&recording)).unwrap();
        assert_eq!(last(&store).read().unwrap(), recording);
        assert!(!last(&store).has_log());
    }
}

#[test]
fn a_run_removes_the_logs_that_runs_before_it_left() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let recording = ended();
    let run = || store.create(&testing::begun()).unwrap().write_segments(&recording, &summary(&recording)).unwrap();
    run();
    let first = directory.path().join("recordings/r1");
    let log = fs::File::options().append(true).open(layout::wal_file(&first)).unwrap();
    log.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3_600)).unwrap();
    run();
    assert!(!first.join("wal").exists() && directory.path().join("recordings/r2/wal").exists());
}

/// Opening the catalog reads its journal first, so each run would pay for those before it.
#[test]
fn the_journal_of_the_catalog_stays_short() {
    let directory = Directory::new();
    let mut longest = 0;
    for _ in 0..150 {
        let store = Store::open(directory.path()).unwrap();
        let recording = ended();
        store.create(&testing::begun()).unwrap().write_segments(&recording, &summary(&recording)).unwrap();
        drop(store);
        longest = longest.max(directory.path().join("catalog.sqlite-wal").metadata().unwrap().len());
    }
    assert!((200 << 10..800 << 10).contains(&longest), "{longest} bytes");
}

#[test]
fn a_recorder_that_died_leaves_what_it_had_acknowledged() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    writer.wal().append_otlp_protobuf(Some(7), b"spans").unwrap();
    let mut sink = writer.wal().observation_sink();
    sink.observe(Observation::ProcessExited { pid: 1, time: longpole_model::Monotonic(1) }).unwrap();
    // Not flushed: it was never acknowledged.
    drop(writer);
    drop(sink);

    let killed = last(&store);
    assert_eq!((killed.state, killed.state.as_str()), (RecordingState::Killed, "killed"));
    let frames: Vec<Frame> = killed.replay().unwrap().map(Result::unwrap).collect();
    assert!(matches!(&frames[..], [Frame::Run(_), Frame::OtlpProtobuf { .. }, Frame::Loss(Loss { kind: LossKind::RecorderKilled, .. })]));

    let recording = ended();
    killed.write_segments(&recording, &summary(&recording)).unwrap();
    let sealed = last(&store);
    assert_eq!(sealed.state, RecordingState::Sealed { recorder_killed: true });
    assert_eq!(sealed.state.as_str(), "killed");
    assert_eq!(sealed.read().unwrap(), recording);
    // Another process that looked it up before it was sealed finds the work done.
    killed.write_segments(&recording, &summary(&recording)).unwrap();
}

#[test]
fn a_recorder_that_could_not_seal_is_not_taken_for_killed() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    writer.note_ended(&StoreError::io("write", "segments")(io::Error::other("the disk\nis full")));
    drop(writer);
    let ended_early = last(&store);
    assert_eq!((ended_early.state, ended_early.state.as_str()), (RecordingState::Ended, "ended"));
    let reason = ended_early.why_ended().unwrap();
    assert_eq!((reason.text.as_str(), reason.cause.as_deref()), ("write segments: the disk is full", Some("the disk is full")));
    assert!(ended_early.replay().unwrap().all(|frame| !matches!(frame.unwrap(), Frame::Loss(_))));
    // What a power cut took it cannot have said.
    let lock = ended_early.directory.join("lock");
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replacen("boot ", "boot 0", 1)).unwrap();
    assert!(matches!(last(&store).replay().unwrap().last().unwrap().unwrap(), Frame::Loss(Loss { kind: LossKind::RecorderKilled, .. })));
    // Older recorders wrote no cause.
    fs::write(&lock, text.lines().filter(|line| !line.starts_with("cause ")).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    assert_eq!(last(&store).why_ended().unwrap().cause, None);
    fs::write(&lock, text).unwrap();
    let recording = ended();
    ended_early.write_segments(&recording, &summary(&recording)).unwrap();
    assert_eq!(last(&store).state, RecordingState::Sealed { recorder_killed: false });
    assert_eq!(last(&store).why_ended(), None);
}

#[test]
fn what_is_taken_away_from_a_recorder_is_known_when_it_seals() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    writer.wal().append_otlp_json(None, b"{}").unwrap();
    let missing = |writer: &RecordingWriter| -> Vec<String> {
        let frames: Vec<Frame> = writer.replay().unwrap().map(Result::unwrap).collect();
        frames.into_iter().filter_map(|frame| if let Frame::Loss(loss) = frame { Some(loss.detail) } else { None }).collect()
    };
    assert_eq!((writer.taken(), missing(&writer)), (vec![], vec![]));
    let log = writer.directory().join("wal/000001.wal");
    let whole = fs::metadata(&log).unwrap().len();
    File::options().write(true).open(&log).unwrap().set_len(whole - 3).unwrap();
    assert_eq!(missing(&writer)[0], "the log lost 3 bytes while longpole wrote it; their content is missing");
    assert!(writer.has_log());
    fs::remove_file(&log).unwrap();
    fs::rename(writer.directory().join("lock"), writer.directory().join("gone")).unwrap();
    fs::write(writer.directory().join("lock"), "").unwrap();
    let taken: Vec<String> = writer.taken().into_iter().map(|loss| loss.detail).collect();
    assert!(taken.len() == 2 && taken[0].contains("000001.wal was removed") && taken[1].contains("lock was removed"), "{taken:?}");
    // By its descriptor it is still read.
    assert!(!writer.has_log() && missing(&writer).len() == 2);
    fs::rename(directory.path().join("catalog.sqlite"), directory.path().join("gone")).unwrap();
    fs::copy(directory.path().join("gone"), directory.path().join("catalog.sqlite")).unwrap();
    let recording = ended();
    let error = writer.write_segments(&recording, &summary(&recording)).unwrap_err();
    assert!(matches!(error, StoreError::Taken { .. }) && writer.taken().len() == 3, "{error}");
}

#[test]
fn two_who_seal_the_same_dead_recording_do_not_disturb_each_other() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    drop(store.create(&testing::begun()).unwrap());
    let recording = ended();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = Store::open(directory.path()).unwrap();
                let found = last(&store);
                if found.state == RecordingState::Killed {
                    found.write_segments(&recording, &summary(&recording)).unwrap();
                }
                assert_eq!(last(&store).read().unwrap(), recording);
            });
        }
    });
}

#[test]
fn a_living_recording_is_neither_removed_nor_sealed_by_another() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    let found = last(&store);
    let recording = ended();
    let refused = [store.remove(writer.name()), found.write_segments(&recording, &summary(&recording))];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::Living, "{error}");
    }
    assert_eq!(names(&store), [("r1".to_owned(), "recording")]);
}

#[test]
fn names_are_resolved_and_never_given_twice() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    for _ in 0..3 {
        store.create(&testing::begun()).unwrap();
    }
    store.remove(store.resolve("r3").unwrap()).unwrap();
    store.remove(store.resolve("2").unwrap()).unwrap();
    assert_eq!(store.resolve("last").unwrap().to_string(), "r1");
    store.create(&testing::begun()).unwrap().discard().unwrap();
    let newest = store.create(&testing::begun()).unwrap();
    assert_eq!(names(&store), [("r5".to_owned(), "recording"), ("r1".to_owned(), "killed")]);
    assert!(!directory.path().join("recordings/r3").exists() && !directory.path().join("recordings/r4").exists());
    drop(newest);

    let error = store.recording(store.resolve("r3").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), format!("find the recording r3 in {}", directory.path().display()));
    let error = store.resolve("../r1").unwrap_err();
    assert_eq!(error.to_string(), "find the recording `../r1`: name one by its number (r7 or 7), last, or its tag");
}

#[test]
fn a_catalog_that_was_lost_does_not_overwrite_recordings() {
    let directory = Directory::new();
    for name in ["r1", "r9", "notes"] {
        fs::create_dir_all(directory.path().join("recordings").join(name)).unwrap();
    }
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.create(&testing::begun()).unwrap().name().to_string(), "r10");
    assert_eq!(store.create(&testing::begun()).unwrap().name().to_string(), "r11");
    assert_eq!(fs::read_dir(directory.path().join("recordings/r1")).unwrap().count(), 0);
}

#[test]
fn many_begin_at_once_in_a_store_that_is_not_there_yet() {
    let directory = Directory::new();
    let root = directory.path().join("deep/inside");
    let mut numbers: Vec<u32> = std::thread::scope(|scope| {
        let recorders: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let begin = |_| {
                        let store = Store::open(&root).unwrap();
                        let writer = store.create(&testing::begun()).unwrap();
                        // Whoever looks sees every recorder alive as long as it is.
                        assert_eq!(store.recording(writer.name()).unwrap().state, RecordingState::Recording);
                        store.list().unwrap();
                        let recording = ended();
                        writer.write_segments(&recording, &summary(&recording)).unwrap();
                        writer.name().number()
                    };
                    (0..5).map(begin).collect::<Vec<u32>>()
                })
            })
            .collect();
        recorders.into_iter().flat_map(|recorder| recorder.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=40));
    let store = Store::open(&root).unwrap();
    assert!(store.list().unwrap().recordings.iter().all(|it| it.state.as_str() == "sealed"));
}

/// Runs the first `steps` of sealing, as a recorder that dies behind them.
fn die_behind_step(steps: u32, store: &Store, recording: &Recording) {
    let writer = store.create(&testing::begun()).unwrap();
    writer.wal().append_otlp_protobuf(None, b"spans").unwrap();
    if steps >= 1 {
        seal::write_partial(writer.directory(), recording).unwrap();
    }
    if steps >= 2 {
        seal::publish(writer.directory()).unwrap();
    }
    if steps >= 3 {
        store.catalog.seal(writer.name(), RowState::Sealed, &summary(recording), &TraceIds::default()).unwrap();
    }
}

#[test]
fn a_recording_can_be_read_or_sealed_again_whatever_step_the_recorder_died_behind() {
    let first = ended();
    let second = Recording { spans: vec![testing::span(2, 2, 0, 0), testing::span(2, 3, 2, 1)], ..ended() };
    for steps in 0..=3 {
        let directory = Directory::new();
        let store = Store::open(directory.path()).unwrap();
        die_behind_step(steps, &store, &first);
        let found = last(&store);
        if steps < 3 {
            assert_eq!(found.state, RecordingState::Killed, "behind step {steps}");
            assert_eq!(found.replay().unwrap().map(Result::unwrap).count(), 3, "behind step {steps}");
            found.write_segments(&second, &summary(&second)).unwrap();
            assert_eq!(last(&store).read().unwrap(), second, "behind step {steps}");
        } else {
            assert_eq!(found.read().unwrap(), first, "behind step {steps}");
            age_log(&found);
            last(&store);
        }
        let left: Vec<String> = fs::read_dir(&found.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("wal") || name.starts_with("segments"))
            .collect();
        assert_eq!(left, ["segments"], "behind step {steps}");
    }
}

#[test]
fn an_attempt_that_died_in_the_middle_of_writing_is_thrown_away() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    drop(store.create(&testing::begun()).unwrap());
    let found = last(&store);
    let partial = found.directory.join("segments.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("runs.parquet"), b"PAR1").unwrap();
    let recording = ended();
    found.write_segments(&recording, &summary(&recording)).unwrap();
    assert_eq!(last(&store).read().unwrap(), recording);
}

#[test]
fn what_the_future_wrote_is_refused_by_its_version() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    let recording = ended();
    writer.write_segments(&recording, &summary(&recording)).unwrap();
    let sealed = last(&store);
    fs::write(sealed.directory.join("format"), "longpole recording 7\n").unwrap();
    let refused = [sealed.read().map(drop), sealed.table_files().map(drop), sealed.replay().map(drop)];
    for error in refused.map(Result::unwrap_err) {
        let path = sealed.directory.display();
        let expected = format!("read the recording {path}: it has format 7, and this longpole reads up to 6; a newer longpole can read it");
        assert_eq!((error.to_string(), error.kind()), (expected, ErrorKind::Incompatible));
    }
    fs::write(sealed.directory.join("format"), "hello").unwrap();
    assert_eq!(sealed.read().unwrap_err().kind(), ErrorKind::Corrupt);

    let catalog = directory.path().join("catalog.sqlite");
    rusqlite::Connection::open(&catalog).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    let expected = "it has format 7, and this longpole reads up to 3; a newer longpole can read it";
    assert_eq!(error.to_string(), format!("read the catalog {}: {expected}", catalog.display()));
}

#[test]
fn errors_name_a_root_that_cannot_be_made_or_holds_no_catalog() {
    let directory = Directory::new();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(file.join("root")).unwrap_err();
    assert_eq!(error.to_string(), format!("create {}", file.join("root/recordings").display()));
    assert_eq!(error.kind(), ErrorKind::Environment);

    let catalog = directory.path().join("catalog.sqlite");
    fs::write(&catalog, "not a database, and long enough to be read: ".repeat(20)).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert_eq!(error.to_string(), format!("open the catalog {}", catalog.display()));
}

#[test]
fn damaged_segments_are_an_error_that_names_the_file() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let recording = ended();
    store.create(&testing::begun()).unwrap().write_segments(&recording, &summary(&recording)).unwrap();
    let sealed = last(&store);
    let spans = sealed.directory.join("segments/spans.parquet");
    let whole = fs::read(&spans).unwrap();

    let refused = |sealed: &StoredRecording| {
        let [read, named] = [sealed.read().map(drop), sealed.table_files().map(drop)].map(Result::unwrap_err);
        assert_eq!((read.to_string(), read.kind()), (named.to_string(), ErrorKind::Corrupt));
        read.to_string()
    };

    fs::write(&spans, &whole[..whole.len() / 2]).unwrap();
    let lengths = format!("it is damaged: it has {} bytes and was written with {}", whole.len() / 2, whole.len());
    assert_eq!(refused(&sealed), format!("make sense of {}: {lengths}", spans.display()));

    // A table of another kind, and the same table of another recording.
    fs::copy(sealed.directory.join("segments/runs.parquet"), &spans).unwrap();
    assert!(refused(&sealed).starts_with(&format!("make sense of {}: it is damaged", spans.display())));
    store.create(&testing::begun()).unwrap().write_segments(&testing_other(), &summary(&recording)).unwrap();
    fs::copy(last(&store).directory.join("segments/spans.parquet"), &spans).unwrap();
    assert!(refused(&sealed).starts_with(&format!("make sense of {}: it is damaged: its checksum is ", spans.display())));

    fs::remove_file(&spans).unwrap();
    assert_eq!(refused(&sealed), format!("make sense of {}: the table is missing", spans.display()));

    // Without the list nobody knows; and what says that the recording is too old for one is not believed.
    fs::write(&spans, &whole).unwrap();
    assert_eq!(as_read(recording), sealed.read().unwrap());
    let list = sealed.directory.join("segments/checksums");
    fs::remove_file(&list).unwrap();
    assert_eq!(refused(&sealed), format!("make sense of {}: it is missing", list.display()));
    fs::write(sealed.directory.join("format"), "longpole recording 5\n").unwrap();
    assert!(refused(&sealed).ends_with("runs.parquet: `checksums` beside it is missing"));
}

/// A recording whose spans take as many bytes as those of [`ended`].
fn testing_other() -> Recording {
    let mut recording = ended();
    recording.spans = vec![testing::span(1, 2, 0, 0)];
    recording
}

#[test]
fn a_flipped_bit_anywhere_in_a_recording_is_never_read_over() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let recording = ended();
    store.create(&testing::begun()).unwrap().write_segments(&recording, &summary(&recording)).unwrap();
    let sealed = last(&store);
    let mut flips = 0;
    for entry in fs::read_dir(sealed.directory.join("segments")).unwrap() {
        let path = entry.unwrap().path();
        // What it says is not needed to read the tables.
        if path.ends_with("memory") {
            continue;
        }
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(97) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, damaged).unwrap();
            assert_eq!(sealed.read().unwrap_err().kind(), ErrorKind::Corrupt, "byte {at} of {}", path.display());
            assert_eq!(sealed.table_files().unwrap_err().kind(), ErrorKind::Corrupt);
            flips += 1;
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(flips > 200, "{flips}");
    assert_eq!(sealed.read().unwrap(), as_read(recording));
}

#[test]
fn a_recording_that_contradicts_itself_is_not_written() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let writer = store.create(&testing::begun()).unwrap();
    let mut recording = ended();
    recording.stacks.push(longpole_model::Stack { id: longpole_model::StackId(4), locations: vec![] });
    let error = writer.write_segments(&recording, &summary(&recording)).unwrap_err();
    assert_eq!(error.to_string(), "write the recording: stacks are not numbered by their rows");
    drop(writer);
    assert_eq!(last(&store).state, RecordingState::Killed);
}

#[test]
fn files_that_are_gone_leave_a_row_that_can_be_removed() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    drop(store.create(&testing::begun()).unwrap());
    let found = last(&store);
    fs::remove_dir_all(&found.directory).unwrap();
    assert_eq!(last(&store).replay().unwrap_err().kind(), ErrorKind::Environment);
    store.remove(found.name).unwrap();
    assert!(store.list().unwrap().recordings.is_empty());
}

#[test]
fn more_rows_than_one_batch_read_back_equal() {
    let directory = Directory::new();
    let recording = Recording {
        spans: (0..5_000u32)
            .map(|number| {
                let id = |number: u32| longpole_model::SpanId::from_slice(&u64::from(number).to_be_bytes());
                Span {
                    span_id: id(number + 1).unwrap(),
                    parent_span_id: id(number / 3),
                    events: vec![longpole_model::SpanEvent::default(); (number % 3) as usize].into(),
                    ..testing::span(1, 1, 0, i64::from(number))
                }
            })
            .collect(),
        clock: Clock::default(),
        ..ended()
    };
    let sealed = sealed(directory.path(), &recording);
    assert_eq!(sealed.read().unwrap(), as_read(recording));
}

fn sealed(root: &Path, recording: &Recording) -> StoredRecording {
    let store = Store::open(root).unwrap();
    store.create(&testing::begun()).unwrap().write_segments(recording, &summary(recording)).unwrap();
    last(&store)
}

#[test]
fn names_of_functions_are_kept_once_when_they_are_read() {
    let directory = Directory::new();
    let mut recording = ended();
    let frame = |line| longpole_model::Frame { function: "x".repeat(500).into(), file: Default::default(), line, reason: None };
    let kind = LocationKind::Unmapped { address: AbsAddr(1) };
    recording.locations = (0..2).map(|id| Location { id: LocationId(id), kind: kind.clone(), frames: vec![frame(id + 1)] }).collect();
    let read = sealed(directory.path(), &recording).read().unwrap();
    assert_eq!(read.locations, recording.locations);
    let [first, second] = [0, 1].map(|at: usize| read.locations[at].frames[0].function.as_str());
    assert!(std::ptr::eq(first, second));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_reads_back_equal(recording in testing::recording()) {
        let directory = Directory::new();
        let sealed = sealed(directory.path(), &recording);
        prop_assert_eq!(&sealed.summary, &summary(&recording));
        prop_assert_eq!(&sealed.read().unwrap(), &as_read(recording));
        let figures = figures(&sealed);
        prop_assert!(figures.memory <= figures.limit);
        prop_assert_eq!(read_within(&sealed, figures.limit).unwrap(), sealed.read().unwrap());
    }
}

fn figures(sealed: &StoredRecording) -> Figures {
    recording::figures(&layout::segments(&sealed.directory), RECORDING_VERSION).unwrap().unwrap()
}

/// Reads it with no more memory than that.
fn read_within(sealed: &StoredRecording, limit: u64) -> Result<Recording, StoreError> {
    let segments = sealed.directory.join("segments");
    recording::read_tables(&Tables::of_directory(&segments, RECORDING_VERSION)?.limited(limit))
}

/// A run of this many spans with these attributes.
fn repeating(spans: u64, attributes: impl Fn() -> Attributes) -> Recording {
    let mut compact = crate::CompactSpans::default();
    for number in 1..=spans {
        let span_id = SpanId::from_slice(&number.to_be_bytes()).unwrap();
        compact.push(&Span { span_id, attributes: attributes(), ..testing::span(1, 1, 0, 0) });
    }
    Recording { spans: compact.iter().collect(), ..ended() }
}

#[test]
fn twelve_thousand_spans_with_one_large_text_are_read_and_take_its_memory_once() {
    let directory = Directory::new();
    let prompt = "You are a helpful assistant with many tools. ".repeat(1_444);
    assert_eq!(prompt.len(), 64_980);
    let recording = repeating(12_000, || {
        let mut attributes = Attributes::default();
        attributes.push("gen_ai.tool.definitions", AttributeValue::Str(prompt.as_str().into()));
        attributes
    });
    let sealed = sealed(directory.path(), &recording);
    let figures = figures(&sealed);
    let read = read_within(&sealed, figures.limit).unwrap();
    let texts: std::collections::HashSet<*const u8> = read
        .spans
        .iter()
        .map(|span| match &span.attributes.0[0].value {
            AttributeValue::Str(text) if *text == prompt => text.as_ptr(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((read.spans.len(), texts.len()), (12_000, 1));
    assert!((2 << 20..16 << 20).contains(&figures.memory), "{figures:?}");
}

#[test]
fn what_was_let_in_is_read_beyond_the_limits_of_a_file_and_a_file_of_it_is_not() {
    let directory = Directory::new();
    let recording = repeating(1_500, || {
        Attributes((0..1_500).map(|_| longpole_model::Attribute { key: "a".into(), value: AttributeValue::Str("".into()) }).collect())
    });
    let sealed = sealed(directory.path(), &recording);
    assert_eq!(sealed.read().unwrap().spans.len(), 1_500);
    assert!(sealed.memory_bytes().unwrap().unwrap() > 50 << 20);
    // The file claims as much, and is a file all the same.
    let archived = directory.path().join("r1.lpole");
    let bytes = sealed.write_archive(&mut File::create(&archived).unwrap()).unwrap();
    assert_eq!(bytes, fs::metadata(&archived).unwrap().len());
    assert!(sealed.refusal_as_file(bytes).unwrap().unwrap().starts_with("its rows take more than"));
    assert_eq!(sealed.refusal_as_file(4 << 20).unwrap(), None);
    assert_eq!(sealed.refusal_as_file((4 << 30) + 1).unwrap().unwrap(), "it has more than 4 GiB");
    let error = archive::read(&archived, File::open(&archived).unwrap()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }) && error.to_string().contains("spans.parquet: its rows take more than"), "{error}");
    // Damage of the figures is no damage of the tables: they are read within the usual limits, which are too little for these.
    let path = sealed.directory.join("segments/memory");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("limit", "limits", 1)).unwrap();
    assert!(matches!(sealed.read().unwrap_err(), StoreError::TooLarge { .. }));
    fs::remove_file(&path).unwrap();
    assert!(matches!(sealed.read().unwrap_err(), StoreError::TooLarge { .. }));
    // A recording that never had any keeps the limits from before there were figures. It is not damaged.
    let list = sealed.directory.join("segments/checksums");
    let others = fs::read_to_string(&list).unwrap();
    let mut checksums = Checksums::default();
    for name in others.lines().filter_map(|line| line.split(' ').nth(2)).filter(|name| name.ends_with(".parquet")) {
        checksums.insert(name.to_owned(), Checksum::of(&fs::read(list.with_file_name(name)).unwrap()));
    }
    fs::write(&list, checksums.print()).unwrap();
    assert_eq!(sealed.memory_bytes().unwrap(), None);
    let error = sealed.read().unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("spans.parquet: its rows take more than"), "{error}");
}

#[test]
fn a_recording_whose_figures_are_damaged_is_read_and_says_so() {
    let directory = Directory::new();
    let sealed = sealed(directory.path(), &repeating(3, Attributes::default));
    let whole = sealed.read().unwrap();
    let path = sealed.directory.join("segments/memory");
    let text = fs::read_to_string(&path).unwrap();
    let damages: [&dyn Fn(); 4] = [
        // More than it was, in a file that looks like one.
        &|| fs::write(&path, text.replacen("1\n", "1\n9", 1)).unwrap(),
        &|| fs::write(&path, "").unwrap(),
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::create_dir(&path).unwrap(),
    ];
    for damage in damages {
        damage();
        let read = sealed.read().unwrap();
        assert_eq!(read.spans, whole.spans);
        assert_eq!(sealed.memory_bytes().unwrap(), None);
        let said = |loss: &longpole_model::Loss| loss.detail.contains("its need for memory is unknown");
        assert_eq!((whole.losses.iter().filter(|loss| said(loss)).count(), read.losses.iter().filter(|loss| said(loss)).count()), (0, 1));
        // A file of it needs no figures.
        let archived = directory.path().join("r1.lpole");
        sealed.write_archive(&mut File::create(&archived).unwrap()).unwrap();
        assert_eq!(archive::read(&archived, File::open(&archived).unwrap()).unwrap().spans, whole.spans);
    }
}

#[test]
fn a_tag_names_a_recording_until_it_moves_or_goes() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let recording = ended();
    for _ in 0..2 {
        store.create(&recording.run).unwrap().write_segments(&recording, &summary(&recording)).unwrap();
    }
    let (first, second) = (RecordingName::new(1), RecordingName::new(2));
    assert_eq!(store.tag(first, "baseline").unwrap(), None);
    assert_eq!(store.resolve("baseline").unwrap(), first);
    assert_eq!(store.tag(second, "baseline").unwrap(), Some(first));
    assert_eq!(store.list().unwrap().recordings[0].tags, ["baseline"]);
    for text in ["r7", "7", "last", "", "a b", "../x", "-x", "p1", "s12", "f3", &"x".repeat(65)] {
        assert_eq!(store.tag(first, text).unwrap_err().kind(), ErrorKind::Usage, "{text}");
    }
    for text in ["p", "p01", "p1-fixed", "f3.txt", "v1.2"] {
        assert_eq!(store.tag(second, text).unwrap(), None, "{text}");
    }
    assert_eq!(store.tag(RecordingName::new(9), "x").unwrap_err().kind(), ErrorKind::NotFound);
    store.remove(second).unwrap();
    assert_eq!(store.resolve("baseline").unwrap_err().kind(), ErrorKind::Usage);
    store.tag(first, "kept").unwrap();
    assert_eq!(store.untag("kept").unwrap(), Some(first));
    assert_eq!(store.untag("kept").unwrap(), None);
}

#[test]
fn a_recording_is_found_by_its_traces_until_it_is_removed() {
    let directory = Directory::new();
    let recording = ended();
    let trace = recording.spans[0].trace_id;
    let first = sealed(directory.path(), &recording).name;
    let second = sealed(directory.path(), &recording).name;
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.with_trace(trace, 5).unwrap(), [second, first]);
    assert_eq!(store.resolve_or_trace(&trace.to_string()).unwrap(), second);
    assert!(store.traces_of(first, 5).unwrap().contains(&trace));
    store.remove(second).unwrap();
    assert_eq!(store.resolve_or_trace(&trace.to_string().to_uppercase()).unwrap(), first);
    store.remove(first).unwrap();
    assert_eq!(store.resolve_or_trace(&trace.to_string()).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_catalog_of_the_first_version_gets_what_it_lacks() {
    let directory = Directory::new();
    let recording = ended();
    sealed(directory.path(), &recording);
    let connection = rusqlite::Connection::open(directory.path().join("catalog.sqlite")).unwrap();
    connection.execute_batch("DROP TABLE traces; DROP TABLE tags; PRAGMA user_version = 1").unwrap();
    drop(connection);
    let store = Store::open(directory.path()).unwrap();
    store.tag(RecordingName::new(1), "old").unwrap();
    assert_eq!(last(&store).read().unwrap(), as_read(recording));
}
