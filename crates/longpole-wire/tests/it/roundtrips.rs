//! Every format that is written and read: what comes back is what went out, or the loss is listed.

use longpole_model::Timestamp;
use longpole_model::attribute::{AttributeValue, Attributes};
use longpole_model::sink::SpanBatch;
use longpole_model::span::Span;
use longpole_wire::file::{self, FileFormat};
use longpole_wire::{Limits, otlp};
use proptest::prelude::*;

use crate::arbitrary::request;
use crate::doors::{FORMATS, comes_back, in_order};
use crate::oracle::{same, spans_of};

/// Only what every format holds: texts as values, whole microseconds, no attributes of scopes and links.
fn plain(mut spans: Vec<Span>) -> Vec<Span> {
    let texts = |attributes: &mut Attributes| {
        for (index, attribute) in attributes.0.iter_mut().enumerate() {
            attribute.key = format!("k{}", index % 3).into();
            attribute.value = AttributeValue::Str(format!("{:?}", attribute.value).into());
        }
    };
    let micros = |time: &mut Timestamp| time.0 = time.0 / 1000 * 1000;
    for span in &mut spans {
        micros(&mut span.start);
        micros(&mut span.end);
        // Jaeger has those of the trace.
        span.flags &= 0xff;
        // A start of zero is no start in Zipkin.
        span.start.0 = span.start.0.max(1000);
        texts(&mut span.attributes);
        texts(&mut std::sync::Arc::make_mut(&mut span.resource).attributes);
        std::sync::Arc::make_mut(&mut span.scope).attributes.0.clear();
        for event in &mut span.events {
            micros(&mut event.time);
            texts(&mut event.attributes);
        }
        span.links.iter_mut().for_each(|link| link.attributes.0.clear());
    }
    spans
}

proptest! {
    #[test]
    fn what_comes_back_is_equal_or_the_loss_is_listed(request in request()) {
        comes_back(&spans_of(&request));
    }

    #[test]
    fn what_every_format_holds_comes_back_equal(request in request()) {
        let spans = plain(spans_of(&request));
        for (name, again) in FORMATS {
            let (batch, losses) = again(&spans);
            prop_assert!(losses.is_empty(), "{}: {:?}", name, losses);
            same(&in_order(&spans), &in_order(&batch.spans));
        }
    }

    #[test]
    fn otlp_json_comes_back_in_its_order(request in request()) {
        let spans = spans_of(&request);
        let mut batch = SpanBatch::default();
        file::decode(&otlp::json::encode(&spans)[..], FileFormat::OtlpJsonLines, &Limits::default(), &mut batch).unwrap();
        same(&spans, &batch.spans);
    }
}
