//! What a recording is of: a command, a trace, a file, a profile.

use longpole_analysis::Report;
use longpole_model::CaptureMode;
use serde::{Deserialize, Serialize};

/// What a recording is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummarisedView {
    /// A command that longpole ran.
    Command,
    /// The same, but longpole knows only its own wall and CPU time: no spans arrived, and there is no profile.
    CommandAlone,
    /// Processes that ran before and after the recording.
    Attached,
    /// The spans of a trace of a server.
    Trace,
    /// A file of another tool.
    File,
    /// A profile of another tool, whose samples have no times: there is no critical path.
    Profile,
}

impl SummarisedView {
    pub(super) fn new(report: &Report) -> SummarisedView {
        let run = &report.recording().run;
        // A run has a process of its own, or at least the machine that it ran on.
        let is_unseen = run.exit.is_none() && run.root_pid.is_none() && run.host.is_empty();
        if report.is_attached() {
            SummarisedView::Attached
        } else if report.is_profile() {
            SummarisedView::Profile
        } else if report.knows_only_the_command() {
            SummarisedView::CommandAlone
        } else if run.mode == CaptureMode::Imported || is_unseen && run.command.first().is_some_and(|word| word == "import") {
            SummarisedView::File
        } else if is_unseen {
            SummarisedView::Trace
        } else {
            SummarisedView::Command
        }
    }
}
