//! How deep a statement is, before anything is made of it.
//!
//! ```text
//! SELECT 1 + 1 + 1, (2 + (3))          a chain is as deep as it is long: ((1 + 1) + 1)
//!        └─ 2 ───┘  └ 1+1+1 ┘          a comma begins anew; brackets add to what they stand in
//! a UNION b UNION c, FROM a, b JOIN c  so are chains of queries and tables, and of queries under WITH, which name each other
//! ```
//!
//! The parser counts how deep its own calls are, and a chain takes it none. Planning, comparing and dropping what it made of
//! one do, so the depth of all that a statement can become is bounded here, by its tokens. It is counted too high rather than too
//! low: what brackets hold is as deep as if they stood in the longest operand.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// What stands between two brackets, or between CASE and END.
#[derive(Default)]
struct Level {
    is_case: bool,
    /// Queries and tables that follow each other.
    relations: usize,
    /// Operators since the last comma.
    chain: usize,
    /// A comma adds a table or a query: the level is after FROM or WITH.
    commas_relate: bool,
    /// Between WITH and its SELECT, where one query names those before it: what is in brackets adds up.
    is_with: bool,
    /// The deepest there was, from this level on.
    peak: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.relations + self.chain
    }
}

/// The depth of what these tokens can become, at most.
pub(crate) fn of(tokens: &[TokenWithSpan]) -> usize {
    let mut levels = vec![Level::default()];
    let mut before = Keyword::NoKeyword;
    for token in tokens.iter().map(|token| &token.token) {
        let keyword = match token {
            Token::Word(word) => word.keyword,
            Token::Whitespace(_) => continue,
            _ => Keyword::NoKeyword,
        };
        match token {
            Token::LParen | Token::LBrace => levels.push(Level::default()),
            Token::LBracket => {
                top(&mut levels).chain += 1;
                levels.push(Level::default());
            }
            Token::RParen | Token::RBrace | Token::RBracket => {
                // CASE without END does not parse.
                while levels.last().is_some_and(|level| level.is_case) {
                    close(&mut levels);
                }
                close(&mut levels);
            }
            Token::Comma => {
                let level = top(&mut levels);
                level.chain = 0;
                level.relations += usize::from(level.commas_relate);
            }
            Token::SemiColon => levels.truncate(1),
            Token::Word(_) => of_keyword(keyword, before, &mut levels),
            Token::Period | Token::EOF => {}
            token if is_literal(token) => {}
            _ => top(&mut levels).chain += 1,
        }
        before = keyword;
        note(&mut levels);
    }
    while levels.len() > 1 {
        close(&mut levels);
    }
    top(&mut levels).peak
}

fn of_keyword(keyword: Keyword, before: Keyword, levels: &mut Vec<Level>) {
    let level = top(levels);
    match keyword {
        Keyword::SELECT => {
            level.chain = 0;
            (level.commas_relate, level.is_with) = (false, false);
        }
        Keyword::WITH => (level.commas_relate, level.is_with) = (true, true),
        // IS DISTINCT FROM is an operator.
        Keyword::FROM if before != Keyword::DISTINCT => level.commas_relate = true,
        Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER => level.commas_relate = false,
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS | Keyword::JOIN | Keyword::LATERAL | Keyword::UNNEST => {
            level.relations += 1;
        }
        Keyword::CASE => levels.push(Level { is_case: true, ..Level::default() }),
        Keyword::WHEN if level.is_case => level.chain = 0,
        Keyword::END if level.is_case => close(levels),
        // Before what they stand for, behind it, or between two of it.
        Keyword::AND
        | Keyword::OR
        | Keyword::XOR
        | Keyword::NOT
        | Keyword::IS
        | Keyword::NOTNULL
        | Keyword::IN
        | Keyword::LIKE
        | Keyword::ILIKE
        | Keyword::RLIKE
        | Keyword::REGEXP
        | Keyword::SIMILAR
        | Keyword::BETWEEN
        | Keyword::DIV
        | Keyword::OVERLAPS
        | Keyword::AT
        | Keyword::COLLATE
        | Keyword::INTERVAL
        | Keyword::EXPLAIN
        | Keyword::DESCRIBE
        | Keyword::DESC
        | Keyword::ANALYZE => level.chain += 1,
        _ => {}
    }
}

fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
    )
}

/// The first level is never closed.
fn top(levels: &mut [Level]) -> &mut Level {
    let last = levels.len() - 1;
    &mut levels[last]
}

fn note(levels: &mut [Level]) {
    let level = top(levels);
    level.peak = level.peak.max(level.depth());
}

/// Leaves a level: it was one deeper than its own depth in what it stands in.
fn close(levels: &mut Vec<Level>) {
    if levels.len() < 2 {
        return;
    }
    let Some(closed) = levels.pop() else { return };
    let depth = closed.peak + 1;
    let level = top(levels);
    level.peak = level.peak.max(level.depth() + depth);
    if level.is_with {
        level.relations += depth;
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    fn depth(statement: &str) -> usize {
        super::of(&Tokenizer::new(&GenericDialect {}, statement).tokenize_with_location().unwrap())
    }

    #[test]
    fn chains_and_brackets_add_up_and_lists_do_not() {
        assert_eq!(depth("SELECT 1"), 0);
        assert_eq!(depth("SELECT 1 + 1 + 1, 2 + 2"), 2);
        assert_eq!(depth("SELECT 1 + (2 + (3 + 3))"), 5, "three operators, two brackets");
        assert_eq!(depth("SELECT a FROM t WHERE a IN (1, 2, 3, 4, 5, 6, 7, 8)"), 2);
        assert_eq!(depth("VALUES (1), (2), (3), (4), (5)"), 1);
        assert_eq!(depth("SELECT CASE WHEN a = 1 THEN 2 WHEN a = 2 THEN 3 END + CASE WHEN a = 3 THEN 4 END"), 3);
        assert_eq!(depth("SELECT CAST(NULL AS INT[][][])"), 5);
    }

    #[test]
    fn queries_and_tables_that_follow_each_other_are_chains() {
        assert_eq!(depth("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3"), 2);
        assert_eq!(depth("SELECT 1 FROM a, b, c JOIN d USING (x)"), 4, "three chained, one bracket");
        assert_eq!(depth("WITH a AS (SELECT 1), b AS (SELECT x + x FROM a) SELECT * FROM b"), 5, "two brackets, a comma, + and *");
        assert_eq!(depth("SELECT 1 IS DISTINCT FROM 2 IS DISTINCT FROM 3"), 2);
    }

    #[test]
    fn what_does_not_parse_is_counted_all_the_same() {
        for broken in [")))", "((([", "CASE CASE (", "END END )", "; ; (", "WITH WITH ("] {
            depth(broken);
        }
    }
}
