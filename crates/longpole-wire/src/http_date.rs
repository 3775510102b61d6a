//! Dates as HTTP has them in its headers (RFC 9110, 5.6.7). All three forms are to be read; only the first is to be written.
//!
//! `httpdate` refuses a date whose day of the week is wrong, the second 60 that the RFC allows, and every year before 1970. A
//! server that gets these wrong still says how long to wait, so this reader stays.
//!
//! ```text
//! Sun, 06 Nov 1994 08:49:37 GMT
//! Sunday, 06-Nov-94 08:49:37 GMT
//! Sun Nov  6 08:49:37 1994
//! ```

use longpole_model::calendar::days_from_civil;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A year of two digits lies between 1970 and 2069: what is dated here is of today.
const FIRST_SHORT_YEAR: i64 = 70;

/// Seconds since the Unix epoch, or `None` where the text is no such date. The day of the week is not checked.
pub fn parse(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words[..] {
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as i64;
    let (day, full_year) = (number(day)?, number(year)?);
    let year = match year.len() {
        4 => full_year,
        2 if full_year < FIRST_SHORT_YEAR => full_year + 2000,
        2 => full_year + 1900,
        _ => return None,
    };
    let mut parts = time.split(':').map(|part| number(part).filter(|_| part.len() == 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn number(text: &str) -> Option<i64> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_three_forms_of_one_moment_are_read_and_nothing_else() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(parse(text), Some(784_111_777), "{text}");
        }
        assert_eq!(parse("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse("Tue, 29 Feb 2028 23:59:60 GMT"), Some(1_835_481_600));
        assert_eq!(parse("Monday, 01-Jan-69 00:00:00 GMT"), Some(3_124_224_000));
        for text in [
            "",
            "120",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 November 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in r#"([A-Za-z]{3,9}|[0-9]{1,5}|[ ,:-]|GMT|é){0,12}"#) {
            let _ = parse(&text);
        }
    }
}
