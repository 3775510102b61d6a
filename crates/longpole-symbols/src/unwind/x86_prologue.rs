//! How far a function's frame pointer lies above its stack pointer, by the x86-64 code at its start.

/// Bytes of code that are read. Prologues of compilers take at most 6 pushes, a `sub` and what stands between.
const PROLOGUE_BYTES: usize = 48;

/// `endbr64`: where an indirect branch may lead, if the processor checks that.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Bytes from the stack pointer up to the frame pointer in the body of the function that begins at `start`, if its code tells:
///
/// ```text
/// push rbp;  mov rbp, rsp;  push r15;  push rbx;  sub rsp, 0x28      -> 2 * 8 + 0x28
/// ```
///
/// `read` fills the bytes from the memory of the process, or says that it cannot.
pub(super) fn frame_pointer_above_stack_pointer(start: u64, read: &mut impl FnMut(u64, &mut [u8]) -> bool) -> Option<u64> {
    let mut code = [0; PROLOGUE_BYTES];
    (cfg!(target_arch = "x86_64") && read(start, &mut code)).then(|| above_stack_pointer(&code)).flatten()
}

fn above_stack_pointer(code: &[u8]) -> Option<u64> {
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    let code = code.strip_prefix(&[0x55])?;
    let mut code = code.strip_prefix(&[0x48, 0x89, 0xe5]).or_else(|| code.strip_prefix(&[0x48, 0x8b, 0xec]))?;
    let mut pushed = 0;
    loop {
        code = match code {
            // push rax … rdi; push r8 … r15
            [0x50..=0x57, rest @ ..] | [0x41, 0x50..=0x57, rest @ ..] => {
                pushed += 8;
                rest
            }
            // mov from register to register, which GCC puts between the pushes; rsp and rbp stay as they are.
            [0x89, registers, rest @ ..] | [0x44 | 0x48 | 0x4c, 0x89, registers, rest @ ..] if keeps_stack(*registers) => rest,
            [0x41 | 0x45 | 0x49 | 0x4d, 0x89, registers, rest @ ..] if *registers >= 0xc0 => rest,
            // sub rsp, imm8; sub rsp, imm32; and what aligns the stack leaves nothing certain.
            [0x48, 0x83, 0xec, bytes, ..] => return i8::from_le_bytes([*bytes]).try_into().ok().map(|bytes: u64| pushed + bytes),
            [0x48, 0x81, 0xec, b0, b1, b2, b3, ..] => {
                return i32::from_le_bytes([*b0, *b1, *b2, *b3]).try_into().ok().map(|bytes: u64| pushed + bytes);
            }
            [0x48, 0x83 | 0x81, 0xe4, ..] => return None,
            _ => return Some(pushed),
        };
    }
}

/// Whether a `mov` between registers, to one of those without a number, writes neither `rsp` nor `rbp`, by its last byte.
fn keeps_stack(registers: u8) -> bool {
    registers >= 0xc0 && !matches!(registers & 7, 4 | 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(code: &[u8]) -> Option<u64> {
        let read = |_, bytes: &mut [u8]| {
            bytes.fill(0x90);
            bytes[..code.len()].copy_from_slice(code);
            true
        };
        frame_pointer_above_stack_pointer(0x1000, &mut { read })
    }

    #[test]
    fn pushes_and_the_frame_are_counted() {
        // push rbp; mov rbp, rsp; push r15; push r14; push rbx; sub rsp, 0x48
        let rust = [0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x53, 0x48, 0x83, 0xec, 0x48];
        assert_eq!(above(&rust), Some(3 * 8 + 0x48));
        // endbr64; push rbp; mov rbp, rsp; push r12; mov r12, rdi; push rbx; mov ebx, esi; sub rsp, 0x1010
        let gcc = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x49, 0x89, 0xfc, 0x53, 0x89, 0xf3, 0x48, 0x81, 0xec, 0x10, 0x10,
            0, 0,
        ];
        assert_eq!(above(&gcc), Some(2 * 8 + 0x1010));
        // push rbp; mov rbp, rsp; pop rbp
        assert_eq!(above(&[0x55, 0x48, 0x8b, 0xec, 0x5d]), Some(0));
    }

    #[test]
    fn what_is_not_certain_is_not_told() {
        // and rsp, -32 after the frame pointer; no frame pointer: push rbx; a frame pointer that is another register.
        let uncertain: [&[u8]; 4] =
            [&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0], &[0x53, 0x48, 0x83, 0xec, 8], &[0x55, 0x48, 0x89, 0xe3], &[]];
        assert_eq!(uncertain.map(above), [None; 4]);
        assert_eq!(frame_pointer_above_stack_pointer(0x1000, &mut |_, _: &mut [u8]| false), None);
    }
}
