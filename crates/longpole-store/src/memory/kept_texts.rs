//! Texts of rows, each kept once: the spans of a program repeat its names, and a prompt or an environment of 65 KB as well.
//!
//! ```text
//!   text of a row ─ short ──────────────────► `Texts`: the same memory, as long as it is remembered; counted when it is made
//!                 └ long ─ where it lies ───► known and equal                  ─► the same memory
//!                        └ hash of all of it ─► known and equal, lies elsewhere ─► the same memory
//!                                             └ new                            ─► counted once
//! ```
//!
//! A page of Parquet holds a text of its dictionary once, so rows that repeat it mostly refer to the same place. Reader and writer
//! count alike, so whatever was written can be read. Short texts reach the reader in another order, and it may have to make more of them, up to
//! `MADE_TIMES_MAX` times as many.

use std::collections::HashSet;

use longpole_model::fast_hash::{FastMap, FastState};
use longpole_model::{MADE_TIMES_MAX, Text, Texts};

/// Longer texts are kept as long as there is somebody who reads.
pub(crate) const SHORT_BYTES_MAX: usize = 128;

/// Texts from here on are looked for where they lie first: to read all of them takes longer than to look.
pub(crate) const PLACED_BYTES_MIN: usize = 1 << 10;

/// Places that are remembered.
const PLACES_MAX: usize = 1 << 14;

/// Long texts that a writer remembers. Those behind them are counted again.
const WRITER_BYTES_MAX: u64 = 64 << 20;

/// Texts that a writer knows by their place, a power of two: a program has some hundred names, and 32 KB stay close to the CPU.
const NAMES_MAX: usize = 1 << 12;

/// Texts that are kept once, and what they take.
#[derive(Debug)]
pub(crate) struct KeptTexts {
    short: Texts,
    long: HashSet<Text, FastState>,
    /// By the address of the text that was passed in. What lies there may have changed, so it is compared.
    at_place: FastMap<usize, Text>,
    long_bytes: u64,
    long_bytes_max: u64,
    uncounted: u64,
    /// Bytes of short texts counted so far.
    short_bytes: u64,
    /// Texts that came again, by their place; they are held, so nothing else comes to lie there. None where nobody writes.
    names: Vec<Text>,
}

impl KeptTexts {
    /// For rows that are read: all of them stay, so all texts do.
    pub(crate) fn of_reader() -> Self {
        KeptTexts::remembering(u64::MAX)
    }

    /// For rows that are written.
    pub(crate) fn of_writer() -> Self {
        KeptTexts::remembering(WRITER_BYTES_MAX)
    }

    fn remembering(long_bytes_max: u64) -> Self {
        KeptTexts {
            short: Texts::default(),
            long: HashSet::default(),
            at_place: FastMap::default(),
            long_bytes: 0,
            long_bytes_max,
            uncounted: 0,
            short_bytes: 0,
            names: Vec::new(),
        }
    }

    /// This text, as it is kept.
    pub(crate) fn text(&mut self, words: &str) -> Text {
        if words.len() <= SHORT_BYTES_MAX { self.short.text(words) } else { self.long(words, || Text::from(words)) }
    }

    /// Counts a text that is written.
    pub(crate) fn count(&mut self, text: &Text) {
        if text.len() >= PLACED_BYTES_MIN {
            self.long(text, || text.clone());
            return;
        }
        if self.names.is_empty() {
            self.names = vec![Text::new(); NAMES_MAX];
        }
        let name = text.as_ptr() as usize / 32 % NAMES_MAX;
        if std::ptr::eq(self.names[name].as_str(), text.as_str()) {
            return;
        }
        let came_again = if text.len() <= SHORT_BYTES_MAX {
            self.short.count(text)
        } else {
            let uncounted = self.uncounted;
            self.long(text, || text.clone());
            self.uncounted == uncounted
        };
        if came_again {
            self.names[name] = text.clone();
        }
    }

    /// Bytes of the texts made since the last call.
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        let short = std::mem::replace(&mut self.short_bytes, self.short.made_bytes());
        std::mem::take(&mut self.uncounted) + self.short_bytes - short
    }

    /// What a reader may count of short texts more than a writer did.
    pub(crate) fn more_in_another_order(&self) -> u64 {
        self.short.made_bytes().saturating_mul(MADE_TIMES_MAX - 1)
    }

    fn long(&mut self, words: &str, new: impl FnOnce() -> Text) -> Text {
        let place = words.as_ptr() as usize;
        let is_placed = words.len() >= PLACED_BYTES_MIN;
        if is_placed
            && let Some(known) = self.at_place.get(&place)
            && (std::ptr::eq(known.as_str(), words) || known == words)
        {
            return known.clone();
        }
        let text = self.long.get(words).cloned().unwrap_or_else(|| {
            if self.long_bytes > self.long_bytes_max {
                self.long.clear();
                self.at_place.clear();
                self.long_bytes = 0;
            }
            let text = new();
            self.long_bytes += words.len() as u64;
            self.uncounted += words.len() as u64;
            self.long.insert(text.clone());
            text
        });
        if is_placed {
            if self.at_place.len() == PLACES_MAX {
                self.at_place.clear();
            }
            self.at_place.insert(place, text.clone());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(a: &Text, b: &Text) -> bool {
        std::ptr::eq(a.as_str(), b.as_str())
    }

    #[test]
    fn a_long_text_is_kept_and_counted_once_wherever_it_lies() {
        for length in [SHORT_BYTES_MAX + 1, PLACED_BYTES_MIN, 65_000] {
            let mut texts = KeptTexts::of_reader();
            let (here, there) = ("x".repeat(length), "x".repeat(length));
            let [first, again, elsewhere] = [&here, &here, &there].map(|words| texts.text(words));
            assert!(shared(&first, &again) && shared(&first, &elsewhere));
            assert_eq!((texts.take_uncounted(), texts.take_uncounted()), (length as u64, 0));
            assert_eq!(texts.text("create"), "create");
            assert_eq!(texts.take_uncounted(), 6 + 64);
            assert_eq!(texts.text("create"), "create");
            assert_eq!(texts.take_uncounted(), 0);
        }
    }

    #[test]
    fn another_text_at_the_same_place_is_another_text() {
        let mut texts = KeptTexts::of_reader();
        let mut bytes = vec![b'x'; 2 * PLACED_BYTES_MIN];
        for byte in *b"abab" {
            bytes.fill(byte);
            let words = std::str::from_utf8(&bytes).unwrap();
            assert_eq!(texts.text(words), words);
        }
        assert_eq!(texts.take_uncounted(), 4 * PLACED_BYTES_MIN as u64);
    }

    #[test]
    fn a_writer_that_forgets_counts_too_much_and_never_too_little() {
        let (mut writer, mut reader) = (KeptTexts::remembering(1 << 20), KeptTexts::of_reader());
        for round in 0..2 {
            for number in 0..20 {
                let text = Text::from(format!("{number:050000}").repeat(2));
                writer.count(&text);
                assert_eq!(reader.text(&text), text);
                assert!(writer.long_bytes <= (1 << 20) + 100_000);
            }
            assert_eq!(reader.take_uncounted(), if round == 0 { 2_000_000 } else { 0 });
            assert!(writer.take_uncounted() >= if round == 0 { 2_000_000 } else { 0 });
        }
    }

    #[test]
    fn short_texts_that_go_round_are_counted_in_any_order_as_the_writer_allows() {
        for count in [1_000, 20_000, 70_000] {
            let (mut writer, mut reader) = (KeptTexts::of_writer(), KeptTexts::of_reader());
            let text = |number: usize| Text::from(format!("{number:0100}"));
            // Written one after the other, as often as they come, and read round and round.
            for number in 0..count {
                let text = text(number);
                (0..20).for_each(|_| writer.count(&text));
            }
            for number in 0..20 * count {
                reader.text(&text(number % count));
            }
            let once = count as u64 * 164;
            let (written, read) = (writer.take_uncounted(), reader.take_uncounted());
            assert_eq!(written, once);
            assert!((once..=written + writer.more_in_another_order()).contains(&read), "{read} of {written}");
        }
    }
}
