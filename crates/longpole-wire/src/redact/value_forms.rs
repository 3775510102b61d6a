//! The forms of values: a key, a password, a count, a message, nothing.

use super::bytes::{ends_with_ignoring_case, floor};
use super::mask::REDACTED;
use crate::base64;

/// Below this a word after `Bearer` is prose.
const BEARER_BYTES_MIN: usize = 8;

/// From this length on, a word after `Bearer` is none of a language; nor is one before the `@` of a URL.
pub(super) const LONG_BYTES_MIN: usize = 20;

/// Bytes of the longest of [`SCHEMES`].
const SCHEME_BYTES_MAX: usize = 21;

/// How long keys are.
pub(super) const KEY_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

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

/// Words that stand behind `token: ` in a message.
pub(super) const PROSE: &[&str] = &[
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

/// `"name"` of `{"name": "TOKEN", "value": "…"}`.
pub(super) fn is_name_of_pair(word: &[u8]) -> bool {
    // Nearly every name comes here.
    let ends: &[&[u8]] = match word.last().map(u8::to_ascii_lowercase) {
        Some(b'e') => &[b"name", b"variable"],
        Some(b'y') => &[b"key", b"property"],
        Some(b'd') => &[b"field"],
        Some(b'r') => &[b"header", b"parameter"],
        _ => &[],
    };
    ends.iter().any(|end| ends_with_ignoring_case(word, end))
}

/// `"value"` of that.
pub(super) fn is_value_of_pair(word: &[u8]) -> bool {
    ends_with_ignoring_case(word, b"value")
}

/// Members of a JSON Web Key (RFC 7517) that are the private or the shared key.
pub(super) fn is_private_of_jwk(name: &[u8]) -> bool {
    matches!(name, b"d" | b"p" | b"q" | b"dp" | b"dq" | b"qi" | b"k")
}

/// The member that each JSON Web Key has.
pub(super) const KIND_OF_JWK: &str = "kty";

/// What an object that describes a credential has where a value would stand: `{"type": "string", "minLength": 8}`.
pub(super) fn is_kind(value: &str) -> bool {
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
pub(super) fn names_or_tells(value: &str) -> bool {
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_.:,;!?'".contains(&byte));
    let is_short_number = |word: &str| word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = value.split(' ');
    value.len() <= LONG_BYTES_MAX_OF_PROSE && words.all(|word| is_word(word) || is_short_number(word)) && scheme_length(value) == 0
}

/// A longer value is no message.
const LONG_BYTES_MAX_OF_PROSE: usize = 256;

/// Length of the scheme and the blanks behind it, 0 where there is none.
pub(super) fn scheme_length(value: &str) -> usize {
    // No scheme is longer.
    let Some(word) = value.bytes().take(SCHEME_BYTES_MAX + 1).position(|byte| byte == b' ' || byte == b'\t') else { return 0 };
    let blanks = value[word..].len() - value[word..].trim_start_matches([' ', '\t']).len();
    let known = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&value[..word]));
    if known && blanks > 0 && word + blanks < value.len() { word + blanks } else { 0 }
}

/// A longer value is no mask, no variable and not only blanks.
const NOTHING_BYTES_MAX: usize = 512;

/// Nothing that could be a credential: no value, a mask, a variable, a template.
pub(super) fn is_nothing(value: &str) -> bool {
    let value = value.trim_start();
    let is_code = |value: &str| value.starts_with("{{") || value.starts_with("$(") && value.ends_with(')');
    if value.len() > NOTHING_BYTES_MAX {
        return is_code(value);
    }
    let value = value.trim_end();
    const WORDS: &[&str] = &["true", "false", "null", "nil", "none", "undefined", "[secret]", "[filtered]", "[hidden]", REDACTED];
    if value.is_empty() || WORDS.iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return true;
    }
    let bytes = value.as_bytes();
    // `***`, `xxxxx`, `-`.
    if bytes.iter().all(|byte| *byte == bytes[0]) && (matches!(bytes[0], b'*' | b'-') || bytes.len() > 2 && b"xX.".contains(&bytes[0])) {
        return true;
    }
    let inside = |open: &str, close: &str| value.strip_prefix(open).and_then(|value| value.strip_suffix(close));
    let is_variable = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_prose = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_ ".contains(&byte));
    // `${DB_PASSWORD:-hunter2}`: what stands there if the variable is not set.
    let has_default = |name: &str| name.split_once(":-").is_some_and(|(_, default)| !is_nothing(default));
    inside("${", "}").is_some_and(|name| !name.contains(['$', '{', '}', ' ']) && !has_default(name))
        || is_code(value)
        || inside("<", ">").is_some_and(is_prose)
        || value.strip_prefix('$').is_some_and(is_variable)
}

/// The longest parameter with the brackets and commas behind it.
const PARAMETER_BYTES_MAX: usize = 128;

/// What stands for a value in SQL and in formats: `?`, `$1`, `%s`, `:name`, `@name`.
pub(super) fn is_parameter(value: &str) -> bool {
    if value.len() > PARAMETER_BYTES_MAX {
        return false;
    }
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

/// The longest name of a column or function.
const COLUMN_BYTES_MAX: usize = 256;

/// `users.password`, `hash(`, `@name`, `new_password`: what SQL has without quotes. A name of letters only is one where a blank stands before it,
/// because a connection string has none there; a name with digits is one where a table stands before it.
pub(super) fn is_column(value: &str, blank_before: bool) -> bool {
    let name = value.strip_prefix(['@', ':']).unwrap_or(value);
    // PostgreSQL cuts a name at 63 bytes; a schema and a table may stand before it.
    let near = &name[..floor(name, COLUMN_BYTES_MAX)];
    let is_marked = value.len() > name.len() || near.contains('(');
    if near.len() < name.len() && !near.contains('(') {
        return false;
    }
    let name = near.split('(').next().unwrap_or("").trim_end_matches(',');
    let is_name = |name: &str| {
        name.as_bytes().first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
    };
    let parts = name.split('.').count();
    let has_digit = name.bytes().any(|byte| byte.is_ascii_digit());
    name.split('.').all(|part| is_name(part) || part == "*")
        && (is_marked || parts > 1 || !has_digit && (blank_before || name.contains('_')))
}

/// `getToken(java.lang.String)`, `func (s *Server) Token() error`: a function with its arguments.
pub(super) fn is_signature(value: &str) -> bool {
    calls(value, value.len(), true)
}

/// Whether the first bytes of a text call a function: `get_token(user)`. The call ends there or behind: at a quote of its arguments a value
/// without quotes has ended.
pub(super) fn is_call(text: &str, length: usize) -> bool {
    calls(text, length, false)
}

/// Identifiers and numbers with the brackets around their arguments closed, which a password with a `(` hardly ever is: `Ab(9dKq)#f`.
fn calls(text: &str, length: usize, is_signature: bool) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
    let (mut depth, mut called, mut quote, mut in_number, mut before) = (0u32, false, None, false, b' ');
    for (at, byte) in text.bytes().enumerate() {
        if at >= length && depth == 0 {
            break;
        }
        match byte {
            _ if quote.is_some() => quote = quote.filter(|open| *open != byte),
            b'(' | b'[' => {
                called |= byte == b'(' && (is_of_word(before) || before == b'>');
                depth += 1;
            }
            b')' | b']' if depth == 0 => return false,
            b')' | b']' => depth -= 1,
            // A lifetime.
            b'\'' if is_signature => {}
            b'"' | b'\'' if depth > 0 => quote = Some(byte),
            _ if is_of_word(byte) => {
                let begins = !is_of_word(before);
                in_number = if begins { byte.is_ascii_digit() } else { in_number };
                if in_number && !byte.is_ascii_digit() || before == b')' && !is_signature {
                    return false;
                }
            }
            b'.' | b':' | b'<' | b'>' | b'&' | b'*' | b'?' | b'-' => {}
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b';' | b'/' | b'=' | b'+' | b'{' | b'}' if depth > 0 || is_signature => {}
            _ => return false,
        }
        before = byte;
    }
    called && depth == 0 && text.len() >= length
}

/// Bytes behind a word in which the next one of a message is looked for.
const PROSE_BYTES_MAX: usize = 64;

/// `expired`, `connection refused`: a message that follows `token: `.
pub(super) fn is_prose(value: &str, behind: &str) -> bool {
    let word = value.trim_end_matches(['.', ',', ':', '!', '?', ')']);
    let is_word = |word: &str| {
        word.len() > 1
            && word.len() <= 16
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'\'')
            && !word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
    };
    let near = &behind[..floor(behind, PROSE_BYTES_MAX)];
    let next = near.trim_start_matches([' ', ',', ':']).split([' ', ',', '.', ':', ')']).next().unwrap_or("");
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

pub(super) fn is_mixed(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_alphabetic)
}

/// What a person chose as a password, where a word of a sentence may stand, too: letters with digits.
pub(super) fn is_password(word: &str) -> bool {
    const NONE: &[&str] = &["base64", "oauth2", "oauth1", "openid2", "sha256", "sha512"];
    word.len() >= 6 && is_mixed(word.as_bytes()) && !word.contains('/') && !NONE.contains(&word)
}

/// The same, if it is no host, version or name with dashes either: `db-login2`, `v1.2`.
pub(super) fn is_bare_password(value: &str) -> bool {
    is_password(value) && !value.contains(['.', '-', ':', '|', '~', ' '])
}

/// No word of a language.
pub(super) fn is_random(word: &str) -> bool {
    word.len() >= BEARER_BYTES_MIN && (word.len() >= 24 || word.bytes().any(|byte| byte.is_ascii_digit()))
}

pub(super) fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_+/=.|:~".contains(&byte)
}

/// Whether this looks like a key: letters and digits, few of them twice.
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

/// `770f5890-4dba-41ec-8cc3-fc1626e50001`.
pub(super) fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() })
}

/// Whether this looks like a key and like nothing else: no host, no path, no name with dashes.
pub(super) fn is_bare_key(value: &str) -> bool {
    is_uuid(value) || is_key(value) && !value.starts_with('/') && !value.contains(['.', '-', ':', '|', '~'])
}

/// The base64 of `user:password`.
pub(super) fn is_user_and_password(word: &str) -> bool {
    base64::decode(word).is_some_and(|bytes| bytes.contains(&b':') && bytes.iter().all(|byte| (b' '..0x7f).contains(byte)))
}
