//! Two walks over a request in thrift or protobuf: the first checks it, the second gives its spans to the sink.
//!
//! The process of a batch may stand behind its spans, and a span of one byte takes 256 bytes in memory. So no walk keeps the spans; one of
//! them is in memory at a time.

use longpole_model::sink::SpanSink;

use super::raw::{RawProcess, RawSpan};
use crate::convert::{Deliver, Losses};
use crate::error::DecodeError;

/// Takes each span that a walk reads.
pub(super) type SpanVisitor<'v> = dyn FnMut(RawSpan<'_>, &mut Losses) + 'v;

/// Gives the spans of a request to the sink, or nothing if it is not well formed. A walk reads the whole request; it returns the process of
/// its batch, and more.
pub(super) fn deliver<'a, T>(
    sink: &mut dyn SpanSink,
    walk: impl Fn(&mut Losses, &mut SpanVisitor<'_>) -> Result<(Option<RawProcess<'a>>, T), DecodeError>,
) -> Result<T, DecodeError> {
    // The second walk meets the same losses and counts them.
    let (process, more) = walk(&mut Losses::default(), &mut |_, _| {})?;
    let mut losses = Losses::default();
    let resource = process.map(|process| process.into_resource(&mut losses));
    let mut deliver = Deliver::default();
    walk(&mut losses, &mut |span, losses| {
        if let Some(span) = span.build(resource.as_ref(), losses) {
            deliver.span(&span, sink);
        }
    })?;
    losses.report(sink);
    Ok(more)
}
