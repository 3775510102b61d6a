//! How long the report of a run may take: what the command recorded decides how much work it is, and nobody should wait for it without end.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use longpole_capture::launch::child;
use longpole_model::Exit;
use longpole_store::RecordingWriter;

use crate::launch_failure::EXIT_OWN_FAILURE;
use crate::terminal::stderr::note;

/// What the report of any run may take.
const REPORT_MAX: Duration = Duration::from_secs(120);

/// Beyond that it may take one second for each piece of the log of this length. An ordinary log takes a twentieth of it.
const BYTES_A_SECOND: u64 = 1 << 20;

/// While it lives, longpole ends as the command did once the report takes too long. The log stays.
pub(super) struct ReportLimit(#[expect(dead_code, reason = "its drop ends the watch")] Sender<()>);

impl ReportLimit {
    /// Begins to watch; `None` if there is no room for a thread.
    pub(super) fn begin(writer: &RecordingWriter, exit: Exit, strict: bool) -> Option<ReportLimit> {
        let most = REPORT_MAX.saturating_add(Duration::from_secs(writer.log_bytes() / BYTES_A_SECOND));
        let name = writer.name();
        let (made, is_made) = channel();
        let watch = move || {
            if is_made.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                note(format!("the answer is not ready after {} s; `longpole show {name}` prints it", most.as_secs()));
                if strict && exit == Exit::Code(0) {
                    std::process::exit(EXIT_OWN_FAILURE.into());
                }
                child::exit_like(exit);
            }
        };
        Builder::new().name("report limit".to_owned()).spawn(watch).ok()?;
        Some(ReportLimit(made))
    }
}
