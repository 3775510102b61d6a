//! Takes requests to the collector: sends, tries again, gives up, counts, and tells of an outage once.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::queue::SpanQueue;
use crate::config::ExportConfig;
use crate::locks::lock;
use crate::transport::{Answer, Transport};

/// Pause before a batch is sent again, doubled each time.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// One connection to the collector.
pub(crate) struct Connection {
    config: Arc<ExportConfig>,
    shared: Arc<SpanQueue>,
    transport: Transport,
}

impl Connection {
    /// Made on the thread that it is used on.
    pub(crate) fn new(config: Arc<ExportConfig>, shared: Arc<SpanQueue>) -> Self {
        let transport = Transport::new(&config);
        Self { config, shared, transport }
    }

    fn closing(&self) -> bool {
        self.shared.closing.load(Acquire)
    }

    /// Sends the request until it is answered for good, or until its time is over.
    pub(crate) fn deliver(&mut self, request: &[u8], spans: u64) {
        let started = Instant::now();
        let mut delay = FIRST_RETRY_DELAY;
        loop {
            // Read before the attempt: one more is due after the shutdown began, and no more than one.
            let closing = self.closing();
            let timeout = self.phase_timeout();
            let flushes = self.shared.flushes.load(Relaxed);
            let why = match self.transport.send(request, timeout) {
                Answer::Accepted { rejected } => {
                    let rejected = rejected.min(spans);
                    self.shared.exported.fetch_add(spans - rejected, Relaxed);
                    self.shared.rejected.fetch_add(rejected, Relaxed);
                    self.shared.is_slow.store(false, Relaxed);
                    self.report();
                    let mut outage = lock(&self.shared.outage);
                    if outage.end() && !closing {
                        outage.tell_losses(&self.config.url, &self.shared.counts());
                    }
                    return;
                }
                Answer::Refused { why } => why,
                Answer::NotNow { why, pause } => {
                    let pause = pause.unwrap_or(delay).min(MAX_RETRY_DELAY);
                    delay = delay.saturating_mul(2);
                    let in_time = self.config.export_timeout.is_none_or(|limit| started.elapsed() + pause <= limit);
                    if !closing && in_time && !self.shared.abandoned.load(Relaxed) {
                        // A flush at the end of the program reports what is lost itself.
                        if !self.shared.is_wanted() {
                            lock(&self.shared.outage).begin(&self.config.url, why, "trying again");
                        }
                        self.shared.attempts_failed.fetch_add(1, Relaxed);
                        self.report();
                        self.pause(pause, flushes);
                        continue;
                    }
                    if closing {
                        // Whoever waits for us is not to wait for every batch.
                        self.shared.gave_up.store(true, Relaxed);
                    }
                    why
                }
            };
            self.shared.failed.fetch_add(spans, Relaxed);
            self.report();
            let mut outage = lock(&self.shared.outage);
            if closing {
                outage.note(why);
            } else {
                outage.begin(&self.config.url, why, "those of this request are lost");
            }
            return;
        }
    }

    /// Tells those who wait that something became of a request.
    fn report(&self) {
        if self.shared.is_wanted() {
            // They look at the counts while they hold it.
            drop(lock(&self.shared.end));
            self.shared.ended.notify_all();
        }
    }

    /// Waits, unless the end is near or somebody began to wait for what there is.
    fn pause(&self, pause: Duration, flushes: u64) {
        let until = Instant::now() + pause;
        let mut end = lock(&self.shared.end);
        while !self.closing() && self.shared.flushes.load(Relaxed) == flushes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            end = self.shared.ended.wait_timeout(end, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How long each phase of a request may take: at the end, not longer than somebody waits for it.
    fn phase_timeout(&self) -> Option<Duration> {
        let deadline = lock(&self.shared.end).deadline;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        match (self.config.request_timeout, left) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        }
    }
}
