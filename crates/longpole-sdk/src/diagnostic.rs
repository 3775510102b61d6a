//! The few lines that a library must not keep to itself: settings that cannot be used, and spans that are lost.

use std::io::Write;

/// Writes one line to stderr. Whether stderr takes it is not our concern, unlike `eprintln!`, which panics.
pub(crate) fn tell(text: &str) {
    let line = format!("longpole-sdk: {text}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
