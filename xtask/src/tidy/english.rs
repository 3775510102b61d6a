//! Plain English in pages, comments, messages and names of functions: what a search can find of the idioms that `STYLE.md` rules out.

use super::source::Source;
use super::{File, House};

/// Words in a row, lower case, with alternatives between bars, and what to write instead. `^` is the beginning of a
/// sentence, which the next word shows by its capital.
const PATTERNS: &[(&str, &str)] = &[
    ("is|are|was|were|be|been|being asked|told|said", "report, print, query, or name who does it"),
    ("asked for", "request, or name the flag"),
    ("looked at", "inspect, sample or read"),
    ("not known to", "unknown, or say who does not know"),
    ("what|who is|are|was|were known|seen|had|there", "subject first"),
    ("what|who is|are|was|were not known|seen|had|there", "subject first"),
    ("so many", "give the number"),
    ("for a while", "give the time"),
    ("now and then", "give the rate"),
    ("he|him|his|himself", "they, their, or the user"),
    ("of which|whom|whose", "two sentences, or whose"),
    ("^ of", "subject first"),
    ("^ who", "subject first: a thread that, a user who"),
    ("at the most|least", "at most, at least"),
    ("but for", "except"),
    ("in place of", "instead of"),
    ("is|are|was|were|be|been had", "available, or name who has it"),
    ("in whatever", "name it, or any"),
];

/// English sentences that begin like one of the patterns.
const ALLOWED: &[&str] = &["^ of course"];

/// This file, which holds the patterns.
const PATTERNS_FILE: &str = "xtask/src/tidy/english.rs";

/// Pages, comments, strings, and names of functions that hold one of the patterns.
pub(super) fn english(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for file in house.files.iter().filter(|file| file.path != PATTERNS_FILE) {
        for Prose { line, text } in prose(file) {
            for (offset, phrase, instead) in idioms(&text) {
                let line = line + text[..offset].matches('\n').count();
                found.push(file.finding(line, &format!("`{phrase}`: {instead}")));
            }
        }
    }
    found
}

/// Text that people read, and the number of its first line.
struct Prose {
    line: usize,
    text: String,
}

fn prose(file: &File) -> Vec<Prose> {
    match file.path.rsplit_once('.').map(|(_, end)| end) {
        Some("md") => vec![Prose { line: 1, text: without_code(&file.text) }],
        Some("toml") => {
            let comments = file.text.lines().map(|line| line.split_once('#').map_or("", |(_, comment)| comment));
            vec![Prose { line: 1, text: comments.collect::<Vec<_>>().join("\n") }]
        }
        Some("rs" | "ts" | "tsx" | "mjs" | "css") => {
            let Source { code, comments, strings, .. } = Source::new(&file.text);
            let mut all: Vec<Prose> = comments.into_iter().map(|(line, text)| Prose { line, text: without_code(&text) }).collect();
            all.extend(strings.into_iter().map(|(line, text)| Prose { line, text }));
            for (index, line) in code.lines().enumerate() {
                let names = line.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
                // Behind a word, because a name is no sentence.
                all.extend(names.map(|name| Prose { line: index + 1, text: format!("fn {}", name.replace('_', " ")) }));
            }
            all
        }
        _ => Vec::new(),
    }
}

/// The text with fenced blocks, code spans and quotations blanked.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            fence = !fence;
            out.push('\n');
        } else if fence {
            out.push('\n');
        } else {
            out.push_str(line);
        }
    }
    for quote in ['`', '"'] {
        let mut inside = false;
        let mut blanked = String::with_capacity(out.len());
        for line in out.split_inclusive('\n') {
            // A quotation may go over the end of a line, but not over that of a paragraph.
            inside &= !line.trim().is_empty();
            for c in line.chars() {
                inside ^= c == quote;
                blanked.push(if (inside || c == quote) && c != '\n' { '…' } else { c });
            }
        }
        out = blanked;
    }
    out
}

/// The idioms in a text: where each begins, its words, and what to write instead.
fn idioms(text: &str) -> Vec<(usize, String, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let matched = |pattern: &str| matches(&words[at..], pattern);
        let idiom = PATTERNS.iter().find_map(|(pattern, instead)| Some((matched(pattern)?, *instead)));
        match idiom.filter(|_| !ALLOWED.iter().any(|allowed| matched(allowed).is_some())) {
            Some((length, instead)) => {
                let phrase: Vec<&str> = words[at..at + length].iter().map(|word| word.text.as_str()).filter(|word| *word != "^").collect();
                found.push((words[at + length - phrase.len()].offset, phrase.join(" "), instead));
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// How many words the pattern takes at the beginning of `words`.
fn matches(words: &[Word], pattern: &str) -> Option<usize> {
    let mut length = 0;
    for alternatives in pattern.split(' ') {
        let word = words.get(length)?;
        if !alternatives.split('|').any(|alternative| alternative == word.text) {
            return None;
        }
        length += 1;
    }
    let begins_a_sentence = words[0].text != "^" || words[1].is_capital;
    // A question is a question.
    let is_question = words.first().is_some_and(|word| word.text == "^")
        && words[1..].iter().find(|word| matches!(word.text.as_str(), "^" | "?")).is_some_and(|word| word.text == "?");
    (begins_a_sentence && !is_question).then_some(length)
}

struct Word {
    offset: usize,
    /// Lower case; `^` where a sentence begins, `?` where a question ends.
    text: String,
    is_capital: bool,
}

impl Word {
    fn new(offset: usize, text: &str) -> Word {
        Word { offset, text: text.to_lowercase(), is_capital: text.starts_with(char::is_uppercase) }
    }
}

/// Words in a row. What a row of them cannot go over is a word of its own.
fn words(text: &str) -> Vec<Word> {
    let mut words = vec![Word::new(0, "^")];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || "_'’-".contains(c))).unwrap_or(rest.len());
        if length > 0 && rest.starts_with(char::is_alphanumeric) {
            words.push(Word::new(at, &rest[..length]));
            at += length;
            continue;
        }
        let c = rest.chars().next().unwrap_or(' ');
        let after = &rest[c.len_utf8()..];
        let begins = match c {
            '.' | '!' | '?' => after.starts_with(char::is_whitespace),
            '\n' => after.trim_start_matches([' ', '>']).starts_with(['\n', '#', '-', '*', '|']),
            _ => false,
        };
        if c == '?' {
            words.push(Word::new(at, "?"));
        }
        if begins {
            words.push(Word::new(at, "^"));
        } else if !c.is_whitespace() && !"*([>#-".contains(c) {
            words.push(Word::new(at, &rest[..c.len_utf8()]));
        }
        at += c.len_utf8();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        idioms(&without_code(text)).into_iter().map(|(_, phrase, _)| phrase).collect()
    }

    #[test]
    fn an_idiom_is_found_over_lines_and_not_over_sentences() {
        assert_eq!(found("What a user is\nasked for. He waits so\n many times."), ["is asked", "he", "so many"]);
        assert!(found("It is. Asked questions. `is told`, and \"was said\".").is_empty());
    }

    #[test]
    fn a_genitive_in_front_is_found_and_a_question_is_none() {
        assert_eq!(found("- Of a pipeline the part is named.\n- Of course.\n\n# Who waits"), ["of", "who"]);
        assert!(found("Who waits for whom? That it is one of them.").is_empty());
    }
}
