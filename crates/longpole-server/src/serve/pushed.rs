//! Recordings beside the traces, in a store of their own: those that `longpole push` and `longpole run --to` send, each with its code, files of other
//! tools that somebody drops on the page, and traces that somebody keeps.
//!
//! ```text
//! push ─► a place of 8 ─► a file, as it comes ─► one at a time: read, kept ─► r3
//!           │ none free: the slowest is cut, or 503
//! ```
//!
//! They are kept as long as spans are: the oldest of both goes first. One with a tag stays, as a trace that somebody keeps. Since nothing removes
//! those, they have a share of the room of their own.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use longpole_model::{Timestamp, TraceId};
use longpole_recording::import::{self, Contents, ImportError};
use longpole_recording::view::KeptView;
use longpole_store::live::{KeptBeside, MemoryPool, QueryLimits, QueryMemory, QueryStop};
use longpole_store::{RecordingName, RecordingState, Store, StoreError, StoredRecording};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::api::{ApiError, causes};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;

/// Bytes of one: a long build has some megabytes.
const PUSHED_BYTES_MAX: u64 = 256 << 20;

/// How long its next bytes may take.
const STALL_MAX: Duration = Duration::from_secs(30);

/// How long it may take to come: the largest one at 300 KB/s.
const PUSH_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// How many come at once.
const RECEIVED_AT_ONCE_MAX: usize = if cfg!(test) { 2 } else { 8 };

/// One that comes slower than this number of bytes in a second, for longer than that, loses its place to another one.
const SLOW_BYTES: u64 = 1 << 20;
const SLOW_AFTER: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 10_000 });

/// How long another one waits for that place.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(2);

/// How many are read at once: that may take a hundred times their bytes, of the memory of queries. Small ones do not wait for large ones.
const READ_AT_ONCE_MAX: usize = 1;

/// A file of at most this many bytes is small.
const SMALL_BYTES_MAX: u64 = 8 << 20;

/// How long one waits for those before it to be read.
const READ_WAIT_MAX: Duration = Duration::from_secs(60);

/// How many small and large ones wait so: all of them are on the disk, and count for no retention yet.
const WAITING_MAX: [usize; 2] = if cfg!(test) { [1, 1] } else { [32, 4] };

/// The share of the bytes that the server keeps which traces may take that stay: anybody may keep one.
const KEPT_TRACES_PART: u64 = 4;

/// Bytes of the disk that no recording takes: the logs of spans need them.
const DISK_RESERVE_BYTES: u64 = 64 << 20;

/// How long the list of the recordings on the disk is believed: somebody may remove one.
const LISTED_FOR: Duration = Duration::from_secs(60);

/// Characters of a file's name: a recording is called by it.
const FILE_NAME_CHARS_MAX: usize = 60;

/// What the folders of files are called before those are recordings.
const INCOMING: &str = "incoming-";

/// The store of what was pushed.
#[derive(Debug, Clone)]
pub(super) struct Pushed {
    root: Arc<PathBuf>,
    /// Open for as long as the server, to see what its disk has left.
    store: Store,
    receiving: Arc<Semaphore>,
    /// A place for a small one, and one for a large one.
    reading: [Arc<Semaphore>; 2],
    /// Places of those that wait for it.
    waiting: [Arc<Semaphore>; 2],
    /// Reading one takes memory of the queries.
    memory: Arc<MemoryPool>,
    under_way: Arc<Mutex<Vec<Arc<Arrival>>>>,
    /// Held while a trace is kept.
    keeping: Arc<Mutex<()>>,
    listed: Arc<Mutex<Option<Listed>>>,
    /// Bytes of traces that stay.
    kept_traces_bytes_max: Option<u64>,
}

/// What there is, and when that was found.
type Listed = (Instant, Vec<KeptRecording>);

/// A recording that is kept as long as retention says.
#[derive(Debug, Clone, Copy)]
struct KeptRecording {
    name: RecordingName,
    kept: KeptBeside,
}

/// A recording that comes.
#[derive(Debug)]
struct Arrival {
    begun: Instant,
    bytes: AtomicU64,
    /// Another one needs its place.
    cut: Notify,
}

impl Arrival {
    /// Its bytes in a second, once it has come for long enough.
    fn pace(&self) -> Option<u64> {
        let elapsed = self.begun.elapsed();
        let bytes = self.bytes.load(Ordering::Relaxed);
        (elapsed >= SLOW_AFTER).then(|| bytes.saturating_mul(1_000) / u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1))
    }
}

/// The place of one that comes.
struct ReceivingPlace {
    arrival: Arc<Arrival>,
    pushed: Pushed,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ReceivingPlace {
    fn drop(&mut self) {
        self.pushed.under_way(|all| all.retain(|other| !Arc::ptr_eq(other, &self.arrival)));
    }
}

impl Pushed {
    /// Opens it below the store of the server. Files of pushes that a server did not finish go.
    pub(super) fn open(served: &Path, memory: &Arc<MemoryPool>, keep_bytes: Option<u64>) -> Result<Pushed, StoreError> {
        let root = served.join("tenants/default/pushed");
        let store = Store::open(&root)?;
        let entries = fs::read_dir(&root).map_err(|source| StoreError::Io { action: "list", path: root.clone(), source })?;
        for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(INCOMING)) {
            // What cannot be removed takes room and does no harm.
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
        let places = |most| Arc::new(Semaphore::new(most));
        let (receiving, reading) = (places(RECEIVED_AT_ONCE_MAX), [places(READ_AT_ONCE_MAX), places(READ_AT_ONCE_MAX)]);
        Ok(Pushed {
            root: Arc::new(root),
            store,
            receiving,
            reading,
            waiting: WAITING_MAX.map(places),
            memory: Arc::clone(memory),
            under_way: Arc::default(),
            keeping: Arc::default(),
            listed: Arc::default(),
            kept_traces_bytes_max: keep_bytes.map(|bytes| bytes / KEPT_TRACES_PART),
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn routes(&self) -> Router {
        // The body goes to a file as it comes.
        Router::new().route("/longpole/v1/recordings", put(push)).layer(DefaultBodyLimit::disable()).with_state(self.clone())
    }

    fn under_way<T>(&self, work: impl FnOnce(&mut Vec<Arc<Arrival>>) -> T) -> T {
        work(&mut self.under_way.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A place for one that comes. If all are taken, the slowest one loses its own.
    async fn place(&self) -> Option<ReceivingPlace> {
        let at_once = Arc::clone(&self.receiving).try_acquire_owned().ok();
        let permit = match at_once {
            Some(permit) => permit,
            None => {
                let slowest = |all: &mut Vec<Arc<Arrival>>| {
                    all.iter().filter_map(|it| Some((it.pace()?, Arc::clone(it)))).min_by_key(|(pace, _)| *pace)
                };
                let (_, slowest) = self.under_way(slowest).filter(|(pace, _)| *pace < SLOW_BYTES)?;
                slowest.cut.notify_one();
                timeout(PLACE_WAIT_MAX, Arc::clone(&self.receiving).acquire_owned()).await.ok()?.ok()?
            }
        };
        let arrival = Arc::new(Arrival { begun: Instant::now(), bytes: AtomicU64::new(0), cut: Notify::new() });
        self.under_way(|all| all.push(Arc::clone(&arrival)));
        Some(ReceivingPlace { arrival, pushed: self.clone(), _permit: permit })
    }

    /// A new file for what comes, in a folder of its own: its name tells what the recording is of.
    fn incoming(&self, name: &str) -> std::io::Result<Incoming> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let folder = self.root.join(format!("{INCOMING}{:016x}", u64::from_le_bytes(random)));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.inspect_err(|_| _ = fs::remove_dir(&folder))?;
        Ok(Incoming { file, path, folder })
    }

    /// Keeps a trace as a recording that stays, unless somebody has kept it before.
    pub(super) fn keep_trace(&self, id: TraceId, make: impl FnOnce() -> Result<Contents, ApiError>) -> Result<KeptView, ApiError> {
        // Two at once would both find that nobody has.
        let _alone = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let store = Store::open(self.root.as_path())?;
        let all = store.list()?.recordings;
        if let Some(known) = all.iter().find(|recording| recording.tags.contains(&tag_of(id))) {
            return Ok(kept_view(known.name));
        }
        let is_trace = |recording: &&StoredRecording| recording.tags.iter().any(|tag| tag.starts_with(TRACE_TAG));
        let bytes = all.iter().filter(is_trace).fold(0, |sum: u64, recording| sum.saturating_add(recording.bytes()));
        if let Some(most) = self.kept_traces_bytes_max.filter(|most| bytes >= *most) {
            let message = format!(
                "cannot keep it: kept traces take {} MiB, and may take {} MiB, a quarter of --keep-bytes; remove some of them with `longpole rm`",
                bytes >> 20,
                most >> 20
            );
            return Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "not_kept", message));
        }
        self.check_disk(0)?;
        let (name, _) = import::keep(&store, make()?)?;
        store.tag(name, &tag_of(id))?;
        self.forget_list();
        Ok(kept_view(name))
    }

    /// The newest recordings with spans of a trace, at most `limit`.
    pub(super) fn with_trace(&self, id: TraceId, limit: u32) -> Result<Vec<StoredRecording>, StoreError> {
        let names = self.store.with_trace(id, limit)?;
        // One that was removed meanwhile is none.
        Ok(names.into_iter().filter_map(|name| self.store.recording(name).ok()).collect())
    }

    /// The traces by which a recording is found, at most `limit`.
    pub(super) fn traces_of(&self, recording: &str, limit: u32) -> Result<Vec<TraceId>, StoreError> {
        let name = self.store.recording(self.store.resolve(recording)?)?.name;
        self.store.traces_of(name, limit)
    }

    /// Whether the disk has room for these bytes, and again for the recording that they become.
    fn check_disk(&self, bytes: u64) -> Result<(), ApiError> {
        self.check_free(bytes.saturating_mul(2))
    }

    /// Whether the disk has these bytes beside its reserve.
    fn check_free(&self, bytes: u64) -> Result<(), ApiError> {
        match self.store.free_bytes() {
            Some(free) if free < bytes.saturating_add(DISK_RESERVE_BYTES) => {
                let message = format!("cannot keep it: the disk of the server has {} MiB left", free >> 20);
                Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "not_kept", message))
            }
            _ => Ok(()),
        }
    }

    /// Whether the disk has room for the recordings that the bytes become which have come so far, of all that come at this moment.
    fn check_disk_again(&self) -> Result<(), ApiError> {
        let come: u64 = self.under_way(|all| all.iter().map(|arrival| arrival.bytes.load(Ordering::Relaxed)).sum());
        // The bytes themselves are on the disk.
        self.check_free(come)
    }

    /// What there is, for retention. One with a tag stays, and is not listed.
    fn listed(&self) -> Vec<KeptRecording> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = listed.as_ref().filter(|(at, _)| at.elapsed() < LISTED_FOR) {
            return known.clone();
        }
        let of = |recording: &StoredRecording| {
            let is_held = !recording.tags.is_empty() || recording.state == RecordingState::Recording;
            // When its sender began it says nothing about when it came.
            let changed = fs::metadata(&recording.directory).and_then(|data| data.modified()).ok()?;
            let received = Timestamp(i64::try_from(changed.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()?);
            (!is_held).then(|| KeptRecording { name: recording.name, kept: KeptBeside { received, bytes: recording.bytes() } })
        };
        let all = Store::open(self.root.as_path()).and_then(|store| store.list());
        let known: Vec<KeptRecording> = all.map(|all| all.recordings.iter().filter_map(of).collect()).unwrap_or_default();
        *listed = Some((Instant::now(), known.clone()));
        known
    }

    /// Lets `maintain` remove what is too old or too much, and removes what it returns of what was pushed.
    pub(super) fn keep_within(&self, maintain: impl FnOnce(&[KeptBeside]) -> Result<Vec<usize>, StoreError>) -> Result<(), StoreError> {
        let known = self.listed();
        let kept: Vec<KeptBeside> = known.iter().map(|recording| recording.kept).collect();
        let gone = maintain(&kept)?;
        if gone.is_empty() {
            return Ok(());
        }
        let store = Store::open(self.root.as_path())?;
        let removed = gone.iter().try_for_each(|at| store.remove(known[*at].name));
        self.forget_list();
        removed
    }

    fn forget_list(&self) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How the tag of a recording begins that is a trace.
const TRACE_TAG: &str = "trace-";

fn tag_of(id: TraceId) -> String {
    format!("{TRACE_TAG}{id}")
}

fn kept_view(name: RecordingName) -> KeptView {
    KeptView { recording: name.to_string(), page: format!("/r/{name}") }
}

/// A file that is gone when it was read.
struct Incoming {
    file: File,
    path: PathBuf,
    folder: PathBuf,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // The next start tries again.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The name of a file as its sender calls it, without folders and what a name should not have.
fn file_name(sent: Option<&str>) -> String {
    let name = sent.and_then(|sent| sent.rsplit(['/', '\\']).next()).unwrap_or_default();
    let plain: String = name.chars().filter(|char| !char.is_control()).take(FILE_NAME_CHARS_MAX).collect();
    if plain.trim_matches(['.', ' ']).is_empty() { "recording.lpole".to_owned() } else { plain }
}

async fn push(State(pushed): State<Pushed>, RawQuery(query): RawQuery, body: Body) -> Response {
    let name = Parameters::of(query.as_deref()).map(|parameters| file_name(parameters.text("name")));
    let taken = match name {
        Ok(name) => take(&pushed, &name, body).await,
        Err(reason) => Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", reason)),
    };
    match taken {
        Ok(name) => (StatusCode::CREATED, axum::Json(kept_view(name))).into_response(),
        Err(error) => {
            let mut response = error.into_response();
            if response.status() == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            response
        }
    }
}

async fn take(pushed: &Pushed, name: &str, body: Body) -> Result<RecordingName, ApiError> {
    let busy = |message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
    let place = pushed.place().await.ok_or_else(|| busy(&format!("{RECEIVED_AT_ONCE_MAX} recordings are being received: try again")))?;
    pushed.check_disk(body.size_hint().lower())?;
    let incoming = tokio::select! {
        received = timeout(PUSH_TIME_MAX, receive(pushed, &place.arrival, name, body)) => {
            let too_slow = format!("the recording was not received within {} min", PUSH_TIME_MAX.as_secs() / 60);
            received.unwrap_or_else(|_| Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", too_slow)))?
        }
        () = place.arrival.cut.notified() => return Err(busy("the upload was slow, and others needed its place: try again")),
    };
    let kind = usize::from(place.arrival.bytes.load(Ordering::Relaxed) > SMALL_BYTES_MAX);
    let others = "other recordings are being read: try again";
    let waits = Arc::clone(&pushed.waiting[kind]).try_acquire_owned().map_err(|_| busy(others))?;
    drop(place);
    let turn = timeout(READ_WAIT_MAX, Arc::clone(&pushed.reading[kind]).acquire_owned()).await;
    let turn = turn.map_err(|_| busy(others))?;
    drop(waits);
    let pushed = pushed.clone();
    let limits = QueryLimits { memory: QueryMemory::of(&pushed.memory), ..QueryLimits::default() };
    let _waits = StopsWithItsClient(limits.stop.clone());
    off_the_reactor::<_, ApiError>(move || {
        let _turn = turn;
        let contents = import::read_sent(&incoming.path, &limits).map_err(|error| {
            let cause = causes(&error).replace(&*incoming.path.to_string_lossy(), "it");
            let (status, code) = match error {
                ImportError::Store(StoreError::MemoryShort) => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
                ImportError::Store(StoreError::TooMuchMemory { .. }) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
                _ => (StatusCode::BAD_REQUEST, "unreadable"),
            };
            ApiError::new(status, code, format!("failed to {cause}"))
        })?;
        let (name, _) = import::keep(&Store::open(pushed.root.as_path())?, contents)?;
        pushed.forget_list();
        Ok(name)
    })
    .await
}

/// Stops the reading of a recording when nobody waits for the answer any more.
struct StopsWithItsClient(QueryStop);

impl Drop for StopsWithItsClient {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Writes what comes to a file.
async fn receive(pushed: &Pushed, arrival: &Arrival, name: &str, mut body: Body) -> Result<Incoming, ApiError> {
    let failed = |error: std::io::Error| ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "not_kept", format!("cannot keep it: {error}"));
    let mut incoming = pushed.incoming(name).map_err(failed)?;
    loop {
        let Ok(frame) = timeout(STALL_MAX, body.frame()).await else {
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the upload stalled"));
        };
        let Some(frame) = frame else { return Ok(incoming) };
        let frame = frame.map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, "cut", format!("the recording broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        let bytes = arrival.bytes.fetch_add(data.len() as u64, Ordering::Relaxed).saturating_add(data.len() as u64);
        if bytes >> 20 > (bytes - data.len() as u64) >> 20 {
            pushed.check_disk_again()?;
        }
        if bytes > PUSHED_BYTES_MAX {
            let message = format!("larger than {} MiB", PUSHED_BYTES_MAX >> 20);
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
        }
        incoming.file.write_all(&data).map_err(failed)?;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http::Request;
    use hyper::body::Frame;
    use longpole_model::{Span, SpanId, TimeRange};
    use tokio::sync::mpsc;
    use tower::ServiceExt;

    use super::*;

    /// A body of one byte that ends when its sender goes.
    struct Slow {
        held: mpsc::Receiver<()>,
        has_begun: bool,
    }

    impl hyper::body::Body for Slow {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if !std::mem::replace(&mut self.has_begun, true) {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))));
            }
            self.held.poll_recv(context).map(|_| None)
        }
    }

    fn endless() -> (Body, mpsc::Sender<()>) {
        let (hold, held) = mpsc::channel(1);
        (Body::new(Slow { held, has_begun: false }), hold)
    }

    async fn send(pushed: &Pushed, body: Body) -> u16 {
        let request = Request::put("/longpole/v1/recordings").body(body).unwrap();
        pushed.routes().oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn a_slow_push_holds_up_no_other_and_loses_its_place_when_all_are_taken() {
        let directory = std::env::temp_dir().join(format!("longpole-pushed-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pushed = Pushed::open(&directory, &Arc::new(MemoryPool::new(1 << 30)), None).unwrap();
        // A large one is being read.
        let _reading = Arc::clone(&pushed.reading[1]).try_acquire_owned().unwrap();
        let slow = || {
            let (body, hold) = endless();
            let pushed = pushed.clone();
            (tokio::spawn(async move { send(&pushed, body).await }), hold)
        };
        let mut first = slow();
        while pushed.under_way(|all| all.len()) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(send(&pushed, Body::from("no recording")).await, 400, "it was read");
        let mut second = slow();
        while pushed.under_way(|all| all.len()) < RECEIVED_AT_ONCE_MAX {
            tokio::task::yield_now().await;
        }
        assert_eq!(send(&pushed, Body::from("no recording")).await, 503, "none of them was slow for long enough");
        tokio::time::sleep(SLOW_AFTER).await;
        assert_eq!(send(&pushed, Body::from("no recording")).await, 400, "one of them lost its place");
        let cut = tokio::select! { status = &mut first.0 => status, status = &mut second.0 => status };
        assert_eq!(cut.unwrap(), 503);
        drop((first.1, second.1));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[tokio::test]
    async fn few_wait_to_be_read_on_the_disk() {
        let directory = std::env::temp_dir().join(format!("longpole-waiting-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pushed = Pushed::open(&directory, &Arc::new(MemoryPool::new(1 << 30)), None).unwrap();
        let reading = Arc::clone(&pushed.reading[0]).try_acquire_owned().unwrap();
        let waits = tokio::spawn({
            let pushed = pushed.clone();
            async move { send(&pushed, Body::from("no recording")).await }
        });
        while pushed.waiting[0].available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(send(&pushed, Body::from("no recording")).await, 503, "one waits already");
        drop(reading);
        assert_eq!(waits.await.unwrap(), 400, "it was read");
        assert_eq!(send(&pushed, Body::from("no recording")).await, 400);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn traces_that_stay_have_a_quarter_of_the_room() {
        let directory = std::env::temp_dir().join(format!("longpole-kept-traces-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let memory = Arc::new(MemoryPool::new(1 << 30));
        let keep = |keep_bytes, id: u128| {
            let trace_id = TraceId::from_slice(&id.to_be_bytes()).unwrap();
            let span =
                Span::new(trace_id, SpanId::from_slice(&[1; 8]).unwrap(), "load", TimeRange { start: Timestamp(0), end: Timestamp(1_000) });
            let pushed = Pushed::open(&directory, &memory, Some(keep_bytes)).unwrap();
            let contents = || Ok(import::trace_to_keep(trace_id, vec![span], &QueryLimits::default())?);
            pushed.keep_trace(trace_id, contents).map(|kept| kept.recording).map_err(|error| error.into_response().status().as_u16())
        };
        assert_eq!(keep(4, 1), Ok("r1".to_owned()));
        assert_eq!(keep(4, 2), Err(507), "the first one is larger than a byte");
        assert_eq!(keep(4, 1), Ok("r1".to_owned()), "it is there");
        assert_eq!(keep(1 << 30, 2), Ok("r2".to_owned()));
        fs::remove_dir_all(&directory).unwrap();
    }
}
