//! What the user should know about the environment.

/// Something about the user's environment that shows in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable, for machines.
    pub code: &'static str,
    /// Lower-case fragment for people, without secret values.
    pub text: String,
}

pub(super) fn note(code: &'static str, text: impl Into<String>) -> Note {
    Note { code, text: text.into() }
}
