//! Functions that align the stack and keep in rbx where it was: how to walk out of one is in `unwind/realigned.rs`.

use std::ops::Range;

use gimli::{CallFrameInstruction, Register};
use object::read::{Object as _, ObjectSymbol as _, ReadRef};

use super::dynamic_names::has_dynamic_name;
use crate::eh_frame::{Section, functions_where};

/// rbx, as DWARF numbers the registers of x86-64.
pub(crate) const RBX: Register = Register(3);

/// `DW_CFA_def_cfa_register` and rbx.
const COUNTS_FROM_RBX: [u8; 2] = [0x0d, 3];

/// What the loader exports of its state: no other binary defines it.
const LOADER_STATE: &str = "_rtld_global";

/// Finds these functions in the loader, by the addresses the file states; in all other binaries there are none.
pub(crate) fn functions<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, eh_frame: &Section) -> Vec<Range<u64>> {
    if !cfg!(target_arch = "x86_64") || !eh_frame.bytes.windows(2).any(|two| two == COUNTS_FROM_RBX) || !is_loader(file) {
        return Vec::new();
    }
    functions_where(eh_frame, |section, bases, entry| {
        let mut instructions = entry.instructions(section, bases);
        std::iter::from_fn(|| instructions.next().ok().flatten())
            .any(|instruction| matches!(instruction, CallFrameInstruction::DefCfaRegister { register: RBX }))
    })
}

/// Whether the file is the dynamic loader: it defines the loader's state.
///
/// The C library imports it, so its table has the name as well. Each name is a read of its own, and the C library defines thousands of
/// symbols and imports about thirty: so imports come first.
fn is_loader<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> bool {
    let is_named = |symbol: &object::Symbol<'d, '_, R>| symbol.name() == Ok(LOADER_STATE);
    let imports = || file.dynamic_symbols().filter(|symbol| symbol.is_undefined()).any(|symbol| is_named(&symbol));
    let defines = || file.dynamic_symbols().filter(|symbol| symbol.is_definition()).any(|symbol| is_named(&symbol));
    has_dynamic_name(file, LOADER_STATE) && !imports() && defines()
}
