//! Where the fields of `runtime.g` lie, by the version of Go.
//!
//! From the DWARF of programs that these versions built (`runtime.g`, `runtime.gobuf`). The fields in front of `waitreason` moved twice:
//!
//! ```text
//!                 sched: sp pc g ctxt ret lr bp | syscallsp syscallpc           stktopsp param atomicstatus … goid … waitreason
//! 1.18 to 1.22           56 64        88      104                                                       144    152        176
//! 1.23                                                              syscallbp                           152    160        184
//! 1.25                            without ret 96                                                        144    152        176
//! ```

use std::fmt;

/// A version of Go 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// What follows `go1.`; 0 if unknown.
    pub minor: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

/// First and last version whose layout is known.
const KNOWN: std::ops::RangeInclusive<u16> = 18..=26;

impl Version {
    /// From what a binary says: `go1.26.8`, `go1.21rc2`, `devel go1.27-4c2b6a1`.
    pub fn from_text(text: &[u8]) -> Version {
        let name = b"go1.";
        let digits = text.windows(name.len()).position(|word| word == name).map_or(&[][..], |at| &text[at + name.len()..]);
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).take(4);
        Version { minor: digits.fold(0, |number, digit| number * 10 + u16::from(digit - b'0')) }
    }
}

/// Offsets in a `runtime.g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoroutineLayout {
    pub(super) stack_low: u64,
    pub(super) stack_high: u64,
    pub(super) sp: u64,
    pub(super) pc: u64,
    pub(super) fp: u64,
    pub(super) status: u64,
    pub(super) id: u64,
    pub(super) reason: u64,
}

impl GoroutineLayout {
    pub(super) fn of(version: Version) -> Option<GoroutineLayout> {
        if !KNOWN.contains(&version.minor) {
            return None;
        }
        let (ret, syscallbp) = (if version.minor < 25 { 8 } else { 0 }, if version.minor < 23 { 0 } else { 8 });
        let sched = 56;
        let status = 128 + ret + syscallbp + 8;
        Some(GoroutineLayout {
            stack_low: 0,
            stack_high: 8,
            sp: sched,
            pc: sched + 8,
            fp: sched + 40 + ret,
            status,
            id: status + 8,
            reason: status + 32,
        })
    }

    /// Bytes of a `runtime.g` that hold all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.reason + 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_each_of_their_forms() {
        let minor = |text: &str| Version::from_text(text.as_bytes()).minor;
        assert_eq!(
            [minor("go1.26.8"), minor("go1.21rc2"), minor("devel go1.27-4c2b6a1"), minor("go1.24 X:aliastypeparams")],
            [26, 21, 27, 24]
        );
        assert_eq!([minor(""), minor("go2.1"), minor("go1."), minor("go1.99999999")], [0, 0, 0, 9999]);
    }

    #[test]
    fn the_layouts_are_those_that_debuggers_see() {
        let of = |minor| GoroutineLayout::of(Version { minor }).map(|it| (it.sp, it.fp, it.status, it.id, it.reason));
        assert_eq!(of(21), Some((56, 104, 144, 152, 176)));
        assert_eq!(of(24), Some((56, 104, 152, 160, 184)));
        assert_eq!(of(26), Some((56, 96, 144, 152, 176)));
        assert_eq!([of(17), of(27), of(0)], [None, None, None]);
    }
}
