//! A command and how it ended, in a few words.

use longpole_recording::view;

use crate::terminal::{self, cut, fit};

/// [`command_words`] in at most `width` columns. Cuts the end of a program given as text, and the middle of others.
pub(crate) fn fit_command(command: &[String], width: usize) -> String {
    let words = command_words(command);
    if command.iter().any(|word| word.contains('\n')) { cut(&words, width) } else { fit(&words, width) }
}

/// The program without its directory, and its arguments; those with spaces in quotes.
pub(crate) fn command_words(command: &[String]) -> String {
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let name = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program);
    // An argument may be a program of many lines; its first line stands for it.
    let words = arguments.iter().map(|word| quoted_if_several(terminal::first_line(word)));
    std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// An argument, in quotes if it would not look like one. What cannot be shown is escaped when it is printed.
fn quoted_if_several(word: String) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) { format!("'{word}'") } else { word }
}

/// `exit 0`, `killed by signal 9`, `still running`.
pub(crate) fn exit_words(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => "exit unknown".to_owned(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("killed by signal {signal}"),
        Some(view::ExitView { code, .. }) => format!("exit {}", code.unwrap_or_default()),
    }
}
