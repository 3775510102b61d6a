//! `attach -p PID`: look at processes that run already, for a while.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_capture::sampler::{Options, Recorder};
use longpole_capture::{attach, signals};
use longpole_model::{Observation, ObservationSink};
use longpole_server::redacting::RedactingSink;
use longpole_server::view;
use longpole_wire::redact::Redactor;

use super::recording::{Setting, print, print_json};
use super::run::{identity, new_run, now, own_cost, say};
use super::summary;
use crate::args::{AttachArguments, Format};
use crate::failure::{self, Failure, Kind};

/// Records the process and all that descend from it, until the time is over, the process ends, or Ctrl-C.
pub(crate) fn attach(setting: &Setting, arguments: &AttachArguments) -> ExitCode {
    match record(setting, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

fn record(setting: &Setting, arguments: &AttachArguments) -> Result<()> {
    let pid = arguments.pid;
    let mut command = attach::command_of(pid)
        .ok_or_else(|| Failure::new(Kind::NotFound, format!("failed to find the process {pid}")).hint("ps ax lists processes"))?;
    Redactor::default().arguments(&mut command);
    signals::install_interrupts().context("failed to catch Ctrl-C")?;
    let store = setting.open_store()?;
    let (traceparent, _) = identity()?;
    let writer = store.create(&new_run(command, traceparent, arguments.rate)).context("failed to create a recording")?;
    let mut sink = writer.wal().observation_sink();
    let options = Options { rate_hz: arguments.rate, ..Options::default() };
    let recorder = match Recorder::attach(pid, &options, Box::new(RedactingSink::new(writer.wal().observation_sink()))) {
        Ok(recorder) => recorder,
        Err(refused) => {
            // A folder that stays behind is listed as killed; there is nobody to tell more.
            writer.discard().ok();
            let failure = Failure::new(Kind::Failed, format!("failed to sample the process {pid}: {}", refused.reason));
            return Err(if refused.remedy.is_empty() { failure } else { failure.hint(refused.remedy) }.into());
        }
    };
    let start = now();
    let mut observe = |observation| sink.observe(observation).and_then(|()| sink.flush()).context("failed to write the log");
    observe(Observation::RunStarted { pid, start, mode: recorder.mode() })?;
    let until = match arguments.duration {
        Some(seconds) => format!("for {seconds} s"),
        None => "until Ctrl-C".to_owned(),
    };
    say(&format!("longpole: recording process {pid} and what it starts, {until}\n"));
    let patience = arguments.duration.map(Duration::from_secs_f64);
    attach::wait_for_end(pid, patience).with_context(|| format!("failed to wait for the process {pid}"))?;
    let end = now();
    let sampled = recorder.finish();
    if let Some(reason) = sampled.not_kept_reason {
        anyhow::bail!("failed to write the log: {reason}");
    }
    if let Some(cost) = own_cost() {
        observe(Observation::RecorderCost(cost))?;
    }
    observe(Observation::RunLeft { end })?;
    let name = writer.name();
    let binaries = sampled.binaries.into_iter().map(|binary| (binary.mapping, binary.file)).collect();
    // Ctrl-C has done its work; a second one ends us at once, and the log stays.
    let report = longpole_server::seal::seal_own(&writer, binaries, &|| false)?;
    let view = view::SummaryView::new(name.to_string(), &report);
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&summary::summary(&view, setting.style())),
    }
}
