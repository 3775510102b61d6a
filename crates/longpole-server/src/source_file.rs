//! Reads the source file that a recording names, where it is on this machine.
//!
//! A recording may come from anybody: its paths are opened only if they are plain files, and only so much of them is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of a source file; generated ones have a few megabytes.
const SOURCE_BYTES_MAX: u64 = 16 << 20;

/// A source file that was found.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<String>,
    /// When it was changed last, where the system says it.
    pub(crate) changed: Option<SystemTime>,
}

/// The first of these paths that is a file, read; or why none could be.
pub(crate) fn read(candidates: &[PathBuf]) -> Result<SourceFile, String> {
    let mut why = String::new();
    for path in candidates {
        match read_one(path) {
            Ok(Some(file)) => return Ok(file),
            Ok(None) => {}
            Err(error) => why = format!("{}: {error}", path.display()),
        }
    }
    Err(why)
}

/// `None` where there is no file.
fn read_one(path: &Path) -> std::io::Result<Option<SourceFile>> {
    // To open a pipe would wait for its writer.
    match path.metadata() {
        Ok(about) if about.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = File::open(path)?;
    let changed = file.metadata()?.modified().ok();
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX).read_to_end(&mut bytes)?;
    let lines = String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect();
    Ok(Some(SourceFile { path: path.to_owned(), lines, changed }))
}

/// When a file was changed last.
pub(crate) fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
