//! What of a recording its answer depends on.

use longpole_model::{Attributes, Recording};

use crate::bridge;
use crate::emitters::Emitters;

/// Leaves out what [`Report`](crate::Report) finds no pole, no path and no reason in: the attributes of spans, their events and
/// links. For who has kept the recording and wants to know its answer in less memory; what attributes say of a single span, only
/// the whole recording tells.
///
/// Attributes of Pulumi's spans, and of those that came by legacy tracing, say who is whose twin and who waited for whom. Where
/// there is one such span, nothing is left out.
pub fn reduce(recording: &mut Recording) {
    if bridge::concerns(recording, &Emitters::of(recording)) {
        return;
    }
    for span in &mut recording.spans {
        span.attributes = Attributes::default();
        span.events.iter_mut().for_each(|event| event.attributes = Attributes::default());
        span.links.iter_mut().for_each(|link| link.attributes = Attributes::default());
    }
}
