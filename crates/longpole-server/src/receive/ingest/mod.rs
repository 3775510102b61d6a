//! The ingester: inflates a body, checks that it decodes, finds its sender, writes it to the log, and forwards a copy. Other formats
//! become OTLP here, so that the log has one format. One thread, in the order of each sender; large requests have a second one ([`lanes`]).

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use longpole_model::profile::ProfileBatch;
use longpole_model::{Loss, LossKind, ResourceEvent, Span, SpanBatch, SpanSink, Timestamp};
use longpole_recording::loss_counters::LossBook;
use longpole_store::Secret;
use longpole_store::live::LiveStore;
use longpole_wire::redact::Redactor;
use longpole_wire::{DecodeError, Limits, jaeger, otlp, pulumi_event, zipkin};

use self::check::Check;
use self::convert::Convert;
use self::empty_parts::EMPTY;
use self::fair_queue::Sender;
use self::logs::{Events, NO_SPAN, Unkept};
use self::profiles::{ProfileReader, UnreadProfile};
use self::rewrite::{Rewrite, Rewritten};
use super::connection::Claim;
use super::job::{Content, Handed, JaegerFormat, Job, Outcome, ProfileRequest, Verdict};
use super::memory::MemoryAccount;
use super::pulumi::span_dedup::Twins;
use super::received_sink::{ReceivedSink, ReceivedSinkError};
use crate::forward::Forwarder;
use crate::limits::CONVERTED_SPANS_MAX;
use crate::listeners::ListenerFinder;
use crate::otlp_request::{CameBy, Encoding, InflateError, Parcel, Signal, compress, inflate, inflate_up_to};
use crate::peer_process::PeerFinder;
use crate::wall_clock::now;

mod check;
mod convert;
mod empty_parts;
mod fair_queue;
mod lanes;
mod logs;
mod profile_labels;
mod profiles;
mod rewrite;

/// The loss of spans whose process a search did not find within its limits.
const NOT_FOUND: &str =
    "some spans have no process: the processes of this machine have more open files than longpole searches for the sender";

/// Why profiles are not kept at the moment.
const MEMORY_SHORT: &str = "the memory for spans and profiles is in use: try again";

/// Serves the queue until every [`Intake`](super::job::Intake) is dropped.
pub(super) fn ingest_all(
    queue: Receiver<Handed>,
    sink: Box<dyn ReceivedSink>,
    finder: PeerFinder,
    (limits, keep_credentials, run): (Limits, bool, Option<(String, Secret)>),
    (book, memory): (&LossBook, &MemoryAccount),
    forwarder: &Forwarder,
) {
    let twins = forwarder.wants(Signal::Traces).then(Twins::default);
    let (wants_spans, wants_listeners, profile_store) = (sink.wants_spans(), sink.wants_listeners(), sink.profile_store());
    let desk = Mutex::new(Desk { sink, finder, listeners: ListenerFinder::default(), twins });
    let context =
        IngestContext { desk, wants_spans, wants_listeners, profile_store, limits, keep_credentials, run, book, memory, forwarder };
    lanes::serve_all(&queue, &context);
    let left = context.desk().twins.take().map(Twins::finish).unwrap_or_default();
    context.hand_on(&left);
}

/// What one request at a time uses: to write it is quick, to read and judge it may not be.
struct Desk {
    sink: Box<dyn ReceivedSink>,
    finder: PeerFinder,
    listeners: ListenerFinder,
    /// `None` if no target gets spans.
    twins: Option<Twins>,
}

/// What all ingesters share.
struct IngestContext<'a> {
    desk: Mutex<Desk>,
    /// What the sink wants, see [`ReceivedSink`].
    wants_spans: bool,
    wants_listeners: bool,
    /// Where profiles are kept, if they are.
    profile_store: Option<LiveStore>,
    limits: Limits,
    keep_credentials: bool,
    /// The id that spans of closed connections must have; `None` if everybody may send.
    run: Option<(String, Secret)>,
    book: &'a LossBook,
    memory: &'a MemoryAccount,
    forwarder: &'a Forwarder,
}

impl IngestContext<'_> {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps who listens at addresses that spans call.
    fn keep_listeners(&self, called: &[SocketAddr]) {
        if called.is_empty() {
            return;
        }
        let mut desk = self.desk();
        let desk = &mut *desk;
        for (pid, address) in desk.listeners.search(called, Instant::now()) {
            if let Err(error) = desk.sink.listens(pid, address) {
                let detail = format!("failed to log the process that listens at an address that a span calls: {error}");
                self.book.add(LossKind::RequestsRefused, 1, detail);
            }
        }
    }

    /// Hands on what no request is waited for.
    fn hand_on(&self, spans: &[Span]) {
        for spans in spans.chunks(CONVERTED_SPANS_MAX) {
            self.forwarder.send(&Parcel::converted(otlp::encode_trace(spans).into(), spans.len() as u64));
        }
    }
}

struct Ingester<'a> {
    context: &'a IngestContext<'a>,
    /// `None` where credentials are kept.
    redactor: Option<Redactor>,
}

impl Ingester<'_> {
    fn new<'a>(context: &'a IngestContext<'a>) -> Ingester<'a> {
        Ingester { context, redactor: (!context.keep_credentials).then(Redactor::default) }
    }

    /// Whose request it is. A process can have any number of connections, so its number is searched for where requests take long.
    fn sender_of(&self, job: &Job, is_busy: bool) -> Sender {
        let connection = &job.connection;
        let (pid, is_closed) = if is_busy {
            let finder = &mut self.context.desk().finder;
            if let Some(stranger) = connection.stranger(finder) {
                return Sender::Stranger(stranger);
            }
            let pid = connection.peer_pid(finder);
            (pid, pid.is_none() && connection.has_owner() && !finder.omits_any())
        } else {
            (connection.known_pid(), false)
        };
        match pid {
            Some(pid) => Sender::Process(pid),
            None if is_closed => Sender::Nobody,
            None => Sender::Connection(Arc::as_ptr(connection) as usize),
        }
    }

    fn outcome_of(&mut self, job: &Job) -> Outcome {
        let verdict = self.serve(job);
        let is_kept = matches!(verdict, Verdict::Kept { .. });
        Outcome { durable: if is_kept { self.context.desk().sink.durable() } else { None }, verdict }
    }

    fn serve(&mut self, job: &Job) -> Verdict {
        let verdict = self.keep_content(job);
        if self.context.desk().finder.has_given_up() {
            self.context.book.add_once(LossKind::Environment, NOT_FOUND);
        }
        verdict
    }

    fn keep_content(&mut self, job: &Job) -> Verdict {
        let is_unproven = job.connection.sender_is_gone();
        match &job.content {
            // Only spans of OpenTelemetry can prove by themselves that they belong to the run.
            content if is_unproven && !content.has_resources() => self.refuse_unproven(job),
            Content::Otlp { signal: Signal::Traces, encoding, came_by } => self.keep_traces(job, *encoding, *came_by),
            Content::Otlp { signal: Signal::Profiles, encoding, came_by } if self.context.profile_store.is_some() => {
                self.keep_otlp_profiles(job, *encoding, *came_by)
            }
            Content::Otlp { signal, encoding, came_by } => self.take_other(job, *signal, *encoding, *came_by),
            Content::Zipkin { path, content_type } => self.keep_zipkin(job, path, content_type.as_deref()),
            Content::Jaeger(format) => self.keep_jaeger(job, *format),
            Content::Profiles(request) => self.keep_profiles(job, |reader, bytes| match request {
                ProfileRequest::Push(codec) => reader.push(bytes, *codec),
                ProfileRequest::Ingest { parameters, boundary } => reader.ingest(bytes, parameters, boundary.as_deref()),
                ProfileRequest::Scraped(scraped) => reader.scraped(bytes, scraped),
            }),
            Content::Converted { spans } => self.keep_converted(job, *spans),
            Content::PulumiEvent { received } => self.keep_event(job, *received),
            Content::Hello => {
                job.connection.peer_pid(&mut self.context.desk().finder);
                Verdict::whole()
            }
        }
    }

    /// Refuses a request without proof. It counts those whose client waits for no answer.
    fn refuse_unproven(&self, job: &Job) -> Verdict {
        let verdict = Verdict::unproven();
        let count = match &job.content {
            Content::Converted { spans } => *spans,
            Content::PulumiEvent { .. } => 1,
            Content::Otlp { .. } | Content::Zipkin { .. } | Content::Jaeger(_) | Content::Profiles(_) | Content::Hello => 0,
        };
        if let Verdict::Unproven(reason) = &verdict {
            self.context.book.add(LossKind::RequestsRefused, count, reason);
        }
        verdict
    }

    fn keep_traces(&mut self, job: &Job, encoding: Encoding, came_by: CameBy) -> Verdict {
        let mut bytes = match inflated(job) {
            Ok(bytes) => bytes,
            Err(verdict) => return verdict,
        };
        let context = self.context;
        let run_id = context.run.as_ref().filter(|_| job.connection.sender_is_gone());
        // Most requests of other users fail here, before they are decoded.
        if run_id.is_some_and(|(_, secret)| !secret.is_in(&bytes)) {
            return Verdict::unproven();
        }
        let run_id = run_id.map(|(id, _)| id.as_str());
        let mut redactor = self.redactor.as_mut();
        redactor.iter_mut().for_each(|redactor| redactor.begin_request(bytes.len()));
        let batch = context.wants_spans.then(SpanBatch::default);
        let wants_called = context.wants_listeners;
        let is_of_another = run_id.is_some();
        let mut check = Check { resource_without_pid: true, is_of_another, run_id, redactor, wants_called, batch, ..Check::default() };
        if let Err(error) = check.request(&bytes, encoding, &context.limits) {
            return Verdict::Undecodable(error.to_string());
        }
        let Check { spans, empty, mut losses, pid_missing, payloads, credentials, twins, called, unproven, claims, batch, .. } = check;
        // Without spans there is nothing to keep of it, and any number of bytes.
        if unproven || run_id.is_some() && spans == 0 {
            return Verdict::unproven();
        }
        let was_hidden = self.hide(&mut bytes);
        // The search for the peer reads /proc, so it runs only if a span would have no process without it, or names another process.
        let (claims, peer_pid) = {
            let (connection, mut desk) = (&job.connection, context.desk());
            let finder = &mut desk.finder;
            let claims: Vec<(u32, Claim)> = claims.into_iter().map(|pid| (pid, connection.claim(pid, finder))).collect();
            let peer_pid = if pid_missing { connection.peer_pid(finder) } else { connection.sender_of(&claims, finder) };
            (claims, peer_pid)
        };
        let claims: HashMap<u32, Claim> =
            claims.into_iter().filter(|(_, claim)| matches!(claim, Claim::OwnNamespace(_) | Claim::Unknown)).collect();
        let is_rewritten = payloads || credentials || empty > 0 || !claims.is_empty();
        // They are those of the bytes unless these change.
        let decoded = batch.filter(|_| !is_rewritten && !was_hidden);
        let clean = is_rewritten.then(|| self.clean(&bytes, encoding, payloads, &claims));
        let kept = match (&clean, decoded) {
            (Some(Rewritten { kept, .. }), _) => context.desk().sink.traces(kept, Encoding::Protobuf, peer_pid),
            (None, Some(batch)) => context.desk().sink.decoded_traces(&bytes, encoding, batch.spans, peer_pid),
            (None, None) => context.desk().sink.traces(&bytes, encoding, peer_pid),
        };
        if let Err(error) = kept {
            return Verdict::not_kept(&error);
        }
        context.keep_listeners(&called);
        if empty > 0 {
            Loss::new(LossKind::AttributesCut, empty, EMPTY).merge_into(&mut losses);
        }
        let of_invalid = || losses.iter().filter(|loss| loss.kind == LossKind::SpansInvalid);
        let rejected = of_invalid().map(|loss| loss.count).sum();
        let message = of_invalid().map(|loss| &*loss.detail).collect::<Vec<_>>().join("; ");
        if clean.is_some() {
            // Sealing decodes what was kept and finds these in it again, but not in what was written anew.
            losses.into_iter().for_each(|loss| context.book.add(loss.kind, loss.count, loss.detail));
        }
        // What was rejected here would be rejected there.
        let parcel = match clean.and_then(|clean| clean.forwarded) {
            Some(body) => Parcel { came_by, ..Parcel::converted(body, spans) },
            None => {
                let body = if was_hidden && context.forwarder.wants(Signal::Traces) {
                    compress(&bytes, job.compression).into()
                } else {
                    job.body.clone()
                };
                Parcel { signal: Signal::Traces, encoding, compression: job.compression, came_by, body, items: spans }
            }
        };
        let spans = (twins && context.desk().twins.is_some()).then(|| spans_of(&parcel, peer_pid, &context.limits));
        match spans.and_then(|spans| context.desk().twins.as_mut()?.new_spans(spans)) {
            Some(spans) if spans.is_empty() => {}
            Some(spans) => {
                let count = spans.len() as u64;
                context.forwarder.send(&Parcel { came_by, ..Parcel::converted(otlp::encode_trace(&spans).into(), count) });
            }
            None => context.forwarder.send(&parcel),
        }
        Verdict::Kept { rejected, message }
    }

    /// Puts the run's name in the place of its id, and says whether it was there. Whoever is handed copies of spans cannot send for the run.
    fn hide(&self, bytes: &mut Cow<'_, [u8]>) -> bool {
        self.context.run.as_ref().is_some_and(|(_, secret)| secret.hide(bytes))
    }

    /// The request again, in protobuf, without what is not to be stored. Credentials are counted.
    fn clean(&mut self, bytes: &[u8], encoding: Encoding, payloads: bool, claims: &HashMap<u32, Claim>) -> Rewritten {
        let mut redactor = self.redactor.as_mut();
        redactor.iter_mut().for_each(|redactor| redactor.begin_request(bytes.len()));
        let mut rewrite = Rewrite::new(redactor, claims, payloads, self.context.book);
        // It was decoded a moment ago; were that to fail now, nothing would be kept rather than a secret.
        let _ = decode(bytes, encoding, &self.context.limits, &mut rewrite);
        rewrite.finish()
    }

    fn keep_zipkin(&mut self, job: &Job, path: &str, content_type: Option<&str>) -> Verdict {
        self.keep_foreign(job, |bytes, limits, sink| {
            zipkin::decode(bytes, zipkin::Format::of_request(path, content_type, bytes), limits, sink)
        })
    }

    fn keep_jaeger(&mut self, job: &Job, format: JaegerFormat) -> Verdict {
        self.keep_foreign(job, |bytes, limits, sink| match format {
            JaegerFormat::Thrift => jaeger::decode_thrift(bytes, limits, sink),
            JaegerFormat::Agent => jaeger::decode_agent_packet(bytes, limits, sink).map(|_| ()),
            JaegerFormat::Protobuf => jaeger::decode_post_spans(bytes, limits, sink),
        })
    }

    /// Keeps profiles, whatever format they are in.
    fn keep_profiles(
        &mut self,
        job: &Job,
        read: impl FnOnce(&mut ProfileReader<'_>, &[u8]) -> Result<ProfileBatch, UnreadProfile>,
    ) -> Verdict {
        let Some(store) = &self.context.profile_store else {
            return Verdict::Undecodable("longpole keeps no profiles here".to_owned());
        };
        let bytes = match inflated(job) {
            Ok(bytes) => bytes,
            Err(verdict) => return verdict,
        };
        // Others were decoded since this one was read.
        if self.context.memory.is_short() {
            return Verdict::NotKept(MEMORY_SHORT.to_owned());
        }
        let received = now();
        let mut reader = ProfileReader::new(received, self.redactor.as_mut());
        let batch = match read(&mut reader, &bytes) {
            Ok(batch) => batch,
            Err(UnreadProfile::Unreadable(reason)) => return Verdict::Undecodable(reason),
            Err(UnreadProfile::TooLarge(reason)) => return Verdict::TooLarge(reason),
        };
        self.context.book.add(LossKind::ValuesRedacted, reader.redacted(), "in labels of profiles");
        let since_start = "values of profiles that count since the start of a program, without the profile before";
        self.context.book.add(LossKind::OtherSignals, reader.left_out(), since_start);
        let Some(first) = batch.values.first() else { return Verdict::whole() };
        if reader.is_sent_again() {
            let series = batch.series.get(first.series as usize);
            match series.map_or(Ok(false), |series| store.has_profile(series, first.time)) {
                Ok(true) => return Verdict::whole(),
                Ok(false) => {}
                Err(error) => return Verdict::NotKept(format!("failed to look for profiles that came before: {error}")),
            }
        }
        // Other requests do not wait meanwhile.
        let appended = store.append_profiles(received, &batch);
        let kept = self.context.desk().sink.kept_profiles(batch.values.len() as u64, appended);
        kept.map_or_else(|error| Verdict::not_kept(&error), |()| Verdict::whole())
    }

    /// Keeps profiles of OpenTelemetry, and hands a copy on.
    fn keep_otlp_profiles(&mut self, job: &Job, encoding: Encoding, came_by: CameBy) -> Verdict {
        if encoding == Encoding::Json {
            return Verdict::Undecodable(
                "longpole reads profiles of OpenTelemetry in protobuf only: set the content type application/x-protobuf".to_owned(),
            );
        }
        let verdict = self.keep_profiles(job, |reader, bytes| reader.otlp(bytes));
        if let Verdict::Kept { .. } = verdict {
            let (compression, body) = (job.compression, job.body.clone());
            self.context.forwarder.send(&Parcel { signal: Signal::Profiles, encoding, compression, came_by, body, items: 1 });
        }
        verdict
    }

    /// Keeps the spans of a request in another format than ours.
    fn keep_foreign(&mut self, job: &Job, decode: impl FnOnce(&[u8], &Limits, &mut dyn SpanSink) -> Result<(), DecodeError>) -> Verdict {
        let mut bytes = match inflated(job) {
            Ok(bytes) => bytes,
            Err(verdict) => return verdict,
        };
        self.hide(&mut bytes);
        let context = self.context;
        let peer_pid = job.connection.peer_pid(&mut context.desk().finder);
        let mut redactor = self.redactor.as_mut();
        redactor.iter_mut().for_each(|redactor| redactor.begin_request(bytes.len()));
        let (batch, called) = (SpanBatch::default(), Vec::new());
        let mut convert = Convert { context, redactor, peer_pid, batch, called, failed: None };
        let decoded = decode(&bytes, &context.limits, &mut convert);
        convert.give();
        let Convert { failed, called, .. } = convert;
        context.keep_listeners(&called);
        match (decoded, failed) {
            (Err(error), _) => Verdict::Undecodable(error.to_string()),
            (Ok(()), Some(error)) => Verdict::not_kept(&error),
            (Ok(()), None) => Verdict::whole(),
        }
    }

    fn keep_converted(&mut self, job: &Job, spans: u64) -> Verdict {
        let context = self.context;
        let mut desk = context.desk();
        let desk = &mut *desk;
        let peer_pid = job.connection.peer_pid(&mut desk.finder);
        match desk.sink.traces(&job.body, Encoding::Protobuf, peer_pid) {
            Ok(()) => {
                if let Some(twins) = &mut desk.twins {
                    let left = twins.old(spans_of(&Parcel::converted(job.body.clone(), spans), peer_pid, &context.limits));
                    context.hand_on(&left);
                }
                Verdict::whole()
            }
            Err(error) => {
                // Nobody waits for an answer, so nobody sends them again.
                context.book.add(LossKind::RequestsRefused, spans, format!("appdash spans that longpole could not store: {error}"));
                Verdict::not_kept(&error)
            }
        }
    }

    fn keep_event(&mut self, job: &Job, received: Timestamp) -> Verdict {
        let kept = inflated(job).map_err(|_| "cannot decompress it".to_owned()).and_then(|bytes| {
            let text = pulumi_event::text_of_message(&bytes).ok_or("not a message with an event")?;
            let parsed = pulumi_event::parse(text).map_err(|error| error.to_string())?;
            // Events of other kinds say nothing about a resource.
            let Some(parsed) = parsed else { return Ok(()) };
            // The engine's own time has whole seconds.
            self.context.desk().sink.resource_event(ResourceEvent { time: received, ..parsed.event }).map_err(|error| error.to_string())
        });
        if let Err(reason) = kept {
            self.context.book.add(LossKind::RequestsRefused, 1, format!("pulumi engine events that longpole could not store: {reason}"));
        }
        Verdict::whole()
    }

    /// Takes metrics, profiles and log records. The log gets only log records that name a span. The answer to the client is a success
    /// for the others, which are counted (one if they cannot be counted); it reports records of spans that could not be kept. The user's
    /// own endpoint, if any, gets all of them unchanged.
    fn take_other(&mut self, job: &Job, signal: Signal, encoding: Encoding, came_by: CameBy) -> Verdict {
        let mut bytes = inflated(job).ok();
        let was_hidden = bytes.as_mut().is_some_and(|bytes| self.hide(bytes));
        let wanted = self.context.forwarder.wants(signal);
        let body = bytes.as_deref().filter(|_| wanted && was_hidden).map(|bytes| compress(bytes, job.compression).into());
        let can_be_seen = bytes.is_some();
        let json = encoding == Encoding::Json;
        let mut verdict = Verdict::whole();
        let items = match signal {
            Signal::Traces => 0,
            Signal::Metrics => {
                let points = bytes.and_then(|bytes| otlp::count_metrics(&bytes, json).ok()).unwrap_or(1);
                self.context.book.add(LossKind::OtherSignals, points, "data points of metrics, which longpole does not keep");
                points
            }
            // Requests, because what is in one cannot be counted without reading all of it.
            Signal::Profiles => {
                self.context.book.add(
                    LossKind::OtherSignals,
                    1,
                    "requests of profiles, which longpole does not keep; `longpole import` reads a file of them",
                );
                1
            }
            Signal::Logs => match bytes.and_then(|bytes| self.keep_logs(&bytes, encoding)) {
                Some((records, unkept)) => {
                    // Where a copy goes out, the client must not send it again.
                    verdict = unkept.map_or(verdict, |unkept| self.verdict_of(unkept, wanted));
                    records
                }
                None => {
                    self.context.book.add(LossKind::OtherSignals, 1, NO_SPAN);
                    1
                }
            },
        };
        if wanted && !can_be_seen && self.context.run.is_some() {
            self.context.book.add(
                LossKind::ForwardFailed,
                items,
                "in requests that longpole cannot decompress and check for the run's secret id",
            );
            return verdict;
        }
        let (compression, body) = (job.compression, body.unwrap_or_else(|| job.body.clone()));
        self.context.forwarder.send(&Parcel { signal, encoding, compression, came_by, body, items });
        verdict
    }

    /// The number of records, and those of spans that could not be kept; `None` if they cannot be decoded.
    fn keep_logs(&mut self, bytes: &[u8], encoding: Encoding) -> Option<(u64, Option<Unkept>)> {
        let (context, mut redactor) = (self.context, self.redactor.as_mut());
        redactor.iter_mut().for_each(|redactor| redactor.begin_request(bytes.len()));
        let mut events = Events { context, redactor, kept: 0, unkept: None };
        let counts = otlp::logs::decode(bytes, encoding, &context.limits, &mut events).ok()?;
        let Events { kept, unkept, .. } = events;
        context.book.add(LossKind::OtherSignals, counts.others, NO_SPAN);
        let unkept = unkept.map(|(records, error)| Unkept { records, error, is_all: kept == 0 });
        Some((counts.of_spans + counts.others, unkept))
    }

    /// The answer for records that could not be kept. The client may send them again if none of the request was kept.
    fn verdict_of(&self, Unkept { records, error, is_all }: Unkept, is_forwarded: bool) -> Verdict {
        if is_all && !is_forwarded && matches!(error, ReceivedSinkError::ForNow(_)) {
            return Verdict::not_kept(&error);
        }
        let message = format!("log records that longpole could not store: {error}");
        self.context.book.add(LossKind::OtherSignals, records, &message);
        if is_all && !is_forwarded { Verdict::not_kept(&error) } else { Verdict::Kept { rejected: records, message } }
    }
}

/// The body of a job without its compression, or what is wrong with it.
fn inflated(job: &Job) -> Result<Cow<'_, [u8]>, Verdict> {
    inflate_up_to(&job.body, job.compression, job.connection.inflated_bytes_max()).map_err(|error| match error {
        InflateError::TooLarge(_) => Verdict::TooLarge(error.to_string()),
        InflateError::Broken(_) => Verdict::Undecodable(error.to_string()),
    })
}

/// The spans of a request that was checked.
fn spans_of(parcel: &Parcel, peer_pid: Option<u32>, limits: &Limits) -> Vec<Span> {
    let mut batch = SpanBatch::from_peer(peer_pid);
    if let Ok(bytes) = inflate(&parcel.body, parcel.compression) {
        // What of it could not be kept was counted when it was checked.
        let _ = decode(&bytes, parcel.encoding, limits, &mut batch);
    }
    batch.spans
}

fn decode(bytes: &[u8], encoding: Encoding, limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), DecodeError> {
    match encoding {
        Encoding::Protobuf => otlp::trace::decode(bytes, limits, sink),
        Encoding::Json => otlp::json::decode(bytes, limits, sink),
    }
}
