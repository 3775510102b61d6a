//! Variables of the environment, and what is wrong with them.

use std::str::FromStr;
use std::time::Duration;

/// Reads variables, and collects what could not be used, for people.
pub(super) struct Variables<'a> {
    pub(super) get: &'a dyn Fn(&str) -> Option<String>,
    pub(super) complaints: Vec<String>,
}

impl Variables<'_> {
    /// A variable that is set to nothing is not set, as OpenTelemetry has it.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set, with its name.
    pub(super) fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        names.iter().find_map(|name| self.text(name).map(|value| (*name, value)))
    }

    pub(super) fn parsed<T: FromStr + ToString>(&mut self, names: &[&str], default: T, is_valid: impl Fn(&T) -> bool) -> T {
        let Some((name, value)) = self.first(names) else { return default };
        match value.parse() {
            Ok(number) if is_valid(&number) => number,
            _ => {
                self.complaints.push(format!("{name}={value} is not usable; using the default {}", default.to_string()));
                default
            }
        }
    }

    /// Milliseconds; zero means no limit.
    pub(super) fn timeout(&mut self, names: &[&str], default_millis: u64) -> Option<Duration> {
        let millis = self.parsed(names, default_millis, |_| true);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.text(name) {
            None => false,
            Some(value) if value.eq_ignore_ascii_case("true") => true,
            Some(value) if value.eq_ignore_ascii_case("false") => false,
            Some(value) => {
                self.complaints.push(format!("{name}={value} is neither true nor false; using false"));
                false
            }
        }
    }
}

/// `a=1,b=2`, values percent-decoded, as W3C Baggage; `None` where a member is no pair.
pub(super) fn parse_pairs(text: &str) -> Option<Vec<(String, String)>> {
    let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
    members
        .map(|member| {
            let (key, value) = member.split_once('=')?;
            let (key, value) = (percent_decoded(key.trim())?, percent_decoded(value.trim())?);
            (!key.is_empty()).then_some((key, value))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}
