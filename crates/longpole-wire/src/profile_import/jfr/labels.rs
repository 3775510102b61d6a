//! `LabelsSnapshot`, which Pyroscope's Java agent sends beside a recording: labels of the contexts that events name.
//!
//! ```text
//! LabelsSnapshot { contexts 1: number → Context, strings 2: number → text }     Context { labels 1: number of a name → number of a value }
//! event            contextId 3, spanId 0xab, spanName 5
//! ```
//!
//! Field numbers are those of `agent/jfr_labels.proto` in pyroscope-java. An entry of a map is a message of key (1) and value (2).

use std::collections::HashMap;

use longpole_model::SpanId;

use crate::error::DecodeError;
use crate::limits::LABELS_MAX;
use crate::profile_import::labels::RawLabel;
use crate::profile_import::parts::two_numbers;
use crate::protobuf::{self, MessageCount, Reader, each, message, number};

/// Labels by context. Numbers that stand for nothing name no label.
#[derive(Debug, Default)]
pub(super) struct Snapshot<'a> {
    contexts: HashMap<u64, Vec<(u64, u64)>>,
    texts: HashMap<u64, &'a [u8]>,
    /// Labels that are more than a context may have.
    pub(super) left_out: u64,
}

/// The labels of a context: those of the span apart from the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ContextLabels<'a> {
    pub(super) span: Option<SpanId>,
    pub(super) span_name: Option<&'a [u8]>,
    pub(super) others: Vec<RawLabel<'a>>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Snapshot<'a>, DecodeError> {
        let (mut snapshot, mut count) = (Snapshot::default(), MessageCount::of(bytes.len()));
        each(Reader::new(bytes).named("LabelsSnapshot"), |reader, it| {
            count.add(reader, it.offset)?;
            match it.number {
                1 => {
                    let (mut key, mut labels) = (0, Vec::new());
                    each(message(reader, it, "contexts")?, |reader, it| match it.number {
                        1 => number(reader, it).map(|number| key = number),
                        2 => each(message(reader, it, "Context")?, |reader, it| {
                            count.add(reader, it.offset)?;
                            match it.number {
                                // Twice as many: labels of the span are no labels of the sample, and may come first.
                                1 if labels.len() < 2 * LABELS_MAX => labels.push(two_numbers(message(reader, it, "labels")?)?),
                                1 => snapshot.left_out += 1,
                                _ => {}
                            }
                            Ok(())
                        }),
                        _ => Ok(()),
                    })?;
                    snapshot.contexts.insert(key, labels);
                }
                2 => {
                    let (mut key, mut text) = (0, &[][..]);
                    each(message(reader, it, "strings")?, |reader, it| {
                        match it.number {
                            1 => key = number(reader, it)?,
                            2 => text = protobuf::bytes(reader, it)?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    snapshot.texts.insert(key, text);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(snapshot)
    }

    /// The text of this number.
    pub(super) fn text(&self, number: i64) -> Option<&'a [u8]> {
        self.texts.get(&number.cast_unsigned()).copied().filter(|text| !text.is_empty())
    }

    /// The labels of a context; none of one that is not there.
    pub(super) fn context(&self, number: i64) -> ContextLabels<'a> {
        let mut labels = ContextLabels::default();
        for (name, value) in self.contexts.get(&number.cast_unsigned()).into_iter().flatten() {
            let (Some(name), Some(value)) = (self.texts.get(name), self.texts.get(value)) else { continue };
            match *name {
                b"span_id" | b"profile_id" => labels.span = span_id(value),
                b"span_name" => labels.span_name = Some(*value).filter(|name| !name.is_empty()),
                _ => labels.others.push((*name, *value)),
            }
        }
        labels
    }
}

/// The span of an id in hex. A longer text is not walked: millions of labels may have it.
fn span_id(digits: &[u8]) -> Option<SpanId> {
    if digits.len() == 2 * SpanId::BYTES { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile_import::jfr::tests::snapshot;

    #[test]
    fn a_context_has_labels() {
        let bytes = snapshot(&[(3, &[("endpoint", "/cart"), ("span_name", "GET"), ("profile_id", "00000000000000ab")])]);
        let read = Snapshot::read(&bytes).unwrap();
        let expected =
            ContextLabels { span: "00000000000000ab".parse().ok(), span_name: Some(b"GET"), others: vec![(b"endpoint", b"/cart")] };
        assert_eq!((read.context(3), read.context(4)), (expected, ContextLabels::default()));
        let of_other_lengths = snapshot(&[(3, &[("span_id", "ab")]), (4, &[("span_id", "00000000000000abcd")])]);
        let read = Snapshot::read(&of_other_lengths).unwrap();
        assert_eq!((read.context(3).span, read.context(4).span), (None, None));
        assert!(Snapshot::read(&bytes[..bytes.len() - 1]).is_err());
        assert!(Snapshot::read(&[0x0a, 0].repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_snapshot_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(read) = Snapshot::read(&bytes) {
                let _ = (read.context(0), read.text(0));
            }
        }
    }
}
