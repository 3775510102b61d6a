//! Texts that are kept once.
//!
//! ```text
//! span 1   name ──┐       span 2   name ──┐
//!                 └─► create ◄────────────┘      one memory, as long as anybody holds it
//! ```
//!
//! A million spans have a few hundred names, keys and values among them. A [`Text`] is as large as a pointer, and to copy it is
//! to count; [`Texts`] gives out the same one for the same words.
//!
//! Values that never come again would fill the memory, so texts are forgotten. How many of those come again is known of a sample of them, by
//! their hashes; where they are many, more texts are remembered.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use crate::fast_hash::FastState;

/// Texts that are remembered at first. Programs have some thousand that come again; when values that never do have filled the memory,
/// it is emptied, and those that come again are soon there.
const TEXTS_MAX: usize = 1 << 14;

/// Where more than a part of what is made was made before, twice as many texts are remembered.
const AGAIN_PART: u64 = 4;

/// How often what is made comes to what the texts take, each once, in any order: four thirds, of them and of those that are
/// made again until that shows, which are as many as are remembered, at most twice of what there are.
pub const MADE_TIMES_MAX: u64 = 4;

/// One text in 64 is in the sample: to sample all of them costs as much as to make a text.
const SAMPLE_PART: u64 = 64;

/// What a text takes beside its characters: the pointer to them with the counts, what allocations are rounded up by, and a place among the
/// known.
const TEXT_BYTES: u64 = 64;

/// Longer texts are not remembered: they are messages and payloads, and seldom come again.
const TEXT_BYTES_MAX: usize = 128;

/// A text that does not change, shared by all its copies. Empty texts take no memory.
#[derive(Clone, Default)]
pub struct Text(Option<Arc<Box<str>>>);

impl Text {
    /// The empty text.
    pub const fn new() -> Self {
        Text(None)
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().map_or("", |text| text)
    }
}

/// Gives out texts, the same one for the same words.
#[derive(Debug)]
pub struct Texts {
    known: HashSet<Text, FastState>,
    known_max: usize,
    sample: HashSample,
    made_bytes: u64,
}

impl Default for Texts {
    fn default() -> Self {
        Texts { known: HashSet::default(), known_max: TEXTS_MAX, sample: HashSample::default(), made_bytes: 0 }
    }
}

impl Texts {
    /// This text; mostly one that was given out before.
    pub fn text(&mut self, words: &str) -> Text {
        if words.is_empty() || words.len() > TEXT_BYTES_MAX {
            return Text::from(words);
        }
        if let Some(known) = self.known.get(words) {
            return known.clone();
        }
        let text = Text::from(words);
        self.remember(text.clone());
        text
    }

    /// Counts an existing text as [`Texts::text`] would. Returns whether it was known.
    pub fn count(&mut self, text: &Text) -> bool {
        let is_known = text.is_empty() || text.len() > TEXT_BYTES_MAX || self.known.contains(text);
        if !is_known {
            self.remember(text.clone());
        }
        is_known
    }

    /// Bytes of all texts that were made, except those too long to be remembered.
    pub fn made_bytes(&self) -> u64 {
        self.made_bytes
    }

    fn remember(&mut self, text: Text) {
        let bytes = text.len() as u64 + TEXT_BYTES;
        self.made_bytes += bytes;
        self.sample.add(self.known.hasher().hash_one(text.as_str()), bytes);
        if self.known.len() == self.known_max {
            match self.sample.again_bytes > self.sample.made_bytes / AGAIN_PART {
                true => self.known_max *= 2,
                false => self.known.clear(),
            }
        }
        self.known.insert(text);
    }
}

/// Some of the texts that were made, by their hashes, which nobody can choose.
#[derive(Debug, Default)]
struct HashSample {
    hashes: HashSet<u64, FastState>,
    made_bytes: u64,
    /// Texts in the sample that had been made before.
    again_bytes: u64,
}

impl HashSample {
    fn add(&mut self, hash: u64, bytes: u64) {
        if (hash >> 32).is_multiple_of(SAMPLE_PART) {
            self.made_bytes += bytes;
            self.again_bytes += if self.hashes.insert(hash) { 0 } else { bytes };
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text((!text.is_empty()).then(|| Arc::new(text.into())))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text((!text.is_empty()).then(|| Arc::new(text.into())))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        let is_same = matches!((&self.0, &other.0), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        is_same || self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<Text> for Cow<'_, str> {
    fn eq(&self, other: &Text) -> bool {
        **self == *other.as_str()
    }
}

impl PartialEq<Text> for str {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other)
    }
}

impl Hash for Text {
    // As a `str`, so that a set of texts finds one by its characters.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(a: &Text, b: &Text) -> bool {
        std::ptr::eq(a.as_str(), b.as_str())
    }

    #[test]
    fn the_same_words_are_kept_once() {
        let mut texts = Texts::default();
        let [first, second, other] = ["create", "create", "read"].map(|words| texts.text(words));
        assert!(shared(&first, &second) && !shared(&first, &other));
        assert_eq!((first.as_str(), other.as_str()), ("create", "read"));
        assert_eq!(texts.text(""), Text::new());
        assert_eq!(size_of::<Text>(), size_of::<usize>());
    }

    #[test]
    fn values_that_never_come_again_do_not_fill_the_memory_and_names_are_shared_after_them() {
        let mut texts = Texts::default();
        for number in 0..3 * TEXTS_MAX {
            assert_eq!(texts.text(&number.to_string()), number.to_string());
            assert!(texts.known.len() <= TEXTS_MAX);
        }
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(texts.text(&long), long);
        assert!(!texts.known.contains(long.as_str()));
        assert!(shared(&texts.text("create"), &texts.text("create")));
    }

    #[test]
    fn texts_that_go_round_are_made_a_few_times_and_values_beside_them_once() {
        let mut texts = Texts::default();
        let round = TEXTS_MAX + 6;
        for number in 0..30 * round {
            let words = format!("{:0100}", number % round);
            assert_eq!(texts.text(&words), words);
        }
        let made = texts.made_bytes() / (100 + TEXT_BYTES);
        assert!((round as u64..=MADE_TIMES_MAX * round as u64).contains(&made), "{made} made of {round}");
        // They are remembered by now. Values that come once raise it until they are three quarters of all.
        for number in 0..300_000 {
            texts.text(&format!("value {number}"));
        }
        assert!(texts.known_max <= 8 * TEXTS_MAX, "{}", texts.known_max);
    }
}
