//! Passwords in the statements of databases: SQL, Redis.

use std::ops::Range;

use super::scan::Scan;
use crate::redact::bytes::{ends_with_ignoring_case, floor, position, starts_with_ignoring_case};
use crate::redact::known_names::Names;
use crate::redact::mask::is_redacted;
use crate::redact::quotes::closing;
use crate::redact::value_forms::{is_nothing, is_parameter, is_password};

/// What stands before `AUTH` in `MIGRATE host port key database timeout AUTH`.
const MIGRATE_BYTES_MAX: usize = 96;

/// A longer line that begins with `auth` in small letters is a sentence.
const AUTH_BYTES_MAX: usize = 200;

/// Columns of an INSERT before `VALUES`, in bytes.
const COLUMNS_BYTES_MAX: usize = 2048;

impl Scan<'_> {
    /// `INSERT INTO users (name, password) VALUES ('a', '…')`: the texts in the place of a column with such a name.
    pub(super) fn inserted(&mut self, at: usize, start: usize, open_brackets: u32) -> Option<usize> {
        let columns = self.bytes[..at].trim_ascii_end().strip_suffix(b")")?;
        if at < self.values_to {
            return None;
        }
        let near = &columns[columns.len().saturating_sub(COLUMNS_BYTES_MAX)..];
        let open = near.iter().rposition(|byte| *byte == b'(');
        self.names.steps.spend(near.len() - open.unwrap_or(0));
        let open = open?;
        let columns = self.text.get(columns.len() - near.len() + open + 1..columns.len())?;
        let is_one = |column: &str, names: &mut Names| {
            let name = column.trim_matches(|c: char| c.is_whitespace() || "\"'`[]\\".contains(c));
            names.meaning(name).is_sure()
        };
        // Most statements have parameters instead of texts: nobody has to know their columns.
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

    /// `IDENTIFIED BY 'x'`, `IDENTIFIED WITH plugin AS 'x'`, `IDENTIFIED BY x`.
    pub(super) fn identified_by(&mut self, behind: usize) -> Option<usize> {
        let window = &self.text[behind..floor(self.text, behind + 96)];
        let lower = window.to_ascii_lowercase();
        self.beside_identified(&lower, behind);
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

    /// `USING PASSWORD('x')`, and the old password: `IDENTIFIED BY 'x' REPLACE 'y'`. Hidden besides what [`identified_by`](Self::identified_by) hides.
    fn beside_identified(&mut self, window: &str, behind: usize) {
        for word in [" using password(", " replace "] {
            let Some(start) = window.find(word).and_then(|at| self.value_start(behind + at + word.len())) else { continue };
            let end = self.value_end(start);
            let value = start.at..end;
            if !is_nothing(&self.text[value.clone()]) && !is_redacted(self.text, &value) {
                self.found.push(value);
            }
        }
    }

    /// `PASSWORD 'x'` of SQL, `SET PASSWORD FOR u = 'x'`, `login u password x` of netrc.
    pub(super) fn password_literal(&mut self, at: usize, behind: usize) -> Option<usize> {
        let rest = &self.bytes[behind..];
        if rest.first() != Some(&b' ') {
            return None;
        }
        // A text of PostgreSQL between two signs.
        if let Some(inside) = rest.strip_prefix(b" $$") {
            let near = &inside[..inside.len().min(128)];
            let length = near.windows(2).position(|two| two == b"$$").filter(|length| *length > 0)?;
            return self.hide(behind + 3..behind + 3 + length);
        }
        if starts_with_ignoring_case(rest, " for ") {
            let equals = self.text[behind..floor(self.text, behind + 128)].find('=')?;
            let start = self.value_start(behind + equals + 1).filter(|start| start.quote.is_some())?;
            let end = self.value_end(start);
            return self.hide(start.at..end);
        }
        let start = self.value_start(behind)?;
        let before: Vec<&str> = self.text[floor(self.text, at.saturating_sub(128))..at].split_whitespace().rev().take(2).collect();
        let is_netrc = matches!(before[..], [user, "login"] if !user.starts_with('-'));
        let end = self.value_end(start);
        let value = &self.text[start.at..end];
        let literal = start.quote.is_some_and(|(quote, _)| quote != b'`') && !value.trim().is_empty() && !start.in_list;
        if (literal || is_netrc) && !is_nothing(value) { self.hide(start.at..end) } else { None }
    }

    /// `AUTH password` and `AUTH user password` of Redis, `AUTH PLAIN …` of mail.
    pub(super) fn auth_command(&mut self, at: usize) -> Option<usize> {
        let before = &self.bytes[..at];
        // It is a part of `HELLO 3` or of `MIGRATE … 5000`: what stands behind it is no prose.
        let is_hello = ends_with_ignoring_case(before, b"hello 3 ") || ends_with_ignoring_case(before, b"hello 2 ");
        let is_migrate = || {
            let near = &before[at.saturating_sub(MIGRATE_BYTES_MAX)..];
            let [.., last, b' '] = near else { return false };
            let fits = last.is_ascii_digit() || [&b"copy "[..], b"replace "].iter().any(|word| ends_with_ignoring_case(near, word));
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
        let end = self.names.memo.control.next(behind, &mut self.names.steps, || position(bytes, behind, |byte| byte.is_ascii_control()));
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
    pub(super) fn set_user(&mut self, at: usize) -> Option<usize> {
        let before = &self.bytes[..at];
        let before = &before[..before.len() - before.iter().rev().take(4).take_while(|byte| b" \",'".contains(byte)).count()];
        if !ends_with_ignoring_case(before, b"acl") {
            return None;
        }
        let (bytes, end) = (self.bytes, self.line_end(at));
        let (mut last, mut next) = (None, at);
        loop {
            let find =
                || (next..bytes.len()).find(|at| b"><#".contains(&bytes[*at]) && b" \"'".contains(&bytes[*at - 1])).unwrap_or(bytes.len());
            let mark = self.names.memo.acl_mark.next(next, &mut self.names.steps, find);
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
}
