//! The recorder: turns the kernel's records into observations.
//!
//! You bring the pid of a child that waits to exec, and a sink. From its exec on, the recorder observes it and its descendants, until
//! [`Recorder::finish`]. It neither stops nor changes them.
//!
//! ```text
//! ring buffers --> drain thread --> hand-over (bounded) --> record thread: order by time, unwind, intern --> sink
//! ```
//!
//! If the kernel refuses that, [`Recorder::watch`] polls `/proc` instead: processes, threads and long waits, but no samples.

mod drain;
mod executions;
mod left_out_records;
mod losses;
mod polling;
mod process_tree;
mod processor;
mod reorder;
mod short_waits;
mod stack_of_sample;
mod stats;
mod weights;

use std::io::PipeWriter;
use std::sync::Arc;

use longpole_model::{CaptureMode, Loss, LossKind, Observation, ObservationSink, units};
use longpole_symbols::hang_timeout::Waited;

use self::drain::{Handover, drain};
use self::processor::Processor;
pub use self::stats::Stats;
pub use crate::frames::kernel::can_name_functions;
pub use crate::frames::maps::{OpenBinaries, OpenBinary};
use crate::perf::attributes::Wanted;
use crate::perf::event::{self, Opened, Target};
pub use crate::perf::options::{Options, SampleClock};
use crate::perf::stack_dump_size::StackDumpSize;
use crate::procfs::poller::Poller;
use crate::procfs::process_snapshot;
pub use crate::procfs::process_snapshot::is_proc_of_others;
pub use crate::refusal::Refused;
use crate::sink::ObservationWriter;
use crate::span_context::journal_poller::JournalPoller;
use crate::sys::clock::monotonic_nanos;
use crate::sys::limits::raise_open_files_limit;
pub use crate::sys::remote_memory::can_read_memory;
use crate::worker::{Liveness, Worker};

/// How often to list the threads of a process that keeps making new ones.
const LISTINGS_MAX: usize = 3;

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    clock: SampleClock,
    rate_hz: u32,
    mode: CaptureMode,
    refused: Option<Refused>,
    // Closing it wakes the drain thread for the last time.
    stop: Option<PipeWriter>,
    drainer: Option<Worker<u64>>,
    // Closing it ends polling, which has no drain thread.
    handover: Arc<Handover>,
    processor: Option<Worker<Stats>>,
    binaries: Arc<OpenBinaries>,
}

/// The record thread of a recorder, for another thread that watches it.
#[derive(Debug, Clone)]
pub struct WatchedRecorder {
    handover: Arc<Handover>,
    liveness: Arc<Liveness>,
}

impl WatchedRecorder {
    /// A number that changes while it goes on; `None` while it has nothing to do, or writes.
    pub fn progress(&self) -> Option<u64> {
        if self.handover.is_empty() { None } else { self.liveness.progress() }
    }
}

impl Recorder {
    /// Prepares to sample process `pid`, a child that waits at its gate, from its exec on.
    ///
    /// # Errors
    ///
    /// Why the kernel, or this machine, does not let us sample it.
    pub fn start(pid: u32, options: &Options, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        let opened = event::open(Target::Waiting(pid), options)?;
        Recorder::begin(pid, opened, options, sink, |_| {})
    }

    /// Samples a process that runs already, its descendants, and all that they start.
    ///
    /// # Errors
    ///
    /// Why the kernel, or this machine, does not let us sample it.
    pub fn attach(pid: u32, options: &Options, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        raise_open_files_limit();
        let mut tree = process_snapshot::tree_of(pid);
        let mut threads: Vec<u32> = tree.iter().flat_map(|process| &process.threads).map(|thread| thread.tid).collect();
        if threads.is_empty() {
            return Err(Refused::NoProcess { pid });
        }
        let mut opened = event::open(Target::Running(&threads), options)?;
        // Threads that were made while events were opened on others are listed again; later ones inherit the events.
        for _ in 0..LISTINGS_MAX {
            tree = process_snapshot::tree_of(pid);
            let all: Vec<u32> = tree.iter().flat_map(|process| &process.threads).map(|thread| thread.tid).collect();
            if all.iter().all(|tid| threads.contains(tid)) {
                break;
            }
            threads = all;
            drop(opened);
            if threads.is_empty() {
                return Err(Refused::NoProcess { pid });
            }
            opened = event::open(Target::Running(&threads), options)?;
        }
        Recorder::begin(pid, opened, options, sink, move |processor| processor.found(&tree))
    }

    /// Samples every process of this machine that it may sample, and what these start. Without permission for whole CPUs these are the processes of
    /// this user that run now, and what they start.
    ///
    /// # Errors
    ///
    /// Why the kernel, or this machine, does not let us sample any.
    pub fn host(options: &Options, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        raise_open_files_limit();
        let root = std::process::id();
        let (opened, processes) = match event::open(Target::Host, options) {
            Ok(opened) => (opened, process_snapshot::all_processes()),
            Err(_) => {
                let processes = process_snapshot::all_processes();
                let own = [root];
                // The first one must be a thread that it may sample.
                let others = processes.iter().flat_map(|process| &process.threads).map(|thread| thread.tid).filter(|tid| *tid != root);
                let threads: Vec<u32> = own.into_iter().chain(others).collect();
                (event::open(Target::Running(&threads), options)?, processes)
            }
        };
        Recorder::begin(root, opened, options, sink, move |processor| processor.found_host(&processes))
    }

    /// Polls `/proc` for process `pid`, a child that waits at its gate, and its descendants: what to do when [`Recorder::start`] was refused.
    ///
    /// # Errors
    ///
    /// If `/proc` is about another pid namespace, or there is no thread.
    pub fn watch(pid: u32, options: &Options, refused: &Refused, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        Recorder::begin_watch(pid, Poller::new(pid), options, refused, sink, |_| {})
    }

    /// The same for a process that runs already, when [`Recorder::attach`] was refused.
    ///
    /// # Errors
    ///
    /// The same, or if there is no such process.
    pub fn watch_running(pid: u32, options: &Options, refused: &Refused, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        let tree = process_snapshot::tree_of(pid);
        if tree.is_empty() {
            return Err(Refused::NoProcess { pid });
        }
        Recorder::begin_watch(pid, Poller::of_running(&tree), options, refused, sink, move |processor| processor.found(&tree))
    }

    fn begin_watch(
        pid: u32,
        poller: Poller,
        options: &Options,
        refused: &Refused,
        sink: Box<dyn ObservationSink>,
        before: impl FnOnce(&mut Processor),
    ) -> Result<Recorder, Refused> {
        let handover = Arc::new(Handover::default());
        let mut processor = Processor::new(pid, options.clock, 0, options, ObservationWriter::new(sink));
        processor.tree.sees_switches = false;
        processor.out.liveness.has_written();
        processor.anchor();
        before(&mut processor);
        let binaries = Arc::clone(processor.binaries.open());
        let for_processor = Arc::clone(&handover);
        let journals = options.journals.clone().map(JournalPoller::new);
        let liveness = Arc::clone(&processor.out.liveness);
        let run = move || processor.run_watching(&for_processor, poller, journals);
        let processor = Worker::spawn("longpole-watch", liveness, run).map_err(no_thread)?;
        let mode = CaptureMode::Refused { reason: refused.to_words() };
        Ok(Recorder {
            clock: options.clock,
            rate_hz: 0,
            mode,
            refused: Some(refused.clone()),
            stop: None,
            drainer: None,
            handover,
            processor: Some(processor),
            binaries,
        })
    }

    fn begin(
        pid: u32,
        opened: Opened,
        options: &Options,
        sink: Box<dyn ObservationSink>,
        before: impl FnOnce(&mut Processor),
    ) -> Result<Recorder, Refused> {
        let Opened { streams, wanted, sampler_ring_bytes, losses } = opened;
        let stack_dump_size = StackDumpSize::new(&streams, &wanted, sampler_ring_bytes);
        let Wanted { clock, rate_hz, kernel, switches, .. } = wanted;
        let (stopped, stop) = std::io::pipe().map_err(|_| Refused::NoDescriptor)?;
        let handover = Arc::new(Handover::default());
        let mut processor = Processor::new(pid, clock, rate_hz, options, ObservationWriter::new(sink));
        processor.out.liveness.has_written();
        processor.tree.sees_switches = switches;
        // A recorder without switches samples seldom, and begins with deep stacks.
        processor.depths.enough = !switches;
        processor.stack_dump_size = stack_dump_size;
        let refused = kernel.err();
        let mode = match &refused {
            None => {
                processor.stack_builder.kernel.probe();
                CaptureMode::Perf
            }
            Some(refused) => CaptureMode::User { why_not_kernel: refused.to_words() },
        };
        processor.anchor();
        for loss in losses {
            processor.out.give(Observation::Loss(loss));
        }
        before(&mut processor);
        let binaries = Arc::clone(processor.binaries.open());
        let for_processor = Arc::clone(&handover);
        let liveness = Arc::clone(&processor.out.liveness);
        let processor = Worker::spawn("longpole-record", liveness, move || processor.run(&for_processor)).map_err(no_thread)?;
        let for_drainer = Arc::clone(&handover);
        let journals = options.journals.clone().map(JournalPoller::new);
        if journals.is_some() {
            // One for each thread that has a journal.
            raise_open_files_limit();
        }
        match Worker::spawn("longpole-drain", Arc::default(), move || drain(streams, journals, stopped, &for_drainer)) {
            Ok(drainer) => Ok(Recorder {
                clock,
                rate_hz,
                mode,
                refused,
                stop: Some(stop),
                drainer: Some(drainer),
                handover,
                processor: Some(processor),
                binaries,
            }),
            Err(error) => {
                handover.close();
                // The thread ends as soon as it sees that; its statistics of nothing are of no interest.
                let _ = processor.wait();
                Err(no_thread(error))
            }
        }
    }

    /// The event that interrupts: the requested one, or the one that exists.
    pub fn clock(&self) -> SampleClock {
        self.clock
    }

    /// Samples a second and running thread: as requested, or as allowed.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// The binaries of the processes that it samples, as far as they are open.
    pub fn binaries(&self) -> &Arc<OpenBinaries> {
        &self.binaries
    }

    /// Whether it has ended by itself, as where memory was short.
    pub fn has_ended(&self) -> bool {
        self.processor.as_ref().is_none_or(Worker::has_ended)
    }

    /// Its record thread, to see whether it goes on.
    pub fn watched(&self) -> Option<WatchedRecorder> {
        let liveness = Arc::clone(self.processor.as_ref()?.liveness());
        Some(WatchedRecorder { handover: Arc::clone(&self.handover), liveness })
    }

    /// What it may sample.
    pub fn mode(&self) -> CaptureMode {
        self.mode.clone()
    }

    /// Why it does not sample, or does not sample the kernel: what the text in [`Recorder::mode`] was made from.
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// Ends the recording: empties the ring buffers, flushes the sink, and waits for the threads as long as they make progress. Processes that
    /// still run are no longer observed.
    pub fn finish(mut self) -> Stats {
        self.end()
    }

    fn end(&mut self) -> Stats {
        let ended = monotonic_nanos();
        self.stop = None;
        let Some(processor) = self.processor.take() else { return Stats::default() };
        let drained = match self.drainer.take() {
            Some(drainer) => {
                let (liveness, handover) = (Arc::clone(drainer.liveness()), &self.handover);
                // While there is no room, it waits for the other thread, which may have much to do.
                Some(drainer.wait_by(|| if handover.is_full() { processor.liveness().progress() } else { liveness.progress() }))
            }
            // Polling goes on until the hand-over is closed.
            None => {
                self.handover.close();
                None
            }
        };
        // Then the other thread hangs.
        let is_in_vain = drained == Some(Waited::Hung) && self.handover.is_full();
        if drained == Some(Waited::Hung) {
            // The batches that came are processed, and nobody waits for room.
            self.handover.close();
        }
        let liveness = Arc::clone(processor.liveness());
        let mut stats = match if is_in_vain { processor.abandon() } else { processor.wait() } {
            Waited::Done(stats) => stats,
            Waited::Failed => Stats {
                not_kept: 1,
                not_kept_reason: Some("the recorder's thread failed: a bug in longpole".to_owned()),
                ..Stats::default()
            },
            Waited::Hung => Stats { untold: vec![hung(ended.saturating_sub(liveness.written_at()))], ..Stats::default() },
        };
        match drained {
            Some(Waited::Done(cpu_nanos)) => stats.recorder_cpu_nanos += cpu_nanos,
            Some(Waited::Hung) if stats.untold.is_empty() => {
                let detail = "the thread that empties the kernel's buffers hangs in a system call: the last records are missing";
                stats.untold.push(Loss::new(LossKind::SamplesLost, 1, detail));
            }
            Some(Waited::Hung | Waited::Failed) | None => {}
        }
        stats
    }
}

/// The loss of the last part of a recording, in which an abandoned recorder wrote nothing.
fn hung(missing_nanos: u64) -> Loss {
    let detail = format!(
        "the recorder does not end: a file system does not answer, or what the processes did takes more than 30 s to read: samples, waits \
         and processes of the last {} are missing",
        units::duration(missing_nanos)
    );
    Loss::new(LossKind::SamplesLost, 1, detail)
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.processor.is_some() {
            self.end();
        }
    }
}

fn no_thread(error: std::io::Error) -> Refused {
    Refused::NoThread { error: error.to_string().to_lowercase() }
}
