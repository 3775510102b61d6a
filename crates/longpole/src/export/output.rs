//! Writing an output file, which gets its name only when it is complete, or standard output.

use std::io::{BufWriter, IntoInnerError, Write};
use std::path::Path;

use anyhow::{Context, Result};
use longpole_store::outside::{NotCreated, Place};

use crate::failure::{Failure, Kind};
use crate::terminal::screen::{self, Content};

/// Lets `fill` write to a file, which gets its name only when it is complete, or to standard output.
pub(crate) fn to_output<T>(output: Option<&Path>, content: Content, fill: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    to_output_of(Access::Umask, output, content, fill)
}

/// The readers of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As the umask says: the file is for another tool.
    Umask,
    /// Its owner only.
    Owner,
}

pub(crate) fn to_output_of<T>(
    access: Access,
    output: Option<&Path>,
    content: Content,
    fill: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let refused = || Failure::new(Kind::Usage, "this format is binary, and standard output is a terminal").hint("-o FILE, or > FILE");
    // As other tools have it, `-` is no file.
    let Some(path) = output.filter(|path| *path != Path::new("-")) else {
        let mut out = BufWriter::new(screen::stdout_for(content).ok_or_else(refused)?);
        let filled = fill(&mut out).and_then(|value| Ok(out.flush().map(|()| value)?));
        return filled.context("failed to write to standard output");
    };
    let fail = || format!("failed to write {}", path.display());
    let mode = if access == Access::Owner { 0o600 } else { 0o666 };
    let place = Place::find(path).map_err(|error| not_created(path, error))?;
    // Devices, pipes and targets of links are written in place; a plain file is replaced atomically, so that nobody reads half of it.
    if !place.is_plain() {
        let device = place.create(mode).with_context(fail)?;
        let mut out = BufWriter::new(screen::device_for(content, device).ok_or_else(refused)?);
        return fill(&mut out).and_then(|value| Ok(out.flush().map(|()| value)?)).with_context(fail);
    }
    let written = place.replace(mode).map_err(anyhow::Error::from).and_then(|file| {
        let mut out = BufWriter::new(file);
        let value = fill(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
        Ok(value)
    });
    written.with_context(fail)
}

/// The failure to open a link, a pipe or a device.
fn not_created(path: &Path, error: NotCreated) -> anyhow::Error {
    let text = format!("failed to write {}: {error}", path.display());
    match error {
        NotCreated::OfAnother { .. } => {
            Failure::new(Kind::NotPermitted, text).hint("-o FILE with another name, or in a directory of your own").into()
        }
        NotCreated::Exchangeable { .. } => {
            Failure::new(Kind::NotPermitted, text).hint("-o FILE in a directory of your own, or the file itself").into()
        }
        NotCreated::Io(error) => anyhow::Error::new(error).context(format!("failed to write {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_exchanged_while_it_was_written_is_no_success() {
        let folder = std::env::temp_dir().join(format!("longpole-export-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, precious) = (folder.join("x.json"), folder.join("precious"));
        fs::write(&precious, "kept").unwrap();
        let exchange = || {
            let partial =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(".partial"));
            fs::remove_file(partial.as_ref().unwrap()).unwrap();
            std::os::unix::fs::symlink(&precious, partial.unwrap()).unwrap();
        };
        let written = to_output(Some(&path), Content::Json, |out| {
            exchange();
            Ok(out.write_all(b"{}")?)
        });
        let error = format!("{:#}", written.unwrap_err());
        assert!(error.ends_with("it was replaced while longpole wrote it"), "{error}");
        assert!(path.symlink_metadata().is_err());
        to_output(Some(&path), Content::Json, |out| Ok(out.write_all(b"{}")?)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        fs::remove_dir_all(&folder).unwrap();
    }
}
