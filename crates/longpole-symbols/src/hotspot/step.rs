//! From a frame of the machine's code to its caller (x86-64).
//!
//! ```text
//! interpreted   fp + 8   return address           compiled   sp                  words of the frame
//!               fp       caller's fp                         sp + frame − 16     caller's fp
//!               fp − 8   caller's sp                         sp + frame − 8      return address
//!               fp − 24  method                              sp + frame          caller's sp
//!               fp − 64  where its bytecode is
//! ```
//!
//! `call_stub`, by which the machine calls Java, has a frame as any C function with a frame pointer.

use super::code_cache::Blob;
use crate::made_code::{MadeCaller, MadeFrame, Stack};

/// Where an interpreted frame has what, counted from its frame pointer.
const SENDER_SP: u64 = 8;
pub(super) const METHOD: u64 = 24;
pub(super) const BYTECODE: u64 = 64;

/// Largest distance between an interpreted frame and the caller's stack pointer: parameters and locals, a word each.
const SENDER_BYTES_MAX: u64 = 1 << 20;

/// Bytes of code that are read at the leaf.
pub(super) const CODE_BYTES: usize = 8;

/// `ret`.
const RETURN: u8 = 0xc3;
/// `pop rbp`.
const POP_FP: u8 = 0x5d;
/// `cmp rsp, [r15 + …]`: between the end of a frame and its return, code asks whether the machine wants it to stop.
const POLL: [u8; 3] = [0x49, 0x3b, 0xa7];
/// `test eax, [r10]` and `test [rip + …], eax`: the same in older machines.
const POLLS_OLD: [&[u8]; 3] = [&[0x41, 0x85, 0x02], &[0x85, 0x05], &[0x45, 0x85]];
/// `ja`, which follows.
const JUMP_ABOVE: [u8; 2] = [0x0f, 0x87];

/// By the frame pointer.
pub(super) fn by_frame_pointer(frame: &MadeFrame, stack: &mut dyn Stack) -> Option<MadeCaller> {
    let MadeFrame { sp, fp, .. } = *frame;
    if fp < sp || !fp.is_multiple_of(8) {
        return None;
    }
    let ip = stack.word(fp.checked_add(8)?)?;
    let caller = MadeCaller { ip, sp: fp.checked_add(16)?, fp: stack.word(fp)? };
    is_return(stack, ip).then_some(caller)
}

/// The caller of an interpreted frame.
pub(super) fn interpreted(frame: &MadeFrame, stack: &mut dyn Stack) -> Option<MadeCaller> {
    let caller = by_frame_pointer(frame, stack)?;
    let sender = stack.word(frame.fp.checked_sub(SENDER_SP)?).filter(|sp| {
        let above = sp.checked_sub(caller.sp);
        sp.is_multiple_of(8) && above.is_some_and(|bytes| bytes <= SENDER_BYTES_MAX)
    });
    Some(MadeCaller { sp: sender.unwrap_or(caller.sp), ..caller })
}

/// The caller of a frame whose size the blob says. At the leaf the frame may not be whole; `code` are the bytes from there on.
pub(super) fn compiled(frame: &MadeFrame, blob: &Blob, code: Option<[u8; CODE_BYTES]>, stack: &mut dyn Stack) -> Option<MadeCaller> {
    let MadeFrame { ip, sp, fp, is_leaf, .. } = *frame;
    let whole = || sp.checked_add(blob.frame_bytes).filter(|_| blob.frame_bytes >= 16);
    if !is_leaf {
        return sized(whole()?, stack);
    }
    let code = code.unwrap_or_default();
    let is_before = ip < blob.frame_complete;
    let starts = |bytes: &[u8]| code.starts_with(bytes);
    let is_behind = code[0] == RETURN || starts(&POLL) || starts(&JUMP_ABOVE) || POLLS_OLD.into_iter().any(starts);
    if (is_before || is_behind)
        && let Some(ip) = stack.word(sp).filter(|ip| is_return(stack, *ip))
    {
        return Some(MadeCaller { ip, sp: sp.checked_add(8)?, fp });
    }
    if is_before || code[0] == POP_FP {
        let ip = stack.word(sp.checked_add(8)?).filter(|ip| is_return(stack, *ip));
        if let Some(ip) = ip {
            return Some(MadeCaller { ip, sp: sp.checked_add(16)?, fp: stack.word(sp)? });
        }
    }
    sized(whole()?, stack)
}

/// The caller whose stack pointer is `top`.
fn sized(top: u64, stack: &mut dyn Stack) -> Option<MadeCaller> {
    let (ip, fp) = (stack.word(top.checked_sub(8)?)?, stack.word(top.checked_sub(16)?)?);
    is_return(stack, ip).then_some(MadeCaller { ip, sp: top, fp })
}

/// The caller of a piece of code that has no frame (yet).
pub(super) fn frameless(frame: &MadeFrame, stack: &mut dyn Stack) -> Option<MadeCaller> {
    let MadeFrame { sp, fp, .. } = *frame;
    let ip = stack.word(sp)?;
    is_return(stack, ip).then_some(MadeCaller { ip, sp: sp.checked_add(8)?, fp })
}

fn is_return(stack: &dyn Stack, ip: u64) -> bool {
    ip.checked_sub(1).is_some_and(|before| stack.is_code(before))
}
