//! Text in columns: cut, filled, folded. A width is in columns of the terminal.

use crate::terminal::screen::{self, printable};

/// Widest line of any text view; narrower terminals fold it, wider ones are not filled, so that output is the same everywhere.
pub(crate) const WIDTH: usize = 100;

/// A function for people: the kernel's are marked as they are in `perf report`.
pub(crate) fn function_words(function: &str, runtime: Option<&str>) -> String {
    if runtime == Some("kernel") { format!("[k] {function}") } else { function.to_owned() }
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
}
