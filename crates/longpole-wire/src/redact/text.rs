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

use std::ops::Range;

use super::commands;
use super::names::Meaning;
use super::shapes;
use super::{Names, REDACTED, Steps};
use crate::base64;

/// Bytes before a mark in which its name is looked for.
const NAME_BYTES_MAX: usize = 256;

/// Bytes behind `scheme://user:` in which the `@` is looked for when the password has a slash.
const PASSWORD_BYTES_MAX: usize = 1024;

/// Bytes before `>` in which its tag is looked for.
const TAG_BYTES_MAX: usize = 256;

/// Bytes that the name and the value of a pair are apart.
const PAIR_BYTES_MAX: usize = 1024;

/// Below this a word after `Bearer` is prose.
const BEARER_BYTES_MIN: usize = 8;

/// From this length on, a word after `Bearer` is none of a language; nor is one before the `@` of a URL.
const LONG_BYTES_MIN: usize = 20;

/// Writings inside writings: a URL in a parameter of a URL in JSON.
const ESCAPES_MAX: usize = 3;

/// Bytes of the longest of [`SCHEMES`].
const SCHEME_BYTES_MAX: usize = 21;

/// What stands before `AUTH` in `MIGRATE host port key database timeout AUTH`.
const MIGRATE_BYTES_MAX: usize = 96;

/// A longer line that begins with `auth` in small letters is a sentence.
const AUTH_BYTES_MAX: usize = 200;

/// A value in quotes that has lines is no longer: twice a key of 4096 bits.
const QUOTED_BYTES_MAX: usize = 8192;

/// Lines below a name that are read as its parts.
const LINES_MAX: usize = 64;

/// Columns of an INSERT before `VALUES`, in bytes.
const COLUMNS_BYTES_MAX: usize = 2048;

/// From this length on a line of base64 may go on in the next one.
const BASE64_LINE_BYTES_MIN: usize = 40;

/// Calls around a value: `Some(Secret("…"))`.
const CALLS_MAX: usize = 3;

/// How long keys are.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

/// Words of `Authorization` that say how the credential is written.
const SCHEMES: &[&str] = &[
    "apikey",
    "api-key",
    "api-token",
    "aws",
    "aws4-hmac-sha256",
    "basic",
    "bearer",
    "bot",
    "digest",
    "discogs",
    "dpop",
    "geniekey",
    "googlelogin",
    "gss",
    "hawk",
    "hmac",
    "hoba",
    "jwt",
    "key",
    "mac",
    "mutual",
    "negotiate",
    "ntlm",
    "oauth",
    "private-token",
    "pveapitoken",
    "scram-sha-1",
    "scram-sha-256",
    "sharedaccesssignature",
    "sharedkey",
    "sharedkeylite",
    "signature",
    "snowflake",
    "splunk",
    "ssws",
    "token",
    "vapid",
    "zoho-oauthtoken",
];

/// Those that are looked for in any text, because no sentence has them before such a word.
const SCHEMES_ANYWHERE: &[&str] = &["basic", "bearer", "digest", "negotiate"];

/// Those that a sentence may have, so that what follows has to look like a key.
const SCHEMES_OF_KEYS: &[&str] = &["apikey", "aws4-hmac-sha256", "geniekey", "ntlm", "splunk", "ssws", "token", "flyv1"];

/// Addresses whose path is the credential.
const ADDRESSES: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "hooks.slack-gov.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "hooks.zapier.com/hooks/catch/",
    "open.feishu.cn/open-apis/bot/v2/hook/",
    "open.larksuite.com/open-apis/bot/v2/hook/",
    "outlook.office.com/webhook/",
    "outlook.office365.com/webhook/",
    "webhook.office.com/webhookb2/",
    "webhook.office.com/webhook/",
    "events.pagerduty.com/integration/",
    "hooks.glip.com/webhook/",
    "alert.victorops.com/integrations/generic/",
    "hc-ping.com/",
    "hook.eu1.make.com/",
    "hook.eu2.make.com/",
    "hook.us1.make.com/",
    "hook.integromat.com/",
    "api.opsgenie.com/v1/json/integrations/webhooks/",
    "maker.ifttt.com/trigger/",
];

/// Other words at which something is looked for.
const WORDS: &[&str] = &[
    "identified",
    "password",
    "passphrase",
    "config",
    "configure",
    "auth",
    "setuser",
    "values",
    "select",
    "atlasv1",
    "mmk",
    "private-lines",
    "hooks/",
    "webhooks/",
];

/// Attributes of a cookie, which are no secret.
const OF_COOKIES: &[&str] =
    &["path", "domain", "expires", "max-age", "secure", "httponly", "samesite", "priority", "partitioned", "version"];

/// Words that stand behind `token: ` in a message.
const PROSE: &[&str] = &[
    "absent",
    "bad",
    "cannot",
    "denied",
    "disabled",
    "empty",
    "enabled",
    "error",
    "expired",
    "failed",
    "invalid",
    "malformed",
    "missing",
    "mismatch",
    "not",
    "ok",
    "optional",
    "refused",
    "rejected",
    "required",
    "revoked",
    "timeout",
    "unauthorized",
    "unexpected",
    "unknown",
    "unset",
    "valid",
];

/// First words of SQL, in which what has no quotes is a column or a parameter.
const SQL: &[&str] =
    &["select", "insert", "update", "delete", "with", "merge", "replace", "explain", "upsert", "create", "alter", "begin", "call", "set"];

/// What a byte means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Word,
    Mark,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        if letter.is_ascii_alphanumeric() {
            classes[byte] = Class::Word;
        }
        byte += 1;
    }
    // The last begins the wide forms of `=` and `:`.
    let marks = b"=:>@~%\\&-({,\xef";
    let mut at = 0;
    while at < marks.len() {
        classes[marks[at] as usize] = Class::Mark;
        at += 1;
    }
    classes
};

/// First three bytes of keys that are known by their looks, as bits: one look tells that a word is none.
static OF_SHAPES: [u64; 1024] = {
    let mut set = [0; 1024];
    let mut at = 0;
    while at < shapes::PREFIXES {
        shapes::add_beginning(&mut set, at);
        at += 1;
    }
    set
};

/// The same of words at which something is looked for.
static OF_WORDS: [u64; 1024] = {
    let mut set = [0; 1024];
    let lists: [&[&str]; 4] = [SCHEMES_ANYWHERE, SCHEMES_OF_KEYS, ADDRESSES, WORDS];
    let mut list = 0;
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            let word = lists[list][at].as_bytes();
            let (a, b, c) = (word[0], word[1], word[2]);
            let (up_a, up_b, up_c) = (a.to_ascii_uppercase(), b.to_ascii_uppercase(), c.to_ascii_uppercase());
            shapes::add(&mut set, a, b, c);
            shapes::add(&mut set, up_a, b, c);
            shapes::add(&mut set, up_a, up_b, up_c);
            at += 1;
        }
        list += 1;
    }
    set
};

/// What is looked for at a word.
#[derive(Clone, Copy)]
enum Kind {
    /// What follows it is a credential.
    Scheme,
    /// What follows it is a path, and the credential.
    Address,
    Other,
}

const LISTS: [(Kind, &[&str]); 4] =
    [(Kind::Scheme, SCHEMES_ANYWHERE), (Kind::Scheme, SCHEMES_OF_KEYS), (Kind::Address, ADDRESSES), (Kind::Other, WORDS)];

const KNOWN: usize = SCHEMES_ANYWHERE.len() + SCHEMES_OF_KEYS.len() + ADDRESSES.len() + WORDS.len();

/// All of these by their first letter: those of the letter `n` are `BY_LETTER.0[BY_LETTER.1[n]..BY_LETTER.1[n + 1]]`, in the order of the lists.
static BY_LETTER: ([(Kind, &str); KNOWN], [u8; 27]) = {
    let mut words = [(Kind::Other, ""); KNOWN];
    let mut starts = [0; 27];
    let (mut letter, mut next) = (0, 0);
    while letter < 26 {
        let mut list = 0;
        while list < LISTS.len() {
            let (kind, of_kind) = LISTS[list];
            let mut at = 0;
            while at < of_kind.len() {
                if of_kind[at].as_bytes()[0] == b'a' + letter as u8 {
                    words[next] = (kind, of_kind[at]);
                    next += 1;
                }
                at += 1;
            }
            list += 1;
        }
        letter += 1;
        starts[letter] = next as u8;
    }
    assert!(next == KNOWN, "each begins with a small letter");
    (words, starts)
};

/// Those that begin with this letter.
fn known_words(first: u8) -> impl Iterator<Item = (Kind, &'static str)> {
    let letter = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    let range = if letter < 26 { usize::from(BY_LETTER.1[letter])..usize::from(BY_LETTER.1[letter + 1]) } else { 0..0 };
    BY_LETTER.0[range].iter().copied()
}

/// Where a value begins.
#[derive(Clone, Copy)]
struct Start {
    /// Its first byte.
    at: usize,
    /// The quote before it, and how many backslashes before that.
    quote: Option<(u8, usize)>,
    /// It is the first of a list: `["a", "b"]`, or `[a b]` as Go prints one.
    in_list: bool,
    /// There are three quotes before it.
    triple: bool,
}

/// The next place of something, for all who ask from before it: a text that asks at each of its bytes is still read once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ahead {
    from: usize,
    /// Behind the place: 0 where nobody asked.
    end: usize,
}

impl Ahead {
    /// Where it stands from `at` on. `find` looks for it, and says so with the length of the text where there is none.
    pub(super) fn next(&mut self, at: usize, steps: &mut Steps, find: impl FnOnce() -> usize) -> usize {
        if !(self.from..self.end).contains(&at) {
            let place = find();
            steps.looked = true;
            steps.spend(place.saturating_sub(at));
            *self = Ahead { from: at, end: place + 1 };
        }
        self.end - 1
    }
}

/// What was looked for already in this text.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The end of the line.
    line: Ahead,
    /// A byte of control.
    control: Ahead,
    /// `]`.
    bracket: Ahead,
    /// The quote with these backslashes and `]` behind it.
    list_end: Ahead,
    list_quote: (u8, usize),
    /// Quotes that end a value with lines in it, and three of them.
    quotes: [Ahead; 3],
    triples: [Ahead; 3],
    /// What ends a value without quotes, whatever is open.
    value_end: Ahead,
    /// Any bracket.
    any_bracket: Ahead,
    /// What no key has.
    key_end: Ahead,
    /// What no key with a known part inside has.
    inside_end: Ahead,
    /// `://`.
    url: Ahead,
    /// What begins a password in a rule of Redis.
    acl_mark: Ahead,
    /// What ends a URL.
    url_end: Ahead,
    /// `@`.
    at_sign: Ahead,
    /// The last lines of keys.
    ends: [Ahead; 3],
    shapes: shapes::Seen,
}

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `=`, `=>`, `:=`.
    Equals,
    /// `: `, which prose has, too.
    Colon,
    /// `:` in what Go prints of a struct.
    Struct,
}

/// Fills `found` with the parts of a text that are credentials, in order and apart.
pub(super) fn find(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    found.clear();
    names.steps.begin(text.len());
    find_all(text, names, found);
    if names.steps.is_spent() {
        // Nobody knows what stands in the rest.
        found.clear();
        found.push(0..text.len());
    }
}

fn find_all(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) {
    let (escaped, commands) = scan(text, names, found);
    if commands {
        commands::of_text(text, names, found);
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
            commands::of_text(&plain, names, &mut inside);
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

/// A text without `%3D`, `\n`, `\"`, `\u003d`, `&quot;`, and for each byte of it the place where it came from; `None` where it has none.
fn unescaped(text: &str) -> Option<(String, Vec<usize>)> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut from = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    let mut any = false;
    while at < bytes.len() {
        match escape(&bytes[at..]).filter(|(c, _)| !c.is_control() || "\n\r\t\x1b".contains(*c)) {
            Some((c, length)) => {
                out.push(c);
                from.extend(std::iter::repeat_n(at, c.len_utf8()));
                at += length;
                any = true;
            }
            None => {
                let c = text[at..].chars().next().unwrap_or_default();
                out.push(c);
                from.extend(at..at + c.len_utf8());
                at += c.len_utf8();
            }
        }
    }
    from.push(text.len());
    any.then_some((out, from))
}

/// The character that a text has in another writing here, and how long that is.
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    match bytes {
        [b'%' | b'\\', b'u', digits @ ..] => {
            // `\u003d`, `%u003d`, `\u{3d}`.
            let (digits, around) = match digits {
                [b'{', digits @ ..] => (&digits[..digits.iter().take(7).position(|byte| *byte == b'}')?], 4),
                _ => (digits.get(..4)?, 2),
            };
            char::from_u32(number(digits, 16)?).map(|c| (c, digits.len() + around))
        }
        [b'%', ..] => encoded(bytes, "%"),
        [b'\\', b'x', ..] => encoded(bytes, "\\x"),
        [b'\\', digits @ ..] if digits.len() > 2 && matches!(digits[0], b'0' | b'1') => {
            char::from_u32(number(&digits[..3], 8)?).map(|c| (c, 4))
        }
        [b'\\', b'n', ..] => Some(('\n', 2)),
        [b'\\', b'r', ..] => Some(('\r', 2)),
        [b'\\', b't', ..] => Some(('\t', 2)),
        [b'\\', byte @ (b'"' | b'\'' | b'/' | b'\\'), ..] => Some((char::from(*byte), 2)),
        [b'&', rest @ ..] => {
            let length = rest.iter().take(ENTITY_BYTES_MAX).position(|byte| *byte == b';')?;
            let c = match &rest[..length] {
                [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
                [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
                name => ENTITIES.iter().find(|(known, _)| known.as_bytes() == name)?.1,
            };
            Some((c, length + 2))
        }
        _ => None,
    }
}

/// The longest name or number of an entity.
const ENTITY_BYTES_MAX: usize = 10;

/// Names of entities that stand for a mark.
const ENTITIES: &[(&str, char)] = &[
    ("quot", '"'),
    ("apos", '\''),
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("equals", '='),
    ("colon", ':'),
    ("semi", ';'),
    ("comma", ','),
    ("commat", '@'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("lowbar", '_'),
    ("hyphen", '-'),
    ("period", '.'),
    ("nbsp", ' '),
    ("lcub", '{'),
    ("rcub", '}'),
    ("lsqb", '['),
    ("rsqb", ']'),
    ("NewLine", '\n'),
    ("Tab", '\t'),
];

/// A character whose bytes are each written with two digits behind this: `%3D`, `%C3%B1`.
fn encoded(bytes: &[u8], before: &str) -> Option<(char, usize)> {
    let step = before.len() + 2;
    let byte = |at: usize| {
        let digits = bytes.get(at * step..)?.strip_prefix(before.as_bytes())?.get(..2);
        hex(digits)
    };
    let first = byte(0)?;
    let length = match first {
        0..0x80 => return Some((char::from(first), step)),
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return None,
    };
    let mut utf8 = [first; 4];
    for (at, place) in utf8.iter_mut().enumerate().take(length).skip(1) {
        *place = byte(at)?;
    }
    let c = std::str::from_utf8(&utf8[..length]).ok()?.chars().next()?;
    Some((c, length * step))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u32::from_str_radix(digits, radix).ok()
}

fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let &[high, low] = digits? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// One pass; says whether the text has escapes, and whether it has options of a command line.
fn scan(text: &str, names: &mut Names, found: &mut Vec<Range<usize>>) -> (bool, bool) {
    names.steps.spend(text.len());
    // Most texts look for nothing, and then nothing has to be forgotten.
    if std::mem::take(&mut names.steps.looked) {
        names.seen = Seen::default();
    }
    let mut scan = Scan {
        text,
        bytes: text.as_bytes(),
        names,
        found,
        hidden_to: 0,
        escaped: false,
        commands: false,
        braces: false,
        is_sql: None,
        is_map: None,
        pair: None,
        lone: None,
        harmless_to: 0,
        values_to: 0,
    };
    scan.run();
    (scan.escaped, scan.commands || commands::begins_with_one(text))
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    names: &'a mut Names,
    found: &'a mut Vec<Range<usize>>,
    /// What stands before is hidden.
    hidden_to: usize,
    /// There are escapes.
    escaped: bool,
    /// There are options of a command line.
    commands: bool,
    /// A brace or a bracket of what Go prints was seen.
    braces: bool,
    /// Whether the text is SQL, once that was asked.
    is_sql: Option<bool>,
    /// The same of a map of Go's.
    is_map: Option<bool>,
    /// The last `name=` or `key:` of a pair.
    pair: Option<Pair>,
    /// The value of a pair whose name did not stand before it.
    lone: Option<(Start, Pair)>,
    /// Objects up to here have nothing in them that could be a credential.
    harmless_to: usize,
    /// Values of an INSERT up to here were looked at.
    values_to: usize,
}

/// One half of a pair: `"name": "TOKEN"` of `{"name": "TOKEN", "value": "…"}`.
#[derive(Clone, Copy)]
struct Pair {
    /// What stands behind its mark.
    behind: usize,
    /// Up to here it is known how many brackets are open.
    seen_to: usize,
    open: i32,
}

impl Pair {
    fn of(behind: usize) -> Self {
        Pair { behind, seen_to: behind, open: 0 }
    }

    /// Whether it stands in the same brackets or element as this place. Each byte is looked at once, however often that is asked.
    fn is_beside(&mut self, bytes: &[u8], at: usize) -> bool {
        if at < self.behind || at - self.behind > PAIR_BYTES_MAX {
            return false;
        }
        while self.seen_to < at && self.open >= 0 {
            let rest = &bytes[self.seen_to..at];
            self.open += match rest {
                [b'{' | b'(', ..] => 1,
                [b'}' | b')', ..] | [b'<', b'/', ..] | [b'/', b'>', ..] => -1,
                [b'<', byte, ..] if byte.is_ascii_alphabetic() => 1,
                // The next of a list of YAML.
                [b'\n', line @ ..] if line.iter().find(|byte| **byte != b' ') == Some(&b'-') => -1,
                _ => 0,
            };
            self.seen_to += 1;
        }
        self.open >= 0
    }
}

/// Length of the sequence that sets a colour in a terminal, where the text begins with one: its last letter is none of the word behind it.
fn colour_length(text: &[u8]) -> usize {
    let Some(parameters) = text.strip_prefix(b"\x1b[") else { return 0 };
    let length = parameters.iter().take(COLOUR_BYTES_MAX).position(|byte| !matches!(byte, b'0'..=b';'));
    length.filter(|length| parameters[*length] == b'm').map_or(0, |length| 2 + length + 1)
}

/// The same where it ends with one.
fn colour_before(text: &[u8]) -> Option<usize> {
    let parameters = text.strip_suffix(b"m")?;
    let length = parameters.iter().rev().take(COLOUR_BYTES_MAX).take_while(|byte| matches!(byte, b'0'..=b';')).count();
    parameters[..parameters.len() - length].ends_with(b"\x1b[").then_some(length + 3)
}

/// Parameters of a colour: `38;2;255;255;255` and a second one like it.
const COLOUR_BYTES_MAX: usize = 40;

impl Scan<'_> {
    fn run(&mut self) {
        let bytes = self.bytes;
        let mut at = 0;
        while at < bytes.len() {
            match CLASSES[bytes[at] as usize] {
                Class::Other if bytes[at] != b'\x1b' => at += 1,
                Class::Other => at += colour_length(&bytes[at..]).max(1),
                Class::Word => {
                    if let Some(end) = self.word(at) {
                        at = end;
                        continue;
                    }
                    let start = at;
                    at += bytes[at..].iter().position(|byte| CLASSES[*byte as usize] != Class::Word).unwrap_or(bytes.len() - at);
                    if at - start >= shapes::HEX_BYTES {
                        self.inside(start..at);
                    }
                }
                Class::Mark => at = self.mark(at).unwrap_or(at + 1),
            }
        }
    }

    /// Whether the text took all its steps. Whoever is about to take some asks, and then goes to the end of the text at once.
    fn is_spent(&self) -> bool {
        self.names.steps.is_spent()
    }

    /// Notes a credential; the place behind it, or `None` where there is none or it is hidden already.
    fn hide(&mut self, range: Range<usize>) -> Option<usize> {
        let range = range.start.max(self.hidden_to)..range.end;
        if range.is_empty() || is_redacted(self.text, &range) {
            return None;
        }
        self.hidden_to = range.end;
        // Nobody looks into it again: read without its escapes it may end earlier, and the next name stand in it.
        self.escaped |= self.bytes[range.clone()].iter().any(|byte| matches!(byte, b'\\' | b'%'));
        self.found.push(range.clone());
        Some(range.end)
    }

    /// A word begins here. The end of the credential that it is or that follows it.
    fn word(&mut self, at: usize) -> Option<usize> {
        let bytes = &self.bytes[at..];
        let &[a, b, c, ..] = bytes else { return None };
        if (shapes::has(&OF_SHAPES, a, b, c) || a.is_ascii_digit() && b.is_ascii_digit()) && bytes.len() >= shapes::SHAPE_BYTES_MIN {
            if self.is_spent() {
                return Some(self.bytes.len());
            }
            if let Some(end) = shapes::shape_at(self.bytes, at, &mut self.names.seen.shapes, &mut self.names.steps) {
                return self.hide(at..end);
            }
        }
        if !shapes::has(&OF_WORDS, a, b, c) {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let (kind, word) = known_words(a).find(|(kind, word)| {
            // A scheme is a word of its own; the others may go on.
            starts_with_ignoring_case(bytes, word)
                && (!matches!(kind, Kind::Scheme) || !bytes.get(word.len()).is_some_and(|byte| is_of_scheme(*byte)))
        })?;
        match kind {
            Kind::Scheme => return self.behind_scheme(at, word),
            Kind::Address => {
                let start = at + word.len();
                let path = &bytes[word.len()..];
                return self.hide(start..start + path.iter().position(|byte| ends_path(*byte)).unwrap_or(path.len()));
            }
            Kind::Other => {}
        }
        match &word {
            &"identified" => self.identified_by(at + "identified".len()),
            word @ (&"password" | &"passphrase") => self.password_literal(at, at + word.len()),
            // `config set`, `configure", "set"`.
            &"config" | &"configure" => {
                let near = &bytes[..bytes.len().min(24)];
                self.commands |= near.windows(3).any(|word| word.eq_ignore_ascii_case(b"set"));
                None
            }
            &"auth" => self.auth_command(at),
            &"setuser" => self.set_user(at),
            &"values" => self.inserted(at, at + "values".len(), 0),
            // `INSERT INTO t (a, b) SELECT …`: a tuple without brackets.
            &"select" => self.inserted(at, at + "select".len(), 1),
            &"atlasv1" => self.inside_at(at.checked_sub(15)?, at),
            &"mmk" => self.inside_at(at.checked_sub(37)?, at),
            // The mark behind it sees the rest.
            &"private-lines" => {
                let start = self.line_end(at);
                let end = self.end_of_key(start, 0, "Private-MAC");
                self.hide(start..start + self.text[start..end].trim_end().len())
            }
            // Discord's, at whatever host and version of its API.
            &"webhooks/" => {
                let start = at + "webhooks/".len();
                let path = &self.bytes[start..];
                let id = path.iter().take(21).take_while(|byte| byte.is_ascii_digit()).count();
                let token = path.get(id + 1..).unwrap_or_default().iter().take(200).take_while(|byte| is_of_scheme(**byte)).count();
                let is_one = (15..=20).contains(&id) && path.get(id) == Some(&b'/') && token >= 40;
                if is_one { self.hide(start..start + id + 1 + token) } else { None }
            }
            &"hooks/" => {
                let path = &bytes["hooks/".len()..];
                let length = path.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(path.len());
                let start = at + "hooks/".len();
                if length == 26 && is_mixed(&path[..length]) { self.hide(start..start + length) } else { None }
            }
            _ => None,
        }
    }

    /// A long word may have a known part inside, or behind it.
    fn inside(&mut self, word: Range<usize>) {
        if shapes::INSIDE_LENGTHS.contains(&word.len()) && shapes::shape_inside(&self.bytes[word.clone()]) {
            self.hide(word);
        } else if word.len() == shapes::HEX_BYTES
            && self.bytes.get(word.end) == Some(&b'-')
            && let Some(length) = shapes::behind_hex(&self.bytes[word.start..])
        {
            self.hide(word.start..word.start + length);
        }
    }

    /// The same where the part was seen: all characters of a key around it.
    fn inside_at(&mut self, start: usize, seen: usize) -> Option<usize> {
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let bytes = self.bytes;
        let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~.+/=".contains(&byte);
        let end = self.names.seen.inside_end.next(start, &mut self.names.steps, || position(bytes, start, |byte| !is_of_key(byte)));
        let dots = bytes[start..end].iter().rev().take_while(|byte| **byte == b'.').count();
        self.names.steps.spend(dots);
        let length = end - start - dots;
        (start + length > seen && shapes::shape_inside(&self.bytes[start..start + length]))
            .then(|| self.hide(start..start + length))
            .flatten()
    }

    fn mark(&mut self, at: usize) -> Option<usize> {
        let next = self.bytes.get(at + 1).copied();
        match self.bytes[at] {
            b'=' => {
                let length = 1 + usize::from(matches!(next, Some(b'=' | b'>' | b'~')));
                let (name, _) = self.name_before(at)?;
                self.value_of(name, at + length, Operator::Equals)
            }
            b':' => self.colon(at, next),
            b'>' => self.behind_tag(at),
            b',' => self.behind_comma(at),
            b'(' => {
                let quoted = matches!(next, Some(b'"' | b'\''));
                let name = quoted.then(|| self.name_before(at)).flatten()?.0;
                let called = &self.text[name.clone()];
                // Who gets a token says by which name.
                let sets = || {
                    called.rsplit('.').next().is_some_and(|name| ["set", "Set", "with", "With"].iter().any(|verb| name.starts_with(verb)))
                };
                let takes = match self.names.meaning(called) {
                    Meaning::Password => true,
                    Meaning::Token => sets(),
                    _ => false,
                };
                takes.then(|| self.value_of(name, at + 1, Operator::Equals)).flatten()
            }
            b'@' => self.before_at_sign(at),
            b'~' => (at > 0 && self.bytes[at - 1] == b'Q').then(|| self.inside_at(at.checked_sub(5)?, at)).flatten(),
            b'-' => self.dash(at, next),
            b'{' => {
                self.braces = true;
                None
            }
            b'%' => {
                self.escaped |= next.is_some_and(|byte| byte.is_ascii_hexdigit() || byte == b'u');
                None
            }
            b'\\' => {
                self.escaped = true;
                None
            }
            0xef => {
                let operator = match self.bytes[at..] {
                    [_, 0xbc, 0x9a, ..] => Operator::Colon,
                    [_, 0xbc, 0x9d, ..] => Operator::Equals,
                    _ => return None,
                };
                let (name, _) = self.name_before(at)?;
                self.value_of(name, at + "：".len(), operator)
            }
            // An entity, or one command behind another.
            _ => {
                self.commands |= next == Some(b'&');
                self.escaped |= next.is_some_and(|byte| byte == b'#' || byte.is_ascii_alphabetic())
                    && self.bytes[at..self.bytes.len().min(at + 2 + ENTITY_BYTES_MAX)].contains(&b';');
                None
            }
        }
    }

    fn colon(&mut self, at: usize, next: Option<u8>) -> Option<usize> {
        if next == Some(b'/') && self.bytes.get(at + 2) == Some(&b'/') {
            return self.url(at + 3);
        }
        // `Class::method`, `urn::x`.
        if next == Some(b':') || at > 0 && self.bytes[at - 1] == b':' {
            return None;
        }
        if next == Some(b'=') {
            let (name, _) = self.name_before(at)?;
            return self.value_of(name, at + 2, Operator::Equals);
        }
        let (name, quoted) = self.name_before(at)?;
        if quoted || matches!(next, None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x1b' | b'"' | b'\'' | b'`' | b'\\' | b'[')) {
            return self.value_of(name, at + 1, if quoted { Operator::Equals } else { Operator::Colon });
        }
        let before = name.start.checked_sub(1).map(|before| self.bytes[before]);
        let is_field = matches!(before, Some(b'{' | b' ' | b',' | b'(' | b'[')) && (self.braces || self.is_map());
        let is_header = matches!(before, None | Some(b'"' | b'\'' | b' ' | b'\n' | b'`')) && is_header(&self.text[name.clone()]);
        (is_field || is_header).then(|| self.value_of(name, at + 1, Operator::Struct)).flatten()
    }

    /// Whether there is a map as Go prints it.
    fn is_map(&mut self) -> bool {
        let text = self.text;
        *self.is_map.get_or_insert_with(|| text.contains("map["))
    }

    /// The name that stands before a mark, and whether in quotes.
    fn name_before(&self, mark: usize) -> Option<(Range<usize>, bool)> {
        let bytes = &self.bytes[..mark];
        let blanks = |bytes: &[u8]| bytes.iter().rev().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let mut end = mark - blanks(bytes);
        while let Some(length) = colour_before(&bytes[..end]) {
            end -= length;
            end -= blanks(&bytes[..end]);
        }
        let closers =
            self.bytes[..end].iter().rev().take(8).take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b']' | b'[')).count();
        let quoted = self.bytes[end - closers..end].iter().any(|byte| b"\"'`".contains(byte));
        end -= closers;
        let length = self.bytes[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
        let mut start = end - length;
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        // The last letter of a colour is none of the name behind it.
        if start > 0 && b"[;".contains(&self.bytes[start - 1]) {
            let digits = self.bytes[start..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let behind = (start + digits + 1).min(end);
            start = if colour_before(&self.bytes[..behind]).is_some() { behind } else { start };
        }
        (start < end).then_some((start..end, quoted))
    }

    /// The value of this name, if it is a credential.
    fn value_of(&mut self, name: Range<usize>, behind: usize, operator: Operator) -> Option<usize> {
        let meaning = self.meaning_at(&name, behind);
        if meaning == Meaning::Plain {
            return self.half_of_pair(name, behind);
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let start = self.value_start(behind)?;
        if start.quote.is_none() && !start.in_list && goes_on_in_next_line(&self.bytes[start.at..]) {
            return self.on_next_lines(meaning, name, start.at, operator);
        }
        self.value_or_object(meaning, behind, start, operator)
    }

    fn value_or_object(&mut self, meaning: Meaning, behind: usize, start: Start, operator: Operator) -> Option<usize> {
        if let Some((from, open)) = self.object_at(meaning, behind, start) {
            return self.object(from, open, meaning);
        }
        let start = self.inside_call(meaning, start);
        self.value_at(meaning, start, operator)
    }

    /// A value that begins on the line behind its name: as JSON is printed, or deeper than the name as YAML has it.
    fn on_next_lines(&mut self, meaning: Meaning, name: Range<usize>, at: usize, operator: Operator) -> Option<usize> {
        let bytes = self.bytes;
        let is_block = !bytes[at].is_ascii_whitespace();
        let from = name.start.saturating_sub(NAME_BYTES_MAX);
        let line = bytes[from..name.start].iter().rposition(|byte| *byte == b'\n').map_or(from, |before| from + before + 1);
        if line > 0 && bytes[line - 1] != b'\n' {
            return None;
        }
        let column = bytes[line..name.start].iter().take_while(|byte| b" \t-".contains(byte)).count();
        let mut lines = Lines { bytes, at: self.line_end(at), column };
        if !is_block && matches!(bytes.get(name.end), Some(b'"' | b'\'' | b'\\')) {
            lines.column = 0;
            let first = lines.next_at_any_column()?;
            let start = self.value_start(first.start)?;
            return if start.quote.is_some() || start.in_list || bytes[start.at] == b'{' {
                self.value_or_object(meaning, first.start, start, operator)
            } else {
                None
            };
        }
        let first = lines.next()?;
        self.names.steps.spend(first.len());
        if is_block {
            let end = lines.last().map_or(first.end, |last| last.end);
            return self.hide(first.start..end);
        }
        let start = self.value_start(first.start)?;
        if start.quote.is_some() || start.in_list {
            return self.value_at(meaning, start, Operator::Equals);
        }
        if member(&self.text[first.clone()]).is_some() {
            self.members(name, first, lines);
            return None;
        }
        // Several words are a message, or a stack.
        let word = |line: &Range<usize>| {
            let text = self.text[line.clone()].trim_end();
            let item = text.strip_prefix("- ").unwrap_or(text).trim_start();
            (!item.contains(char::is_whitespace) && member(text).is_none())
                .then_some(line.start + text.len() - item.len()..line.start + text.len())
        };
        let value = word(&first)?;
        let end = lines.map_while(|line| word(&line)).last().map_or(value.end, |last| last.end);
        let start = Start { at: value.start, quote: None, in_list: false, triple: false };
        if is_nothing(&self.text[value.clone()]) || !self.is_credential(meaning, start, value.end, operator) {
            return None;
        }
        self.hide(value.start..end)
    }

    /// What stands below a name: `password:`, `  value: …`. It is a credential if both names together say so.
    fn members(&mut self, name: Range<usize>, first: Range<usize>, lines: Lines<'_>) {
        let text = self.text;
        for line in std::iter::once(first).chain(lines).take(LINES_MAX) {
            self.names.steps.spend(line.len());
            let Some((key, behind)) = member(&text[line.clone()]) else { continue };
            let of_key = self.names.meaning(key);
            let of_both = self.names.meaning(&format!("{}.{key}", &text[name.clone()]));
            let start = self.value_start(line.start + behind).filter(|start| start.at < line.end);
            let Some(start) = start.filter(|_| of_key == Meaning::Plain && !matches!(of_both, Meaning::Plain | Meaning::Maybe)) else {
                continue;
            };
            let value = start.at..self.value_end(start).min(line.end).max(start.at);
            let is_one = !is_nothing(&text[value.clone()]) && self.is_credential(of_both, start, value.end, Operator::Equals);
            if is_one && !is_redacted(text, &value) {
                self.found.push(value);
            }
        }
    }

    /// Where a value ends that is base64 and goes on in the lines below.
    fn past_base64(&mut self, start: usize, mut end: usize) -> usize {
        let bytes = self.bytes;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte);
        let mut length = end - start;
        while length >= BASE64_LINE_BYTES_MIN
            && matches!(bytes.get(end), Some(b'\n' | b'\r'))
            && bytes[end - length..end].iter().all(is_base64)
        {
            let next = end + bytes[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            length = bytes[next..].iter().take_while(|byte| is_base64(byte)).count();
            self.names.steps.spend(length);
            let is_line = length > 0 && bytes.get(next + length).is_none_or(|byte| byte.is_ascii_control() || b",;\"'`<&)".contains(byte));
            if !is_line {
                break;
            }
            end = next + length;
        }
        end
    }

    /// `INSERT INTO users (name, password) VALUES ('a', '…')`: the texts in the place of a column with such a name.
    fn inserted(&mut self, at: usize, start: usize, open_brackets: u32) -> Option<usize> {
        let columns = self.bytes[..at].trim_ascii_end().strip_suffix(b")")?;
        if at < self.values_to {
            return None;
        }
        let near = &columns[columns.len().saturating_sub(COLUMNS_BYTES_MAX)..];
        let open = near.iter().rposition(|byte| *byte == b'(')?;
        self.names.steps.spend(near.len() - open);
        let columns = self.text.get(columns.len() - near.len() + open + 1..columns.len())?;
        let is_one = |column: &str, names: &mut Names| {
            let name = column.trim_matches(|c: char| c.is_whitespace() || "\"'`[]\\".contains(c));
            !matches!(names.meaning(name), Meaning::Plain | Meaning::Maybe)
        };
        // Most statements have parameters in place of texts: nobody has to know their columns.
        let mut known: Option<Vec<bool>> = None;
        let bytes = self.bytes;
        let (mut at, mut column, mut depth, mut last) = (start, 0, open_brackets, None);
        while at < bytes.len() {
            match bytes[at] {
                b'(' => {
                    column = if depth == 0 { 0 } else { column };
                    depth += 1;
                }
                b')' => depth = depth.saturating_sub(1),
                b',' if depth <= 1 => column += 1,
                quote @ (b'\'' | b'"') if depth > 0 => {
                    let length = closing(&bytes[at + 1..], quote, 0).unwrap_or_else(|stop| stop);
                    let value = at + 1..at + 1 + length;
                    let known = known.get_or_insert_with(|| columns.split(',').map(|column| is_one(column, self.names)).collect());
                    if !known.contains(&true) {
                        break;
                    }
                    if known.get(column) == Some(&true) && !is_nothing(&self.text[value.clone()]) {
                        last = self.hide(value.clone()).or(last);
                    }
                    at = value.end;
                }
                byte if depth == 0 && !byte.is_ascii_whitespace() => break,
                _ => {}
            }
            at += 1;
        }
        self.names.steps.spend(at - start);
        self.values_to = at;
        last
    }

    /// The value that begins here, if it is a credential where its name says this.
    fn value_at(&mut self, meaning: Meaning, start: Start, operator: Operator) -> Option<usize> {
        match meaning {
            Meaning::Authorization => self.authorization(start),
            Meaning::Cookie | Meaning::SetCookie => self.cookies(start, meaning),
            _ => {
                let end = match meaning {
                    Meaning::Maybe if start.quote.is_none() && !start.in_list => self.key_end(start.at)?,
                    _ => self.value_end(start),
                };
                let value = &self.text[start.at..end];
                if is_nothing(value) || !self.is_credential(meaning, start, end, operator) {
                    return None;
                }
                let end = if start.quote.is_none() { self.past_base64(start.at, end) } else { end };
                self.hide(start.at..end)
            }
        }
    }

    /// What a name says, with the word before it (`API key: …`) and the name of which it is the value (`"name": "TOKEN", "value": …`).
    fn meaning_at(&mut self, name: &Range<usize>, behind: usize) -> Meaning {
        let text = self.text;
        let of_name = self.names.meaning(&text[name.clone()]);
        if of_name != Meaning::Plain {
            return of_name;
        }
        let word = &self.bytes[name.clone()];
        if (word.eq_ignore_ascii_case(b"key") || word.eq_ignore_ascii_case(b"string"))
            && name.start > 1
            && self.bytes[name.start - 1] == b' '
        {
            let before =
                self.bytes[..name.start - 1].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            return self.names.meaning(&text[name.start - 1 - before..name.end]);
        }
        // `mot de passe`.
        if word.eq_ignore_ascii_case(b"passe") && self.bytes[..name.start].to_ascii_lowercase_ends_with(b"mot de ") {
            return Meaning::Password;
        }
        // `Unseal Key 1: …`.
        if word.len() <= 2 && word.iter().all(u8::is_ascii_digit) && name.start > 1 && self.bytes[name.start - 1] == b' ' {
            let end = name.start - 1;
            let before = self.bytes[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            return if before > 2 { self.meaning_at(&(end - before..end), behind) } else { Meaning::Plain };
        }
        if is_value_of_pair(word) {
            return self.meaning_of_pair(name.start, behind);
        }
        Meaning::Plain
    }

    /// `"name": "TOKEN", "value"`, `key=password value`, `{"key":"password","value":{"stringValue"`: what the name of the pair says.
    fn meaning_of_pair(&mut self, value: usize, behind: usize) -> Meaning {
        let bytes = self.bytes;
        let name = self.pair.as_mut().and_then(|pair| pair.is_beside(bytes, value).then_some(pair.behind));
        match name {
            Some(name) => self.meaning_of_name_at(name),
            None => {
                self.pair = None;
                self.lone = self.value_start(behind).map(|start| (start, Pair::of(behind)));
                Meaning::Plain
            }
        }
    }

    /// What the name says that is the value of `"name": `.
    fn meaning_of_name_at(&mut self, behind: usize) -> Meaning {
        let Some(start) = self.value_start(behind) else { return Meaning::Plain };
        let near = &self.bytes[start.at..self.bytes.len().min(start.at + NAME_BYTES_MAX)];
        let length = match start.quote {
            Some((quote, slashes)) => closing(near, quote, slashes).unwrap_or(0),
            None => near.iter().take_while(|byte| is_of_name(**byte)).count(),
        };
        let end = start.at + length;
        if self.text.is_char_boundary(end) { self.names.meaning(&self.text[start.at..end]) } else { Meaning::Plain }
    }

    /// A name without a meaning may be one half of a pair. Its value, if that stands before it: `{"value": "…", "name": "TOKEN"}`.
    fn half_of_pair(&mut self, name: Range<usize>, behind: usize) -> Option<usize> {
        if !is_name_of_pair(&self.bytes[name.clone()]) {
            return None;
        }
        self.pair = Some(Pair::of(behind));
        let (start, mut pair) = self.lone.take()?;
        if start.quote.is_none() || !pair.is_beside(self.bytes, name.start) {
            return None;
        }
        let meaning = self.meaning_of_name_at(behind);
        if meaning == Meaning::Plain || self.is_spent() {
            return None;
        }
        let end = self.value_end(start);
        let value = start.at..end;
        if end <= name.start && !is_nothing(&self.text[value.clone()]) && self.is_credential(meaning, start, end, Operator::Equals) {
            // What stands behind it was seen already, so it is not the last that is hidden.
            if !is_redacted(self.text, &value) {
                self.found.push(value);
            }
        }
        None
    }

    /// `"X-Api-Key", "…"`: two elements of a list or a tuple, or what a call takes.
    fn behind_comma(&mut self, at: usize) -> Option<usize> {
        // Most commas stand behind the member of an object, which has a colon before it, or behind no quote at all.
        let (quote, rest) = self.bytes[..at].split_last().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
        let slashes = rest.iter().rev().take(8).take_while(|byte| **byte == b'\\').count();
        let end = rest.len() - slashes;
        let length = rest[..end].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_name(**byte)).count();
        let open = (end - length).checked_sub(1)?;
        if length < 2 || rest[open] != *quote || open > 0 && rest[open - 1] == b':' || !self.text.is_char_boundary(end - length) {
            return None;
        }
        let name = end - length..end;
        let before = &self.bytes[..open];
        let before = &before[..before.len() - before.iter().rev().take(8).take_while(|byte| **byte == b'\\').count()];
        let before = before.strip_suffix(b"b").unwrap_or(before);
        let blanks = before.iter().rev().take(64).take_while(|byte| byte.is_ascii_whitespace()).count();
        let before = &before[..before.len() - blanks];
        let is_first = match before.last()? {
            b'(' | b'[' | b'{' => true,
            b',' => false,
            _ => return None,
        };
        // Others in a list may be anything. Ids are no names, and need not be remembered as such.
        if !is_first && !is_header(&self.text[name.clone()]) || self.bytes[name.clone()].iter().any(u8::is_ascii_digit) {
            return None;
        }
        // Who sets it means a value, and so does the name of a variable; elsewhere another name may follow.
        let is_variable = self.bytes[name.clone()].contains(&b'_') && !self.bytes[name.clone()].iter().any(u8::is_ascii_lowercase);
        let means_value = is_first && (is_variable || sets(before));
        if !means_value && is_quoted_name(self.bytes[at + 1..].trim_ascii_start()) {
            return None;
        }
        let meaning = self.names.meaning(&self.text[name]);
        if meaning == Meaning::Plain {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        let start = self.value_start(at + 1)?;
        let start = self.inside_call(meaning, start);
        start.quote.filter(|_| !start.in_list)?;
        let end = self.value_end(start);
        let value = &self.text[start.at..end];
        if (!means_value || value.contains(' ')) && is_told(value) {
            return None;
        }
        self.value_at(meaning, start, Operator::Equals)
    }

    /// Whether the value is an object: `{"value": "…"}`, `Secret { inner: "…" }`, `map[value:…]`. Where it begins and where it opens.
    fn object_at(&self, meaning: Meaning, behind: usize, start: Start) -> Option<(usize, usize)> {
        if start.quote.is_some() || meaning == Meaning::Maybe {
            return None;
        }
        if start.in_list {
            let list = self.past_blanks(behind);
            return (self.bytes[start.at] == b'{').then_some((list, list));
        }
        let rest = &self.bytes[start.at..];
        if let Some(of_type) = go_type_length(rest) {
            return Some((start.at, start.at + of_type));
        }
        let name = rest.iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"_:&.*".contains(byte)).count();
        let name = if rest.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'&') { name } else { 0 };
        let blank = usize::from(name > 0 && rest.get(name) == Some(&b' '));
        let at = start.at + name + blank;
        // `{{ .Values.password }}` is none.
        let is_open = self.bytes.get(at) == Some(&b'{') && (name > 0 || self.bytes.get(at + 1) != Some(&b'{'));
        is_open.then_some((start.at, at))
    }

    /// An object behind the name of a credential: everything in it is one, unless it only tells of which kind the credential is.
    fn object(&mut self, from: usize, open: usize, meaning: Meaning) -> Option<usize> {
        if open < self.harmless_to {
            return None;
        }
        let (text, bytes) = (self.text, self.bytes);
        let is_kind = |range: Range<usize>| is_kind(&text[range.clone()]) || meaning == Meaning::Tokens && is_names(&text[range]);
        let (mut at, mut depth, mut harmless) = (open, 0u32, true);
        while at < bytes.len() {
            match bytes[at] {
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        at += 1;
                        break;
                    }
                }
                quote @ (b'"' | b'\'' | b'`') => {
                    let slashes = bytes[open..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                    let length = closing(&bytes[at + 1..], quote, slashes).unwrap_or_else(|stop| stop);
                    let end = at + 1 + length;
                    harmless &= self.is_name_in_object((end + slashes + 1).min(bytes.len())) || is_kind(at + 1..end);
                    at = end + slashes;
                }
                byte if is_of_name(byte) => {
                    let end = position(bytes, at, |byte| !is_of_name(byte) && !b"+/~!@#%^*?".contains(&byte));
                    let is_type = bytes[end..].trim_ascii_start().first().is_some_and(|byte| b"{(".contains(byte));
                    harmless &= is_type || self.is_name_in_object(end) || is_kind(at..end);
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        let end = at.min(bytes.len());
        self.names.steps.spend(end - open);
        if harmless {
            self.harmless_to = end;
            return None;
        }
        self.hide(from..end)
    }

    /// Whether what ends here is a name and not a value.
    fn is_name_in_object(&self, end: usize) -> bool {
        let behind = self.bytes[end..].iter().take(8).find(|byte| !byte.is_ascii_whitespace());
        behind.is_some_and(|byte| b":=".contains(byte))
    }

    /// Past what makes the value: `Password("…")`, `crypt('…', …)`.
    fn inside_call(&self, meaning: Meaning, start: Start) -> Start {
        let mut at = start.at;
        if start.quote.is_some() || start.in_list || meaning == Meaning::Maybe {
            return start;
        }
        for _ in 0..CALLS_MAX {
            let rest = &self.bytes[at..];
            let length = rest.iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || b"_:.&".contains(byte)).count();
            let is_type = rest.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'&');
            if length == 0 || rest.get(length) != Some(&b'(') || !is_type && meaning != Meaning::Password {
                return start;
            }
            match self.value_start(at + length + 1) {
                Some(inside) if inside.quote.is_some() && !inside.in_list => return inside,
                Some(inside) => at = inside.at,
                None => return start,
            }
        }
        start
    }

    /// Where the value begins: past blanks, the bracket of a list, `b` or `N` of a literal, and quotes with their backslashes.
    fn value_start(&self, behind: usize) -> Option<Start> {
        let mut at = self.past_blanks(behind);
        let rest = &self.text[at..];
        let in_list =
            rest.starts_with('[') && !rest.starts_with(REDACTED) && !(rest.starts_with("[]") && go_type_length(rest.as_bytes()).is_some());
        if in_list {
            at += 1 + self.bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        // What Rust prints of an option.
        let rest = &self.bytes[at..];
        let some = if rest.starts_with(b"Some(") { "Some(".len() } else { 0 };
        at += some;
        let rest = &self.bytes[at..];
        let literal = usize::from(matches!(rest, [b'b' | b'B' | b'u' | b'U' | b'r' | b'N' | b'n' | b'E' | b'@' | b'$', b'"' | b'\'', ..]));
        let slashes = rest[literal..].iter().take_while(|byte| **byte == b'\\').count();
        let start = match rest.get(literal + slashes) {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                let triple = slashes == 0 && rest[literal..].starts_with(&[*quote; 3]);
                let length = literal + slashes + if triple { 3 } else { 1 };
                Start { at: at + length, quote: Some((*quote, slashes)), in_list, triple }
            }
            _ => Start { at, quote: None, in_list, triple: false },
        };
        (start.at < self.bytes.len()).then_some(start)
    }

    /// Past blanks and colours.
    fn past_blanks(&self, mut at: usize) -> usize {
        loop {
            at += self.bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            match colour_length(&self.bytes[at..]) {
                0 => return at,
                length => at += length,
            }
        }
    }

    fn value_end(&mut self, start: Start) -> usize {
        let Start { at, quote, in_list, triple } = start;
        let (text, bytes) = (self.text, self.bytes);
        match quote {
            Some((quote, slashes)) => {
                // All of the list: to its bracket, without the quote before that.
                if in_list {
                    if self.names.seen.list_quote != (quote, slashes) {
                        self.names.seen.list_quote = (quote, slashes);
                        self.names.seen.list_end = Ahead::default();
                    }
                    let end = self.names.seen.list_end.next(at, &mut self.names.steps, || {
                        let ends = (at..bytes.len()).filter(|at| bytes[*at] == b']').find_map(|bracket| {
                            let before = bytes[at..bracket].trim_ascii_end().strip_suffix(&[quote])?;
                            let length = before.iter().rev().take(slashes).take_while(|byte| **byte == b'\\').count();
                            (length == slashes).then_some(at + before.len() - slashes)
                        });
                        ends.unwrap_or(bytes.len())
                    });
                    if end < text.len() {
                        return end;
                    }
                }
                if triple {
                    return self.past_triple(at, quote);
                }
                let closed = closing(&bytes[at..], quote, slashes);
                self.names.steps.spend(closed.unwrap_or_else(|stop| stop));
                match closed {
                    Ok(length) if slashes == 0 && !in_list => {
                        let end = joined_end(bytes, shell_end(bytes, at + length));
                        self.names.steps.spend(end - at - length);
                        end
                    }
                    Ok(length) => at + length,
                    Err(stop) if slashes == 0 && at + stop < bytes.len() => self.quoted_on_lines(at, at + stop, quote),
                    Err(_) => self.line_end(at),
                }
            }
            None if in_list => {
                let bracket = self.names.seen.bracket.next(at, &mut self.names.steps, || position(bytes, at, |byte| byte == b']'));
                bracket.min(self.line_end(at))
            }
            None => self.unquoted_end(at),
        }
    }

    /// The end of a value in three quotes.
    fn past_triple(&mut self, at: usize, quote: u8) -> usize {
        let bytes = self.bytes;
        let find = || bytes[at..].windows(3).position(|three| three == [quote; 3]).map_or(bytes.len(), |length| at + length);
        let end = self.names.seen.triples[which_quote(quote)].next(at, &mut self.names.steps, find);
        if end < bytes.len() { end } else { self.line_end(at) }
    }

    /// The end of a value in quotes with lines in it: a quote behind which no word stands. Where there is none, the line ends it.
    fn quoted_on_lines(&mut self, at: usize, line: usize, quote: u8) -> usize {
        let bytes = self.bytes;
        let closes = |at: usize| bytes.get(at + 1).is_none_or(|byte| byte.is_ascii_whitespace() || b",;.)}]&|+".contains(byte));
        let find = || (line..bytes.len()).find(|at| bytes[*at] == quote && bytes[*at - 1] != b'\\' && closes(*at)).unwrap_or(bytes.len());
        let end = self.names.seen.quotes[which_quote(quote)].next(line, &mut self.names.steps, find);
        if end < bytes.len() && end - at <= QUOTED_BYTES_MAX { end } else { self.line_end(at) }
    }

    /// The end of the line of this place.
    fn line_end(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        self.names.seen.line.next(at, &mut self.names.steps, || position(bytes, at, |byte| byte == b'\n' || byte == b'\r'))
    }

    /// The end of a key in lines, by its last one.
    fn end_of_key(&mut self, start: usize, which: usize, last: &str) -> usize {
        let text = self.text;
        let find = || text[start..].find(last).map_or(text.len(), |length| start + length);
        self.names.seen.ends[which].next(start, &mut self.names.steps, find)
    }

    /// The end of a value without quotes.
    fn unquoted_end(&mut self, at: usize) -> usize {
        let end = self.unquoted_end_at_most(at);
        let bytes = self.bytes;
        let bracket = self.names.seen.any_bracket.next(at, &mut self.names.steps, || position(bytes, at, |byte| b"()[]{}".contains(&byte)));
        if bracket >= end {
            return end;
        }
        let length = unquoted_length(&bytes[bracket..]);
        self.names.steps.spend(length);
        bracket + length
    }

    /// The same, were there no brackets.
    fn unquoted_end_at_most(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let find = || (at..bytes.len()).find(|at| ends_unquoted(bytes[*at], &bytes[at + 1..])).unwrap_or(bytes.len());
        self.names.seen.value_end.next(at, &mut self.names.steps, find)
    }

    /// Where the next `://` stands.
    fn next_url(&mut self, at: usize) -> usize {
        let text = self.text;
        self.names.seen.url.next(at, &mut self.names.steps, || text[at..].find("://").map_or(text.len(), |length| at + length))
    }

    /// The end of a value without quotes that has to look like a key, or like a URL with one; `None` where it cannot.
    fn key_end(&mut self, at: usize) -> Option<usize> {
        let bytes = self.bytes;
        if self.next_url(at) + 3 <= self.unquoted_end_at_most(at) {
            return Some(self.unquoted_end(at));
        }
        let end = self.names.seen.key_end.next(at, &mut self.names.steps, || position(bytes, at, |byte| !is_of_key(byte)));
        // What no key has may be part of the value, which is none then. A comma looks ahead as far as a name is long.
        let ends = || end == bytes.len() || unquoted_length(&bytes[end..bytes.len().min(end + 80)]) == 0;
        if !KEY_BYTES.contains(&(end - at)) || !ends() {
            return None;
        }
        self.names.steps.spend(end - at);
        Some(end)
    }

    fn is_credential(&mut self, meaning: Meaning, start: Start, end: usize, operator: Operator) -> bool {
        let value = &self.text[start.at..end];
        if start.quote.is_none() && !start.in_list && is_parameter(value) {
            return false;
        }
        if start.quote.is_none() && self.is_sql() && is_column(value) && !is_key(value) {
            return false;
        }
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let prose_may_follow = operator == Operator::Colon && start.quote.is_none() && !start.in_list;
        match meaning {
            Meaning::Maybe if is_key(value) => true,
            Meaning::Maybe => {
                let has_url = self.next_url(start.at) + 3 <= end;
                self.names.steps.spend(if has_url { value.len() } else { 0 });
                has_url && value.rsplit('/').any(is_key)
            }
            Meaning::Token => {
                let is_message = prose_may_follow && is_prose(value, &self.text[end..]);
                let is_count = is_number && value.len() <= 5;
                let is_call = value.contains('(') && !is_key(value);
                !is_message && !is_count && !is_call
            }
            Meaning::Tokens => {
                let is_message = prose_may_follow && is_prose(value, &self.text[end..]);
                !is_count(value) && !is_names(value) && !is_message
            }
            Meaning::Pwd => !value.starts_with(['/', '~']),
            // What test runners print.
            Meaning::Pass => {
                let is_printed = prose_may_follow && !is_mixed(value.as_bytes()) || self.bytes[..start.at].ends_with(b"PASS: ");
                !is_number && !is_printed
            }
            _ => true,
        }
    }

    fn is_sql(&mut self) -> bool {
        let text = self.text;
        *self.is_sql.get_or_insert_with(|| {
            let first = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
            SQL.iter().any(|word| word.eq_ignore_ascii_case(first))
        })
    }

    /// `Authorization: SCHEME credential`: the scheme stays.
    fn authorization(&mut self, start: Start) -> Option<usize> {
        let rest = &self.text[start.at..];
        let bounded = start.quote.is_some() || start.in_list;
        let scheme = scheme_length(rest);
        let from = start.at + scheme;
        let end = match (bounded, scheme) {
            (true, _) => self.value_end(start),
            (false, 0) => {
                let end = self.unquoted_end(start.at);
                let next = end + self.bytes[end..].iter().take_while(|byte| **byte == b' ').count();
                let second = self.unquoted_end(next);
                // A scheme that nobody knows.
                if next > end && is_random(&self.text[next..second]) { second } else { end }
            }
            (false, _) => self.credentials_end(from),
        };
        if from >= end || is_nothing(&self.text[from..end]) {
            return None;
        }
        self.hide(from..end)
    }

    /// The end of a credential as headers have it: one word, or `name="value", name=value`.
    fn credentials_end(&mut self, start: usize) -> usize {
        let mut at = start;
        loop {
            let name = self.bytes[at..].iter().take_while(|byte| is_of_name(**byte)).count();
            let quote = (self.bytes.get(at + name) == Some(&b'='))
                .then(|| self.value_start(at + name + 1))
                .flatten()
                .filter(|value| value.quote.is_some());
            at = match quote {
                Some(value) => (self.value_end(value) + value.quote.map_or(1, |(_, slashes)| slashes + 1)).min(self.bytes.len()),
                None => self.unquoted_end(at),
            };
            let blanks = |from: usize| from + self.bytes[from..].iter().take_while(|byte| **byte == b' ').count();
            if self.bytes.get(at) != Some(&b',') {
                return at;
            }
            let next = blanks(at + 1);
            let name = self.bytes[next..].iter().take_while(|byte| is_of_name(**byte)).count();
            if name == 0 || self.bytes.get(next + name) != Some(&b'=') {
                return at;
            }
            at = next;
        }
    }

    /// `Cookie: a=1; b=2` is hidden as a whole; of `Set-Cookie: sid=1; Path=/` what is no attribute.
    fn cookies(&mut self, start: Start, meaning: Meaning) -> Option<usize> {
        let bounded = start.quote.is_some() || start.in_list;
        let limit = if bounded { self.value_end(start) } else { self.line_end(start.at) };
        if bounded && meaning == Meaning::Cookie {
            return if is_nothing(&self.text[start.at..limit]) { None } else { self.hide(start.at..limit) };
        }
        let mut last = None;
        let (mut at, mut open) = (start.at, None);
        while at < limit {
            let pair = &self.text[at..limit];
            let length = pair.find(|c: char| {
                c == ';' || c == ',' && meaning == Meaning::SetCookie || !bounded && (c.is_whitespace() || "\"'`".contains(c))
            });
            let end = at + length.unwrap_or(pair.len());
            let name = self.text[at..end].split('=').next().unwrap_or("").trim();
            let harmless = meaning == Meaning::SetCookie && OF_COOKIES.iter().any(|word| word.eq_ignore_ascii_case(name));
            // Days of an `Expires` have a comma and blanks.
            let dated = harmless && name.eq_ignore_ascii_case("expires");
            let end = if dated { at + self.text[at..limit].find([';', '"', '\'']).unwrap_or(limit - at) } else { end };
            self.names.steps.spend(end - at);
            if harmless || is_nothing(&self.text[at..end]) {
                last = open.take().and_then(|from| self.hide(from..at.min(limit))).or(last);
            } else if meaning == Meaning::SetCookie {
                last = self.hide(at..end).or(last);
            } else {
                open.get_or_insert(at);
            }
            let next = self.text[end..limit].trim_start_matches([' ', ';', ',']);
            let next = limit - next.len();
            // Behind a blank stands the next pair, or what is no cookie.
            if self.bytes.get(end).is_none_or(|byte| !b";,".contains(byte)) || next >= limit {
                last = open.take().and_then(|from| self.hide(from..end)).or(last);
                break;
            }
            at = next;
        }
        if let Some(from) = open {
            last = self.hide(from..at.min(limit)).or(last);
        }
        last
    }

    /// `Bearer 0123…` in any text, and what else says that a key follows.
    fn behind_scheme(&mut self, at: usize, scheme: &str) -> Option<usize> {
        let behind = at + scheme.len();
        let blanks = self.bytes[behind..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'+')).count();
        let start = behind + blanks;
        if blanks == 0 || start >= self.bytes.len() {
            return None;
        }
        let word = &self.text[start..self.unquoted_end(start)];
        let is_one = match scheme {
            "basic" => is_random(word) || is_user_and_password(word),
            "digest" => {
                let begins = ["username", "realm", "nonce", "response"].iter().any(|name| word.starts_with(name));
                begins && word.as_bytes()[..word.len().min(NAME_BYTES_MAX)].contains(&b'=')
            }
            "aws4-hmac-sha256" => word.starts_with("Credential="),
            _ if SCHEMES_OF_KEYS.contains(&scheme) => word.len() >= LONG_BYTES_MIN && is_key(word),
            _ => is_random(word),
        };
        if !is_one || is_nothing(word) {
            return None;
        }
        let end = self.credentials_end(start);
        self.hide(start..end)
    }

    /// `IDENTIFIED BY 'x'`, `IDENTIFIED WITH plugin AS 'x'`, `IDENTIFIED BY x`.
    fn identified_by(&mut self, behind: usize) -> Option<usize> {
        let window = &self.text[behind..floor(self.text, behind + 96)];
        let lower = window.to_ascii_lowercase();
        let by = [" by ", " as ", " using "].iter().filter_map(|word| lower.find(word).map(|at| at + word.len())).min()?;
        let mut at = behind + by;
        if starts_with_ignoring_case(&self.bytes[at..], "password ") {
            at += "password ".len();
        }
        let start = self.value_start(at)?;
        let end = self.value_end(start);
        let value = &self.text[start.at..end];
        if start.quote.is_none() && (value.eq_ignore_ascii_case("random") || is_parameter(value)) || is_nothing(value) {
            return None;
        }
        self.hide(start.at..end)
    }

    /// `PASSWORD 'x'` of SQL, `SET PASSWORD FOR u = 'x'`, `login u password x` of netrc.
    fn password_literal(&mut self, at: usize, behind: usize) -> Option<usize> {
        let rest = &self.bytes[behind..];
        if rest.first() != Some(&b' ') {
            return None;
        }
        if starts_with_ignoring_case(rest, " for ") {
            let equals = self.text[behind..floor(self.text, behind + 128)].find('=')?;
            let start = self.value_start(behind + equals + 1).filter(|start| start.quote.is_some())?;
            let end = self.value_end(start);
            return self.hide(start.at..end);
        }
        let start = self.value_start(behind)?;
        let before: Vec<&str> = self.text[floor(self.text, at.saturating_sub(128))..at].split_whitespace().rev().take(2).collect();
        let is_netrc = matches!(before[..], [_, "login"]);
        let end = self.value_end(start);
        let value = &self.text[start.at..end];
        let literal = start.quote.is_some_and(|(quote, _)| quote != b'`') && !value.trim().is_empty() && !start.in_list;
        if (literal || is_netrc) && !is_nothing(value) { self.hide(start.at..end) } else { None }
    }

    /// `AUTH password` and `AUTH user password` of Redis, `AUTH PLAIN …` of mail.
    fn auth_command(&mut self, at: usize) -> Option<usize> {
        let before = &self.bytes[..at];
        // It is a part of `HELLO 3` or of `MIGRATE … 5000`: what stands behind it is no prose.
        let is_hello = before.to_ascii_lowercase_ends_with(b"hello 3 ") || before.to_ascii_lowercase_ends_with(b"hello 2 ");
        let is_migrate = || {
            let near = &before[at.saturating_sub(MIGRATE_BYTES_MAX)..];
            let [.., last, b' '] = near else { return false };
            let fits = last.is_ascii_digit() || [&b"copy "[..], b"replace "].iter().any(|word| near.to_ascii_lowercase_ends_with(word));
            fits && near.windows(b"migrate ".len()).any(|word| word.eq_ignore_ascii_case(b"migrate "))
        };
        let is_part = is_hello || is_migrate();
        let is_quoted = before.last() == Some(&b'"');
        if !is_part && !is_quoted && !before.last().is_none_or(|byte| byte.is_ascii_control()) && !before.ends_with(b"> ") {
            return None;
        }
        let behind = at + "auth".len() + usize::from(is_part && self.bytes.get(at + "auth".len()) == Some(&b'2'));
        if self.bytes[behind..].starts_with(b"\r\n$") {
            return self.auth_on_the_wire(behind);
        }
        if is_quoted {
            return self.auth_in_quotes(at, behind);
        }
        let bytes = self.bytes;
        let end = self.names.seen.control.next(behind, &mut self.names.steps, || position(bytes, behind, |byte| byte.is_ascii_control()));
        if bytes.get(behind) != Some(&b' ') {
            return None;
        }
        let from = behind + 1;
        let line = &self.text[from..end];
        let mechanism =
            ["PLAIN ", "LOGIN ", "CRAM-MD5 ", "XOAUTH2 "].iter().find(|word| line.starts_with(**word)).map_or(0, |word| word.len());
        // In small letters it may begin a sentence.
        let is_command = is_part || self.text[at..].starts_with("AUTH");
        let is_one = || {
            line.len() <= AUTH_BYTES_MAX
                && line.trim_end().split(' ').count() <= 2
                && line.trim_end().rsplit(' ').next().is_some_and(is_password)
        };
        if is_nothing(&line[mechanism..]) || !is_command && !is_one() {
            return None;
        }
        self.hide(from + mechanism..end)
    }

    /// As Redis shows it in its log, or a client lists it: `"auth" "ann" "hunter2"`, `["AUTH", "hunter2"]`.
    fn auth_in_quotes(&mut self, at: usize, behind: usize) -> Option<usize> {
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut next = behind;
        while words.len() < 3 {
            let parts = ["\" \"", "\",\"", "\", \""].into_iter().find(|parts| self.bytes[next..].starts_with(parts.as_bytes()));
            let Some(parts) = parts else { break };
            let start = next + parts.len();
            let closed = closing(&self.bytes[start..], b'"', 0);
            self.names.steps.spend(closed.unwrap_or_else(|stop| stop));
            next = start + closed.unwrap_or_else(|stop| stop);
            words.push(start..next);
        }
        let is_command = self.text[at..].starts_with("AUTH");
        let is_one = |word: &Range<usize>| is_command || is_password(&self.text[word.clone()]);
        if words.len() > 2 || !words.last().is_some_and(is_one) {
            return None;
        }
        words.into_iter().filter_map(|word| self.hide(word)).last()
    }

    /// `AUTH`, and its words with their lengths as Redis sends them.
    fn auth_on_the_wire(&mut self, mut at: usize) -> Option<usize> {
        let mut last = None;
        for _ in 0..2 {
            let Some(rest) = self.bytes[at..].strip_prefix(b"\r\n$") else { break };
            let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
            let start = at + b"\r\n$".len() + digits + b"\r\n".len();
            if digits == 0 || start >= self.bytes.len() || !rest[digits..].starts_with(b"\r\n") {
                break;
            }
            at = self.line_end(start);
            last = self.hide(start..at).or(last);
        }
        last
    }

    /// `ACL SETUSER ann on >hunter2`.
    fn set_user(&mut self, at: usize) -> Option<usize> {
        let before = &self.bytes[..at];
        let before = &before[..before.len() - before.iter().rev().take(4).take_while(|byte| b" \",'".contains(byte)).count()];
        if !before.to_ascii_lowercase_ends_with(b"acl") {
            return None;
        }
        let (bytes, end) = (self.bytes, self.line_end(at));
        let (mut last, mut next) = (None, at);
        loop {
            let find =
                || (next..bytes.len()).find(|at| b"><#".contains(&bytes[*at]) && b" \"'".contains(&bytes[*at - 1])).unwrap_or(bytes.len());
            let mark = self.names.seen.acl_mark.next(next, &mut self.names.steps, find);
            if mark >= end {
                return last;
            }
            let start = mark + 1;
            next = position(&bytes[..end], start, |byte| byte.is_ascii_whitespace() || b"\"'".contains(&byte));
            if !is_nothing(&self.text[start..next]) {
                last = self.hide(start..next).or(last);
            }
        }
    }

    /// `<password>x</password>`, `<ns:Password Type="…">x</ns:Password>`.
    fn behind_tag(&mut self, at: usize) -> Option<usize> {
        let from = floor(self.text, at.saturating_sub(TAG_BYTES_MAX));
        let open = from + self.text[from..at].rfind(['<', '>'])?;
        let tag = &self.text[open + 1..at];
        if self.bytes[open] != b'<' || tag.starts_with(['/', '!', '?']) || tag.ends_with('/') {
            return None;
        }
        let name = tag.split(|c: char| c.is_ascii_whitespace()).next()?;
        let name = name.rsplit(':').next()?;
        let mut meaning = self.names.meaning(name);
        let mut told = false;
        if meaning == Meaning::Plain {
            let (bytes, name) = (self.bytes, name.as_bytes());
            if let Some(pair) = self.pair.filter(|pair| (open + 1..at).contains(&pair.behind)) {
                // `<entry key="password">`; others than data have texts there.
                meaning = self.meaning_of_name_at(pair.behind);
                told = true;
            } else if is_value_of_pair(name) || name.eq_ignore_ascii_case(b"string") {
                // `<name>password</name><value>`.
                let of_pair = self.pair.as_mut().and_then(|pair| pair.is_beside(bytes, open).then_some(pair.behind));
                meaning = of_pair.map_or(Meaning::Plain, |behind| self.meaning_of_name_at(behind));
            } else if is_name_of_pair(name) {
                let behind = position(bytes, at + 1, |byte| byte == b'<' || byte == b'\n');
                let closed = position(bytes, behind, |byte| byte == b'>' || byte == b'\n');
                self.names.steps.spend(closed - at);
                self.pair = Some(Pair { behind: at + 1, seen_to: closed, open: 0 });
            }
        }
        if !matches!(meaning, Meaning::Password | Meaning::Token | Meaning::Tokens | Meaning::Authorization | Meaning::Cookie) {
            return None;
        }
        let mut start = at + 1;
        if self.text[start..].starts_with("<![CDATA[") {
            start += "<![CDATA[".len();
        }
        let end = start + self.text[start..].find(['<', ']']).unwrap_or(self.text.len() - start);
        let value = self.text[start..end].trim();
        if is_nothing(value) || told && is_told(value) { None } else { self.hide(start..end) }
    }

    /// `password` of `scheme://user:password@host`, or all before the `@` where that is long enough to be a token.
    fn url(&mut self, start: usize) -> Option<usize> {
        let ends_text = |c: char| c.is_whitespace() || "\"'`<>\\".contains(c);
        let rest = &self.text[start..];
        let authority = &rest[..rest.find(|c: char| ends_text(c) || "/?#".contains(c)).unwrap_or(rest.len())];
        let user_info = match authority.rfind('@') {
            Some(at) => &authority[..at],
            None => {
                // A password with a slash that nobody encoded: what stands behind the colon is no port then.
                let (_, port) = authority.split_once(':')?;
                if port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) || port.starts_with(['{', '$', '%', '<', '[', ':']) {
                    return None;
                }
                if self.is_spent() {
                    return Some(self.bytes.len());
                }
                let (text, bytes) = (self.text, self.bytes);
                let find = || text[start..].find(|c: char| ends_text(c) || c == ',').map_or(text.len(), |length| start + length);
                let end = self.names.seen.url_end.next(start, &mut self.names.steps, find);
                let near = &text[start..end.min(start + floor(rest, PASSWORD_BYTES_MAX))];
                let sign = self.names.seen.at_sign.next(start, &mut self.names.steps, || position(bytes, start, |byte| byte == b'@'));
                if sign >= start + near.len() {
                    return None;
                }
                self.names.steps.spend(near.len());
                &near[..near.rfind('@')?]
            }
        };
        let end = start + user_info.len();
        match user_info.find(':') {
            Some(colon) if is_nothing(&user_info[colon + 1..]) => None,
            // `TOKEN:x-oauth-basic@`.
            Some(colon) if colon >= LONG_BYTES_MIN && is_key(&user_info[..colon]) => self.hide(start..end),
            Some(colon) => self.hide(start + colon + 1..end),
            None if user_info.len() >= LONG_BYTES_MIN || shapes::begins_with_shape(user_info.as_bytes()) => self.hide(start..end),
            None => None,
        }
    }

    /// `user:password@tcp(host)/db` of Go, `user:password@host:5432/db`.
    fn before_at_sign(&mut self, at: usize) -> Option<usize> {
        let behind = &self.bytes[at + 1..];
        let host = behind.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte)).count();
        let is_server = match behind.get(host)? {
            b'(' => [&b"tcp"[..], b"tcp6", b"unix"].contains(&&behind[..host]),
            b':' => {
                let port = behind[host + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                host > 0 && (2..=5).contains(&port) && behind.get(host + 1 + port).is_none_or(|byte| b"/ \"'".contains(byte))
            }
            _ => false,
        };
        if !is_server {
            return None;
        }
        let is_of_user = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'`/=<>(),;\\".contains(byte);
        let length = self.bytes[self.hidden_to..at].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| is_of_user(byte)).count();
        let start = floor(self.text, at - length);
        let colon = self.text[start..at].find(':')?;
        if colon == 0 || is_nothing(&self.text[start + colon + 1..at]) { None } else { self.hide(start + colon + 1..at) }
    }

    /// An option of a command line, or a private key.
    fn dash(&mut self, at: usize, next: Option<u8>) -> Option<usize> {
        let before = at.checked_sub(1).map(|before| self.bytes[before]);
        if next.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && before.is_none_or(|byte| b" \"'[,`".contains(&byte) || byte.is_ascii_control())
        {
            self.commands = true;
        }
        let rest = &self.bytes[at..];
        let label = rest.strip_prefix(b"-----BEGIN").or_else(|| rest.strip_prefix(b"---- BEGIN"))?;
        let length = label.iter().take(80).position(|byte| !byte.is_ascii_alphanumeric() && !b" +_".contains(byte))?;
        if !label[..length].windows(7).any(|word| word == b"PRIVATE") {
            return None;
        }
        if self.is_spent() {
            return Some(self.bytes.len());
        }
        // Behind the dashes of its first line, to the last line or to where the text was cut off.
        let start = self.bytes.len() - label.len() + length;
        let start = start + self.bytes[start..].iter().take_while(|byte| **byte == b'-' || **byte == b' ').count();
        let mut end = self.end_of_key(start, 1, "-----END");
        if end == self.text.len() {
            end = self.end_of_key(start, 2, "---- END");
        }
        let keep = self.text[start..end].trim_end_matches(|c: char| c.is_whitespace());
        let keep = keep.strip_suffix("\\n").unwrap_or(keep);
        let lead = keep.len() - keep.trim_start().len();
        let lead = if keep.starts_with("\\n") { 2 } else { lead };
        self.hide(start + lead.min(keep.len())..start + keep.len())
    }
}

/// Whether bytes end with a word, however it is written.
trait EndsWith {
    fn to_ascii_lowercase_ends_with(&self, word: &[u8]) -> bool;
}

impl EndsWith for [u8] {
    fn to_ascii_lowercase_ends_with(&self, word: &[u8]) -> bool {
        self.len() >= word.len() && self[self.len() - word.len()..].eq_ignore_ascii_case(word)
    }
}

/// The last boundary of a character that is not behind this place.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where the first byte from `at` on stands that is such a one; the length where there is none.
pub(super) fn position(bytes: &[u8], at: usize, is_one: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|byte| is_one(*byte)).map_or(bytes.len(), |length| at + length)
}

#[inline]
fn is_of_name(byte: u8) -> bool {
    OF_NAMES[byte as usize]
}

static OF_NAMES: [bool; 256] = {
    let mut of_names = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        of_names[byte] = (byte as u8).is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte as u8, b'_' | b'-' | b'.' | b'$');
        byte += 1;
    }
    of_names
};

fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn ends_path(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'`<>\\?#),;".contains(&byte)
}

/// `"name"` of `{"name": "TOKEN", "value": "…"}`.
pub(super) fn is_name_of_pair(word: &[u8]) -> bool {
    // Nearly every name is asked.
    let ends: &[&[u8]] = match word.last().map(u8::to_ascii_lowercase) {
        Some(b'e') => &[b"name", b"variable"],
        Some(b'y') => &[b"key", b"property"],
        Some(b'd') => &[b"field"],
        Some(b'r') => &[b"header", b"parameter"],
        _ => &[],
    };
    ends.iter().any(|end| word.to_ascii_lowercase_ends_with(end))
}

/// `"value"` of that.
pub(super) fn is_value_of_pair(word: &[u8]) -> bool {
    word.to_ascii_lowercase_ends_with(b"value")
}

/// `"Content-Type"`: what may be a name beside another one, at one look.
fn is_quoted_name(rest: &[u8]) -> bool {
    let Some((quote @ (b'"' | b'\''), inside)) = rest.split_first() else { return false };
    let length = inside.iter().take(LONG_BYTES_MIN).take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    inside.get(length) == Some(quote)
}

/// Whether this ends with the beginning of a call that sets something: `Header.Set(`, `define(`.
fn sets(before: &[u8]) -> bool {
    const VERBS: &[&str] =
        &["set", "add", "header", "put", "insert", "append", "define", "setdefault", "setenv", "putenv", "setproperty", "setrequestheader"];
    let Some(called) = before.trim_ascii_end().strip_suffix(b"(") else { return false };
    VERBS.iter().any(|verb| called.to_ascii_lowercase_ends_with(verb.as_bytes()))
}

/// What an object that describes a credential has where a value would stand: `{"type": "string", "minLength": 8}`.
fn is_kind(value: &str) -> bool {
    const KINDS: &[&str] = &[
        "string",
        "str",
        "text",
        "keyword",
        "password",
        "varchar",
        "char",
        "byte",
        "bytes",
        "integer",
        "int",
        "number",
        "boolean",
        "bool",
        "object",
        "array",
        "uuid",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
    ];
    is_nothing(value)
        || is_count(value)
        || value.bytes().all(|byte| b".-+".contains(&byte))
        || KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(value))
}

/// Beside the name of a credential, what is none: another name (`["password", "email"]`), or a message.
pub(super) fn is_told(value: &str) -> bool {
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_.:,;!?'".contains(&byte));
    let is_short_number = |word: &str| word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = value.split(' ');
    value.len() <= LONG_BYTES_MAX_OF_PROSE && words.all(|word| is_word(word) || is_short_number(word)) && scheme_length(value) == 0
}

/// A longer value is no message.
const LONG_BYTES_MAX_OF_PROSE: usize = 256;

/// `Authorization`, `X-Api-Key`: so no word of a URN is written.
fn is_header(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization") || name.contains('-') && !name.contains(['.', '/'])
}

#[inline]
pub(super) fn starts_with_ignoring_case(bytes: &[u8], word: &str) -> bool {
    // Most differ in their first letter.
    let is_first = matches!((bytes.first(), word.as_bytes().first()), (Some(a), Some(b)) if a.eq_ignore_ascii_case(b));
    is_first && bytes.len() >= word.len() && bytes[..word.len()].eq_ignore_ascii_case(word.as_bytes())
}

/// The end of a quoted text, or where the search for it ended. A quote inside has more backslashes before it than those at the ends have;
/// in SQL there are two of it.
pub(super) fn closing(bytes: &[u8], quote: u8, slashes: usize) -> Result<usize, usize> {
    let mut before = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => before += 1,
            b'\n' => return Err(at),
            byte if byte == quote && before % (2 * (slashes + 1)) == slashes => {
                if quote == b'\'' && bytes.get(at + 1) == Some(&quote) && slashes == 0 {
                    at += 1;
                } else {
                    return Ok(at - slashes);
                }
                before = 0;
            }
            _ => before = 0,
        }
        at += 1;
    }
    Err(bytes.len())
}

/// What stands before the bracket of a map or a list that Go prints: `map[a:b]`, `map[string]interface {}{"a":"b"}`, `[]string{"a"}`.
fn go_type_length(rest: &[u8]) -> Option<usize> {
    let behind = match rest.strip_prefix(b"map[") {
        Some(key) => {
            let length = key.iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric()).count();
            key[length..].strip_prefix(b"]").filter(|_| length > 0)
        }
        None => Some(rest.strip_prefix(b"[]")?),
    };
    let of_value = behind.and_then(|behind| {
        let is_any = behind.starts_with(b"interface {}");
        let of_name = behind.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || b"_.*[]".contains(byte)).count();
        let length = if is_any { "interface {}".len() } else { of_name };
        (length > 0 && behind.get(length) == Some(&b'{')).then(|| rest.len() - behind.len() + length)
    });
    of_value.or_else(|| rest.starts_with(b"map[").then_some("map".len()))
}

/// Which of the three quotes this is.
fn which_quote(quote: u8) -> usize {
    usize::from(quote == b'\'') + 2 * usize::from(quote == b'`')
}

/// Where a word of a shell ends whose first quote closes here: `'a'"'"'b'`, `"a"b`. The end of what it holds, and the place behind it.
pub(super) fn shell_end(bytes: &[u8], closing: usize) -> (usize, usize) {
    let mut at = closing + 1;
    // Between two quotes of another kind only a part of a word stands, lest the quotes around a command are taken for it.
    let mut in_word = false;
    loop {
        let rest = &bytes[at..];
        at += match rest {
            [b'\\', b'\'' | b'"', ..]
                if in_word || rest.get(2).is_some_and(|byte| b"'\"".contains(byte) || byte.is_ascii_alphanumeric()) =>
            {
                in_word = true;
                2
            }
            [quote @ (b'\'' | b'"'), inside @ ..] => {
                let Some(length) =
                    inside.iter().position(|byte| byte == quote || *byte == b'\n').filter(|length| inside[*length] == *quote)
                else {
                    break;
                };
                let is_part = |byte: &u8| !byte.is_ascii_whitespace() && !b",:;{}[]=".contains(byte);
                let ends = inside.get(length + 1).is_none_or(|byte| byte.is_ascii_whitespace() || b"'\";&|)".contains(byte));
                let is_part = in_word || ends && inside[..length].iter().all(is_part);
                if length == 0 || !is_part {
                    break;
                }
                in_word = true;
                length + 2
            }
            _ => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_@%+./-".contains(byte)).count();
                if !rest.first().is_some_and(u8::is_ascii_alphanumeric) || rest.get(length).is_some_and(|byte| b"=:".contains(byte)) {
                    break;
                }
                length
            }
        };
    }
    let is_quoted = at == closing + 1 || matches!(bytes[at - 1], b'\'' | b'"');
    (at - usize::from(is_quoted), at)
}

/// Where a value ends that is put together: `"a" + "b"`, `'a' . 'b'`, `'a' || 'b'`. It is given as the end of its first text and the place behind.
fn joined_end(bytes: &[u8], (mut end, mut behind): (usize, usize)) -> usize {
    loop {
        let rest = bytes[behind..].trim_ascii_start();
        let Some(next) = ["+", ".", "||"].iter().find_map(|operator| rest.strip_prefix(operator.as_bytes())) else { return end };
        let next = next.trim_ascii_start();
        let Some((quote @ (b'"' | b'\''), inside)) = next.split_first() else { return end };
        let start = bytes.len() - inside.len();
        let Ok(length) = closing(inside, *quote, 0) else { return end };
        (end, behind) = (start + length, start + length + 1);
    }
}

/// Whether nothing of the value stands on this line: it is at its end, or there is a sign that a block follows (`|`, `>-`).
fn goes_on_in_next_line(rest: &[u8]) -> bool {
    let sign = match rest.first() {
        Some(b'|' | b'>') => 1 + rest[1..].iter().take(3).take_while(|byte| byte.is_ascii_digit() || b"+-".contains(byte)).count(),
        _ => 0,
    };
    let blanks = if sign > 0 { rest[sign..].iter().take(8).take_while(|byte| **byte == b' ').count() } else { 0 };
    matches!(rest.get(sign + blanks), Some(b'\n' | b'\r'))
}

/// `value: x` in a line: the name, and what stands behind its colon.
fn member(line: &str) -> Option<(&str, usize)> {
    let name = line.strip_prefix("- ").unwrap_or(line).trim_start();
    let start = line.len() - name.len();
    let length = name.bytes().take_while(|byte| is_of_name(*byte)).count();
    let is_one = length > 0 && name[length..].starts_with(':') && matches!(name.as_bytes().get(length + 1), None | Some(b' ' | b'\r'));
    is_one.then(|| (&name[..length], start + length + 1))
}

/// Lines that stand deeper than a column, without the blanks before them. Those without anything are passed over.
struct Lines<'a> {
    bytes: &'a [u8],
    /// The end of the last one.
    at: usize,
    column: usize,
}

impl Lines<'_> {
    fn next_at_any_column(&mut self) -> Option<Range<usize>> {
        let before = self.bytes.get(self.at..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = self.at + before;
        let end = position(self.bytes, start, |byte| byte == b'\n' || byte == b'\r');
        self.at = end;
        (start < end).then_some(start..end)
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let line = self.next_at_any_column()?;
        let column = self.bytes[..line.start].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| b" \t".contains(byte)).count();
        (column > self.column).then_some(line)
    }
}

/// The length of a value without quotes: to a blank, a quote or what parts it from the next value.
fn unquoted_length(bytes: &[u8]) -> usize {
    let mut open = 0u32;
    for (at, byte) in bytes.iter().enumerate() {
        let behind = &bytes[at + 1..];
        let ends = match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                false
            }
            b')' | b']' | b'}' if open > 0 => {
                open -= 1;
                false
            }
            b')' | b']' | b'}' => behind.first().is_none_or(|next| b" \t\r\n,;&\"'`)]}.:\\<".contains(next)),
            byte => ends_unquoted(*byte, behind),
        };
        if ends {
            return at;
        }
    }
    bytes.len()
}

/// Whether this byte ends a value without quotes, with what stands behind it. Brackets ask what is open.
fn ends_unquoted(byte: u8, behind: &[u8]) -> bool {
    match byte {
        byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => true,
        b'"' | b'\'' | b'`' | b'&' | b';' | b'<' | b'>' => true,
        b'\\' => behind.first().is_none_or(|next| b"nrtu\"'\\".contains(next)),
        b',' => {
            let name = behind.iter().take(64).take_while(|byte| is_of_name(**byte)).count();
            behind.first().is_none_or(|next| b" \t\n\"'`{[\\".contains(next))
                || name > 0 && behind.get(name).is_some_and(|next| b"=:".contains(next))
        }
        _ => false,
    }
}

/// Length of the scheme and the blanks behind it, 0 where there is none.
pub(super) fn scheme_length(value: &str) -> usize {
    // No scheme is longer.
    let Some(word) = value.bytes().take(SCHEME_BYTES_MAX + 1).position(|byte| byte == b' ' || byte == b'\t') else { return 0 };
    let blanks = value[word..].len() - value[word..].trim_start_matches([' ', '\t']).len();
    let known = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&value[..word]));
    if known && blanks > 0 && word + blanks < value.len() { word + blanks } else { 0 }
}

/// Nothing that could be a credential: no value, a mask, a variable, a template.
pub(super) fn is_nothing(value: &str) -> bool {
    let value = value.trim();
    const WORDS: &[&str] = &["true", "false", "null", "nil", "none", "undefined", "[secret]", "[filtered]", "[hidden]", REDACTED];
    if value.is_empty() || WORDS.iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return true;
    }
    let bytes = value.as_bytes();
    // `***`, `xxxxx`.
    if bytes.iter().all(|byte| *byte == bytes[0]) && (bytes[0] == b'*' || bytes.len() > 2 && b"xX.-".contains(&bytes[0])) {
        return true;
    }
    let inside = |open: &str, close: &str| value.strip_prefix(open).and_then(|value| value.strip_suffix(close));
    let is_variable = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_prose = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_ ".contains(&byte));
    inside("${", "}").is_some_and(|name| !name.contains(['$', '{', '}', ' ']))
        || value.starts_with("{{")
        || inside("$(", ")").is_some()
        || inside("<", ">").is_some_and(is_prose)
        || value.strip_prefix('$').is_some_and(is_variable)
}

/// What stands for a value in SQL and in formats: `?`, `$1`, `%s`, `:name`, `@name`.
fn is_parameter(value: &str) -> bool {
    let value = value.trim_end_matches([',', ')']);
    let is_name = |name: &str| !name.is_empty() && name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match value.as_bytes() {
        [b'?'] | [b'%', b's' | b'v' | b'd' | b'q'] => true,
        [b'$', digits @ ..] if !digits.is_empty() && digits.len() <= 3 => digits.iter().all(u8::is_ascii_digit),
        [b':', ..] => is_name(&value[1..]),
        [b'%', b'(', ..] => value.ends_with(")s") || value.ends_with(")"),
        _ => false,
    }
}

/// `users.password`, `hash(`: what SQL has without quotes.
fn is_column(value: &str) -> bool {
    let value = value.strip_prefix(['@', ':']).unwrap_or(value);
    let name = value.split('(').next().unwrap_or("");
    name.as_bytes().first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$*,".contains(&byte))
}

/// `expired`, `connection refused`: a message that follows `token: `.
fn is_prose(value: &str, behind: &str) -> bool {
    let word = value.trim_end_matches(['.', ',', ':', '!', '?', ')']);
    let is_word = |word: &str| {
        word.len() > 1
            && word.len() <= 16
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'\'')
            && !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
    };
    let next = behind.trim_start_matches([' ', ',', ':']).split([' ', ',', '.', ':', ')']).next().unwrap_or("");
    is_word(word) && (PROSE.iter().any(|known| known.eq_ignore_ascii_case(word)) || behind.starts_with([' ', ':']) && is_word(next))
}

/// How many there are: `4096`, `1,532`, `12k`.
pub(super) fn is_count(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || b".,_ /kKM%".contains(&byte)) && value.starts_with(|c: char| c.is_ascii_digit())
}

/// Names of secrets, which are none: `db-login`, `["a", "b"]`, `inherit`.
pub(super) fn is_names(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_./, \"'[]\\".contains(&byte))
}

fn is_mixed(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// What a person chose as a password, where a word of a sentence may stand, too: letters with digits.
pub(super) fn is_password(word: &str) -> bool {
    const NONE: &[&str] = &["base64", "oauth2", "oauth1", "openid2", "sha256", "sha512"];
    word.len() >= 6 && is_mixed(word.as_bytes()) && !word.contains('/') && !NONE.contains(&word)
}

/// No word of a language.
fn is_random(word: &str) -> bool {
    word.len() >= BEARER_BYTES_MIN && (word.len() >= 24 || word.bytes().any(|byte| byte.is_ascii_digit()))
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_+/=.|:~".contains(&byte)
}

/// Whether this looks like a key: letters and digits of which few come again.
pub(super) fn is_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let fits = KEY_BYTES.contains(&bytes.len()) && is_mixed(bytes) && bytes.iter().all(|byte| is_of_key(*byte));
    if !fits {
        return false;
    }
    let mut counts = [0u16; 256];
    bytes.iter().for_each(|byte| counts[*byte as usize] += 1);
    // Entropy in bits for each byte; words of a language and numbers have less.
    let length = bytes.len() as f64;
    let entropy: f64 =
        counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / length).map(|share| -share * share.log2()).sum();
    entropy >= 3.0
}

/// The base64 of `user:password`.
fn is_user_and_password(word: &str) -> bool {
    base64::decode(word).is_some_and(|bytes| bytes.contains(&b':') && bytes.iter().all(|byte| (b' '..0x7f).contains(byte)))
}

/// Whether [`REDACTED`] stands there already, whichever of its brackets were taken for part of the text around.
pub(super) fn is_redacted(text: &str, hidden: &Range<usize>) -> bool {
    let start = hidden.start - usize::from(text[..hidden.start].ends_with('['));
    let end = hidden.end + usize::from(text[hidden.end..].starts_with(']'));
    [&text[start..end], &text[start..hidden.end], &text[hidden.start..end], &text[hidden.clone()]].contains(&REDACTED)
}
