//! The worker of an agent: records, makes profiles of each window, and sends them.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::launch::signals;
use longpole_capture::procfs::identity;
use longpole_capture::procfs::left_out::LeftOut;
use longpole_capture::procfs::target::wait_for_interrupt;
use longpole_capture::recorder::{OpenBinaries, Options, Recorder};
use longpole_model::{CaptureMode, Loss, Text, Timestamp};
use longpole_recording::host_profiles::{HostProfiles, ProcessIdentity, SlowBinaries, pushes};
use longpole_recording::redact_observations::RedactingSink;
use longpole_symbols::OpenFirst;

use super::heart::Heart;
use super::outbox::Outbox;
use crate::args::AgentArguments;
use crate::commands::search::as_option;
use crate::failure::{Failure, Kind};
use crate::invocation::Invocation;
use crate::session::{Moment, host};
use crate::terminal::stderr::note;

/// A recorder keeps what it has met; after this time another one takes over.
const RECORDER_TIME_MAX: Duration = Duration::from_secs(600);

/// The first windows are shorter, so that the page has something to show soon.
const FIRST_WINDOW: Duration = Duration::from_secs(5);

/// How often to look whether the recorder has ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Bytes of stack in a sample: there are few samples, and no second look at a deep stack.
const STACK_BYTES: u32 = 32 << 10;

/// Resident bytes at which another recorder takes over: what the processes of a host do decides how much one keeps.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// The part of that which unwind information may take: any user can map as much of it as they like.
const UNWIND_PART: u64 = 4;

/// Most binaries that stay open for their names.
const OPEN_BINARIES_MAX: usize = 4_096;

/// Profiles until SIGTERM, without these processes.
pub(super) fn work(invocation: &Invocation, arguments: &AgentArguments, left_out: &LeftOut) -> Result<()> {
    signals::install_interrupts().context("failed to catch SIGTERM")?;
    let heart = Heart::start()?;
    let store = invocation.open_store_to_record()?;
    let mut outbox = Outbox::open(&arguments.to, &store.root().join("agent"), arguments.spool_bytes)?;
    let mut slow = SlowBinaries::default();
    let mut first = FIRST_WINDOW.min(arguments.every);
    let mut is_first = true;
    while !signals::interrupted() {
        let (mut profiles, sink) = HostProfiles::new(labels(&arguments.labels));
        let options = Options {
            rate_hz: arguments.rate,
            stack_bytes: STACK_BYTES,
            switches: false,
            open_binaries_max: OPEN_BINARIES_MAX,
            memory_bytes_max: Some(MEMORY_BYTES_MAX),
            unwind_bytes_max: Some(MEMORY_BYTES_MAX / UNWIND_PART),
            left_out: left_out.clone(),
            cache: Some(store.cache()),
            ..Options::default()
        };
        let begun = heart.reads(|| Recorder::host(&options, Box::new(RedactingSink::new(sink))));
        let recorder = begun.map_err(|refused| {
            let failure = Failure::new(Kind::NotPermitted, format!("failed to profile this machine: {}", refused.to_words()));
            match refused.remedy() {
                Some(remedy) => failure.hint(remedy),
                None => failure,
            }
        })?;
        heart.watches(recorder.watched());
        if is_first {
            announce(&recorder, arguments);
            is_first = false;
        }
        let until = Instant::now() + RECORDER_TIME_MAX;
        let identity = |pid: u32| heart.reads(|| identity_of(pid, left_out));
        let mut began = Moment::now().wall;
        while !signals::interrupted() && Instant::now() < until && !profiles.is_large() && !recorder.has_ended() {
            wait_for_window(&recorder, first);
            first = first.saturating_mul(2).min(arguments.every);
            let ended = Moment::now().wall;
            window(&mut profiles, began..ended, recorder.binaries(), arguments, (&mut outbox, &mut slow), &identity);
            began = ended;
        }
        heart.watches(None);
        let sampled = recorder.finish();
        window(&mut profiles, began..Moment::now().wall, &sampled.binaries, arguments, (&mut outbox, &mut slow), &identity);
        sampled.untold.iter().for_each(|loss| outbox.lose(loss));
    }
    outbox.finish();
    Ok(())
}

/// Waits for the end of a window, or of the recorder: another one takes over at once.
fn wait_for_window(recorder: &Recorder, window: Duration) {
    let until = Instant::now() + window;
    while Instant::now() < until && !signals::interrupted() && !recorder.has_ended() {
        wait_for_interrupt(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
}

/// Says what begins.
fn announce(recorder: &Recorder, arguments: &AgentArguments) {
    let every = as_option(arguments.every);
    note(format!("profiling this machine at {} Hz, to {} every {every}, until Ctrl-C", recorder.rate_hz(), arguments.to));
    if let CaptureMode::User { why_not_kernel } = recorder.mode() {
        note(format!("without code of the kernel: {why_not_kernel}"));
    }
}

/// The labels of all series: those of the user win over the name of the host.
fn labels(of_user: &[(String, String)]) -> Vec<(Text, Text)> {
    let host = [("host".to_owned(), host())];
    let own = host.iter().filter(|(name, value)| !value.is_empty() && !of_user.iter().any(|(other, _)| other == name));
    own.chain(of_user).map(|(name, value)| (Text::from(name.as_str()), Text::from(value.as_str()))).collect()
}

/// What a process says of itself.
fn identity_of(pid: u32, left_out: &LeftOut) -> ProcessIdentity {
    if left_out.has(pid) {
        return ProcessIdentity::default();
    }
    let identity = identity::of_process(pid);
    let text = |text: Option<String>| text.map(|text| Text::from(text.as_str()));
    ProcessIdentity {
        service: text(identity.service).unwrap_or_default(),
        container: text(identity.container),
        ..ProcessIdentity::default()
    }
}

/// Ends a window and sends it.
fn window(
    profiles: &mut HostProfiles,
    interval: Range<Timestamp>,
    binaries: &Arc<OpenBinaries>,
    arguments: &AgentArguments,
    (outbox, slow): (&mut Outbox, &mut SlowBinaries),
    identity: &dyn Fn(u32) -> ProcessIdentity,
) {
    let open = Arc::clone(binaries);
    let files = Arc::new(OpenFirst(move |mapping| Ok(open.file(mapping))));
    let made = profiles.window(&interval, files, slow, identity);
    made.losses.iter().for_each(|loss: &Loss| outbox.lose(loss));
    if !made.batch.values.is_empty() {
        outbox.send(&pushes::of_batch(&made.batch, &interval, arguments.rate), interval.start);
    }
}
