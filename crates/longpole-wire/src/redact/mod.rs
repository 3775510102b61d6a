//! Credentials are taken out before anything is stored. The rules are documented in `docs/formats/redaction.md`.
//!
//! ```text
//! name of an attribute, argument, header, parameter ── names a credential ──► its whole value becomes [redacted]
//! any text ── name=value, user:password@ in a URL, Bearer …, known shapes of keys ──► that part becomes [redacted]
//! ```
//!
//! [`field_rules`] says which fields longpole checks and by which rule; `names`, `value_forms`, `token_formats`, `text`, `commands`, `programs`,
//! `standard_input` and `command_lines` hold the rules. They go by names and shapes, so longpole can miss a secret that has neither, and can take out a harmless value that looks like
//! one. Numbers and truth values stay: `token.count` is no token.

mod bytes;
mod command_lines;
mod commands;
mod escapes;
pub mod field_rules;
mod known_names;
mod lookahead;
mod mask;
mod names;
mod programs;
mod quotes;
mod redactor;
mod search_memo;
mod standard_input;
mod step_budget;
mod text;
mod token_formats;
mod value_forms;

pub use mask::REDACTED;
pub use redactor::Redactor;

#[cfg(test)]
mod tests;
