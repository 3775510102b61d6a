//! Times, sizes, pairs and targets as people write them: one grammar for all commands.

use std::time::Duration;

use longpole_server::forward::ForwardTarget;
use longpole_server::forward::target::{self, Folders, TargetError};

/// `500ms`, `1.5s`, `90m`, `12h`, `30d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3_600.0),
        ("d", 86_400.0),
        ("w", 604_800.0),
    ];
    let secs = number(text, &units).ok_or("expected a number and a unit: µs, ms, s, m, h, d or w")?;
    Duration::try_from_secs_f64(secs).map_err(|_| "too long".to_owned())
}

/// `2GB`, `500MiB`, `1024`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1.0),
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
    ];
    // Beyond 2^53 a double has no odd numbers, and disks are smaller.
    number(text, &units).map(|bytes| bytes as u64).ok_or_else(|| "expected a number and a unit: kB, MB, GB, MiB or GiB".to_owned())
}

/// `key=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A value of `--otel-traces`, as Pulumi spells it.
pub(crate) fn otel_traces_target(text: &str) -> Result<ForwardTarget, TargetError> {
    let (current, home) = crate::env_vars::folders();
    target::otel_traces(text, Folders { current: &current, home: home.as_deref() })
}

/// A value of `--tracing`, as Pulumi spells it.
pub(crate) fn tracing_target(text: &str) -> Result<ForwardTarget, TargetError> {
    let (current, home) = crate::env_vars::folders();
    target::tracing(text, Folders { current: &current, home: home.as_deref() })
}

/// A number that is not negative, times the worth of the unit behind it.
fn number(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let worth = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    Some(number.parse::<f64>().ok()? * worth)
}

/// A time of a millisecond and longer, a year at most.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=31_536_000.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number of seconds, such as 10 or 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(bytes("1KiB"), Ok(1024));
        assert_eq!(bytes("7"), Ok(7));
        for text in ["", "5", "-5s", "5 parsecs", "s", "1e99d", "99999999999999999999w"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "-1", "1 parsec", "GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("=b").is_err() && pair("a").is_err());
    }
}
