//! Calls that take a user and a password, or make a credential of a text.
//!
//! ```text
//! db.auth("ann", "hunter2")                                      the argument of this number
//! DriverManager.getConnection(url(env), user, "hunter2")         those before it may be no texts
//! db.changeUserPassword("ann", "hunter2")                        the second one behind the name of a password of a user
//! $password = ConvertTo-SecureString "hunter2" -AsPlainText      the first word that is no option
//! ```

use std::ops::Range;

use super::name::NAME_BYTES_MAX;
use super::scan::Scan;
use crate::redact::bytes::{ends_with_ignoring_case, starts_with_ignoring_case};
use crate::redact::mask::is_redacted;
use crate::redact::names::Meaning;
use crate::redact::quotes::closing;
use crate::redact::value_forms::is_nothing;

/// The command of PowerShell that makes a password of a text.
const SECURE_STRING: &str = "convertto-securestring";

/// Options before that text.
const OPTIONS_MAX: usize = 4;

/// Beginnings of functions that take a password: `find_user_pass` returns one.
const SETTERS: &[&str] = &["set", "Set", "change", "Change", "update", "Update", "reset", "Reset"];

/// Bytes of the arguments before the password: one of them is a URL.
const ARGUMENTS_BYTES_MAX: usize = 1024;

/// Brackets that are open in one of these arguments: `getConnection(url(env.get("A")), …`.
const BRACKETS_MAX: u32 = 4;

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

/// Where the argument of this number begins, or where the search for it ended. Those before it are texts, variables and other calls.
fn behind_commas(arguments: &[u8], number: usize) -> Result<usize, usize> {
    let (mut at, mut open, mut commas) = (0, 0, 0);
    while commas < number {
        match arguments.get(at).ok_or(at)? {
            b',' if open == 0 => commas += 1,
            b'(' | b'[' | b'{' if open < BRACKETS_MAX => open += 1,
            b')' | b']' | b'}' if open > 0 => open -= 1,
            b'(' | b'[' | b'{' | b')' | b']' | b'}' | b';' => return Err(at),
            quote @ (b'"' | b'\'' | b'`') => {
                let slashes = arguments[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                at += 1;
                at += closing(&arguments[at..], *quote, slashes).map_err(|stop| at + stop)? + slashes;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(at + arguments[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count())
}

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

    /// Whether a call whose bracket stands here takes a password, and has a text there. The scan goes on behind the bracket: other
    /// arguments may be credentials, too, as the password in a URL is.
    pub(super) fn login(&mut self, bracket: usize) -> bool {
        let Some(password) = self.password_of_call(bracket) else { return false };
        if is_redacted(self.text, &password) {
            return true;
        }
        let is_one = !is_nothing(&self.text[password.clone()]);
        self.found.extend(is_one.then_some(password));
        is_one
    }

    /// The text that stands where such a call takes its password.
    fn password_of_call(&mut self, bracket: usize) -> Option<Range<usize>> {
        let before = &self.bytes[..bracket];
        let known = LOGINS.iter().find(|(name, _)| ends_with_ignoring_case(before, name.as_bytes())).map(|(_, argument)| *argument);
        let argument = match known {
            Some(argument) => argument,
            None if self.is_of_user(bracket) => 1,
            None => return None,
        };
        if self.is_spent() {
            return None;
        }
        let first = bracket + 1;
        let arguments = &self.bytes[first..self.bytes.len().min(first + ARGUMENTS_BYTES_MAX)];
        let before = behind_commas(arguments, argument);
        self.names.steps.spend(before.unwrap_or_else(|stop| stop));
        let start = self.value_start(first + before.ok()?).filter(|start| start.quote.is_some() && !start.in_list)?;
        Some(start.at..self.value_end(start))
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
