//! `convert`: converts a file from one tool to the format of another.

use anyhow::Result;
use longpole_analysis::Report;
use longpole_model::{Loss, LossKind};

use crate::args::{ConvertArguments, ExportFormat};
use crate::export::export_file::{format_of, pack, say_losses, write};
use crate::input::import_file;
use crate::input::temporary_store::TemporaryStore;

/// Converts a file.
pub(crate) fn convert(arguments: &ConvertArguments) -> Result<()> {
    let format = format_of(&arguments.output)?;
    if format == ExportFormat::Lpole {
        let (store, name) = TemporaryStore::of_file(&arguments.file)?;
        return pack(&store.open()?, &name.to_string(), arguments.output.output.as_deref());
    }
    // The output holds what the input holds: nothing is merged.
    let report = Report::new(import_file::read(&arguments.file)?.recording());
    let unread: Vec<Loss> = report.recording().losses.iter().filter(|loss| LOST_IN_READING.contains(&loss.kind)).cloned().collect();
    say_losses(&unread);
    write(&arguments.file.display().to_string(), &report, format, &arguments.output)
}

/// Losses of reading that make the output hold less than the input.
const LOST_IN_READING: [LossKind; 5] =
    [LossKind::SpansInvalid, LossKind::ReferencesInvalid, LossKind::TextReplaced, LossKind::AttributesCut, LossKind::FileCut];
