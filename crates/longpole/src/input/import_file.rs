//! Reading other tools' files.

use std::path::Path;

use anyhow::Result;
use longpole_analysis::Report;
use longpole_recording::import::{self, Contents, ImportError};

use crate::failure::{Failure, Kind};
use crate::input::server;

/// Reads a file, or a trace of a server by its address.
pub(crate) fn read(path: &Path) -> Result<Contents> {
    if let Some(address) = path.to_str().filter(|text| server::is_address(text)) {
        return server::contents(address);
    }
    import::read(path).map_err(|error| {
        let (kind, hint) = match &error {
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => (Kind::NotFound, ""),
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => (Kind::NotPermitted, ""),
            ImportError::Unknown { .. } => {
                (Kind::Usage, "any of them may be gzipped; longpole also reads .lpole files, which must not be gzipped")
            }
            _ => (Kind::Failed, ""),
        };
        let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
        let cause: String = causes.map(|cause| format!(": {cause}")).collect();
        let failure = Failure::new(kind, format!("failed to {error}{cause}"));
        if hint.is_empty() { failure.into() } else { failure.hint(hint).into() }
    })
}

/// Reads a file and makes its report, without storing a recording.
pub(crate) fn report(path: &Path) -> Result<Report> {
    Ok(import::report(read(path)?.recording()))
}
