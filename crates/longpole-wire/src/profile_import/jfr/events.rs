//! Events of a recording that say how often, how long or how much: added up by stack, thread and span.
//!
//! | event | types |
//! |---|---|
//! | `jdk.ExecutionSample` | `cpu` (`wall` if that is the event of async-profiler) in nanoseconds: the interval of each |
//! | `profiler.WallClockSample` | `wall` in nanoseconds |
//! | `jdk.ObjectAllocationInNewTLAB`, `…OutsideTLAB` | `alloc_in_new_tlab_objects`, `alloc_in_new_tlab_bytes`, … |
//! | `jdk.ObjectAllocationSample` | `alloc_objects`, `alloc_space`: the weight of each sample |
//! | `jdk.JavaMonitorEnter` | `mutex_count`, `mutex_duration` |
//! | `jdk.ThreadPark` | `block_count`, `block_duration` |

use std::collections::HashMap;

use longpole_model::stack::Runtime;
use longpole_model::{LocationId, SpanId, SpanLabel};

use super::super::named_stacks::NamedStacks;
use super::super::parts;
use super::super::{Profile, ValueType};
use super::Header;
use super::constants::{Constants, JfrFrame};
use super::cursor::{Cursor, Fault, number};
use super::labels::{ContextLabels, Snapshot};
use super::metadata::{Classes, Leaf};
use crate::limits::NAME_BYTES_MAX;

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Execution,
    Wall,
    InNewTlab,
    OutsideTlab,
    AllocationSample,
    Monitor,
    Park,
}

const EVENTS: [(&str, Counted); 7] = [
    ("jdk.ExecutionSample", Counted::Execution),
    ("profiler.WallClockSample", Counted::Wall),
    ("jdk.ObjectAllocationInNewTLAB", Counted::InNewTlab),
    ("jdk.ObjectAllocationOutsideTLAB", Counted::OutsideTlab),
    ("jdk.ObjectAllocationSample", Counted::AllocationSample),
    ("jdk.JavaMonitorEnter", Counted::Monitor),
    ("jdk.ThreadPark", Counted::Park),
];

/// Nanoseconds between two samples if nothing says that: 10 ms in async-profiler, 20 ms in the JDK, which says it.
const INTERVAL_NANOS: i64 = 10_000_000;

/// The same of async-profiler's wall clock.
const WALL_INTERVAL_NANOS: i64 = 50_000_000;

/// Everything that must be alike to be added up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    stack: u32,
    types: &'static [(&'static str, &'static str)],
    tid: u32,
    span: Option<u64>,
    span_name: i64,
    /// The labels of the context, by its number.
    context: i64,
}

/// What a context says, with the number of the set of its labels.
#[derive(Clone, Copy)]
struct ContextNumbers<'s> {
    span: Option<SpanId>,
    span_name: Option<&'s [u8]>,
    set: u32,
}

/// Sums of a recording.
pub(super) struct Sums<'s> {
    snapshot: Snapshot<'s>,
    stacks: NamedStacks,
    /// The places of samples.
    known: HashMap<Key, usize>,
    locations: HashMap<(Box<str>, u32), LocationId>,
    /// Locations, stacks and counting classes of the chunk under way, by their numbers there.
    of_frame: HashMap<JfrFrame, LocationId>,
    of_stack: HashMap<i64, u32>,
    counted: HashMap<i64, Counted>,
    of_context: HashMap<i64, ContextNumbers<'s>>,
    setting: Option<i64>,
    has_wall: bool,
    interval_nanos: i64,
    wall_interval_nanos: i64,
}

const CPU: &[(&str, &str)] = &[("cpu", "nanoseconds")];
const WALL: &[(&str, &str)] = &[("wall", "nanoseconds")];
const IN_NEW_TLAB: &[(&str, &str)] = &[("alloc_in_new_tlab_objects", "count"), ("alloc_in_new_tlab_bytes", "bytes")];
const OUTSIDE_TLAB: &[(&str, &str)] = &[("alloc_outside_tlab_objects", "count"), ("alloc_outside_tlab_bytes", "bytes")];
const ALLOCATION_SAMPLE: &[(&str, &str)] = &[("alloc_objects", "count"), ("alloc_space", "bytes")];
const MONITOR: &[(&str, &str)] = &[("mutex_count", "count"), ("mutex_duration", "nanoseconds")];
const PARK: &[(&str, &str)] = &[("block_count", "count"), ("block_duration", "nanoseconds")];

/// What the fields of an event say.
#[derive(Default)]
struct Said {
    stack: Option<i64>,
    thread: Option<i64>,
    span: Option<u64>,
    span_name: i64,
    context: i64,
    ticks: i64,
    bytes: i64,
    tlab_bytes: i64,
    samples: i64,
}

impl<'s> Sums<'s> {
    pub(super) fn new(snapshot: Snapshot<'s>, bytes: usize, memory_bytes_max: u64) -> Self {
        Sums {
            snapshot,
            stacks: NamedStacks::new(Profile::default(), bytes, memory_bytes_max).of_runtime(Runtime::Jvm),
            known: HashMap::new(),
            locations: HashMap::new(),
            of_frame: HashMap::new(),
            of_stack: HashMap::new(),
            counted: HashMap::new(),
            of_context: HashMap::new(),
            setting: None,
            has_wall: false,
            interval_nanos: INTERVAL_NANOS,
            wall_interval_nanos: WALL_INTERVAL_NANOS,
        }
    }

    /// Numbers of another chunk stand for other things.
    pub(super) fn begin_chunk(&mut self, header: &Header, classes: &Classes) {
        // To clear a map takes as long as it has room: a large chunk would slow down all small ones behind it.
        (self.of_frame, self.of_stack) = (HashMap::new(), HashMap::new());
        self.counted = EVENTS.iter().filter_map(|(name, counted)| Some((classes.id_of(name)?, *counted))).collect();
        self.setting = classes.id_of("jdk.ActiveSetting");
        let profile = &mut self.stacks.profile;
        let start = profile.start.map_or(header.start, |start| start.min(header.start));
        let end = header.start.plus_nanos(i64::try_from(header.duration_nanos).unwrap_or(i64::MAX));
        let known_end = start.plus_nanos(i64::try_from(profile.duration_nanos).unwrap_or(i64::MAX));
        (profile.start, profile.duration_nanos) = (Some(start), known_end.max(end).nanos_since(start).unsigned_abs());
    }

    /// Reads `jdk.ActiveSetting`: async-profiler says `event`, `interval` and `wall` in nanoseconds, the JDK `period` in words.
    pub(super) fn setting<'a>(
        &mut self,
        class: i64,
        mut at: Cursor<'a>,
        classes: &mut Classes,
        constants: &Constants<'a>,
    ) -> Result<(), Fault> {
        if self.setting != Some(class) {
            return Ok(());
        }
        let (mut id, mut name, mut value) = (0, None, None);
        classes.values(class, &mut at, &mut |field, leaf| match (field, leaf) {
            ("id", Some(Leaf::Integer(class))) => id = class,
            ("name", Some(Leaf::Text(text))) => name = Some(text),
            ("value", Some(Leaf::Text(text))) => value = Some(text),
            _ => {}
        })?;
        let (name, value) = (constants.text(name.as_ref()), constants.text(value.as_ref()));
        let nanos = number(value).filter(|nanos| *nanos > 0);
        match name {
            "event" => self.has_wall = value == "wall",
            "interval" => self.interval_nanos = nanos.unwrap_or(self.interval_nanos),
            "wall" => self.wall_interval_nanos = nanos.unwrap_or(self.wall_interval_nanos),
            "period" if self.counted.get(&id) == Some(&Counted::Execution) => {
                let millis = value.strip_suffix(" ms").and_then(number).filter(|millis| *millis > 0);
                self.interval_nanos = millis.map_or(self.interval_nanos, |millis| millis.saturating_mul(1_000_000));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds an event.
    pub(super) fn event<'a>(
        &mut self,
        class: i64,
        mut at: Cursor<'a>,
        header: &Header,
        classes: &mut Classes,
        constants: &Constants<'a>,
    ) -> Result<(), Fault> {
        let Some(counted) = self.counted.get(&class).copied() else { return Ok(()) };
        let mut said = Said::default();
        classes.values(class, &mut at, &mut |field, leaf| match (field, leaf) {
            ("stackTrace", Some(Leaf::Constant(stack))) => said.stack = Some(stack),
            ("sampledThread" | "eventThread", Some(Leaf::Constant(thread))) => said.thread = Some(thread),
            ("spanId", Some(Leaf::Integer(span))) => said.span = Some(span.cast_unsigned()).filter(|span| *span != 0),
            ("spanName", Some(Leaf::Integer(name))) => said.span_name = name,
            ("contextId", Some(Leaf::Integer(context))) => said.context = context,
            ("duration", Some(Leaf::Integer(ticks))) => said.ticks = ticks,
            ("allocationSize" | "weight", Some(Leaf::Integer(bytes))) => said.bytes = bytes,
            ("tlabSize", Some(Leaf::Integer(bytes))) => said.tlab_bytes = bytes,
            ("samples", Some(Leaf::Integer(samples))) => said.samples = samples,
            _ => {}
        })?;
        let waited = || [1, header.nanos(said.ticks)];
        let (types, values) = match counted {
            Counted::Execution if self.has_wall => (WALL, [self.interval_nanos, 0]),
            Counted::Execution => (CPU, [self.interval_nanos, 0]),
            Counted::Wall => (WALL, [self.wall_interval_nanos.saturating_mul(said.samples.max(1)), 0]),
            Counted::InNewTlab => (IN_NEW_TLAB, [1, said.tlab_bytes]),
            Counted::OutsideTlab => (OUTSIDE_TLAB, [1, said.bytes]),
            Counted::AllocationSample => (ALLOCATION_SAMPLE, [1, said.bytes]),
            Counted::Monitor => (MONITOR, waited()),
            Counted::Park => (PARK, waited()),
        };
        self.add(&said, types, values, constants)
    }

    fn add(
        &mut self,
        said: &Said,
        types: &'static [(&'static str, &'static str)],
        values: [i64; 2],
        constants: &Constants<'_>,
    ) -> Result<(), Fault> {
        let place = self.place_of(types);
        let stack = self.stack(said.stack.unwrap_or(0), constants)?;
        let tid = said.thread.and_then(|thread| constants.threads.get(&thread).copied()).unwrap_or(0);
        let key = Key { stack, types, tid, span: said.span, span_name: said.span_name, context: said.context };
        let at = match self.known.get(&key) {
            Some(at) => *at,
            None => {
                let context = self.context(said.context);
                let span = said.span.and_then(|span| SpanId::from_slice(&span.to_be_bytes())).or(context.span);
                let name = self.snapshot.text(said.span_name).or(context.span_name).map(|name| parts::cut(name, NAME_BYTES_MAX));
                self.stacks.count_name(name.as_ref().map_or(0, String::len))?;
                let at = self.stacks.push(stack, vec![0; place + types.len()])?;
                let sample = &mut self.stacks.profile.samples[at];
                (sample.tid, sample.labels) = (tid, context.set);
                sample.span = SpanLabel { trace_id: None, span_ids: span.into_iter().collect(), name };
                self.known.insert(key, at);
                at
            }
        };
        for (sum, value) in self.stacks.profile.samples[at].values[place..].iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
        Ok(())
    }

    /// What a context says: its labels are walked once, and not for each of its samples.
    fn context(&mut self, number: i64) -> ContextNumbers<'s> {
        if let Some(known) = self.of_context.get(&number) {
            return *known;
        }
        let ContextLabels { span, span_name, others } = self.snapshot.context(number);
        let context = ContextNumbers { span, span_name, set: self.stacks.label_set(others) };
        self.of_context.insert(number, context);
        context
    }

    /// The place of the first of these types.
    fn place_of(&mut self, types: &[(&str, &str)]) -> usize {
        let known = &mut self.stacks.profile.types;
        known.iter().position(|kind| kind.name == types[0].0).unwrap_or_else(|| {
            known.extend(types.iter().map(|(name, unit)| ValueType { name: (*name).to_owned(), unit: (*unit).to_owned() }));
            known.len() - types.len()
        })
    }

    /// The number of a stack.
    fn stack(&mut self, number: i64, constants: &Constants<'_>) -> Result<u32, Fault> {
        if let Some(known) = self.of_stack.get(&number) {
            return Ok(*known);
        }
        let mut locations = Vec::new();
        for frame in constants.stacks.get(&number).into_iter().flatten() {
            locations.push(self.location(*frame, constants)?);
        }
        let stack = self.stacks.stack(locations)?;
        self.of_stack.insert(number, stack);
        Ok(stack)
    }

    fn location(&mut self, frame: JfrFrame, constants: &Constants<'_>) -> Result<LocationId, Fault> {
        if let Some(known) = self.of_frame.get(&frame) {
            return Ok(*known);
        }
        let name = match constants.function(frame.method) {
            name if name.is_empty() => "[unnamed]".to_owned(),
            name => name,
        };
        // Also if it is known: it was put together.
        self.stacks.count_name(name.len())?;
        let line = u32::try_from(frame.line).unwrap_or(0);
        let key = (name.into_boxed_str(), line);
        let location = match self.locations.get(&key) {
            Some(known) => *known,
            None => {
                let location = self.stacks.new_location(key.0.as_bytes(), b"", line)?;
                self.locations.insert(key, location);
                location
            }
        };
        self.of_frame.insert(frame, location);
        Ok(location)
    }

    pub(super) fn finish(self) -> Result<Profile, Fault> {
        let interval = (ValueType { name: "cpu".to_owned(), unit: "nanoseconds".to_owned() }, self.interval_nanos);
        let mut profile = self.stacks.finish()?;
        if profile.types.is_empty() {
            return Err("a recording without samples of code, allocations or locks");
        }
        profile.labels_cut += self.snapshot.left_out;
        profile.period = profile.types.iter().any(|kind| kind.name == "cpu").then_some(interval);
        Ok(profile)
    }
}
