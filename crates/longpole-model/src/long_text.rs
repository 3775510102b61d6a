//! Texts that others choose, where only their beginning has room.

use std::borrow::Cow;

/// The text, or its beginning of at most `bytes_max` bytes with `…` behind it.
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(bytes_max)]))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(["", "abc", "abcd", "abé"].map(|text| cut(text, 3).into_owned()), ["", "abc", "abc…", "ab…"]);
    }
}
