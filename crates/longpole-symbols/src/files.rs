//! The one place that opens files. All else asks a [`Files`] for them.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use longpole_model::stack::{Mapping, MappingId};

/// An open file: parts of it are read, where they are needed.
pub trait ReadSeek: Read + Seek {
    /// Bytes that it takes on its disk, where that is known: a file with holes takes fewer than it has.
    fn allocated_bytes(&self) -> Option<u64>;
}

impl ReadSeek for File {
    #[cfg(unix)]
    fn allocated_bytes(&self) -> Option<u64> {
        /// The unit of `st_blocks`, whatever the file system's own is (stat(2)).
        const BLOCK_BYTES: u64 = 512;
        let blocks = std::os::unix::fs::MetadataExt::blocks(&self.metadata().ok()?);
        // Some file systems keep no count.
        Some(blocks.saturating_mul(BLOCK_BYTES)).filter(|bytes| *bytes > 0)
    }

    #[cfg(not(unix))]
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }
}

impl<T> ReadSeek for Cursor<T>
where
    Cursor<T>: Read + Seek,
{
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }
}

/// A file that is read at an offset of its own: clones of one [`File`] share theirs.
#[derive(Debug)]
struct OwnOffset {
    file: File,
    at: u64,
}

impl ReadSeek for OwnOffset {
    fn allocated_bytes(&self) -> Option<u64> {
        self.file.allocated_bytes()
    }
}

impl Read for OwnOffset {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&self.file, into, self.at)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&self.file, into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for OwnOffset {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// A file of this machine, whatever paths lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Its device.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// Where binaries and their debug files come from.
pub trait Files {
    /// Opens the file at an absolute path, or `[vdso]`.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`io::ErrorKind::NotFound`] where nothing is at the path.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>>;

    /// Opens the binary that was mapped: by its path, unless the implementation still has it open.
    ///
    /// # Errors
    ///
    /// As those of [`open`](Self::open).
    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        self.open(Path::new(&mapping.path))
    }

    /// Which file lies at an absolute path.
    ///
    /// # Errors
    ///
    /// Those of the file system; [`io::ErrorKind::Unsupported`] where files have no such identity.
    fn id(&self, _: &Path) -> io::Result<FileId> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Binaries that somebody has open, by the function that finds them, then the files of this machine. An open one is the bytes that ran, whatever is at its
/// path now.
#[derive(Debug, Clone)]
pub struct OpenFirst<F>(pub F);

impl<F: Fn(MappingId) -> io::Result<Option<File>>> Files for OpenFirst<F> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        HostFiles.open(path)
    }

    fn open_mapped(&self, mapping: &Mapping) -> io::Result<Box<dyn ReadSeek>> {
        match (self.0)(mapping.id)? {
            Some(file) => Ok(Box::new(OwnOffset { file, at: 0 })),
            None => HostFiles.open_mapped(mapping),
        }
    }
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFiles;

impl Files for HostFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        if path == Path::new(VDSO) {
            return Ok(Box::new(Cursor::new(vdso()?)));
        }
        // What the kernel calls `//anon` or `[heap]` is no file, whatever lies in the current directory.
        if !path.is_absolute() || path.to_string_lossy().starts_with("//") {
            return Err(io::Error::new(io::ErrorKind::NotFound, "not a path"));
        }
        Ok(Box::new(open_plain(path)?))
    }

    #[cfg(unix)]
    fn id(&self, path: &Path) -> io::Result<FileId> {
        use std::os::unix::fs::MetadataExt;
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "not a path"));
        }
        let metadata = std::fs::metadata(path)?;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Opens a plain file. To open a device can do anything, and others may exchange what lies at a path at any time: so what lies there is found
/// without opening it, and then this very file is opened, without waiting for a program that holds a lease of it.
fn open_plain(path: &Path) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

        /// File systems that the kernel makes up, one device each wherever they are mounted.
        const OF_THE_KERNEL: [&str; 4] = ["/proc", "/sys", "/sys/kernel/debug", "/sys/kernel/tracing"];

        /// A place in the tree and not what lies there (asm-generic/fcntl.h, which these two machines use).
        const O_PATH: i32 = 0o10_000_000;
        const O_NONBLOCK: i32 = 0o4_000;
        let open = |path: &Path, flags| std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
        let found = open(path, O_PATH)?;
        let metadata = found.metadata()?;
        // What the kernel makes up looks like a plain file, mostly without anything in it, and may never end, or act when it is read.
        let is_made_up = || OF_THE_KERNEL.iter().any(|path| std::fs::metadata(path).is_ok_and(|there| there.dev() == metadata.dev()));
        let is_plain = metadata.is_file() && metadata.len() > 0 && !is_made_up();
        if is_plain { open(Path::new(&format!("/proc/self/fd/{}", found.as_raw_fd())), O_NONBLOCK) } else { Err(refused()) }
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    if std::fs::metadata(path)?.is_file() { File::open(path) } else { Err(refused()) }
}

/// How the kernel calls the code it maps into every process.
pub(crate) const VDSO: &str = "[vdso]";

/// The kernel's own code as it is mapped into this process: the same bytes in every process of this boot.
fn vdso() -> io::Result<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find(|line| line.ends_with(VDSO)).and_then(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    });
    let Some(range) = range else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "this process has no vdso"));
    };
    let mut memory = File::open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    memory.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_file_is_not_opened_and_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("longpole-files-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [
            pipe.as_path(),
            &folder,
            Path::new("/dev/zero"),
            Path::new("/proc/version"),
            Path::new("/sys/kernel/notes"),
            Path::new("/sys/devices/system/cpu/online"),
        ] {
            assert_eq!(HostFiles.open(path).map(|_| ()).unwrap_err().to_string(), "not a regular file", "{}", path.display());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
