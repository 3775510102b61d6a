//! Times as Pyroscope's addresses have them.
//!
//! ```text
//! 1700000000   1700000000000   1700000000000000000     seconds, milliseconds, nanoseconds: by the number of digits
//! now   now-1h   now-1d+30m                             before or after the time of the question
//! ```

use longpole_model::time::Timestamp;

use super::SyntaxError;

const WHAT: &str = "time";

const SECOND_NANOS: i64 = 1_000_000_000;

/// The smallest number that is milliseconds, of the year 1973: those below are seconds, until the year 5138.
const MILLIS_MIN: i64 = 100_000_000_000;

/// The same of microseconds and nanoseconds.
const MICROS_MIN: i64 = 1_000 * MILLIS_MIN;
const NANOS_MIN: i64 = 1_000 * MICROS_MIN;

/// A time that does not refer to the time of the question.
///
/// # Errors
///
/// It is no number without a sign.
pub fn absolute(text: &str) -> Result<Timestamp, SyntaxError> {
    let digits = text.trim();
    // A fraction of a second, as Grafana sends some; one of a smaller unit is left out.
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    let number = whole.parse::<i64>().ok().filter(|_| is_number);
    let number = number.ok_or_else(|| SyntaxError::new("expected a number of seconds, milliseconds or nanoseconds", WHAT, 0, text))?;
    let nanos = match number {
        // Those after the year 2262 have more than 63 bits of nanoseconds, and become the last one that has not.
        ..MILLIS_MIN => number.saturating_mul(SECOND_NANOS).saturating_add(nanos_of_fraction(fraction)),
        MILLIS_MIN..MICROS_MIN => number.saturating_mul(1_000_000),
        MICROS_MIN..NANOS_MIN => number.saturating_mul(1_000),
        _ => number,
    };
    Ok(Timestamp(nanos))
}

/// The first nine digits behind the point of a number of seconds.
fn nanos_of_fraction(digits: &str) -> i64 {
    let places = digits.bytes().map(|digit| i64::from(digit - b'0')).chain(std::iter::repeat(0)).take(9);
    places.fold(0, |nanos, digit| nanos * 10 + digit)
}

/// A time, which may refer to the time of the question.
///
/// # Errors
///
/// It is neither a number nor `now` with durations behind it.
pub fn relative(text: &str, now: Timestamp) -> Result<Timestamp, SyntaxError> {
    let trimmed = text.trim();
    let Some(mut rest) = trimmed.strip_prefix("now") else { return absolute(text) };
    let refused = |problem, rest: &str| SyntaxError::new(problem, WHAT, trimmed.len() - rest.len(), trimmed);
    let mut at = now;
    while !rest.is_empty() {
        let sign = match rest.as_bytes()[0] {
            b'-' => -1,
            b'+' => 1,
            _ => return Err(refused("expected + or -", rest)),
        };
        let number_of = &rest[1..];
        let digits = number_of.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = number_of[..digits].parse().map_err(|_| refused("expected a number", number_of))?;
        let unit_of = &number_of[digits..];
        let letters = unit_of.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit_nanos = match &unit_of[..letters] {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 7 * 86_400,
            "M" | "mon" | "month" | "months" => 30 * 86_400,
            "y" | "year" | "years" => 365 * 86_400,
            _ => return Err(refused("expected a unit: s, m, h, d, w, M (30 days) or y (365 days)", unit_of)),
        } * SECOND_NANOS;
        at = at.plus_nanos(sign * number.saturating_mul(unit_nanos));
        rest = &unit_of[letters..];
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    #[test]
    fn numbers_have_the_unit_of_their_size() {
        for text in ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000", "1700000000.0"] {
            assert_eq!(absolute(text), Ok(NOW), "{text}");
        }
        assert_eq!((absolute("0"), absolute("1.5")), (Ok(Timestamp(0)), Ok(Timestamp(1_500_000_000))));
        for text in ["", "-1", "now", "1e9", "1700000000s", "99999999999999999999"] {
            assert!(absolute(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_before_or_after_now() {
        let minutes = |text| relative(text, NOW).map(|at| at.nanos_since(NOW) / 60_000_000_000);
        assert_eq!((minutes("now"), minutes("now-1h"), minutes(" now-1d+30m ")), (Ok(0), Ok(-60), Ok(-1_410)));
        assert_eq!((minutes("now-2min"), relative("1700000000", Timestamp(0))), (Ok(-2), Ok(NOW)));
        let said = |text| relative(text, NOW).unwrap_err().to_string();
        assert_eq!(said("now-1"), "expected a unit: s, m, h, d, w, M (30 days) or y (365 days), at byte 5 of the time \"now-1\"");
        assert_eq!(said("now-h"), "expected a number, at byte 4 of the time \"now-h\"");
        assert_eq!(said("now 1h"), "expected + or -, at byte 3 of the time \"now 1h\"");
        assert_eq!(said("yesterday"), "expected a number of seconds, milliseconds or nanoseconds, at byte 0 of the time \"yesterday\"");
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_refused(text in "(now)?[-+0-9smhdwy]{0,30}|.{0,20}") {
            let _ = (absolute(&text), relative(&text, NOW));
        }
    }
}
