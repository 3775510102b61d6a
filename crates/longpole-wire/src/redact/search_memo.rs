//! The searches ahead in one text, by kind of byte, so that each is made once.

use super::lookahead::Lookahead;
use super::token_formats;

/// The searches that were made in this text.
#[derive(Debug, Default)]
pub(super) struct SearchMemo {
    /// The end of the line.
    pub(super) line: Lookahead,
    /// A byte of control.
    pub(super) control: Lookahead,
    /// `]`.
    pub(super) bracket: Lookahead,
    /// The quote with these backslashes and `]` behind it.
    pub(super) list_end: Lookahead,
    pub(super) list_quote: (u8, usize),
    /// Quotes that end a value with lines in it, and three of them.
    pub(super) quotes: [Lookahead; 3],
    pub(super) triples: [Lookahead; 3],
    /// The first of each of the quotes.
    pub(super) first_quotes: [Lookahead; 3],
    /// What ends a value without quotes, whatever is open.
    pub(super) value_end: Lookahead,
    /// Any bracket.
    pub(super) any_bracket: Lookahead,
    /// `(`.
    pub(super) call: Lookahead,
    /// What no key has.
    pub(super) key_end: Lookahead,
    /// What no key with a known part inside has.
    pub(super) inside_end: Lookahead,
    /// `://`.
    pub(super) url: Lookahead,
    /// What begins a password in a rule of Redis.
    pub(super) acl_mark: Lookahead,
    /// What ends a URL.
    pub(super) url_end: Lookahead,
    /// `]]>`.
    pub(super) cdata_end: Lookahead,
    /// The boundary behind a field of a form.
    pub(super) form_end: Lookahead,
    /// What closes the quotes or the tag around a URL.
    pub(super) url_closers: [Lookahead; 5],
    /// `@`.
    pub(super) at_sign: Lookahead,
    /// The last lines of keys.
    pub(super) ends: [Lookahead; 3],
    pub(super) tokens: token_formats::TokenMemo,
}
