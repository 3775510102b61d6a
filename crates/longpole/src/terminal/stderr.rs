//! Lines of our own on standard error, beside those of the command: `longpole: …`, and the next step below it.

use std::fmt::Display;

use crate::terminal::screen::say;

/// Writes `longpole: TEXT`.
pub(crate) fn note(text: impl Display) {
    say(format!("longpole: {text}"));
}

/// Writes `hint: TEXT`.
pub(crate) fn hint(text: impl Display) {
    say(format!("hint: {text}"));
}
