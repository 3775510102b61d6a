//! Appends observations in batches.

use longpole_model::{Observation, ObservationSink, sink::SinkError};

use super::error::WalError;
use super::observation_codec::Encoded;
use super::writer::WalWriter;

/// Bytes of observations that are gathered before they are appended: one system call for about 2,000 samples.
const BATCH_BYTES: usize = 64 << 10;

/// Bytes of observations that wait while the disk is full (about a minute of 999 Hz on two CPUs); later ones are refused, and the
/// recorder counts them.
pub(super) const WAITING_BYTES_MAX: usize = 4 << 20;

impl WalWriter {
    /// A sink for what the recorder sees. It gathers about 64 KiB; what is gathered is lost unless
    /// [`ObservationSink::flush`] is called.
    pub fn observation_sink(&self) -> WalObservationSink {
        WalObservationSink {
            wal: self.clone(),
            waiting: Vec::with_capacity(BATCH_BYTES + 4096),
            count: 0,
            append_at: BATCH_BYTES,
            failed: None,
        }
    }
}

/// Appends what the recorder sees in batches.
#[derive(Debug)]
pub struct WalObservationSink {
    wal: WalWriter,
    pub(super) waiting: Vec<u8>,
    /// How many observations that is.
    count: u64,
    /// How many bytes must wait before the next append; it grows where an append failed, so that not every observation tries a full disk
    /// again.
    append_at: usize,
    /// Why the last append failed, where it did.
    failed: Option<SinkError>,
}

impl WalObservationSink {
    fn append(&mut self) -> Result<(), SinkError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        match self.wal.append_observations(&self.waiting) {
            Ok(()) => {
                self.waiting.clear();
                self.count = 0;
                self.append_at = BATCH_BYTES;
                self.failed = None;
                Ok(())
            }
            Err(error) => {
                let error = SinkError(describe(&error));
                self.append_at = self.waiting.len() + BATCH_BYTES;
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// The error with its cause on one line, because a [`SinkError`] holds one text.
fn describe(error: &WalError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl ObservationSink for WalObservationSink {
    /// An error means that *this* observation is lost; those before it wait for the disk to take them, which
    /// [`ObservationSink::flush`] tries again.
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        if self.waiting.len() >= WAITING_BYTES_MAX
            && let Some(error) = &self.failed
        {
            self.wal.count_lost(1);
            return Err(error.clone());
        }
        if self.waiting.len() >= self.append_at {
            // What waits is kept where this fails; only a full buffer makes it the caller's trouble.
            let _ = self.append();
        }
        observation.put(&mut self.waiting);
        self.count += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.append()
    }
}

impl Drop for WalObservationSink {
    fn drop(&mut self) {
        self.wal.count_lost(self.count);
    }
}
