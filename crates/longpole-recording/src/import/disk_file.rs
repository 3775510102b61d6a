//! A file as it lies on the disk: opened, unpacked, told by its first bytes.

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use longpole_model::Timestamp;
use longpole_store::outside;
use longpole_store::outside::Links;
use longpole_wire::limits::expanded_bytes_max;
use longpole_wire::{FileError, Limits, perf_data};

/// Opens a file that can be read to its end. What never ends, or never begins, is refused by name: `/dev/zero` and a pipe that nobody
/// writes to would hang. Pipes of the shell (`<(xz -dc up.trace.xz)`, `/dev/stdin`) have a writer.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file")));
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return refused("a directory");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let is_of_the_shell = || ["/dev/stdin", "/dev/fd", "/proc/self/fd"].iter().any(|start| path.starts_with(start));
        if kind.is_char_device() || kind.is_block_device() {
            return refused("a device");
        }
        if kind.is_socket() {
            return refused("a socket");
        }
        if kind.is_fifo() && !is_of_the_shell() {
            return refused("a named pipe");
        }
    }
    // Somebody else may exchange it meanwhile, where its folder is not the user's.
    if kind.is_file() { outside::open(path, Links::Followed) } else { File::open(path) }
}

/// What a compressed file holds, as far as it is no more than [`expanded_bytes_max`].
pub(super) struct Unpacked<R> {
    pub(super) input: R,
    pub(super) left: u64,
    pub(super) packed_bytes: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(io::Error::other(format!(
                "its {} bytes of gzip expand to more than {} bytes, the limit for a file of that size; if you trust the file, decompress \
                 it with gunzip first",
                self.packed_bytes,
                expanded_bytes_max(self.packed_bytes),
            ))),
        }
    }
}

pub(super) fn is_perf_data(first: &[u8]) -> bool {
    [&perf_data::MAGIC[..], perf_data::MAGIC_SWAPPED, b"PERFFILE"].iter().any(|magic| first.starts_with(magic))
}

/// Everything, for who has to go back and forth in it.
pub(super) fn whole(input: impl Read) -> Result<Vec<u8>, FileError> {
    let limit_bytes = Limits::default().document_bytes_max;
    let mut bytes = Vec::new();
    input.take(limit_bytes as u64 + 1).read_to_end(&mut bytes).map_err(FileError::Read)?;
    if bytes.len() > limit_bytes { Err(FileError::TooLarge { limit_bytes, offset: 0 }) } else { Ok(bytes) }
}

/// When a file was written last: about when what it tells of ended.
pub(super) fn written(path: &Path) -> Timestamp {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_unix_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
