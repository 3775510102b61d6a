//! Whether two builds of longpole give the same answers: JSON of every fixture and of every recording below the named folders.
//!
//! `LONGPOLE_KEEP_STORES=DIR cargo test --test stories` leaves the stores of all stories in `DIR`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::paths::{root, target_dir};

/// The commands for each recording. `diff` compares a recording with itself and with the one before it.
const QUESTIONS: [&[&str]; 14] = [
    &["poles"],
    &["show"],
    &["tree"],
    &["span", "p1"],
    &["span", "p2"],
    &["span", "s1"],
    &["span", "s2"],
    &["processes"],
    &["threads"],
    &["top"],
    &["top", "--total"],
    &["top", "--off-cpu"],
    &["flame"],
    &["flame", "--off-cpu"],
];

/// Keys of the JSON answers whose values are sentences: two answers that differ in these alone state the same facts.
const KEYS_OF_WORDS: [&str; 8] = ["text", "detail", "pieces", "why", "meaning", "message", "hint", "not_sealed_cause"];

/// Compares the builds; `folders` hold stores. Fails if an answer differs in more than its words.
pub(crate) fn compare(before: &str, after: &str, folders: &[&str]) -> Result<()> {
    let builds = [before, after].map(|path| std::fs::canonicalize(path).with_context(|| format!("{path} is not there")));
    let [before, after] = builds;
    let builds = [before?, after?];
    let scratch = target_dir().join("compare");
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    let mut tally = Tally::default();
    for file in files_below(&root().join("fixtures"))? {
        let ask = |build: usize, words: &[&str]| ask(&builds[build], &scratch.join("files"), words, &file);
        compare_all(&file.display().to_string(), ask, &mut tally);
    }
    for folder in folders {
        for catalog in files_below(Path::new(folder))?.iter().filter(|file| file.ends_with("catalog.sqlite")) {
            let Some(store) = catalog.parent() else { continue };
            compare_store(&builds, store, &scratch.join("store"), &mut tally)?;
        }
    }
    eprint!("{}", tally.report());
    if tally.differing.is_empty() { Ok(()) } else { bail!("{} answers differ", tally.differing.len()) }
}

/// Answers counted, and those that differ.
#[derive(Default)]
struct Tally {
    same: u64,
    reworded: u64,
    refused: u64,
    /// Where the first difference is, by question.
    differing: BTreeMap<String, String>,
}

impl Tally {
    fn report(&self) -> String {
        let mut text = String::new();
        for (question, difference) in &self.differing {
            let _ = writeln!(text, "{question}\n{difference}");
        }
        let differing = self.differing.len();
        let _ = writeln!(
            text,
            "{} answers are equal, {} differ in words only, {differing} in facts, {} are refused by both builds",
            self.same, self.reworded, self.refused
        );
        text
    }
}

/// Compares every recording of a store. Each build reads a copy of its own: reading one seals what is not sealed yet.
fn compare_store(builds: &[PathBuf; 2], store: &Path, scratch: &Path, tally: &mut Tally) -> Result<()> {
    let copies = ["before", "after"].map(|name| scratch.join(name));
    for copy in &copies {
        if copy.exists() {
            std::fs::remove_dir_all(copy)?;
        }
        std::fs::create_dir_all(scratch)?;
        // What follows must not change the stores that a story left.
        let copied = Command::new("cp").arg("-a").arg(store).arg(copy).status()?;
        if !copied.success() {
            bail!("could not copy {}", store.display());
        }
    }
    let listed = Command::new(&builds[1]).arg("--store").arg(&copies[1]).arg("ls").output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let is_number = |name: &&str| name.strip_prefix('r').is_some_and(|number| number.parse::<u64>().is_ok());
    let mut names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).filter(is_number).collect();
    names.sort_unstable();
    let mut earlier = None;
    for name in names {
        let about = |build: usize, words: &[&str]| ask(&builds[build], &copies[build], words, Path::new(name));
        compare_all(&format!("{} {name}", store.display()), about, tally);
        let other = earlier.replace(name).unwrap_or(name);
        let diff = |build: usize, words: &[&str]| about(build, &[words, &[other]].concat());
        compare_one(&format!("{} {other} {name}", store.display()), &["diff"], diff, tally);
    }
    Ok(())
}

fn compare_all(what: &str, ask: impl Fn(usize, &[&str]) -> Result<Output>, tally: &mut Tally) {
    for words in QUESTIONS {
        compare_one(what, words, &ask, tally);
    }
}

/// `ask` asks the first build or the second.
fn compare_one(what: &str, words: &[&str], ask: impl Fn(usize, &[&str]) -> Result<Output>, tally: &mut Tally) {
    let question = format!("{}: {what}", words.join(" "));
    let outputs = [0, 1].map(|build| ask(build, words));
    let [Ok(before), Ok(after)] = outputs else {
        tally.differing.insert(question, "a build could not be started".to_owned());
        return;
    };
    if before.stdout != after.stdout {
        let [facts_before, facts_after] = [&before, &after].map(|output| facts(&output.stdout));
        if facts_before == facts_after {
            tally.reworded += 1;
        } else {
            tally.differing.insert(question, first_difference(&facts_before, &facts_after));
        }
    } else if before.stdout.is_empty() && !before.status.success() {
        tally.refused += 1;
    } else {
        tally.same += 1;
    }
}

/// Asks a build, as JSON, with the recording or file behind the question.
fn ask(build: &Path, store: &Path, words: &[&str], recording: &Path) -> Result<Output> {
    let mut command = Command::new(build);
    command.arg("--store").arg(store).args(words).arg(recording).args(["--format", "json"]);
    command.env_remove("LONGPOLE_STORE");
    Ok(command.output()?)
}

/// A JSON answer without its sentences; any other answer as it is.
fn facts(answer: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(answer) else { return answer.to_vec() };
    drop_words(&mut value);
    value.to_string().into_bytes()
}

fn drop_words(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !KEYS_OF_WORDS.contains(&key.as_str()));
            fields.values_mut().for_each(drop_words);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_words),
        _ => {}
    }
}

/// Both answers from a little before the first byte that differs.
fn first_difference(before: &[u8], after: &[u8]) -> String {
    let at = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let around = |text: &[u8]| String::from_utf8_lossy(&text[at.saturating_sub(80)..text.len().min(at + 80)]).replace('\n', " ");
    format!("  before … {}\n  after  … {}", around(before), around(after))
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                out.push(entry.path());
            }
        }
    }
    out.sort();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_its_surroundings() {
        let (before, after) = (format!("{}1{}", "a".repeat(100), "b".repeat(100)), format!("{}2{}", "a".repeat(100), "b".repeat(100)));
        let shown = first_difference(before.as_bytes(), after.as_bytes());
        let part = |digit| format!("… {}{digit}{}", "a".repeat(80), "b".repeat(79));
        assert_eq!(shown, format!("  before {}\n  after  {}", part(1), part(2)));
        assert_eq!(first_difference(b"a", b"ab"), "  before … a\n  after  … ab");
    }

    #[test]
    fn sentences_are_no_facts() {
        let [before, reworded, slower] = [("slow", 1), ("it is slow", 1), ("slow", 2)]
            .map(|(why, saves)| facts(format!("{{\"poles\": [{{\"why\": \"{why}\", \"saves\": {saves}}}]}}").as_bytes()));
        assert_eq!(before, reworded);
        assert_ne!(before, slower);
    }
}
