//! One record: its fields by what its event switched on.

use super::attr::{FieldsOf, Layout, format};
use super::fields::{Fields, numbers};
use super::{HEADER_BYTES, broken};
use crate::error::FileError;
use crate::number::halves;

/// Kinds of records that are read.
pub(super) mod kind {
    pub(in super::super) const MMAP: u32 = 1;
    pub(in super::super) const LOST: u32 = 2;
    pub(in super::super) const COMM: u32 = 3;
    pub(in super::super) const EXIT: u32 = 4;
    pub(in super::super) const THROTTLE: u32 = 5;
    pub(in super::super) const FORK: u32 = 7;
    pub(in super::super) const SAMPLE: u32 = 9;
    pub(in super::super) const MMAP2: u32 = 10;
    pub(in super::super) const LOST_SAMPLES: u32 = 13;
    pub(in super::super) const SWITCH: u32 = 14;
    pub(in super::super) const SWITCH_CPU_WIDE: u32 = 15;
    /// From here on they are perf's own and not the kernel's.
    pub(in super::super) const OWN: u32 = 64;

    /// Whether a record of this kind is of any use here.
    pub(in super::super) fn is_read(kind: u32) -> bool {
        matches!(kind, MMAP | LOST | COMM | EXIT | THROTTLE | FORK | SAMPLE | MMAP2 | LOST_SAMPLES | SWITCH | SWITCH_CPU_WIDE)
    }
}

/// Flags in the header of a record.
mod misc {
    pub(super) const CPU_MODE: u16 = 7;
    pub(super) const KERNEL: u16 = 1;
    /// In `MMAP`: it holds no code.
    pub(super) const DATA: u16 = 1 << 13;
    /// In `COMM`: a program was executed.
    pub(super) const EXEC: u16 = 1 << 13;
    /// In `SWITCH`: the thread lost its CPU.
    pub(super) const OUT: u16 = 1 << 13;
    /// In `SWITCH`: it could have gone on.
    pub(super) const PREEMPTED: u16 = 1 << 14;
    /// In `MMAP2`: there is a build id instead of an inode.
    pub(super) const BUILD_ID: u16 = 1 << 14;
}

/// `PROT_EXEC`.
const EXECUTABLE: u32 = 4;

/// Format of `read` fields: the group's values, with a number before them.
const READ_GROUP: u64 = 1 << 3;

/// Formats of `read` fields that add a number to each value: its id, what was lost.
const READ_EACH: u64 = 1 << 2 | 1 << 4;

/// Formats of `read` fields that add a number once: time enabled, time running.
const READ_ONCE: u64 = 1 | 1 << 1;

/// Formats of branches that add to them: one number once, one to each.
const BRANCH_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// Format of branches that are the calls which are not back yet (`--call-graph lbr`), and no branches at all.
const BRANCH_CALLS: u64 = 1 << 11;

/// Bytes of a branch: where from, where to, flags.
const BRANCH_BYTES: usize = 24;

/// A mapping that may hold code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map<'a> {
    /// Its first address.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Where in the file it starts.
    pub file_offset: u64,
    /// Inode of the file; zero where it is not known.
    pub inode: u64,
    /// GNU build id; empty where the record has none.
    pub build_id: &'a [u8],
    /// Path as the kernel has it, `[vdso]`, `//anon`.
    pub path: &'a [u8],
    /// Whether it is of the kernel.
    pub is_kernel: bool,
}

/// Addresses of a stack, leaf first, with marks between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain<'a>(&'a [u8]);

impl Chain<'_> {
    /// The entries, as the kernel wrote them: marks (`PERF_CONTEXT_…`) are the largest numbers.
    pub fn entries(self) -> impl ExactSizeIterator<Item = u64> {
        numbers(self.0)
    }
}

/// Calls that are not back yet, innermost first, as the processor kept them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls<'a>(&'a [u8]);

impl Calls<'_> {
    /// Addresses of the instructions that call.
    pub fn entries(self) -> impl ExactSizeIterator<Item = u64> {
        self.0.chunks_exact(BRANCH_BYTES).map(|branch| numbers(branch).next().unwrap_or_default())
    }
}

/// Registers of user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<'a> {
    /// Whether the code is 32-bit code.
    pub is_32_bit: bool,
    mask: u64,
    values: &'a [u8],
}

impl Registers<'_> {
    /// The register of this number, as perf counts them for the machine.
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number)?;
        (self.mask & bit != 0).then(|| numbers(self.values).nth((self.mask & (bit - 1)).count_ones() as usize))?
    }
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Index in the list of events.
    pub event: usize,
    /// Instruction pointer.
    pub ip: u64,
    /// Whether that is in the kernel.
    pub in_kernel: bool,
    /// What the event had counted since the last one; `None` where it was always the same.
    pub period: Option<u64>,
    /// The stack, as far as the kernel could follow it.
    pub chain: Chain<'a>,
    /// The calls of user space that led here, where the processor kept them (`--call-graph lbr`).
    pub calls: Calls<'a>,
    /// Registers of user space, if the event samples them and the thread had any.
    pub registers: Option<Registers<'a>>,
    /// The bytes above the stack pointer that were really copied.
    pub stack: &'a [u8],
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// A mapping.
    Map {
        /// Process.
        pid: u32,
        /// The mapping.
        map: Map<'a>,
    },
    /// A thread has a name, by itself or by executing a program.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name.
        name: &'a [u8],
        /// Whether a program was executed.
        exec: bool,
    },
    /// A process or thread was made.
    Fork {
        /// Its process; that of the parent where a thread was made.
        pid: u32,
        /// Its thread.
        tid: u32,
        /// The parent.
        parent_pid: u32,
    },
    /// A thread ended.
    Exit {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
    },
    /// The thread was given a CPU.
    SwitchIn,
    /// The thread lost its CPU.
    SwitchOut {
        /// Although it could have gone on.
        preempted: bool,
    },
    /// Records, or samples, were lost here.
    Lost {
        /// How many.
        count: u64,
    },
    /// The kernel stopped sampling for the rest of a tick, because it took too long.
    Throttle,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Process that was running; 0 where the record does not tell.
    pub pid: u32,
    /// Thread that was running; 0 where the record does not tell.
    pub tid: u32,
    /// When, by the clock of the recording.
    pub time: u64,
    /// CPU; 0 where the record does not tell.
    pub cpu: u32,
    /// What it says.
    pub body: Body<'a>,
}

/// Kind, flags and size in front of a record.
pub(super) fn header(bytes: &[u8]) -> Option<(u32, u16, u16)> {
    let mut fields = Fields(bytes);
    Some((fields.u32()?, fields.u16()?, fields.u16()?))
}

/// Thread, time and CPU, at the end of a record that is no sample.
#[derive(Default)]
struct Trailer {
    pid: u32,
    tid: u32,
    time: u64,
    cpu: u32,
}

impl Trailer {
    fn read(fields: FieldsOf, body: &[u8]) -> Option<Trailer> {
        let mut at = Fields(body.get(body.len().checked_sub(fields.trailer_bytes())?..)?);
        let mut trailer = Trailer::default();
        if !fields.all_identified {
            return Some(trailer);
        }
        let has = |bit: u64| fields.sample & bit != 0;
        if has(format::TID) {
            (trailer.pid, trailer.tid) = (at.u32()?, at.u32()?);
        }
        if has(format::TIME) {
            trailer.time = at.u64()?;
        }
        for bit in [format::ID, format::STREAM_ID] {
            if has(bit) {
                at.u64()?;
            }
        }
        if has(format::CPU) {
            trailer.cpu = at.u32()?;
        }
        Some(trailer)
    }
}

/// Whether a record has room for what every record of its kind ends with. One that has not cannot be decoded.
pub(super) fn is_long_enough(kind: u32, body: &[u8], layout: &Layout) -> bool {
    kind == kind::SAMPLE || body.len() >= layout.of(false, body).1.trailer_bytes()
}

/// The time of a record, `None` where it has none.
pub(super) fn time(kind: u32, body: &[u8], layout: &Layout) -> Option<u64> {
    let (_, fields) = layout.of(kind == kind::SAMPLE, body);
    if fields.sample & format::TIME == 0 {
        return None;
    }
    if kind != kind::SAMPLE {
        return fields.all_identified.then(|| Trailer::read(fields, body).map(|trailer| trailer.time))?;
    }
    let before = (fields.sample & (format::IDENTIFIER | format::IP | format::TID)).count_ones() as usize * 8;
    Fields(body.get(before..)?).u64()
}

/// Decodes a record of one of the kinds that are read. `time` is where it stands in the order.
pub(super) fn decode<'a>(bytes: &'a [u8], layout: &Layout, time: u64, offset: u64) -> Result<Record<'a>, FileError> {
    let short = || broken("a record is too short for what it should hold", offset);
    let (kind, misc, _) = header(bytes).ok_or_else(short)?;
    let body = bytes.get(HEADER_BYTES..).ok_or_else(short)?;
    let (event, fields) = layout.of(kind == kind::SAMPLE, body);
    let record = match kind {
        kind::SAMPLE => sample(event, fields, misc, body),
        _ => other(kind, misc, fields, body),
    };
    record.map(|record| Record { time, ..record }).ok_or_else(short)
}

fn sample(event: usize, fields: FieldsOf, misc: u16, body: &[u8]) -> Option<Record<'_>> {
    let mut at = Fields(body);
    let has = |bit: u64| fields.sample & bit != 0;
    let mut number = |bit: u64| if has(bit) { at.u64().map(Some) } else { Some(None) };
    let (_, ip, who) = (number(format::IDENTIFIER)?, number(format::IP)?, number(format::TID)?.unwrap_or(0));
    for bit in [format::TIME, format::ADDR, format::ID, format::STREAM_ID] {
        number(bit)?;
    }
    let (cpu, period) = (number(format::CPU)?.unwrap_or(0), number(format::PERIOD)?);
    if has(format::READ) {
        skip_read(&mut at, fields.read)?;
    }
    let mut chain = Chain::default();
    if has(format::CALLCHAIN) {
        let count = at.u64()?;
        chain = Chain(at.words(count)?);
    }
    if has(format::RAW) {
        let bytes = at.u32()?;
        at.take(bytes.into())?;
    }
    let mut calls = Calls::default();
    if has(format::BRANCH_STACK) {
        let count = at.u64()?;
        if fields.branches & BRANCH_INDEX != 0 {
            at.u64()?;
        }
        let branches = at.words(count.checked_mul(BRANCH_BYTES as u64 / 8)?)?;
        if fields.branches & BRANCH_CALLS != 0 {
            calls = Calls(branches);
        }
        if fields.branches & BRANCH_COUNTERS != 0 {
            at.words(count)?;
        }
    }
    let mut registers = None;
    if has(format::REGS_USER) {
        let abi = at.u64()?;
        if abi != 0 {
            let values = at.words(fields.registers.count_ones().into())?;
            registers = Some(Registers { is_32_bit: abi == 1, mask: fields.registers, values });
        }
    }
    let mut stack = &[][..];
    if has(format::STACK_USER) {
        let reserved = at.u64()?;
        let copied = at.take(reserved)?;
        // The kernel reserves the requested bytes and says behind them how much it filled; the rest is older.
        let filled = if reserved > 0 { at.u64()? } else { 0 };
        stack = &copied[..copied.len().min(usize::try_from(filled).unwrap_or(usize::MAX))];
    }
    let in_kernel = misc & misc::CPU_MODE == misc::KERNEL;
    let body = Body::Sample(Sample { event, ip: ip.unwrap_or(0), in_kernel, period, chain, calls, registers, stack });
    let ((pid, tid), (cpu, _)) = (halves(who), halves(cpu));
    Some(Record { pid, tid, time: 0, cpu, body })
}

/// Values of counters, which are no part of a profile.
fn skip_read(at: &mut Fields<'_>, format: u64) -> Option<()> {
    let each = 1 + u64::from((format & READ_EACH).count_ones());
    let once = u64::from((format & READ_ONCE).count_ones());
    let values = if format & READ_GROUP != 0 { at.u64()? } else { 1 };
    at.words(values.checked_mul(each)?.checked_add(once)?)?;
    Some(())
}

fn other(kind: u32, misc: u16, fields: FieldsOf, body: &[u8]) -> Option<Record<'_>> {
    let trailer = Trailer::read(fields, body)?;
    let own = &body[..body.len() - fields.trailer_bytes()];
    let mut at = Fields(own);
    let is_kernel = misc & misc::CPU_MODE == misc::KERNEL;
    let body = match kind {
        kind::MMAP => {
            let (pid, _tid) = (at.u32()?, at.u32()?);
            let (start, bytes, file_offset) = (at.u64()?, at.u64()?, at.u64()?);
            // What holds no code is no place for a sample; it is as if nothing were mapped there.
            let bytes = if misc & misc::DATA == 0 { bytes } else { 0 };
            Body::Map { pid, map: Map { start, bytes, file_offset, inode: 0, build_id: &[], path: path(at.0), is_kernel } }
        }
        kind::MMAP2 => {
            let (pid, _tid) = (at.u32()?, at.u32()?);
            let (start, bytes, file_offset) = (at.u64()?, at.u64()?, at.u64()?);
            let mut file = Fields(at.take(24)?);
            let (protection, _flags) = (at.u32()?, at.u32()?);
            let (mut inode, mut build_id) = (0, &[][..]);
            if misc & misc::BUILD_ID != 0 {
                let size = file.u32()? & 0xff;
                build_id = file.0.get(..size as usize)?;
            } else {
                let _device = file.u64()?;
                inode = file.u64()?;
            }
            let bytes = if protection & EXECUTABLE != 0 { bytes } else { 0 };
            Body::Map { pid, map: Map { start, bytes, file_offset, inode, build_id, path: path(at.0), is_kernel } }
        }
        kind::COMM => {
            let (pid, tid) = (at.u32()?, at.u32()?);
            Body::Comm { pid, tid, name: path(at.0), exec: misc & misc::EXEC != 0 }
        }
        kind::FORK | kind::EXIT => {
            let (pid, parent_pid, tid, _parent_tid) = (at.u32()?, at.u32()?, at.u32()?, at.u32()?);
            if kind == kind::FORK { Body::Fork { pid, tid, parent_pid } } else { Body::Exit { pid, tid } }
        }
        kind::SWITCH | kind::SWITCH_CPU_WIDE => match misc & misc::OUT != 0 {
            true => Body::SwitchOut { preempted: misc & misc::PREEMPTED != 0 },
            false => Body::SwitchIn,
        },
        kind::LOST => {
            let (_id, count) = (at.u64()?, at.u64()?);
            Body::Lost { count }
        }
        kind::LOST_SAMPLES => Body::Lost { count: at.u64()? },
        kind::THROTTLE => Body::Throttle,
        _ => return None,
    };
    Some(Record { pid: trailer.pid, tid: trailer.tid, time: trailer.time, cpu: trailer.cpu, body })
}

/// Up to the first zero.
fn path(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}
