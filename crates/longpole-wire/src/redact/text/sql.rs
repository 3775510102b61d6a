//! Statements of SQL: what has no quotes there is a column, a variable or a call, unless it stands inside of a literal.
//!
//! ```text
//! UPDATE users u SET password = new_password FROM …      columns
//! SELECT dblink('host=db password=hunter2', …) FROM …    a literal: a connection string as any other
//! Update failed: host=db password=hunter2                no statement: it begins with a word of SQL, and no other one follows
//! ```

use super::scan::Scan;

/// Words between `UPDATE` and `SET`: tables, their names in the statement, and joins.
const UPDATED_WORDS_MAX: usize = 32;

/// Words between a verb and the word that makes it one of SQL: `INSERT OR IGNORE INTO`, `CREATE OR REPLACE TEMPORARY VIEW`.
const BETWEEN_WORDS_MAX: usize = 4;

/// What `CREATE` and `ALTER` make of columns. What they make of passwords (users, subscriptions, servers) is none of it.
const OF_COLUMNS: &[&str] = &["table", "view", "index", "function", "procedure", "trigger", "policy", "rule", "column"];

/// Verbs of statements that may stand inside of another one.
const INNER: &[&str] = &["select", "insert", "update", "delete", "merge"];

/// Whether a text is a statement: it begins with a verb of SQL, and the word that this verb needs follows. Reads the text once at most.
fn is_statement(text: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "_.$\"`[]@".contains(c);
    let mut words = text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty());
    let Some(verb) = words.next() else { return false };
    let is = |word: &str, known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
    let follows = |count: usize, known: &[&str]| words.clone().take(count).any(|word| is(word, known));
    match verb.to_ascii_lowercase().as_str() {
        "select" => follows(usize::MAX, &["from"]),
        "insert" | "replace" | "upsert" => follows(BETWEEN_WORDS_MAX, &["into"]),
        "merge" => follows(BETWEEN_WORDS_MAX, &["into", "using"]),
        "update" => follows(UPDATED_WORDS_MAX, &["set"]),
        "delete" => follows(1, &["from"]),
        "with" => follows(BETWEEN_WORDS_MAX, &["as"]) && follows(usize::MAX, INNER),
        "explain" | "begin" => follows(usize::MAX, INNER),
        "create" | "alter" => follows(BETWEEN_WORDS_MAX, OF_COLUMNS),
        "call" => {
            let called = text.trim_start()[verb.len()..].trim_start().trim_start_matches(is_of_word);
            called.starts_with('(') && words.next().is_some()
        }
        _ => false,
    }
}

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
    seen_to: usize,
    open: Open,
}

impl Literal {
    /// Whether one is, or may be, open at this place.
    fn is_open(&mut self, bytes: &[u8], at: usize) -> bool {
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

impl Scan<'_> {
    /// Whether what stands here without quotes is part of a statement: a column, not a word of a message or of a literal.
    pub(super) fn is_of_sql(&mut self, at: usize) -> bool {
        let (text, names) = (self.text, &mut self.names);
        let is_sql = *self.is_sql.get_or_insert_with(|| {
            names.steps.spend(text.len());
            is_statement(text)
        });
        if !is_sql {
            return false;
        }
        self.names.steps.spend(at.saturating_sub(self.literal.seen_to));
        !self.literal.is_open(self.bytes, at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Literal, is_statement};

    #[test]
    fn a_statement_has_more_than_its_first_word() {
        for text in [
            "SELECT a FROM t",
            "select\n*\nfrom t",
            "INSERT IGNORE INTO t SELECT 1",
            "Replace into t values (1)",
            "MERGE users USING x",
            "UPDATE t AS u SET a = b",
            "update a join b on a.c = b.c set a.d = b.d",
            "DELETE FROM t",
            "WITH a AS (SELECT 1) UPDATE t",
            "EXPLAIN ANALYZE SELECT 1",
            "BEGIN; UPDATE t SET a = b",
            "CREATE OR REPLACE FUNCTION f()",
            "ALTER TABLE t",
            "CALL login(a => b)",
        ] {
            assert!(is_statement(text), "{text}");
        }
        for text in [
            "",
            "select",
            "Select timed out (host=db)",
            "Insert config",
            "Update failed: host=db",
            "Delete session from the cache",
            "With password=x",
            "BEGIN",
            "Begin login",
            "Create connection host=db",
            "CREATE SUBSCRIPTION s CONNECTION 'host=db'",
            "ALTER SYSTEM SET a = 'b'",
            "Call backend?x=y",
            "SET a = b",
            "EXEC f",
        ] {
            assert!(!is_statement(text), "{text}");
        }
    }

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
