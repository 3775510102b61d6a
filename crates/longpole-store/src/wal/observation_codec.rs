//! The compact bytes of runs, losses and observations inside the write-ahead log. The table of tags is in
//! `docs/formats/recording.md`; a test below holds its worked example.
//!
//! Numbers are LEB128 (7 bits a byte, lowest first); signed numbers are zigzag; texts, bytes and lists begin with their
//! length. The decoder is bounded by its input: nothing is reserved that the remaining bytes could not fill.

use longpole_model::process::{CpuSlice, ThreadTotals};
use longpole_model::run::{CaptureMode, Exit, RecorderCost, Run};
use longpole_model::sample::{ContextRecord, JournalEntry, Sample};
use longpole_model::sink::Observation;
use longpole_model::stack::{LocationId, LocationKind, Mapping, MappingId, Runtime, StackId};
use longpole_model::time::{ClockAnchor, Monotonic, Timestamp};
use longpole_model::{
    AbsAddr, Attribute, AttributeValue, Attributes, Futex, IoBytes, Loss, LossKind, ProcessMemory, ProcessUsage, ResourceEvent,
    ResourceStep, RunUsage, SpanId, TraceId, VirtOffset, Wait, WaitKind,
};

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Offset within the payload.
    pub(crate) offset: usize,
    /// What was expected there.
    pub(crate) expected: &'static str,
}

pub(crate) type Decoded<T> = Result<T, Malformed>;

mod tag {
    pub(super) const CLOCK: u8 = 1;
    pub(super) const MAPPING: u8 = 2;
    pub(super) const LOCATION: u8 = 3;
    pub(super) const STACK: u8 = 4;
    pub(super) const SAMPLE: u8 = 5;
    pub(super) const CPU_SLICE: u8 = 6;
    pub(super) const PROCESS_STARTED: u8 = 7;
    pub(super) const PROCESS_EXEC: u8 = 8;
    pub(super) const PROCESS_EXITED: u8 = 9;
    pub(super) const THREAD_STARTED: u8 = 10;
    pub(super) const THREAD_NAMED: u8 = 11;
    pub(super) const THREAD_EXITED: u8 = 12;
    pub(super) const LOSS: u8 = 13;
    pub(super) const RUN_STARTED: u8 = 14;
    pub(super) const RUN_ENDED: u8 = 15;
    pub(super) const RECORDER_COST: u8 = 16;
    pub(super) const WAIT: u8 = 17;
    pub(super) const NAMED: u8 = 18;
    pub(super) const RUN_LEFT: u8 = 19;
    pub(super) const THREAD_TOTALS: u8 = 23;
    pub(super) const PROCESS_USAGE: u8 = 20;
    pub(super) const PROCESS_STATUS: u8 = 21;
    pub(super) const RUN_USAGE: u8 = 22;
    pub(super) const JOURNAL: u8 = 24;
    pub(super) const PROCESS_LISTENS: u8 = 25;
    pub(super) const REPLACED: u8 = 26;
    pub(super) const PROCESS_RESOURCE: u8 = 27;
    pub(super) const THREAD_IDENT: u8 = 28;
    pub(super) const FUTEX_WAIT: u8 = 29;
    pub(super) const SLEPT: u8 = 30;
}

pub(crate) fn put_u64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_u32(out: &mut Vec<u8>, number: u32) {
    put_u64(out, u64::from(number));
}

pub(crate) fn put_i64(out: &mut Vec<u8>, number: i64) {
    put_u64(out, (number << 1 ^ number >> 63) as u64);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Texts, truth values and numbers; a value of another kind has no bytes, and stands for nothing set.
fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    put_u64(out, attributes.0.len() as u64);
    for attribute in attributes.iter() {
        put_text(out, &attribute.key);
        match &attribute.value {
            AttributeValue::Str(text) => {
                out.push(1);
                put_text(out, text);
            }
            AttributeValue::Bool(truth) => out.extend([2, u8::from(*truth)]),
            AttributeValue::Int(number) => {
                out.push(3);
                put_i64(out, *number);
            }
            AttributeValue::Double(number) => {
                out.push(4);
                put_u64(out, number.to_bits());
            }
            AttributeValue::Empty | AttributeValue::Bytes(_) | AttributeValue::Array(_) | AttributeValue::KeyValues(_) => out.push(0),
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put_u64(out, texts.len() as u64);
    for text in texts {
        put_text(out, text);
    }
}

/// A byte that says whether there is a value, then the value.
fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

fn put_exit(out: &mut Vec<u8>, exit: Exit) {
    let (kind, number) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(signal) => (1, signal),
    };
    out.push(kind);
    put_i64(out, i64::from(number));
}

fn put_mode(out: &mut Vec<u8>, mode: &CaptureMode) {
    match mode {
        CaptureMode::User { why_not_kernel } if why_not_kernel.is_empty() => out.push(0),
        CaptureMode::User { why_not_kernel } => {
            out.push(4);
            put_text(out, why_not_kernel);
        }
        CaptureMode::Perf => out.push(3),
        CaptureMode::Imported => out.push(5),
        CaptureMode::Off => out.push(1),
        CaptureMode::Refused { reason } => {
            out.push(2);
            put_text(out, reason);
        }
    }
}

fn put_cost(out: &mut Vec<u8>, cost: RecorderCost) {
    put_u64(out, cost.cpu_nanos);
    put_u64(out, cost.rss_bytes_max);
}

/// Appends a run.
pub(crate) fn put_run(out: &mut Vec<u8>, run: &Run) {
    put_texts(out, &run.command);
    put_text(out, &run.working_directory);
    put_text(out, &run.host);
    put_u32(out, run.cpus);
    put_text(out, &run.version);
    out.extend_from_slice(&run.trace_id.bytes());
    out.extend_from_slice(&run.root_span_id.bytes());
    put_option(out, run.root_pid, put_u32);
    put_i64(out, run.start.unix_nanos());
    put_option(out, run.end, |out, end| put_i64(out, end.unix_nanos()));
    put_option(out, run.exit, put_exit);
    put_u32(out, run.rate_hz);
    put_mode(out, &run.mode);
    put_option(out, run.cpu_nanos, put_u64);
    put_option(out, run.recorder_cost, put_cost);
}

/// Appends a loss.
pub(crate) fn put_loss(out: &mut Vec<u8>, loss: &Loss) {
    put_text(out, loss.kind.as_str());
    put_u64(out, loss.count);
    put_text(out, &loss.detail);
}

/// Appends what Pulumi's engine says about a resource.
pub(crate) fn put_resource_event(out: &mut Vec<u8>, event: &ResourceEvent) {
    put_i64(out, event.time.unix_nanos());
    out.push(match event.step {
        ResourceStep::Pre => 0,
        ResourceStep::Outputs => 1,
        ResourceStep::Failed => 2,
    });
    put_text(out, &event.op);
    put_text(out, &event.urn);
    put_text(out, &event.resource_type);
    put_texts(out, &event.dependencies);
    put_option(out, event.parent.as_deref(), put_text);
    put_option(out, event.provider.as_deref(), put_text);
}

fn put_process_and_time(out: &mut Vec<u8>, tag: u8, pid: u32, time: Monotonic) {
    out.push(tag);
    put_u32(out, pid);
    put_u64(out, time.0);
}

fn put_thread(out: &mut Vec<u8>, tag: u8, pid: u32, tid: u32) {
    out.push(tag);
    put_u32(out, pid);
    put_u32(out, tid);
}

/// Appends an observation.
pub(crate) fn put_observation(out: &mut Vec<u8>, observation: &Observation) {
    match observation {
        Observation::Clock(anchor) => {
            out.push(tag::CLOCK);
            put_u64(out, anchor.monotonic.0);
            put_i64(out, anchor.unix.unix_nanos());
            put_u32(out, anchor.bracket_nanos);
        }
        Observation::Slept { time, nanos } => {
            out.push(tag::SLEPT);
            put_u64(out, time.0);
            put_u64(out, *nanos);
        }
        Observation::Mapping(mapping) => {
            out.push(tag::MAPPING);
            put_u32(out, mapping.id.0);
            put_text(out, &mapping.path);
            put_bytes(out, &mapping.build_id);
        }
        Observation::Location { id, kind } => {
            out.push(tag::LOCATION);
            put_u32(out, id.0);
            match kind {
                LocationKind::Code { mapping, address } => {
                    out.push(0);
                    put_u32(out, mapping.0);
                    put_u64(out, address.0);
                }
                LocationKind::Unmapped { address } => {
                    out.push(1);
                    put_u64(out, address.0);
                }
                LocationKind::Cut { reason } => {
                    out.push(2);
                    put_text(out, reason);
                }
                LocationKind::Named { runtime, address } => {
                    out.push(3);
                    put_text(out, runtime.as_str());
                    put_option(out, address.map(|address| address.0), put_u64);
                }
            }
        }
        Observation::Named { id, runtime, address, function, file, line } => {
            out.push(tag::NAMED);
            put_u32(out, id.0);
            put_text(out, runtime.as_str());
            put_option(out, address.map(|address| address.0), put_u64);
            put_text(out, function);
            put_text(out, file);
            put_u32(out, *line);
        }
        Observation::Replaced { id, since, by } => {
            out.push(tag::REPLACED);
            put_u32(out, id.0);
            put_u64(out, since.0);
            put_u32(out, by.0);
        }
        Observation::Stack { id, locations } => {
            out.push(tag::STACK);
            put_u32(out, id.0);
            put_u64(out, locations.len() as u64);
            for location in locations {
                put_u32(out, location.0);
            }
        }
        Observation::Sample(sample) => put_sample(out, sample),
        Observation::CpuSlice(slice) => {
            put_thread(out, tag::CPU_SLICE, slice.pid, slice.tid);
            put_u64(out, slice.start.0);
            // The length is shorter than the end; it wraps where the end lies before the start, and so keeps that too.
            put_u64(out, slice.end.0.wrapping_sub(slice.start.0));
            out.push(u8::from(slice.preempted));
        }
        Observation::Wait(wait) => put_wait(out, wait),
        Observation::Journal { pid, tid, follows, entries, until } => {
            put_thread(out, tag::JOURNAL, *pid, *tid);
            out.push(u8::from(*follows));
            put_u64(out, until.0);
            put_journal(out, *until, entries);
        }
        Observation::ProcessStarted { pid, parent_pid, time } => {
            put_process_and_time(out, tag::PROCESS_STARTED, *pid, *time);
            put_option(out, *parent_pid, put_u32);
        }
        Observation::ProcessExec { pid, time, name, executable, arguments } => {
            put_process_and_time(out, tag::PROCESS_EXEC, *pid, *time);
            put_text(out, name);
            put_text(out, executable);
            put_texts(out, arguments);
        }
        Observation::ProcessExited { pid, time } => put_process_and_time(out, tag::PROCESS_EXITED, *pid, *time),
        Observation::ProcessStatus { pid, time, exit } => {
            put_process_and_time(out, tag::PROCESS_STATUS, *pid, *time);
            put_exit(out, *exit);
        }
        Observation::ProcessListens { pid, address } => {
            out.push(tag::PROCESS_LISTENS);
            put_u32(out, *pid);
            put_text(out, &address.to_string());
        }
        Observation::ProcessResource { pid, time, attributes } => {
            put_process_and_time(out, tag::PROCESS_RESOURCE, *pid, *time);
            put_attributes(out, attributes);
        }
        Observation::ProcessUsage(usage) => put_process_usage(out, usage),
        Observation::ThreadStarted { pid, tid, time } => {
            put_thread(out, tag::THREAD_STARTED, *pid, *tid);
            put_u64(out, time.0);
        }
        Observation::ThreadNamed { pid, tid, name } => {
            put_thread(out, tag::THREAD_NAMED, *pid, *tid);
            put_text(out, name);
        }
        Observation::ThreadExited { pid, tid, time } => {
            put_thread(out, tag::THREAD_EXITED, *pid, *tid);
            put_u64(out, time.0);
        }
        Observation::ThreadTotals { pid, tid, totals } => {
            put_thread(out, tag::THREAD_TOTALS, *pid, *tid);
            put_u64(out, totals.on_cpu_nanos);
            put_u64(out, totals.ready_nanos);
        }
        Observation::ThreadIdent { pid, tid, ident } => {
            put_thread(out, tag::THREAD_IDENT, *pid, *tid);
            put_u64(out, *ident);
        }
        Observation::Loss(loss) => {
            out.push(tag::LOSS);
            put_loss(out, loss);
        }
        Observation::RunStarted { pid, start, mode } => {
            out.push(tag::RUN_STARTED);
            put_u32(out, *pid);
            put_i64(out, start.unix_nanos());
            put_mode(out, mode);
        }
        Observation::RunEnded { end, exit, cpu_nanos } => {
            out.push(tag::RUN_ENDED);
            put_i64(out, end.unix_nanos());
            put_exit(out, *exit);
            put_option(out, *cpu_nanos, put_u64);
        }
        Observation::RunUsage(usage) => {
            out.push(tag::RUN_USAGE);
            put_option(out, usage.peak_resident_bytes, put_u64);
            put_u64(out, usage.minor_faults);
            put_u64(out, usage.major_faults);
        }
        Observation::RunLeft { end } => {
            out.push(tag::RUN_LEFT);
            put_i64(out, end.unix_nanos());
        }
        Observation::RecorderCost(cost) => {
            out.push(tag::RECORDER_COST);
            put_cost(out, *cost);
        }
    }
}

fn put_sample(out: &mut Vec<u8>, sample: &Sample) {
    put_thread(out, tag::SAMPLE, sample.pid, sample.tid);
    put_u64(out, sample.time.0);
    put_u32(out, sample.cpu);
    put_u32(out, sample.stack.0);
    put_u64(out, sample.weight_nanos);
    put_context(out, &sample.context);
}

fn put_process_usage(out: &mut Vec<u8>, usage: &ProcessUsage) {
    put_process_and_time(out, tag::PROCESS_USAGE, usage.pid, usage.time);
    put_option(out, usage.memory, |out, memory| {
        put_u64(out, memory.resident_bytes);
        put_u64(out, memory.peak_resident_bytes);
    });
    put_u64(out, usage.cpu_nanos);
    put_u64(out, usage.minor_faults);
    put_u64(out, usage.major_faults);
    put_option(out, usage.io, |out, io| {
        for bytes in [io.read, io.written, io.storage_read, io.storage_written] {
            put_u64(out, bytes);
        }
    });
}

fn put_wait(out: &mut Vec<u8>, wait: &Wait) {
    put_thread(out, if wait.futex.is_some() { tag::FUTEX_WAIT } else { tag::WAIT }, wait.pid, wait.tid);
    put_u64(out, wait.start.0);
    put_u64(out, wait.end.0.wrapping_sub(wait.start.0));
    put_text(out, wait.kind.as_str());
    put_text(out, &wait.syscall);
    put_option(out, wait.stack.map(|stack| stack.0), put_u32);
    put_context(out, &wait.context);
    if let Some(Futex { address, holder }) = wait.futex {
        put_u64(out, address.0);
        put_option(out, holder, put_u32);
    }
}

/// Times are those since the entry before, the first one's until the end; they wrap, and so keep what is not in order. A trace is
/// spelled out where it is not that of the last span.
fn put_journal(out: &mut Vec<u8>, until: Monotonic, entries: &[JournalEntry]) {
    put_u64(out, entries.len() as u64);
    let (mut before, mut trace) = (until.0, None);
    for (place, entry) in entries.iter().enumerate() {
        put_u64(out, if place == 0 { until.0.wrapping_sub(entry.time.0) } else { entry.time.0.wrapping_sub(before) });
        before = entry.time.0;
        match entry.span {
            None => out.push(0),
            // Logs of before know 1 and 2 only, and say nothing of who sends.
            Some((trace_id, span_id)) if trace == Some(trace_id) => {
                out.push(if entry.is_sent { 3 } else { 1 });
                out.extend_from_slice(&span_id.bytes());
            }
            Some((trace_id, span_id)) => {
                out.push(if entry.is_sent { 4 } else { 2 });
                out.extend_from_slice(&trace_id.bytes());
                out.extend_from_slice(&span_id.bytes());
                trace = Some(trace_id);
            }
        }
    }
}

fn put_context(out: &mut Vec<u8>, context: &ContextRecord) {
    match context {
        ContextRecord::Absent => out.push(0),
        ContextRecord::NoSpan => out.push(1),
        ContextRecord::Torn => out.push(2),
        ContextRecord::Span { trace_id, span_id } => {
            out.push(3);
            out.extend_from_slice(&trace_id.bytes());
            out.extend_from_slice(&span_id.bytes());
        }
    }
}

/// Reads a payload from its start to its end.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, offset: 0 }
    }

    fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    fn malformed<T>(&self, expected: &'static str) -> Decoded<T> {
        Err(Malformed { offset: self.offset, expected })
    }

    pub(crate) fn take(&mut self, length: usize, expected: &'static str) -> Decoded<&'a [u8]> {
        let rest = &self.bytes[self.offset..];
        if length > rest.len() {
            return self.malformed(expected);
        }
        self.offset += length;
        Ok(&rest[..length])
    }

    pub(crate) fn u8(&mut self, expected: &'static str) -> Decoded<u8> {
        Ok(self.take(1, expected)?[0])
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        let start = self.offset;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8("a number")?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed { offset: start, expected: "a number of 64 bits" })
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        let start = self.offset;
        self.u64()?.try_into().map_err(|_| Malformed { offset: start, expected: "a number of 32 bits" })
    }

    pub(crate) fn i64(&mut self) -> Decoded<i64> {
        let number = self.u64()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bool(&mut self) -> Decoded<bool> {
        match self.u8("a truth value")? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.malformed("0 or 1"),
        }
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<Option<T>> {
        Ok(if self.bool()? { Some(read(self)?) } else { None })
    }

    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let start = self.offset;
        let length = usize::try_from(self.u64()?).map_err(|_| Malformed { offset: start, expected: "a length" })?;
        self.take(length, "as many bytes as the length says")
    }

    fn text(&mut self) -> Decoded<String> {
        let start = self.offset;
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Malformed { offset: start, expected: "a text in UTF-8" }),
        }
    }

    /// A list: each element takes at least one byte, which bounds what is reserved.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.u64()?;
        let room = self.bytes.len() - self.offset;
        if count > room as u64 {
            return self.malformed("as many elements as the length says");
        }
        // A list of texts takes 24 bytes of memory for one of input; so grow beyond a page only as elements come.
        let mut list = Vec::with_capacity((count as usize).min(4096 / size_of::<T>().max(1)));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn texts(&mut self) -> Decoded<Vec<String>> {
        self.list(Self::text)
    }

    fn attributes(&mut self) -> Decoded<Attributes> {
        let pairs = self.list(|it| {
            let key = it.text()?.into();
            let value = match it.u8("a kind of value")? {
                0 => AttributeValue::Empty,
                1 => AttributeValue::Str(it.text()?.into()),
                2 => AttributeValue::Bool(it.bool()?),
                3 => AttributeValue::Int(it.i64()?),
                4 => AttributeValue::Double(f64::from_bits(it.u64()?)),
                _ => return it.malformed("a kind of value"),
            };
            Ok(Attribute { key, value })
        })?;
        Ok(Attributes(pairs))
    }

    fn monotonic(&mut self) -> Decoded<Monotonic> {
        self.u64().map(Monotonic)
    }

    pub(crate) fn timestamp(&mut self) -> Decoded<Timestamp> {
        self.i64().map(Timestamp)
    }

    pub(crate) fn trace_id(&mut self) -> Decoded<TraceId> {
        let start = self.offset;
        let bytes = self.take(TraceId::BYTES, "a trace id")?;
        TraceId::from_slice(bytes).ok_or(Malformed { offset: start, expected: "a trace id that is not zero" })
    }

    pub(crate) fn span_id(&mut self) -> Decoded<SpanId> {
        let start = self.offset;
        let bytes = self.take(SpanId::BYTES, "a span id")?;
        SpanId::from_slice(bytes).ok_or(Malformed { offset: start, expected: "a span id that is not zero" })
    }

    fn resource_event(&mut self) -> Decoded<ResourceEvent> {
        Ok(ResourceEvent {
            time: self.timestamp()?,
            step: match self.u8("a step")? {
                0 => ResourceStep::Pre,
                1 => ResourceStep::Outputs,
                2 => ResourceStep::Failed,
                _ => return self.malformed("a known step"),
            },
            op: self.text()?,
            urn: self.text()?,
            resource_type: self.text()?,
            dependencies: self.texts()?,
            parent: self.option(Self::text)?,
            provider: self.option(Self::text)?,
        })
    }

    fn exit(&mut self) -> Decoded<Exit> {
        let kind = self.u8("an exit")?;
        let start = self.offset;
        let number = self.i64()?.try_into().map_err(|_| Malformed { offset: start, expected: "an exit status" })?;
        match kind {
            0 => Ok(Exit::Code(number)),
            1 => Ok(Exit::Signal(number)),
            _ => self.malformed("a known kind of exit"),
        }
    }

    fn mode(&mut self) -> Decoded<CaptureMode> {
        match self.u8("a mode")? {
            0 => Ok(CaptureMode::User { why_not_kernel: String::new() }),
            1 => Ok(CaptureMode::Off),
            2 => Ok(CaptureMode::Refused { reason: self.text()? }),
            3 => Ok(CaptureMode::Perf),
            5 => Ok(CaptureMode::Imported),
            4 => Ok(CaptureMode::User { why_not_kernel: self.text()? }),
            _ => self.malformed("a known mode"),
        }
    }

    fn cost(&mut self) -> Decoded<RecorderCost> {
        Ok(RecorderCost { cpu_nanos: self.u64()?, rss_bytes_max: self.u64()? })
    }

    fn run(&mut self) -> Decoded<Run> {
        Ok(Run {
            command: self.texts()?,
            working_directory: self.text()?,
            host: self.text()?,
            cpus: self.u32()?,
            version: self.text()?,
            trace_id: self.trace_id()?,
            root_span_id: self.span_id()?,
            root_pid: self.option(Self::u32)?,
            start: self.timestamp()?,
            end: self.option(Self::timestamp)?,
            exit: self.option(Self::exit)?,
            rate_hz: self.u32()?,
            mode: self.mode()?,
            cpu_nanos: self.option(Self::u64)?,
            // It comes with the end.
            usage: None,
            recorder_cost: self.option(Self::cost)?,
        })
    }

    fn loss(&mut self) -> Decoded<Loss> {
        let start = self.offset;
        let kind = LossKind::from_code(&self.text()?).ok_or(Malformed { offset: start, expected: "a known kind of loss" })?;
        Ok(Loss { kind, count: self.u64()?, detail: self.text()? })
    }

    fn location_kind(&mut self) -> Decoded<LocationKind> {
        match self.u8("a location")? {
            0 => Ok(LocationKind::Code { mapping: MappingId(self.u32()?), address: VirtOffset(self.u64()?) }),
            1 => Ok(LocationKind::Unmapped { address: AbsAddr(self.u64()?) }),
            2 => Ok(LocationKind::Cut { reason: self.text()? }),
            3 => Ok(LocationKind::Named { runtime: self.runtime()?, address: self.option(Self::u64)?.map(AbsAddr) }),
            _ => self.malformed("a known kind of location"),
        }
    }

    fn runtime(&mut self) -> Decoded<Runtime> {
        let start = self.offset;
        Runtime::from_code(&self.text()?).ok_or(Malformed { offset: start, expected: "a known runtime" })
    }

    fn context(&mut self) -> Decoded<ContextRecord> {
        match self.u8("a context record")? {
            0 => Ok(ContextRecord::Absent),
            1 => Ok(ContextRecord::NoSpan),
            2 => Ok(ContextRecord::Torn),
            3 => Ok(ContextRecord::Span { trace_id: self.trace_id()?, span_id: self.span_id()? }),
            _ => self.malformed("a known kind of context record"),
        }
    }

    fn sample(&mut self) -> Decoded<Sample> {
        let (pid, tid, time) = (self.u32()?, self.u32()?, self.monotonic()?);
        Ok(Sample { time, pid, tid, cpu: self.u32()?, stack: StackId(self.u32()?), weight_nanos: self.u64()?, context: self.context()? })
    }

    fn cpu_slice(&mut self) -> Decoded<CpuSlice> {
        let (pid, tid, start) = (self.u32()?, self.u32()?, self.u64()?);
        let end = start.wrapping_add(self.u64()?);
        Ok(CpuSlice { pid, tid, start: Monotonic(start), end: Monotonic(end), preempted: self.bool()? })
    }

    fn wait(&mut self) -> Decoded<Wait> {
        let (pid, tid, start) = (self.u32()?, self.u32()?, self.u64()?);
        let end = start.wrapping_add(self.u64()?);
        let Some(kind) = WaitKind::from_code(&self.text()?) else { return self.malformed("a known kind of wait") };
        let (syscall, stack) = (self.text()?, self.option(Self::u32)?.map(StackId));
        let context = self.context()?;
        Ok(Wait { pid, tid, start: Monotonic(start), end: Monotonic(end), kind, syscall, stack, context, futex: None })
    }

    fn futex(&mut self) -> Decoded<Futex> {
        Ok(Futex { address: AbsAddr(self.u64()?), holder: self.option(Self::u32)? })
    }

    fn journal(&mut self) -> Decoded<Observation> {
        let (pid, tid, follows, until) = (self.u32()?, self.u32()?, self.bool()?, self.monotonic()?);
        let (mut before, mut trace) = (None, None);
        let entries = self.list(|it| {
            let step = it.u64()?;
            let time = before.map_or_else(|| until.0.wrapping_sub(step), |before: u64| before.wrapping_add(step));
            before = Some(time);
            let kind = it.u8("a current span")?;
            let span = match kind {
                0 => None,
                1 | 3 => match trace {
                    Some(trace_id) => Some((trace_id, it.span_id()?)),
                    None => return it.malformed("a trace before its other spans"),
                },
                2 | 4 => {
                    let trace_id = it.trace_id()?;
                    trace = Some(trace_id);
                    Some((trace_id, it.span_id()?))
                }
                _ => return it.malformed("a known kind of current span"),
            };
            Ok(JournalEntry { time: Monotonic(time), span, is_sent: kind > 2 })
        })?;
        Ok(Observation::Journal { pid, tid, follows, entries, until })
    }

    fn process_usage(&mut self) -> Decoded<ProcessUsage> {
        let (pid, time) = (self.u32()?, self.monotonic()?);
        Ok(ProcessUsage {
            pid,
            time,
            memory: self.option(|it| Ok(ProcessMemory { resident_bytes: it.u64()?, peak_resident_bytes: it.u64()? }))?,
            cpu_nanos: self.u64()?,
            minor_faults: self.u64()?,
            major_faults: self.u64()?,
            io: self
                .option(|it| Ok(IoBytes { read: it.u64()?, written: it.u64()?, storage_read: it.u64()?, storage_written: it.u64()? }))?,
        })
    }

    fn run_usage(&mut self) -> Decoded<RunUsage> {
        Ok(RunUsage { peak_resident_bytes: self.option(Self::u64)?, minor_faults: self.u64()?, major_faults: self.u64()? })
    }

    fn observation(&mut self) -> Decoded<Observation> {
        let at = self.offset;
        Ok(match self.u8("an observation")? {
            tag::CLOCK => {
                Observation::Clock(ClockAnchor { monotonic: self.monotonic()?, unix: self.timestamp()?, bracket_nanos: self.u32()? })
            }
            tag::SLEPT => Observation::Slept { time: self.monotonic()?, nanos: self.u64()? },
            tag::MAPPING => {
                Observation::Mapping(Mapping { id: MappingId(self.u32()?), path: self.text()?, build_id: self.bytes()?.to_vec() })
            }
            tag::LOCATION => Observation::Location { id: LocationId(self.u32()?), kind: self.location_kind()? },
            tag::NAMED => Observation::Named {
                id: LocationId(self.u32()?),
                runtime: self.runtime()?,
                address: self.option(Self::u64)?.map(AbsAddr),
                function: self.text()?,
                file: self.text()?,
                line: self.u32()?,
            },
            tag::REPLACED => Observation::Replaced { id: LocationId(self.u32()?), since: self.monotonic()?, by: LocationId(self.u32()?) },
            tag::STACK => Observation::Stack { id: StackId(self.u32()?), locations: self.list(|it| it.u32().map(LocationId))? },
            tag::SAMPLE => Observation::Sample(self.sample()?),
            tag::CPU_SLICE => Observation::CpuSlice(self.cpu_slice()?),
            tag::WAIT => Observation::Wait(self.wait()?),
            tag::FUTEX_WAIT => {
                let wait = self.wait()?;
                Observation::Wait(Wait { futex: Some(self.futex()?), ..wait })
            }
            tag::JOURNAL => self.journal()?,
            tag::PROCESS_STARTED => {
                let (pid, time) = (self.u32()?, self.monotonic()?);
                Observation::ProcessStarted { pid, parent_pid: self.option(Self::u32)?, time }
            }
            tag::PROCESS_EXEC => Observation::ProcessExec {
                pid: self.u32()?,
                time: self.monotonic()?,
                name: self.text()?,
                executable: self.text()?,
                arguments: self.texts()?,
            },
            tag::PROCESS_EXITED => Observation::ProcessExited { pid: self.u32()?, time: self.monotonic()? },
            tag::PROCESS_STATUS => Observation::ProcessStatus { pid: self.u32()?, time: self.monotonic()?, exit: self.exit()? },
            tag::PROCESS_LISTENS => {
                let (pid, start) = (self.u32()?, self.offset);
                let address = self.text()?.parse().map_err(|_| Malformed { offset: start, expected: "an address" })?;
                Observation::ProcessListens { pid, address }
            }
            tag::PROCESS_RESOURCE => {
                Observation::ProcessResource { pid: self.u32()?, time: self.monotonic()?, attributes: self.attributes()? }
            }
            tag::PROCESS_USAGE => Observation::ProcessUsage(self.process_usage()?),
            tag::THREAD_STARTED => Observation::ThreadStarted { pid: self.u32()?, tid: self.u32()?, time: self.monotonic()? },
            tag::THREAD_NAMED => Observation::ThreadNamed { pid: self.u32()?, tid: self.u32()?, name: self.text()? },
            tag::THREAD_EXITED => Observation::ThreadExited { pid: self.u32()?, tid: self.u32()?, time: self.monotonic()? },
            tag::THREAD_TOTALS => Observation::ThreadTotals {
                pid: self.u32()?,
                tid: self.u32()?,
                totals: ThreadTotals { on_cpu_nanos: self.u64()?, ready_nanos: self.u64()? },
            },
            tag::THREAD_IDENT => Observation::ThreadIdent { pid: self.u32()?, tid: self.u32()?, ident: self.u64()? },
            tag::LOSS => Observation::Loss(self.loss()?),
            tag::RUN_STARTED => Observation::RunStarted { pid: self.u32()?, start: self.timestamp()?, mode: self.mode()? },
            tag::RUN_ENDED => Observation::RunEnded { end: self.timestamp()?, exit: self.exit()?, cpu_nanos: self.option(Self::u64)? },
            tag::RUN_USAGE => Observation::RunUsage(self.run_usage()?),
            tag::RUN_LEFT => Observation::RunLeft { end: self.timestamp()? },
            tag::RECORDER_COST => Observation::RecorderCost(self.cost()?),
            _ => return Err(Malformed { offset: at, expected: "a known kind of observation" }),
        })
    }

    fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<T> {
        let value = read(&mut self)?;
        if self.is_empty() { Ok(value) } else { self.malformed("the end") }
    }
}

/// The run that these bytes hold.
pub(crate) fn run(bytes: &[u8]) -> Decoded<Run> {
    Decoder::new(bytes).whole(Decoder::run)
}

/// The loss that these bytes hold.
pub(crate) fn loss(bytes: &[u8]) -> Decoded<Loss> {
    Decoder::new(bytes).whole(Decoder::loss)
}

/// The event of a resource that these bytes hold.
pub(crate) fn resource_event(bytes: &[u8]) -> Decoded<ResourceEvent> {
    Decoder::new(bytes).whole(Decoder::resource_event)
}

/// The observations that these bytes hold, one behind the other.
pub(crate) fn observations(bytes: &[u8]) -> Decoded<Vec<Observation>> {
    let mut decoder = Decoder::new(bytes);
    let mut observations = Vec::new();
    while !decoder.is_empty() {
        observations.push(decoder.observation()?);
    }
    Ok(observations)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    proptest! {
        #[test]
        fn observations_decode_to_what_was_encoded(sent in prop::collection::vec(testing::observation(), 0..40)) {
            let mut bytes = Vec::new();
            for observation in &sent {
                put_observation(&mut bytes, observation);
            }
            prop_assert_eq!(observations(&bytes), Ok(sent));
        }

        #[test]
        fn a_run_and_a_loss_decode_to_what_was_encoded(sent in testing::run(), lost in testing::loss()) {
            let mut bytes = Vec::new();
            put_run(&mut bytes, &sent);
            prop_assert_eq!(run(&bytes), Ok(Run { usage: None, ..sent }));
            bytes.clear();
            put_loss(&mut bytes, &lost);
            prop_assert_eq!(loss(&bytes), Ok(lost));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (observations(&bytes), run(&bytes), loss(&bytes));
        }

        #[test]
        fn damaged_batches_are_decoded_or_refused(
            sent in prop::collection::vec(testing::observation(), 1..10),
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            for observation in &sent {
                put_observation(&mut bytes, observation);
            }
            let at = at.index(bytes.len());
            bytes[at] = value;
            let _ = observations(&bytes);
            let _ = observations(&bytes[..at]);
        }
    }

    #[test]
    fn a_length_beyond_the_input_is_refused_before_anything_is_reserved() {
        let mut bytes = vec![tag::STACK, 0];
        put_u64(&mut bytes, u64::MAX);
        let expected = "as many elements as the length says";
        assert_eq!(observations(&bytes), Err(Malformed { offset: bytes.len(), expected }));
    }
}
