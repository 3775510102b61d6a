//! All targets together: a request goes to each that wants its signal.

use std::sync::Arc;
use std::time::Instant;
use std::{io, thread};

use longpole_recording::loss_counters::LossBook;
use tokio::sync::oneshot;

use super::queue::TargetQueue;
use super::target::{ForwardProtocol, ForwardTarget};
use super::{appdash, file, http};
use crate::otlp_request::{Parcel, Signal};

/// One queue for each target, so that a dead one does not hold up the others.
#[derive(Debug)]
pub(crate) struct Forwarder {
    queues: Vec<TargetQueue>,
    /// Ends the thread of the queues when it is dropped.
    _thread: Option<oneshot::Sender<()>>,
}

impl Forwarder {
    /// Starts the queues. Files are created, nothing is connected before the first request. A target that is named twice is one target.
    ///
    /// # Errors
    ///
    /// Where there is a target and no thread for it.
    pub(crate) fn start(targets: Vec<ForwardTarget>, book: &Arc<LossBook>) -> io::Result<Self> {
        if targets.is_empty() {
            return Ok(Forwarder { queues: Vec::new(), _thread: None });
        }
        // A thread of their own: an endpoint can keep it busy, and the command's exports must not wait for that.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let queues = Forwarder::on(&runtime, targets, book).queues;
        let (thread, dropped) = oneshot::channel::<()>();
        thread::Builder::new().name("longpole-forward".to_owned()).spawn(move || {
            // Nothing is ever sent.
            let _ = runtime.block_on(dropped);
            // What did not end by the deadline is dropped, not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Forwarder { queues, _thread: Some(thread) })
    }

    /// The same on a runtime that waits for nothing else.
    pub(super) fn on(runtime: &tokio::runtime::Runtime, targets: Vec<ForwardTarget>, book: &Arc<LossBook>) -> Self {
        let mut different: Vec<ForwardTarget> = Vec::new();
        for target in targets {
            if !different.contains(&target) {
                different.push(target);
            }
        }
        let _inside = runtime.enter();
        let queues = different.into_iter().map(|target| start(target, Arc::clone(book))).collect();
        Forwarder { queues, _thread: None }
    }

    /// Whether somebody wants requests of this signal.
    pub(crate) fn wants(&self, signal: Signal) -> bool {
        self.queues.iter().any(|queue| queue.signal() == signal)
    }

    /// Queues a request for everybody who wants it. Never waits: what does not fit is counted.
    pub(crate) fn send(&self, parcel: &Parcel) {
        for queue in self.queues.iter().filter(|queue| queue.signal() == parcel.signal) {
            queue.send(parcel.clone());
        }
    }

    /// Gives what is queued until the deadline, and counts the rest.
    pub(crate) async fn finish(&self, deadline: Instant) {
        // All queues drain at the same time from the first line on; waiting for one after the other adds nothing.
        self.queues.iter().for_each(|queue| queue.close(deadline));
        for queue in &self.queues {
            queue.ended(deadline).await;
        }
    }
}

/// Starts the queue before a target, and the task that serves it.
fn start(target: ForwardTarget, book: Arc<LossBook>) -> TargetQueue {
    let name = match target.protocol {
        ForwardProtocol::OtlpFile | ForwardProtocol::AppDashFile => target.url.clone(),
        _ => http::printable(&target.url),
    };
    TargetQueue::start(target.signal, name, book, |requests, account| async move {
        match target.protocol {
            ForwardProtocol::Grpc | ForwardProtocol::Http | ForwardProtocol::AsReceived | ForwardProtocol::Zipkin => {
                http::run(requests, target, account).await;
            }
            ForwardProtocol::AppDash => appdash::run(requests, &target, &account).await,
            ForwardProtocol::OtlpFile => file::run_otlp(requests, &target, &account).await,
            ForwardProtocol::AppDashFile => file::run_appdash(requests, &target, &account).await,
        }
    })
}
