//! Names of recordings: `r1`, `r2`, … in the order they were begun, never used twice.

use std::fmt;

/// The name of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordingName(u32);

impl RecordingName {
    /// The name of this number.
    pub fn new(number: u32) -> Self {
        RecordingName(number)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The name that `r7` or `7` spells; `None` for anything else, also for `r07`, because one recording has one name.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('r').unwrap_or(text);
        let plain = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok().map(RecordingName)).flatten()
    }
}

impl fmt::Display for RecordingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RecordingName;

    #[test]
    fn a_name_is_r_and_a_number() {
        for (text, number) in [("r7", Some(7)), ("7", Some(7)), ("r4294967295", Some(u32::MAX))] {
            assert_eq!(RecordingName::parse(text).map(RecordingName::number), number, "{text}");
        }
        for text in ["", "r", "r0", "r07", "rr7", "-7", "+7", "r 7", "r7/../r8", "4294967296", "last", "r٣"] {
            assert_eq!(RecordingName::parse(text), None, "{text}");
        }
    }
}
