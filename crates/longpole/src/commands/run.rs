//! `run`: the whole story in one file.
//!
//! ```text
//! signals taken over → recording created → receiver accepts → command waits at its gate → recorder attached → gate opened
//!   … the command runs; its spans and samples go to the log …
//! command reaped → recorder finished → receiver drained → log sealed → answer printed → we end as the command ended
//! ```
//!
//! Two promises hold throughout. The command never notices: its stdin, stdout, environment (but for what `inject` adds),
//! signals and end are its own. And recording trouble never changes the exit status without `--strict`: whatever cannot be
//! had (a store, a port, samples) is left out, and said at the end.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use longpole_capture::clock::Clocks;
use longpole_capture::context::journal_dir::JournalDirectory;
use longpole_capture::launch::child::{self, RunningChild};
use longpole_capture::launch::error::LaunchError;
use longpole_capture::launch::runtime_options::{self, JitRuntime};
use longpole_capture::launch::{otel_environment, signals};
use longpole_capture::{recorder, socket_owner};
use longpole_model::proc_stat::{ProcStat, TICK_NANOS};
use longpole_model::{
    AttributeValue, Attributes, CaptureMode, Exit, Loss, LossKind, Observation, ObservationSink, ProcessUsage, RecorderCost, Resource,
    ResourceEvent, Run, RunUsage, Scope, Span, SpanEvent, SpanId, SpanKind, Status, StatusCode, TimeRange, Timestamp, TraceId,
};
use longpole_server::forward::{ForwardProtocol, ForwardTarget, ForwardTls};
use longpole_server::limits::FORWARD_TIMEOUT;
use longpole_server::receive::{Encoding, Keep, KeepError, Receiver, ReceiverHandle, ReceiverOptions, Senders, Signal, SocketOwner};
use longpole_server::redacting::RedactingSink;
use longpole_server::seal::OwnSeal;
use longpole_server::view;
use longpole_store::outside;
use longpole_store::{RecordingWriter, WalError, WalObservationSink, WalWriter};
use longpole_wire::otlp;
use longpole_wire::redact::Redactor;
use longpole_wire::traceparent::{FLAG_SAMPLED, TraceParent};
use tracing::info_span;

use super::alarm::Alarm;
use super::recording::{Setting, source_consent};
use super::{open, summary};
use crate::args::{self, EnvInject, Format, Jit, Redact, RunArguments, SampleClock, SourceArguments};
pub(super) use crate::screen::say;
use crate::screen::{self, Screen};
use crate::terminal::Style;
use crate::{env_vars, own_traces};

/// How long processes that outlive the command may keep the receiver, and copies to the user's own endpoint may take.
/// Nothing waits this long unless something is still on its way.
const DRAIN: Duration = Duration::from_secs(5);

/// Files that the receiver opens before it serves: two listeners, and a runtime that panics where it has none. With room for as many
/// connections.
const RECEIVER_DESCRIPTORS: usize = 16;

/// Bytes of a file of certificates: what systems trust has some 250 kB.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// What `run` exits with when it could not do its own part.
const EXIT_OWN_FAILURE: u8 = 125;

/// Runs the command and ends as it ended.
pub(crate) fn run(setting: &Setting, arguments: &RunArguments) -> ExitCode {
    // First of all: what comes from now on is the command's.
    if let Err(error) = signals::begin() {
        return unrecorded(arguments, &inherited(arguments), &error);
    }
    if arguments.strict {
        signals::be_strict();
    }
    own_traces::begin(setting.tracing_level);
    let whole = info_span!("run").entered();
    let created = unharmed(|| {
        let mut recorded = Recorded::create(setting, arguments)?;
        let environment = recorded.environment(arguments);
        Ok((recorded, environment))
    });
    let (mut recorded, mut environment, mut trouble) = match created {
        Ok((recorded, environment)) => (Some(recorded), environment, None),
        Err(error) => {
            say(format!("longpole: nothing is recorded: {error:#}"));
            (None, inherited(arguments), Some(error))
        }
    };
    if recorded.is_some() && !arguments.no_profile {
        runtime_options::add(&runtimes(arguments), &mut environment);
    }
    let mut started = start(arguments, &environment, recorded.as_mut());
    if matches!(&started, Err(error) if error.is_ours())
        && let Some(recorded) = recorded.take()
    {
        // What the recording has taken may be what the command lacks.
        recorded.discard();
        environment = inherited(arguments);
        let error = started.err().map_or_else(|| anyhow::anyhow!("no process"), anyhow::Error::new);
        say(format!("longpole: nothing is recorded: {error:#}"));
        trouble = Some(error);
        started = start(arguments, &environment, None);
    }
    let is_recorded = recorded.is_some();
    let (mut child, recorder) = match started {
        Ok(started) => started,
        Err(error) if error.is_ours() => {
            drop(whole);
            own_traces::end();
            return unrecorded(arguments, &environment, &error);
        }
        Err(error) => {
            if let Some(recorded) = recorded {
                recorded.discard();
            }
            return not_started(&error);
        }
    };
    let exit = info_span!("command").in_scope(|| child.wait());
    let ended = Instant::now();
    let trouble = match (recorded, trouble) {
        (Some(recorded), _) => {
            let used = (child.cpu_nanos(), child.usage(), child.last_usage().filter(|_| recorder.is_some()));
            // A bug of ours has been reported by the panic hook; it must not become the command's exit status.
            unharmed(|| recorded.answer(setting, arguments, (exit, ended), used, recorder)).err()
        }
        (None, trouble) => trouble,
    };
    if let Some(error) = &trouble {
        if is_recorded {
            say(format!("longpole: the command ran, and its recording is not complete: {error:#}"));
        }
        if arguments.strict && exit == Exit::Code(0) {
            return ExitCode::from(EXIT_OWN_FAILURE);
        }
    }
    drop(whole);
    own_traces::end();
    child::exit_like(exit)
}

/// Keeps a bug of ours, which the panic hook has reported, from becoming the command's.
fn unharmed<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(anyhow::anyhow!("a bug of longpole, said above")))
}

/// The command in place of this process: there are no descriptors or processes to stay beside it.
pub(super) fn in_place(argv: &[OsString], environment: &[(OsString, OsString)], error: &LaunchError) -> ExitCode {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let LaunchError::Setup { what, .. } = error else { return not_started(error) };
    say(format!("longpole: recording is off, the command runs alone: there is no room for {what}{cause}"));
    not_started(&child::execute_in_place(argv, environment))
}

/// The same where it is allowed: with `--strict` nobody would be left to say that there is no recording.
fn unrecorded(arguments: &RunArguments, environment: &[(OsString, OsString)], error: &LaunchError) -> ExitCode {
    if error.is_ours() && !arguments.strict { in_place(arguments.argv(), environment, error) } else { not_started(error) }
}

/// The environment that the command would have without us.
fn inherited(arguments: &RunArguments) -> Vec<(OsString, OsString)> {
    let mut environment = env_vars::inherited();
    for (name, value) in arguments.assignments() {
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value.to_owned()));
    }
    environment
}

/// The runtimes to ask for names, each once.
fn runtimes(arguments: &RunArguments) -> Vec<JitRuntime> {
    let is_asked = |runtime: &Jit| arguments.jit.contains(runtime);
    let all = [(Jit::Node, JitRuntime::Node), (Jit::Java, JitRuntime::Java)];
    all.into_iter().filter(|(runtime, _)| is_asked(runtime)).map(|(_, names)| names).collect()
}

/// The command could not be started: 127 not found, 126 not executable, 125 everything else.
pub(super) fn not_started(error: &LaunchError) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(EXIT_OWN_FAILURE);
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    say(format!("longpole: {error}{cause}"));
    ExitCode::from(code)
}

pub(super) fn now() -> Timestamp {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(Timestamp(0), |since| Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)))
}

/// A moment on both clocks: from there on the time is the wall clock's of then and what the monotonic clock counted since, so that a
/// duration is one also where somebody sets the wall clock meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) wall: Timestamp,
    at: Instant,
}

impl Moment {
    pub(super) fn now() -> Self {
        Moment { wall: now(), at: Instant::now() }
    }

    /// A later moment.
    pub(super) fn later(self, at: Instant) -> Timestamp {
        self.wall.plus_nanos(i64::try_from(at.saturating_duration_since(self.at).as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Puts the command behind its gate, attaches the recorder, opens the gate.
fn start(
    arguments: &RunArguments,
    environment: &[(OsString, OsString)],
    recorded: Option<&mut Recorded>,
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
    if child.has_spare_environment() {
        let text = "no span of the command came: its arguments and environment are so long that there is no room for longpole's variables beside them";
        recorded.lose(LossKind::Environment, text.to_owned());
    }
    Ok((child, recorder))
}

/// A recording that is being made.
struct Recorded {
    writer: RecordingWriter,
    receiver: Option<ReceiverHandle>,
    /// Where programs put the journals of their spans.
    journals: Option<JournalDirectory>,
    traceparent: TraceParent,
    /// The span of the user's own trace under which the run stands.
    parent: Option<SpanId>,
    /// When the command was released, and its pid.
    started: Option<(Moment, u32)>,
    /// Where no recorder watches them.
    clocks: Option<Clocks>,
    /// What the recorder tells; its own clone of the log's sink goes to the sampler.
    sink: WalObservationSink,
    /// Says at once what cannot be written.
    alarm: Alarm,
    trouble: Option<anyhow::Error>,
}

impl Recorded {
    fn create(setting: &Setting, arguments: &RunArguments) -> Result<Self> {
        let store = setting.open_store_to_record()?;
        let (traceparent, parent) = identity()?;
        let mut command: Vec<String> = arguments.argv().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if arguments.redact == Redact::On {
            Redactor::default().arguments(&mut command);
        }
        let run = new_run(command, traceparent, if arguments.no_profile { 0 } else { arguments.rate });
        let writer = store.create(&run).context("failed to create a recording")?;
        writer.wal().set_limit(arguments.max_recording_bytes);
        let sink = writer.wal().observation_sink();
        Ok(Recorded {
            writer,
            receiver: None,
            journals: None,
            traceparent,
            parent,
            started: None,
            clocks: None,
            sink,
            alarm: Alarm::default(),
            trouble: None,
        })
    }

    /// Opens the receiver and says what the command's environment is.
    fn environment(&mut self, arguments: &RunArguments) -> Vec<(OsString, OsString)> {
        let inherited = inherited(arguments);
        let mut forward: Vec<ForwardTarget> = arguments.otel_traces.iter().chain(&arguments.tracing).cloned().collect();
        if arguments.env_inject == EnvInject::None {
            if !forward.is_empty() {
                self.lose(LossKind::ForwardFailed, "no span is received with --env-inject none, so none is handed on".to_owned());
            }
            return inherited;
        }
        if !arguments.no_profile {
            match JournalDirectory::create() {
                Ok(directory) => self.journals = Some(directory),
                Err(error) => self.lose(LossKind::JournalsRefused, format!("no directory for journals of spans could be made: {error}")),
            }
        }
        let journals = self.journals.as_ref().map(|directory| directory.path().to_owned());
        // The port must be known for the environment, and the user's endpoint, which the environment names, for the receiver.
        // The endpoint does not depend on the port, so it is read first.
        let traceparent = self.traceparent.to_string();
        let run_id = match secret() {
            Ok(run_id) => run_id,
            Err(error) => {
                self.lose(LossKind::RequestsRefused, format!("no span was received: {error}"));
                return inherited;
            }
        };
        // Before the command can say it: whatever door it comes by, the log holds the name.
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
        // Kept from here on: who takes all descriptors by connecting must not take this question as well. The receiver says what is missing.
        let _ = socket_owner::prepare();
        if let Err(error) = has_descriptors(RECEIVER_DESCRIPTORS) {
            let text = format!("no span was received: a receiver needs {RECEIVER_DESCRIPTORS} open files, and there is no room: {error}");
            self.lose(LossKind::RequestsRefused, text);
            return inherited;
        }
        // What could have made us wait is done. Threads that are started from now on leave all signals to this one.
        if let Err(error) = signals::install() {
            self.lose(LossKind::RequestsRefused, format!("no span was received: {error}"));
            return inherited;
        }
        let keep = Box::new(WalKeep(self.writer.wal().clone(), self.alarm.clone()));
        match Receiver::start(
            ReceiverOptions {
                forward,
                keep_credentials: arguments.redact == Redact::Off,
                senders: Senders::Run { id: run_id.clone(), name: self.public_name() },
                ask_owner: Some(owner_of_client),
                ..ReceiverOptions::default()
            },
            keep,
        ) {
            Ok(receiver) => {
                let injection = otel_environment::environment(&request(&receiver.endpoint(), &receiver.appdash_endpoint()));
                self.receiver = Some(receiver);
                for note in injection.notes {
                    self.lose(LossKind::Environment, note.text);
                }
                injection.env
            }
            Err(error) => {
                self.lose(LossKind::RequestsRefused, format!("no port could be opened on 127.0.0.1, so no span was received: {error}"));
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
        let options =
            recorder::Options { rate_hz: arguments.rate, clock, remove_perf_maps, journals, cache, ..recorder::Options::default() };
        let sink = || -> Box<dyn ObservationSink> {
            let sink = self.alarm.before(self.writer.wal().observation_sink());
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
                // What `/proc` tells is better than nothing, and nothing is no trouble for the command.
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
            self.alarm.raise(&error.0);
            self.trouble.get_or_insert(anyhow::Error::new(error).context("failed to write the log"));
        }
    }

    fn lose(&mut self, kind: LossKind, detail: String) {
        self.observe(Observation::Loss(Loss::new(kind, 1, detail)));
    }

    /// The command could not be started: there is nothing to keep.
    fn discard(self) {
        if let Some(receiver) = self.receiver {
            receiver.finish(Duration::ZERO);
        }
        // A folder that stays behind is listed as killed; there is nobody to tell more.
        self.writer.discard().ok();
    }

    /// What `longpole.run.id` says in what others get: the run's span, in the length of the id.
    fn public_name(&self) -> String {
        format!("{:0>32}", self.traceparent.span_id.to_string())
    }

    /// The run as a span, for those who get copies: theirs stand under it. Its arguments may be secret and are left out.
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

    /// After the command ended: everything in, sealed, and the answer out.
    fn answer(
        mut self,
        setting: &Setting,
        arguments: &RunArguments,
        (exit, ended): (Exit, Instant),
        (cpu_nanos, usage, last): (Option<u64>, Option<RunUsage>, Option<ProcessUsage>),
        recorder: Option<recorder::Recorder>,
    ) -> Result<()> {
        let end = self.started.map_or_else(now, |(start, _)| start.later(ended));
        if let Some(mut clocks) = self.clocks.take() {
            clocks.anchor(|observation| self.observe(observation));
        }
        // What the sampler lost is in the log; its binaries are still open, also those that were deleted meanwhile.
        let sampled = info_span!("finish sampling").in_scope(|| recorder.map(recorder::Recorder::finish)).unwrap_or_default();
        sampled.untold.into_iter().for_each(|loss| self.observe(Observation::Loss(loss)));
        drop(self.journals.take());
        if let Some(reason) = sampled.not_kept_reason {
            self.trouble.get_or_insert(anyhow::anyhow!("failed to write the log: {reason}"));
        }
        if let Some(unwritten) = self.alarm.unwritten(&self.writer) {
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
        if let Some(cost) = own_cost() {
            self.observe(Observation::RecorderCost(cost));
        }
        let usage = usage.map(Observation::RunUsage).into_iter().chain(last.map(Observation::ProcessUsage));
        usage.for_each(|observation| self.observe(observation));
        self.observe(Observation::RunEnded { end, exit, cpu_nanos });
        let name = self.writer.name();
        let binaries = sampled.binaries.into_iter().map(|binary| (binary.mapping, binary.file)).collect();
        let sealed = longpole_server::seal::seal_own(&self.writer, binaries, &signals::interrupted)?;
        let view = view::SummaryView::new(name.to_string(), &sealed.report);
        write_summary(setting, arguments, &view)?;
        if let Some(error) = self.trouble.or_else(|| not_whole(&self.writer, sealed)) {
            return Err(error);
        }
        if arguments.open {
            // The recording is the reader's now.
            let store = self.writer.store().root().to_owned();
            drop(self.writer);
            let consent = source_consent(&SourceArguments { allow_source: Vec::new() })?;
            open::serve(&store, name, 0, true, &name.to_string(), consent)?;
        }
        Ok(())
    }
}

/// Whether so many files can be opened at a time.
fn has_descriptors(count: usize) -> std::io::Result<()> {
    let files: std::io::Result<Vec<_>> = (0..count).map(|_| std::fs::File::open("/dev/null")).collect();
    files.map(drop)
}

/// The trace of the run: the user's own where he has one, and an id for the command's own span; and its parent in his trace.
pub(super) fn identity() -> Result<(TraceParent, Option<SpanId>)> {
    let random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"));
    let inherited = std::env::var(env_vars::TRACEPARENT).ok().and_then(|text| text.parse::<TraceParent>().ok());
    let (mut trace, mut span) = ([0; TraceId::BYTES], [0; SpanId::BYTES]);
    random(&mut trace)?;
    random(&mut span)?;
    // All zero is not an id; one is as good as any.
    trace[0] |= 1;
    span[0] |= 1;
    let fresh = TraceId::new(trace).context("an id of zero bytes")?;
    let own = TraceParent {
        trace_id: inherited.map_or(fresh, |parent| parent.trace_id),
        span_id: SpanId::new(span).context("an id of zero bytes")?,
        flags: FLAG_SAMPLED,
    };
    Ok((own, inherited.map(|parent| parent.span_id)))
}

/// The run's id: who knows it may send to the run, so it is of no other use, and as long as a key.
fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("failed to read random bytes: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A run that begins here and now.
pub(super) fn new_run(command: Vec<String>, traceparent: TraceParent, rate_hz: u32) -> Run {
    Run {
        command,
        working_directory: std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
        host: host(),
        cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        trace_id: traceparent.trace_id,
        root_span_id: traceparent.span_id,
        root_pid: None,
        start: now(),
        end: None,
        exit: None,
        rate_hz,
        mode: CaptureMode::Off,
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

/// The name of this machine.
pub(super) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// CPU time and largest memory of this process so far; both are lower bounds by what is still to come (the answer).
pub(super) fn own_cost() -> Option<RecorderCost> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // Nanoseconds on a CPU of every thread that lives; those of the sampler and the receiver have ended, so the process's total.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let cpu_nanos = ProcStat::parse(&stat)?.cpu_ticks()?.saturating_mul(TICK_NANOS);
    Some(RecorderCost { cpu_nanos, rss_bytes_max: kilobytes * 1024 })
}

fn write_summary(setting: &Setting, arguments: &RunArguments, view: &view::SummaryView) -> Result<()> {
    if arguments.summary == "none" {
        return Ok(());
    }
    let to_stderr = arguments.summary == "stderr";
    let style = if to_stderr { Style::stderr(setting.color) } else { Style::plain() };
    let text = match arguments.summary_format {
        Format::Text if to_stderr => {
            let mut screen = Screen::of("");
            screen.append(&summary::summary(view, style));
            screen::say_all(&screen);
            return Ok(());
        }
        Format::Json if to_stderr => return screen::say_json(view),
        Format::Text => summary::summary(view, style).as_str().to_owned(),
        Format::Json => screen::json(view)?,
    };
    // It names the command and its arguments, so a new file is for its user alone.
    let file = outside::create(Path::new(&arguments.summary), 0o600);
    file.and_then(|mut file| Ok(file.write_all(text.as_bytes())?))
        .with_context(|| format!("failed to write the summary to {}", arguments.summary))
}

/// Why a recording is not all that was seen: its segments could not be written, or somebody took something of it away.
pub(super) fn not_whole(writer: &RecordingWriter, sealed: OwnSeal) -> Option<anyhow::Error> {
    let is_gone = if writer.has_log() { "its log stays" } else { "its log is gone" };
    let unwritten = sealed.unwritten.map(|error| anyhow::Error::new(error).context(format!("failed to seal it, and {is_gone}")));
    unwritten.or_else(|| sealed.damaged.map(anyhow::Error::msg))
}

/// Asks the kernel whose a connection to the receiver is.
fn owner_of_client(client: SocketAddr, server: SocketAddr) -> std::io::Result<Option<SocketOwner>> {
    let owner = socket_owner::owner_of_client(client, server)?;
    Ok(owner.map(|(uid, inode)| SocketOwner { uid, inode }))
}

/// Keeps request bodies in the log.
struct WalKeep(WalWriter, Alarm);

impl WalKeep {
    fn kept(&self, outcome: Result<(), WalError>) -> Result<(), KeepError> {
        outcome.map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            self.1.raise(&format!("{error}{cause}"));
            let of_limit = matches!(error, WalError::Full { .. });
            if of_limit { KeepError::ForGood(error.to_string()) } else { KeepError::ForNow(error.to_string()) }
        })
    }
}

impl Keep for WalKeep {
    fn traces(&mut self, bytes: &[u8], encoding: Encoding, peer_pid: Option<u32>) -> Result<(), KeepError> {
        self.kept(match encoding {
            Encoding::Protobuf => self.0.append_otlp_protobuf(peer_pid, bytes),
            Encoding::Json => self.0.append_otlp_json(peer_pid, bytes),
        })
    }

    fn resource_event(&mut self, event: ResourceEvent) -> Result<(), KeepError> {
        self.kept(self.0.append_resource_event(&event))
    }

    fn listens(&mut self, pid: u32, address: SocketAddr) -> Result<(), KeepError> {
        self.kept(self.0.append_observation(&Observation::ProcessListens { pid, address }))
    }

    fn log_event(&mut self, trace_id: TraceId, span_id: SpanId, event: SpanEvent) -> Result<(), KeepError> {
        self.kept(self.0.append_span_events(&otlp::encode_span_event(trace_id, span_id, event)))
    }
}

/// The user's own endpoints as the forwarder wants them, and what of them could not be read.
pub(super) fn forward_targets(user: Option<&otel_environment::UserEndpoint>) -> (Vec<ForwardTarget>, Vec<String>) {
    let (mut targets, mut unreadable) = (Vec::new(), Vec::new());
    let Some(user) = user else { return (targets, unreadable) };
    for (signal, endpoint) in [(Signal::Traces, &user.traces), (Signal::Metrics, &user.metrics), (Signal::Logs, &user.logs)] {
        let Some(endpoint) = endpoint else { continue };
        let mut pem = |path: &Option<PathBuf>| pem(path.as_deref(), &mut unreadable);
        let tls = ForwardTls {
            certificate: pem(&endpoint.certificate),
            client_certificate: pem(&endpoint.client_certificate),
            client_key: pem(&endpoint.client_key),
        };
        let (protocol, url) = match endpoint.protocol {
            Some(otel_environment::Protocol::Grpc) => (ForwardProtocol::Grpc, &endpoint.grpc_url),
            Some(otel_environment::Protocol::HttpProtobuf | otel_environment::Protocol::HttpJson) => {
                (ForwardProtocol::Http, &endpoint.http_url)
            }
            None => (ForwardProtocol::AsReceived, &endpoint.http_url),
        };
        targets.push(ForwardTarget {
            signal,
            url: url.clone(),
            protocol,
            headers: endpoint.headers.clone(),
            timeout: endpoint.timeout_millis.map_or(FORWARD_TIMEOUT, Duration::from_millis),
            tls,
        });
    }
    (targets, unreadable)
}

fn pem(path: Option<&Path>, unreadable: &mut Vec<String>) -> Option<Vec<u8>> {
    let path = path?;
    // The environment may name a pipe or a device, which must not keep the command from starting.
    let read = outside::read(path, PEM_BYTES_MAX);
    read.map_err(|error| unreadable.push(format!("failed to read {}: {error}", path.display()))).ok()
}

/// A URL has no place for certificates: those of the environment hold for targets that were typed, too. Returns what of them could
/// not be read.
fn trust_by_environment(targets: &mut [ForwardTarget]) -> Vec<String> {
    let mut unreadable = Vec::new();
    if !targets.iter().any(|target| target.url.starts_with("https:")) {
        return unreadable;
    }
    let mut of = |setting: &str| pem(env_vars::exporter_file(setting).as_deref(), &mut unreadable);
    let tls = ForwardTls { certificate: of("CERTIFICATE"), client_certificate: of("CLIENT_CERTIFICATE"), client_key: of("CLIENT_KEY") };
    targets.iter_mut().filter(|target| target.url.starts_with("https:")).for_each(|target| target.tls = tls.clone());
    unreadable
}

/// Where Pulumi was told to send its spans, and what of it is no target. Pulumi itself would run without tracing then.
fn pulumi_targets(user: &otel_environment::PulumiTargets) -> (Vec<ForwardTarget>, Vec<String>) {
    let (mut targets, mut unknown) = (Vec::new(), Vec::new());
    let parsed = [
        ("PULUMI_OPTION_OTEL_TRACES", user.otel_traces.as_deref().map(args::otel_traces_target)),
        ("PULUMI_OPTION_TRACING", user.tracing.as_deref().map(args::tracing_target)),
    ];
    for (name, target) in parsed {
        match target {
            Some(Ok(target)) => targets.push(target),
            Some(Err(error)) => unknown.push(format!("nothing is handed on to where {name} says: {error}")),
            None => {}
        }
    }
    (targets, unknown)
}
