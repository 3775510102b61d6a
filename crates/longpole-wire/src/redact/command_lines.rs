//! The words of the command lines in a text, as a shell reads them or as programs print them.
//!
//! ```text
//! sh -c "mysql -phunter2 -e 'select 1'" && docker login -p hunter2
//!        a command inside of another       one behind it
//! ```

use std::ops::Range;

use super::commands::{credentials, of_config, runs_one};
use super::known_names::Names;
use super::mask::is_redacted;
use super::quotes::{closing, continuation, shell_end};

/// Words that are judged of one command line.
const WORDS_MAX: usize = 4096;

/// Command lines inside of quotes: `sh -c "mysql -p…"`.
const QUOTES_MAX: usize = 3;

/// Credentials of command lines in a text.
pub(super) fn of_text(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    let mut todo = vec![(0..text.len(), 0)];
    while let Some((range, depth)) = todo.pop() {
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut unclosed = Unclosed::default();
        let mut at = range.start;
        names.steps.spend(range.len());
        if names.steps.is_spent() {
            return;
        }
        loop {
            let next = word(text, at, range.end, &mut unclosed);
            let separates = next
                .as_ref()
                .is_none_or(|(next, _)| has_line_end(&text[at..next.start]) || ["&&", "||", "|", ";"].contains(&&text[next.clone()]));
            if separates || words.len() == WORDS_MAX {
                judge(text, &words, names, found);
                words.clear();
            }
            let Some((next, behind)) = next else { break };
            at = behind;
            let quoted = text[..next.start].ends_with(['"', '\'', '`']);
            if quoted && depth < QUOTES_MAX && (text[next.clone()].contains(" -") || runs_one(&text[next.clone()], true, &mut names.steps))
            {
                todo.push((next.clone(), depth + 1));
            }
            if !["&&", "||", "|", ";"].contains(&&text[next.clone()]) {
                words.push(next);
            }
        }
    }
}

fn judge(text: &str, words: &[Range<usize>], names: &mut Names, found: &mut Vec<Range<usize>>) {
    let texts: Vec<&str> = words.iter().map(|word| &text[word.clone()]).collect();
    let in_words = credentials(&texts, true, names).into_iter();
    let in_words = in_words.map(|(word, range)| words[word].start + range.start..words[word].start + range.end);
    let of_config = of_config(&texts, names);
    let of_config = of_config.first().zip(of_config.last()).map(|(first, last)| words[*first].start..words[*last].end);
    for place in in_words.chain(of_config) {
        if !place.is_empty() && !is_redacted(text, &place) {
            found.push(place);
        }
    }
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

/// Whether a command ends in this text, which stands between two words: at a line end without a mark that the line goes on.
fn has_line_end(between: &str) -> bool {
    let bytes = between.as_bytes();
    let mut ends = (0..bytes.len()).filter(|at| bytes[*at] == b'\n');
    ends.any(|end| {
        let mark = end.saturating_sub(if bytes[..end].ends_with(b"\r") { 2 } else { 1 });
        continuation(bytes, mark).is_none()
    })
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

/// The next word of a command line, as a shell writes it or in a list (`['a', 'b c']`, `[a b]`), and the place behind its quotes.
fn word(text: &str, from: usize, to: usize, unclosed: &mut Unclosed) -> Option<(Range<usize>, usize)> {
    let bytes = &text.as_bytes()[..to];
    // Quotes and brackets around words, and what parts them in a list; a text without a newline is one line.
    let mut at = from;
    loop {
        match bytes.get(at)? {
            b'\\' | b'^' | b'`' if let Some(length) = continuation(bytes, at) => at += length,
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() || b",[](){}".contains(byte) => at += 1,
            quote @ (b'"' | b'\'' | b'`') => {
                let inside = at + 1;
                match unclosed.closing(bytes, inside, *quote) {
                    Some(0) | None => at += 1,
                    Some(length) if is_around_list(bytes, at, length) => at += 1,
                    Some(length) => {
                        let (end, behind) = shell_end(bytes, inside + length);
                        return Some((inside..end, behind));
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
            b',' | b']' | b')' | b'}' if bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || b",[](){}".contains(next)) => {
                break;
            }
            _ => at += 1,
        }
    }
    // A separator that stands alone.
    let end = if at == start { at + 1 } else { at };
    (end <= to).then_some((start..end, end))
}
