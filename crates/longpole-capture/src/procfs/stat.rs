//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`.

use std::fs;

use longpole_model::Exit;
use longpole_model::proc_stat::ProcStat;

use crate::sys::exit_status::exit_of_status;

/// A process or a thread, as its `stat` file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    /// The letter of its state.
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) is_asleep: bool,
    /// It is ending, and will soon wait to be reaped.
    pub(crate) is_ending: bool,
    /// It waits to be reaped.
    pub(crate) has_ended: bool,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    /// When it started, in [`TICK_NANOS`](longpole_model::proc_stat::TICK_NANOS) since boot: tells it from a later one with the same id.
    pub(crate) start: u64,
    /// Where its code and its stack begin: another exec puts them elsewhere. Zeros where they may not be seen.
    pub(crate) program: (u64, u64),
    /// How it ended, which says nothing where only its owner may see it.
    pub(crate) exit: Option<Exit>,
}

impl Stat {
    pub(crate) fn of_process(pid: u32) -> Option<Stat> {
        Stat::read(&format!("/proc/{pid}/stat"))
    }

    pub(crate) fn of_thread(pid: u32, tid: u32) -> Option<Stat> {
        Stat::read(&format!("/proc/{pid}/task/{tid}/stat"))
    }

    fn read(path: &str) -> Option<Stat> {
        Stat::parse(&String::from_utf8_lossy(&fs::read(path).ok()?))
    }

    /// `None` where a field is missing that every kernel writes.
    pub(crate) fn parse(text: &str) -> Option<Stat> {
        let stat = ProcStat::parse(text)?;
        Some(Stat {
            name: stat.name.to_owned(),
            state: stat.state,
            parent: stat.parent()?,
            is_asleep: stat.is_asleep(),
            is_ending: stat.is_ending()?,
            has_ended: stat.has_ended(),
            minor_faults: stat.minor_faults()?,
            major_faults: stat.major_faults()?,
            start: stat.start_ticks()?,
            program: (stat.code_start()?, stat.stack_start()?),
            exit: stat.exit_status().map(exit_of_status),
        })
    }
}

/// Whether a process still runs: one that waits to be reaped does not.
pub(crate) fn runs(pid: u32) -> bool {
    Stat::of_process(pid).is_some_and(|stat| !stat.has_ended && !stat.is_ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_stat_file_says_is_read() {
        let text = "42 (a) b (c)) Z 7 42 42 0 -1 4227084 12 1 3 0 4 5 0 0 20 0 1 0 99 0 0 18446744073709551615 \
                    4096 0 77 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 9\n";
        let expected = Stat {
            name: "a) b (c)".to_owned(),
            state: b'Z',
            parent: 7,
            is_asleep: false,
            is_ending: true,
            has_ended: true,
            minor_faults: 12,
            major_faults: 3,
            start: 99,
            program: (4096, 77),
            exit: Some(Exit::Signal(9)),
        };
        assert_eq!(Stat::parse(text), Some(expected));
        for cut in ["", "42 (x", "42 (x) S 1", "42 (x) S 7 42 42 0 -1"] {
            assert_eq!(Stat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn this_process_runs() {
        let own = std::process::id();
        assert!(runs(own) && Stat::of_process(own).unwrap().name == Stat::of_thread(own, own).unwrap().name && !runs(u32::MAX));
    }
}
