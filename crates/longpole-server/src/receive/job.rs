//! A request on its way to the ingester, and its outcome.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longpole_model::Timestamp;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::ingest::IngestParameters;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::connection::Connection;
use super::received_sink::{Durable, ReceivedSinkError};
use super::scraped_profile::ScrapedProfile;
use crate::otlp_request::{CameBy, Compression, Encoding, Signal};

/// What a body is.
#[derive(Debug)]
pub(super) enum Content {
    /// A request of OpenTelemetry.
    Otlp { signal: Signal, encoding: Encoding, came_by: CameBy },
    /// A request of Zipkin; its format is found when the body can be read.
    Zipkin { path: String, content_type: Option<String> },
    /// Spans of a client of Jaeger.
    Jaeger(JaegerFormat),
    /// Profiles.
    Profiles(ProfileRequest),
    /// Spans that were decoded where they were read: a trace request in protobuf.
    Converted { spans: u64 },
    /// One message of the engine's event stream, and when it came.
    PulumiEvent { received: Timestamp },
    /// No spans yet: a connection that will send some.
    Hello,
}

/// How profiles come.
#[derive(Debug)]
pub(super) enum ProfileRequest {
    /// `push.v1.PushRequest`.
    Push(Codec),
    /// A request to `/ingest`: what its address says, and where the parts begin if it is a form.
    Ingest { parameters: Box<IngestParameters>, boundary: Option<String> },
    /// A profile that longpole fetched.
    Scraped(Box<ScrapedProfile>),
}

/// How a client of Jaeger writes its spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JaegerFormat {
    /// A batch in Thrift's binary protocol, over HTTP.
    Thrift,
    /// A message to the agent, in one packet: compact or binary.
    Agent,
    /// A request of `PostSpans` in protobuf, over gRPC.
    Protobuf,
}

impl Content {
    /// Whether its spans have resources.
    pub(super) fn has_resources(&self) -> bool {
        matches!(self, Content::Otlp { signal: Signal::Traces, .. })
    }
}

/// One request on its way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) content: Content,
    pub(super) compression: Compression,
    pub(super) body: Bytes,
    pub(super) connection: Arc<Connection>,
    /// The body's share of the memory that all bodies share, unless the reader of the body holds it.
    pub(super) _memory: Option<OwnedSemaphorePermit>,
}

impl Job {
    /// A job without a body.
    pub(super) fn new(content: Content, connection: &Arc<Connection>) -> Self {
        let connection = Arc::clone(connection);
        Job { content, compression: Compression::Identity, body: Bytes::new(), connection, _memory: None }
    }

    /// The job with this body.
    pub(super) fn with(self, compression: Compression, body: Bytes, memory: OwnedSemaphorePermit) -> Self {
        Job { compression, body, _memory: Some(memory), ..self }
    }
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is kept, except for these spans, which no retry would save.
    Kept {
        /// How many were rejected.
        rejected: u64,
        /// Why; empty where none was.
        message: String,
    },
    /// It cannot be understood.
    Undecodable(String),
    /// It is larger than [`INFLATED_BYTES_MAX`](crate::limits::INFLATED_BYTES_MAX) after decompression.
    TooLarge(String),
    /// It is good and could not be kept: the client should try again.
    NotKept(String),
    /// It is good and will never be kept: the client should drop it.
    NeverKept(String),
    /// Its client has closed the connection, and its spans do not name the run.
    Unproven(String),
}

impl Verdict {
    /// All of it is kept.
    pub(super) fn whole() -> Self {
        Verdict::Kept { rejected: 0, message: String::new() }
    }

    /// Why nothing of it is kept; `None` if it is.
    pub(super) fn refusal(&self) -> Option<&str> {
        match self {
            Verdict::Kept { .. } => None,
            Verdict::Undecodable(reason)
            | Verdict::TooLarge(reason)
            | Verdict::NotKept(reason)
            | Verdict::NeverKept(reason)
            | Verdict::Unproven(reason) => Some(reason),
        }
    }

    pub(super) fn unproven() -> Self {
        Verdict::Unproven(UNPROVEN.to_owned())
    }

    pub(super) fn not_kept(error: &ReceivedSinkError) -> Self {
        let reason = format!("cannot keep the request: {error}");
        match error {
            ReceivedSinkError::ForNow(_) => Verdict::NotKept(reason),
            ReceivedSinkError::ForGood(_) => Verdict::NeverKept(reason),
        }
    }
}

/// The loss of requests without proof that they belong to the run.
pub(super) const UNPROVEN: &str = "requests of processes that closed their connection before longpole could identify them";

/// What became of a request, and when what was kept of it is durable.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) durable: Option<Durable>,
}

impl Outcome {
    /// The verdict, when it may be given.
    pub(super) async fn settled(self) -> Verdict {
        let Some(durable) = self.durable else { return self.verdict };
        match durable.await {
            Ok(Ok(())) => self.verdict,
            Ok(Err(error)) => Verdict::not_kept(&error),
            Err(_) => Verdict::NotKept("the server is ending".to_owned()),
        }
    }
}

/// A request and the way back for its outcome.
pub(super) type Handed = (Job, oneshot::Sender<Outcome>);

/// The way to the ingester.
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

    /// Lets the ingester end after the requests in its queue; later requests get the answer to try again.
    pub(super) fn close(&self) {
        self.sender().take();
    }

    fn sender(&self) -> MutexGuard<'_, Option<Sender<Handed>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over one request and waits for its outcome.
    pub(super) async fn take(&self, job: Job) -> Verdict {
        let gone = || Verdict::NotKept("the recorder is ending".to_owned());
        match self.hand(job) {
            Some(outcome) => match outcome.await {
                Ok(outcome) => outcome.settled().await,
                Err(_) => gone(),
            },
            None => gone(),
        }
    }

    /// Hands over one request, whose outcome comes by the channel. `None` after [`Intake::close`].
    pub(super) fn hand(&self, job: Job) -> Option<oneshot::Receiver<Outcome>> {
        let (reply, outcome) = oneshot::channel();
        self.sender().as_ref()?.send((job, reply)).ok()?;
        Some(outcome)
    }
}
