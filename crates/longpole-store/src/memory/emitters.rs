//! Resources and scopes, each kept once: every row of a span repeats them.
//!
//! Spans of services that call each other alternate, so a row is not only compared with the one before it. Reader and writer remember
//! alike, so whatever was written can be read.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use longpole_model::fast_hash::FastState;
use longpole_model::{AttributeValue, Attributes, Resource, Scope};

/// How many are remembered before the oldest is forgotten. A trace seldom goes through more services.
const KNOWN_MAX: usize = 64;

/// What stands in many rows and is kept once.
pub(crate) trait Emitter: PartialEq {
    /// Equal ones hash alike.
    fn hash_into(&self, hasher: &mut impl Hasher);
}

impl Emitter for Resource {
    fn hash_into(&self, hasher: &mut impl Hasher) {
        hash_attributes(&self.attributes, hasher);
    }
}

impl Emitter for Scope {
    fn hash_into(&self, hasher: &mut impl Hasher) {
        (&self.name, &self.version).hash(hasher);
        hash_attributes(&self.attributes, hasher);
    }
}

/// Most values are texts; those that differ in others only are compared.
fn hash_attributes(attributes: &Attributes, hasher: &mut impl Hasher) {
    for attribute in attributes.iter() {
        attribute.key.as_str().hash(hasher);
        if let AttributeValue::Str(text) = &attribute.value {
            text.as_str().hash(hasher);
        }
    }
}

/// Those that are remembered.
#[derive(Debug)]
pub(crate) struct Remembered<T> {
    /// With their hashes, in a ring.
    all: Vec<(u64, Arc<T>)>,
    oldest: usize,
    state: FastState,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Remembered { all: Vec::new(), oldest: 0, state: FastState::default() }
    }
}

impl<T: Emitter> Remembered<T> {
    fn hash(&self, value: &T) -> u64 {
        let mut hasher = self.state.build_hasher();
        value.hash_into(&mut hasher);
        hasher.finish()
    }

    /// Whether this very one is remembered.
    pub(crate) fn holds(&self, value: &Arc<T>) -> bool {
        self.all.iter().any(|(_, known)| Arc::ptr_eq(known, value))
    }

    /// The one that is remembered and equal.
    pub(crate) fn equal(&self, value: &T) -> Option<&Arc<T>> {
        let hash = self.hash(value);
        self.all.iter().find(|(of_known, known)| *of_known == hash && **known == *value).map(|(_, known)| known)
    }

    /// Remembers it, unless it is unlike itself, as NaN is: nothing would be equal to it.
    pub(crate) fn remember(&mut self, value: &Arc<T>) {
        let itself: &T = value;
        if !itself.eq(value) {
            return;
        }
        let entry = (self.hash(value), Arc::clone(value));
        if self.all.len() < KNOWN_MAX {
            self.all.push(entry);
        } else {
            self.all[self.oldest] = entry;
            self.oldest = (self.oldest + 1) % KNOWN_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(number: usize) -> Arc<Resource> {
        let mut resource = Resource::default();
        resource.attributes.push("service.name", AttributeValue::Str(format!("s{number}").into()));
        Arc::new(resource)
    }

    #[test]
    fn services_in_turn_are_known_and_the_oldest_is_forgotten() {
        let mut known = Remembered::default();
        let all: Vec<_> = (0..=KNOWN_MAX).map(service).collect();
        all[..KNOWN_MAX].iter().for_each(|it| known.remember(it));
        for (number, it) in all[..KNOWN_MAX].iter().enumerate() {
            assert!(known.holds(it) && Arc::ptr_eq(known.equal(&service(number)).unwrap(), it));
        }
        assert!(known.equal(&all[KNOWN_MAX]).is_none());
        known.remember(&all[KNOWN_MAX]);
        assert!(!known.holds(&all[0]) && known.holds(&all[1]) && known.equal(&all[KNOWN_MAX]).is_some());
    }

    #[test]
    fn what_is_unlike_itself_is_never_known() {
        let mut resource = Resource::default();
        resource.attributes.push("load", AttributeValue::Double(f64::NAN));
        let (mut known, resource) = (Remembered::default(), Arc::new(resource));
        known.remember(&resource);
        assert!(!known.holds(&resource) && known.equal(&resource).is_none());
    }
}
