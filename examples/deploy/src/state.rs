//! The provider's state file, behind a lock that a checkpoint holds for too long.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::info;

use crate::{Result, timing};

/// Time of the slow disk per block of the checkpoint.
const BLOCK: Duration = Duration::from_millis(10);

/// The state on disk. Dropping it removes the file: the example leaves nothing behind.
pub struct StateFile {
    file: Arc<Mutex<File>>,
    path: PathBuf,
    checkpoints: mpsc::Sender<oneshot::Sender<()>>,
}

impl StateFile {
    /// Creates an empty state file and the thread that writes its checkpoints.
    pub fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("deploy-state-{}.jsonl", std::process::id()));
        let file = File::create(&path).map_err(|error| format!("cannot create the state file {}: {error}", path.display()))?;
        let file = Arc::new(Mutex::new(file));
        let (checkpoints, requests) = mpsc::channel::<oneshot::Sender<()>>();
        let locked = Arc::clone(&file);
        let writer = std::thread::Builder::new().name("checkpoint".into());
        writer.spawn(move || {
            for begun in requests {
                checkpoint(&locked, begun);
            }
        })?;
        Ok(Self { file, path, checkpoints })
    }

    /// Requests a checkpoint; returns when its writer has the lock.
    pub async fn begin_checkpoint(&self) -> Result<()> {
        let (begun, has_begun) = oneshot::channel();
        self.checkpoints.send(begun).map_err(|_| "the writer of checkpoints has ended")?;
        has_begun.await.map_err(|_| "the writer of checkpoints has ended".into())
    }

    /// Records that a service runs. Waits for the lock.
    pub fn record(&self, service: &str) -> Result<()> {
        info!("waiting for the state's lock");
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        info!("got the state's lock");
        let record = serde_json::json!({ "service": service });
        writeln!(file, "{record}").map_err(|error| format!("cannot write the state file {}: {error}", self.path.display()).into())
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes a checkpoint, block by block, to an imitated remote disk, and holds the lock all the time. Copying under
/// the lock and writing without it would be the fix.
fn checkpoint(file: &Mutex<File>, begun: oneshot::Sender<()>) {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    // The requester may have gone.
    let _ = begun.send(());
    let mut block = 0u32;
    while start.elapsed() < timing::CHECKPOINT {
        // A failed checkpoint need not fail the deployment: the records are in the file already.
        let _ = writeln!(file, "{{\"checkpoint\":{block}}}");
        block += 1;
        let next = (BLOCK * block).min(timing::CHECKPOINT);
        std::thread::sleep(next.saturating_sub(start.elapsed()));
    }
}
