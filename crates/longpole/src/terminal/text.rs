//! Text in columns: cut, filled, folded. A width is in columns of the terminal.

use longpole_analysis::words::Measure;
use longpole_recording::view::RuntimeView;

use crate::terminal::screen::{self, columns, printable};

/// How words are measured and names are cut on the terminal.
pub(crate) const MEASURE: Measure = Measure { width: screen::width, end_of };

/// A function for people: the kernel's are marked as they are in `perf report`.
pub(crate) fn function_words(function: &str, runtime: Option<RuntimeView>) -> String {
    if runtime == Some(RuntimeView::Kernel) { format!("[k] {function}") } else { function.to_owned() }
}

/// As much of the beginning of a text as `width` columns hold.
fn beginning(text: &str, width: usize) -> &str {
    let mut left = width;
    let end = text.char_indices().find(|(_, c)| match left.checked_sub(columns(*c)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// As much of the end of a text as `width` columns hold. It does not begin with a mark that belongs to the character before it.
fn ending(text: &str, width: usize) -> &str {
    let mut left = width;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let Some(rest) = left.checked_sub(columns(c)) else { break };
        left = rest;
        if columns(c) > 0 {
            start = at;
        }
    }
    &text[start..]
}

/// Text of at most `width` columns: the middle gives way, because both ends of a name tell it from others.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = printable(text);
    if screen::width(&text) <= width {
        return text;
    }
    if width < 3 {
        return beginning(&text, width).to_owned();
    }
    let head = (width - 1) / 2;
    format!("{}…{}", beginning(&text, head), ending(&text, width - 1 - head))
}

/// Text of at most `width` columns: the beginning gives way, because it ends with what counts.
fn end_of(text: &str, width: usize) -> String {
    let text = printable(text);
    match screen::width(&text) <= width {
        true => text,
        false if width == 0 => String::new(),
        false => format!("…{}", ending(&text, width - 1)),
    }
}

/// Text of at most `width` columns: the end gives way, because it begins with what counts.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = printable(text);
    match screen::width(&text) <= width {
        true => text,
        false if width == 0 => String::new(),
        false => format!("{}…", beginning(&text, width - 1)),
    }
}

/// [`fit`], filled with spaces on the right.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width.saturating_sub(screen::width(&text));
    text + &" ".repeat(missing)
}

/// Filled with spaces on the left; numbers are never cut.
pub(crate) fn right(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(screen::width(text));
    " ".repeat(missing) + text
}

/// How wide each column of a table is: its head or its widest cell.
pub(crate) fn column_widths<const N: usize>(heads: &[&str; N], rows: &[[String; N]]) -> [usize; N] {
    let widest = |column: usize| rows.iter().map(|row| screen::width(&row[column])).max().unwrap_or_default();
    std::array::from_fn(|column| widest(column).max(screen::width(heads[column])))
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

/// Breaks a text at spaces into lines of at most `width` columns.
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

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(pad("検索", 6), "検索  ");
        assert_eq!(fit("商品検索サービス", 9), "商品…ビス");
        assert_eq!(cut("商品検索", 6), "商品…");
        assert_eq!(end_of("商品検索", 6), "…検索");
        assert_eq!(pad("🚀 deploy", 10), "🚀 deploy ");
        assert_eq!(pad("cafe\u{301}", 5), "cafe\u{301} ");
        assert_eq!(end_of("abe\u{301}cd", 3), "…cd");
        assert_eq!(fold("検索 検索 検索", 9), ["検索 検索", "検索"]);
        for width in 0..20 {
            for text in ["商品検索サービス", "ab商cd品ef", "e\u{301}e\u{301}e\u{301}e\u{301}"] {
                for shown in [fit(text, width), cut(text, width), end_of(text, width)] {
                    assert!(screen::width(&shown) <= width, "{shown} in {width}");
                }
                assert_eq!(screen::width(&pad(text, width)), width);
            }
        }
    }
}
