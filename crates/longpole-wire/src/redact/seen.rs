//! Where the next of each kind of byte stands in a text, so that each is searched for once.

use super::shapes;
use super::steps::Ahead;

/// What was looked for already in this text.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The end of the line.
    pub(super) line: Ahead,
    /// A byte of control.
    pub(super) control: Ahead,
    /// `]`.
    pub(super) bracket: Ahead,
    /// The quote with these backslashes and `]` behind it.
    pub(super) list_end: Ahead,
    pub(super) list_quote: (u8, usize),
    /// Quotes that end a value with lines in it, and three of them.
    pub(super) quotes: [Ahead; 3],
    pub(super) triples: [Ahead; 3],
    /// What ends a value without quotes, whatever is open.
    pub(super) value_end: Ahead,
    /// Any bracket.
    pub(super) any_bracket: Ahead,
    /// What no key has.
    pub(super) key_end: Ahead,
    /// What no key with a known part inside has.
    pub(super) inside_end: Ahead,
    /// `://`.
    pub(super) url: Ahead,
    /// What begins a password in a rule of Redis.
    pub(super) acl_mark: Ahead,
    /// What ends a URL.
    pub(super) url_end: Ahead,
    /// `@`.
    pub(super) at_sign: Ahead,
    /// The last lines of keys.
    pub(super) ends: [Ahead; 3],
    pub(super) shapes: shapes::Seen,
}
