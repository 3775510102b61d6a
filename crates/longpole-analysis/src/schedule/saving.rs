//! What a change saves, and how that is known.

use longpole_model::Nanos;

/// What is done to the work of a pole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It and all below it takes no time.
    Zero,
    /// It and all below it takes half its time.
    Half,
    /// Its own time, outside its children, is nothing; the children stay as they are.
    OwnZero,
}

/// How much earlier the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Saving {
    /// At least.
    pub low: Nanos,
    /// At most.
    pub high: Nanos,
}

impl Saving {
    /// The same, if no more can be saved than this.
    #[must_use]
    pub fn at_most(self, most: Nanos) -> Saving {
        Saving { low: self.low.min(most), high: self.high.min(most) }
    }
}

/// Where the knowledge of what a node waited for comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScheduleEvidence {
    /// Span links, or there was nothing that it could have waited for but its parent.
    Declared,
    /// Order inside the same parent.
    Inferred,
}

impl ScheduleEvidence {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleEvidence::Declared => "declared",
            ScheduleEvidence::Inferred => "inferred",
        }
    }
}
