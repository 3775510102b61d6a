//! The ids of a span as they travel: W3C Trace Context's `traceparent`, read strictly, written in version 00.

use std::cell::Cell;
use std::fmt;

/// Length of a version 00 `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`.
const TRACEPARENT_LEN: usize = 55;

/// The W3C trace flag "sampled".
pub(crate) const SAMPLED: u8 = 1;

/// The ids of a span and its trace, and W3C's flags. Both ids are non-zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
    pub(crate) flags: u8,
}

impl SpanContext {
    /// Whether the span is recorded by whoever owns it.
    pub(crate) fn sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The context as a `traceparent`.
    pub(crate) fn to_traceparent(self) -> String {
        let mut text = String::with_capacity(TRACEPARENT_LEN);
        text.push_str("00-");
        push_hex(&mut text, &self.trace_id);
        text.push('-');
        push_hex(&mut text, &self.span_id);
        text.push('-');
        push_hex(&mut text, &[self.flags]);
        text
    }

    /// Trace and span id in hex, as logs have them.
    pub(crate) fn hex_ids(&self) -> (String, String) {
        let (mut trace_id, mut span_id) = (String::with_capacity(32), String::with_capacity(16));
        push_hex(&mut trace_id, &self.trace_id);
        push_hex(&mut span_id, &self.span_id);
        (trace_id, span_id)
    }

    /// Reads a `traceparent`. A version that is not known is read as far as version 00 goes, as W3C asks.
    pub(crate) fn from_traceparent(text: &str) -> Result<Self, TraceparentError> {
        let bytes = text.trim_ascii().as_bytes();
        if bytes.len() < TRACEPARENT_LEN {
            return Err(TraceparentError::Malformed);
        }
        let [version] = parse_hex::<1>(&bytes[..2])?;
        let tail_allowed = version != 0 && bytes.get(TRACEPARENT_LEN) == Some(&b'-');
        if version == 0xff || (bytes.len() > TRACEPARENT_LEN && !tail_allowed) {
            return Err(TraceparentError::Malformed);
        }
        if bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
            return Err(TraceparentError::Malformed);
        }
        let trace_id = parse_hex::<16>(&bytes[3..35])?;
        let span_id = parse_hex::<8>(&bytes[36..52])?;
        let [flags] = parse_hex::<1>(&bytes[53..55])?;
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(TraceparentError::Malformed);
        }
        Ok(Self { trace_id, span_id, flags })
    }
}

/// A context as the context record holds it: words of the host's order, the last one `valid`, flags and zeros. Words, because
/// bytes that are written one by one and read back together make the processor wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextWords {
    pub(crate) trace_id: [u64; 2],
    pub(crate) span_id: u64,
    pub(crate) tail: u64,
}

impl ContextWords {
    /// No span.
    pub(crate) const NONE: Self = Self { trace_id: [0; 2], span_id: 0, tail: 0 };

    /// `valid` where the ids mean something.
    const VALID: u8 = 1;

    /// Set in the last byte of the tail where the span is another process's. The record does not have it.
    const REMOTE: u8 = 1;

    #[inline]
    pub(crate) fn new(context: &SpanContext) -> Self {
        let half = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&context.trace_id[from..from + 8]);
            u64::from_ne_bytes(bytes)
        };
        Self {
            trace_id: [half(0), half(8)],
            span_id: u64::from_ne_bytes(context.span_id),
            tail: u64::from_ne_bytes([Self::VALID, context.flags, 0, 0, 0, 0, 0, 0]),
        }
    }

    /// The same, of a span of another process that is current here.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn remote(self) -> Self {
        Self { tail: self.tail | u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, Self::REMOTE]), ..self }
    }

    /// The tail as the record has it.
    #[inline]
    pub(crate) fn record_tail(self) -> u64 {
        self.tail & u64::from_ne_bytes([0xff, 0xff, 0, 0, 0, 0, 0, 0])
    }

    /// Whether there is a span, and this process does not send it when it ends.
    #[inline]
    pub(crate) fn is_unsent(self) -> bool {
        let sampled = u64::from_ne_bytes([Self::VALID, SAMPLED, 0, 0, 0, 0, 0, Self::REMOTE]);
        let sent = u64::from_ne_bytes([Self::VALID, SAMPLED, 0, 0, 0, 0, 0, 0]);
        self.tail & sampled != sent && self.tail != 0
    }

    /// The context; `None` where there is no span.
    pub(crate) fn context(self) -> Option<SpanContext> {
        let [valid, flags, ..] = self.tail.to_ne_bytes();
        let mut trace_id = [0; 16];
        trace_id[..8].copy_from_slice(&self.trace_id[0].to_ne_bytes());
        trace_id[8..].copy_from_slice(&self.trace_id[1].to_ne_bytes());
        (valid == Self::VALID).then(|| SpanContext { trace_id, span_id: self.span_id.to_ne_bytes(), flags })
    }
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Lower-case digits only, as W3C has it; the caller gives `2 * N` bytes.
fn parse_hex<const N: usize>(digits: &[u8]) -> Result<[u8; N], TraceparentError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(TraceparentError::Malformed),
    };
    let mut out = [0; N];
    for (slot, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *slot = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(out)
}

/// Why a `traceparent` was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceparentError {
    /// The text is no `traceparent`: `00-<32 lower-case hex>-<16 lower-case hex>-<2 lower-case hex>`, ids not zero.
    Malformed,
    /// The span has children already; they would stay behind in another trace.
    TooLate,
}

impl fmt::Display for TraceparentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TraceparentError::Malformed => "not a traceparent of the form 00-<32 hex>-<16 hex>-<2 hex> with ids that are not zero",
            TraceparentError::TooLate => "the span has children, which would stay behind in another trace",
        })
    }
}

impl std::error::Error for TraceparentError {}

thread_local! {
    /// State of this thread's generator (xoshiro256++); all zero = not seeded yet.
    static GENERATOR: Cell<[u64; 4]> = const { Cell::new([0; 4]) };
}

/// Sixty-four random bits out of a generator per thread, seeded by the system: one system call per thread instead of one
/// per span. Ids need to be unique, not secret.
fn random_u64() -> u64 {
    GENERATOR
        .try_with(|generator| {
            let mut s = generator.get();
            if s == [0; 4] {
                s = seed();
            }
            let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
            let t = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= t;
            s[3] = s[3].rotate_left(45);
            generator.set(s);
            out
        })
        // A span that is made while the thread tears its local storage down.
        .unwrap_or_else(|_| seed()[0])
}

/// Four words from the system, or, where it has none to give (a sandbox without the call), from std's hasher keys.
fn seed() -> [u64; 4] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut words = [0; 4];
    for word in &mut words {
        *word = getrandom::u64().unwrap_or_else(|_| RandomState::new().build_hasher().finish());
    }
    // All zero would read as "not seeded" and is the one state this generator cannot leave.
    words[0] |= u64::from(words == [0; 4]);
    words
}

/// Makes this thread draw a fresh seed: a forked child must not repeat its parent's ids.
pub(crate) fn forget_seed() {
    let _ = GENERATOR.try_with(|generator| generator.set([0; 4]));
}

/// A new trace id.
pub(crate) fn new_trace_id() -> [u8; 16] {
    loop {
        let id = (u128::from(random_u64()) << 64 | u128::from(random_u64())).to_be_bytes();
        if id != [0; 16] {
            return id;
        }
    }
}

/// A new span id.
pub(crate) fn new_span_id() -> [u8; 8] {
    loop {
        let id = random_u64();
        if id != 0 {
            return id.to_be_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W3C: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_prints_what_it_parsed() {
        let context = SpanContext::from_traceparent(W3C).unwrap();
        assert!(context.sampled());
        assert_eq!(context.to_traceparent(), W3C);
        assert_eq!(ContextWords::new(&context).context(), Some(context));
        assert_eq!(ContextWords::NONE.context(), None);
    }

    #[test]
    fn later_versions_may_be_longer_and_this_one_may_not() {
        let later = W3C.replacen("00", "cc", 1);
        assert_eq!(SpanContext::from_traceparent(&format!("{later}-what-the-future-holds")).unwrap().to_traceparent(), W3C);
        assert_eq!(SpanContext::from_traceparent(&later).unwrap().to_traceparent(), W3C);
        for wrong in [
            String::new(),
            "00".into(),
            W3C[..54].into(),
            format!("{W3C}-more"),
            format!("{later}more"),
            W3C.replacen("00", "ff", 1),
            W3C.to_uppercase(),
            W3C.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01".into(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01".into(),
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01".into(),
        ] {
            assert_eq!(SpanContext::from_traceparent(&wrong), Err(TraceparentError::Malformed), "{wrong}");
        }
    }

    #[test]
    fn ids_differ_within_a_thread_between_threads_and_after_a_new_seed() {
        let mut seen = std::collections::HashSet::new();
        let draw = || (0..100).map(|_| new_span_id()).collect::<Vec<_>>();
        seen.extend(draw());
        forget_seed();
        seen.extend(draw());
        seen.extend(std::thread::spawn(draw).join().unwrap());
        assert_eq!(seen.len(), 300);
    }
}
