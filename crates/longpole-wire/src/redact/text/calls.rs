//! Calls that take a user and a password, or make a credential of a text.
//!
//! ```text
//! db.auth("ann", "hunter2")                                      the argument of this number
//! db.changeUserPassword("ann", "hunter2")                        the second one behind the name of a password of a user
//! $password = ConvertTo-SecureString "hunter2" -AsPlainText      the first word that is no option
//! ```

use super::name::NAME_BYTES_MAX;
use super::scan::Scan;
use crate::redact::bytes::{ends_with_ignoring_case, starts_with_ignoring_case};
use crate::redact::names::Meaning;
use crate::redact::value_forms::is_nothing;

/// The command of PowerShell that makes a password of a text.
const SECURE_STRING: &str = "convertto-securestring";

/// Options before that text.
const OPTIONS_MAX: usize = 4;

/// Beginnings of functions that take a password: `find_user_pass` returns one.
const SETTERS: &[&str] = &["set", "Set", "change", "Change", "update", "Update", "reset", "Reset"];

/// Ends of calls, and which of their arguments is the password.
const LOGINS: &[(&str, usize)] = &[
    ("db.auth", 1),
    ("auth=", 1),
    ("basicauth", 1),
    ("basic_auth", 1),
    ("basic_auth=", 1),
    ("networkcredential", 1),
    ("usernamepasswordcredentials", 1),
    ("usernamepasswordauthenticationtoken", 1),
    ("drivermanager.getconnection", 2),
];

impl Scan<'_> {
    /// Whether the value that begins here is such a command, which is none itself.
    pub(super) fn is_secure_string(&self, at: usize) -> bool {
        starts_with_ignoring_case(&self.bytes[at..], SECURE_STRING)
    }

    /// The text behind `ConvertTo-SecureString`.
    pub(super) fn secure_string(&mut self, at: usize) -> Option<usize> {
        let mut at = at + SECURE_STRING.len();
        for _ in 0..OPTIONS_MAX {
            at = self.past_blanks(at);
            if self.bytes.get(at) != Some(&b'-') {
                break;
            }
            at += self.bytes[at..].iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        }
        let start = self.value_start(at)?;
        let end = if start.quote.is_some() { self.value_end(start) } else { self.unquoted_end(start.at) };
        let value = &self.text[start.at..end];
        // A variable, or another command in brackets.
        let is_code = start.quote.is_none() && value.starts_with(['$', '(', '-']);
        if is_code || is_nothing(value) { None } else { self.hide(start.at..end) }
    }

    /// The password that a call takes whose bracket stands here, before a quote.
    pub(super) fn login(&mut self, bracket: usize) -> Option<usize> {
        let before = &self.bytes[..bracket];
        let known = LOGINS.iter().find(|(name, _)| ends_with_ignoring_case(before, name.as_bytes())).map(|(_, argument)| *argument);
        let argument = match known {
            Some(argument) => argument,
            None if self.is_of_user(bracket) => 1,
            None => return None,
        };
        let mut at = bracket + 1;
        for _ in 0..argument {
            let start = self.value_start(at).filter(|start| start.quote.is_some() && !start.in_list)?;
            let end = self.value_end(start);
            let behind = &self.bytes[end.min(self.bytes.len())..];
            let quotes = behind.iter().take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
            let comma = behind[quotes..].iter().take_while(|byte| byte.is_ascii_whitespace()).count() + quotes;
            (behind.get(comma) == Some(&b',')).then_some(())?;
            at = end + comma + 1;
            at += self.bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        let start = self.value_start(at).filter(|start| start.quote.is_some() && !start.in_list)?;
        let end = self.value_end(start);
        if is_nothing(&self.text[start.at..end]) { None } else { self.hide(start.at..end) }
    }

    /// Whether the call whose bracket stands here has the name of the password of a user: `changeUserPassword`.
    fn is_of_user(&mut self, bracket: usize) -> bool {
        let Some((name, _)) = self.name_before(bracket) else { return false };
        let called = &self.text[name];
        let function = called.rsplit('.').next().unwrap_or(called);
        let sets = SETTERS.iter().any(|verb| function.starts_with(verb));
        let has_user = called.as_bytes().windows("user".len()).any(|word| word.eq_ignore_ascii_case(b"user"));
        has_user && sets && self.names.meaning(called) == Meaning::Password
    }
}
