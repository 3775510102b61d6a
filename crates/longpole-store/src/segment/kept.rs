//! Texts of rows, each kept once: the spans of a program repeat its names, and a prompt or an environment of 65 KB as well.
//!
//! ```text
//!   text of a row ─ short ──────────────────► `Texts`: the same memory, as long as it is remembered; counted by nobody
//!                 └ long ─ where it lies ───► known and equal                  ─► the same memory
//!                        └ hash of all of it ─► known and equal, lies elsewhere ─► the same memory
//!                                             └ new                            ─► counted once
//! ```
//!
//! A page of Parquet holds a text of its dictionary once, so rows that repeat it mostly refer to the same place. Who reads and who
//! writes count alike, so that what was written is known to be readable.

use std::collections::HashSet;

use longpole_model::quick::{QuickMap, QuickState};
use longpole_model::{Text, Texts};

/// Longer texts are counted, each once.
pub(crate) const SHORT_BYTES_MAX: usize = 128;

/// Texts from here on are looked for where they lie first: to read all of them takes longer than to look. A writer looks for no others: it
/// counts them each time, which allows a reader too much and never too little.
pub(crate) const PLACED_BYTES_MIN: usize = 1 << 10;

/// Places that are remembered.
const PLACES_MAX: usize = 1 << 14;

/// Long texts that a writer remembers. Those behind them are counted again.
const WRITER_BYTES_MAX: u64 = 64 << 20;

/// Texts that are kept once, and what the long ones among them take.
#[derive(Debug)]
pub(crate) struct KeptTexts {
    short: Texts,
    long: HashSet<Text, QuickState>,
    /// By the address of what was asked for. What lies there may have changed, so it is compared.
    at_place: QuickMap<usize, Text>,
    long_bytes: u64,
    long_bytes_max: u64,
    uncounted: u64,
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
            at_place: QuickMap::default(),
            long_bytes: 0,
            long_bytes_max,
            uncounted: 0,
        }
    }

    /// This text, as it is kept.
    pub(crate) fn text(&mut self, words: &str) -> Text {
        if words.len() <= SHORT_BYTES_MAX { self.short.text(words) } else { self.long(words, || Text::from(words)) }
    }

    /// Counts a text that is written.
    pub(crate) fn count(&mut self, text: &Text) {
        match text.len() {
            ..=SHORT_BYTES_MAX => {}
            PLACED_BYTES_MIN.. => _ = self.long(text, || text.clone()),
            bytes => self.uncounted += bytes as u64,
        }
    }

    /// Bytes of the long texts that are new since this was asked last.
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        std::mem::take(&mut self.uncounted)
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
}
