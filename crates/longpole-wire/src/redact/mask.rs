//! The replacement of a credential.

use std::ops::Range;

/// What replaces a credential.
pub const REDACTED: &str = "[redacted]";

/// Whether [`REDACTED`] stands there already, whichever of its brackets were taken for part of the text around.
pub(super) fn is_redacted(text: &str, hidden: &Range<usize>) -> bool {
    let start = hidden.start - usize::from(text[..hidden.start].ends_with('['));
    let end = hidden.end + usize::from(text[hidden.end..].starts_with(']'));
    [&text[start..end], &text[start..hidden.end], &text[hidden.start..end], &text[hidden.clone()]].contains(&REDACTED)
}
