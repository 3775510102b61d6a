//! Room for the unwind information of all binaries of a recording.

use longpole_model::loss::{Loss, LossKind};

use super::Binary;

/// Unwind information of all binaries together. A file with holes can have much of it and cost its program nothing. Binaries beyond this are unwound
/// by frame pointers. Browsers and compilers have tens of megabytes.
const UNWIND_BYTES_MAX: u64 = 512 << 20;

/// What is left of the room, and the binaries that had none.
#[derive(Debug)]
pub struct UnwindBudget {
    bytes_left: u64,
    refused: u64,
}

impl Default for UnwindBudget {
    fn default() -> Self {
        UnwindBudget::of(UNWIND_BYTES_MAX)
    }
}

impl UnwindBudget {
    /// This much room.
    pub fn of(bytes: u64) -> UnwindBudget {
        UnwindBudget { bytes_left: bytes, refused: 0 }
    }

    /// The most that the unwind information of one more binary may have: half of what is left, so that one program does not take it all.
    pub fn section_bytes_max(&self) -> u64 {
        self.bytes_left / 2
    }

    /// Whether there is room for the unwind information of a binary, which then takes it.
    pub fn has_room(&mut self, binary: &Binary) -> bool {
        match self.bytes_left.checked_sub(binary.kept_bytes()) {
            Some(left) => self.bytes_left = left,
            None => {
                self.refused += 1;
                return false;
            }
        }
        true
    }

    /// The binaries that had no room, if there are any.
    pub fn loss(&self) -> Option<Loss> {
        let detail = format!("unwind information of binaries beyond {} MiB", UNWIND_BYTES_MAX >> 20);
        (self.refused > 0).then(|| Loss::new(LossKind::SymbolsUnreadable, self.refused, detail))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn binaries_beyond_the_room_are_a_loss() {
        let binary = Binary::read(File::open(std::env::current_exe().unwrap()).unwrap()).unwrap();
        let bytes = binary.kept_bytes();
        let mut budget = UnwindBudget::of(2 * bytes + 1);
        assert!(bytes > 1 && budget.loss().is_none());
        let had_room = [(); 4].map(|()| budget.has_room(&binary));
        assert_eq!(had_room, [true, true, false, false]);
        let loss = budget.loss().unwrap();
        assert_eq!((loss.count, loss.detail.as_str()), (2, "unwind information of binaries beyond 512 MiB"));
    }
}
