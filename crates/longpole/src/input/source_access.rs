//! Which source files longpole may read.

use anyhow::Result;
use longpole_analysis::Report;
use longpole_recording::source_file::{Origin, SourceAccess, SourceConsent};

use crate::args::SourceArguments;
use crate::env_vars;
use crate::failure::{Failure, Kind};
use crate::input::load::{file, resolve};
use crate::invocation::Invocation;

/// Which source files the user allows recordings of others to show.
pub(crate) fn source_consent(allow: &SourceArguments) -> Result<SourceConsent> {
    let (current, _) = env_vars::folders();
    SourceConsent::new(&current, &allow.allow_source).map_err(|(folder, error)| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Usage };
        Failure::new(kind, format!("failed to allow source files below {}: {error}", folder.display())).into()
    })
}

/// Which of the files that a recording names longpole may read.
pub(crate) fn source_access(invocation: &Invocation, recording: &str, report: &Report, allow: &SourceArguments) -> Result<SourceAccess> {
    let origin = match file(invocation, recording) {
        Some(_) => Origin::Others,
        None => {
            let store = invocation.open_store()?;
            Origin::of(&store.recording(resolve(&store, recording)?)?, &report.recording().run)
        }
    };
    Ok(SourceAccess { origin, consent: source_consent(allow)? })
}
