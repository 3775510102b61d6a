//! A command and how it ended, in a few words.

use longpole_server::view;

use crate::terminal::{self, cut, fit};

/// [`command_words`] of at most so many characters: of a program given as text the beginning says most, of others both ends.
pub(crate) fn fit_command(command: &[String], width: usize) -> String {
    let words = command_words(command);
    if command.iter().any(|word| word.contains('\n')) { cut(&words, width) } else { fit(&words, width) }
}

/// The command as it is known by: its program without the folder, and its arguments.
pub(crate) fn command_words(command: &[String]) -> String {
    let Some((program, arguments)) = command.split_first() else { return String::new() };
    let name = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program);
    // A program given as text has many lines; each argument is known by its first.
    let words = arguments.iter().map(|word| terminal::first_line(word));
    std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// `exit 0`, `killed by signal 9`, `still running`.
pub(crate) fn exit_words(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => "no exit seen".to_owned(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("killed by signal {signal}"),
        Some(view::ExitView { code, .. }) => format!("exit {}", code.unwrap_or_default()),
    }
}
