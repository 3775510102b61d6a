//! Services with their operations: a list that anybody who may send can make long.

use std::collections::BTreeSet;

use longpole_model::SpanKind;

/// Bytes of a list from which on no further operation of a known service is listed, and of one that is never longer.
const BYTES_MAX: usize = 8 << 20;
const BYTES_LAST: usize = 16 << 20;

/// What an operation takes beside its texts, about.
const ENTRY_BYTES: usize = 96;

/// Services, operations and the kinds of their spans, in the order of the alphabet.
#[derive(Debug, Clone, Default)]
pub struct Operations {
    list: BTreeSet<(String, String, SpanKind)>,
    bytes: usize,
    is_cut: bool,
}

impl Operations {
    /// Adds an operation, if there is room for it.
    pub(super) fn add(&mut self, service: &str, name: &str, kind: SpanKind) {
        let entry = (service.to_owned(), name.to_owned(), kind);
        if self.list.contains(&entry) {
            return;
        }
        let bytes = self.bytes + service.len() + name.len() + ENTRY_BYTES;
        if bytes > BYTES_LAST || bytes > BYTES_MAX && self.has_service(service) {
            self.is_cut = true;
            return;
        }
        self.bytes = bytes;
        self.list.insert(entry);
    }

    /// Adds those of another list.
    pub(super) fn add_all(&mut self, others: &Operations) {
        if self.list.is_empty() {
            self.clone_from(others);
            return;
        }
        self.is_cut |= others.is_cut;
        others.list.iter().for_each(|(service, name, kind)| self.add(service, name, *kind));
    }

    fn has_service(&self, service: &str) -> bool {
        let from = (service.to_owned(), String::new(), SpanKind::default());
        self.list.range(from..).next().is_some_and(|(next, ..)| next == service)
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
    type IntoIter = std::collections::btree_set::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
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
        let listed = operations.list.len();
        assert!(operations.is_cut() && (1_900..2_100).contains(&listed), "{listed} of 4 KB each");
        operations.add("shop", &format!("{:04000}", 7), SpanKind::Server);
        operations.add("cart", "GET", SpanKind::Server);
        assert_eq!(operations.list.len(), listed + 1, "another service has one");
        for number in 0..9_000 {
            operations.add(&format!("{number:04000}"), "GET", SpanKind::Server);
        }
        assert!(operations.bytes() <= BYTES_LAST);
        let mut all = Operations::default();
        all.add_all(&operations);
        assert!(all.is_cut() && all.list == operations.list);
        all.add_all(&operations);
        assert_eq!(all.list, operations.list);
    }
}
