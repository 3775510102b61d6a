//! The W3C `traceparent` header: how a trace is carried between processes.
//!
//! ```text
//! 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//! version  trace id                   parent's span id  flags
//! ```

use std::fmt;
use std::str::FromStr;

use longpole_model::id::{SpanId, TraceId};

/// Flag: the trace is recorded.
pub const FLAG_SAMPLED: u8 = 0x01;
/// Flag: the trace id's last seven bytes are random.
pub const FLAG_RANDOM: u8 = 0x02;

/// The flags we know. Others must not be handed on, whatever version sent them.
const FLAGS_KNOWN: u8 = FLAG_SAMPLED | FLAG_RANDOM;

/// Length of the header in version 00, and of the part that later versions share with it.
const LENGTH: usize = 55;

/// What the header says. It prints as version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: TraceId,
    /// The span that is to be the parent.
    pub span_id: SpanId,
    /// [`FLAG_SAMPLED`] and [`FLAG_RANDOM`]; other bits are left out when it is parsed and when it is printed.
    pub flags: u8,
}

/// Why a text is not a `traceparent`. The specification wants the header to be ignored then, and a new trace started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TraceParentError {
    /// Too short, or too long for its version.
    #[error("{found} characters, where version 00 has {LENGTH}")]
    Length {
        /// Bytes of the text.
        found: usize,
    },
    /// A `-` is missing, or a digit is not one of 0-9 a-f.
    #[error("not a traceparent at offset {offset}")]
    Syntax {
        /// Offset of the byte.
        offset: usize,
    },
    /// Version ff, which is reserved.
    #[error("version ff does not exist")]
    Version,
    /// The trace id or the span id is zero.
    #[error("the {name} is zero")]
    Zero {
        /// Which.
        name: &'static str,
    },
}

/// The bytes that lower-case hex digits from this offset spell. Upper case is not allowed in this header.
fn hex<const N: usize>(text: &[u8], offset: usize) -> Result<[u8; N], TraceParentError> {
    let mut bytes = [0; N];
    for i in 0..2 * N {
        let digit = match text.get(offset + i) {
            Some(digit @ b'0'..=b'9') => digit - b'0',
            Some(letter @ b'a'..=b'f') => letter - b'a' + 10,
            _ => return Err(TraceParentError::Syntax { offset: offset + i }),
        };
        bytes[i / 2] = bytes[i / 2] << 4 | digit;
    }
    Ok(bytes)
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    /// Strict for version 00. A later version may be longer, behind another `-`, and is read as far as it is known.
    fn from_str(text: &str) -> Result<Self, TraceParentError> {
        let text = text.as_bytes();
        if text.len() < LENGTH {
            return Err(TraceParentError::Length { found: text.len() });
        }
        let [version] = hex(text, 0)?;
        match version {
            0xff => return Err(TraceParentError::Version),
            0 if text.len() > LENGTH => return Err(TraceParentError::Length { found: text.len() }),
            _ => {}
        }
        for offset in [2, 35, 52, LENGTH] {
            if text.get(offset).is_some_and(|byte| *byte != b'-') {
                return Err(TraceParentError::Syntax { offset });
            }
        }
        let trace_id = TraceId::new(hex(text, 3)?).ok_or(TraceParentError::Zero { name: "trace id" })?;
        let span_id = SpanId::new(hex(text, 36)?).ok_or(TraceParentError::Zero { name: "span id" })?;
        let [flags] = hex(text, 53)?;
        Ok(TraceParent { trace_id, span_id, flags: flags & FLAGS_KNOWN })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags & FLAGS_KNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_prints_as_it_was_read() {
        let header: TraceParent = TEXT.parse().unwrap();
        assert_eq!(header.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(header.span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(header.flags, FLAG_SAMPLED);
        assert_eq!(header.to_string(), TEXT);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = TEXT.replacen("00", "cc", 1).replace("-01", "-ff");
        for text in [later.clone(), format!("{later}-what-the-future-brings"), format!("{later}-")] {
            assert_eq!(text.parse::<TraceParent>().unwrap().to_string(), TEXT.replace("-01", "-03"), "{text}");
        }
        assert_eq!(format!("{later}.x").parse::<TraceParent>(), Err(TraceParentError::Syntax { offset: 55 }));
    }

    #[test]
    fn what_is_no_header_says_why() {
        let check = |text: &str, error| assert_eq!(text.parse::<TraceParent>(), Err(error), "{text}");
        check("", TraceParentError::Length { found: 0 });
        check(&TEXT[..54], TraceParentError::Length { found: 54 });
        check(&format!("{TEXT}-00"), TraceParentError::Length { found: 58 });
        check(&TEXT.replacen("00", "ff", 1), TraceParentError::Version);
        check(&TEXT.to_uppercase(), TraceParentError::Syntax { offset: 4 });
        check(&TEXT.replace('-', "_"), TraceParentError::Syntax { offset: 2 });
        check(&format!(" {}", &TEXT[..54]), TraceParentError::Syntax { offset: 0 });
        check(&format!("{}\u{e9}", &TEXT[..53]), TraceParentError::Syntax { offset: 53 });
        check(&TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)), TraceParentError::Zero { name: "trace id" });
        check(&TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)), TraceParentError::Zero { name: "span id" });
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_and_printed_reads_the_same(text in "(00|0[1-9a-f]|[0-9a-f]{2})-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,9})?") {
            if let Ok(header) = text.parse::<TraceParent>() {
                proptest::prop_assert_eq!(header.to_string().parse(), Ok(header));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let _ = text.parse::<TraceParent>();
        }
    }
}
