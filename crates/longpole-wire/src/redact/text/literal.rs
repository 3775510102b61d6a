//! What is open at a place of a statement of SQL: a literal or a comment.

/// What is open at a place of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    /// A literal or a quoted name, to this quote.
    Quote(u8),
    /// A comment to the end of its line.
    Line,
    /// A comment to its own end.
    Block,
    /// A quote behind a backslash ends a literal in one dialect and not in another, so that nobody knows what is open behind it.
    Unsure,
}

/// The literals of a statement, up to a place. It goes on from where it stood: each byte is read once.
#[derive(Debug, Default)]
pub(super) struct Literal {
    /// Up to here it was read.
    pub(super) seen_to: usize,
    open: Open,
}

impl Literal {
    /// Whether one is, or may be, open at this place.
    pub(super) fn is_open(&mut self, bytes: &[u8], at: usize) -> bool {
        while self.seen_to < at {
            let next = bytes.get(self.seen_to + 1).copied();
            let byte = bytes[self.seen_to];
            let (open, length) = match (self.open, byte) {
                (Open::Nothing, b'\'' | b'"' | b'`') => (Open::Quote(byte), 1),
                (Open::Nothing, b'-') if next == Some(b'-') => (Open::Line, 2),
                (Open::Nothing, b'/') if next == Some(b'*') => (Open::Block, 2),
                (Open::Quote(quote), b'\\') if next == Some(quote) => (Open::Unsure, 2),
                (Open::Quote(quote), _) if byte == quote => (Open::Nothing, 1),
                (Open::Line, b'\n') => (Open::Nothing, 1),
                (Open::Block, b'*') if next == Some(b'/') => (Open::Nothing, 2),
                (open, _) => (open, 1),
            };
            self.open = open;
            self.seen_to += length;
        }
        matches!(self.open, Open::Quote(_) | Open::Unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::Literal;

    #[test]
    fn literals_and_comments_are_seen_from_any_place_on() {
        let text = "a 'b''c' \"d'\" -- don't\ne /* it's */ f 'g' h";
        let mut literal = Literal::default();
        let open: String = (0..text.len())
            .filter(|at| text.as_bytes()[*at].is_ascii_alphabetic() && literal.is_open(text.as_bytes(), *at))
            .map(|at| char::from(text.as_bytes()[at]))
            .collect();
        assert_eq!(open, "bcdg");
        assert!(Literal::default().is_open(b"'a\\'b' c", 7), "a dialect where the literal is not closed");
    }
}
