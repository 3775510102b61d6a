//! The compact bytes of runs, losses, resource events and observations inside the write-ahead log. The table of tags is in
//! `docs/formats/recording.md`; `testing.rs` makes all that can stand there, and the tests below read back what is written.
//!
//! A struct is its fields in the order of the table below, an enum the number of its variant and then that one's fields. Each table says
//! both how to write and how to read. What it cannot say is written by hand behind it.

use std::net::SocketAddr;

use longpole_model::process::{CpuSlice, ThreadTotals};
use longpole_model::run::{CaptureMode, Exit, RecorderCost, Run};
use longpole_model::sample::{ContextRecord, JournalEntry, Sample};
use longpole_model::sink::Observation;
use longpole_model::stack::{LocationId, LocationKind, Mapping, MappingId, Runtime, StackId};
use longpole_model::time::{ClockAnchor, Monotonic, Timestamp};
use longpole_model::{
    AbsAddr, Attribute, AttributeValue, Attributes, Futex, IoBytes, Loss, LossKind, ProcessMemory, ProcessUsage, ResourceEvent,
    ResourceStep, RunUsage, SpanId, Text, TraceId, VirtOffset, Wait, WaitKind,
};

use crate::encoding::{Decoded, Decoder, Malformed, put_bytes, put_i64, put_u32, put_u64};

/// What has bytes in the log.
pub(super) trait Encoded: Sized {
    /// Appends the bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads them again.
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self>;
}

/// The bytes of one value.
pub(super) fn encoded(value: &impl Encoded) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

/// The value whose bytes these are, all of them.
pub(super) fn decode<T: Encoded>(bytes: &[u8]) -> Decoded<T> {
    let mut decoder = Decoder::new(bytes);
    let value = T::read(&mut decoder)?;
    if decoder.is_empty() { Ok(value) } else { decoder.malformed("the end") }
}

/// The values whose bytes these are, one behind the other.
pub(super) fn decode_all<T: Encoded>(bytes: &[u8]) -> Decoded<Vec<T>> {
    let mut decoder = Decoder::new(bytes);
    let mut values = Vec::new();
    while !decoder.is_empty() {
        values.push(T::read(&mut decoder)?);
    }
    Ok(values)
}

/// A struct is its fields, in this order. Those behind the bar have no bytes.
macro_rules! fields {
    ($type:ident { $($field:ident),+ $(| $absent:ident: $value:expr)? }) => {
        impl Encoded for $type {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            #[inline]
            fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
                $(let $field = Encoded::read(decoder)?;)+
                Ok($type { $($field,)+ $($absent: $value)? })
            }
        }
    };
}

/// An enum is a number for its variant, then the variant's fields in this order.
macro_rules! variants {
    (
        $type:ident, $expected:literal {
            $($number:literal => $variant:ident $({ $($field:ident),+ })? $(($inner:ident))?,)+
        }
        $(by hand, put($out:ident) { $($put:tt)* } read($decoder:ident) { $($read:tt)* })?
    ) => {
        impl Encoded for $type {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                $(let $out = &mut *out;)?
                match self {
                    $($type::$variant $({ $($field),+ })? $(($inner))? => {
                        out.push($number);
                        $($($field.put(out);)+)?
                        $($inner.put(out);)?
                    })+
                    $($($put)*)?
                }
            }

            #[inline]
            fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
                let number = decoder.u8($expected)?;
                $(let $decoder = &mut *decoder;)?
                Ok(match number {
                    $($number => {
                        $($(let $field = Encoded::read(decoder)?;)+)?
                        $(let $inner = Encoded::read(decoder)?;)?
                        $type::$variant $({ $($field),+ })? $(($inner))?
                    })+
                    $($($read)*)?
                    _ => return decoder.malformed($expected),
                })
            }
        }
    };
}

/// A wrapper has the bytes of what it wraps.
macro_rules! wrappers {
    ($($type:ident),+) => {$(
        impl Encoded for $type {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            #[inline]
            fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
                Encoded::read(decoder).map($type)
            }
        }
    )+};
}

/// Each of a fixed set is its word.
macro_rules! words {
    ($($type:ident, $expected:literal;)+) => {$(
        impl Encoded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put_bytes(out, self.as_str().as_bytes());
            }

            fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
                let start = decoder.offset();
                $type::from_code(&decoder.text()?).ok_or(Malformed { offset: start, expected: $expected })
            }
        }
    )+};
}

wrappers!(MappingId, LocationId, StackId, Monotonic, AbsAddr, VirtOffset, Timestamp, Attributes);

words! {
    LossKind, "a known kind of loss";
    Runtime, "a known runtime";
    WaitKind, "a known kind of wait";
}

fields!(Run {
    command, working_directory, host, cpus, version, trace_id, root_span_id, root_pid, start, end, exit, rate_hz, mode, cpu_nanos,
    recorder_cost
    // It comes with the end.
    | usage: None
});

variants! {
    CaptureMode, "a known mode" {
        1 => Off,
        2 => Refused { reason },
        3 => Perf,
        5 => Imported,
    }
    by hand, put(out) {
        CaptureMode::User { why_not_kernel } if why_not_kernel.is_empty() => out.push(0),
        CaptureMode::User { why_not_kernel } => {
            out.push(4);
            why_not_kernel.put(out);
        }
    }
    read(decoder) {
        0 => CaptureMode::User { why_not_kernel: String::new() },
        4 => CaptureMode::User { why_not_kernel: Encoded::read(decoder)? },
    }
}

variants!(Exit, "a known kind of exit" { 0 => Code(number), 1 => Signal(number), });

fields!(RecorderCost { cpu_nanos, rss_bytes_max });

fields!(Loss { kind, count, detail });

fields!(ResourceEvent { time, step, op, urn, resource_type, dependencies, parent, provider });

variants!(ResourceStep, "a known step" { 0 => Pre, 1 => Outputs, 2 => Failed, });

variants! {
    Observation, "a known kind of observation" {
        1 => Clock(anchor),
        2 => Mapping(mapping),
        3 => Location { id, kind },
        4 => Stack { id, locations },
        5 => Sample(sample),
        6 => CpuSlice(slice),
        7 => ProcessStarted { pid, time, parent_pid },
        8 => ProcessExec { pid, time, name, executable, arguments },
        9 => ProcessExited { pid, time },
        10 => ThreadStarted { pid, tid, time },
        11 => ThreadNamed { pid, tid, name },
        12 => ThreadExited { pid, tid, time },
        13 => Loss(loss),
        14 => RunStarted { pid, start, mode },
        15 => RunEnded { end, exit, cpu_nanos },
        16 => RecorderCost(cost),
        18 => Named { id, runtime, address, function, file, line },
        19 => RunLeft { end },
        20 => ProcessUsage(usage),
        21 => ProcessStatus { pid, time, exit },
        22 => RunUsage(usage),
        23 => ThreadTotals { pid, tid, totals },
        25 => ProcessListens { pid, address },
        26 => Replaced { id, since, by },
        27 => ProcessResource { pid, time, attributes },
        28 => ThreadIdent { pid, tid, ident },
        30 => Slept { time, nanos },
    }
    by hand, put(out) {
        Observation::Wait(wait) => {
            out.push(if wait.futex.is_some() { 29 } else { 17 });
            put_wait(out, wait);
        }
        Observation::Journal { pid, tid, follows, entries, until } => {
            out.push(24);
            pid.put(out);
            tid.put(out);
            follows.put(out);
            until.put(out);
            put_journal(out, *until, entries);
        }
    }
    read(decoder) {
        17 => Observation::Wait(read_wait(decoder)?),
        24 => {
            let (pid, tid) = (u32::read(decoder)?, u32::read(decoder)?);
            let (follows, until) = (bool::read(decoder)?, Monotonic::read(decoder)?);
            Observation::Journal { pid, tid, follows, entries: read_journal(decoder, until)?, until }
        }
        29 => {
            let wait = read_wait(decoder)?;
            Observation::Wait(Wait { futex: Some(Encoded::read(decoder)?), ..wait })
        }
    }
}

fields!(ClockAnchor { monotonic, unix, bracket_nanos });

fields!(Mapping { id, path, build_id });

variants! {
    LocationKind, "a known kind of location" {
        0 => Code { mapping, address },
        1 => Unmapped { address },
        2 => Cut { reason },
        3 => Named { runtime, address },
    }
}

fields!(Sample { pid, tid, time, cpu, stack, weight_nanos, context });

variants!(ContextRecord, "a known kind of context record" { 0 => Absent, 1 => NoSpan, 2 => Torn, 3 => Span { trace_id, span_id }, });

fields!(ThreadTotals { on_cpu_nanos, ready_nanos });

fields!(ProcessUsage { pid, time, memory, cpu_nanos, minor_faults, major_faults, io });

fields!(ProcessMemory { resident_bytes, peak_resident_bytes });

fields!(IoBytes { read, written, storage_read, storage_written });

fields!(RunUsage { peak_resident_bytes, minor_faults, major_faults });

fields!(Futex { address, holder });

fields!(Attribute { key, value });

variants! {
    AttributeValue, "a kind of value" {
        0 => Empty,
        1 => Str(text),
        2 => Bool(truth),
        3 => Int(number),
        4 => Double(number),
    }
    by hand, put(out) {
        // They have no bytes, and stand for nothing set.
        AttributeValue::Bytes(_) | AttributeValue::Array(_) | AttributeValue::KeyValues(_) => out.push(0),
    }
    read(_decoder) {}
}

impl Encoded for CpuSlice {
    fn put(&self, out: &mut Vec<u8>) {
        self.pid.put(out);
        self.tid.put(out);
        put_range(out, self.start, self.end);
        self.preempted.put(out);
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        let (pid, tid) = (u32::read(decoder)?, u32::read(decoder)?);
        let (start, end) = read_range(decoder)?;
        Ok(CpuSlice { pid, tid, start, end, preempted: Encoded::read(decoder)? })
    }
}

/// The start and the length, which is shorter than the end. It wraps where the end lies before the start, and so keeps that too.
fn put_range(out: &mut Vec<u8>, start: Monotonic, end: Monotonic) {
    put_u64(out, start.0);
    put_u64(out, end.0.wrapping_sub(start.0));
}

fn read_range(decoder: &mut Decoder<'_>) -> Decoded<(Monotonic, Monotonic)> {
    let start = decoder.u64()?;
    Ok((Monotonic(start), Monotonic(start.wrapping_add(decoder.u64()?))))
}

fn put_wait(out: &mut Vec<u8>, wait: &Wait) {
    wait.pid.put(out);
    wait.tid.put(out);
    put_range(out, wait.start, wait.end);
    wait.kind.put(out);
    wait.syscall.put(out);
    wait.stack.put(out);
    wait.context.put(out);
    if let Some(futex) = wait.futex {
        futex.put(out);
    }
}

/// A wait without its futex, which follows where the number says so.
fn read_wait(decoder: &mut Decoder<'_>) -> Decoded<Wait> {
    let (pid, tid) = (u32::read(decoder)?, u32::read(decoder)?);
    let (start, end) = read_range(decoder)?;
    let (kind, syscall) = (Encoded::read(decoder)?, Encoded::read(decoder)?);
    let (stack, context) = (Encoded::read(decoder)?, Encoded::read(decoder)?);
    Ok(Wait { pid, tid, start, end, kind, syscall, stack, context, futex: None })
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

fn read_journal(decoder: &mut Decoder<'_>, until: Monotonic) -> Decoded<Vec<JournalEntry>> {
    let (mut before, mut trace) = (None, None);
    decoder.list(|it| {
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
    })
}

impl Encoded for u32 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_u32(out, *self);
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.u32()
    }
}

impl Encoded for u64 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, *self);
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.u64()
    }
}

impl Encoded for i64 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_i64(out, *self);
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.i64()
    }
}

impl Encoded for i32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_i64(out, i64::from(*self));
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        let start = decoder.offset();
        decoder.i64()?.try_into().map_err(|_| Malformed { offset: start, expected: "a number of 32 bits" })
    }
}

/// Its bits.
impl Encoded for f64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.to_bits());
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.u64().map(f64::from_bits)
    }
}

impl Encoded for bool {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.bool()
    }
}

impl Encoded for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.as_bytes());
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.text()
    }
}

impl Encoded for Text {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.as_bytes());
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.text().map(Text::from)
    }
}

/// Its text.
impl Encoded for SocketAddr {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_string().put(out);
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        let start = decoder.offset();
        decoder.text()?.parse().map_err(|_| Malformed { offset: start, expected: "an address" })
    }
}

impl Encoded for Vec<u8> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(out, self);
    }

    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.bytes().map(<[u8]>::to_vec)
    }
}

impl<T: Encoded> Encoded for Vec<T> {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.len() as u64);
        self.iter().for_each(|element| element.put(out));
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.list(T::read)
    }
}

/// A byte that says whether there is a value, then the value.
impl<T: Encoded> Encoded for Option<T> {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        if decoder.bool()? { T::read(decoder).map(Some) } else { Ok(None) }
    }
}

impl Encoded for TraceId {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.trace_id()
    }
}

impl Encoded for SpanId {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    #[inline]
    fn read(decoder: &mut Decoder<'_>) -> Decoded<Self> {
        decoder.span_id()
    }
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
                observation.put(&mut bytes);
            }
            prop_assert_eq!(decode_all::<Observation>(&bytes), Ok(sent));
        }

        #[test]
        fn a_run_and_a_loss_decode_to_what_was_encoded(sent in testing::run(), lost in testing::loss()) {
            prop_assert_eq!(decode::<Run>(&encoded(&sent)), Ok(Run { usage: None, ..sent }));
            prop_assert_eq!(decode::<Loss>(&encoded(&lost)), Ok(lost));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (decode_all::<Observation>(&bytes), decode::<Run>(&bytes), decode::<Loss>(&bytes));
        }

        #[test]
        fn damaged_batches_are_decoded_or_refused(
            sent in prop::collection::vec(testing::observation(), 1..10),
            at in any::<prop::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            for observation in &sent {
                observation.put(&mut bytes);
            }
            let at = at.index(bytes.len());
            bytes[at] = value;
            let _ = decode_all::<Observation>(&bytes);
            let _ = decode_all::<Observation>(&bytes[..at]);
        }
    }

    #[test]
    fn a_length_beyond_the_input_is_refused_before_anything_is_reserved() {
        let mut bytes = vec![4, 0];
        put_u64(&mut bytes, u64::MAX);
        let expected = "as many elements as the length says";
        assert_eq!(decode_all::<Observation>(&bytes), Err(Malformed { offset: bytes.len(), expected }));
    }
}
