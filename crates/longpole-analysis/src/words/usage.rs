//! Notable use of memory and storage, in words.

use longpole_model::IoBytes;
use longpole_model::units::bytes;

use crate::time::usage::UsageFinding;

/// A notable use, and the program of its process: `cc1 peaks at 900MB`.
pub fn usage(finding: &UsageFinding, program: Option<&str>) -> String {
    let program = program.unwrap_or("a process");
    match finding {
        UsageFinding::Grows(_, growth) => {
            format!("{program} keeps growing, from {} to {}", bytes(growth.from_bytes), bytes(growth.to_bytes))
        }
        UsageFinding::Peak(_, peak) => format!("{program} peaks at {}", bytes(*peak)),
        UsageFinding::PeakOfSome(peak) => format!("{program} peaks at {} between two readings", bytes(*peak)),
        UsageFinding::Storage(_, io) => format!("{program} {}", storage(*io)),
        UsageFinding::Faults(_, faults) => format!("{program} waits {faults} times for page faults from storage"),
    }
}

/// `reads 3.0GB from storage and writes 20.0MB to it`; omits the smaller one below a tenth of the other.
fn storage(io: IoBytes) -> String {
    let (read, written) = (io.storage_read, io.storage_written);
    match (read > written / 10, written > read / 10) {
        (true, true) => format!("reads {} from storage and writes {} to it", bytes(read), bytes(written)),
        (true, false) => format!("reads {} from storage", bytes(read)),
        (false, _) => format!("writes {} to storage", bytes(written)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::usage::Growth;
    use longpole_model::{Id, ProcessRow};

    #[test]
    fn each_finding_has_its_sentence() {
        let process = ProcessRow::at(1);
        let io = |storage_read, storage_written| IoBytes { read: 0, written: 0, storage_read, storage_written };
        let findings = [
            UsageFinding::Grows(process, Growth { from_bytes: 10_000_000, to_bytes: 900_000_000 }),
            UsageFinding::Peak(process, 900_000_000),
            UsageFinding::PeakOfSome(900_000_000),
            UsageFinding::Storage(process, io(3_000_000_000, 20_000_000)),
            UsageFinding::Storage(process, io(30_000_000, 20_000_000)),
            UsageFinding::Storage(process, io(1_000_000, 20_000_000)),
            UsageFinding::Faults(process, 2_000),
        ];
        let said = [
            "cc1 keeps growing, from 10.0MB to 900MB",
            "cc1 peaks at 900MB",
            "cc1 peaks at 900MB between two readings",
            "cc1 reads 3.0GB from storage",
            "cc1 reads 30.0MB from storage and writes 20.0MB to it",
            "cc1 writes 20.0MB to storage",
            "cc1 waits 2000 times for page faults from storage",
        ];
        assert_eq!(findings.each_ref().map(|finding| usage(finding, Some("cc1"))), said);
        assert_eq!(usage(&findings[2], None), "a process peaks at 900MB between two readings");
    }
}
