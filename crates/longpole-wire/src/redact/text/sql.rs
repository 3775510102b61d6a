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
    use super::is_statement;

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
}
