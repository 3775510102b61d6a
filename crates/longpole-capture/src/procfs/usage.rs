//! Memory, CPU time and I/O of each process, read from `/proc` while it lives, and how it ended.
//!
//! ```text
//! fork   exec                                                         exit            reaped
//!  |------|--r--r--r--r---r----r-----r-------r--------r- … ------r-----|-- r (no memory) --|
//!         0  1  2  3  4   5    6     8       10 ms             each 32nd of its age        how it ended
//! ```
//! The kernel reports no growth of memory, so it has to be polled. The number of readings grows with the logarithm of a process's life (300
//! in the first hour, 100 more in a day); the kernel's own peak covers the time between two readings; a process that did not run is not
//! read. All readings together may take a 200th of one CPU.
//!
//! Since Linux 6.15 whoever has a pidfd can ask how the process ended, once it is reaped. Before that only `/proc/PID/stat` shows it, as long
//! as the process waits to be reaped.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read};

use longpole_model::{Exit, IoBytes, Loss, LossKind, Monotonic, Observation, ProcessMemory, ProcessUsage};

use crate::cpu_budget::CpuBudget;
use crate::procfs::process_snapshot;
use crate::procfs::stat::Stat;
use crate::sink::ObservationWriter;
use crate::sys::clock::{monotonic_nanos, process_cpu_nanos, thread_cpu_nanos};
use crate::sys::limits::open_files_limit;
use crate::sys::pidfd::{exit_of, open_process};
use longpole_model::fast_hash::FastMap;

const MILLI: u64 = 1_000_000;

/// How long after a fork a process is first read: before its exec it has the memory of its parent, and most processes execute a program at once.
const FORK_PATIENCE_NANOS: u64 = 20 * MILLI;

/// While a process is young, a pause is one part in `YOUNG_PART` of its age, and at most this long.
const YOUNG_PAUSE_MAX_NANOS: u64 = 50 * MILLI;
const YOUNG_PART: u64 = 4;

/// Later a pause is one part in this many of its age.
const OLD_PART: u64 = 32;

/// Readings may take one part in this many of a CPU.
const READING_PART: i64 = 200;

/// CPU time that readings may take in a burst: for about fifty, when many processes start at once.
const NANOS_AT_ONCE: i64 = 2_000_000;

/// For how long to ask how a process ended that nobody reaps.
const STATUS_PATIENCE_NANOS: u64 = 2_000 * MILLI;

/// Pause before a process that could not be read is tried again.
const GONE_PAUSE_NANOS: u64 = 1_000 * MILLI;

/// One part in this many of the descriptors may be used for processes; the others are for binaries.
const HANDLES_PART: usize = 4;

/// A process that lives.
struct LiveProcess {
    /// Its fork, or its last exec.
    since: u64,
    due: u64,
    cpu_nanos: Option<u64>,
    io_refused: bool,
    handle: Option<File>,
}

/// A process that has ended; how is not known yet.
struct EndedProcess {
    pid: u32,
    time: u64,
    due: u64,
    handle: Option<File>,
}

/// All processes that are read.
pub(crate) struct ProcessUsages {
    living: FastMap<u32, LiveProcess>,
    dues: BTreeSet<(u64, u32)>,
    ended: Vec<EndedProcess>,
    handles: usize,
    handles_max: usize,
    budget: CpuBudget,
    /// Processes that do not show their I/O, not yet reported.
    io_refused: u64,
}

impl ProcessUsages {
    pub(crate) fn new() -> ProcessUsages {
        ProcessUsages {
            living: FastMap::default(),
            dues: BTreeSet::new(),
            ended: Vec::new(),
            handles: 0,
            handles_max: open_files_limit() / HANDLES_PART,
            budget: CpuBudget::new(READING_PART, NANOS_AT_ONCE),
            io_refused: 0,
        }
    }

    /// A process was forked.
    pub(crate) fn forked(&mut self, pid: u32, time: u64) {
        self.expect(pid, time, time + FORK_PATIENCE_NANOS);
    }

    /// A process executed a program, or was running when the recording began.
    pub(crate) fn execed(&mut self, pid: u32, time: u64) {
        self.expect(pid, time, time + pause(0));
    }

    fn expect(&mut self, pid: u32, since: u64, due: u64) {
        if let Some(living) = self.living.get_mut(&pid) {
            self.dues.remove(&(living.due, pid));
            (living.since, living.due) = (since, due);
        } else {
            let handle = if self.handles < self.handles_max { open_process(pid).ok() } else { None };
            self.handles += usize::from(handle.is_some());
            self.living.insert(pid, LiveProcess { since, due, cpu_nanos: None, io_refused: false, handle });
        }
        self.dues.insert((due, pid));
    }

    /// The first thread of a process is ending, and with it mostly the process: the last moment to read it.
    pub(crate) fn leaving(&mut self, pid: u32, out: &mut ObservationWriter) {
        if self.living.contains_key(&pid) {
            self.read(pid, out);
        }
    }

    /// A process has ended.
    pub(crate) fn ended(&mut self, pid: u32, time: u64) {
        let Some(living) = self.living.remove(&pid) else { return };
        self.dues.remove(&(living.due, pid));
        self.ended.push(EndedProcess { pid, time, due: time, handle: living.handle });
    }

    /// Adds processes whose start was missed, and drops processes whose end was missed.
    pub(crate) fn compare(&mut self, now: u64, known: impl Iterator<Item = u32>) {
        let known: HashSet<u32> = known.collect();
        for &pid in &known {
            if !self.living.contains_key(&pid) {
                self.execed(pid, now);
            }
        }
        let lost: Vec<u32> =
            self.living.iter().filter(|(pid, it)| it.since + GONE_PAUSE_NANOS < now && !known.contains(pid)).map(|it| *it.0).collect();
        for pid in lost {
            self.ended(pid, now);
        }
    }

    /// When the next reading is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let read = self.dues.first().map(|(due, _)| self.budget.available_at(1).max(*due));
        self.ended.iter().map(|it| it.due).chain(read).min()
    }

    /// Makes the readings that are due, and asks how processes ended.
    pub(crate) fn look(&mut self, now: u64, out: &mut ObservationWriter) {
        while let Some((due, pid)) = self.dues.first().copied()
            && due <= now
            && self.budget.has_some(now)
        {
            self.read(pid, out);
        }
        self.ask(now, false, out);
    }

    /// The recording ends.
    pub(crate) fn finish(&mut self, now: u64, out: &mut ObservationWriter) {
        let pids: Vec<u32> = self.living.keys().copied().collect();
        for pid in pids {
            self.read(pid, out);
        }
        self.ask(now, true, out);
    }

    /// What could not be read and is not yet reported.
    pub(crate) fn losses(&mut self) -> Option<Loss> {
        let count = std::mem::take(&mut self.io_refused);
        let detail = "processes whose read and written bytes longpole may not read: another user's, or protected by the program itself";
        (count > 0).then(|| Loss::new(LossKind::UsageNotSeen, count, detail))
    }

    /// Reads one process, if it has run since the last reading.
    fn read(&mut self, pid: u32, out: &mut ObservationWriter) {
        let Some(living) = self.living.get_mut(&pid) else { return };
        let before = thread_cpu_nanos();
        let now = monotonic_nanos();
        let cpu_nanos = process_cpu_nanos(pid);
        let mut wait = pause(now.saturating_sub(living.since));
        match cpu_nanos {
            None => wait = GONE_PAUSE_NANOS,
            Some(cpu_nanos) if living.cpu_nanos == Some(cpu_nanos) => {}
            Some(cpu_nanos) => match reading(pid, cpu_nanos, now) {
                Some(usage) => {
                    living.cpu_nanos = Some(cpu_nanos);
                    // Some kernels hide a process that has ended from a plain user; earlier readings stand.
                    if usage.io.is_none() && usage.memory.is_some() && !std::mem::replace(&mut living.io_refused, true) {
                        self.io_refused += 1;
                    }
                    out.give(Observation::ProcessUsage(usage));
                }
                None => wait = GONE_PAUSE_NANOS,
            },
        }
        self.dues.remove(&(living.due, pid));
        living.due = now + wait;
        self.dues.insert((living.due, pid));
        self.budget.spend(thread_cpu_nanos().saturating_sub(before));
    }

    /// Asks how processes ended.
    fn ask(&mut self, now: u64, is_last: bool, out: &mut ObservationWriter) {
        let (living, handles) = (&self.living, &mut self.handles);
        self.ended.retain_mut(|ended| {
            if ended.due > now && !is_last {
                return true;
            }
            let told = || ended.handle.as_ref().and_then(exit_of);
            let zombie = || (!living.contains_key(&ended.pid)).then(|| exit_of_zombie(ended.pid)).flatten();
            // It may be reaped between the two.
            let exit = told().or_else(zombie).or_else(told);
            if let Some(exit) = exit {
                out.give(Observation::ProcessStatus { pid: ended.pid, time: Monotonic(ended.time), exit });
            }
            let age = now.saturating_sub(ended.time);
            ended.due = now + age.max(MILLI);
            let go_on = exit.is_none() && ended.handle.is_some() && age < STATUS_PATIENCE_NANOS && !is_last;
            *handles -= usize::from(!go_on && ended.handle.is_some());
            go_on
        });
    }
}

/// How a process ended that waits to be reaped; `None` if it does not wait, or if only its owner may see it: then the field reads 0.
fn exit_of_zombie(pid: u32) -> Option<Exit> {
    let stat = read_stat(pid).filter(|stat| stat.state == b'Z')?;
    io_of(pid).flatten().and(stat.exit)
}

/// The pause before the next reading of a process of this age, in nanoseconds.
fn pause(age: u64) -> u64 {
    (age / YOUNG_PART).clamp(MILLI, YOUNG_PAUSE_MAX_NANOS).max(age / OLD_PART)
}

fn reading(pid: u32, cpu_nanos: u64, now: u64) -> Option<ProcessUsage> {
    let stat = read_stat(pid)?;
    Some(ProcessUsage {
        pid,
        time: Monotonic(now),
        memory: memory_of(pid),
        cpu_nanos,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
        io: io_of(pid)?,
    })
}

/// What a child of this process used that has ended and waits to be reaped.
pub(crate) fn last_reading(pid: u32) -> Option<ProcessUsage> {
    reading(pid, process_cpu_nanos(pid)?, monotonic_nanos())
}

/// The memory of a process; `None` if it has none, as at its end.
pub(crate) fn memory_of(pid: u32) -> Option<ProcessMemory> {
    with_file(pid, "status", memory).ok()?
}

/// What a process read and wrote: `None` if it is gone, `Some(None)` if this user may not see it.
fn io_of(pid: u32) -> Option<Option<IoBytes>> {
    match with_file(pid, "io", io_bytes) {
        Ok(bytes) => bytes.map(Some),
        Err(error) => (error.kind() == io::ErrorKind::PermissionDenied).then_some(None),
    }
}

/// Parses a file of `/proc/PID`.
fn with_file<T>(pid: u32, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> io::Result<Option<T>> {
    if process_snapshot::is_proc_of_others() {
        return Err(io::ErrorKind::NotFound.into());
    }
    // The longest of these files, `status`, has about 1,500 bytes.
    let mut bytes = [0; 4096];
    let length = File::open(format!("/proc/{pid}/{name}")).and_then(|mut file| file.read(&mut bytes))?;
    // Names in them may hold any bytes; nobody reads them.
    Ok(parse(&String::from_utf8_lossy(&bytes[..length])))
}

fn read_stat(pid: u32) -> Option<Stat> {
    with_file(pid, "stat", Stat::parse).ok()?
}

/// `VmHWM:     1234 kB` and `VmRSS:` of `/proc/PID/status` (proc_pid_status(5)).
fn memory(text: &str) -> Option<ProcessMemory> {
    let bytes = |key: &str| -> Option<u64> {
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(ProcessMemory { peak_resident_bytes: bytes("VmHWM:")?, resident_bytes: bytes("VmRSS:")? })
}

/// `rchar: 12` and so on, of `/proc/PID/io` (proc_pid_io(5)).
fn io_bytes(text: &str) -> Option<IoBytes> {
    let bytes = |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok();
    Some(IoBytes {
        read: bytes("rchar:")?,
        written: bytes("wchar:")?,
        storage_read: bytes("read_bytes:")?,
        storage_written: bytes("write_bytes:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::testing;
    use std::process::{Command, Stdio};

    #[test]
    fn the_number_of_readings_grows_with_the_logarithm_of_a_life() {
        let readings = |life: u64| {
            let (mut age, mut count) = (pause(0), 0);
            while age < life {
                count += 1;
                age += pause(age);
            }
            count
        };
        let second = 1_000 * MILLI;
        assert_eq!([10 * MILLI, second, 60 * second, 3_600 * second, 86_400 * second].map(readings), [8, 37, 167, 300, 403]);
    }

    #[test]
    fn memory_and_bytes_are_read_from_their_files() {
        let status = "Name:\ta\nUmask:\t0022\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(memory(status), Some(ProcessMemory { resident_bytes: 1 << 20, peak_resident_bytes: 2 << 20 }));
        assert_eq!(memory("Name:\tkthreadd\nVmHWM:\t99999999999999999999 kB\nVmRSS:\t1 kB\n"), None);
        let io = "rchar: 4\nwchar: 3\nsyscr: 9\nsyscw: 9\nread_bytes: 2\nwrite_bytes: 1\ncancelled_write_bytes: 0\n";
        assert_eq!(io_bytes(io), Some(IoBytes { read: 4, written: 3, storage_read: 2, storage_written: 1 }));
        assert_eq!(io_bytes("rchar: 4\n"), None);
    }

    #[test]
    fn a_child_is_read_while_it_lives_and_its_end_is_known_before_and_after_it_is_reaped() {
        let (mut out, seen) = testing::out(false);
        let mut usages = ProcessUsages::new();
        let mut child = Command::new("sh").args(["-c", "read line; exit 7"]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let since = monotonic_nanos();
        usages.execed(pid, since);
        assert_eq!(usages.next_due(), Some(since + MILLI));
        usages.look(since + MILLI, &mut out);
        usages.look(since + 1_000 * MILLI, &mut out);
        drop(child.stdin.take());
        // Ended, and not reaped: all is still to be seen but its memory.
        while read_stat(pid).unwrap().state != b'Z' {
            std::thread::yield_now();
        }
        usages.leaving(pid, &mut out);
        usages.ended(pid, since);
        usages.look(since, &mut out);
        child.wait().unwrap();
        usages.finish(since, &mut out);
        assert!(usages.living.is_empty() && usages.dues.is_empty() && usages.ended.is_empty() && usages.handles == 0);
        let seen = seen.lock().unwrap();
        let usage = |i: usize| match seen[i] {
            Observation::ProcessUsage(usage) => usage,
            ref other => panic!("{other:?}"),
        };
        assert!(usage(0).memory.unwrap().resident_bytes > 0);
        let last = usage(seen.len() - 2);
        assert!(last.memory.is_none() && last.minor_faults > 0 && last.cpu_nanos > 0);
        assert_eq!(seen.last(), Some(&Observation::ProcessStatus { pid, time: Monotonic(since), exit: Exit::Code(7) }));
    }

    #[test]
    fn readings_have_an_allowance_and_a_stranger_is_no_trouble() {
        let (mut out, _) = testing::out(false);
        let mut usages = ProcessUsages::new();
        usages.execed(u32::MAX, 0);
        usages.execed(std::process::id(), 0);
        usages.budget.spend(NANOS_AT_ONCE.unsigned_abs() + 4);
        assert_eq!(usages.next_due(), Some(MILLI));
        usages.budget.spend(MILLI);
        let due = READING_PART.unsigned_abs() * (MILLI + 5);
        assert_eq!(usages.next_due(), Some(due));
        usages.look(due, &mut out);
        assert!(usages.next_due().is_some_and(|next| next > due), "one was read, and owes for it");
        usages.compare(monotonic_nanos(), std::iter::once(std::process::id()));
        assert_eq!(usages.living.len(), 1);
    }
}
