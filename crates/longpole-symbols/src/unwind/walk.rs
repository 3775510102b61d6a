//! The walk: from registers and stack bytes to frames, one caller after the other.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder as _};
use longpole_model::{AbsAddr, CodeAddress};

use super::address_space::{AddressSpace, Code, Place, Region, changes, place};
use super::frame::{FRAMES_MAX, Frame, Registers};
use super::realigned;
use super::saved_stack_pointer;
use super::stack_end::{StackEnd, end_of_error};
use crate::made_code::{MadeCode, MadeFrame, MadeId, Stack};

/// framehop numbers the states of all address spaces of the program with 16 bits and finds rules in its cache by that
/// number, so a cache is thrown away before a number can come again.
const CHANGES_PER_CACHE: u64 = 60_000;

/// Eight frames are no chance: each has its return address in code, where the one before it says.
const FRAMES_FAR: usize = 8;

/// Steps of one stack: bytes of the unwind information of its frames, at least [`FRAME_STEPS`](crate::eh_frame::FRAME_STEPS) for each. The
/// 2,048 frames of the deepest stack may have 4 KiB each, and the longest function of GCC may call itself 400 times. They take 80 ms at worst.
const STEPS_MAX: u64 = 8 << 20;

/// Walks stacks. Keeps what it learned about addresses, so one of them serves all processes of a recording.
pub struct StackWalker {
    cache: CacheNative<MayAllocateDuringUnwind>,
    made_at: u64,
}

impl Default for StackWalker {
    fn default() -> Self {
        StackWalker { cache: CacheNative::default(), made_at: changes() }
    }
}

impl fmt::Debug for StackWalker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StackWalker").finish_non_exhaustive()
    }
}

impl StackWalker {
    /// A walker that knows nothing yet.
    pub fn new() -> Self {
        StackWalker::default()
    }

    /// The innermost frame alone, for a process whose stacks take too long.
    pub fn leaf(space: &AddressSpace, registers: &Registers, frames: &mut Vec<Frame>) -> StackEnd {
        let leaf = AbsAddr(registers.ip);
        frames.clear();
        frames.push(Frame { address: CodeAddress::Instruction(leaf), place: space.locate(leaf), sp: registers.sp, fp: registers.fp });
        StackEnd::TooSlow
    }

    /// Walks one stack; `frames` is emptied and filled leaf first.
    ///
    /// `stack` holds the bytes at `registers.sp` and above that were really copied; `asked_bytes` is how many should have
    /// been, which tells a deep stack from missing memory.
    pub fn walk(
        &mut self,
        space: &AddressSpace,
        registers: &Registers,
        stack: &[u8],
        asked_bytes: u32,
        frames: &mut Vec<Frame>,
    ) -> StackEnd {
        self.walk_through(space, registers, (stack, asked_bytes), None, frames)
    }

    /// The same, through code that no binary holds: `made` has its callers and its names.
    pub fn walk_through(
        &mut self,
        space: &AddressSpace,
        registers: &Registers,
        (stack, asked_bytes): (&[u8], u32),
        made: Option<&mut dyn MadeCode>,
        frames: &mut Vec<Frame>,
    ) -> StackEnd {
        frames.clear();
        if changes() - self.made_at >= CHANGES_PER_CACHE {
            *self = StackWalker::default();
        }
        // framehop interprets bytes of foreign files. It is careful, but sums that overflow are panics in builds with checks.
        let copy = StackCopy { sp: registers.sp, stack, asked_bytes };
        match catch_unwind(AssertUnwindSafe(|| walk(space, registers, &copy, (made, &mut self.cache), frames))) {
            Ok(end) => end,
            Err(_) => {
                *self = StackWalker::default();
                StackEnd::BadInformation
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn native_registers(_space: &AddressSpace, registers: &Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.ip, registers.sp, registers.fp)
}

/// Return addresses may be signed in their upper bits; code lies below the highest known address.
#[cfg(target_arch = "aarch64")]
fn native_registers(space: &AddressSpace, registers: &Registers) -> framehop::UnwindRegsNative {
    let highest = space.unwinder.max_known_code_address().max(1 << 39);
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(highest);
    framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp)
}

/// The bytes of a stack that were copied.
struct StackCopy<'a> {
    /// Where they begin.
    sp: u64,
    stack: &'a [u8],
    asked_bytes: u32,
}

impl StackCopy<'_> {
    fn word(&self, address: u64) -> Result<u64, ()> {
        let at = usize::try_from(address.checked_sub(self.sp).ok_or(())?).map_err(|_| ())?;
        let word = self.stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
        Ok(u64::from_le_bytes(word.try_into().map_err(|_| ())?))
    }
}

/// Walks from the registers of a thread.
fn walk(
    space: &AddressSpace,
    registers: &Registers,
    copy: &StackCopy<'_>,
    (mut made, cache): (Option<&mut dyn MadeCode>, &mut CacheNative<MayAllocateDuringUnwind>),
    frames: &mut Vec<Frame>,
) -> StackEnd {
    let leaf = CodeAddress::Instruction(AbsAddr(registers.ip));
    let end = walk_from(space, (leaf, registers), copy, (again(&mut made), cache), frames);
    if end == StackEnd::Root || frames.len() != 1 {
        return end;
    }
    let region = space.region(leaf.for_lookup());
    let mut beyond = Vec::new();
    for caller in saved_stack_pointer::callers(space, region, registers, &mut |address| copy.word(address)) {
        beyond.clear();
        // Any word of the stack may look like the one that is missing; what shows the right one is a walk from there to the root, or far.
        let first = CodeAddress::Return(AbsAddr(caller.ip));
        let end = walk_from(space, (first, &caller), copy, (again(&mut made), cache), &mut beyond);
        if end == StackEnd::Root || (end.is_truncated() && beyond.len() >= FRAMES_FAR) {
            frames.append(&mut beyond);
            return end;
        }
    }
    end
}

/// The same, for a shorter time.
fn again<'a>(made: &'a mut Option<&mut dyn MadeCode>) -> Option<&'a mut dyn MadeCode> {
    match made {
        Some(made) => Some(&mut **made),
        None => None,
    }
}

/// Walks from the registers of a frame.
fn walk_from(
    space: &AddressSpace,
    (first, registers): (CodeAddress<AbsAddr>, &Registers),
    copy: &StackCopy<'_>,
    (mut made, cache): (Option<&mut dyn MadeCode>, &mut CacheNative<MayAllocateDuringUnwind>),
    frames: &mut Vec<Frame>,
) -> StackEnd {
    let asked_bytes = copy.asked_bytes;
    let mut functions = Vec::new();
    let mut read = |address: u64| copy.word(address);
    let mut native = native_registers(space, registers);
    let returned = match first {
        CodeAddress::Return(_) => FrameAddress::from_return_address(registers.ip),
        CodeAddress::Instruction(_) => None,
    };
    let mut at = returned.unwrap_or(FrameAddress::from_instruction_pointer(registers.ip));
    let leaf = AbsAddr(registers.ip);
    let mut region = space.region(first.for_lookup());
    frames.push(Frame { address: first, place: place(region, first.for_lookup()), sp: registers.sp, fp: registers.fp });
    // While the kernel takes back what a handler interrupted, the instruction pointer is behind the call.
    let behind_call = AbsAddr(leaf.0.saturating_sub(1));
    let mut returns_from_signal = region.is_some_and(|region| region.is_signal_return(leaf) || region.is_signal_return(behind_call));
    let mut steps = 0;
    loop {
        if returns_from_signal {
            let Some(interrupted) = interrupted_registers(native.sp(), &mut read) else {
                return StackEnd::Deeper { copied_bytes: asked_bytes };
            };
            let ip = AbsAddr(interrupted.ip);
            region = space.region(ip);
            frames.push(Frame { address: CodeAddress::Instruction(ip), place: place(region, ip), sp: interrupted.sp, fp: interrupted.fp });
            let copied = copy.sp..copy.sp.saturating_add(copy.stack.len() as u64);
            if !copied.contains(&interrupted.sp) {
                return StackEnd::OtherStack;
            }
            native = native_registers(space, &interrupted);
            at = FrameAddress::from_instruction_pointer(interrupted.ip);
        }
        steps += region.zip(frames.last()).map_or(0, |(region, frame)| region.steps(frame.address.for_lookup()));
        if steps > STEPS_MAX {
            return StackEnd::TooSlow;
        }
        let before = native;
        let caller = match made.as_deref_mut() {
            Some(made) => made_caller(made, space, (&native, registers), frames, &mut functions, &mut read),
            None => None,
        };
        let caller = caller.or_else(|| realigned::caller(space, region, (frames, frame_pointer(&native)), registers, &mut read));
        let unwound = match caller {
            Some(caller) => {
                native = native_registers(space, &caller);
                Ok(Some(caller.ip))
            }
            None => space.unwinder.unwind_frame(at, &mut native, cache, &mut read),
        };
        let caller = match unwound {
            Ok(Some(caller)) => caller,
            Ok(None) | Err(_) if let Some(caller) = beyond_word(space, (region, frames), &before, &mut read) => {
                native = native_registers(space, &caller);
                caller.ip
            }
            Ok(None) => return StackEnd::Root,
            Err(_) if is_entry(space, frames) => return StackEnd::Root,
            Err(error) => return end_of_error(error, copy.sp, copy.stack.len(), asked_bytes),
        };
        let mut address = CodeAddress::Return(AbsAddr(caller));
        let mut caller = caller;
        let of = std::mem::replace(&mut region, space.region(address.for_lookup()));
        // framehop takes a function without unwind information for one that has saved nothing yet, if it is the innermost.
        if region.is_none()
            && let Some(linked) =
                beyond_word(space, (of, frames), &before, &mut read).or_else(|| by_frame_pointer(space, &before, &mut read))
        {
            native = native_registers(space, &linked);
            caller = linked.ip;
            address = CodeAddress::Return(AbsAddr(caller));
            region = space.region(address.for_lookup());
        }
        let Some(known) = region else {
            if is_entry(space, frames) {
                return StackEnd::Root;
            }
            // The kernel reports every executable mapping, so this is no return address but another word of the stack.
            return StackEnd::NotCode;
        };
        if frames.len() + 1 >= FRAMES_MAX {
            return StackEnd::TooMany;
        }
        returns_from_signal = known.is_signal_return(address.for_lookup());
        if returns_from_signal {
            // Nobody has called it: the kernel has a handler return to its first instruction.
            address = CodeAddress::Instruction(AbsAddr(caller));
        }
        frames.push(Frame { address, place: known.place(address.for_lookup()), sp: native.sp(), fp: frame_pointer(&native) });
        at = match FrameAddress::from_return_address(caller) {
            Some(next) => next,
            None => return StackEnd::Root,
        };
    }
}

/// The caller of the last frame, if that is made code and `made` has it; names the frame, and those that are inlined there.
fn made_caller(
    made: &mut dyn MadeCode,
    space: &AddressSpace,
    (native, leaf): (&framehop::UnwindRegsNative, &Registers),
    frames: &mut Vec<Frame>,
    functions: &mut Vec<MadeId>,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let last = frames.last().copied().filter(|last| last.place == Place::Anonymous)?;
    let (ip, is_leaf) = match last.address {
        CodeAddress::Instruction(address) => (address.0, true),
        CodeAddress::Return(address) => (address.0, false),
    };
    let bx = if frames.len() == 1 { leaf.bx } else { 0 };
    let frame = MadeFrame { ip, is_leaf, sp: native.sp(), fp: frame_pointer(native), bx };
    functions.clear();
    let caller = made.step(&frame, &mut Words { space, read }, functions);
    if !functions.is_empty() {
        frames.pop();
        let room = FRAMES_MAX.saturating_sub(frames.len() + 1);
        frames.extend(functions.iter().take(room.max(1)).map(|id| Frame { place: Place::Made(*id), ..last }));
    }
    // A caller lies above what it has called.
    let caller = caller.filter(|caller| caller.sp > frame.sp)?;
    Some(Registers { ip: caller.ip, sp: caller.sp, fp: caller.fp, ..Registers::default() })
}

/// The copied stack of a walk.
struct Words<'a, R> {
    space: &'a AddressSpace,
    read: &'a mut R,
}

impl<R: FnMut(u64) -> Result<u64, ()>> Stack for Words<'_, R> {
    fn word(&mut self, address: u64) -> Option<u64> {
        (self.read)(address).ok()
    }

    fn is_code(&self, address: u64) -> bool {
        self.space.region(AbsAddr(address)).is_some()
    }
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(native: &framehop::UnwindRegsNative) -> u64 {
    native.bp()
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(native: &framehop::UnwindRegsNative) -> u64 {
    native.fp()
}

/// The caller by the frame pointer, where that leads to a saved one and a return address into code.
fn by_frame_pointer(
    space: &AddressSpace,
    native: &framehop::UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let fp = frame_pointer(native);
    if fp < native.sp() || !fp.is_multiple_of(8) {
        return None;
    }
    let (saved, ip) = (read(fp).ok()?, read(fp.checked_add(8)?).ok()?);
    space.region(AbsAddr(ip.checked_sub(1)?))?;
    Some(Registers { ip, sp: fp.checked_add(16)?, fp: saved, ..Registers::default() })
}

/// The caller of a piece of code without unwind information that lowers the stack pointer by a word, calls on, and returns. What gives
/// it away is a return address where it then must be. There are two of the kind: what a binary has in `.init` and `.fini`, and code that
/// was made at run time and has no frame pointer: CPython has one for each function under `-X perf`.
#[cfg(target_arch = "x86_64")]
fn beyond_word(
    space: &AddressSpace,
    (region, frames): (Option<&Region>, &[Frame]),
    native: &framehop::UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let last = frames.last()?;
    let is_trampoline = frames.len() > 1 && last.place == Place::Anonymous;
    if !is_trampoline && !region.is_some_and(|region| region.is_init(last.address.for_lookup())) {
        return None;
    }
    let ip = read(native.sp().checked_add(8)?).ok()?;
    let is_code = matches!(space.region(AbsAddr(ip.checked_sub(1)?))?.code, Code::Mapped { .. });
    is_code.then_some(Registers { ip, sp: native.sp().checked_add(16)?, fp: native.bp(), ..Registers::default() })
}

#[cfg(not(target_arch = "x86_64"))]
fn beyond_word(
    _space: &AddressSpace,
    _of: (Option<&Region>, &[Frame]),
    _native: &framehop::UnwindRegsNative,
    _read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    None
}

fn is_entry(space: &AddressSpace, frames: &[Frame]) -> bool {
    frames.last().map(|frame| frame.address.for_lookup()).is_some_and(|at| space.region(at).is_some_and(|region| region.is_entry(at)))
}

/// The registers that the kernel saved on the stack for a handler, which lie just above its return address: a `ucontext`
/// whose machine context starts at byte 40 (r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip).
fn interrupted_registers(sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Registers> {
    let mut saved = |offset: u64| read(sp.checked_add(offset)?).ok();
    Some(Registers { ip: saved(168)?, sp: saved(160)?, fp: saved(120)?, bx: saved(128)?, lr: 0 })
}
