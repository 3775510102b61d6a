//! Services with their operations: a list that anybody who may send can make long.

use std::collections::{BTreeMap, BTreeSet};

use longpole_model::SpanKind;

/// Bytes of a list from which on no further operation of a known service is listed, and of one that is never longer.
const BYTES_MAX: usize = 8 << 20;
const BYTES_LAST: usize = 16 << 20;

/// What an operation takes beside its texts, about.
const ENTRY_BYTES: usize = 96;

/// Services, operations and the kinds of their spans, in the order of the alphabet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operations {
    of_services: BTreeMap<String, BTreeMap<String, BTreeSet<SpanKind>>>,
    bytes: usize,
    is_cut: bool,
}

impl Operations {
    /// Adds an operation, if there is room for it.
    pub(super) fn add(&mut self, service: &str, name: &str, kind: SpanKind) {
        let of_service = self.of_services.get_mut(service);
        if of_service.as_ref().is_some_and(|names| names.get(name).is_some_and(|kinds| kinds.contains(&kind))) {
            return;
        }
        let bytes = self.bytes + service.len() + name.len() + ENTRY_BYTES;
        if bytes > BYTES_LAST || bytes > BYTES_MAX && of_service.is_some() {
            self.is_cut = true;
            return;
        }
        self.bytes = bytes;
        let names = match of_service {
            Some(names) => names,
            None => self.of_services.entry(service.to_owned()).or_default(),
        };
        names.entry(name.to_owned()).or_default().insert(kind);
    }

    /// Adds those of another list.
    pub(super) fn add_all(&mut self, others: &Operations) {
        if self.of_services.is_empty() {
            self.clone_from(others);
            return;
        }
        self.is_cut |= others.is_cut;
        for (service, names) in &others.of_services {
            for (name, kinds) in names {
                kinds.iter().for_each(|kind| self.add(service, name, *kind));
            }
        }
    }

    /// Memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are more: names of services and operations have more than 8 MB.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl IntoIterator for Operations {
    type Item = (String, String, SpanKind);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        let mut all = Vec::new();
        for (service, names) in self.of_services {
            for (name, kinds) in names {
                all.extend(kinds.into_iter().map(|kind| (service.clone(), name.clone(), kind)));
            }
        }
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_at_its_limit_and_still_takes_services() {
        let mut operations = Operations::default();
        for number in 0..3_000 {
            operations.add("shop", &format!("{number:04000}"), SpanKind::Server);
        }
        let count = |operations: &Operations| operations.clone().into_iter().count();
        let listed = count(&operations);
        assert!(operations.is_cut() && (1_900..2_100).contains(&listed), "{listed} of 4 KB each");
        operations.add("shop", &format!("{:04000}", 7), SpanKind::Server);
        operations.add("cart", "GET", SpanKind::Server);
        assert_eq!(count(&operations), listed + 1, "another service has one");
        for number in 0..9_000 {
            operations.add(&format!("{number:04000}"), "GET", SpanKind::Server);
        }
        assert!(operations.bytes() <= BYTES_LAST);
        let mut all = Operations::default();
        all.add_all(&operations);
        assert!(all.is_cut() && all == operations);
        all.add_all(&operations);
        assert_eq!(all, operations);
    }
}
