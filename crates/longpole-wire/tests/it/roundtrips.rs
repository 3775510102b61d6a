//! Every format that is written and read: what comes back is what went out, or the loss is listed.

use longpole_model::attribute::{AttributeValue, Attributes};
use longpole_model::loss::{Loss, LossKind};
use longpole_model::sink::SpanBatch;
use longpole_model::span::Span;
use longpole_wire::{Limits, appdash, jaeger, otlp, zipkin};
use proptest::prelude::*;

use crate::arbitrary::request;
use crate::oracle::{same, spans_of};

type Written = (Vec<u8>, Vec<Loss>);

fn zipkin_again(spans: &[Span]) -> (SpanBatch, Written) {
    let written = zipkin::encode_v2_json(spans);
    let mut batch = SpanBatch::default();
    zipkin::decode(&written.0, zipkin::Format::V2Json, &Limits::default(), &mut batch).expect("our own encoding");
    (batch, written)
}

fn jaeger_again(spans: &[Span]) -> (SpanBatch, Written) {
    let written = jaeger::encode(spans);
    let mut batch = SpanBatch::default();
    jaeger::decode(&written.0, &Limits::default(), &mut batch).expect("our own encoding");
    (batch, written)
}

fn appdash_again(spans: &[Span]) -> (SpanBatch, Written) {
    let mut bytes = Vec::new();
    let losses = appdash::encode_file(spans, &mut bytes).unwrap();
    let mut batch = SpanBatch::default();
    appdash::decode_file(&bytes[..], &Limits::default(), &mut batch).expect("our own encoding");
    (batch, (bytes, losses))
}

fn frames_again(spans: &[Span]) -> (SpanBatch, Written) {
    let bytes = appdash::encode_frames(spans);
    let mut batch = SpanBatch::default();
    let mut reader = appdash::FrameReader::new(&Limits::default());
    reader.push(&bytes, &mut batch).expect("our own encoding");
    reader.finish(&mut batch);
    // Frames lose what a file loses.
    (batch, (bytes, appdash::encode_file(spans, &mut std::io::sink()).unwrap()))
}

const FORMATS: [(&str, fn(&[Span]) -> (SpanBatch, Written)); 4] =
    [("zipkin", zipkin_again), ("jaeger", jaeger_again), ("appdash file", appdash_again), ("appdash frames", frames_again)];

/// The order of spans and of attributes with different keys means nothing.
fn in_order(spans: &[Span]) -> Vec<Span> {
    let by_key = |attributes: &mut Attributes| attributes.0.sort_by(|a, b| a.key.cmp(&b.key));
    let mut spans = spans.to_vec();
    for span in &mut spans {
        by_key(&mut span.attributes);
        by_key(&mut std::sync::Arc::make_mut(&mut span.resource).attributes);
        span.events.iter_mut().for_each(|event| by_key(&mut event.attributes));
        span.pid = None;
    }
    spans.sort_by_cached_key(|span| format!("{span:?}"));
    spans
}

/// Only what every format holds: texts as values, whole microseconds, no attributes of scopes and links.
fn plain(mut spans: Vec<Span>) -> Vec<Span> {
    let texts = |attributes: &mut Attributes| {
        for (index, attribute) in attributes.0.iter_mut().enumerate() {
            attribute.key = format!("k{}", index % 3);
            attribute.value = AttributeValue::Str(format!("{:?}", attribute.value));
        }
    };
    for span in &mut spans {
        let micros = |time: &mut longpole_model::Timestamp| time.0 = time.0 / 1000 * 1000;
        micros(&mut span.start);
        micros(&mut span.end);
        texts(&mut span.attributes);
        texts(&mut std::sync::Arc::make_mut(&mut span.resource).attributes);
        std::sync::Arc::make_mut(&mut span.scope).attributes.0.clear();
        for event in &mut span.events {
            micros(&mut event.time);
            texts(&mut event.attributes);
        }
        span.links.iter_mut().for_each(|link| link.attributes.0.clear());
        // A start of zero is no start in Zipkin.
        span.start.0 = span.start.0.max(1000);
    }
    spans
}

proptest! {
    #[test]
    fn what_comes_back_is_equal_or_the_loss_is_listed(request in request()) {
        let spans = spans_of(&request);
        for (name, again) in FORMATS {
            let (batch, (bytes, losses)) = again(&spans);
            prop_assert!(losses.iter().all(|loss| loss.kind == LossKind::FormatCannotHold && loss.count > 0));
            prop_assert_eq!(batch.spans.len(), spans.len(), "{}", name);
            if losses.is_empty() {
                println!("{name} {}", String::from_utf8_lossy(&bytes));
                same(&in_order(&spans), &in_order(&batch.spans));
            }
        }
    }

    #[test]
    fn what_every_format_holds_comes_back_equal(request in request()) {
        let spans = plain(spans_of(&request));
        for (name, again) in FORMATS {
            let (batch, (bytes, losses)) = again(&spans);
            prop_assert!(losses.is_empty(), "{}: {:?}", name, losses);
            println!("{name} {}", String::from_utf8_lossy(&bytes));
            same(&in_order(&spans), &in_order(&batch.spans));
        }
    }

    #[test]
    fn otlp_json_comes_back_equal(request in request()) {
        let spans = spans_of(&request);
        let bytes = otlp::json::encode(&spans);
        let mut batch = SpanBatch::default();
        otlp::json::decode(&bytes, &Limits::default(), &mut batch).expect("our own encoding");
        same(&spans, &batch.spans);
    }

    #[test]
    fn chrome_traces_are_json(request in request()) {
        let spans = spans_of(&request);
        let document: serde_json::Value = serde_json::from_slice(&longpole_wire::chrome_trace::encode(&spans)).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        prop_assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), spans.len());
    }
}
