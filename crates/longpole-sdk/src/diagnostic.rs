//! The few lines that a library must not keep to itself: settings that cannot be used, and spans that are lost.

use crate::sys;

/// Writes one line to stderr. Whether stderr takes it is not our concern, unlike `eprintln!`, which panics. No lock is taken: at the end
/// of a process a thread that is not there any more may have it.
pub(crate) fn tell(text: &str) {
    sys::write_stderr(format!("longpole-sdk: {}\n", shown(text)).as_bytes());
}

/// What a collector answered may be in it: a control sequence of it must not steer the terminal, and a line break forge a line.
fn shown(text: &str) -> String {
    let as_is = |c: char| c == '\\' || c == '"' || c == '\'';
    text.chars().map(|c| if as_is(c) { c.to_string() } else { c.escape_debug().to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_line_of_plain_text() {
        assert_eq!(
            shown("cannot \"send\" it's C:\\x – \x1b]0;t\x07\n\u{202e}"),
            "cannot \"send\" it's C:\\x – \\u{1b}]0;t\\u{7}\\n\\u{202e}"
        );
    }
}
