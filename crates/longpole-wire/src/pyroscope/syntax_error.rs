//! Why a short text that people write is refused: a selector, the name of an application, a time.

/// Bytes of a refused text that an error repeats.
const QUOTED_BYTES_MAX: usize = 200;

/// What is wrong with a text, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at byte {offset} of the {what} {text:?}")]
pub struct SyntaxError {
    /// What is wrong.
    pub problem: &'static str,
    /// What the text should be.
    pub what: &'static str,
    /// Offset of the first byte that does not fit.
    pub offset: usize,
    /// The text, or its beginning.
    pub text: String,
}

impl SyntaxError {
    pub(super) fn new(problem: &'static str, what: &'static str, offset: usize, text: &str) -> Self {
        let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
        let mut quoted = text[..end].to_owned();
        if end < text.len() {
            quoted.push('…');
        }
        SyntaxError { problem, what, offset, text: quoted }
    }
}
