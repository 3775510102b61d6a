//! Whose a sample or wait is: process and thread, where ids may have been used twice.

use std::collections::HashMap;

use longpole_model::{IdVec, Monotonic, Process, Recording, SampleId, Thread, WaitId};

use super::ProfileExport;
use crate::number::row;

/// A sample or a wait, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Sample(SampleId),
    Wait(WaitId),
}

/// A thread with something to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Track<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Unknown in files that do not tell.
    pub(crate) process: Option<&'a Process>,
    pub(crate) thread: Option<&'a Thread>,
    /// By time.
    pub(crate) moments: Vec<Moment>,
}

impl Track<'_> {
    /// What the process is called.
    pub(crate) fn process_name(&self) -> &str {
        self.process.map(|process| process.name.as_str()).filter(|name| !name.is_empty()).unwrap_or("process")
    }

    /// What the thread is called.
    pub(crate) fn thread_name(&self) -> &str {
        self.thread.map(|thread| thread.name.as_str()).filter(|name| !name.is_empty()).unwrap_or_else(|| self.process_name())
    }

    /// Whether it is the first thread of its process.
    pub(crate) fn is_main(&self) -> bool {
        self.pid == self.tid
    }
}

/// The tracks of a recording, processes in order of their start, the main thread of each first.
#[derive(Debug)]
pub(crate) struct Tracks<'a> {
    pub(crate) list: Vec<Track<'a>>,
    /// For each sample and wait of the recording the number of its track; of those that do not go out any number.
    of_sample: IdVec<SampleId, u32>,
    of_wait: IdVec<WaitId, u32>,
    /// Threads of the recording without a sample or wait among these.
    pub(crate) threads_without: u64,
}

impl<'a> Tracks<'a> {
    pub(crate) fn new(export: &ProfileExport<'a>) -> Self {
        let recording = export.recording;
        let known = Known::of(recording);
        let mut numbers = HashMap::new();
        let mut list: Vec<(Track<'a>, Vec<(Monotonic, Moment)>)> = Vec::new();
        let samples = export.samples.iter().map(|number| {
            let sample = &recording.samples[*number];
            (sample.pid, sample.tid, sample.time, Moment::Sample(*number))
        });
        let waits = export.waits.iter().map(|number| {
            let wait = &recording.waits[*number];
            (wait.pid, wait.tid, wait.start, Moment::Wait(*number))
        });
        for (pid, tid, time, moment) in samples.chain(waits) {
            let (process, thread) = (known.process(pid, time), known.thread(pid, tid, time));
            let number = *numbers.entry((pid, tid, process, thread)).or_insert_with(|| {
                let process = process.map(|process| &recording.processes[process]);
                let thread = thread.map(|thread| &recording.threads[thread]);
                list.push((Track { pid, tid, process, thread, moments: Vec::new() }, Vec::new()));
                list.len() - 1
            });
            list[number].1.push((time, moment));
        }
        let start = |track: &Track<'_>| track.process.map(|process| process.start);
        list.sort_by_key(|(track, _)| (start(track), track.pid, !track.is_main(), track.thread.map(|thread| thread.start), track.tid));
        let (mut of_sample, mut of_wait) = (IdVec::filled(0, recording.samples.len()), IdVec::filled(0, recording.waits.len()));
        let list: Vec<Track<'a>> = list
            .into_iter()
            .enumerate()
            .map(|(number, (track, mut moments))| {
                let number = row(number);
                moments.sort_by_key(|(time, _)| *time);
                let moments: Vec<Moment> = moments.into_iter().map(|(_, moment)| moment).collect();
                for moment in &moments {
                    match moment {
                        Moment::Sample(sample) => of_sample[*sample] = number,
                        Moment::Wait(wait) => of_wait[*wait] = number,
                    }
                }
                Track { moments, ..track }
            })
            .collect();
        let shown = list.iter().filter(|track| track.thread.is_some()).count();
        let threads_without = recording.threads.len().saturating_sub(shown) as u64;
        Tracks { list, of_sample, of_wait, threads_without }
    }

    /// The number of the track of a moment among those that go out.
    pub(crate) fn of(&self, moment: Moment) -> usize {
        match moment {
            Moment::Sample(sample) => self.of_sample[sample] as usize,
            Moment::Wait(wait) => self.of_wait[wait] as usize,
        }
    }

    /// For each track a text for its process that no other process has: its pid, and where the kernel used that again `12.2`.
    pub(crate) fn process_ids(&self) -> Vec<String> {
        let mut seen: HashMap<u32, HashMap<Option<Monotonic>, usize>> = HashMap::new();
        let id = |track: &Track<'_>| {
            let starts = seen.entry(track.pid).or_default();
            let next = starts.len();
            let place = *starts.entry(track.process.map(|process| process.start)).or_insert(next);
            if place == 0 { track.pid.to_string() } else { format!("{}.{}", track.pid, place + 1) }
        };
        self.list.iter().map(id).collect()
    }
}

/// Processes and threads by their ids.
struct Known<'a> {
    recording: &'a Recording,
    processes: HashMap<u32, Vec<usize>>,
    threads: HashMap<(u32, u32), Vec<usize>>,
}

impl<'a> Known<'a> {
    fn of(recording: &'a Recording) -> Self {
        let mut known = Known { recording, processes: HashMap::new(), threads: HashMap::new() };
        for (place, process) in recording.processes.iter().enumerate() {
            known.processes.entry(process.pid).or_default().push(place);
        }
        for (place, thread) in recording.threads.iter().enumerate() {
            known.threads.entry((thread.pid, thread.tid)).or_default().push(place);
        }
        known.processes.values_mut().for_each(|list| list.sort_by_key(|place| recording.processes[*place].start));
        known.threads.values_mut().for_each(|list| list.sort_by_key(|place| recording.threads[*place].start));
        known
    }

    fn process(&self, pid: u32, at: Monotonic) -> Option<usize> {
        last_started(self.processes.get(&pid)?, at, |place| self.recording.processes[place].start)
    }

    fn thread(&self, pid: u32, tid: u32, at: Monotonic) -> Option<usize> {
        last_started(self.threads.get(&(pid, tid))?, at, |place| self.recording.threads[place].start)
    }
}

/// The last that had started, among those with one id, by start; the first where none had.
fn last_started(list: &[usize], at: Monotonic, start: impl Fn(usize) -> Monotonic) -> Option<usize> {
    let started = list.partition_point(|place| start(*place) <= at);
    list.get(started.saturating_sub(1)).copied()
}
