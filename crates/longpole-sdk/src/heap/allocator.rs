//! The global allocator: another one with sampling around it.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use super::recorder;

/// A global allocator that samples what another one allocates; std's [`System`] unless you choose.
///
/// ```
/// use std::alloc::System;
///
/// use longpole_sdk::heap::Allocator;
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator<System> = Allocator::around(System); // or mimalloc::MiMalloc, tikv_jemallocator::Jemalloc
/// # fn main() {}
/// ```
///
/// It only counts down until [`start`](super::start).
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator<A = System> {
    inner: A,
}

impl Allocator {
    /// Around the system's allocator.
    pub const fn new() -> Self {
        Self::around(System)
    }
}

impl<A> Allocator<A> {
    /// Around another allocator.
    pub const fn around(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every block is the inner allocator's, which the program chose and which keeps the contract of `GlobalAlloc`; the layouts that it gets are
// the caller's. What stands around it reads no block, allocates nothing through this allocator, and cannot unwind: the functions that do more than
// count are `extern "C"`, which a panic does not leave.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    // None of these is inlined, as std's own are not: in the callers the few instructions more cost 6 % of a program that parses documents.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if recorder::is_due(layout.size()) {
            // SAFETY: the caller keeps the contract of `alloc`, which is the same.
            return unsafe { self.alloc_due(layout) };
        }
        // SAFETY: as above. Last, so that it is a jump and the frame of this function is none.
        unsafe { self.inner.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if recorder::is_due(layout.size()) {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
            return unsafe { self.alloc_zeroed_due(layout) };
        }
        // SAFETY: as above.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if recorder::may_be_sampled(block.addr()) {
            // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
            return unsafe { self.dealloc_sampled(block, layout) };
        }
        // SAFETY: the block is the inner allocator's, of this layout.
        unsafe { self.inner.dealloc(block, layout) }
    }

    /// A free and an allocation, also where the block stays in its place.
    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Both, whatever the first one says.
        if recorder::is_due(new_size) | recorder::may_be_sampled(block.addr()) {
            // SAFETY: the caller keeps the contract of `realloc`, which is the same.
            return unsafe { self.realloc_due(block, layout, new_size) };
        }
        // SAFETY: the block is the inner allocator's, of this layout, and the caller keeps the contract of `realloc`.
        unsafe { self.inner.realloc(block, layout, new_size) }
    }
}

/// The rare cases, out of the way of the others.
impl<A: GlobalAlloc> Allocator<A> {
    /// # Safety
    ///
    /// As `GlobalAlloc::alloc`.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_due(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let block = unsafe { self.inner.alloc(layout) };
        recorder::allocated(block.addr(), layout.size());
        block
    }

    /// # Safety
    ///
    /// As `GlobalAlloc::alloc_zeroed`.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_zeroed_due(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        recorder::allocated(block.addr(), layout.size());
        block
    }

    /// # Safety
    ///
    /// As `GlobalAlloc::dealloc`.
    #[inline(never)]
    unsafe fn dealloc_sampled(&self, block: *mut u8, layout: Layout) {
        // Before the block is free: another thread may get its address at once.
        recorder::forget(block.addr());
        // SAFETY: as the caller says.
        unsafe { self.inner.dealloc(block, layout) }
    }

    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[cold]
    #[inline(never)]
    unsafe fn realloc_due(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Before the block is free, as in `dealloc_sampled`.
        let taken = recorder::take(block.addr());
        // SAFETY: as the caller says.
        let moved = unsafe { self.inner.realloc(block, layout, new_size) };
        if !moved.is_null() {
            recorder::allocated(moved.addr(), new_size);
        } else if let Some(sample) = taken {
            // The block is as it was.
            recorder::put_back(block.addr(), &sample);
        }
        moved
    }
}
