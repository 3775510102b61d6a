//! Recordings that `longpole push` and `longpole run --to` send: each with its code, in a store of their own beside the traces.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use http::StatusCode;
use http_body_util::BodyExt;
use longpole_recording::import;
use longpole_store::live::QueryLimits;
use longpole_store::{Store, StoreError};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::api::{ApiError, causes};
use crate::off_the_reactor::off_the_reactor;

/// Bytes of one: a long build has some megabytes.
const PUSHED_BYTES_MAX: u64 = 256 << 20;

/// How long its next bytes may take.
const STALL_MAX: Duration = Duration::from_secs(30);

/// How many come at once: reading one may take a hundred times its bytes.
const AT_ONCE_MAX: usize = 1;

/// What the files are called before they are recordings.
const INCOMING: &str = "incoming-";

/// The store of what was pushed.
#[derive(Debug, Clone)]
pub(super) struct Pushed {
    root: Arc<PathBuf>,
    places: Arc<Semaphore>,
}

impl Pushed {
    /// Opens it below the store of the server. Files of pushes that a server did not finish go.
    pub(super) fn open(served: &Path) -> Result<Pushed, StoreError> {
        let root = served.join("tenants/default/pushed");
        Store::open(&root)?;
        let entries = fs::read_dir(&root).map_err(|source| StoreError::Io { action: "list", path: root.clone(), source })?;
        for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(INCOMING)) {
            // What cannot be removed takes room and does no harm.
            let _ = fs::remove_file(entry.path());
        }
        Ok(Pushed { root: Arc::new(root), places: Arc::new(Semaphore::new(AT_ONCE_MAX)) })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn routes(&self) -> Router {
        // The body goes to a file as it comes.
        Router::new().route("/longpole/v1/recordings", put(push)).layer(DefaultBodyLimit::disable()).with_state(self.clone())
    }

    /// A new file for what comes.
    fn incoming(&self) -> std::io::Result<Incoming> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let path = self.root.join(format!("{INCOMING}{:016x}.lpole", u64::from_le_bytes(random)));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Incoming { file, path })
    }
}

/// A file that is gone when it was read.
struct Incoming {
    file: File,
    path: PathBuf,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // The next start tries again.
        let _ = fs::remove_file(&self.path);
    }
}

async fn push(State(pushed): State<Pushed>, body: Body) -> Response {
    match take(&pushed, body).await {
        Ok(name) => (StatusCode::CREATED, axum::Json(json!({ "recording": name, "page": format!("/r/{name}") }))).into_response(),
        Err(error) => error.into_response(),
    }
}

async fn take(pushed: &Pushed, mut body: Body) -> Result<String, ApiError> {
    let failed = |error: std::io::Error| ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "not_kept", format!("cannot keep it: {error}"));
    let busy = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "another recording comes at this moment: try again");
    let place = Arc::clone(&pushed.places).try_acquire_owned().map_err(|_| busy())?;
    let mut incoming = pushed.incoming().map_err(failed)?;
    let mut bytes = 0_u64;
    loop {
        let Ok(frame) = timeout(STALL_MAX, body.frame()).await else {
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the recording came to a halt"));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, "cut", format!("the recording broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        bytes = bytes.saturating_add(data.len() as u64);
        if bytes > PUSHED_BYTES_MAX {
            let message = format!("larger than {} MiB", PUSHED_BYTES_MAX >> 20);
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
        }
        incoming.file.write_all(&data).map_err(failed)?;
    }
    let root = Arc::clone(&pushed.root);
    off_the_reactor::<_, ApiError>(move || {
        let _place = place;
        let contents = import::read_archive(&incoming.path, &QueryLimits::default()).map_err(|error| {
            let cause = causes(&error).replace(&*incoming.path.to_string_lossy(), "it");
            ApiError::new(StatusCode::BAD_REQUEST, "unreadable", format!("failed to {cause}"))
        })?;
        let (name, _) = import::keep(&Store::open(root.as_path())?, contents)?;
        Ok(name.to_string())
    })
    .await
}
