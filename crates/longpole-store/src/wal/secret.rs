//! A text that neither the log nor anybody it is handed on to holds: the secret id of a run, by which spans of a process that is gone prove
//! that they are of the run. It stands in the environment of the run's processes, who may also say it in their arguments. The run's public
//! name takes its place, in the same length, so that neither a frame nor a request has to be written anew.
//!
//! ```text
//! came    … longpole.run.id  9f86d081884c7d659a2feaa0c55ad015 …     128 random bits
//! kept    … longpole.run.id  000000000000000000f067aa0ba902b7 …     the span of the run, which everybody may know
//! ```

use std::borrow::Cow;

/// The text, and what stands for it.
#[derive(Clone)]
pub struct Secret {
    text: Vec<u8>,
    name: Vec<u8>,
    /// By the byte under the end of the text, how far the text can be moved on: Horspool's search, which looks at one byte of 32.
    skip: [u8; 256],
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Secret").finish_non_exhaustive()
    }
}

impl Secret {
    /// `None` where the text is empty or too long to be an id.
    pub fn new(text: &str, name: &str) -> Option<Self> {
        let length = u8::try_from(text.len()).ok().filter(|length| *length > 0)?;
        let mut skip = [length; 256];
        for (left, byte) in (1..length).rev().zip(text.bytes()) {
            skip[usize::from(byte)] = left;
        }
        // As long as the text, filled with zeroes.
        let name = name.as_bytes();
        let name = &name[name.len().saturating_sub(text.len())..];
        let name = [vec![b'0'; text.len() - name.len()], name.to_vec()].concat();
        Some(Secret { text: text.as_bytes().to_vec(), name, skip })
    }

    /// Where it stands at or after `from`.
    fn find(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let last = self.text.len() - 1;
        let mut at = from;
        while let Some(window) = bytes.get(at..at.checked_add(self.text.len())?) {
            if window == self.text {
                return Some(at);
            }
            at += usize::from(self.skip[usize::from(window[last])]);
        }
        None
    }

    /// Whether it stands in there.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.find(bytes, 0).is_some()
    }

    /// Puts the name in its place, and says whether it was there.
    pub fn hide(&self, bytes: &mut Cow<'_, [u8]>) -> bool {
        let mut next = self.find(bytes, 0);
        let found = next.is_some();
        while let Some(at) = next {
            let end = at + self.text.len();
            bytes.to_mut()[at..end].copy_from_slice(&self.name);
            next = self.find(bytes, end);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_hidden_wherever_it_stands_and_nothing_else_changes() {
        let id = "9f86d081884c7d659a2feaa0c55ad015";
        let secret = Secret::new(id, "00f067aa0ba902b7").unwrap();
        let name = "000000000000000000f067aa0ba902b7";
        let check = |text: String| {
            let mut bytes = Cow::Borrowed(text.as_bytes());
            let found = secret.hide(&mut bytes);
            assert_eq!(String::from_utf8(bytes.to_vec()).unwrap(), text.replace(id, name));
            assert_eq!((found, secret.is_in(text.as_bytes())), (text.contains(id), text.contains(id)), "{text}");
            assert_eq!(matches!(bytes, Cow::Borrowed(_)), !found, "copied only where it must be: {text}");
        };
        check(String::new());
        check(id.to_owned());
        check(id[1..].to_owned());
        // At every distance from both ends, twice in a row, after its own beginning.
        for before in 0..70 {
            check(format!("{}{id}{}", "5".repeat(before), "9".repeat(70 - before)));
            check(format!("{}{id}{id}", &id[..before.min(id.len())]));
        }
        assert!(Secret::new("", "x").is_none() && Secret::new(&"x".repeat(256), "x").is_none());
        assert!(!format!("{secret:?}").contains("57, 102"), "it is not shown");
    }
}
