//! Files as targets: OTLP JSON lines as requests come, an AppDash file at the end.
//!
//! A file is created when the command starts, so that what an earlier run left in it is not taken for this one's. Everything
//! that touches it happens on threads that may block: a pipe that nobody reads, or a disk that hangs, holds up its own lane.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use longpole_model::{Loss, Span};
use longpole_store::outside;

use super::account::Account;
use super::convert;
use super::queue::Requests;
use super::target::ForwardTarget;
use crate::limits::FORWARD_HELD_BYTES_MAX;
use crate::otlp_request::Parcel;

/// One request a line.
pub(super) async fn run_otlp(mut queue: Requests, target: &ForwardTarget, account: &Arc<Account>) {
    let path = target.url.clone();
    let mut lines = convert::beside(move || Lines::create(&path)).await;
    while let Some(waiting) = queue.recv().await {
        let parcel = &waiting.parcel;
        let mut file = match lines {
            Ok(file) => file,
            Err(reason) => {
                account.undelivered(parcel.items, &reason);
                lines = Err(reason);
                continue;
            }
        };
        let copy = parcel.clone();
        let (appended, again) =
            match convert::beside(move || Ok((convert::json_line(&copy).and_then(|line| file.append(&line)), file))).await {
                Ok((appended, file)) => (appended, Ok(file)),
                Err(reason) => (Err(reason.clone()), Err(reason)),
            };
        lines = again;
        match appended {
            Ok(()) => account.delivered(parcel.items),
            Err(reason) => account.undelivered(parcel.items, &reason),
        }
    }
}

/// For its user alone, as the recording is that it is a copy of. A file that is there keeps its mode.
fn create(path: &str) -> Result<File, String> {
    outside::create(Path::new(path), 0o600).map_err(|error| format!("failed to create it: {error}"))
}

/// A file that holds whole lines only.
struct Lines {
    file: File,
    /// End of the last whole line.
    end: u64,
    /// What stands behind it cannot be taken back: it is a pipe, or the disk refuses that too.
    broken: bool,
}

impl Lines {
    fn create(path: &str) -> Result<Self, String> {
        Ok(Lines { file: create(path)?, end: 0, broken: false })
    }

    fn append(&mut self, line: &[u8]) -> Result<(), String> {
        if self.broken {
            return Err("an earlier error left part of a line at its end".to_owned());
        }
        if let Err(error) = self.file.write_all(line) {
            // A line that was written in part must go before the next one can follow. The file's position goes with it.
            self.broken = self.take_back().is_err();
            return Err(format!("failed to write: {error}"));
        }
        self.end += line.len() as u64;
        Ok(())
    }

    fn take_back(&mut self) -> io::Result<()> {
        use std::io::Seek;

        self.file.set_len(self.end)?;
        self.file.seek(io::SeekFrom::Start(self.end)).map(|_| ())
    }
}

/// The format has its number of spans in front and the tree as its shape, so it is written when all of them are known. Until
/// then the requests are held as they came, which is a fifth of what their spans take.
pub(super) async fn run_appdash(mut queue: Requests, target: &ForwardTarget, account: &Arc<Account>) {
    let path = target.url.clone();
    let file = convert::beside(move || create(&path)).await;
    let (mut held, mut held_bytes) = (Vec::new(), 0);
    while let Some(waiting) = queue.recv().await {
        let (items, bytes) = (waiting.parcel.items, waiting.parcel.body.len());
        if let Err(reason) = &file {
            account.undelivered(items, reason);
        } else if held_bytes + bytes > FORWARD_HELD_BYTES_MAX {
            let reason =
                format!("an appdash file is written at the end, and holds {} MiB of requests at most", FORWARD_HELD_BYTES_MAX >> 20);
            account.undelivered(items, &reason);
        } else {
            held_bytes += bytes;
            held.push(waiting.parcel);
        }
    }
    let Ok(file) = file else { return };
    let items = held.iter().map(|parcel| parcel.items).sum();
    match convert::beside(move || write_appdash(&held, file)).await {
        Ok(losses) => {
            account.thinned(losses);
            account.delivered(items);
        }
        Err(reason) => account.undelivered(items, &reason),
    }
}

fn write_appdash(held: &[Parcel], file: File) -> Result<Vec<Loss>, String> {
    let mut spans: Vec<Span> = Vec::new();
    for parcel in held {
        spans.extend(convert::spans(parcel)?);
    }
    let mut out = BufWriter::new(file);
    let written = longpole_wire::appdash::encode_file(&spans, &mut out).and_then(|losses| out.flush().map(|()| losses));
    written.map_err(|error| format!("failed to write: {error}"))
}
