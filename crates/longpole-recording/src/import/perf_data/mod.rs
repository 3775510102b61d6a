//! `perf.data` becomes a recording.
//!
//! ```text
//! records by time ─┬ mappings ─► address space of each process ─┐
//!                  ├ forks, execs, exits, switches ─────────────┼─► Assembler ─► Recording ─ symbols ─►
//!                  └ samples: call chain, or registers + stack ─┘   unwound here, where stacks were copied
//! ```
//!
//! The import reads a binary of this machine if it is the one that ran: the build id must match, or the inode if there is no build id.
//! It reads perf's own copies first.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use binaries::{Binaries, PerfFiles};
use longpole_model::stack::LocationKind;
use longpole_model::{
    AbsAddr, CaptureMode, ClockAnchor, CodeAddress, ContextRecord, CpuSlice, LocationId, Loss, LossKind, MappingId, Monotonic, Observation,
    Recording, Runtime, StackId, Timestamp, VirtOffset,
};
use longpole_store::Assembler;
use longpole_symbols::unwind::{AddressSpace, Frame, Place, Registers, StackEnd, StackWalker};
use longpole_symbols::{hang_timeout, perf_map};
use longpole_wire::perf_data::{Body, Event, EventKind, Map, PerfData, Period, Record, Sample};
use longpole_wire::redact::Redactor;
use longpole_wire::{FileError, Limits};
use names::{PerfMap, own_kernel, perf_map_of};
use tracing::info_span;
use walk_time::{WALKS_MAX, WalkTime};
use weights::{shown, weight, weight_of};

use super::unseen::{unseen_run, with_cause};
use crate::loss_counters;
use crate::memory::growth_limit;

mod binaries;
mod names;
mod walk_time;
mod weights;

/// Numbers that mark a part of a call chain begin here: `PERF_CONTEXT_MAX`.
const CONTEXT_MAX: u64 = -4095i64 as u64;
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

/// Addresses from here on are the kernel's.
const KERNEL_HALF: u64 = 1 << 63;

/// How perf calls the process that it will make the command of: older ones have its own name.
const BEFORE_EXEC: [&[u8]; 2] = [b"perf-exec", b"perf"];

/// How perf calls the kernel's code.
const KERNEL: &str = "[kernel.kallsyms]";

/// What is called a function of the kernel whose name is not known.
const NAMELESS_IN_KERNEL: &str = "[kernel]";

/// Most bytes of the name of a process or thread.
const NAME_BYTES_MAX: usize = 256;

/// Most bytes of the path of an executable: `PATH_MAX`. The kernel writes no longer one.
const PATH_BYTES_MAX: usize = 4096;

/// Most mappings with code of one program: the default of `vm.max_map_count`, which counts mappings of all kinds.
const MAPS_MAX: u32 = 65_530;

/// Most mappings that are copied, because a process forked and then mapped something of its own: some 500 MB. A copy is made of all
/// that the parent had, so that a small file may ask for any number.
const MAPS_COPIED_MAX: u64 = 1 << 22;

/// Numbers of registers as perf counts them: frame pointer, stack pointer, instruction pointer, link register, rbx.
const REGISTERS: (u32, u32, u32, Option<u32>, Option<u32>) =
    if cfg!(target_arch = "aarch64") { (29, 31, 32, Some(30), None) } else { (6, 7, 8, None, Some(1)) };

/// The recording that such a file holds. `written` is when the file was: the end of the recording, where it does not say that itself.
pub(super) fn recording<R: Read + Seek>(path: &Path, input: R, limits: &Limits, written: Timestamp) -> Result<Recording, FileError> {
    let step = info_span!("decode", format = "perf-data").entered();
    let mut data = PerfData::open(input, limits)?;
    let mut import = Import::new(path, &data, written);
    let mut fault = None;
    loop {
        match data.next_record() {
            Ok(Some(record)) => import.record(&record),
            Ok(None) => break,
            Err(error) => {
                fault = Some(error);
                break;
            }
        }
    }
    if let Some(error) = data.fault.or(fault) {
        if import.samples == 0 {
            return Err(error);
        }
        import.assembler.loss(Loss::new(LossKind::FileCut, 1, with_cause(&error)));
    }
    drop(step);
    Ok(import.finish())
}

/// What an address is, before it has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spot {
    Code { mapping: MappingId, address: VirtOffset },
    Unmapped { pid: u32, address: u64 },
    Kernel { address: u64 },
    Cut(Cut),
}

/// Why a stack ends where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cut {
    Walk(StackEnd),
    Code32,
    OtherMachine,
    /// The time for all stacks was over.
    Late,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cut::Walk(end) => end.fmt(f),
            Cut::Late => write!(f, "longpole unwinds the stacks of a perf.data for at most {} s", WALKS_MAX.as_secs()),
            Cut::Code32 => f.write_str("longpole does not unwind stacks of 32-bit code"),
            Cut::OtherMachine => {
                f.write_str("recorded on another CPU architecture; import the file on that architecture to unwind its stacks")
            }
        }
    }
}

#[derive(Default)]
struct Process {
    space: Rc<AddressSpace>,
    parent: Option<u32>,
    name: String,
    /// Names of its threads that were there before the recording.
    threads: HashMap<u32, String>,
    living: HashSet<u32>,
    /// How often something was mapped.
    maps: u32,
    /// Whether the recording has heard of it: those that perf found running and that did nothing are left out.
    is_told: bool,
    /// An exec whose program is not known yet: it is the first thing that is mapped.
    exec: Option<(u64, String)>,
}

/// Where code of the kernel is, and its module.
struct KernelCode {
    start: u64,
    end: u64,
    /// `None` for the kernel itself.
    module: Option<String>,
}

/// Code of the kernel by its start: mappings do not overlap.
struct KernelMap(Vec<KernelCode>);

impl KernelMap {
    fn of(mut code: Vec<KernelCode>) -> KernelMap {
        code.sort_by_key(|code| code.start);
        KernelMap(code)
    }

    /// Whether a name can be that of an address: modules may lie elsewhere after another boot.
    fn can_name(&self, name: &str, address: u64) -> bool {
        let module = name.rsplit_once('[').map(|(_, module)| module.trim_end_matches(']'));
        let behind = self.0.partition_point(|code| code.start <= address);
        match self.0[..behind].last().filter(|code| address < code.end) {
            Some(KernelCode { module: Some(known), .. }) => module == Some(known),
            Some(KernelCode { module: None, .. }) => module.is_none(),
            None => true,
        }
    }
}

struct Import {
    assembler: Assembler,
    events: Vec<Event>,
    /// For each event whether its samples are those that are shown.
    is_shown: Vec<bool>,
    others: Vec<u64>,
    samples: u64,
    first_time: u64,
    last_time: u64,
    mode: CaptureMode,
    /// perf itself with its arguments.
    command: Vec<String>,
    root: Option<u32>,
    before_exec: Option<u32>,
    processes: HashMap<u32, Process>,
    on_cpu: HashMap<u32, (u32, u64)>,
    binaries: Binaries,
    kernel: Vec<KernelCode>,
    /// Where the kernel said its code begins.
    kernel_text: u64,
    locations: HashMap<Spot, LocationId>,
    stacks: HashMap<Box<[LocationId]>, StackId>,
    walker: StackWalker,
    walk_time: WalkTime,
    frames: Vec<Frame>,
    spots: Vec<Spot>,
    cuts: HashMap<Cut, u64>,
    lost: u64,
    throttled: u64,
    unmapped: u64,
    maps_copied: u64,
    same_host: bool,
    same_release: bool,
    same_machine: bool,
    redactor: Redactor,
    /// Credentials taken out of paths of executables.
    redacted: u64,
}

impl Import {
    fn new<R>(path: &Path, data: &PerfData<R>, written: Timestamp) -> Import {
        let features = &data.features;
        let is_shown = shown(&data.events);
        let mut run = unseen_run(vec!["import".to_owned(), path.to_string_lossy().into_owned()]);
        let event = data.events.iter().zip(&is_shown).find(|(_, shown)| **shown).map(|(event, _)| event);
        run.rate_hz = event.map_or(0, |event| match event.period {
            Period::Frequency(rate) => u32::try_from(rate).unwrap_or(u32::MAX),
            Period::Count(nanos) if event.kind == EventKind::CpuTime => u32::try_from(1_000_000_000 / nanos.max(1)).unwrap_or(u32::MAX),
            Period::Count(_) => 0,
        });
        run.mode = match event {
            Some(event) if event.excludes_kernel => CaptureMode::User { why_not_kernel: "perf recorded without it".to_owned() },
            Some(_) => CaptureMode::Perf,
            None => CaptureMode::Off,
        };
        let mode = run.mode.clone();
        run.host.clone_from(&features.host);
        run.cpus = features.cpus;
        let mut assembler = Assembler::new(run);
        let anchor = match features.clock {
            Some((unix, clock)) => ClockAnchor { monotonic: Monotonic(clock), unix: Timestamp::from_unix_nanos(unix), bracket_nanos: 0 },
            None => ClockAnchor { monotonic: Monotonic(data.last_time), unix: written, bracket_nanos: 0 },
        };
        assembler.observe(Observation::Clock(anchor));
        let own = |file: &str| std::fs::read_to_string(file).map(|text| text.trim_end().to_owned()).unwrap_or_default();
        let same_host = !features.host.is_empty() && own("/proc/sys/kernel/hostname") == features.host;
        Import {
            assembler,
            others: vec![0; data.events.len()],
            is_shown,
            events: data.events.clone(),
            samples: 0,
            first_time: data.first_time,
            last_time: data.last_time,
            mode,
            command: features.command.clone(),
            root: None,
            before_exec: None,
            processes: HashMap::new(),
            on_cpu: HashMap::new(),
            binaries: Binaries::new(features.build_ids.iter().map(|known| (known.path.clone(), known.build_id.clone())).collect()),
            kernel: Vec::new(),
            kernel_text: 0,
            locations: HashMap::new(),
            stacks: HashMap::new(),
            walker: StackWalker::new(),
            walk_time: WalkTime::default(),
            frames: Vec::new(),
            spots: Vec::new(),
            cuts: HashMap::new(),
            lost: 0,
            unmapped: 0,
            maps_copied: 0,
            redactor: Redactor::default(),
            redacted: 0,
            throttled: 0,
            same_host,
            same_release: !features.release.is_empty() && own("/proc/sys/kernel/osrelease") == features.release,
            same_machine: features.machine.is_empty() || features.machine == std::env::consts::ARCH,
        }
    }

    fn record(&mut self, record: &Record<'_>) {
        let time = record.time;
        match record.body {
            Body::Map { pid, map } if map.is_kernel && pid == u32::MAX => self.map_kernel(&map),
            Body::Map { pid, map } => self.map(pid, &map),
            Body::Comm { pid, tid, name, exec } => self.comm(pid, tid, time, name, exec && time > 0),
            Body::Fork { pid, tid, parent_pid } => self.fork(pid, tid, parent_pid, time),
            Body::Exit { pid, tid } => self.exit(pid, tid, time),
            Body::SwitchIn => {
                self.on_cpu.insert(record.tid, (record.pid, time));
            }
            Body::SwitchOut { preempted } => self.switch_out(record.tid, time, preempted),
            Body::Lost { count } => self.lost = self.lost.saturating_add(count),
            Body::Throttle => self.throttled += 1,
            Body::Sample(sample) => self.sample(record, &sample),
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        self.processes.entry(pid).or_default()
    }

    /// Reports the start of a process, once.
    fn report_start(&mut self, pid: u32, time: u64) {
        let begin = Monotonic(time);
        let process = self.processes.entry(pid).or_default();
        if std::mem::replace(&mut process.is_told, true) {
            return;
        }
        let is_root = self.root == Some(pid);
        let parent_pid = process.parent.filter(|parent| !is_root && *parent != pid);
        self.assembler.observe(Observation::ProcessStarted { pid, parent_pid, time: begin });
        if !process.name.is_empty() {
            self.assembler.observe(Observation::ThreadNamed { pid, tid: pid, name: process.name.clone() });
        }
        for (tid, name) in process.threads.drain() {
            self.assembler.observe(Observation::ThreadStarted { pid, tid, time: begin });
            self.assembler.observe(Observation::ThreadNamed { pid, tid, name });
        }
    }

    /// Reports the start of a process that an event names: it ran before the first event of the file.
    fn report_earlier_start(&mut self, pid: u32) {
        self.report_start(pid, self.first_time);
    }

    fn map(&mut self, pid: u32, map: &Map<'_>) {
        let path = String::from_utf8_lossy(map.path);
        if map.bytes == 0 {
            return;
        }
        self.tell_exec(pid, &String::from_utf8_lossy(&map.path[..map.path.len().min(PATH_BYTES_MAX)]));
        let process = self.process(pid);
        process.maps += 1;
        if process.maps > MAPS_MAX {
            self.unmapped += 1;
            return;
        }
        let code = self.binaries.code(&path, map, &mut self.assembler, self.same_host);
        let range = AbsAddr(map.start)..AbsAddr(map.start.saturating_add(map.bytes));
        let process = self.processes.entry(pid).or_default();
        if !process.space.has(range.clone(), &code) {
            if Rc::strong_count(&process.space) > 1 {
                self.maps_copied += u64::from(process.maps);
                if self.maps_copied > MAPS_COPIED_MAX {
                    self.unmapped += 1;
                    return;
                }
            }
            Rc::make_mut(&mut process.space).map(range, map.file_offset, code);
        }
    }

    fn map_kernel(&mut self, map: &Map<'_>) {
        let path = String::from_utf8_lossy(map.path);
        let is_kernel = path.starts_with(KERNEL);
        if is_kernel {
            self.kernel_text = map.file_offset;
        }
        let file = path.rsplit('/').next().unwrap_or(&path).trim_matches(['[', ']']);
        let module = file.split(".ko").next().unwrap_or(file).replace('-', "_");
        self.kernel.push(KernelCode { start: map.start, end: map.start.saturating_add(map.bytes), module: (!is_kernel).then_some(module) });
    }

    fn tell_exec(&mut self, pid: u32, executable: &str) {
        if let Some((time, name)) = self.process(pid).exec.take() {
            // Here once, and not in each fork, which shares it.
            let (mut executable, time) = (executable.to_owned(), Monotonic(time));
            self.redacted += self.redactor.string(&mut executable);
            self.assembler.observe(Observation::ProcessExec { pid, time, name, executable, arguments: Vec::new() });
        }
    }

    fn comm(&mut self, pid: u32, tid: u32, time: u64, name: &[u8], exec: bool) {
        if time == 0 && BEFORE_EXEC.contains(&name) && pid == tid {
            self.before_exec = Some(pid);
        }
        // A fork has the name of its parent, so that a long one would be there for each. The kernel's have 16 bytes.
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).into_owned();
        if exec {
            if self.root.is_none() && self.before_exec == Some(pid) {
                self.root = Some(pid);
                self.assembler.observe(Observation::RunStarted { pid, start: Timestamp(0), mode: self.mode.clone() });
            }
            self.report_earlier_start(pid);
            let process = self.process(pid);
            process.space = Rc::default();
            process.maps = 0;
            process.living = HashSet::from([pid]);
            process.exec = Some((time, name));
            return;
        }
        let process = self.process(pid);
        process.living.insert(tid);
        match process.is_told {
            true => self.assembler.observe(Observation::ThreadNamed { pid, tid, name }),
            false if pid == tid => process.name = name,
            false => {
                process.threads.insert(tid, name);
            }
        }
    }

    fn fork(&mut self, pid: u32, tid: u32, parent_pid: u32, time: u64) {
        if pid != parent_pid {
            let space = self.processes.get(&parent_pid).map(|parent| Rc::clone(&parent.space)).unwrap_or_default();
            let (name, maps) = self.processes.get(&parent_pid).map(|parent| (parent.name.clone(), parent.maps)).unwrap_or_default();
            // A pid that is used again is another process.
            let child = Process { space, parent: Some(parent_pid), name, maps, living: HashSet::from([tid]), ..Process::default() };
            self.processes.insert(pid, child);
            if time > 0 {
                self.report_earlier_start(parent_pid);
                self.report_start(pid, time);
            }
            return;
        }
        self.process(pid).living.insert(tid);
        if time > 0 && pid != tid {
            self.report_earlier_start(pid);
            self.assembler.observe(Observation::ThreadStarted { pid, tid, time: Monotonic(time) });
        }
    }

    fn exit(&mut self, pid: u32, tid: u32, time: u64) {
        self.switch_out(tid, time, false);
        self.tell_exec(pid, "");
        let process = self.process(pid);
        process.living.remove(&tid);
        let (is_last, is_told) = (process.living.is_empty(), process.is_told);
        if is_last {
            // What it ran is of use to nobody any more.
            process.space = Rc::default();
        }
        if is_told {
            let time = Monotonic(time);
            self.assembler.observe(Observation::ThreadExited { pid, tid, time });
            if is_last {
                self.assembler.observe(Observation::ProcessExited { pid, time });
            }
        }
    }

    fn switch_out(&mut self, tid: u32, time: u64, preempted: bool) {
        // Number 0 is the kernel's own thread that runs when nothing else does.
        if let Some((pid, since)) = self.on_cpu.remove(&tid).filter(|(pid, _)| *pid > 0) {
            self.report_earlier_start(pid);
            let slice = CpuSlice { pid, tid, start: Monotonic(since), end: Monotonic(time.max(since)), preempted };
            self.assembler.observe(Observation::CpuSlice(slice));
        }
    }

    fn sample(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        if !self.is_shown.get(sample.event).copied().unwrap_or(false) {
            if let Some(count) = self.others.get_mut(sample.event) {
                *count += 1;
            }
            return;
        }
        self.samples += 1;
        self.tell_exec(record.pid, "");
        self.report_earlier_start(record.pid);
        let mut spots = std::mem::take(&mut self.spots);
        spots.clear();
        self.walk(record.pid, sample, &mut spots);
        let locations: Vec<LocationId> = spots.iter().map(|spot| self.location(*spot)).collect();
        self.spots = spots;
        let stack = self.stack(&locations);
        let sample = longpole_model::Sample {
            time: Monotonic(record.time),
            pid: record.pid,
            tid: record.tid,
            cpu: record.cpu,
            stack,
            weight_nanos: weight(&self.events[sample.event], sample.period),
            context: ContextRecord::Absent,
        };
        self.assembler.observe(Observation::Sample(sample));
    }

    /// The stack of a sample, leaf first.
    fn walk(&mut self, pid: u32, sample: &Sample<'_>, spots: &mut Vec<Spot>) {
        let space = self.processes.get(&pid).map(|process| Rc::clone(&process.space)).unwrap_or_default();
        let of_user = |address: u64, space: &AddressSpace| match space.locate(AbsAddr(address)) {
            Place::Code { mapping, address } => Spot::Code { mapping, address },
            Place::Anonymous | Place::Made(_) | Place::Unknown => Spot::Unmapped { pid, address },
        };
        let (mut in_kernel, mut is_known, mut is_first) = (sample.in_kernel, true, true);
        for entry in sample.chain.entries() {
            if entry >= CONTEXT_MAX {
                // Others are of a hypervisor and of its guests: not of this program.
                (in_kernel, is_known, is_first) = (entry == CONTEXT_KERNEL, entry == CONTEXT_KERNEL || entry == CONTEXT_USER, true);
                continue;
            }
            // All but the first of a part are return addresses.
            let address = if is_first { CodeAddress::Instruction(AbsAddr(entry)) } else { CodeAddress::Return(AbsAddr(entry)) };
            is_first = false;
            let is_leaf = matches!(address, CodeAddress::Instruction(_));
            let address = address.for_lookup().0;
            match (is_known, in_kernel) {
                // What called the innermost function is known better.
                (true, false) if !is_leaf && sample.calls.entries().len() > 0 => {}
                (false, _) => {}
                (true, true) => spots.push(Spot::Kernel { address }),
                (true, false) => spots.push(of_user(address, &space)),
            }
        }
        if spots.is_empty() && (sample.in_kernel || sample.registers.is_none()) {
            spots.push(if sample.in_kernel { Spot::Kernel { address: sample.ip } } else { of_user(sample.ip, &space) });
        }
        spots.extend(sample.calls.entries().filter(|from| *from < KERNEL_HALF).map(|from| of_user(from, &space)));
        if let Some(registers) = sample.registers {
            let cut = if registers.is_32_bit {
                Some(Cut::Code32)
            } else if !self.same_machine {
                Some(Cut::OtherMachine)
            } else {
                let (fp, sp, ip, lr, bx) = REGISTERS;
                let get = |number| registers.get(number).unwrap_or(0);
                let registers = Registers { ip: get(ip), sp: get(sp), fp: get(fp), lr: lr.map_or(0, get), bx: bx.map_or(0, get) };
                let asked = self.events[sample.event].stack_bytes;
                let (walker, frames) = (&mut self.walker, &mut self.frames);
                let end = self.walk_time.walk(|| walker.walk(&space, &registers, sample.stack, asked, frames));
                if end.is_none() {
                    StackWalker::leaf(&space, &registers, &mut self.frames);
                }
                spots.extend(self.frames.iter().map(|frame| match frame.place {
                    Place::Code { mapping, address } => Spot::Code { mapping, address },
                    Place::Anonymous | Place::Made(_) | Place::Unknown => Spot::Unmapped { pid, address: frame.address.for_lookup().0 },
                }));
                end.map_or(Some(Cut::Late), |end| (end != StackEnd::Root).then_some(Cut::Walk(end)))
            };
            if let Some(cut) = cut {
                *self.cuts.entry(cut).or_default() += 1;
                spots.push(Spot::Cut(cut));
            }
        }
    }

    fn location(&mut self, spot: Spot) -> LocationId {
        let next = LocationId(self.locations.len() as u32);
        let id = *self.locations.entry(spot).or_insert(next);
        if id == next {
            let kind = match spot {
                Spot::Code { mapping, address } => LocationKind::Code { mapping, address },
                // Those of the kernel get their names at the end.
                Spot::Unmapped { address, .. } | Spot::Kernel { address } => LocationKind::Unmapped { address: AbsAddr(address) },
                Spot::Cut(cut) => LocationKind::Cut { reason: cut.to_string() },
            };
            self.assembler.observe(Observation::Location { id, kind });
        }
        id
    }

    fn stack(&mut self, locations: &[LocationId]) -> StackId {
        if let Some(id) = self.stacks.get(locations) {
            return *id;
        }
        let id = StackId(self.stacks.len() as u32);
        self.assembler.observe(Observation::Stack { id, locations: locations.to_vec() });
        self.stacks.insert(locations.into(), id);
        id
    }

    fn finish(mut self) -> Recording {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.tell_exec(pid, ""));
        let running: Vec<u32> = self.on_cpu.keys().copied().collect();
        running.into_iter().for_each(|tid| self.switch_out(tid, self.last_time, true));
        self.name_kernel();
        self.name_unmapped();
        self.tell_losses();
        let mut recording = self.assembler.finish();
        let _step = info_span!("symbols", mappings = recording.mappings.len()).entered();
        for loss in hang_timeout::fill(Arc::new(PerfFiles), &mut recording, &growth_limit()) {
            loss.merge_into(&mut recording.losses);
        }
        if let Some(command) = self.root.and_then(|root| command_of(&self.command, &recording, root)) {
            recording.run.command = command;
        }
        let (mut redactor, mut redacted) = (self.redactor, self.redacted);
        redacted += redactor.arguments(&mut recording.run.command);
        for process in &mut recording.processes {
            redacted += redactor.string(&mut process.name);
        }
        redacted += recording.threads.iter_mut().map(|thread| redactor.string(&mut thread.name)).sum::<u64>();
        if redacted > 0 {
            let detail = "in command lines and names of processes and threads; with the name or the shape of a credential: \
                 docs/formats/redaction.md";
            Loss::new(LossKind::ValuesRedacted, redacted, detail).merge_into(&mut recording.losses);
        }
        let at = |time| recording.clock.to_unix(Monotonic(time)).unwrap_or_default();
        loss_counters::make_storable(&mut recording.losses);
        let (start, end) = (at(self.first_time), at(self.last_time));
        // What perf did before the command began is not the command's.
        let root = recording.processes.iter().find(|process| Some(process.pid) == self.root && process.parent_pid.is_none());
        let start = root.and_then(|root| recording.clock.to_unix(root.start)).unwrap_or(start);
        let end = root.and_then(|root| root.end).and_then(|end| recording.clock.to_unix(end)).unwrap_or(end);
        recording.run.start = start;
        recording.run.end = Some(end.max(start));
        recording
    }

    fn tell_losses(&mut self) {
        let mut add = |kind, count: u64, detail: String| {
            if count > 0 {
                self.assembler.loss(Loss::new(kind, count, detail));
            }
        };
        add(
            LossKind::SamplesLost,
            self.lost,
            "records that the kernel dropped because perf read its buffers too slowly (perf record -m enlarges them)".to_owned(),
        );
        add(
            LossKind::SymbolsUnreadable,
            self.unmapped,
            format!("mappings beyond the limit of {MAPS_MAX} per program, or of too many forks; code in them has no names"),
        );
        add(LossKind::SamplesThrottled, self.throttled, "the kernel throttled sampling (kernel.perf_cpu_time_max_percent)".to_owned());
        self.binaries.losses().for_each(|loss| add(loss.kind, loss.count, loss.detail));
        for (cut, count) in &self.cuts {
            let truncated = matches!(cut, Cut::Walk(end) if end.is_truncated());
            let kind = if truncated { LossKind::StacksTruncated } else { LossKind::StacksUnwindFailed };
            add(kind, *count, cut.to_string());
        }
        for (event, count) in self.events.iter().zip(&self.others) {
            add(LossKind::OtherSignals, *count, format!("samples of {}: longpole shows one event of a file", name_of(event)));
        }
        let assumed = self.events.iter().zip(&self.is_shown).find(|(event, shown)| **shown && weight_of(event).is_none());
        if let Some((event, _)) = assumed {
            let detail = format!("samples count {}, not time; each counts as 1 ms", name_of(event));
            add(LossKind::WeightsAssumed, self.samples, detail);
        }
    }

    /// Gives functions of the kernel their names, where the kernel that runs here is the one that ran there.
    fn name_kernel(&mut self) {
        let addresses: Vec<(u64, LocationId)> = self
            .locations
            .iter()
            .filter_map(|(spot, id)| if let Spot::Kernel { address } = spot { Some((*address, *id)) } else { None })
            .collect();
        if addresses.is_empty() {
            return;
        }
        let kernel = KernelMap::of(std::mem::take(&mut self.kernel));
        let build_id = self.binaries.build_ids.get(KERNEL).cloned().unwrap_or_default();
        let symbols = own_kernel(&build_id, self.kernel_text, self.same_host && self.same_release);
        for (address, id) in &addresses {
            let name = symbols.as_ref().and_then(|symbols| symbols.name(*address)).filter(|name| kernel.can_name(name, *address));
            let function = name.unwrap_or(NAMELESS_IN_KERNEL).to_owned();
            let (runtime, address) = (Runtime::Kernel, Some(AbsAddr(*address)));
            self.assembler.observe(Observation::Named { id: *id, runtime, address, function, file: String::new(), line: 0 });
        }
        if symbols.is_none() {
            let detail = "kernel functions without names: the file comes from another kernel, or this kernel hides its symbols \
                          (kernel.kptr_restrict)";
            self.assembler.loss(Loss::new(LossKind::FunctionsNotSeen, addresses.len() as u64, detail));
        }
    }

    /// Gives code that was made at run time the names that its maker left for perf, if it ran here.
    fn name_unmapped(&mut self) {
        if !self.same_host {
            return;
        }
        let mut of_pid: HashMap<u32, Vec<(u64, LocationId)>> = HashMap::new();
        for (spot, id) in &self.locations {
            if let Spot::Unmapped { pid, address } = spot {
                of_pid.entry(*pid).or_default().push((*address, *id));
            }
        }
        let mut refused = 0;
        for (pid, mut addresses) in of_pid {
            let map = match perf_map_of(&PathBuf::from(format!("/tmp/perf-{pid}.map"))) {
                PerfMap::Read(map) => map,
                PerfMap::Absent => continue,
                PerfMap::Refused => {
                    refused += 1;
                    continue;
                }
            };
            addresses.sort_unstable();
            let sorted: Vec<u64> = addresses.iter().map(|(address, _)| *address).collect();
            for ((address, id), name) in addresses.into_iter().zip(perf_map::names(&map, &sorted)) {
                let Some(name) = name else { continue };
                let perf_map::Described { runtime, function, file, line } = perf_map::describe(&name);
                let runtime = runtime.unwrap_or(Runtime::Other);
                self.assembler.observe(Observation::Named { id, runtime, address: Some(AbsAddr(address)), function, file, line });
            }
        }
        if refused > 0 {
            let detail = "symbol files of JIT-compiled code (/tmp/perf-PID.map) that are not regular files, or belong neither to the \
                          importing user nor to root: any user can create one, so longpole ignores them";
            self.assembler.loss(Loss::new(LossKind::SymbolsUnreadable, refused, detail));
        }
    }
}

/// The command that perf ran: what stands behind its options, or where they end without a mark, what is called as the program is.
fn command_of(perf: &[String], recording: &Recording, root: u32) -> Option<Vec<String>> {
    let program = &recording.processes.iter().find(|process| process.pid == root)?.name;
    let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let marked = perf.iter().position(|word| word == "--").map(|mark| mark + 1);
    let named =
        || perf.iter().skip(2).position(|word| !program.is_empty() && base(word).starts_with(program.as_str())).map(|place| place + 2);
    let command = perf.get(marked.or_else(named)?..)?;
    (!command.is_empty()).then(|| command.to_vec())
}

fn name_of(event: &Event) -> &str {
    if event.name.is_empty() { "another event" } else { &event.name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(start: u64, module: Option<&str>) -> KernelCode {
        KernelCode { start, end: start + 0x1000, module: module.map(str::to_owned) }
    }

    #[test]
    fn a_name_of_the_kernel_is_one_of_the_module_that_lies_there() {
        let map = KernelMap::of(vec![code(0x5000, Some("ext4")), code(0x1000, None), code(0x6000, Some("nfs"))]);
        for (name, address, can) in [
            ("schedule", 0x1000, true),
            ("schedule", 0x5000, false),
            ("ext4_read [ext4]", 0x5fff, true),
            ("ext4_read [ext4]", 0x6000, false),
            ("ext4_read [ext4]", 0x1fff, false),
            // Nothing is known of what lies there.
            ("ext4_read [ext4]", 0x2000, true),
            ("schedule", 0, true),
        ] {
            assert_eq!(map.can_name(name, address), can, "{name} at {address:#x}");
        }
    }

    #[test]
    fn many_mappings_of_the_kernel_cost_as_much_as_they_are() {
        const MANY: u64 = 200_000;
        let start = std::time::Instant::now();
        let map = KernelMap::of((0..MANY).rev().map(|number| code(number << 12, Some("a"))).collect());
        assert!((0..MANY).all(|number| map.can_name("x [a]", number << 12)));
        // A search through all of them for each took minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
    }
}
