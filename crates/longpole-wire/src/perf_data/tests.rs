use std::io::Cursor;

use super::*;

const FRAME_POINTERS: &[u8] = include_bytes!("../../../../fixtures/perf/frame-pointers.data");
const DWARF: &[u8] = include_bytes!("../../../../fixtures/perf/dwarf.data");
const PIPE: &[u8] = include_bytes!("../../../../fixtures/perf/pipe.data");
const ZSTD: &[u8] = include_bytes!("../../../../fixtures/perf/zstd.data");
const EVENTS: &[u8] = include_bytes!("../../../../fixtures/perf/events.data");

/// What is in a file, counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    samples: Vec<u64>,
    maps: u64,
    execs: u64,
    forks: u64,
    exits: u64,
    switches: u64,
}

fn open(bytes: &[u8]) -> Result<PerfData<Cursor<&[u8]>>, FileError> {
    PerfData::open(Cursor::new(bytes), &Limits::default())
}

fn count(data: &mut PerfData<Cursor<&[u8]>>) -> Result<Counts, FileError> {
    let mut counts = Counts { samples: vec![0; data.events.len()], ..Counts::default() };
    let mut last = 0;
    while let Some(record) = data.next_record()? {
        assert!(record.time >= last);
        last = record.time;
        match record.body {
            Body::Sample(sample) => counts.samples[sample.event] += 1,
            Body::Map { .. } => counts.maps += 1,
            Body::Comm { exec: true, .. } => counts.execs += 1,
            Body::Fork { .. } => counts.forks += 1,
            Body::Exit { .. } => counts.exits += 1,
            Body::SwitchIn | Body::SwitchOut { .. } => counts.switches += 1,
            _ => {}
        }
    }
    Ok(counts)
}

#[test]
fn a_file_says_what_was_recorded_where_and_how() {
    let mut data = open(FRAME_POINTERS).unwrap();
    assert_eq!(data.events.len(), 1);
    let event = &data.events[0];
    assert_eq!((event.kind, event.period, event.is_monotonic), (EventKind::CpuTime, Period::Frequency(499), true));
    assert!(event.name.starts_with("cpu-clock"), "{event:?}");
    let features = &data.features;
    assert_eq!((&features.machine[..], features.cpus, features.command.len()), ("x86_64", 2, 13));
    assert_eq!(features.command[10..], ["--", "./burn", "30000000"]);
    assert!(features.clock.is_some_and(|(unix, monotonic)| unix > monotonic));
    let burn = features.build_ids.iter().find(|known| known.path == "/tmp/fix/burn").unwrap();
    assert_eq!(burn.build_id.len(), 20);
    let counts = count(&mut data).unwrap();
    assert_eq!((&counts.samples[..], counts.execs, counts.forks, counts.exits), (&[57][..], 1, 1, 2));
    assert!(data.fault.is_none() && data.first_time < data.last_time);
}

#[test]
fn stacks_that_were_copied_come_with_their_registers() {
    let mut data = open(DWARF).unwrap();
    let mut samples = 0;
    while let Some(record) = data.next_record().unwrap() {
        let Body::Sample(sample) = record.body else { continue };
        let registers = sample.registers.unwrap();
        assert!(!registers.is_32_bit && !sample.stack.is_empty() && sample.stack.len() <= 1024);
        // 7 and 8 are the stack pointer and the instruction pointer of x86-64.
        assert!(registers.get(7).unwrap() > registers.get(8).unwrap());
        assert_eq!(registers.get(63), None);
        samples += 1;
    }
    assert_eq!((samples, data.events[0].stack_bytes), (22, 1024));
}

#[test]
fn a_stream_and_compressed_records_are_read_as_well() {
    let mut data = open(PIPE).unwrap();
    assert!(data.features.command.contains(&"./burn".to_owned()), "{:?}", data.features);
    assert!(data.events[0].name.starts_with("cpu-clock"));
    let counts = count(&mut data).unwrap();
    assert_eq!((&counts.samples[..], counts.execs), (&[37][..], 1));
    assert!(counts.switches > 4, "{counts:?}");
    let mut data = open(ZSTD).unwrap();
    let counts = count(&mut data).unwrap();
    assert_eq!((&counts.samples[..], counts.execs), (&[36][..], 1));
    assert!(data.fault.is_none(), "{:?}", data.fault);
}

#[test]
fn samples_of_several_events_are_distinguished() {
    let mut data = open(EVENTS).unwrap();
    let kinds: Vec<EventKind> = data.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::CpuTime, EventKind::Other, EventKind::Other]);
    let seen: Vec<u64> = data.events.iter().map(|event| event.samples).collect();
    assert_eq!(count(&mut data).unwrap().samples, seen);
    assert_eq!(seen[0], 13);
}

/// A stream with one event and one sample of it: `attr` is the struct of the event, `body` the sample without its header.
fn stream(attr: &[u64], body: &[u64]) -> Vec<u8> {
    let record = |kind: u32, misc: u16, words: &[u64]| {
        let size = 8 + 8 * words.len() as u16;
        let mut bytes = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes()].concat();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    };
    [&MAGIC[..], &16u64.to_le_bytes(), &record(64, 0, attr), &record(9, 2, body)].concat()
}

#[test]
fn calls_that_the_processor_kept_are_read_and_other_branches_passed_over() {
    // No machine of ours has the counters for it: type and size, config, period, sample_type, read_format, flags, …, branch_sample_type.
    let (ip_tid_time, branch_stack, registers) = (0b111, 1 << 11, 1 << 12);
    let attr = |branches: u64| [88 << 32 | 1, 0, 1_000, ip_tid_time | branch_stack | registers, 0, 0, 0, 0, 0, branches, 1];
    // An index, then two branches, then their counters.
    let (index, counters, calls, user) = (1 << 17, 1 << 19, 1 << 11, 1);
    let body = [0x1010, 7 << 32 | 7, 55, 2, 9, 0x2020, 0x1000, 0, 0x3030, 0x2000, 0, 1, 1, 2, 0xabc];
    let first = |bytes: &[u8]| {
        let mut data = PerfData::open(Cursor::new(bytes), &Limits::default()).unwrap();
        match data.next_record().unwrap().unwrap().body {
            Body::Sample(sample) => (sample.ip, sample.calls.entries().collect::<Vec<_>>(), sample.registers.and_then(|it| it.get(0))),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(&stream(&attr(index | counters | calls | user), &body)), (0x1010, vec![0x2020, 0x3030], Some(0xabc)));
    assert_eq!(first(&stream(&attr(index | counters | user), &body)), (0x1010, vec![], Some(0xabc)));
    let too_short = stream(&attr(index | counters | calls | user), &body[..8]);
    assert!(PerfData::open(Cursor::new(&too_short[..]), &Limits::default()).unwrap().next_record().is_err());
}

#[test]
fn a_file_cut_anywhere_gives_what_stands_before_and_says_where_it_ends() {
    for whole in [FRAME_POINTERS, PIPE, ZSTD, EVENTS] {
        let all: u64 = count(&mut open(whole).unwrap()).unwrap().samples.iter().sum();
        let mut most = 0;
        for cut in (0..whole.len()).step_by(7) {
            let Ok(mut data) = open(&whole[..cut]) else { continue };
            let counts = count(&mut data).unwrap();
            let samples: u64 = counts.samples.iter().sum();
            assert!(samples >= most, "cut at {cut}");
            most = samples;
            match data.fault {
                Some(FileError::Broken { offset, .. }) => assert!(offset <= cut as u64, "cut at {cut}"),
                Some(error) => panic!("cut at {cut}: {error}"),
                // Between two records of a stream nobody can see a cut, nor behind all that is needed.
                None => assert!(whole == PIPE || samples == all, "cut at {cut}"),
            }
        }
        assert!(most > 10);
    }
    assert_eq!(open(&FRAME_POINTERS[..50]).unwrap_err().to_string(), "the file is cut off, at byte 50 of the perf-data file");
}

#[test]
fn a_recording_that_was_killed_is_read_to_its_end() {
    let mut bytes = FRAME_POINTERS.to_vec();
    // The size of the records.
    bytes[48..56].fill(0);
    // The features are gone with it.
    let mut data = PerfData::open(Cursor::new(&bytes[..]), &Limits::default()).unwrap();
    assert_eq!(count(&mut data).unwrap().samples, [57]);
    assert!(data.fault.unwrap().to_string().contains("record of less than") || data.features.command.is_empty());
}

#[test]
fn what_cannot_be_read_is_named() {
    let said = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    assert_eq!(
        said(&[MAGIC_SWAPPED, &[0; 96][..]].concat()),
        "written on a machine of the other byte order, at byte 0 of the perf-data file"
    );
    assert_eq!(said(b"PERFFILE........"), "not the PERFILE2 of Linux 3.0 and later, at byte 0 of the perf-data file");
    assert_eq!(said(b"PERFILE2............"), "the file is cut off, at byte 20 of the perf-data file");
    let mut bytes = FRAME_POINTERS.to_vec();
    bytes[16..24].copy_from_slice(&20u64.to_le_bytes());
    assert_eq!(said(&bytes), "a description of an event is too short, at byte 16 of the perf-data file");
    // The reader does not request a part that would not fit into memory.
    let mut bytes = FRAME_POINTERS.to_vec();
    bytes[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(said(&bytes).starts_with("too many events"), "{}", said(&bytes));
}

#[test]
fn any_damage_is_survived() {
    // One byte after the other is set to what numbers hurt most with.
    for whole in [FRAME_POINTERS, DWARF, PIPE, ZSTD, EVENTS] {
        for at in (0..whole.len()).step_by(if whole.len() > 20_000 { 37 } else { 11 }) {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] = value;
                if let Ok(mut data) = PerfData::open(Cursor::new(&bytes[..]), &Limits::default()) {
                    while let Ok(Some(record)) = data.next_record() {
                        if let Body::Sample(sample) = record.body {
                            assert!(sample.chain.entries().len() <= whole.len());
                        }
                    }
                }
            }
        }
    }
}

/// A record of perf's own, or of the kernel.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &0u16.to_le_bytes(), &(8 + body.len() as u16).to_le_bytes(), body].concat()
}

/// A stream of one event and one sample, and `records` empty records of a kind in zstd: a block that is one byte or eight again and again
/// would be shorter, and needs more of the format than a test should know.
fn compressed(kind: u32, records: usize) -> Vec<u8> {
    let empty = record(kind, &[]).repeat(records);
    let zstd = ruzstd::encoding::compress_to_vec(&empty[..], ruzstd::encoding::CompressionLevel::Fastest);
    let mut bytes = stream(&[88 << 32 | 1, 0, 1_000, 0b111, 0, 0, 0, 0, 0, 0, 0], &[0x1010, 7 << 32 | 7, 55]);
    zstd.chunks(60_000).for_each(|part| bytes.extend(record(81, part)));
    bytes
}

const THROTTLE: u32 = 5;

#[test]
fn compressed_records_take_from_the_budget_of_who_unpacked_the_file() {
    let bytes = compressed(THROTTLE, 50_000);
    let open = |document_bytes_max| PerfData::open(Cursor::new(&bytes[..]), &Limits { document_bytes_max, ..Limits::default() }).unwrap();
    let all = open(1 << 20);
    assert_eq!((all.entries.len(), all.fault.is_none()), (50_001, true));
    // The reader does not read beyond its limit.
    let none = open(300_000);
    assert_eq!((none.entries.len(), none.inflated.len()), (1, 0));
    assert!(none.fault.unwrap().to_string().starts_with("compressed records of more than 100 times their size"));
}

#[test]
fn empty_records_in_a_small_file_are_counted_and_what_cannot_be_decoded_ends_them() {
    let bytes = compressed(THROTTLE, 2_000_000);
    let data = open(&bytes).unwrap();
    assert_eq!(data.entries.len(), (1 << 20) + 1);
    assert!(data.fault.unwrap().to_string().starts_with("more compressed records than bytes of them"));
    assert!(std::mem::size_of::<Entry>() <= 32);
    // With times and threads at the end of each, an empty one is cut off.
    let identified = 1 << 18;
    let attr = [88 << 32 | 1, 0, 1_000, 0b111, 0, identified, 0, 0, 0, 0, 0];
    let bytes = [stream(&attr, &[0x1010, 7 << 32 | 7, 55]), record(THROTTLE, &[]), record(THROTTLE, &[0; 16])].concat();
    let data = open(&bytes).unwrap();
    assert_eq!(data.entries.len(), 1);
    assert!(data.fault.unwrap().to_string().starts_with("a record is too short"));
}

#[test]
fn names_of_events_are_looked_up_and_the_first_event_of_an_id_has_it() {
    let event = |id: u64| Event { ids: vec![id, 99], ..open(FRAME_POINTERS).unwrap().events.remove(0) };
    let mut events = vec![event(1), event(2), event(2)];
    let named = |name: &str, ids: &[u64]| (name.to_owned(), ids.to_vec());
    let mut features =
        Features { event_names: vec![named("b", &[2]), named("both", &[99, 2, 1]), named("none", &[3])], ..Features::default() };
    features.name(&mut events);
    let names: Vec<&str> = events.iter().map(|event| &event.name[..]).collect();
    assert_eq!((names[0], names[1]), ("both", "b"));
    assert!(names[2].starts_with("cpu-clock"));
}
