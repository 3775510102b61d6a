//! The protocol of the processes: JSON over loopback TCP, one message per line, with the sender's trace context.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument, info_span};

use longpole_sdk::SpanExt;

use crate::program::Resource;
use crate::{Error, Result};

/// Variable with the engine's address, for a child.
pub const ENGINE_VARIABLE: &str = "DEPLOY_ENGINE";

/// Variable with the token that proves to the engine that the sender is its child.
pub const TOKEN_VARIABLE: &str = "DEPLOY_TOKEN";

/// Maximum bytes of a message. Ours have some hundred; a larger one is not ours.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Capacity of the queue of requests and answers per connection.
const QUEUE: usize = 64;

/// First message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Name of the child's program.
    pub name: String,
    /// The token from the engine.
    pub token: String,
}

/// A message from the language host to the engine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declaration {
    /// Declares a resource.
    Resource(Resource),
    /// The program has ended: no more resources.
    End,
}

/// The engine's request to a provider to create a resource.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// Number of the request on its connection.
    pub id: u64,
    /// Span that waits for the answer.
    pub traceparent: Option<String>,
    /// The resource to create.
    pub create: Resource,
}

/// The provider's answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the request.
    pub id: u64,
    /// The new resource's id, or the reason of the failure.
    pub result: std::result::Result<String, String>,
}

/// A connection that reads and writes messages.
pub struct Connection {
    /// The side to read from.
    pub reader: MessageReader,
    /// The side to write to.
    pub writer: MessageWriter,
}

impl Connection {
    /// Wraps a stream.
    pub fn new(stream: TcpStream) -> Self {
        // Send each message at once: waiting for more would only add latency.
        let _ = stream.set_nodelay(true);
        let (read, write) = stream.into_split();
        Self { reader: MessageReader(BufReader::new(read)), writer: MessageWriter(write) }
    }

    /// Connects a child to the engine that started it.
    pub async fn to_engine(name: &str) -> Result<Self> {
        let variable = |variable| std::env::var(variable).map_err(|_| format!("{variable} is not set: {name} is started by deploy"));
        let address = variable(ENGINE_VARIABLE)?;
        let token = variable(TOKEN_VARIABLE)?;
        let stream = TcpStream::connect(&address).await.map_err(|error| format!("cannot reach the engine at {address}: {error}"))?;
        let mut connection = Self::new(stream);
        connection.writer.write(&Hello { name: name.into(), token }).await?;
        Ok(connection)
    }
}

/// Reads messages.
pub struct MessageReader(BufReader<OwnedReadHalf>);

impl MessageReader {
    /// The next message; `None` when the other side has closed.
    pub async fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.0).take(MAX_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut line).await.map_err(|error| format!("cannot read a message: {error}"))?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(format!("a message of {read} bytes has no end").into());
        }
        let message = serde_json::from_slice(&line).map_err(|error| format!("a message is not understood: {error}"))?;
        Ok(Some(message))
    }
}

/// Writes messages.
pub struct MessageWriter(OwnedWriteHalf);

impl MessageWriter {
    /// Sends a message.
    pub async fn write<T: Serialize>(&mut self, message: &T) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.write_all(&line).await.map_err(|error| format!("cannot send a message: {error}").into())
    }
}

/// Requests without an answer so far; `None` once the connection has ended.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>>;

/// The engine's end of a connection to a provider: many requests at a time.
#[derive(Clone)]
pub struct Client {
    provider: Arc<str>,
    requests: mpsc::Sender<Request>,
    waiting: Waiting,
    next_id: Arc<std::sync::atomic::AtomicU64>,
}

impl Client {
    /// Starts the tasks that write requests and read answers. They end when the client is dropped: the connection closes, and
    /// with it the provider.
    pub fn start(provider: &str, connection: Connection) -> Self {
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let (requests, mut outgoing) = mpsc::channel::<Request>(QUEUE);
        let Connection { mut reader, mut writer } = connection;
        let answered = Arc::clone(&waiting);
        tokio::spawn(async move {
            while let Ok(Some(answer)) = reader.read::<Answer>().await {
                let mut waiting = answered.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&answer.id)) {
                    // The requester may have gone.
                    let _ = sender.send(answer);
                }
            }
            // Dropping the senders wakes all waiting requests; later requests find no queue.
            answered.lock().unwrap_or_else(PoisonError::into_inner).take();
        });
        tokio::spawn(async move {
            while let Some(request) = outgoing.recv().await {
                if writer.write(&request).await.is_err() {
                    return;
                }
            }
        });
        Self { provider: provider.into(), requests, waiting, next_id: Arc::default() }
    }

    /// Lets the provider create a resource for the current span; returns the resource's id.
    pub async fn create(&self, resource: Resource) -> Result<String> {
        let gone = || -> Error { format!("provider {} has closed the connection", self.provider).into() };
        let id = self.next_id.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut().ok_or_else(gone)?.insert(id, sender);
        let request = Request { id, traceparent: longpole_sdk::current_traceparent(), create: resource };
        self.requests.send(request).await.map_err(|_| gone())?;
        let answer = answer.await.map_err(|_| gone())?;
        answer.result.map_err(Into::into)
    }
}

/// A provider: creates resources.
pub trait Provider: Send + Sync + 'static {
    /// Name of the provider, with which its types begin.
    const NAME: &'static str;

    /// Creates a resource and returns its id.
    fn create(&self, resource: &Resource) -> impl Future<Output = Result<String>> + Send;
}

/// Serves the engine until it closes the connection: a task and a span per request, all requests in parallel.
pub async fn serve<P: Provider>(program: &str, provider: P) -> Result<()> {
    let Connection { mut reader, mut writer } = Connection::to_engine(program).await?;
    let (answers, mut outgoing) = mpsc::channel::<Answer>(QUEUE);
    let writing = tokio::spawn(async move {
        while let Some(answer) = outgoing.recv().await {
            writer.write(&answer).await?;
        }
        Ok::<(), Error>(())
    });
    let provider = Arc::new(provider);
    while let Some(request) = reader.read::<Request>().await? {
        let Request { id, traceparent, create: resource } = request;
        let span = info_span!(
            "create",
            otel.name = format!("{}/create {}", P::NAME, resource.name),
            otel.kind = "server",
            resource.urn = resource.urn(),
            resource.r#type = resource.resource_type,
            resource.name = resource.name,
        );
        if let Some(traceparent) = traceparent {
            span.set_parent_traceparent(&traceparent)?;
        }
        let (provider, answers) = (Arc::clone(&provider), answers.clone());
        let work = async move {
            let result = provider.create(&resource).await;
            if let Err(error) = &result {
                tracing::error!(error = %error, "cannot create {}", resource.name);
            }
            result.map_err(|error| error.to_string())
        };
        tokio::spawn(async move {
            // The span ends with the work, before the answer leaves.
            let result = work.instrument(span).await;
            let _ = answers.send(Answer { id, result }).await;
        });
    }
    // The engine has gone: nobody waits for unfinished resources.
    drop(answers);
    writing.abort();
    Ok(())
}
