//! The order in which requests are served, and the threads that do it.
//!
//! To judge a request takes a time in proportion to its size, and a program can make that seconds. Requests above a size have a thread of
//! their own, so that no other one waits behind them:
//!
//! ```text
//! requests   ──┬── up to 1 MiB, and what must stay in order ── first lane
//!              ├── larger, and larger profiles ── second lane, from the first such request on
//!              └── profiles up to 16 KiB ── third lane: what they inflate to is read in a moment
//! ```
//!
//! All lanes serve their senders fairly ([`FairQueue`]). The order of two requests of one sender counts only for those that a program sends
//! without waiting for an answer, and these are never large.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender as Channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use super::super::job::{Content, Handed, Job};
use super::fair_queue::{COSTLY_MIN, FairQueue, Sender};
use super::{IngestContext, Ingester};
use crate::otlp_request::{Compression, InflateError, Signal, inflate_up_to};

/// Bytes of a decompressed body that the first lane serves: the spans of some two seconds of an exporter that has much to send.
const FIRST_LANE_BYTES_MAX: usize = 1 << 20;

/// Serves the queue until every [`Intake`](super::super::job::Intake) is dropped, and all requests are answered.
pub(super) fn serve_all(queue: &Receiver<Handed>, context: &IngestContext<'_>) {
    thread::scope(|scope| {
        let (mut second, mut third) = (None, None);
        let mut first = Lane::new(context);
        first.serve_all(queue, |handed| match is_large(&handed.0) {
            false => Some(handed),
            true if is_small_profile(&handed.0) => give(&mut third, "longpole-small", scope, context, handed),
            true => give(&mut second, "longpole-large", scope, context, handed),
        });
    });
}

/// Gives a request to another lane, which may have to begin; returns it if there is no thread for that.
fn give<'scope>(
    lane: &mut Option<Channel<Handed>>,
    name: &str,
    scope: &'scope Scope<'scope, '_>,
    context: &'scope IngestContext<'_>,
    handed: Handed,
) -> Option<Handed> {
    if lane.is_none() {
        let (requests, queue) = mpsc::channel();
        let serve = move || Lane::new(context).serve_all(&queue, Some);
        thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, serve).ok()?;
        *lane = Some(requests);
    }
    match lane.as_ref().map(|lane| lane.send(handed)) {
        Some(Err(mpsc::SendError(handed))) => Some(handed),
        _ => None,
    }
}

/// Bytes of a body that the third lane serves: it inflates to 16 MiB at most.
const THIRD_LANE_BYTES_MAX: usize = 16 << 10;

/// Whether a request has profiles and is small: those of clients that send each 15 seconds wait for no other.
fn is_small_profile(job: &Job) -> bool {
    let is_profile = matches!(job.content, Content::Profiles(_) | Content::Otlp { signal: Signal::Profiles, .. });
    is_profile && job.body.len() <= THIRD_LANE_BYTES_MAX
}

/// Whether a request takes long to judge.
fn is_large(job: &Job) -> bool {
    match job.content {
        // Their order counts, and none is large.
        Content::Converted { .. } | Content::PulumiEvent { .. } | Content::Hello => false,
        // A few bytes may become many stacks, and no span should wait for a profile.
        Content::Profiles(_) | Content::Otlp { signal: Signal::Profiles, .. } => true,
        Content::Otlp { .. } | Content::Zipkin { .. } | Content::Jaeger(_) if job.compression == Compression::Identity => {
            job.body.len() > FIRST_LANE_BYTES_MAX
        }
        Content::Otlp { .. } | Content::Zipkin { .. } | Content::Jaeger(_) => {
            matches!(inflate_up_to(&job.body, job.compression, FIRST_LANE_BYTES_MAX), Err(InflateError::TooLarge(_)))
        }
    }
}

struct Lane<'a> {
    ingester: Ingester<'a>,
    waiting: FairQueue<Handed>,
    /// Requests of closed connections come last: any user can send them, and no client waits for the answer. Their places limit their
    /// number.
    later: VecDeque<Handed>,
}

impl<'a> Lane<'a> {
    fn new(context: &'a IngestContext<'a>) -> Lane<'a> {
        Lane { ingester: Ingester::new(context), waiting: FairQueue::default(), later: VecDeque::new() }
    }

    /// Serves the requests that this function leaves to it, until the queue ends.
    fn serve_all(&mut self, queue: &Receiver<Handed>, mut left: impl FnMut(Handed) -> Option<Handed>) {
        let mut last: Option<(Sender, Duration)> = None;
        loop {
            let is_busy = self.waiting.is_busy() || last.is_some_and(|(_, time)| time >= COSTLY_MIN);
            let mut next = queue.try_recv().ok();
            if next.is_none() {
                // What came meanwhile competes with the sender of the last request.
                if let Some((sender, time)) = last.take() {
                    self.waiting.charge(sender, time);
                }
                if self.waiting.is_empty() && self.later.is_empty() {
                    next = queue.recv().ok();
                    if next.is_none() {
                        break;
                    }
                }
            }
            if let Some(handed) = next {
                match left(handed) {
                    Some(handed) if handed.0.connection.sender_is_gone() => self.later.push_back(handed),
                    Some(handed) => self.waiting.push(self.ingester.sender_of(&handed.0, is_busy), handed),
                    None => {}
                }
                continue;
            }
            let next = self.waiting.pop(|(job, _)| self.ingester.sender_of(job, true));
            let Some((job, reply)) = next.or_else(|| self.later.pop_front()) else { continue };
            let start = Instant::now();
            // The client may have hung up, or never waited for an answer; the log keeps the request anyway.
            let _ = reply.send(self.ingester.outcome_of(&job));
            let time = start.elapsed();
            if !job.connection.sender_is_gone() {
                last = Some((self.ingester.sender_of(&job, is_busy || time >= COSTLY_MIN), time));
            }
        }
    }
}
