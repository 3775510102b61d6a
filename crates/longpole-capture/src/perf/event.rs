//! Opens the events: two or three per CPU, each with a ring buffer of its own, and inherited by all that the command starts.
//!
//! - the *sampler* interrupts a running thread and copies registers and stack, and reports each switch of a thread;
//! - the *tracker* counts nothing and reports processes, threads, names and mappings. It has its own ring buffer so that a flood of
//!   samples never pushes out the record of an exec, and it wakes the reader at each record, because the program and the mappings of a
//!   short-lived process can be read only while it lives.
//! - the *switcher* copies registers and stack of a thread that leaves its CPU, about 10 times a second, if the kernel may be sampled.
//!
//! Every user may sample registers and stack of user space at `kernel.perf_event_paranoid` 2. With permission to sample the kernel (1, or
//! CAP_PERFMON), samples have its call chain as well.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use longpole_model::{Loss, LossKind};

use super::attributes::{SWITCH_RING_PAGES, Wanted, sampler_attribute, stack_bytes_within, switcher_attribute, tracker_attribute};
use super::cpus::online_cpus;
use super::open_error::{refused_event, refused_kernel, refused_ring};
use super::options::{Options, SampleClock};
use super::record::Source;
use super::ring::Ring;
use super::settings::read_number;
use crate::refusal::Refused;
use crate::sys::limits::page_bytes;
use crate::sys::perf::{open_event, set_output};

/// What to sample.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// A process that waits to exec, from then on.
    Waiting(u32),
    /// Threads that run already, from now on. One at least.
    Running(&'a [u32]),
    /// Whatever runs on the CPUs of this machine.
    Host,
}

impl Target<'_> {
    /// The thread that the first events are on; `None` for all.
    fn first(self) -> Option<u32> {
        match self {
            Target::Waiting(pid) => Some(pid),
            Target::Running(threads) => Some(threads.first().copied().unwrap_or_default()),
            Target::Host => None,
        }
    }

    fn others(self) -> Vec<u32> {
        match self {
            Target::Waiting(_) | Target::Host => Vec::new(),
            Target::Running(threads) => threads.iter().skip(1).copied().collect(),
        }
    }
}

/// A ring buffer and the events that fill it.
pub(crate) struct Stream {
    /// Kept open: the event lives as long as its descriptor.
    pub(crate) event: File,
    /// Events on other threads that write into the same ring buffer.
    pub(crate) others: Vec<File>,
    pub(crate) ring: Ring,
    pub(crate) source: Source,
    pub(crate) cpu: u32,
}

/// Events that wait for the command's exec.
pub(crate) struct Opened {
    pub(crate) streams: Vec<Stream>,
    /// What the events do, after fallbacks.
    pub(crate) wanted: Wanted,
    /// Bytes of each sampler's ring buffer.
    pub(crate) sampler_ring_bytes: usize,
    /// What the kernel did not allow.
    pub(crate) losses: Vec<Loss>,
}

/// Pages of data per CPU: of the sampler's ring buffer and of the tracker's.
///
/// A plain user may lock `kernel.perf_event_mlock_kb` per CPU, 516 by default: exactly 128 pages and a control page; the tracker's pages count
/// against RLIMIT_MEMLOCK. Other recorders of the same user share both limits, so smaller sizes follow. The first line is for users who may
/// lock more: 2 MiB hold 120 ms of samples.
const RING_PAGES: [(usize, usize); 6] = [(512, 16), (128, 8), (128, 2), (64, 8), (32, 8), (16, 4)];

/// Most bytes of all ring buffers: on a machine with many CPUs the first line of [`RING_PAGES`] is skipped.
const RINGS_BYTES_MAX: usize = 64 << 20;

/// Opens all events.
///
/// # Errors
///
/// Why the kernel refuses them.
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
        whole_cpus: matches!(target, Target::Host),
        switches: options.switches,
        kernel: if options.kernel { Ok(()) } else { Err(Refused::NotRequested) },
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
        // A ring buffer must hold a few samples, or it only loses them.
        if sampler_pages * page < 4 * wanted.stack_bytes as usize && last_refusal.is_some() {
            break;
        }
        match open_with(target, &cpus, &mut wanted, sampler_pages, tracker_pages, &mut losses) {
            Ok(streams) => {
                if !wanted.closed.is_empty() {
                    let detail = "threads of other users' processes are not sampled; run longpole as root, or with CAP_PERFMON";
                    losses.push(Loss::new(LossKind::ProfilingRefused, wanted.closed.len() as u64, detail));
                }
                return Ok(Opened { streams, wanted, sampler_ring_bytes: sampler_pages * page, losses });
            }
            Err(Failure::Ring(error)) => last_refusal = Some(refused_ring(&error)),
            Err(Failure::Event(error)) => return Err(refused_event(&error, wanted.clock)),
        }
    }
    Err(last_refusal.unwrap_or_else(|| refused_ring(&io::Error::from_raw_os_error(libc::EPERM))))
}

enum Failure {
    /// No event.
    Event(io::Error),
    /// No memory for its records: a smaller ring buffer may do.
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
                // The CPU has gone offline.
                Some(libc::ENODEV) if wanted.clock == SampleClock::CpuClock => break None,
                Some(libc::EINVAL) if wanted.count_lost => wanted.count_lost = false,
                // Most users may not sample the kernel. The next attempt shows whether they may sample at all.
                Some(libc::EACCES | libc::EPERM) if wanted.kernel.is_ok() => wanted.kernel = Err(refused_kernel(&error)),
                Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) if wanted.clock == SampleClock::Cycles => {
                    let detail = "sampled by cpu-clock instead of cycles: this machine has no cycle counter to sample by";
                    losses.push(Loss::new(LossKind::ProfilingRefused, 1, detail));
                    wanted.clock = SampleClock::CpuClock;
                    // Samples of two clocks on different CPUs could not be added up.
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
                match open_event(&attribute, Some(tid), cpu).and_then(|other| set_output(&other, &event).map(|()| other)) {
                    Ok(other) => others.push(other),
                    // The thread has ended since it was listed.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // A program of another user in this tree, as with sudo. The rest of the tree is worth sampling.
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
    if wanted.kernel.is_ok() && wanted.switches {
        // Without memory for it short waits have no stacks, and nothing else is missing.
        streams.extend(cpus.iter().map_while(|cpu| open_switcher(target, *cpu, wanted).ok()));
    }
    Ok(streams)
}

fn open_switcher(target: Target<'_>, cpu: u32, wanted: &Wanted) -> io::Result<Stream> {
    let attribute = switcher_attribute(wanted);
    let event = open_event(&attribute, target.first(), cpu)?;
    let ring = Ring::map(&event, SWITCH_RING_PAGES)?;
    let other = |tid| open_event(&attribute, Some(tid), cpu).and_then(|other| set_output(&other, &event).map(|()| other)).ok();
    let others = target.others().into_iter().filter_map(other).collect();
    Ok(Stream { event, others, ring, source: Source::Switcher, cpu })
}

/// How many records this event and its inherited copies lost, if the kernel counts that.
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
    fn rings_of_a_plain_user_fit_the_default_limit_exactly() {
        let (sampler, _) = RING_PAGES[1];
        assert_eq!((sampler + 1) * 4, 516);
        assert!(RING_PAGES.iter().all(|(s, t)| s.is_power_of_two() && t.is_power_of_two()));
    }
}
