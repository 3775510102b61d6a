//! What could not be kept on the way in, and what a format cannot hold on the way out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use longpole_model::loss::{Loss, LossKind};
use longpole_model::sink::SpanSink;

use super::Building;
use crate::emitter::CUT;

/// The detail of the loss for times out of range, in any format.
pub(crate) const TIMES_MOVED: &str = "times before 1970 or after 2262, moved to the nearest that a recording can hold";

const ENDS_MISSING: &str = "they are shown up to the last time known of them or of their children, and may have taken longer";

/// What of a good document could not be kept.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) spans: u64,
    pub(crate) references: u64,
    pub(crate) texts: u64,
    pub(crate) times: u64,
    pub(crate) unfinished: u64,
    pub(crate) cut: u64,
}

impl Losses {
    /// Counts what a span says of its own times.
    pub(crate) fn times_of(&mut self, span: &Building) {
        self.times += span.moved;
        self.unfinished += u64::from(span.is_unfinished());
    }

    /// Bytes as a text. What is not UTF-8 is replaced, and counted.
    pub(crate) fn text<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.texts += 1;
                String::from_utf8_lossy(bytes)
            }
        }
    }

    pub(crate) fn report(self, sink: &mut dyn SpanSink) {
        let losses = [
            (LossKind::SpansInvalid, self.spans, "spans without a valid trace or span id"),
            (LossKind::ReferencesInvalid, self.references, "parents or links that are not a valid trace and span id"),
            (LossKind::TextReplaced, self.texts, "strings that are not UTF-8"),
            (LossKind::AttributesCut, self.cut, CUT),
            (LossKind::FormatCannotHold, self.times, TIMES_MOVED),
            (LossKind::SpansUnfinished, self.unfinished, ENDS_MISSING),
        ];
        for (kind, count, detail) in losses {
            if count > 0 {
                sink.loss(Loss::new(kind, count, detail));
            }
        }
    }
}

/// What an export could not say, by reason.
#[derive(Debug)]
pub(crate) struct CannotHold {
    reasons: BTreeMap<&'static str, u64>,
    /// What resources that are long may still take.
    pub(super) long_resources_left: usize,
}

impl Default for CannotHold {
    fn default() -> Self {
        CannotHold { reasons: BTreeMap::new(), long_resources_left: LONG_RESOURCES_BYTES_MAX }
    }
}

impl CannotHold {
    /// One more, where it is so.
    pub(crate) fn count(&mut self, is_so: bool, reason: &'static str) {
        if is_so {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    pub(crate) fn into_losses(self) -> Vec<Loss> {
        self.reasons.into_iter().map(|(reason, count)| Loss::new(LossKind::FormatCannotHold, count, reason)).collect()
    }
}

/// Bytes of longer resources in one file or request of such a format: 6,500 spans of a Java program with a class path of 10 KB.
const LONG_RESOURCES_BYTES_MAX: usize = 64 << 20;

/// Why a value comes back as another type.
pub(crate) const TYPES: &str = "types of values that are not strings";

/// Why an attribute comes back as something else.
pub(crate) const NAMES: &str = "attributes whose name means something else in this format";

/// Why a time comes back rounded down.
pub(crate) const NANOS: &str = "the part of timestamps below a microsecond";

/// Why a time does not come back.
pub(crate) const BEFORE_1970: &str = "times before 1970";
