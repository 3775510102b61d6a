//! What a span allocates on a thread that has made spans before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

use crate::collector::Collector;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands everything through to the system's allocator; the counter is plain thread-local memory.
#[allow(unsafe_code, reason = "an allocator cannot be counted in any other way")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer is of `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the pointer is of `alloc` above, which is the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// One: the registry of `tracing-subscriber` boxes what a layer keeps with a span. An event adds its message.
#[test]
fn a_span_on_a_warm_thread_allocates_once() {
    let collector = Collector::start(&[]);
    let layer = collector.layer(&[("OTEL_BSP_SCHEDULE_DELAY", "86400000"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16000")]);
    let handle = layer.handle();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let span = || {
            let span = info_span!("s", text = "value", number = 3, shown = %4, later = tracing::field::Empty).entered();
            span.record("later", true);
        };
        let span_with_event = || info_span!("s").in_scope(|| info!(number = 3, "said"));
        for _ in 0..1_000 {
            span();
            span_with_event();
        }
        // The buffers of the queue double a few times: nearly all of many spans must pass.
        let of = |work: &dyn Fn(), expected: u64| (0..1_000).filter(|_| allocations(work) == expected).count();
        assert!(of(&span, 1) >= 990);
        assert!(of(&span_with_event, 2) >= 990);
        let entered = || drop(longpole_sdk::enter_span_context([1; 16], [2; 8], 1));
        assert_eq!(allocations(|| (0..1_000).for_each(|_| entered())), 0);
    });
    assert_eq!(handle.shutdown(Duration::from_secs(600)).lost(), 0);
}
