//! Times as text: `2026-03-26T09:30:00.05+02:00`, as Go prints and reads them (RFC 3339).
//!
//! `jiff` reads other texts: `+0200`, `Z[UTC]`, `09:30Z` and `,5` are times to it, while it refuses a tenth digit of the fraction and
//! the last day of 9999, and counts the second 60 as 59. Files of traces decide by this reader what is a time, so it stays.

use longpole_model::calendar::{civil_from_days, days_from_civil};
use longpole_model::time::Timestamp;

/// Nanoseconds since the Unix epoch, or `None` where the text is no time. More than nine digits of a fraction are cut.
pub(crate) fn parse(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let number = |from: usize, digits: usize| {
        let field = bytes.get(from..from + digits)?;
        field.iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(*b - b'0')))
    };
    let mark = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|b| wanted.contains(b)).then_some(());
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    for (at, wanted) in [(4, &b"-"[..]), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")] {
        mark(at, wanted)?;
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut fraction_nanos = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let mut unit = 100_000_000;
        let start = at;
        while let Some(digit) = bytes.get(at).filter(|b| b.is_ascii_digit()) {
            fraction_nanos += i64::from(*digit - b'0') * unit;
            unit /= 10;
            at += 1;
        }
        if at == start {
            return None;
        }
    }
    let offset_secs = match bytes.get(at..)? {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), ..] if bytes.len() == at + 6 => {
            mark(at + 3, b":")?;
            let secs = number(at + 1, 2)? * 3600 + number(at + 4, 2)? * 60;
            if *sign == b'-' { -secs } else { secs }
        }
        _ => return None,
    };
    let secs = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_secs;
    Some(i128::from(secs) * 1_000_000_000 + i128::from(fraction_nanos))
}

/// A time, or `None` where the text is none that a timestamp can hold.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    i64::try_from(parse(text)?).ok().map(Timestamp)
}

/// The time in UTC with as many digits of the fraction as it needs.
pub(crate) fn print(time: Timestamp) -> String {
    let nanos = time.unix_nanos();
    let (secs, fraction) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let (days, second_of_day) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        text.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_prints_them() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-03-26T09:30:00.05+02:00", 1_774_510_200_050_000_000),
            ("2026-03-26T07:30:00.05Z", 1_774_510_200_050_000_000),
            ("2024-02-29T23:59:59.999999999-00:30", 1_709_252_999_999_999_999),
            ("1969-12-31T23:59:59.9Z", -100_000_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000_000_000),
            ("9999-12-31T23:59:60.1234567891Z", 253_402_300_800_123_456_789),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "2026-03-26",
            "2026-03-26T09:30:00",
            "2026-13-26T09:30:00Z",
            "2026-03-26T09:30:00.Z",
            "2026-03-26T09:30:00+0200",
            "é026-03-26T09:30:00Z",
            "2026-03-26T09:30:00+02:00 m=+1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_printed_reads_as_the_same_time() {
        for nanos in [0, 1, -1, 1_774_510_200_050_000_000, i64::MIN, i64::MAX, 951_782_400_000_000_000, 4_107_542_400_000_000_000] {
            let text = print(Timestamp(nanos));
            assert_eq!(parse(&text), Some(i128::from(nanos)), "{text}");
        }
        assert_eq!(print(Timestamp(951_782_400_500_000_000)), "2000-02-29T00:00:00.5Z");
    }
}
