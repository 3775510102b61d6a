//! The Java virtual machines of a recording, and the names of the methods that they run.
//!
//! ```text
//! mapping of libjvm.so ─► where its tables are       first frame in code of no file ─► a Jvm that reads them
//! ```
//!
//! The machine needs no option and is never stopped. Its memory is read while a stack is unwound that leads through its code, and only then: a
//! process without a machine costs nothing. What was read is kept, so that methods have names when the process has ended.

use std::collections::HashMap;

use longpole_model::stack::Runtime;
use longpole_model::{Loss, LossKind};
use longpole_symbols::hotspot::{HotSpotSymbols, Jvm};
use longpole_symbols::made_code::{MadeCode, MadeId};
use longpole_symbols::memory::{CLOSED_BY, Memory, Unreadable};
use longpole_symbols::unwind::Code;

use crate::frames::stacks::{FrameLocation, Name, Stacks};
use crate::perf::record::MapRecord;
use crate::sys::clock::monotonic_nanos;
use crate::sys::remote_memory::ProcessMemory;
use longpole_model::fast_hash::FastMap;

/// How often attaching may fail before a machine is given up: its tables are filled when it starts.
const FAILURES_MAX: u32 = 20;

/// Time between two attempts.
const RETRY_NANOS: u64 = 20_000_000;

/// Why methods have no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NotSeen {
    Starting,
    Gone,
    Closed,
    Layout,
    Torn,
}

impl NotSeen {
    fn detail(self) -> String {
        let why = match self {
            NotSeen::Starting => "the virtual machine was starting",
            NotSeen::Gone => "the process had ended before longpole read them",
            NotSeen::Closed => return format!("methods of Java; longpole may not read the virtual machine's memory: {CLOSED_BY}"),
            NotSeen::Layout => "this longpole does not support this virtual machine",
            NotSeen::Torn => "a frame of the virtual machine had no method in it when it was read",
        };
        format!("methods of Java; {why}")
    }
}

/// The machine of a process.
struct Machine {
    since: u64,
    symbols: HotSpotSymbols,
    jvm: Option<Jvm>,
    failures: u32,
    next_attempt: u64,
    why_not: NotSeen,
    locations: HashMap<MadeId, FrameLocation>,
}

impl Machine {
    fn attach(&mut self, pid: u32) {
        if self.jvm.is_some() || self.failures >= FAILURES_MAX {
            return;
        }
        let now = monotonic_nanos();
        if now < self.next_attempt {
            return;
        }
        let memory = ProcessMemory { pid };
        self.jvm = Jvm::attach(Box::new(memory), &self.symbols);
        if self.jvm.is_none() {
            self.failures += 1;
            self.next_attempt = now + RETRY_NANOS;
            self.why_not = match memory.fill(self.symbols.0[0], &mut [0; 8]) {
                Ok(_) if self.failures < FAILURES_MAX => NotSeen::Starting,
                Ok(_) => NotSeen::Layout,
                Err(Unreadable::Gone) => NotSeen::Gone,
                Err(Unreadable::Closed) => NotSeen::Closed,
            };
        }
    }
}

/// The machines of a recording.
#[derive(Default)]
pub(crate) struct Jvms {
    machines: FastMap<u32, Machine>,
    /// Samples with methods without a name, not yet reported.
    not_seen: HashMap<NotSeen, u64>,
}

impl Jvms {
    /// The code of a mapping was read.
    pub(crate) fn mapped(&mut self, pid: u32, time: u64, map: &MapRecord<'_>, code: &Code) {
        let Code::Mapped { binary: Some(binary), .. } = code else { return };
        let Some(stated) = binary.hotspot() else { return };
        let in_process = |address| binary.address_in_process(address, map.start, map.file_offset).map(|address| address.0);
        let mut symbols = *stated;
        for address in &mut symbols.0 {
            let Some(there) = in_process(*address) else { return };
            *address = there;
        }
        // The kernel reports a mapping again when its protection changes.
        if self.machines.get(&pid).is_some_and(|known| known.symbols == symbols) {
            return;
        }
        let why_not = NotSeen::Starting;
        let locations = HashMap::new();
        self.machines.insert(pid, Machine { since: time, symbols, jvm: None, failures: 0, next_attempt: 0, why_not, locations });
    }

    /// A process executes another program, or has ended: a machine that came before is gone.
    pub(crate) fn over(&mut self, pid: u32, time: u64) {
        if self.machines.get(&pid).is_some_and(|machine| machine.since <= time) {
            self.machines.remove(&pid);
        }
    }

    /// What reads the made code of a process, if it has a machine.
    pub(crate) fn of(&mut self, pid: u32, time: u64) -> Option<&mut dyn MadeCode> {
        if self.machines.is_empty() {
            return None;
        }
        let machine = self.machines.get_mut(&pid).filter(|machine| machine.since <= time)?;
        machine.attach(pid);
        let jvm = machine.jvm.as_mut()?;
        jvm.set_now(monotonic_nanos());
        Some(jvm)
    }

    /// Whether a process has a machine that can be read.
    pub(crate) fn has(&self, pid: u32) -> bool {
        self.machines.get(&pid).is_some_and(|machine| machine.jvm.is_some())
    }

    /// The location of a function of made code.
    pub(crate) fn location(&mut self, pid: u32, id: MadeId, stacks: &mut Stacks) -> Option<FrameLocation> {
        let machine = self.machines.get_mut(&pid)?;
        if let Some(location) = machine.locations.get(&id) {
            return Some(*location);
        }
        let function = machine.jvm.as_ref()?.function(id)?.clone();
        let name = Name { runtime: Runtime::Jvm, function: function.function, file: function.file, line: function.line };
        let location = stacks.name(name);
        machine.locations.insert(id, location);
        Some(location)
    }

    /// A sample has made code without a name; whether the process has a machine that can be read, now or soon.
    pub(crate) fn miss(&mut self, pid: u32) -> bool {
        let Some(machine) = self.machines.get(&pid) else { return false };
        let reason = if machine.jvm.is_some() { NotSeen::Torn } else { machine.why_not };
        *self.not_seen.entry(reason).or_insert(0) += 1;
        matches!(reason, NotSeen::Torn | NotSeen::Starting)
    }

    /// What is missing and not yet reported.
    pub(crate) fn losses(&mut self) -> Vec<Loss> {
        let mut losses: Vec<Loss> =
            self.not_seen.drain().map(|(reason, count)| Loss::new(LossKind::FunctionsNotSeen, count, reason.detail())).collect();
        losses.sort_by(|a, b| a.detail.cmp(&b.detail));
        losses
    }
}
