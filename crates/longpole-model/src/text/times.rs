//! Moments and stretches of time: `20ms`, `2..14ms`, `3ms..`.

use super::tokens::Token;
use super::{ORIGIN, ORIGIN_MONOTONIC};
use crate::time::{Monotonic, Timestamp};

fn unit_nanos(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    })
}

/// Splits `14.5ms` into its digits and its unit; a bare number has an empty unit.
fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number.bytes().any(|b| b.is_ascii_digit()) && (unit.is_empty() || unit_nanos(unit).is_some())).then_some((number, unit))
}

fn nanos(number: &str, unit: i64) -> Option<i64> {
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.chars() {
        place /= 10;
        value = value.checked_add(i64::from(digit.to_digit(10)?).checked_mul(place)?)?;
    }
    Some(if negative { -value } else { value })
}

/// A moment such as `20ms`.
pub(super) fn moment(text: &str) -> Option<i64> {
    let (number, unit) = number_and_unit(text)?;
    nanos(number, unit_nanos(unit).or((number == "0").then_some(1))?)
}

/// A stretch such as `2..14ms` or `3ms..`.
pub(super) fn stretch(text: &str) -> Option<(i64, Option<i64>)> {
    let (start, end) = text.split_once("..")?;
    if end.is_empty() {
        return Some((moment(start)?, None));
    }
    let (start, start_unit) = number_and_unit(start)?;
    let (end, end_unit) = number_and_unit(end)?;
    let end_unit = unit_nanos(end_unit)?;
    let start_unit = if start_unit.is_empty() { end_unit } else { unit_nanos(start_unit)? };
    Some((nanos(start, start_unit)?, Some(nanos(end, end_unit)?)))
}

pub(super) fn wall(offset: i64) -> Timestamp {
    ORIGIN.plus_nanos(offset)
}

pub(super) fn monotonic(offset: i64) -> Monotonic {
    Monotonic(ORIGIN_MONOTONIC.0.saturating_add_signed(offset))
}

/// The times of a line that begins with them, both there.
pub(super) fn whole_stretch(token: Option<&Token>) -> Result<(Monotonic, Monotonic), String> {
    match token.and_then(|token| stretch(&token.text)) {
        Some((start, Some(end))) => Ok((monotonic(start), monotonic(end))),
        _ => Err("no times such as 2..14ms in this line".to_owned()),
    }
}
