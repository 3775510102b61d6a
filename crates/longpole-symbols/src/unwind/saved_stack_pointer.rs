//! Functions that keep in a word of the stack where the stack was, because they have aligned it.
//!
//! Hashes of OpenSSL do, in code written by hand: their call frame information takes the word at a distance from the stack pointer, which
//! framehop does not follow. With AVX2 that word is below the stack pointer for most of the time, and no copy of a stack holds it, because
//! copies begin at the stack pointer. But the function moves the stack pointer down in steps, and a word of the same value is left above:
//!
//! ```text
//! | where the stack was |  sp |..data..| where the stack was |..data..| saved registers | return address |..caller..
//!   not copied                           the same word                                  ^ where the stack was
//! ```

use gimli::{CfaRule, Operation, Register, RegisterRule};
use longpole_model::AbsAddr;

use super::address_space::{AddressSpace, Region};
use super::frame::Registers;

/// rsp and rbp, as DWARF numbers the registers of x86-64.
const RSP: Register = Register(7);
const RBP: Register = Register(6);

/// Bytes below the stack pointer that a function may use without moving it.
const RED_ZONE_BYTES: i64 = 128;

/// Bytes above the stack pointer in which the word is looked for: the function has 1,300 of its own, and aligns them at 2,048.
const LOOKED_THROUGH_BYTES: u64 = 4096;

/// Most callers that are tried.
const CALLERS_MAX: usize = 4;

/// The registers that the caller may have, likeliest first, if the code at `leaf` needs such a word to find it.
pub(super) fn callers(
    space: &AddressSpace,
    region: Option<&Region>,
    leaf: &Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Vec<Registers> {
    let Some(Rule { word_at, beyond, saved_fp }) = region.and_then(|region| rule(region, AbsAddr(leaf.ip))) else { return Vec::new() };
    let places = if word_at >= 0 {
        let at = leaf.sp.saturating_add_signed(word_at);
        at..at.saturating_add(8)
    } else if word_at >= -RED_ZONE_BYTES {
        leaf.sp..leaf.sp.saturating_add(LOOKED_THROUGH_BYTES)
    } else {
        return Vec::new();
    };
    let mut callers: Vec<Registers> = Vec::new();
    for at in places.step_by(8) {
        let Ok(word) = read(at) else { break };
        if callers.len() == CALLERS_MAX {
            break;
        }
        let caller = (word > at && word.is_multiple_of(8)).then(|| {
            let top = word.checked_add(beyond)?;
            let ip = read(top.checked_sub(8)?).ok()?;
            space.region(AbsAddr(ip.checked_sub(1)?))?;
            let fp = match saved_fp {
                Some(offset) => read(top.checked_add_signed(offset)?).ok()?,
                None => leaf.fp,
            };
            Some(Registers { ip, sp: top, fp, ..Registers::default() })
        });
        if let Some(caller) = caller.flatten()
            && !callers.contains(&caller)
        {
            callers.push(caller);
        }
    }
    callers
}

struct Rule {
    /// Distance of the word from the stack pointer.
    word_at: i64,
    /// How far above the word's value the caller's part of the stack begins.
    beyond: u64,
    /// Where from there its frame pointer was saved, if it was.
    saved_fp: Option<i64>,
}

fn rule(region: &Region, ip: AbsAddr) -> Option<Rule> {
    let saved_fp = |rule: Option<RegisterRule<usize>>| match rule {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Some(None),
        Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
        Some(_) => None,
    };
    region.binary()?.row_with_section(region.stated(ip), |row, section, encoding| {
        let CfaRule::Expression(expression) = row.cfa() else { return None };
        let mut operations = expression.get(section).ok()?.operations(encoding);
        let mut next = || operations.next().ok().flatten();
        let (Operation::RegisterOffset { register: RSP, offset, .. }, Operation::Deref { .. }) = (next()?, next()?) else { return None };
        let beyond = match next() {
            Some(Operation::PlusConstant { value }) if next().is_none() => value,
            None => 0,
            Some(_) => return None,
        };
        Some(Rule { word_at: offset, beyond, saved_fp: saved_fp(row.register(RBP))? })
    })
}
