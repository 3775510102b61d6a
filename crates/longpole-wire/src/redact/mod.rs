//! Credentials are taken out before anything is stored. The rules are documented in `docs/formats/redaction.md`.
//!
//! ```text
//! name of an attribute, argument, header, parameter ── names a credential ──► its whole value becomes [redacted]
//! any text ── name=value, user:password@ in a URL, Bearer …, known shapes of keys ──► that part becomes [redacted]
//! ```
//!
//! [`field_rules`] says which fields longpole checks and how; `names`, `value_forms`, `shapes`, `text` and `commands` how. It works on names and shapes, so it can
//! miss a secret that has neither, and it can take out a harmless value that looks like one. Numbers and truth values stay: `token.count`
//! is no token.

mod bytes;
mod commands;
mod escapes;
pub mod field_rules;
mod known_names;
mod mask;
mod names;
mod quotes;
mod redactor;
mod seen;
mod shapes;
mod steps;
mod text;
mod value_forms;

pub use mask::REDACTED;
pub use redactor::Redactor;

#[cfg(test)]
mod tests;
