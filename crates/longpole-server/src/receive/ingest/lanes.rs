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
//! How large a compressed request is shows when the first lane serves it: to inflate it takes time, which its sender pays.
//!
//! All lanes serve their senders fairly ([`FairQueue`]). The order of two requests of one sender counts only for those that a program sends
//! without waiting for an answer, and these are never large.

use std::collections::VecDeque;
use std::sync::Arc;
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
        first.serve_all(queue, |handed, step| match is_large(&handed.0, step) {
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
        let serve = move || Lane::new(context).serve_all(&queue, |handed, _| Some(handed));
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

/// When a lane looks at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneStep {
    /// It arrives: nobody pays for the time.
    Arrives,
    /// Its sender has its turn.
    IsServed,
}

/// Whether a request takes long to judge, as far as this step shows.
fn is_large(job: &Job, step: LaneStep) -> bool {
    match job.content {
        // Their order counts, and none is large.
        Content::Converted { .. } | Content::PulumiEvent { .. } | Content::Hello => false,
        // A few bytes may become many stacks, and no span should wait for a profile.
        Content::Profiles(_) | Content::Otlp { signal: Signal::Profiles, .. } => true,
        Content::Otlp { .. } | Content::Zipkin { .. } | Content::Jaeger(_) if job.compression == Compression::Identity => {
            job.body.len() > FIRST_LANE_BYTES_MAX
        }
        Content::Otlp { .. } | Content::Zipkin { .. } | Content::Jaeger(_) => {
            let inflates = || matches!(inflate_up_to(&job.body, job.compression, FIRST_LANE_BYTES_MAX), Err(InflateError::TooLarge(_)));
            job.body.len() > FIRST_LANE_BYTES_MAX || step == LaneStep::IsServed && inflates()
        }
    }
}

/// Requests that arrive before one of those that wait is served.
const SORTED_MAX: usize = 64;

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
    fn serve_all(&mut self, queue: &Receiver<Handed>, mut left: impl FnMut(Handed, LaneStep) -> Option<Handed>) {
        let mut last: Option<(Sender, Duration)> = None;
        let mut sorted = 0;
        loop {
            let is_busy = self.waiting.is_busy() || last.is_some_and(|(_, time)| time >= COSTLY_MIN);
            let mut next = if sorted < SORTED_MAX { queue.try_recv().ok() } else { None };
            sorted += 1;
            if next.is_none() {
                sorted = 0;
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
                match left(handed, LaneStep::Arrives) {
                    Some(handed) if handed.0.connection.sender_is_gone() => self.later.push_back(handed),
                    Some(handed) => self.waiting.push(self.ingester.sender_of(&handed.0, is_busy), handed),
                    None => {}
                }
                continue;
            }
            let next = self.waiting.pop(|(job, _)| self.ingester.sender_of(job, true));
            let Some(handed) = next.or_else(|| self.later.pop_front()) else { continue };
            let connection = Arc::clone(&handed.0.connection);
            let sender = self.ingester.sender_of(&handed.0, is_busy);
            let start = Instant::now();
            let served = left(handed, LaneStep::IsServed).map(|(job, reply)| {
                // The client may have hung up, or never waited for an answer; the log keeps the request anyway.
                let _ = reply.send(self.ingester.outcome_of(&job));
                job
            });
            let time = start.elapsed();
            if !connection.sender_is_gone() {
                let sender = match served {
                    Some(job) if time >= COSTLY_MIN => self.ingester.sender_of(&job, true),
                    Some(_) | None => sender,
                };
                last = Some((sender, time));
            }
        }
    }
}
