//! What processes used.

use longpole_model::{IdVec, ProcessRow};

use crate::report::Report;
use crate::time::usage::{self, ProcessFigures, UsageFinding};

impl Report {
    /// What each process used, in the order of `recording.processes`.
    pub fn figures(&self) -> &IdVec<ProcessRow, ProcessFigures> {
        self.figures.get_or_init(|| usage::figures(&self.recording))
    }

    /// CPU time of the command; `None` where nobody counted it.
    pub fn cpu_nanos(&self) -> Option<u64> {
        usage::cpu_of_run(&self.recording)
    }

    /// What of it is worth a line.
    pub fn notable_usage(&self) -> Vec<UsageFinding> {
        usage::findings(&self.recording, self.figures())
    }
}
