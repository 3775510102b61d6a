//! Parameters of a statement that stand behind it: those in the place of a column with the name of a credential.
//!
//! ```text
//! [SQL: INSERT INTO users (name, password) VALUES (?, ?)]⏎[parameters: ('bob', 'hunter2')]     SQLAlchemy
//! UPDATE users SET password = $1 WHERE id = $2 -- PARAMETERS: ["hunter2",7]                    TypeORM
//! … VALUES ($1, $2)⏎DETAIL:  parameters: $1 = 'bob', $2 = 'hunter2'                            PostgreSQL
//! [Parameters=[@p0='bob', @p1='hunter2'], CommandType='Text']⏎… VALUES (@p0, @p1)              Entity Framework: before it
//! ```

use super::name::is_of_name;
use super::scan::Scan;
use crate::redact::bytes::floor;
use crate::redact::known_names::Names;
use crate::redact::names::Meaning;
use crate::redact::quotes::closing;

/// The longest statement, with what stands between it and its parameters.
const STATEMENT_BYTES_MAX: usize = 8192;

/// Parameters of one statement.
const PARAMETERS_MAX: usize = 256;

/// The longest word that says that parameters follow: `parameters`.
const WORD_BYTES_MAX: usize = 12;

/// The names of columns in a statement, in the order of its placeholders.
#[derive(Default)]
struct Placeholders<'a> {
    columns: Vec<&'a str>,
}

impl<'a> Placeholders<'a> {
    /// Those of the last statement in a text.
    fn of(text: &'a str) -> Self {
        let mut found = Placeholders::default();
        let bytes = text.as_bytes();
        // The columns of an INSERT, and which of them is the next one.
        let (mut inserted, mut column): (Vec<&str>, usize) = (Vec::new(), 0);
        // The name before the last `=`, and the brackets that are open there.
        let (mut compared, mut compared_depth) = ("", 0u32);
        let (mut word, mut begun) = ("", false);
        let (mut depth, mut open, mut group) = (0u32, 0, 0..0);
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'(' => {
                    (depth, column, open) = (depth + 1, if depth == 0 { 0 } else { column }, at + 1);
                }
                b')' => {
                    depth = depth.saturating_sub(1);
                    group = open..at;
                }
                b',' => {
                    column += usize::from(depth <= 1);
                    compared = if depth <= compared_depth { "" } else { compared };
                }
                b'=' => (compared, compared_depth) = (word, depth),
                b'\'' => at += closing(&bytes[at + 1..], b'\'', 0).map_or(0, |length| length + 1),
                b'?' => found.add(None, inserted.get(column).copied().unwrap_or(compared)),
                b'%' if bytes.get(at + 1) == Some(&b's') => {
                    found.add(None, inserted.get(column).copied().unwrap_or(compared));
                    at += 1;
                }
                b'$' | b':' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                    let digits = bytes[at + 1..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
                    let number = text[at + 1..at + 1 + digits].parse().ok();
                    found.add(number, inserted.get(column).copied().unwrap_or(compared));
                    at += digits;
                }
                b'@' if bytes[at + 1..].starts_with(b"p") && bytes.get(at + 2).is_some_and(u8::is_ascii_digit) => {
                    let digits = bytes[at + 2..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
                    let number = text[at + 2..at + 2 + digits].parse().ok().map(|number: usize| number + 1);
                    found.add(number, inserted.get(column).copied().unwrap_or(compared));
                    at += 1 + digits;
                }
                byte if is_of_name(byte) => {
                    let length = bytes[at..].iter().take_while(|byte| is_of_name(**byte)).count();
                    let before = std::mem::replace(&mut word, &text[at..at + length]);
                    let is = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
                    let is_part = ["key", "do", "for"].iter().any(|part| part.eq_ignore_ascii_case(before));
                    if depth == 0 && (is(&["insert", "update", "delete", "replace"]) && !is_part || is(&["select"]) && !begun) {
                        (found, inserted, compared, begun) = (Placeholders::default(), Vec::new(), "", true);
                    } else if is(&["values"]) {
                        inserted = text[group.clone()].split(',').collect();
                    } else if is(&["and", "or", "where", "set", "on", "returning"]) {
                        (inserted, compared) = (Vec::new(), "");
                    }
                    at += length - 1;
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Notes a placeholder of this number, or the next one.
    fn add(&mut self, number: Option<usize>, column: &'a str) {
        let at = number.map_or(self.columns.len(), |number| number.saturating_sub(1));
        if at < PARAMETERS_MAX {
            self.columns.resize(self.columns.len().max(at + 1), "");
            self.columns[at] = column;
        }
    }

    fn meanings(&self, names: &mut Names) -> Vec<Meaning> {
        let name = |column: &'a str| column.trim_matches(|c: char| c.is_whitespace() || "\"'`[]\\".contains(c));
        self.columns.iter().map(|column| names.meaning(name(column))).collect()
    }
}

impl Scan<'_> {
    /// Behind a word that announces parameters, those that are credentials. The text between two such words is read once.
    pub(super) fn parameters(&mut self, at: usize) -> Option<usize> {
        let word = self.bytes[at..].iter().take(WORD_BYTES_MAX).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let mut open = at + word;
        open += usize::from(matches!(self.bytes.get(open), Some(b'"' | b'\'')));
        open += usize::from(matches!(self.bytes.get(open), Some(b':' | b'=')));
        open = self.past_blanks(open);
        if !matches!(self.bytes.get(open), Some(b'(' | b'[' | b'$')) || self.is_spent() {
            return None;
        }
        if self.bytes[open..].starts_with(b"[@p") {
            return self.before_statement(open);
        }
        let from = floor(self.text, self.parameters_to.max(at.saturating_sub(STATEMENT_BYTES_MAX))).min(at);
        self.parameters_to = at;
        self.names.steps.spend(at - from);
        let meanings = Placeholders::of(&self.text[from..at]).meanings(self.names);
        if meanings.iter().all(|meaning| *meaning == Meaning::Plain) {
            return None;
        }
        if self.bytes[open] == b'$' { self.numbered(open, &meanings) } else { self.listed(open, &meanings) }
    }

    /// `('bob', 'hunter2')`, `[('bob', 'hunter2'), …]`.
    fn listed(&mut self, open: usize, meanings: &[Meaning]) -> Option<usize> {
        let (mut at, mut depth, mut parameter, mut last) = (open, 0u32, 0, None);
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'(' | b'[' => (depth, parameter) = (depth + 1, 0),
                b')' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b',' => parameter += 1,
                quote @ (b'\'' | b'"') => {
                    let length = closing(&self.bytes[at + 1..], quote, 0).unwrap_or_else(|stop| stop);
                    let value = at + 1..at + 1 + length;
                    last = self.hide_refused(meanings[parameter % meanings.len()], value.start, value.end).or(last);
                    at = value.end;
                }
                _ => {}
            }
            at += 1;
        }
        self.names.steps.spend(at - open);
        last
    }

    /// `[@p0='bob' (Size = 4000), @p1='hunter2'], CommandType='Text']`, and the statement behind it.
    fn before_statement(&mut self, open: usize) -> Option<usize> {
        if open < self.parameters_to {
            return None;
        }
        let end = floor(self.text, open + STATEMENT_BYTES_MAX);
        self.parameters_to = end;
        self.names.steps.spend(2 * (end - open));
        let close = open + self.text[open..end].find("], CommandType")?;
        let meanings = Placeholders::of(&self.text[close..end]).meanings(self.names);
        let (mut at, mut last) = (open, None);
        while let Some(next) = self.text[at..close].find("@p") {
            at += next + "@p".len();
            let digits = self.bytes[at..close].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
            let Some(inside) = self.bytes[at + digits..close].strip_prefix(b"='") else { continue };
            let meaning = self.text[at..at + digits].parse().ok().and_then(|number: usize| meanings.get(number)).copied();
            at += digits + "='".len();
            let length = closing(inside, b'\'', 0).unwrap_or_else(|stop| stop);
            last = self.hide_refused(meaning.unwrap_or(Meaning::Plain), at, at + length).or(last);
            at += length;
        }
        last
    }

    /// `$1 = 'bob', $2 = 'hunter2'`.
    fn numbered(&mut self, mut at: usize, meanings: &[Meaning]) -> Option<usize> {
        let mut last = None;
        while let Some(inside) = self.bytes[at..].strip_prefix(b"$") {
            let digits = inside.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
            let number: usize = self.text[at + 1..at + 1 + digits].parse().ok()?;
            let start = at + 1 + digits + " = '".len();
            if !inside[digits..].starts_with(b" = '") {
                break;
            }
            let length = closing(&self.bytes[start..], b'\'', 0).unwrap_or_else(|stop| stop);
            self.names.steps.spend(length);
            let meaning = number.checked_sub(1).and_then(|number| meanings.get(number)).copied().unwrap_or(Meaning::Plain);
            last = self.hide_refused(meaning, start, start + length).or(last);
            at = start + length + "', ".len();
            if at > self.bytes.len() || !self.bytes[..at].ends_with(b"', ") {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::Placeholders;

    #[test]
    fn placeholders_have_the_names_of_their_columns() {
        for (statement, columns) in [
            ("INSERT INTO t (a, b) VALUES (?, ?)", "a b"),
            ("INSERT INTO t (a, b, c) VALUES ('x, ?', now(), ?), (?, 1, ?)", "c a c"),
            ("insert into t (a,b) values ($2, $1)", "b a"),
            ("UPDATE t SET a=%s, t.b = crypt(%s, x) WHERE c = %s AND d IN (%s)", "a t.b c "),
            ("what? [SQL: SELECT * FROM t WHERE \"a\" = ? OR b LIKE ?", "a "),
            ("INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE b = ?", "a b"),
            ("INSERT INTO t (a, b) VALUES (@p1, @p0)", "b a"),
            ("INSERT INTO t (a) VALUES (:1) ON CONFLICT (a) DO UPDATE SET b = :2", "a b"),
        ] {
            let found: Vec<&str> = Placeholders::of(statement).columns.iter().map(|column| column.trim()).collect();
            assert_eq!(found.join(" "), columns, "{statement}");
        }
    }
}
