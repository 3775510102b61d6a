//! The recorder: ties kernel records, mappings, unwinding and context records into observations.
//!
//! You bring the pid of a child that waits to exec, and a sink. From its exec on, what it and everything it starts does is
//! observed, until [`Recorder::finish`]. Nothing of the target is touched, stopped or changed.
//!
//! ```text
//! kernel rings --> drain thread --> hand-over (bounded) --> this thread: order by time, unwind, intern --> sink
//! ```
//!
//! Where the kernel refuses all of that, [`Recorder::watch`] looks at `/proc` instead: processes, threads and long waits, no samples.
//!
//! Rings are read one after the other, so records of different CPUs come out of order. A round's records are held until the
//! next round has begun: by then every record that is older than this round's beginning has been read.

mod drain;
pub(crate) mod process_tree;
mod short_waits;

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io::PipeWriter;
use std::sync::Arc;
use std::time::Duration;

use longpole_model::{
    AbsAddr, CaptureMode, CodeAddress, ContextRecord, LocationId, Loss, LossKind, Monotonic, Observation, ObservationSink, Sample, StackId,
    Wait,
};
use longpole_symbols::patience::Waited;
use longpole_symbols::python::{Memory, Part};
use longpole_symbols::unwind::{AddressSpace, Code, Frame, Place, StackEnd, StackWalker};

use crate::cpu_budget::Allowance;
use self::drain::{Batch, CloseOnDrop, Handover, Taken, drain};
use self::process_tree::ProcessTree;
use self::short_waits::{Doze, Dozes};
use crate::clock::Clocks;
use crate::frames::jit::Jit;
use crate::context::journal_dir::Journals;
use crate::frames::kernel::Kernel;
pub use crate::frames::kernel::can_name_functions;
use crate::frames::kallsyms::KernelList;
pub use crate::procfs::process_snapshot::is_proc_of_others;
use crate::procfs::process_snapshot::{self, Living, MappedCode};
use crate::frames::maps::Binaries;
pub use crate::frames::maps::OpenBinary;
use crate::context::otel::Published;
use crate::context::otel::thread::{self as otel_thread, Found};
use crate::perf::stack_dump_size::{Deeper, Turn};
use crate::perf::event::{self, Opened, Target, chain_depth_max};
pub use crate::perf::event::{Options, Refused, SampleClock};
use crate::perf::record::{Body, MapRecord, Record, SampleRecord, Source, records};
use crate::worker::Leavable;
use crate::frames::python::{Native, Pythons, When};
use crate::context;
use crate::frames::stacks::{Cut, NumberMap, Out, ProgramId, Spot, Stacks};
use crate::sys::remote_memory::ProcessMemory;
use crate::sys::perf::{block_signals_of_this_thread, monotonic_nanos, raise_open_files_limit, thread_cpu_nanos};
use crate::procfs::unsampled::Unsampled;
use crate::procfs::usage::Usages;
use crate::waits::probe::{Sleeper, Waits};
use crate::procfs::poller::{self, Change, Watch};

/// How often both clocks are read, and losses told.
const ANCHOR_NANOS: u64 = 1_000_000_000;

/// How often the sink is told to write what it has, so that little is lost if the recorder is killed.
const FLUSH_NANOS: u64 = 100_000_000;

/// How long the kernel's functions go without names: reading them takes as much of a CPU as sampling two busy threads does in two seconds.
const KERNEL_NAMES_NANOS: u64 = 30_000_000_000;

/// How old what is known of mappings may be when a thread falls asleep, where no records tell of them. While a program is young, and
/// loads its libraries, less: as old as the program was when they were read.
const MAPS_NANOS: u64 = 100_000_000;

/// How often the threads of a process that makes new ones all the time are listed.
const LISTINGS_MAX: usize = 3;

/// Threads with a journal that are remembered: 1 MB. Who is forgotten has torn records counted as lost that are not.
const JOURNALED_MAX: usize = 1 << 16;

/// What a recording came to.
#[derive(Debug, Default)]
pub struct Stats {
    /// Samples given to the sink.
    pub samples: u64,
    /// Stretches on a CPU given to the sink.
    pub cpu_slices: u64,
    /// Records (samples or switches) the kernel dropped.
    pub lost: u64,
    /// Times the kernel held sampling back.
    pub throttled: u64,
    /// Stacks deeper than the copied bytes.
    pub truncated: u64,
    /// Stacks the unwinder gave up on.
    pub unwind_failed: u64,
    /// Context records caught in the middle of a write.
    pub torn: u64,
    /// Waits given to the sink.
    pub waits: u64,
    /// Observations the sink refused.
    pub not_kept: u64,
    /// Why it refused the first of them.
    pub not_kept_reason: Option<String>,
    /// CPU time of the recorder's own threads.
    pub recorder_cpu_nanos: u64,
    /// The binaries of the recording, still open where possible, for looking up names.
    pub binaries: Vec<OpenBinary>,
    /// What is missing and could not be given to the sink: whoever finished the recording tells it.
    pub untold: Vec<Loss>,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    clock: SampleClock,
    rate_hz: u32,
    mode: CaptureMode,
    // Closing it wakes the drain thread for the last time.
    stop: Option<PipeWriter>,
    drainer: Option<Leavable<u64>>,
    // Closing it ends a watch, which has no drain thread.
    handover: Arc<Handover>,
    processor: Option<Leavable<Stats>>,
}

impl Recorder {
    /// Prepares to observe process `pid` from its next exec on. It must be a child that waits at its gate.
    pub fn start(pid: u32, options: &Options, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        let opened = event::open(Target::Waiting(pid), options)?;
        Recorder::begin(pid, opened, options, sink, |_| {})
    }

    /// Observes a process that runs already, all that descend from it, and all that they start.
    pub fn attach(pid: u32, options: &Options, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        raise_open_files_limit();
        let mut tree = process_snapshot::tree_of(pid);
        let mut threads: Vec<u32> = tree.iter().flat_map(|process| &process.threads).map(|thread| thread.tid).collect();
        if threads.is_empty() {
            return Err(no_process(pid));
        }
        let mut opened = event::open(Target::Running(&threads), options)?;
        // Threads that were made while events were opened on others are found by looking again; those that are made later inherit.
        for _ in 0..LISTINGS_MAX {
            tree = process_snapshot::tree_of(pid);
            let all: Vec<u32> = tree.iter().flat_map(|process| &process.threads).map(|thread| thread.tid).collect();
            if all.iter().all(|tid| threads.contains(tid)) {
                break;
            }
            threads = all;
            drop(opened);
            if threads.is_empty() {
                return Err(no_process(pid));
            }
            opened = event::open(Target::Running(&threads), options)?;
        }
        Recorder::begin(pid, opened, options, sink, move |processor| processor.found(&tree))
    }

    /// Watches process `pid`, a child that waits at its gate, and all that descend from it by `/proc` alone: what there is where
    /// [`Recorder::start`] was refused.
    pub fn watch(pid: u32, options: &Options, refused: &Refused, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        Recorder::begin_watch(pid, Watch::new(pid), options, refused, sink, |_| {})
    }

    /// The same for a process that runs already: what there is where [`Recorder::attach`] was refused.
    pub fn watch_running(pid: u32, options: &Options, refused: &Refused, sink: Box<dyn ObservationSink>) -> Result<Recorder, Refused> {
        process_snapshot::check_proc()?;
        let tree = process_snapshot::tree_of(pid);
        if tree.is_empty() {
            return Err(no_process(pid));
        }
        Recorder::begin_watch(pid, Watch::of_running(&tree), options, refused, sink, move |processor| processor.found(&tree))
    }

    fn begin_watch(
        pid: u32,
        watch: Watch,
        options: &Options,
        refused: &Refused,
        sink: Box<dyn ObservationSink>,
        before: impl FnOnce(&mut Processor),
    ) -> Result<Recorder, Refused> {
        let handover = Arc::new(Handover::default());
        let mut processor = Processor::new(pid, options.clock, 0, options, Out::new(sink));
        processor.tree.sees_switches = false;
        processor.out.pulse.has_written();
        processor.anchor();
        before(&mut processor);
        let for_processor = Arc::clone(&handover);
        let journals = options.journals.clone().map(Journals::new);
        let pulse = Arc::clone(&processor.out.pulse);
        let run = move || processor.run_watching(&for_processor, watch, journals);
        let processor = Leavable::spawn("longpole-watch", pulse, run).map_err(no_thread)?;
        let mode = CaptureMode::Refused { reason: refused.to_words() };
        Ok(Recorder { clock: options.clock, rate_hz: 0, mode, stop: None, drainer: None, handover, processor: Some(processor) })
    }

    fn begin(
        pid: u32,
        opened: Opened,
        options: &Options,
        sink: Box<dyn ObservationSink>,
        before: impl FnOnce(&mut Processor),
    ) -> Result<Recorder, Refused> {
        let Opened { streams, clock, rate_hz, deeper, kernel, losses } = opened;
        let (stopped, stop) = std::io::pipe()
            .map_err(|_| Refused { reason: "too many open files".to_owned(), remedy: "raise the limit: ulimit -n 4096".to_owned() })?;
        let handover = Arc::new(Handover::default());
        let mut processor = Processor::new(pid, clock, rate_hz, options, Out::new(sink));
        processor.out.pulse.has_written();
        processor.deeper = deeper;
        let mode = match kernel {
            Ok(()) => {
                processor.kernel.probe();
                CaptureMode::Perf
            }
            Err(refused) => CaptureMode::User { why_not_kernel: refused.to_words() },
        };
        processor.anchor();
        for loss in losses {
            processor.out.give(Observation::Loss(loss));
        }
        before(&mut processor);
        let for_processor = Arc::clone(&handover);
        let pulse = Arc::clone(&processor.out.pulse);
        let processor = Leavable::spawn("longpole-record", pulse, move || processor.run(&for_processor)).map_err(no_thread)?;
        let for_drainer = Arc::clone(&handover);
        let journals = options.journals.clone().map(Journals::new);
        if journals.is_some() {
            // One for each thread that has a journal.
            raise_open_files_limit();
        }
        match Leavable::spawn("longpole-drain", Arc::default(), move || drain(streams, journals, stopped, &for_drainer)) {
            Ok(drainer) => {
                Ok(Recorder { clock, rate_hz, mode, stop: Some(stop), drainer: Some(drainer), handover, processor: Some(processor) })
            }
            Err(error) => {
                handover.close();
                // The thread ends as soon as it sees that; what it might say of nothing is of no interest.
                let _ = processor.wait();
                Err(no_thread(error))
            }
        }
    }

    /// What interrupts: what was asked for, or what there is.
    pub fn clock(&self) -> SampleClock {
        self.clock
    }

    /// Samples a second and running thread: what was asked for, or what is allowed.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// What it may see.
    pub fn mode(&self) -> CaptureMode {
        self.mode.clone()
    }

    /// Ends the recording: takes what is in the rings, flushes the sink, waits for the threads as long as they go on. What still runs is no
    /// longer observed.
    pub fn finish(mut self) -> Stats {
        self.end()
    }

    fn end(&mut self) -> Stats {
        let ended = monotonic_nanos();
        self.stop = None;
        let Some(processor) = self.processor.take() else { return Stats::default() };
        let drained = match self.drainer.take() {
            Some(drainer) => {
                let (pulse, handover) = (Arc::clone(drainer.pulse()), &self.handover);
                // As long as there is no room it waits for the other thread, which may have much to do.
                Some(drainer.wait_by(|| if handover.is_full() { processor.pulse().reading() } else { pulse.reading() }))
            }
            // A watch goes on until nothing more comes.
            None => {
                self.handover.close();
                None
            }
        };
        // Then it is the other thread that hangs.
        let is_in_vain = drained == Some(Waited::Hung) && self.handover.is_full();
        if drained == Some(Waited::Hung) {
            // What has come is dealt with, and nobody waits for room.
            self.handover.close();
        }
        let pulse = Arc::clone(processor.pulse());
        let mut stats = match if is_in_vain { processor.leave() } else { processor.wait() } {
            Waited::Done(stats) => stats,
            Waited::Failed => Stats {
                not_kept: 1,
                not_kept_reason: Some("the recorder's thread failed: a bug of longpole".to_owned()),
                ..Stats::default()
            },
            Waited::Hung => Stats { untold: vec![hung(ended.saturating_sub(pulse.written_at()))], ..Stats::default() },
        };
        match drained {
            Some(Waited::Done(cpu_nanos)) => stats.recorder_cpu_nanos += cpu_nanos,
            Some(Waited::Hung) if stats.untold.is_empty() => {
                let detail = "the thread that empties the kernel's buffers hangs in a call of the system: what came last is missing";
                stats.untold.push(Loss::new(LossKind::SamplesLost, 1, detail));
            }
            Some(Waited::Hung | Waited::Failed) | None => {}
        }
        stats
    }
}

/// What is missing where the recorder hangs, which had written nothing in the last part of the recording.
fn hung(missing_nanos: u64) -> Loss {
    let detail = format!(
        "the recorder hangs in a call of the system, as on a file system that does not answer: samples, waits and processes of the last {:.1} s \
         are missing",
        missing_nanos as f64 / 1e9
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

fn no_process(pid: u32) -> Refused {
    Refused { reason: format!("there is no process {pid}"), remedy: String::new() }
}

fn no_thread(error: std::io::Error) -> Refused {
    Refused {
        reason: format!("no thread for the recorder: {}", error.to_string().to_lowercase()),
        remedy: "raise the limit of processes: ulimit -u".to_owned(),
    }
}

/// Whether the memory of a child that waits at its gate can be read, as it must be for the functions of interpreters; if not, why.
pub fn can_read_memory(pid: u32) -> Result<(), String> {
    // The child is a copy of this process, so what lies here lies there.
    static WORD: [u8; 8] = *b"longpole";
    let mut part = [Part { address: WORD.as_ptr().addr() as u64, place: 0..8, is_there: false }];
    let mut bytes = [0; 8];
    match (ProcessMemory { pid }).copy(&mut part, &mut bytes) {
        Ok(()) if bytes == WORD => Ok(()),
        Ok(()) => Err("the kernel does not copy it".to_owned()),
        Err(trouble) => Err(trouble.to_string()),
    }
}

/// Samples since more of each stack was copied, and how many of them are deeper even so.
#[derive(Debug, Default)]
struct Depths {
    deep: u64,
    all: u64,
    /// There cannot be more.
    enough: bool,
}

/// How many stacks that are cut off, and which part of all, call for more bytes of each.
const DEEP_MIN: u64 = 16;
const DEEP_PART: u64 = 50;

impl Depths {
    fn call_for_more(&self) -> bool {
        !self.enough && self.deep >= DEEP_MIN && self.deep * DEEP_PART >= self.all
    }
}

/// A record that waits for its turn.
struct Pending {
    time: u64,
    source: Source,
    /// Number of its batch, and where in it the record lies.
    batch: u64,
    at: usize,
    /// What was found in a mapping when its record arrived.
    code: Option<Code>,
}

/// Losses since they were last told, by kind and reason.
#[derive(Default)]
struct Losses {
    lost: u64,
    throttled: u64,
    torn: u64,
    out_of_reach: u64,
    undecodable: u64,
    waits_skipped: u64,
    long_waits_skipped: u64,
    waits_refused: u64,
    cut: NumberMap<Cut, u64>,
}

struct Processor {
    out: Out,
    tree: ProcessTree,
    binaries: Binaries,
    stacks: Stacks,
    walker: StackWalker,
    pythons: Pythons,
    jit: Jit,
    published: Published,
    kernel: Kernel,
    stats: Stats,
    losses: Losses,
    /// Records caught in the middle of a write, by thread, since that was last told.
    torn: NumberMap<u32, u64>,
    /// Samples whose record of another SDK was out of reach, by thread, since that was last told.
    out_of_reach: NumberMap<u32, u64>,
    /// Threads that keep a journal, which says what such a record does not.
    journaled: NumberMap<u32, ()>,
    waits: Waits,
    dozes: Dozes,
    usages: Usages,
    /// What is watched by looking although there are records of the others.
    unsampled: Unsampled,
    weigher: Weigher,
    /// What copies more of each stack, as long as there may be more.
    deeper: Option<Deeper>,
    turn: Option<Turn>,
    /// Samples since the last turn, and those of them whose stack was deeper than what was copied.
    depths: Depths,
    /// Batches that still have records in `pending`, oldest first, and the number of the oldest.
    batches: VecDeque<Vec<u8>>,
    first_batch: u64,
    pending: Vec<Pending>,
    /// Beginning of the last round.
    horizon: u64,
    clocks: Clocks,
    next_anchor: u64,
    next_flush: u64,
    kernel_names_due: u64,
    /// When what each process has mapped was first and last read since its exec, where no records tell.
    mapped_at: NumberMap<u32, (u64, u64)>,
    // Kept for their memory.
    frames: Vec<Frame>,
    locations: Vec<LocationId>,
    spots: Vec<Spot>,
}

impl Processor {
    fn new(root: u32, clock: SampleClock, rate_hz: u32, options: &Options, out: Out) -> Processor {
        Processor {
            out,
            tree: ProcessTree::new(root),
            binaries: Binaries::new(),
            stacks: Stacks::default(),
            walker: StackWalker::new(),
            pythons: Pythons::new(),
            jit: Jit::new(options.remove_perf_maps),
            published: Published::default(),
            kernel: Kernel::new(chain_depth_max(), KernelList::new(options.cache.clone())),
            stats: Stats::default(),
            losses: Losses::default(),
            torn: NumberMap::default(),
            out_of_reach: NumberMap::default(),
            journaled: NumberMap::default(),
            waits: Waits::new(),
            dozes: Dozes::default(),
            usages: Usages::new(),
            unsampled: Unsampled::new(),
            weigher: Weigher::new(clock, rate_hz),
            deeper: None,
            turn: None,
            depths: Depths::default(),
            batches: VecDeque::new(),
            first_batch: 0,
            pending: Vec::new(),
            horizon: 0,
            clocks: Clocks::begin().0,
            next_anchor: 0,
            next_flush: 0,
            kernel_names_due: monotonic_nanos() + KERNEL_NAMES_NANOS,
            mapped_at: NumberMap::default(),
            frames: Vec::new(),
            locations: Vec::new(),
            spots: Vec::new(),
        }
    }

    /// Processes that run already: who they are, what they have mapped, and who of them sleeps.
    fn found(&mut self, tree: &[Living]) {
        let now = monotonic_nanos();
        for process in tree {
            self.tree.found(now, process, &mut self.out);
            self.usages.execed(process.pid, now);
            self.published.found(process.pid, now);
            self.unsampled.found(process.pid);
            self.found_code(process.pid, now, &process.maps);
            for thread in process.threads.iter().filter(|thread| thread.blocked) {
                self.waits.switched(process.pid, thread.tid, now, true);
            }
        }
    }

    /// What a process has mapped.
    fn found_code(&mut self, pid: u32, now: u64, maps: &[MappedCode]) {
        for map in maps {
            let record = MapRecord {
                start: map.start,
                bytes: map.end.saturating_sub(map.start),
                file_offset: map.file_offset,
                device: map.device,
                inode: map.inode,
                inode_generation: 0,
                protection: libc::PROT_EXEC as u32,
                path: &map.path,
            };
            let code = self.loaded(pid, now, &record);
            self.map(pid, now, &record, Some(code));
        }
    }

    /// The code of a mapping that a process made; also what is to be read of it besides is known from now on.
    fn loaded(&mut self, pid: u32, time: u64, map: &MapRecord<'_>) -> Code {
        let code = self.binaries.load(pid, map, &mut self.out);
        self.pythons.mapped(pid, time, map, &code);
        self.jit.mapped(pid, time, map);
        self.published.mapped(pid, time, map, &code);
        code
    }

    /// Goes on without records: looks at the tree itself, until the hand-over is closed.
    fn run_watching(mut self, handover: &Handover, mut watch: Watch, mut journals: Option<Journals>) -> Stats {
        let _close = CloseOnDrop(handover);
        block_signals_of_this_thread();
        let mut told = Vec::new();
        let mut look_at_journals = |is_last, out: &mut Out| {
            if let Some(journals) = &mut journals {
                journals.look(is_last, &mut told);
                for observation in told.drain(..) {
                    out.give(observation);
                }
            }
        };
        let mut allowance = Allowance::new(poller::LOOKS_PART, poller::LOOKS_NANOS_AT_ONCE);
        loop {
            let before = thread_cpu_nanos();
            self.look_at_tree(&mut watch);
            look_at_journals(false, &mut self.out);
            self.keep_up(true);
            allowance.spend(thread_cpu_nanos().saturating_sub(before));
            let pause = allowance.wait_nanos(monotonic_nanos()).clamp(poller::PAUSE_NANOS, poller::PAUSE_NANOS_MAX);
            if let Taken::Closed = handover.take(Duration::from_nanos(pause)) {
                break;
            }
        }
        self.look_at_tree(&mut watch);
        look_at_journals(true, &mut self.out);
        for (pid, tid, totals) in watch.totals() {
            self.out.give(Observation::ThreadTotals { pid, tid, totals });
        }
        self.end()
    }

    fn look_at_tree(&mut self, watch: &mut Watch) {
        let now = monotonic_nanos();
        self.changed_all(now, watch.look(|_| false));
        if let Some(loss) = watch.losses() {
            self.out.give(Observation::Loss(loss));
        }
    }

    /// Looks at what runs without being sampled.
    fn look_at_unsampled(&mut self, now: u64) {
        let tree = &self.tree;
        let (changes, last) = self.unsampled.look(now, |pid| tree.space(pid).is_some());
        if changes.is_empty() {
            return;
        }
        // A parent that is sampled is known to have gone on at the very end of its child, which must not be later.
        let (ends, others): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(|change| matches!(change, Change::Ended { .. }));
        self.changed_all(now, others);
        self.changed_all(last, ends);
    }

    fn changed_all(&mut self, now: u64, changes: Vec<Change>) {
        for change in changes {
            self.changed(now, change);
        }
        let mapped_at = std::mem::take(&mut self.mapped_at);
        self.walk_sleepers(|pid| mapped_at.get(&pid).map(|(_, last)| *last));
        self.mapped_at = mapped_at;
    }

    /// Deals with what a look at the tree found.
    fn changed(&mut self, time: u64, change: Change) {
        let (pid, tid, body) = match &change {
            Change::Forked { pid, parent } => (*pid, *pid, Body::Fork { pid: *pid, tid: *pid, parent_pid: *parent, parent_tid: *parent }),
            Change::Began { pid, tid } => (*pid, *tid, Body::Fork { pid: *pid, tid: *tid, parent_pid: *pid, parent_tid: *pid }),
            Change::Executed { pid, name } => (*pid, *pid, Body::Comm { name: name.as_bytes(), exec: true }),
            Change::Named { pid, tid, name } => (*pid, *tid, Body::Comm { name: name.as_bytes(), exec: false }),
            Change::Ended { pid, tid, totals } => {
                if let Some(totals) = *totals {
                    self.out.give(Observation::ThreadTotals { pid: *pid, tid: *tid, totals });
                }
                (*pid, *tid, Body::Exit { pid: *pid, tid: *tid })
            }
            Change::Asleep { pid, tid, since } => {
                self.waits.switched(*pid, *tid, *since, true);
                let may_be_old = self.mapped_at.get(pid).map_or(0, |(first, last)| MAPS_NANOS.min(last - first));
                return self.map_again(*pid, time, time.saturating_sub(may_be_old));
            }
            Change::Awake { pid, tid, until } => {
                self.waits.switched(*pid, *tid, *until, false);
                if let Some(sleeper) = self.waits.over(*tid, time) {
                    self.map_again(*pid, time, sleeper.at);
                    let end = sleeper.at.max(*until);
                    self.wait(*tid, sleeper, end);
                }
                return;
            }
        };
        let record = Record { pid, tid, time, cpu: 0, body };
        self.pythons.arrived(&record);
        self.published.arrived(&record);
        self.count_usage(&record);
        self.record(&record, None);
        if let Change::Executed { pid, .. } = change {
            self.mapped_at.remove(&pid);
            self.map_again(pid, time, time);
        }
    }

    /// Reads what a process has mapped, if that was last read before `since`.
    fn map_again(&mut self, pid: u32, now: u64, since: u64) {
        let (_, last) = match self.mapped_at.entry(pid) {
            Entry::Occupied(known) if known.get().1 >= since => return,
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert((now, now)),
        };
        *last = now;
        self.found_code(pid, now, &process_snapshot::maps_of(pid));
    }

    fn run(mut self, handover: &Handover) -> Stats {
        let _close = CloseOnDrop(handover);
        block_signals_of_this_thread();
        loop {
            let now = monotonic_nanos();
            let mut due = self.next_anchor;
            if self.out.dirty {
                due = due.min(self.next_flush);
            }
            let dues = [
                self.waits.next_look(),
                self.usages.next_due(),
                self.published.next_due(),
                self.tree.next_exec(),
                self.unsampled.next_look(),
            ];
            due = dues.into_iter().flatten().fold(due, u64::min);
            match handover.take(Duration::from_nanos(due.saturating_sub(now))) {
                Taken::Batch(batch) => {
                    let is_last = batch.is_last;
                    self.accept(batch, handover);
                    if is_last {
                        break;
                    }
                }
                Taken::Nothing => {}
                Taken::Closed => break,
            }
            self.keep_up(handover.is_empty());
            handover.hurry(self.waits.hurry_until());
        }
        self.end()
    }

    /// Does what is due by now. With `is_idle` no records wait, and there is time to write.
    fn keep_up(&mut self, is_idle: bool) {
        let now = monotonic_nanos();
        self.tree.tell_execs(now, &mut self.out);
        let tree = &self.tree;
        if self.waits.look(now, |tid| tree.record_hint(tid)) {
            self.pythons.look_soon();
        }
        self.usages.look(now, &mut self.out);
        // What waits to be dealt with may say that a process is sampled after all, or name a child before `/proc` does.
        if is_idle && self.unsampled.next_look().is_some_and(|next| next <= now) {
            self.look_at_unsampled(now);
        }
        self.published.look(now, &mut self.out);
        if self.depths.call_for_more() {
            self.go_deeper();
        }
        let out = &mut self.out;
        self.clocks.look(|observation| {
            out.give(observation);
        });
        if now >= self.next_anchor {
            self.usages.compare(now, self.tree.pids());
            self.anchor();
        }
        if self.out.dirty && now >= self.next_flush && is_idle {
            self.out.flush();
            self.next_flush = now + FLUSH_NANOS;
        }
    }

    /// Walks the stacks of those who sleep, up to the time until which is known what their process has mapped.
    fn walk_sleepers(&mut self, known_until: impl Fn(u32) -> Option<u64>) {
        let (tree, walker) = (&self.tree, &mut self.walker);
        self.waits.walk(|sleeper| {
            let is_known = known_until(sleeper.pid).is_some_and(|until| sleeper.since <= until);
            if is_known {
                sleeper.walk(walker, tree.space(sleeper.pid));
            }
            is_known
        });
    }

    /// Has more of each stack copied, if that is possible.
    fn go_deeper(&mut self) {
        self.depths = Depths::default();
        let Some(deeper) = &mut self.deeper else { return };
        let pids: Vec<u32> = self.tree.pids().collect();
        let threads = || pids.iter().flat_map(|pid| process_snapshot::threads_of(*pid)).map(|thread| thread.tid).collect();
        match deeper.turn(threads) {
            Some(turn) => self.turn = Some(turn),
            None => self.depths.enough = true,
        }
    }

    fn end(mut self) -> Stats {
        let now = monotonic_nanos();
        self.look_at_unsampled(now);
        for (pid, tid, totals) in self.unsampled.watch().totals() {
            self.out.give(Observation::ThreadTotals { pid, tid, totals });
        }
        for (tid, sleeper) in self.waits.rest() {
            self.wait(tid, sleeper, now);
        }
        self.usages.finish(now, &mut self.out);
        self.tree.finish(now, &mut self.out);
        self.jit.finish(&mut self.stacks, &mut self.out);
        let python_cpu_nanos = self.pythons.finish();
        self.kernel_names_due = now;
        self.anchor();
        self.out.flush();
        let mut stats = self.stats;
        stats.cpu_slices = self.tree.slices;
        stats.not_kept = self.out.not_kept;
        stats.not_kept_reason = self.out.not_kept_reason;
        stats.binaries = self.binaries.into_open();
        stats.recorder_cpu_nanos = thread_cpu_nanos() + python_cpu_nanos;
        stats
    }

    /// Reads the clocks and tells what was lost since it was last told.
    fn anchor(&mut self) {
        let out = &mut self.out;
        let anchor = self.clocks.anchor(|observation| {
            out.give(observation);
        });
        self.next_anchor = anchor.monotonic.0 + ANCHOR_NANOS;
        if anchor.monotonic.0 >= self.kernel_names_due {
            self.kernel.name(&mut self.stacks, &mut self.out);
            self.stats.waits += self.dozes.tell(&mut self.kernel, &mut self.out);
        }
        let of_others = |counts: NumberMap<u32, u64>| -> u64 {
            counts.into_iter().filter(|(tid, _)| !self.journaled.contains_key(tid)).map(|(_, count)| count).sum()
        };
        self.losses.torn = of_others(std::mem::take(&mut self.torn));
        self.losses.out_of_reach = of_others(std::mem::take(&mut self.out_of_reach));
        if self.journaled.len() > JOURNALED_MAX {
            self.journaled.clear();
        }
        self.losses.waits_skipped = std::mem::take(&mut self.waits.skipped);
        self.losses.long_waits_skipped = std::mem::take(&mut self.waits.skipped_long);
        self.losses.waits_refused = std::mem::take(&mut self.waits.refused);
        for loss in std::mem::take(&mut self.losses)
            .told()
            .into_iter()
            .chain(self.pythons.losses())
            .chain(self.jit.losses())
            .chain(self.kernel.losses())
            .chain(self.usages.losses())
            .chain(self.unsampled.losses())
            .chain(self.published.losses())
        {
            self.out.give(Observation::Loss(loss));
        }
        for (pid, tid, ident) in self.pythons.idents() {
            self.out.give(Observation::ThreadIdent { pid, tid, ident });
        }
        self.pythons.forget(self.horizon);
    }

    /// Takes what one round brought, and deals with all that is known to be in order by now.
    fn accept(&mut self, mut batch: Batch, handover: &Handover) {
        for observation in batch.journals.drain(..) {
            if let Observation::Journal { tid, .. } = observation {
                self.journaled.insert(tid, ());
            }
            self.out.give(observation);
        }
        let number = self.first_batch + self.batches.len() as u64;
        self.announce_execs(&batch);
        for (source, range) in &batch.parts {
            let bytes = batch.bytes.get(range.clone()).unwrap_or_default();
            for record in records(bytes) {
                let Ok(record) = record else {
                    self.losses.undecodable += 1;
                    continue;
                };
                if let Some((pid, tid, blocked)) = record.switch() {
                    self.waits.switched(pid, tid, record.time(), blocked);
                }
                let code = match (source, record.decode(*source)) {
                    (Source::Tracker, Ok(Record { pid, time, body: Body::Map(map), .. })) => Some(self.loaded(pid, time, &map)),
                    (Source::Tracker, Ok(record)) => {
                        self.pythons.arrived(&record);
                        self.published.arrived(&record);
                        if let Body::Exit { pid, tid } = record.body
                            && pid == tid
                        {
                            self.unsampled.exit_arrived(pid, record.time);
                        }
                        self.count_usage(&record);
                        None
                    }
                    _ => None,
                };
                let at = range.start + record.offset;
                self.pending.push(Pending { time: record.time(), source: *source, batch: number, at, code });
            }
        }
        self.batches.push_back(batch.bytes);
        // Mostly sorted already, in as many runs as there are rings; the sort is stable, so equal times keep their order.
        self.pending.sort_by_key(|p| p.time);
        let horizon = if batch.is_last { u64::MAX } else { self.horizon };
        self.unsampled.all_arrived(horizon);
        self.horizon = batch.before;
        let ready = self.pending.partition_point(|p| p.time <= horizon);
        let mut pending = std::mem::take(&mut self.pending);
        let mut batches = std::mem::take(&mut self.batches);
        for item in pending.drain(..ready) {
            let Some(bytes) = batches.get((item.batch - self.first_batch) as usize).and_then(|b| b.get(item.at..)) else { continue };
            match records(bytes).next().map(|record| record.and_then(|r| r.decode(item.source))) {
                Some(Ok(Record { pid, tid, time, body, .. })) if item.source == Source::Switcher => {
                    // What it lost is no loss: it tells of some waits only.
                    if let Body::Sample(sample) = body {
                        self.falls_asleep(pid, tid, time, &sample);
                    }
                }
                Some(Ok(record)) => self.record(&record, item.code),
                Some(Err(_)) | None => self.losses.undecodable += 1,
            }
        }
        self.walk_sleepers(|_| Some(horizon));
        let oldest = pending.iter().map(|p| p.batch).min().unwrap_or(number + 1);
        while self.first_batch < oldest {
            self.first_batch += 1;
            if let Some(buffer) = batches.pop_front() {
                handover.give_back(buffer);
            }
        }
        self.pending = pending;
        self.batches = batches;
        if let Some(total) = batch.lost_in_all {
            // What was lost last is told by no record, because none was written behind it.
            let total = total + self.deeper.as_mut().map_or(0, Deeper::lost);
            let untold = total.saturating_sub(self.stats.lost);
            self.losses.lost += untold;
            self.stats.lost += untold;
        }
    }

    /// Begins or ends to read what a process uses, as soon as it is known that it came or goes.
    fn count_usage(&mut self, record: &Record<'_>) {
        match record.body {
            Body::Fork { pid, parent_pid, .. } if pid != parent_pid => self.usages.forked(pid, record.time),
            Body::Comm { exec: true, .. } => self.usages.execed(record.pid, record.time),
            Body::Exit { pid, tid } if pid == tid && !self.unsampled.has(pid) => self.usages.leaving(pid, &mut self.out),
            _ => {}
        }
    }

    /// Looks at once at what `/proc` says of programs that were executed: they may be short-lived.
    fn announce_execs(&mut self, batch: &Batch) {
        let mut execs: Vec<(u64, u32, &[u8])> = Vec::new();
        for (_, range) in batch.parts.iter().filter(|(source, _)| *source == Source::Tracker) {
            let bytes = batch.bytes.get(range.clone()).unwrap_or_default();
            for record in records(bytes).flatten() {
                if let Ok(Record { pid, time, body: Body::Comm { name, exec: true }, .. }) = record.decode(Source::Tracker) {
                    execs.push((time, pid, name));
                }
            }
        }
        execs.sort_by_key(|(time, ..)| *time);
        for (i, (time, pid, name)) in execs.iter().enumerate() {
            self.unsampled.exec_arrived(*pid, *time);
            // Only the last exec of a process can still be asked for.
            let is_latest = !execs[i + 1..].iter().any(|(_, later, _)| later == pid);
            self.tree.announce_exec(*pid, *time, name, is_latest);
        }
    }

    /// Deals with one record, in its turn.
    fn record(&mut self, record: &Record<'_>, code: Option<Code>) {
        let Record { pid, tid, time, cpu, ref body } = *record;
        match body {
            Body::Sample(sample) => self.sample(pid, tid, time, cpu, sample),
            Body::SwitchIn => {
                self.wakes(tid, time);
                self.tree.switch_in(time, pid, tid, &mut self.out);
            }
            Body::SwitchOut { preempted } => {
                self.dozes.switched_out(tid, time, *preempted);
                self.tree.switch_out(time, tid, *preempted, &mut self.out);
            }
            Body::Map(map) => self.map(pid, time, map, code),
            Body::Comm { name, exec: true } => {
                self.jit.over(pid, time, &mut self.stacks, &mut self.out);
                self.tree.exec(time, pid, name, &mut self.out);
            }
            Body::Comm { name, exec: false } => self.tree.rename(time, pid, tid, name, &mut self.out),
            Body::Fork { pid, tid, parent_pid, parent_tid } => {
                if pid != parent_pid {
                    self.jit.forked(*pid, *parent_pid);
                }
                self.tree.fork(time, *pid, *tid, *parent_pid, *parent_tid, &mut self.out);
            }
            Body::Exit { pid, tid } if pid == tid && self.unsampled.goes_on(*pid, time) => {
                self.tree.switch_out(time, *tid, false, &mut self.out);
            }
            Body::Exit { pid, tid } => {
                self.waits.ended(*tid);
                self.dozes.over(*tid);
                self.tree.exit(time, *pid, *tid, &mut self.out);
                if self.tree.space(*pid).is_none() {
                    self.jit.ended(*pid, time, &mut self.stacks, &mut self.out);
                    self.mapped_at.remove(pid);
                    self.usages.ended(*pid, time);
                }
            }
            Body::Lost { count } => {
                self.losses.lost += count;
                self.stats.lost += count;
            }
            Body::Throttle => {
                self.losses.throttled += 1;
                self.stats.throttled += 1;
            }
            Body::Unthrottle | Body::Other => {}
        }
    }

    fn map(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: Option<Code>) {
        let code = match code {
            Some(code) => code,
            None => self.binaries.load(pid, map, &mut self.out),
        };
        if self.tree.thread(pid, pid, time, &mut self.out).is_none() {
            return;
        }
        self.jit.binary(pid, map.path);
        let range = AbsAddr(map.start)..AbsAddr(map.start.saturating_add(map.bytes));
        if self.tree.space(pid).is_some_and(|space| space.has(range.clone(), &code)) {
            return;
        }
        if let Some(space) = self.tree.space_mut(pid) {
            space.map(range, map.file_offset, code);
        }
    }

    fn sample(&mut self, pid: u32, tid: u32, time: u64, cpu: u32, sample: &SampleRecord<'_>) {
        if self.turn.is_some_and(|turn| turn.is_double(time, sample.period)) {
            return;
        }
        let found = self.context((pid, tid, time), sample);
        if found == Found::OutOfReach {
            *self.out_of_reach.entry(tid).or_default() += 1;
        }
        let context = found.or_absent();
        if context == ContextRecord::Torn {
            *self.torn.entry(tid).or_default() += 1;
            self.stats.torn += 1;
        }
        let Some(stack) = self.stack((pid, tid, time), sample, true) else { return };
        let weight_nanos = self.weigher.weigh(sample.period);
        let kept = Sample { time: Monotonic(time), pid, tid, cpu, stack, weight_nanos, context };
        self.depths.all += 1;
        if self.out.give(Observation::Sample(kept)) {
            self.stats.samples += 1;
        }
    }

    /// What the thread had published, as the copied stack tells: by our SDK, else by another one.
    fn context(&mut self, (pid, tid, time): (u32, u32, u64), sample: &SampleRecord<'_>) -> Found {
        let may_publish = self.tree.space(pid).is_none_or(|space| space.may_publish_context());
        let thread = self.tree.thread(pid, tid, time, &mut self.out);
        let (Some(thread), Some(registers)) = (thread, sample.registers) else { return Found::Context(ContextRecord::Absent) };
        let own =
            if may_publish { context::record::find(sample.stack, registers.sp, tid, &mut thread.record_hint) } else { ContextRecord::Absent };
        self.or_of_another((pid, tid, time), own, sample.stack, registers.sp)
    }

    /// What our SDK published; where that is nothing, what another one did.
    fn or_of_another(&mut self, (pid, tid, time): (u32, u32, u64), own: ContextRecord, stack: &[u8], sp: u64) -> Found {
        let offset = self.published.thread_offset(pid, time).filter(|_| own == ContextRecord::Absent);
        let Some(offset) = offset else { return Found::Context(own) };
        match self.tree.thread(pid, tid, time, &mut self.out) {
            Some(thread) => otel_thread::find(stack, sp, thread.id_inside(tid), offset, &mut thread.thread_pointer),
            None => Found::Context(own),
        }
    }

    /// A thread leaves its CPU, and its stack was copied.
    fn falls_asleep(&mut self, pid: u32, tid: u32, time: u64, sample: &SampleRecord<'_>) {
        let context = self.context((pid, tid, time), sample).or_absent();
        let stack = self.stack((pid, tid, time), sample, false);
        let chain = sample.kernel.addresses().collect();
        self.dozes.falls(tid, Doze { pid, stack, context, chain, since: None });
    }

    /// A thread has its CPU again: a wait is over, if one was seen.
    fn wakes(&mut self, tid: u32, time: u64) {
        let doze = self.dozes.over(tid);
        let skipped = self.waits.skipped;
        match (self.waits.over(tid, time), doze) {
            (Some(sleeper), _) => self.wait(tid, sleeper, time),
            (None, Some(doze)) => {
                // It was not looked at, and is seen all the same.
                self.waits.skipped = skipped;
                self.dozes.hold(tid, doze, time);
                if self.dozes.is_full() {
                    self.stats.waits += self.dozes.tell(&mut self.kernel, &mut self.out);
                }
            }
            (None, None) => {}
        }
    }

    /// A wait that was looked at is over.
    fn wait(&mut self, tid: u32, mut sleeper: Sleeper, end: u64) {
        let futex = sleeper.futex_until(end);
        sleeper.walk(&mut self.walker, self.tree.space(sleeper.pid));
        let Sleeper { pid, since, at, kind, syscall, place, stack, context, walked, .. } = sleeper;
        let asleep = When::Asleep { since, end, at };
        // The thread sleeps: what its stack leads to is as it was all the time.
        let context = self.or_of_another((pid, tid, since), context, &stack, place.1).or_absent();
        let stack = walked.map(|(frames, end)| {
            let cut = (end != StackEnd::Root).then_some(Cut::Walk(end));
            let native = Native { frames: &frames, stack: &stack, sp: place.1, kept: &[], is_whole: cut.is_none() };
            let program = self.jit.program(pid);
            let of_native = |frame: &Frame| native_spot(frame, program);
            if !self.pythons.mix((pid, tid, asleep), &native, &mut self.stacks, of_native, cut, &mut self.spots) {
                self.spots.clear();
                self.spots.extend(frames.iter().map(of_native).chain(cut.map(Spot::Cut)));
            }
            number(&self.spots, &mut self.locations, &mut self.stacks, &mut self.out)
        });
        let (start, end, syscall) = (Monotonic(since), Monotonic(end), syscall.to_owned());
        let stack = stack.flatten();
        if self.out.give(Observation::Wait(Wait { pid, tid, start, end, kind, syscall, stack, context, futex })) {
            self.stats.waits += 1;
        }
    }

    /// Unwinds and numbers the stack of a sample; `None` where the sink could not keep a definition. With `counts`, what is missing of it
    /// is a loss.
    fn stack(&mut self, (pid, tid, time): (u32, u32, u64), sample: &SampleRecord<'_>, counts: bool) -> Option<StackId> {
        let nowhere = AddressSpace::default;
        let space = self.tree.space(pid).map(Arc::clone).unwrap_or_else(|| Arc::new(nowhere()));
        let in_kernel = sample.kernel.addresses().next().is_some();
        let mut cut = match sample.registers {
            Some(registers) => match self.walker.walk(&space, &registers, sample.stack, sample.stack_room as u32, &mut self.frames) {
                StackEnd::Root => None,
                end => Some(Cut::Walk(end)),
            },
            None => {
                self.frames.clear();
                if !in_kernel {
                    let address = CodeAddress::Instruction(AbsAddr(sample.ip));
                    self.frames.push(Frame { address, place: space.locate(AbsAddr(sample.ip)), sp: 0 });
                }
                Some(if sample.is_32_bit { Cut::Code32 } else { Cut::NoRegisters })
            }
        };
        // While the kernel lays out a program, or a process ends, there is no user space, or it is not the one that the registers are
        // of: the kernel's own functions are all there is.
        let is_nowhere = self.frames.first().is_none_or(|frame| matches!(frame.place, Place::Unknown)) || sample.stack.is_empty();
        if in_kernel && is_nowhere && !sample.is_32_bit {
            self.frames.clear();
            cut = None;
        }
        if let Some(cut) = cut.filter(|_| counts) {
            *self.losses.cut.entry(cut).or_insert(0) += 1;
            self.depths.deep += u64::from(matches!(cut, Cut::Walk(StackEnd::Deeper { .. })));
            match cut {
                Cut::Walk(end) if end.is_truncated() => self.stats.truncated += 1,
                _ => self.stats.unwind_failed += 1,
            }
        }
        let native = Native {
            frames: &self.frames,
            stack: sample.stack,
            sp: sample.registers.map_or(0, |registers| registers.sp),
            kept: &sample.kept,
            is_whole: cut.is_none(),
        };
        let program = self.jit.program(pid);
        let of_native = |frame: &Frame| native_spot(frame, program);
        if !self.pythons.mix((pid, tid, When::At(time)), &native, &mut self.stacks, of_native, cut, &mut self.spots) {
            self.spots.clear();
            self.spots.extend(self.frames.iter().map(of_native).chain(cut.map(Spot::Cut)));
        }
        if self.spots.iter().any(|spot| matches!(spot, Spot::Unmapped { .. })) {
            self.jit.count(pid);
        }
        if let Some(cut) = self.kernel.put(sample.kernel, &mut self.stacks, &mut self.spots)
            && counts
        {
            *self.losses.cut.entry(cut).or_insert(0) += 1;
            self.stats.truncated += 1;
        }
        number(&self.spots, &mut self.locations, &mut self.stacks, &mut self.out)
    }
}

fn native_spot(frame: &Frame, program: ProgramId) -> Spot {
    match frame.place {
        Place::Code { mapping, address } => Spot::Code { mapping, address },
        Place::Anonymous | Place::Unknown => Spot::Unmapped { program, address: frame.address.for_lookup() },
    }
}

/// Numbers a stack; `None` where the sink could not keep a definition. `locations` is lent for its memory.
fn number(spots: &[Spot], locations: &mut Vec<LocationId>, stacks: &mut Stacks, out: &mut Out) -> Option<StackId> {
    locations.clear();
    for spot in spots {
        locations.push(stacks.location(*spot, out)?);
    }
    stacks.stack(locations, out)
}

impl Losses {
    fn told(self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut tell = |kind, count, detail: &str| {
            if count > 0 {
                Loss::new(kind, count, detail).merge_into(&mut losses);
            }
        };
        tell(
            LossKind::SamplesLost,
            self.lost,
            "records the kernel dropped because its buffer was full: samples, or switches between threads",
        );
        tell(LossKind::SamplesLost, self.undecodable, "records that could not be decoded");
        tell(LossKind::SamplesThrottled, self.throttled, "the kernel held sampling back (kernel.perf_cpu_time_max_percent)");
        tell(LossKind::ContextTorn, self.torn, "");
        tell(
            LossKind::ContextNotSeen,
            self.out_of_reach,
            "samples of threads whose record (OTEP 4947) no copy of the stack holds: of a main thread, on the heap, or below a deep stack",
        );
        tell(
            LossKind::WaitsNotSeen,
            self.waits_skipped,
            "5 to 20 ms long, over before the recorder looked, or more at once than may be looked at",
        );
        tell(
            LossKind::WaitsNotSeen,
            self.long_waits_skipped,
            "longer than 20 ms, while the recorder was busy, or more at once than may be looked at",
        );
        tell(
            LossKind::WaitsNotSeen,
            self.waits_refused,
            "threads that may not be looked at: another user's, or closed by kernel.yama.ptrace_scope or by the program itself",
        );
        for (cut, count) in self.cut {
            let kind = match cut {
                Cut::Walk(end) if end.is_truncated() => LossKind::StacksTruncated,
                Cut::KernelDeep => LossKind::StacksTruncated,
                _ => LossKind::StacksUnwindFailed,
            };
            tell(kind, count, &cut.to_string());
        }
        losses
    }
}

/// What a sample stands for, in nanoseconds on a CPU.
struct Weigher {
    clock: SampleClock,
    rate_hz: u32,
    /// Cycles between samples as the kernel has settled them.
    usual_cycles: u64,
}

impl Weigher {
    fn new(clock: SampleClock, rate_hz: u32) -> Weigher {
        // A processor has at least a thousand million cycles a second.
        Weigher { clock, rate_hz, usual_cycles: 1_000_000_000 / u64::from(rate_hz.max(1)) }
    }

    fn weigh(&mut self, period: u64) -> u64 {
        let nominal = 1_000_000_000 / u64::from(self.rate_hz.max(1));
        match self.clock {
            SampleClock::CpuClock => period,
            // The kernel starts each thread at a period of one cycle and finds the rate asked for within some samples; those
            // first ones stand for next to nothing. After that each stands for its share of a second.
            SampleClock::Cycles => {
                let weight = if period >= self.usual_cycles {
                    nominal
                } else {
                    (u128::from(nominal) * u128::from(period) / u128::from(self.usual_cycles)) as u64
                };
                if period > self.usual_cycles / 4 {
                    self.usual_cycles = (self.usual_cycles / 8 * 7).saturating_add(period / 8).max(1);
                }
                weight
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_the_cpu_clock_weighs_its_period() {
        assert_eq!(Weigher::new(SampleClock::CpuClock, 999).weigh(1_001_001), 1_001_001);
    }

    #[test]
    fn cycles_weigh_nothing_until_their_period_is_found() {
        let mut weigher = Weigher::new(SampleClock::Cycles, 1_000);
        assert!(weigher.weigh(1) < 10);
        assert!(weigher.weigh(50_000) < 100_000);
        for _ in 0..100 {
            assert_eq!(weigher.weigh(3_000_000), 1_000_000);
        }
        assert!(weigher.weigh(300_000).abs_diff(100_000) < 2_000);
    }
}
