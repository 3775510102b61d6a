//! What must hold for any memory of an interpreter. The fuzz target and the tests call this same function; this file is compiled
//! into both.

use longpole_symbols::memory::{Memory, MemoryPart, Unreadable, copy_found};
use longpole_symbols::python::{Codes, EventLoops, Interpreter, Version};

/// Where the memory begins, and `_PyRuntime` with it.
const BASE: u64 = 0x1_0000;

struct Bytes<'a>(&'a [u8]);

impl Memory for Bytes<'_> {
    fn copy(&self, parts: &mut [MemoryPart], bytes: &mut [u8]) -> Result<(), Unreadable> {
        copy_found(parts, bytes, |address, length| {
            let at = usize::try_from(address.checked_sub(BASE)?).ok()?;
            self.0.get(at..at.checked_add(length)?)
        });
        Ok(())
    }
}

/// The first byte is the minor version, the others are the memory. Whatever it holds, a look ends, with as many threads and frames
/// as there may be, and names that are no longer than they may be; and so does a search for what an event loop
/// waits for.
pub(crate) fn python_memory(bytes: &[u8]) {
    let Some((minor, memory)) = bytes.split_first() else { return };
    let memory = Bytes(memory);
    let Ok(mut interpreter) = Interpreter::attach(&memory, BASE, Version::three(*minor)) else { return };
    let (mut codes, mut threads, mut event_loops) = (Codes::default(), Vec::new(), EventLoops::default());
    for _ in 0..3 {
        if interpreter.read(&memory, &mut threads).is_err() {
            return;
        }
        assert!(threads.len() <= 1024);
        for thread in threads.iter().take(16) {
            assert!(thread.frames.len() <= 1024 && thread.kept <= thread.frames.len());
            if let Ok(Some(awaited)) = event_loops.awaited(&memory, &mut interpreter, &mut codes, &thread.frames) {
                assert!(awaited.timer.len() <= 256 && awaited.event.len() <= 256);
            }
            for frame in thread.frames.iter().take(16) {
                let Ok(id) = codes.identify(&memory, &mut interpreter, frame, false) else { continue };
                let code = &codes.list()[id.0 as usize];
                assert!(code.name.chars().count() <= 1024 && code.file.chars().count() <= 1024);
                assert!(code.instructions.start <= code.instructions.end);
                code.line(frame.instruction);
                code.line(i64::MAX);
            }
        }
    }
}
