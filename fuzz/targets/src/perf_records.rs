//! What must hold for any bytes of a ring.

use longpole_capture::perf::record::{Body, Source, records};

/// Records lie one behind the other, and hold nothing that was not in the bytes.
pub(crate) fn perf_records(bytes: &[u8]) {
    let mut last_offset = None;
    for raw in records(bytes).flatten() {
        assert!(last_offset < Some(raw.offset) && raw.offset < bytes.len());
        last_offset = Some(raw.offset);
        let _ = raw.time();
        for source in [Source::Sampler, Source::Tracker] {
            let Ok(record) = raw.decode(source) else { continue };
            let inside = match record.body {
                Body::Sample(sample) => sample.stack.len(),
                Body::Map(map) => map.path.len(),
                Body::Comm { name, .. } => name.len(),
                _ => 0,
            };
            assert!(inside <= bytes.len() - raw.offset);
        }
    }
}
