//! Names and what they say, each judged once.

use longpole_model::fast_hash::FastMap;

use super::names::{self, Meaning};
use super::search_memo::SearchMemo;
use super::step_budget::StepBudget;

/// Names whose verdict is remembered. Programs use some hundred; one that makes up names must not fill the memory.
pub(super) const NAMES_MAX: usize = 4096;

/// Judges names, and keeps what it found out about them.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) known: FastMap<String, Meaning>,
    /// Steps of the current text.
    pub(super) steps: StepBudget,
    pub(super) memo: SearchMemo,
}

impl Names {
    pub(super) fn meaning(&mut self, name: &str) -> Meaning {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let meaning = names::meaning(name);
        if self.known.len() < NAMES_MAX && name.len() <= names::NAME_BYTES_MAX {
            self.known.insert(name.to_owned(), meaning);
        }
        meaning
    }
}
