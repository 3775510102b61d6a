//! Model values for tests: a plain span, a directory that removes itself, and strategies for everything that is stored.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use longpole_model::process::{CpuSlice, Process, Thread, ThreadTotals};
use longpole_model::profile::{ProfileBatch, ProfileSeries, ProfileValue, SERVICE_LABEL};
use longpole_model::run::{CaptureMode, Exit, RecorderCost, Run};
use longpole_model::sample::{ContextRecord, CurrentSpan, Evidence, JournalEntry, Sample, SampleLink};
use longpole_model::sink::Observation;
use longpole_model::stack::{Frame, Location, LocationId, LocationKind, Mapping, MappingId, Runtime, Stack, StackId};
use longpole_model::time::{Clock, ClockAnchor, Monotonic, TimeRange, Timestamp};
use longpole_model::{
    AbsAddr, Attribute, AttributeValue, Attributes, Futex, IoBytes, Loss, LossKind, ProcessMemory, ProcessUsage, Recording, Resource,
    RunUsage, Scope, Span, SpanEvent, SpanId, SpanKind, SpanLink, Status, StatusCode, Text, TraceId, VirtOffset, Wait, WaitKind,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::files;

/// A directory of one test, removed with all that is in it when the test is over.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longpole-store-{}-{number}", std::process::id()));
        // What an earlier process of the same id left.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn trace_id(number: u8) -> TraceId {
    let mut bytes = [0; 16];
    bytes[15] = number;
    TraceId::new(bytes).unwrap()
}

pub(crate) fn span_id(number: u8) -> Option<SpanId> {
    SpanId::new([0, 0, 0, 0, 0, 0, 0, number])
}

/// A span of these numbers; parent 0 is none.
pub(crate) fn span(trace: u8, span: u8, parent: u8, start: i64) -> Span {
    let range = TimeRange { start: Timestamp(start), end: Timestamp(start + 10) };
    Span {
        parent_span_id: span_id(parent),
        flags: 1,
        kind: SpanKind::Internal,
        ..Span::new(trace_id(trace), span_id(span).unwrap(), format!("span {span}"), range)
    }
}

/// Profiles of one service at one time: how much each stack had, the root first.
pub(crate) fn profile_batch(service: &str, time: i64, stacks: &[(&str, i64)]) -> ProfileBatch {
    let series = ProfileSeries {
        profile_type: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".parse().unwrap(),
        labels: vec![(SERVICE_LABEL.into(), service.into())],
    };
    let mut batch = ProfileBatch { series: vec![series], ..ProfileBatch::default() };
    for (stack, value) in stacks {
        let locations = stack.split(';').rev().map(|function| {
            let known = batch.locations.iter().find(|location| location.frames[0].function == *function).map(|location| location.id);
            known.unwrap_or_else(|| {
                let id = LocationId(u32::try_from(batch.locations.len()).unwrap());
                let frame = Frame { function: function.into(), file: Text::new(), line: 0, reason: None };
                let kind = LocationKind::Named { runtime: Runtime::Other, address: None };
                batch.locations.push(Location { id, kind, frames: vec![frame] });
                id
            })
        });
        let locations = locations.collect();
        let id = StackId(u32::try_from(batch.stacks.len()).unwrap());
        batch.stacks.push(Stack { id, locations });
        batch.values.push(ProfileValue { series: 0, time: Timestamp(time), stack: id, value: *value, span: None });
    }
    batch
}

/// A run that began and has not ended.
pub(crate) fn begun() -> Run {
    Run {
        command: vec!["make".into(), "-j4".into()],
        working_directory: "/src".into(),
        host: "host".into(),
        cpus: 2,
        version: "0.1.0".into(),
        trace_id: trace_id(1),
        root_span_id: span_id(1).unwrap(),
        root_pid: None,
        start: Timestamp(1_000),
        end: None,
        exit: None,
        rate_hz: 999,
        mode: CaptureMode::User { why_not_kernel: String::new() },
        cpu_nanos: None,
        usage: None,
        recorder_cost: None,
    }
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![Just(String::new()), "[a-z]{1,8}", "\\PC{0,12}", Just("\"\\\u{0}\n\u{2028}\u{10ffff}".to_owned())]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

fn any_trace_id() -> impl Strategy<Value = TraceId> {
    prop_oneof![(1..5u8).prop_map(trace_id), any::<[u8; 16]>().prop_filter_map("zero", TraceId::new)]
}

fn any_span_id() -> impl Strategy<Value = SpanId> {
    prop_oneof![(1..9u8).prop_filter_map("zero", span_id), any::<[u8; 8]>().prop_filter_map("zero", SpanId::new)]
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![(0..1000i64).prop_map(Timestamp), any::<i64>().prop_map(Timestamp)]
}

fn monotonic() -> impl Strategy<Value = Monotonic> {
    prop_oneof![(0..1000u64).prop_map(Monotonic), any::<u64>().prop_map(Monotonic)]
}

fn value() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        Just(AttributeValue::Empty),
        text().prop_map(|text| AttributeValue::Str(text.into())),
        any::<bool>().prop_map(AttributeValue::Bool),
        any::<i64>().prop_map(AttributeValue::Int),
        any::<f64>().prop_filter("NaN differs from itself", |number| !number.is_nan()).prop_map(AttributeValue::Double),
        vec(any::<u8>(), 0..5).prop_map(|bytes| AttributeValue::Bytes(bytes.into())),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|values| AttributeValue::Array(values.into())),
            vec((text(), inner), 0..3).prop_map(|pairs| {
                AttributeValue::KeyValues(pairs.into_iter().map(|(key, value)| Attribute { key: key.into(), value }).collect())
            }),
        ]
    })
}

pub(crate) fn attributes() -> impl Strategy<Value = Attributes> {
    let texts_only = (text(), text().prop_map(|text| AttributeValue::Str(text.into())));
    let pairs = prop_oneof![vec(texts_only, 0..4), vec((text(), value()), 0..4)];
    pairs.prop_map(|pairs| Attributes(pairs.into_iter().map(|(key, value)| Attribute { key: key.into(), value }).collect()))
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)]
}

fn mode() -> impl Strategy<Value = CaptureMode> {
    prop_oneof![
        Just(CaptureMode::Off),
        Just(CaptureMode::Perf),
        Just(CaptureMode::Imported),
        text().prop_map(|why_not_kernel| CaptureMode::User { why_not_kernel }),
        text().prop_map(|reason| CaptureMode::Refused { reason }),
    ]
}

fn recorder_cost() -> impl Strategy<Value = RecorderCost> {
    any::<(u64, u64)>().prop_map(|(cpu_nanos, rss_bytes_max)| RecorderCost { cpu_nanos, rss_bytes_max })
}

fn run_usage() -> impl Strategy<Value = RunUsage> {
    any::<(Option<u64>, u64, u64)>().prop_map(|(peak_resident_bytes, minor_faults, major_faults)| RunUsage {
        peak_resident_bytes,
        minor_faults,
        major_faults,
    })
}

fn process_usage() -> impl Strategy<Value = ProcessUsage> {
    let memory =
        any::<(u64, u64)>().prop_map(|(resident_bytes, peak_resident_bytes)| ProcessMemory { resident_bytes, peak_resident_bytes });
    let io = any::<[u64; 4]>().prop_map(|[read, written, storage_read, storage_written]| IoBytes {
        read,
        written,
        storage_read,
        storage_written,
    });
    (0..4u32, monotonic(), option::of(memory), any::<[u64; 3]>(), option::of(io)).prop_map(
        |(pid, time, memory, [cpu_nanos, minor_faults, major_faults], io)| ProcessUsage {
            pid,
            time,
            memory,
            cpu_nanos,
            minor_faults,
            major_faults,
            io,
        },
    )
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    let said = (texts(), text(), text(), any::<u32>(), text(), any_trace_id(), any_span_id());
    let learned = (any::<Option<u32>>(), timestamp(), option::of(timestamp()), option::of(exit()), any::<u32>(), mode());
    (said, learned, any::<Option<u64>>(), option::of(run_usage()), option::of(recorder_cost())).prop_map(
        |(
            (command, working_directory, host, cpus, version, trace_id, root_span_id),
            (root_pid, start, end, exit, rate_hz, mode),
            cpu_nanos,
            usage,
            recorder_cost,
        )| Run {
            command,
            working_directory,
            host,
            cpus,
            version,
            trace_id,
            root_span_id,
            root_pid,
            start,
            end,
            exit,
            rate_hz,
            mode,
            cpu_nanos,
            usage,
            recorder_cost,
        },
    )
}

pub(crate) fn loss() -> impl Strategy<Value = Loss> {
    (prop::sample::select(&LossKind::ALL[..]), any::<u64>(), text()).prop_map(|(kind, count, detail)| Loss { kind, count, detail })
}

fn anchor() -> impl Strategy<Value = ClockAnchor> {
    (monotonic(), timestamp(), any::<u32>()).prop_map(|(monotonic, unix, bracket_nanos)| ClockAnchor { monotonic, unix, bracket_nanos })
}

fn context() -> impl Strategy<Value = ContextRecord> {
    prop_oneof![
        Just(ContextRecord::Absent),
        Just(ContextRecord::NoSpan),
        Just(ContextRecord::Torn),
        (any_trace_id(), any_span_id()).prop_map(|(trace_id, span_id)| ContextRecord::Span { trace_id, span_id }),
    ]
}

fn sample(stacks: u32) -> impl Strategy<Value = Sample> {
    // What weighs more is capped when it is written.
    (monotonic(), 0..4u32, any::<u32>(), any::<u32>(), 0..stacks, 0..=i64::MAX.cast_unsigned(), context()).prop_map(
        |(time, pid, tid, cpu, stack, weight_nanos, context)| Sample { time, pid, tid, cpu, stack: StackId(stack), weight_nanos, context },
    )
}

fn sample_link() -> impl Strategy<Value = SampleLink> {
    let evidence = prop_oneof![
        Just(Evidence::Record),
        Just(Evidence::Journal),
        Just(Evidence::Label),
        Just(Evidence::Inferred),
        any::<u32>().prop_map(|candidates| Evidence::Ambiguous { candidates }),
        Just(Evidence::None),
    ];
    (option::of((any_trace_id(), any_span_id())), evidence).prop_map(|(span, evidence)| SampleLink { span, evidence })
}

fn cpu_slice() -> impl Strategy<Value = CpuSlice> {
    (any::<u32>(), any::<u32>(), monotonic(), monotonic(), any::<bool>()).prop_map(|(pid, tid, start, end, preempted)| CpuSlice {
        pid,
        tid,
        start,
        end,
        preempted,
    })
}

fn wait(stacks: u32) -> impl Strategy<Value = Wait> {
    let kind = (0..WaitKind::ALL.len()).prop_map(|place| WaitKind::ALL[place]);
    let futex = option::of((any::<u64>(), option::of(any::<u32>())).prop_map(|(it, holder)| Futex { address: AbsAddr(it), holder }));
    (any::<u32>(), any::<u32>(), monotonic(), monotonic(), kind, text(), option::of(0..stacks.max(1)), context(), futex).prop_map(
        move |(pid, tid, start, end, kind, syscall, stack, context, futex)| {
            let stack = stack.filter(|_| stacks > 0).map(StackId);
            Wait { pid, tid, start, end, kind, syscall, stack, context, futex }
        },
    )
}

fn named_span() -> impl Strategy<Value = Option<(TraceId, SpanId)>> {
    option::of((any_trace_id(), any_span_id()))
}

fn current_span() -> impl Strategy<Value = CurrentSpan> {
    (any::<u32>(), any::<u32>(), monotonic(), monotonic(), named_span()).prop_map(|(pid, tid, start, end, span)| CurrentSpan {
        pid,
        tid,
        start,
        end,
        span,
        is_sent: false,
    })
}

fn journal() -> impl Strategy<Value = Observation> {
    let entry = (monotonic(), named_span(), any::<bool>()).prop_map(|(time, span, is_sent)| JournalEntry {
        time,
        span,
        is_sent: is_sent && span.is_some(),
    });
    (0..4u32, 0..6u32, any::<bool>(), vec(entry, 0..5), monotonic()).prop_map(|(pid, tid, follows, entries, until)| Observation::Journal {
        pid,
        tid,
        follows,
        entries,
        until,
    })
}

fn totals() -> impl Strategy<Value = ThreadTotals> {
    any::<(u64, u64)>().prop_map(|(on_cpu_nanos, ready_nanos)| ThreadTotals { on_cpu_nanos, ready_nanos })
}

fn runtime() -> impl Strategy<Value = Runtime> {
    prop::sample::select(&Runtime::ALL[..])
}

fn location_kind(mappings: u32) -> BoxedStrategy<LocationKind> {
    let elsewhere = prop_oneof![
        any::<u64>().prop_map(|address| LocationKind::Unmapped { address: AbsAddr(address) }),
        text().prop_map(|reason| LocationKind::Cut { reason }),
        (runtime(), any::<Option<u64>>()).prop_map(|(runtime, address)| LocationKind::Named { runtime, address: address.map(AbsAddr) }),
    ];
    if mappings == 0 {
        return elsewhere.boxed();
    }
    let code = (0..mappings, any::<u64>())
        .prop_map(|(mapping, address)| LocationKind::Code { mapping: MappingId(mapping), address: VirtOffset(address) });
    prop_oneof![code, elsewhere].boxed()
}

pub(crate) fn observation() -> impl Strategy<Value = Observation> {
    let pid = || 0..4u32;
    let tid = || prop_oneof![0..6u32, any::<u32>()];
    prop_oneof![
        anchor().prop_map(Observation::Clock),
        (monotonic(), any::<u64>()).prop_map(|(time, nanos)| Observation::Slept { time, nanos }),
        (0..4u32, text(), vec(any::<u8>(), 0..20)).prop_map(|(id, path, build_id)| Observation::Mapping(Mapping {
            id: MappingId(id),
            path,
            build_id
        })),
        (0..6u32, location_kind(4)).prop_map(|(id, kind)| Observation::Location { id: LocationId(id), kind }),
        ((0..6u32).prop_map(LocationId), runtime(), any::<Option<u64>>(), text(), text(), any::<u32>()).prop_map(
            |(id, runtime, address, function, file, line)| {
                Observation::Named { id, runtime, address: address.map(AbsAddr), function, file, line }
            }
        ),
        (0..6u32, monotonic(), 0..6u32).prop_map(|(id, since, by)| Observation::Replaced { id: LocationId(id), since, by: LocationId(by) }),
        (0..6u32, vec((0..6u32).prop_map(LocationId), 0..5)).prop_map(|(id, locations)| Observation::Stack { id: StackId(id), locations }),
        sample(6).prop_map(Observation::Sample),
        cpu_slice().prop_map(Observation::CpuSlice),
        wait(6).prop_map(Observation::Wait),
        journal(),
        (pid(), option::of(pid()), monotonic()).prop_map(|(pid, parent_pid, time)| Observation::ProcessStarted { pid, parent_pid, time }),
        (pid(), monotonic(), text(), text(), texts())
            .prop_map(|(pid, time, name, executable, arguments)| { Observation::ProcessExec { pid, time, name, executable, arguments } }),
        (pid(), monotonic()).prop_map(|(pid, time)| Observation::ProcessExited { pid, time }),
        (pid(), monotonic(), exit()).prop_map(|(pid, time, exit)| Observation::ProcessStatus { pid, time, exit }),
        (pid(), address()).prop_map(|(pid, address)| Observation::ProcessListens { pid, address }),
        (pid(), monotonic(), plain_attributes()).prop_map(|(pid, time, attributes)| Observation::ProcessResource { pid, time, attributes }),
        process_usage().prop_map(Observation::ProcessUsage),
        run_usage().prop_map(Observation::RunUsage),
        (pid(), tid(), monotonic()).prop_map(|(pid, tid, time)| Observation::ThreadStarted { pid, tid, time }),
        (pid(), tid(), text()).prop_map(|(pid, tid, name)| Observation::ThreadNamed { pid, tid, name }),
        (pid(), tid(), monotonic()).prop_map(|(pid, tid, time)| Observation::ThreadExited { pid, tid, time }),
        (pid(), tid(), any::<u64>()).prop_map(|(pid, tid, ident)| Observation::ThreadIdent { pid, tid, ident }),
        (pid(), tid(), totals()).prop_map(|(pid, tid, totals)| Observation::ThreadTotals { pid, tid, totals }),
        loss().prop_map(Observation::Loss),
        (pid(), timestamp(), mode()).prop_map(|(pid, start, mode)| Observation::RunStarted { pid, start, mode }),
        (timestamp(), exit(), any::<Option<u64>>()).prop_map(|(end, exit, cpu_nanos)| Observation::RunEnded { end, exit, cpu_nanos }),
        recorder_cost().prop_map(Observation::RecorderCost),
        timestamp().prop_map(|end| Observation::RunLeft { end }),
    ]
}

pub(crate) fn any_span() -> impl Strategy<Value = Span> {
    let kind = (0..=5).prop_map(SpanKind::from_otlp);
    let status = ((0..=2).prop_map(StatusCode::from_otlp), text()).prop_map(|(code, message)| Status { code, message: message.into() });
    let event = (timestamp(), text(), attributes()).prop_map(|(time, name, attributes)| SpanEvent { time, name: name.into(), attributes });
    let link = (any_trace_id(), any_span_id(), attributes()).prop_map(|(trace_id, span_id, attributes)| SpanLink {
        trace_id,
        span_id,
        attributes,
    });
    let resource = attributes().prop_map(|attributes| Arc::new(Resource { attributes }));
    let scope = (text(), text(), attributes()).prop_map(|(name, version, attributes)| Arc::new(Scope { name, version, attributes }));
    (
        (any_trace_id(), any_span_id(), option::of(any_span_id()), text(), any::<u32>(), text(), kind),
        (timestamp(), timestamp(), attributes(), vec(event, 0..3), vec(link, 0..3), status),
        (any::<[u32; 3]>(), resource, scope, any::<Option<u32>>()),
    )
        .prop_map(
            |(
                (trace_id, span_id, parent_span_id, trace_state, flags, name, kind),
                (start, end, attributes, events, links, status),
                ([dropped_attributes, dropped_events, dropped_links], resource, scope, pid),
            )| Span {
                trace_id,
                span_id,
                parent_span_id,
                trace_state: trace_state.into(),
                flags,
                name: name.into(),
                kind,
                start,
                end,
                attributes,
                dropped_attributes,
                events: events.into(),
                dropped_events,
                links: links.into(),
                dropped_links,
                status,
                resource,
                scope,
                pid,
            },
        )
}

fn process() -> impl Strategy<Value = Process> {
    let end = (option::of(monotonic()), option::of(exit()));
    let said = (any::<bool>(), vec(address(), 0..3), plain_attributes());
    (any::<u32>(), any::<Option<u32>>(), text(), text(), texts(), monotonic(), end, said).prop_map(
        |(pid, parent_pid, name, executable, arguments, start, (end, exit), (execed, listens, attributes))| Process {
            pid,
            parent_pid,
            name,
            executable: executable.into(),
            arguments: arguments.into(),
            start,
            end,
            execed,
            exit,
            listens,
            resource: Resource { attributes },
        },
    )
}

/// Attributes of the kinds that a process says of itself.
fn plain_attributes() -> impl Strategy<Value = Attributes> {
    let value = prop_oneof![
        text().prop_map(|text| AttributeValue::Str(text.into())),
        any::<bool>().prop_map(AttributeValue::Bool),
        any::<i64>().prop_map(AttributeValue::Int),
        any::<f64>().prop_map(AttributeValue::Double),
    ];
    vec((text(), value), 0..3)
        .prop_map(|pairs| Attributes(pairs.into_iter().map(|(key, value)| Attribute { key: key.into(), value }).collect()))
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<bool>(), any::<u128>(), any::<u16>()).prop_map(|(is_v4, address, port)| {
        let address = if is_v4 { Ipv4Addr::from(address as u32).into() } else { Ipv6Addr::from(address).into() };
        SocketAddr::new(address, port)
    })
}

fn thread() -> impl Strategy<Value = Thread> {
    (0..4u32, any::<u32>(), text(), monotonic(), option::of(monotonic()), option::of(totals()), any::<Option<u64>>())
        .prop_map(|(pid, tid, name, start, end, totals, ident)| Thread { pid, tid, name, start, end, totals, ident })
}

fn frame() -> impl Strategy<Value = Frame> {
    (text(), text(), any::<u32>(), option::of(text())).prop_map(|(function, file, line, reason)| Frame {
        function: function.into(),
        file: file.into(),
        line,
        reason,
    })
}

/// Numbers the rows.
fn numbered<T, U>(rows: Vec<T>, number: impl Fn(u32, T) -> U) -> Vec<U> {
    (0u32..).zip(rows).map(|(row, value)| number(row, value)).collect()
}

type Code = (Vec<(String, Vec<u8>)>, Vec<(LocationKind, Vec<Frame>)>, Vec<Vec<u32>>);

/// Mappings, the locations in them, the stacks of those.
fn code() -> impl Strategy<Value = Code> {
    vec((text(), vec(any::<u8>(), 0..20)), 0..3).prop_flat_map(|mappings| {
        let locations = vec((location_kind(mappings.len() as u32), vec(frame(), 0..3)), 0..5);
        (Just(mappings), locations).prop_flat_map(|(mappings, locations)| {
            let entries = match locations.len() as u32 {
                0 => vec(0..1u32, 0..1).boxed(),
                count => vec(0..count, 0..5).boxed(),
            };
            (Just(mappings), Just(locations), vec(entries, 0..4))
        })
    })
}

/// A recording as it is when it is sealed: numbers refer to rows that are there, spans are in no order.
pub(crate) fn recording() -> impl Strategy<Value = Recording> {
    let samples = |stacks: u32| match stacks {
        0 => vec((sample(1), sample_link()), 0..1).boxed(),
        _ => vec((sample(stacks), sample_link()), 0..6).boxed(),
    };
    let sampled = code().prop_flat_map(move |code| {
        let stacks = code.2.len() as u32;
        (Just(code), samples(stacks), vec((wait(stacks), sample_link()), 0..4), any::<bool>())
    });
    let people = (vec(process(), 0..4), vec(thread(), 0..4), vec(cpu_slice(), 0..4), vec(current_span(), 0..4), vec(process_usage(), 0..4));
    (run(), vec(anchor(), 0..4), vec(any_span(), 0..8), people, sampled, vec(loss(), 0..4)).prop_map(
        |(
            run,
            anchors,
            spans,
            (processes, threads, cpu_slices, current_spans, process_usage),
            ((mappings, locations, stacks), sampled, waited, linked),
            losses,
        )| {
            let (samples, sample_links): (Vec<_>, Vec<_>) = sampled.into_iter().unzip();
            let (waits, wait_links): (Vec<_>, Vec<_>) = waited.into_iter().unzip();
            Recording {
                run,
                clock: Clock::new(anchors),
                spans,
                processes,
                threads,
                cpu_slices,
                current_spans,
                process_usage,
                samples,
                sample_links: if linked { sample_links } else { Vec::new() },
                waits,
                wait_links: if linked { wait_links } else { Vec::new() },
                stacks: numbered(stacks, |row, entries| Stack {
                    id: StackId(row),
                    locations: entries.into_iter().map(LocationId).collect(),
                }),
                locations: numbered(locations, |row, (kind, frames)| Location { id: LocationId(row), kind, frames }),
                mappings: numbered(mappings, |row, (path, build_id)| Mapping { id: MappingId(row), path, build_id }),
                losses,
            }
        },
    )
}

/// Gives a folder an access control list in which this user has these rights (4 reads, 2 writes): its mode is `drwxrwx---` then, and its
/// group has none. `false` where that cannot be, as on a file system without lists.
pub(crate) fn give_rights(folder: &Path, uid: u32, rights: u16) -> bool {
    let entries = [(0x01, 7, u32::MAX), (0x02, rights, uid), (0x04, 0, u32::MAX), (0x10, 7, u32::MAX), (0x20, 0, u32::MAX)];
    let entries = entries.map(|(tag, rights, id): (u16, u16, u32)| u64::from(tag) | u64::from(rights) << 16 | u64::from(id) << 32);
    let list = [&2_u32.to_le_bytes()[..], &entries.map(u64::to_le_bytes).concat()].concat();
    rustix::fs::setxattr(folder, files::ACCESS_LIST, &list, rustix::fs::XattrFlags::empty()).is_ok()
}
