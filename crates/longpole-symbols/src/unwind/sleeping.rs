//! The stack of a thread that sleeps: only its instruction and stack pointer are known, so its frame pointer is searched for.

use longpole_model::AbsAddr;

use super::address_space::AddressSpace;
use super::frame::{Frame, Registers};
use super::stack_end::{DEEPER_BYTES_MAX, StackEnd};
use super::walk::StackWalker;
use super::x86_call::{Called, called};
use super::x86_prologue::frame_pointer_above_stack_pointer;
use crate::made_code::MadeCode;

/// Bytes in which the innermost function with a frame pointer is looked for, from where its frame begins.
const FRAME_POINTER_WITHIN: usize = 2048;

/// No address of any stack. Zero would be the end of a chain of frame pointers, and so a root.
const NO_FRAME_POINTER: u64 = 8;

/// Places that are tried as the innermost frame pointer.
const FRAME_POINTERS_MAX: usize = 6;

impl StackWalker {
    /// Walks the stack of a thread that sleeps, from its instruction and stack pointer alone.
    ///
    /// A function with a frame pointer needs its value. It points to where the caller's was saved, below the return address:
    ///
    /// ```text
    /// sp  |..frames without..| saved fp | return address |..frame..| saved fp | return address |..
    ///                          ^ what is looked for
    /// ```
    ///
    /// The first instructions of the function mostly tell how far above its stack pointer that is; `read` fills the bytes from the
    /// memory of the process, or says that it cannot. Otherwise: the code in front of the true return address is a call, of the
    /// function whose frame it is, if it says which. Where it names another function, an earlier call has left the pair behind. Where
    /// it does not say, the saved word mostly leads further up the stack, as in a chain of frame pointers; the outermost function with
    /// a frame pointer saved a word of any kind. The first place from which the walk comes to its root is taken, else the one from
    /// which it comes furthest.
    pub fn walk_asleep(
        &mut self,
        space: &AddressSpace,
        (ip, sp): (u64, u64),
        stack: &[u8],
        frames: &mut Vec<Frame>,
        mut read: impl FnMut(u64, &mut [u8]) -> bool,
        mut made: Option<&mut dyn MadeCode>,
    ) -> StackEnd {
        let asked = u32::try_from(stack.len()).unwrap_or(u32::MAX);
        let registers = |fp| Registers { ip, sp, fp, ..Registers::default() };
        let mut end = self.walk_through(space, &registers(NO_FRAME_POINTER), (stack, asked), again(&mut made), frames);
        let Some(innermost) = frames.last().copied().filter(|_| end != StackEnd::Root) else { return end };
        let callee = innermost.address.for_lookup();
        let callee = space.region(callee).and_then(|region| region.function_start(callee));
        let stated = callee.and_then(|start| innermost.sp.checked_add(frame_pointer_above_stack_pointer(start, &mut read)?));
        let mut candidates: Vec<(u8, u64)> = frame_pointers(space, (sp, stack), innermost.sp, stated)
            .filter_map(|(at, leads_up, returns)| match called(space, returns, &mut read) {
                Called::Nobody => None,
                // Also where the code calls another function, which has jumped to this one.
                _ if stated == Some(at) => Some((0, at)),
                Called::Function(start) if callee.is_some() => (callee == Some(start)).then_some((0, at)),
                _ if space.begins_near(AbsAddr(returns)) => Some((3, at)),
                _ => Some((if leads_up { 1 } else { 2 }, at)),
            })
            .collect();
        // Those whose code says so first. Last those at the beginning of a function or of the program: mostly pointers to it, and what
        // calls `main` is no function with a frame pointer.
        candidates.sort_unstable();
        let mut tried = Vec::new();
        for (_, fp) in candidates.into_iter().take(FRAME_POINTERS_MAX) {
            let this = self.walk_through(space, &registers(fp), (stack, asked), again(&mut made), &mut tried);
            if this == StackEnd::Root || tried.len() > frames.len() {
                end = this;
                std::mem::swap(frames, &mut tried);
            }
            if end == StackEnd::Root {
                break;
            }
        }
        end
    }
}

fn again<'a>(made: &'a mut Option<&mut dyn MadeCode>) -> Option<&'a mut dyn MadeCode> {
    match made {
        Some(made) => Some(&mut **made),
        None => None,
    }
}

/// Where a frame pointer may have been saved below a return address: from `above` on, and at `stated`, which may lie further up. The
/// place, whether the saved word leads further up, and the return address.
fn frame_pointers<'a>(
    space: &'a AddressSpace,
    (sp, stack): (u64, &'a [u8]),
    above: u64,
    stated: Option<u64>,
) -> impl Iterator<Item = (u64, bool, u64)> + 'a {
    let word = move |at: usize| Some(u64::from_le_bytes(stack.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let skipped = usize::try_from(above.saturating_sub(sp)).unwrap_or(usize::MAX).min(stack.len());
    let within_end = skipped.saturating_add(FRAME_POINTER_WITHIN - 8).min(stack.len());
    let within = (skipped..within_end).step_by(8);
    let beyond = stated.and_then(|at| usize::try_from(at.checked_sub(sp)?).ok()).filter(move |at| *at >= within_end);
    within.chain(beyond).filter_map(move |place| {
        let at = sp.checked_add(place as u64)?;
        let (saved, returns) = (word(place)?, word(place.checked_add(8)?)?);
        let leads_up = saved == 0 || (saved > at && saved - at < DEEPER_BYTES_MAX && saved % 8 == 0);
        (returns != 0 && space.region(AbsAddr(returns - 1)).is_some()).then_some((at, leads_up, returns))
    })
}
