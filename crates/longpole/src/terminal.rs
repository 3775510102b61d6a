//! Numbers and words for people: durations, counts, widths, colour. Every text view is written with these; [`crate::screen`] shows it.

use crate::args::Color;
use crate::env_vars;
use crate::screen::{self, Look, painted};
pub(crate) use crate::screen::{printable, width};

/// Widest line of any text view; narrower terminals fold it, wider ones are not filled, so that output is the same everywhere.
pub(crate) const WIDTH: usize = 100;

/// A function for people: the kernel's are marked as they are in `perf report`.
pub(crate) fn function_words(function: &str, runtime: Option<&str>) -> String {
    if runtime == Some("kernel") { format!("[k] {function}") } else { function.to_owned() }
}

/// Text with or without colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For standard output.
    pub(crate) fn stdout(color: Color) -> Self {
        Style { colour: wanted(color, screen::stdout_is_terminal()) }
    }

    /// For standard error.
    pub(crate) fn stderr(color: Color) -> Self {
        Style { colour: wanted(color, screen::stderr_is_terminal()) }
    }

    /// Without colour: files.
    pub(crate) fn plain() -> Self {
        Style { colour: false }
    }

    pub(crate) fn has_colour(self) -> bool {
        self.colour
    }

    fn paint(self, look: Look, text: &str) -> String {
        if self.colour { painted(look, text) } else { text.to_owned() }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(Look::Strong, text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(Look::Faint, text)
    }

    pub(crate) fn handle(self, text: &str) -> String {
        self.paint(Look::Handle, text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.paint(Look::Warning, text)
    }
}

fn wanted(color: Color, is_terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && env_vars::colour_wanted(),
    }
}

/// The unit that a whole column is written in, so that its numbers can be compared by eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Days,
    Hours,
    Minutes,
    Seconds,
    Millis,
    Micros,
}

impl TimeUnit {
    /// The unit in which the largest of a column reads best.
    pub(crate) fn of(largest_nanos: i64) -> Self {
        match largest_nanos.unsigned_abs() {
            360_000_000_000_000.. => TimeUnit::Days,
            6_000_000_000_000.. => TimeUnit::Hours,
            60_000_000_000.. => TimeUnit::Minutes,
            1_000_000_000.. => TimeUnit::Seconds,
            1_000_000.. => TimeUnit::Millis,
            _ => TimeUnit::Micros,
        }
    }

    /// A duration in this unit: `5d03h`, `2h40m12s`, `4m12.3s`, `2.38s`, `12.3ms`, `7µs`.
    pub(crate) fn show(self, nanos: i64) -> String {
        let sign = if nanos < 0 { "-" } else { "" };
        let nanos = nanos.unsigned_abs();
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
            TimeUnit::Seconds => format!("{sign}{:.2}s", nanos as f64 / 1e9),
            TimeUnit::Millis => format!("{sign}{:.1}ms", nanos as f64 / 1e6),
            TimeUnit::Micros => format!("{sign}{}µs", (nanos + 500) / 1000),
        }
    }
}

/// A duration in the unit it reads best in.
pub(crate) fn duration(nanos: i64) -> String {
    TimeUnit::of(nanos).show(nanos)
}

/// A saving: one number, or its range.
pub(crate) fn range(unit: TimeUnit, [low, high]: [i64; 2]) -> String {
    let (low, high) = (unit.show(low), unit.show(high));
    if low == high { high } else { format!("{low}–{high}") }
}

/// A count with its thousands set apart: `61 204`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `1 span`, `2 spans`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A share of a whole in whole percent; `<1%` where it is there but rounds to nothing.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 || part <= 0 {
        return "0%".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if share < 0.5 { "<1%".to_owned() } else { format!("{share:.0}%") }
}

/// Text of at most `width` characters: the middle gives way, because both ends of a name tell it from others.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = printable(text);
    let length = text.chars().count();
    if length <= width {
        return text;
    }
    if width < 3 {
        return text.chars().take(width).collect();
    }
    let head = (width - 1) / 2;
    let tail = width - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

/// Text of at most `width` characters: the beginning gives way, because it ends with what counts.
pub(crate) fn end_of(text: &str, width: usize) -> String {
    let text = printable(text);
    let length = text.chars().count();
    if length <= width {
        return text;
    }
    std::iter::once('…').chain(text.chars().skip(length - width.saturating_sub(1))).take(width).collect()
}

/// Text of at most `width` characters: the end gives way, because it begins with what counts.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width || width == 0 {
        return text.chars().take(width).collect();
    }
    text.chars().take(width - 1).collect::<String>() + "…"
}

/// [`fit`], filled with spaces on the right.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width - text.chars().count().min(width);
    text + &" ".repeat(missing)
}

/// Filled with spaces on the left; numbers are never cut.
pub(crate) fn right(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(screen::width(text));
    " ".repeat(missing) + text
}

/// The first line of a text that says something, with a mark where there are more: `python3 -c 'import os …`.
pub(crate) fn first_line(text: &str) -> String {
    let text = text.trim_start_matches(['\n', '\r']);
    match text.split_once(['\n', '\r']) {
        Some((first, rest)) if !rest.trim().is_empty() => format!("{} …", first.trim_end()),
        Some((first, _)) => first.to_owned(),
        None => text.to_owned(),
    }
}

/// Breaks a text at spaces into lines of at most `width` characters.
pub(crate) fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let used = screen::width(&lines[last]);
        if used > 0 && used + 1 + screen::width(word) > width {
            lines.push(fit(word, width));
        } else {
            if used > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well_in_every_unit() {
        assert_eq!(duration(252_300_000_000), "4m12.3s");
        assert_eq!(duration(60_000_000_000), "1m00.0s");
        assert_eq!(duration(2_384_000_000), "2.38s");
        assert_eq!(duration(12_340_000), "12.3ms");
        assert_eq!(duration(-7_400), "-7µs");
        assert_eq!(TimeUnit::Minutes.show(9_960_000_000), "10.0s");
        assert_eq!(duration(5_999_940_000_000), "99m59.9s");
        assert_eq!(duration(9_612_400_000_000), "2h40m12s");
        assert_eq!(TimeUnit::Hours.show(61_000_000_000), "1m01.0s");
        assert_eq!(duration(446_400_000_000_000), "5d04h");
        assert_eq!(duration(i64::MIN), "-106751d23h");
    }

    #[test]
    fn names_lose_their_middle_and_never_steer_the_terminal() {
        assert_eq!(fit("aws:rds:Instance db create", 15), "aws:rds… create");
        assert_eq!(end_of("shop::payment::validate_card", 14), "…validate_card");
        assert_eq!(end_of("short", 14), "short");
        assert_eq!(cut("saves 958.7ms: create web-bundle", 18), "saves 958.7ms: cr…");
        assert_eq!(cut("saves", 5), "saves");
        assert_eq!(fit("a\x1b[31mb\tc\nd", 20), "a\\x1b[31mb\\tc\\nd");
        assert_eq!(first_line("\nimport os\nos.fork()"), "import os …");
        assert_eq!(first_line("one line\n"), "one line");
        assert_eq!(pad("ab", 4), "ab  ");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(61_204), "61 204");
        assert_eq!(count(7), "7");
        assert_eq!(percent(1, 1000), "<1%");
        assert_eq!(percent(91, 100), "91%");
        assert_eq!(percent(0, 0), "0%");
    }
}
