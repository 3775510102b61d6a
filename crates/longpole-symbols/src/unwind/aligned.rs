//! Functions that align the stack and keep in rbx where it was.
//!
//! The loader of the GNU C library has them: what resolves a function at its first call saves the vector registers of the caller, which
//! must lie at a multiple of 64 bytes. Its call frame information counts from rbx, which framehop does not follow.
//!
//! ```text
//! sp  |..vector registers..|  gap  | saved rbx | link map | index | return address |..caller..
//!                                  ^ rbx                                            ^ rbx + 32
//! ```

use std::ops::Range;

use gimli::{CallFrameInstruction, CfaRule, Register, RegisterRule, UnwindContext, UnwindTableRow};
use longpole_model::AbsAddr;
use object::read::{Object as _, ObjectSymbol as _, ReadRef};

use super::{AddressSpace, Binary, Frame, Region, Registers, Section, functions_where, has_dynamic_name};

/// rbx, as DWARF numbers the registers of x86-64.
const RBX: Register = Register(3);

/// `DW_CFA_def_cfa_register` and rbx.
const COUNTS_FROM_RBX: [u8; 2] = [0x0d, 3];

/// What the loader exports of its state: no other binary defines it.
const LOADER_STATE: &str = "_rtld_global";

/// Finds these functions in the loader, by the addresses the file states; in all other binaries there are none.
pub(super) fn functions<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, eh_frame: &Section) -> Vec<Range<u64>> {
    if !cfg!(target_arch = "x86_64") || !eh_frame.bytes.windows(2).any(|two| two == COUNTS_FROM_RBX) || !is_loader(file) {
        return Vec::new();
    }
    functions_where(eh_frame, |section, bases, entry| {
        let mut instructions = entry.instructions(section, bases);
        std::iter::from_fn(|| instructions.next().ok().flatten())
            .any(|instruction| matches!(instruction, CallFrameInstruction::DefCfaRegister { register: RBX }))
    })
}

fn is_loader<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> bool {
    let defines = |symbol: object::Symbol<'d, '_, R>| symbol.is_definition() && symbol.name() == Ok(LOADER_STATE);
    has_dynamic_name(file, LOADER_STATE) && file.dynamic_symbols().any(defines)
}

/// The registers of the caller, if the last of the frames, which lies in `region`, is of such a function and has aligned the stack;
/// its frame pointer is the caller's. `leaf` are the registers of the first of the frames.
pub(super) fn caller(
    space: &AddressSpace,
    region: Option<&Region>,
    (frames, fp): (&[Frame], u64),
    leaf: &Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<Registers> {
    let region = region.filter(|region| region.binary().is_some_and(|binary| !binary.aligned.is_empty()))?;
    let binary = region.binary()?;
    let stated = frames.last()?.address.for_lookup().0.wrapping_sub(region.bias);
    if !binary.aligned.iter().any(|range| range.contains(&stated)) {
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
        let rule = region.binary()?.row(address.0.wrapping_sub(region.bias), |row| Some(row.register(RBX)))?;
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

impl Binary {
    /// Takes from the row of the unwind information that holds at this address what is wanted of it.
    fn row<T>(&self, address: u64, take: impl FnOnce(&UnwindTableRow<usize>) -> Option<T>) -> Option<T> {
        self.entry_of(address, |section, bases, entry| {
            let mut context = UnwindContext::new();
            take(entry.unwind_info_for_address(section, bases, &mut context, address).ok()?)
        })
    }
}
