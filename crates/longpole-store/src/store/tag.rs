//! What people may call a recording.

use crate::name::RecordingName;

/// Longest tag. Lists give it a column.
const TAG_BYTES_MAX: usize = 64;

/// Whether a text can be a tag: one word that is neither a recording's own name, nor a path, nor the handle of something in a recording.
pub(super) fn is_tag(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@' | ':');
    let begins = text.chars().next().is_some_and(char::is_alphanumeric);
    // `flame p1` is about the long pole of the last recording, whatever is tagged `p1`.
    let is_handle = text
        .strip_prefix(['s', 'p', 'f'])
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.bytes().next().is_some_and(|first| first != b'0'));
    let is_name = text == "last" || RecordingName::parse(text).is_some() || is_handle;
    begins && text.len() <= TAG_BYTES_MAX && text.chars().all(plain) && !is_name
}
