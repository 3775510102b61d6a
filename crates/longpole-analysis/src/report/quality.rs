//! What is missing or doubtful.

use longpole_model::NodeId;

use crate::note::Note;
use crate::report::Report;
use crate::time::sampling_coverage::ThreadTime;

impl Report {
    /// What a reader of the forest and of the savings must know.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.forest.notes.iter().chain(self.replay.notes())
    }

    /// Everything that is missing or doubtful: what of the machine bears upon all times, losses of the recording, then notes.
    pub fn quality(&self) -> Vec<Note> {
        let losses = self.recording.losses.iter().map(|loss| Note::Loss(loss.clone()));
        let unseen = ThreadTime::of(&self.recording).notes(&self.recording, self.wall());
        unseen.into_iter().chain(losses).chain(self.runs_apart()).chain(self.notes().cloned()).collect()
    }

    /// A file of several runs, one long after the other.
    fn runs_apart(&self) -> Option<Note> {
        let is_idle = self.recording.processes.is_empty() && self.forest.len() > 1 && self.path.is_mostly_of_run(&self.forest);
        is_idle.then(|| Note::RunsApart(self.path.on_path[NodeId::RUN]))
    }
}
