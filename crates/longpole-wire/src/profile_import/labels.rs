//! The labels of samples: each set of them once.
//!
//! ```text
//! sample   label { endpoint: "/cart" }, label { span_id: "00f0…" }     set 1: endpoint="/cart"; the span has its own place
//! sample   label { endpoint: "/cart" }                                 set 1
//! sample                                                               set 0, which is empty
//! ```

use std::collections::{HashMap, HashSet};

use longpole_model::Text;

use super::parts::{self, Budget, ENTRY_BYTES};
use super::{LabelSet, Profile};
use crate::limits::{LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX, PROFILE_LABEL_BYTES_MAX, PROFILE_LABEL_SETS_MAX};
use crate::number::row;

/// A name and its value, where they lie in the file.
pub(super) type RawLabel<'a> = (&'a [u8], &'a [u8]);

/// Gives out the numbers of label sets.
#[derive(Default)]
pub(super) struct LabelSets {
    numbers: HashMap<LabelSet, u32>,
    texts: HashSet<Text>,
    /// How many sets came, also those that were known.
    sets: u32,
    /// Bytes of their texts. To compare a set with the known ones costs as much as to keep it.
    bytes: usize,
}

impl LabelSets {
    /// Whether there is room for another set.
    pub(super) fn has_room(&self) -> bool {
        self.sets < PROFILE_LABEL_SETS_MAX && self.bytes < PROFILE_LABEL_BYTES_MAX
    }

    /// The number of a set. The last label of a name counts; an empty value is no label. `None` if there is no room: then all its labels count
    /// as cut.
    pub(super) fn number(&mut self, profile: &mut Profile, budget: &mut Budget, mut labels: Vec<RawLabel<'_>>) -> Option<u32> {
        if profile.label_sets.is_empty() {
            profile.label_sets.push(LabelSet::new());
        }
        labels.retain(|(name, value)| !name.is_empty() && !value.is_empty());
        let came = labels.len();
        // Before names are compared, which takes as long as they are. Two names that are no text could be one when they are made texts.
        labels.retain(|(name, _)| name.len() <= LABEL_NAME_BYTES_MAX && std::str::from_utf8(name).is_ok());
        if labels.is_empty() {
            profile.labels_cut += came as u64;
            return Some(0);
        }
        let bytes = labels.iter().map(|(name, value)| name.len() + value.len().min(LABEL_VALUE_BYTES_MAX)).sum::<usize>();
        self.sets = self.sets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let has_room = self.sets <= PROFILE_LABEL_SETS_MAX && self.bytes <= PROFILE_LABEL_BYTES_MAX;
        if !has_room || !budget.has_left(bytes + labels.len() * ENTRY_BYTES) {
            profile.labels_cut += came as u64;
            return None;
        }
        let unfit = came - labels.len();
        labels.reverse();
        labels.sort_by_key(|(name, _)| *name);
        labels.dedup_by_key(|(name, _)| *name);
        let too_many = labels.len().saturating_sub(LABELS_MAX);
        labels.truncate(LABELS_MAX);
        let cut = labels.iter().filter(|(_, value)| value.len() > LABEL_VALUE_BYTES_MAX).count();
        profile.labels_cut += (unfit + too_many + cut) as u64;
        let set: LabelSet = labels.into_iter().map(|(name, value)| (self.text(name), self.text(value))).collect();
        Some(*self.numbers.entry(set).or_insert_with_key(|set| {
            profile.label_sets.push(set.clone());
            row(profile.label_sets.len() - 1)
        }))
    }

    fn text(&mut self, bytes: &[u8]) -> Text {
        let text = parts::cut(bytes, LABEL_VALUE_BYTES_MAX);
        if let Some(known) = self.texts.get(text.as_str()) {
            return known.clone();
        }
        let text = Text::from(text);
        self.texts.insert(text.clone());
        text
    }
}
