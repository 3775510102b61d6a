//! What of a recording its answer depends on.

use longpole_model::{Attributes, Recording, Span};

use crate::pulumi::opentracing_bridge;
use crate::tree::emitters::Emitters;
use crate::tree::span_list::SpanList;

/// Whether an outline of spans ([`SpanOutline`](longpole_model::SpanOutline)) is enough to find their answer: one span of each
/// emitter tells. It is not where attributes say who is whose twin and who waited for whom: of Pulumi's spans, and of those that
/// came by legacy tracing.
pub fn is_enough<'a>(spans: impl Iterator<Item = &'a Span>) -> bool {
    !opentracing_bridge::concerns(spans)
}

/// Leaves out what [`Report`](crate::Report) finds no pole, no path and no reason in: the attributes of spans, their events and
/// links. For who has kept the recording and wants to know its answer in less memory; what attributes say of a single span, only
/// the whole recording tells.
///
/// Where they may be needed ([`is_enough`]) nothing is left out.
pub fn reduce(recording: &mut Recording) {
    let spans = SpanList::Whole(&recording.spans);
    if !is_enough(Emitters::of(spans).examples(spans)) {
        return;
    }
    for span in &mut recording.spans {
        span.attributes = Attributes::default();
        span.events.iter_mut().for_each(|event| event.attributes = Attributes::default());
        span.links.iter_mut().for_each(|link| link.attributes = Attributes::default());
    }
}
