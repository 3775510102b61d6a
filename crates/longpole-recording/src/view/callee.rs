//! The other side of a call.

use longpole_analysis::Report;
use serde::Serialize;

use super::functions::{TopFrameView, top_frames, weight};
use super::waits::WaitView;

/// The other side of a call.
#[derive(Debug, Clone, Serialize)]
pub struct CalleeView {
    /// The address that is called: `127.0.0.1:8080`.
    pub address: String,
    /// Processes of the run that take connections there: one, and those that it forked to share the work; none where nobody was seen.
    pub processes: Vec<CalleeProcessView>,
    /// Whether a span of it answers, which then says what it does.
    pub answers: bool,
    /// Samples of these processes while they were called, for whomever.
    pub samples: u64,
    /// What they stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What these processes waited for then, longest first.
    pub waits: Vec<WaitView>,
    /// For people, where no span of it answers: who it is, and what it did most.
    pub text: Option<String>,
}

/// A process that is called.
#[derive(Debug, Clone, Serialize)]
pub struct CalleeProcessView {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl CalleeView {
    pub(super) fn new(report: &Report, nodes: &[usize], most: usize) -> Option<Self> {
        let callee = report.callee(nodes)?;
        let processes = &report.recording().processes;
        let mut functions = report.top_functions(&callee.samples);
        functions.truncate(most);
        Some(CalleeView {
            address: callee.address.to_string(),
            processes: callee
                .processes
                .iter()
                .map(|&at| CalleeProcessView { pid: processes[at].pid, name: report.forest().program(report.recording(), at).to_owned() })
                .collect(),
            answers: callee.answers,
            samples: callee.samples.len() as u64,
            weight_nanos: weight(report, &callee.samples),
            top_frames: top_frames(report, &functions, &callee.samples, &[]),
            waits: callee.waits.iter().take(most).map(|sum| WaitView::new(report, sum)).collect(),
            text: report.callee_words(&callee),
        })
    }
}
