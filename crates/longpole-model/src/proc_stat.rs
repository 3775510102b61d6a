//! `/proc/PID/stat` and `/proc/PID/task/TID/stat` of Linux, from their text: proc_pid_stat(5), whose numbers of fields these are.
//!
//! ```text
//! 42 (sh) S 7 42 42 0 -1 …        fields 1 to 4: process, name, state, parent
//! 42 (a) b (c)) S 7 42 42 …       a name may hold blanks and brackets: it ends with the last bracket
//! ```

/// The unit of times in such a file, `USER_HZ`, in nanoseconds: 100 a second on every Linux.
pub const TICK_NANOS: u64 = 10_000_000;

/// PF_EXITING of `<linux/sched.h>`, in field 9.
const FLAG_EXITING: u64 = 4;

/// Number of the first field behind the name.
const STATE: usize = 3;

/// A process or a thread, as its `stat` file describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat<'a> {
    /// What it calls itself: the first 15 bytes of its program's name, unless it took another.
    pub name: &'a str,
    /// The letter of its state: `R` for running, `S` and `D` for asleep, `Z` for a process that waits to be reaped …
    pub state: u8,
    /// The fields from the state on.
    fields: &'a str,
}

impl<'a> ProcStat<'a> {
    /// Parses the text of the file; `None` if it has no name in brackets or no state.
    pub fn parse(text: &'a str) -> Option<ProcStat<'a>> {
        let (before, fields) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(ProcStat { name, state: *fields.trim_start().as_bytes().first()?, fields })
    }

    fn number(&self, field: usize) -> Option<u64> {
        self.fields.split_ascii_whitespace().nth(field - STATE)?.parse().ok()
    }

    /// Whether it is asleep: it waits for something.
    pub fn is_asleep(&self) -> bool {
        matches!(self.state, b'S' | b'D')
    }

    /// Whether it has ended: it waits to be reaped, or is about to vanish.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Its parent process; 0 if that is outside of the pid namespace.
    pub fn parent(&self) -> Option<u32> {
        self.number(4)?.try_into().ok()
    }

    /// Whether it is ending, and will soon wait to be reaped.
    pub fn is_ending(&self) -> Option<bool> {
        Some(self.number(9)? & FLAG_EXITING != 0)
    }

    /// Page faults that needed no disk.
    pub fn minor_faults(&self) -> Option<u64> {
        self.number(10)
    }

    /// Page faults that needed a disk.
    pub fn major_faults(&self) -> Option<u64> {
        self.number(12)
    }

    /// CPU time, user and system, in [`TICK_NANOS`].
    pub fn cpu_ticks(&self) -> Option<u64> {
        self.number(14)?.checked_add(self.number(15)?)
    }

    /// When it started, in [`TICK_NANOS`] since boot.
    pub fn start_ticks(&self) -> Option<u64> {
        self.number(22)
    }

    /// The address above which its program's code lies; 0 where it may not be seen.
    pub fn code_start(&self) -> Option<u64> {
        self.number(26)
    }

    /// The address of the bottom of its stack; 0 where it may not be seen.
    pub fn stack_start(&self) -> Option<u64> {
        self.number(28)
    }

    /// How it ended, as wait(2) encodes it; 0 where only its owner may see it. Since Linux 3.5.
    pub fn exit_status(&self) -> Option<i32> {
        self.number(52)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZOMBIE: &str = "42 (a) b (c)) Z 7 42 42 0 -1 4227084 12 1 3 0 4 5 0 0 20 0 1 0 99 0 0 18446744073709551615 \
                          4096 0 77 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 9\n";

    #[test]
    fn each_field_is_found_behind_an_odd_name() {
        let stat = ProcStat::parse(ZOMBIE).unwrap();
        assert_eq!((stat.name, stat.state, stat.parent(), stat.is_ending()), ("a) b (c)", b'Z', Some(7), Some(true)));
        assert_eq!((stat.minor_faults(), stat.major_faults(), stat.cpu_ticks()), (Some(12), Some(3), Some(9)));
        assert_eq!((stat.start_ticks(), stat.code_start(), stat.stack_start()), (Some(99), Some(4096), Some(77)));
        assert_eq!((stat.exit_status(), stat.has_ended(), stat.is_asleep()), (Some(9), true, false));
    }

    #[test]
    fn a_text_that_is_cut_off_has_the_fields_that_are_there() {
        assert_eq!(ProcStat::parse(""), None);
        assert_eq!(ProcStat::parse("42 (x"), None);
        assert_eq!(ProcStat::parse("42 (x) "), None);
        let stat = ProcStat::parse("42 (x) S 7").unwrap();
        assert_eq!((stat.parent(), stat.is_asleep(), stat.is_ending(), stat.exit_status()), (Some(7), true, None, None));
    }
}
