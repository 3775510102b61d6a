//! Functions that align the stack and keep in rbx where it was.
//!
//! The loader of the GNU C library has them: what resolves a function at its first call saves the vector registers of the caller, which
//! must lie at a multiple of 64 bytes. Its call frame information counts from rbx, which framehop does not follow.
//!
//! ```text
//! sp  |..vector registers..|  gap  | saved rbx | link map | index | return address |..caller..
//!                                  ^ rbx                                            ^ rbx + 32
//! ```

use gimli::{CfaRule, RegisterRule};
use longpole_model::AbsAddr;

use super::address_space::{AddressSpace, Region};
use super::frame::{Frame, Registers};
use crate::probe::realigning::RBX;

/// The registers of the caller, if the last of the frames, which lies in `region`, is of such a function and has aligned the stack;
/// its frame pointer is the caller's. `leaf` are the registers of the first of the frames.
pub(super) fn caller(
    space: &AddressSpace,
    region: Option<&Region>,
    (frames, fp): (&[Frame], u64),
    leaf: &Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let region = region?;
    let binary = region.binary()?;
    let stated = region.stated(frames.last()?.address.for_lookup());
    if !binary.realigns_stack(stated) {
        return None;
    }
    // Before the stack is aligned, and after, it counts from the stack pointer as others do.
    let offset = binary.row(stated, |row| match row.cfa() {
        CfaRule::RegisterAndOffset { register: RBX, offset } => Some(*offset),
        _ => None,
    })?;
    let top = rbx(space, frames, leaf, read)?.checked_add_signed(offset)?;
    let ip = read(top.checked_sub(8)?).ok()?;
    space.region(AbsAddr(ip.checked_sub(1)?))?;
    Some(Registers { ip, sp: top, fp, ..Registers::default() })
}

/// What the last of the frames has in rbx: what the innermost of those that it called has saved of it, if any did.
fn rbx(space: &AddressSpace, frames: &[Frame], leaf: &Registers, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<u64> {
    for pair in frames.windows(2).rev() {
        let address = pair[0].address.for_lookup();
        let region = space.region(address)?;
        let rule = region.binary()?.row(region.stated(address), |row| Some(row.register(RBX)))?;
        match rule {
            Some(RegisterRule::Offset(offset)) => {
                let place = pair[1].sp.checked_add_signed(offset)?;
                // Below the stack pointer the innermost function has taken it back already.
                return if place < leaf.sp { Some(leaf.bx) } else { read(place).ok() };
            }
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => {}
            Some(_) => return None,
        }
    }
    Some(leaf.bx)
}
