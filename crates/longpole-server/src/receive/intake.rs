//! The keeper: inflates a body, checks that it decodes, finds out who sent it, and keeps it. One thread, in order.

use std::io::Read;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use longpole_model::{Loss, LossKind, Resource, Scope, SpanRef, SpanSink};
use longpole_wire::{DecodeError, Limits, otlp};
use tokio::sync::oneshot;

use super::connections::Connection;
use super::{Compression, Encoding, Keep, Signal};
use crate::limits::INFLATED_BYTES_MAX;
use crate::loss_book::LossBook;
use crate::peer::PeerFinder;

/// One request on its way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) signal: Signal,
    pub(super) encoding: Encoding,
    pub(super) compression: Compression,
    pub(super) body: Bytes,
    pub(super) connection: Arc<Connection>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is kept, but for these spans, which no retry would save.
    Kept {
        /// How many were rejected.
        rejected: u64,
        /// Why; empty where none was.
        message: String,
    },
    /// It cannot be understood.
    Undecodable(String),
    /// It is larger than [`INFLATED_BYTES_MAX`] after decompression.
    TooLarge(String),
    /// It is good and could not be kept: the client should try again.
    NotKept(String),
}

/// A request and where its outcome is waited for.
pub(super) type Handed = (Job, oneshot::Sender<Verdict>);

/// The way to the keeper.
#[derive(Debug)]
pub(super) struct Intake {
    // The queue needs no bound of its own: what waits in it is charged to the memory of bodies, and a connection has a
    // bounded number of requests in flight. `None` once closed.
    jobs: Mutex<Option<Sender<Handed>>>,
}

impl Intake {
    pub(super) fn new(jobs: Sender<Handed>) -> Self {
        Intake { jobs: Mutex::new(Some(jobs)) }
    }

    /// Lets the keeper end when it has done what waits; whoever comes later is told to try again.
    pub(super) fn close(&self) {
        self.sender().take();
    }

    fn sender(&self) -> MutexGuard<'_, Option<Sender<Handed>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over one request and waits for what became of it.
    pub(super) async fn take(&self, job: Job) -> Verdict {
        let (reply, verdict) = oneshot::channel();
        let gone = || Verdict::NotKept("the recorder is ending".to_owned());
        if self.sender().as_ref().is_none_or(|jobs| jobs.send((job, reply)).is_err()) {
            return gone();
        }
        verdict.await.unwrap_or_else(|_| gone())
    }
}

/// Serves the queue until every [`Intake`] is dropped.
pub(super) fn keep_all(queue: Receiver<Handed>, mut keep: Box<dyn Keep>, book: &LossBook) {
    let mut finder = PeerFinder::default();
    for (job, reply) in queue {
        let verdict = match job.signal {
            Signal::Traces => keep_traces(&job, keep.as_mut(), &mut finder),
            Signal::Metrics | Signal::Logs => {
                count_other(&job, book);
                Verdict::Kept { rejected: 0, message: String::new() }
            }
        };
        // The client may have hung up meanwhile; what was kept stays kept.
        let _ = reply.send(verdict);
    }
}

fn keep_traces(job: &Job, keep: &mut dyn Keep, finder: &mut PeerFinder) -> Verdict {
    let inflated;
    let bytes = match job.compression {
        Compression::Identity => &job.body[..],
        compression => match inflate(&job.body, compression) {
            Ok(bytes) => {
                inflated = bytes;
                &inflated[..]
            }
            Err(InflateError::TooLarge) => {
                return Verdict::TooLarge(format!(
                    "body larger than {} MiB after decompression: export smaller batches",
                    INFLATED_BYTES_MAX >> 20
                ));
            }
            Err(InflateError::Broken(reason)) => return Verdict::Undecodable(format!("cannot decompress the body: {reason}")),
        },
    };
    let mut check = Check { resource_without_pid: true, ..Check::default() };
    if let Err(error) = decode_traces(bytes, job.encoding, &mut check) {
        return Verdict::Undecodable(error.to_string());
    }
    // Looking up the peer reads through /proc, so it is done only where a span would have no process without it.
    let peer_pid = if check.pid_missing { job.connection.peer_pid(finder) } else { None };
    match keep.traces(bytes, job.encoding, peer_pid) {
        Ok(()) => Verdict::Kept { rejected: check.rejected, message: check.reasons.join("; ") },
        Err(error) => Verdict::NotKept(format!("cannot keep the request: {error}")),
    }
}

fn decode_traces(bytes: &[u8], encoding: Encoding, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    match encoding {
        Encoding::Protobuf => otlp::trace::decode(bytes, &Limits::default(), sink),
        Encoding::Json => otlp::json::decode(bytes, &Limits::default(), sink),
    }
}

/// Metrics and logs are not kept. They are counted, and what cannot be counted counts as one: a child that sends them is
/// never told of an error, for its own endpoint (where it has one) gets them unchanged.
fn count_other(job: &Job, book: &LossBook) {
    let bytes = match job.compression {
        Compression::Identity => Some(job.body.to_vec()),
        compression => inflate(&job.body, compression).ok(),
    };
    let count = |count: fn(&[u8], bool) -> Result<u64, DecodeError>| {
        bytes.as_deref().and_then(|bytes| count(bytes, job.encoding == Encoding::Json).ok()).unwrap_or(1)
    };
    match job.signal {
        Signal::Traces => {}
        Signal::Metrics => book.add(LossKind::OtherSignals, count(otlp::count_metrics), "data points of metrics, which are not kept"),
        Signal::Logs => book.add(LossKind::OtherSignals, count(otlp::count_logs), "log records, which are not kept"),
    }
}

/// Why a body was not inflated.
#[derive(Debug, PartialEq, Eq)]
enum InflateError {
    TooLarge,
    Broken(String),
}

/// Inflates up to [`INFLATED_BYTES_MAX`]: a body that would become more is stopped there, whatever it would have become.
fn inflate(bytes: &[u8], compression: Compression) -> Result<Vec<u8>, InflateError> {
    let mut out = Vec::new();
    let limit = INFLATED_BYTES_MAX as u64 + 1;
    match compression {
        Compression::Identity => return Ok(bytes.to_vec()),
        Compression::Gzip => MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut out),
        Compression::Deflate => ZlibDecoder::new(bytes).take(limit).read_to_end(&mut out),
    }
    .map_err(|error| InflateError::Broken(error.to_string()))?;
    if out.len() > INFLATED_BYTES_MAX { Err(InflateError::TooLarge) } else { Ok(out) }
}

/// Looks at a request without keeping anything of it.
#[derive(Debug, Default)]
struct Check {
    rejected: u64,
    reasons: Vec<String>,
    /// The resource of the spans that follow does not say its process.
    resource_without_pid: bool,
    /// Such spans came.
    pid_missing: bool,
}

impl SpanSink for Check {
    fn resource(&mut self, resource: Resource) {
        self.resource_without_pid = resource.process_pid().is_none();
    }

    fn scope(&mut self, _: Scope) {}

    fn span(&mut self, _: SpanRef<'_>) {
        self.pid_missing |= self.resource_without_pid;
    }

    fn loss(&mut self, loss: Loss) {
        // Other losses leave the span in place; they are counted when the recording is sealed, as these are.
        if loss.kind == LossKind::SpansInvalid {
            self.rejected += loss.count;
            if !self.reasons.contains(&loss.detail) {
                self.reasons.push(loss.detail);
            }
        }
    }
}
