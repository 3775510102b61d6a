//! What longpole itself costs.

use longpole_model::RecorderCost;

/// CPU time and peak memory of this process so far. Printing the answer comes on top.
pub(crate) fn own_cost() -> Option<RecorderCost> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // CPU time of the whole process: the threads of the sampler and the receiver have ended.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let ticks: u64 = stat.rsplit(") ").next()?.split(' ').skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Some(RecorderCost { cpu_nanos: ticks * 1_000_000_000 / TICKS_PER_SECOND, rss_bytes_max: kilobytes * 1024 })
}

/// Clock ticks a second in `/proc/PID/stat`, the same on every Linux.
const TICKS_PER_SECOND: u64 = 100;
