//! Finds credentials in a text, in one pass over its bytes.
//!
//! ```text
//! POST /login?user=ann&password=hunter2  Authorization: Token 9944b0…  postgres://u:p@ss@h/db   -----BEGIN PRIVATE KEY-----
//!                     ▲ name before, value behind    ▲ scheme, rest        ▲ before the last @      ▲ to the end
//! ```
//!
//! Most bytes are part of a word and say nothing. What does is a mark (`=`, `:`, `>`, `@`, …), before which a name may stand, and the
//! first three bytes of a word, which begin a key that is known by its looks, or a word that says that a credential follows.
//!
//! What stands in another writing (`%3D`, `\"`, `\n`, `&quot;`) is read a second time without it: [`unescaped`].

mod calls;
mod database;
mod encoded;
mod fields;
mod form;
mod header;
mod keywords;
mod lines;
mod literal;
mod marks;
mod markup;
mod name;
mod notations;
mod object;
mod pairs;
mod parameters;
mod refused;
mod scan;
mod scan_loop;
mod sql;
mod url;
mod value;

use std::ops::Range;

use self::literal::Literal;
use self::scan::{ObjectFields, Scan};
use super::escapes::unescaped;
use super::known_names::Names;
use super::mask::{REDACTED, is_redacted};
use super::search_memo::SearchMemo;
use super::{command_lines, commands};

/// Writings inside writings: a URL in a parameter of a URL in JSON.
const ESCAPES_MAX: usize = 3;

/// Fills `found` with the parts of a text that are credentials, in order and apart.
pub(super) fn find(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    found.clear();
    names.steps.begin(text.len());
    if !names.steps.is_spent() {
        find_all(text, names, found);
    }
    if names.steps.is_spent() {
        // Nobody knows what stands in the rest.
        found.clear();
        found.extend((text != REDACTED).then_some(0..text.len()));
    }
}

fn find_all(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    let (escaped, commands) = scan(text, names, found);
    if commands {
        command_lines::of_text(text, names, found);
    }
    if escaped {
        find_unescaped(text, names, found);
    }
    if found.len() > 1 {
        found.sort_unstable_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, kept| {
            let overlap = next.start < kept.end || next.start == kept.end && next.start == next.end;
            if overlap {
                kept.end = kept.end.max(next.end);
            }
            overlap
        });
    }
}

/// The same without its escapes, where it has any.
fn find_unescaped(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    let mut plain = text.to_owned();
    let mut origin: Vec<usize> = (0..=text.len()).collect();
    for _ in 0..ESCAPES_MAX {
        names.steps.spend(plain.len());
        let Some((next, from)) = unescaped(&plain) else { return };
        origin = from.iter().map(|at| origin[*at]).collect();
        plain = next;
        let mut inside = Vec::new();
        let (escaped, commands) = scan(&plain, names, &mut inside);
        if commands {
            command_lines::of_text(&plain, names, &mut inside);
        }
        for range in inside {
            let place = origin[range.start]..origin[range.end];
            // An escape at its edge belongs to what stands around it.
            if !place.is_empty() && !is_redacted(text, &place) {
                found.push(place);
            }
        }
        if !escaped {
            return;
        }
    }
}

/// One pass; says whether the text has escapes, and whether it has options of a command line.
fn scan(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) -> (bool, bool) {
    names.steps.spend(text.len());
    // Most texts look for nothing, and then nothing has to be forgotten.
    if std::mem::take(&mut names.steps.looked) {
        names.memo = SearchMemo::default();
    }
    let mut scan = Scan {
        text,
        bytes: text.as_bytes(),
        names,
        found,
        hidden_to: 0,
        escaped: false,
        commands: false,
        breaks: false,
        braces: false,
        is_sql: None,
        literal: Literal::default(),
        is_map: None,
        pair: None,
        lone: None,
        fields: ObjectFields::default(),
        harmless_to: 0,
        jwk: (0..0, false),
        values_to: 0,
        parameters_to: 0,
        encoded_to: 0,
    };
    scan.run();
    let Scan { escaped, commands, breaks, .. } = scan;
    (escaped, commands || commands::runs_one(text, breaks, &mut names.steps))
}
