//! Passwords that a command line writes into the standard input of a program.
//!
//! ```text
//! echo ann:hunter2 | sudo chpasswd               the command before the pipe
//! docker login --password-stdin <<< hunter2      a word behind `<<<`
//! chpasswd <<EOF\nann:hunter2\nEOF               the lines up to the word behind `<<`
//! ```

use std::ops::Range;

use super::commands::{is_runner, program};
use super::value_forms::is_nothing;

/// Words that make a program read a credential. The first one is a program or an option.
const READERS: &[&[&str]] = &[
    &["--password-stdin"],
    &["--passphrase-fd"],
    &["--with-token"],
    &["chpasswd"],
    &["docker", "secret", "create"],
    &["gcloud", "secrets"],
    &["gh", "secret", "set"],
    &["htpasswd", "-i"],
    &["openssl", "-stdin"],
    &["openssl", "stdin"],
    &["passwd", "--stdin"],
    &["podman", "secret", "create"],
    &["pulumi", "config", "set", "--secret"],
    &["smbpasswd", "-s"],
    &["sudo", "-S"],
    &["vault", "login", "-"],
    &["vncpasswd", "-f"],
    &["wrangler", "secret", "put"],
];

/// Programs that read one whatever their options are. Their names also stand behind `grep`, so only the program that runs counts.
const READING_PROGRAMS: &[&str] = &["cryptsetup", "kinit", "passwd"];

/// Programs that write their words.
const WRITERS: &[&str] = &["echo", "printf", "yes"];

/// How a program reads a credential.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// All of it.
    All,
    /// Behind the colon of each line.
    BehindColon,
}

/// The word that runs: behind `sudo`, variables and options.
fn command<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_before = |word: &str| is_runner(word) || word.starts_with('-') || word.contains('=');
    words.iter().find(|word| !is_before(word)).map(|word| program(word))
}

/// Whether a command of these words reads a credential, and how.
pub(super) fn reads(words: &[&str]) -> Option<Reads> {
    let has = |known: &[&str]| {
        let mut rest = words.iter();
        known.iter().all(|known| rest.any(|word| word == known || program(word) == *known))
    };
    if has(&["chpasswd"]) {
        return Some(Reads::BehindColon);
    }
    let reads = READERS.iter().any(|known| has(known)) || command(words).is_some_and(|command| READING_PROGRAMS.contains(&command));
    reads.then_some(Reads::All)
}

/// The parts of the words of the commands before a pipe that such a program reads: which word, and where in it.
pub(super) fn written(words: &[&str], reads: Reads) -> Vec<(usize, Range<usize>)> {
    let is_writer = |word: &str| WRITERS.contains(&program(word));
    // Before it, a log may say which step it is: `Step 3/9 : RUN echo …`.
    let Some(first) = words.iter().position(|word| is_writer(word)) else { return Vec::new() };
    let is_format = |word: &str| word.contains("%s");
    let is_option = |word: &str| matches!(word, "-n" | "-e" | "-E" | "-ne" | "-en" | "--");
    let is_data = |word: &str| !is_option(word) && !is_format(word) && !is_writer(word);
    let data = words.iter().enumerate().skip(first).filter(|(_, word)| is_data(word));
    data.filter_map(|(at, word)| part(word, reads).map(|range| (at, range))).collect()
}

/// The part of a word or a line that is the credential.
pub(super) fn part(word: &str, reads: Reads) -> Option<Range<usize>> {
    let start = if reads == Reads::BehindColon { word.find(':').map_or(0, |colon| colon + 1) } else { 0 };
    (!is_nothing(&word[start..])).then_some(start..word.len())
}

/// The word behind `<<<`, which the program reads.
pub(super) fn here_word(words: &[&str], reads: Reads) -> Option<(usize, Range<usize>)> {
    let at = words.iter().position(|word| word.starts_with("<<<"))?;
    let (at, from) = if words[at].len() > "<<<".len() { (at, "<<<".len()) } else { (at + 1, 0) };
    let range = part(words.get(at)?.get(from..)?, reads)?;
    Some((at, range.start + from..range.end + from))
}

/// The word that ends the lines which a program reads: `EOF` behind `<<EOF`.
pub(super) fn here_end<'a>(words: &[&'a str]) -> Option<&'a str> {
    let at = words.iter().position(|word| word.starts_with("<<") && !word.starts_with("<<<"))?;
    let attached = words[at].trim_start_matches(['<', '-']);
    let end = if attached.is_empty() { words.get(at + 1)? } else { attached };
    Some(end.trim_matches(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_read_a_credential_are_known_by_their_words() {
        for line in ["chpasswd -e", "sudo /usr/sbin/chpasswd", "A=1 sudo passwd ann", "sudo -S apt update", "docker login --password-stdin"]
        {
            assert!(reads(&line.split(' ').collect::<Vec<_>>()).is_some(), "{line}");
        }
        for line in ["grep passwd", "sudo apt update", "docker secret ls", "tee -a cryptsetup.log", "passwdqc"] {
            assert!(reads(&line.split(' ').collect::<Vec<_>>()).is_none(), "{line}");
        }
    }
}
