//! `tag`: adds a tag to a recording, or removes one.

use anyhow::Result;
use longpole_store::{ErrorKind, StoreError};

use crate::args::TagArguments;
use crate::failure::{Failure, Kind};
use crate::input::load::{list, resolve};
use crate::invocation::Invocation;
use crate::next_command::own_name;
use crate::terminal::screen::print_line;

/// Adds a tag, or removes it.
pub(crate) fn tag(invocation: &Invocation, arguments: &TagArguments) -> Result<()> {
    let store = invocation.open_store()?;
    let name = resolve(&store, &arguments.recording)?;
    let tag = &arguments.name;
    if arguments.remove {
        let has = list(&store)?.recordings.iter().any(|recording| recording.name == name && recording.tags.contains(tag));
        if !has {
            return Err(Failure::new(Kind::NotFound, format!("{name} has no tag {tag}"))
                .hint(format!("{} ls shows them", own_name()))
                .into());
        }
        store.untag(tag)?;
        return print_line(format!("removed the tag {tag} from {name}"));
    }
    let before = store.tag(name, tag).map_err(usage)?;
    match before.filter(|before| *before != name) {
        None => print_line(format!("tagged {name} as {tag}")),
        Some(before) => print_line(format!("moved the tag {tag} from {before} to {name}")),
    }
}

fn usage(error: StoreError) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Usage => Failure::new(Kind::Usage, format!("failed to {error}")).into(),
        _ => error.into(),
    }
}
