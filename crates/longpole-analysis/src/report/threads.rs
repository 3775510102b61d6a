//! Which threads matter, and why.

use std::collections::HashMap;

use longpole_model::{PoleId, ThreadKey, UnsignedNanos};

use crate::report::Report;
use crate::time::threads::{self, Importance, ThreadLife};

impl Report {
    /// What makes each of these threads matter.
    pub fn importance_of_threads(&self, lives: &[ThreadLife]) -> Vec<Importance> {
        let mut in_pole: HashMap<(ThreadKey, PoleId), UnsignedNanos> = HashMap::new();
        let activity = self.activity();
        for (pole, about) in self.poles().enumerated().take(threads::POLES_MAX) {
            for stretch in self.stretches_of_pole(about) {
                for &sample in activity.samples_in(stretch) {
                    let sample = &self.recording.samples[sample];
                    *in_pole.entry((sample.thread(), pole)).or_default() += UnsignedNanos(sample.weight_nanos);
                }
                for part in activity.waits_in(stretch) {
                    let wait = &self.recording.waits[part.wait];
                    *in_pole.entry((wait.thread(), pole)).or_default() += UnsignedNanos((part.to - part.from).magnitude());
                }
            }
        }
        threads::importance(&self.recording, self.waits.idle(), lives, &in_pole)
    }
}
