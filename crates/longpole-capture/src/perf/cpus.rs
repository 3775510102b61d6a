//! The CPUs that are online.

use std::fs;

/// Numbers of the CPUs that are online.
pub(super) fn online_cpus() -> Vec<u32> {
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
}
