//! What must hold for any bytes that a process publishes of itself.

use longpole_capture::span_context::otel::{process, thread};

/// The bytes are the memory of a process from 0x1000 on, which begins with its header, and also the copied stack of a thread.
pub(crate) fn otel_context(bytes: &[u8]) {
    let read = |known| {
        process::read(0x1000, known, |address, into| {
            let from = address.checked_sub(0x1000).and_then(|from| bytes.get(usize::try_from(from).ok()?..));
            let found = from.and_then(|from| from.get(..into.len()));
            found.map(|found| into.copy_from_slice(found)).is_some()
        })
    };
    if let Ok(process::HeaderReading::New { published_at, context }) = read(0) {
        assert!(published_at != 0 && bytes.len() > 32);
        assert!(context.resource.iter().all(|pair| format!("{:?}", pair.value) != "Empty"));
        assert_eq!(read(published_at), Ok(process::HeaderReading::Same));
    }
    let mut pointer = None;
    let found = thread::find(bytes, 0x1000, 7, -64, &mut pointer);
    // Where it was found once it is found again.
    assert_eq!(thread::find(bytes, 0x1000, 7, -64, &mut pointer), found);
}
