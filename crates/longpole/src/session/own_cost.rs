//! What longpole itself costs.

use longpole_model::RecorderCost;
use longpole_model::proc_stat::{ProcStat, TICK_NANOS};

/// CPU time and peak memory of this process so far. Printing the answer comes on top.
pub(crate) fn own_cost() -> Option<RecorderCost> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // CPU time of the whole process: the threads of the sampler and the receiver have ended.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let cpu_nanos = ProcStat::parse(&stat)?.cpu_ticks()?.saturating_mul(TICK_NANOS);
    Some(RecorderCost { cpu_nanos, rss_bytes_max: kilobytes * 1024 })
}
