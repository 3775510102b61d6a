//! Numbers for people: durations, shares, bytes, counts. The one formatter of every text, whichever room writes it.
//!
//! A number and its unit are one word: `4m12.3s`, `39%`, `12.4MB`. Commas group the digits of counts: `61,204 samples`.

/// The unit that a whole column is written in, so that its numbers can be compared by eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// `5d03h`
    Days,
    /// `2h40m12s`
    Hours,
    /// `4m12.3s`
    Minutes,
    /// `2.38s`
    Seconds,
    /// `12.3ms`
    Millis,
    /// `7µs`
    Micros,
    /// `340ns`
    Nanos,
}

impl TimeUnit {
    /// The unit in which the largest of a column reads best.
    pub fn of(largest_nanos: i64) -> Self {
        match largest_nanos.unsigned_abs() {
            360_000_000_000_000.. => TimeUnit::Days,
            6_000_000_000_000.. => TimeUnit::Hours,
            60_000_000_000.. => TimeUnit::Minutes,
            1_000_000_000.. => TimeUnit::Seconds,
            1_000_000.. => TimeUnit::Millis,
            0 | 1_000.. => TimeUnit::Micros,
            _ => TimeUnit::Nanos,
        }
    }

    /// A duration in this unit: `5d03h`, `2h40m12s`, `4m12.3s`, `2.38s`, `12.3ms`, `7µs`, `340ns`. One that would have a single digit here beside
    /// exact ones, `0.01s`, is in the next smaller unit: `13.5ms`.
    pub fn show(self, nanos: i64) -> String {
        let sign = if nanos < 0 { "-" } else { "" };
        let (least, smaller) = match self {
            TimeUnit::Days | TimeUnit::Hours | TimeUnit::Minutes => (1_000_000_000, TimeUnit::Seconds),
            TimeUnit::Seconds => (100_000_000, TimeUnit::Millis),
            TimeUnit::Millis => (1_000_000, TimeUnit::Micros),
            TimeUnit::Micros => (1_000, TimeUnit::Nanos),
            TimeUnit::Nanos => (0, TimeUnit::Nanos),
        };
        if nanos != 0 && nanos.unsigned_abs() < least {
            return smaller.show(nanos);
        }
        let nanos = nanos.unsigned_abs();
        // What rounds up to one of the next larger unit is one.
        match self {
            TimeUnit::Seconds if (59_995_000_000..60_000_000_000).contains(&nanos) => return format!("{sign}1m00.0s"),
            TimeUnit::Millis if (999_950_000..1_000_000_000).contains(&nanos) => return format!("{sign}1.00s"),
            TimeUnit::Micros if (999_500..1_000_000).contains(&nanos) => return format!("{sign}1.0ms"),
            _ => {}
        }
        let secs = (nanos / 500_000_000).div_ceil(2);
        let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
        match self {
            TimeUnit::Days if days > 0 => format!("{sign}{days}d{hours:02}h"),
            TimeUnit::Days | TimeUnit::Hours if secs >= 3_600 => format!("{sign}{}h{minutes:02}m{:02}s", secs / 3_600, secs % 60),
            TimeUnit::Days | TimeUnit::Hours | TimeUnit::Minutes => {
                let tenths = nanos.saturating_add(50_000_000) / 100_000_000;
                let (minutes, tenths) = (tenths / 600, tenths % 600);
                if minutes == 0 {
                    format!("{sign}{}.{}s", tenths / 10, tenths % 10)
                } else {
                    format!("{sign}{minutes}m{:02}.{}s", tenths / 10, tenths % 10)
                }
            }
            TimeUnit::Seconds => {
                let hundredths = (nanos + 5_000_000) / 10_000_000;
                format!("{sign}{}.{:02}s", hundredths / 100, hundredths % 100)
            }
            TimeUnit::Millis => {
                let tenths = (nanos + 50_000) / 100_000;
                format!("{sign}{}.{}ms", tenths / 10, tenths % 10)
            }
            TimeUnit::Micros => format!("{sign}{}µs", (nanos + 500) / 1_000),
            TimeUnit::Nanos => format!("{sign}{nanos}ns"),
        }
    }
}

/// A duration in nanoseconds, in the unit it reads best in. One that is too long for `i64` is as long as can be.
pub fn duration(nanos: impl TryInto<i64>) -> String {
    let nanos = nanos.try_into().unwrap_or(i64::MAX);
    TimeUnit::of(nanos).show(nanos)
}

/// A duration with its uncertainty as text: `1.20s–1.50s`, or one number if both look the same.
pub fn range(unit: TimeUnit, [low, high]: [i64; 2]) -> String {
    let (low, high) = (unit.show(low), unit.show(high));
    if low == high { high } else { format!("{low}–{high}") }
}

/// A count with its thousands set apart: `61,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 span`, `2 spans`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A share of a whole in whole percent, rounded half up; 0 of nothing.
pub fn whole_percent(part: i64, whole: i64) -> i64 {
    if whole <= 0 || part <= 0 {
        return 0;
    }
    let (part, whole) = (i128::from(part), i128::from(whole));
    i64::try_from((part * 200 + whole) / (whole * 2)).unwrap_or(i64::MAX)
}

/// [`whole_percent`] in words; `<1%` where it is there but rounds to nothing.
pub fn percent(part: i64, whole: i64) -> String {
    match whole_percent(part, whole) {
        0 if part > 0 && whole > 0 => "<1%".to_owned(),
        share => format!("{share}%"),
    }
}

/// A number of bytes in decimal units: `312B`, `4.2kB`, `12.4MB`, `3.1GB`.
pub fn bytes(bytes: u64) -> String {
    let (unit, worth) = match bytes {
        0..1_000 => return format!("{bytes}B"),
        // From here on it would be rounded to the next unit.
        1_000..999_500 => ("kB", 1_000),
        999_500..999_500_000 => ("MB", 1_000_000),
        999_500_000..999_500_000_000 => ("GB", 1_000_000_000),
        _ => ("TB", 1_000_000_000_000),
    };
    let tenths = bytes.saturating_add(worth / 20) / (worth / 10);
    if tenths < 1_000 {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}{unit}", bytes.saturating_add(worth / 2) / worth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well_in_every_unit() {
        assert_eq!(duration(252_300_000_000_i64), "4m12.3s");
        assert_eq!(duration(60_000_000_000_i64), "1m00.0s");
        assert_eq!(duration(2_384_000_000_i64), "2.38s");
        assert_eq!(duration(12_340_000_i64), "12.3ms");
        assert_eq!(duration(-7_400_i64), "-7µs");
        assert_eq!(duration(340_i64), "340ns");
        assert_eq!(duration(0_i64), "0µs");
        assert_eq!(duration(2_125_000_000_i64), "2.13s");
        assert_eq!([999_949_999_i64, 999_950_000, 999_499, -999_500].map(duration), ["999.9ms", "1.00s", "999µs", "-1.0ms"]);
        assert_eq!(TimeUnit::Minutes.show(9_960_000_000), "10.0s");
        assert_eq!(duration(5_999_940_000_000_i64), "99m59.9s");
        assert_eq!(duration(9_612_400_000_000_i64), "2h40m12s");
        assert_eq!(TimeUnit::Hours.show(61_000_000_000), "1m01.0s");
        assert_eq!(duration(446_400_000_000_000_i64), "5d04h");
        assert_eq!(duration(i64::MIN), "-106751d23h");
        assert_eq!(duration(u64::MAX), duration(i64::MAX));
    }

    #[test]
    fn no_duration_has_one_digit_beside_exact_ones() {
        let seconds = [100_000_000, 99_940_000, 13_460_000, -434_000, 340, 0].map(|nanos| TimeUnit::Seconds.show(nanos));
        assert_eq!(seconds, ["0.10s", "99.9ms", "13.5ms", "-434µs", "340ns", "0.00s"]);
        assert_eq!([1_000_000, 936_000, 999].map(|nanos| TimeUnit::Millis.show(nanos)), ["1.0ms", "936µs", "999ns"]);
        assert_eq!([1_000_000_000, 936_000_000, 13_460_000].map(|nanos| TimeUnit::Minutes.show(nanos)), ["1.0s", "0.94s", "13.5ms"]);
        assert_eq!(range(TimeUnit::Seconds, [13_460_000, 1_210_000_000]), "13.5ms–1.21s");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(61_204), "61,204");
        assert_eq!(count(7), "7");
        assert_eq!(percent(1, 1000), "<1%");
        assert_eq!(percent(91, 100), "91%");
        assert_eq!(percent(0, 0), "0%");
        assert_eq!(
            [(1, 200), (1, 201), (7, 0), (-7, 9), (i64::MAX, 1)].map(|(part, whole)| whole_percent(part, whole)),
            [1, 0, 0, 0, i64::MAX]
        );
    }

    #[test]
    fn bytes_have_three_digits() {
        let sizes = [0, 999, 1_000, 4_249, 9_999, 87_000, 99_960, 999_499, 999_500, 12_400_000, 3_100_000_000, 1_000_000_000_000];
        let texts = ["0B", "999B", "1.0kB", "4.2kB", "10.0kB", "87.0kB", "100kB", "999kB", "1.0MB", "12.4MB", "3.1GB", "1.0TB"];
        assert_eq!(sizes.map(bytes), texts);
    }
}
