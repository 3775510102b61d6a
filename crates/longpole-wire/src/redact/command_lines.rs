//! The words of the command lines in a text, as a shell reads them or as programs print them.
//!
//! ```text
//! deploy --level "$(mysql -phunter2 -e 'select 1')" && docker login -p hunter2
//!                   a command inside of another          one behind it
//! ```

use std::ops::Range;

use super::commands::{credentials, of_config, runs_one};
use super::escapes::unescaped;
use super::known_names::Names;
use super::mask::is_redacted;
use super::quotes::{closing, continuation, shell_end};
use super::standard_input::{Reads, here_end, here_word, part, reads, written};

/// Words that are judged of one command line.
const WORDS_MAX: usize = 4096;

/// Command lines inside of quotes: `sh -c "mysql -p…"`.
const QUOTES_MAX: usize = 3;

/// Credentials of command lines in a text.
pub(super) fn of_text(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    in_quotes(text, 0, names, found);
}

/// The same of a text in this many quotes.
fn in_quotes(text: &str, quotes: usize, names: &mut Names, found: &mut Vec<Range<usize>>) {
    let mut todo = vec![(0..text.len(), quotes)];
    while let Some((range, depth)) = todo.pop() {
        let mut line = Line::default();
        let mut unclosed = Unclosed::default();
        let mut at = range.start;
        names.steps.spend(range.len());
        if names.steps.is_spent() {
            return;
        }
        loop {
            let next = word(text, at, range.end, !line.around.is_empty(), &mut unclosed);
            let start = next.as_ref().map_or(range.end, |next| next.range.start);
            line.pass(text, at..start, names, found);
            let Some(Word { range: next, behind, quoted }) = next else { break };
            at = behind;
            if ["&&", "||", "|", ";"].contains(&&text[next.clone()]) {
                line.end_command(text, &text[next], names, found);
                continue;
            }
            let inside = if quoted { Some(next.clone()) } else { quoted_part(text, &next) };
            if let Some(inside) = inside.filter(|_| depth < QUOTES_MAX)
                && may_be_command(&text[inside.clone()], names)
            {
                if has_escaped_quotes(&text[inside.clone()]) {
                    of_escaped(text, inside, depth + 1, names, found);
                } else {
                    todo.push((inside, depth + 1));
                }
            }
            line.command.words.push(next);
            if line.command.words.len() == WORDS_MAX {
                line.end_command(text, "", names, found);
            }
        }
        line.end(text, names, found);
    }
}

/// Whether what stands in quotes has quotes of its own, which a backslash keeps apart from those around it.
fn has_escaped_quotes(inside: &str) -> bool {
    inside.contains("\\\"") || inside.contains("\\'")
}

/// Credentials of a command line in quotes, `{"cmd": "mysql -p\"hunter2\" shop"}`: its words are those that stand there without the escapes.
fn of_escaped(text: &str, range: Range<usize>, quotes: usize, names: &mut Names, found: &mut Vec<Range<usize>>) {
    names.steps.spend(range.len());
    let Some((plain, origin)) = unescaped(&text[range.clone()]) else { return };
    let mut inside = Vec::new();
    in_quotes(&plain, quotes, names, &mut inside);
    for part in inside {
        let place = range.start + origin[part.start]..range.start + origin[part.end];
        if !place.is_empty() && !is_redacted(text, &place) {
            found.push(place);
        }
    }
}

/// Whether what stands in quotes may be a command line.
fn may_be_command(inside: &str, names: &mut Names) -> bool {
    inside.contains(" -")
        || inside.contains("=-")
        || inside.starts_with('-') && inside.contains(' ')
        || inside.contains(" set ")
        || runs_one(inside, true, &mut names.steps)
}

/// What stands in the quotes that a word ends with: `ARGS="--level 3"`.
fn quoted_part(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let quote = text[word.clone()].chars().next_back().filter(|last| matches!(last, '"' | '\''))?;
    let open = word.start + text[word.clone()].find(quote)?;
    (open > word.start && open + 1 < word.end).then(|| open + 1..word.end - 1)
}

/// A command whose words are read one by one.
#[derive(Default)]
struct Command {
    words: Vec<Range<usize>>,
    /// Brackets that are open in it.
    brackets: u32,
    /// Words of the commands before it in these brackets: `(echo a; echo b) | …`.
    grouped: Vec<Range<usize>>,
    /// Words of the commands that write into its standard input.
    writers: Vec<Range<usize>>,
}

/// A command line that is read word by word, and the commands around the present one: `docker login -p "$(…)"`.
#[derive(Default)]
struct Line {
    command: Command,
    /// Commands in which a substitution is open, and its place.
    around: Vec<(usize, Command)>,
    /// The lines up to this word are the standard input of a command.
    here: Option<(String, Reads)>,
}

impl Line {
    /// Goes past what stands between two words.
    fn pass(&mut self, text: &str, between: Range<usize>, names: &mut Names, found: &mut Vec<Range<usize>>) {
        let bytes = &text.as_bytes()[..between.end];
        let mut at = between.start;
        while at < bytes.len() {
            let mut length = 1;
            match bytes[at] {
                b'$' | b'<' | b'>' if substitutes(&bytes[at..]) => {
                    self.around.push((at, std::mem::take(&mut self.command)));
                    length = 2;
                }
                b'(' => self.command.brackets += 1,
                b')' if self.command.brackets > 0 => self.command.brackets -= 1,
                b')' => {
                    if let Some((open, command)) = self.around.pop() {
                        judge(text, &self.command, names, found);
                        self.command = command;
                        // It is a word of the command around it.
                        self.command.words.push(open..at + 1);
                    }
                }
                b'\n' => self.end_command(text, "", names, found),
                _ => length = continuation(bytes, at).unwrap_or(1),
            }
            at += length;
        }
    }

    /// Judges the words of the present command, behind which this separator stands.
    fn end_command(&mut self, text: &str, separator: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
        let command = &mut self.command;
        if let Some((end, reads)) = self.here.take() {
            if command.words.len() != 1 || text[command.words[0].clone()] != end {
                let parts = command.words.iter().filter_map(|word| part(&text[word.clone()], reads).map(|range| within(word, range)));
                found.extend(parts.filter(|place| !is_redacted(text, place)));
                self.here = Some((end, reads));
            }
            command.words.clear();
            return;
        }
        self.here = judge(text, command, names, found);
        match separator {
            "|" => {
                command.writers = std::mem::take(&mut command.grouped);
                command.writers.append(&mut command.words);
            }
            _ if !separator.is_empty() && command.brackets > 0 => command.grouped.append(&mut command.words),
            _ => {
                command.grouped.clear();
                command.writers.clear();
            }
        }
        command.words.clear();
    }

    fn end(mut self, text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
        self.end_command(text, "", names, found);
        for (_, command) in self.around {
            judge(text, &command, names, found);
        }
    }
}

/// The place in the text of a part of a word.
fn within(word: &Range<usize>, part: Range<usize>) -> Range<usize> {
    word.start + part.start..word.start + part.end
}

/// Finds the credentials of a command. Where lines behind it are its standard input: the word that ends them, and how it reads them.
fn judge(text: &str, command: &Command, names: &mut Names, found: &mut Vec<Range<usize>>) -> Option<(String, Reads)> {
    // The text is taken out as a whole, and each command around an open substitution has all of it for a word.
    if names.steps.is_spent() {
        return None;
    }
    let Command { words, writers, .. } = command;
    let of = |words: &[Range<usize>]| words.iter().map(|word| &text[word.clone()]).collect::<Vec<&str>>();
    let texts = of(words);
    let in_words = credentials(&texts, true, names).into_iter().map(|(word, range)| within(&words[word], range));
    let of_config = of_config(&texts, names);
    let of_config = of_config.first().zip(of_config.last()).map(|(first, last)| words[*first].start..words[*last].end);
    let has_input = !writers.is_empty() || texts.iter().any(|word| word.starts_with("<<"));
    let reads = if has_input { reads(&texts) } else { None };
    let read = reads.into_iter().flat_map(|reads| {
        let written = written(&of(writers), reads).into_iter().map(|(word, range)| within(&writers[word], range));
        written.chain(here_word(&texts, reads).map(|(word, range)| within(&words[word], range))).collect::<Vec<_>>()
    });
    found.extend(in_words.chain(of_config).chain(read).filter(|place| !place.is_empty() && !is_redacted(text, place)));
    reads.and_then(|reads| here_end(&texts).map(|end| (end.to_owned(), reads)))
}

/// Up to where `"`, `'` and a backtick are known to open nothing.
#[derive(Default)]
struct Unclosed([usize; 3]);

impl Unclosed {
    /// How far it is to the quote that closes the one before `at`.
    fn closing(&mut self, bytes: &[u8], at: usize, quote: u8) -> Option<usize> {
        let known = &mut self.0[usize::from(quote == b'\'') + 2 * usize::from(quote == b'`')];
        if at >= *known {
            return match closing(&bytes[at..], quote, 0) {
                Ok(length) => Some(length),
                Err(length) => {
                    *known = at + length + 1;
                    None
                }
            };
        }
        // The search that found none went past here. Two of `'` are one inside of quotes: there the others of an odd number close.
        let more = if quote == b'\'' { bytes[at..].iter().take_while(|byte| **byte == quote).count() } else { 0 };
        (more % 2 == 1).then(|| more - 1)
    }
}

/// Whether the quote that stands here, and another one this far behind it, do not belong together: it is around a list whose items have quotes
/// of their own, as Python prints a command that failed: `Command '['mysql', '-uroot']' returned …`.
fn is_around_list(bytes: &[u8], at: usize, length: usize) -> bool {
    let inside = &bytes[at + 1..at + 1 + length];
    let opens = match inside {
        [b'[' | b'(', .., last] => b"[(, ".contains(last) || matches!(inside[1], b'"' | b'\''),
        [b'[' | b'('] => true,
        _ => false,
    };
    let ends = bytes[..at].ends_with(b"]") && bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || b".,:;".contains(next));
    opens || ends
}

/// The beginning of a substitution: `$(`, `<(`, `>(`.
fn substitutes(rest: &[u8]) -> bool {
    matches!(rest, [b'$' | b'<' | b'>', b'(', ..])
}

/// Whether a pipe without a blank leads into such a program: `echo ann:hunter2|chpasswd`. Elsewhere it is a mark like any other.
fn pipes(behind: &[u8]) -> bool {
    [&b"chpasswd"[..], b"passwd ", b"sudo ", b"docker ", b"podman "].iter().any(|program| behind.trim_ascii_start().starts_with(program))
}

/// A word of a command line.
struct Word {
    range: Range<usize>,
    /// The place behind it and its quotes.
    behind: usize,
    /// It begins in quotes.
    quoted: bool,
}

/// The next word of a command line, as a shell writes it or in a list (`['a', 'b c']`, `[a b]`). Inside of a
/// substitution its bracket ends a word.
fn word(text: &str, from: usize, to: usize, mut substituted: bool, unclosed: &mut Unclosed) -> Option<Word> {
    let bytes = &text.as_bytes()[..to];
    // Quotes and brackets around words, and what parts them in a list; a text without a newline is one line.
    let mut at = from;
    loop {
        match bytes.get(at)? {
            b'\\' | b'^' | b'`' if let Some(length) = continuation(bytes, at) => at += length,
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() || b",[](){}".contains(byte) => at += 1,
            _ if substitutes(&bytes[at..]) => {
                substituted = true;
                at += 2;
            }
            quote @ (b'"' | b'\'' | b'`') => {
                let inside = at + 1;
                match unclosed.closing(bytes, inside, *quote) {
                    Some(0) | None => at += 1,
                    Some(length) if is_around_list(bytes, at, length) => at += 1,
                    Some(length) => {
                        let (end, behind) = shell_end(bytes, inside + length);
                        return Some(Word { range: inside..end, behind, quoted: true });
                    }
                }
            }
            _ => break,
        }
    }
    let start = at;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if let Some(length) = continuation(bytes, at) => at += length,
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => break,
            b';' => break,
            quote @ (b'"' | b'\'') => match unclosed.closing(bytes, at + 1, *quote) {
                // A quote of the list around, or of a part of this word.
                Some(length) if at > start && !is_around_list(bytes, at, length) => at += length + 2,
                _ => break,
            },
            b'`' if at > start && unclosed.closing(bytes, at + 1, b'`').is_some_and(|length| length > 0) => break,
            b')' if substituted => break,
            _ if substitutes(&bytes[at..]) => break,
            b'|' if pipes(&bytes[at + 1..]) => {
                at += usize::from(at == start);
                break;
            }
            b'&' | b'|' if bytes.get(at + 1) == Some(byte) => {
                at += if at == start { 2 } else { 0 };
                break;
            }
            // `ARGS=--level 3`.
            b'=' if matches!(bytes[at + 1..], [b'-', b'-', letter, ..] if letter.is_ascii_alphabetic()) => {
                at += 1;
                break;
            }
            b',' | b']' | b')' | b'}'
                if bytes
                    .get(at + 1)
                    .is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_control() || b",[](){}".contains(next)) =>
            {
                break;
            }
            // The next member of JSON.
            b',' if matches!(bytes[at - 1..], [b'"', _, b'"', ..] | [b'\'', _, b'\'', ..]) => break,
            _ => at += 1,
        }
    }
    // A separator that stands alone.
    let end = if at == start { at + 1 } else { at };
    (end <= to).then_some(Word { range: start..end, behind: end, quoted: false })
}
