//! A recording with hostile numbers in it.

use longpole_model::{Clock, ClockAnchor, IoBytes, Monotonic, ProcessMemory, ProcessUsage, Recording, RunUsage, Timestamp};
use longpole_testing::random::Random;

use crate::mutate::hostile;

/// The same recording with some of its numbers changed.
pub(crate) fn changed(recording: &Recording, random: &mut Random) -> Recording {
    let mut recording = recording.clone();
    if random.one_in(4) {
        add_usage(&mut recording, random);
    }
    for _ in 0..=random.below(5) {
        change(&mut recording, random);
    }
    recording
}

fn unix(at: &mut Timestamp, random: &mut Random) {
    *at = Timestamp(hostile(random, at.0.cast_unsigned()).cast_signed());
}

fn monotonic(at: &mut Monotonic, random: &mut Random) {
    *at = Monotonic(hostile(random, at.0));
}

fn one<'t, T>(table: &'t mut [T], random: &mut Random) -> Option<&'t mut T> {
    let place = random.below(table.len());
    table.get_mut(place)
}

fn change(recording: &mut Recording, random: &mut Random) {
    let is_first = random.one_in(2);
    match random.below(11) {
        0 => {
            let run = &mut recording.run;
            match random.below(4) {
                0 => unix(&mut run.start, random),
                1 => run.end.iter_mut().for_each(|end| unix(end, random)),
                2 => run.rate_hz = hostile(random, u64::from(run.rate_hz)) as u32,
                _ => run.cpu_nanos = Some(hostile(random, 1)),
            }
        }
        1 | 2 => one(&mut recording.spans, random)
            .into_iter()
            .for_each(|span| unix(if is_first { &mut span.start } else { &mut span.end }, random)),
        3 => one(&mut recording.processes, random).into_iter().for_each(|process| match is_first {
            true => monotonic(&mut process.start, random),
            false => process.end.iter_mut().for_each(|end| monotonic(end, random)),
        }),
        4 => one(&mut recording.threads, random).into_iter().for_each(|thread| match is_first {
            true => monotonic(&mut thread.start, random),
            false => thread.end.iter_mut().for_each(|end| monotonic(end, random)),
        }),
        5 => one(&mut recording.cpu_slices, random)
            .into_iter()
            .for_each(|slice| monotonic(if is_first { &mut slice.start } else { &mut slice.end }, random)),
        6 => one(&mut recording.current_spans, random)
            .into_iter()
            .for_each(|current| monotonic(if is_first { &mut current.start } else { &mut current.end }, random)),
        7 | 8 => one(&mut recording.samples, random).into_iter().for_each(|sample| match is_first {
            true => monotonic(&mut sample.time, random),
            false => sample.weight_nanos = hostile(random, sample.weight_nanos),
        }),
        9 => one(&mut recording.waits, random)
            .into_iter()
            .for_each(|wait| monotonic(if is_first { &mut wait.start } else { &mut wait.end }, random)),
        _ => {
            let mut anchors = recording.clock.anchors().to_vec();
            match one(&mut anchors, random).filter(|_| is_first) {
                Some(anchor) => unix(&mut anchor.unix, random),
                None => anchors.push(ClockAnchor {
                    monotonic: Monotonic(hostile(random, 1_000_000_000_000)),
                    unix: Timestamp(hostile(random, 1_700_000_000_000_000_000).cast_signed()),
                    bracket_nanos: hostile(random, 0) as u32,
                }),
            }
            recording.clock = Clock::new(anchors);
        }
    }
}

fn add_usage(recording: &mut Recording, random: &mut Random) {
    recording.run.usage = Some(RunUsage {
        peak_resident_bytes: Some(hostile(random, 1 << 20)),
        minor_faults: hostile(random, 1),
        major_faults: hostile(random, 1),
    });
    for number in 0..12u64 {
        let mut amount = || hostile(random, number << 26);
        recording.process_usage.push(ProcessUsage {
            pid: 3,
            time: Monotonic(1_000_000_000_000 + number * 1_000_000_000),
            cpu_nanos: amount(),
            memory: Some(ProcessMemory { resident_bytes: amount(), peak_resident_bytes: amount() }),
            io: Some(IoBytes { read: amount(), written: amount(), storage_read: amount(), storage_written: amount() }),
            minor_faults: 0,
            major_faults: 0,
        });
    }
}
