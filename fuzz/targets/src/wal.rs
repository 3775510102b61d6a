//! What must hold for any bytes of a log.

use std::path::{Path, PathBuf};

use longpole_model::id::{SpanId, TraceId};
use longpole_model::run::{CaptureMode, Run};
use longpole_model::time::Timestamp;
use longpole_store::{Assembler, Frame, RecordingName, Store};

/// A recording whose recorder died, and whose log is ours to write.
pub(crate) struct Log {
    folder: PathBuf,
    store: Store,
    name: RecordingName,
    file: PathBuf,
}

impl Log {
    /// One in a new folder inside this one.
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = folder.join(format!("log-{}", std::process::id()));
        let store = Store::open(&folder).unwrap();
        let run = Run {
            command: vec!["true".into()],
            working_directory: String::new(),
            host: String::new(),
            cpus: 1,
            version: String::new(),
            trace_id: TraceId::new([1; 16]).unwrap(),
            root_span_id: SpanId::new([1; 8]).unwrap(),
            root_pid: Some(1),
            start: Timestamp(0),
            end: None,
            exit: None,
            rate_hz: 999,
            mode: CaptureMode::User { why_not_kernel: String::new() },
            cpu_nanos: None,
            usage: None,
            recorder_cost: None,
        };
        let writer = store.create(&run).unwrap();
        let (name, file) = (writer.name(), writer.directory().join("wal/000001.wal"));
        Log { folder, store, name, file }
    }

    /// A log ends, an error is its end, and whatever it said can be put together.
    ///
    /// The first byte says what the others are: the file as it is, or, because no fuzzer guesses checksums, frames whose
    /// lengths and checksums are made here.
    pub(crate) fn wal(&self, bytes: &[u8]) {
        let Some((kind, rest)) = bytes.split_first() else { return };
        let file = if kind % 2 == 0 { rest.to_vec() } else { framed(rest) };
        std::fs::write(&self.file, &file).unwrap();
        let Ok(replay) = self.store.recording(self.name).unwrap().replay() else { return };
        let mut assembler = None;
        let mut frames = 0;
        for frame in replay {
            frames += 1;
            // An empty file still yields the run and its losses.
            assert!(frames <= file.len() + 6, "more frames than bytes");
            match (frame, &mut assembler) {
                (Ok(Frame::Run(run)), _) => assembler = Some(Assembler::new(run)),
                (Ok(Frame::Observations(observations)), Some(assembler)) => {
                    observations.into_iter().for_each(|observation| assembler.observe(observation));
                }
                (Ok(Frame::Loss(loss)), Some(assembler)) => assembler.loss(loss),
                (Ok(_), _) => {}
                (Err(_), _) => return,
            }
        }
        let Some(recording) = assembler.map(Assembler::finish) else { return };
        for (at, stack) in recording.stacks.iter().enumerate() {
            assert_eq!(stack.id.0 as usize, at);
            assert!(stack.locations.iter().all(|location| (location.0 as usize) < recording.locations.len()));
        }
        assert!(recording.samples.iter().all(|sample| (sample.stack.0 as usize) < recording.stacks.len()));
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // What could not be removed is in the tests' own folder for leftovers.
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// `length u16, kind u8, payload` becomes a frame.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut file = b"LPOLEWAL\x01\0\0\0".to_vec();
    while let Some(([low, high, kind], more)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
        let (payload, after) = more.split_at(length);
        rest = after;
        file.extend_from_slice(&(length as u32).to_le_bytes());
        file.extend_from_slice(&crc32c::crc32c_append(crc32c::crc32c(&[*kind]), payload).to_le_bytes());
        file.push(*kind);
        file.extend_from_slice(payload);
    }
    file
}
