//! Memory that a thread uses again for its next spans.

use std::cell::{Cell, RefCell};

use crate::encode::{self, Value};
use crate::registry_guard::Inside;
use crate::thread_context;

/// Buffers of ended spans that a thread keeps for its next ones: as many as spans are commonly open at a time, and none that
/// grew large.
const MAX_KEPT_BUFFERS: usize = 16;
const MAX_KEPT_BUFFER_BYTES: usize = 4 << 10;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
    static THREAD_ATTRIBUTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn take_buffer() -> Vec<u8> {
    BUFFERS.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten().unwrap_or_else(|| Vec::with_capacity(512))
}

pub(super) fn give_buffer(mut buffer: Vec<u8>) {
    if buffer.capacity() > MAX_KEPT_BUFFER_BYTES || buffer.capacity() == 0 {
        return;
    }
    buffer.clear();
    let _ = BUFFERS.try_with(|buffers| {
        let mut buffers = buffers.borrow_mut();
        if buffers.len() < MAX_KEPT_BUFFERS {
            buffers.push(buffer);
        }
    });
}

/// Lends `text` the thread's scratch string. `fill` is the program's code (a `Debug` of its own), which may make spans in turn:
/// no borrow is held meanwhile, and the inner call finds an empty string of its own.
pub(super) fn with_text<T>(fill: impl FnOnce(&mut String), text: impl FnOnce(&str) -> T) -> T {
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    Inside::pause(|| fill(&mut scratch));
    let result = text(&scratch);
    scratch.shrink_to(MAX_KEPT_BUFFER_BYTES);
    let _ = SCRATCH.try_with(|slot| slot.set(scratch));
    result
}

/// Appends `thread.id` (the kernel's, as profilers have it) and `thread.name`, encoded once per thread.
pub(super) fn append_thread_attributes(fields: &mut Vec<u8>) {
    let _ = THREAD_ATTRIBUTES.try_with(|encoded| {
        let mut encoded = encoded.borrow_mut();
        if encoded.is_empty() {
            if let Some(id) = thread_context::thread_id() {
                encode::attribute(&mut encoded, encode::span::ATTRIBUTES, "thread.id", Value::Int(i64::from(id)));
            }
            let name = std::thread::current().name().unwrap_or("").to_owned();
            encode::attribute(&mut encoded, encode::span::ATTRIBUTES, "thread.name", Value::Str(&name));
        }
        fields.extend_from_slice(&encoded);
    });
}
