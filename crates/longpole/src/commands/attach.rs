//! `attach PID`: records processes that already run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::launch::signals;
use longpole_capture::procfs::left_out;
use longpole_capture::procfs::target::{self, Absent, Running};
use longpole_capture::recorder::{Options, Recorder, Refused};
use longpole_model::{Loss, LossKind, Observation, ObservationSink};
use longpole_recording::memory::most_resident_bytes;
use longpole_recording::redact_observations::RedactingSink;
use longpole_recording::view;
use longpole_wire::redact::Redactor;

use crate::args::{AttachArguments, Format};
use crate::commands::push;
use crate::failure::{self, Failure, Kind};
use crate::invocation::Invocation;
use crate::render::answer;
use crate::session::{Moment, WriteFailure, identity, new_run, not_whole, own_cost};
use crate::terminal::screen::{print, print_json};
use crate::terminal::stderr::note;

/// Records the process and its descendants until the time is up, the process ends, or Ctrl-C. Without samples it reads `/proc`, as `run`
/// does.
pub(crate) fn attach(invocation: &Invocation, arguments: &AttachArguments) -> ExitCode {
    match record(invocation, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

fn record(invocation: &Invocation, arguments: &AttachArguments) -> Result<()> {
    let asked = arguments.pid();
    if let Some(held_up) = left_out::held_up_below(asked) {
        let why = "it does not let others read its memory, and whoever tries waits for ever";
        return Err(Failure::new(Kind::Failed, format!("failed to attach to process {held_up}: {why}")).into());
    }
    let Running { pid, mut command } = target::find(asked).map_err(|absent| no_process(asked, absent))?;
    Redactor::default().arguments(&mut command);
    signals::install_interrupts().context("failed to catch Ctrl-C")?;
    let store = invocation.open_store_to_record()?;
    let (traceparent, _) = identity()?;
    let writer = store.create(&new_run(command, traceparent, arguments.rate)).context("failed to create a recording")?;
    writer.wal().set_limit(arguments.max_recording_bytes);
    let mut sink = writer.wal().observation_sink();
    let options =
        Options { rate_hz: arguments.rate, cache: Some(store.cache()), memory_bytes_max: most_resident_bytes(), ..Options::default() };
    let write_failure = WriteFailure::default();
    let begun = begin(pid, &options, || Box::new(write_failure.watch(RedactingSink::new(writer.wal().observation_sink()))));
    let (recorder, refused) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            // If this fails, the recording is listed as killed, and that is all there is to say.
            writer.discard().ok();
            return Err(failure.into());
        }
    };
    let start = Moment::now();
    let mut observe = |observation| sink.observe(observation).and_then(|()| sink.flush()).context("failed to write the log");
    observe(Observation::RunStarted { pid, start: start.wall, mode: recorder.mode() })?;
    let until = match arguments.duration {
        Some(seconds) => format!("for {seconds}s"),
        None => "until Ctrl-C".to_owned(),
    };
    let thread = if pid == asked { String::new() } else { format!(" ({asked} is one of its threads)") };
    note(format!("recording process {pid}{thread} and what it starts, {until}"));
    if let Some(refused) = refused {
        let reason = refused.to_words();
        note(format!("no samples, only what /proc shows: {reason}"));
        observe(Observation::Loss(Loss::new(LossKind::ProfilingRefused, 1, reason)))?;
    }
    target::wait_for_end(pid, arguments.duration.map(Duration::from_secs_f64));
    let end = start.later(Instant::now());
    let sampled = recorder.finish();
    sampled.untold.into_iter().try_for_each(|loss| observe(Observation::Loss(loss)))?;
    let trouble = sampled.not_kept_reason.map(|reason| anyhow::anyhow!("failed to write the log: {reason}"));
    if let Some(unwritten) = write_failure.unwritten(&writer) {
        observe(unwritten)?;
    }
    if let Some(cost) = own_cost() {
        observe(Observation::RecorderCost(cost))?;
    }
    observe(Observation::RunLeft { end })?;
    let name = writer.name();
    let binaries = sampled.binaries.take().into_iter().map(|binary| (binary.mapping, binary.file)).collect();
    // The first Ctrl-C ended the recording; a second one ends longpole at once, and the log stays.
    let sealed = longpole_recording::seal::seal_own(&writer, binaries, &|| false)?;
    let view = view::SummaryView::new(name.to_string(), &sealed.report);
    longpole_recording::kept::keep(writer.store(), name, &view);
    match arguments.format {
        Format::Json => print_json(&view)?,
        Format::Text => print(&answer::answer(&view, invocation.style()))?,
    }
    if let Some(error) = trouble.or_else(|| not_whole(&writer, sealed)) {
        return Err(error);
    }
    arguments.to.as_ref().map_or(Ok(()), |server| push::send_after(writer.store(), name, server))
}

/// Samples the process, or reads `/proc` and returns why it cannot be sampled.
fn begin(
    pid: u32,
    options: &Options,
    sink: impl Fn() -> Box<dyn ObservationSink>,
) -> std::result::Result<(Recorder, Option<Refused>), Failure> {
    let refused = match Recorder::attach(pid, options, sink()) {
        Ok(recorder) => return Ok((recorder, None)),
        Err(refused) => refused,
    };
    target::find(pid).map_err(|absent| no_process(pid, absent))?;
    if let Some(closed) = target::closed(pid) {
        let failure = Failure::new(Kind::NotPermitted, format!("failed to record process {pid}: {closed}"));
        return Err(failure.hint(closed.remedy().unwrap_or_default()));
    }
    match Recorder::watch_running(pid, options, &refused, sink()) {
        Ok(recorder) => Ok((recorder, Some(refused))),
        Err(error) => {
            target::find(pid).map_err(|absent| no_process(pid, absent))?;
            let failure = Failure::new(Kind::Failed, format!("failed to record process {pid}: {error}"));
            Err(match error.remedy() {
                Some(remedy) => failure.hint(remedy),
                None => failure,
            })
        }
    }
}

fn no_process(pid: u32, absent: Absent) -> Failure {
    match absent {
        Absent::Unknown => Failure::new(Kind::NotFound, format!("there is no process {pid}")).hint("ps ax lists processes"),
        Absent::Ended => Failure::new(Kind::NotFound, format!("failed to attach to process {pid}: it has ended"))
            .hint("it is a zombie until its parent reaps it; attach to the parent"),
    }
}
