//! A text without its escapes: `%3D`, `\n`, `\"`, `\u003d`, `&quot;`.

/// A text without `%3D`, `\n`, `\"`, `\u003d`, `&quot;`, and for each byte of it the place where it came from; `None` where it has none.
pub(super) fn unescaped(text: &str) -> Option<(String, Vec<usize>)> {
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
pub(super) const ENTITY_BYTES_MAX: usize = 10;

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

pub(super) fn hex(digits: Option<&[u8]>) -> Option<u8> {
    let &[high, low] = digits? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}
