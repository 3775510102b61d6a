//! Goroutines that wait, and their callers.

use super::layout::GoroutineLayout;
use super::missing::Missing;
use super::{GoProgram, GoSymbols};
use crate::memory::{self, Memory, MemoryPart};

/// Most goroutines of a process that are read: 0.8 MB.
const GOROUTINES_MAX: usize = 4096;

/// Most goroutines whose stack is read.
const STACKS_MAX: usize = 32;

/// Bytes of each of these stacks, from the stack pointer on: most are no larger.
const STACK_BYTES: u64 = 4 << 10;

/// Bytes of the stack of the one that was chosen.
const WHOLE_STACK_BYTES: u64 = 64 << 10;

/// Most frames of a stack.
const FRAMES_MAX: usize = 512;

/// Each part that is copied costs as much as 4 KiB: what lies closer together than that is copied as one part, up to this many bytes.
const GAP_BYTES_MAX: u64 = 4 << 10;
const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// Largest stack of a goroutine: `runtime.maxstacksize` on machines of 64 bits, and room for its copy.
const STACK_BYTES_MAX: u64 = 2 << 30;

/// Most reasons of the runtime, and bytes of each: Go 1.26 has 46 of at most 30 bytes.
const REASONS_MAX: u64 = 128;
const REASON_BYTES_MAX: u64 = 64;

/// Bytes of a Go string: address and length.
const STRING_BYTES: u64 = 16;

/// `runtime._Gwaiting`, and the bit that says that the garbage collector looks at the stack.
const WAITING: u32 = 4;
const SCANNED: u32 = 0x1000;

/// Why a goroutine waits: a group of `runtime.waitReasonStrings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It sleeps (`time.Sleep`).
    Sleep,
    /// For a socket, a pipe or a terminal.
    Network,
    /// At a channel, or at several; a timer may write into it.
    Channel,
    /// For a lock.
    Lock,
    /// For other goroutines in another way.
    Others,
}

impl Reason {
    /// `None` for those of the runtime itself.
    fn of(name: &[u8]) -> Option<Reason> {
        Some(match name {
            b"sleep" => Reason::Sleep,
            b"IO wait" => Reason::Network,
            b"sync.Mutex.Lock" | b"sync.RWMutex.RLock" | b"sync.RWMutex.Lock" => Reason::Lock,
            b"semacquire" | b"sync.Cond.Wait" | b"coroutine" => Reason::Others,
            _ if [&b"chan "[..], b"select"].iter().any(|start| name.starts_with(start)) => Reason::Channel,
            _ if [&b"sync.WaitGroup.Wait"[..], b"synctest."].iter().any(|start| name.starts_with(start)) => Reason::Others,
            _ => return None,
        })
    }
}

/// A goroutine that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goroutine {
    /// Its number; that of `main.main` has number 1.
    pub id: u64,
    /// Why it waits.
    pub reason: Reason,
    /// Where it will go on, and where its callers will, leaf first.
    pub callers: Vec<u64>,
    /// Whether the last of them is the root.
    pub is_whole: bool,
    found: Found,
}

/// A `runtime.g`, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    address: u64,
    id: u64,
    reason: Reason,
    pc: u64,
    sp: u64,
    fp: u64,
    stack_high: u64,
}

/// Reads the goroutines of one process again and again.
#[derive(Debug, Clone)]
pub struct Goroutines {
    layout: GoroutineLayout,
    list: u64,
    count: u64,
    reasons_at: (u64, u64),
    /// Once read.
    reasons: Vec<Option<Reason>>,
}

/// What one look came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Goroutines that wait, without those of the runtime.
    pub waiting: Vec<Goroutine>,
    /// Whether there are more than are read.
    pub are_more: bool,
}

impl Goroutines {
    /// Those of a program; `in_process` returns where an address that its binary states lies.
    ///
    /// # Errors
    ///
    /// [`Missing::NoSymbols`] and [`Missing::UnknownVersion`].
    pub fn new(program: &GoProgram, in_process: impl Fn(u64) -> Option<u64>) -> Result<Goroutines, Missing> {
        let GoSymbols { count, list, reasons, .. } = program.symbols.as_ref().ok_or(Missing::NoSymbols)?;
        let layout = program.layout.ok_or(Missing::UnknownVersion)?;
        let at = |stated: u64| in_process(stated).ok_or(Missing::NoSymbols);
        Ok(Goroutines { layout, list: at(*list)?, count: at(*count)?, reasons_at: (at(reasons.0)?, reasons.1), reasons: Vec::new() })
    }

    /// Takes one look. `is_root` says whether the function at an address is the one below which goroutines run.
    ///
    /// # Errors
    ///
    /// [`Missing::Gone`] and [`Missing::Closed`] if the memory cannot be read, [`Missing::Torn`] if it holds no goroutines.
    pub fn read(&mut self, memory: &dyn Memory, is_root: impl Fn(u64) -> bool) -> Result<Look, Missing> {
        if self.reasons.is_empty() {
            self.reasons = self.read_reasons(memory)?;
        }
        // The count is written after the list.
        let head = Copied::of(memory, [(self.count, 8), (self.list, 8)].into_iter())?;
        let (Some(count), Some(list)) = (head.word(0, 0), head.word(1, 0)) else { return Err(Missing::Torn) };
        let number = usize::try_from(count).unwrap_or(usize::MAX).min(GOROUTINES_MAX);
        let addresses = Copied::of(memory, std::iter::once((list, number as u64 * 8)))?;
        let addresses: Vec<u64> = (0..number).map_while(|place| addresses.word(0, place as u64 * 8)).collect();
        let mut found = self.find(memory, &addresses)?;
        // If there are too many, `main.main` and the latest.
        found.sort_unstable_by_key(|it| (it.id != 1, it.reason, std::cmp::Reverse(it.id)));
        let are_more = count > number as u64 || found.len() > STACKS_MAX;
        found.truncate(STACKS_MAX);
        let waiting = with_callers(memory, found, STACK_BYTES, is_root)?;
        Ok(Look { waiting, are_more })
    }

    /// Reads one of an earlier look, if it waits; all others may have changed.
    ///
    /// # Errors
    ///
    /// [`Missing::Gone`] and [`Missing::Closed`] if the memory cannot be read.
    pub fn read_again(
        &self,
        memory: &dyn Memory,
        earlier: &Goroutine,
        is_root: impl Fn(u64) -> bool,
    ) -> Result<Option<Goroutine>, Missing> {
        let mut found = self.find(memory, &[earlier.found.address])?;
        found.retain(|it| it.id == earlier.id);
        Ok(with_callers(memory, found, STACK_BYTES, is_root)?.pop())
    }

    /// Reads one of them again, with all its callers; `None` if it went on meanwhile.
    ///
    /// # Errors
    ///
    /// [`Missing::Gone`] and [`Missing::Closed`] if the memory cannot be read.
    pub fn read_whole(&self, memory: &dyn Memory, seen: Goroutine, is_root: impl Fn(u64) -> bool) -> Result<Option<Goroutine>, Missing> {
        let whole = if seen.is_whole {
            seen
        } else {
            let Some(whole) = with_callers(memory, vec![seen.found], WHOLE_STACK_BYTES, is_root)?.pop() else { return Ok(None) };
            whole
        };
        let again = self.find(memory, &[whole.found.address])?;
        Ok((again == [whole.found]).then_some(whole))
    }

    /// Those that wait, of the `runtime.g` at these addresses.
    fn find(&self, memory: &dyn Memory, addresses: &[u64]) -> Result<Vec<Found>, Missing> {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let bytes = self.layout.bytes();
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        let place = |address: &u64| {
            let end = address.saturating_add(bytes);
            match blocks.last_mut() {
                Some((start, length))
                    if *address <= start.saturating_add(*length).saturating_add(GAP_BYTES_MAX) && end - *start <= BLOCK_BYTES_MAX =>
                {
                    *length = end - *start;
                }
                _ => blocks.push((*address, end - *address)),
            }
            let block = blocks.len() - 1;
            (block, address - blocks[block].0)
        };
        let places: Vec<(usize, u64)> = addresses.iter().map(place).collect();
        let copied = Copied::of(memory, blocks.into_iter())?;
        let of = |(address, (part, start)): (&u64, (usize, u64))| {
            let word = |offset: u64| copied.word(part, start + offset);
            let status = copied.int(part, start + self.layout.status)?;
            let reason = usize::from(copied.byte(part, start + self.layout.reason)?);
            let reason = (*self.reasons.get(reason)?).filter(|_| status & !SCANNED == WAITING)?;
            let (low, stack_high, sp) = (word(self.layout.stack_low)?, word(self.layout.stack_high)?, word(self.layout.sp)?);
            let is_stack = low < sp && sp < stack_high && stack_high - low <= STACK_BYTES_MAX && sp % 8 == 0;
            let (id, pc, fp) = (word(self.layout.id)?, word(self.layout.pc)?, word(self.layout.fp)?);
            (is_stack && pc != 0).then_some(Found { address: *address, id, reason, pc, sp, fp, stack_high })
        };
        Ok(addresses.iter().zip(places).filter_map(of).collect())
    }

    /// What each number of a reason stands for.
    fn read_reasons(&self, memory: &dyn Memory) -> Result<Vec<Option<Reason>>, Missing> {
        let (at, bytes) = self.reasons_at;
        let number = (bytes / STRING_BYTES).min(REASONS_MAX);
        let strings = Copied::of(memory, std::iter::once((at, number * STRING_BYTES)))?;
        let place = |number: u64| {
            let (address, length) = (strings.word(0, number * STRING_BYTES)?, strings.word(0, number * STRING_BYTES + 8)?);
            Some((address, length)).filter(|(_, length)| *length <= REASON_BYTES_MAX)
        };
        let places: Vec<(u64, u64)> = (0..number).map(|number| place(number).unwrap_or_default()).collect();
        let names = Copied::of(memory, places.into_iter())?;
        let reasons: Vec<Option<Reason>> = (0..names.parts.len()).map(|part| names.bytes(part).and_then(Reason::of)).collect();
        if reasons.iter().all(Option::is_none) { Err(Missing::Torn) } else { Ok(reasons) }
    }
}

/// Reads the callers of goroutines in this many bytes of their stacks.
fn with_callers(memory: &dyn Memory, found: Vec<Found>, bytes: u64, is_root: impl Fn(u64) -> bool) -> Result<Vec<Goroutine>, Missing> {
    let copied = Copied::of(memory, found.iter().map(|it| (it.sp, (it.stack_high - it.sp).min(bytes))))?;
    let of = |(part, it): (usize, Found)| {
        let (callers, is_whole) = callers(&it, |address| copied.word(part, address.checked_sub(it.sp)?), &is_root);
        Goroutine { id: it.id, reason: it.reason, callers, is_whole, found: it }
    };
    Ok(found.into_iter().enumerate().map(of).collect())
}

/// The callers of a goroutine, and whether the last one is the root.
///
/// ```text
/// sp  |..frame..| saved fp | return address |..frame..| saved fp | return address |..
///                 ^ fp                                  ^ what it holds
/// ```
fn callers(of: &Found, read: impl Fn(u64) -> Option<u64>, is_root: impl Fn(u64) -> bool) -> (Vec<u64>, bool) {
    let mut callers = vec![of.pc];
    let (mut fp, mut lowest) = (of.fp, of.sp);
    while callers.len() < FRAMES_MAX {
        // Each frame lies above the last one.
        if fp < lowest || fp % 8 != 0 {
            return (callers, false);
        }
        let (Some(saved), Some(caller)) = (read(fp), fp.checked_add(8).and_then(&read)) else { return (callers, false) };
        if caller == 0 {
            return (callers, true);
        }
        callers.push(caller);
        if is_root(caller - 1) {
            return (callers, true);
        }
        (lowest, fp) = (fp + 16, saved);
    }
    (callers, false)
}

/// Parts of the memory of a process, copied at once.
struct Copied {
    parts: Vec<MemoryPart>,
    bytes: Vec<u8>,
}

impl Copied {
    /// Copies these lengths at these addresses. The callers limit both.
    fn of(memory: &dyn Memory, places: impl Iterator<Item = (u64, u64)>) -> Result<Copied, Missing> {
        let mut end = 0;
        let part = |(address, length): (u64, u64)| {
            let start = end;
            end += usize::try_from(length).unwrap_or(0);
            MemoryPart { address, place: start..end, is_there: false }
        };
        let mut parts: Vec<MemoryPart> = places.map(part).collect();
        let mut bytes = vec![0; end];
        memory.copy(&mut parts, &mut bytes)?;
        Ok(Copied { parts, bytes })
    }

    /// The bytes of a part; `None` if they could not be copied.
    fn bytes(&self, part: usize) -> Option<&[u8]> {
        let part = self.parts.get(part).filter(|part| part.is_there)?;
        self.bytes.get(part.place.clone())
    }

    fn word(&self, part: usize, offset: u64) -> Option<u64> {
        memory::word(self.bytes(part)?, offset)
    }

    fn int(&self, part: usize, offset: u64) -> Option<u32> {
        memory::int(self.bytes(part)?, offset).map(i32::cast_unsigned)
    }

    fn byte(&self, part: usize, offset: u64) -> Option<u8> {
        self.bytes(part)?.get(usize::try_from(offset).ok()?).copied()
    }
}
