//! Why the kernel, or this machine, does not let us sample.

/// Sampling is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// Why, as a lower-case fragment.
    pub reason: String,
    /// What to do about it, as a lower-case fragment; empty where nothing helps.
    pub remedy: String,
}

impl Refused {
    /// Reason and remedy as one fragment.
    pub fn to_words(&self) -> String {
        if self.remedy.is_empty() { self.reason.clone() } else { format!("{}; {}", self.reason, self.remedy) }
    }
}
