//! Decodes records (perf_event_open(2), "MMAP layout") from any bytes: bytes that are no record are an error, never a panic.
//!
//! You bring the bytes of a ring buffer ([`records`]) and name the event that wrote them ([`Source`]). `linux-perf-event-reader` decodes the
//! fields; this file knows which of them our events have.
//!
//! ```text
//! record    | type u32 | misc u16 | size u16 | body … | who: pid tid u32, time u64, cpu u32, 0 u32 |
//! sample    | type u32 | misc u16 | size u16 | ip | pid tid | time | cpu | period | count | chain … | abi | registers | size | stack … | dyn_size |
//! ```

use linux_perf_event_reader::constants::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_RECORD_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_SWITCH_OUT,
    PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_CPU, PERF_SAMPLE_IP, PERF_SAMPLE_PERIOD, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
};
use linux_perf_event_reader::{
    BranchSampleFormat, CommonData, ContextSwitchRecord, Endianness, EventRecord, Mmap2FileId, RawData, RawEventRecord, ReadFormat,
    RecordIdParseInfo, RecordParseInfo, RecordType, SampleFormat, TaskWasPreempted,
};
use longpole_symbols::unwind::Registers;

/// Bytes in front of every record.
const HEADER_BYTES: usize = 8;

/// Numbers of the sampled registers, from the kernel's `asm/perf_regs.h`.
#[cfg(target_arch = "x86_64")]
mod register {
    pub(super) const FP: u64 = 6;
    pub(super) const SP: u64 = 7;
    pub(super) const IP: u64 = 8;
    pub(super) const LR: Option<u64> = None;
    pub(super) const BX: Option<u64> = Some(1);
    /// rbx, rbp, r12 to r15.
    pub(super) const KEPT: [u64; 6] = [1, 6, 20, 21, 22, 23];
}
#[cfg(target_arch = "aarch64")]
mod register {
    pub(super) const FP: u64 = 29;
    pub(super) const SP: u64 = 31;
    pub(super) const IP: u64 = 32;
    pub(super) const LR: Option<u64> = Some(30);
    pub(super) const BX: Option<u64> = None;
    /// x19 to x29.
    pub(super) const KEPT: [u64; 11] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];
}

/// How many callee-saved registers there are, including the frame pointer.
pub const KEPT_REGISTERS: usize = register::KEPT.len();

const fn mask_of_kept() -> u64 {
    let (mut mask, mut i) = (0, 0);
    while i < KEPT_REGISTERS {
        mask |= 1 << register::KEPT[i];
        i += 1;
    }
    mask
}

/// The mask of the sampled registers: those that unwinding starts from, and the callee-saved ones.
pub(crate) const REGISTER_MASK: u64 = mask_of_kept()
    | 1 << register::FP
    | 1 << register::SP
    | 1 << register::IP
    | match register::LR {
        Some(number) => 1 << number,
        None => 0,
    };

/// The fields of samples. The call chain has the kernel's functions only, and is empty if the kernel may not be sampled.
pub(crate) const SAMPLER_FORMAT: u64 = PERF_SAMPLE_IP
    | PERF_SAMPLE_TID
    | PERF_SAMPLE_TIME
    | PERF_SAMPLE_CPU
    | PERF_SAMPLE_PERIOD
    | PERF_SAMPLE_CALLCHAIN
    | PERF_SAMPLE_REGS_USER
    | PERF_SAMPLE_STACK_USER;

/// The fields of the tracker's records.
pub(crate) const TRACKER_FORMAT: u64 = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

/// Offset of the chain's length in the body of a sample: after ip, pid and tid, time, cpu, period.
const SAMPLE_CHAIN_OFFSET: usize = 5 * 8;

/// The ABI of 64-bit code (`PERF_SAMPLE_REGS_ABI_64`).
const ABI_64: u64 = 2;

/// Record types that `linux-perf-event-reader` leaves raw.
const LOST_SAMPLES: u32 = 13;

/// Which of our events wrote a record: their records have different fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The event that samples and reports switches.
    Sampler,
    /// The event that reports processes, threads, names and mappings.
    Tracker,
    /// The event that samples threads as they leave their CPU.
    Switcher,
}

impl Source {
    fn parse_info(self) -> RecordParseInfo {
        let format = match self {
            Source::Sampler | Source::Switcher => SAMPLER_FORMAT,
            Source::Tracker => TRACKER_FORMAT,
        };
        RecordParseInfo {
            endian: if cfg!(target_endian = "big") { Endianness::BigEndian } else { Endianness::LittleEndian },
            sample_format: SampleFormat::from_bits_truncate(format),
            branch_sample_format: BranchSampleFormat::empty(),
            read_format: ReadFormat::empty(),
            // Every other record ends in pid and tid, time, cpu.
            common_data_offset_from_end: Some(24),
            nonsample_record_time_offset_from_end: Some(16),
            // In a sample the time follows ip, pid and tid.
            sample_record_time_offset_from_start: Some(16),
            sample_regs_user: REGISTER_MASK,
            user_regs_count: REGISTER_MASK.count_ones() as u8,
            sample_regs_intr: 0,
            intr_regs_count: 0,
            id_parse_info: RecordIdParseInfo { nonsample_record_id_offset_from_end: None, sample_record_id_offset_from_start: None },
        }
    }
}

/// Records in a ring buffer: one part, and the part at its beginning that follows. Words are aligned, so none is in both.
#[derive(Clone, Copy)]
struct Laid<'a> {
    parts: [&'a [u8]; 2],
}

impl Laid<'_> {
    fn bytes(self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    fn word(self, at: usize) -> Option<u64> {
        let [first, second] = self.parts;
        let (part, at) = if at < first.len() { (first, at) } else { (second, at - first.len()) };
        part.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_ne_bytes)
    }

    fn copy(self, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        let [first, second] = self.parts;
        let in_first = |at: usize| at.min(first.len());
        let in_second = |at: usize| at.saturating_sub(first.len()).min(second.len());
        out.extend_from_slice(first.get(in_first(range.start)..in_first(range.end)).unwrap_or_default());
        out.extend_from_slice(second.get(in_second(range.start)..in_second(range.end)).unwrap_or_default());
    }

    /// For the sample of `size` bytes here: the offset of its stack's size, that size, and how much of it was filled.
    fn stack_of_sample(self, at: usize, size: usize) -> Option<(usize, usize, usize)> {
        let chain_at = at + HEADER_BYTES + SAMPLE_CHAIN_OFFSET;
        let number = |at| usize::try_from(self.word(at)?).ok();
        let abi_at = number(chain_at)?.checked_mul(8)?.checked_add(chain_at + 8)?;
        let registers = if self.word(abi_at)? == 0 { 0 } else { REGISTER_MASK.count_ones() as usize };
        let size_at = abi_at + 8 + 8 * registers;
        let reserved = number(size_at)?;
        let filled_at = size_at.checked_add(8)?.checked_add(reserved)?;
        (reserved > 0 && filled_at + 8 == at + size).then_some((size_at, reserved, number(filled_at)?))
    }
}

/// Copies records out of a ring buffer, except what the kernel reserved for stacks and did not fill: most threads use a fraction of it. The copy
/// still shows whether less was filled than reserved.
pub(crate) fn copy_filled(parts: [&[u8]; 2], out: &mut Vec<u8>) {
    let laid = Laid { parts };
    let mut at = 0;
    while at < laid.bytes() {
        let header = laid.word(at).map(u64::to_ne_bytes);
        let size = header.map_or(0, |[.., s0, s1]| usize::from(u16::from_ne_bytes([s0, s1])));
        let Some([k0, k1, k2, k3, m0, m1, ..]) = header.filter(|_| size >= HEADER_BYTES && size <= laid.bytes() - at) else {
            // The reader of the copy finds out what is no record.
            return laid.copy(at..laid.bytes(), out);
        };
        let is_sample = u32::from_ne_bytes([k0, k1, k2, k3]) == RecordType::SAMPLE.0;
        match laid.stack_of_sample(at, size).filter(|_| is_sample) {
            // Whole words, and more than were filled.
            Some((size_at, reserved, filled)) if (filled / 8 + 1) * 8 < reserved => {
                let kept = (filled / 8 + 1) * 8;
                out.extend_from_slice(&[k0, k1, k2, k3, m0, m1]);
                out.extend_from_slice(&((size - (reserved - kept)) as u16).to_ne_bytes());
                laid.copy(at + HEADER_BYTES..size_at, out);
                out.extend_from_slice(&(kept as u64).to_ne_bytes());
                laid.copy(size_at + 8..size_at + 8 + kept, out);
                out.extend_from_slice(&(filled as u64).to_ne_bytes());
            }
            _ => laid.copy(at..at + size, out),
        }
        at += size;
    }
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The size of a record is smaller than its header, or larger than the rest.
    #[error("a record of {size} bytes where {left} are left")]
    Size {
        /// The size it has.
        size: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// Its body is too short for its type.
    #[error("a record of type {kind} that is too short")]
    Short {
        /// Its type.
        kind: u32,
    },
    /// Its fields are not those of our events.
    #[error("a record of type {kind} with fields of no event of ours")]
    Unasked {
        /// Its type.
        kind: u32,
    },
}

/// One record, not decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its offset in the bytes it was split from.
    pub offset: usize,
    kind: u32,
    misc: u16,
    body: &'a [u8],
}

/// Splits the bytes of a ring buffer into records. It ends after an error, because the next boundary is unknown.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Result<RawRecord<'_>, RecordError>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let record = first_record(rest, offset);
        offset = match &record {
            Ok(record) => offset + HEADER_BYTES + record.body.len(),
            Err(_) => bytes.len(),
        };
        Some(record)
    })
}

fn first_record(bytes: &[u8], offset: usize) -> Result<RawRecord<'_>, RecordError> {
    let short = RecordError::Size { size: HEADER_BYTES, left: bytes.len() };
    let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
    let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
    let size = usize::from(u16::from_ne_bytes([s0, s1]));
    let error = RecordError::Size { size, left: bytes.len() };
    let body = bytes.get(HEADER_BYTES..size).ok_or(error)?;
    Ok(RawRecord { offset, kind: u32::from_ne_bytes([k0, k1, k2, k3]), misc: u16::from_ne_bytes([m0, m1]), body })
}

/// A sample: where a thread was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleRecord<'a> {
    /// Instruction pointer.
    pub ip: u64,
    /// What the event counted since the last sample: nanoseconds, or cycles.
    pub period: u64,
    /// Registers of user space; `None` if there are none, or if they belong to 32-bit code.
    pub registers: Option<Registers>,
    /// The callee-saved registers.
    pub kept: [u64; KEPT_REGISTERS],
    /// Whether it was 32-bit code.
    pub is_32_bit: bool,
    /// The bytes above the stack pointer that were copied.
    pub stack: &'a [u8],
    /// How many bytes had room; as many as were copied if the stack is deeper.
    pub stack_room: usize,
    /// The kernel's call chain, if the thread was in the kernel.
    pub kernel: KernelChain<'a>,
}

/// Functions of the kernel, innermost first: the instruction, then return addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelChain<'a>(&'a [u8]);

impl<'a> KernelChain<'a> {
    /// The addresses. Marks in the chain show whose addresses follow: of the kernel, of user space, of a guest.
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'a {
        let words = self.0.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        words
            .scan(false, |in_kernel, word| {
                let is_mark = word >= PERF_CONTEXT_MAX;
                if is_mark {
                    *in_kernel = word == PERF_CONTEXT_KERNEL;
                }
                Some((*in_kernel && !is_mark).then_some(word))
            })
            .flatten()
    }
}

/// A mapping that may hold code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRecord<'a> {
    /// Its first address.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Offset of its beginning in the file.
    pub file_offset: u64,
    /// Device of the file, major and minor; zero if there is no file.
    pub device: (u32, u32),
    /// Inode of the file; zero if there is none.
    pub inode: u64,
    /// Generation of the inode, if the file system has one.
    pub inode_generation: u64,
    /// Protection (`PROT_EXEC` is 4).
    pub protection: u32,
    /// Path as the kernel reports it, also `[vdso]` or `//anon`.
    pub path: &'a [u8],
}

/// The body of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// A sample.
    Sample(SampleRecord<'a>),
    /// A mapping.
    Map(MapRecord<'a>),
    /// The thread of the record took a name, or executed a program.
    Comm {
        /// The name.
        name: &'a [u8],
        /// Whether a program was executed.
        exec: bool,
    },
    /// A process or thread was made.
    Fork {
        /// Its process; the parent's if a thread was made.
        pid: u32,
        /// Its thread.
        tid: u32,
        /// The parent.
        parent_pid: u32,
        /// The thread that made it.
        parent_tid: u32,
    },
    /// A thread ended.
    Exit {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// The thread got a CPU.
    SwitchIn,
    /// The thread lost its CPU.
    SwitchOut {
        /// Whether it could have gone on.
        preempted: bool,
    },
    /// Records were lost here.
    Lost {
        /// How many.
        count: u64,
    },
    /// The kernel throttled sampling for the rest of a tick, because it took too long.
    Throttle,
    /// It goes on.
    Unthrottle,
    /// Any other record.
    Other,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// The process that was running, or that took a name; 0 if the kernel does not know.
    pub pid: u32,
    /// Its thread; 0 if the kernel does not know.
    pub tid: u32,
    /// CLOCK_MONOTONIC.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// What it reports.
    pub body: Body<'a>,
}

fn id(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

impl<'a> RawRecord<'a> {
    /// Its time (CLOCK_MONOTONIC, in nanoseconds), or 0 if it is too short to have one.
    pub fn time(&self) -> u64 {
        let at = if self.kind == RecordType::SAMPLE.0 { 16 } else { self.body.len().wrapping_sub(16) };
        let word = at.checked_add(8).and_then(|end| self.body.get(at..end)).and_then(|word| word.try_into().ok());
        word.map(u64::from_ne_bytes).unwrap_or(0)
    }

    /// If it is a switch: process, thread, and whether the thread blocked.
    pub(crate) fn switch(&self) -> Option<(u32, u32, bool)> {
        if self.kind != RecordType::SWITCH.0 {
            return None;
        }
        let who = self.body.len().checked_sub(24)?;
        let word = |at: usize| self.body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let out = self.misc & PERF_RECORD_MISC_SWITCH_OUT != 0;
        Some((word(who)?, word(who + 4)?, out && self.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT == 0))
    }

    /// Decodes it.
    ///
    /// # Errors
    ///
    /// If it is too short for its type, or its fields are not those of our events.
    pub fn decode(&self, source: Source) -> Result<Record<'a>, RecordError> {
        let short = RecordError::Short { kind: self.kind };
        let unasked = RecordError::Unasked { kind: self.kind };
        let info = source.parse_info();
        let kind = RecordType(self.kind);
        if kind.is_user_type() {
            return Err(unasked);
        }
        if kind == RecordType::SAMPLE && source == Source::Tracker {
            return Err(unasked);
        }
        if kind == RecordType::MMAP2 && self.misc & PERF_RECORD_MISC_MMAP_BUILD_ID != 0 {
            return Err(unasked);
        }
        let word_at = |at: usize| self.body.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_ne_bytes);
        // Checked before the fields are decoded, so that the length of a chain does not overflow.
        let chain: &[u8] = if kind == RecordType::SAMPLE {
            let entries = word_at(SAMPLE_CHAIN_OFFSET).and_then(|count| usize::try_from(count).ok());
            let end = entries.and_then(|count| count.checked_mul(8)?.checked_add(SAMPLE_CHAIN_OFFSET + 8));
            end.and_then(|end| self.body.get(SAMPLE_CHAIN_OFFSET + 8..end)).ok_or(short)?
        } else {
            &[]
        };
        let raw = RawEventRecord::new(kind, self.misc, RawData::Single(self.body), info);
        let CommonData { mut pid, mut tid, timestamp, cpu, .. } = raw.common_data().map_err(|_| short)?;
        let body = match raw.parse().map_err(|_| short)? {
            EventRecord::Sample(sample) => {
                let abi = word_at(SAMPLE_CHAIN_OFFSET + 8 + chain.len()).ok_or(short)?;
                let regs = sample.user_regs.filter(|_| abi == ABI_64);
                let kept = register::KEPT.map(|number| regs.as_ref().and_then(|regs| regs.get(number)).unwrap_or(0));
                let registers = regs.and_then(|regs| {
                    Some(Registers {
                        ip: regs.get(register::IP)?,
                        sp: regs.get(register::SP)?,
                        fp: regs.get(register::FP)?,
                        lr: register::LR.map_or(Some(0), |number| regs.get(number))?,
                        bx: register::BX.and_then(|number| regs.get(number)).unwrap_or(0),
                    })
                });
                let (stack, stack_room) = match sample.user_stack {
                    // The kernel reserves the requested size and reports after it how much it filled; the rest holds bytes of earlier
                    // records.
                    Some((RawData::Single(bytes), filled)) => {
                        (&bytes[..bytes.len().min(usize::try_from(filled).unwrap_or(usize::MAX))], bytes.len())
                    }
                    Some((RawData::Split(..), _)) | None => (&[][..], 0),
                };
                Body::Sample(SampleRecord {
                    ip: sample.ip.ok_or(short)?,
                    period: sample.period.ok_or(short)?,
                    registers,
                    kept,
                    is_32_bit: abi != 0 && abi != ABI_64,
                    stack,
                    stack_room,
                    kernel: KernelChain(chain),
                })
            }
            EventRecord::Mmap2(map) => {
                let Mmap2FileId::InodeAndVersion(file) = map.file_id else { return Err(unasked) };
                let RawData::Single(path) = map.path else { return Err(short) };
                Body::Map(MapRecord {
                    start: map.address,
                    bytes: map.length,
                    file_offset: map.page_offset,
                    device: (file.major, file.minor),
                    inode: file.inode,
                    inode_generation: file.inode_generation,
                    protection: map.protection,
                    path,
                })
            }
            EventRecord::Comm(comm) => {
                let RawData::Single(name) = comm.name else { return Err(short) };
                // A thread may name another one; the end of the record has the thread that did it.
                (pid, tid) = (Some(comm.pid), Some(comm.tid));
                Body::Comm { name, exec: comm.is_execve }
            }
            EventRecord::Fork(fork) => {
                Body::Fork { pid: id(fork.pid), tid: id(fork.tid), parent_pid: id(fork.ppid), parent_tid: id(fork.ptid) }
            }
            EventRecord::Exit(exit) => Body::Exit { pid: id(exit.pid), tid: id(exit.tid) },
            EventRecord::ContextSwitch(ContextSwitchRecord::In { .. }) => Body::SwitchIn,
            EventRecord::ContextSwitch(ContextSwitchRecord::Out { preempted, .. }) => {
                Body::SwitchOut { preempted: preempted == TaskWasPreempted::Yes }
            }
            EventRecord::Lost(lost) => Body::Lost { count: lost.count },
            EventRecord::Throttle(_) => Body::Throttle,
            EventRecord::Unthrottle(_) => Body::Unthrottle,
            EventRecord::Raw(_) if self.kind == LOST_SAMPLES => {
                let count = self.body.first_chunk::<8>().ok_or(short)?;
                Body::Lost { count: u64::from_ne_bytes(*count) }
            }
            _ => Body::Other,
        };
        Ok(Record { pid: pid.map_or(0, id), tid: tid.map_or(0, id), time: timestamp.ok_or(short)?, cpu: cpu.ok_or(short)?, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of records, as the kernel writes them on a little-endian machine.
    #[derive(Default)]
    struct Bytes(Vec<u8>);

    impl Bytes {
        fn u32(mut self, value: u32) -> Self {
            self.0.extend(value.to_ne_bytes());
            self
        }

        fn u64(mut self, value: u64) -> Self {
            self.0.extend(value.to_ne_bytes());
            self
        }

        fn raw(mut self, bytes: &[u8]) -> Self {
            self.0.extend(bytes);
            self
        }

        fn who(self) -> Self {
            self.u32(100).u32(101).u64(5_000).u32(1).u32(0)
        }

        fn record(self, kind: u32, misc: u16) -> Vec<u8> {
            let size = (self.0.len() + HEADER_BYTES) as u16;
            let mut out = kind.to_ne_bytes().to_vec();
            out.extend(misc.to_ne_bytes());
            out.extend(size.to_ne_bytes());
            out.extend(self.0);
            out
        }
    }

    fn only(bytes: &[u8], source: Source) -> Result<Record<'_>, RecordError> {
        let mut all = records(bytes);
        let first = all.next().unwrap()?;
        assert!(all.next().is_none());
        assert!(first.time() == 5_000, "the time that orders a record is that of its body");
        first.decode(source)
    }

    /// A sample up to its stack.
    fn sample() -> Bytes {
        let mut sample = Bytes::default().u64(0x1234).u32(100).u32(101).u64(5_000).u32(1).u32(0).u64(1_001_001);
        for entry in [6, PERF_CONTEXT_KERNEL, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020, PERF_CONTEXT_KERNEL - 384, 0x40_0000, 7] {
            sample = sample.u64(entry);
        }
        sample = sample.u64(ABI_64);
        for register in 0..u64::from(REGISTER_MASK.count_ones()) {
            sample = sample.u64(0x1000 + register);
        }
        sample
    }

    #[test]
    fn the_stack_of_a_sample_ends_where_the_kernel_stopped_copying() {
        let bytes = sample().u64(32).raw(&[7; 16]).raw(b"ghosts of before").u64(16).record(9, 2);
        let record = only(&bytes, Source::Sampler).unwrap();
        assert_eq!((record.pid, record.tid, record.time, record.cpu), (100, 101, 5_000, 1));
        let Body::Sample(sample) = record.body else { panic!("{record:?}") };
        assert_eq!((sample.ip, sample.period, sample.is_32_bit), (0x1234, 1_001_001, false));
        assert_eq!((sample.stack, sample.stack_room), (&[7; 16][..], 32));
        assert_eq!(sample.kernel.addresses().collect::<Vec<_>>(), [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020]);
        let registers = sample.registers.unwrap();
        if cfg!(target_arch = "x86_64") {
            assert_eq!((registers.fp, registers.sp, registers.ip), (0x1001, 0x1002, 0x1003));
            assert_eq!(sample.kept, [0x1000, 0x1001, 0x1004, 0x1005, 0x1006, 0x1007]);
        }
    }

    #[test]
    fn a_sample_of_32_bit_code_has_no_registers_for_us() {
        let mut sample = Bytes::default().u64(0x1234).u32(100).u32(101).u64(5_000).u32(1).u32(0).u64(1).u64(0).u64(1);
        for _ in 0..REGISTER_MASK.count_ones() {
            sample = sample.u64(0);
        }
        let bytes = sample.u64(0).record(9, 2);
        let Body::Sample(sample) = only(&bytes, Source::Sampler).unwrap().body else { panic!() };
        assert_eq!((sample.registers, sample.is_32_bit, sample.stack), (None, true, &[][..]));
    }

    #[test]
    fn records_of_processes_and_switches_are_understood() {
        let fork = Bytes::default().u32(200).u32(100).u32(200).u32(101).u64(5_000).who().record(7, 0);
        let body = only(&fork, Source::Tracker).unwrap().body;
        assert_eq!(body, Body::Fork { pid: 200, tid: 200, parent_pid: 100, parent_tid: 101 });
        let exec = Bytes::default().u32(200).u32(201).raw(b"sh\0\0\0\0\0\0").who().record(3, 0x2000);
        let exec = only(&exec, Source::Tracker).unwrap();
        assert_eq!((exec.pid, exec.tid, exec.body), (200, 201, Body::Comm { name: b"sh", exec: true }), "not of who named it");
        let out = Bytes::default().who().record(14, 0x2000 | 0x4000);
        assert_eq!(only(&out, Source::Sampler).unwrap().body, Body::SwitchOut { preempted: true });
        let lost = Bytes::default().u64(9).who().record(13, 0);
        assert_eq!(only(&lost, Source::Sampler).unwrap().body, Body::Lost { count: 9 });
        let map = Bytes::default().u32(200).u32(200).u64(0x7000).u64(0x1000).u64(0x2000);
        let map = map.u32(8).u32(1).u64(77).u64(3).u32(5).u32(2).raw(b"/bin/sh\0").who().record(10, 2);
        let Body::Map(map) = only(&map, Source::Tracker).unwrap().body else { panic!() };
        assert_eq!(
            (map.start, map.bytes, map.file_offset, map.device, map.inode, map.path),
            (0x7000, 0x1000, 0x2000, (8, 1), 77, &b"/bin/sh"[..])
        );
    }

    #[test]
    fn damage_is_an_error_and_ends_the_batch() {
        let mut bytes = Bytes::default().who().record(14, 0);
        bytes.extend([1, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        let all: Vec<_> = records(&bytes).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Err(RecordError::Size { size: 3, left: 10 }));
        let endless = Bytes::default().u64(0x1234).u32(100).u32(101).u64(5_000).u32(1).u32(0).u64(1).u64(u64::MAX / 8 + 2).u64(0);
        let endless = endless.record(9, 2);
        assert_eq!(records(&endless).next().unwrap().unwrap().decode(Source::Sampler), Err(RecordError::Short { kind: 9 }));
        let short = Bytes::default().u32(1).record(14, 0);
        assert_eq!(records(&short).next().unwrap().unwrap().decode(Source::Sampler), Err(RecordError::Short { kind: 14 }));
    }

    #[test]
    fn what_was_reserved_for_a_stack_and_not_filled_stays_in_the_ring() {
        let mut ring = Vec::new();
        let fillings = [0u64, 5, 8, 4088, 4089, 4096];
        for filled in fillings {
            let stack: Vec<u8> = (0..4096u32).map(|i| if u64::from(i) < filled { i as u8 } else { 0xee }).collect();
            ring.extend(sample().u64(4096).raw(&stack).u64(filled).record(9, 2));
            ring.extend(Bytes::default().who().record(14, 0));
        }
        for end in (0..ring.len()).step_by(8) {
            let mut copy = vec![1, 2, 3];
            let (first, second) = ring.split_at(end);
            copy_filled([first, second], &mut copy);
            let (before, after): (Vec<_>, Vec<_>) =
                (records(&ring).map(Result::unwrap).collect(), records(&copy[3..]).map(Result::unwrap).collect());
            assert_eq!(before.len(), after.len());
            for (i, (before, after)) in before.iter().zip(&after).enumerate() {
                let (mut before, mut after) = (before.decode(Source::Sampler).unwrap(), after.decode(Source::Sampler).unwrap());
                if let (Body::Sample(before), Body::Sample(after)) = (&mut before.body, &mut after.body) {
                    let is_full = before.stack.len() == before.stack_room;
                    assert_eq!(after.stack.len() == after.stack_room, is_full, "{}", fillings[i / 2]);
                    assert!(after.stack_room <= (before.stack.len() / 8 + 1) * 8);
                    after.stack_room = before.stack_room;
                }
                assert_eq!(before, after);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_no_record_is_copied_as_it_is(words in prop::collection::vec(any::<u64>(), 0..40), split in 0usize..40) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let (first, second) = bytes.split_at((split * 8).min(bytes.len()));
            let mut copy = Vec::new();
            copy_filled([first, second], &mut copy);
            prop_assert!(copy.len() <= bytes.len());
            prop_assert_eq!(records(&copy).count(), records(&bytes).count());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400), tracker in any::<bool>()) {
            let source = if tracker { Source::Tracker } else { Source::Sampler };
            for record in records(&bytes).flatten() {
                let _ = (record.time(), record.decode(source));
            }
        }

        #[test]
        fn any_body_of_any_type_is_survived(kind in 0u32..30, misc in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..300), tracker in any::<bool>()) {
            let source = if tracker { Source::Tracker } else { Source::Sampler };
            let bytes = Bytes(body).record(kind, misc);
            for record in records(&bytes) {
                let record = record.unwrap();
                if let Ok(Record { body: Body::Sample(sample), .. }) = record.decode(source) {
                    prop_assert!(sample.stack.len() <= bytes.len());
                }
            }
        }
    }
}
