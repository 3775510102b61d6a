//! Where the fields of `runtime.g` lie, by the version of Go.
//!
//! From the DWARF of programs that 1.19 and 1.21 to 1.26 built (`runtime.g`, `runtime.gobuf`); that of other versions is read when it is needed. The fields in front of `waitreason` moved twice:
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

/// Largest offset of a field: a `runtime.g` has less than 500 bytes.
const OFFSET_MAX: u64 = 4096;

/// Offsets in a `runtime.g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoroutineLayout {
    pub(super) stack_low: u64,
    pub(super) stack_high: u64,
    pub(super) sp: u64,
    pub(super) pc: u64,
    pub(super) fp: u64,
    pub(super) status: u64,
    pub(super) id: u64,
    pub(super) reason: u64,
}

impl Version {
    /// Where this version has the fields, if that is known.
    pub(crate) fn layout(self) -> Option<GoroutineLayout> {
        if !KNOWN.contains(&self.minor) {
            return None;
        }
        let (ret, syscallbp) = (if self.minor < 25 { 8 } else { 0 }, if self.minor < 23 { 0 } else { 8 });
        let sched = 56;
        let status = 136 + ret + syscallbp;
        GoroutineLayout::new([0, sched, sched + 8, sched + 40 + ret, status, status + 8, status + 32])
    }
}

impl GoroutineLayout {
    /// The offsets of the fields `stack`, `sched.sp`, `sched.pc`, `sched.bp`, `atomicstatus`, `goid` and `waitreason`; `None` if one lies too far away.
    pub(crate) fn new(offsets: [u64; 7]) -> Option<GoroutineLayout> {
        let [stack_low, sp, pc, fp, status, id, reason] = offsets;
        let are_near = offsets.iter().all(|offset| *offset <= OFFSET_MAX);
        are_near.then_some(GoroutineLayout { stack_low, stack_high: stack_low + 8, sp, pc, fp, status, id, reason })
    }

    /// Bytes of a `runtime.g` that hold all of them.
    pub(super) fn bytes(&self) -> u64 {
        [self.stack_high, self.sp, self.pc, self.fp, self.status, self.id, self.reason].into_iter().max().unwrap_or(0) + 8
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
        let of = |minor| Version { minor }.layout().map(|it| (it.sp, it.fp, it.status, it.id, it.reason));
        assert_eq!(of(21), Some((56, 104, 144, 152, 176)));
        assert_eq!(of(24), Some((56, 104, 152, 160, 184)));
        assert_eq!(of(26), Some((56, 96, 144, 152, 176)));
        assert_eq!([of(17), of(27), of(0)], [None, None, None]);
    }
}
