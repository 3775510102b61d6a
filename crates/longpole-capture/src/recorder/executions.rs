//! Executed programs, with the path and the arguments of each from `/proc`.
//!
//! A program has its arguments some time after its exec, and a short-lived one is soon gone. So `/proc` is read when the record of the exec
//! arrives, before its turn, and again until all is there.

use std::fs;
use std::sync::Arc;

use longpole_model::{Loss, LossKind, Monotonic, Observation};

use crate::procfs::command_line::arguments_of;
use crate::sink::ObservationWriter;

/// Most memory for the arguments of all programs of a recording. Those of later programs are left out.
const ALL_ARGUMENTS_BYTES_MAX: u64 = 64 << 20;

/// How long to wait for the arguments after an exec: on a busy machine the process may be off the CPU in the middle of it.
const EXEC_PATIENCE_NANOS: u64 = 1_000_000_000;

/// Shortest pause between two readings; later a pause is one part in `EXEC_PAUSE_PART` of the time since the exec: a program of another user
/// never shows everything.
const EXEC_PAUSE_NANOS: u64 = 1_000_000;
const EXEC_PAUSE_PART: u64 = 8;

/// An exec not yet reported.
struct Execution {
    pid: u32,
    time: u64,
    name: Arc<str>,
    executable: String,
    arguments: Vec<String>,
    /// When to read `/proc` next.
    due: u64,
    /// Whether `/proc` still shows this exec.
    is_latest: bool,
    /// Whether its record has had its turn.
    seen: bool,
}

/// Execs not yet reported.
pub(crate) struct Executions {
    pending: Vec<Execution>,
    arguments: AllArguments,
}

impl Executions {
    pub(super) fn new() -> Executions {
        Executions { pending: Vec::new(), arguments: AllArguments { bytes_left: ALL_ARGUMENTS_BYTES_MAX, left_out: 0 } }
    }

    /// Whoever takes the arguments keeps none of them, so there is room for those of any number of programs.
    pub(super) fn has_room(&mut self) {
        self.arguments.bytes_left = u64::MAX;
    }

    /// A record of an exec has arrived, before its turn: the process may be gone when its turn comes.
    pub(super) fn announce(&mut self, pid: u32, time: u64, name: &[u8], is_latest: bool) {
        for earlier in self.pending.iter_mut().filter(|it| it.pid == pid) {
            earlier.is_latest = false;
        }
        let name = String::from_utf8_lossy(name).into();
        let mut execution =
            Execution { pid, time, name, executable: String::new(), arguments: Vec::new(), due: time, is_latest, seen: false };
        execution.read(time);
        self.pending.push(execution);
    }

    /// The record of an exec has its turn. If it was not announced, `/proc` is read now.
    pub(super) fn has_happened(&mut self, pid: u32, time: u64, name: &[u8]) {
        if !self.pending.iter().any(|it| it.pid == pid && it.time == time) {
            self.announce(pid, time, name, true);
        }
        if let Some(execution) = self.pending.iter_mut().find(|it| it.pid == pid && it.time == time) {
            execution.seen = true;
        }
    }

    /// Reads `/proc` again for programs without arguments, and reports those that are complete.
    pub(super) fn look(&mut self, now: u64, out: &mut ObservationWriter) {
        let mut i = 0;
        while let Some(execution) = self.pending.get_mut(i) {
            execution.read(now);
            let is_done = !execution.is_latest || execution.is_complete() || now > execution.time.saturating_add(EXEC_PATIENCE_NANOS);
            if execution.seen && is_done {
                self.pending.remove(i).tell(&mut self.arguments, out);
            } else {
                i += 1;
            }
        }
    }

    /// When to read `/proc` next for a program without arguments.
    pub(super) fn next_look(&self) -> Option<u64> {
        self.pending.iter().filter(|it| it.is_latest && !it.is_complete()).map(|it| it.due).min()
    }

    /// A process has ended: reports its programs as far as they are known.
    pub(super) fn process_ended(&mut self, pid: u32, out: &mut ObservationWriter) {
        while let Some(place) = self.pending.iter().position(|it| it.pid == pid && it.seen) {
            self.pending.remove(place).tell(&mut self.arguments, out);
        }
    }

    /// The recording ends.
    pub(super) fn finish(&mut self, out: &mut ObservationWriter) {
        for execution in std::mem::take(&mut self.pending) {
            execution.tell(&mut self.arguments, out);
        }
        self.arguments.tell_left_out(out);
    }
}

impl Execution {
    fn is_complete(&self) -> bool {
        !self.arguments.is_empty() && !self.executable.is_empty()
    }

    fn read(&mut self, now: u64) {
        if !self.is_latest || self.is_complete() || now < self.due {
            return;
        }
        self.due = now + EXEC_PAUSE_NANOS.max(now.saturating_sub(self.time) / EXEC_PAUSE_PART);
        if let Ok(path) = fs::read_link(format!("/proc/{}/exe", self.pid)) {
            self.executable = path.to_string_lossy().into_owned();
        }
        // A process that has ended since shows none.
        let arguments = arguments_of(self.pid);
        if !arguments.is_empty() {
            self.arguments = arguments;
        }
    }

    fn tell(self, all: &mut AllArguments, out: &mut ObservationWriter) {
        let Execution { pid, time, name, executable, arguments, .. } = self;
        let arguments = all.take(arguments);
        out.give(Observation::ProcessExec { pid, time: Monotonic(time), name: name.to_string(), executable, arguments });
    }
}

/// Room for the arguments of programs: a command can start any number of them.
struct AllArguments {
    bytes_left: u64,
    /// Programs whose arguments had no room.
    left_out: u64,
}

impl AllArguments {
    /// These arguments, or none if there is no room.
    fn take(&mut self, arguments: Vec<String>) -> Vec<String> {
        let bytes = arguments.iter().map(|argument| (size_of::<String>() + argument.len()) as u64).sum();
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                arguments
            }
            None => {
                self.left_out += 1;
                Vec::new()
            }
        }
    }

    fn tell_left_out(&mut self, out: &mut ObservationWriter) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            let detail = format!("without their arguments: those of all programs take more than {} MiB", ALL_ARGUMENTS_BYTES_MAX >> 20);
            out.give(Observation::Loss(Loss::new(LossKind::UsageNotSeen, count, detail)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::testing;

    #[test]
    fn arguments_without_room_are_counted() {
        let (mut out, seen) = testing::out(false);
        let mut all = AllArguments { bytes_left: 60, left_out: 0 };
        let lines: Vec<usize> = ["first", "second", "", "last"].map(|it| all.take(vec![it.to_owned()]).len()).to_vec();
        assert_eq!(lines, [1, 1, 0, 0]);
        all.tell_left_out(&mut out);
        all.tell_left_out(&mut out);
        let detail = "without their arguments: those of all programs take more than 64 MiB";
        assert_eq!(*seen.lock().unwrap(), [Observation::Loss(Loss::new(LossKind::UsageNotSeen, 2, detail))]);
    }
}
