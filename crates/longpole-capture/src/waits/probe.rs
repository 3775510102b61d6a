//! What blocked threads wait for: looks at a thread while it is off the CPU, without stopping it and without any privilege.
//!
//! ```text
//! thread     ===|                                        |======     switched out, switched in
//! looked at              ▼ syscall, stack, syscall again             once, after THRESHOLD_NANOS
//! wait          |----------------------------------------|           its times are those of the switch records: exact
//! ```
//!
//! `/proc/PID/task/TID/syscall` says which system call a thread is blocked in, with its arguments, stack pointer and instruction
//! pointer; `process_vm_readv` copies the stack. Both are as they were while the thread slept if the file says the same afterwards
//! and the thread was not switched in meanwhile, which its switch records tell.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use longpole_model::{ContextRecord, Futex, WaitKind};
use longpole_symbols::unwind::{AddressSpace, Frame, StackEnd, StackWalker};

use crate::cpu_budget::Allowance;
use crate::waits::futex::{self, Call};
use crate::context;
use crate::frames::stacks::NumberMap;
use crate::sys::remote_memory::{StackPages, read_memory, read_stack};
use crate::sys::perf::{monotonic_nanos, realtime_nanos, thread_cpu_nanos};

/// Waits shorter than this are not looked at, but for those of a thread that waits for a disk, or for short times again and again.
pub(crate) const THRESHOLD_NANOS: u64 = 5_000_000;

/// Waits that are longer are missed only where the recorder did not come to it; shorter ones may be over before the records of their beginning came.
const LONG_NANOS: u64 = 20_000_000;

/// The same of a thread that was seen to wait for a disk, for a while: one call waits for many blocks, one after the other, and most of these
/// waits are short.
const DISK_THRESHOLD_NANOS: u64 = 500_000;
const DISK_NANOS: u64 = 20_000_000;

/// How long, after such a look, the end of that wait is not to be missed.
const DISK_HURRY_NANOS: u64 = 100_000_000;

/// So long a thread has been blocked for short times when it is looked at whatever the time: what most of them are for is known by some.
const UNSEEN_NANOS: u64 = 20_000_000;

/// How much later the first of several may be looked at.
const GATHER_NANOS: u64 = 500_000;

/// Most bytes of a stack that are copied.
const STACK_BYTES: usize = 16 << 10;

/// Bytes that hold a context record.
const RECORD_BYTES: usize = 64;

/// Which part of a CPU looks may take on average: at 7 to 60 µs each these are 300 to 3,000 a second.
const LOOKS_PART: i64 = 50;

/// What they may take at once: some hundred threads that fall asleep together.
const LOOKS_NANOS_AT_ONCE: i64 = 10_000_000;

/// What gathers once it is used up: ten looks.
const LOOKS_NANOS_GATHERED: i64 = 250_000;

/// Most stacks that are held at a time: 32 MB.
const HELD_MAX: usize = 2_000;

/// Descriptors of a `poll` that are asked what they are.
const POLLED_MAX: usize = 8;

/// Most bytes of the line of `/proc/PID/task/TID/syscall`: nine numbers.
const LINE_BYTES_MAX: usize = 256;

/// Most bytes of a file of `/proc`.
const PROC_BYTES_MAX: u64 = 4096;

/// The last switch of a thread, as far as records have come.
#[derive(Debug, Clone, Copy)]
struct Switch {
    time: u64,
    /// It was switched out and could not have gone on.
    blocked: bool,
    /// Whether a time to look at it is set, for this switch or for an earlier one.
    is_due: bool,
    /// It waits for a disk, or did last when it was looked at, up to some time after that.
    on_disk: OnDisk,
    /// How long it was blocked in all since it was looked at last.
    unseen_nanos: u64,
    /// Where its stack was when it was looked at last.
    stack: StackPages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    No,
    Now,
    Until(u64),
}

impl Switch {
    /// How long it is to be blocked until it is looked at.
    fn threshold_nanos(&self) -> u64 {
        match self.on_disk {
            _ if self.unseen_nanos >= UNSEEN_NANOS => 0,
            OnDisk::Until(until) if self.time < until => DISK_THRESHOLD_NANOS,
            _ => THRESHOLD_NANOS,
        }
    }
}

/// A wait that was long enough to be looked at.
#[derive(Debug)]
struct Look {
    /// When the thread was switched out.
    since: u64,
    /// What was seen, oldest first: once, and once more if that was early; nothing as long as it was not looked at, because there are too many.
    seen: Vec<Sleeper>,
}

/// A thread as it sleeps. Its stack stays bytes until all mappings that it may lead through are known.
#[derive(Debug)]
pub(crate) struct Sleeper {
    pub(crate) pid: u32,
    /// When it was switched out.
    pub(crate) since: u64,
    /// When it was looked at.
    pub(crate) at: u64,
    pub(crate) kind: WaitKind,
    pub(crate) syscall: &'static str,
    /// Where it will go on, instruction and stack pointer.
    pub(crate) place: (u64, u64),
    /// Empty where it could not be read.
    pub(crate) stack: Vec<u8>,
    pub(crate) context: ContextRecord,
    futex: Option<FutexSeen>,
    /// Where the stack leads, as soon as it was walked.
    pub(crate) walked: Option<(Vec<Frame>, StackEnd)>,
}

impl Sleeper {
    /// Walks the stack, if there is one and that was not done. What it needs besides is read from the process, if that lives.
    pub(crate) fn walk(&mut self, walker: &mut StackWalker, space: Option<&Arc<AddressSpace>>) {
        if self.walked.is_some() || self.stack.is_empty() {
            return;
        }
        let read = |address, into: &mut [u8]| read_memory(self.pid, address, into).is_ok_and(|read| read == into.len());
        let mut frames = Vec::new();
        let end = walker.walk_asleep(space.unwrap_or(&Arc::default()), self.place, &self.stack, &mut frames, read);
        self.walked = Some((frames, end));
    }

    /// The futex that it waited at until then; none where its time ran out: then nobody woke it, unless the futex names who should have.
    pub(crate) fn futex_until(&self, end: u64) -> Option<Futex> {
        let has_run_out = |seen: &FutexSeen| seen.deadline.is_some_and(|deadline| deadline <= end);
        let told = self.futex.as_ref().filter(|seen| seen.futex.holder.is_some() || !has_run_out(seen));
        told.map(|seen| seen.futex)
    }
}

/// A futex at which a thread sleeps.
#[derive(Debug, Clone, Copy)]
struct FutexSeen {
    futex: Futex,
    /// Whether it waits for the end of the thread that the futex names.
    is_join: bool,
    /// When it goes on by itself.
    deadline: Option<u64>,
}

/// Who is blocked, and who was looked at.
#[derive(Debug)]
pub(crate) struct Waits {
    switches: NumberMap<u32, Switch>,
    /// By thread, oldest first: a thread may sleep again before the record of its waking had its turn.
    looks: NumberMap<u32, VecDeque<Look>>,
    /// Stacks that are held.
    held: usize,
    /// Threads whose stack is held and was not walked.
    unwalked: Vec<u32>,
    /// When to look at whom, and since when it must still be blocked then; one for a thread at most, that of its first sleep of late.
    due: BinaryHeap<Reverse<(u64, u32, u32, u64)>>,
    allowance: Allowance,
    /// Until when records are wanted soon.
    hurry_until: u64,
    /// Waits that were not looked at, because there were too many, or too late, because the recorder did not come to it: those below
    /// [`LONG_NANOS`], and the others.
    pub(crate) skipped: u64,
    pub(crate) skipped_long: u64,
    /// Threads that may not be looked at.
    pub(crate) refused: u64,
}

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits {
            switches: NumberMap::default(),
            looks: NumberMap::default(),
            held: 0,
            unwalked: Vec::new(),
            due: BinaryHeap::new(),
            allowance: Allowance::new(LOOKS_PART, LOOKS_NANOS_AT_ONCE),
            hurry_until: 0,
            skipped: 0,
            skipped_long: 0,
            refused: 0,
        }
    }

    /// A record of a switch has come, maybe not in the order of time.
    pub(crate) fn switched(&mut self, pid: u32, tid: u32, time: u64, blocked: bool) {
        let new = || Switch { time: 0, blocked: false, is_due: false, on_disk: OnDisk::No, unseen_nanos: 0, stack: StackPages::default() };
        let last = self.switches.entry(tid).or_insert_with(new);
        if time < last.time {
            return;
        }
        let since = std::mem::replace(&mut last.time, time);
        let was_blocked = std::mem::replace(&mut last.blocked, blocked);
        if was_blocked && !blocked {
            let look = self.looks.get(&tid).and_then(|looks| looks.back()).filter(|look| look.since == since);
            // Whoever had woken and slept again was looked at in vain.
            let was_seen = look.and_then(|look| look.seen.first()).is_some_and(|sleeper| sleeper.at <= time);
            last.unseen_nanos = if was_seen { 0 } else { last.unseen_nanos.saturating_add(time - since) };
            if look.is_none() && time - since >= LONG_NANOS {
                self.looks.entry(tid).or_default().push_back(Look { since, seen: Vec::new() });
            }
        }
        if last.on_disk == OnDisk::Now {
            last.on_disk = OnDisk::Until(time + DISK_NANOS);
        }
        if let OnDisk::Until(until) = last.on_disk {
            self.hurry_until = self.hurry_until.max(until);
        }
        if blocked && !std::mem::replace(&mut last.is_due, true) {
            self.due.push(Reverse((time + last.threshold_nanos(), pid, tid, time)));
        }
    }

    /// Until when records are wanted soon, because somebody may fall asleep for a short time that is of interest.
    pub(crate) fn hurry_until(&self) -> u64 {
        self.hurry_until
    }

    /// A thread is gone.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.switches.remove(&tid);
    }

    /// When to look next. Those who fell asleep one after the other are looked at together: to be woken takes as long as a look.
    pub(crate) fn next_look(&mut self) -> Option<u64> {
        self.next_due().map(|due| (due + GATHER_NANOS).max(self.allowance.there_at(LOOKS_NANOS_GATHERED)))
    }

    /// When somebody is to be looked at next.
    fn next_due(&mut self) -> Option<u64> {
        while let Some(Reverse((due, pid, tid, since))) = self.due.peek().copied() {
            // A thread that sleeps ten thousand times a second is not to wake the recorder as often.
            match self.switches.get_mut(&tid).filter(|last| last.is_due) {
                Some(last) if last.blocked && last.time == since => return Some(due),
                Some(last) if last.blocked => {
                    self.due.pop();
                    self.due.push(Reverse((last.time + last.threshold_nanos(), pid, tid, last.time)));
                }
                last => {
                    last.into_iter().for_each(|last| last.is_due = false);
                    self.due.pop();
                }
            }
        }
        None
    }

    /// Looks at threads that have been blocked for long enough, and says whether there was one. `hint` knows where the context record
    /// of a thread was last.
    pub(crate) fn look(&mut self, now: u64, hint: impl Fn(u32) -> Option<u64>) -> bool {
        let mut has_looked = false;
        while self.next_due().is_some_and(|due| due <= now)
            && let Some(Reverse((_, pid, tid, since))) = self.due.pop()
        {
            let mut unknown = StackPages::default();
            let pages = match self.switches.get_mut(&tid) {
                Some(last) => {
                    last.is_due = false;
                    &mut last.stack
                }
                None => &mut unknown,
            };
            let mut seen = None;
            if self.held < HELD_MAX && self.allowance.is_there(now) {
                let before = thread_cpu_nanos();
                let looked = look((pid, tid, since), hint(tid), pages);
                self.allowance.spend(thread_cpu_nanos() - before);
                match looked {
                    Ok(Some(Seen { asleep, stack, context, futex })) => {
                        let (mut kind, syscall) = asleep.kind(pid);
                        if futex.is_some_and(|seen| seen.is_join) {
                            kind = WaitKind::Join;
                        }
                        if kind == WaitKind::Disk {
                            self.hurry_until = self.hurry_until.max(now + DISK_HURRY_NANOS);
                        }
                        if let Some(last) = self.switches.get_mut(&tid) {
                            last.on_disk = if kind == WaitKind::Disk { OnDisk::Now } else { OnDisk::No };
                        }
                        let (at, place) = (monotonic_nanos(), (asleep.ip, asleep.sp));
                        seen = Some(Sleeper { pid, since, at, kind, syscall, place, stack, context, futex, walked: None });
                        self.held += 1;
                        self.unwalked.push(tid);
                        has_looked = true;
                        if at < since + THRESHOLD_NANOS
                            && let Some(last) = self.switches.get_mut(&tid)
                        {
                            // If it lasts, what it is then is to be known: who holds a lock may be another by that time.
                            last.is_due = true;
                            self.due.push(Reverse((since + THRESHOLD_NANOS, pid, tid, since)));
                        }
                    }
                    // It runs again, and its record is on the way.
                    Ok(None) => continue,
                    Err(Refused) => {
                        self.refused += 1;
                        continue;
                    }
                }
            }
            if seen.is_none()
                && let Some(last) = self.switches.get_mut(&tid)
            {
                // Later, then: a wait that lasts is worth more than many short ones.
                last.is_due = true;
                self.due.push(Reverse((now + (now - since).max(THRESHOLD_NANOS), pid, tid, since)));
            }
            let looks = self.looks.entry(tid).or_default();
            match looks.back_mut().filter(|look| look.since == since) {
                // The earlier one stays: should this wait turn out to have been over by now, it is what was seen of it.
                Some(look) => look.seen.extend(seen),
                None => looks.push_back(Look { since, seen: seen.into_iter().collect() }),
            }
        }
        has_looked
    }

    /// Shows those that sleep to `walk`, which is to walk their stack, as long as it says that it cannot yet: whoever ends as soon as it
    /// wakes is to be walked while it lives.
    pub(crate) fn walk(&mut self, mut walk: impl FnMut(&mut Sleeper) -> bool) {
        let looks = &mut self.looks;
        self.unwalked.retain(|tid| {
            let seen = looks.get_mut(tid).and_then(|looks| Some(&mut looks.back_mut()?.seen));
            seen.is_some_and(|seen| !seen.iter_mut().all(&mut walk))
        });
    }

    /// What was seen of the wait that ends now, in the order of time.
    pub(crate) fn over(&mut self, tid: u32, time: u64) -> Option<Sleeper> {
        let looks = self.looks.get_mut(&tid)?;
        let mut last = None;
        while looks.front().is_some_and(|look| look.since < time) {
            last = looks.pop_front();
            self.held -= last.as_ref().map_or(0, |look| look.seen.len());
        }
        if looks.is_empty() {
            self.looks.remove(&tid);
        }
        let Look { since, mut seen } = last?;
        // Looked at when this wait was over, it was in a later one whose beginning was not known yet.
        seen.retain(|sleeper| sleeper.at <= time);
        if seen.is_empty() && time - since >= THRESHOLD_NANOS {
            *if time - since < LONG_NANOS { &mut self.skipped } else { &mut self.skipped_long } += 1;
        }
        seen.pop()
    }

    /// What is not over when the recording ends.
    pub(crate) fn rest(&mut self) -> Vec<(u32, Sleeper)> {
        let last = |(tid, mut looks): (u32, VecDeque<Look>)| Some((tid, looks.pop_back()?.seen.pop()?));
        std::mem::take(&mut self.looks).into_iter().filter_map(last).collect()
    }
}

/// The thread may not be looked at: another user's, or closed by `ptrace_scope` or by itself.
struct Refused;

/// One line of `/proc/PID/task/TID/syscall`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asleep {
    /// -1 where it is blocked outside of any call: a page fault.
    number: i64,
    arguments: [u64; 6],
    sp: u64,
    ip: u64,
}

impl Asleep {
    /// `NR A0 … A5 SP IP`, hexadecimal but for the number; `-1 SP IP` outside of a call. `None` for `running`, and for what else
    /// there may be.
    fn parse(line: &str) -> Option<Asleep> {
        let mut words = line.split_ascii_whitespace();
        let number: i64 = words.next()?.parse().ok()?;
        let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let mut arguments = [0; 6];
        if number >= 0 {
            for argument in &mut arguments {
                *argument = hex()?;
            }
        }
        Some(Asleep { number, arguments, sp: hex()?, ip: hex()? })
    }

    /// What the open file of a thread says now.
    fn read(syscall: &fs::File) -> Result<Option<Asleep>, Refused> {
        let mut line = [0; LINE_BYTES_MAX];
        match syscall.read_at(&mut line, 0) {
            Ok(read) => Ok(std::str::from_utf8(&line[..read]).ok().and_then(Asleep::parse)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(Refused),
            Err(_) => Ok(None),
        }
    }

    /// What it waits for, and the name of the call.
    fn kind(&self, pid: u32) -> (WaitKind, &'static str) {
        let [first, second, ..] = self.arguments;
        let of_descriptor = || kind_of_descriptor(pid, first);
        match self.number {
            -1 => (WaitKind::PageFault, ""),
            libc::SYS_futex => (WaitKind::Lock, "futex"),
            libc::SYS_flock => (WaitKind::Lock, "flock"),
            // Of all that fcntl does, only the lock of a range can wait.
            libc::SYS_fcntl => (WaitKind::Lock, "fcntl"),
            libc::SYS_semop => (WaitKind::Lock, "semop"),
            libc::SYS_semtimedop => (WaitKind::Lock, "semtimedop"),
            libc::SYS_nanosleep => (WaitKind::Sleep, "nanosleep"),
            libc::SYS_clock_nanosleep => (WaitKind::Sleep, "clock_nanosleep"),
            libc::SYS_wait4 => (WaitKind::Child, "wait4"),
            libc::SYS_waitid => (WaitKind::Child, "waitid"),
            // Until the child that borrows the memory has executed a program: `vfork`, `posix_spawn`.
            libc::SYS_clone => (WaitKind::Child, "clone"),
            libc::SYS_clone3 => (WaitKind::Child, "clone3"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork => (WaitKind::Child, "vfork"),
            libc::SYS_read => (of_descriptor(), "read"),
            libc::SYS_write => (of_descriptor(), "write"),
            libc::SYS_readv => (of_descriptor(), "readv"),
            libc::SYS_writev => (of_descriptor(), "writev"),
            libc::SYS_pread64 => (of_descriptor(), "pread64"),
            libc::SYS_pwrite64 => (of_descriptor(), "pwrite64"),
            libc::SYS_sendfile => (of_descriptor(), "sendfile"),
            libc::SYS_splice => (of_descriptor(), "splice"),
            libc::SYS_fsync => (WaitKind::Disk, "fsync"),
            libc::SYS_fdatasync => (WaitKind::Disk, "fdatasync"),
            libc::SYS_sync => (WaitKind::Disk, "sync"),
            libc::SYS_syncfs => (WaitKind::Disk, "syncfs"),
            libc::SYS_openat => (WaitKind::Disk, "openat"),
            libc::SYS_unlinkat => (WaitKind::Disk, "unlinkat"),
            libc::SYS_renameat2 => (WaitKind::Disk, "renameat2"),
            libc::SYS_getdents64 => (WaitKind::Disk, "getdents64"),
            libc::SYS_fallocate => (WaitKind::Disk, "fallocate"),
            libc::SYS_ftruncate => (WaitKind::Disk, "ftruncate"),
            libc::SYS_msync => (WaitKind::Disk, "msync"),
            libc::SYS_io_getevents => (WaitKind::Disk, "io_getevents"),
            libc::SYS_connect => (WaitKind::Network, "connect"),
            libc::SYS_accept => (WaitKind::Network, "accept"),
            libc::SYS_accept4 => (WaitKind::Network, "accept4"),
            libc::SYS_recvfrom => (WaitKind::Network, "recvfrom"),
            libc::SYS_recvmsg => (WaitKind::Network, "recvmsg"),
            libc::SYS_recvmmsg => (WaitKind::Network, "recvmmsg"),
            libc::SYS_sendto => (WaitKind::Network, "sendto"),
            libc::SYS_sendmsg => (WaitKind::Network, "sendmsg"),
            libc::SYS_ppoll => (kind_of_poll(pid, first, second), "ppoll"),
            libc::SYS_pselect6 => (if first == 0 { WaitKind::Sleep } else { WaitKind::Other }, "pselect6"),
            libc::SYS_epoll_pwait => (kind_of_epoll(pid, first), "epoll_pwait"),
            libc::SYS_epoll_pwait2 => (kind_of_epoll(pid, first), "epoll_pwait2"),
            libc::SYS_io_uring_enter => (WaitKind::Other, "io_uring_enter"),
            libc::SYS_rt_sigtimedwait => (WaitKind::Other, "rt_sigtimedwait"),
            libc::SYS_rt_sigsuspend => (WaitKind::Other, "rt_sigsuspend"),
            libc::SYS_restart_syscall => (WaitKind::Sleep, "restart_syscall"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => (WaitKind::Disk, "open"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => (WaitKind::Disk, "unlink"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => (WaitKind::Disk, "rename"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => (kind_of_poll(pid, first, second), "poll"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => (if first == 0 { WaitKind::Sleep } else { WaitKind::Other }, "select"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => (kind_of_epoll(pid, first), "epoll_wait"),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_pause => (WaitKind::Other, "pause"),
            _ => (WaitKind::Other, ""),
        }
    }
}

fn read_proc(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(PROC_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// What was seen of a thread that sleeps.
struct Seen {
    asleep: Asleep,
    stack: Vec<u8>,
    context: ContextRecord,
    futex: Option<FutexSeen>,
}

/// Looks at a thread that sleeps since then; `None` where it runs, or ran meanwhile.
fn look((pid, tid, since): (u32, u32, u64), hint: Option<u64>, pages: &mut StackPages) -> Result<Option<Seen>, Refused> {
    let syscall = match fs::File::open(format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Err(Refused),
        Err(_) => return Ok(None),
    };
    let Some(asleep) = Asleep::read(&syscall)? else { return Ok(None) };
    let mut stack = vec![0; STACK_BYTES];
    let copied = read_stack(pid, asleep.sp, &mut stack, pages).unwrap_or(0);
    stack.truncate(copied);
    let mut record = [0; RECORD_BYTES];
    let context = match hint {
        Some(address) if read_memory(pid, address, &mut record).is_ok_and(|read| read == RECORD_BYTES) => {
            context::record::find(&record, address, tid, &mut Some(address))
        }
        _ => context::record::find(&stack, asleep.sp, tid, &mut None),
    };
    let call = (asleep.number == libc::SYS_futex).then(|| Call::of(&asleep.arguments)).flatten();
    let futex = call.map(|call| look_at_futex((pid, tid, since), &call, (asleep.sp, &stack)));
    match Asleep::read(&syscall)? {
        Some(after) if after == asleep => Ok(Some(Seen { asleep, stack, context, futex })),
        _ => Ok(None),
    }
}

/// Reads what the futex says, and how long it is waited at. `stack` is what lies above the stack pointer.
fn look_at_futex((pid, tid, since): (u32, u32, u64), call: &Call, (sp, stack): (u64, &[u8])) -> FutexSeen {
    let mut word = [0; futex::WORD_BYTES];
    let read = read_memory(pid, call.address, &mut word).unwrap_or(0);
    let is_thread = |number: u32| fs::exists(format!("/proc/{pid}/task/{number}")).unwrap_or(false);
    let (futex, is_join) = call.futex(tid, &word[..read], is_thread);
    let timeout = (call.timeout != 0).then(|| {
        // It nearly always lies on the stack.
        let on_stack = call.timeout.checked_sub(sp).and_then(|at| stack.get(usize::try_from(at).ok()?..)?.first_chunk().copied());
        on_stack.or_else(|| {
            let mut timeout = [0; futex::TIMEOUT_BYTES];
            read_memory(pid, call.timeout, &mut timeout).is_ok_and(|read| read == timeout.len()).then_some(timeout)
        })
    });
    let ahead = || realtime_nanos().saturating_sub(monotonic_nanos());
    let deadline = timeout.flatten().and_then(|timeout| call.deadline(&timeout, since, ahead()));
    FutexSeen { futex, is_join, deadline }
}

/// What a descriptor of another process is.
fn kind_of_descriptor(pid: u32, descriptor: u64) -> WaitKind {
    let Ok(target) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else { return WaitKind::Other };
    kind_of_target(&target.to_string_lossy())
}

fn kind_of_target(target: &str) -> WaitKind {
    if target.starts_with("socket:") {
        WaitKind::Network
    } else if target.starts_with("pipe:") {
        WaitKind::Pipe
    } else if target.contains("[timerfd]") {
        WaitKind::Sleep
    } else if target.starts_with('/') && !target.starts_with("/dev/") {
        WaitKind::Disk
    } else {
        WaitKind::Other
    }
}

/// Sockets win over the rest: beside them stand the descriptors by which the program wakes itself.
fn strongest(kinds: impl Iterator<Item = WaitKind>) -> WaitKind {
    let rank = |kind: &WaitKind| match kind {
        WaitKind::Network => 3,
        WaitKind::Pipe => 2,
        WaitKind::Sleep => 1,
        _ => 0,
    };
    kinds.max_by_key(rank).unwrap_or(WaitKind::Other)
}

/// `struct pollfd` has 8 bytes, the first 4 of which are the descriptor.
fn kind_of_poll(pid: u32, address: u64, count: u64) -> WaitKind {
    if count == 0 {
        return WaitKind::Sleep;
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(POLLED_MAX);
    let mut polled = [0; POLLED_MAX * 8];
    let read = read_memory(pid, address, &mut polled[..count * 8]).unwrap_or(0);
    let descriptors = polled[..read].chunks_exact(8).filter_map(|entry| entry.first_chunk::<4>().map(|fd| u32::from_ne_bytes(*fd)));
    strongest(descriptors.map(|descriptor| kind_of_descriptor(pid, descriptor.into())))
}

/// `/proc/PID/fdinfo/FD` of an epoll lists what it watches: `tfd:       14 events: …`.
fn kind_of_epoll(pid: u32, descriptor: u64) -> WaitKind {
    let Ok(watched) = read_proc(&format!("/proc/{pid}/fdinfo/{descriptor}")) else { return WaitKind::Other };
    let descriptors = watched.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse::<u64>().ok());
    strongest(descriptors.take(POLLED_MAX).map(|descriptor| kind_of_descriptor(pid, descriptor)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::AbsAddr;

    #[test]
    fn the_file_of_a_call_is_read_in_each_of_its_forms() {
        let line = "202 0x55d0c7f2b2a0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd4c3b2a38 0x7f3d1a2b3c4d\n";
        let asleep = Asleep::parse(line).unwrap();
        assert_eq!((asleep.number, asleep.sp, asleep.ip), (202, 0x7ffd_4c3b_2a38, 0x7f3d_1a2b_3c4d));
        assert_eq!(asleep.arguments, [0x55d0_c7f2_b2a0, 0x189, 0, 0, 0, 0xffff_ffff]);
        let fault = Asleep::parse("-1 0x7ffd4c3b2a38 0x7f3d1a2b3c4d").unwrap();
        assert_eq!((fault.number, fault.kind(1).0), (-1, WaitKind::PageFault));
        for other in ["running\n", "", "202 0x1", "x 0x1 0x2", "1 2 3 4 5 6 7 8 9"] {
            assert_eq!(Asleep::parse(other), None, "{other}");
        }
    }

    #[test]
    fn descriptors_tell_what_is_waited_for() {
        let kinds =
            ["socket:[12]", "pipe:[3]", "anon_inode:[timerfd]", "/var/lib/db", "/dev/pts/0", "anon_inode:[eventfd]"].map(kind_of_target);
        let expected = [WaitKind::Network, WaitKind::Pipe, WaitKind::Sleep, WaitKind::Disk, WaitKind::Other, WaitKind::Other];
        assert_eq!(kinds, expected);
        assert_eq!(strongest([WaitKind::Other, WaitKind::Network, WaitKind::Pipe].into_iter()), WaitKind::Network);
        assert_eq!(strongest(std::iter::empty()), WaitKind::Other);
    }

    #[test]
    fn only_who_is_still_blocked_is_looked_at_and_only_its_own_wait_gets_what_was_seen() {
        let mut waits = Waits::new();
        waits.switched(1, 7, 100, true);
        assert_eq!(waits.next_due(), Some(100 + THRESHOLD_NANOS));
        waits.switched(1, 7, 200, false);
        waits.look(u64::MAX / 4, |_| None);
        assert!(waits.looks.is_empty() && waits.next_due().is_none());
        let (kind, context, stack) = (WaitKind::Lock, ContextRecord::Absent, Vec::new());
        let sleeper = |since, at| Sleeper {
            pid: 1,
            since,
            at,
            kind,
            syscall: "futex",
            place: (0, 0),
            stack: stack.clone(),
            context,
            futex: None,
            walked: None,
        };
        let seen = |since, at| Look { since, seen: vec![sleeper(since, at)] };
        waits.looks.entry(7).or_default().extend([seen(1_000, 1_500), seen(2_500, 2_900), seen(3_000, 9_000)]);
        waits.held = 3;
        assert!(waits.over(7, 900).is_none(), "an earlier wait");
        assert_eq!(waits.over(7, 2_000).map(|sleeper| sleeper.since), Some(1_000));
        assert_eq!(waits.over(7, 2_950).map(|sleeper| sleeper.since), Some(2_500));
        assert!(waits.over(7, 8_000).is_none(), "it was looked at after this wait was over");
        assert_eq!((waits.skipped, waits.held), (0, 0), "and it was short");
        waits.looks.entry(7).or_default().push_back(Look { since: 10_000, seen: Vec::new() });
        assert!(waits.over(7, 10_000 + THRESHOLD_NANOS).is_none());
        waits.looks.entry(7).or_default().push_back(Look { since: 10_000, seen: Vec::new() });
        assert!(waits.over(7, 10_000 + LONG_NANOS).is_none());
        assert_eq!((waits.skipped, waits.skipped_long), (1, 1));
        for (end, at) in [(70_000, 60_000), (50_000, 30_000)] {
            let seen = vec![sleeper(20_000, 30_000), sleeper(20_000, 60_000)];
            waits.looks.entry(7).or_default().push_back(Look { since: 20_000, seen });
            waits.held = 2;
            assert_eq!(waits.over(7, end).map(|sleeper| sleeper.at), Some(at), "the last look that was in time");
            assert_eq!(waits.held, 0);
        }
        assert!(waits.rest().is_empty());
    }

    #[test]
    fn who_was_not_woken_but_ran_out_of_time_waited_for_nobody() {
        let futex = Futex { address: AbsAddr(16), holder: None };
        let seen = |futex, deadline| Some(FutexSeen { futex, is_join: false, deadline });
        let sleeper = |futex| {
            let (kind, context) = (WaitKind::Lock, ContextRecord::Absent);
            Sleeper { pid: 1, since: 0, at: 5, kind, syscall: "futex", place: (0, 0), stack: Vec::new(), context, futex, walked: None }
        };
        assert_eq!(sleeper(seen(futex, None)).futex_until(100), Some(futex));
        assert_eq!(sleeper(seen(futex, Some(101))).futex_until(100), Some(futex));
        assert_eq!(sleeper(seen(futex, Some(100))).futex_until(100), None);
        let held = Futex { holder: Some(8), ..futex };
        assert_eq!(sleeper(seen(held, Some(100))).futex_until(100), Some(held));
        assert_eq!(sleeper(None).futex_until(100), None);
    }

    #[test]
    fn who_sleeps_often_is_due_once_and_for_its_last_sleep() {
        let mut waits = Waits::new();
        for time in (0..1_000).step_by(10) {
            waits.switched(1, 7, time, true);
            waits.switched(1, 7, time + 5, false);
        }
        assert_eq!((waits.due.len(), waits.next_due()), (1, None));
        for time in [2_000, 3_000, 4_000] {
            waits.switched(1, 7, time, true);
        }
        assert_eq!((waits.due.len(), waits.next_due()), (1, Some(4_000 + THRESHOLD_NANOS)));
    }

    #[test]
    fn who_was_seen_to_wait_for_a_disk_is_looked_at_sooner_for_a_while() {
        let mut waits = Waits::new();
        waits.switched(1, 7, 100, true);
        waits.switches.get_mut(&7).unwrap().on_disk = OnDisk::Now;
        let woken = 15_000_000;
        waits.switched(1, 7, woken, false);
        assert_eq!((waits.next_due(), waits.hurry_until()), (None, woken + DISK_NANOS));
        waits.switched(1, 7, woken + 1_000, true);
        assert_eq!(waits.next_due(), Some(woken + 1_000 + DISK_THRESHOLD_NANOS));
        waits.switched(1, 7, woken + 2_000, false);
        let later = woken + DISK_NANOS;
        waits.switched(1, 7, later, true);
        assert_eq!((waits.next_due(), waits.hurry_until()), (Some(later + THRESHOLD_NANOS), later));
    }

    #[test]
    fn who_is_blocked_again_and_again_for_short_times_is_looked_at_at_once_now_and_then() {
        let mut waits = Waits::new();
        let mut now = 0;
        while now < 2 * UNSEEN_NANOS {
            waits.switched(1, 7, now, true);
            assert_eq!(waits.next_due(), Some(now + if now < UNSEEN_NANOS { THRESHOLD_NANOS } else { 0 }));
            now += 1_000_000;
            waits.switched(1, 7, now, false);
        }
    }
}
