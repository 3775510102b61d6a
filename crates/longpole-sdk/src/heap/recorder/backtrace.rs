//! The stack of this thread, as return addresses.
//!
//! The unwinder is the one that std links for panics (libgcc's, or LLVM's with musl): it reads the same tables that a panic needs, so it works in every
//! program that unwinds. Frame pointers would be faster, but rustc leaves them out unless the whole program is built with them. libgcc takes 115 ns for
//! a frame (measured, x86-64, 25 to 120 frames), and neither allocates nor takes a lock here: with glibc 2.35 or later it finds tables by
//! `_dl_find_object`; an older one takes the lock of the dynamic loader for each frame.
//!
//! Most of a stack is the same as at the last sample of the thread: `main`, the runtime, the loop of a server. So the last stack is kept with the
//! places of its return addresses, and the walk ends where it meets a frame of it:
//!
//! ```text
//!            last sample                         now
//!   inner    push      at 0x…e40                 format    at 0x…da8     unwound
//!            parse     at 0x…e90                 parse     at 0x…e90     unwound: known, at the same place
//!            handle    returns at 0x…f38         handle                  *0x…f38 is still the address that it was
//!   outer    main      returns at 0x…fb8         main                    *0x…fb8 too: nothing to unwind
//! ```
//!
//! A frame at the same place with the same return address has the same caller's frame, and the words behind it say whether its callers are the same. The
//! innermost frame needs no unwinder either: how far it lies above the local variable of our own function is always the same. So a loop that allocates
//! reads its stack and nothing else, where the tables of the unwinder would be cold.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Frames of a stack that are kept, the innermost ones.
pub(crate) const DEPTH: usize = 128;

/// Last stacks that are kept: threads share them if there are more.
const LAST: usize = 128;

/// Bytes of a frame, at most, in a stack that is kept: smaller than the distance of two stacks.
const FRAME_BYTES_MAX: usize = 32 << 10;

/// A frame, to the unwinder.
#[repr(C)]
struct UnwoundFrame {
    _opaque: [u8; 0],
}

/// Go on with the next frame, and stop here: codes of the unwinder's interface, which ignores which one it is that stops.
const NEXT: c_int = 0;
const STOP: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut UnwoundFrame, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut UnwoundFrame) -> usize;
    fn _Unwind_GetCFA(frame: *mut UnwoundFrame) -> usize;
}

/// The last stack of a thread.
struct LastStack {
    is_used: AtomicBool,
    thread: AtomicUsize,
    len: AtomicUsize,
    /// Return addresses, innermost first, and the stack pointers of their frames.
    addresses: [AtomicUsize; DEPTH],
    stack_pointers: [AtomicUsize; DEPTH],
}

static LAST_STACKS: [LastStack; LAST] = [const {
    LastStack {
        is_used: AtomicBool::new(false),
        thread: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        addresses: [const { AtomicUsize::new(0) }; DEPTH],
        stack_pointers: [const { AtomicUsize::new(0) }; DEPTH],
    }
}; LAST];

struct Walk<'a> {
    frames: &'a mut [usize; DEPTH],
    stack_pointers: [usize; DEPTH],
    len: usize,
    /// Frames whose stack pointer is not above this address are ours.
    ours: usize,
    is_cut: bool,
    last: Option<&'static LastStack>,
    /// The frame of the last stack that the walk may meet next.
    next: usize,
}

/// How far the frame of a function of ours reaches above its local variable: 0 while that is unknown, and [`VARIES`] if it is not always the same.
pub(super) struct OwnFrame(AtomicUsize);

const VARIES: usize = usize::MAX;

impl OwnFrame {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn learn(&self, bytes: usize) {
        let known = self.0.load(Relaxed);
        if known != bytes {
            self.0.store(if known == 0 { bytes } else { VARIES }, Relaxed);
        }
    }

    /// The stack pointer of the caller, where the frame of ours ends.
    fn end(&self, ours: usize) -> Option<usize> {
        let bytes = self.0.load(Relaxed);
        if bytes == 0 || bytes == VARIES { None } else { ours.checked_add(bytes) }
    }
}

/// The return addresses of the callers of a function of ours, innermost first; how many, and whether there are more. `ours` is the address of a local
/// variable of that function: its own frame, and those of what it calls, lie below it. `own` is of that function, too. `thread` is a number that no other
/// living thread has.
#[inline(always)]
pub(super) fn walk(frames: &mut [usize; DEPTH], ours: usize, own: &OwnFrame, thread: usize) -> (usize, bool) {
    let last = LastStack::of(thread);
    let mut walk = Walk { frames, stack_pointers: [0; DEPTH], len: 0, ours, is_cut: false, last, next: 0 };
    if !walk.begins_with_last(own) {
        // SAFETY: the function gives `each` frames that live during its call, and the pointer to `walk`, which outlives the call and which nothing else
        // uses meanwhile.
        unsafe { _Unwind_Backtrace(each, ptr::from_mut(&mut walk).cast()) };
        if walk.len > 0 {
            own.learn(walk.stack_pointers[0].wrapping_sub(ours));
        }
        if let Some(last) = walk.last {
            // A stack that is cut has no end to meet.
            let is_kept = !walk.is_cut && is_one_stack(&walk.stack_pointers[..walk.len]);
            last.keep(&walk.frames[..walk.len], &walk.stack_pointers, if is_kept { walk.len } else { 0 });
        }
    }
    if let Some(last) = walk.last {
        last.is_used.store(false, Release);
    }
    (walk.len, walk.is_cut)
}

/// Whether the frames lie on one stack: each above the one before, and near it. Those of a coroutine with a stack of its own, and of the thread that resumed
/// it, do not, and the next time another thread may have resumed it.
fn is_one_stack(stack_pointers: &[usize]) -> bool {
    stack_pointers
        .array_windows()
        .all(|[inner, outer]| outer.checked_sub(*inner).is_some_and(|bytes| (1..=FRAME_BYTES_MAX).contains(&bytes)))
}

extern "C" fn each(frame: *mut UnwoundFrame, argument: *mut c_void) -> c_int {
    // SAFETY: `walk` calls this with a pointer to its own variable, and the frame is the unwinder's, for this call.
    let (walk, address, stack_pointer) = unsafe { (&mut *argument.cast::<Walk<'_>>(), _Unwind_GetIP(frame), _Unwind_GetCFA(frame)) };
    if address == 0 {
        return STOP;
    }
    if stack_pointer <= walk.ours {
        return NEXT;
    }
    if walk.len == DEPTH {
        walk.is_cut = true;
        return STOP;
    }
    walk.frames[walk.len] = address;
    walk.stack_pointers[walk.len] = stack_pointer;
    walk.len += 1;
    if walk.meets_last(address, stack_pointer) { STOP } else { NEXT }
}

impl Walk<'_> {
    /// Whether the whole stack is the last one, or an outer part of it. Reads a few words of the stack, and calls no unwinder.
    fn begins_with_last(&mut self, own: &OwnFrame) -> bool {
        let (Some(last), Some(stack_pointer)) = (self.last, own.end(self.ours)) else { return false };
        let len = last.len.load(Relaxed).min(DEPTH);
        let Some(at) = (0..len).find(|at| last.stack_pointers[*at].load(Relaxed) >= stack_pointer) else { return false };
        if last.stack_pointers[at].load(Relaxed) != stack_pointer || !(at..len).all(|at| last.is_as_it_was(at)) {
            return false;
        }
        for at in at..len {
            self.frames[self.len] = last.addresses[at].load(Relaxed);
            self.len += 1;
        }
        true
    }

    /// Whether the frame is one of the last stack, and all outer ones are as they were: then they are taken from there.
    fn meets_last(&mut self, address: usize, stack_pointer: usize) -> bool {
        let Some(last) = self.last else { return false };
        let len = last.len.load(Relaxed).min(DEPTH);
        while self.next < len && last.stack_pointers[self.next].load(Relaxed) < stack_pointer {
            self.next += 1;
        }
        let met = self.next;
        if met >= len || last.stack_pointers[met].load(Relaxed) != stack_pointer || last.addresses[met].load(Relaxed) != address {
            return false;
        }
        let outer = met + 1..len;
        if self.len + outer.len() > DEPTH || !outer.clone().all(|at| last.is_as_it_was(at)) {
            return false;
        }
        for at in outer {
            self.frames[self.len] = last.addresses[at].load(Relaxed);
            self.stack_pointers[self.len] = last.stack_pointers[at].load(Relaxed);
            self.len += 1;
        }
        true
    }
}

impl LastStack {
    /// The one of a thread, to itself until `is_used` is false again; none if another thread uses it now.
    fn of(thread: usize) -> Option<&'static LastStack> {
        // Threads' own memory lies a stack apart: the lowest bits are the same.
        let place = (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57;
        let last = &LAST_STACKS[place as usize % LAST];
        last.is_used.compare_exchange(false, true, Acquire, Relaxed).ok()?;
        if last.thread.swap(thread, Relaxed) != thread {
            last.len.store(0, Relaxed);
        }
        Some(last)
    }

    fn keep(&self, frames: &[usize], stack_pointers: &[usize; DEPTH], len: usize) {
        for (at, (frame, stack_pointer)) in frames.iter().zip(stack_pointers).enumerate() {
            self.addresses[at].store(*frame, Relaxed);
            self.stack_pointers[at].store(*stack_pointer, Relaxed);
        }
        self.len.store(len, Relaxed);
    }

    /// Whether the word below the frame `at`, where the call put the return address into it, has that address.
    #[cfg(target_arch = "x86_64")]
    fn is_as_it_was(&self, at: usize) -> bool {
        let place = self.stack_pointers[at].load(Relaxed).wrapping_sub(size_of::<usize>());
        // SAFETY: the place was a word of this stack when the frame was unwound. The stack is the same: this thread runs on it now, in a frame that ends
        // where one ended then, and no gap lies between that frame and the place (`is_one_stack`). So the word is mapped. Any bytes are a number; the
        // read is volatile, since no Rust object is meant.
        let found = unsafe { ptr::with_exposed_provenance::<usize>(place).read_volatile() };
        found == self.addresses[at].load(Relaxed)
    }

    /// Where return addresses lie is a matter of each function here: all is unwound.
    #[cfg(not(target_arch = "x86_64"))]
    fn is_as_it_was(&self, _at: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// The callers of this function, by the last stack of `thread` as far as it goes.
    #[inline(never)]
    fn callers(thread: usize) -> Vec<usize> {
        static OWN: OwnFrame = OwnFrame::new();
        let (here, mut frames) = (0_u8, [0; DEPTH]);
        let (len, is_cut) = walk(&mut frames, (&raw const here).addr(), &OWN, thread);
        assert_eq!(is_cut, len == DEPTH);
        frames[..len].to_vec()
    }

    /// Both at once, from the same place.
    #[inline(never)]
    fn compare(checked: &mut usize) {
        let [known, anew] = [|| callers(1), || callers(usize::MAX)].map(|walk| black_box(walk)());
        // The second one never has a last stack.
        LAST_STACKS.iter().filter(|last| last.thread.load(Relaxed) == usize::MAX).for_each(|last| last.len.store(0, Relaxed));
        // The innermost frames are those of this function, at two places.
        let common = known.iter().rev().zip(anew.iter().rev()).take_while(|(known, anew)| known == anew).count();
        assert_eq!(known.len(), anew.len());
        assert!(known.len() - common <= 2, "{known:x?} {anew:x?}");
        *checked += 1;
    }

    /// Calls itself by three different ways, by the digits of `way`, and lets `compare` compare at each depth.
    #[inline(never)]
    fn wander(way: u32, left: u32, checked: &mut usize) {
        let room = [0_u8; 200];
        match (left, way % 3) {
            (0, _) => {}
            (_, 0) => wander(way / 3, left - 1, checked),
            (_, 1) => {
                let [first, ..] = black_box([left; 64]);
                wander(way / 3, first - 1, checked);
            }
            _ => with_room(&mut || wander(way / 3, left - 1, checked)),
        }
        compare(checked);
        black_box(room);
    }

    #[inline(never)]
    fn with_room(body: &mut dyn FnMut()) {
        #[repr(align(128))]
        struct Aligned([u8; 300]);
        let aligned = Aligned([1; 300]);
        body();
        black_box(aligned.0[0]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no unwinder of its own")]
    fn a_walk_that_meets_the_last_stack_has_the_same_frames() {
        let mut checked = 0;
        for way in 0..3_u32.pow(6) {
            wander(way, 6, &mut checked);
        }
        assert_eq!(checked, 729 * 7);
    }

    /// The same frame with another caller, then the same caller again, and a part of the last stack.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no unwinder of its own")]
    fn a_loop_has_the_stack_of_its_last_turn_and_no_other() {
        #[inline(never)]
        fn turns(thread: usize) -> Vec<Vec<usize>> {
            let mut all = Vec::new();
            for _ in 0..black_box(3) {
                all.push(callers(thread));
            }
            black_box(all)
        }
        #[inline(never)]
        fn first(thread: usize) -> Vec<Vec<usize>> {
            black_box(turns(thread))
        }
        #[inline(never)]
        fn second(thread: usize) -> Vec<Vec<usize>> {
            black_box("another function, although the frames are alike");
            black_box(turns(thread))
        }
        for _ in 0..3 {
            let (one, other) = (first(3), second(3));
            for of in [&one, &other] {
                assert!(of[0] == of[1] && of[1] == of[2], "{of:x?}");
            }
            assert!(one[0] != other[0] && one[0].last() == other[0].last(), "{one:x?} {other:x?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no unwinder of its own")]
    fn a_deep_stack_is_cut_and_the_caller_is_the_innermost_frame() {
        #[inline(never)]
        fn deep(left: usize) -> Vec<usize> {
            let frames = if left == 0 { callers(2) } else { deep(left - 1) };
            black_box(frames)
        }
        for _ in 0..3 {
            assert_eq!(deep(300).len(), DEPTH);
            let shallow = deep(0);
            assert!(shallow.len() < DEPTH && shallow[0].wrapping_sub(deep as *const () as usize) < 400, "{shallow:x?}");
        }
    }

    #[test]
    fn frames_on_two_stacks_are_no_stack() {
        assert!(is_one_stack(&[0x1000, 0x1010, 0x9010]) && is_one_stack(&[7]) && is_one_stack(&[]));
        assert!(!is_one_stack(&[0x1000, 0x9001]) && !is_one_stack(&[0x1010, 0x1000]) && !is_one_stack(&[0x1000, 0x1000]));
    }
}
