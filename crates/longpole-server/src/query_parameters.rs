//! Parameters of queries: each checked, and a wrong one named.

use std::collections::BTreeMap;

use longpole_model::Timestamp;
use percent_encoding::percent_decode_str;

/// The parameters of a query, by name; one that comes several times has several values.
#[derive(Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, Vec<String>>);

impl Parameters {
    /// Reads a query string.
    pub(crate) fn of(query: Option<&str>) -> Result<Parameters, String> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            values.entry(decoded(name)?).or_default().push(decoded(value)?);
        }
        Ok(Parameters(values))
    }

    /// The value, unless it is missing or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All values.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every value with its name.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(name, values)| values.iter().map(move |value| (name.as_str(), value.as_str())))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |text: &str| text.parse().map_err(|_| format!("{name}: {text} is not a whole number"));
        self.text(name).map(parse).transpose()
    }

    /// A time in microseconds since 1970.
    pub(crate) fn micros(&self, name: &str) -> Result<Option<Timestamp>, String> {
        Ok(self.number(name)?.map(|micros| times(micros, 1_000)))
    }

    /// A time in milliseconds since 1970.
    pub(crate) fn millis(&self, name: &str) -> Result<Option<Timestamp>, String> {
        Ok(self.number(name)?.map(|millis| times(millis, 1_000_000)))
    }

    /// The time from which a search goes back from `until`: `lookback` in milliseconds, or the default.
    pub(crate) fn since(&self, until: Timestamp, default_millis: u64) -> Result<Timestamp, String> {
        let nanos = self.number("lookback")?.unwrap_or(default_millis).saturating_mul(1_000_000);
        Ok(Timestamp(until.unix_nanos().saturating_sub(i64::try_from(nanos).unwrap_or(i64::MAX))))
    }

    /// How many traces are wanted: `limit`, or the default; at least one, and no more than `most`.
    pub(crate) fn limit(&self, default: usize, most: usize) -> Result<usize, String> {
        let wanted = self.number("limit")?.map_or(default, |limit| usize::try_from(limit).unwrap_or(most));
        Ok(wanted.clamp(1, most))
    }

    /// A duration as Go writes it: `1.5s`, `100ms`, `1h2m`. In nanoseconds.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |text: &str| duration(text).ok_or_else(|| format!("{name}: {text} is not a duration such as 1.5s, 100ms or 1m30s"));
        self.text(name).map(parse).transpose()
    }
}

fn times(number: u64, nanos: u64) -> Timestamp {
    Timestamp(i64::try_from(number.saturating_mul(nanos)).unwrap_or(i64::MAX))
}

pub(crate) fn decoded(text: &str) -> Result<String, String> {
    let spaced = text.replace('+', " ");
    let bytes = percent_decode_str(&spaced).decode_utf8().map_err(|_| format!("{text}: not UTF-8"))?;
    Ok(bytes.into_owned())
}

/// Nanoseconds of a duration as Go writes it.
fn duration(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut nanos = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        nanos += number
            * match &rest[..unit] {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3_600e9,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    // Saturates.
    Some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, nanos) in [("1.5s", 1_500_000_000), ("100ms", 100_000_000), ("1m30s", 90_000_000_000), ("2us", 2_000), ("3µs", 3_000)] {
            assert_eq!(duration(text), Some(nanos), "{text}");
        }
        for text in ["", "5", "s", "1.2.3s", "-1s", "1x"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
