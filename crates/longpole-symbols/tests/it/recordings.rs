//! A whole recording.

use longpole_model::address::{AbsAddr, VirtOffset};
use longpole_model::id::{SpanId, TraceId};
use longpole_model::loss::LossKind;
use longpole_model::recording::Recording;
use longpole_model::run::{CaptureMode, Run};
use longpole_model::stack::{Location, LocationId, LocationKind, Mapping, MappingId};
use longpole_model::time::{Clock, Timestamp};
use longpole_symbols::Symbolizer;

use crate::binaries::Shelf;

#[test]
fn every_location_gets_frames_and_every_unreadable_binary_is_a_loss() {
    let mapping = |id, path: &str| Mapping { id: MappingId(id), path: path.into(), build_id: Vec::new() };
    let code = |mapping, address| LocationKind::Code { mapping: MappingId(mapping), address: VirtOffset(address) };
    let kinds = [
        code(0, 0x40_0123),
        code(1, 0x10),
        LocationKind::Unmapped { address: AbsAddr(0x7f00_0000_1000) },
        LocationKind::Cut { reason: "stack deeper than the 16 KiB that were copied".into() },
        code(1, 0x20),
        code(2, 0x30),
        // A mapping the recording does not have.
        code(9, 0x40),
    ];
    let locations = kinds.into_iter().zip(0..).map(|(kind, id)| Location { id: LocationId(id), kind, frames: Vec::new() }).collect();
    let mut recording = Recording {
        run: Run {
            command: vec!["hash".into()],
            working_directory: String::new(),
            host: String::new(),
            cpus: 1,
            version: String::new(),
            trace_id: TraceId::new([1; 16]).unwrap(),
            root_span_id: SpanId::new([1; 8]).unwrap(),
            root_pid: None,
            start: Timestamp(0),
            end: None,
            exit: None,
            rate_hz: 0,
            mode: CaptureMode::Off,
            cpu_nanos: None,
            usage: None,
            recorder_cost: None,
        },
        clock: Clock::default(),
        spans: Vec::new(),
        processes: Vec::new(),
        threads: Vec::new(),
        cpu_slices: Vec::new(),
        current_spans: Vec::new(),
        process_usage: Vec::new(),
        samples: Vec::new(),
        sample_links: Vec::new(),
        waits: Vec::new(),
        wait_links: Vec::new(),
        stacks: Vec::new(),
        locations,
        mappings: vec![mapping(0, "/opt/hash"), mapping(1, "/opt/gone.so"), mapping(2, "/opt/text")],
        losses: Vec::new(),
    };
    let files = Shelf::default().with("/opt/hash", "hash-dwarf5").with("/opt/text", "README.md");
    let losses = Symbolizer::new(Box::new(files)).fill(&mut recording);

    let functions: Vec<Vec<&str>> =
        recording.locations.iter().map(|location| location.frames.iter().map(|frame| &frame.function[..]).collect()).collect();
    assert_eq!(
        functions,
        [
            vec!["rotate", "mix", "hash_block"],
            vec!["gone.so+0x10"],
            vec!["[unmapped 0x7f0000001000]"],
            vec!["[stack deeper than the 16 KiB that were copied]"],
            vec!["gone.so+0x20"],
            vec!["text+0x30"],
            vec!["[unknown]+0x40"],
        ]
    );
    assert_eq!(recording.locations[2].frames[0].reason.as_deref(), Some("outside every mapped file"));
    let losses: Vec<_> = losses.iter().map(|loss| (loss.kind, loss.count, &loss.detail[..])).collect();
    assert_eq!(
        losses,
        [
            (LossKind::SymbolsUnreadable, 1, "file missing: /opt/gone.so"),
            (LossKind::SymbolsUnreadable, 1, "not an elf file: /opt/text"),
            (LossKind::SymbolsUnreadable, 1, "not a file: "),
        ]
    );
}
