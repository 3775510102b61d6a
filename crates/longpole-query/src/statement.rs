//! From a text to the one statement in it, which only reads.

use datafusion::sql::parser::{DFParserBuilder, ParserInput, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;

use crate::depth;
use crate::error::{self, QueryError};
use crate::limits::STATEMENT_DEPTH_MAX;

/// The one statement of a text, if it is one that only reads. To be called where there is stack for the deepest one.
pub(crate) fn parse(text: &str) -> Result<Statement, QueryError> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| QueryError::Statement { message: format!("sql parser error: {error}") })?;
    let depth = depth::of(&tokens);
    if depth > STATEMENT_DEPTH_MAX {
        return Err(QueryError::TooDeep { depth, depth_max: STATEMENT_DEPTH_MAX });
    }
    let parser = DFParserBuilder::new(ParserInput::Tokens(tokens)).build();
    let mut statements = parser.and_then(|mut parser| parser.parse_statements()).map_err(|error| error::planning(&error))?;
    let statement = match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => statement,
        (None, _) => return Err(QueryError::Statement { message: "it is empty".into() }),
        (Some(_), more) => return Err(QueryError::Count { count: more + 1 }),
    };
    match reads_only(&statement) {
        true => Ok(statement),
        false => Err(QueryError::ReadOnly { statement: shortened(text) }),
    }
}

fn reads_only(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(explain) => reads_only(&explain.statement),
        Statement::Statement(statement) => match statement.as_ref() {
            ast::Statement::Explain { statement, .. } => reads_only(&Statement::Statement(statement.clone())),
            ast::Statement::Query(_)
            | ast::Statement::ExplainTable { .. }
            | ast::Statement::ShowTables { .. }
            | ast::Statement::ShowColumns { .. }
            | ast::Statement::ShowFunctions { .. }
            | ast::Statement::ShowVariable { .. } => true,
            _ => false,
        },
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => false,
    }
}

/// Enough of a statement to recognise it.
fn shortened(text: &str) -> String {
    const LETTERS: usize = 60;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
