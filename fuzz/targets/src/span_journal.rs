//! What must hold for any bytes of a journal, also of one that changes while it is read.

use longpole_capture::span_context::journal::Journal;

/// The first byte says which of two files each read finds: bit n of it, of the n-th read. The rest is the two, one behind the other.
pub(crate) fn span_journal(bytes: &[u8]) {
    let Some((which, files)) = bytes.split_first() else { return };
    let (one, other) = if *which == 0 { (files, files) } else { files.split_at(files.len() / 2) };
    let mut reads = 0;
    let mut read = |at: u64, into: &mut [u8]| {
        let file = if which >> (reads % 8) & 1 == 0 { one } else { other };
        reads += 1;
        let rest = usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    };
    let Ok(Some(mut journal)) = Journal::open(&mut read) else { return };
    let (mut seen, mut last, mut memory) = (0u64, 0, Vec::new());
    for _ in 0..3 {
        let Ok(found) = journal.read(&mut read, || 1 << 60, &mut memory) else { return };
        seen += found.lost + found.entries.len() as u64;
        assert!(seen <= 1 << 48);
        assert!(found.entries.len() * 40 <= bytes.len(), "more entries than bytes");
        for entry in &found.entries {
            assert!(last <= entry.time.0 && entry.time.0 <= (1 << 60) + 1_000_000);
            last = entry.time.0;
        }
    }
}
