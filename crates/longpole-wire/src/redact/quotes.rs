//! Where quoted texts end: in shells, in SQL, in programs.

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

/// The length of a mark that a command goes on in the next line, if one stands here: the backslash of a shell with the line end behind it,
/// and behind a blank or at the beginning of a text also `^` of `cmd` and the backtick of PowerShell.
pub(super) fn continuation(bytes: &[u8], at: usize) -> Option<usize> {
    let length = match bytes.get(at + 1..)? {
        [b'\n', ..] => 2,
        [b'\r', b'\n', ..] => 3,
        _ => return None,
    };
    let is_apart = at.checked_sub(1).is_none_or(|before| bytes[before].is_ascii_whitespace());
    (bytes[at] == b'\\' || is_apart && matches!(bytes[at], b'^' | b'`')).then_some(length)
}

/// Which of the three quotes this is.
pub(super) fn which_quote(quote: u8) -> usize {
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
pub(super) fn joined_end(bytes: &[u8], (mut end, mut behind): (usize, usize)) -> usize {
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
