//! Requests that wait on disk for a server that is away, oldest first.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longpole_model::Timestamp;
use longpole_store::outside;

/// The file whose lock says that an agent uses the directory.
const LOCK: &str = "in-use";

/// Largest request: an agent makes none of a tenth of that.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// How files of requests end.
const EXTENSION: &str = "push";

/// The requests that wait.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    bytes_max: u64,
    waiting: VecDeque<(PathBuf, u64)>,
    bytes: u64,
    // Held while the agent lives.
    _lock: File,
}

impl Spool {
    /// With what an agent before has left.
    pub(super) fn open(directory: PathBuf, bytes_max: u64) -> io::Result<Spool> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        check_own(&directory)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(directory.join(LOCK))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(io::Error::other("another agent sends from this store to this server: name another store with --store"));
        }
        let mut found: Vec<(PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            let metadata = entry.metadata()?;
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(EXTENSION) if metadata.is_file() && metadata.len() <= REQUEST_BYTES_MAX => found.push((path, metadata.len())),
                // A request that was not written to its end.
                Some("part") if metadata.is_file() => fs::remove_file(path)?,
                _ => {}
            }
        }
        // Names are times.
        found.sort();
        let bytes = found.iter().map(|(_, bytes)| bytes).sum();
        Ok(Spool { directory, bytes_max, waiting: found.into(), bytes, _lock: lock })
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a request, and drops the oldest ones for which there is no room. Returns how many it dropped.
    pub(super) fn add(&mut self, body: &[u8], began: Timestamp) -> io::Result<u64> {
        if body.len() as u64 > self.bytes_max {
            return Ok(1);
        }
        let mut dropped = 0;
        while self.bytes.saturating_add(body.len() as u64) > self.bytes_max && !self.waiting.is_empty() {
            self.remove_first()?;
            dropped += 1;
        }
        let path = self.directory.join(format!("{:020}.{EXTENSION}", began.unix_nanos()));
        write(&path, body)?;
        self.bytes = self.bytes.saturating_add(body.len() as u64);
        self.waiting.push_back((path, body.len() as u64));
        Ok(dropped)
    }

    /// The oldest request.
    pub(super) fn first(&self) -> Option<io::Result<Vec<u8>>> {
        self.waiting.front().map(|(path, _)| outside::read(path, REQUEST_BYTES_MAX))
    }

    /// Removes the oldest request.
    pub(super) fn remove_first(&mut self) -> io::Result<()> {
        let Some((path, bytes)) = self.waiting.pop_front() else { return Ok(()) };
        self.bytes = self.bytes.saturating_sub(bytes);
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Refuses a directory into which somebody else can put requests, or links: they would be sent with this user's token.
fn check_own(directory: &Path) -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let metadata = fs::symlink_metadata(directory)?;
    let own = fs::metadata("/proc/self")?.uid();
    if metadata.is_dir() && metadata.uid() == own && metadata.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is not a directory that only this user can write to"))
}

/// Writes a file that is whole or not there.
fn write(path: &Path, body: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let written = write_part(&part, body).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // A full disk has no room for what nobody reads, and nothing would count it.
        let _ = fs::remove_file(part);
    }
    written
}

fn write_part(part: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part)?;
    file.write_all(body)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_in_order_and_the_oldest_go_first() {
        let directory = std::env::temp_dir().join(format!("longpole-spool-{}", std::process::id()));
        let mut spool = Spool::open(directory.clone(), 10).unwrap();
        assert_eq!(spool.add(b"1234", Timestamp(9)).unwrap(), 0);
        assert_eq!(spool.add(b"5678", Timestamp(10)).unwrap(), 0);
        assert_eq!(spool.add(b"90ab", Timestamp(11)).unwrap(), 1);
        fs::write(directory.join("00000000000000000001.part"), "cut").unwrap();
        assert!(Spool::open(directory.clone(), 10).unwrap_err().to_string().contains("another agent"));
        drop(spool);
        let mut again = Spool::open(directory.clone(), 10).unwrap();
        assert_eq!((again.len(), again.first().unwrap().unwrap()), (2, b"5678".to_vec()));
        again.remove_first().unwrap();
        assert_eq!(again.first().unwrap().unwrap(), b"90ab");
        again.remove_first().unwrap();
        assert!(again.first().is_none() && again.add(&[0; 99], Timestamp(12)).unwrap() == 1 && again.len() == 0);
        fs::remove_dir_all(directory).unwrap();
    }
}
