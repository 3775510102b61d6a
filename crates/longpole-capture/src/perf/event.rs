//! What we ask the kernel to report, and what we say when it refuses.
//!
//! Two events per CPU, or three, each with a ring of its own, all inherited by everything the command starts:
//!
//! - the *sampler* interrupts a running thread and copies registers and stack, and reports each switch of a thread;
//! - the *tracker* counts nothing and reports processes, threads, names and mappings. It has its own ring so that a flood of
//!   samples never pushes out the record of an exec, and it wakes the reader at each record, because what a short-lived
//!   process was and had mapped can be read only while it lives.
//! - the *switcher*, where the kernel may be looked into, copies registers and stack of a thread that leaves its CPU, now and then.
//!
//! User space is looked at by registers and stack bytes, which every user may at `kernel.perf_event_paranoid` 2. Whoever may look into
//! the kernel as well (1, or CAP_PERFMON) is given its call chain beside them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use longpole_model::{Loss, LossKind};
use perf_event_open_sys::bindings::{self, perf_event_attr};

use crate::perf::stack_dump_size::Deeper;
use crate::perf::record::{REGISTER_MASK, SAMPLER_FORMAT, Source, TRACKER_FORMAT};
use crate::perf::ring::Ring;
use crate::sys::perf::{open_event, page_bytes, set_output};

/// What makes the sampler interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleClock {
    /// A timer of the kernel that runs while the thread does. Exact in virtual machines and cheap at many switches.
    #[default]
    CpuClock,
    /// The processor's cycle counter, where there is one.
    Cycles,
}

impl SampleClock {
    fn as_str(self) -> &'static str {
        match self {
            SampleClock::CpuClock => "cpu-clock",
            SampleClock::Cycles => "cycles",
        }
    }
}

impl fmt::Display for SampleClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Samples a second and running thread. Not a round number, so as not to march in step with what repeats each millisecond.
    pub rate_hz: u32,
    /// What makes the sampler interrupt.
    pub clock: SampleClock,
    /// Bytes of stack that are copied at each sample; rounded to what the kernel can do.
    pub stack_bytes: u32,
    /// Whether the maps of names that programs leave in `/tmp` are there because of this recording, and go when they were read.
    pub remove_perf_maps: bool,
    /// Whether to look into the kernel where that is allowed.
    pub kernel: bool,
    /// Where programs put the journals of their spans ([`JournalDirectory`](crate::context::journal_dir::JournalDirectory)).
    pub journals: Option<PathBuf>,
    /// Where what is slow to read and stays until the next boot is kept: the kernel's list of its functions.
    pub cache: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            rate_hz: 999,
            clock: SampleClock::CpuClock,
            stack_bytes: 16 << 10,
            remove_perf_maps: false,
            kernel: true,
            journals: None,
            cache: None,
        }
    }
}

/// Least bytes of stack that are of any use.
const STACK_BYTES_MIN: u32 = 1 << 10;

/// Most bytes of stack: a record's size has 16 bits, and the fields around the stack need some of them.
const STACK_BYTES_MAX: u32 = 63 << 10;

/// Sampling is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// Why, as a lower-case fragment.
    pub reason: String,
    /// What to do about it, as a lower-case fragment; empty where nothing helps.
    pub remedy: String,
}

impl Refused {
    /// Reason and remedy as one fragment.
    pub fn to_words(&self) -> String {
        if self.remedy.is_empty() { self.reason.clone() } else { format!("{}; {}", self.reason, self.remedy) }
    }
}

/// Whom to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// A process that waits to exec, from then on.
    Waiting(u32),
    /// Threads that run already, from now on. One at least.
    Running(&'a [u32]),
}

impl Target<'_> {
    fn first(self) -> u32 {
        match self {
            Target::Waiting(pid) => pid,
            Target::Running(threads) => threads.first().copied().unwrap_or_default(),
        }
    }

    fn others(self) -> Vec<u32> {
        match self {
            Target::Waiting(_) => Vec::new(),
            Target::Running(threads) => threads.iter().skip(1).copied().collect(),
        }
    }
}

/// One ring and the events that fill it.
pub(crate) struct Stream {
    /// Kept open: the event lives as long as its descriptor.
    pub(crate) event: File,
    /// Events on other threads that write into the same ring.
    pub(crate) others: Vec<File>,
    pub(crate) ring: Ring,
    pub(crate) source: Source,
    pub(crate) cpu: u32,
}

/// Events that wait for the command's exec.
pub(crate) struct Opened {
    pub(crate) streams: Vec<Stream>,
    /// What interrupts, after fallbacks.
    pub(crate) clock: SampleClock,
    /// Samples a second, after fallbacks.
    pub(crate) rate_hz: u32,
    /// What copies more of each stack, if that is needed and can be done.
    pub(crate) deeper: Option<Deeper>,
    /// Whether the kernel is looked into; if not, why.
    pub(crate) kernel: Result<(), Refused>,
    /// Where less was given than asked.
    pub(crate) losses: Vec<Loss>,
}

/// Pages of data per CPU: of the sampler's ring and of the tracker's.
///
/// A plain user may lock `kernel.perf_event_mlock_kb` per CPU, 516 by default: 128 pages and one of control, exactly, with the
/// tracker's pages on the account of RLIMIT_MEMLOCK. Other recorders of the same user share both, so smaller sizes follow. The
/// first line is for who may lock more: 2 MiB hold 120 ms of samples.
const RING_PAGES: [(usize, usize); 6] = [(512, 16), (128, 8), (128, 2), (64, 8), (32, 8), (16, 4)];

/// How often the switcher copies the stack of each thread that leaves its CPU, about: the kernel finds out for each thread by itself which of
/// its switches that is. Threads that switch 10,000 times a second cost no more than those that switch ten times.
const SWITCH_RATE_HZ: u64 = 10;

/// Bytes of stack that the switcher copies: there may be many threads.
pub(crate) const SWITCH_STACK_BYTES: u32 = 8 << 10;

/// Pages of the switcher's ring: 31 stacks.
const SWITCH_RING_PAGES: usize = 64;

/// All rings together stay below this, whatever the machine: with many CPUs the first line of [`RING_PAGES`] is skipped.
const RINGS_BYTES_MAX: usize = 64 << 20;

/// Opens all events.
pub(crate) fn open(target: Target<'_>, options: &Options) -> Result<Opened, Refused> {
    let cpus = online_cpus();
    let mut losses = Vec::new();
    let mut wanted = Wanted {
        clock: options.clock,
        rate_hz: options.rate_hz.max(1),
        stack_bytes: stack_bytes_within(options.stack_bytes),
        generation: 0,
        count_lost: true,
        on_exec: matches!(target, Target::Waiting(_)),
        kernel: if options.kernel { Ok(()) } else { Err(Refused { reason: "nobody asked for it".to_owned(), remedy: String::new() }) },
        closed: BTreeSet::new(),
    };
    if let Some(max) = read_number("/proc/sys/kernel/perf_event_max_sample_rate").and_then(|max| u32::try_from(max).ok())
        && wanted.rate_hz > max.max(1)
    {
        let detail = format!("sampled at {max} Hz instead of {}: kernel.perf_event_max_sample_rate allows no more", wanted.rate_hz);
        losses.push(Loss::new(LossKind::ProfilingRefused, 1, detail));
        wanted.rate_hz = max.max(1);
    }
    let page = page_bytes();
    let mut last_refusal = None;
    for (sampler_pages, tracker_pages) in RING_PAGES {
        let first = RING_PAGES[0].0 == sampler_pages;
        if first && cpus.len() * page * sampler_pages > RINGS_BYTES_MAX {
            continue;
        }
        // A ring must hold a few samples, or it only loses them.
        if sampler_pages * page < 4 * wanted.stack_bytes as usize && last_refusal.is_some() {
            break;
        }
        match open_with(target, &cpus, &mut wanted, sampler_pages, tracker_pages, &mut losses) {
            Ok(streams) => {
                let deeper = Deeper::new(&streams, &wanted, sampler_pages * page);
                let Wanted { clock, rate_hz, kernel, closed, .. } = wanted;
                if !closed.is_empty() {
                    let detail = "threads of other users' processes are not sampled; run longpole as root, or with CAP_PERFMON";
                    losses.push(Loss::new(LossKind::ProfilingRefused, closed.len() as u64, detail));
                }
                return Ok(Opened { streams, clock, rate_hz, deeper, kernel, losses });
            }
            Err(Failure::Ring(error)) => last_refusal = Some(refuse_ring(&error)),
            Err(Failure::Event(error)) => return Err(refuse_event(&error, wanted.clock)),
        }
    }
    Err(last_refusal.unwrap_or_else(|| refuse_ring(&io::Error::from_raw_os_error(libc::EPERM))))
}

/// What is asked of the kernel, after what it refused.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) clock: SampleClock,
    pub(crate) rate_hz: u32,
    pub(crate) stack_bytes: u32,
    /// How often more of each stack was asked for.
    pub(crate) generation: u32,
    /// Whether each event counts what it lost (Linux 6.0).
    pub(crate) count_lost: bool,
    /// Whether to begin with the next exec; else at once, or when told so.
    pub(crate) on_exec: bool,
    /// Whether to look into the kernel; if not, why.
    pub(crate) kernel: Result<(), Refused>,
    /// Threads that run already and may not be looked at.
    pub(crate) closed: BTreeSet<u32>,
}

impl Wanted {
    /// Of `CpuClock`. A nanosecond for each generation tells their samples apart.
    pub(crate) fn period_nanos(&self) -> u64 {
        1_000_000_000 / u64::from(self.rate_hz) + u64::from(self.generation)
    }
}

/// So many bytes, as far as that makes sense and the kernel can do it.
pub(crate) fn stack_bytes_within(bytes: u32) -> u32 {
    bytes.clamp(STACK_BYTES_MIN, STACK_BYTES_MAX) & !7
}

enum Failure {
    /// No event.
    Event(io::Error),
    /// No memory for its records: smaller may do.
    Ring(io::Error),
}

fn open_with(
    target: Target<'_>,
    cpus: &[u32],
    wanted: &mut Wanted,
    sampler_pages: usize,
    tracker_pages: usize,
    losses: &mut Vec<Loss>,
) -> Result<Vec<Stream>, Failure> {
    let mut streams = Vec::with_capacity(2 * cpus.len());
    for &cpu in cpus {
        let wakeup_bytes = sampler_pages * page_bytes() * 3 / 8;
        let sampler = loop {
            let error = match open_event(&sampler_attribute(wanted, wakeup_bytes), target.first(), cpu) {
                Ok(event) => break Some(event),
                Err(error) => error,
            };
            match error.raw_os_error() {
                // The CPU went offline since we looked.
                Some(libc::ENODEV) if wanted.clock == SampleClock::CpuClock => break None,
                Some(libc::EINVAL) if wanted.count_lost => wanted.count_lost = false,
                // Most are not allowed to look into the kernel. Where nothing at all is allowed, the next attempt tells.
                Some(libc::EACCES | libc::EPERM) if wanted.kernel.is_ok() => wanted.kernel = Err(refuse_kernel(&error)),
                Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) if wanted.clock == SampleClock::Cycles => {
                    let detail = "sampled by cpu-clock instead of cycles: this machine has no cycle counter to sample by";
                    losses.push(Loss::new(LossKind::ProfilingRefused, 1, detail));
                    wanted.clock = SampleClock::CpuClock;
                    // Events of one clock on some CPUs and of another on the rest could not be added up.
                    streams.clear();
                    return open_with(target, cpus, wanted, sampler_pages, tracker_pages, losses);
                }
                _ => return Err(Failure::Event(error)),
            }
        };
        let Some(sampler) = sampler else { continue };
        let tracker = open_event(&tracker_attribute(wanted), target.first(), cpu).map_err(Failure::Event)?;
        for (event, pages, source) in [(tracker, tracker_pages, Source::Tracker), (sampler, sampler_pages, Source::Sampler)] {
            let ring = Ring::map(&event, pages).map_err(Failure::Ring)?;
            let mut others = Vec::new();
            for tid in target.others() {
                let attribute = match source {
                    Source::Tracker => tracker_attribute(wanted),
                    Source::Sampler | Source::Switcher => sampler_attribute(wanted, wakeup_bytes),
                };
                match open_event(&attribute, tid, cpu).and_then(|other| set_output(&other, &event).map(|()| other)) {
                    Ok(other) => others.push(other),
                    // The thread ended since it was listed.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // Another user's program that this tree runs, as sudo does. The rest of the tree is worth having.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
                        wanted.closed.insert(tid);
                    }
                    Err(error) => return Err(Failure::Event(error)),
                }
            }
            streams.push(Stream { event, others, ring, source, cpu });
        }
    }
    if streams.is_empty() {
        return Err(Failure::Event(io::Error::from_raw_os_error(libc::ENODEV)));
    }
    if wanted.kernel.is_ok() {
        // Without memory for it, short waits have no stacks; nothing else depends on it.
        streams.extend(cpus.iter().map_while(|cpu| open_switcher(target, *cpu, wanted).ok()));
    }
    Ok(streams)
}

fn open_switcher(target: Target<'_>, cpu: u32, wanted: &Wanted) -> io::Result<Stream> {
    let attribute = switcher_attribute(wanted);
    let event = open_event(&attribute, target.first(), cpu)?;
    let ring = Ring::map(&event, SWITCH_RING_PAGES)?;
    let other = |tid| open_event(&attribute, tid, cpu).and_then(|other| set_output(&other, &event).map(|()| other)).ok();
    let others = target.others().into_iter().filter_map(other).collect();
    Ok(Stream { event, others, ring, source: Source::Switcher, cpu })
}

/// What both events have in common.
fn attribute(wanted: &Wanted) -> perf_event_attr {
    let mut attr = perf_event_attr::default();
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.set_disabled(u64::from(wanted.on_exec));
    attr.set_enable_on_exec(u64::from(wanted.on_exec));
    attr.set_inherit(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_sample_id_all(1);
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    if wanted.count_lost {
        attr.read_format = u64::from(bindings::PERF_FORMAT_LOST);
    }
    attr
}

/// Of a later generation, it waits until it is told to begin.
pub(crate) fn sampler_attribute(wanted: &Wanted, wakeup_bytes: usize) -> perf_event_attr {
    let mut attr = attribute(wanted);
    match wanted.clock {
        SampleClock::CpuClock => attr.config = u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK),
        SampleClock::Cycles => {
            attr.type_ = bindings::PERF_TYPE_HARDWARE;
            attr.config = u64::from(bindings::PERF_COUNT_HW_CPU_CYCLES);
        }
    }
    if wanted.generation > 0 {
        attr.set_disabled(1);
    }
    match wanted.clock {
        SampleClock::CpuClock => attr.__bindgen_anon_1.sample_period = wanted.period_nanos(),
        SampleClock::Cycles => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = u64::from(wanted.rate_hz);
        }
    }
    attr.sample_type = SAMPLER_FORMAT;
    attr.set_exclude_kernel(u64::from(wanted.kernel.is_err()));
    // Of user space there are the registers and the stack, which say more than frame pointers.
    attr.set_exclude_callchain_user(1);
    attr.sample_regs_user = REGISTER_MASK;
    attr.sample_stack_user = wanted.stack_bytes;
    attr.set_context_switch(1);
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(wakeup_bytes).unwrap_or(u32::MAX);
    attr
}

fn switcher_attribute(wanted: &Wanted) -> perf_event_attr {
    let wakeup_bytes = SWITCH_RING_PAGES * page_bytes() / 4;
    let mut attr = sampler_attribute(wanted, wakeup_bytes);
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = u64::from(bindings::PERF_COUNT_SW_CONTEXT_SWITCHES);
    attr.set_freq(1);
    attr.__bindgen_anon_1.sample_freq = SWITCH_RATE_HZ;
    attr.sample_stack_user = SWITCH_STACK_BYTES;
    attr.set_context_switch(0);
    attr
}

fn tracker_attribute(wanted: &Wanted) -> perf_event_attr {
    let mut attr = attribute(wanted);
    attr.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
    attr.sample_type = TRACKER_FORMAT;
    attr.set_task(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    // Only mappings that may be executed: `mmap_data` stays off.
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.__bindgen_anon_2.wakeup_watermark = 1;
    attr
}

/// How many entries of its own stack the kernel tells at most.
pub(crate) fn chain_depth_max() -> usize {
    let told = read_number("/proc/sys/kernel/perf_event_max_stack").and_then(|max| usize::try_from(max).ok());
    // Its default.
    told.unwrap_or(127)
}

fn read_number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Numbers of the CPUs that are online.
fn online_cpus() -> Vec<u32> {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|text| parse_cpu_list(text.trim()));
    listed.unwrap_or_else(|| {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..u32::try_from(count).unwrap_or(1)).collect()
    })
}

/// Largest number of a CPU that a list may name: the kernel is built for 8,192 at most.
const CPU_MAX: u32 = 65_535;

/// The kernel's list format: `0-3,8,10-11`.
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

fn refuse_ring(error: &io::Error) -> Refused {
    let (reason, remedy) = match error.raw_os_error() {
        Some(libc::EPERM) => (
            "the memory that a user may lock for samples is used up (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK)".to_owned(),
            "wait for other recordings of this user to end, or raise it: sysctl kernel.perf_event_mlock_kb=2048".to_owned(),
        ),
        Some(libc::EMFILE | libc::ENFILE) => too_many_files(),
        _ => (format!("no memory for samples: {}", os_words(error)), String::new()),
    };
    Refused { reason, remedy }
}

fn too_many_files() -> (String, String) {
    ("too many open files: sampling needs two descriptors for each CPU".to_owned(), "raise the limit: ulimit -n 4096".to_owned())
}

fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn refuse_event(error: &io::Error, clock: SampleClock) -> Refused {
    let paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
    let (reason, remedy) = explain(error, clock, paranoid, is_filtered());
    Refused { reason, remedy }
}

/// Whether a filter decides which system calls this thread may make.
fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// Why the kernel may not be looked into.
fn refuse_kernel(error: &io::Error) -> Refused {
    let paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
    let (reason, remedy) = explain_kernel(error, paranoid);
    Refused { reason, remedy }
}

fn explain_kernel(error: &io::Error, paranoid: Option<i64>) -> (String, String) {
    let remedy = "sysctl kernel.perf_event_paranoid=1, or the capability CAP_PERFMON".to_owned();
    match paranoid {
        Some(level) if level > 1 => (format!("kernel.perf_event_paranoid is {level}"), remedy),
        // Lockdown and security modules refuse whatever the level says.
        _ => (format!("the kernel does not let itself be sampled ({})", os_words(error)), "see /sys/kernel/security/lockdown".to_owned()),
    }
}

/// Words for a refusal, from what the kernel said and how strict it is set.
fn explain(error: &io::Error, clock: SampleClock, paranoid: Option<i64>, is_filtered: bool) -> (String, String) {
    let said = os_words(error);
    let blocked = || {
        let reason = if is_filtered {
            format!("perf_event_open is blocked by a seccomp filter ({said})")
        } else {
            format!("perf_event_open is blocked ({said}), as by the seccomp filter of a container")
        };
        (reason, "allow it: docker run --cap-add PERFMON, or --security-opt seccomp=… with a profile that lists it".to_owned())
    };
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) if is_filtered => blocked(),
        Some(libc::EACCES | libc::EPERM) if paranoid.is_some_and(|level| level > 2) => (
            format!("kernel.perf_event_paranoid is {}, which forbids sampling to users", paranoid.unwrap_or_default()),
            "sysctl kernel.perf_event_paranoid=2".to_owned(),
        ),
        Some(libc::EACCES) if is_filtered => blocked(),
        Some(libc::EPERM | libc::ENOSYS) if paranoid.is_some() => blocked(),
        Some(libc::EACCES) => (
            format!("the kernel forbids to sample this process ({said}), as it does for a process of another user"),
            "run longpole as the user that it runs as".to_owned(),
        ),
        Some(libc::ENOSYS | libc::EPERM) => (
            "this kernel has no performance events (built without CONFIG_PERF_EVENTS, or a sandbox that emulates Linux)".to_owned(),
            "record on a kernel that has them".to_owned(),
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            (format!("this kernel cannot sample by {clock} ({said})"), "sample by cpu-clock, or record on another kernel".to_owned())
        }
        Some(libc::EMFILE | libc::ENFILE) => too_many_files(),
        Some(libc::ESRCH) => ("it ended before it could be sampled".to_owned(), String::new()),
        Some(libc::EINVAL | libc::E2BIG) => (
            format!("this kernel does not know what longpole asks of it ({said}); it needs Linux 4.3 or newer"),
            "record on a newer kernel".to_owned(),
        ),
        _ => (format!("perf_event_open failed: {said}"), String::new()),
    }
}

/// How many records this event and its inherited copies lost, where the kernel counts that.
pub(crate) fn lost_of(event: &mut File) -> Option<u64> {
    use std::io::Read;
    let mut words = [0u8; 16];
    match event.read(&mut words) {
        Ok(16) => words.last_chunk::<8>().map(|word| u64::from_ne_bytes(*word)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpu_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_cpu_list("0"), Some(vec![0]));
        assert_eq!(parse_cpu_list(""), None);
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-4000000000"), None);
    }

    #[test]
    fn each_refusal_says_why_and_what_to_do() {
        let words = |errno, paranoid| explain(&io::Error::from_raw_os_error(errno), SampleClock::CpuClock, paranoid, false);
        assert_eq!(
            words(libc::EACCES, Some(3)),
            (
                "kernel.perf_event_paranoid is 3, which forbids sampling to users".to_owned(),
                "sysctl kernel.perf_event_paranoid=2".to_owned()
            )
        );
        let (reason, remedy) = words(libc::EPERM, Some(2));
        assert_eq!(reason, "perf_event_open is blocked (operation not permitted), as by the seccomp filter of a container");
        assert!(remedy.contains("seccomp"));
        let filtered = |errno| explain(&io::Error::from_raw_os_error(errno), SampleClock::CpuClock, Some(2), true).0;
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            assert!(filtered(errno).contains("by a seccomp filter"), "{}", filtered(errno));
        }
        assert!(words(libc::ENOSYS, None).0.contains("no performance events"));
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let (reason, remedy) = explain_kernel(&denied, Some(2));
        assert_eq!(reason, "kernel.perf_event_paranoid is 2");
        assert!(remedy.contains("perf_event_paranoid=1") && remedy.contains("CAP_PERFMON"));
        assert!(explain_kernel(&denied, Some(1)).0.contains("permission denied"));
        assert!(words(libc::EMFILE, Some(2)).1.contains("ulimit -n"));
        assert!(words(libc::ENOENT, Some(2)).0.contains("cannot sample by cpu-clock"));
        for errno in 1..134 {
            let (reason, _) = words(errno, Some(2));
            assert!(!reason.is_empty() && reason.starts_with(char::is_lowercase) && !reason.contains("os error"), "{reason}");
        }
    }

    #[test]
    fn rings_of_a_plain_user_fit_the_default_limit_exactly() {
        let (sampler, _) = RING_PAGES[1];
        assert_eq!((sampler + 1) * 4, 516);
        assert!(RING_PAGES.iter().all(|(s, t)| s.is_power_of_two() && t.is_power_of_two()));
    }
}
