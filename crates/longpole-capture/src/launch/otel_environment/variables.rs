//! Environment variables in their order.

use std::ffi::{OsStr, OsString};

/// Variables in their order. If a name is there twice, some libraries see the first and others the last, so setting one removes all.
pub(super) struct Environment(pub(super) Vec<(OsString, OsString)>);

impl Environment {
    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// The value as text; bytes that are no text become replacement characters.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| value.to_string_lossy().trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        let value = value.into();
        match self.0.iter().position(|(key, _)| key == name) {
            Some(at) => {
                self.0[at].1 = value;
                let mut index = 0;
                self.0.retain(|(key, _)| {
                    index += 1;
                    index - 1 <= at || key != name
                });
            }
            None => self.0.push((name.into(), value)),
        }
    }

    pub(super) fn set_where_unset(&mut self, name: &str, value: &str) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}
