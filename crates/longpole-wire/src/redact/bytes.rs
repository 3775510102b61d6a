//! Searches in bytes.

/// Length of the sequence that sets a colour in a terminal, where the text begins with one: its last letter is none of the word behind it.
pub(super) fn colour_length(text: &[u8]) -> usize {
    let Some(parameters) = text.strip_prefix(b"\x1b[") else { return 0 };
    let length = parameters.iter().take(COLOUR_BYTES_MAX).position(|byte| !matches!(byte, b'0'..=b';'));
    length.filter(|length| parameters[*length] == b'm').map_or(0, |length| 2 + length + 1)
}

/// The same where it ends with one.
pub(super) fn colour_before(text: &[u8]) -> Option<usize> {
    let parameters = text.strip_suffix(b"m")?;
    let length = parameters.iter().rev().take(COLOUR_BYTES_MAX).take_while(|byte| matches!(byte, b'0'..=b';')).count();
    parameters[..parameters.len() - length].ends_with(b"\x1b[").then_some(length + 3)
}

/// Parameters of a colour: `38;2;255;255;255` and a second one like it.
const COLOUR_BYTES_MAX: usize = 40;

/// The last boundary of a character that is not behind this place.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where the first byte from `at` on stands that is such a one; the length where there is none.
pub(super) fn position(bytes: &[u8], at: usize, is_one: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|byte| is_one(*byte)).map_or(bytes.len(), |length| at + length)
}

/// Whether bytes begin with a word, in upper or lower case.
#[inline]
pub(super) fn starts_with_ignoring_case(bytes: &[u8], word: &str) -> bool {
    // Most differ in their first letter.
    let is_first = matches!((bytes.first(), word.as_bytes().first()), (Some(a), Some(b)) if a.eq_ignore_ascii_case(b));
    is_first && bytes.len() >= word.len() && bytes[..word.len()].eq_ignore_ascii_case(word.as_bytes())
}

/// Whether bytes end with a word, in upper or lower case.
pub(super) fn ends_with_ignoring_case(bytes: &[u8], word: &[u8]) -> bool {
    bytes.len() >= word.len() && bytes[bytes.len() - word.len()..].eq_ignore_ascii_case(word)
}
