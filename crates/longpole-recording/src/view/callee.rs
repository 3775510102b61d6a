//! The other side of a call.

use longpole_analysis::{Report, words};
use longpole_model::NodeId;
use serde::{Deserialize, Serialize};

use super::functions::{TopFrameView, top_frames, weight};
use super::waits::WaitView;

/// The other side of a call: of a span of kind `client` or `producer` that names the address of its server (`network.peer.*`,
/// `server.*`, `net.peer.*`, `net.sock.peer.*`, `peer.*`, or a URL). Samples and waits are those of the called processes between start
/// and end of the call, for whomever they worked; waits for the next call are omitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CalleeView {
    /// The called address, such as `127.0.0.1:8080`.
    pub address: String,
    /// Processes of the run that accepted connections there when the span began: one, and those that it forked to share the work;
    /// empty where longpole saw none.
    pub processes: Vec<CalleeProcessView>,
    /// Whether a child of the span belongs to these processes. That span then says what they did.
    pub answers: bool,
    /// Samples of these processes during the call.
    pub samples: u64,
    /// The CPU time that these samples stand for.
    pub weight_nanos: i64,
    /// Functions of these samples.
    pub top_frames: Vec<TopFrameView>,
    /// What these processes waited for during the call, longest first.
    pub waits: Vec<WaitView>,
    /// For people, where no span answers: who it is, and what it did most.
    pub text: Option<String>,
}

/// A process that accepts calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CalleeProcessView {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl CalleeView {
    pub(super) fn new(report: &Report, nodes: &[NodeId], most: usize) -> Option<Self> {
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
            text: report.callee_summary(&callee).map(|summary| words::callee(&summary).to_string()),
        })
    }
}
