//! A recording in progress: its log, receiver, sampler and journals, and what happens when the log cannot be written.

mod forwarding;
mod identity;
mod moment;
mod own_cost;
mod report_limit;
mod trace_file_reader;
mod trace_files;
mod wal_sink;
mod write_failure;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::clock::Clocks;
use longpole_capture::launch::child::{self, RunningChild};
use longpole_capture::launch::error::LaunchError;
use longpole_capture::launch::otel_environment::TraceFile;
use longpole_capture::launch::{otel_environment, signals};
use longpole_capture::private_dir::PrivateDirectory;
use longpole_capture::span_context::journal_dir;
use longpole_capture::{recorder, socket_owner};
use longpole_model::{
    AttributeValue, Attributes, CaptureMode, Exit, Loss, LossKind, Observation, ObservationSink, ProcessUsage, Resource, RunUsage, Scope,
    Span, SpanId, SpanKind, Status, StatusCode, TimeRange, Timestamp,
};
use longpole_recording::memory::most_resident_bytes;
use longpole_recording::redact_observations::RedactingSink;
use longpole_recording::seal::OwnSeal;
use longpole_server::forward::ForwardTarget;
use longpole_server::receive::{AllowedSenders, Receiver, ReceiverHandle, ReceiverOptions, SocketOwner};
use longpole_store::{RecordingWriter, WalObservationSink};
use longpole_wire::redact::Redactor;
use longpole_wire::traceparent::{FLAG_SAMPLED, TraceParent};
use tracing::info_span;

use self::forwarding::{forward_targets, pulumi_targets, trust_by_environment};
pub(crate) use self::forwarding::{spans_target, unrecorded_request};
use self::identity::secret;
pub(crate) use self::identity::{host, identity, new_run};
pub(crate) use self::moment::{Moment, now};
pub(crate) use self::own_cost::own_cost;
use self::report_limit::ReportLimit;
use self::wal_sink::WalSink;
pub(crate) use self::write_failure::WriteFailure;
use crate::args::{EnvInject, Redact, RunArguments, SampleClock};
use crate::env_vars;
use crate::invocation::Invocation;

/// How long the receiver waits for processes that outlive the command, and for copies to the user's own endpoint. It waits only while
/// something is still on its way.
const DRAIN: Duration = Duration::from_secs(5);

/// Files that the receiver opens before it serves (two listeners, and a runtime that panics without them), and as many for connections.
const RECEIVER_DESCRIPTORS: usize = 16;

/// The environment that the command would have without longpole.
pub(crate) fn inherited(arguments: &RunArguments) -> Vec<(OsString, OsString)> {
    let mut environment = env_vars::inherited();
    for (name, value) in arguments.assignments() {
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value.to_owned()));
    }
    environment
}

/// Starts the command behind its gate, attaches the recorder, and opens the gate.
pub(crate) fn start(
    arguments: &RunArguments,
    environment: &[(OsString, OsString)],
    recorded: Option<&mut Session>,
) -> Result<(RunningChild, Option<recorder::Recorder>), LaunchError> {
    let Some(recorded) = recorded else {
        return Ok((child::prepare(arguments.argv(), environment)?.release()?, None));
    };
    let gated = child::prepare_or(arguments.argv(), environment, Some(&inherited(arguments)))?;
    if let Some(receiver) = recorded.receiver.as_ref().filter(|_| !recorder::is_proc_of_others()) {
        receiver.note_command(gated.pid());
    }
    let (recorder, mode) = recorded.sample(arguments, gated.pid());
    if recorder.is_none() {
        recorded.watch_clocks();
    }
    let pid = gated.pid();
    let start = Moment::now();
    let child = gated.release()?;
    recorded.started = Some((start, pid));
    recorded.observe(Observation::RunStarted { pid, start: start.wall, mode });
    if recorded.journals.is_some() {
        // Others can put any number of names into these folders, so the command does not wait for that.
        let _ = std::thread::Builder::new().name("stale journals".to_owned()).spawn(journal_dir::remove_stale);
    }
    if child.has_spare_environment() {
        let text = "no spans: the arguments and the environment of the command leave no room for longpole's variables";
        recorded.lose(LossKind::Environment, text.to_owned());
    }
    Ok((child, recorder))
}

/// A recording in progress.
pub(crate) struct Session {
    writer: RecordingWriter,
    receiver: Option<ReceiverHandle>,
    /// Files that flags of the command name, to be read when it ended.
    trace_files: Vec<TraceFile>,
    /// The directory where programs write their span journals.
    journals: Option<PrivateDirectory>,
    traceparent: TraceParent,
    /// The parent span of the run, in the user's own trace.
    parent: Option<SpanId>,
    /// When the command was released, and its pid.
    started: Option<(Moment, u32)>,
    /// Watches the clocks if no recorder does.
    clocks: Option<Clocks>,
    /// The sink for our own observations; the sampler has another one of the same log.
    sink: WalObservationSink,
    /// Reports at once that the log cannot be written.
    write_failure: WriteFailure,
    trouble: Option<anyhow::Error>,
}

impl Session {
    pub(crate) fn create(invocation: &Invocation, arguments: &RunArguments) -> Result<Self> {
        let store = invocation.open_store_to_record()?;
        let (traceparent, parent) = identity()?;
        let mut command: Vec<String> = arguments.argv().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if arguments.redact == Redact::On {
            Redactor::default().arguments(&mut command);
        }
        let run = new_run(command, traceparent, if arguments.no_profile { 0 } else { arguments.rate });
        let writer = store.create(&run).context("failed to create a recording")?;
        writer.wal().set_limit(arguments.max_recording_bytes);
        let sink = writer.wal().observation_sink();
        Ok(Session {
            writer,
            receiver: None,
            trace_files: Vec::new(),
            journals: None,
            traceparent,
            parent,
            started: None,
            clocks: None,
            sink,
            write_failure: WriteFailure::default(),
            trouble: None,
        })
    }

    /// Opens the receiver, and returns the environment for the command.
    pub(crate) fn environment(&mut self, arguments: &RunArguments) -> Vec<(OsString, OsString)> {
        let inherited = inherited(arguments);
        let mut forward: Vec<ForwardTarget> = arguments.otel_traces.iter().chain(&arguments.tracing).cloned().collect();
        if arguments.env_inject == EnvInject::None {
            if !forward.is_empty() {
                self.lose(LossKind::ForwardFailed, "--env-inject none receives no spans, so none are forwarded".to_owned());
            }
            return inherited;
        }
        if !arguments.no_profile {
            match journal_dir::create() {
                Ok(directory) => self.journals = Some(directory),
                Err(error) => self.lose(LossKind::JournalsRefused, format!("failed to create a directory for span journals: {error}")),
            }
        }
        let journals = self.journals.as_ref().map(|directory| directory.path().to_owned());
        // The environment needs the port of the receiver, and the receiver needs the user's endpoint from the environment. The endpoint does
        // not depend on the port, so it comes first.
        let traceparent = self.traceparent.to_string();
        let run_id = match secret() {
            Ok(run_id) => run_id,
            Err(error) => {
                self.lose(LossKind::RequestsRefused, format!("no spans were received: {error}"));
                return inherited;
            }
        };
        // Before the command can send it: whichever way it arrives, the log replaces it by the public name.
        self.writer.wal().hide(&run_id, &self.public_name());
        let request = |endpoint, appdash| otel_environment::Request {
            env: &inherited,
            argv: arguments.argv(),
            endpoint,
            appdash,
            traceparent: &traceparent,
            run_id: &run_id,
            journals: journals.as_deref(),
            mode: otel_environment::Mode::Auto,
        };
        let user = otel_environment::environment(&request("http://127.0.0.1:1", "tcp://127.0.0.1:1"));
        let (pulumis, unknown) = pulumi_targets(&user.pulumi);
        forward.extend(pulumis);
        let without_certificate = trust_by_environment(&mut forward);
        let (own, unreadable) = forward_targets(user.forward.as_ref());
        forward.extend(own);
        for text in unreadable.into_iter().chain(without_certificate).chain(unknown) {
            self.lose(LossKind::ForwardFailed, text);
        }
        // Opened early and kept: a client that uses up all descriptors must not disable this check. The receiver reports if it is missing.
        let _ = socket_owner::prepare();
        if let Err(error) = has_descriptors(RECEIVER_DESCRIPTORS) {
            let text =
                format!("no spans were received: a receiver needs {RECEIVER_DESCRIPTORS} open files, more than the limit allows: {error}");
            self.lose(LossKind::RequestsRefused, text);
            return inherited;
        }
        // Everything that could block is done. Threads started from now on leave all signals to this one.
        if let Err(error) = signals::install() {
            self.lose(LossKind::RequestsRefused, format!("no spans were received: {error}"));
            return inherited;
        }
        let sink = Box::new(WalSink(self.writer.wal().clone(), self.write_failure.clone()));
        match Receiver::start(
            ReceiverOptions {
                forward,
                keep_credentials: arguments.redact == Redact::Off,
                senders: AllowedSenders::Run { id: run_id.clone(), name: self.public_name() },
                ask_owner: Some(owner_of_client),
                count_dropped: Some(socket_owner::dropped_connections),
                ..ReceiverOptions::default()
            },
            sink,
        ) {
            Ok(receiver) => {
                let injection = otel_environment::environment(&request(&receiver.endpoint(), &receiver.appdash_endpoint()));
                self.receiver = Some(receiver);
                self.trace_files = injection.pulumi.files;
                for note in injection.notes {
                    self.lose(LossKind::Environment, note.text);
                }
                injection.env
            }
            Err(error) => {
                self.lose(LossKind::RequestsRefused, format!("no port could be opened on 127.0.0.1, so no spans were received: {error}"));
                inherited
            }
        }
    }

    /// Attaches the sampler to the command, which waits at its gate.
    fn sample(&mut self, arguments: &RunArguments, pid: u32) -> (Option<recorder::Recorder>, CaptureMode) {
        if arguments.no_profile {
            return (None, CaptureMode::Off);
        }
        let clock = match arguments.clock {
            SampleClock::CpuClock => recorder::SampleClock::CpuClock,
            SampleClock::Cycles => recorder::SampleClock::Cycles,
        };
        let remove_perf_maps = !arguments.jit.is_empty();
        let journals = self.journals.as_ref().map(|directory| directory.path().to_owned());
        let cache = Some(self.writer.store().cache());
        let memory_bytes_max = most_resident_bytes();
        let options = recorder::Options {
            rate_hz: arguments.rate,
            clock,
            remove_perf_maps,
            journals,
            cache,
            memory_bytes_max,
            ..recorder::Options::default()
        };
        let sink = || -> Box<dyn ObservationSink> {
            let sink = self.write_failure.watch(self.writer.wal().observation_sink());
            match arguments.redact {
                Redact::On => Box::new(RedactingSink::new(sink)),
                Redact::Off => Box::new(sink),
            }
        };
        match recorder::Recorder::start(pid, &options, sink()) {
            Ok(recorder) => {
                let mode = recorder.mode();
                (Some(recorder), mode)
            }
            Err(refused) => {
                let reason = refused.to_words();
                // `/proc` is better than nothing; failing here must not affect the command.
                let watching = recorder::Recorder::watch(pid, &options, &refused, sink()).ok();
                self.lose(LossKind::ProfilingRefused, reason.clone());
                (watching, CaptureMode::Refused { reason })
            }
        }
    }

    fn watch_clocks(&mut self) {
        let (clocks, anchor) = Clocks::begin();
        self.clocks = Some(clocks);
        self.observe(anchor);
    }

    fn observe(&mut self, observation: Observation) {
        if let Err(error) = self.sink.observe(observation).and_then(|()| self.sink.flush()) {
            self.write_failure.report(&error.0);
            self.trouble.get_or_insert(anyhow::Error::new(error).context("failed to write the log"));
        }
    }

    fn lose(&mut self, kind: LossKind, detail: String) {
        self.observe(Observation::Loss(Loss::new(kind, 1, detail)));
    }

    /// Removes the recording, because the command did not start.
    pub(crate) fn discard(self) {
        if let Some(receiver) = self.receiver {
            receiver.finish(Duration::ZERO);
        }
        // If this fails, the recording is listed as killed, and that is all there is to say.
        self.writer.discard().ok();
    }

    /// The value of `longpole.run.id` in what others receive: the span id of the run, as long as the secret id.
    fn public_name(&self) -> String {
        format!("{:0>32}", self.traceparent.span_id.to_string())
    }

    /// The span of the run for forward targets, parent of the spans they receive. It leaves out the arguments, which may be secret.
    fn root_span(&self, arguments: &RunArguments, (start, pid): (Moment, u32), (exit, end): (&Exit, Timestamp)) -> Span {
        let start = start.wall;
        let program = arguments.argv().first().map(Path::new).and_then(|program| program.file_name());
        let name = program.map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
        let mut resource = Attributes::default();
        resource.push("service.name", AttributeValue::Str("longpole".into()));
        resource.push("process.pid", AttributeValue::Int(i64::from(pid)));
        resource.push("longpole.run.id", AttributeValue::Str(self.public_name().into()));
        let scope = Scope { name: "longpole".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), ..Scope::default() };
        let status = match exit {
            Exit::Code(0) => Status::default(),
            Exit::Code(code) => Status { code: StatusCode::Error, message: format!("exited with {code}").into() },
            Exit::Signal(signal) => Status { code: StatusCode::Error, message: format!("killed by signal {signal}").into() },
        };
        Span {
            parent_span_id: self.parent,
            flags: u32::from(FLAG_SAMPLED),
            kind: SpanKind::Internal,
            status,
            resource: Arc::new(Resource { attributes: resource }),
            scope: Arc::new(scope),
            pid: Some(pid),
            ..Span::new(self.traceparent.trace_id, self.traceparent.span_id, name, TimeRange { start, end })
        }
    }

    /// After the command exited: collects everything and seals the recording.
    pub(crate) fn end(
        mut self,
        arguments: &RunArguments,
        (exit, ended): (Exit, Instant),
        (cpu_nanos, usage, last): (Option<u64>, Option<RunUsage>, Option<ProcessUsage>),
        recorder: Option<recorder::Recorder>,
    ) -> Result<Ended> {
        let end = self.started.map_or_else(now, |(start, _)| start.later(ended));
        if let Some(mut clocks) = self.clocks.take() {
            clocks.anchor(|observation| self.observe(observation));
        }
        // The sampler has logged its losses. It keeps its binaries open, even those deleted meanwhile.
        let sampled = info_span!("finish sampling").in_scope(|| recorder.map(recorder::Recorder::finish)).unwrap_or_default();
        sampled.untold.into_iter().for_each(|loss| self.observe(Observation::Loss(loss)));
        drop(self.journals.take());
        if let Some(reason) = sampled.not_kept_reason {
            self.trouble.get_or_insert(anyhow::anyhow!("failed to write the log: {reason}"));
        }
        if let Some(unwritten) = self.write_failure.unwritten(&self.writer) {
            self.sink = self.writer.wal().observation_sink();
            self.observe(unwritten);
        }
        let receiver = self.receiver.take();
        if let (Some(receiver), Some(started)) = (&receiver, self.started)
            && receiver.forwards_spans()
        {
            receiver.forward_span(&self.root_span(arguments, started, (&exit, end)));
        }
        let drained = info_span!("drain").in_scope(|| receiver.map(|receiver| receiver.finish(DRAIN)));
        for loss in drained.unwrap_or_default() {
            self.observe(Observation::Loss(loss));
        }
        self.read_trace_files(arguments.argv(), end);
        if let Some(cost) = own_cost() {
            self.observe(Observation::RecorderCost(cost));
        }
        let usage = usage.map(Observation::RunUsage).into_iter().chain(last.map(Observation::ProcessUsage));
        usage.for_each(|observation| self.observe(observation));
        self.observe(Observation::RunEnded { end, exit, cpu_nanos });
        let binaries = sampled.binaries.take().into_iter().map(|binary| (binary.mapping, binary.file)).collect();
        let limit = ReportLimit::begin(&self.writer, exit, arguments.strict);
        let sealed = longpole_recording::seal::seal_own(&self.writer, binaries, &signals::interrupted)?;
        drop(limit);
        Ok(Ended { writer: self.writer, sealed, trouble: self.trouble })
    }
}

/// A finished recording.
pub(crate) struct Ended {
    pub(crate) writer: RecordingWriter,
    pub(crate) sealed: OwnSeal,
    /// The first failure while recording.
    pub(crate) trouble: Option<anyhow::Error>,
}

/// Checks that `count` files can be open at once.
fn has_descriptors(count: usize) -> std::io::Result<()> {
    let files: std::io::Result<Vec<_>> = (0..count).map(|_| std::fs::File::open("/dev/null")).collect();
    files.map(drop)
}

/// Why a recording is incomplete: its segments could not be written, or part of it was damaged or removed.
pub(crate) fn not_whole(writer: &RecordingWriter, sealed: OwnSeal) -> Option<anyhow::Error> {
    let is_gone = if writer.has_log() { "its log stays" } else { "its log is gone" };
    let unwritten = sealed.unwritten.map(|error| anyhow::Error::new(error).context(format!("failed to seal it, and {is_gone}")));
    unwritten.or_else(|| sealed.damaged.map(anyhow::Error::msg))
}

/// Asks the kernel for the owner of a connection.
pub(crate) fn owner_of_client(client: SocketAddr, server: SocketAddr) -> std::io::Result<Option<SocketOwner>> {
    let owner = socket_owner::owner_of_client(client, server)?;
    Ok(owner.map(|(uid, inode)| SocketOwner { uid, inode }))
}
