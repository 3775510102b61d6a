//! The shelf: `ls`, `tag`, `rm` and `prune`.

use anyhow::Result;
use longpole_capture::context::journal_dir;
use longpole_server::view;
use longpole_store::prune::{self, Candidate, Policy};
use longpole_store::{ErrorKind, RecordingState, StoreError};

use super::doctor::megabytes;
use super::recording::{Setting, list, own_name, print, print_json, print_line, remove_stale_stores, resolve, to_remove};
use super::run::now;
use super::summary::fit_command;
use crate::args::{Format, ListArguments, PruneArguments, RemoveArguments, TagArguments};
use crate::failure::{Failure, Kind};
use crate::screen::Screen;
use crate::terminal::{TimeUnit, WIDTH, count, cut, duration, pad, range, right};

/// Lists recordings, newest first, each with its answer.
pub(crate) fn ls(setting: &Setting, arguments: &ListArguments) -> Result<()> {
    let store = setting.open_store()?;
    let view = view::RecordingsView::new(&list(&store)?);
    if arguments.format == Format::Json {
        return print_json(&view);
    }
    let style = setting.style();
    if view.recordings.is_empty() {
        return print_line("No recordings yet. Make one: longpole run -- CMD");
    }
    let head =
        format!("{:4}  {:11}  {:>8}  {:9}  {:>6}  {:COMMAND_WIDTH$}  first long pole", "", "started", "wall", "end", "spans", "command");
    let mut out = Screen::of(style.strong(&head));
    for row in &view.recordings {
        let answer = match (&row.answer, row.state.as_str()) {
            (None, "recording") => "still recording".to_owned(),
            (_, "ended") => format!("not sealed: {}", root_cause(row.not_sealed.as_deref().unwrap_or_default())),
            (None, "killed") => "recorder killed: see show".to_owned(),
            (answer, state) => {
                let killed = if state == "killed" { "recorder killed; " } else { "" };
                killed.to_owned() + &answer.as_ref().map(answer_words).unwrap_or_default()
            }
        };
        let tags: String = row.tags.iter().map(|tag| format!("[{tag}] ")).collect();
        let answer = tags + &answer;
        out.line(format!(
            "{}  {}  {}  {}  {}  {}  {}",
            style.handle(&pad(&row.recording, 4)),
            style.faint(&when(&row.start_unix_nano)),
            right(&duration(row.wall_nanos), 8),
            pad(&end_words(row.exit.as_ref()), 9),
            right(&count(row.spans), 6),
            pad(&fit_command(&row.command, COMMAND_WIDTH), COMMAND_WIDTH),
            cut(&answer, ANSWER_WIDTH)
        ));
    }
    print(&out)
}

/// Width of the command in the list.
const COMMAND_WIDTH: usize = 24;

/// What the other columns and the gaps between them leave.
const ANSWER_WIDTH: usize = WIDTH - (4 + 11 + 8 + 9 + 6 + COMMAND_WIDTH + 6 * 2);

/// The innermost of the causes that an error lists: the disk is full, whatever was to be written.
fn root_cause(reason: &str) -> &str {
    let cause = reason.rsplit(": ").next().unwrap_or_default();
    cause.split(" (os error").next().unwrap_or_default()
}

/// `exit 1`, `signal 15`, and nothing where it is not known.
fn end_words(exit: Option<&view::ExitView>) -> String {
    match exit {
        None => String::new(),
        Some(view::ExitView { signal: Some(signal), .. }) => format!("signal {signal}"),
        Some(view::ExitView { code, .. }) => format!("exit {}", code.unwrap_or_default()),
    }
}

/// The kept answer in a few words.
fn answer_words(answer: &view::AnswerView) -> String {
    let saves = range(TimeUnit::of(answer.saves_if_zero_nanos[1]), answer.saves_if_zero_nanos);
    format!("saves {saves}: {}", answer.context.as_ref().unwrap_or(&answer.name))
}

/// Local date and time of a Unix time in nanoseconds.
fn when(unix_nanos: &str) -> String {
    let nanos: i128 = unix_nanos.parse().unwrap_or_default();
    jiff::Timestamp::from_nanosecond(nanos)
        .map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M").to_string())
        .unwrap_or_default()
}

/// Removes recordings. All names are resolved before the first is removed.
pub(crate) fn rm(setting: &Setting, arguments: &RemoveArguments) -> Result<()> {
    let store = setting.open_store()?;
    let names = arguments.recordings.iter().map(|name| to_remove(&store, name)).collect::<Result<Vec<_>>>()?;
    for name in names {
        store.remove(name)?;
        print_line(format!("removed {name}"))?;
    }
    Ok(())
}

/// Gives a recording a name, or takes one away.
pub(crate) fn tag(setting: &Setting, arguments: &TagArguments) -> Result<()> {
    let store = setting.open_store()?;
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
        return print_line(format!("{name} is no longer {tag}"));
    }
    let before = store.tag(name, tag).map_err(usage)?;
    match before.filter(|before| *before != name) {
        None => print_line(format!("{name} is {tag}")),
        Some(before) => print_line(format!("{name} is {tag}, which was {before}")),
    }
}

fn usage(error: StoreError) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Usage => Failure::new(Kind::Usage, format!("failed to {error}")).into(),
        _ => error.into(),
    }
}

/// Removes old recordings.
pub(crate) fn prune(setting: &Setting, arguments: &PruneArguments) -> Result<()> {
    let store = setting.open_store()?;
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
    print_line(format!("{} {word}; {left} of {} stay", megabytes(freed), candidates.len()))
}
