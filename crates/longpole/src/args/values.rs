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
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=31_536_000.0).contains(&seconds) => Ok(seconds),
        Ok(seconds) if seconds <= 0.0 => Err("must be more than 0".to_owned()),
        Ok(seconds) if seconds < 0.001 => Err("must be 0.001 or more".to_owned()),
        Ok(seconds) if seconds > 31_536_000.0 => Err("must be a year (31536000) or less".to_owned()),
        _ => Err("expected a number of seconds, such as 10 or 0.5".to_owned()),
    }
}

/// A number of rows, columns or the like.
pub(crate) fn number_of(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number, such as 20".to_owned())
}

/// The number of a process or of a thread.
pub(crate) fn id(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|id| *id > 0).ok_or_else(|| "expected the number of a process or thread, such as 4711".to_owned())
}

/// Most samples per second.
const RATE_MAX: u32 = 20_000;

/// Samples per second.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|rate| (1..=RATE_MAX).contains(rate)).ok_or_else(|| format!("expected a number from 1 to {RATE_MAX}"))
}

/// A port.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a number from 0 to 65535".to_owned())
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

    #[test]
    fn numbers_that_are_none_are_refused_in_our_words() {
        let refused = |text: &str| seconds(text).unwrap_err();
        assert_eq!(["0", "-1", "1e-9"].map(refused), ["must be more than 0", "must be more than 0", "must be 0.001 or more"]);
        assert_eq!(
            ["1e9", "ten", "nan"].map(refused),
            [
                "must be a year (31536000) or less",
                "expected a number of seconds, such as 10 or 0.5",
                "expected a number of seconds, such as 10 or 0.5"
            ]
        );
        assert_eq!((seconds("0.5"), number_of("0"), id("7"), rate("999"), port("0")), (Ok(0.5), Ok(0), Ok(7), Ok(999), Ok(0)));
        assert_eq!(number_of("ten").unwrap_err(), "expected a number, such as 20");
        assert_eq!([id("0"), id("sshd")].map(Result::unwrap_err), ["expected the number of a process or thread, such as 4711"; 2]);
        assert_eq!([rate("0"), rate("20001")].map(Result::unwrap_err), ["expected a number from 1 to 20000"; 2]);
        assert_eq!(port("http").unwrap_err(), "expected a number from 0 to 65535");
    }
}
