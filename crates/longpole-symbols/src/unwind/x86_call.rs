//! Whom the code in front of a return address calls, by the bytes of the x86-64 instruction.

use longpole_model::AbsAddr;

use super::address_space::AddressSpace;

/// Whom the code in front of an address calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// The function that starts there.
    Function(u64),
    /// It is a call that does not say whose, or of a stub of the linker, which jumps to a function.
    Somebody,
    /// There is no call, so no return address either.
    Nobody,
    /// The code cannot be read.
    Unknown,
}

/// Bytes of the longest call whose length its first bytes tell: `call [register + register * scale + disp32]`.
const CALL_BYTES_MAX: usize = 7;

pub(super) fn called(space: &AddressSpace, returns: u64, read: &mut impl FnMut(u64, &mut [u8]) -> bool) -> Called {
    let mut code = [0; CALL_BYTES_MAX];
    if !cfg!(target_arch = "x86_64") || !returns.checked_sub(CALL_BYTES_MAX as u64).is_some_and(|start| read(start, &mut code)) {
        return Called::Unknown;
    }
    let [_, c0, c1, d0, d1, d2, d3] = code;
    let operand = returns.wrapping_add_signed(i32::from_le_bytes([d0, d1, d2, d3]).into());
    let target = match (c0, c1) {
        // call rel32
        (_, 0xe8) => operand,
        // call [rip + rel32]: the global offset table
        (0xff, 0x15) => {
            let mut slot = [0; 8];
            if !read(operand, &mut slot) {
                return Called::Somebody;
            }
            u64::from_le_bytes(slot)
        }
        _ if calls_by_register(&code) => return Called::Somebody,
        _ => return Called::Nobody,
    };
    let start = space.region(AbsAddr(target)).and_then(|region| region.function_start(AbsAddr(target)));
    if start == Some(target) { Called::Function(target) } else { Called::Somebody }
}

/// Whether these bytes end in a call of what a register holds or points to: `ff /2`, in each of its lengths.
fn calls_by_register(code: &[u8; CALL_BYTES_MAX]) -> bool {
    // Bits of the second byte: how long the displacement is, 2 for a call, the register; register 4 stands for one byte more.
    let is_call = |bytes: usize, displacement: u8, has_scale: bool| {
        let at = CALL_BYTES_MAX - bytes;
        let (opcode, operand) = (code[at], code[at + 1]);
        let is_plain = displacement == 3 || has_scale == (operand & 7 == 4);
        opcode == 0xff && operand >> 6 == displacement && operand >> 3 & 7 == 2 && is_plain
    };
    is_call(2, 3, false)
        || is_call(2, 0, false)
        || is_call(3, 0, true)
        || is_call(3, 1, false)
        || is_call(4, 1, true)
        || is_call(6, 2, false)
        || is_call(7, 2, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_a_register_are_known_by_their_bytes() {
        let ends_in = |code: &[u8]| {
            let mut bytes = [0x90; CALL_BYTES_MAX];
            bytes[CALL_BYTES_MAX - code.len()..].copy_from_slice(code);
            calls_by_register(&bytes)
        };
        // call rax; call r12; call [rbx]; call [rbx + 8]; call [r12 + 8]; call [rbx + 0x1000]; call [rax + rcx * 8 + 0x1000]; call [rsp]
        let calls: [&[u8]; 8] = [
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x13],
            &[0xff, 0x53, 0x08],
            &[0x41, 0xff, 0x54, 0x24, 0x08],
            &[0xff, 0x93, 0, 0x10, 0, 0],
            &[0xff, 0x94, 0xc8, 0, 0x10, 0, 0],
            &[0xff, 0x14, 0x24],
        ];
        assert_eq!(calls.map(ends_in), [true; 8]);
        // jmp rax; push [rbx]; inc eax; nothing
        let others: [&[u8]; 4] = [&[0xff, 0xe0], &[0xff, 0x33], &[0xff, 0xc0], &[]];
        assert_eq!(others.map(ends_in), [false; 4]);
    }
}
