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
    /// The current text is one that another one encodes.
    pub(super) is_decoded: bool,
}

impl Names {
    /// What a name says that may be made up for one text, as those with digits: it is not remembered.
    pub(super) fn meaning_of_any(&mut self, name: &str) -> Meaning {
        if name.bytes().any(|byte| byte.is_ascii_digit()) { self.judged(name) } else { self.meaning(name) }
    }

    pub(super) fn meaning(&mut self, name: &str) -> Meaning {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let meaning = self.judged(name);
        if self.known.len() < NAMES_MAX && name.len() <= names::NAME_BYTES_MAX && !self.steps.is_request_spent() {
            self.known.insert(name.to_owned(), meaning);
        }
        meaning
    }

    /// What a name says. Behind the last step of a request nobody knows, so whatever it names is taken out.
    fn judged(&mut self, name: &str) -> Meaning {
        if self.steps.is_request_spent() {
            return Meaning::Password;
        }
        self.steps.spend_on_name();
        names::meaning(name)
    }
}
