//! A sentence that knows which parts of it are names of functions.

use std::fmt::{self, Display};

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Plain words.
    Text(String),
    /// The name of a function that was on a CPU.
    Function(String),
    /// The name of a function that waited.
    WaitingFunction(String),
}

impl Piece {
    /// What stands in the sentence.
    pub fn as_str(&self) -> &str {
        match self {
            Piece::Text(text) | Piece::Function(text) | Piece::WaitingFunction(text) => text,
        }
    }

    fn is_name(&self) -> bool {
        !matches!(self, Piece::Text(_))
    }
}

/// How wide a text is where it is shown, and how a name is cut there.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// The columns of a text.
    pub width: fn(&str) -> usize,
    /// The end of a text in at most this number of columns, with a mark if the beginning is missing.
    pub end_of: fn(&str, usize) -> String,
}

/// Least columns of a function's name in a shortened sentence.
const NAME_WIDTH_MIN: usize = 20;

impl Measure {
    fn least_width(self, piece: &Piece) -> usize {
        let width = (self.width)(piece.as_str());
        if piece.is_name() { width.min(NAME_WIDTH_MIN) } else { width }
    }

    /// The end of a name in at most `width` columns, from a module on if one begins there.
    fn end_of_name(self, name: &str, width: usize) -> String {
        let end = (self.end_of)(name, width);
        end.split_once("::").map_or(end.clone(), |(_, rest)| format!("…{rest}"))
    }
}

/// A sentence. [`Display`] writes it whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    pieces: Vec<Piece>,
}

impl Words {
    /// Words that are all plain.
    pub fn plain(text: impl Into<String>) -> Words {
        Words::default().text(text)
    }

    /// These words, then plain ones.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Words {
        self.piece(Piece::Text(text.into()))
    }

    /// These words, then the name of a function that was on a CPU.
    #[must_use]
    pub(super) fn function(self, name: &str) -> Words {
        self.piece(Piece::Function(name.to_owned()))
    }

    /// These words, then the name of a function that waited.
    #[must_use]
    pub(super) fn waiting_function(self, name: &str) -> Words {
        self.piece(Piece::WaitingFunction(name.to_owned()))
    }

    /// These words, then others.
    #[must_use]
    pub fn words(self, more: Words) -> Words {
        more.pieces.into_iter().fold(self, Words::piece)
    }

    fn piece(mut self, piece: Piece) -> Words {
        match (self.pieces.last_mut(), piece) {
            (_, Piece::Text(text)) if text.is_empty() => {}
            (Some(Piece::Text(last)), Piece::Text(text)) => last.push_str(&text),
            (_, piece) => self.pieces.push(piece),
        }
        self
    }

    /// The parts: no two texts beside each other, none empty.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Measure of the whole sentence.
    pub fn width(&self, measure: Measure) -> usize {
        self.pieces.iter().map(|piece| (measure.width)(piece.as_str())).sum()
    }

    /// Measure of the sentence with the shortest names.
    pub fn least_width(&self, measure: Measure) -> usize {
        self.pieces.iter().map(|piece| measure.least_width(piece)).sum()
    }

    /// The sentence in `width` columns, if possible. Shortens names at their beginning, where the modules are; the last name first, because
    /// the first one says most.
    pub fn fit(&self, width: usize, measure: Measure) -> String {
        let mut beyond = self.width(measure).saturating_sub(width);
        let mut parts: Vec<String> = self.pieces.iter().map(|piece| piece.as_str().to_owned()).collect();
        for (piece, part) in self.pieces.iter().zip(&mut parts).rev().filter(|(piece, _)| piece.is_name()) {
            let whole = (measure.width)(part);
            let left = whole.saturating_sub(beyond).max(NAME_WIDTH_MIN);
            if left < whole {
                *part = measure.end_of_name(piece.as_str(), left);
                beyond = beyond.saturating_sub(whole.saturating_sub((measure.width)(part)));
            }
        }
        parts.concat()
    }
}

impl FromIterator<Piece> for Words {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Self {
        pieces.into_iter().fold(Words::default(), Words::piece)
    }
}

impl Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| f.write_str(piece.as_str()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Measure of a terminal with narrow characters only.
    pub(in crate::words) const NARROW: Measure = Measure {
        width: |text| text.chars().count(),
        end_of: |text, width| {
            let all = text.chars().count();
            if all <= width { text.to_owned() } else { "…".chars().chain(text.chars().skip(all + 1 - width)).collect() }
        },
    };

    fn sentence() -> Words {
        Words::plain("most of it in ").function("shop::search::index::index_words").text(" (mostly in ").function("hash_one").text(")")
    }

    #[test]
    fn words_are_written_whole() {
        assert_eq!(sentence().to_string(), "most of it in shop::search::index::index_words (mostly in hash_one)");
        assert_eq!(Words::plain("a").text("").words(Words::plain("b")).pieces(), [Piece::Text("ab".to_owned())]);
    }

    #[test]
    fn a_narrow_place_shortens_the_names_alone_and_cuts_them_at_a_module() {
        let words = sentence();
        assert_eq!((words.width(NARROW), words.least_width(NARROW)), (67, 55));
        assert_eq!(words.fit(67, NARROW), words.to_string());
        assert_eq!(words.fit(60, NARROW), "most of it in …index::index_words (mostly in hash_one)");
        // One that is too narrow for the shortest names is left to the caller.
        assert_eq!(words.fit(10, NARROW), "most of it in …index_words (mostly in hash_one)");
    }

    #[test]
    fn the_last_name_is_shortened_first() {
        let words =
            Words::plain("in ").function("one::two::three::four::five::six").text(", ").waiting_function("a::b::c::d::e::f::g::h::i::j");
        assert_eq!(words.fit(60, NARROW), "in one::two::three::four::five::six, …d::e::f::g::h::i::j");
        assert_eq!(words.fit(40, NARROW), "in …four::five::six, …e::f::g::h::i::j");
    }
}
