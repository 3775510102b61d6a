//! `prune`: removes old recordings.

use anyhow::Result;
use longpole_capture::span_context::journal_dir;
use longpole_model::units::bytes;
use longpole_store::RecordingState;
use longpole_store::prune::{self, Candidate, Policy};

use crate::args::PruneArguments;
use crate::input::load::list;
use crate::input::temporary_store::remove_stale_stores;
use crate::invocation::Invocation;
use crate::session::now;
use crate::terminal::screen::print_line;

/// Removes old recordings.
pub(crate) fn prune(invocation: &Invocation, arguments: &PruneArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let candidates: Vec<Candidate> = list(&store)?
        .recordings
        .iter()
        .map(|recording| Candidate {
            name: recording.name,
            start: recording.summary.start,
            bytes: recording.bytes(),
            held: !recording.tags.is_empty() || recording.state == RecordingState::Recording,
        })
        .collect();
    let policy = Policy { keep: arguments.keep, older_than: arguments.older_than, bytes_max: arguments.max_size };
    let mut freed = 0;
    let gone = prune::choose(&candidates, &policy, now());
    for candidate in candidates.iter().filter(|candidate| gone.contains(&candidate.name)) {
        if !arguments.dry_run {
            store.remove(candidate.name)?;
        }
        freed += candidate.bytes;
        print_line(format!("{} {}", if arguments.dry_run { "would remove" } else { "removed" }, candidate.name))?;
    }
    if !arguments.dry_run {
        journal_dir::remove_stale();
        remove_stale_stores();
    }
    let left = candidates.len() - gone.len();
    let word = if arguments.dry_run { "would be freed" } else { "freed" };
    print_line(format!("{} {word}; {left} of {} remain", bytes(freed), candidates.len()))
}
