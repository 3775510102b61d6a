//! Reads a ring buffer that the kernel shares with us: the only place that touches its memory (perf_event_open(2), "MMAP layout").
//!
//! ```text
//! | control page: data_head, data_tail, … | data: a power of two of bytes, used in a circle      |
//!                                            ^ tail: read up to here   ^ head: written up to here
//! ```
//! Both positions count bytes since the start and never wrap; the offset in the data is the position modulo its size. The kernel writes only
//! outside of `tail..head`, so the bytes inside do not change until we move the tail.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::sys::limits::page_bytes;
use crate::sys::perf::SharedMemory;

/// The reader's view of a ring buffer, from any memory.
struct View {
    control: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    data_bytes: u64,
}

impl View {
    /// A view of `page_bytes` of control page followed by `data_bytes` of data.
    ///
    /// # Safety
    ///
    /// `base` is aligned to 8 and points to that many bytes that stay readable and writable as long as the view is used.
    /// Another party may write `data_head` (atomically) and data outside `tail..head`, and nothing else.
    unsafe fn new(base: NonNull<u8>, page_bytes: usize, data_bytes: usize) -> View {
        debug_assert!(data_bytes.is_power_of_two() && page_bytes >= size_of::<perf_event_mmap_page>());
        // SAFETY: the data starts `page_bytes` into memory that the caller vouches for.
        let data = unsafe { base.add(page_bytes) };
        View { control: base.cast(), data, data_bytes: data_bytes as u64 }
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: `control` points to a whole control page; the field is aligned to 8 and shared, so it is only ever used as an atomic.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for `head`; we alone write this field.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_tail) }
    }

    /// Shows the written bytes, in the two parts that they may consist of, and frees their space. Returns how many bytes.
    fn drain(&mut self, see: impl FnOnce([&[u8]; 2])) -> usize {
        // Acquire pairs with the kernel's barrier: the data before `head` was written before `head` was.
        let head = self.head().load(Ordering::Acquire);
        let tail = self.tail().load(Ordering::Relaxed);
        // The kernel never lets them differ by more than the size; damaged memory is skipped.
        let bytes = head.wrapping_sub(tail);
        let bytes = if bytes > self.data_bytes { 0 } else { bytes as usize };
        if bytes > 0 {
            let start = (tail & (self.data_bytes - 1)) as usize;
            let before_wrap = bytes.min(self.data_bytes as usize - start);
            // SAFETY: `start + before_wrap` and the rest are within the data; nobody writes there until the tail moves, which is
            // after the last use of both.
            let parts = unsafe {
                [
                    slice::from_raw_parts(self.data.as_ptr().add(start), before_wrap),
                    slice::from_raw_parts(self.data.as_ptr(), bytes - before_wrap),
                ]
            };
            see(parts);
        }
        // Release: our reads of the data are done before the kernel learns that it may overwrite it.
        self.tail().store(head, Ordering::Release);
        bytes
    }
}

/// A ring of an event.
pub(crate) struct Ring {
    view: View,
    // Keeps the memory that `view` points into.
    _memory: SharedMemory,
}

// SAFETY: the pointers of the view lead into the memory this value owns, which may be used from any one thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring buffer of an event, with `data_pages` pages of data, which must be a power of two.
    pub(crate) fn map(event: &File, data_pages: usize) -> io::Result<Ring> {
        let page = page_bytes();
        let memory = SharedMemory::map(event, page * (1 + data_pages))?;
        // SAFETY: the mapping is page-aligned, has exactly these bytes, lives as long as `_memory`, and the kernel keeps the
        // contract of a ring that is not in overwrite mode.
        let view = unsafe { View::new(memory.base(), page, page * data_pages) };
        Ok(Ring { view, _memory: memory })
    }

    /// Shows what the kernel wrote since the last time, in the two parts that it may lie in. Returns how many bytes.
    pub(crate) fn drain(&mut self, see: impl FnOnce([&[u8]; 2])) -> usize {
        self.view.drain(see)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in plain memory, with the kernel's side of the contract.
    struct Plain {
        memory: Vec<u64>,
        data_bytes: usize,
    }

    impl Plain {
        fn new(data_bytes: usize) -> Plain {
            Plain { memory: vec![0; (PAGE + data_bytes) / 8], data_bytes }
        }

        fn view(&mut self) -> View {
            let base = NonNull::new(self.memory.as_mut_ptr().cast()).unwrap();
            // SAFETY: the vector is aligned to 8, has these bytes and outlives the view in each test.
            unsafe { View::new(base, PAGE, self.data_bytes) }
        }
    }

    const PAGE: usize = 4096;

    /// Moves what was written to the end of `out`.
    fn drain_into(view: &mut View, out: &mut Vec<u8>) -> usize {
        view.drain(|parts| parts.iter().for_each(|part| out.extend_from_slice(part)))
    }

    fn write(view: &View, bytes: &[u8]) {
        let head = view.head().load(Ordering::Relaxed);
        for (i, byte) in bytes.iter().enumerate() {
            let at = ((head + i as u64) % view.data_bytes) as usize;
            // SAFETY: `at` is within the data.
            unsafe { view.data.as_ptr().add(at).write(*byte) };
        }
        view.head().store(head + bytes.len() as u64, Ordering::Release);
    }

    #[test]
    fn what_was_written_is_read_once_also_around_the_end() {
        let mut plain = Plain::new(64);
        let mut view = plain.view();
        let mut out = Vec::new();
        assert_eq!(drain_into(&mut view, &mut out), 0);
        for round in 0..20u8 {
            let record: Vec<u8> = (0..40).map(|i| round.wrapping_mul(41).wrapping_add(i)).collect();
            write(&view, &record);
            out.clear();
            assert_eq!(drain_into(&mut view, &mut out), 40);
            assert_eq!(out, record);
        }
        assert_eq!(drain_into(&mut view, &mut out), 0);
        assert_eq!(view.tail().load(Ordering::Relaxed), 800);
    }

    #[test]
    fn a_full_ring_is_read_whole_and_bytes_are_appended() {
        let mut plain = Plain::new(64);
        let mut view = plain.view();
        write(&view, &[1; 24]);
        let mut out = vec![9];
        drain_into(&mut view, &mut out);
        write(&view, &[2; 64]);
        assert_eq!(drain_into(&mut view, &mut out), 64);
        assert_eq!(out.len(), 1 + 24 + 64);
        assert_eq!((out[0], out[1], out[25], out[88]), (9, 1, 2, 2));
    }

    #[test]
    fn positions_that_cannot_be_are_skipped() {
        let mut plain = Plain::new(64);
        let mut view = plain.view();
        view.head().store(1_000, Ordering::Relaxed);
        let mut out = Vec::new();
        assert_eq!(drain_into(&mut view, &mut out), 0);
        assert!(out.is_empty());
        write(&view, &[3; 8]);
        assert_eq!(drain_into(&mut view, &mut out), 8);
        assert_eq!(out, [3; 8]);
    }
}
